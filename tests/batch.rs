//! `Batch`: what it refuses at once, and that a refusal changes nothing.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use ggml_llama::{Batch, DecodeError, Pos, SeqId, Token};

fn reason(result: Result<(), DecodeError>) -> String {
    match result {
        Err(DecodeError::InvalidBatch(reason)) => reason,
        other => panic!("expected an invalid batch, got {other:?}"),
    }
}

/// T1: upstream's helper writes past the end of the token's list of sequences.
#[test]
fn more_sequences_than_the_batch_was_made_for_are_refused() {
    let mut batch = Batch::with_capacity(4, 1);
    batch.add(Token(7), Pos(0), &[SeqId(0)], false).unwrap();
    let before = batch.clone();
    let reason = reason(batch.add(Token(8), Pos(1), &[SeqId(0), SeqId(1), SeqId(2)], true));
    assert!(reason.contains("3 sequence ids") && reason.contains("at most 1"), "{reason}");
    assert_eq!(batch, before);
    assert_eq!((batch.len(), batch.n_outputs()), (1, 0));
    // It goes on as if nothing had happened, also beyond its capacity.
    for pos in 1..10 {
        batch.add(Token(8), Pos(pos), &[SeqId(0)], true).unwrap();
    }
    assert_eq!((batch.len(), batch.n_outputs()), (10, 9));
}

#[test]
fn a_batch_without_a_limit_takes_many_sequences() {
    let seqs: Vec<SeqId> = (0..300).map(SeqId).collect();
    let mut batch = Batch::new();
    batch.add(Token(1), Pos(0), &seqs, true).unwrap();
    assert_eq!(batch.len(), 1);
}

#[test]
fn a_token_without_a_sequence_is_refused() {
    let mut batch = Batch::new();
    let reason = reason(batch.add(Token(1), Pos(0), &[], true));
    assert!(reason.contains("at least 1") && reason.contains("got 0"), "{reason}");
    assert!(batch.is_empty());
}

#[test]
fn a_run_that_leaves_the_range_of_positions_is_refused_as_a_whole() {
    let run = [Token(1), Token(2), Token(3), Token(4)];
    let mut batch = Batch::new();
    let reason = reason(batch.add_sequence(&run, Pos(i32::MAX - 3), SeqId(0)));
    assert!(reason.contains("4 tokens") && reason.contains("2147483644"), "{reason}");
    assert!(batch.is_empty());
    batch.add_sequence(&run[..3], Pos(i32::MAX - 3), SeqId(0)).unwrap();
    assert_eq!(batch.len(), 3);
}

#[test]
fn a_run_wants_the_output_of_its_last_token_only() {
    let mut batch = Batch::new();
    batch.add_sequence(&[Token(4), Token(5), Token(6)], Pos(0), SeqId(0)).unwrap();
    batch.add_sequence(&[], Pos(0), SeqId(1)).unwrap();
    assert_eq!(batch.tokens().collect::<Vec<_>>(), [Token(4), Token(5), Token(6)]);
    assert_eq!(batch.n_outputs(), 1);
    let mut by_hand = Batch::new();
    for (pos, token, output) in [(0, 4, false), (1, 5, false), (2, 6, true)] {
        by_hand.add(Token(token), Pos(pos), &[SeqId(0)], output).unwrap();
    }
    assert_eq!(batch, by_hand);
}

#[test]
fn outputs_can_be_changed_later() {
    let mut batch = Batch::new();
    batch.add_sequence(&[Token(4), Token(5)], Pos(0), SeqId(0)).unwrap();
    assert!(batch.set_output(0, true) && batch.n_outputs() == 2);
    assert!(batch.set_output(1, false) && batch.n_outputs() == 1);
    assert!(!batch.set_output(2, true) && batch.n_outputs() == 1);
    batch.clear();
    assert!(batch.is_empty() && batch.n_outputs() == 0 && !batch.set_output(0, true));
}
