//! Writes every generated file into a folder, to look at them or to try them with other programs.
//!
//! `cargo run -p ggml-llama-testkit --example dump -- FOLDER`

use std::io;
use std::path::Path;

use ggml_llama_testkit::{broken, models, splits, vocabs};

fn main() -> io::Result<()> {
    let folder = std::env::args().nth(1).unwrap_or_else(|| "generated".to_owned());
    let folder = Path::new(&folder);
    for sub in ["models", "vocabs", "splits", "broken", "broken-adapters", "broken-splits"] {
        std::fs::create_dir_all(folder.join(sub))?;
    }
    let write =
        |sub: &str, name: &str, bytes: &[u8]| std::fs::write(folder.join(sub).join(format!("{name}.gguf")), bytes);
    for (name, gguf) in [
        ("tiny-llama", models::tiny_llama()),
        ("tiny-llama-story", models::tiny_llama_story()),
        ("tiny-bert", models::tiny_bert()),
        ("tiny-bert-cls", models::tiny_bert_cls()),
        ("tiny-reranker", models::tiny_reranker()),
        ("tiny-mamba", models::tiny_mamba()),
        ("tiny-t5", models::tiny_t5()),
        ("tiny-lora", models::tiny_lora()),
        ("broken-base", broken::base()),
        ("broken-base-lora", broken::adapters::sound()),
    ] {
        write("models", name, &gguf.to_bytes())?;
    }
    for (name, gguf) in vocabs::all() {
        write("vocabs", name, &gguf.to_bytes())?;
    }
    splits::write_split(&models::tiny_llama(), &folder.join("splits"), "tiny-llama", 3)?;
    for (name, bytes) in broken::all() {
        write("broken", &name, &bytes)?;
    }
    for (name, bytes) in broken::adapters::all() {
        write("broken-adapters", &name, &bytes)?;
    }
    for model in broken::split_models::all() {
        model.write(&folder.join("broken-splits"))?;
    }
    Ok(())
}
