//! Text to tokens and back, for every tokenizer: what upstream makes of a text is what was worked out without it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::{ids, load, load_vocab_only, parameter_of, real_model_path, tiny_llama, tokens};
use ggml_llama::{Error, Special, Token, Vocab};
use ggml_llama_testkit::{self as testkit, BpeVocab, Gguf, SpmVocab, UgmVocab, WpmVocab, bpe, broken, spm, vocabs};

const TEXTS: [&str; 12] = [
    "Hello world",
    "Once upon a time there lived one small llama",
    "Hellos and lamas",
    "the quick brown fox jumps over the lazy dog",
    "a  b   c",
    " leading and trailing ",
    "caf\u{e9} \u{65e5}\u{672c}\u{8a9e}",
    "\u{1f999}",
    "line\nbreak\ttab",
    "nul\0inside",
    "1234567890!?",
    "",
];

fn vocab(name: &str) -> Vocab {
    load_vocab_only(testkit::vocab_path(name).unwrap()).vocab()
}

fn vocab_of(file: &Gguf) -> Vocab {
    load_vocab_only(testkit::cached("vocab.gguf", file).unwrap()).vocab()
}

fn plain(vocab: &Vocab, text: &str) -> Vec<i32> {
    ids(&vocab.tokenize(text, false, Special::AsText).unwrap())
}

fn with_special(vocab: &Vocab, text: &str) -> Vec<i32> {
    ids(&vocab.tokenize(text, true, Special::AsText).unwrap())
}

#[test]
fn spm() {
    let (vocab, expected) = (vocab("spm"), SpmVocab::new());
    for text in TEXTS {
        let tokens = plain(&vocab, text);
        assert_eq!(tokens, expected.tokenize(text), "{text:?}");
        assert_eq!(with_special(&vocab, text), [&[spm::BOS], tokens.as_slice()].concat(), "{text:?}");
        assert_eq!(vocab.detokenize(&common::tokens(&tokens), false).unwrap(), text);
    }
}

#[test]
fn bpe() {
    let (vocab, expected) = (vocab("bpe"), BpeVocab::new());
    for text in TEXTS {
        let tokens = plain(&vocab, text);
        assert_eq!(tokens, expected.tokenize(text), "{text:?}");
        assert_eq!(vocab.detokenize(&common::tokens(&tokens), false).unwrap(), text);
    }
}

#[test]
fn wpm() {
    let (vocab, expected) = (vocab("wpm"), WpmVocab::new());
    for text in ["hello world", "The cat reads, and speaks.", "xyzzy hello", "unable!", "", "  a  the  "] {
        assert_eq!(with_special(&vocab, text), expected.tokenize(text), "{text:?}");
    }
}

#[test]
fn ugm() {
    let (vocab, expected) = (vocab("ugm"), UgmVocab::new());
    for text in
        ["hello world", "translate english to german: the house is good", "xyz \u{e9}\u{1f999}\u{1f999} a", "a  b"]
    {
        assert_eq!(with_special(&vocab, text), expected.tokenize(text), "{text:?}");
    }
}

/// Words come after the single bytes, in the order of the testkit's list.
#[test]
fn rwkv_and_plamo2() {
    // hello, " hello", world, " world", the, " the", llama, " llama"
    for (name, byte_0, word_0) in [("rwkv", 1, 257), ("plamo2", 4, 260)] {
        let vocab = vocab(name);
        let byte = |b: u8| byte_0 + i32::from(b);
        assert_eq!(plain(&vocab, "hello world"), [word_0, word_0 + 3], "{name}");
        assert_eq!(plain(&vocab, "the llama!"), [word_0 + 4, word_0 + 7, byte(b'!')], "{name}");
        let odd: Vec<i32> = "\u{1f999}\n\\".bytes().map(byte).collect();
        assert_eq!(plain(&vocab, "\u{1f999}\n\\"), odd, "{name}");
        for text in TEXTS {
            let tokens = vocab.tokenize(text, false, Special::AsText).unwrap();
            assert_eq!(vocab.detokenize(&tokens, false).unwrap(), text, "{name}");
        }
    }
}

#[test]
fn upstreams_test_tokenizer() {
    let vocab = vocab("test");
    for text in TEXTS {
        assert_eq!(plain(&vocab, text), vocabs::test_tokens(text), "{text:?}");
    }
}

#[test]
fn special_tokens_in_a_text_are_text_unless_asked_for() {
    let vocab = vocab("spm");
    let text = "<|im_start|>Hello<|im_end|>";
    assert_eq!(plain(&vocab, text), SpmVocab::new().tokenize(text));
    let parsed = vocab.tokenize(text, false, Special::Parse).unwrap();
    assert_eq!((parsed.first(), parsed.last()), (Some(&Token(spm::IM_START)), Some(&Token(spm::IM_END))));
    assert_eq!(vocab.detokenize(&parsed, true).unwrap().replace(' ', ""), text);
    assert_eq!(vocab.detokenize(&parsed, false).unwrap().trim(), "Hello");
    let bpe = self::vocab("bpe");
    let parsed = bpe.tokenize("a<|endoftext|>", false, Special::Parse).unwrap();
    assert_eq!(ids(&parsed), [i32::from(b'a'), bpe::END_OF_TEXT]);
    assert!(!plain(&bpe, "a<|endoftext|>").contains(&bpe::END_OF_TEXT));
}

/// Some tokenizers throw on such bytes; what is no UTF-8 becomes replacement marks, or byte tokens where there are any.
#[test]
fn any_bytes_can_be_tokenized() {
    let texts: [&[u8]; 7] = [
        b"\xf7\xbf\xbf\xbf",
        b"\xff\xfe",
        b"abc\xf0\x9f\xa6",
        b"\x80",
        b"\xed\xa0\x80",
        b"\xf4\x90\x80\x80 hello",
        b"hello\xc3",
    ];
    for (name, _) in vocabs::all().into_iter().filter(|(name, _)| *name != "none") {
        let vocab = vocab(name);
        for text in texts {
            for special in [Special::AsText, Special::Parse] {
                let tokens = vocab.tokenize(text, false, special).unwrap();
                // BERT's cleaning takes replacement marks out.
                assert!(!tokens.is_empty() || name == "wpm", "{name} {text:x?}");
                assert!(tokens.iter().all(|token| (0..vocab.n_tokens()).contains(&token.0)), "{name} {text:x?}");
            }
        }
        let mixed = vocab.tokenize(b"hello\xff", false, Special::AsText).unwrap();
        assert_eq!(mixed[0], vocab.tokenize("hello", false, Special::AsText).unwrap()[0], "{name}");
    }
}

#[test]
fn special_tokens_that_are_wanted_and_missing() {
    let all = broken::all();
    for (name, lacks) in [
        ("vocab-only-bpe-add-bos-without-bos", "BOS"),
        ("vocab-only-bpe-add-eos-without-eos", "EOS"),
        ("vocab-only-ugm-add-bos-without-bos", "BOS"),
        ("vocab-only-wpm-without-special", "CLS"),
    ] {
        let (_, bytes) = all.iter().find(|(n, _)| n == name).unwrap();
        let vocab = load_vocab_only(testkit::cached_bytes("vocab.gguf", bytes).unwrap()).vocab();
        let error = vocab.tokenize("hello", true, Special::AsText).unwrap_err();
        assert!(matches!(&error, Error::InvalidParameter { name: "add_special", .. }), "{name}: {error:?}");
        assert!(error.to_string().contains(lacks), "{error}");
    }
    let (_, bytes) = all.iter().find(|(n, _)| n == "vocab-only-bpe-add-bos-without-bos").unwrap();
    let vocab = load_vocab_only(testkit::cached_bytes("vocab.gguf", bytes).unwrap()).vocab();
    // It has the tokens "a" and "b" only.
    assert_eq!(plain(&vocab, "ab"), [0, 1]);
}

/// A vocabulary without byte tokens cannot write everything: upstream throws.
#[test]
fn characters_without_tokens() {
    let file = Gguf::new()
        .with_kv("general.architecture", "llama")
        .with_kv("tokenizer.ggml.model", "llama")
        .with_kv("tokenizer.ggml.tokens", vec!["<unk>", "<s>", "</s>", "\u{2581}", "a", "b"])
        .with_kv("tokenizer.ggml.scores", vec![0f32; 6]);
    let vocab = vocab_of(&file);
    assert_eq!(plain(&vocab, "ab"), [3, 4, 5]);
    let refused = vocab.tokenize("a\u{1f999}", false, Special::AsText);
    assert!(matches!(refused, Err(Error::Upstream { function: "llama_tokenize", .. })), "{refused:?}");
    // It is not broken by that.
    assert_eq!(plain(&vocab, "b"), [3, 5]);
}

#[test]
fn a_buffer_is_cleared_and_used_again() {
    let vocab = vocab("spm");
    let mut buffer = tokens(&[1, 2, 3]);
    vocab.tokenize_into("Hello world", false, Special::AsText, &mut buffer).unwrap();
    assert_eq!(ids(&buffer), SpmVocab::new().tokenize("Hello world"));
    let capacity = buffer.capacity();
    vocab.tokenize_into("Hello", false, Special::AsText, &mut buffer).unwrap();
    assert_eq!((buffer.len(), buffer.capacity()), (1, capacity));
}

#[test]
fn bytes_that_are_no_text_come_back_as_they_are() {
    let vocab = vocab("spm");
    let broken = tokens(&[spm::BYTE_0 + 0xf0, spm::BYTE_0 + 0x9f]);
    assert_eq!(vocab.detokenize_bytes(&broken, false).unwrap(), [0xf0, 0x9f]);
    assert_eq!(vocab.detokenize(&broken, false).unwrap(), "\u{fffd}");
    assert_eq!(vocab.detokenize(&[], true).unwrap(), "");
    // More text than the first guess of the buffer.
    let long = "Once upon a time ".repeat(1000);
    let tokens = vocab.tokenize(&long, false, Special::AsText).unwrap();
    assert_eq!(vocab.detokenize(&tokens, false).unwrap(), long);
}

/// Upstream's regular expressions recurse for each character: 2 MiB of stack end after some 6500 of them.
fn on_a_small_stack(f: impl FnOnce() + Send + 'static) {
    std::thread::Builder::new().stack_size(2 << 20).spawn(f).unwrap().join().unwrap();
}

#[test]
fn long_runs_do_not_overflow_the_stack() {
    let n = 200_000;
    for pre in ["default", "falcon", "gpt-2", "llama-bpe", "deepseek-llm", "tekken", "gpt-4o"] {
        let vocab = vocab_of(&BpeVocab::new().describe(Gguf::new().with_kv("general.architecture", "llama"), pre));
        on_a_small_stack(move || {
            for unit in ["a", " ", "1", "!", "\u{e9}", "\u{65e5}", "\n"] {
                let text = unit.repeat(if unit == "a" { n } else { n / 5 });
                let tokens = vocab.tokenize(&text, false, Special::AsText).unwrap();
                assert!(vocab.detokenize(&tokens, false).unwrap() == text, "{pre} {unit:?}");
                if unit == "a" {
                    assert_eq!((tokens.len(), tokens[7]), (n, Token(i32::from(b'a'))), "{pre}");
                }
            }
        });
    }
}

#[test]
fn a_run_without_end_is_refused() {
    let vocab = vocab("bpe");
    on_a_small_stack(move || {
        let text = "a".repeat((1 << 22) + 1);
        assert_eq!(parameter_of(vocab.tokenize(&text, false, Special::AsText)), "text");
        assert_eq!(plain(&vocab, "a"), [i32::from(b'a')]);
    });
}

#[test]
fn the_real_model_takes_long_runs() {
    let Some(path) = real_model_path() else { return };
    let vocab = load_vocab_only(path).vocab();
    on_a_small_stack(move || {
        for text in ["a".repeat(200_000), " ".repeat(200_000), "\u{65e5}".repeat(60_000), "7".repeat(100_000)] {
            let tokens = vocab.tokenize(&text, true, Special::Parse).unwrap();
            assert!(vocab.detokenize(&tokens, false).unwrap() == text);
        }
    });
}

#[test]
fn many_threads_tokenize_with_one_vocabulary() {
    let vocab = tiny_llama().vocab();
    let text = TEXTS.join(" ");
    let expected = SpmVocab::new().tokenize(&text);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| (0..20).for_each(|_| assert_eq!(plain(&vocab, &text), expected)));
        }
    });
    assert_eq!(plain(&load(testkit::tiny_llama_path().unwrap()).vocab(), &text), expected);
}
