//! The memory of a context: its KV cache or recurrent state.

use crate::error::{Error, Result};
use crate::llama::context::Context;
use crate::llama::token::{Pos, SeqId};
use crate::raw::fault;
use crate::sys;

/// A view of a context's memory.
#[doc(alias = "llama_memory_t")]
pub struct Memory<'a> {
    context: &'a mut Context,
}

impl Context {
    /// The memory of its sequences.
    #[doc(alias = "llama_get_memory")]
    pub fn memory(&mut self) -> Memory<'_> {
        Memory { context: self }
    }

    fn memory_ptr(&self) -> Option<sys::llama_memory_t> {
        // SAFETY: the context is valid.
        let memory = unsafe { sys::llama_get_memory(self.as_ptr()) };
        (!memory.is_null()).then_some(memory)
    }

    fn seq_in_range(&self, seq: SeqId) -> bool {
        // kv-cache: GGML_ASSERT(seq_id >= 0 && seq_id < seq_to_stream.size())
        u32::try_from(seq.0).is_ok_and(|seq| seq < self.n_seq_max())
    }

    pub(crate) fn seq_pos_max(&self, seq: SeqId) -> Option<i32> {
        self.seq_pos(seq, sys::gl_memory_seq_pos_max)
    }

    fn seq_pos(
        &self,
        seq: SeqId,
        get: unsafe extern "C" fn(*mut sys::gl_status, sys::llama_memory_t, sys::llama_seq_id) -> sys::llama_pos,
    ) -> Option<i32> {
        let memory = self.memory_ptr()?;
        if self.raw().poison().is_some() || !self.seq_in_range(seq) {
            return None;
        }
        // SAFETY: the memory belongs to this context, the sequence exists.
        let pos = fault::call(|status| unsafe { get(status, memory, seq.0) }).ok()?;
        (pos >= 0).then_some(pos)
    }
}

impl Memory<'_> {
    /// Forgets everything. With `data`, the buffers are zeroed too.
    ///
    /// # Errors
    ///
    /// [`Error::Poisoned`], or [`Error::Upstream`] when a backend fails.
    #[doc(alias = "llama_memory_clear")]
    pub fn clear(&mut self, data: bool) -> Result<()> {
        self.context.raw().check_usable()?;
        let Some(memory) = self.context.memory_ptr() else { return Ok(()) };
        // A device may still be writing what is about to be zeroed.
        self.context.synchronize()?;
        // SAFETY: the memory belongs to this context, which is ours alone.
        let result = fault::call(|status| unsafe { sys::gl_memory_clear(status, memory, data) });
        result.map_err(|fault| {
            self.context.raw_mut().poison_with(&fault);
            fault.into_error("llama_memory_clear")
        })
    }

    /// Forgets the positions `from` up to (not including) `to` of a sequence; `None` is no bound on that side.
    ///
    /// Gives `false`, and changes nothing, when the memory cannot forget a part: a recurrent state holds no single
    /// tokens. Forgetting a whole sequence always works.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidParameter`] for a sequence that the context does not have or a negative position.
    #[doc(alias = "llama_memory_seq_rm")]
    #[must_use = "false means that nothing was removed"]
    pub fn seq_rm(&mut self, seq: SeqId, from: Option<Pos>, to: Option<Pos>) -> Result<bool> {
        self.context.raw().check_usable()?;
        if !self.context.seq_in_range(seq) {
            let expected = format!("0 to {}", self.context.n_seq_max() - 1);
            return Err(Error::parameter("seq", seq, expected));
        }
        for bound in [from, to].into_iter().flatten() {
            if bound.0 < 0 {
                return Err(Error::parameter("position", bound, "0 or more, or None"));
            }
        }
        let Some(memory) = self.context.memory_ptr() else { return Ok(true) };
        // A recurrent state that has gone past the range holds it still, though upstream answers true.
        let model = self.context.model();
        if model.is_recurrent() || model.is_hybrid() {
            let ends = to.filter(|to| from.unwrap_or_default() < *to).zip(self.seq_pos_max(seq));
            if ends.is_some_and(|(to, last)| to <= last) {
                return Ok(false);
            }
        }
        let (from, to) = (from.map_or(-1, |pos| pos.0), to.map_or(-1, |pos| pos.0));
        // SAFETY: the memory belongs to this context, which is ours alone; the sequence exists.
        let result = fault::call(|status| unsafe { sys::gl_memory_seq_rm(status, memory, seq.0, from, to) });
        result.map_err(|fault| {
            self.context.raw_mut().poison_with(&fault);
            fault.into_error("llama_memory_seq_rm")
        })
    }

    /// First position of a sequence in the memory; `None` when it holds nothing of it.
    #[doc(alias = "llama_memory_seq_pos_min")]
    #[must_use]
    pub fn seq_pos_min(&self, seq: SeqId) -> Option<Pos> {
        self.context.seq_pos(seq, sys::gl_memory_seq_pos_min).map(Pos)
    }

    /// Last position of a sequence in the memory; `None` when it holds nothing of it.
    #[doc(alias = "llama_memory_seq_pos_max")]
    #[must_use]
    pub fn seq_pos_max(&self, seq: SeqId) -> Option<Pos> {
        self.context.seq_pos_max(seq).map(Pos)
    }

    /// Cells in use, counted by positions.
    pub(crate) fn n_used(&self) -> usize {
        (0..self.context.n_seq_max() as i32)
            .filter_map(|seq| Some(self.seq_pos_max(SeqId(seq))?.0 - self.seq_pos_min(SeqId(seq))?.0 + 1))
            .map(|n| n as usize)
            .sum()
    }
}
