//! The five functions that a backend exports for fusion, found by name.

use std::ffi::{CStr, c_char, c_int, c_void};

use crate::error::{Error, Result};
use crate::ggml::Device;
use crate::raw::compute_gate;
use crate::sys;
use crate::util::cstr::from_c;

type Get = unsafe extern "C" fn(sys::ggml_backend_dev_t) -> *mut c_void;
type Init = unsafe extern "C" fn(*mut c_void);
type Reset = unsafe extern "C" fn(*mut c_void);
type StatsGet = unsafe extern "C" fn(*mut c_void, *mut *const c_char, *mut u64, c_int) -> c_int;
type SetEnabled = unsafe extern "C" fn(*mut c_void, bool);

/// How often one fusion pattern fired.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct FusionCount {
    /// The pattern: operations joined by `+`, such as `RMS_NORM+MUL`.
    pub label: String,
    /// How often it fired since counting started or was reset.
    pub count: u64,
}

/// A device's fusion functions. All five are there, or there are no hooks.
///
/// The record behind them belongs to the device: counters and switch are the same for every context on it. The counters
/// are plain numbers that upstream raises while it encodes a graph, so every function here waits until no context of
/// this crate computes, on any device, and keeps others from starting meanwhile.
///
/// # Errors
///
/// All functions give [`Error::InvalidParameter`] when they are called from inside a computation (by a log sink, say),
/// where waiting for its end would never end.
#[derive(Clone, Copy, Debug)]
pub struct Hooks {
    device: Device,
    handle: *mut c_void,
    init: Init,
    reset: Reset,
    stats_get: StatsGet,
    set_enabled: SetEnabled,
}

impl Hooks {
    /// The hooks of a device; `None` when its backend does not export all five functions.
    #[doc(alias = "ggml_backend_reg_get_proc_address")]
    #[must_use]
    pub fn of(device: Device) -> Option<Hooks> {
        // SAFETY: the device is valid.
        let reg = unsafe { sys::ggml_backend_dev_backend_reg(device.as_ptr()) };
        if reg.is_null() {
            return None;
        }
        let address = |name: &CStr| {
            // SAFETY: the registry is valid, the name ends with NUL.
            let address = unsafe { sys::ggml_backend_reg_get_proc_address(reg, name.as_ptr()) };
            (!address.is_null()).then_some(address)
        };
        let get = address(c"ggml_backend_fusion_get")?;
        let init = address(c"ggml_backend_fusion_stats_init")?;
        let reset = address(c"ggml_backend_fusion_stats_reset")?;
        let stats_get = address(c"ggml_backend_fusion_stats_get")?;
        let set_enabled = address(c"ggml_backend_fusion_set_enabled")?;
        // SAFETY: a backend that exports these names exports functions of these types; that is the contract by which
        // they are found. None of them is null.
        let (get, init, reset, stats_get, set_enabled) = unsafe {
            (
                std::mem::transmute::<*mut c_void, Get>(get),
                std::mem::transmute::<*mut c_void, Init>(init),
                std::mem::transmute::<*mut c_void, Reset>(reset),
                std::mem::transmute::<*mut c_void, StatsGet>(stats_get),
                std::mem::transmute::<*mut c_void, SetEnabled>(set_enabled),
            )
        };
        // SAFETY: the device is valid and belongs to the registry that exports the function.
        let handle = unsafe { get(device.as_ptr()) };
        (!handle.is_null()).then_some(Hooks { device, handle, init, reset, stats_get, set_enabled })
    }
}

// SAFETY: functions and record live as long as the process, and are used alone only (`alone`).
unsafe impl Send for Hooks {}
// SAFETY: as above.
unsafe impl Sync for Hooks {}

impl Hooks {
    /// The device whose hooks these are.
    #[must_use]
    pub fn device(&self) -> Device {
        self.device
    }

    /// Runs `f` while nothing computes.
    fn alone<R>(&self, f: impl FnOnce() -> R) -> Result<R> {
        let _gate = compute_gate::alone().ok_or_else(|| {
            Error::parameter(
                "fusion hooks",
                "used inside of a computation",
                "a call outside of decode and its callbacks",
            )
        })?;
        Ok(f())
    }

    /// Starts counting. Before it there are no labels. There is no way back.
    #[allow(clippy::missing_errors_doc)]
    pub fn start_counting(&self) -> Result<()> {
        // SAFETY: the record is the device's own, and nothing computes.
        self.alone(|| unsafe { (self.init)(self.handle) })
    }

    /// Sets all counters to 0.
    #[allow(clippy::missing_errors_doc)]
    pub fn reset(&self) -> Result<()> {
        // SAFETY: as above.
        self.alone(|| unsafe { (self.reset)(self.handle) })
    }

    /// Switches fusion on or off for every context on the device.
    #[allow(clippy::missing_errors_doc)]
    pub fn set_enabled(&self, enabled: bool) -> Result<()> {
        // SAFETY: as above.
        self.alone(|| unsafe { (self.set_enabled)(self.handle, enabled) })
    }

    /// The counters, in the backend's order; empty before [`start_counting`](Self::start_counting).
    #[allow(clippy::missing_errors_doc)]
    pub fn stats(&self) -> Result<Vec<FusionCount>> {
        self.alone(|| {
            // SAFETY: without labels the function only tells how many patterns there are.
            let n = unsafe { (self.stats_get)(self.handle, std::ptr::null_mut(), std::ptr::null_mut(), 0) };
            let n = n.max(0);
            let mut labels = vec![std::ptr::null(); n as usize];
            let mut counts = vec![0; n as usize];
            // SAFETY: both arrays have n places, and at most n are filled.
            let filled = unsafe { (self.stats_get)(self.handle, labels.as_mut_ptr(), counts.as_mut_ptr(), n) };
            labels
                .into_iter()
                .zip(counts)
                .take(filled.clamp(0, n) as usize)
                // SAFETY: labels live as long as the device.
                .filter_map(|(label, count)| Some(FusionCount { label: unsafe { from_c(label) }?, count }))
                .collect()
        })
    }
}
