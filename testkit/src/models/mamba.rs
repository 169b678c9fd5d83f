//! A recurrent model with the Mamba architecture and the vocabulary of the tiny Llama.

use crate::gguf::Gguf;
use crate::models::weights::Weights;
use crate::rng::Rng;
use crate::spm::SpmVocab;
use crate::tensor::Tensor;

const N_EMBD: u64 = 64;
const N_LAYER: u32 = 2;
const D_CONV: u64 = 4;
const D_INNER: u64 = 2 * N_EMBD;
const D_STATE: u64 = 16;
const DT_RANK: u64 = 8;

/// A model whose memory is a state of fixed size in place of a KV cache.
#[must_use]
pub fn tiny_mamba() -> Gguf {
    with_seed(5)
}

/// The same with other weights.
#[must_use]
pub fn with_seed(seed: u64) -> Gguf {
    let vocab = SpmVocab::new();
    let n_vocab = vocab.n_tokens() as u64;
    let metadata = Gguf::new()
        .with_kv("general.architecture", "mamba")
        .with_kv("general.name", "tiny-mamba")
        .with_kv("general.file_type", 0u32)
        .with_kv("mamba.vocab_size", n_vocab as u32)
        .with_kv("mamba.context_length", 256u32)
        .with_kv("mamba.embedding_length", N_EMBD as u32)
        .with_kv("mamba.block_count", N_LAYER)
        .with_kv("mamba.feed_forward_length", 0u32)
        .with_kv("mamba.attention.head_count", 0u32)
        .with_kv("mamba.attention.layer_norm_rms_epsilon", 1e-5f32)
        .with_kv("mamba.ssm.conv_kernel", D_CONV as u32)
        .with_kv("mamba.ssm.inner_size", D_INNER as u32)
        .with_kv("mamba.ssm.state_size", D_STATE as u32)
        .with_kv("mamba.ssm.time_step_rank", DT_RANK as u32);
    let mut weights =
        Weights::new(vocab.describe(metadata), seed).around("token_embd.weight", &[N_EMBD, n_vocab], 0.0, 1.0);
    for layer in 0..N_LAYER {
        let name = |part: &str| format!("blk.{layer}.{part}");
        weights = weights
            .norm(name("attn_norm.weight"), N_EMBD)
            .matrix(name("ssm_in.weight"), N_EMBD, 2 * D_INNER, 1.5)
            .around(name("ssm_conv1d.weight"), &[D_CONV, D_INNER], 0.2, 0.5)
            .bias(name("ssm_conv1d.bias"), D_INNER)
            .matrix(name("ssm_x.weight"), D_INNER, DT_RANK + 2 * D_STATE, 1.5)
            .matrix(name("ssm_dt.weight"), DT_RANK, D_INNER, 1.0)
            .bias(name("ssm_dt.bias"), D_INNER)
            .tensor(decay(seed, name("ssm_a")))
            .around(name("ssm_d"), &[D_INNER], 1.0, 0.1)
            .matrix(name("ssm_out.weight"), D_INNER, N_EMBD, 1.0);
    }
    weights.norm("output_norm.weight", N_EMBD).output("output.weight", N_EMBD, &vocab.likings()).finish()
}

/// The decay of the state must be negative, or the state grows without bound.
fn decay(seed: u64, name: String) -> Tensor {
    let values: Vec<f32> = Rng::new(seed, &name)
        .fill((D_STATE * D_INNER) as usize, 0.0, 0.5)
        .into_iter()
        .map(|v| -0.1 - v.abs())
        .collect();
    Tensor::f32(name, &[D_STATE, D_INNER], &values)
}

#[cfg(test)]
mod tests {
    use super::tiny_mamba;

    #[test]
    fn decay_is_negative() {
        let model = tiny_mamba();
        assert!(model.tensor("blk.1.ssm_a").unwrap().to_f32().iter().all(|v| *v < 0.0));
        assert_eq!(model.tensors().len(), 3 + 2 * 10);
    }
}
