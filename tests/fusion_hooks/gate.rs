//! The hooks beside and inside of computations: neither a deadlock nor a call that is not alone.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use ggml_llama::fusion::Hooks;
use ggml_llama::logging::{self, Record as LogRecord};
use ggml_llama::{Batch, ContextParams, DecodeError, Error, Model, ModelParams, Pos, SeqId, Special, Token};

use crate::stand_in::{self, LABELS, Plan};

/// The log sink is one for the process.
struct SinkGuard(#[allow(dead_code)] MutexGuard<'static, ()>);

fn with_sink(sink: impl logging::Sink) -> SinkGuard {
    static SERIAL: Mutex<()> = Mutex::new(());
    let guard = SinkGuard(SERIAL.lock().unwrap_or_else(PoisonError::into_inner));
    logging::set_sink(sink);
    guard
}

impl Drop for SinkGuard {
    fn drop(&mut self) {
        logging::reset();
    }
}

/// Ends the test when `work` does not end: a deadlock would otherwise hang the whole run.
fn within<R: Send + 'static>(limit: Duration, work: impl FnOnce() -> R + Send + 'static) -> R {
    let (done, result) = mpsc::channel();
    let worker = thread::spawn(move || done.send(work()));
    match result.recv_timeout(limit) {
        Ok(result) => result,
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("no end within {limit:?}: a deadlock"),
        Err(mpsc::RecvTimeoutError::Disconnected) => std::panic::resume_unwind(worker.join().unwrap_err()),
    }
}

const LIMIT: Duration = Duration::from_secs(10);

fn tiny_model() -> Model {
    Model::load(ggml_llama_testkit::tiny_llama_path().unwrap(), &ModelParams::default()).unwrap()
}

fn prompt(model: &Model) -> Batch {
    let mut batch = Batch::new();
    let tokens = model.vocab().tokenize("Once upon a time", true, Special::AsText).unwrap();
    batch.add_sequence(&tokens, Pos(0), SeqId(0)).unwrap();
    batch
}

#[test]
fn inside_of_a_computation_each_call_is_an_error() {
    let (device, record) = stand_in::device(Plan::default());
    let hooks = Hooks::of(device).unwrap();
    let model = tiny_model();
    let answers = Arc::new(Mutex::new(Vec::new()));
    let answer = Arc::clone(&answers);
    let on = Arc::new(Mutex::new(None));
    let only = Arc::clone(&on);
    let _sink = with_sink(move |_: &LogRecord<'_>| {
        if *only.lock().unwrap() == Some(thread::current().id()) {
            answer.lock().unwrap().extend([
                hooks.start_counting(),
                hooks.reset(),
                hooks.set_enabled(false),
                hooks.stats().map(drop),
            ]);
        }
    });
    let heard = Arc::clone(&answers);
    within(LIMIT, move || {
        // Making a context tries its graph, and says much about it.
        *on.lock().unwrap() = Some(thread::current().id());
        let context = model.new_context(&ContextParams::default().with_threads(1));
        *on.lock().unwrap() = None;
        assert!(!heard.lock().unwrap().is_empty(), "upstream logged nothing while it made a context");

        // A decode complains when the memory is full.
        let mut context = context.unwrap();
        let mut batch = Batch::new();
        for pos in 0..context.n_ctx() as i32 {
            batch.add(Token(5), Pos(pos), &[SeqId(0)], false).unwrap();
        }
        context.decode(&batch).unwrap();
        batch.clear();
        batch.add(Token(5), Pos(context.n_ctx() as i32), &[SeqId(0)], true).unwrap();
        let n_heard = heard.lock().unwrap().len();
        *on.lock().unwrap() = Some(thread::current().id());
        let full = context.decode(&batch);
        *on.lock().unwrap() = None;
        assert!(matches!(full, Err(DecodeError::NoKvSlot { .. })), "{full:?}");
        assert!(heard.lock().unwrap().len() > n_heard, "upstream logged nothing while it decoded");
    });
    let answers = std::mem::take(&mut *answers.lock().unwrap());
    assert!(!answers.is_empty(), "upstream logged nothing");
    for answer in answers {
        match answer {
            Err(Error::InvalidParameter { name, value, .. }) => {
                assert_eq!((name, value.as_str()), ("fusion hooks", "used inside of a computation"));
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(record.calls.load(SeqCst), 0, "nothing reached the backend");
    assert!(hooks.stats().is_ok(), "afterwards it works again");
}

#[test]
fn loading_a_model_is_no_computation() {
    let (device, record) = stand_in::device(Plan::default());
    let hooks = Hooks::of(device).unwrap();
    let answers = within(LIMIT, move || {
        let mut answers = Vec::new();
        let path = ggml_llama_testkit::tiny_llama_path().unwrap();
        let mut progress = |_: f32| {
            answers.push(hooks.start_counting());
            ControlFlow::Continue(())
        };
        Model::load_with_progress(path, &ModelParams::default(), &mut progress).unwrap();
        answers
    });
    assert!(!answers.is_empty() && answers.iter().all(Result::is_ok), "{answers:?}");
    assert!(record.counting.load(SeqCst));
}

#[test]
fn statistics_and_decodes_on_two_threads_go_on() {
    const TIMES: u32 = 20;
    let (device, record) = stand_in::device(Plan::default());
    let hooks = Hooks::of(device).unwrap();
    hooks.start_counting().unwrap();
    let model = tiny_model();
    let decoding = Arc::new(AtomicBool::new(true));
    let n_read = Arc::new(AtomicU32::new(0));
    let (goes_on, read) = (Arc::clone(&decoding), Arc::clone(&n_read));
    let reader = thread::spawn(move || {
        while goes_on.load(SeqCst) {
            assert_eq!(hooks.stats().unwrap().len(), LABELS.len());
            read.fetch_add(1, SeqCst);
            // The lock is not fair: without a break this loop slows the decodes down, which is another matter.
            thread::sleep(Duration::from_micros(200));
        }
    });
    // Until both have come far enough; neither waits for the other for ever.
    within(LIMIT, move || {
        let mut context = model.new_context(&ContextParams::default().with_n_ctx(64).with_threads(1)).unwrap();
        let batch = prompt(&model);
        let mut n_decoded = 0;
        while n_decoded < TIMES || n_read.load(SeqCst) < TIMES {
            context.memory().clear(false).unwrap();
            context.decode(&batch).unwrap();
            n_decoded += 1;
        }
    });
    decoding.store(false, SeqCst);
    within(LIMIT, move || reader.join().unwrap());
    assert!(!record.overlapped.load(SeqCst));
}

#[test]
fn the_hooks_are_alone_while_they_work() {
    let (device, record) = stand_in::device(Plan::default());
    let hooks = Hooks::of(device).unwrap();
    let model = tiny_model();
    let on = Arc::new(Mutex::new(None));
    let only = Arc::clone(&on);
    // The sink runs in the midst of the computation: whoever comes in now was not kept out.
    let _sink = with_sink(move |_: &LogRecord<'_>| {
        if *only.lock().unwrap() == Some(thread::current().id()) {
            record.computing.store(true, SeqCst);
            thread::sleep(Duration::from_millis(1));
            record.computing.store(false, SeqCst);
        }
    });
    let computing = Arc::new(AtomicBool::new(true));
    let callers: Vec<_> = (0..3)
        .map(|_| {
            let goes_on = Arc::clone(&computing);
            thread::spawn(move || {
                // At least once each, however the threads are scheduled.
                loop {
                    hooks.set_enabled(true).unwrap();
                    hooks.stats().unwrap();
                    if !goes_on.load(SeqCst) {
                        break;
                    }
                    thread::sleep(Duration::from_micros(200));
                }
            })
        })
        .collect();
    within(LIMIT, move || {
        *on.lock().unwrap() = Some(thread::current().id());
        let contexts = (0..5).map(|_| model.new_context(&ContextParams::default().with_n_ctx(64).with_threads(1)));
        let contexts: Result<Vec<_>, Error> = contexts.collect();
        *on.lock().unwrap() = None;
        drop(contexts.unwrap());
    });
    computing.store(false, SeqCst);
    within(LIMIT, move || callers.into_iter().for_each(|caller| caller.join().unwrap()));
    assert!(record.calls.load(SeqCst) >= 3);
    assert!(!record.overlapped.load(SeqCst), "two calls at once");
    assert!(!record.disturbed.load(SeqCst), "a call in the midst of a computation");
}
