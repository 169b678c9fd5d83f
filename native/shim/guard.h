// How calls into upstream are kept from taking the process down. Internal to the shim.
#pragma once

#include "shim.h"

#include <cstring>
#include <exception>
#include <new>
#include <string>

namespace gl {

// Thrown by the abort callback in place of abort(), while a guarded call runs on this thread.
struct assertion_failed {
    std::string message;
};

// Marks that the thread is inside a guarded call, so that a failed assertion may unwind to it.
class guarded_region {
  public:
    guarded_region();
    ~guarded_region();
    guarded_region(const guarded_region &) = delete;
    guarded_region & operator=(const guarded_region &) = delete;
};

void report(gl_status * status, int32_t code, const char * message) noexcept;

// Runs `call`; whatever it throws ends up in `status` and `fallback` is returned.
template <typename R, typename F> R guard(gl_status * status, R fallback, F && call) noexcept {
    status->code       = GL_OK;
    status->message[0] = '\0';
    try {
        guarded_region region;
        return call();
    } catch (const assertion_failed & failure) {
        report(status, GL_ASSERTION, failure.message.c_str());
    } catch (const std::bad_alloc &) {
        report(status, GL_OUT_OF_MEMORY, "out of memory");
    } catch (const std::exception & error) {
        report(status, GL_EXCEPTION, error.what());
    } catch (...) {
        report(status, GL_EXCEPTION, "an exception of unknown type");
    }
    return fallback;
}

template <typename F> void guard_void(gl_status * status, F && call) noexcept {
    guard(status, 0, [&] {
        call();
        return 0;
    });
}

}  // namespace gl
