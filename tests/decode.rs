//! `Context::decode`: limits, results, and that a refusal leaves the context usable.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;
#[path = "common/reference.rs"]
mod reference;

use common::{argmax, batch_of, greedy, ids, relative_difference, small, tiny_llama, tokens};
use ggml_llama::{Batch, CacheType, DecodeError, FlashAttention, Pos, SeqId, Token};
use ggml_llama_testkit::{LlamaOptions, STORY, SpmVocab, models::story_tokens};

const NINE: [i32; 9] = [1, 300, 411, 372, 290, 350, 365, 401, 399];

#[test]
fn logits_are_those_of_a_forward_pass_written_by_hand() {
    let options = LlamaOptions::default();
    let expected = reference::logits(&options.build(), &options, &NINE);
    let exact = small().with_cache_types(CacheType::F32, CacheType::F32);
    // Flash attention computes with half precision, whatever the cache holds.
    for (flash_attention, tolerance) in [(FlashAttention::Disabled, 1e-5), (FlashAttention::Enabled, 1e-2)] {
        let params = exact.clone().with_flash_attention(flash_attention);
        let mut context = tiny_llama().new_context(&params).unwrap();
        let mut batch = batch_of(&tokens(&NINE), 0);
        (0..NINE.len()).for_each(|i| assert!(batch.set_output(i, true)));
        context.decode(&batch).unwrap();
        for (i, expected) in expected.iter().enumerate() {
            let logits = context.logits(i).unwrap();
            let difference = relative_difference(logits, expected);
            assert!(difference < tolerance, "{flash_attention:?}, token {i}: {difference}");
            assert_eq!(argmax(logits), argmax(expected));
        }
    }
}

#[test]
fn the_story_is_told() {
    let model = common::story();
    let vocab = SpmVocab::new();
    let mut context = model.new_context(&small()).unwrap();
    let generated = greedy(&mut context, &common::plain(&model, "quick brown"), 100);
    assert_eq!(ids(&generated), story_tokens(&vocab));
    assert_eq!(model.vocab().detokenize(&generated, false).unwrap(), STORY);
}

/// T2: upstream asserts.
#[test]
fn more_tokens_than_n_batch_are_refused_and_pieces_give_the_same() {
    let model = tiny_llama();
    let mut context = model.new_context(&small().with_n_batch(8)).unwrap();
    let refused = context.decode(&batch_of(&tokens(&NINE), 0));
    assert_eq!(refused, Err(DecodeError::TooManyTokens { n_tokens: 9, limit: 8, limit_name: "n_batch" }));
    let text = refused.unwrap_err().to_string();
    assert!(text.contains("9 tokens") && text.contains('8'), "{text}");

    context.decode(&batch_of(&tokens(&NINE[..8]), 0)).unwrap();
    context.decode(&batch_of(&tokens(&NINE[8..]), 8)).unwrap();
    let mut wide = model.new_context(&small().with_n_batch(16)).unwrap();
    wide.decode(&batch_of(&tokens(&NINE), 0)).unwrap();
    let difference = relative_difference(context.logits_last().unwrap(), wide.logits_last().unwrap());
    assert!(difference < 1e-4, "{difference}");
}

#[test]
fn micro_batches_give_the_same() {
    let model = tiny_llama();
    let mut whole = model.new_context(&small()).unwrap();
    let mut pieces = model.new_context(&small().with_n_ubatch(4)).unwrap();
    let mut batch = batch_of(&tokens(&NINE), 0);
    assert!(batch.set_output(1, true));
    whole.decode(&batch).unwrap();
    pieces.decode(&batch).unwrap();
    for i in [1, 8] {
        assert!(relative_difference(whole.logits(i).unwrap(), pieces.logits(i).unwrap()) < 1e-4, "{i}");
    }
}

#[test]
fn a_prompt_longer_than_the_context_is_refused_where_it_no_longer_fits() {
    let mut context = tiny_llama().new_context(&small().with_n_batch(64)).unwrap();
    assert_eq!(context.n_ctx(), 256);
    let prompt: Vec<Token> = (0..260).map(|i| Token(270 + i % 200)).collect();
    for start in [0, 64, 128] {
        context.decode(&batch_of(&prompt[start..start + 64], start as i32)).unwrap();
    }
    context.decode(&batch_of(&prompt[192..252], 192)).unwrap();
    let full = context.decode(&batch_of(&prompt[252..], 252));
    assert_eq!(full, Err(DecodeError::NoKvSlot { n_tokens: 8, used: 252, total: 256 }));
    assert!(context.logits_last().is_err());
    // What fits still does.
    context.decode(&batch_of(&prompt[252..256], 252)).unwrap();
    let full = context.decode(&batch_of(&prompt[256..257], 256));
    assert_eq!(full, Err(DecodeError::NoKvSlot { n_tokens: 1, used: 256, total: 256 }));

    context.memory().clear(false).unwrap();
    context.decode(&batch_of(&prompt[..64], 0)).unwrap();
    let mut fresh = context.model().new_context(&small().with_n_batch(64)).unwrap();
    fresh.decode(&batch_of(&prompt[..64], 0)).unwrap();
    assert_eq!(context.logits_last().unwrap(), fresh.logits_last().unwrap());
}

/// Three sequences of different lengths in one batch, for a cache each and for one cache.
#[test]
fn sequences_of_one_batch_do_not_see_each_other() {
    let model = tiny_llama();
    let prompts: [&[i32]; 3] = [&NINE[..4], &[1, 401], &NINE[3..]];
    for unified in [false, true] {
        let params = small().with_n_ctx(768).with_n_seq_max(3).with_kv_unified(unified);
        let mut context = model.new_context(&params).unwrap();
        let mut batch = Batch::new();
        // Token by token in turn, so that neighbours in the batch belong to different sequences.
        let mut last = [0; 3];
        for pos in 0..6 {
            for (seq, prompt) in prompts.iter().enumerate() {
                if let Some(token) = prompt.get(pos) {
                    let output = pos + 1 == prompt.len();
                    last[seq] = batch.len();
                    batch.add(Token(*token), Pos(pos as i32), &[SeqId(seq as i32)], output).unwrap();
                }
            }
        }
        context.decode(&batch).unwrap();
        for (seq, prompt) in prompts.iter().enumerate() {
            let mut alone = model.new_context(&small()).unwrap();
            alone.decode(&batch_of(&tokens(prompt), 0)).unwrap();
            let difference = relative_difference(context.logits(last[seq]).unwrap(), alone.logits_last().unwrap());
            assert!(difference < 1e-3, "sequence {seq}, unified {unified}: {difference}");
        }
    }
}

#[test]
fn a_token_of_two_sequences_serves_both_in_one_cache() {
    let model = tiny_llama();
    let mut context = model.new_context(&small().with_n_seq_max(2).with_kv_unified(true)).unwrap();
    let mut batch = Batch::new();
    for (pos, token) in NINE[..4].iter().enumerate() {
        batch.add(Token(*token), Pos(pos as i32), &[SeqId(0), SeqId(1)], false).unwrap();
    }
    context.decode(&batch).unwrap();
    batch.clear();
    batch.add(Token(300), Pos(4), &[SeqId(0)], true).unwrap();
    batch.add(Token(401), Pos(4), &[SeqId(1)], true).unwrap();
    context.decode(&batch).unwrap();
    for (i, token) in [(0, 300), (1, 401)] {
        let mut alone = model.new_context(&small()).unwrap();
        let prompt = [&NINE[..4], &[token]].concat();
        alone.decode(&batch_of(&tokens(&prompt), 0)).unwrap();
        assert!(relative_difference(context.logits(i).unwrap(), alone.logits_last().unwrap()) < 1e-3, "{token}");
    }
}

#[test]
fn numbers_of_threads_are_checked() {
    let mut context = tiny_llama().new_context(&small()).unwrap();
    for bad in [0, -1, 513, i32::MAX, i32::MIN] {
        assert_eq!(common::parameter_of(context.set_n_threads(bad, 1)), "n_threads");
        assert_eq!(common::parameter_of(context.set_n_threads(1, bad)), "n_threads_batch");
    }
    assert_eq!((context.n_threads(), context.n_threads_batch()), (1, 1));
    context.set_n_threads(2, 512).unwrap();
    assert_eq!((context.n_threads(), context.n_threads_batch()), (2, 512));
    context.set_n_threads(2, 1).unwrap();
    let one = greedy(&mut context, &tokens(&NINE), 4);
    let mut other = tiny_llama().new_context(&small()).unwrap();
    assert_eq!(one, greedy(&mut other, &tokens(&NINE), 4));
}

#[test]
fn tokens_are_counted_and_timed() {
    let model = tiny_llama();
    let mut context = model.new_context(&small().with_perf(true)).unwrap();
    // Upstream counts when the result is waited for.
    context.decode(&batch_of(&tokens(&NINE), 0)).unwrap();
    context.logits_last().unwrap();
    for pos in 9..14 {
        context.decode(&batch_of(&tokens(&[300]), pos)).unwrap();
        context.logits_last().unwrap();
    }
    let perf = context.perf();
    assert_eq!((perf.n_prompt, perf.n_generated), (9, 5));
    assert!(!perf.prompt.is_zero() && !perf.generation.is_zero());
    context.reset_perf();
    assert_eq!(context.perf().prompt, std::time::Duration::ZERO);
    context.decode(&batch_of(&tokens(&NINE[..2]), 14)).unwrap();
    context.synchronize().unwrap();
    assert_eq!(context.perf().n_prompt, 2);
    // As upstream, nothing is measured unless it is asked for.
    let mut unmeasured = model.new_context(&small()).unwrap();
    unmeasured.decode(&batch_of(&tokens(&NINE), 0)).unwrap();
    unmeasured.synchronize().unwrap();
    assert!(unmeasured.perf().prompt.is_zero());
}
