//! Tiny generated GGUF models for tests and doc examples.
//!
//! Nothing here uses the main crate or upstream: what a test expects comes from an independent source.
//!
//! | where | what |
//! |---|---|
//! | [`models`] | Llama (random or telling a known [`STORY`]), BERT, reranker, Mamba, T5, a LoRA adapter |
//! | [`vocabs`] | files with a vocabulary only, one per tokenizer |
//! | [`SpmVocab`], [`BpeVocab`], [`WpmVocab`], [`UgmVocab`] | the tokens to expect of a text |
//! | [`splits`] | a model in several files |
//! | [`broken`] | files that a loader must refuse or survive |
//! | [`files`] | the same on disk, written once and shared by all tests |
//! | [`gguf`], [`raw`] | how the files are written, sound or malformed |
//!
//! ```
//! let path = ggml_llama_testkit::tiny_llama_path()?;
//! assert!(std::fs::metadata(path)?.len() > 100_000);
//! # Ok::<(), std::io::Error>(())
//! ```

pub mod bpe;
pub mod broken;
pub mod files;
pub mod gguf;
pub mod models;
pub mod raw;
pub mod rng;
pub mod splits;
pub mod spm;
pub mod tensor;
pub mod ugm;
pub mod value;
pub mod vocabs;
pub mod wpm;

pub use bpe::BpeVocab;
pub use files::{
    cached, cached_bytes, tiny_bert_cls_path, tiny_bert_path, tiny_llama_path, tiny_llama_story_path, tiny_lora_path,
    tiny_mamba_path, tiny_reranker_path, tiny_t5_path, vocab_path,
};
pub use gguf::{Gguf, Layout};
pub use models::{
    BertOptions, LlamaOptions, LoraOptions, Pooling, STORY, tiny_bert, tiny_bert_cls, tiny_llama, tiny_llama_story,
    tiny_lora, tiny_mamba, tiny_reranker, tiny_t5,
};
pub use raw::RawFile;
pub use splits::{split, split_name, write_split};
pub use spm::SpmVocab;
pub use tensor::{Tensor, TensorType};
pub use ugm::UgmVocab;
pub use value::{Value, ValueType};
pub use wpm::WpmVocab;
