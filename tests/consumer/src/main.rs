//! Uses the library as a program elsewhere would: says what it is made of, and loads the model that is named.

use std::error::Error;

use ggml_llama::{Batch, ContextParams, Model, ModelParams, Pos, SamplerChain, SeqId, Special, build_info};

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args_os().nth(1).ok_or("usage: ggml-llama-consumer MODEL.gguf")?;
    let info = build_info();
    println!("llama.cpp {}", info.llama_version);
    println!("ggml {}", info.ggml_version);
    println!("source {}", info.source);
    println!("hash {}", info.source_hash);
    println!("cpu {}", info.cpu_sets.join(" "));

    let model = Model::load(path, &ModelParams::default())?;
    let vocab = model.vocab();
    println!("vocabulary {}", vocab.n_tokens());
    let mut context = model.new_context(&ContextParams::default().with_n_ctx(256).with_threads(1))?;
    let mut sampler = SamplerChain::greedy(&vocab)?;
    let prompt = vocab.tokenize("Tell me a story", true, Special::AsText)?;
    let mut batch = Batch::new();
    batch.add_sequence(&prompt, Pos(0), SeqId(0))?;
    let mut tokens = Vec::new();
    for pos in prompt.len() as i32..128 {
        context.decode(&batch)?;
        let token = sampler.sample_last(&context)?;
        if vocab.is_eog(token)? {
            break;
        }
        tokens.push(token);
        batch.clear();
        batch.add(token, Pos(pos), &[SeqId(0)], true)?;
    }
    println!("text {}", vocab.detokenize(&tokens, false)?);
    Ok(())
}
