//! The vocabulary of the tiny BERT-style models (WordPiece).

use crate::gguf::Gguf;
use crate::spm::{SPACE, TokenKind};

/// `[PAD]`.
pub const PAD: i32 = 0;
/// `[UNK]`.
pub const UNK: i32 = 1;
/// `[CLS]`, which starts a text.
pub const CLS: i32 = 2;
/// `[SEP]`, which ends a text.
pub const SEP: i32 = 3;
/// `[MASK]`.
pub const MASK: i32 = 4;

/// Words; each is a token.
const WORDS: &str = "the a an is are was of to and in on it i you he she we they this that not what how who hello \
    world good bad day night cat dog bird fish house tree water fire red green blue fast slow big small run walk \
    read write speak llama model text token word first last one two three caf\u{e9} cafe";

/// Endings of words; each is a token that only follows another one in the same word.
const ENDINGS: &str = "s ed ing er est ly ness able un re 1 2 3";

/// All tokens; the id of a token is its place.
#[derive(Clone, Debug)]
pub struct WpmVocab {
    tokens: Vec<String>,
}

impl Default for WpmVocab {
    fn default() -> Self {
        Self::new()
    }
}

impl WpmVocab {
    /// The vocabulary.
    #[must_use]
    pub fn new() -> Self {
        let mut tokens: Vec<String> = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"].map(str::to_owned).to_vec();
        // upstream marks the beginning of a word and not, as BERT's own files do, its continuation
        tokens.extend(WORDS.split_whitespace().map(|w| format!("{SPACE}{w}")));
        tokens.extend([".", ",", "!", "?", "-", "'"].map(|p| format!("{SPACE}{p}")));
        tokens.extend(ENDINGS.split_whitespace().map(str::to_owned));
        Self { tokens }
    }

    /// The number of tokens.
    #[must_use]
    pub fn n_tokens(&self) -> usize {
        self.tokens.len()
    }

    /// The id of a token.
    #[must_use]
    pub fn id(&self, text: &str) -> Option<i32> {
        self.tokens.iter().position(|t| t == text).map(|i| i as i32)
    }

    /// The tokens of a text of ASCII letters, digits, spaces and punctuation, worked out without upstream, with
    /// [`CLS`] and [`SEP`] around them.
    #[must_use]
    pub fn tokenize(&self, text: &str) -> Vec<i32> {
        let mut spaced = String::new();
        for c in text.to_lowercase().chars() {
            if c.is_ascii_punctuation() {
                spaced.extend([' ', c, ' ']);
            } else {
                spaced.push(c);
            }
        }
        let mut tokens = vec![CLS];
        for word in spaced.split_whitespace() {
            tokens.extend(self.word(word).unwrap_or_else(|| vec![UNK]));
        }
        tokens.push(SEP);
        tokens
    }

    fn word(&self, word: &str) -> Option<Vec<i32>> {
        let mut tokens = Vec::new();
        let marked = format!("{SPACE}{word}");
        let mut rest = marked.as_str();
        while !rest.is_empty() {
            let ends = rest.char_indices().map(|(at, c)| at + c.len_utf8());
            let (end, id) = ends.rev().find_map(|end| self.id(&rest[..end]).map(|id| (end, id)))?;
            tokens.push(id);
            rest = &rest[end..];
        }
        Some(tokens)
    }

    /// Adds the tokenizer's metadata to a file.
    #[must_use]
    pub fn describe(&self, gguf: Gguf) -> Gguf {
        let kinds: Vec<i32> = (0..self.n_tokens() as i32)
            .map(|id| match id {
                UNK => TokenKind::Unknown as i32,
                PAD | CLS | SEP | MASK => TokenKind::Control as i32,
                _ => TokenKind::Normal as i32,
            })
            .collect();
        gguf.with_kv("tokenizer.ggml.model", "bert")
            .with_kv("tokenizer.ggml.pre", "default")
            .with_kv("tokenizer.ggml.tokens", self.tokens.clone())
            .with_kv("tokenizer.ggml.token_type", kinds)
            .with_kv("tokenizer.ggml.token_type_count", 2u32)
            .with_kv("tokenizer.ggml.bos_token_id", CLS as u32)
            .with_kv("tokenizer.ggml.cls_token_id", CLS as u32)
            .with_kv("tokenizer.ggml.seperator_token_id", SEP as u32)
            .with_kv("tokenizer.ggml.unknown_token_id", UNK as u32)
            .with_kv("tokenizer.ggml.padding_token_id", PAD as u32)
            .with_kv("tokenizer.ggml.mask_token_id", MASK as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::{CLS, MASK, PAD, SEP, UNK, WpmVocab};

    #[test]
    fn tokens() {
        let v = WpmVocab::new();
        for (text, id) in [("[PAD]", PAD), ("[UNK]", UNK), ("[CLS]", CLS), ("[SEP]", SEP), ("[MASK]", MASK)] {
            assert_eq!(v.id(text), Some(id));
        }
        let id = |t: &str| v.id(t).unwrap();
        let mut unique = v.tokens.clone();
        unique.sort();
        unique.dedup();
        assert_eq!(unique.len(), v.n_tokens());
        assert_eq!(
            v.tokenize("Hello, world reads xyz"),
            [CLS, id("\u{2581}hello"), id("\u{2581},"), id("\u{2581}world"), id("\u{2581}read"), id("s"), UNK, SEP]
        );
        assert_eq!(v.tokenize(""), [CLS, SEP]);
    }
}
