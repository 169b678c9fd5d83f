//! Contestant of the side-by-side benchmark: this crate, through its safe interface. See `benches/README.md`.

use std::io::{BufRead, Write, stdin, stdout};
use std::path::Path;
use std::time::{Duration, Instant};

use ggml_llama::{Batch, Context, ContextParams, Model, ModelParams, Pos, SamplerChain, SeqId, Token};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

const N_PROMPT: i32 = 256;
const N_GEN: i32 = 64;

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let (path, threads) = args.next().zip(args.next()).ok_or("usage: bench_contestant MODEL THREADS")?;
    let name = Path::new(&path).file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let threads: i32 = threads.parse()?;

    let started = Instant::now();
    let model = Model::load(&path, &ModelParams::default().with_n_gpu_layers(0))?;
    let params = ContextParams::default().with_n_ctx(512).with_n_batch(512).with_n_ubatch(512).with_threads(threads);
    let mut context = model.new_context(&params)?;
    let mut sampler = SamplerChain::greedy(&model.vocab())?;
    let load_ms = ms(started.elapsed());
    repetition(&mut context, &mut sampler)?;

    let sets = ggml_llama::build_info().cpu_sets.join(" ");
    println!(r#"{{"who": "ggml-llama", "model": "{name}", "ready": true, "load_ms": {load_ms:.3}, "info": "{sets}"}}"#);
    for line in stdin().lock().lines() {
        if !line?.starts_with("run") {
            continue;
        }
        let (prompt, generation, ids) = repetition(&mut context, &mut sampler)?;
        println!(
            r#"{{"who": "ggml-llama", "model": "{name}", "prompt_tokens": {N_PROMPT}, "prompt_ms": {:.3}, "gen_tokens": {N_GEN}, "gen_ms": {:.3}, "load_ms": {load_ms:.3}, "ids": {ids}}}"#,
            ms(prompt),
            ms(generation)
        );
        stdout().flush()?;
    }
    Ok(())
}

/// One prompt and one generation: their times and the hash of what was picked.
fn repetition(context: &mut Context, sampler: &mut SamplerChain) -> Result<(Duration, Duration, u32)> {
    let prompt: Vec<Token> = (0..N_PROMPT).map(|i| Token((i * 7919 + 13) % 30000 + 100)).collect();
    let mut hash = 2_166_136_261_u32;
    let mut pick = |token: Token| {
        for byte in token.0.to_le_bytes() {
            hash = (hash ^ u32::from(byte)).wrapping_mul(16_777_619);
        }
    };
    context.memory().clear(true)?;

    let started = Instant::now();
    let mut batch = Batch::with_capacity(N_PROMPT as usize, 1);
    batch.add_sequence(&prompt, Pos(0), SeqId(0))?;
    context.decode(&batch)?;
    let mut token = sampler.sample_last(context)?;
    let prompt_time = started.elapsed();
    pick(token);

    let started = Instant::now();
    for pos in N_PROMPT..N_PROMPT + N_GEN {
        batch.clear();
        batch.add(token, Pos(pos), &[SeqId(0)], true)?;
        context.decode(&batch)?;
        token = sampler.sample_last(context)?;
        pick(token);
    }
    let generation_time = started.elapsed();
    Ok((prompt_time, generation_time, hash))
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
