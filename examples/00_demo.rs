//! The program behind `cargo xtask demo`: answers one question with a chat model, and says how fast.
//!
//! `cargo run --release --example 00_demo -- --model MODEL.gguf "What is the capital of France?"`

use std::error::Error;
use std::io::{Write, stdout};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Parser;
use ggml_llama::{
    Batch, ChatMessage, ContextParams, Model, ModelParams, Pos, Sampler, SamplerChain, SeqId, Special, Utf8Decoder,
    apply_chat_template, available_threads, build_info, devices,
};

/// Answers one question with a chat model, streaming, and prints the speed.
#[derive(Parser)]
struct Args {
    /// A GGUF file.
    #[arg(long, env = "GGML_LLAMA_MODEL")]
    model: PathBuf,
    /// Most tokens to generate.
    #[arg(long, default_value_t = 256)]
    n_predict: usize,
    /// Threads; all that the machine has unless given.
    #[arg(long)]
    threads: Option<i32>,
    /// The question.
    #[arg(default_value = "What is the capital of France?")]
    prompt: String,
}

fn main() -> Result<(), Box<dyn Error>> {
    let args = Args::parse();
    let started = Instant::now();
    let model = Model::load(&args.model, &ModelParams::default())?;
    let vocab = model.vocab();
    let threads = args.threads.unwrap_or_else(available_threads);
    let params = ContextParams::default().with_n_ctx(2048).with_threads(threads);
    let mut context = model.new_context(&params)?;
    let mut sampler = SamplerChain::new(&vocab, [Sampler::Greedy])?;

    // A model without a template is given the bare prompt.
    let prompt = match model.chat_template(None)? {
        Some(template) => apply_chat_template(&template, &[ChatMessage::new("user", &args.prompt)], true)?,
        None => args.prompt.clone(),
    };
    let tokens = vocab.tokenize(&prompt, true, Special::Parse)?;
    if tokens.len() + args.n_predict > context.n_ctx() as usize {
        return Err(format!("the prompt has {} tokens; n_ctx is {}", tokens.len(), context.n_ctx()).into());
    }

    let mut batch = Batch::new();
    let prompt_started = Instant::now();
    let n_batch = context.n_batch() as usize;
    for (i, piece) in tokens.chunks(n_batch).enumerate() {
        batch.clear();
        batch.add_sequence(piece, Pos((i * n_batch) as i32), SeqId(0))?;
        context.decode(&batch)?;
    }
    let mut token = sampler.sample_last(&context)?;
    let prompt_time = prompt_started.elapsed();
    let first_token = started.elapsed();

    println!("> {}\n", args.prompt);
    let mut out = stdout().lock();
    let mut text = Utf8Decoder::new();
    let mut piece = Vec::new();
    let mut n_generated = 0;
    let generation_started = Instant::now();
    while !vocab.is_eog(token)? && n_generated < args.n_predict {
        vocab.piece_into(token, false, &mut piece)?;
        out.write_all(text.push(&piece).as_bytes())?;
        out.flush()?;
        batch.clear();
        batch.add(token, Pos((tokens.len() + n_generated) as i32), &[SeqId(0)], true)?;
        context.decode(&batch)?;
        token = sampler.sample_last(&context)?;
        n_generated += 1;
    }
    let generation_time = generation_started.elapsed();
    out.write_all(text.finish().as_bytes())?;
    writeln!(out, "\n")?;

    let rate = |n: usize, time: Duration| n as f64 / time.as_secs_f64().max(1e-9);
    let info = build_info();
    let device = devices()?.into_iter().map(|d| format!("{} ({})", d.name(), d.description())).collect::<Vec<_>>();
    writeln!(out, "model            {}", model.description())?;
    writeln!(out, "prompt           {:8.1} tokens/s  ({} tokens)", rate(tokens.len(), prompt_time), tokens.len())?;
    writeln!(out, "generation       {:8.1} tokens/s  ({n_generated} tokens)", rate(n_generated, generation_time))?;
    writeln!(out, "first token      {:8.0} ms after the program started", first_token.as_secs_f64() * 1e3)?;
    writeln!(out, "device           {} with {threads} threads", device.join(", "))?;
    writeln!(
        out,
        "instruction sets {}",
        if info.cpu_sets.is_empty() { "the target's baseline".to_owned() } else { info.cpu_sets.join(" ") }
    )?;
    writeln!(
        out,
        "upstream         llama.cpp {} and ggml {} from {}",
        info.llama_version, info.ggml_version, info.source
    )?;
    Ok(())
}
