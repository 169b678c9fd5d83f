//! What several test binaries need: models, parameters that suit tests, greedy generation, the real model.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(dead_code, reason = "each test binary uses a part of it")]

use std::path::{Path, PathBuf};

use ggml_llama::{Batch, Context, ContextParams, Error, Model, ModelParams, Pos, SamplerChain, SeqId, Special, Token};
use ggml_llama_testkit as testkit;

pub(crate) mod child;

/// Loads a model that must be loadable.
pub(crate) fn load(path: impl AsRef<Path>) -> Model {
    Model::load(path, &ModelParams::default()).unwrap()
}

/// Loads the vocabulary of a file that must have one.
pub(crate) fn load_vocab_only(path: impl AsRef<Path>) -> Model {
    Model::load(path, &ModelParams::default().with_vocab_only(true)).unwrap()
}

pub(crate) fn tiny_llama() -> Model {
    load(testkit::tiny_llama_path().unwrap())
}

pub(crate) fn story() -> Model {
    load(testkit::tiny_llama_story_path().unwrap())
}

pub(crate) fn tiny_bert() -> Model {
    load(testkit::tiny_bert_path().unwrap())
}

pub(crate) fn tiny_mamba() -> Model {
    load(testkit::tiny_mamba_path().unwrap())
}

pub(crate) fn tiny_t5() -> Model {
    load(testkit::tiny_t5_path().unwrap())
}

/// Room for 256 tokens, one thread: test runners run several tests at once, and ggml's threads spin.
pub(crate) fn small() -> ContextParams {
    ContextParams::default().with_n_ctx(256).with_threads(1)
}

pub(crate) fn tokens(ids: &[i32]) -> Vec<Token> {
    ids.iter().copied().map(Token).collect()
}

pub(crate) fn ids(tokens: &[Token]) -> Vec<i32> {
    tokens.iter().map(|token| token.0).collect()
}

/// A batch of one sequence from position `start` on, with the output of the last token.
pub(crate) fn batch_of(tokens: &[Token], start: i32) -> Batch {
    let mut batch = Batch::new();
    batch.add_sequence(tokens, Pos(start), SeqId(0)).unwrap();
    batch
}

/// The place of the largest number; the first of several.
pub(crate) fn argmax(values: &[f32]) -> usize {
    let mut best = 0;
    for (i, value) in values.iter().enumerate() {
        if *value > values[best] {
            best = i;
        }
    }
    best
}

/// The largest difference of two rows, in relation to the largest number in them.
pub(crate) fn relative_difference(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len());
    let largest = a.iter().chain(b).fold(0f32, |m, x| m.max(x.abs()));
    let difference =
        a.iter().zip(b).fold(0f32, |m, (x, y)| if (x - y).is_nan() { f32::NAN } else { m.max((x - y).abs()) });
    difference / largest
}

/// Goes on with a prompt until `n` tokens or the end of generation, which is part of the result.
pub(crate) fn greedy(context: &mut Context, prompt: &[Token], n: usize) -> Vec<Token> {
    let vocab = context.model().vocab();
    let mut sampler = SamplerChain::greedy(&vocab).unwrap();
    let mut batch = batch_of(prompt, 0);
    let mut generated = Vec::new();
    while generated.len() < n {
        context.decode(&batch).unwrap();
        let token = sampler.sample_last(context).unwrap();
        generated.push(token);
        if vocab.is_eog(token).unwrap() {
            break;
        }
        batch = batch_of(&[token], (prompt.len() + generated.len() - 1) as i32);
    }
    generated
}

/// Tokens of a text without added ones.
pub(crate) fn plain(model: &Model, text: &str) -> Vec<Token> {
    model.vocab().tokenize(text, false, Special::AsText).unwrap()
}

/// The name of the parameter that an error is about.
pub(crate) fn parameter_of<T>(result: Result<T, Error>) -> &'static str {
    match result.map(|_| ()) {
        Err(Error::InvalidParameter { name, .. }) => name,
        other => panic!("expected an invalid parameter, got {other:?}"),
    }
}

/// SmolLM2-135M-Instruct, which the environment variable GGML_LLAMA_MODEL names.
///
/// Without it the test is skipped, which is printed; with GGML_LLAMA_TEST_REQUIRE_MODEL=1 it fails.
pub(crate) fn real_model_path() -> Option<PathBuf> {
    if let Some(path) = std::env::var_os("GGML_LLAMA_MODEL").filter(|path| !path.is_empty()) {
        return Some(PathBuf::from(path));
    }
    let required = std::env::var("GGML_LLAMA_TEST_REQUIRE_MODEL").is_ok_and(|value| value == "1");
    assert!(!required, "GGML_LLAMA_TEST_REQUIRE_MODEL=1, but GGML_LLAMA_MODEL names no model");
    println!("skipped: GGML_LLAMA_MODEL does not name SmolLM2-135M-Instruct.Q4_1.gguf");
    None
}
