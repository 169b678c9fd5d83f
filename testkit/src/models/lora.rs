//! LoRA adapters for the tiny Llama.

use crate::gguf::Gguf;
use crate::models::llama::LlamaOptions;
use crate::models::weights::Weights;

/// What can be varied.
#[derive(Clone, Debug, PartialEq)]
pub struct LoraOptions {
    /// Seed of the weights.
    pub seed: u64,
    /// Rank of the two matrices.
    pub rank: u32,
    /// `adapter.lora.alpha`: the change is scaled by alpha / rank.
    pub alpha: f32,
    /// The model that the adapter fits.
    pub base: LlamaOptions,
}

impl Default for LoraOptions {
    fn default() -> Self {
        Self { seed: 7, rank: 4, alpha: 2.0, base: LlamaOptions::default() }
    }
}

/// An adapter for [`tiny_llama`](crate::tiny_llama) that changes what it generates.
#[must_use]
pub fn tiny_lora() -> Gguf {
    LoraOptions::default().build()
}

impl LoraOptions {
    /// The adapter.
    #[must_use]
    pub fn build(&self) -> Gguf {
        let (n_embd, rank) = (u64::from(self.base.n_embd), u64::from(self.rank));
        let metadata = Gguf::new()
            .with_kv("general.type", "adapter")
            .with_kv("general.architecture", "llama")
            .with_kv("general.name", "tiny-lora")
            .with_kv("adapter.type", "lora")
            .with_kv("adapter.lora.alpha", self.alpha);
        let mut weights = Weights::new(metadata, self.seed);
        for layer in 0..self.base.n_layer {
            for part in ["attn_q", "attn_output"] {
                let name = format!("blk.{layer}.{part}.weight");
                weights = weights.matrix(format!("{name}.lora_a"), n_embd, rank, 1.0).matrix(
                    format!("{name}.lora_b"),
                    rank,
                    n_embd,
                    1.0,
                );
            }
        }
        weights.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::tiny_lora;

    #[test]
    fn pairs() {
        let adapter = tiny_lora();
        assert_eq!(adapter.tensors().len(), 8);
        assert_eq!(adapter.tensor("blk.0.attn_q.weight.lora_a").unwrap().dims, [128, 4]);
        assert_eq!(adapter.tensor("blk.0.attn_q.weight.lora_b").unwrap().dims, [4, 128]);
    }
}
