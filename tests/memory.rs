//! `Memory`: what a context remembers of its sequences, and how it forgets.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::{batch_of, greedy, small, tiny_bert, tiny_llama, tiny_mamba, tokens};
use ggml_llama::{Batch, Context, Model, Pos, SeqId};

const PROMPT: [i32; 6] = [1, 300, 411, 372, 290, 350];

fn two_sequences(model: &Model) -> Context {
    let mut context = model.new_context(&small().with_n_ctx(512).with_n_seq_max(2)).unwrap();
    let mut batch = Batch::new();
    batch.add_sequence(&tokens(&PROMPT), Pos(0), SeqId(0)).unwrap();
    batch.add_sequence(&tokens(&PROMPT[..2]), Pos(0), SeqId(1)).unwrap();
    context.decode(&batch).unwrap();
    context
}

fn range(context: &mut Context, seq: i32) -> Option<(i32, i32)> {
    let memory = context.memory();
    let (first, last) = (memory.seq_pos_min(SeqId(seq)), memory.seq_pos_max(SeqId(seq)));
    assert_eq!(first.is_some(), last.is_some());
    Some((first?.0, last?.0))
}

#[test]
fn positions_are_those_that_were_decoded() {
    let model = tiny_llama();
    let mut context = two_sequences(&model);
    assert_eq!(range(&mut context, 0), Some((0, 5)));
    assert_eq!(range(&mut context, 1), Some((0, 1)));
    let mut empty = model.new_context(&small()).unwrap();
    assert_eq!(range(&mut empty, 0), None);
    // Upstream asserts that a sequence is in range.
    for seq in [-1, 2, 256, i32::MAX, i32::MIN] {
        assert_eq!(range(&mut context, seq), None, "{seq}");
    }
}

#[test]
fn clear_forgets_everything() {
    for data in [false, true] {
        let mut context = two_sequences(&tiny_llama());
        context.memory().clear(data).unwrap();
        assert_eq!((range(&mut context, 0), range(&mut context, 1)), (None, None));
        let mut fresh = tiny_llama().new_context(&small()).unwrap();
        assert_eq!(greedy(&mut context, &tokens(&PROMPT), 5), greedy(&mut fresh, &tokens(&PROMPT), 5));
    }
}

#[test]
fn a_cache_forgets_a_part() {
    let mut context = two_sequences(&tiny_llama());
    assert!(context.memory().seq_rm(SeqId(0), Some(Pos(3)), None).unwrap());
    assert_eq!((range(&mut context, 0), range(&mut context, 1)), (Some((0, 2)), Some((0, 1))));
    // It goes on from there, as if the forgotten tokens had never been.
    context.decode(&batch_of(&tokens(&[401]), 3)).unwrap();
    let mut fresh = tiny_llama().new_context(&small()).unwrap();
    fresh.decode(&batch_of(&tokens(&[1, 300, 411, 401]), 0)).unwrap();
    let difference = common::relative_difference(context.logits_last().unwrap(), fresh.logits_last().unwrap());
    assert!(difference < 1e-3, "{difference}");

    assert!(context.memory().seq_rm(SeqId(0), None, Some(Pos(2))).unwrap());
    assert_eq!(range(&mut context, 0), Some((2, 3)));
    assert!(context.memory().seq_rm(SeqId(0), Some(Pos(2)), Some(Pos(3))).unwrap());
    assert_eq!(range(&mut context, 0), Some((3, 3)));
    // Nothing lies there: nothing to do.
    assert!(context.memory().seq_rm(SeqId(0), Some(Pos(100)), Some(Pos(200))).unwrap());
    assert!(context.memory().seq_rm(SeqId(0), Some(Pos(7)), Some(Pos(2))).unwrap());
    assert_eq!(range(&mut context, 0), Some((3, 3)));
    assert!(context.memory().seq_rm(SeqId(0), None, None).unwrap());
    assert_eq!((range(&mut context, 0), range(&mut context, 1)), (None, Some((0, 1))));
}

#[test]
fn a_recurrent_state_forgets_all_or_nothing() {
    let model = tiny_mamba();
    assert!(model.is_recurrent() && !tiny_llama().is_recurrent());
    let mut context = two_sequences(&model);
    let before = range(&mut context, 0);
    assert!(before.is_some_and(|(_, last)| last == 5), "{before:?}");
    assert!(!context.memory().seq_rm(SeqId(0), Some(Pos(3)), None).unwrap());
    assert!(!context.memory().seq_rm(SeqId(0), None, Some(Pos(3))).unwrap());
    assert_eq!(range(&mut context, 0), before);
    // The refusal changed nothing: it goes on like one that was never asked to forget.
    context.decode(&batch_of(&tokens(&[401]), 6)).unwrap();
    let mut untouched = two_sequences(&model);
    untouched.decode(&batch_of(&tokens(&[401]), 6)).unwrap();
    assert_eq!(context.logits_last().unwrap(), untouched.logits_last().unwrap());

    assert!(context.memory().seq_rm(SeqId(0), None, None).unwrap());
    assert_eq!(range(&mut context, 0), None);
    assert!(range(&mut context, 1).is_some());
    let mut fresh = model.new_context(&small()).unwrap();
    assert_eq!(greedy(&mut context, &tokens(&PROMPT), 5), greedy(&mut fresh, &tokens(&PROMPT), 5));
}

/// Upstream asserts on sequences out of range, and takes -1 for all of them.
#[test]
fn sequences_and_positions_are_checked() {
    let mut context = two_sequences(&tiny_llama());
    for seq in [-1, -2, 2, 300, i32::MAX, i32::MIN] {
        assert_eq!(common::parameter_of(context.memory().seq_rm(SeqId(seq), None, None)), "seq");
    }
    for pos in [-1, i32::MIN] {
        assert_eq!(common::parameter_of(context.memory().seq_rm(SeqId(0), Some(Pos(pos)), None)), "position");
        assert_eq!(common::parameter_of(context.memory().seq_rm(SeqId(0), None, Some(Pos(pos)))), "position");
    }
    assert_eq!((range(&mut context, 0), range(&mut context, 1)), (Some((0, 5)), Some((0, 1))));
}

#[test]
fn a_model_without_memory_has_nothing_to_forget() {
    let model = tiny_bert();
    let mut context = model.new_context(&small().with_embeddings(true)).unwrap();
    context.decode(&batch_of(&tokens(&[2, 10, 3]), 0)).unwrap();
    assert_eq!(range(&mut context, 0), None);
    context.memory().clear(true).unwrap();
    assert!(context.memory().seq_rm(SeqId(0), Some(Pos(1)), None).unwrap());
}
