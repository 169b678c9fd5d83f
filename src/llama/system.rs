//! What this build of upstream can do on this machine.

use crate::error::Result;
use crate::raw::runtime;
use crate::sys;
use crate::util::cstr::from_c;

/// Upstream's one line about backends and instruction sets.
///
/// # Errors
///
/// [`Error::MissingCpuFeatures`](crate::Error::MissingCpuFeatures) when this machine cannot run the compiled code.
#[doc(alias = "llama_print_system_info")]
pub fn system_info() -> Result<String> {
    runtime::start()?;
    // Upstream writes into a static buffer.
    static ONE_AT_A_TIME: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let _guard = ONE_AT_A_TIME.lock();
    // SAFETY: the runtime has started, nobody else writes the buffer, and the text is copied before the guard goes.
    Ok(unsafe { from_c(sys::llama_print_system_info()) }.unwrap_or_default())
}

/// Number of threads that the process may run at once: a starting point for
/// [`ContextParams::with_threads`](crate::ContextParams::with_threads), at most 512.
#[must_use]
pub fn available_threads() -> i32 {
    std::thread::available_parallelism().map_or(1, |n| i32::try_from(n.get()).unwrap_or(512)).clamp(1, 512)
}

/// Whether files can be memory-mapped.
#[doc(alias = "llama_supports_mmap")]
#[must_use]
pub fn supports_mmap() -> bool {
    // SAFETY: gives a constant.
    unsafe { sys::llama_supports_mmap() }
}

/// Whether memory can be kept from being swapped out.
#[doc(alias = "llama_supports_mlock")]
#[must_use]
pub fn supports_mlock() -> bool {
    // SAFETY: gives a constant.
    unsafe { sys::llama_supports_mlock() }
}

/// Whether a device was found that layers can be moved to.
///
/// # Errors
///
/// [`Error::MissingCpuFeatures`](crate::Error::MissingCpuFeatures) when this machine cannot run the compiled code.
#[doc(alias = "llama_supports_gpu_offload")]
pub fn supports_gpu_offload() -> Result<bool> {
    runtime::start()?;
    // SAFETY: the runtime has started.
    Ok(unsafe { sys::llama_supports_gpu_offload() })
}

/// Whether devices of other machines can be used.
///
/// # Errors
///
/// [`Error::MissingCpuFeatures`](crate::Error::MissingCpuFeatures) when this machine cannot run the compiled code.
#[doc(alias = "llama_supports_rpc")]
pub fn supports_rpc() -> Result<bool> {
    runtime::start()?;
    // SAFETY: the runtime has started.
    Ok(unsafe { sys::llama_supports_rpc() })
}
