//! A decoder with the Llama architecture and an SPM vocabulary.

use crate::gguf::Gguf;
use crate::models::weights::Weights;
use crate::rng::Rng;
use crate::spm::{EOS, SpmVocab};
use crate::tensor::Tensor;

/// What [`tiny_llama_story`] writes, greedily, after any prompt that does not end inside the story.
pub const STORY: &str = "Once upon a time there lived one small llama who liked to eat fresh green grass \u{1f999}.";

/// A chat template (ChatML) that upstream's template engine knows.
pub const CHATML: &str = "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] \
    + '<|im_end|>' + '\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";

/// What can be varied.
#[derive(Clone, Debug, PartialEq)]
pub struct LlamaOptions {
    /// `general.name`.
    pub name: String,
    /// Seed of the weights.
    pub seed: u64,
    /// Context length of the training.
    pub n_ctx_train: u32,
    /// Number of layers.
    pub n_layer: u32,
    /// Width.
    pub n_embd: u32,
    /// Number of attention heads.
    pub n_head: u32,
    /// Number of key and value heads.
    pub n_head_kv: u32,
    /// Width of the feed-forward part.
    pub n_ff: u32,
    /// `tokenizer.ggml.add_bos_token`; no entry for `None`, which upstream reads as true.
    pub add_bos: Option<bool>,
    /// `tokenizer.ggml.add_eos_token`; no entry for `None`, which upstream reads as false.
    pub add_eos: Option<bool>,
    /// `tokenizer.chat_template`.
    pub chat_template: Option<String>,
    /// Weights that tell a [`STORY`] instead of random ones.
    pub story: bool,
}

impl Default for LlamaOptions {
    fn default() -> Self {
        Self {
            name: "tiny-llama".to_owned(),
            // tried out: with this one the best token is ahead by a margin that outlasts rounding
            seed: 15,
            n_ctx_train: 256,
            n_layer: 2,
            n_embd: 128,
            n_head: 4,
            n_head_kv: 2,
            n_ff: 192,
            add_bos: None,
            add_eos: None,
            chat_template: Some(CHATML.to_owned()),
            story: false,
        }
    }
}

/// The default model. What it generates depends on the whole prompt; it is words without sense.
#[must_use]
pub fn tiny_llama() -> Gguf {
    LlamaOptions::default().build()
}

/// A model whose greedy continuation is known: [`STORY`], then the end of the sequence.
#[must_use]
pub fn tiny_llama_story() -> Gguf {
    LlamaOptions { story: true, name: "tiny-llama-story".to_owned(), ..LlamaOptions::default() }.build()
}

/// The tokens of [`STORY`] and the end of the sequence.
#[must_use]
pub fn story_tokens(vocab: &SpmVocab) -> Vec<i32> {
    let mut tokens = vocab.tokenize(STORY);
    tokens.push(EOS);
    tokens
}

impl LlamaOptions {
    /// The model.
    #[must_use]
    pub fn build(&self) -> Gguf {
        let vocab = SpmVocab::new();
        let weights = Weights::new(self.metadata(&vocab), self.seed);
        let n_embd = u64::from(self.n_embd);
        let mut weights = match self.story {
            true => weights.tensor(self.story_table(&vocab, "token_embd.weight")),
            false => weights.around("token_embd.weight", &[n_embd, vocab.n_tokens() as u64], 0.0, 1.0),
        };
        for layer in 0..self.n_layer {
            weights = self.layer(weights, layer);
        }
        weights = weights.norm("output_norm.weight", n_embd);
        match self.story {
            true => weights.tensor(self.story_table(&vocab, "output.weight")),
            false => weights.output("output.weight", n_embd, &vocab.likings()),
        }
        .finish()
    }

    fn metadata(&self, vocab: &SpmVocab) -> Gguf {
        let n_rot = self.n_embd.checked_div(self.n_head).unwrap_or(0);
        let gguf = Gguf::new()
            .with_kv("general.architecture", "llama")
            .with_kv("general.name", self.name.as_str())
            .with_kv("general.file_type", 0u32)
            .with_kv("llama.vocab_size", vocab.n_tokens() as u32)
            .with_kv("llama.context_length", self.n_ctx_train)
            .with_kv("llama.embedding_length", self.n_embd)
            .with_kv("llama.block_count", self.n_layer)
            .with_kv("llama.feed_forward_length", self.n_ff)
            .with_kv("llama.attention.head_count", self.n_head)
            .with_kv("llama.attention.head_count_kv", self.n_head_kv)
            .with_kv("llama.attention.layer_norm_rms_epsilon", 1e-5f32)
            .with_kv("llama.rope.dimension_count", n_rot)
            .with_kv("llama.rope.freq_base", 10000.0f32);
        let mut gguf = vocab.describe(gguf);
        if let Some(add) = self.add_bos {
            gguf.set_kv("tokenizer.ggml.add_bos_token", add);
        }
        if let Some(add) = self.add_eos {
            gguf.set_kv("tokenizer.ggml.add_eos_token", add);
        }
        if let Some(template) = &self.chat_template {
            gguf.set_kv("tokenizer.chat_template", template.as_str());
        }
        gguf
    }

    fn layer(&self, weights: Weights, layer: u32) -> Weights {
        let (n_embd, n_ff) = (u64::from(self.n_embd), u64::from(self.n_ff));
        let n_kv = u64::from(self.n_embd.checked_div(self.n_head).unwrap_or(0) * self.n_head_kv);
        // a story must not be drowned by what the layers add
        let gain = if self.story { 0.02 } else { 1.0 };
        let name = |part: &str| format!("blk.{layer}.{part}.weight");
        weights
            .norm(name("attn_norm"), n_embd)
            .matrix(name("attn_q"), n_embd, n_embd, 1.5)
            .matrix(name("attn_k"), n_embd, n_kv, 1.5)
            .matrix(name("attn_v"), n_embd, n_kv, 1.5)
            .matrix(name("attn_output"), n_embd, n_embd, 1.5 * gain)
            .norm(name("ffn_norm"), n_embd)
            .matrix(name("ffn_gate"), n_embd, n_ff, 1.5)
            .matrix(name("ffn_up"), n_embd, n_ff, 1.5)
            .matrix(name("ffn_down"), n_ff, n_embd, gain)
    }

    /// The token embeddings or the output matrix of a story.
    ///
    /// Each token of the story has an axis of its own, on which the output finds the next token; all other tokens
    /// share the axis that leads to the first one.
    fn story_table(&self, vocab: &SpmVocab, name: &str) -> Tensor {
        let width = self.n_embd as usize;
        let mut values = Rng::new(self.seed, name).fill(width * vocab.n_tokens(), 0.0, 0.05);
        let story = story_tokens(vocab);
        let mut raise = |token: usize, axis: usize| {
            if let Some(x) = values.get_mut(token * width + axis) {
                *x += 4.0;
            }
        };
        if name == "output.weight" {
            story.iter().enumerate().for_each(|(axis, token)| raise(*token as usize, axis));
        } else {
            for token in 0..vocab.n_tokens() {
                // the last token of the story starts it again
                let place = story.iter().take(story.len() - 1).position(|t| *t as usize == token);
                raise(token, place.map_or(0, |p| p + 1));
            }
        }
        Tensor::f32(name, &[width as u64, vocab.n_tokens() as u64], &values)
    }
}

#[cfg(test)]
mod tests {
    use super::{LlamaOptions, story_tokens, tiny_llama};
    use crate::spm::SpmVocab;

    #[test]
    fn shapes() {
        let model = tiny_llama();
        let n_vocab = SpmVocab::new().n_tokens() as u64;
        assert_eq!(model.tensors().len(), 3 + 2 * 9);
        assert_eq!(model.tensor("token_embd.weight").unwrap().dims, [128, n_vocab]);
        assert_eq!(model.tensor("blk.1.attn_k.weight").unwrap().dims, [128, 64]);
        assert_eq!(model.tensor("blk.0.ffn_down.weight").unwrap().dims, [192, 128]);
        for tensor in model.tensors() {
            assert_eq!(tensor.data.len() as u64, 4 * tensor.n_elements(), "{}", tensor.name);
        }
        assert!(model.to_bytes().len() < 2_000_000);
    }

    #[test]
    fn same_seed_same_bytes() {
        assert_eq!(tiny_llama().to_bytes(), tiny_llama().to_bytes());
        let other = LlamaOptions { seed: 2, ..LlamaOptions::default() };
        assert_ne!(other.build().to_bytes(), tiny_llama().to_bytes());
    }

    #[test]
    fn story_visits_each_token_once() {
        let tokens = story_tokens(&SpmVocab::new());
        let mut unique = tokens.clone();
        unique.sort_unstable();
        unique.dedup();
        assert_eq!(unique.len(), tokens.len());
        assert!(tokens.len() < 100);
    }
}
