//! The process-wide start of upstream: implicit, once, never undone.

use std::ffi::{CStr, c_char};

use once_cell::sync::OnceCell;

use crate::error::{Error, Result};
use crate::logging;
use crate::raw::cpu_check;
use crate::raw::fault;
use crate::sys;

static STARTED: OnceCell<()> = OnceCell::new();

/// Starts upstream unless it runs. Every object that is made calls this first; there is nothing to pass around.
///
/// The backend is never freed: models, contexts and devices may live until the process ends.
pub(crate) fn start() -> Result<()> {
    // A backend that announces itself while it starts reaches a log sink; waiting there for the start would never end.
    if STARTED.get().is_none() && logging::in_sink() {
        return Err(Error::parameter("log sink", "a call of this crate while it starts", "calls after the start"));
    }
    STARTED
        .get_or_try_init(|| {
            cpu_check::check()?;
            logging::install();
            // SAFETY: the sink is a function for the life of the process.
            unsafe { sys::gl_install_abort_handler(Some(on_abort)) };
            fault::call(|status| {
                // SAFETY: `call` gives a valid status.
                unsafe { sys::gl_backend_init(status) }
            })
            .map_err(|fault| fault.into_error("llama_backend_init"))
        })
        .copied()
}

/// Sends upstream's last words to the log before an assertion unwinds or ends the process.
unsafe extern "C" fn on_abort(message: *const c_char) {
    // SAFETY: upstream passes a NUL-terminated message.
    let message = unsafe { CStr::from_ptr(message) };
    logging::report_abort(&message.to_string_lossy());
}
