//! Contestant of the side-by-side benchmark: the crate `llama-cpp-2` with its default features.
//!
//! `bench-llama-cpp-2 MODEL THREADS`: one repetition per line of standard input; see ../../README.md for the protocol.

use std::error::Error;
use std::io::{BufRead, Write, stdin, stdout};
use std::num::NonZeroU32;
use std::path::Path;
use std::time::Instant;

use llama_cpp_2::context::LlamaContext;
use llama_cpp_2::context::params::LlamaContextParams;
use llama_cpp_2::llama_backend::LlamaBackend;
use llama_cpp_2::llama_batch::LlamaBatch;
use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::model::params::LlamaModelParams;
use llama_cpp_2::sampling::LlamaSampler;
use llama_cpp_2::token::LlamaToken;

const N_PROMPT: i32 = 256;
const N_GEN: i32 = 64;
const N_CTX: u32 = 512;

/// 32-bit FNV-1a over the picked tokens.
struct IdsHash(u32);

impl IdsHash {
    fn add(&mut self, token: LlamaToken) {
        for byte in token.0.to_le_bytes() {
            self.0 = (self.0 ^ u32::from(byte)).wrapping_mul(16_777_619);
        }
    }
}

struct Timings {
    prompt_ms: f64,
    gen_ms: f64,
    ids: u32,
}

fn repetition(
    context: &mut LlamaContext<'_>,
    sampler: &mut LlamaSampler,
    batch: &mut LlamaBatch<'_>,
    prompt: &[LlamaToken],
) -> Result<Timings, Box<dyn Error>> {
    let mut ids = IdsHash(2_166_136_261);
    context.clear_kv_cache();

    let start = Instant::now();
    batch.clear();
    batch.add_sequence(prompt, 0, false)?;
    context.decode(batch)?;
    let mut token = sampler.sample(context, -1);
    let prompt_ms = start.elapsed().as_secs_f64() * 1e3;
    ids.add(token);

    let start = Instant::now();
    for i in 0..N_GEN {
        batch.clear();
        batch.add(token, N_PROMPT + i, &[0], true)?;
        context.decode(batch)?;
        token = sampler.sample(context, -1);
        ids.add(token);
    }
    let gen_ms = start.elapsed().as_secs_f64() * 1e3;
    Ok(Timings { prompt_ms, gen_ms, ids: ids.0 })
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args_os().skip(1);
    let (Some(path), Some(threads)) = (args.next(), args.next()) else {
        return Err("usage: bench-llama-cpp-2 MODEL THREADS".into());
    };
    let threads: i32 = threads.to_string_lossy().parse()?;
    let model_name = Path::new(&path).file_stem().unwrap_or_default().to_string_lossy().into_owned();

    let start = Instant::now();
    let mut backend = LlamaBackend::init()?;
    backend.void_logs();
    let model = LlamaModel::load_from_file(&backend, &path, &LlamaModelParams::default().with_n_gpu_layers(0))?;
    let params = LlamaContextParams::default()
        .with_n_ctx(NonZeroU32::new(N_CTX))
        .with_n_batch(N_CTX)
        .with_n_ubatch(N_CTX)
        .with_n_threads(threads)
        .with_n_threads_batch(threads);
    let mut context = model.new_context(&backend, params)?;
    let load_ms = start.elapsed().as_secs_f64() * 1e3;

    let mut sampler = LlamaSampler::chain_simple([LlamaSampler::greedy()]);
    let mut batch = LlamaBatch::new(N_CTX as usize, 1);
    let prompt: Vec<LlamaToken> = (0..N_PROMPT).map(|i| LlamaToken((i * 7919 + 13) % 30_000 + 100)).collect();
    repetition(&mut context, &mut sampler, &mut batch, &prompt)?;

    let who = r#""who": "llama-cpp-2""#;
    let mut out = stdout();
    writeln!(out, r#"{{{who}, "model": "{model_name}", "ready": true, "load_ms": {load_ms:.3}}}"#)?;
    out.flush()?;
    for line in stdin().lock().lines() {
        if line?.trim() != "run" {
            continue;
        }
        let Timings { prompt_ms, gen_ms, ids } = repetition(&mut context, &mut sampler, &mut batch, &prompt)?;
        writeln!(
            out,
            r#"{{{who}, "model": "{model_name}", "prompt_tokens": {N_PROMPT}, "prompt_ms": {prompt_ms:.3}, "gen_tokens": {N_GEN}, "gen_ms": {gen_ms:.3}, "load_ms": {load_ms:.3}, "ids": {ids}}}"#
        )?;
        out.flush()?;
    }
    Ok(())
}
