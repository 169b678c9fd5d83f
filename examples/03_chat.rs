//! A conversation on the terminal: the model remembers what was said, because its memory is kept between turns.
//!
//! `cargo run --release --example 03_chat -- MODEL.gguf`, then type; an empty line or end of input leaves.

use std::io::{BufRead, Write, stdin, stdout};

use ggml_llama::{
    Batch, ChatMessage, Context, ContextParams, Model, ModelParams, Pos, Sampler, SamplerChain, SeqId, Special,
    Utf8Decoder, apply_chat_template, available_threads,
};

/// Most tokens of an answer: small models do not always find an end.
const MAX_ANSWER: usize = 256;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn main() -> Result<()> {
    let path = std::env::args().nth(1).ok_or("usage: 03_chat MODEL.gguf")?;
    let model = Model::load(path, &ModelParams::default())?;
    let template = model.chat_template(None)?.ok_or("the model has no chat template")?;
    let params = ContextParams::default().with_n_ctx(4096).with_threads(available_threads());
    let mut context = model.new_context(&params)?;
    let mut sampler = SamplerChain::new(&model.vocab(), [Sampler::Temperature { t: 0.3 }, Sampler::Dist { seed: 7 }])?;

    let mut messages = Vec::new();
    // How much of the rendered conversation is in the memory, in bytes.
    let mut seen = 0;
    for line in stdin().lock().lines() {
        let line = line?;
        if line.trim().is_empty() {
            break;
        }
        messages.push(ChatMessage::new("user", line));
        let prompt = apply_chat_template(&template, &messages, true)?;
        let new = prompt.get(seen..).unwrap_or(&prompt);
        let answer = answer(&mut context, &mut sampler, new, seen == 0)?;
        messages.push(ChatMessage::new("assistant", answer));
        seen = apply_chat_template(&template, &messages, false)?.trim_end().len();
    }
    Ok(())
}

/// Takes the new part of the conversation into the memory and streams the answer.
fn answer(context: &mut Context, sampler: &mut SamplerChain, prompt: &str, first: bool) -> Result<String> {
    let vocab = context.model().vocab();
    let mut tokens = vocab.tokenize(prompt, first, Special::Parse)?;
    let mut batch = Batch::new();
    let mut text = Utf8Decoder::new();
    let mut answer = String::new();
    for n_generated in 0.. {
        let next = context.memory().seq_pos_max(SeqId(0)).map_or(0, |pos| pos.0 + 1);
        if next as usize + tokens.len() >= context.n_ctx_seq() as usize {
            return Err("the conversation is longer than the context".into());
        }
        batch.clear();
        batch.add_sequence(&tokens, Pos(next), SeqId(0))?;
        context.decode(&batch)?;
        let token = sampler.sample_last(context)?;
        if vocab.is_eog(token)? || n_generated == MAX_ANSWER {
            // The end of the turn belongs to the conversation too.
            batch.clear();
            batch.add(token, Pos(next + tokens.len() as i32), &[SeqId(0)], true)?;
            context.decode(&batch)?;
            break;
        }
        let piece = text.push(&vocab.piece(token, false)?).to_owned();
        print!("{piece}");
        stdout().flush()?;
        answer.push_str(&piece);
        tokens = vec![token];
    }
    println!();
    Ok(answer)
}
