//! Safe Rust bindings to [llama.cpp](https://github.com/ggml-org/llama.cpp) and ggml.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use ggml_llama::{Batch, ContextParams, Model, ModelParams, Pos, SamplerChain, SeqId, Special, Utf8Decoder};
//! # let path = ggml_llama_testkit::tiny_llama_path()?;
//! let model = Model::load(path, &ModelParams::default())?;
//! let vocab = model.vocab();
//! let mut context = model.new_context(&ContextParams::default().with_n_ctx(256))?;
//! let mut sampler = SamplerChain::greedy(&vocab)?;
//! let mut text = Utf8Decoder::new();
//!
//! let prompt = vocab.tokenize("Once upon a time", true, Special::AsText)?;
//! let mut batch = Batch::new();
//! batch.add_sequence(&prompt, Pos(0), SeqId(0))?;
//! for pos in prompt.len() as i32..64 {
//!     context.decode(&batch)?;
//!     let token = sampler.sample_last(&context)?;
//!     if vocab.is_eog(token)? {
//!         break;
//!     }
//!     print!("{}", text.push(&vocab.piece(token, false)?));
//!     batch.clear();
//!     batch.add(token, Pos(pos), &[SeqId(0)], true)?;
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # What to know
//!
//! * [`Model`], [`Vocab`] and [`Context`] are owned handles without lifetime parameters. Drop them in any order, on any
//!   thread.
//! * No safe call ends the process: what upstream would assert is checked first, what it throws is caught, and an
//!   assertion that is hit all the same becomes an [`Error`] wherever upstream's stack can be left soundly.
//! * Nothing has to be started. Upstream's log is quiet until the program installs a logger; see [`logging`].
//! * Native code is always compiled with optimisation, also in debug builds.
//!
//! `docs/building.md` in the repository has all that can be set at build time.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod build_info;
mod callback;
mod error;
pub mod fusion;
pub mod ggml;
mod gguf;
mod llama;
pub mod logging;
mod raw;
pub mod sys;
mod util;

pub use build_info::{BuildInfo, build_info};
pub use error::{DecodeError, Detail, Error, Result};
pub use ggml::{BufferType, Device, DeviceKind, DeviceMemory, DeviceProps, devices};
pub use llama::*;
