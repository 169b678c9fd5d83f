//! Samplers: from logits to a token.

mod candidates;
mod chain;
mod sampler_kind;

pub use candidates::{Candidate, Candidates};
pub use chain::{SamplerChain, SamplerPerf};
pub use sampler_kind::{Penalties, Sampler};
