//! A byte-level BPE vocabulary (GPT-2 style) with a few words.

use crate::gguf::Gguf;
use crate::spm::TokenKind;

/// Words that are one token after a space.
const WORDS: &str = "hello world the quick brown fox jumps over lazy dog and is good day";

/// `<|endoftext|>`, which is the end of a sequence: the first token after the 256 bytes.
pub const END_OF_TEXT: i32 = 256;

/// All tokens and merges; the id of a token is its place.
#[derive(Clone, Debug)]
pub struct BpeVocab {
    tokens: Vec<String>,
    merges: Vec<String>,
}

impl Default for BpeVocab {
    fn default() -> Self {
        Self::new()
    }
}

/// The character that stands for a byte in the tokens of byte-level BPE: itself where it is printable, else one
/// from U+0100 on.
#[must_use]
pub fn byte_to_char(byte: u8) -> char {
    let printable = |b: u8| matches!(b, 0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff);
    if printable(byte) {
        return char::from(byte);
    }
    let place = (0..byte).filter(|b| !printable(*b)).count() as u32;
    char::from_u32(0x100 + place).unwrap_or(' ')
}

impl BpeVocab {
    /// The vocabulary: 256 bytes in order, the end of text, then every prefix of a word with a space in front.
    #[must_use]
    pub fn new() -> Self {
        let mut tokens: Vec<String> = (0..=255u8).map(|b| byte_to_char(b).to_string()).collect();
        tokens.push("<|endoftext|>".to_owned());
        let mut merges = Vec::new();
        let space = byte_to_char(b' ');
        for word in WORDS.split_whitespace() {
            let mut left = space.to_string();
            for c in word.chars() {
                let joined = format!("{left}{c}");
                if !tokens.contains(&joined) {
                    merges.push(format!("{left} {c}"));
                    tokens.push(joined.clone());
                }
                left = joined;
            }
        }
        Self { tokens, merges }
    }

    /// The number of tokens.
    #[must_use]
    pub fn n_tokens(&self) -> usize {
        self.tokens.len()
    }

    /// The id of a token by the bytes that it stands for.
    #[must_use]
    pub fn id(&self, bytes: &[u8]) -> Option<i32> {
        let text: String = bytes.iter().map(|b| byte_to_char(*b)).collect();
        self.tokens.iter().position(|t| *t == text).map(|i| i as i32)
    }

    /// The tokens of a text, worked out without upstream: after a space the longest known token, else bytes.
    #[must_use]
    pub fn tokenize(&self, text: &str) -> Vec<i32> {
        let mut tokens = Vec::new();
        let mut rest = text.as_bytes();
        while !rest.is_empty() {
            let ends = (1..=rest.len()).take_while(|end| self.id(&rest[..*end]).is_some());
            let end = ends.last().unwrap_or(1);
            tokens.extend(self.id(&rest[..end]));
            rest = &rest[end..];
        }
        tokens
    }

    /// Adds the tokenizer's metadata to a file.
    #[must_use]
    pub fn describe(&self, gguf: Gguf, pre: &str) -> Gguf {
        let kinds: Vec<i32> = (0..self.n_tokens() as i32)
            .map(|id| if id == END_OF_TEXT { TokenKind::Control as i32 } else { TokenKind::Normal as i32 })
            .collect();
        gguf.with_kv("tokenizer.ggml.model", "gpt2")
            .with_kv("tokenizer.ggml.pre", pre)
            .with_kv("tokenizer.ggml.tokens", self.tokens.clone())
            .with_kv("tokenizer.ggml.token_type", kinds)
            .with_kv("tokenizer.ggml.merges", self.merges.clone())
            .with_kv("tokenizer.ggml.bos_token_id", END_OF_TEXT as u32)
            .with_kv("tokenizer.ggml.eos_token_id", END_OF_TEXT as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::{BpeVocab, END_OF_TEXT, byte_to_char};

    #[test]
    fn byte_characters() {
        assert_eq!(byte_to_char(b'A'), 'A');
        assert_eq!(byte_to_char(b' '), '\u{120}');
        assert_eq!(byte_to_char(b'\n'), '\u{10a}');
        assert_eq!(byte_to_char(0xad), '\u{143}');
        let all: std::collections::HashSet<char> = (0..=255u8).map(byte_to_char).collect();
        assert_eq!(all.len(), 256);
    }

    #[test]
    fn tokens() {
        let v = BpeVocab::new();
        let id = |t: &str| v.id(t.as_bytes()).unwrap();
        assert_eq!(v.tokens[END_OF_TEXT as usize], "<|endoftext|>");
        assert_eq!(v.tokenize("a world"), [i32::from(b'a'), id(" world")]);
        assert_eq!(v.tokenize("\u{1f600}"), [0xf0, 0x9f, 0x98, 0x80]);
        assert_eq!(v.tokens.len(), 257 + v.merges.len());
    }
}
