//! Kinds of memory that tensors can lie in.

use std::ptr::NonNull;

use crate::sys;
use crate::util::cstr::from_c;

/// A kind of memory: that of the CPU, of a GPU, host memory that a GPU can reach. Lives as long as the process.
#[doc(alias = "ggml_backend_buffer_type_t")]
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct BufferType(NonNull<sys::ggml_backend_buffer_type>);

// SAFETY: buffer types are entries of upstream's registry, made once and never changed.
unsafe impl Send for BufferType {}
// SAFETY: as above; the functions that take one only read it.
unsafe impl Sync for BufferType {}

impl BufferType {
    /// # Safety
    ///
    /// `ptr` is null or a buffer type that lives as long as the process.
    pub(crate) unsafe fn from_ptr(ptr: sys::ggml_backend_buffer_type_t) -> Option<BufferType> {
        NonNull::new(ptr).map(BufferType)
    }

    pub(crate) fn as_ptr(self) -> sys::ggml_backend_buffer_type_t {
        self.0.as_ptr()
    }

    /// Upstream's name, such as `CPU` or `CUDA0`.
    #[doc(alias = "ggml_backend_buft_name")]
    #[must_use]
    pub fn name(self) -> String {
        // SAFETY: the buffer type is valid and its name lives as long.
        unsafe { from_c(sys::ggml_backend_buft_name(self.as_ptr())) }.unwrap_or_default()
    }

    /// Whether the CPU can read it directly.
    #[doc(alias = "ggml_backend_buft_is_host")]
    #[must_use]
    pub fn is_host(self) -> bool {
        // SAFETY: the buffer type is valid.
        unsafe { sys::ggml_backend_buft_is_host(self.as_ptr()) }
    }
}

impl std::fmt::Debug for BufferType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("BufferType").field(&self.name()).finish()
    }
}
