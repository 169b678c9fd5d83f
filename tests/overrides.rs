//! Metadata overrides: whatever they say, loading and using the model gives a value or a typed error that upstream did
//! not have to assert.
//!
//! Each model runs in a child process, so that a crash shows as a failure with the override that led to it. By default
//! a key meets a quarter of the values; `GGML_LLAMA_TEST_ALL=1 cargo test --test overrides` tries all.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::path::Path;
use std::time::Duration;

use common::{batch_of, child, small, tokens};
use ggml_llama::{Context, DecodeError, Error, MetadataOverride, Model, ModelParams};
use ggml_llama_testkit::{self as testkit, Gguf, Value};

const MARK: &str = "OVERRIDE ";

/// What models of upstream's architectures may say beside what the tiny ones do; `%` is the architecture.
const MORE_KEYS: [&str; 34] = [
    "%.attention.key_length",
    "%.attention.value_length",
    "%.attention.sliding_window",
    "%.attention.causal",
    "%.attention.scale",
    "%.attention.clamp_kqv",
    "%.attention.max_alibi_bias",
    "%.attention.group_norm_epsilon",
    "%.attention.layer_norm_epsilon",
    "%.attention.layer_norm_rms_epsilon",
    "%.attention.head_count_kv",
    "%.rope.scaling.type",
    "%.rope.scaling.factor",
    "%.rope.scaling.original_context_length",
    "%.rope.scaling.attn_factor",
    "%.rope.scale_linear",
    "%.rope.freq_base",
    "%.rope.dimension_count",
    "%.expert_count",
    "%.expert_used_count",
    "%.expert_group_count",
    "%.nextn_predict_layers",
    "%.embedding_length_out",
    "%.pooling_type",
    "%.use_parallel_residual",
    "%.logit_scale",
    "%.residual_scale",
    "%.classifier.output_labels",
    "general.alignment",
    "tokenizer.ggml.add_bos_token",
    "tokenizer.ggml.add_eos_token",
    "tokenizer.ggml.add_space_prefix",
    "tokenizer.ggml.pre",
    "tokenizer.ggml.token_type_count",
];

fn values() -> Vec<MetadataOverride> {
    use MetadataOverride::{Bool, Float, Int, Str};
    let ints =
        [-1, 0, 1, 2, 3, 5, 16, 31, 77, 513, 1 << 20, i64::from(i32::MAX), 1 << 31, i64::from(u32::MAX), 1 << 32]
            .map(Int);
    let floats = [-1.0, 0.0, 1e-30, 0.5, 1e30, f64::NAN, f64::INFINITY].map(Float);
    let texts = ["", "yarn", "longrope", "llama", "default", "whitespace"].map(|text| Str(text.to_owned()));
    [ints.to_vec(), floats.to_vec(), texts.to_vec(), vec![Bool(false), Bool(true), Int(i64::MAX), Int(i64::MIN)]]
        .concat()
}

fn models() -> [(&'static str, Gguf); 5] {
    [
        ("llama", testkit::broken::base()),
        ("bert", testkit::tiny_bert()),
        ("reranker", testkit::tiny_reranker()),
        ("mamba", testkit::tiny_mamba()),
        ("t5", testkit::tiny_t5()),
    ]
}

#[test]
fn no_override_ends_the_process() {
    std::thread::scope(|scope| {
        let run = |(name, _): (&'static str, Gguf)| {
            scope.spawn(move || (name, child::run("child_that_overrides", name, Duration::from_secs(120))))
        };
        let children = models().map(run);
        for child in children {
            let (name, outcome) = child.join().unwrap();
            let last = outcome.stdout.lines().rfind(|line| line.contains(MARK)).unwrap_or("nothing was done");
            assert_eq!(outcome.failure(), None, "{name}: last was {last}\n{}", outcome.stderr);
            assert!(outcome.line("TRIED ").is_some(), "{name}: the child did nothing");
        }
    });
}

#[test]
fn child_that_overrides() {
    let Some(role) = child::role() else { return };
    child::limit_memory();
    let (_, file) = models().into_iter().find(|(name, _)| role == *name).unwrap();
    let path = testkit::cached("overridden.gguf", &file).unwrap();
    let Some(Value::Str(architecture)) = file.kv("general.architecture") else { panic!() };
    let architecture = String::from_utf8(architecture.clone()).unwrap();
    let mut keys: Vec<String> = MORE_KEYS.iter().map(|key| key.replace('%', &architecture)).collect();
    keys.extend(file.kvs().iter().map(|(key, _)| key.clone()));
    keys.sort();
    keys.dedup();
    let (mut used, mut failed, mut tried) = (0, 0, 0);
    let all = std::env::var_os("GGML_LLAMA_TEST_ALL").is_some();
    for (i, key) in keys.iter().enumerate() {
        for (_, value) in values().into_iter().enumerate().filter(|(j, _)| all || (i + j) % 4 == 0) {
            println!("{MARK}{key} = {value:?}");
            tried += 1;
            match attempt(&path, key, value.clone()) {
                Ok(()) => used += 1,
                Err(
                    error @ (Error::Upstream { .. }
                    | Error::Poisoned { .. }
                    | Error::Decode(DecodeError::Upstream { .. } | DecodeError::Compute(_))),
                ) => {
                    failed += 1;
                    eprintln!("{MARK}{key} = {value:?}: {error}");
                }
                Err(_) => {}
            }
        }
    }
    println!("TRIED {tried}, of which {used} worked");
    assert!(failed == 0 && used > tried / 10, "{failed} of {tried} failed, {used} worked");
}

fn attempt(path: &Path, key: &str, value: MetadataOverride) -> Result<(), Error> {
    let model = Model::load(path, &ModelParams::default().with_metadata_override(key, value))?;
    for embeddings in [false, true] {
        let mut context = Context::new(&model, &small().with_n_ctx(32).with_embeddings(embeddings))?;
        let batch = batch_of(&tokens(&[3, 5, 7]), 0);
        if model.has_encoder() {
            context.encode(&batch)?;
        }
        context.decode(&batch)?;
    }
    let default = Context::new(&model, &small().with_n_ctx(0));
    match default {
        Err(error @ Error::Upstream { .. }) => Err(error),
        _ => Ok(()),
    }
}
