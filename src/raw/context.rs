//! Owns a `llama_context`.

use std::ptr::NonNull;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::raw::fault::{self, Fault};
use crate::raw::model::RawModel;
use crate::sys;

/// A context, with the model that it points into.
pub(crate) struct RawContext {
    ptr: NonNull<sys::llama_context>,
    /// Why the context must not be touched any more.
    poison: Option<String>,
    /// Scratch of [`RawContext::seq_ptrs`].
    seq_ptrs: Vec<*mut sys::llama_seq_id>,
    model: Arc<RawModel>,
}

// SAFETY: a context is bound to no thread: upstream's CPU threads are its own, and GPU backends select their device at
// each call. It is not `Sync`: nearly every call changes it.
unsafe impl Send for RawContext {}

impl RawContext {
    /// # Safety
    ///
    /// `ptr` is a context of `model` that nobody else frees.
    pub(crate) unsafe fn from_ptr(ptr: NonNull<sys::llama_context>, model: Arc<RawModel>) -> RawContext {
        RawContext { ptr, poison: None, seq_ptrs: Vec::new(), model }
    }

    pub(crate) fn as_ptr(&self) -> *mut sys::llama_context {
        self.ptr.as_ptr()
    }

    /// A list that batches fill right before a call, kept here for its memory. Its pointers are never followed by Rust.
    pub(crate) fn seq_ptrs(&mut self) -> &mut Vec<*mut sys::llama_seq_id> {
        &mut self.seq_ptrs
    }

    /// What made the context unusable, if something did.
    pub(crate) fn poison(&self) -> Option<&str> {
        self.poison.as_deref()
    }

    /// An error when the context must not be touched any more.
    pub(crate) fn check_usable(&self) -> Result<()> {
        match self.poison() {
            Some(reason) => Err(Error::Poisoned { object: "context", reason: reason.to_owned() }),
            None => Ok(()),
        }
    }

    /// Notes that upstream was left in the middle of a call.
    pub(crate) fn poison_with(&mut self, fault: &Fault) {
        self.poison.get_or_insert_with(|| fault.message.clone());
    }
}

impl Drop for RawContext {
    fn drop(&mut self) {
        if self.poison.is_some() {
            // Half-changed state is not walked again. The model must not be freed under it either: its threads and
            // buffers may still refer to it.
            std::mem::forget(Arc::clone(&self.model));
            return;
        }
        let _ = fault::call(|status| {
            // SAFETY: we own the context; the model that it points into is dropped after this.
            unsafe { sys::gl_context_free(status, self.as_ptr()) }
        });
    }
}
