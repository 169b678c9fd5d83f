//! The only place with functions that C calls back into.
//!
//! A panic is caught at the border, C is told to stop, and the panic goes on after C has returned.

use std::any::Any;
use std::ffi::c_void;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// A scoped progress callback: borrowed for one call into C.
pub(crate) struct Progress<'a> {
    report: Option<&'a mut dyn FnMut(f32) -> ControlFlow<()>>,
    stopped: bool,
    panic: Option<Box<dyn Any + Send>>,
}

impl<'a> Progress<'a> {
    pub(crate) fn new(report: Option<&'a mut dyn FnMut(f32) -> ControlFlow<()>>) -> Progress<'a> {
        Progress { report, stopped: false, panic: None }
    }

    /// The pointer that goes to C beside [`Progress::trampoline`].
    pub(crate) fn user_data(&mut self) -> *mut c_void {
        std::ptr::from_mut(self).cast()
    }

    /// Whether the callback asked to stop. Goes on with a panic that it raised.
    pub(crate) fn finish(self) -> bool {
        if let Some(panic) = self.panic {
            resume_unwind(panic);
        }
        self.stopped
    }

    /// The C function. Always given to upstream, which otherwise logs dots.
    ///
    /// # Safety
    ///
    /// `user_data` comes from [`Progress::user_data`] of a value that lives and is not otherwise used during the call.
    pub(crate) unsafe extern "C" fn trampoline(progress: f32, user_data: *mut c_void) -> bool {
        // SAFETY: by this function's contract.
        let state = unsafe { &mut *user_data.cast::<Progress<'_>>() };
        if state.stopped {
            return false;
        }
        if let Some(report) = &mut state.report {
            match catch_unwind(AssertUnwindSafe(|| report(progress))) {
                Ok(ControlFlow::Continue(())) => {}
                Ok(ControlFlow::Break(())) => state.stopped = true,
                Err(panic) => {
                    state.panic = Some(panic);
                    state.stopped = true;
                }
            }
        }
        !state.stopped
    }
}
