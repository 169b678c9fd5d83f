//! A chain of samplers, applied one after the other.

use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::llama::context::Context;
use crate::llama::sampler::candidates::Candidates;
use crate::llama::sampler::sampler_kind::Sampler;
use crate::llama::token::Token;
use crate::llama::vocab::Vocab;
use crate::raw::fault;
use crate::raw::sampler::RawSampler;
use crate::sys;

/// Samplers one after the other, ending with one that chooses the token.
///
/// Made from plain [`Sampler`] values, it owns all that it needs, can be sent to other threads, and is checked when it is
/// made: it must end with a sampler that chooses, and only the last may choose.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use ggml_llama::*;
/// # let model = Model::load(ggml_llama_testkit::tiny_llama_path()?, &ModelParams::default())?;
/// # let mut context = Context::new(&model, &ContextParams::default().with_n_ctx(256))?;
/// # let tokens = model.vocab().tokenize("hello", true, Special::AsText)?;
/// # let mut batch = Batch::new();
/// # batch.add_sequence(&tokens, Pos(0), SeqId(0))?;
/// # context.decode(&batch)?;
/// let mut sampler = SamplerChain::new(
///     &model.vocab(),
///     [Sampler::TopK { k: 40 }, Sampler::Temperature { t: 0.8 }, Sampler::Dist { seed: 1 }],
/// )?;
/// let token = sampler.sample_last(&context)?;
/// # let _ = token;
/// # Ok(())
/// # }
/// ```
#[doc(alias = "llama_sampler")]
#[doc(alias = "llama_sampler_chain_init")]
#[doc(alias = "llama_sampler_chain_add")]
pub struct SamplerChain {
    raw: RawSampler,
    samplers: Vec<Sampler>,
    vocab: Vocab,
    /// The candidates, kept between calls: one per token of the vocabulary.
    buffer: Vec<sys::llama_token_data>,
    /// What was sampled without upstream: a chain of nothing but greedy needs no list of candidates.
    greedy: SamplerPerf,
}

/// How long sampling took, and how often.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct SamplerPerf {
    /// Time in all samplers of the chain.
    pub sample: Duration,
    /// Number of applications.
    pub n_sample: i32,
}

impl SamplerChain {
    /// Makes a chain for a vocabulary.
    ///
    /// # Errors
    ///
    /// [`Error::Sampling`] when the chain is empty, when it does not end with a sampler that chooses, or when one that
    /// chooses stands before the end; [`Error::InvalidParameter`] for numbers that cannot work.
    pub fn new(vocab: &Vocab, samplers: impl IntoIterator<Item = Sampler>) -> Result<SamplerChain> {
        let samplers: Vec<Sampler> = samplers.into_iter().collect();
        check_order(&samplers)?;
        // SAFETY: plain parameters; the object is ours to free.
        let raw = unsafe {
            let mut params = sys::llama_sampler_chain_default_params();
            params.no_perf = false;
            RawSampler::from_ptr(sys::llama_sampler_chain_init(params))
        };
        let mut raw = raw.ok_or_else(|| Error::Sampling { reason: "upstream could not make a chain".to_owned() })?;
        for sampler in &samplers {
            raw.chain_add(sampler.build(vocab.n_tokens())?);
        }
        raw.keep_alive([vocab.model().clone()]);
        Ok(SamplerChain { raw, samplers, vocab: vocab.clone(), buffer: Vec::new(), greedy: SamplerPerf::default() })
    }

    /// A chain that always takes the token with the largest logit.
    ///
    /// # Errors
    ///
    /// As [`SamplerChain::new`].
    pub fn greedy(vocab: &Vocab) -> Result<SamplerChain> {
        SamplerChain::new(vocab, [Sampler::Greedy])
    }

    /// What it is made of.
    #[must_use]
    pub fn samplers(&self) -> &[Sampler] {
        &self.samplers
    }

    /// Chooses a token from the logits after the token at `index` of the context's last batch, and accepts it: the
    /// samplers that remember tokens know it from now on.
    ///
    /// # Errors
    ///
    /// [`Error::NoOutput`] when there are no such logits, [`Error::Sampling`] when they are no numbers, when nothing is
    /// left to choose, or when the chain was made for another vocabulary.
    #[doc(alias = "llama_sampler_sample")]
    pub fn sample(&mut self, context: &Context, index: usize) -> Result<Token> {
        let token = self.choose(context, index)?;
        self.accept(token)?;
        Ok(token)
    }

    /// As [`sample`](Self::sample), from the last output of the context's last batch.
    ///
    /// # Errors
    ///
    /// As [`sample`](Self::sample).
    pub fn sample_last(&mut self, context: &Context) -> Result<Token> {
        let index = context.last_output().ok_or_else(no_output)?;
        self.sample(context, index)
    }

    fn choose(&mut self, context: &Context, index: usize) -> Result<Token> {
        if self.vocab.n_tokens() != context.model().vocab().n_tokens() {
            return Err(Error::Sampling {
                reason: format!(
                    "the chain was made for a vocabulary of {} tokens, the context's model has {}",
                    self.vocab.n_tokens(),
                    context.model().vocab().n_tokens()
                ),
            });
        }
        let logits = context.logits(index)?;
        if self.samplers == [Sampler::Greedy] {
            self.check_usable()?;
            let started = Instant::now();
            let best = largest(logits)?;
            // Upstream counts it when it is accepted.
            self.greedy.sample += started.elapsed();
            return Ok(best);
        }
        let selected = self.apply(logits)?.selected();
        selected
            .map(|candidate| candidate.token)
            .ok_or_else(|| Error::Sampling { reason: "the samplers left nothing to choose from".to_owned() })
    }

    /// Applies the chain to logits, one per token of the vocabulary, and shows what is left. Nothing is accepted.
    ///
    /// # Errors
    ///
    /// [`Error::Sampling`] for a wrong number of logits or logits that are not numbers.
    #[doc(alias = "llama_sampler_apply")]
    pub fn apply(&mut self, logits: &[f32]) -> Result<Candidates<'_>> {
        self.check_usable()?;
        let n_vocab = self.vocab.n_tokens();
        if usize::try_from(n_vocab) != Ok(logits.len()) || logits.is_empty() {
            return Err(Error::Sampling { reason: format!("{} logits for {n_vocab} tokens", logits.len()) });
        }
        largest(logits)?;
        self.buffer.clear();
        let candidate = |(id, &logit)| sys::llama_token_data { id, logit, p: 0.0 };
        self.buffer.extend((0..).zip(logits).map(candidate));
        let mut array = sys::llama_token_data_array {
            data: self.buffer.as_mut_ptr(),
            size: self.buffer.len(),
            selected: -1,
            sorted: false,
        };
        let chain = self.raw.as_ptr();
        // SAFETY: chain and array are valid and ours alone.
        let result = fault::call(|status| unsafe { sys::gl_sampler_apply(status, chain, &mut array) });
        if let Err(fault) = result {
            self.raw.poisoned = true;
            return Err(fault.into_error("llama_sampler_apply"));
        }
        let data = match array.data.is_null() {
            true => &[],
            // SAFETY: samplers shrink the array, and may put it into memory of their own that lives until the next
            // application, which needs `&mut self`.
            false => unsafe { std::slice::from_raw_parts(array.data, array.size) },
        };
        let selected = usize::try_from(array.selected).ok().filter(|i| *i < data.len());
        Ok(Candidates { data, selected, sorted: array.sorted })
    }

    /// Tells the samplers that a token was taken which they did not choose, such as one of the prompt.
    ///
    /// # Errors
    ///
    /// [`Error::TokenOutOfRange`] for a token that the vocabulary does not have.
    #[doc(alias = "llama_sampler_accept")]
    pub fn accept(&mut self, token: Token) -> Result<()> {
        self.check_usable()?;
        let n_vocab = self.vocab.n_tokens();
        if !(0..n_vocab).contains(&token.0) {
            return Err(Error::TokenOutOfRange { token: token.0, n_vocab });
        }
        let chain = self.raw.as_ptr();
        // SAFETY: the chain is valid and ours alone, the token is in range.
        fault::call(|status| unsafe { sys::gl_sampler_accept(status, chain, token.0) }).map_err(|fault| {
            self.raw.poisoned = true;
            fault.into_error("llama_sampler_accept")
        })
    }

    /// Back to the state in which it was made: forgets tokens, and starts its random numbers again.
    ///
    /// # Errors
    ///
    /// [`Error::Upstream`] when upstream fails.
    #[doc(alias = "llama_sampler_reset")]
    pub fn reset(&mut self) -> Result<()> {
        self.check_usable()?;
        let chain = self.raw.as_ptr();
        // SAFETY: the chain is valid and ours alone.
        fault::call(|status| unsafe { sys::gl_sampler_reset(status, chain) }).map_err(|fault| {
            self.raw.poisoned = true;
            fault.into_error("llama_sampler_reset")
        })
    }

    /// A copy with the same state: both go on alike and apart.
    ///
    /// # Errors
    ///
    /// [`Error::Upstream`] when upstream fails.
    #[doc(alias = "llama_sampler_clone")]
    pub fn try_clone(&self) -> Result<SamplerChain> {
        self.check_usable()?;
        // SAFETY: the chain is valid.
        let ptr = fault::call(|status| unsafe { sys::gl_sampler_clone(status, self.raw.as_ptr()) })
            .map_err(|fault| fault.into_error("llama_sampler_clone"))?;
        // SAFETY: the copy is ours to free.
        let raw = unsafe { RawSampler::from_ptr(ptr) };
        let mut raw = raw.ok_or_else(|| Error::Sampling { reason: "upstream could not copy the chain".to_owned() })?;
        raw.keep_alive(self.raw.keep().iter().cloned());
        let (samplers, vocab) = (self.samplers.clone(), self.vocab.clone());
        Ok(SamplerChain { raw, samplers, vocab, buffer: Vec::new(), greedy: SamplerPerf::default() })
    }

    /// The seed in use: that of the last sampler with one; `None` when none has one.
    #[doc(alias = "llama_sampler_get_seed")]
    #[must_use]
    pub fn seed(&self) -> Option<u32> {
        if !self.samplers.iter().any(|sampler| matches!(sampler, Sampler::Dist { .. })) {
            return None;
        }
        // SAFETY: the chain is valid.
        Some(unsafe { sys::llama_sampler_get_seed(self.raw.as_ptr()) })
    }

    /// Time and number of applications.
    #[doc(alias = "llama_perf_sampler")]
    #[must_use]
    pub fn perf(&self) -> SamplerPerf {
        // SAFETY: this is a chain, which the function asserts.
        let c = unsafe { sys::llama_perf_sampler(self.raw.as_ptr()) };
        SamplerPerf {
            sample: self.greedy.sample + Duration::try_from_secs_f64(c.t_sample_ms / 1e3).unwrap_or_default(),
            n_sample: self.greedy.n_sample.saturating_add(c.n_sample),
        }
    }

    /// Sets time and number to zero.
    #[doc(alias = "llama_perf_sampler_reset")]
    pub fn reset_perf(&mut self) {
        self.greedy = SamplerPerf::default();
        // SAFETY: this is a chain, which the function asserts.
        unsafe { sys::llama_perf_sampler_reset(self.raw.as_ptr()) }
    }

    fn check_usable(&self) -> Result<()> {
        if self.raw.poisoned {
            let reason = "upstream was left in the middle of a call".to_owned();
            return Err(Error::Poisoned { object: "sampler", reason });
        }
        Ok(())
    }
}

impl std::fmt::Debug for SamplerChain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SamplerChain").field("samplers", &self.samplers).finish_non_exhaustive()
    }
}

/// Upstream asserts that something was selected.
fn check_order(samplers: &[Sampler]) -> Result<()> {
    let wrong = |reason: String| Err(Error::Sampling { reason });
    match samplers.iter().position(Sampler::selects) {
        Some(i) if i + 1 == samplers.len() => Ok(()),
        Some(i) => wrong(format!(
            "{:?} chooses the token and must be the last sampler, but {:?} comes after it",
            samplers[i],
            samplers[i + 1]
        )),
        None => wrong("a chain must end with a sampler that chooses a token, such as Greedy or Dist".to_owned()),
    }
}

fn no_output() -> Error {
    Error::NoOutput {
        what: "logits",
        index: "the last output".to_owned(),
        reason: "the last decode had no outputs, failed, or there was none".to_owned(),
    }
}

/// The token with the largest logit, the first of several; an error for logits that no sampler can work with.
fn largest(logits: &[f32]) -> Result<Token> {
    // Lanes that the compiler turns into vector code.
    let unusable = |what: &str| Err(Error::Sampling { reason: format!("{what}: the model's output is unusable") });
    let mut lanes = [f32::NEG_INFINITY; 16];
    let mut nan = [false; 16];
    let mut chunks = logits.chunks_exact(16);
    for chunk in &mut chunks {
        for ((lane, nan), &logit) in lanes.iter_mut().zip(&mut nan).zip(chunk) {
            *lane = if logit > *lane { logit } else { *lane };
            *nan |= logit.is_nan();
        }
    }
    let rest = chunks.remainder();
    let max = lanes.iter().chain(rest).copied().fold(f32::NEG_INFINITY, f32::max);
    if nan.contains(&true) || rest.iter().any(|logit| logit.is_nan()) || max == f32::INFINITY {
        return unusable("a logit is not a number or infinite");
    }
    if max == f32::NEG_INFINITY {
        return unusable("all logits are minus infinity");
    }
    let at = logits.iter().position(|&logit| logit == max).and_then(|at| i32::try_from(at).ok());
    at.map(Token).ok_or_else(|| Error::Sampling { reason: "more logits than token ids".to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_the_largest_wins_wherever_it_stands() {
        for n in [1, 15, 16, 17, 40] {
            for at in 0..n {
                let mut logits = vec![-1.0; n];
                logits[at] = 2.0;
                logits[n - 1] = 2.0;
                assert_eq!(largest(&logits).unwrap(), Token(at as i32), "{at} of {n}");
            }
        }
    }

    #[test]
    fn logits_that_are_no_numbers_are_refused() {
        for bad in [f32::NAN, f32::INFINITY] {
            for at in [0, 15, 16, 19] {
                let mut logits = vec![0.0; 20];
                logits[at] = bad;
                assert!(largest(&logits).is_err(), "{bad} at {at}");
            }
        }
        assert!(largest(&[f32::NEG_INFINITY; 20]).is_err());
        assert_eq!(largest(&[f32::NEG_INFINITY, 0.0]).unwrap(), Token(1));
    }
}
