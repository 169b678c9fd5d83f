//! The error type of the whole crate, and the smaller one of decoding, where callers branch.

use std::path::PathBuf;

/// Shorthand for results of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What upstream itself said during the call that failed; empty when it said nothing.
///
/// A null pointer or a code of -1 from C says nothing. The warnings and errors that upstream logged on the calling
/// thread while the call ran usually do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Detail(pub(crate) Vec<String>);

impl Detail {
    /// The lines, oldest first.
    #[must_use]
    pub fn lines(&self) -> &[String] {
        &self.0
    }
}

impl std::fmt::Display for Detail {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (i, line) in self.0.iter().enumerate() {
            f.write_str(if i == 0 { ": " } else { "; " })?;
            f.write_str(line)?;
        }
        Ok(())
    }
}

/// Everything that can go wrong.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The program was compiled for instruction sets that this machine lacks.
    ///
    /// Without this check the first use would end the process with an illegal instruction.
    #[error(
        "this program was compiled for the instruction sets {compiled}, but this machine lacks {missing}; build with \
         GGML_LLAMA_CPU=portable, or on this machine"
    )]
    MissingCpuFeatures {
        /// The sets that are missing, separated by commas.
        missing: String,
        /// All sets that were compiled in, separated by commas.
        compiled: String,
    },
    /// A file could not be read.
    #[error("cannot read {}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file was read, but it is no usable GGUF file.
    #[error("{} is not a usable GGUF file: {reason}", path.display())]
    InvalidGguf {
        /// The file.
        path: PathBuf,
        /// What is wrong, and what was expected.
        reason: String,
    },
    /// Upstream refused to load the model.
    #[error("cannot load the model {}{detail}", path.display())]
    ModelLoad {
        /// The (first) file.
        path: PathBuf,
        /// Upstream's own words.
        detail: Detail,
    },
    /// The progress callback asked to stop.
    #[error("loading the model was cancelled")]
    LoadCancelled,
    /// A parameter has a value that cannot work.
    #[error("{name} is {value}; expected {expected}")]
    InvalidParameter {
        /// The parameter's name.
        name: &'static str,
        /// Its value.
        value: String,
        /// What would have been right.
        expected: String,
    },
    /// A text that goes to C holds a NUL byte.
    #[error("{what} holds a NUL byte at offset {at}, which upstream would take for its end")]
    Nul {
        /// Which text.
        what: &'static str,
        /// Where.
        at: usize,
    },
    /// The context could not be made.
    #[error("cannot create the context{detail}")]
    ContextCreation {
        /// Upstream's own words.
        detail: Detail,
    },
    /// A token id that the vocabulary does not have.
    #[error("token {token} is outside of the vocabulary, which has the ids 0 to {}", n_vocab - 1)]
    TokenOutOfRange {
        /// The id.
        token: i32,
        /// Size of the vocabulary.
        n_vocab: i32,
    },
    /// The model was made without a vocabulary, so there is no text and there are no tokens.
    #[error("the model has no vocabulary (tokenizer type `none`), which {operation} needs")]
    NoVocabulary {
        /// What was attempted.
        operation: &'static str,
    },
    /// Decoding or encoding failed.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// Logits or embeddings that the last decode did not produce.
    #[error("no {what} for {index}: {reason}")]
    NoOutput {
        /// `logits` or `embeddings`.
        what: &'static str,
        /// The row or sequence that was asked for.
        index: String,
        /// Why it is not there.
        reason: String,
    },
    /// A sampler or a chain of samplers cannot do what was asked.
    #[error("sampling failed: {reason}")]
    Sampling {
        /// What is wrong, and what was expected.
        reason: String,
    },
    /// A chat template that the built-in function does not know, or messages that it cannot render.
    #[error("chat template: {reason}")]
    ChatTemplate {
        /// What is wrong.
        reason: String,
    },
    /// Upstream gave a value that this crate does not know (a newer upstream, most likely).
    #[error("upstream gave {value} for {what}, which this crate does not know")]
    UnknownEnumValue {
        /// The enumeration.
        what: &'static str,
        /// The value.
        value: i64,
    },
    /// Upstream threw a C++ exception or failed an assertion. The process goes on; the object is not used any more.
    #[error("{function} failed: {message}{detail}")]
    Upstream {
        /// The upstream function.
        function: &'static str,
        /// The exception's or the assertion's text.
        message: String,
        /// Upstream's own words.
        detail: Detail,
    },
    /// An earlier call on this object failed inside of upstream and may have left it in pieces.
    #[error("this {object} failed earlier ({reason}) and cannot be used any more; create a new one")]
    Poisoned {
        /// What kind of object.
        object: &'static str,
        /// What happened to it.
        reason: String,
    },
}

impl Error {
    pub(crate) fn parameter(name: &'static str, value: impl ToString, expected: impl Into<String>) -> Error {
        Error::InvalidParameter { name, value: value.to_string(), expected: expected.into() }
    }
}

/// Why a batch was not decoded or encoded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The batch has no tokens.
    #[error("the batch is empty")]
    EmptyBatch,
    /// The batch is larger than the context takes at once. Split it, or make the context with larger limits.
    #[error("the batch has {n_tokens} tokens, but the context takes {limit} at once ({limit_name})")]
    TooManyTokens {
        /// Tokens in the batch.
        n_tokens: usize,
        /// The limit that was exceeded.
        limit: usize,
        /// Its name: `n_batch`, or `n_ubatch` where all tokens must be computed in one piece.
        limit_name: &'static str,
    },
    /// The batch contradicts itself, the vocabulary or the memory. The context is as it was before.
    #[error("invalid batch: {0}")]
    InvalidBatch(String),
    /// The memory has no room for the batch. The context is as it was before.
    #[error("the memory has no room for {n_tokens} more tokens: {used} of {total} cells are in use")]
    NoKvSlot {
        /// Tokens in the batch.
        n_tokens: usize,
        /// Cells in use before the call (a lower bound where sequences share cells).
        used: usize,
        /// Cells that there are (`n_ctx`).
        total: usize,
    },
    /// The computation was stopped. Micro-batches that were done stay in the memory.
    #[error("decoding was aborted")]
    Aborted,
    /// Memory for the computation or its results could not be had.
    #[error("out of memory while decoding{0}")]
    OutOfMemory(Detail),
    /// A backend failed while computing.
    #[error("the computation failed{0}")]
    Compute(Detail),
    /// The model cannot do what was asked of it, such as encoding without an encoder.
    #[error("this model cannot {operation}: {reason}")]
    Unsupported {
        /// `decode` or `encode`.
        operation: &'static str,
        /// Why not.
        reason: String,
    },
    /// Upstream threw an exception or failed an assertion; the context cannot be used any more.
    #[error("upstream failed: {message}{detail}")]
    Upstream {
        /// The exception's or the assertion's text.
        message: String,
        /// Upstream's own words.
        detail: Detail,
    },
    /// An earlier call failed inside of upstream; the context cannot be used any more.
    #[error("the context failed earlier ({0}) and cannot be used any more; create a new one")]
    Poisoned(String),
}
