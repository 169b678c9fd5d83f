//! `cargo xtask layers`: imports go one way, and no file grows out of hand.

mod imports;

use std::process::ExitCode;

use anyhow::{Result, bail};

use crate::code::{self, Source};
use crate::root;

/// Lines that a file may have without giving a reason.
const LONGEST: usize = 500;
/// What goes before the reason.
const EXCUSE: &str = "long file:";

/// `cargo xtask layers`.
pub(crate) fn run() -> Result<ExitCode> {
    check()?;
    eprintln!("imports go one way, and no file is too long");
    Ok(ExitCode::SUCCESS)
}

/// Fails with every fault, one a line.
pub(crate) fn check() -> Result<()> {
    let root = root::dir();
    let mut faults = Vec::new();
    for source in code::read(&root, "src", &["rs"])? {
        faults.extend(imports::faults(&source));
    }
    for folder in ["src", "build", "native", "xtask/src"] {
        for source in code::read(&root, folder, &["rs", "cpp", "h", "txt", "cmake"])? {
            faults.extend(too_long(&source));
        }
    }
    if faults.is_empty() {
        return Ok(());
    }
    bail!("{}\n{} faults; docs/ARCHITECTURE.md has the rules", faults.join("\n"), faults.len())
}

fn too_long(source: &Source) -> Option<String> {
    let lines = source.text.lines().count();
    let excused = source.text.lines().any(|line| {
        let comment = ["//", "#"].iter().find_map(|mark| line.split_once(mark)).map(|(_, comment)| comment);
        comment.and_then(|comment| comment.split_once(EXCUSE)).is_some_and(|(_, reason)| !reason.trim().is_empty())
    });
    (lines > LONGEST && !excused).then(|| {
        format!(
            "{}:{lines}: {lines} lines, {LONGEST} at most; split it, or say why not in a comment `{EXCUSE} ...`",
            source.path
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(head: &str, lines: usize) -> Source {
        Source { path: "src/x.rs".to_owned(), text: format!("{head}\n{}", "line\n".repeat(lines)) }
    }

    #[test]
    fn long_files_need_a_reason() {
        assert_eq!(too_long(&file("", 499)), None);
        assert!(too_long(&file("", 500)).unwrap().starts_with("src/x.rs:501: "));
        assert_eq!(too_long(&file("// long file: one table", 600)), None);
        assert!(too_long(&file("// long file:", 600)).is_some(), "no reason given");
    }
}
