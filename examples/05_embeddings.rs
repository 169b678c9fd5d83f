//! Compares texts by their embeddings: prints the cosine of the angle between each pair.
//!
//! Works with embedding models (BERT and others) and, less well, with chat models.
//!
//! `cargo run --release --example 05_embeddings -- MODEL.gguf "a cat" "a kitten" "a motorway"`

use ggml_llama::{Batch, ContextParams, Model, ModelParams, Pooling, Pos, SeqId, Special, available_threads};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let path = args.next().ok_or("usage: 05_embeddings MODEL.gguf TEXT...")?;
    let mut texts: Vec<String> = args.collect();
    if texts.is_empty() {
        texts = ["a cat sleeps", "a kitten is asleep", "the motorway is closed"].map(str::to_owned).to_vec();
    }

    let model = Model::load(path, &ModelParams::default())?;
    let vocab = model.vocab();
    // All tokens of a text must be computed in one piece when the model is not causal: n_ubatch = n_batch.
    let params = ContextParams::default().with_n_ctx(512).with_n_batch(512).with_n_ubatch(512);
    let params = params.with_embeddings(true).with_pooling(Pooling::Mean).with_threads(available_threads());
    let mut context = model.new_context(&params)?;

    let mut vectors = Vec::new();
    let mut batch = Batch::new();
    for text in &texts {
        let mut tokens = vocab.tokenize(text, true, Special::AsText)?;
        tokens.truncate(context.n_batch() as usize);
        batch.clear();
        batch.add_sequence(&tokens, Pos(0), SeqId(0))?;
        context.memory().clear(false)?;
        context.decode(&batch)?;
        vectors.push(normalized(context.embeddings_seq(SeqId(0))?));
    }
    println!("{} texts, {} dimensions", vectors.len(), vectors.first().map_or(0, Vec::len));
    for (i, a) in vectors.iter().enumerate() {
        for (j, b) in vectors.iter().enumerate().skip(i + 1) {
            let cosine: f32 = a.iter().zip(b).map(|(x, y)| x * y).sum();
            println!("{cosine:7.4}  {:?} and {:?}", texts[i], texts[j]);
        }
    }
    Ok(())
}

fn normalized(vector: &[f32]) -> Vec<f32> {
    let norm = vector.iter().map(|x| x * x).sum::<f32>().sqrt().max(f32::MIN_POSITIVE);
    vector.iter().map(|x| x / norm).collect()
}
