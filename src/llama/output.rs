//! What a decode gave: logits and embeddings.

use crate::error::{Error, Result};
use crate::llama::batch::Batch;
use crate::llama::context::Context;
use crate::llama::context_params::Pooling;
use crate::llama::token::SeqId;
use crate::raw::fault;
use crate::sys;

/// Which tokens of the last batch have output rows.
#[derive(Debug, Default)]
pub(crate) struct Outputs {
    wanted: Vec<bool>,
    last: Option<usize>,
}

impl Outputs {
    pub(crate) fn clear(&mut self) {
        self.wanted.clear();
        self.last = None;
    }

    pub(crate) fn set(&mut self, batch: &Batch, all: bool) {
        self.wanted.clear();
        self.wanted.extend(batch.entries().map(|entry| all || entry.output));
        self.last = self.wanted.iter().rposition(|wanted| *wanted);
    }

    /// The index for C, or why there is no row.
    fn index(&self, what: &'static str, i: usize) -> Result<i32> {
        let reason = match self.wanted.get(i) {
            Some(true) => return Ok(i as i32),
            Some(false) => "it was not marked as an output".to_owned(),
            None if self.wanted.is_empty() => "nothing has been decoded since the last failure or the start".to_owned(),
            None => format!("the last batch had {} tokens", self.wanted.len()),
        };
        Err(Error::NoOutput { what, index: format!("token {i} of the batch"), reason })
    }

    fn last(&self, what: &'static str) -> Result<usize> {
        self.last.ok_or_else(|| Error::NoOutput {
            what,
            index: "the last output".to_owned(),
            reason: "the last decode had no outputs, failed, or there was none".to_owned(),
        })
    }
}

/// Results of the last decode. The slices live until the next call that changes the context.
impl Context {
    /// The logits after the token at `index` of the last batch: one number per token of the vocabulary.
    ///
    /// # Errors
    ///
    /// [`Error::NoOutput`] when that token was not in the batch or not marked as an output.
    #[doc(alias = "llama_get_logits_ith")]
    pub fn logits(&self, index: usize) -> Result<&[f32]> {
        let i = self.outputs().index("logits", index)?;
        let width = self.model().vocab().n_tokens();
        self.row("logits", format_args!("token {index} of the batch"), i, width, sys::gl_get_logits_ith)
    }

    /// The logits of the last output of the last batch.
    ///
    /// # Errors
    ///
    /// [`Error::NoOutput`] when there is none.
    pub fn logits_last(&self) -> Result<&[f32]> {
        self.logits(self.outputs().last("logits")?)
    }

    /// Index within the last batch of its last output.
    #[must_use]
    pub fn last_output(&self) -> Option<usize> {
        self.outputs().last("outputs").ok()
    }

    /// The embedding of the token at `index` of the last batch, of contexts that do not pool.
    ///
    /// # Errors
    ///
    /// [`Error::NoOutput`] when the context was made without [`embeddings`](crate::ContextParams::embeddings), when it
    /// pools, or when that token was not in the batch.
    #[doc(alias = "llama_get_embeddings_ith")]
    pub fn embeddings(&self, index: usize) -> Result<&[f32]> {
        let i = self.outputs().index("embeddings", index)?;
        let missing = |reason: &str| {
            Err(Error::NoOutput { what: "embeddings", index: format!("token {index}"), reason: reason.to_owned() })
        };
        if !self.embeddings_enabled() {
            return missing("the context was made without `embeddings`");
        }
        if self.pooling()? != Pooling::None {
            return missing("the context pools; ask for the sequence's embedding");
        }
        let width = self.model().n_embd_out();
        self.row("embeddings", format_args!("token {index} of the batch"), i, width, sys::gl_get_embeddings_ith)
    }

    /// The pooled embedding of a sequence of the last batch; with [`Pooling::Rank`] its scores, one per class.
    ///
    /// # Errors
    ///
    /// [`Error::NoOutput`] when the context gives no embeddings, does not pool, or the sequence was not in the batch.
    #[doc(alias = "llama_get_embeddings_seq")]
    pub fn embeddings_seq(&self, seq: SeqId) -> Result<&[f32]> {
        let missing = |reason: &str| {
            Err(Error::NoOutput { what: "embeddings", index: format!("sequence {seq}"), reason: reason.to_owned() })
        };
        if !self.embeddings_enabled() {
            return missing("the context was made without `embeddings`");
        }
        let width = match self.pooling()? {
            Pooling::None => return missing("the context does not pool; ask for a token's embedding"),
            Pooling::Rank => self.model().n_cls_out(),
            _ => self.model().n_embd_out(),
        };
        self.outputs().last("embeddings")?;
        self.row("embeddings", format_args!("sequence {seq}"), seq.0, width, sys::gl_get_embeddings_seq)
    }

    /// How the context pools, after what the model says.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownEnumValue`] for a pooling that this crate does not know.
    #[doc(alias = "llama_pooling_type")]
    pub fn pooling(&self) -> Result<Pooling> {
        // SAFETY: the context is valid.
        Pooling::from_c(unsafe { sys::llama_pooling_type(self.as_ptr()) })
    }

    fn row(
        &self,
        what: &'static str,
        index: std::fmt::Arguments<'_>,
        i: i32,
        width: i32,
        get: unsafe extern "C" fn(*mut sys::gl_status, *mut sys::llama_context, i32) -> *mut f32,
    ) -> Result<&[f32]> {
        self.raw().check_usable()?;
        // SAFETY: the context is valid. Upstream waits for the computation and may reorder rows, which no other thread
        // can see: the context is not `Sync`.
        let row = fault::call(|status| unsafe { get(status, self.as_ptr(), i) })
            .map_err(|fault| fault.into_error("llama_get_logits_ith"))?;
        if row.is_null() {
            let reason = "upstream has none for it".to_owned();
            return Err(Error::NoOutput { what, index: index.to_string(), reason });
        }
        // SAFETY: upstream gives a row of this width, good until the context computes again, which needs `&mut self`.
        Ok(unsafe { std::slice::from_raw_parts(row, usize::try_from(width).unwrap_or(0)) })
    }
}
