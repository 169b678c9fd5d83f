//! Generates several continuations of one prompt at once: one batch carries a token of each sequence.
//!
//! `cargo run --release --example 06_batched -- MODEL.gguf "The weather today" 4 32`

use ggml_llama::{
    Batch, ContextParams, Model, ModelParams, Pos, Sampler, SamplerChain, SeqId, Special, Token, Utf8Decoder,
    available_threads,
};

/// One continuation.
struct Sequence {
    id: SeqId,
    sampler: SamplerChain,
    text: Utf8Decoder,
    output: String,
    /// Where its logits are in the last batch; `None` when it has ended.
    index: Option<usize>,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let path = args.next().ok_or("usage: 06_batched MODEL.gguf [PROMPT] [N_SEQUENCES] [N_TOKENS]")?;
    let prompt = args.next().unwrap_or_else(|| "The weather today".to_owned());
    let n_sequences: u32 = args.next().map_or(Ok(4), |n| n.parse())?;
    let n_predict: i32 = args.next().map_or(Ok(32), |n| n.parse())?;

    let model = Model::load(path, &ModelParams::default())?;
    let vocab = model.vocab();
    // One cache for all: the prompt is computed and kept once.
    let params = ContextParams::default().with_n_ctx(2048).with_n_seq_max(n_sequences).with_kv_unified(true);
    let mut context = model.new_context(&params.with_threads(available_threads()))?;

    let mut sequences = Vec::new();
    for seed in 0..n_sequences {
        let samplers = [Sampler::TopK { k: 40 }, Sampler::Temperature { t: 0.9 }, Sampler::Dist { seed }];
        let sampler = SamplerChain::new(&vocab, samplers)?;
        let id = SeqId(seed as i32);
        sequences.push(Sequence { id, sampler, text: Utf8Decoder::new(), output: String::new(), index: None });
    }

    // The prompt belongs to all sequences.
    let ids: Vec<SeqId> = sequences.iter().map(|sequence| sequence.id).collect();
    let tokens = vocab.tokenize(&prompt, true, Special::AsText)?;
    let mut batch = Batch::new();
    for (pos, token) in (0..).zip(&tokens) {
        batch.add(*token, Pos(pos), &ids, pos as usize + 1 == tokens.len())?;
    }
    context.decode(&batch)?;
    sequences.iter_mut().for_each(|sequence| sequence.index = Some(tokens.len() - 1));

    for pos in (tokens.len() as i32..).take(n_predict.max(0) as usize) {
        let mut next: Vec<(usize, Token)> = Vec::new();
        for (i, sequence) in sequences.iter_mut().enumerate() {
            let Some(index) = sequence.index else { continue };
            let token = sequence.sampler.sample(&context, index)?;
            if vocab.is_eog(token)? {
                sequence.index = None;
                continue;
            }
            sequence.output.push_str(sequence.text.push(&vocab.piece(token, false)?));
            next.push((i, token));
        }
        if next.is_empty() {
            break;
        }
        batch.clear();
        for (i, token) in next {
            sequences[i].index = Some(batch.len());
            batch.add(token, Pos(pos), &[sequences[i].id], true)?;
        }
        context.decode(&batch)?;
    }
    for sequence in &mut sequences {
        sequence.output.push_str(sequence.text.finish());
        println!("--- {}\n{prompt}{}", sequence.id, sequence.output);
    }
    Ok(())
}
