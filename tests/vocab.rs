//! `Vocab`: types, special tokens, and ids that are none.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::{load_vocab_only, tiny_bert, tiny_llama, tiny_t5};
use ggml_llama::{Error, Model, Special, Token, TokenAttr, Vocab, VocabType};
use ggml_llama_testkit::{self as testkit, Gguf, SpmVocab, spm, ugm, vocabs, wpm};

fn vocab(name: &str) -> Vocab {
    load_vocab_only(testkit::vocab_path(name).unwrap()).vocab()
}

fn with_vocabulary() -> Vec<Vocab> {
    ["spm", "bpe", "wpm", "ugm", "rwkv", "plamo2", "test"].map(vocab).to_vec()
}

/// T10.
#[test]
fn every_type_is_told() {
    for (name, expected) in [
        ("spm", VocabType::Spm),
        ("bpe", VocabType::Bpe),
        ("wpm", VocabType::Wpm),
        ("ugm", VocabType::Ugm),
        ("rwkv", VocabType::Rwkv),
        ("plamo2", VocabType::Plamo2),
        ("test", VocabType::Test),
        ("none", VocabType::None),
    ] {
        assert_eq!(vocab(name).vocab_type(), expected, "{name}");
    }
}

#[test]
fn there_are_as_many_tokens_as_the_file_lists() {
    for (name, gguf) in vocabs::all() {
        let n = match gguf.kv("tokenizer.ggml.tokens") {
            Some(testkit::Value::Array(_, tokens)) => tokens.len(),
            _ => vocabs::N_DUMMY as usize,
        };
        assert_eq!(vocab(name).n_tokens() as usize, n, "{name}");
    }
}

/// T10: upstream asserts.
#[test]
fn a_model_without_a_vocabulary_has_no_text() {
    fn refuses<T: std::fmt::Debug>(result: Result<T, Error>) {
        assert!(matches!(result, Err(Error::NoVocabulary { .. })), "{result:?}");
    }
    let none = vocab("none");
    refuses(none.tokenize("hello", true, Special::AsText));
    refuses(none.tokenize("", false, Special::Parse));
    refuses(none.detokenize(&[Token(0)], true));
    refuses(none.detokenize(&[], true));
    refuses(none.piece(Token(0), true));
    refuses(none.text(Token(0)));
    refuses(none.score(Token(0)));
    refuses(none.attr(Token(0)));
    refuses(none.is_eog(Token(0)));
    refuses(none.is_control(Token(0)));
    let mut tokens = vec![Token(1)];
    refuses(none.tokenize_into("hello", false, Special::AsText, &mut tokens));
    assert!(tokens.is_empty());
    assert_eq!([none.bos(), none.eos(), none.eot(), none.nl(), none.pad(), none.fim_pre()], [None; 6]);
    assert!(none.suppressed_tokens().is_empty());
}

/// T6: upstream throws, or reads beyond the end.
#[test]
fn ids_outside_of_the_vocabulary() {
    for vocab in with_vocabulary() {
        let n = vocab.n_tokens();
        for id in [-1, -2, i32::MIN, n, n + 1, i32::MAX] {
            let refused = |result: Result<String, Error>| match result {
                Err(Error::TokenOutOfRange { token, n_vocab }) => assert_eq!((token, n_vocab), (id, n)),
                other => panic!("{vocab:?}, id {id}: {other:?}"),
            };
            let bad = Token(id);
            refused(vocab.text(bad));
            refused(vocab.score(bad).map(|x| x.to_string()));
            refused(vocab.attr(bad).map(|x| format!("{x:?}")));
            refused(vocab.piece(bad, true).map(|x| format!("{x:?}")));
            refused(vocab.is_eog(bad).map(|x| x.to_string()));
            refused(vocab.is_control(bad).map(|x| x.to_string()));
            refused(vocab.detokenize(&[Token(0), bad], true));
            let mut piece = vec![1];
            refused(vocab.piece_into(bad, false, &mut piece).map(|()| String::new()));
            assert!(piece.is_empty());
        }
        for id in [0, n - 1] {
            vocab.text(Token(id)).unwrap();
            vocab.piece(Token(id), true).unwrap();
        }
    }
}

/// T6: upstream's -1 is no token.
#[test]
fn special_tokens_that_are_missing_are_none() {
    let spm = vocab("spm");
    assert_eq!((spm.bos(), spm.eos()), (Some(Token(spm::BOS)), Some(Token(spm::EOS))));
    let ugm = vocab("ugm");
    assert_eq!((ugm.bos(), ugm.eos(), ugm.pad()), (None, Some(Token(ugm::EOS)), Some(Token(ugm::PAD))));
    let wpm = vocab("wpm");
    assert_eq!(
        (wpm.bos(), wpm.sep(), wpm.mask()),
        (Some(Token(wpm::CLS)), Some(Token(wpm::SEP)), Some(Token(wpm::MASK)))
    );
    let rwkv = vocab("rwkv");
    assert_eq!([rwkv.bos(), rwkv.eos(), rwkv.sep(), rwkv.pad(), rwkv.mask(), rwkv.eot()], [None; 6]);
    // Upstream takes [PAD] of a WordPiece vocabulary for one of these.
    for vocab in with_vocabulary().into_iter().filter(|vocab| vocab.vocab_type() != VocabType::Wpm) {
        let fim =
            [vocab.fim_pre(), vocab.fim_suf(), vocab.fim_mid(), vocab.fim_pad(), vocab.fim_rep(), vocab.fim_sep()];
        assert_eq!(fim, [None; 6], "{vocab:?}");
    }
    assert_eq!(tiny_llama().vocab().nl(), Some(Token(spm::BYTE_0 + 10)));
}

/// Ids that the file names and the vocabulary does not have.
#[test]
fn special_tokens_out_of_range_are_none() {
    for id in [1_000_000_000u32, u32::MAX, SpmVocab::new().n_tokens() as u32] {
        let file = vocabs::spm()
            .with_kv("tokenizer.ggml.padding_token_id", id)
            .with_kv("tokenizer.ggml.eot_token_id", id)
            .with_kv("tokenizer.ggml.fim_pre_token_id", id);
        let vocab = load_vocab_only(testkit::cached("special-ids.gguf", &file).unwrap()).vocab();
        assert_eq!((vocab.pad(), vocab.fim_pre()), (None, None), "{id}");
        assert!(vocab.eot() != Some(Token(id as i32)), "{id}");
    }
}

#[test]
fn what_is_added_around_a_text() {
    let flags = |model: Model| [model.vocab().adds_bos(), model.vocab().adds_eos(), model.vocab().adds_sep()];
    assert_eq!(flags(tiny_llama()), [true, false, false]);
    assert_eq!(flags(tiny_t5())[..2], [false, true]);
    assert!(tiny_bert().vocab().adds_bos());
}

#[test]
fn texts_scores_and_kinds_are_those_of_the_file() {
    let expected = SpmVocab::new();
    let vocab = vocab("spm");
    let scores = expected.scores();
    for (id, piece) in expected.pieces().iter().enumerate() {
        let token = Token(id as i32);
        assert_eq!(vocab.text(token).unwrap(), piece.text);
        assert_eq!(vocab.score(token).unwrap(), scores[id]);
        let (attr, is_control) = match piece.kind {
            spm::TokenKind::Normal => (TokenAttr::NORMAL, false),
            spm::TokenKind::Unknown => (TokenAttr::UNKNOWN, false),
            spm::TokenKind::Control => (TokenAttr::CONTROL, true),
            spm::TokenKind::Byte => (TokenAttr::BYTE, false),
            spm::TokenKind::UserDefined => (TokenAttr::USER_DEFINED, false),
            spm::TokenKind::Unused => (TokenAttr::UNUSED, false),
        };
        assert!(vocab.attr(token).unwrap().contains(attr), "{piece:?}: {:?}", vocab.attr(token));
        assert_eq!(vocab.is_control(token).unwrap(), is_control, "{piece:?}");
        let ends = [spm::EOS, spm::IM_END].contains(&token.0);
        assert_eq!(vocab.is_eog(token).unwrap(), ends, "{piece:?}");
    }
}

#[test]
fn attributes_are_sets() {
    let both = TokenAttr(TokenAttr::NORMAL.0 | TokenAttr::LSTRIP.0);
    assert!(both.contains(TokenAttr::NORMAL) && both.contains(TokenAttr::LSTRIP) && both.contains(both));
    assert!(!both.contains(TokenAttr::CONTROL) && !TokenAttr::NORMAL.contains(both));
}

#[test]
fn pieces_are_bytes() {
    let vocab = vocab("spm");
    for byte in 0..=255u8 {
        assert_eq!(vocab.piece(Token(spm::BYTE_0 + i32::from(byte)), false).unwrap(), [byte]);
    }
    let hello = Token(SpmVocab::new().id("\u{2581}Hello").unwrap());
    assert_eq!(vocab.piece(hello, false).unwrap(), b" Hello");
    assert_eq!(vocab.piece(Token(spm::IM_START), true).unwrap(), b"<|im_start|>");
    assert_eq!(vocab.piece(Token(spm::IM_START), false).unwrap(), b"");
    // A buffer is cleared first, and one that is too small grows.
    let long = "x".repeat(4000);
    let file = Gguf::new()
        .with_kv("general.architecture", "llama")
        .with_kv("tokenizer.ggml.model", "llama")
        .with_kv("tokenizer.ggml.tokens", vec!["<unk>", "<s>", "</s>", long.as_str(), "b"])
        .with_kv("tokenizer.ggml.scores", vec![0f32; 5]);
    let vocab = load_vocab_only(testkit::cached("long-token.gguf", &file).unwrap()).vocab();
    let mut piece = b"rest".to_vec();
    vocab.piece_into(Token(3), true, &mut piece).unwrap();
    assert!(piece == long.as_bytes());
    vocab.piece_into(Token(4), true, &mut piece).unwrap();
    assert_eq!(piece, b"b");
}

#[test]
fn a_vocabulary_outlives_its_model() {
    let vocab = {
        let model = tiny_llama();
        model.vocab()
    };
    let other = vocab.clone();
    drop(vocab);
    assert_eq!(other.tokenize("Hello", false, Special::AsText).unwrap().len(), 1);
}

#[test]
fn suppressed_tokens_are_those_of_the_file() {
    let file = vocabs::spm().with_kv("tokenizer.ggml.suppress_tokens", vec![5i32, 300]);
    let vocab = load_vocab_only(testkit::cached("suppress.gguf", &file).unwrap()).vocab();
    assert_eq!(vocab.suppressed_tokens(), [Token(5), Token(300)]);
    assert!(tiny_llama().vocab().suppressed_tokens().is_empty());
}
