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
