// Contestant of the side-by-side benchmark: the C interface of llama.cpp, on the same static libraries as the crate.
//
//     bench MODEL THREADS            one repetition per line of standard input; see ../README.md for the protocol
//     bench quantize IN OUT TYPE     writes a quantized copy of a model (Q4_1, Q8_0, Q4_K_M)

#include "ggml-backend.h"
#include "llama.h"

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

constexpr int n_prompt = 256;
constexpr int n_gen = 64;
constexpr int n_ctx = 512;

using clock_type = std::chrono::steady_clock;

double ms_since(clock_type::time_point start) {
    return std::chrono::duration<double, std::milli>(clock_type::now() - start).count();
}

struct release {
    void operator()(llama_model * model) const { llama_model_free(model); }
    void operator()(llama_context * context) const { llama_free(context); }
    void operator()(llama_sampler * sampler) const { llama_sampler_free(sampler); }
};

// 32-bit FNV-1a over the picked tokens.
struct ids_hash {
    uint32_t value = 2166136261u;

    void add(llama_token token) {
        const uint32_t bits = (uint32_t) token;
        for (int shift = 0; shift < 32; shift += 8) {
            value = (value ^ ((bits >> shift) & 0xffu)) * 16777619u;
        }
    }
};

struct timings {
    double prompt_ms = 0;
    double gen_ms = 0;
    uint32_t ids = 0;
};

class contestant {
public:
    contestant(const char * path, int threads) {
        llama_model_params model_params = llama_model_default_params();
        model_params.n_gpu_layers = 0;
        model.reset(llama_model_load_from_file(path, model_params));
        if (!model) {
            throw std::runtime_error(std::string("cannot load ") + path);
        }

        llama_context_params params = llama_context_default_params();
        params.n_ctx = n_ctx;
        params.n_batch = n_ctx;
        params.n_ubatch = n_ctx;
        params.n_threads = threads;
        params.n_threads_batch = threads;
        context.reset(llama_init_from_model(model.get(), params));
        if (!context) {
            throw std::runtime_error("cannot create a context");
        }

        sampler.reset(llama_sampler_chain_init(llama_sampler_chain_default_params()));
        llama_sampler_chain_add(sampler.get(), llama_sampler_init_greedy());
        for (int i = 0; i < n_prompt; i++) {
            prompt.push_back((i * 7919 + 13) % 30000 + 100);
        }
    }

    timings repetition() {
        timings result;
        ids_hash hash;
        llama_memory_clear(llama_get_memory(context.get()), true);

        const auto prompt_start = clock_type::now();
        decode(prompt.data(), n_prompt);
        llama_token token = pick();
        result.prompt_ms = ms_since(prompt_start);
        hash.add(token);

        const auto gen_start = clock_type::now();
        for (int i = 0; i < n_gen; i++) {
            decode(&token, 1);
            token = pick();
            hash.add(token);
        }
        result.gen_ms = ms_since(gen_start);
        result.ids = hash.value;
        return result;
    }

private:
    void decode(llama_token * tokens, int n_tokens) {
        if (llama_decode(context.get(), llama_batch_get_one(tokens, n_tokens)) != 0) {
            throw std::runtime_error("llama_decode failed");
        }
    }

    llama_token pick() { return llama_sampler_sample(sampler.get(), context.get(), -1); }

    std::unique_ptr<llama_model, release> model;
    std::unique_ptr<llama_context, release> context;
    std::unique_ptr<llama_sampler, release> sampler;
    std::vector<llama_token> prompt;
};

std::string file_stem(const std::string & path) {
    const size_t slash = path.find_last_of("/\\");
    const std::string name = slash == std::string::npos ? path : path.substr(slash + 1);
    const size_t dot = name.find_last_of('.');
    return dot == std::string::npos ? name : name.substr(0, dot);
}

int compete(const char * path, int threads) {
    const auto load_start = clock_type::now();
    contestant self(path, threads);
    const double load_ms = ms_since(load_start);
    self.repetition();

    const std::string model = file_stem(path);
    std::printf("{\"who\": \"c++\", \"model\": \"%s\", \"ready\": true, \"load_ms\": %.3f, \"info\": \"%s\"}\n", model.c_str(),
                load_ms, llama_print_system_info());
    std::fflush(stdout);

    std::string line;
    while (std::getline(std::cin, line)) {
        if (line.compare(0, 3, "run") != 0) {
            continue;
        }
        const timings result = self.repetition();
        std::printf("{\"who\": \"c++\", \"model\": \"%s\", \"prompt_tokens\": %d, \"prompt_ms\": %.3f, \"gen_tokens\": %d, "
                    "\"gen_ms\": %.3f, \"load_ms\": %.3f, \"ids\": %u}\n",
                    model.c_str(), n_prompt, result.prompt_ms, n_gen, result.gen_ms, load_ms, (unsigned) result.ids);
        std::fflush(stdout);
    }
    return 0;
}

int quantize(const char * in, const char * out, const std::string & type) {
    llama_model_quantize_params params = llama_model_quantize_default_params();
    params.allow_requantize = true;
    if (type == "Q4_1") {
        params.ftype = LLAMA_FTYPE_MOSTLY_Q4_1;
    } else if (type == "Q8_0") {
        params.ftype = LLAMA_FTYPE_MOSTLY_Q8_0;
    } else if (type == "Q4_K_M") {
        params.ftype = LLAMA_FTYPE_MOSTLY_Q4_K_M;
    } else {
        throw std::runtime_error("unknown type " + type + "; expected Q4_1, Q8_0 or Q4_K_M");
    }
    if (llama_model_quantize(in, out, &params) != 0) {
        throw std::runtime_error(std::string("cannot quantize ") + in);
    }
    return 0;
}

// Errors only: the rest would fill the log of every run.
void log_errors(ggml_log_level level, const char * text, void *) {
    if (level == GGML_LOG_LEVEL_ERROR) {
        std::fputs(text, stderr);
    }
}

} // namespace

int main(int argc, char ** argv) {
    llama_log_set(log_errors, nullptr);
    llama_backend_init();
    int status = 2;
    try {
        if (argc == 5 && std::strcmp(argv[1], "quantize") == 0) {
            status = quantize(argv[2], argv[3], argv[4]);
        } else if (argc == 3 && std::atoi(argv[2]) > 0) {
            status = compete(argv[1], std::atoi(argv[2]));
        } else {
            std::fprintf(stderr, "usage: %s MODEL THREADS | quantize IN OUT Q4_1|Q8_0|Q4_K_M\n", argv[0]);
        }
    } catch (const std::exception & error) {
        std::fprintf(stderr, "error: %s\n", error.what());
        status = 1;
    }
    llama_backend_free();
    return status;
}
