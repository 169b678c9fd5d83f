//! Upstream's log: quiet by default, bridged to the `log` crate, replaceable at run time.
//!
//! Every line of ggml and llama.cpp goes to one *sink*. The first sink is [`LogCrate`], which hands the lines to the
//! [`log`] crate: nothing is printed unless the program installs a logger. Users of `tracing` get the same lines
//! through its own bridge (`tracing_log::LogTracer`). [`set_sink`] puts another sink in place at any time, [`silence`]
//! drops everything.
//!
//! Upstream says much at its level *info*, so [`LogCrate`] maps it to debug; its levels can be chosen.
//!
//! | component | target in the `log` crate |
//! |---|---|
//! | llama.cpp | `ggml_llama::llama` |
//! | ggml without a backend's name | `ggml_llama::ggml` |
//! | a backend such as `ggml_vulkan` | `ggml_llama::ggml::vulkan` |

use std::cell::{Cell, RefCell};
use std::ffi::{CStr, c_char, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, RwLock};

use crate::sys;

/// Upstream's severity of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Level {
    /// For those who debug upstream.
    Debug,
    /// Progress and facts; much of it.
    Info,
    /// Something is odd and goes on.
    Warn,
    /// Something failed.
    Error,
}

/// One complete line of upstream's log.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Record<'a> {
    /// Severity.
    pub level: Level,
    /// Who speaks, as a target of the `log` crate: see the table in the module's docs.
    pub target: &'a str,
    /// The line, without its line break.
    pub message: &'a str,
}

/// Takes upstream's log lines. It is called on whatever thread upstream logs from; a panic in it is swallowed.
pub trait Sink: Send + Sync + 'static {
    /// Whether lines of this level are wanted; others cost next to nothing.
    fn enabled(&self, level: Level) -> bool {
        let _ = level;
        true
    }
    /// Takes one line.
    fn log(&self, record: &Record<'_>);
}

impl<F: Fn(&Record<'_>) + Send + Sync + 'static> Sink for F {
    fn log(&self, record: &Record<'_>) {
        self(record);
    }
}

/// The sink in force from the start: hands lines to the `log` crate, at levels that can be chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LogCrate {
    /// Level for upstream's debug lines; default trace.
    pub debug: log::LevelFilter,
    /// Level for upstream's info lines; default debug.
    pub info: log::LevelFilter,
    /// Level for upstream's warnings; default warn.
    pub warn: log::LevelFilter,
    /// Level for upstream's errors; default error.
    pub error: log::LevelFilter,
}

impl Default for LogCrate {
    fn default() -> LogCrate {
        LogCrate {
            debug: log::LevelFilter::Trace,
            info: log::LevelFilter::Debug,
            warn: log::LevelFilter::Warn,
            error: log::LevelFilter::Error,
        }
    }
}

impl LogCrate {
    fn map(&self, level: Level) -> Option<log::Level> {
        match level {
            Level::Debug => self.debug,
            Level::Info => self.info,
            Level::Warn => self.warn,
            Level::Error => self.error,
        }
        .to_level()
    }
}

impl Sink for LogCrate {
    fn enabled(&self, level: Level) -> bool {
        self.map(level).is_some_and(|level| level <= log::max_level())
    }

    fn log(&self, record: &Record<'_>) {
        if let Some(level) = self.map(record.level) {
            log::logger().log(
                &log::Record::builder()
                    .level(level)
                    .target(record.target)
                    .args(format_args!("{}", record.message))
                    .build(),
            );
        }
    }
}

static SINK: RwLock<Option<Arc<dyn Sink>>> = RwLock::new(None);

/// Puts a sink in place of the current one, for the whole process. Replaces the logger of nobody else.
///
/// ```
/// use ggml_llama::logging::{self, Level, Record};
/// logging::set_sink(|record: &Record<'_>| {
///     if record.level >= Level::Warn {
///         eprintln!("{}: {}", record.target, record.message);
///     }
/// });
/// ```
#[doc(alias = "llama_log_set")]
#[doc(alias = "ggml_log_set")]
pub fn set_sink(sink: impl Sink) {
    replace(Some(Arc::new(sink)));
}

/// Drops every line from now on.
pub fn silence() {
    struct Nothing;
    impl Sink for Nothing {
        fn enabled(&self, _level: Level) -> bool {
            false
        }
        fn log(&self, _record: &Record<'_>) {}
    }
    set_sink(Nothing);
}

/// Back to [`LogCrate`] with its default levels.
pub fn reset() {
    replace(None);
}

fn replace(sink: Option<Arc<dyn Sink>>) {
    let old = match SINK.write() {
        Ok(mut current) => std::mem::replace(&mut *current, sink),
        Err(poisoned) => std::mem::replace(&mut *poisoned.into_inner(), sink),
    };
    // Dropped here, outside of the lock: its destructor may log.
    drop(old);
}

/// Runs `f` with the sink in force, without holding the lock: a sink may itself call this crate.
fn with_sink<R>(f: impl FnOnce(&dyn Sink) -> R) -> R {
    let sink = match SINK.read() {
        Ok(current) => current.clone(),
        Err(poisoned) => poisoned.into_inner().clone(),
    };
    match sink {
        Some(sink) => f(&*sink),
        None => f(&LogCrate::default()),
    }
}

thread_local! {
    /// Inside of a sink: upstream is in the middle of something, on this thread or on the one that waits for it.
    static IN_SINK: Cell<bool> = const { Cell::new(false) };
    /// A line that upstream has not finished yet: it writes some in pieces.
    static PENDING: RefCell<Option<Pending>> = const { RefCell::new(None) };
    /// Warnings and errors of the call that runs, while one is being watched.
    static CAPTURED: RefCell<Option<Vec<String>>> = const { RefCell::new(None) };
}

struct Pending {
    level: Level,
    from_llama: bool,
    text: String,
}

/// Puts our callback into upstream. Called once, when the runtime starts.
pub(crate) fn install() {
    // SAFETY: the callback is a function for the life of the process; the user data are used as a flag only.
    // llama_log_set sets ggml's callback too, so ggml's is set after it.
    unsafe {
        sys::llama_log_set(Some(on_log), FROM_LLAMA);
        sys::ggml_log_set(Some(on_log), std::ptr::null_mut());
    }
}

const FROM_LLAMA: *mut c_void = std::ptr::without_provenance_mut(1);

unsafe extern "C" fn on_log(level: sys::ggml_log_level, text: *const c_char, user_data: *mut c_void) {
    if text.is_null() {
        return;
    }
    let level = match level {
        sys::GGML_LOG_LEVEL_DEBUG => Some(Level::Debug),
        sys::GGML_LOG_LEVEL_WARN => Some(Level::Warn),
        sys::GGML_LOG_LEVEL_ERROR => Some(Level::Error),
        // Also lines of level "none" and of levels to come.
        sys::GGML_LOG_LEVEL_CONT => None,
        _ => Some(Level::Info),
    };
    // A panic must not reach C: not one of a sink, nor one of thread-local storage that is being torn down.
    let _ = catch_unwind(AssertUnwindSafe(|| {
        let wanted = level.is_none_or(|level| {
            level >= Level::Warn
                || with_sink(|sink| {
                    let _inside = InSink(IN_SINK.replace(true));
                    sink.enabled(level)
                })
        });
        if wanted {
            // SAFETY: not null, and upstream passes a NUL-terminated text.
            let text = unsafe { CStr::from_ptr(text) };
            take_text(level, user_data == FROM_LLAMA, &text.to_string_lossy());
        } else {
            // What continues an unwanted line must not be glued to an older one.
            finish_pending();
        }
    }));
}

/// Takes a piece of text; `None` continues the line before it.
fn take_text(level: Option<Level>, from_llama: bool, text: &str) {
    if level.is_some() {
        finish_pending();
    }
    let complete = PENDING.with_borrow_mut(|pending| {
        match (level, pending.as_mut()) {
            (None, Some(pending)) => pending.text.push_str(text),
            // A continuation of nothing belongs to a line that was not wanted.
            (None, None) => return None,
            (Some(level), _) => *pending = Some(Pending { level, from_llama, text: text.to_owned() }),
        }
        let done = pending.as_ref().is_some_and(|pending| pending.text.ends_with('\n'));
        if done { pending.take() } else { None }
    });
    if let Some(complete) = complete {
        emit(&complete);
    }
}

fn finish_pending() {
    if let Some(pending) = PENDING.with_borrow_mut(Option::take) {
        emit(&pending);
    }
}

fn emit(line: &Pending) {
    let target = target_of(line.from_llama, &line.text);
    for message in line.text.lines().filter(|message| !message.trim().is_empty()) {
        if line.level >= Level::Warn {
            CAPTURED.with_borrow_mut(|captured| {
                if let Some(captured) = captured {
                    captured.push(message.trim().to_owned());
                }
            });
        }
        with_sink(|sink| {
            let _inside = InSink(IN_SINK.replace(true));
            if sink.enabled(line.level) {
                sink.log(&Record { level: line.level, target: &target, message });
            }
        });
    }
}

/// Whether a sink runs on this thread.
pub(crate) fn in_sink() -> bool {
    IN_SINK.get()
}

/// Restores the mark of the sink around it.
struct InSink(bool);

impl Drop for InSink {
    fn drop(&mut self) {
        IN_SINK.set(self.0);
    }
}

/// The component as a log target. ggml's backends begin their lines with their name, `ggml_vulkan: ...`.
fn target_of(from_llama: bool, text: &str) -> std::borrow::Cow<'static, str> {
    if from_llama {
        return "ggml_llama::llama".into();
    }
    const BACKENDS: &[&str] =
        &["cuda", "vulkan", "vk", "metal", "opencl", "sycl", "rpc", "blas", "hip", "cann", "webgpu", "hexagon", "cpu"];
    let rest = text.strip_prefix("ggml_backend_").or_else(|| text.strip_prefix("ggml_")).unwrap_or_default();
    let name = rest.split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default();
    match BACKENDS.iter().find(|backend| **backend == name) {
        Some(&"vk") => "ggml_llama::ggml::vulkan".into(),
        Some(backend) => format!("ggml_llama::ggml::{backend}").into(),
        None => "ggml_llama::ggml".into(),
    }
}

/// Sends the message of a failed assertion to the sink.
pub(crate) fn report_abort(message: &str) {
    let _ = catch_unwind(AssertUnwindSafe(|| {
        finish_pending();
        emit(&Pending { level: Level::Error, from_llama: message.contains("llama"), text: message.to_owned() });
    }));
}

/// Collects the warnings and errors that this thread logs until [`Capture::finish`].
pub(crate) struct Capture {
    outer: Option<Vec<String>>,
    done: bool,
}

/// Starts collecting. Captures nest: the inner one gets the lines.
pub(crate) fn capture() -> Capture {
    Capture { outer: CAPTURED.replace(Some(Vec::new())), done: false }
}

impl Capture {
    /// Ends the collecting and gives the lines.
    pub(crate) fn finish(mut self) -> Vec<String> {
        finish_pending();
        self.done = true;
        CAPTURED.replace(self.outer.take()).unwrap_or_default()
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        if !self.done {
            CAPTURED.replace(self.outer.take());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_name_the_component() {
        assert_eq!(target_of(true, "load_tensors: x"), "ggml_llama::llama");
        assert_eq!(target_of(false, "ggml_vulkan: Found 1 device"), "ggml_llama::ggml::vulkan");
        assert_eq!(target_of(false, "ggml_vk_create_buffer: x"), "ggml_llama::ggml::vulkan");
        assert_eq!(target_of(false, "ggml_backend_cuda_init: x"), "ggml_llama::ggml::cuda");
        assert_eq!(target_of(false, "ggml_gallocr_reserve: x"), "ggml_llama::ggml");
        assert_eq!(target_of(false, "gguf_init: x"), "ggml_llama::ggml");
    }

    #[test]
    fn pieces_of_a_line_are_joined_and_captured_once() {
        let capture = capture();
        take_text(Some(Level::Error), true, "one ");
        take_text(None, true, "two");
        take_text(None, true, " three\n");
        take_text(None, true, "continues nothing\n");
        take_text(Some(Level::Info), true, "not captured\n");
        take_text(Some(Level::Warn), true, "no line break");
        assert_eq!(capture.finish(), ["one two three", "no line break"]);
    }
}
