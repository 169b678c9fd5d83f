//! Calls through the shim: what upstream threw comes back as a [`Fault`].

use std::ffi::CStr;

use crate::error::{Detail, Error};
use crate::logging;
use crate::sys;

/// What upstream threw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FaultKind {
    OutOfMemory,
    Exception,
    Assertion,
}

/// An exception or assertion that the shim caught, with what upstream logged before it.
#[derive(Debug, Clone)]
pub(crate) struct Fault {
    pub(crate) kind: FaultKind,
    pub(crate) message: String,
    pub(crate) detail: Detail,
}

impl Fault {
    pub(crate) fn into_error(self, function: &'static str) -> Error {
        Error::Upstream { function, message: self.message, detail: self.detail }
    }
}

/// Runs one shim function and collects what upstream logged meanwhile on this thread.
pub(crate) fn call_logged<R>(f: impl FnOnce(*mut sys::gl_status) -> R) -> (Result<R, Fault>, Detail) {
    let capture = logging::capture();
    let result = call(f);
    let detail = Detail(capture.finish());
    let result = result.map_err(|fault| Fault { detail: detail.clone(), ..fault });
    (result, detail)
}

/// Runs one shim function. Allocates nothing unless it fails.
pub(crate) fn call<R>(f: impl FnOnce(*mut sys::gl_status) -> R) -> Result<R, Fault> {
    // Not zeroed: the shim writes the code and the first byte of the message, and 512 bytes per token add up.
    let mut status = std::mem::MaybeUninit::<sys::gl_status>::uninit();
    let value = f(status.as_mut_ptr());
    // SAFETY: every shim function sets `code` before anything else.
    let code = unsafe { (&raw const (*status.as_ptr()).code).read() };
    if code == sys::GL_OK as i32 {
        return Ok(value);
    }
    // SAFETY: with a code other than GL_OK the shim wrote a NUL-terminated message.
    let message = unsafe { CStr::from_ptr((&raw const (*status.as_ptr()).message).cast()) };
    let kind = match code as u32 {
        sys::GL_OUT_OF_MEMORY => FaultKind::OutOfMemory,
        sys::GL_ASSERTION => FaultKind::Assertion,
        _ => FaultKind::Exception,
    };
    Err(Fault { kind, message: message.to_string_lossy().into_owned(), detail: Detail::default() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::raw::runtime;

    #[test]
    fn a_failed_assertion_inside_a_guarded_call_becomes_a_fault() {
        runtime::start().unwrap();
        let fault =
            // SAFETY: the status pointer is valid and the message is NUL-terminated.
            call(|status| unsafe { sys::gl_test_assertion(status, c"on purpose".as_ptr()) }).unwrap_err();
        assert_eq!(fault.kind, FaultKind::Assertion);
        assert!(fault.message.contains("on purpose"), "{}", fault.message);
    }
}
