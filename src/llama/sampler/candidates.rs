//! The tokens that a sampler chooses from.

use crate::llama::token::Token;
use crate::sys;

/// One token that may be chosen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Candidate {
    /// The token.
    pub token: Token,
    /// Its logit: log-odds, not normalised.
    pub logit: f32,
    /// Its probability; 0 until a sampler has computed it.
    pub p: f32,
}

/// What is left of the candidates after a chain was applied; reads the chain's own buffer.
#[derive(Debug, Clone, Copy)]
pub struct Candidates<'a> {
    pub(crate) data: &'a [sys::llama_token_data],
    pub(crate) selected: Option<usize>,
    pub(crate) sorted: bool,
}

impl<'a> Candidates<'a> {
    /// Number of candidates that are left.
    #[must_use]
    pub fn len(&self) -> usize {
        self.data.len()
    }

    /// Whether none is left.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.data.is_empty()
    }

    /// The candidates, in the order that the samplers left them.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Candidate> + 'a {
        self.data.iter().map(|c| Candidate { token: Token(c.id), logit: c.logit, p: c.p })
    }

    /// The token that was chosen, when the chain ends with a sampler that chooses.
    #[must_use]
    pub fn selected(&self) -> Option<Candidate> {
        self.selected.and_then(|i| self.iter().nth(i))
    }

    /// Whether the candidates are known to be in falling order of their logits.
    #[must_use]
    pub fn is_sorted(&self) -> bool {
        self.sorted
    }
}
