//! One owner for each C object: a `NonNull`, a `Drop`, and everything the object points to.
//!
//! | owner | C object | freed by | keeps alive |
//! |---|---|---|---|
//! | [`model::RawModel`] | `llama_model` | `Drop` of the last `Arc` | the runtime |
//! | [`context::RawContext`] | `llama_context` | `Drop` | its model |
//! | [`sampler::RawSampler`] | `llama_sampler` | `Drop`, or the chain that takes it | the model whose vocabulary it reads |
//!
//! An object that upstream left by an exception or a failed assertion is *poisoned*: it may be half changed, so it is
//! neither used nor freed again. A leak is harmless, a second use is not.

pub(crate) mod compute_gate;
pub(crate) mod context;
pub(crate) mod cpu_check;
pub(crate) mod fault;
pub(crate) mod model;
pub(crate) mod runtime;
pub(crate) mod sampler;
