#include "guard.h"

llama_context * gl_context_new(gl_status * status, llama_model * model, llama_context_params params) {
    return gl::guard<llama_context *>(status, nullptr, [&] { return llama_init_from_model(model, params); });
}

void gl_context_free(gl_status * status, llama_context * ctx) {
    gl::guard_void(status, [&] { llama_free(ctx); });
}

int32_t gl_decode(gl_status * status, llama_context * ctx, llama_batch batch) {
    return gl::guard(status, -4, [&] { return llama_decode(ctx, batch); });
}

int32_t gl_encode(gl_status * status, llama_context * ctx, llama_batch batch) {
    return gl::guard(status, -4, [&] { return llama_encode(ctx, batch); });
}

void gl_synchronize(gl_status * status, llama_context * ctx) {
    gl::guard_void(status, [&] { llama_synchronize(ctx); });
}

float * gl_get_logits_ith(gl_status * status, llama_context * ctx, int32_t i) {
    return gl::guard<float *>(status, nullptr, [&] { return llama_get_logits_ith(ctx, i); });
}

float * gl_get_embeddings_ith(gl_status * status, llama_context * ctx, int32_t i) {
    return gl::guard<float *>(status, nullptr, [&] { return llama_get_embeddings_ith(ctx, i); });
}

float * gl_get_embeddings_seq(gl_status * status, llama_context * ctx, llama_seq_id seq_id) {
    return gl::guard<float *>(status, nullptr, [&] { return llama_get_embeddings_seq(ctx, seq_id); });
}

void gl_memory_clear(gl_status * status, llama_memory_t memory, bool data) {
    gl::guard_void(status, [&] { llama_memory_clear(memory, data); });
}

bool gl_memory_seq_rm(gl_status * status, llama_memory_t memory, llama_seq_id seq_id, llama_pos p0, llama_pos p1) {
    return gl::guard(status, false, [&] { return llama_memory_seq_rm(memory, seq_id, p0, p1); });
}

llama_pos gl_memory_seq_pos_min(gl_status * status, llama_memory_t memory, llama_seq_id seq_id) {
    return gl::guard(status, -1, [&] { return llama_memory_seq_pos_min(memory, seq_id); });
}

llama_pos gl_memory_seq_pos_max(gl_status * status, llama_memory_t memory, llama_seq_id seq_id) {
    return gl::guard(status, -1, [&] { return llama_memory_seq_pos_max(memory, seq_id); });
}
