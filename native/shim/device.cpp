#include "guard.h"

void gl_backend_init(gl_status * status) {
    gl::guard_void(status, [] {
        llama_backend_init();
        // The first look at the registry starts every backend that was compiled in.
        (void) ggml_backend_dev_count();
    });
}

void gl_dev_memory(gl_status * status, ggml_backend_dev_t device, size_t * free, size_t * total) {
    gl::guard_void(status, [&] { ggml_backend_dev_memory(device, free, total); });
}

void gl_dev_props(gl_status * status, ggml_backend_dev_t device, ggml_backend_dev_props * props) {
    gl::guard_void(status, [&] { ggml_backend_dev_get_props(device, props); });
}
