//! Encoders (BERT): embeddings of tokens and of texts, scores, and their limits.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::{batch_of, load, relative_difference, small, tiny_bert, tiny_llama, tokens};
use ggml_llama::{Batch, Context, ContextParams, DecodeError, Error, Model, Pooling, Pos, SeqId, Special, Token};
use ggml_llama_testkit::models::{BertOptions, bert::N_EMBD};
use ggml_llama_testkit::{self as testkit, WpmVocab};

const TEXT: &str = "hello, the small cat reads the big book";

fn text() -> Vec<Token> {
    tokens(&WpmVocab::new().tokenize(TEXT))
}

fn params(pooling: Pooling) -> ContextParams {
    small().with_embeddings(true).with_pooling(pooling)
}

/// The vectors of all tokens of a text.
fn rows(model: &Model, text: &[Token]) -> Vec<Vec<f32>> {
    let mut context = model.new_context(&params(Pooling::None)).unwrap();
    context.encode(&batch_of(text, 0)).unwrap();
    (0..text.len()).map(|i| context.embeddings(i).unwrap().to_vec()).collect()
}

fn pooled(model: &Model, pooling: Pooling, text: &[Token]) -> Vec<f32> {
    let mut context = model.new_context(&params(pooling)).unwrap();
    context.encode(&batch_of(text, 0)).unwrap();
    context.embeddings_seq(SeqId(0)).unwrap().to_vec()
}

/// T3: upstream asserts.
#[test]
fn more_tokens_than_n_ubatch_are_refused() {
    let model = tiny_bert();
    let mut context = model.new_context(&params(Pooling::Mean).with_n_ubatch(8)).unwrap();
    let twenty: Vec<Token> = (5..25).map(Token).collect();
    let refused = context.encode(&batch_of(&twenty, 0));
    assert_eq!(refused, Err(DecodeError::TooManyTokens { n_tokens: 20, limit: 8, limit_name: "n_ubatch" }));
    let message = refused.unwrap_err().to_string();
    assert!(message.contains("20 tokens") && message.contains("8 at once (n_ubatch)"), "{message}");
    assert_eq!(context.decode(&batch_of(&twenty, 0)), context.encode(&batch_of(&twenty, 0)));
    // Usable, and right, afterwards.
    context.encode(&batch_of(&twenty[..8], 0)).unwrap();
    let got = context.embeddings_seq(SeqId(0)).unwrap();
    assert!(relative_difference(got, &pooled(&model, Pooling::Mean, &twenty[..8])) < 1e-4);
}

/// Positions are rows of a table: upstream asserts in a worker thread.
#[test]
fn positions_end_with_the_training_length() {
    let model = tiny_bert();
    assert_eq!(model.n_ctx_train(), 128);
    let mut context = model.new_context(&params(Pooling::Mean).with_n_ctx(512)).unwrap();
    let long: Vec<Token> = (0..129).map(|i| Token(5 + i % 40)).collect();
    match context.encode(&batch_of(&long, 0)) {
        Err(DecodeError::InvalidBatch(reason)) => {
            assert!(reason.contains("position 128") && reason.contains("0 to 127"), "{reason}");
        }
        other => panic!("{other:?}"),
    }
    context.encode(&batch_of(&long[..128], 0)).unwrap();
    assert!(context.embeddings_seq(SeqId(0)).unwrap().iter().all(|x| x.is_finite()));
}

#[test]
fn pooling_is_what_it_says() {
    let model = tiny_bert();
    let text = text();
    let rows = rows(&model, &text);
    assert!(rows.iter().all(|row| row.len() == N_EMBD as usize));
    assert!(relative_difference(&rows[1], &rows[2]) > 0.01);
    let mean: Vec<f32> =
        (0..N_EMBD as usize).map(|i| rows.iter().map(|row| row[i]).sum::<f32>() / rows.len() as f32).collect();
    for (pooling, expected) in
        [(Pooling::Mean, &mean), (Pooling::Cls, &rows[0]), (Pooling::Last, &rows[rows.len() - 1])]
    {
        let got = pooled(&model, pooling, &text);
        let difference = relative_difference(&got, expected);
        assert!(difference < 1e-4, "{pooling:?}: {difference}");
    }
}

#[test]
fn the_model_says_how_it_pools() {
    let text = text();
    let context = tiny_bert().new_context(&params(Pooling::Unspecified)).unwrap();
    assert_eq!(context.pooling().unwrap(), Pooling::Mean);
    let cls = load(testkit::tiny_bert_cls_path().unwrap());
    assert_eq!(cls.new_context(&params(Pooling::Unspecified)).unwrap().pooling().unwrap(), Pooling::Cls);
    assert_eq!(pooled(&cls, Pooling::Unspecified, &text), pooled(&cls, Pooling::Cls, &text));
    let llama = tiny_llama().new_context(&params(Pooling::Unspecified)).unwrap();
    assert_eq!(llama.pooling().unwrap(), Pooling::None);
}

#[test]
fn texts_of_one_batch_do_not_see_each_other() {
    let model = tiny_bert();
    let texts = [text(), tokens(&[2, 9, 20, 33, 3])];
    let mut context = model.new_context(&params(Pooling::Mean).with_n_seq_max(2)).unwrap();
    let mut batch = Batch::new();
    for (seq, text) in texts.iter().enumerate() {
        batch.add_sequence(text, Pos(0), SeqId(seq as i32)).unwrap();
    }
    context.encode(&batch).unwrap();
    for (seq, text) in texts.iter().enumerate() {
        let got = context.embeddings_seq(SeqId(seq as i32)).unwrap();
        assert!(relative_difference(got, &pooled(&model, Pooling::Mean, text)) < 1e-4, "{seq}");
    }
}

fn missing(result: ggml_llama::Result<&[f32]>, why: &str) {
    match result {
        Err(Error::NoOutput { what: "embeddings", reason, .. }) => assert!(reason.contains(why), "{reason}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn embeddings_that_are_not_there() {
    let model = tiny_bert();
    let batch = batch_of(&text(), 0);
    let encoded = |params: &ContextParams| -> Context {
        let mut context = model.new_context(params).unwrap();
        context.encode(&batch).unwrap();
        context
    };
    let without = encoded(&small());
    missing(without.embeddings(0), "without `embeddings`");
    missing(without.embeddings_seq(SeqId(0)), "without `embeddings`");
    let pooling = encoded(&params(Pooling::Mean));
    missing(pooling.embeddings(0), "pools");
    for seq in [1, -1, 77, i32::MAX, i32::MIN] {
        missing(pooling.embeddings_seq(SeqId(seq)), "none for it");
    }
    let rows = encoded(&params(Pooling::None));
    missing(rows.embeddings_seq(SeqId(0)), "does not pool");
    missing(rows.embeddings(batch.len()), "had");
    let nothing = model.new_context(&params(Pooling::None)).unwrap();
    missing(nothing.embeddings(0), "nothing has been decoded");
}

#[test]
fn a_decoder_gives_embeddings_too() {
    let model = tiny_llama();
    let prompt = tokens(&[1, 300, 411, 372]);
    let mut context = model.new_context(&params(Pooling::None)).unwrap();
    context.decode(&batch_of(&prompt, 0)).unwrap();
    // Every token is an output then.
    let rows: Vec<Vec<f32>> = (0..4).map(|i| context.embeddings(i).unwrap().to_vec()).collect();
    assert!(rows.iter().all(|row| row.len() == 128 && row.iter().any(|x| *x != 0.0)));
    let mut last = model.new_context(&params(Pooling::Last)).unwrap();
    last.decode(&batch_of(&prompt, 0)).unwrap();
    assert!(relative_difference(last.embeddings_seq(SeqId(0)).unwrap(), &rows[3]) < 1e-4);
}

/// score = W2 tanh(W1 x + b1) + b2, with x the vector of the first token.
fn scores_by_hand(options: &BertOptions, first: &[f32]) -> Vec<f32> {
    let file = options.build();
    let layer = |name: &str, x: &[f32]| -> Vec<f32> {
        let weights = file.tensor(&format!("{name}.weight")).unwrap().to_f32();
        let bias = file.tensor(&format!("{name}.bias")).unwrap().to_f32();
        let rows = weights.chunks(x.len()).zip(bias);
        rows.map(|(row, bias)| row.iter().zip(x).map(|(w, x)| w * x).sum::<f32>() + bias).collect()
    };
    let hidden: Vec<f32> = layer("cls", first).into_iter().map(f32::tanh).collect();
    layer("cls.output", &hidden)
}

#[test]
fn a_reranker_gives_one_score_for_each_class() {
    for labels in [vec!["score"], vec!["no", "perhaps", "yes"]] {
        let options = BertOptions {
            name: format!("reranker-{}", labels.len()),
            pooling: Some(testkit::Pooling::Rank),
            labels: labels.iter().map(|label| (*label).to_owned()).collect(),
            ..BertOptions::default()
        };
        let model = load(testkit::cached("reranker.gguf", &options.build()).unwrap());
        assert_eq!(model.n_cls_out(), labels.len() as i32);
        let named: Vec<_> = labels.iter().map(|label| Some((*label).to_owned())).collect();
        assert_eq!(model.classifier_labels(), named);
        let pair = model.vocab().tokenize(TEXT, true, Special::AsText).unwrap();
        let scores = pooled(&model, Pooling::Unspecified, &pair);
        let expected = scores_by_hand(&options, &rows(&model, &pair)[0]);
        assert_eq!(scores.len(), labels.len());
        assert!(relative_difference(&scores, &expected) < 1e-3, "{scores:?} {expected:?}");
    }
}
