//! Goes on with a text, token by token.
//!
//! `cargo run --release --example 02_generate -- MODEL.gguf "Once upon a time" 48`

use std::io::{Write, stdout};

use ggml_llama::{
    Batch, ContextParams, Model, ModelParams, Pos, Sampler, SamplerChain, SeqId, Special, Utf8Decoder,
    available_threads,
};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let path = args.next().ok_or("usage: 02_generate MODEL.gguf [TEXT] [N_TOKENS]")?;
    let prompt = args.next().unwrap_or_else(|| "Once upon a time".to_owned());
    let n_predict: i32 = args.next().map_or(Ok(48), |n| n.parse())?;

    let model = Model::load(path, &ModelParams::default())?;
    let vocab = model.vocab();
    let mut context = model.new_context(&ContextParams::default().with_threads(available_threads()))?;
    // A fixed seed: the same text each time.
    let samplers = [
        Sampler::TopK { k: 40 },
        Sampler::TopP { p: 0.95, min_keep: 1 },
        Sampler::Temperature { t: 0.8 },
        Sampler::Dist { seed: 42 },
    ];
    let mut sampler = SamplerChain::new(&vocab, samplers)?;

    let tokens = vocab.tokenize(&prompt, true, Special::AsText)?;
    let mut batch = Batch::new();
    batch.add_sequence(&tokens, Pos(0), SeqId(0))?;
    let mut text = Utf8Decoder::new();
    print!("{prompt}");
    for pos in (tokens.len() as i32..).take(n_predict.max(0) as usize) {
        context.decode(&batch)?;
        let token = sampler.sample_last(&context)?;
        if vocab.is_eog(token)? {
            break;
        }
        print!("{}", text.push(&vocab.piece(token, false)?));
        stdout().flush()?;
        batch.clear();
        batch.add(token, Pos(pos), &[SeqId(0)], true)?;
    }
    println!("{}", text.finish());
    Ok(())
}
