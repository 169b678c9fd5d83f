//! Reads Rust and C++ text as far as the checks need it: without comments and literals, line by line.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// A source file.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    /// Its path from the repository's root, with forward slashes.
    pub(crate) path: String,
    /// What it says.
    pub(crate) text: String,
}

/// All files with one of some extensions under a folder, in the order of their paths.
pub(crate) fn read(root: &Path, folder: &str, extensions: &[&str]) -> Result<Vec<Source>> {
    let mut files = Vec::new();
    collect(&root.join(folder), extensions, &mut files)?;
    files.sort();
    files
        .into_iter()
        .map(|file| {
            let text = fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
            let path = file.strip_prefix(root).unwrap_or(&file).to_string_lossy().replace('\\', "/");
            Ok(Source { path, text })
        })
        .collect()
}

fn collect(dir: &Path, extensions: &[&str], files: &mut Vec<PathBuf>) -> Result<()> {
    if !dir.is_dir() {
        return Ok(());
    }
    for entry in fs::read_dir(dir).with_context(|| format!("cannot read {}", dir.display()))? {
        let path = entry.with_context(|| format!("cannot read {}", dir.display()))?.path();
        if path.is_dir() {
            collect(&path, extensions, files)?;
        } else if path.extension().is_some_and(|have| extensions.iter().any(|&wanted| have == wanted)) {
            files.push(path);
        }
    }
    Ok(())
}

/// The code alone: comments and what stands inside of literals become spaces. Lines stay where they are.
pub(crate) fn blank(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while let Some(&c) = chars.get(at) {
        let end = match (c, chars.get(at + 1)) {
            ('/', Some('/')) => chars.iter().skip(at).position(|&c| c == '\n').map_or(chars.len(), |n| at + n),
            ('/', Some('*')) => end_of_comment(&chars, at),
            ('"', _) => end_of_string(&chars, at),
            ('r', Some('"' | '#')) if !follows_word(&chars, at) => end_of_raw_string(&chars, at).unwrap_or(at),
            ('\'', _) => end_of_char(&chars, at).unwrap_or(at),
            _ => at,
        };
        if end == at {
            out.push(c);
            at += 1;
        } else {
            out.extend(chars.iter().take(end).skip(at).map(|&c| if c == '\n' { '\n' } else { ' ' }));
            at = end;
        }
    }
    out
}

/// The `r` of a raw string may have a `b` or `c` before it, but does not end a longer word.
fn follows_word(chars: &[char], at: usize) -> bool {
    let before = |n: usize| at.checked_sub(n).and_then(|at| chars.get(at)).copied().filter(|&c| is_word(c));
    match before(1) {
        Some('b' | 'c') => before(2).is_some(),
        other => other.is_some(),
    }
}

fn end_of_comment(chars: &[char], start: usize) -> usize {
    let (mut depth, mut at) = (0, start);
    loop {
        match (chars.get(at), chars.get(at + 1)) {
            (Some('/'), Some('*')) => {
                depth += 1;
                at += 2;
            }
            (Some('*'), Some('/')) => {
                depth -= 1;
                at += 2;
                if depth == 0 {
                    return at;
                }
            }
            (Some(_), _) => at += 1,
            (None, _) => return chars.len(),
        }
    }
}

fn end_of_string(chars: &[char], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(&c) = chars.get(at) {
        match c {
            '"' => return at + 1,
            '\\' => at += 2,
            _ => at += 1,
        }
    }
    chars.len()
}

fn end_of_raw_string(chars: &[char], start: usize) -> Option<usize> {
    let hashes = chars.iter().skip(start + 1).take_while(|&&c| c == '#').count();
    let open = start + 1 + hashes;
    // `r#name` is an identifier.
    chars.get(open).filter(|&&c| c == '"')?;
    let close = (open + 1..chars.len()).find(|&at| {
        chars.get(at) == Some(&'"') && chars.iter().skip(at + 1).take(hashes).filter(|&&c| c == '#').count() == hashes
    });
    Some(close.map_or(chars.len(), |at| at + 1 + hashes))
}

/// A character literal; a lifetime has no closing quote.
fn end_of_char(chars: &[char], start: usize) -> Option<usize> {
    match (chars.get(start + 1)?, chars.get(start + 2)?) {
        ('\\', _) => chars.iter().skip(start + 3).position(|&c| c == '\'').map(|n| start + 4 + n),
        (_, '\'') => Some(start + 3),
        _ => None,
    }
}

/// The part before the unit tests, which stand at the end of a file.
pub(crate) fn without_tests(code: &str) -> &str {
    let mut at = 0;
    while let Some(found) = code.get(at..).and_then(|rest| rest.find("#[cfg(test)]")) {
        let start = at + found;
        let after = code.get(start + "#[cfg(test)]".len()..).unwrap_or_default().trim_start();
        if after.starts_with("mod ") || after.starts_with("#[") {
            return code.get(..start).unwrap_or(code);
        }
        at = start + 1;
    }
    code
}

/// Whether a character can be part of a name.
pub(crate) fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The names in a piece of code.
pub(crate) fn words(code: &str) -> impl Iterator<Item = &str> {
    code.split(|c: char| !is_word(c)).filter(|word| !word.is_empty())
}

/// The number of the line that holds a byte.
pub(crate) fn line_of(text: &str, at: usize) -> usize {
    text.bytes().take(at).filter(|&byte| byte == b'\n').count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_go_and_lines_stay() {
        let text =
            "a // x\nb /* y /* z */\n*/ c \"d\\\"e\" f r#\"g\"h\"# i 'j' k<'l> '\\'' '\\n' m\n/// n\nbr\"o\" r#p";
        let code = blank(text);
        assert_eq!(words(&code).collect::<Vec<_>>(), ["a", "b", "c", "f", "i", "k", "l", "m", "b", "r", "p"]);
        assert_eq!(code.lines().count(), text.lines().count());
    }

    #[test]
    fn an_unfinished_literal_does_no_harm() {
        for text in ["\"abc", "'a", "r#\"abc", "/* abc", "'", "r", "\"abc\\"] {
            blank(text);
        }
    }

    #[test]
    fn tests_are_cut_off_and_single_test_items_are_not() {
        assert_eq!(without_tests("a\n#[cfg(test)]\nmod tests {}"), "a\n");
        assert_eq!(without_tests("#[cfg(test)]\nuse b;\na"), "#[cfg(test)]\nuse b;\na");
    }
}
