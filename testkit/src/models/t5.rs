//! An encoder with a decoder: the T5 architecture and a Unigram vocabulary.

use crate::gguf::Gguf;
use crate::models::weights::Weights;
use crate::ugm::{PAD, UgmVocab};

const N_EMBD: u64 = 64;
const N_LAYER: u32 = 2;
const N_HEAD: u32 = 4;
const N_FF: u64 = 96;
const N_BUCKETS: u64 = 32;

/// A model that reads a text with its encoder and writes with its decoder.
#[must_use]
pub fn tiny_t5() -> Gguf {
    with_seed(4)
}

/// The same with other weights.
#[must_use]
pub fn with_seed(seed: u64) -> Gguf {
    let vocab = UgmVocab::new();
    let n_vocab = vocab.n_tokens() as u64;
    let head = N_EMBD as u32 / N_HEAD;
    let metadata = Gguf::new()
        .with_kv("general.architecture", "t5")
        .with_kv("general.name", "tiny-t5")
        .with_kv("general.file_type", 0u32)
        .with_kv("t5.vocab_size", n_vocab as u32)
        .with_kv("t5.context_length", 128u32)
        .with_kv("t5.embedding_length", N_EMBD as u32)
        .with_kv("t5.block_count", N_LAYER)
        .with_kv("t5.decoder_block_count", N_LAYER)
        .with_kv("t5.feed_forward_length", N_FF as u32)
        .with_kv("t5.attention.head_count", N_HEAD)
        .with_kv("t5.attention.key_length", head)
        .with_kv("t5.attention.value_length", head)
        .with_kv("t5.attention.layer_norm_epsilon", 1e-6f32)
        .with_kv("t5.attention.layer_norm_rms_epsilon", 1e-6f32)
        .with_kv("t5.attention.relative_buckets_count", N_BUCKETS as u32)
        .with_kv("t5.decoder_start_token_id", PAD as u32);
    let mut weights =
        Weights::new(vocab.describe(metadata), seed).around("token_embd.weight", &[N_EMBD, n_vocab], 0.0, 1.0);
    for layer in 0..N_LAYER {
        weights = block(weights, &format!("enc.blk.{layer}"), false);
        weights = block(weights, &format!("dec.blk.{layer}"), true);
    }
    weights
        .norm("enc.output_norm.weight", N_EMBD)
        .norm("dec.output_norm.weight", N_EMBD)
        .output("output.weight", N_EMBD, &vocab.likings())
        .finish()
}

fn block(weights: Weights, prefix: &str, decoder: bool) -> Weights {
    let name = |part: &str| format!("{prefix}.{part}.weight");
    let mut weights = attention(weights.norm(name("attn_norm"), N_EMBD), prefix, "attn");
    // attention has no scale of its own here: the factors keep its input in proportion
    weights = weights.around(name("attn_rel_b"), &[u64::from(N_HEAD), N_BUCKETS], 0.0, 0.5);
    if decoder {
        weights = attention(weights.norm(name("cross_attn_norm"), N_EMBD), prefix, "cross_attn");
    }
    weights.norm(name("ffn_norm"), N_EMBD).matrix(name("ffn_up"), N_EMBD, N_FF, 1.5).matrix(
        name("ffn_down"),
        N_FF,
        N_EMBD,
        1.5,
    )
}

fn attention(weights: Weights, prefix: &str, kind: &str) -> Weights {
    let name = |part: &str| format!("{prefix}.{kind}_{part}.weight");
    weights
        .matrix(name("q"), N_EMBD, N_EMBD, 0.5)
        .matrix(name("k"), N_EMBD, N_EMBD, 0.5)
        .matrix(name("v"), N_EMBD, N_EMBD, 1.5)
        .matrix(name("o"), N_EMBD, N_EMBD, 1.5)
}

#[cfg(test)]
mod tests {
    use super::tiny_t5;

    #[test]
    fn both_halves() {
        let model = tiny_t5();
        assert!(model.tensor("enc.blk.1.attn_o.weight").is_some());
        assert!(model.tensor("dec.blk.1.cross_attn_q.weight").is_some());
        assert_eq!(model.tensor("dec.blk.0.attn_rel_b.weight").unwrap().dims, [4, 32]);
        assert_eq!(model.tensors().len(), 4 + 2 * (9 + 14) - 1 + 1);
    }
}
