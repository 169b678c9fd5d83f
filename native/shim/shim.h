// C functions of our own around those of upstream that may throw. Each takes a status that tells what happened;
// the returned value counts only when its code is GL_OK.
#pragma once

#include "ggml-backend.h"
#include "llama.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GL_OK 0
#define GL_OUT_OF_MEMORY 1
#define GL_EXCEPTION 2
#define GL_ASSERTION 3

typedef struct gl_status {
    int32_t code;
    char    message[508];
} gl_status;

// Called with upstream's message before a failed assertion unwinds or ends the process.
typedef void (*gl_abort_sink)(const char * message);
void gl_install_abort_handler(gl_abort_sink sink);
// Fails an assertion on purpose, so that the tests can see what becomes of it.
void gl_test_assertion(gl_status * status, const char * message);

// devices
void gl_backend_init(gl_status * status);
void gl_dev_memory(gl_status * status, ggml_backend_dev_t device, size_t * free, size_t * total);
void gl_dev_props(gl_status * status, ggml_backend_dev_t device, struct ggml_backend_dev_props * props);

// models
struct llama_model * gl_model_load(gl_status * status, const char ** paths, size_t n_paths,
                                   struct llama_model_params params);
void gl_model_free(gl_status * status, struct llama_model * model);
int32_t gl_chat_apply_template(gl_status * status, const char * tmpl, const struct llama_chat_message * chat,
                               size_t n_msg, bool add_ass, char * buf, int32_t length);

// vocabularies
int32_t gl_tokenize(gl_status * status, const struct llama_vocab * vocab, const char * text, int32_t text_len,
                    llama_token * tokens, int32_t n_tokens_max, bool add_special, bool parse_special);
int32_t gl_token_to_piece(gl_status * status, const struct llama_vocab * vocab, llama_token token, char * buf,
                          int32_t length, bool special);
int32_t gl_detokenize(gl_status * status, const struct llama_vocab * vocab, const llama_token * tokens,
                      int32_t n_tokens, char * text, int32_t text_len_max, bool remove_special, bool unparse_special);

// contexts
struct llama_context * gl_context_new(gl_status * status, struct llama_model * model,
                                      struct llama_context_params params);
void gl_context_free(gl_status * status, struct llama_context * ctx);
int32_t gl_decode(gl_status * status, struct llama_context * ctx, struct llama_batch batch);
int32_t gl_encode(gl_status * status, struct llama_context * ctx, struct llama_batch batch);
void gl_synchronize(gl_status * status, struct llama_context * ctx);
float * gl_get_logits_ith(gl_status * status, struct llama_context * ctx, int32_t i);
float * gl_get_embeddings_ith(gl_status * status, struct llama_context * ctx, int32_t i);
float * gl_get_embeddings_seq(gl_status * status, struct llama_context * ctx, llama_seq_id seq_id);
void gl_memory_clear(gl_status * status, llama_memory_t memory, bool data);
bool gl_memory_seq_rm(gl_status * status, llama_memory_t memory, llama_seq_id seq_id, llama_pos p0, llama_pos p1);
llama_pos gl_memory_seq_pos_min(gl_status * status, llama_memory_t memory, llama_seq_id seq_id);
llama_pos gl_memory_seq_pos_max(gl_status * status, llama_memory_t memory, llama_seq_id seq_id);

// samplers
void gl_sampler_apply(gl_status * status, struct llama_sampler * sampler, llama_token_data_array * candidates);
void gl_sampler_accept(gl_status * status, struct llama_sampler * sampler, llama_token token);
void gl_sampler_reset(gl_status * status, struct llama_sampler * sampler);
struct llama_sampler * gl_sampler_clone(gl_status * status, const struct llama_sampler * sampler);

#ifdef __cplusplus
}
#endif
