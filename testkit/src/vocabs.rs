//! Files with a vocabulary and nothing else, one per kind of tokenizer, to be loaded with `vocab_only`.

use crate::bpe::BpeVocab;
use crate::gguf::Gguf;
use crate::spm::{SpmVocab, TokenKind};
use crate::ugm::UgmVocab;
use crate::wpm::WpmVocab;

/// Words of the RWKV and PLaMo-2 vocabularies.
const WORDS: [&str; 8] = ["hello", " hello", "world", " world", "the", " the", "llama", " llama"];

/// The number of tokens of [`none()`] and [`test()`].
pub const N_DUMMY: u32 = 300;

fn start(name: &str) -> Gguf {
    Gguf::new().with_kv("general.architecture", "llama").with_kv("general.name", name)
}

/// SentencePiece with byte fallback, as in Llama.
#[must_use]
pub fn spm() -> Gguf {
    SpmVocab::new().describe(start("vocab-spm"))
}

/// Byte-level BPE, as in GPT-2.
#[must_use]
pub fn bpe() -> Gguf {
    BpeVocab::new().describe(start("vocab-bpe"), "gpt-2")
}

/// WordPiece, as in BERT.
#[must_use]
pub fn wpm() -> Gguf {
    WpmVocab::new().describe(start("vocab-wpm"))
}

/// Unigram, as in T5. It has no beginning-of-sequence token.
#[must_use]
pub fn ugm() -> Gguf {
    UgmVocab::new().describe(start("vocab-ugm"))
}

/// The longest-match tokenizer of RWKV: token 0, the 256 bytes from 1 on, words. It has no special tokens at all.
#[must_use]
pub fn rwkv() -> Gguf {
    let mut tokens = vec!["<s>".to_owned()];
    // a backslash starts an escape, so it is written as one too
    tokens.extend((0..=255u8).map(|b| match b {
        b'\\' => "\\\\".to_owned(),
        b'!'..=b'~' => char::from(b).to_string(),
        _ => format!("\\x{b:02x}"),
    }));
    tokens.extend(WORDS.map(str::to_owned));
    let kinds: Vec<i32> = (0..tokens.len()).map(|_| TokenKind::Normal as i32).collect();
    start("vocab-rwkv")
        .with_kv("tokenizer.ggml.model", "rwkv")
        .with_kv("tokenizer.ggml.tokens", tokens)
        .with_kv("tokenizer.ggml.token_type", kinds)
}

/// The tokenizer of PLaMo-2: four special tokens, the 256 bytes from 4 on, words.
#[must_use]
pub fn plamo2() -> Gguf {
    let mut tokens: Vec<(String, TokenKind)> = vec![
        ("<|plamo:unk|>".to_owned(), TokenKind::Unknown),
        ("<|plamo:bos|>".to_owned(), TokenKind::Control),
        ("<|plamo:eos|>".to_owned(), TokenKind::Control),
        ("<|plamo:pad|>".to_owned(), TokenKind::Control),
    ];
    tokens.extend((0..=255u8).map(|b| (format!("<0x{b:02X}>"), TokenKind::Byte)));
    tokens.extend(WORDS.map(|w| (w.to_owned(), TokenKind::Normal)));
    let scores: Vec<f32> = tokens.iter().map(|(t, _)| -(t.len() as f32)).collect();
    start("vocab-plamo2")
        .with_kv("tokenizer.ggml.model", "plamo2")
        .with_kv("tokenizer.ggml.tokens", tokens.iter().map(|(t, _)| t.clone()).collect::<Vec<_>>())
        .with_kv("tokenizer.ggml.scores", scores)
        .with_kv("tokenizer.ggml.token_type", tokens.iter().map(|(_, k)| *k as i32).collect::<Vec<_>>())
        .with_kv("tokenizer.ggml.bos_token_id", 1u32)
        .with_kv("tokenizer.ggml.eos_token_id", 2u32)
        .with_kv("tokenizer.ggml.unknown_token_id", 0u32)
        .with_kv("tokenizer.ggml.padding_token_id", 3u32)
}

/// No vocabulary, only a number of tokens.
#[must_use]
pub fn none() -> Gguf {
    start("vocab-none").with_kv("llama.vocab_size", N_DUMMY).with_kv("tokenizer.ggml.model", "no_vocab")
}

/// Upstream's tokenizer for tests, which hashes five bytes at a time.
#[must_use]
pub fn test() -> Gguf {
    let tokens: Vec<String> = (0..N_DUMMY).map(|i| format!("tok_{i}")).collect();
    start("vocab-test").with_kv("tokenizer.ggml.model", "test").with_kv("tokenizer.ggml.tokens", tokens)
}

/// The tokens that the tokenizer of [`test()`] makes of a text, worked out without upstream.
#[must_use]
pub fn test_tokens(text: &str) -> Vec<i32> {
    let hash = |c: &[u8]| c.iter().fold(0u64, |h, b| h.wrapping_mul(31).wrapping_add(u64::from(*b)));
    text.as_bytes().chunks(5).map(|c| (hash(c) % u64::from(N_DUMMY)) as i32).collect()
}

/// All of the above with their names.
#[must_use]
pub fn all() -> Vec<(&'static str, Gguf)> {
    vec![
        ("spm", spm()),
        ("bpe", bpe()),
        ("wpm", wpm()),
        ("ugm", ugm()),
        ("rwkv", rwkv()),
        ("plamo2", plamo2()),
        ("none", none()),
        ("test", test()),
    ]
}

#[cfg(test)]
mod tests {
    use super::{all, rwkv, test_tokens};
    use crate::value::Value;

    #[test]
    fn arrays_agree_in_length() {
        for (name, gguf) in all() {
            assert!(gguf.tensors().is_empty());
            let len = |key: &str| match gguf.kv(key) {
                Some(Value::Array(_, items)) => Some(items.len()),
                _ => None,
            };
            let Some(n) = len("tokenizer.ggml.tokens") else {
                assert_eq!(name, "none");
                continue;
            };
            for key in ["tokenizer.ggml.scores", "tokenizer.ggml.token_type"] {
                assert!(len(key).is_none_or(|m| m == n), "{name} {key}");
            }
        }
    }

    #[test]
    fn tokens_are_unique() {
        for (name, gguf) in all() {
            let Some(Value::Array(_, items)) = gguf.kv("tokenizer.ggml.tokens") else { continue };
            let texts: std::collections::HashSet<Vec<u8>> =
                items.iter().map(|v| if let Value::Str(s) = v { s.clone() } else { Vec::new() }).collect();
            assert_eq!(texts.len(), items.len(), "{name}");
        }
        assert!(matches!(rwkv().kv("tokenizer.ggml.tokens"), Some(Value::Array(_, t)) if t.len() == 265));
    }

    #[test]
    fn hashed_tokens() {
        assert_eq!(test_tokens("a"), [97]);
        assert_eq!(test_tokens("ab"), [(97 * 31 + 98) % 300]);
        assert_eq!(test_tokens("abcdefg").len(), 2);
    }
}
