//! Upstream's log. The sink belongs to the process, so these tests take turns.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use common::{child, tiny_llama};
use ggml_llama::logging::{self, Level, LogCrate, Record};
use ggml_llama::{Error, Model, ModelParams};
use ggml_llama_testkit as testkit;

static TURN: Mutex<()> = Mutex::new(());

/// The process's log for one test; back to the default afterwards.
struct Turn(#[allow(dead_code, reason = "held")] MutexGuard<'static, ()>);

fn turn() -> Turn {
    let guard = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    logging::reset();
    log::set_max_level(log::LevelFilter::Off);
    LOGGER.take();
    Turn(guard)
}

impl Drop for Turn {
    fn drop(&mut self) {
        logging::reset();
        log::set_max_level(log::LevelFilter::Off);
    }
}

type Line = (Level, String, String);

/// A sink that keeps all lines.
fn collect() -> Arc<Mutex<Vec<Line>>> {
    let lines = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&lines);
    logging::set_sink(move |record: &Record<'_>| {
        let line = (record.level, record.target.to_owned(), record.message.to_owned());
        sink.lock().unwrap().push(line);
    });
    lines
}

/// Upstream refuses this file, and says why: one of its numbers is none.
fn refused_load() -> Error {
    let mut file = testkit::tiny_llama();
    file.tensor_mut("output.weight").unwrap().data[..4].copy_from_slice(&f32::NAN.to_le_bytes());
    let path = testkit::cached("nan-output.gguf", &file).unwrap();
    Model::load(path, &ModelParams::default().with_check_tensors(true)).unwrap_err()
}

#[test]
fn nothing_is_printed_by_default() {
    for task in ["load", "fail"] {
        let outcome = child::run("child_that_uses_a_model", task, Duration::from_secs(60));
        assert_eq!(outcome.failure(), None);
        // The test runner prints a few lines of its own.
        let runners = |line: &&str| line.is_empty() || line.starts_with("running ") || line.starts_with("test ");
        let own: Vec<&str> = outcome.stdout.lines().filter(|line| !runners(line)).collect();
        assert_eq!((own, outcome.stderr.as_str()), (vec![], ""), "{task}");
    }
}

#[test]
fn child_that_uses_a_model() {
    let Some(task) = child::role() else { return };
    if task == "fail" {
        // One of upstream's checks prints past its own log, so another failure is used here.
        let path = testkit::cached("sound.gguf", &testkit::broken::base()).unwrap();
        let params = common::small().with_cache_types(ggml_llama::CacheType::Q8_0, ggml_llama::CacheType::F16);
        assert!(common::load(path).new_context(&params).is_err());
        assert!(Model::load("/no/such/file.gguf", &ModelParams::default()).is_err());
        return;
    }
    let mut context = tiny_llama().new_context(&common::small()).unwrap();
    common::greedy(&mut context, &common::tokens(&[1, 300]), 3);
    ggml_llama::devices().unwrap();
}

#[test]
fn a_sink_gets_whole_lines_with_targets() {
    let _turn = turn();
    let lines = collect();
    tiny_llama().new_context(&common::small()).unwrap();
    let lines = lines.lock().unwrap().clone();
    assert!(lines.len() > 20, "{}", lines.len());
    for (level, target, message) in &lines {
        assert!(target == "ggml_llama::llama" || target.starts_with("ggml_llama::ggml"), "{target}");
        assert!(!message.contains('\n') && !message.trim().is_empty(), "{message:?}");
        assert!(*level < Level::Error, "{message}");
    }
    let has = |start: &str, text: &str| lines.iter().any(|(_, _, m)| m.starts_with(start) && m.contains(text));
    // The loader lists the metadata, a whole line for each.
    assert!(has("llama_model_loader: - kv", "general.name"), "{lines:?}");
    assert!(
        lines.iter().any(|(level, target, m)| *level == Level::Info
            && target == "ggml_llama::llama"
            && m.contains("tiny-llama"))
    );
}

#[test]
fn silence_and_reset() {
    let _turn = turn();
    let lines = collect();
    tiny_llama();
    let n = lines.lock().unwrap().len();
    assert!(n > 0);
    logging::silence();
    tiny_llama();
    logging::reset();
    tiny_llama();
    assert_eq!(lines.lock().unwrap().len(), n);
    // A sink can be put in place again, and the old one is dropped with what it holds.
    assert_eq!(Arc::strong_count(&lines), 1);
    let again = collect();
    tiny_llama();
    assert_eq!(again.lock().unwrap().len(), n);
}

#[test]
fn a_panicking_sink_is_survived() {
    let _turn = turn();
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let calls = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&calls);
    logging::set_sink(move |_: &Record<'_>| {
        count.fetch_add(1, SeqCst);
        panic!("a sink that panics");
    });
    let mut context = tiny_llama().new_context(&common::small()).unwrap();
    let generated = common::greedy(&mut context, &common::tokens(&[1, 300]), 3);
    let error = refused_load();
    std::panic::set_hook(hook);
    assert!(calls.load(SeqCst) > 20);
    assert_eq!(generated.len(), 3);
    assert!(matches!(error, Error::ModelLoad { .. }), "{error:?}");
}

#[test]
fn a_sink_may_use_the_crate() {
    let _turn = turn();
    let inside = AtomicBool::new(false);
    let loaded = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&loaded);
    logging::set_sink(move |_: &Record<'_>| {
        if !inside.swap(true, SeqCst) {
            count.fetch_add(tiny_llama().vocab().n_tokens() as usize, SeqCst);
        }
    });
    let model = tiny_llama();
    assert_eq!(loaded.load(SeqCst), model.vocab().n_tokens() as usize);
}

#[test]
fn a_sink_may_replace_itself() {
    let _turn = turn();
    let lines = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&lines);
    logging::set_sink(move |_: &Record<'_>| {
        count.fetch_add(1, SeqCst);
        logging::silence();
    });
    tiny_llama();
    assert_eq!(lines.load(SeqCst), 1);
}

/// What the program's own logger was given.
#[derive(Default)]
struct TestLogger(Mutex<Vec<(log::Level, String, String)>>);

static LOGGER: TestLogger = TestLogger(Mutex::new(Vec::new()));

impl TestLogger {
    fn take(&self) -> Vec<(log::Level, String, String)> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

impl log::Log for TestLogger {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }
    fn log(&self, record: &log::Record<'_>) {
        let line = (record.level(), record.target().to_owned(), record.args().to_string());
        self.0.lock().unwrap().push(line);
    }
    fn flush(&self) {}
}

fn with_logger(max: log::LevelFilter) -> Turn {
    let turn = turn();
    // Fails when another test has done it.
    let _ = log::set_logger(&LOGGER);
    log::set_max_level(max);
    turn
}

#[test]
fn the_log_crate_gets_mapped_levels() {
    let _turn = with_logger(log::LevelFilter::Trace);
    refused_load();
    let lines = LOGGER.take();
    let count = |level: log::Level| lines.iter().filter(|(l, _, _)| *l == level).count();
    // Upstream's info is debug, and nothing else becomes info.
    assert!(count(log::Level::Debug) > 20 && count(log::Level::Info) == 0, "{lines:?}");
    assert!(count(log::Level::Error) > 0);
    assert!(lines.iter().all(|(_, target, _)| target.starts_with("ggml_llama::")));
    let (level, target, _) = lines.iter().find(|(_, _, m)| m.contains("error loading model")).unwrap();
    assert_eq!((*level, target.as_str()), (log::Level::Error, "ggml_llama::llama"));
}

#[test]
fn the_log_crates_maximum_counts() {
    let _turn = with_logger(log::LevelFilter::Error);
    refused_load();
    let lines = LOGGER.take();
    assert!(!lines.is_empty() && lines.iter().all(|(level, _, _)| *level == log::Level::Error), "{lines:?}");
    log::set_max_level(log::LevelFilter::Off);
    refused_load();
    assert_eq!(LOGGER.take(), []);
}

#[test]
fn levels_can_be_chosen() {
    let _turn = with_logger(log::LevelFilter::Trace);
    let mut levels = LogCrate::default();
    levels.info = log::LevelFilter::Warn;
    levels.error = log::LevelFilter::Off;
    levels.debug = log::LevelFilter::Off;
    logging::set_sink(levels);
    refused_load();
    let lines = LOGGER.take();
    assert!(lines.len() > 20 && lines.iter().all(|(level, _, _)| *level == log::Level::Warn), "{lines:?}");
    assert!(!lines.iter().any(|(_, _, m)| m.contains("error loading model")));
}

/// An error carries upstream's words whatever becomes of the log.
#[test]
fn errors_quote_upstream() {
    let _turn = turn();
    logging::silence();
    let error = refused_load();
    let Error::ModelLoad { detail, .. } = &error else { panic!("{error:?}") };
    assert!(detail.lines().iter().any(|line| line.contains("output.weight")), "{detail}");
    assert!(error.to_string().contains("output.weight"), "{error}");
    // The words of one call are not those of the next, nor those of another thread.
    std::thread::scope(|scope| {
        scope.spawn(refused_load);
        let other = Model::load("/no/such/file.gguf", &ModelParams::default()).unwrap_err();
        assert!(!other.to_string().contains("output.weight"), "{other}");
    });
}
