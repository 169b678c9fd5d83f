//! LoRA adapters that do not fit the sound model of [`base`](crate::broken::base), or no model at all.

use crate::broken::base_options;
use crate::gguf::Gguf;
use crate::models::LoraOptions;
use crate::tensor::{Tensor, TensorType};

/// The adapter that fits [`base`](crate::broken::base).
#[must_use]
pub fn sound() -> Gguf {
    LoraOptions { base: base_options(), ..LoraOptions::default() }.build()
}

/// All of them, with their names.
#[must_use]
pub fn all() -> Vec<(String, Vec<u8>)> {
    let query = "blk.0.attn_q.weight";
    let without_query =
        || sound().without_tensor(&format!("{query}.lora_a")).without_tensor(&format!("{query}.lora_b"));
    let pair = |name: &str, a: [u64; 2], b: [u64; 2]| {
        let zeros = |d: [u64; 2]| vec![0.0; (d[0] * d[1]) as usize];
        without_query().with_tensor(Tensor::f32(format!("{name}.lora_a"), &a, &zeros(a))).with_tensor(Tensor::f32(
            format!("{name}.lora_b"),
            &b,
            &zeros(b),
        ))
    };
    let tensors: Vec<String> = sound().tensors().iter().map(|t| t.name.clone()).collect();
    let files = vec![
        ("adapter-type-missing", sound().without_kv("general.type")),
        ("adapter-type-model", sound().with_kv("general.type", "model")),
        ("adapter-kind-missing", sound().without_kv("adapter.type")),
        ("adapter-kind-unknown", sound().with_kv("adapter.type", "no-such-adapter")),
        ("adapter-kind-number", sound().with_kv("adapter.type", 5u32)),
        ("adapter-arch-missing", sound().without_kv("general.architecture")),
        ("adapter-arch-other", sound().with_kv("general.architecture", "bert")),
        ("adapter-arch-unknown", sound().with_kv("general.architecture", "no-such-architecture")),
        ("adapter-alpha-missing", sound().without_kv("adapter.lora.alpha")),
        ("adapter-alpha-string", sound().with_kv("adapter.lora.alpha", "8")),
        ("adapter-alpha-integer", sound().with_kv("adapter.lora.alpha", 8u32)),
        ("adapter-alpha-nan", sound().with_kv("adapter.lora.alpha", f32::NAN)),
        ("adapter-without-a", sound().without_tensor(&format!("{query}.lora_a"))),
        ("adapter-without-b", sound().without_tensor(&format!("{query}.lora_b"))),
        ("adapter-without-tensors", tensors.iter().fold(sound(), |g, name| g.without_tensor(name))),
        ("adapter-odd-name", sound().with_tensor(Tensor::f32("blk.0.attn_q.weight", &[2], &[0.0; 2]))),
        ("adapter-no-such-tensor", pair("blk.7.attn_q.weight", [32, 4], [4, 32])),
        ("adapter-wrong-input", pair(query, [16, 4], [4, 32])),
        ("adapter-wrong-output", pair(query, [32, 4], [4, 16])),
        ("adapter-ranks-differ", pair(query, [32, 4], [5, 32])),
        ("adapter-rank-0", pair(query, [32, 0], [0, 32])),
        ("adapter-not-transposed", pair(query, [4, 32], [32, 4])),
        ("adapter-three-dimensions", with_third_dimension()),
        ("adapter-embedding-ranks-differ", embedding([4, 538], [5, 32])),
        ("adapter-embedding-not-transposed", embedding([538, 4], [4, 32])),
        ("adapter-tensor-i32", with_type(26, 4)),
        ("adapter-tensor-f64", with_type(28, 8)),
        ("adapter-tensor-f16", with_type(1, 2)),
        ("adapter-type-number", sound().with_kv("general.type", 5u32)),
        ("adapter-arch-number", sound().with_kv("general.architecture", 5u32)),
        ("adapter-kind-array", sound().with_kv("adapter.type", vec!["lora"])),
        ("adapter-alpha-array", sound().with_kv("adapter.lora.alpha", vec![8.0f32, 8.0])),
        ("adapter-alpha-f64", sound().with_kv("adapter.lora.alpha", 8.0f64)),
        ("adapter-task-number", sound().with_kv("adapter.lora.task_name", 5u32)),
        ("adapter-invocation-tokens-signed", sound().with_kv("adapter.alora.invocation_tokens", vec![-1i32])),
        ("adapter-invocation-tokens-number", sound().with_kv("adapter.alora.invocation_tokens", 5u32)),
        ("adapter-invocation-tokens-empty", alora(Vec::new())),
        ("adapter-invocation-tokens-1e9", alora(vec![1_000_000_000])),
    ];
    files.into_iter().map(|(name, gguf)| (name.to_owned(), gguf.to_bytes())).collect()
}

const QUERY_A: &str = "blk.0.attn_q.weight.lora_a";

/// The loader looks at two dimensions only.
fn with_third_dimension() -> Gguf {
    sound().without_tensor(QUERY_A).with_tensor(Tensor::f32(QUERY_A, &[32, 4, 2], &[0.0; 256]))
}

/// For the token embedding the two matrices change places, and the loader does not compare their ranks.
fn embedding(a: [u64; 2], b: [u64; 2]) -> Gguf {
    let zeros = |d: [u64; 2]| vec![0.0; (d[0] * d[1]) as usize];
    sound().with_tensor(Tensor::f32("token_embd.weight.lora_a", &a, &zeros(a))).with_tensor(Tensor::f32(
        "token_embd.weight.lora_b",
        &b,
        &zeros(b),
    ))
}

fn with_type(ty: u32, size: usize) -> Gguf {
    let mut gguf = sound();
    if let Some(t) = gguf.tensor_mut(QUERY_A) {
        t.ty = TensorType(ty);
        t.data = vec![0; t.n_elements() as usize * size];
    }
    gguf
}

fn alora(tokens: Vec<u32>) -> Gguf {
    sound().with_kv("adapter.alora.invocation_tokens", tokens)
}

#[cfg(test)]
mod tests {
    use super::{all, sound};

    #[test]
    fn fits_the_sound_model() {
        assert_eq!(sound().tensors().len(), 4);
        assert_eq!(sound().tensor("blk.0.attn_q.weight.lora_a").unwrap().dims, [32, 4]);
        assert!(all().iter().all(|(_, bytes)| bytes.starts_with(b"GGUF")));
    }
}
