//! Encoders with the BERT architecture: for embeddings and for ranking.

use crate::gguf::Gguf;
use crate::models::weights::Weights;
use crate::wpm::WpmVocab;

/// How the vectors of a text's tokens become one, with upstream's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pooling {
    /// One vector per token.
    None = 0,
    /// Their mean.
    Mean = 1,
    /// That of the first token.
    Cls = 2,
    /// That of the last token.
    Last = 3,
    /// A score, from a classifier.
    Rank = 4,
}

/// What can be varied.
#[derive(Clone, Debug, PartialEq)]
pub struct BertOptions {
    /// `general.name`.
    pub name: String,
    /// Seed of the weights.
    pub seed: u64,
    /// Context length; the model has this many positions.
    pub n_ctx_train: u32,
    /// Number of layers.
    pub n_layer: u32,
    /// Pooling; no entry for `None`.
    pub pooling: Option<Pooling>,
    /// Names of the classifier's outputs; no classifier without any.
    pub labels: Vec<String>,
}

/// Width.
pub const N_EMBD: u64 = 64;
const N_HEAD: u32 = 4;
const N_FF: u64 = 96;

impl Default for BertOptions {
    fn default() -> Self {
        Self {
            name: "tiny-bert".to_owned(),
            seed: 1,
            n_ctx_train: 128,
            n_layer: 2,
            pooling: Some(Pooling::Mean),
            labels: Vec::new(),
        }
    }
}

/// An embedding model with mean pooling.
#[must_use]
pub fn tiny_bert() -> Gguf {
    BertOptions::default().build()
}

/// An embedding model whose vector is that of the first token.
#[must_use]
pub fn tiny_bert_cls() -> Gguf {
    BertOptions { name: "tiny-bert-cls".to_owned(), pooling: Some(Pooling::Cls), ..BertOptions::default() }.build()
}

/// A model that gives a pair of texts one score.
#[must_use]
pub fn tiny_reranker() -> Gguf {
    BertOptions {
        name: "tiny-reranker".to_owned(),
        pooling: Some(Pooling::Rank),
        labels: vec!["score".to_owned()],
        ..BertOptions::default()
    }
    .build()
}

impl BertOptions {
    /// The model.
    #[must_use]
    pub fn build(&self) -> Gguf {
        let vocab = WpmVocab::new();
        let mut weights = Weights::new(self.metadata(&vocab), self.seed)
            .around("token_embd.weight", &[N_EMBD, vocab.n_tokens() as u64], 0.0, 1.0)
            .around("token_types.weight", &[N_EMBD, 2], 0.0, 0.2)
            .around("position_embd.weight", &[N_EMBD, u64::from(self.n_ctx_train)], 0.0, 0.5)
            .norm("token_embd_norm.weight", N_EMBD)
            .bias("token_embd_norm.bias", N_EMBD);
        for layer in 0..self.n_layer {
            weights = self.layer(weights, layer);
        }
        if !self.labels.is_empty() {
            let n_out = self.labels.len() as u64;
            weights = weights
                .matrix("cls.weight", N_EMBD, N_EMBD, 1.0)
                .bias("cls.bias", N_EMBD)
                .matrix("cls.output.weight", N_EMBD, n_out, 2.0)
                .bias("cls.output.bias", n_out);
        }
        weights.finish()
    }

    fn metadata(&self, vocab: &WpmVocab) -> Gguf {
        let mut gguf = Gguf::new()
            .with_kv("general.architecture", "bert")
            .with_kv("general.name", self.name.as_str())
            .with_kv("general.file_type", 0u32)
            .with_kv("bert.vocab_size", vocab.n_tokens() as u32)
            .with_kv("bert.context_length", self.n_ctx_train)
            .with_kv("bert.embedding_length", N_EMBD as u32)
            .with_kv("bert.block_count", self.n_layer)
            .with_kv("bert.feed_forward_length", N_FF as u32)
            .with_kv("bert.attention.head_count", N_HEAD)
            .with_kv("bert.attention.layer_norm_epsilon", 1e-5f32)
            .with_kv("bert.attention.causal", false);
        if let Some(pooling) = self.pooling {
            gguf.set_kv("bert.pooling_type", pooling as u32);
        }
        if !self.labels.is_empty() {
            gguf.set_kv("bert.classifier.output_labels", self.labels.clone());
        }
        vocab.describe(gguf)
    }

    fn layer(&self, weights: Weights, layer: u32) -> Weights {
        let name = |part: &str| format!("blk.{layer}.{part}");
        let mut weights = weights;
        for part in ["attn_q", "attn_k", "attn_v", "attn_output"] {
            weights = weights
                .matrix(name(&format!("{part}.weight")), N_EMBD, N_EMBD, 1.2)
                .bias(name(&format!("{part}.bias")), N_EMBD);
        }
        weights
            .norm(name("attn_output_norm.weight"), N_EMBD)
            .bias(name("attn_output_norm.bias"), N_EMBD)
            .matrix(name("ffn_up.weight"), N_EMBD, N_FF, 1.2)
            .bias(name("ffn_up.bias"), N_FF)
            .matrix(name("ffn_down.weight"), N_FF, N_EMBD, 1.2)
            .bias(name("ffn_down.bias"), N_EMBD)
            .norm(name("layer_output_norm.weight"), N_EMBD)
            .bias(name("layer_output_norm.bias"), N_EMBD)
    }
}

#[cfg(test)]
mod tests {
    use super::{tiny_bert, tiny_bert_cls, tiny_reranker};
    use crate::value::Value;

    #[test]
    fn pooling_and_head() {
        assert_eq!(tiny_bert().kv("bert.pooling_type"), Some(&Value::U32(1)));
        assert_eq!(tiny_bert_cls().kv("bert.pooling_type"), Some(&Value::U32(2)));
        assert!(tiny_bert().tensor("cls.weight").is_none());
        let reranker = tiny_reranker();
        assert_eq!(reranker.kv("bert.pooling_type"), Some(&Value::U32(4)));
        assert_eq!(reranker.tensor("cls.output.weight").unwrap().dims, [64, 1]);
        assert_eq!(reranker.tensors().len(), 5 + 2 * 16 + 4);
    }
}
