//! What can be wrong with a file, before its path is added.

use std::io;
use std::path::Path;

use crate::error::Error;

/// Result of a step of reading.
pub(crate) type Check<T = ()> = Result<T, Problem>;

/// Why a file was not accepted.
#[derive(Debug)]
pub(crate) enum Problem {
    Io(io::Error),
    Invalid(String),
}

impl Problem {
    /// Says where in the file it happened.
    pub(crate) fn within(self, place: impl FnOnce() -> String) -> Problem {
        match self {
            Problem::Io(source) => Problem::Io(source),
            Problem::Invalid(reason) => Problem::Invalid(format!("{}: {reason}", place())),
        }
    }

    pub(crate) fn into_error(self, path: &Path) -> Error {
        match self {
            Problem::Io(source) => Error::File { path: path.to_path_buf(), source },
            Problem::Invalid(reason) => Error::InvalidGguf { path: path.to_path_buf(), reason },
        }
    }
}

impl From<io::Error> for Problem {
    fn from(source: io::Error) -> Problem {
        match source.kind() {
            // The file became shorter while it was read.
            io::ErrorKind::UnexpectedEof => Problem::Invalid("it ends before its header does".to_owned()),
            _ => Problem::Io(source),
        }
    }
}

impl From<String> for Problem {
    fn from(reason: String) -> Problem {
        Problem::Invalid(reason)
    }
}

/// An error with a formatted reason.
macro_rules! bail {
    ($($arg:tt)*) => {
        return Err(format!($($arg)*).into())
    };
}
pub(crate) use bail;

/// A text from the file for a message: short, and without control characters.
pub(crate) fn shown(text: &str) -> String {
    const LIMIT: usize = 80;
    let mut out: String = text.chars().take(LIMIT).flat_map(char::escape_debug).collect();
    if text.chars().nth(LIMIT).is_some() {
        out.push_str("...");
    }
    format!("`{out}`")
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::path::Path;

    use super::{Problem, shown};
    use crate::error::Error;

    #[test]
    fn messages() {
        let problem = Problem::from("bad".to_owned()).within(|| "entry 3".to_owned());
        let text = problem.into_error(Path::new("m.gguf")).to_string();
        assert_eq!(text, "m.gguf is not a usable GGUF file: entry 3: bad");
        let eof = Problem::from(io::Error::from(io::ErrorKind::UnexpectedEof)).into_error(Path::new("m"));
        assert!(matches!(eof, Error::InvalidGguf { .. }));
        let denied = Problem::from(io::Error::from(io::ErrorKind::PermissionDenied)).within(String::new);
        assert!(matches!(denied.into_error(Path::new("m")), Error::File { .. }));
    }

    #[test]
    fn texts_are_short_and_plain() {
        assert_eq!(shown("a\nb\u{1b}"), "`a\\nb\\u{1b}`");
        assert_eq!(shown(&"x".repeat(81)), format!("`{}...`", "x".repeat(80)));
    }
}
