//! A context: a model at work, with its memory and its results.

use std::ptr::NonNull;
use std::sync::Arc;

use crate::error::{DecodeError, Detail, Error, Result};
use crate::llama::batch::Batch;
use crate::llama::context_params::{ContextParams, Pooling, check};
use crate::llama::memory_estimate;
use crate::llama::model::{Model, RopeType, Weights};
use crate::llama::output::Outputs;
use crate::llama::token::SeqId;
use crate::raw::compute_gate;
use crate::raw::context::RawContext;
use crate::raw::fault::{self, Fault, FaultKind};
use crate::sys;

/// A model at work: takes batches, keeps the memory of its sequences, gives logits and embeddings.
///
/// It owns a handle to its model, so it can be stored, moved to other threads and dropped in any order. Everything that
/// computes takes `&mut self`.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use ggml_llama::{Batch, Context, ContextParams, Model, ModelParams, Pos, SeqId, Special};
/// # let path = ggml_llama_testkit::tiny_llama_path()?;
/// let model = Model::load(path, &ModelParams::default())?;
/// let mut context = Context::new(&model, &ContextParams::default().with_n_ctx(256))?;
/// let tokens = model.vocab().tokenize("hello", true, Special::AsText)?;
/// let mut batch = Batch::new();
/// batch.add_sequence(&tokens, Pos(0), SeqId(0))?;
/// context.decode(&batch)?;
/// let logits = context.logits_last()?;
/// assert_eq!(logits.len(), model.vocab().n_tokens() as usize);
/// # Ok(())
/// # }
/// ```
#[doc(alias = "llama_context")]
pub struct Context {
    raw: RawContext,
    model: Model,
    outputs: Outputs,
    /// Output rows that upstream has room for.
    n_outputs_max: usize,
    /// Whether an encoder has run, which a decoder with cross-attention needs.
    encoded: bool,
    /// As the parameters said.
    kv_unified: bool,
    embeddings: bool,
    /// First position that the model has no embedding for, for models that learned theirs.
    pos_limit: i32,
}

/// Positions beyond this bound overflow upstream's arithmetic.
const POS_LIMIT: i32 = 1 << 30;
/// Upstream's LLAMA_MAX_SEQ.
const MAX_SEQUENCES: usize = 256;
const UNSEEN: i32 = -2;

impl Context {
    /// Makes a context on a model.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidParameter`] for parameters that cannot work with this model, among them an `n_ctx` whose memory
    /// would exceed what the machine has; [`Error::ContextCreation`] with upstream's words when it refuses.
    #[doc(alias = "llama_init_from_model")]
    pub fn new(model: &Model, params: &ContextParams) -> Result<Context> {
        params.check()?;
        check_model(model, params)?;
        memory_estimate::check(model, params)?;
        let mut c_params = params.to_c();
        // Upstream writes the length that YaRN reaches into the shared model, where the next context would find it:
        // as its default length, and as that of an encoder's output.
        c_params.n_ctx = n_ctx(model, params);
        if model.has_encoder() {
            c_params.rope_freq_scale = 0.0;
        }
        // Making a context plans graphs, and may try one.
        let _computing = compute_gate::computing();
        let lock = model.raw().lock_context_creation();
        let (result, detail) = fault::call_logged(|status| {
            // SAFETY: the model is valid and nobody else makes a context on it now; the parameters point to nothing.
            unsafe { sys::gl_context_new(status, model.as_ptr(), c_params) }
        });
        drop(lock);
        let ptr = result.map_err(|fault| fault.into_error("llama_init_from_model"))?;
        let ptr = NonNull::new(ptr).ok_or(Error::ContextCreation { detail })?;
        // SAFETY: upstream made this context on this model, and it is ours to free.
        let raw = unsafe { RawContext::from_ptr(ptr, Arc::clone(model.raw())) };
        // SAFETY: the context is valid.
        let n_batch = unsafe { sys::llama_n_batch(raw.as_ptr()) };
        let n_outputs_max =
            if params.n_outputs_max == 0 || model.has_encoder() { n_batch } else { params.n_outputs_max };
        let pos_limit = if model.has_learned_positions() { model.n_ctx_train().max(0) } else { POS_LIMIT };
        Ok(Context {
            raw,
            model: model.clone(),
            outputs: Outputs::default(),
            n_outputs_max: n_outputs_max as usize,
            encoded: false,
            kv_unified: params.kv_unified,
            embeddings: params.embeddings,
            pos_limit,
        })
    }

    /// The model.
    #[doc(alias = "llama_get_model")]
    #[must_use]
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// Upstream's pointer, for use with [`sys`](crate::sys). The context must outlive its use.
    #[must_use]
    pub fn as_ptr(&self) -> *mut sys::llama_context {
        self.raw.as_ptr()
    }

    /// Computes a batch and keeps it in the memory of its sequences.
    ///
    /// Models without a memory (BERT) encode instead. Afterwards [`logits`](Self::logits) and
    /// [`embeddings`](Self::embeddings) give the outputs of this batch; those of earlier ones are gone.
    ///
    /// # Errors
    ///
    /// [`DecodeError::TooManyTokens`], [`DecodeError::InvalidBatch`] and [`DecodeError::NoKvSlot`] leave the memory as it
    /// was. After [`DecodeError::Compute`] parts of the batch may be in the memory: clear its sequences. After
    /// [`DecodeError::Upstream`] the context answers [`DecodeError::Poisoned`] only.
    #[doc(alias = "llama_decode")]
    pub fn decode(&mut self, batch: &Batch) -> Result<(), DecodeError> {
        // Encoders: without a memory, or with one that only a decoder would use.
        if !self.has_memory() || !self.model.has_decoder() {
            return self.encode(batch);
        }
        self.check_usable()?;
        self.outputs.clear();
        // models/t5: GGML_ASSERT on the encoder's output
        if self.model.has_encoder() && self.model.has_decoder() && !self.encoded {
            return Err(DecodeError::Unsupported {
                operation: "decode",
                reason: "an encoder-decoder model decodes after a successful encode only".to_owned(),
            });
        }
        // llama_context::decode: GGML_ASSERT(n_tokens_all <= cparams.n_batch), and n_ubatch without causal attention
        // Pooling sees one micro-batch: with more of them the embedding would silently be that of the last one.
        let pools = !matches!(self.pooling(), Ok(Pooling::None | Pooling::Last));
        let in_one_piece = !self.is_causal() || self.embeddings_enabled() && pools;
        let limit = if in_one_piece { (self.n_ubatch(), "n_ubatch") } else { (self.n_batch(), "n_batch") };
        self.check_batch(batch, limit)?;
        let all_outputs = self.embeddings_enabled();
        self.check_outputs(batch, all_outputs)?;
        let code = self.run(batch, sys::gl_decode)?;
        self.result(code, batch)?;
        self.outputs.set(batch, all_outputs);
        Ok(())
    }

    /// Runs the encoder over a batch. For encoder-decoder models the result serves the decodes that follow; for encoders
    /// such as BERT it is what [`embeddings`](Self::embeddings) give.
    ///
    /// # Errors
    ///
    /// [`DecodeError::Unsupported`] for models without an encoder, else as [`decode`](Self::decode).
    #[doc(alias = "llama_encode")]
    pub fn encode(&mut self, batch: &Batch) -> Result<(), DecodeError> {
        self.check_usable()?;
        self.outputs.clear();
        // A decoder's graph without its memory reads a null pointer.
        if !self.model.has_encoder() && self.has_memory() {
            return Err(DecodeError::Unsupported {
                operation: "encode",
                reason: "it has no encoder; use decode".to_owned(),
            });
        }
        // llama_context::encode: GGML_ASSERT(cparams.n_ubatch >= n_tokens)
        self.check_batch(batch, (self.n_ubatch(), "n_ubatch"))?;
        self.check_outputs(batch, true)?;
        let code = self.run(batch, sys::gl_encode)?;
        self.result(code, batch)?;
        self.encoded = true;
        self.outputs.set(batch, true);
        Ok(())
    }

    fn check_usable(&self) -> Result<(), DecodeError> {
        match self.raw.poison() {
            Some(reason) => Err(DecodeError::Poisoned(reason.to_owned())),
            None => Ok(()),
        }
    }

    fn check_outputs(&self, batch: &Batch, all: bool) -> Result<(), DecodeError> {
        // output_reserve: GGML_ASSERT(n_outputs_max <= cparams.n_outputs_max)
        let n_outputs = if all { batch.len() } else { batch.n_outputs() };
        if n_outputs > self.n_outputs_max {
            return Err(DecodeError::InvalidBatch(format!(
                "{n_outputs} outputs are wanted, but the context was made for n_outputs_max = {}",
                self.n_outputs_max
            )));
        }
        Ok(())
    }

    /// Everything that upstream asserts, or takes and corrupts itself with.
    fn check_batch(&self, batch: &Batch, (limit, limit_name): (u32, &'static str)) -> Result<(), DecodeError> {
        if batch.is_empty() {
            return Err(DecodeError::EmptyBatch);
        }
        if batch.len() > limit as usize {
            return Err(DecodeError::TooManyTokens { n_tokens: batch.len(), limit: limit as usize, limit_name });
        }
        let n_vocab = self.model.vocab().n_tokens();
        let n_seq_max = self.n_seq_max();
        // A token of several sequences never finds room in separate caches.
        let max_seqs = if self.kv_unified || n_seq_max == 1 { usize::MAX } else { 1 };
        for (i, entry) in batch.entries().enumerate() {
            let bad = |what: String| Err(DecodeError::InvalidBatch(format!("token {i} of the batch {what}")));
            if !(0..n_vocab).contains(&entry.token) {
                return bad(format!("has the id {}; the vocabulary has 0 to {}", entry.token, n_vocab - 1));
            }
            if !(0..self.pos_limit).contains(&entry.pos) {
                return bad(format!("has the position {}; possible are 0 to {}", entry.pos, self.pos_limit - 1));
            }
            if entry.seqs.len() > max_seqs {
                return bad(format!("has {} sequences, which needs a context with kv_unified", entry.seqs.len()));
            }
            if let Some(seq) = entry.seqs.iter().find(|seq| !(0..n_seq_max as i32).contains(*seq)) {
                return bad(format!(
                    "has the sequence id {seq}; n_seq_max = {n_seq_max} allows 0 to {}",
                    n_seq_max - 1
                ));
            }
        }
        self.check_positions(batch)
    }

    /// Positions of a sequence go on where its memory ends and neither repeat nor leave gaps; models with several
    /// positions per token (M-RoPE) may skip some.
    fn check_positions(&self, batch: &Batch) -> Result<(), DecodeError> {
        let may_skip = matches!(self.model.rope_type(), RopeType::Mrope | RopeType::Imrope);
        let mut last = [UNSEEN; MAX_SEQUENCES];
        for (i, entry) in batch.entries().enumerate() {
            for seq in entry.seqs {
                let Some(last) = usize::try_from(*seq).ok().and_then(|seq| last.get_mut(seq)) else { continue };
                let (before, whose) = match *last {
                    UNSEEN => (self.seq_pos_max(SeqId(*seq)).unwrap_or(-1), "its memory"),
                    pos => (pos, "the batch"),
                };
                let fits = if may_skip || before < 0 { entry.pos > before } else { entry.pos == before + 1 };
                if !fits {
                    return Err(DecodeError::InvalidBatch(format!(
                        "token {i} of the batch has position {} in sequence {seq}, but {whose} ends at {before}; \
                         expected {}",
                        entry.pos,
                        before + 1
                    )));
                }
                *last = entry.pos;
            }
        }
        Ok(())
    }

    fn run(
        &mut self,
        batch: &Batch,
        call: unsafe extern "C" fn(*mut sys::gl_status, *mut sys::llama_context, sys::llama_batch) -> i32,
    ) -> Result<(i32, Detail), DecodeError> {
        let ctx = self.raw.as_ptr();
        let c_batch = batch.as_c(self.raw.seq_ptrs());
        let _computing = compute_gate::computing();
        let (result, detail) = fault::call_logged(|status| {
            // SAFETY: the context is valid and ours alone; the batch's arrays have its length and upstream copies them.
            unsafe { call(status, ctx, c_batch) }
        });
        match result {
            Ok(code) => Ok((code, detail)),
            Err(fault) => Err(self.poisoned_by(fault)),
        }
    }

    fn poisoned_by(&mut self, fault: Fault) -> DecodeError {
        self.raw.poison_with(&fault);
        match fault.kind {
            FaultKind::OutOfMemory => DecodeError::OutOfMemory(fault.detail),
            FaultKind::Exception | FaultKind::Assertion => {
                DecodeError::Upstream { message: fault.message, detail: fault.detail }
            }
        }
    }

    fn result(&mut self, (code, detail): (i32, Detail), batch: &Batch) -> Result<(), DecodeError> {
        match code {
            0 => Ok(()),
            1 => Err(DecodeError::NoKvSlot {
                n_tokens: batch.len(),
                used: self.memory().n_used(),
                total: self.n_ctx() as usize,
            }),
            2 => Err(DecodeError::Aborted),
            -1 => Err(DecodeError::InvalidBatch(detail.to_string().trim_start_matches(": ").to_owned())),
            -2 => Err(DecodeError::OutOfMemory(detail)),
            _ => Err(DecodeError::Compute(detail)),
        }
    }
}

/// Facts and settings.
impl Context {
    pub(crate) fn raw(&self) -> &RawContext {
        &self.raw
    }

    pub(crate) fn raw_mut(&mut self) -> &mut RawContext {
        &mut self.raw
    }

    pub(crate) fn outputs(&self) -> &Outputs {
        &self.outputs
    }

    /// Size of the context in tokens, for all sequences together.
    #[doc(alias = "llama_n_ctx")]
    #[must_use]
    pub fn n_ctx(&self) -> u32 {
        // SAFETY: the context is valid.
        unsafe { sys::llama_n_ctx(self.as_ptr()) }
    }

    /// Size of the context of one sequence.
    #[doc(alias = "llama_n_ctx_seq")]
    #[must_use]
    pub fn n_ctx_seq(&self) -> u32 {
        // SAFETY: the context is valid.
        unsafe { sys::llama_n_ctx_seq(self.as_ptr()) }
    }

    /// Most tokens in one decode.
    #[doc(alias = "llama_n_batch")]
    #[must_use]
    pub fn n_batch(&self) -> u32 {
        // SAFETY: the context is valid.
        unsafe { sys::llama_n_batch(self.as_ptr()) }
    }

    /// Most tokens computed in one piece.
    #[doc(alias = "llama_n_ubatch")]
    #[must_use]
    pub fn n_ubatch(&self) -> u32 {
        // SAFETY: the context is valid.
        unsafe { sys::llama_n_ubatch(self.as_ptr()) }
    }

    /// Most sequences.
    #[doc(alias = "llama_n_seq_max")]
    #[must_use]
    pub fn n_seq_max(&self) -> u32 {
        // SAFETY: the context is valid.
        unsafe { sys::llama_n_seq_max(self.as_ptr()) }
    }

    /// Threads for single tokens.
    #[doc(alias = "llama_n_threads")]
    #[must_use]
    pub fn n_threads(&self) -> i32 {
        // SAFETY: the context is valid.
        unsafe { sys::llama_n_threads(self.as_ptr()) }
    }

    /// Threads for batches.
    #[doc(alias = "llama_n_threads_batch")]
    #[must_use]
    pub fn n_threads_batch(&self) -> i32 {
        // SAFETY: the context is valid.
        unsafe { sys::llama_n_threads_batch(self.as_ptr()) }
    }

    /// Changes the numbers of threads, each 1 to 512.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidParameter`]; nothing is changed then.
    #[doc(alias = "llama_set_n_threads")]
    pub fn set_n_threads(&mut self, n_threads: i32, n_threads_batch: i32) -> Result<()> {
        const MAX: i32 = sys::GGML_MAX_N_THREADS as i32;
        check("n_threads", n_threads, 1..=MAX)?;
        check("n_threads_batch", n_threads_batch, 1..=MAX)?;
        // SAFETY: the context is valid and ours alone.
        unsafe { sys::llama_set_n_threads(self.as_ptr(), n_threads, n_threads_batch) };
        Ok(())
    }

    /// Whether a token attends only to those before it.
    #[doc(alias = "llama_get_causal_attn")]
    #[must_use]
    pub fn is_causal(&self) -> bool {
        // SAFETY: the context is valid.
        unsafe { sys::llama_get_causal_attn(self.as_ptr()) }
    }

    /// Whether it gives embeddings, as [`ContextParams::embeddings`] said.
    #[must_use]
    pub fn embeddings_enabled(&self) -> bool {
        self.embeddings
    }

    pub(crate) fn has_memory(&self) -> bool {
        // SAFETY: the context is valid.
        !unsafe { sys::llama_get_memory(self.as_ptr()) }.is_null()
    }

    /// Waits until everything that was started has been computed.
    ///
    /// # Errors
    ///
    /// [`Error::Upstream`] when a backend fails; the context is poisoned then.
    #[doc(alias = "llama_synchronize")]
    pub fn synchronize(&mut self) -> Result<()> {
        self.raw.check_usable()?;
        let ctx = self.as_ptr();
        let _computing = compute_gate::computing();
        // SAFETY: the context is valid and ours alone.
        fault::call(|status| unsafe { sys::gl_synchronize(status, ctx) }).map_err(|fault| {
            self.raw.poison_with(&fault);
            fault.into_error("llama_synchronize")
        })
    }
}

impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context")
            .field("model", &self.model)
            .field("n_ctx", &self.n_ctx())
            .field("n_batch", &self.n_batch())
            .field("n_ubatch", &self.n_ubatch())
            .field("n_seq_max", &self.n_seq_max())
            .finish_non_exhaustive()
    }
}

/// What the model rules out, each a crash or an assertion in upstream.
fn check_model(model: &Model, params: &ContextParams) -> Result<()> {
    match model.weights() {
        Weights::Loaded => {}
        Weights::VocabOnly => {
            return Err(Error::parameter("model", "loaded with vocab_only", "a model with weights"));
        }
        Weights::NotAllocated => {
            return Err(Error::parameter("model", "loaded with no_alloc", "a model with weights"));
        }
    }
    if model.needs_other_context() {
        let expected = "a model that works without the context of another one";
        return Err(Error::parameter("model", format!("of architecture {}", model.architecture()), expected));
    }
    let n_ctx = n_ctx(model, params);
    if n_ctx == 0 {
        return Err(Error::parameter("n_ctx", 0, "1 or more, since the model does not name its training length"));
    }
    // output_reserve: GGML_ASSERT; n_batch is limited to n_ctx for causal models.
    if n_ctx.min(params.n_batch) < params.n_seq_max {
        let expected = format!("at least n_seq_max = {}, and so must be n_batch", params.n_seq_max);
        return Err(Error::parameter("n_ctx", n_ctx, expected));
    }
    // The graph that is tried at creation splits a micro-batch evenly among the sequences.
    let means = params.pooling == Pooling::Mean || params.pooling == Pooling::Unspecified && model.pools_by_mean();
    let n_ubatch = if params.n_ubatch == 0 { params.n_batch } else { params.n_ubatch }.min(params.n_batch);
    if params.embeddings && means {
        // Models without causal attention take the rounded n_ctx.
        let padded = n_ctx.div_ceil(params.n_seq_max).next_multiple_of(256).saturating_mul(params.n_seq_max);
        for n_tokens in [n_ctx.min(n_ubatch), padded.min(n_ubatch)] {
            if n_tokens % params.n_seq_max != 0 {
                let expected = format!("a number that divides n_ubatch = {n_tokens} with mean pooling");
                return Err(Error::parameter("n_seq_max", params.n_seq_max, expected));
            }
            if params.n_outputs_max != 0 && params.n_outputs_max < n_tokens {
                let expected = format!("0, or at least n_ubatch = {n_tokens} with mean pooling");
                return Err(Error::parameter("n_outputs_max", params.n_outputs_max, expected));
            }
        }
    }
    // Encoder-decoder graphs assert on separate caches.
    if model.has_encoder() && params.n_seq_max > 1 && !params.kv_unified {
        return Err(Error::parameter("n_seq_max", params.n_seq_max, "1, or kv_unified, for an encoder-decoder model"));
    }
    Ok(())
}

/// The length that is asked for; by default the training length as it was when the model was loaded.
fn n_ctx(model: &Model, params: &ContextParams) -> u32 {
    match params.n_ctx {
        0 => u32::try_from(model.n_ctx_train()).unwrap_or(0),
        n_ctx => n_ctx,
    }
}
