//! The vocabulary of the tiny Llama-style models: byte tokens, single characters and a few English words.
//!
//! Every prefix of a word is a token too, so that the merges of the SPM tokenizer find the word. It makes the
//! expected tokens of a text easy to work out: see [`SpmVocab::tokenize`].

use std::collections::HashMap;

use crate::gguf::Gguf;

/// The token that stands for anything unknown.
pub const UNK: i32 = 0;
/// Beginning of sequence.
pub const BOS: i32 = 1;
/// End of sequence.
pub const EOS: i32 = 2;
/// The first of the 256 byte tokens.
pub const BYTE_0: i32 = 3;
/// `<|im_start|>`.
pub const IM_START: i32 = 259;
/// `<|im_end|>`, which ends a generation too.
pub const IM_END: i32 = 260;

/// The mark that the tokenizer puts for a space.
pub const SPACE: char = '\u{2581}';

/// Words that are one token when a space or nothing is in front of them.
const WORDS: &str = "Once upon a time there lived one small llama who liked to eat fresh green grass \
    Hello world the quick brown fox jumps over lazy dog user assistant system and is you are I not what with \
    good day night water sun moon river stone bird house hill song yes no red blue";

/// Characters outside of ASCII that are one token. All others become byte tokens.
const LETTERS: &str = "\u{e9}\u{fc}\u{df}\u{f1}\u{65e5}\u{672c}\u{8a9e}";

/// What a token is, with upstream's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenKind {
    /// A piece of text.
    Normal = 1,
    /// The unknown token.
    Unknown = 2,
    /// A special token.
    Control = 3,
    /// Text that is always one token.
    UserDefined = 4,
    /// Not in use.
    Unused = 5,
    /// One byte.
    Byte = 6,
}

/// One token.
#[derive(Clone, Debug, PartialEq)]
pub struct SpmPiece {
    /// Text, with [`SPACE`] for a space.
    pub text: String,
    /// What it is.
    pub kind: TokenKind,
    /// Whether it is a word or a single character, and not just the prefix of a word.
    pub whole: bool,
}

/// All tokens; the id of a token is its place.
#[derive(Clone, Debug)]
pub struct SpmVocab {
    pieces: Vec<SpmPiece>,
    ids: HashMap<String, i32>,
}

impl Default for SpmVocab {
    fn default() -> Self {
        Self::new()
    }
}

impl SpmVocab {
    /// The vocabulary.
    #[must_use]
    pub fn new() -> Self {
        let mut vocab = Self { pieces: Vec::new(), ids: HashMap::new() };
        vocab.add("<unk>", TokenKind::Unknown, true);
        vocab.add("<s>", TokenKind::Control, true);
        vocab.add("</s>", TokenKind::Control, true);
        for byte in 0..=255u8 {
            vocab.add(&format!("<0x{byte:02X}>"), TokenKind::Byte, true);
        }
        vocab.add("<|im_start|>", TokenKind::Control, true);
        vocab.add("<|im_end|>", TokenKind::Control, true);
        vocab.add(&SPACE.to_string(), TokenKind::Normal, true);
        for c in ('!'..='~').chain(LETTERS.chars()) {
            vocab.add(&c.to_string(), TokenKind::Normal, true);
        }
        // whole words first: a word can be the prefix of another one
        for word in WORDS.split_whitespace() {
            vocab.add(&format!("{SPACE}{word}"), TokenKind::Normal, true);
        }
        for word in WORDS.split_whitespace() {
            for (at, _) in word.char_indices().skip(1) {
                vocab.add(&format!("{SPACE}{}", &word[..at]), TokenKind::Normal, false);
            }
        }
        vocab
    }

    fn add(&mut self, text: &str, kind: TokenKind, whole: bool) {
        if !self.ids.contains_key(text) {
            self.ids.insert(text.to_owned(), self.pieces.len() as i32);
            self.pieces.push(SpmPiece { text: text.to_owned(), kind, whole });
        }
    }

    /// All tokens.
    #[must_use]
    pub fn pieces(&self) -> &[SpmPiece] {
        &self.pieces
    }

    /// The number of tokens.
    #[must_use]
    pub fn n_tokens(&self) -> usize {
        self.pieces.len()
    }

    /// The id of the token with this text, [`SPACE`] for a space.
    #[must_use]
    pub fn id(&self, text: &str) -> Option<i32> {
        self.ids.get(text).copied()
    }

    /// The tokens of a text, worked out without upstream: no special tokens are added or recognised.
    ///
    /// A space is put in front, spaces become [`SPACE`]; from each of those on the longest token is taken, then
    /// single characters, and bytes where a character is no token.
    #[must_use]
    pub fn tokenize(&self, text: &str) -> Vec<i32> {
        let mut tokens = Vec::new();
        if text.is_empty() {
            return tokens;
        }
        let text = format!(" {text}").replace(' ', &SPACE.to_string());
        let mut rest = text.as_str();
        while let Some(first) = rest.chars().next() {
            let longest = rest
                .char_indices()
                .map(|(at, c)| at + c.len_utf8())
                .take_while(|end| self.ids.contains_key(&rest[..*end]))
                .last();
            let end = longest.unwrap_or(first.len_utf8());
            let (piece, tail) = rest.split_at(end);
            match self.id(piece) {
                Some(id) => tokens.push(id),
                None => tokens.extend(piece.bytes().map(|b| BYTE_0 + i32::from(b))),
            }
            rest = tail;
        }
        tokens
    }

    /// The bytes that a sequence of tokens stands for: spaces for [`SPACE`], nothing for special tokens, and
    /// without the one space that the tokenizer puts in front.
    #[must_use]
    pub fn detokenize(&self, tokens: &[i32]) -> Vec<u8> {
        let mut out = Vec::new();
        for token in tokens {
            let Some(piece) = usize::try_from(*token).ok().and_then(|i| self.pieces.get(i)) else { continue };
            match piece.kind {
                TokenKind::Byte => out.push((token - BYTE_0) as u8),
                TokenKind::Normal => out.extend(piece.text.replace(SPACE, " ").bytes()),
                _ => {}
            }
        }
        if out.first() == Some(&b' ') {
            out.remove(0);
        }
        out
    }

    /// How much a model with random weights should like each token, so that it writes words more often than pieces.
    #[must_use]
    pub fn likings(&self) -> Vec<f32> {
        let liking = |piece: &SpmPiece| match piece.kind {
            TokenKind::Normal if piece.whole && piece.text.chars().count() > 1 => 4.0,
            TokenKind::Normal if piece.whole => 2.0,
            TokenKind::Normal | TokenKind::Byte => 1.0,
            _ => 0.5,
        };
        self.pieces.iter().map(liking).collect()
    }

    /// Adds the tokenizer's metadata to a file.
    #[must_use]
    pub fn describe(&self, gguf: Gguf) -> Gguf {
        let tokens: Vec<String> = self.pieces.iter().map(|p| p.text.clone()).collect();
        let kinds: Vec<i32> = self.pieces.iter().map(|p| p.kind as i32).collect();
        gguf.with_kv("tokenizer.ggml.model", "llama")
            .with_kv("tokenizer.ggml.pre", "default")
            .with_kv("tokenizer.ggml.tokens", tokens)
            .with_kv("tokenizer.ggml.scores", self.scores())
            .with_kv("tokenizer.ggml.token_type", kinds)
            .with_kv("tokenizer.ggml.bos_token_id", BOS as u32)
            .with_kv("tokenizer.ggml.eos_token_id", EOS as u32)
            .with_kv("tokenizer.ggml.unknown_token_id", UNK as u32)
    }

    /// The score of each token: the later in the list, the lower.
    #[must_use]
    pub fn scores(&self) -> Vec<f32> {
        self.pieces
            .iter()
            .enumerate()
            .map(|(i, p)| if p.kind == TokenKind::Normal { -(i as f32) } else { 0.0 })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{BOS, BYTE_0, EOS, IM_END, IM_START, SpmVocab, UNK};

    #[test]
    fn fixed_ids() {
        let v = SpmVocab::new();
        assert_eq!(v.id("<unk>"), Some(UNK));
        assert_eq!(v.id("<s>"), Some(BOS));
        assert_eq!(v.id("</s>"), Some(EOS));
        assert_eq!(v.id("<0x00>"), Some(BYTE_0));
        assert_eq!(v.id("<0xFF>"), Some(BYTE_0 + 255));
        assert_eq!(v.id("<|im_start|>"), Some(IM_START));
        assert_eq!(v.id("<|im_end|>"), Some(IM_END));
        assert!((400..800).contains(&v.n_tokens()), "{}", v.n_tokens());
    }

    #[test]
    fn tokenizing() {
        let v = SpmVocab::new();
        let id = |t: &str| v.id(t).unwrap();
        assert_eq!(v.tokenize("Hello world"), [id("\u{2581}Hello"), id("\u{2581}world")]);
        assert_eq!(v.tokenize("Hellos"), [id("\u{2581}Hello"), id("s")]);
        assert_eq!(v.tokenize("Help"), [id("\u{2581}Hel"), id("p")]);
        assert_eq!(v.tokenize("\u{65e5}\u{672c}"), [id("\u{2581}"), id("\u{65e5}"), id("\u{672c}")]);
        assert_eq!(v.tokenize("\u{1f600}"), [id("\u{2581}"), 3 + 0xf0, 3 + 0x9f, 3 + 0x98, 3 + 0x80]);
        assert_eq!(v.tokenize(""), []);
        for text in ["Once upon a time", "quick \u{1f999}!", "a  b\n", "\u{4f60}\u{597d}"] {
            assert_eq!(v.detokenize(&v.tokenize(text)), text.as_bytes());
        }
    }
}
