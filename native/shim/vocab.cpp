#include "guard.h"

int32_t gl_tokenize(gl_status * status, const llama_vocab * vocab, const char * text, int32_t text_len,
                    llama_token * tokens, int32_t n_tokens_max, bool add_special, bool parse_special) {
    return gl::guard(status, 0, [&] {
        return llama_tokenize(vocab, text, text_len, tokens, n_tokens_max, add_special, parse_special);
    });
}

int32_t gl_token_to_piece(gl_status * status, const llama_vocab * vocab, llama_token token, char * buf,
                          int32_t length, bool special) {
    return gl::guard(status, 0, [&] { return llama_token_to_piece(vocab, token, buf, length, 0, special); });
}

int32_t gl_detokenize(gl_status * status, const llama_vocab * vocab, const llama_token * tokens, int32_t n_tokens,
                      char * text, int32_t text_len_max, bool remove_special, bool unparse_special) {
    return gl::guard(status, 0, [&] {
        return llama_detokenize(vocab, tokens, n_tokens, text, text_len_max, remove_special, unparse_special);
    });
}
