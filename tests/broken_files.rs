//! Malformed files: loading each, and using what loads, gives a value or a typed error. No signal, no hang.
//!
//! Each file has a process of its own, so that a crash is one failed case with a name.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use common::child;
use ggml_llama::{Batch, ContextParams, Error, Model, ModelParams, Pos, SeqId, Special, Token};
use ggml_llama_testkit::broken;

const LIMIT: Duration = Duration::from_secs(20);

/// What the child prints before what became of the file.
const MARK: &str = "OUTCOME ";

type Case = (String, PathBuf);

/// Runs a child for each case, two at a time, and gives the name and the outcome of each.
fn run_all(cases: Vec<Case>) -> Vec<(String, Result<String, String>)> {
    let queue = Mutex::new(VecDeque::from(cases));
    let next = || queue.lock().unwrap().pop_front();
    let work = || {
        let mut results = Vec::new();
        while let Some((name, path)) = next() {
            let outcome = child::run("child_that_loads_a_file", &path, LIMIT);
            let result = match (outcome.failure(), outcome.line(MARK)) {
                (Some(failure), _) => Err(failure),
                (None, None) => Err("the child did nothing".to_owned()),
                (None, Some(line)) => Ok(line.to_owned()),
            };
            results.push((name, result));
        }
        results
    };
    thread::scope(|scope| {
        let workers = [scope.spawn(work), scope.spawn(work)];
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    })
}

fn check(cases: Vec<Case>, at_least: usize) {
    let total = cases.len();
    assert!(total >= at_least, "{total} cases");
    let results = run_all(cases);
    assert_eq!(results.len(), total);
    let mut failed: Vec<String> = Vec::new();
    for (name, result) in results {
        match result {
            // Caught, but no call may get that far.
            Ok(line) if line.contains("GGML_ASSERT") => failed.push(format!("{name}: {line}")),
            Ok(line) => println!("{name}: {line}"),
            Err(failure) => failed.push(format!("{name}: {failure}")),
        }
    }
    failed.sort();
    assert!(failed.is_empty(), "{} of {total} files are not refused in time:\n{}", failed.len(), failed.join("\n"));
}

#[test]
fn every_broken_file_is_survived() {
    let folder = tempfile::tempdir().unwrap();
    let cases = broken::all().into_iter().map(|(name, bytes)| {
        let path = folder.path().join(format!("{name}.gguf"));
        std::fs::write(&path, bytes).unwrap();
        (name, path)
    });
    check(cases.collect(), 200);
}

#[test]
fn every_broken_split_model_is_survived() {
    let folder = tempfile::tempdir().unwrap();
    let cases = broken::split_models::all().into_iter().map(|model| {
        let first = model.write(folder.path()).unwrap().swap_remove(0);
        (model.name, first)
    });
    check(cases.collect(), 10);
}

/// The sound file that the broken ones are made from does all of it: else the test above would pass for no reason.
#[test]
fn the_sound_file_goes_all_the_way() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sound.gguf");
    broken::base().write(&path).unwrap();
    assert_eq!(attempt(&path), "loads; decodes; gives embeddings; makes the default context; vocabulary works");
    let results = run_all(vec![("sound".to_owned(), path)]);
    assert_eq!(results, [("sound".to_owned(), Ok(attempt(&folder.path().join("sound.gguf"))))]);
}

/// Odd, but nothing that upstream stumbles over: what is refused must have a reason.
#[test]
fn harmless_files_still_load() {
    let harmless = [
        "alignment-64-unused",
        "bert-pooling-last",
        "bos-1e9",
        "causal-false",
        "eps-0",
        "file-type-9999",
        "rope-scaling-longrope",
        "scores-missing",
        "token-types-missing",
        "tokens-not-utf8",
    ];
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file.gguf");
    let files = broken::all();
    for name in harmless {
        let (_, bytes) = files.iter().find(|(n, _)| n == name).unwrap();
        std::fs::write(&path, bytes).unwrap();
        let outcome = attempt(&path);
        assert!(outcome.starts_with("loads; decodes; gives embeddings"), "{name}: {outcome}");
    }
}

#[test]
fn child_that_loads_a_file() {
    let Some(path) = child::role() else { return };
    child::limit_memory();
    println!("{MARK}{}", attempt(Path::new(&path)));
}

/// Everything that the crate can do with a file, and how far it went.
fn attempt(path: &Path) -> String {
    let steps = [use_model(path), use_vocab(path)];
    steps.map(|step| step.unwrap_or_else(|error| describe(&error))).join("; ")
}

fn describe(error: &Error) -> String {
    // One line, also for errors that quote upstream's lines.
    format!("error: {error}").replace('\n', " ")
}

fn use_model(path: &Path) -> Result<String, Error> {
    let model = Model::load(path, &ModelParams::default())?;
    let _ = (model.metadata(), model.description(), model.chat_template(None)?, model.classifier_labels());
    let _ = (model.rope_type(), model.n_embd_out(), model.n_head(), model.n_head_kv(), model.n_swa());
    let params = ContextParams::default().with_n_ctx(64).with_threads(1);
    let mut done = "loads; ".to_owned();
    done += &generate(&model, &params).map_or_else(|e| describe(&e), |()| "decodes".to_owned());
    done += "; ";
    done += &embed(&model, &params).map_or_else(|e| describe(&e), |()| "gives embeddings".to_owned());
    done += "; ";
    let default = model.new_context(&ContextParams::default().with_n_ctx(0).with_threads(1));
    done += &default.map_or_else(|e| describe(&e), |_| "makes the default context".to_owned());
    Ok(done)
}

/// The prompt, and tokens that are certainly there when the vocabulary gives none.
fn prompt(model: &Model) -> Result<Batch, Error> {
    let vocab = model.vocab();
    let tokens = vocab.tokenize("hello", true, Special::AsText).unwrap_or_default();
    let tokens = if tokens.is_empty() { vec![Token(0), Token(vocab.n_tokens() - 1)] } else { tokens };
    let mut batch = Batch::new();
    batch.add_sequence(&tokens, Pos(0), SeqId(0))?;
    Ok(batch)
}

fn generate(model: &Model, params: &ContextParams) -> Result<(), Error> {
    let mut context = model.new_context(params)?;
    let batch = prompt(model)?;
    if model.has_encoder() {
        context.encode(&batch)?;
    }
    context.decode(&batch)?;
    let mut sampler = ggml_llama::SamplerChain::greedy(&model.vocab())?;
    // Weights that are no numbers give logits that are none.
    if let Ok(token) = sampler.sample_last(&context) {
        let mut next = Batch::new();
        next.add(token, Pos(batch.len() as i32), &[SeqId(0)], true)?;
        context.decode(&next)?;
    }
    Ok(())
}

fn embed(model: &Model, params: &ContextParams) -> Result<(), Error> {
    let mut context = model.new_context(&params.clone().with_embeddings(true))?;
    let batch = prompt(model)?;
    if model.has_encoder() {
        context.encode(&batch)?;
    }
    context.decode(&batch)?;
    let row = context.embeddings(0).or_else(|_| context.embeddings_seq(SeqId(0)))?;
    assert!(!row.is_empty());
    Ok(())
}

fn use_vocab(path: &Path) -> Result<String, Error> {
    let model = Model::load(path, &ModelParams::default().with_vocab_only(true))?;
    let vocab = model.vocab();
    let _ = (model.metadata(), model.description(), model.n_head(), model.n_ctx_train());
    for i in 0..vocab.n_tokens().clamp(0, 2000) {
        let token = Token(i);
        let _ =
            (vocab.text(token), vocab.score(token), vocab.attr(token), vocab.is_eog(token), vocab.is_control(token));
        let _ = (vocab.piece(token, true), vocab.piece(token, false));
    }
    let mut all = true;
    for text in ["hello", "hello  world\n\n", "\u{1f999} caf\u{e9}", "<|im_start|>", ""] {
        for (add_special, special) in [(true, Special::AsText), (false, Special::Parse)] {
            match vocab.tokenize(text, add_special, special) {
                Ok(tokens) => {
                    let _ = (vocab.detokenize(&tokens, true)?, vocab.detokenize(&tokens, false)?);
                }
                Err(_) => all = false,
            }
        }
    }
    Ok(if all { "vocabulary works" } else { "vocabulary refuses some texts" }.to_owned())
}
