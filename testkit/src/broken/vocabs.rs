//! Well-formed files whose vocabulary cannot be used.

use crate::broken::base;
use crate::gguf::Gguf;
use crate::value::{Value, ValueType};
use crate::vocabs;

/// All of them, with their names. Those whose name starts with `vocab-only` hold no tensors.
#[must_use]
pub fn all() -> Vec<(String, Vec<u8>)> {
    let mut files = arrays();
    files.extend(special_tokens());
    files.extend(other_tokenizers());
    files.into_iter().map(|(name, gguf)| (name.to_owned(), gguf.to_bytes())).collect()
}

type Files = Vec<(&'static str, Gguf)>;

const TOKENS: &str = "tokenizer.ggml.tokens";
const SCORES: &str = "tokenizer.ggml.scores";
const ADD_BOS: &str = "tokenizer.ggml.add_bos_token";
const TYPES: &str = "tokenizer.ggml.token_type";

fn with(key: &str, value: impl Into<Value>) -> Gguf {
    base().with_kv(key, value)
}

/// A file with one of its arrays cut to `n` elements.
fn shortened(gguf: Gguf, key: &str, n: usize) -> Gguf {
    let Some(Value::Array(ty, items)) = gguf.kv(key).cloned() else { return gguf };
    gguf.with_kv(key, Value::Array(ty, items.into_iter().take(n).collect()))
}

/// The sound model with one token's text replaced.
fn with_token(id: usize, text: &str) -> Gguf {
    let gguf = base();
    let Some(Value::Array(ty, mut items)) = gguf.kv(TOKENS).cloned() else { return gguf };
    if let Some(item) = items.get_mut(id) {
        *item = Value::from(text);
    }
    gguf.with_kv(TOKENS, Value::Array(ty, items))
}

/// An empty token gets a text from upstream, which another token has already.
fn with_two_tokens() -> Gguf {
    let gguf = with_token(300, "");
    let Some(Value::Array(ty, mut items)) = gguf.kv(TOKENS).cloned() else { return gguf };
    if let Some(item) = items.get_mut(301) {
        *item = Value::from("[EMPTY_300]");
    }
    gguf.with_kv(TOKENS, Value::Array(ty, items))
}

fn arrays() -> Files {
    vec![
        ("tokenizer-missing", base().without_kv("tokenizer.ggml.model")),
        ("tokenizer-unknown", with("tokenizer.ggml.model", "no-such-tokenizer")),
        ("tokenizer-number", with("tokenizer.ggml.model", 1u32)),
        ("tokens-missing", base().without_kv(TOKENS)),
        ("tokens-empty", with(TOKENS, Value::empty_array(ValueType::Str))),
        ("tokens-numbers", with(TOKENS, vec![1u32, 2, 3])),
        ("tokens-not-an-array", with(TOKENS, "one")),
        ("tokens-one-less", {
            let n = n_tokens(&base());
            shortened(base(), TOKENS, n - 1)
        }),
        ("tokens-duplicate", with_token(300, "!")),
        ("tokens-empty-text", with_token(300, "")),
        ("tokens-same-as-replacement", with_two_tokens()),
        ("tokens-not-utf8", tokens_not_utf8()),
        ("tokens-with-zero-byte", with_token(300, "a\0b")),
        ("tokens-long-text", with_token(300, &"x".repeat(1 << 20))),
        ("scores-missing", base().without_kv(SCORES)),
        ("scores-short", shortened(base(), SCORES, 10)),
        ("scores-integers", with(SCORES, vec![0i32; n_tokens(&base())])),
        ("scores-strings", with(SCORES, vec!["a"; n_tokens(&base())])),
        ("scores-nan", with(SCORES, vec![f32::NAN; n_tokens(&base())])),
        ("scores-not-an-array", with(SCORES, 1.0f32)),
        ("token-types-missing", base().without_kv(TYPES)),
        ("token-types-short", shortened(base(), TYPES, 10)),
        ("token-types-unsigned", with(TYPES, vec![1u32; n_tokens(&base())])),
        ("token-types-99", with(TYPES, vec![99i32; n_tokens(&base())])),
        ("token-types-all-byte", with(TYPES, vec![6i32; n_tokens(&base())])),
        ("token-types-all-control", with(TYPES, vec![3i32; n_tokens(&base())])),
    ]
}

fn special_tokens() -> Files {
    let id = |key: &str, id: u32| with(&format!("tokenizer.ggml.{key}_token_id"), id);
    vec![
        ("bos-1e9", id("bos", 1_000_000_000)),
        ("bos-max", id("bos", u32::MAX)),
        ("bos-negative", with("tokenizer.ggml.bos_token_id", -1i32)),
        ("bos-string", with("tokenizer.ggml.bos_token_id", "<s>")),
        ("eos-1e9", id("eos", 1_000_000_000)),
        ("eot-1e9", id("eot", 1_000_000_000)),
        ("unk-1e9", id("unknown", 1_000_000_000)),
        ("pad-1e9", id("padding", 1_000_000_000)),
        ("add-bos-string", with("tokenizer.ggml.add_bos_token", "yes")),
        ("suppress-1e9", with("tokenizer.ggml.suppress_tokens", vec![1_000_000_000i32, -5])),
        ("suppress-strings", with("tokenizer.ggml.suppress_tokens", vec!["a"])),
        ("chat-template-number", with("tokenizer.chat_template", 5u32)),
        ("chat-template-broken", with("tokenizer.chat_template", "{% for x in %}{{ x")),
    ]
}

/// Vocabularies of the other tokenizers, without tensors.
fn other_tokenizers() -> Files {
    let spm_of = |tokens: Vec<&str>| vocabs::spm().without_kv(SCORES).without_kv(TYPES).with_kv(TOKENS, tokens);
    vec![
        ("vocab-only-spm-one-token", spm_of(vec!["a"])),
        ("vocab-only-spm-without-bytes", spm_of(vec!["<unk>", "<s>", "</s>", "a", "b", "ab"])),
        ("vocab-only-spm-bad-byte", spm_bad_byte()),
        ("vocab-only-bpe-without-merges", vocabs::bpe().without_kv("tokenizer.ggml.merges")),
        ("vocab-only-bpe-merges-numbers", vocabs::bpe().with_kv("tokenizer.ggml.merges", vec![1u32])),
        (
            "vocab-only-bpe-merges-odd",
            vocabs::bpe().with_kv("tokenizer.ggml.merges", vec!["", " ", "a", "a b c", "x  y"]),
        ),
        ("vocab-only-bpe-pre-unknown", vocabs::bpe().with_kv("tokenizer.ggml.pre", "no-such-pre-tokenizer")),
        ("vocab-only-bpe-pre-missing", vocabs::bpe().without_kv("tokenizer.ggml.pre")),
        ("vocab-only-bpe-without-bytes", bpe_of_two()),
        ("vocab-only-bpe-token-not-bytes", bpe_token_not_bytes()),
        ("vocab-only-wpm-without-special", wpm_without_special()),
        ("vocab-only-ugm-charsmap-short", charsmap(vec![1, 2])),
        ("vocab-only-ugm-charsmap-empty", charsmap(Vec::new())),
        ("vocab-only-ugm-charsmap-size-max", charsmap(vec![0xff; 64])),
        ("vocab-only-ugm-charsmap-size-minus-4", charsmap(vec![0xfc, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0])),
        ("vocab-only-ugm-charsmap-size-0", charsmap(vec![0, 0, 0, 0, b'a'])),
        ("vocab-only-ugm-charsmap-wild", charsmap_wild()),
        ("vocab-only-ugm-charsmap-strings", vocabs::ugm().with_kv("tokenizer.ggml.precompiled_charsmap", vec!["a"])),
        ("vocab-only-ugm-one-token", vocabs::ugm().without_kv(SCORES).without_kv(TYPES).with_kv(TOKENS, vec!["<pad>"])),
        ("vocab-only-ugm-add-bos-without-bos", vocabs::ugm().with_kv(ADD_BOS, true)),
        ("vocab-only-bpe-add-bos-without-bos", bpe_of_two().with_kv(ADD_BOS, true)),
        ("vocab-only-bpe-add-eos-without-eos", bpe_of_two().with_kv("tokenizer.ggml.add_eos_token", true)),
        ("vocab-only-wpm-byte-tokens", all_bytes(vocabs::wpm())),
        ("vocab-only-ugm-byte-tokens", all_bytes(vocabs::ugm())),
        ("vocab-only-bpe-byte-tokens", all_bytes(vocabs::bpe())),
        ("vocab-only-plamo2-byte-tokens", all_bytes(vocabs::plamo2())),
        ("vocab-only-rwkv-partial-words", rwkv_of(vec!["<s>", "\\n", "abc"])),
        ("vocab-only-rwkv-without-newline", rwkv_of(vec!["<s>", "a"])),
        ("vocab-only-rwkv-bad-escapes", rwkv_of(vec!["<s>", "\\n", "\\x", "\\xzz", "\\"])),
        (
            "vocab-only-plamo2-without-bytes",
            vocabs::plamo2().without_kv(SCORES).without_kv(TYPES).with_kv(TOKENS, vec!["a", "b"]),
        ),
        ("vocab-only-test-no-tokens", vocabs::test().with_kv(TOKENS, Value::empty_array(ValueType::Str))),
        ("vocab-only-none-without-size", vocabs::none().without_kv("llama.vocab_size")),
        ("vocab-only-none-size-max", vocabs::none().with_kv("llama.vocab_size", u32::MAX)),
        ("vocab-only-nothing", Gguf::new().with_kv("general.architecture", "llama")),
    ]
}

/// Two tokens only: upstream's default ids of the special tokens are outside of the vocabulary.
fn bpe_of_two() -> Gguf {
    ["bos", "eos"]
        .iter()
        .fold(vocabs::bpe(), |g, key| g.without_kv(&format!("tokenizer.ggml.{key}_token_id")))
        .without_kv(TYPES)
        .with_kv(TOKENS, vec!["a", "b"])
}

/// Every token says that it is a byte.
fn all_bytes(gguf: Gguf) -> Gguf {
    let n = n_tokens(&gguf);
    gguf.with_kv(TYPES, vec![6i32; n])
}

fn n_tokens(gguf: &Gguf) -> usize {
    match gguf.kv(TOKENS) {
        Some(Value::Array(_, items)) => items.len(),
        _ => 0,
    }
}

fn tokens_not_utf8() -> Gguf {
    let gguf = base();
    let Some(Value::Array(ty, mut items)) = gguf.kv(TOKENS).cloned() else { return gguf };
    if let Some(item) = items.get_mut(300) {
        *item = Value::Str(vec![0xff, 0xc0, 0x80]);
    }
    gguf.with_kv(TOKENS, Value::Array(ty, items))
}

/// A byte token whose text is not `<0x..>`.
fn spm_bad_byte() -> Gguf {
    let gguf = vocabs::spm();
    let Some(Value::Array(ty, mut items)) = gguf.kv(TYPES).cloned() else { return gguf };
    // "!" becomes a byte token
    if let Some(item) = items.get_mut(262) {
        *item = Value::I32(6);
    }
    gguf.with_kv(TYPES, Value::Array(ty, items))
}

/// A token with a character that stands for no byte.
fn bpe_token_not_bytes() -> Gguf {
    let gguf = vocabs::bpe();
    let Some(Value::Array(ty, mut items)) = gguf.kv(TOKENS).cloned() else { return gguf };
    if let Some(item) = items.last_mut() {
        *item = Value::from("\u{65e5}\u{672c}");
    }
    gguf.with_kv(TOKENS, Value::Array(ty, items))
}

/// No entry says which tokens are special, and upstream's default ids are outside of the vocabulary.
fn wpm_without_special() -> Gguf {
    ["bos", "cls", "seperator", "unknown", "padding", "mask"]
        .iter()
        .fold(vocabs::wpm(), |g, key| g.without_kv(&format!("tokenizer.ggml.{key}_token_id")))
}

fn charsmap(bytes: Vec<u8>) -> Gguf {
    vocabs::ugm().with_kv("tokenizer.ggml.precompiled_charsmap", bytes)
}

/// A character map of the right size whose entries point anywhere.
fn charsmap_wild() -> Gguf {
    let mut bytes = 64u32.to_le_bytes().to_vec();
    bytes.extend([0xa5; 64]);
    bytes.extend(b"no end");
    charsmap(bytes)
}

fn rwkv_of(tokens: Vec<&str>) -> Gguf {
    vocabs::rwkv().without_kv(TYPES).with_kv(TOKENS, tokens)
}
