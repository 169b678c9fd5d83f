//! Well-formed files that describe a model that cannot be.

use crate::broken::{base, base_options};
use crate::gguf::Gguf;
use crate::models::bert::{BertOptions, Pooling};
use crate::models::{LlamaOptions, tiny_mamba, tiny_t5};
use crate::tensor::{Tensor, TensorType};
use crate::value::{Value, ValueType};

/// All of them, with their names.
#[must_use]
pub fn all() -> Vec<(String, Vec<u8>)> {
    let mut files = architecture();
    files.extend(sizes());
    files.extend(heads());
    files.extend(experts());
    files.extend(numbers());
    files.extend(tensors());
    files.extend(encoders());
    files.into_iter().map(|(name, gguf)| (name.to_owned(), gguf.to_bytes())).collect()
}

type Files = Vec<(&'static str, Gguf)>;

/// The sound model with one metadata entry changed and all tensors as they were.
fn with(key: &str, value: impl Into<Value>) -> Gguf {
    base().with_kv(key, value)
}

/// A model whose tensors agree with its metadata.
fn built(change: impl FnOnce(&mut LlamaOptions)) -> Gguf {
    let mut options = base_options();
    change(&mut options);
    options.build()
}

fn architecture() -> Files {
    vec![
        ("arch-missing", base().without_kv("general.architecture")),
        ("arch-unknown", with("general.architecture", "no-such-architecture")),
        ("arch-empty", with("general.architecture", "")),
        ("arch-number", with("general.architecture", 5u32)),
        ("arch-array", with("general.architecture", vec!["llama"])),
        ("arch-clip", with("general.architecture", "clip")),
        ("arch-other", with("general.architecture", "gpt2")),
        ("arch-adapter", with("general.type", "adapter")),
        ("name-number", with("general.name", 5u32)),
        ("file-type-9999", with("general.file_type", 9999u32)),
    ]
}

fn sizes() -> Files {
    vec![
        ("n-layer-missing", base().without_kv("llama.block_count")),
        ("n-layer-0", with("llama.block_count", 0u32)),
        ("n-layer-2", with("llama.block_count", 2u32)),
        ("n-layer-513", with("llama.block_count", 513u32)),
        ("n-layer-i32-max", with("llama.block_count", i32::MAX as u32)),
        ("n-layer-u32-max", with("llama.block_count", u32::MAX)),
        ("n-layer-string", with("llama.block_count", "1")),
        ("n-layer-array", with("llama.block_count", vec![1u32])),
        ("n-layer-nextn-2", with("llama.nextn_predict_layers", 2u32)),
        ("n-layer-all-nextn", with("llama.nextn_predict_layers", 1u32)),
        ("n-embd-missing", base().without_kv("llama.embedding_length")),
        ("n-embd-0", with("llama.embedding_length", 0u32)),
        ("n-embd-0-built", built(|o| o.n_embd = 0)),
        ("n-embd-max", with("llama.embedding_length", u32::MAX)),
        ("n-embd-out-64", with("llama.embedding_length_out", 64u32)),
        ("n-embd-out-max", with("llama.embedding_length_out", u32::MAX)),
        ("n-ctx-train-missing", base().without_kv("llama.context_length")),
        ("n-ctx-train-0", with("llama.context_length", 0u32)),
        ("n-ctx-train-max", with("llama.context_length", u32::MAX)),
        ("n-ff-missing", base().without_kv("llama.feed_forward_length")),
        ("n-ff-0", with("llama.feed_forward_length", 0u32)),
        ("n-ff-0-built", built(|o| o.n_ff = 0)),
        ("n-ff-array-short", with("llama.feed_forward_length", Value::empty_array(ValueType::U32))),
        ("n-ff-array-long", with("llama.feed_forward_length", vec![48u32; 600])),
        ("n-vocab-max", with("llama.vocab_size", u32::MAX)),
        ("n-vocab-0", with("llama.vocab_size", 0u32)),
    ]
}

fn heads() -> Files {
    vec![
        ("n-head-missing", base().without_kv("llama.attention.head_count")),
        ("n-head-0", with("llama.attention.head_count", 0u32)),
        ("n-head-0-built", built(|o| (o.n_head, o.n_head_kv) = (0, 0))),
        ("n-head-64", with("llama.attention.head_count", 64u32)),
        ("n-head-64-built", built(|o| (o.n_head, o.n_head_kv) = (64, 64))),
        ("n-head-3", with("llama.attention.head_count", 3u32)),
        ("n-head-max", with("llama.attention.head_count", u32::MAX)),
        ("n-head-odd-size-built", built(|o| (o.n_embd, o.n_head, o.n_head_kv) = (30, 2, 2))),
        ("n-head-array-long", with("llama.attention.head_count", vec![2u32; 600])),
        ("n-head-array-float", with("llama.attention.head_count", vec![2.0f32])),
        ("n-head-kv-0", with("llama.attention.head_count_kv", 0u32)),
        ("n-head-kv-0-built", built(|o| o.n_head_kv = 0)),
        ("n-head-kv-3", with("llama.attention.head_count_kv", 3u32)),
        ("n-head-kv-3-of-4-built", built(|o| (o.n_head, o.n_head_kv) = (4, 3))),
        ("n-head-kv-4-of-2-built", built(|o| o.n_head_kv = 4)),
        ("n-head-kv-max", with("llama.attention.head_count_kv", u32::MAX)),
        ("attention-key-length-0", with("llama.attention.key_length", 0u32)),
        ("attention-key-length-max", with("llama.attention.key_length", u32::MAX)),
        ("value-length-0", with("llama.attention.value_length", 0u32)),
        ("value-length-8", with("llama.attention.value_length", 8u32)),
        ("value-length-8-built", value_length_8()),
        ("rope-dimensions-0", with("llama.rope.dimension_count", 0u32)),
        ("rope-dimensions-7", with("llama.rope.dimension_count", 7u32)),
    ]
}

/// Keys of 16 numbers and values of 8, with tensors to match: the Llama graph wants them to be equal.
fn value_length_8() -> Gguf {
    let mut gguf = with("llama.attention.value_length", 8u32);
    for name in ["blk.0.attn_v.weight", "blk.0.attn_output.weight"] {
        if let Some(t) = gguf.tensor_mut(name) {
            *t = if name.ends_with("v.weight") {
                Tensor::f32(name, &[32, 16], &[0.1; 512])
            } else {
                Tensor::f32(name, &[32, 32], &[0.1; 1024])
            };
        }
    }
    gguf
}

fn experts() -> Files {
    let with_experts = |n: u32, used: u32| with("llama.expert_count", n).with_kv("llama.expert_used_count", used);
    vec![
        ("n-expert-max", with_experts(u32::MAX, 1)),
        ("n-expert-2-used-3", with_experts(2, 3)),
        ("n-expert-2-used-0", with_experts(2, 0)),
        ("n-expert-0-used-2", with("llama.expert_used_count", 2u32)),
        ("n-expert-2-groups-2", with_experts(2, 1).with_kv("llama.expert_group_count", 2u32)),
        ("n-expert-0-groups-2", with("llama.expert_group_count", 2u32)),
        ("n-expert-2-without-tensors", with_experts(2, 1)),
    ]
}

fn numbers() -> Files {
    let eps = "llama.attention.layer_norm_rms_epsilon";
    vec![
        ("eps-missing", base().without_kv(eps)),
        ("eps-nan", with(eps, f32::NAN)),
        ("eps-negative", with(eps, -1.0f32)),
        ("eps-infinite", with(eps, f32::INFINITY)),
        ("eps-0", with(eps, 0.0f32)),
        ("eps-integer", with(eps, 1u32)),
        ("rope-base-0", with("llama.rope.freq_base", 0.0f32)),
        ("rope-base-nan", with("llama.rope.freq_base", f32::NAN)),
        ("rope-base-negative", with("llama.rope.freq_base", -1.0f32)),
        ("rope-scaling-unknown", with("llama.rope.scaling.type", "no-such-scaling")),
        ("rope-scaling-empty", with("llama.rope.scaling.type", "")),
        ("rope-scaling-longrope", with("llama.rope.scaling.type", "longrope")),
        ("rope-scaling-yarn-0", yarn(0)),
        ("rope-factor-nan", with("llama.rope.scaling.factor", f32::NAN)),
        ("attention-scale-nan", with("llama.attention.scale", f32::NAN)),
        ("pooling-99", with("llama.pooling_type", 99u32)),
        ("pooling-rank-without-classifier", with("llama.pooling_type", 4u32)),
        ("causal-string", with("llama.attention.causal", "no")),
        ("causal-false", with("llama.attention.causal", false)),
        ("labels-numbers", with("llama.classifier.output_labels", vec![1u32, 2])),
        ("labels-not-an-array", with("llama.classifier.output_labels", "one")),
        ("split-count-2-alone", with("split.count", 2u16).with_kv("split.no", 0u16)),
        ("split-count-65535", with("split.count", u16::MAX).with_kv("split.no", 0u16)),
        ("split-count-u32", with("split.count", 1u32)),
    ]
}

fn yarn(n_ctx_orig: u32) -> Gguf {
    with("llama.rope.scaling.type", "yarn")
        .with_kv("llama.rope.scaling.factor", 4.0f32)
        .with_kv("llama.rope.scaling.original_context_length", n_ctx_orig)
}

fn tensors() -> Files {
    let replaced = |name: &str, tensor: Tensor| {
        let mut gguf = base();
        if let Some(t) = gguf.tensor_mut(name) {
            *t = tensor;
        }
        gguf
    };
    let retyped = |name: &str, ty: u32, size: usize| {
        let mut gguf = base();
        if let Some(t) = gguf.tensor_mut(name) {
            t.ty = TensorType(ty);
            t.data = vec![0; t.n_elements() as usize * size];
        }
        gguf
    };
    let norm = "blk.0.attn_norm.weight";
    let query = "blk.0.attn_q.weight";
    vec![
        ("tensor-missing-embedding", base().without_tensor("token_embd.weight")),
        ("tensor-missing-layer", base().without_tensor(query)),
        ("tensor-missing-all", base().tensors().to_vec().iter().fold(base(), |g, t| g.without_tensor(&t.name))),
        ("tensor-unused", base().with_tensor(Tensor::f32("no_such_tensor", &[4], &[0.0; 4]))),
        ("tensor-unused-layer", base().with_tensor(Tensor::f32("blk.9.attn_q.weight", &[4], &[0.0; 4]))),
        ("tensor-wrong-shape", replaced(query, Tensor::f32(query, &[32, 16], &[0.0; 512]))),
        ("tensor-transposed", replaced("blk.0.ffn_up.weight", transposed())),
        ("tensor-one-dimension", replaced(query, Tensor::f32(query, &[1024], &[0.0; 1024]))),
        ("tensor-norm-f16", replaced(norm, Tensor::f16(norm, &[32], &[1.0; 32]))),
        ("tensor-norm-i32", retyped(norm, 26, 4)),
        ("tensor-query-i32", retyped(query, 26, 4)),
        ("tensor-query-i8", retyped(query, 24, 1)),
        ("tensor-query-f64", retyped(query, 28, 8)),
        ("tensor-embedding-i32", retyped("token_embd.weight", 26, 4)),
        ("tensor-embedding-f64", retyped("token_embd.weight", 28, 8)),
        ("tensor-output-i16", retyped("output.weight", 25, 2)),
        ("tensor-bias-f16", base().with_tensor(Tensor::f16("blk.0.attn_q.bias", &[32], &[0.0; 32]))),
        ("tensor-rope-factors-0", base().with_tensor(Tensor::f32("rope_freqs.weight", &[8], &[0.0; 8]))),
        ("tensor-rope-factors-f16", base().with_tensor(Tensor::f16("rope_freqs.weight", &[8], &[1.0; 8]))),
        ("tensor-nan", replaced(query, Tensor::f32(query, &[32, 32], &[f32::NAN; 1024]))),
        ("tensor-infinite", replaced("output.weight", infinite())),
    ]
}

fn transposed() -> Tensor {
    Tensor::f32("blk.0.ffn_up.weight", &[48, 32], &[0.0; 48 * 32])
}

fn infinite() -> Tensor {
    let dims = base().tensor("output.weight").map(|t| t.dims.clone()).unwrap_or_default();
    let n = dims.iter().product::<u64>() as usize;
    Tensor::f32("output.weight", &dims, &vec![f32::INFINITY; n])
}

/// Models of other architectures.
fn encoders() -> Files {
    let bert = |pooling: Pooling| BertOptions { pooling: Some(pooling), ..BertOptions::default() }.build();
    vec![
        ("bert-pooling-99", bert(Pooling::Mean).with_kv("bert.pooling_type", 99u32)),
        ("bert-pooling-last", bert(Pooling::Last)),
        ("bert-rank-without-classifier", bert(Pooling::Rank)),
        ("bert-rank-labels-without-classifier", bert_with_labels_only()),
        ("bert-token-types-0", bert(Pooling::Mean).with_kv("tokenizer.ggml.token_type_count", 0u32)),
        ("bert-token-types-missing", bert(Pooling::Mean).without_kv("tokenizer.ggml.token_type_count")),
        ("bert-causal", bert(Pooling::Mean).with_kv("bert.attention.causal", true)),
        ("bert-eps-nan", bert(Pooling::Mean).with_kv("bert.attention.layer_norm_epsilon", f32::NAN)),
        ("bert-eps-negative", bert(Pooling::Mean).with_kv("bert.attention.layer_norm_epsilon", -1.0f32)),
        ("mamba-conv-0", tiny_mamba().with_kv("mamba.ssm.conv_kernel", 0u32)),
        ("mamba-state-0", tiny_mamba().with_kv("mamba.ssm.state_size", 0u32)),
        ("mamba-inner-0", tiny_mamba().with_kv("mamba.ssm.inner_size", 0u32)),
        ("mamba-rank-max", tiny_mamba().with_kv("mamba.ssm.time_step_rank", u32::MAX)),
        ("t5-buckets-0", tiny_t5().with_kv("t5.attention.relative_buckets_count", 0u32)),
        ("t5-without-buckets", t5_without_bias()),
        ("t5-start-token-1e9", tiny_t5().with_kv("t5.decoder_start_token_id", 1_000_000_000u32)),
        ("t5-decoder-layers-9", tiny_t5().with_kv("t5.decoder_block_count", 9u32)),
        ("t5-decoder-layers-max", tiny_t5().with_kv("t5.decoder_block_count", u32::MAX)),
    ]
}

/// More labels than the width of the model, and no classifier that would give each of them a number.
fn bert_with_labels_only() -> Gguf {
    let labels: Vec<String> = (0..100).map(|i| format!("label {i}")).collect();
    BertOptions { pooling: Some(Pooling::Rank), ..BertOptions::default() }
        .build()
        .with_kv("bert.classifier.output_labels", labels)
}

/// The position bias is optional to the loader, layer by layer; the graph needs at least one.
fn t5_without_bias() -> Gguf {
    ["enc.blk.0", "enc.blk.1", "dec.blk.0", "dec.blk.1"]
        .iter()
        .fold(tiny_t5(), |g, block| g.without_tensor(&format!("{block}.attn_rel_b.weight")))
}
