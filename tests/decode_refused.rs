//! Batches that `Context::decode` refuses: each a typed error that names what is wrong, with the memory as it was.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::{batch_of, small, tiny_llama, tokens};
use ggml_llama::{Batch, Context, DecodeError, Error, Pos, SamplerChain, SeqId, Token};

const PROMPT: [i32; 3] = [1, 300, 411];

/// Two sequences with a cache each; sequence 0 holds the prompt.
fn context() -> Context {
    let mut context = tiny_llama().new_context(&small().with_n_ctx(512).with_n_seq_max(2)).unwrap();
    context.decode(&batch_of(&tokens(&PROMPT), 0)).unwrap();
    context
}

/// Token, position, sequences.
type Entry<'a> = (i32, i32, &'a [i32]);

fn batch(entries: &[Entry<'_>]) -> Batch {
    let mut batch = Batch::new();
    for (token, pos, seqs) in entries {
        let seqs: Vec<SeqId> = seqs.iter().copied().map(SeqId).collect();
        batch.add(Token(*token), Pos(*pos), &seqs, true).unwrap();
    }
    batch
}

fn refusal(context: &mut Context, entries: &[Entry<'_>]) -> String {
    let before = context.memory().seq_pos_max(SeqId(0));
    let reason = match context.decode(&batch(entries)) {
        Err(DecodeError::InvalidBatch(reason)) => reason,
        other => panic!("{entries:?}: expected an invalid batch, got {other:?}"),
    };
    assert_eq!(context.memory().seq_pos_max(SeqId(0)), before, "{entries:?}");
    assert_eq!(context.memory().seq_pos_max(SeqId(1)), None, "{entries:?}");
    // The outputs of the decode before it are gone, not stale.
    assert!(matches!(context.logits_last(), Err(Error::NoOutput { .. })), "{entries:?}");
    reason
}

fn is_as_good_as_new(context: &mut Context) {
    context.decode(&batch(&[(372, 3, &[0])])).unwrap();
    let mut fresh = self::context();
    fresh.decode(&batch(&[(372, 3, &[0])])).unwrap();
    assert_eq!(context.logits_last().unwrap(), fresh.logits_last().unwrap());
}

#[test]
fn an_empty_batch() {
    let mut context = context();
    assert_eq!(context.decode(&Batch::new()), Err(DecodeError::EmptyBatch));
    is_as_good_as_new(&mut context);
}

#[test]
fn tokens_outside_of_the_vocabulary() {
    let mut context = context();
    let n_vocab = context.model().vocab().n_tokens();
    for token in [-1, -2, i32::MIN, n_vocab, n_vocab + 1, i32::MAX] {
        let reason = refusal(&mut context, &[(300, 3, &[0]), (token, 4, &[0])]);
        let expected = format!("token 1 of the batch has the id {token}; the vocabulary has 0 to {}", n_vocab - 1);
        assert_eq!(reason, expected);
    }
    is_as_good_as_new(&mut context);
}

#[test]
fn sequences_that_the_context_does_not_have() {
    let mut context = context();
    for seq in [-1, 2, 3, 256, i32::MAX, i32::MIN] {
        let reason = refusal(&mut context, &[(300, 3, &[0]), (300, 0, &[seq])]);
        assert!(reason.contains(&format!("sequence id {seq};")) && reason.contains("n_seq_max = 2"), "{reason}");
    }
    is_as_good_as_new(&mut context);
}

#[test]
fn a_token_of_two_sequences_without_one_cache_for_both() {
    let mut context = context();
    let reason = refusal(&mut context, &[(300, 3, &[0, 1])]);
    assert!(reason.contains("2 sequences") && reason.contains("kv_unified"), "{reason}");
    is_as_good_as_new(&mut context);
}

#[test]
fn positions_that_do_not_follow() {
    let cases: &[(&str, &[Entry<'_>], &str)] = &[
        ("repeated in the batch", &[(300, 3, &[0]), (301, 3, &[0])], "the batch ends at 3; expected 4"),
        ("repeated against the memory", &[(300, 2, &[0])], "its memory ends at 2; expected 3"),
        ("from the start again", &[(300, 0, &[0])], "its memory ends at 2; expected 3"),
        ("a gap after the memory", &[(300, 4, &[0])], "its memory ends at 2; expected 3"),
        ("a gap in the batch", &[(300, 3, &[0]), (301, 5, &[0])], "the batch ends at 3; expected 4"),
        ("decreasing", &[(300, 5, &[1]), (301, 4, &[1])], "the batch ends at 5; expected 6"),
        ("negative", &[(300, -1, &[0])], "has the position -1; possible are 0 to"),
        ("negative in an empty sequence", &[(300, -1, &[1])], "has the position -1; possible are 0 to"),
        ("very negative", &[(300, i32::MIN, &[1])], "has the position -2147483648"),
        ("huge", &[(300, i32::MAX, &[1])], "has the position 2147483647"),
        ("large", &[(300, 1 << 30, &[1])], "has the position 1073741824"),
        ("another sequence's", &[(300, 3, &[0]), (301, 0, &[1]), (302, 4, &[1])], "the batch ends at 0; expected 1"),
    ];
    let mut context = context();
    for (name, entries, expected) in cases {
        let reason = refusal(&mut context, entries);
        assert!(reason.contains(expected), "{name}: {reason}");
    }
    is_as_good_as_new(&mut context);
}

#[test]
fn a_sequence_named_twice_by_one_token() {
    let mut context = tiny_llama().new_context(&small().with_n_seq_max(2).with_kv_unified(true)).unwrap();
    let result = context.decode(&batch(&[(300, 0, &[0, 0])]));
    assert!(matches!(result, Err(DecodeError::InvalidBatch(_))), "{result:?}");
    context.decode(&batch(&[(300, 0, &[0, 1])])).unwrap();
}

/// Sequences that share tokens must agree on what they hold: upstream refuses others, and gives its words.
#[test]
fn sequences_that_diverged_cannot_share_a_token() {
    let mut context = tiny_llama().new_context(&small().with_n_seq_max(2).with_kv_unified(true)).unwrap();
    context.decode(&batch(&[(300, 0, &[0]), (301, 0, &[1]), (302, 1, &[1])])).unwrap();
    let result = context.decode(&batch(&[(300, 1, &[0, 1])]));
    assert!(matches!(result, Err(DecodeError::InvalidBatch(_))), "{result:?}");
    context.decode(&batch(&[(300, 1, &[0]), (300, 2, &[1])])).unwrap();
}

#[test]
fn more_outputs_than_the_context_was_made_for() {
    let mut params = small();
    params.n_outputs_max = 2;
    let mut context = tiny_llama().new_context(&params).unwrap();
    let three = batch(&[(1, 0, &[0]), (300, 1, &[0]), (301, 2, &[0])]);
    match context.decode(&three) {
        Err(DecodeError::InvalidBatch(reason)) => {
            assert!(reason.contains("3 outputs") && reason.contains("n_outputs_max = 2"), "{reason}");
        }
        other => panic!("{other:?}"),
    }
    let mut two = three.clone();
    assert!(two.set_output(0, false));
    context.decode(&two).unwrap();
    assert!(context.logits(1).is_ok() && context.logits(2).is_ok() && context.logits(0).is_err());
}

#[test]
fn reading_before_any_decode() {
    let model = tiny_llama();
    let context = model.new_context(&small()).unwrap();
    let nothing = |result: ggml_llama::Result<()>| {
        assert!(matches!(&result, Err(Error::NoOutput { what: "logits", .. })), "{result:?}");
    };
    nothing(context.logits(0).map(|_| ()));
    nothing(context.logits(usize::MAX).map(|_| ()));
    nothing(context.logits_last().map(|_| ()));
    assert_eq!(context.last_output(), None);
    let mut sampler = SamplerChain::greedy(&model.vocab()).unwrap();
    nothing(sampler.sample_last(&context).map(|_| ()));
    nothing(sampler.sample(&context, 0).map(|_| ()));
    assert!(matches!(context.embeddings(0), Err(Error::NoOutput { what: "embeddings", .. })));
    assert!(matches!(context.embeddings_seq(SeqId(0)), Err(Error::NoOutput { what: "embeddings", .. })));
}

#[test]
fn reading_what_was_not_an_output() {
    let mut context = context();
    let no = |result: ggml_llama::Result<&[f32]>, why: &str| match result {
        Err(Error::NoOutput { what: "logits", reason, .. }) => assert!(reason.contains(why), "{reason}"),
        other => panic!("{other:?}"),
    };
    no(context.logits(0), "not marked as an output");
    no(context.logits(3), "had 3 tokens");
    no(context.logits(usize::MAX), "had 3 tokens");
    assert_eq!(context.last_output(), Some(2));
    // A batch without any output is decoded, and leaves nothing to read.
    let mut silent = batch(&[(300, 3, &[0])]);
    assert!(silent.set_output(0, false));
    context.decode(&silent).unwrap();
    assert_eq!(context.last_output(), None);
    assert!(context.logits_last().is_err() && context.logits(0).is_err());
    assert_eq!(context.memory().seq_pos_max(SeqId(0)), Some(Pos(3)));
}
