#include "guard.h"

void gl_sampler_apply(gl_status * status, llama_sampler * sampler, llama_token_data_array * candidates) {
    gl::guard_void(status, [&] { llama_sampler_apply(sampler, candidates); });
}

void gl_sampler_accept(gl_status * status, llama_sampler * sampler, llama_token token) {
    gl::guard_void(status, [&] { llama_sampler_accept(sampler, token); });
}

void gl_sampler_reset(gl_status * status, llama_sampler * sampler) {
    gl::guard_void(status, [&] { llama_sampler_reset(sampler); });
}

llama_sampler * gl_sampler_clone(gl_status * status, const llama_sampler * sampler) {
    return gl::guard<llama_sampler *>(status, nullptr, [&] { return llama_sampler_clone(sampler); });
}
