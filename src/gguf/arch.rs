//! What upstream's architectures have in common with regard to what makes them abort.
//!
//! The lists follow the source: `llama-arch.cpp`, `llama-model.cpp` and the graph constructors in `src/models`.

/// They work on the hidden states of another model's context; without one they fail assertions when they decode.
pub(crate) fn needs_other_context(arch: &str) -> bool {
    ["clef", "dflash", "eagle3", "gemma4-assistant"].contains(&arch)
}

/// Positions are rows of a table, so that those from the context length on do not exist
/// (`GGML_ASSERT(i01 >= 0 && i01 < ne01)` on the CPU, a read out of bounds elsewhere).
pub(crate) fn has_position_table(arch: &str) -> bool {
    ["bert", "gpt2", "mpt", "starcoder"].contains(&arch)
}

/// Layers without attention are part of the design, so a layer may have no key and value heads.
pub(crate) fn may_lack_attention(arch: &str) -> bool {
    const LIST: &[&str] = &[
        // llm_arch_is_recurrent
        "arwkv7",
        "mamba",
        "mamba2",
        "rwkv6",
        "rwkv6qwen2",
        "rwkv7",
        // llm_arch_is_hybrid
        "bailingmoe3",
        "deepseek4",
        "falcon-h1",
        "glm5-next",
        "granitehybrid",
        "jamba",
        "kimi-k3",
        "kimi-linear",
        "lfm2",
        "lfm2moe",
        "minimax-01",
        "nemotron_h",
        "nemotron_h_moe",
        "plamo2",
        "qwen35",
        "qwen35moe",
        "qwen3next",
        "qwen4exp",
        // dummy layers
        "deci",
        // no attention in the sense of these keys
        "wavtokenizer-dec",
    ];
    LIST.contains(&arch)
}

/// No rotary position embedding, so nothing asks for an even number of dimensions (`llama_model_rope_type`).
pub(crate) fn lacks_rope(arch: &str) -> bool {
    const LIST: &[&str] = &[
        "arwkv7",
        "bloom",
        "clip",
        "glm5-next",
        "gpt2",
        "gptj",
        "jais",
        "jamba",
        "jina-bert-v2",
        "kimi-k3",
        "kimi-linear",
        "mamba",
        "mamba2",
        "mpt",
        "nemotron_h",
        "nemotron_h_moe",
        "refact",
        "rwkv6",
        "rwkv6qwen2",
        "rwkv7",
        "t5",
        "t5encoder",
        "wavtokenizer-dec",
        // they have a type of their own, but do not rotate, or not always
        "bert",
        "starcoder",
        "granitehybrid",
    ];
    LIST.contains(&arch)
}

/// Positions have several sections; rotating with none ends in an assertion.
pub(crate) fn needs_rope_sections(arch: &str) -> bool {
    ["clef", "paddleocr", "qwen2vl", "qwen35", "qwen35moe", "qwen3tts", "qwen3vl", "qwen3vlmoe", "qwen4exp"]
        .contains(&arch)
}

/// `GGML_ASSERT(n_embd_head == hparams.n_embd_head_k())` with the size of a value head, when a context is made.
pub(crate) fn needs_equal_heads(arch: &str) -> bool {
    const MORE: &[&str] = &[
        "afmoe",
        "bailingmoe2",
        "bert",
        "bitnet",
        "bloom",
        "chatglm",
        "cohere2",
        "cohere2moe",
        "command-r",
        "eurobert",
        "glm4",
        "glm4moe",
        "gpt2",
        "gptneox",
        "granitehybrid",
        "jais",
        "jina-bert-v2",
        "jina-bert-v3",
        "laguna",
        "minimax-01",
        "minimax-m2",
        "minimax-m3",
        "modern-bert",
        "mpt",
        "muse-glimmer",
        "nanbeige",
        "nemotron",
        "nemotron_h",
        "nemotron_h_moe",
        "neo-bert",
        "nomic-bert",
        "nomic-bert-moe",
        "openelm",
        "phi2",
        "phi3",
        "phimoe",
        "qwen",
        "qwen35",
        "qwen35moe",
        "qwen3next",
        "qwen4exp",
        "refact",
        "spark2_5",
        "stablelm",
        "starcoder",
        "t5",
        "t5encoder",
    ];
    // these compare the rotated dimensions with the key's own size
    let keys_only = ["exaone-moe", "exaone4", "talkie"];
    MORE.contains(&arch) || needs_full_rotation(arch) && !keys_only.contains(&arch)
}

/// `GGML_ASSERT(n_embd_head == n_rot)` when a context is made.
pub(crate) fn needs_full_rotation(arch: &str) -> bool {
    const LIST: &[&str] = &[
        "apertus",
        "arcee",
        "arctic",
        "baichuan",
        "chameleon",
        "codeshell",
        "cogvlm",
        "dbrx",
        "deci",
        "deepseek",
        "dots1",
        "dream",
        "ernie4_5",
        "ernie4_5-moe",
        "exaone",
        "exaone-moe",
        "exaone4",
        "falcon",
        "granite",
        "granite_swa",
        "granitemoe",
        "graniteswitch",
        "grok",
        "grovemoe",
        "hunyuan-dense",
        "hunyuan-moe",
        "hunyuan_vl",
        "hy_v3",
        "internlm2",
        "jais2",
        "llada",
        "llada-moe",
        "llama",
        "llama-embed",
        "llama4",
        "maincoder",
        "mellum",
        "minicpm",
        "mistral3",
        "olmo",
        "olmo2",
        "olmoe",
        "orion",
        "paddleocr",
        "pangu-embedded",
        "plamo",
        "pockettts",
        "qwen2",
        "qwen2moe",
        "qwen2vl",
        "qwen3",
        "qwen3moe",
        "qwen3vl",
        "qwen3vlmoe",
        "rnd1",
        "seed_oss",
        "smallthinker",
        "smollm3",
        "starcoder2",
        "talkie",
        "xverse",
    ];
    LIST.contains(&arch)
}

/// All layers have experts: without any, the loader fails an assertion or divides by zero.
pub(crate) fn needs_experts(arch: &str) -> bool {
    const LIST: &[&str] = &[
        // GGML_ASSERT(n_expert > 0)
        "bailingmoe2",
        "glm4moe",
        "grovemoe",
        "lfm2moe",
        "llada-moe",
        "smallthinker",
        // n_ff / n_expert_used
        "mellum",
        "qwen2moe",
        "qwen35moe",
        "qwen3moe",
        "qwen3next",
        "qwen3vlmoe",
        "qwen4exp",
        "rnd1",
    ];
    LIST.contains(&arch)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists() {
        assert!(needs_full_rotation("llama") && needs_equal_heads("llama") && !needs_experts("llama"));
        assert!(!needs_equal_heads("deepseek2") && !needs_equal_heads("gemma3") && !needs_full_rotation("phi3"));
        assert!(needs_equal_heads("gpt2") && lacks_rope("gpt2") && has_position_table("gpt2"));
        assert!(may_lack_attention("lfm2") && !may_lack_attention("llama"));
        assert!(needs_other_context("gemma4-assistant") && !needs_other_context("gemma4"));
        assert!(needs_rope_sections("qwen2vl") && !needs_rope_sections("glm4"));
        assert!(needs_full_rotation("exaone4") && !needs_equal_heads("exaone4"));
    }
}
