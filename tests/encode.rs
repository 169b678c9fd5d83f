//! `Context::encode`: what has an encoder, what has not, and what an encoder-decoder model wants in which order.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::{argmax, batch_of, relative_difference, small, tiny_bert, tiny_llama, tiny_t5, tokens};
use ggml_llama::{Batch, Context, DecodeError, Model, Pos, SeqId, Special};

const OPERATION: &str = "encode";

fn sentence(model: &Model, text: &str) -> Batch {
    batch_of(&model.vocab().tokenize(text, true, Special::AsText).unwrap(), 0)
}

fn start(model: &Model) -> Batch {
    batch_of(&[model.decoder_start_token().unwrap()], 0)
}

/// The logits of the decoder's first step after a text.
fn first_step(context: &mut Context, text: &str) -> Vec<f32> {
    let model = context.model().clone();
    context.memory().clear(false).unwrap();
    context.encode(&sentence(&model, text)).unwrap();
    context.decode(&start(&model)).unwrap();
    context.logits_last().unwrap().to_vec()
}

/// Upstream follows a null pointer.
#[test]
fn a_decoder_cannot_encode() {
    let mut context = tiny_llama().new_context(&small()).unwrap();
    let batch = batch_of(&tokens(&[1, 300]), 0);
    match context.encode(&batch) {
        Err(DecodeError::Unsupported { operation, reason }) => {
            assert_eq!(operation, OPERATION);
            assert!(reason.contains("no encoder"), "{reason}");
        }
        other => panic!("{other:?}"),
    }
    context.decode(&batch).unwrap();
}

/// Upstream asserts "llama_encode must be called first".
#[test]
fn an_encoder_decoder_model_encodes_first() {
    let model = tiny_t5();
    assert!(model.has_encoder() && model.has_decoder());
    let mut context = model.new_context(&small()).unwrap();
    match context.decode(&start(&model)) {
        Err(DecodeError::Unsupported { operation: "decode", reason }) => assert!(reason.contains("encode"), "{reason}"),
        other => panic!("{other:?}"),
    }
    assert!(context.logits_last().is_err());
    context.encode(&sentence(&model, "translate english to german")).unwrap();
    context.decode(&start(&model)).unwrap();
    assert_eq!(context.logits_last().unwrap().len(), model.vocab().n_tokens() as usize);
}

#[test]
fn a_failed_encode_does_not_count() {
    let model = tiny_t5();
    let mut context = model.new_context(&small()).unwrap();
    assert_eq!(context.encode(&Batch::new()), Err(DecodeError::EmptyBatch));
    let n_vocab = model.vocab().n_tokens();
    assert!(matches!(context.encode(&batch_of(&tokens(&[n_vocab]), 0)), Err(DecodeError::InvalidBatch(_))));
    assert!(matches!(context.decode(&start(&model)), Err(DecodeError::Unsupported { .. })));
}

#[test]
fn the_decoder_sees_what_was_encoded() {
    let model = tiny_t5();
    let mut context = model.new_context(&small()).unwrap();
    let hello = first_step(&mut context, "hello world");
    let day = first_step(&mut context, "the day is good and the house is small");
    assert!(relative_difference(&hello, &day) > 0.01);
    // Again, in the same context and in a new one.
    assert!(relative_difference(&hello, &first_step(&mut context, "hello world")) < 1e-5);
    let mut other = model.new_context(&small()).unwrap();
    assert!(relative_difference(&hello, &first_step(&mut other, "hello world")) < 1e-5);
}

#[test]
fn the_decoder_goes_on_token_by_token_as_in_one_batch() {
    let model = tiny_t5();
    let mut context = model.new_context(&small()).unwrap();
    let mut run = vec![model.decoder_start_token().unwrap()];
    first_step(&mut context, "hello world");
    for pos in 1..5 {
        run.push(ggml_llama::Token(argmax(context.logits_last().unwrap()) as i32));
        context.decode(&batch_of(&run[pos..], pos as i32)).unwrap();
    }
    let stepwise = context.logits_last().unwrap().to_vec();
    context.memory().clear(false).unwrap();
    context.encode(&sentence(&model, "hello world")).unwrap();
    context.decode(&batch_of(&run, 0)).unwrap();
    assert!(relative_difference(&stepwise, context.logits_last().unwrap()) < 1e-3);
}

/// An encode is checked against the decoder's memory, so a second text needs a cleared one.
#[test]
fn a_second_text_needs_a_cleared_memory() {
    let model = tiny_t5();
    let mut context = model.new_context(&small()).unwrap();
    first_step(&mut context, "hello world");
    let second = sentence(&model, "good day");
    assert!(matches!(context.encode(&second), Err(DecodeError::InvalidBatch(_))));
    context.memory().clear(false).unwrap();
    context.encode(&second).unwrap();
}

#[test]
fn more_tokens_than_n_ubatch_are_refused() {
    let model = tiny_t5();
    let mut context = model.new_context(&small().with_n_ubatch(4)).unwrap();
    let text = sentence(&model, "the day is good and small");
    assert_eq!(text.len(), 7);
    let refused = context.encode(&text);
    assert_eq!(refused, Err(DecodeError::TooManyTokens { n_tokens: 7, limit: 4, limit_name: "n_ubatch" }));
    context.encode(&sentence(&model, "good day")).unwrap();
}

/// Encoders without a decoder take both calls for the same.
#[test]
fn decode_of_an_encoder_encodes() {
    let model = tiny_bert();
    let batch = sentence(&model, "hello good world");
    let run = |call: fn(&mut Context, &Batch) -> Result<(), DecodeError>| {
        let mut context = model.new_context(&small().with_embeddings(true)).unwrap();
        call(&mut context, &batch).unwrap();
        context.embeddings_seq(SeqId(0)).unwrap().to_vec()
    };
    let (decoded, encoded) = (run(Context::decode), run(Context::encode));
    assert_eq!(decoded, encoded);
    assert!(encoded.iter().any(|x| *x != 0.0));
    let mut batch = Batch::new();
    batch.add(ggml_llama::Token(-1), Pos(0), &[SeqId(0)], true).unwrap();
    let mut context = model.new_context(&small()).unwrap();
    assert!(matches!(context.decode(&batch), Err(DecodeError::InvalidBatch(_))));
}
