//! A model's vocabulary: tokens to text and back.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::llama::token::Token;
use crate::raw::fault;
use crate::raw::model::RawModel;
use crate::sys;
use crate::util::cstr::from_c;

/// The tokenizer's algorithm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum VocabType {
    /// The model has no vocabulary.
    None,
    /// SentencePiece byte-pair encoding with byte fallback (LLaMA).
    Spm,
    /// Byte-level byte-pair encoding (GPT-2).
    Bpe,
    /// WordPiece (BERT).
    Wpm,
    /// Unigram (T5).
    Ugm,
    /// Greedy longest match (RWKV).
    Rwkv,
    /// Aho-Corasick with dynamic programming (PLaMo-2).
    Plamo2,
    /// Upstream's dummy for tests.
    Test,
    /// A type that this crate does not know.
    Unknown(i64),
}

/// What kind of token it is: a set of flags. Unknown flags are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct TokenAttr(pub u32);

// The constants are signed where the C compiler's enumerations are (Windows).
#[allow(missing_docs, clippy::unnecessary_cast)]
impl TokenAttr {
    pub const UNKNOWN: TokenAttr = TokenAttr(sys::LLAMA_TOKEN_ATTR_UNKNOWN as u32);
    pub const UNUSED: TokenAttr = TokenAttr(sys::LLAMA_TOKEN_ATTR_UNUSED as u32);
    pub const NORMAL: TokenAttr = TokenAttr(sys::LLAMA_TOKEN_ATTR_NORMAL as u32);
    pub const CONTROL: TokenAttr = TokenAttr(sys::LLAMA_TOKEN_ATTR_CONTROL as u32);
    pub const USER_DEFINED: TokenAttr = TokenAttr(sys::LLAMA_TOKEN_ATTR_USER_DEFINED as u32);
    pub const BYTE: TokenAttr = TokenAttr(sys::LLAMA_TOKEN_ATTR_BYTE as u32);
    pub const NORMALIZED: TokenAttr = TokenAttr(sys::LLAMA_TOKEN_ATTR_NORMALIZED as u32);
    pub const LSTRIP: TokenAttr = TokenAttr(sys::LLAMA_TOKEN_ATTR_LSTRIP as u32);
    pub const RSTRIP: TokenAttr = TokenAttr(sys::LLAMA_TOKEN_ATTR_RSTRIP as u32);
    pub const SINGLE_WORD: TokenAttr = TokenAttr(sys::LLAMA_TOKEN_ATTR_SINGLE_WORD as u32);
}

impl TokenAttr {
    /// Whether all flags of `other` are set.
    #[must_use]
    pub fn contains(self, other: TokenAttr) -> bool {
        self.0 & other.0 == other.0
    }
}

/// A handle to the vocabulary of a [`Model`](crate::Model), which it keeps alive. All calls are thread-safe.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use ggml_llama::{Model, ModelParams, Special};
/// # let model = Model::load(ggml_llama_testkit::tiny_llama_path()?, &ModelParams::default())?;
/// let vocab = model.vocab();
/// let tokens = vocab.tokenize("hello", false, Special::AsText)?;
/// assert_eq!(vocab.detokenize(&tokens, false)?.trim_start(), "hello");
/// # Ok(())
/// # }
/// ```
#[doc(alias = "llama_vocab")]
#[derive(Clone)]
pub struct Vocab {
    model: Arc<RawModel>,
}

impl Vocab {
    pub(crate) fn new(model: Arc<RawModel>) -> Vocab {
        Vocab { model }
    }

    pub(crate) fn model(&self) -> &Arc<RawModel> {
        &self.model
    }

    pub(crate) fn as_ptr(&self) -> *const sys::llama_vocab {
        self.model.vocab()
    }

    /// The tokenizer's algorithm.
    #[doc(alias = "llama_vocab_type")]
    #[must_use]
    pub fn vocab_type(&self) -> VocabType {
        // SAFETY: the vocabulary is valid.
        match unsafe { sys::llama_vocab_type(self.as_ptr()) } {
            sys::LLAMA_VOCAB_TYPE_NONE => VocabType::None,
            sys::LLAMA_VOCAB_TYPE_SPM => VocabType::Spm,
            sys::LLAMA_VOCAB_TYPE_BPE => VocabType::Bpe,
            sys::LLAMA_VOCAB_TYPE_WPM => VocabType::Wpm,
            sys::LLAMA_VOCAB_TYPE_UGM => VocabType::Ugm,
            sys::LLAMA_VOCAB_TYPE_RWKV => VocabType::Rwkv,
            sys::LLAMA_VOCAB_TYPE_PLAMO2 => VocabType::Plamo2,
            sys::LLAMA_VOCAB_TYPE_TEST => VocabType::Test,
            other => VocabType::Unknown(other.into()),
        }
    }

    /// Number of tokens: the ids are 0 to `n_tokens - 1`.
    #[doc(alias = "llama_vocab_n_tokens")]
    #[must_use]
    pub fn n_tokens(&self) -> i32 {
        // SAFETY: the vocabulary is valid.
        unsafe { sys::llama_vocab_n_tokens(self.as_ptr()) }
    }

    /// Upstream looks ids up with a check that throws, and asserts that there is a vocabulary.
    fn check(&self, token: Token, operation: &'static str) -> Result<()> {
        self.require(operation)?;
        let n_vocab = self.n_tokens();
        if (0..n_vocab).contains(&token.0) {
            return Ok(());
        }
        Err(Error::TokenOutOfRange { token: token.0, n_vocab })
    }

    pub(crate) fn require(&self, operation: &'static str) -> Result<()> {
        if self.vocab_type() == VocabType::None {
            return Err(Error::NoVocabulary { operation });
        }
        Ok(())
    }

    /// Turns tokens into text; bytes that are no UTF-8 become replacement marks.
    ///
    /// With `special`, special tokens appear as their names; otherwise they are left out.
    ///
    /// # Errors
    ///
    /// [`Error::TokenOutOfRange`] or [`Error::NoVocabulary`].
    #[doc(alias = "llama_detokenize")]
    pub fn detokenize(&self, tokens: &[Token], special: bool) -> Result<String> {
        Ok(String::from_utf8_lossy(&self.detokenize_bytes(tokens, special)?).into_owned())
    }

    /// As [`detokenize`](Self::detokenize), as the bytes that they are.
    ///
    /// # Errors
    ///
    /// As [`detokenize`](Self::detokenize).
    pub fn detokenize_bytes(&self, tokens: &[Token], special: bool) -> Result<Vec<u8>> {
        self.require("detokenize")?;
        for token in tokens {
            self.check(*token, "detokenize")?;
        }
        if tokens.is_empty() {
            return Ok(Vec::new());
        }
        let n_tokens = i32::try_from(tokens.len())
            .map_err(|_| Error::parameter("tokens", tokens.len(), "at most 2147483647 tokens"))?;
        let mut text = vec![0u8; tokens.len().saturating_mul(8).clamp(64, 1 << 30)];
        loop {
            let length = fault::call(|status| {
                // SAFETY: the vocabulary is valid, all ids were checked, both buffers have the lengths that are given.
                unsafe {
                    sys::gl_detokenize(
                        status,
                        self.as_ptr(),
                        tokens.as_ptr().cast(),
                        n_tokens,
                        text.as_mut_ptr().cast(),
                        i32::try_from(text.len()).unwrap_or(i32::MAX),
                        false,
                        special,
                    )
                }
            })
            .map_err(|fault| fault.into_error("llama_detokenize"))?;
            if length >= 0 {
                text.truncate(length as usize);
                return Ok(text);
            }
            text.resize(length.unsigned_abs() as usize, 0);
        }
    }

    /// The bytes of one token: possibly a part of a character. See [`Utf8Decoder`](crate::Utf8Decoder).
    ///
    /// # Errors
    ///
    /// [`Error::TokenOutOfRange`] or [`Error::NoVocabulary`].
    #[doc(alias = "llama_token_to_piece")]
    pub fn piece(&self, token: Token, special: bool) -> Result<Vec<u8>> {
        let mut piece = Vec::new();
        self.piece_into(token, special, &mut piece)?;
        Ok(piece)
    }

    /// As [`piece`](Self::piece), into a buffer that is cleared first and keeps its memory.
    ///
    /// # Errors
    ///
    /// As [`piece`](Self::piece); the buffer is empty then.
    pub fn piece_into(&self, token: Token, special: bool, piece: &mut Vec<u8>) -> Result<()> {
        piece.clear();
        self.check(token, "token_to_piece")?;
        let mut room = piece.capacity().clamp(32, 1 << 20);
        loop {
            piece.resize(room, 0);
            let result = fault::call(|status| {
                // SAFETY: the vocabulary is valid, the id was checked, the buffer has the length that is given.
                unsafe {
                    sys::gl_token_to_piece(
                        status,
                        self.as_ptr(),
                        token.0,
                        piece.as_mut_ptr().cast(),
                        room as i32,
                        special,
                    )
                }
            });
            match result {
                Ok(n) if n >= 0 => {
                    piece.truncate(n as usize);
                    return Ok(());
                }
                Ok(n) => room = n.unsigned_abs() as usize,
                Err(fault) => {
                    piece.clear();
                    return Err(fault.into_error("llama_token_to_piece"));
                }
            }
        }
    }

    /// A token as the file writes it.
    ///
    /// # Errors
    ///
    /// [`Error::TokenOutOfRange`] or [`Error::NoVocabulary`].
    #[doc(alias = "llama_vocab_get_text")]
    pub fn text(&self, token: Token) -> Result<String> {
        self.check(token, "text")?;
        // SAFETY: the id was checked; the text lives as long as the vocabulary.
        Ok(unsafe { from_c(sys::llama_vocab_get_text(self.as_ptr(), token.0)) }.unwrap_or_default())
    }

    /// A token's score, of tokenizers that have one.
    ///
    /// # Errors
    ///
    /// [`Error::TokenOutOfRange`] or [`Error::NoVocabulary`].
    #[doc(alias = "llama_vocab_get_score")]
    pub fn score(&self, token: Token) -> Result<f32> {
        self.check(token, "score")?;
        // SAFETY: the id was checked.
        Ok(unsafe { sys::llama_vocab_get_score(self.as_ptr(), token.0) })
    }

    /// What kind of token it is.
    ///
    /// # Errors
    ///
    /// [`Error::TokenOutOfRange`] or [`Error::NoVocabulary`].
    #[doc(alias = "llama_vocab_get_attr")]
    pub fn attr(&self, token: Token) -> Result<TokenAttr> {
        self.check(token, "attr")?;
        // SAFETY: the id was checked.
        Ok(TokenAttr(unsafe { sys::llama_vocab_get_attr(self.as_ptr(), token.0) } as u32))
    }

    /// Whether the token ends a generation (end of sequence, of turn, ...).
    ///
    /// # Errors
    ///
    /// [`Error::TokenOutOfRange`] or [`Error::NoVocabulary`].
    #[doc(alias = "llama_vocab_is_eog")]
    pub fn is_eog(&self, token: Token) -> Result<bool> {
        self.check(token, "is_eog")?;
        // SAFETY: the id was checked.
        Ok(unsafe { sys::llama_vocab_is_eog(self.as_ptr(), token.0) })
    }

    /// Whether the token controls the model and is no text.
    ///
    /// # Errors
    ///
    /// [`Error::TokenOutOfRange`] or [`Error::NoVocabulary`].
    #[doc(alias = "llama_vocab_is_control")]
    pub fn is_control(&self, token: Token) -> Result<bool> {
        self.check(token, "is_control")?;
        // SAFETY: the id was checked.
        Ok(unsafe { sys::llama_vocab_is_control(self.as_ptr(), token.0) })
    }

    /// Tokens that the file wants never to be generated.
    #[doc(alias = "llama_vocab_get_suppress_tokens")]
    #[must_use]
    pub fn suppressed_tokens(&self) -> Vec<Token> {
        let mut count = 0;
        // SAFETY: the vocabulary is valid.
        let tokens = unsafe { sys::llama_vocab_get_suppress_tokens(self.as_ptr(), &mut count) };
        if tokens.is_null() || count <= 0 {
            return Vec::new();
        }
        // SAFETY: upstream gave that many ids, which live as long as the vocabulary.
        let tokens = unsafe { std::slice::from_raw_parts(tokens, count as usize) };
        tokens.iter().map(|token| Token(*token)).collect()
    }

    /// Upstream's -1 for "there is none", and ids that the file names but the vocabulary lacks.
    fn special(&self, token: sys::llama_token) -> Option<Token> {
        (0..self.n_tokens()).contains(&token).then_some(Token(token))
    }
}

/// Getters of special tokens and of flags.
macro_rules! specials {
    ($($(#[$meta:meta])+ $name:ident = $function:ident;)+) => {
        impl Vocab {
            $(
                $(#[$meta])+
                #[must_use]
                pub fn $name(&self) -> Option<Token> {
                    // SAFETY: the vocabulary is valid.
                    self.special(unsafe { sys::$function(self.as_ptr()) })
                }
            )+
        }
    };
}

specials! {
    /// Beginning of a sequence.
    #[doc(alias = "llama_vocab_bos")]
    bos = llama_vocab_bos;
    /// End of a sequence.
    #[doc(alias = "llama_vocab_eos")]
    eos = llama_vocab_eos;
    /// End of a turn.
    #[doc(alias = "llama_vocab_eot")]
    eot = llama_vocab_eot;
    /// Separator of sentences.
    #[doc(alias = "llama_vocab_sep")]
    sep = llama_vocab_sep;
    /// Line break.
    #[doc(alias = "llama_vocab_nl")]
    nl = llama_vocab_nl;
    /// Padding.
    #[doc(alias = "llama_vocab_pad")]
    pad = llama_vocab_pad;
    /// Mask.
    #[doc(alias = "llama_vocab_mask")]
    mask = llama_vocab_mask;
    /// Fill in the middle: before the gap.
    #[doc(alias = "llama_vocab_fim_pre")]
    fim_pre = llama_vocab_fim_pre;
    /// Fill in the middle: after the gap.
    #[doc(alias = "llama_vocab_fim_suf")]
    fim_suf = llama_vocab_fim_suf;
    /// Fill in the middle: the gap.
    #[doc(alias = "llama_vocab_fim_mid")]
    fim_mid = llama_vocab_fim_mid;
    /// Fill in the middle: padding.
    #[doc(alias = "llama_vocab_fim_pad")]
    fim_pad = llama_vocab_fim_pad;
    /// Fill in the middle: repository name.
    #[doc(alias = "llama_vocab_fim_rep")]
    fim_rep = llama_vocab_fim_rep;
    /// Fill in the middle: file separator.
    #[doc(alias = "llama_vocab_fim_sep")]
    fim_sep = llama_vocab_fim_sep;
}

impl Vocab {
    /// Whether the model wants BOS before a text.
    #[doc(alias = "llama_vocab_get_add_bos")]
    #[must_use]
    pub fn adds_bos(&self) -> bool {
        // SAFETY: the vocabulary is valid.
        unsafe { sys::llama_vocab_get_add_bos(self.as_ptr()) }
    }

    /// Whether the model wants EOS after a text.
    #[doc(alias = "llama_vocab_get_add_eos")]
    #[must_use]
    pub fn adds_eos(&self) -> bool {
        // SAFETY: the vocabulary is valid.
        unsafe { sys::llama_vocab_get_add_eos(self.as_ptr()) }
    }

    /// Whether the model wants a separator after a text.
    #[doc(alias = "llama_vocab_get_add_sep")]
    #[must_use]
    pub fn adds_sep(&self) -> bool {
        // SAFETY: the vocabulary is valid.
        unsafe { sys::llama_vocab_get_add_sep(self.as_ptr()) }
    }
}

impl std::fmt::Debug for Vocab {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Vocab").field("type", &self.vocab_type()).field("n_tokens", &self.n_tokens()).finish()
    }
}
