//! Whole models, small enough to run in a test.

pub mod bert;
pub mod llama;
pub mod lora;
pub mod mamba;
pub mod t5;
pub mod weights;

pub use bert::{BertOptions, Pooling, tiny_bert, tiny_bert_cls, tiny_reranker};
pub use llama::{CHATML, LlamaOptions, STORY, story_tokens, tiny_llama, tiny_llama_story};
pub use lora::{LoraOptions, tiny_lora};
pub use mamba::tiny_mamba;
pub use t5::tiny_t5;

#[cfg(test)]
mod tests {
    use crate::rng::hash;

    /// The same bytes on every machine: expected values elsewhere were measured with them. A change here is allowed,
    /// but it is a decision.
    #[test]
    fn content_does_not_drift() {
        for (name, gguf, expected) in [
            ("llama", super::tiny_llama(), 0xc8cb_489f_7059_616a_u64),
            ("story", super::tiny_llama_story(), 0x73a9_1b0e_3875_655c),
            ("bert", super::tiny_bert(), 0xac1f_97ae_520b_e72f),
            ("reranker", super::tiny_reranker(), 0x5bf9_8d66_0963_fd15),
            ("mamba", super::tiny_mamba(), 0x2141_9742_4bd0_c8eb),
            ("t5", super::tiny_t5(), 0xe6c4_147d_790b_b26a),
            ("lora", super::tiny_lora(), 0x9782_2686_cd39_38fe),
        ] {
            assert_eq!(format!("{:#018x}", hash(&gguf.to_bytes())), format!("{expected:#018x}"), "{name}");
        }
    }
}
