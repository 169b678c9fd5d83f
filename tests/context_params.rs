//! Making contexts: what cannot work is a typed error that names the parameter, and what can works.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::{
    batch_of, greedy, load, parameter_of, real_model_path, relative_difference, small, tiny_bert, tiny_llama,
    tiny_mamba, tiny_t5, tokens,
};
use ggml_llama::{
    Attention, CacheType, Context, ContextParams, DecodeError, Error, FlashAttention, Model, Pooling, RopeScaling,
};
use ggml_llama_testkit::{self as testkit, LlamaOptions};

const PROMPT: [i32; 6] = [1, 300, 411, 372, 290, 350];

fn changed(change: impl FnOnce(&mut ContextParams)) -> ContextParams {
    let mut params = small();
    change(&mut params);
    params
}

fn refused(model: &Model, change: impl FnOnce(&mut ContextParams)) -> &'static str {
    parameter_of(model.new_context(&changed(change)))
}

fn logits(model: &Model, params: &ContextParams) -> Vec<f32> {
    let mut context = model.new_context(params).unwrap();
    context.decode(&batch_of(&tokens(&PROMPT), 0)).unwrap();
    context.logits_last().unwrap().to_vec()
}

#[test]
fn no_n_ctx_takes_the_training_length() {
    let context = tiny_llama().new_context(&changed(|p| p.n_ctx = 0)).unwrap();
    assert_eq!((context.n_ctx(), context.n_ctx_seq()), (256, 256));
    let longer = LlamaOptions { n_ctx_train: 1024, ..LlamaOptions::default() }.build();
    let context =
        load(testkit::cached("longer.gguf", &longer).unwrap()).new_context(&changed(|p| p.n_ctx = 0)).unwrap();
    assert_eq!(context.n_ctx(), 1024);
}

#[test]
fn sizes_are_shared_by_the_sequences() {
    let model = tiny_llama();
    let context = model.new_context(&small().with_n_ctx(512).with_n_seq_max(2)).unwrap();
    assert_eq!((context.n_ctx(), context.n_ctx_seq(), context.n_seq_max()), (512, 256, 2));
    let context = model.new_context(&small().with_n_ctx(512).with_n_seq_max(2).with_kv_unified(true)).unwrap();
    assert_eq!((context.n_ctx(), context.n_ctx_seq()), (512, 512));
    // A causal model never takes more at once than it can remember.
    let context = model.new_context(&small().with_n_batch(100_000).with_n_ubatch(90_000)).unwrap();
    assert_eq!((context.n_batch(), context.n_ubatch()), (256, 256));
    let context = model.new_context(&changed(|p| (p.n_batch, p.n_ubatch) = (64, 0))).unwrap();
    assert_eq!((context.n_batch(), context.n_ubatch()), (64, 64));
}

/// Linux grants the memory and ends the process when it is touched.
#[test]
fn a_context_larger_than_memory_is_refused() {
    // 128 layers with 256 bytes per token each: 32 KiB, times 2^31 tokens 67108864 MiB.
    let deep = LlamaOptions { n_layer: 128, n_embd: 64, n_head: 4, n_head_kv: 4, n_ff: 8, ..LlamaOptions::default() };
    let model = load(testkit::cached("deep.gguf", &deep.build()).unwrap());
    for n_ctx in [1 << 31, (1 << 31) - 256] {
        let error = model.new_context(&changed(|p| p.n_ctx = n_ctx)).unwrap_err();
        let Error::InvalidParameter { name, value, expected } = &error else { panic!("{error:?}") };
        assert_eq!((*name, value), ("n_ctx", &n_ctx.to_string()));
        let needed = expected.split_whitespace().rev().nth(1).unwrap().parse::<u64>().unwrap();
        assert!((67_108_000..70_000_000).contains(&needed), "{expected}");
    }
    // Beyond 2^31 upstream's rounding wraps.
    for n_ctx in [(1 << 31) + 1, u32::MAX - 255, u32::MAX] {
        assert_eq!(refused(&model, |p| p.n_ctx = n_ctx), "n_ctx");
        assert_eq!(refused(&tiny_mamba(), |p| p.n_ctx = n_ctx), "n_ctx");
        assert_eq!(refused(&tiny_bert(), |p| p.n_ctx = n_ctx), "n_ctx");
    }
}

/// No cache, but the attention of 2^20 tokens at once takes terabytes.
#[test]
fn a_computation_larger_than_memory_is_refused() {
    let huge = changed(|p| (p.n_ctx, p.n_batch, p.n_ubatch) = (1 << 20, 1 << 20, 1 << 20));
    let model = tiny_bert();
    let result = model.new_context(&huge);
    assert!(matches!(result, Err(Error::ContextCreation { .. } | Error::InvalidParameter { .. })), "{result:?}");
    model.new_context(&small()).unwrap();
}

#[test]
fn the_real_model_with_a_context_larger_than_memory() {
    let Some(path) = real_model_path() else { return };
    assert_eq!(refused(&load(path), |p| p.n_ctx = 1 << 31), "n_ctx");
}

#[test]
fn numbers_out_of_range() {
    let model = tiny_llama();
    assert_eq!(refused(&model, |p| p.n_batch = 0), "n_batch");
    assert_eq!(refused(&model, |p| p.n_batch = u32::MAX), "n_batch");
    assert_eq!(refused(&model, |p| p.n_ubatch = u32::MAX), "n_ubatch");
    assert_eq!(refused(&model, |p| p.n_seq_max = 0), "n_seq_max");
    assert_eq!(refused(&model, |p| p.n_seq_max = 257), "n_seq_max");
    for bad in [0, -1, 513, i32::MAX, i32::MIN] {
        assert_eq!(refused(&model, |p| p.n_threads = bad), "n_threads");
        assert_eq!(refused(&model, |p| p.n_threads_batch = bad), "n_threads_batch");
    }
    // output_reserve asserts on each of these.
    assert_eq!(refused(&model, |p| (p.n_batch, p.n_seq_max) = (3, 4)), "n_ctx");
    assert_eq!(refused(&model, |p| (p.n_ctx, p.n_seq_max) = (3, 4)), "n_ctx");
    assert_eq!(refused(&model, |p| (p.n_outputs_max, p.n_seq_max) = (3, 4)), "n_outputs_max");
    // The largest that is allowed.
    let many = model.new_context(&changed(|p| (p.n_ctx, p.n_seq_max, p.kv_unified) = (256, 256, true))).unwrap();
    assert_eq!(many.n_seq_max(), 256);
}

#[test]
fn floats_that_cannot_work() {
    type Field = fn(&mut ContextParams) -> &mut f32;
    let fields: [(&str, Field); 6] = [
        ("rope_freq_base", |p| &mut p.rope_freq_base),
        ("rope_freq_scale", |p| &mut p.rope_freq_scale),
        ("yarn_ext_factor", |p| &mut p.yarn_ext_factor),
        ("yarn_attn_factor", |p| &mut p.yarn_attn_factor),
        ("yarn_beta_fast", |p| &mut p.yarn_beta_fast),
        ("yarn_beta_slow", |p| &mut p.yarn_beta_slow),
    ];
    let model = tiny_llama();
    for (name, field) in fields {
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            assert_eq!(refused(&model, |p| *field(p) = bad), name);
        }
    }
    for (name, bad) in [("rope_freq_base", -1.0), ("rope_freq_scale", -1.0), ("rope_freq_scale", 1e-30)] {
        let field = fields.iter().find(|(n, _)| *n == name).unwrap().1;
        assert_eq!(refused(&model, |p| *field(p) = bad), name);
    }
}

#[test]
fn scaled_positions_change_the_result_and_not_the_model() {
    let model = tiny_llama();
    let plain = logits(&model, &small());
    let scaled = changed(|p| (p.rope_scaling, p.rope_freq_scale) = (RopeScaling::Linear, 0.5));
    assert!(relative_difference(&logits(&model, &scaled), &plain) > 1e-3);
    let yarn = changed(|p| (p.rope_scaling, p.rope_freq_scale) = (RopeScaling::Yarn, 0.25));
    assert!(relative_difference(&logits(&model, &yarn), &plain) > 1e-3);
    // Upstream writes the stretched length into the model; what it was trained with stays the answer.
    assert_eq!(model.n_ctx_train(), 256);
    assert_eq!(model.new_context(&changed(|p| p.n_ctx = 0)).unwrap().n_ctx(), 256);
    assert_eq!(logits(&model, &small()), plain);
}

/// It is also the length of an encoder's output until there is one: zero of it is an assertion.
#[test]
fn scaled_positions_do_not_reach_the_encoder() {
    let model = tiny_t5();
    let yarn = changed(|p| (p.rope_scaling, p.rope_freq_scale, p.yarn_orig_ctx) = (RopeScaling::Yarn, 1e4, 1));
    model.new_context(&yarn).unwrap();
    model.new_context(&small()).unwrap();
    assert_eq!(model.new_context(&changed(|p| p.n_ctx = 0)).unwrap().n_ctx(), 256);
}

#[test]
fn quantized_caches_need_flash_attention() {
    let model = tiny_llama();
    let off = small().with_flash_attention(FlashAttention::Disabled);
    let cache = |k, v| off.clone().with_cache_types(k, v);
    for quantized in
        [CacheType::Q8_0, CacheType::Q4_0, CacheType::Q4_1, CacheType::Q5_0, CacheType::Q5_1, CacheType::Iq4Nl]
    {
        assert_eq!(parameter_of(model.new_context(&cache(CacheType::F16, quantized))), "type_v");
        assert_eq!(parameter_of(model.new_context(&cache(quantized, CacheType::F16))), "type_k");
    }
    let exact = logits(&model, &cache(CacheType::F32, CacheType::F32));
    let on = off.clone().with_flash_attention(FlashAttention::Enabled);
    for (quantized, tolerance) in [
        (CacheType::F16, 0.01),
        (CacheType::Bf16, 0.05),
        (CacheType::Q8_0, 0.05),
        (CacheType::Q5_1, 0.3),
        (CacheType::Q5_0, 0.3),
        (CacheType::Q4_1, 0.5),
        (CacheType::Q4_0, 0.5),
        (CacheType::Iq4Nl, 0.5),
    ] {
        let difference =
            relative_difference(&logits(&model, &on.clone().with_cache_types(quantized, quantized)), &exact);
        assert!(difference > 0.0 && difference < tolerance, "{quantized:?}: {difference}");
    }
}

#[test]
fn a_cache_type_that_does_not_fit_the_heads_is_refused_with_upstreams_words() {
    // Heads of 16 numbers, blocks of 32.
    let model = load(testkit::cached("sound.gguf", &testkit::broken::base()).unwrap());
    let result = model.new_context(&small().with_cache_types(CacheType::Q8_0, CacheType::F16));
    match result {
        Err(Error::ContextCreation { detail }) => assert!(detail.to_string().contains("K cache"), "{detail}"),
        other => panic!("{other:?}"),
    }
    logits(&model, &small());
}

/// The graph that is tried at creation splits a micro-batch evenly; upstream asserts where it cannot.
#[test]
fn mean_pooling_needs_an_even_split() {
    let model = tiny_bert();
    let params = |n_seq_max, n_ubatch, pooling| {
        small().with_embeddings(true).with_pooling(pooling).with_n_seq_max(n_seq_max).with_n_ubatch(n_ubatch)
    };
    for pooling in [Pooling::Mean, Pooling::Unspecified] {
        assert_eq!(parameter_of(model.new_context(&params(3, 256, pooling))), "n_seq_max");
        assert_eq!(parameter_of(model.new_context(&params(7, 20, pooling))), "n_seq_max");
        model.new_context(&params(4, 256, pooling)).unwrap();
        model.new_context(&params(5, 20, pooling)).unwrap();
    }
    // The length is rounded up to 3 times 256, and the micro-batch is not limited by what it was before.
    let rounded = params(3, 512, Pooling::Mean).with_n_ctx(255);
    assert_eq!(parameter_of(model.new_context(&rounded)), "n_seq_max");
    let mut outputs = params(1, 64, Pooling::Mean);
    outputs.n_outputs_max = 63;
    assert_eq!(parameter_of(model.new_context(&outputs)), "n_outputs_max");
    outputs.n_outputs_max = 64;
    model.new_context(&outputs).unwrap();
    model.new_context(&params(3, 256, Pooling::Cls)).unwrap();
    model.new_context(&params(3, 256, Pooling::None)).unwrap();
    assert_eq!(parameter_of(tiny_llama().new_context(&params(3, 256, Pooling::Mean))), "n_seq_max");
}

#[test]
fn an_encoder_decoder_model_has_one_cache() {
    let model = tiny_t5();
    assert_eq!(parameter_of(model.new_context(&small().with_n_seq_max(2))), "n_seq_max");
    model.new_context(&small().with_n_seq_max(2).with_kv_unified(true)).unwrap();
}

#[test]
fn without_causal_attention_a_micro_batch_holds_all() {
    let params = small().with_attention(Attention::NonCausal).with_n_ubatch(4);
    let mut context = tiny_llama().new_context(&params).unwrap();
    assert!(!context.is_causal());
    let refused = context.decode(&batch_of(&tokens(&PROMPT), 0));
    assert_eq!(refused, Err(DecodeError::TooManyTokens { n_tokens: 6, limit: 4, limit_name: "n_ubatch" }));
    context.decode(&batch_of(&tokens(&PROMPT[..4]), 0)).unwrap();
}

#[test]
fn many_threads_make_contexts_of_one_model_at_once() {
    let model = tiny_llama();
    let prompt = tokens(&PROMPT);
    let expected = greedy(&mut model.new_context(&small()).unwrap(), &prompt, 8);
    let threads: Vec<_> = (0..8)
        .map(|_| {
            let (model, prompt) = (model.clone(), prompt.clone());
            std::thread::spawn(move || {
                let mut contexts: Vec<Context> = (0..3).map(|_| model.new_context(&small()).unwrap()).collect();
                contexts.iter_mut().map(|context| greedy(context, &prompt, 8)).collect::<Vec<_>>()
            })
        })
        .collect();
    for thread in threads {
        assert!(thread.join().unwrap().iter().all(|generated| *generated == expected));
    }
}
