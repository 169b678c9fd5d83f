#include "guard.h"

llama_model * gl_model_load(gl_status * status, const char ** paths, size_t n_paths, llama_model_params params) {
    return gl::guard<llama_model *>(status, nullptr, [&] {
        return n_paths == 1 ? llama_model_load_from_file(paths[0], params)
                            : llama_model_load_from_splits(paths, n_paths, params);
    });
}

void gl_model_free(gl_status * status, llama_model * model) {
    gl::guard_void(status, [&] { llama_model_free(model); });
}

int32_t gl_chat_apply_template(gl_status * status, const char * tmpl, const llama_chat_message * chat, size_t n_msg,
                               bool add_ass, char * buf, int32_t length) {
    return gl::guard(status, -1, [&] { return llama_chat_apply_template(tmpl, chat, n_msg, add_ass, buf, length); });
}
