#include "guard.h"

#include <cstdio>

namespace {

thread_local int guarded_depth = 0;

gl_abort_sink abort_sink = nullptr;

// An operator of the CPU backend runs on a thread team that shares the caller's stack: leaving it by an exception
// would leave the other threads with dangling pointers, so an assertion in there still ends the process.
bool unwinding_is_sound(const char * message) {
    return std::strstr(message, "ggml-cpu") == nullptr;
}

void on_abort(const char * message) {
    if (abort_sink) {
        abort_sink(message);
    }
    if (guarded_depth > 0 && unwinding_is_sound(message)) {
        throw gl::assertion_failed{ message };
    }
    std::fprintf(stderr, "%s\n", message);
}

}  // namespace

namespace gl {

guarded_region::guarded_region() {
    ++guarded_depth;
}

guarded_region::~guarded_region() {
    --guarded_depth;
}

void report(gl_status * status, int32_t code, const char * message) noexcept {
    status->code = code;
    std::snprintf(status->message, sizeof(status->message), "%s", message);
}

}  // namespace gl

void gl_install_abort_handler(gl_abort_sink sink) {
    abort_sink = sink;
    ggml_set_abort_callback(on_abort);
}

void gl_test_assertion(gl_status * status, const char * message) {
    gl::guard_void(status, [&] { ggml_abort(__FILE__, __LINE__, "%s", message); });
}
