//! Text to tokens.

use crate::error::{Error, Result};
use crate::llama::token::Token;
use crate::llama::vocab::{Vocab, VocabType};
use crate::raw::fault;
use crate::sys;

/// Which special tokens text is turned into.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Special {
    /// Text that looks like a special token stays text: right for everything that comes from users.
    #[default]
    AsText,
    /// Text such as `<|im_end|>` becomes the token that it names: right for rendered templates.
    Parse,
}

impl Vocab {
    /// Turns text into tokens. The text may be any bytes.
    ///
    /// With `add_special` the tokens that the model wants around a text (BOS, EOS) are added, as its file says.
    ///
    /// # Errors
    ///
    /// [`Error::NoVocabulary`], or [`Error::InvalidParameter`] for text beyond 2 GiB.
    #[doc(alias = "llama_tokenize")]
    pub fn tokenize(&self, text: impl AsRef<[u8]>, add_special: bool, special: Special) -> Result<Vec<Token>> {
        let mut tokens = Vec::new();
        self.tokenize_into(text, add_special, special, &mut tokens)?;
        Ok(tokens)
    }

    /// As [`tokenize`](Self::tokenize), into a buffer that is cleared first and keeps its memory.
    ///
    /// # Errors
    ///
    /// As [`tokenize`](Self::tokenize); the buffer is empty then.
    pub fn tokenize_into(
        &self,
        text: impl AsRef<[u8]>,
        add_special: bool,
        special: Special,
        tokens: &mut Vec<Token>,
    ) -> Result<()> {
        tokens.clear();
        self.require("tokenize")?;
        if add_special {
            self.check_added()?;
        }
        let text = text.as_ref();
        let run = || self.tokenize_here(text, add_special, special, tokens);
        let result = on_large_stack(longest_run(text), run)?;
        let result = result.and_then(|()| match tokens.iter().any(|token| token.0 < 0) {
            true => Err(Error::parameter("text", "not tokenizable", "characters that the vocabulary has tokens for")),
            false => Ok(()),
        });
        if result.is_err() {
            tokens.clear();
        }
        result
    }

    /// Upstream asserts that a special token that is to be added exists.
    fn check_added(&self) -> Result<()> {
        let lacks = |name: &'static str| {
            let expected = format!("false: the vocabulary wants {name} added, but has no such token");
            Err(Error::parameter("add_special", true, expected))
        };
        match self.vocab_type() {
            VocabType::Wpm if self.bos().is_none() => lacks("CLS"),
            VocabType::Wpm if self.sep().is_none() => lacks("SEP"),
            VocabType::Wpm => Ok(()),
            _ if self.adds_bos() && self.bos().is_none() => lacks("BOS"),
            _ if self.adds_eos() && self.eos().is_none() => lacks("EOS"),
            _ => Ok(()),
        }
    }

    fn tokenize_here(&self, text: &[u8], add_special: bool, special: Special, tokens: &mut Vec<Token>) -> Result<()> {
        let text_len = i32::try_from(text.len())
            .map_err(|_| Error::parameter("text", format!("{} bytes", text.len()), "at most 2147483647 bytes"))?;
        // One token per byte and two special ones is enough for nearly every tokenizer; else the call says how many.
        let mut room = text.len().saturating_add(2);
        loop {
            tokens.resize(room, Token(0));
            let n_max = i32::try_from(room).unwrap_or(i32::MAX);
            let result = fault::call(|status| {
                // SAFETY: the vocabulary is valid; text and buffer have the lengths that are given; `Token` is
                // transparent over upstream's type.
                unsafe {
                    sys::gl_tokenize(
                        status,
                        self.as_ptr(),
                        text.as_ptr().cast(),
                        text_len,
                        tokens.as_mut_ptr().cast(),
                        n_max,
                        add_special,
                        special == Special::Parse,
                    )
                }
            });
            match result {
                Ok(n) if n >= 0 => {
                    tokens.truncate(n as usize);
                    return Ok(());
                }
                Ok(i32::MIN) => {
                    return Err(Error::parameter("text", format!("{text_len} bytes"), "fewer than 2^31 tokens"));
                }
                Ok(n) => room = n.unsigned_abs() as usize,
                // Some tokenizers throw on bytes that are no UTF-8; they would take a replacement mark for them.
                Err(fault) => match String::from_utf8_lossy(text) {
                    std::borrow::Cow::Owned(mended) => {
                        return self.tokenize_here(mended.as_bytes(), add_special, special, tokens);
                    }
                    std::borrow::Cow::Borrowed(_) => return Err(fault.into_error("llama_tokenize")),
                },
            }
        }
    }
}

/// Bytes in the longest stretch of text that is all white space or all something else.
fn longest_run(text: &[u8]) -> usize {
    text.chunk_by(|a, b| a.is_ascii_whitespace() == b.is_ascii_whitespace()).map(<[u8]>::len).max().unwrap_or(0)
}

/// Runs `f` where the stack is large enough for a run of this length.
///
/// Upstream splits text with the C++ library's regular expressions, which recurse once for each character that a match
/// takes: about 320 bytes of stack each were measured. The stack is address space that is used only as far as it is
/// needed.
fn on_large_stack<R: Send>(run: usize, f: impl FnOnce() -> R + Send) -> Result<R> {
    /// Fits into a quarter of the 2 MiB that Rust gives to threads.
    const SHORT: usize = 1 << 10;
    const BYTES_PER_CHARACTER: usize = 1 << 10;
    const LONGEST: usize = 1 << 22;
    if run <= SHORT {
        return Ok(f());
    }
    if run > LONGEST {
        let expected = format!("at most {LONGEST} bytes between two changes from white space to text");
        return Err(Error::parameter("text", format!("{run} bytes without a change"), expected));
    }
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("tokenize".to_owned());
        // On 32-bit systems the longest runs have no stack; the refusal of the system is an error below.
        let stack = run.saturating_mul(BYTES_PER_CHARACTER).saturating_add(1 << 20).min(isize::MAX as usize);
        let thread = thread.stack_size(stack).spawn_scoped(scope, f).map_err(|e| {
            Error::parameter("text", format!("{run} bytes without a change"), format!("memory for a stack: {e}"))
        })?;
        thread.join().map_err(|panic| std::panic::resume_unwind(panic))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_counted_between_changes_of_white_space() {
        assert_eq!(longest_run(b""), 0);
        assert_eq!(longest_run(b"ab cde  f"), 3);
        assert_eq!(longest_run(b"a    b"), 4);
    }

    #[test]
    fn a_long_run_gets_the_stack_it_needs_and_an_absurd_one_an_error() {
        fn deep(n: usize) -> usize {
            let frame = std::hint::black_box([n; 16]);
            if n == 0 { frame[0] } else { 1 + deep(n - 1) }
        }
        assert_eq!(on_large_stack(20_000, || deep(20_000)).unwrap(), 20_000);
        assert!(on_large_stack(usize::MAX, || ()).is_err());
    }
}
