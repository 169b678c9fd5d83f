//! Text and paths on their way to C and back.

use std::ffi::{CStr, CString, c_char};
use std::path::Path;

use crate::error::{Error, Result};

/// A C string from bytes that must not hold a NUL.
pub(crate) fn to_c(what: &'static str, bytes: impl Into<Vec<u8>>) -> Result<CString> {
    CString::new(bytes).map_err(|e| Error::Nul { what, at: e.nul_position() })
}

/// A path as upstream takes it: the bytes themselves on Unix, also when they are not UTF-8; UTF-8 on Windows, where
/// upstream converts it to wide characters.
pub(crate) fn path_to_c(path: &Path) -> Result<CString> {
    #[cfg(unix)]
    let bytes = std::os::unix::ffi::OsStrExt::as_bytes(path.as_os_str()).to_vec();
    #[cfg(not(unix))]
    let bytes = path
        .to_str()
        .ok_or_else(|| Error::parameter("path", path.display(), "a path that is valid Unicode on this system"))?
        .as_bytes()
        .to_vec();
    to_c("the path", bytes)
}

/// Copies a C string; null gives `None`. Bytes that are not UTF-8 become replacement marks.
///
/// # Safety
///
/// `ptr` is null or points to a NUL-terminated string that stays valid during the call.
pub(crate) unsafe fn from_c(ptr: *const c_char) -> Option<String> {
    if ptr.is_null() {
        return None;
    }
    // SAFETY: not null, and the caller vouches for the terminator.
    let text = unsafe { CStr::from_ptr(ptr) };
    Some(text.to_string_lossy().into_owned())
}
