//! llama.cpp: models, contexts, tokens and samplers. Everything is re-exported at the crate's root.

mod batch;
mod chat;
mod context;
mod context_params;
mod memory;
mod memory_estimate;
mod model;
mod model_params;
mod output;
mod perf;
mod sampler;
mod system;
mod token;
mod tokenize;
mod utf8;
mod vocab;

pub use batch::Batch;
pub use chat::{ChatMessage, apply_chat_template, builtin_chat_templates};
pub use context::Context;
pub use context_params::{Attention, CacheType, ContextParams, FlashAttention, Pooling, RopeScaling};
pub use memory::Memory;
pub use model::{Model, RopeType};
pub use model_params::{LazyMode, LoadMode, MetadataOverride, ModelParams, SplitMode, TensorBufferOverride};
pub use perf::Perf;
pub use sampler::{Candidate, Candidates, Penalties, Sampler, SamplerChain, SamplerPerf};
pub use system::{available_threads, supports_gpu_offload, supports_mlock, supports_mmap, supports_rpc, system_info};
pub use token::{Pos, SeqId, Token};
pub use tokenize::Special;
pub use utf8::Utf8Decoder;
pub use vocab::{TokenAttr, Vocab, VocabType};
