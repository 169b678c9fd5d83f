//! Owns a `llama_sampler`.

use std::ptr::NonNull;
use std::sync::Arc;

use crate::raw::model::RawModel;
use crate::sys;

/// A sampler or a chain, with the model whose vocabulary it reads.
pub(crate) struct RawSampler {
    ptr: NonNull<sys::llama_sampler>,
    /// Models of this sampler and, for a chain, of its members.
    keep: Vec<Arc<RawModel>>,
    /// Left in the middle of a call: not freed.
    pub(crate) poisoned: bool,
}

// SAFETY: samplers hold plain memory and random generators, bound to no thread. Not `Sync`: applying changes them.
unsafe impl Send for RawSampler {}

impl RawSampler {
    /// # Safety
    ///
    /// `ptr` is null or a sampler that nobody else frees. Null gives `None`.
    pub(crate) unsafe fn from_ptr(ptr: *mut sys::llama_sampler) -> Option<RawSampler> {
        NonNull::new(ptr).map(|ptr| RawSampler { ptr, keep: Vec::new(), poisoned: false })
    }

    pub(crate) fn as_ptr(&self) -> *mut sys::llama_sampler {
        self.ptr.as_ptr()
    }

    /// Models that must outlive this sampler.
    pub(crate) fn keep(&self) -> &[Arc<RawModel>] {
        &self.keep
    }

    /// Makes the sampler keep these models.
    pub(crate) fn keep_alive(&mut self, models: impl IntoIterator<Item = Arc<RawModel>>) {
        self.keep.extend(models);
    }

    /// Puts `member` at the end of this chain, which owns it from now on.
    pub(crate) fn chain_add(&mut self, member: RawSampler) {
        let mut member = std::mem::ManuallyDrop::new(member);
        self.keep.append(&mut std::mem::take(&mut member.keep));
        // SAFETY: `self` is a chain (the caller made it as one); it takes over the member, which is not freed by us.
        unsafe { sys::llama_sampler_chain_add(self.as_ptr(), member.ptr.as_ptr()) }
    }
}

impl Drop for RawSampler {
    fn drop(&mut self) {
        if !self.poisoned {
            // SAFETY: we own the sampler and no chain has taken it. Freeing destroys plain C++ containers.
            unsafe { sys::llama_sampler_free(self.as_ptr()) }
        }
    }
}
