//! Input of a decode: tokens with their positions and sequences.

use crate::error::{DecodeError, Result};
use crate::llama::token::{Pos, SeqId, Token};
use crate::sys;

/// Tokens to decode, each with a position, the sequences that it belongs to, and whether its output is wanted.
///
/// A batch is plain data: it grows as needed, belongs to no context, and is checked when it is decoded. What can be
/// checked at once (a token without sequences, or with more than the batch was made for) is refused by [`add`](Self::add)
/// and leaves the batch as it was.
///
/// ```
/// use ggml_llama::{Batch, Pos, SeqId, Token};
/// # fn main() -> ggml_llama::Result<()> {
/// let mut batch = Batch::new();
/// batch.add(Token(1), Pos(0), &[SeqId(0)], false)?;
/// batch.add(Token(5), Pos(1), &[SeqId(0)], true)?;
/// assert_eq!((batch.len(), batch.n_outputs()), (2, 1));
/// # Ok(())
/// # }
/// ```
#[doc(alias = "llama_batch")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    tokens: Vec<sys::llama_token>,
    positions: Vec<sys::llama_pos>,
    n_seq_id: Vec<i32>,
    /// The sequences of all tokens, one after the other.
    seq_ids: Vec<sys::llama_seq_id>,
    outputs: Vec<i8>,
    max_seqs_per_token: usize,
}

impl Default for Batch {
    fn default() -> Batch {
        Batch::new()
    }
}

impl Batch {
    /// An empty batch without a limit on the sequences of a token.
    #[must_use]
    pub fn new() -> Batch {
        Batch::with_capacity(0, usize::MAX)
    }

    /// An empty batch with room for `n_tokens`, that refuses tokens with more than `max_seqs_per_token` sequences.
    #[doc(alias = "llama_batch_init")]
    #[must_use]
    pub fn with_capacity(n_tokens: usize, max_seqs_per_token: usize) -> Batch {
        Batch {
            tokens: Vec::with_capacity(n_tokens),
            positions: Vec::with_capacity(n_tokens),
            n_seq_id: Vec::with_capacity(n_tokens),
            seq_ids: Vec::with_capacity(n_tokens),
            outputs: Vec::with_capacity(n_tokens),
            max_seqs_per_token,
        }
    }

    /// Adds a token. With `output`, its logits (or embedding) can be read after the decode.
    ///
    /// # Errors
    ///
    /// [`DecodeError::InvalidBatch`] when there is no sequence, or more than the batch was made for. The batch is
    /// unchanged then.
    pub fn add(&mut self, token: Token, pos: Pos, seqs: &[SeqId], output: bool) -> Result<(), DecodeError> {
        if seqs.is_empty() {
            return Err(DecodeError::InvalidBatch("a token needs at least 1 sequence id, got 0".to_owned()));
        }
        if seqs.len() > self.max_seqs_per_token {
            return Err(DecodeError::InvalidBatch(format!(
                "a token with {} sequence ids, but the batch was made for at most {} per token",
                seqs.len(),
                self.max_seqs_per_token
            )));
        }
        let n_seq_id = i32::try_from(seqs.len())
            .map_err(|_| DecodeError::InvalidBatch(format!("a token with {} sequence ids", seqs.len())))?;
        self.tokens.push(token.0);
        self.positions.push(pos.0);
        self.n_seq_id.push(n_seq_id);
        self.seq_ids.extend(seqs.iter().map(|seq| seq.0));
        self.outputs.push(i8::from(output));
        Ok(())
    }

    /// Adds a run of tokens of one sequence from position `start` on; only the last one's output is wanted.
    ///
    /// # Errors
    ///
    /// [`DecodeError::InvalidBatch`] when the positions leave the range of `i32`. The batch is unchanged then.
    pub fn add_sequence(&mut self, tokens: &[Token], start: Pos, seq: SeqId) -> Result<(), DecodeError> {
        let end = i32::try_from(tokens.len()).ok().and_then(|n| start.0.checked_add(n));
        if end.is_none() {
            return Err(DecodeError::InvalidBatch(format!(
                "{} tokens from position {start} on leave the range of positions",
                tokens.len()
            )));
        }
        for (i, token) in (0..).zip(tokens) {
            let last = i as usize + 1 == tokens.len();
            self.add(*token, Pos(start.0 + i), &[seq], last)?;
        }
        Ok(())
    }

    /// Wants (or no longer wants) the output of the token at `index`. Gives `false` when there is no such token.
    pub fn set_output(&mut self, index: usize, output: bool) -> bool {
        match self.outputs.get_mut(index) {
            Some(flag) => {
                *flag = i8::from(output);
                true
            }
            None => false,
        }
    }

    /// Removes all tokens and keeps the memory.
    pub fn clear(&mut self) {
        self.tokens.clear();
        self.positions.clear();
        self.n_seq_id.clear();
        self.seq_ids.clear();
        self.outputs.clear();
    }

    /// Number of tokens.
    #[must_use]
    pub fn len(&self) -> usize {
        self.tokens.len()
    }

    /// Whether there are no tokens.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tokens.is_empty()
    }

    /// Number of tokens whose output is wanted.
    #[must_use]
    pub fn n_outputs(&self) -> usize {
        self.outputs.iter().filter(|output| **output != 0).count()
    }

    /// The tokens, in order.
    pub fn tokens(&self) -> impl ExactSizeIterator<Item = Token> + '_ {
        self.tokens.iter().map(|token| Token(*token))
    }

    /// Each token with its position, sequences and output flag.
    pub(crate) fn entries(&self) -> impl Iterator<Item = Entry<'_>> {
        let mut rest = self.seq_ids.as_slice();
        self.tokens.iter().zip(&self.positions).zip(&self.n_seq_id).zip(&self.outputs).map(
            move |(((token, pos), n_seq), output)| {
                let (seqs, tail) = rest.split_at((*n_seq as usize).min(rest.len()));
                rest = tail;
                Entry { token: *token, pos: *pos, seqs, output: *output != 0 }
            },
        )
    }

    /// The batch as C sees it, for one call that only reads it. `seq_ptrs` is scratch for where each token's sequences
    /// begin; both it and the batch must stay untouched during the call.
    pub(crate) fn as_c(&self, seq_ptrs: &mut Vec<*mut sys::llama_seq_id>) -> sys::llama_batch {
        let mut next = self.seq_ids.as_ptr().cast_mut();
        seq_ptrs.clear();
        for n_seq in &self.n_seq_id {
            seq_ptrs.push(next);
            next = next.wrapping_add(*n_seq as usize);
        }
        sys::llama_batch {
            n_tokens: self.tokens.len() as i32,
            token: self.tokens.as_ptr().cast_mut(),
            embd: std::ptr::null_mut(),
            pos: self.positions.as_ptr().cast_mut(),
            n_seq_id: self.n_seq_id.as_ptr().cast_mut(),
            seq_id: seq_ptrs.as_mut_ptr(),
            logits: self.outputs.as_ptr().cast_mut(),
        }
    }
}

/// One token of a batch.
pub(crate) struct Entry<'a> {
    pub(crate) token: i32,
    pub(crate) pos: i32,
    pub(crate) seqs: &'a [i32],
    pub(crate) output: bool,
}
