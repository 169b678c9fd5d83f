//! Owns a `llama_model`.

use std::ptr::NonNull;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::raw::fault;
use crate::sys;

/// A loaded model. Shared through `Arc`: contexts, vocabularies and samplers hold it, the last one frees it.
pub(crate) struct RawModel {
    ptr: NonNull<sys::llama_model>,
    /// Held while a context is made: upstream may adjust the model's training length then, and makes LoRA lists.
    making_context: Mutex<()>,
}

// SAFETY: upstream keeps no thread-bound state in a model, and frees it on any thread.
unsafe impl Send for RawModel {}
// SAFETY: the functions that are called through a shared model only read it, with one exception: creating a context,
// which is serialised by `making_context`. What that changes (the training length) is read at load time only.
unsafe impl Sync for RawModel {}

impl RawModel {
    /// # Safety
    ///
    /// `ptr` is a model that nobody else frees.
    pub(crate) unsafe fn from_ptr(ptr: NonNull<sys::llama_model>) -> RawModel {
        RawModel { ptr, making_context: Mutex::new(()) }
    }

    pub(crate) fn as_ptr(&self) -> *mut sys::llama_model {
        self.ptr.as_ptr()
    }

    pub(crate) fn vocab(&self) -> *const sys::llama_vocab {
        // SAFETY: the model is valid; its vocabulary lives as long as it.
        unsafe { sys::llama_model_get_vocab(self.as_ptr()) }
    }

    pub(crate) fn lock_context_creation(&self) -> MutexGuard<'_, ()> {
        self.making_context.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for RawModel {
    fn drop(&mut self) {
        // Whatever a backend throws while it frees: the process goes on, the rest of the model is leaked.
        let _ = fault::call(|status| {
            // SAFETY: we own the model, and everything that points into it holds this object.
            unsafe { sys::gl_model_free(status, self.as_ptr()) }
        });
    }
}
