//! The vocabulary of the tiny T5-style model (Unigram).

use crate::gguf::Gguf;
use crate::spm::{SPACE, TokenKind};

/// Padding, and the token that a decoder starts with.
pub const PAD: i32 = 0;
/// End of a text.
pub const EOS: i32 = 1;
/// The unknown token.
pub const UNK: i32 = 2;

const WORDS: &str = "hello world translate english german to the a is good day house and small green one two three \
    summarize text yes no what who where";

/// All tokens with their scores; the id of a token is its place.
#[derive(Clone, Debug)]
pub struct UgmVocab {
    tokens: Vec<(String, f32)>,
}

impl Default for UgmVocab {
    fn default() -> Self {
        Self::new()
    }
}

impl UgmVocab {
    /// The vocabulary: special tokens, words, single characters.
    #[must_use]
    pub fn new() -> Self {
        let mut tokens = vec![("<pad>".to_owned(), 0.0), ("</s>".to_owned(), 0.0), ("<unk>".to_owned(), 0.0)];
        tokens.push((SPACE.to_string(), -4.0));
        for (i, word) in WORDS.split_whitespace().enumerate() {
            tokens.push((format!("{SPACE}{word}"), -2.0 - 0.01 * i as f32));
        }
        for c in ('a'..='z').chain('A'..='Z').chain('0'..='9').chain(".,:;!?-'\u{e9}\u{fc}".chars()) {
            tokens.push((c.to_string(), -8.0));
        }
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
        self.tokens.iter().position(|(t, _)| t == text).map(|i| i as i32)
    }

    /// The tokens of a text, worked out without upstream, with [`EOS`]: of all ways to cut the text the one with the
    /// highest sum of scores. Runs of spaces count as one; a character without a token costs a lot.
    #[must_use]
    pub fn tokenize(&self, text: &str) -> Vec<i32> {
        let words = text.split(' ').filter(|w| !w.is_empty());
        let text: String = words.map(|w| format!("{SPACE}{w}")).collect();
        let lowest = self.tokens.iter().skip(3).map(|(_, s)| *s).fold(f32::MAX, f32::min);
        // per place: the best score up to it, the token that ends there and where that token starts
        let mut best = vec![(f64::MIN, UNK, 0); text.len() + 1];
        best[0].0 = 0.0;
        for (start, c) in text.char_indices() {
            let score = best[start].0;
            let mut offer = |end: usize, token: i32, gain: f32| {
                if score + f64::from(gain) > best[end].0 {
                    best[end] = (score + f64::from(gain), token, start);
                }
            };
            for (id, (piece, gain)) in self.tokens.iter().enumerate().skip(3) {
                if text[start..].starts_with(piece.as_str()) {
                    offer(start + piece.len(), id as i32, *gain);
                }
            }
            if self.id(c.encode_utf8(&mut [0; 4])).is_none() {
                offer(start + c.len_utf8(), UNK, lowest - 10.0);
            }
        }
        let mut tokens = vec![EOS];
        let mut end = text.len();
        while end > 0 {
            let (_, token, start) = best[end];
            // neighbouring unknown characters are one unknown token
            if !(token == UNK && tokens.last() == Some(&UNK)) {
                tokens.push(token);
            }
            end = start;
        }
        tokens.reverse();
        tokens
    }

    /// How much a model with random weights should like each token, so that it writes words more often than letters.
    #[must_use]
    pub fn likings(&self) -> Vec<f32> {
        let liking = |id: usize, text: &str| match id {
            0..=2 => 0.5,
            _ if text.chars().count() > 1 => 4.0,
            _ => 2.0,
        };
        self.tokens.iter().enumerate().map(|(id, (text, _))| liking(id, text)).collect()
    }

    /// Adds the tokenizer's metadata to a file.
    #[must_use]
    pub fn describe(&self, gguf: Gguf) -> Gguf {
        let kinds: Vec<i32> = (0..self.n_tokens() as i32)
            .map(|id| match id {
                UNK => TokenKind::Unknown as i32,
                PAD | EOS => TokenKind::Control as i32,
                _ => TokenKind::Normal as i32,
            })
            .collect();
        gguf.with_kv("tokenizer.ggml.model", "t5")
            .with_kv("tokenizer.ggml.pre", "default")
            .with_kv("tokenizer.ggml.tokens", self.tokens.iter().map(|(t, _)| t.clone()).collect::<Vec<_>>())
            .with_kv("tokenizer.ggml.scores", self.tokens.iter().map(|(_, s)| *s).collect::<Vec<_>>())
            .with_kv("tokenizer.ggml.token_type", kinds)
            .with_kv("tokenizer.ggml.eos_token_id", EOS as u32)
            .with_kv("tokenizer.ggml.unknown_token_id", UNK as u32)
            .with_kv("tokenizer.ggml.padding_token_id", PAD as u32)
            .with_kv("tokenizer.ggml.add_space_prefix", true)
            .with_kv("tokenizer.ggml.remove_extra_whitespaces", true)
            .with_kv("tokenizer.ggml.add_bos_token", false)
            .with_kv("tokenizer.ggml.add_eos_token", true)
    }
}

#[cfg(test)]
mod tests {
    use super::{EOS, UNK, UgmVocab};

    #[test]
    fn tokens() {
        let v = UgmVocab::new();
        let id = |t: &str| v.id(t).unwrap();
        assert_eq!(v.id("</s>"), Some(EOS));
        assert_eq!(v.id("<unk>"), Some(UNK));
        assert_eq!(v.tokenize("hello  world"), [id("\u{2581}hello"), id("\u{2581}world"), EOS]);
        assert_eq!(v.tokenize("xy\u{1f600}\u{1f600}"), [id("\u{2581}"), id("x"), id("y"), UNK, EOS]);
        assert_eq!(v.tokenize("smallgreen")[0], id("\u{2581}small"));
        assert_eq!(v.tokenize(""), [EOS]);
    }
}
