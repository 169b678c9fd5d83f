//! Shows how a text is cut into tokens. Needs the vocabulary only, so even a huge model opens at once.
//!
//! `cargo run --example 04_tokenize -- MODEL.gguf "Hello, wörld! 🦀"`

use ggml_llama::{Model, ModelParams, Special};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let path = args.next().ok_or("usage: 04_tokenize MODEL.gguf [TEXT]")?;
    let text = args.next().unwrap_or_else(|| "Hello, wörld! 🦀".to_owned());

    let model = Model::load(path, &ModelParams::default().with_vocab_only(true))?;
    let vocab = model.vocab();
    println!(
        "{:?} vocabulary of {} tokens; BOS {:?}, EOS {:?}",
        vocab.vocab_type(),
        vocab.n_tokens(),
        vocab.bos(),
        vocab.eos()
    );
    let tokens = vocab.tokenize(&text, true, Special::AsText)?;
    for token in &tokens {
        let bytes = vocab.piece(*token, true)?;
        println!("{:>7}  {:?}", token.0, String::from_utf8_lossy(&bytes));
    }
    println!("{} tokens for {} bytes; back: {:?}", tokens.len(), text.len(), vocab.detokenize(&tokens, false)?);
    Ok(())
}
