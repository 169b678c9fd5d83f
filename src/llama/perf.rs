//! Times and counts that upstream keeps.

use std::time::Duration;

use crate::llama::context::Context;
use crate::sys;

/// What a context has done, measured by upstream. All zero unless the context was made
/// [`with_perf`](crate::ContextParams::with_perf).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Perf {
    /// Loading the model.
    pub load: Duration,
    /// Computing batches of several tokens.
    pub prompt: Duration,
    /// Tokens in those.
    pub n_prompt: i32,
    /// Computing single tokens.
    pub generation: Duration,
    /// How many those were.
    pub n_generated: i32,
    /// How often a compute graph was used again.
    pub n_reused: i32,
}

impl Context {
    /// Times and counts since the start or the last [`reset_perf`](Self::reset_perf).
    #[doc(alias = "llama_perf_context")]
    #[must_use]
    pub fn perf(&self) -> Perf {
        // SAFETY: the context is valid.
        let c = unsafe { sys::llama_perf_context(self.as_ptr()) };
        let ms = |ms: f64| Duration::try_from_secs_f64(ms / 1e3).unwrap_or_default();
        Perf {
            load: ms(c.t_load_ms),
            prompt: ms(c.t_p_eval_ms),
            n_prompt: c.n_p_eval,
            generation: ms(c.t_eval_ms),
            n_generated: c.n_eval,
            n_reused: c.n_reused,
        }
    }

    /// Sets times and counts to zero.
    #[doc(alias = "llama_perf_context_reset")]
    pub fn reset_perf(&mut self) {
        // SAFETY: the context is valid and ours alone.
        unsafe { sys::llama_perf_context_reset(self.as_ptr()) }
    }
}
