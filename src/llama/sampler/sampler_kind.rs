//! The samplers that upstream offers, one value each.

use crate::error::{Error, Result};
use crate::raw::sampler::RawSampler;
use crate::sys;

/// Penalties for tokens that were there before.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default))]
#[non_exhaustive]
pub struct Penalties {
    /// How many of the last tokens count; 0 switches the penalties off. Default 64.
    pub last_n: i32,
    /// Divides the logits of those tokens; 1 is none. Default 1.
    pub repeat: f32,
    /// Subtracted for each time that the token was there. Default 0.
    pub frequency: f32,
    /// Subtracted once when it was there. Default 0.
    pub presence: f32,
}

impl Default for Penalties {
    fn default() -> Penalties {
        Penalties { last_n: 64, repeat: 1.0, frequency: 0.0, presence: 0.0 }
    }
}

impl Penalties {
    /// Sets [`last_n`](Self::last_n).
    #[must_use]
    pub fn with_last_n(mut self, last_n: i32) -> Self {
        self.last_n = last_n;
        self
    }

    /// Sets [`repeat`](Self::repeat).
    #[must_use]
    pub fn with_repeat(mut self, repeat: f32) -> Self {
        self.repeat = repeat;
        self
    }

    /// Sets [`frequency`](Self::frequency).
    #[must_use]
    pub fn with_frequency(mut self, frequency: f32) -> Self {
        self.frequency = frequency;
        self
    }

    /// Sets [`presence`](Self::presence).
    #[must_use]
    pub fn with_presence(mut self, presence: f32) -> Self {
        self.presence = presence;
        self
    }
}

/// One step of a [`SamplerChain`](crate::SamplerChain): plain data that says what to do.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum Sampler {
    /// Chooses the token with the largest logit.
    Greedy,
    /// Chooses by chance, each token by its probability. The same seed gives the same choices;
    /// [`SEED_RANDOM`](Sampler::SEED_RANDOM) takes a new one each time.
    Dist {
        /// Seed of the random generator.
        seed: u32,
    },
    /// Keeps the `k` largest logits; 0 or less keeps all.
    TopK {
        /// How many.
        k: i32,
    },
    /// Keeps the most probable tokens that together reach `p` (nucleus sampling); 1 keeps all.
    TopP {
        /// Probability, 0 to 1.
        p: f32,
        /// Never keep fewer than these.
        min_keep: usize,
    },
    /// Keeps tokens of at least `p` times the largest probability; 0 keeps all.
    MinP {
        /// Share, 0 to 1.
        p: f32,
        /// Never keep fewer than these.
        min_keep: usize,
    },
    /// Keeps tokens of typical information content (locally typical sampling); 1 keeps all.
    Typical {
        /// Probability, 0 to 1.
        p: f32,
        /// Never keep fewer than these.
        min_keep: usize,
    },
    /// Divides the logits; 0 or less keeps the largest only.
    Temperature {
        /// The divisor.
        t: f32,
    },
    /// Penalties for repetition.
    Penalties(Penalties),
}

impl Sampler {
    /// A seed that stands for a new random one.
    pub const SEED_RANDOM: u32 = sys::LLAMA_DEFAULT_SEED;

    /// Whether it chooses a token, so that nothing may come after it.
    #[must_use]
    pub fn selects(&self) -> bool {
        matches!(self, Sampler::Greedy | Sampler::Dist { .. })
    }

    /// Checks the numbers: upstream takes what is not a number and answers with nonsense, or asserts.
    fn check(&self) -> Result<()> {
        let probability = |name: &'static str, p: f32| {
            if (0.0..=1.0).contains(&p) { Ok(()) } else { Err(Error::parameter(name, p, "a number from 0 to 1")) }
        };
        let finite = |name: &'static str, x: f32| {
            if x.is_finite() { Ok(()) } else { Err(Error::parameter(name, x, "a finite number")) }
        };
        match self {
            Sampler::Greedy | Sampler::Dist { .. } | Sampler::TopK { .. } => Ok(()),
            Sampler::TopP { p, .. } => probability("top_p", *p),
            Sampler::MinP { p, .. } => probability("min_p", *p),
            Sampler::Typical { p, .. } => probability("typical_p", *p),
            Sampler::Temperature { t } => finite("temperature", *t),
            Sampler::Penalties(penalties) => {
                // The history is allocated at once.
                if !(0..=1 << 20).contains(&penalties.last_n) {
                    return Err(Error::parameter("penalties.last_n", penalties.last_n, "0 to 1048576"));
                }
                if !(penalties.repeat.is_finite() && penalties.repeat > 0.0) {
                    return Err(Error::parameter("penalties.repeat", penalties.repeat, "a finite number above 0"));
                }
                finite("penalties.frequency", penalties.frequency)?;
                finite("penalties.presence", penalties.presence)
            }
        }
    }

    /// Makes upstream's object.
    pub(crate) fn build(&self, n_vocab: i32) -> Result<RawSampler> {
        self.check()?;
        // SAFETY: the numbers were checked; each constructor gives an object that is ours to free.
        let raw = unsafe {
            let ptr = match self {
                Sampler::Greedy => sys::llama_sampler_init_greedy(),
                Sampler::Dist { seed } => sys::llama_sampler_init_dist(resolve_seed(*seed)),
                Sampler::TopK { k } => sys::llama_sampler_init_top_k(*k),
                Sampler::TopP { p, min_keep } => sys::llama_sampler_init_top_p(*p, *min_keep),
                Sampler::MinP { p, min_keep } => sys::llama_sampler_init_min_p(*p, *min_keep),
                Sampler::Typical { p, min_keep } => sys::llama_sampler_init_typical(*p, *min_keep),
                Sampler::Temperature { t } => sys::llama_sampler_init_temp(*t),
                Sampler::Penalties(p) => {
                    sys::llama_sampler_init_penalties(n_vocab, p.last_n, p.repeat, p.frequency, p.presence)
                }
            };
            RawSampler::from_ptr(ptr)
        };
        raw.ok_or_else(|| Error::Sampling { reason: format!("upstream could not make the sampler {self:?}") })
    }
}

/// A seed of our own in place of upstream's "random": upstream's source of randomness can throw.
fn resolve_seed(seed: u32) -> u32 {
    use std::hash::{BuildHasher, RandomState};
    if seed != Sampler::SEED_RANDOM {
        return seed;
    }
    // Keyed at random for each `RandomState`.
    let random = RandomState::new().hash_one(seed) as u32;
    if random == Sampler::SEED_RANDOM { 0 } else { random }
}
