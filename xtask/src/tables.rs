//! `cargo xtask tables`: tables in the docs that are made from code.

use std::fs;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::build_script::backends::BACKENDS;
use crate::build_script::options::VARIABLES;
use crate::root;

/// Arguments of `cargo xtask tables`.
#[derive(Args)]
pub(crate) struct TablesArgs {
    /// Write the tables in place of comparing them.
    #[arg(long)]
    write: bool,
}

/// A table, and the files that show it between `<!-- NAME:start -->` and `<!-- NAME:end -->`.
struct Table {
    name: &'static str,
    files: &'static [&'static str],
    text: String,
}

/// `cargo xtask tables`.
pub(crate) fn run(args: TablesArgs) -> Result<ExitCode> {
    if args.write {
        write()?;
    }
    check()?;
    eprintln!("the tables in the docs agree with the code");
    Ok(ExitCode::SUCCESS)
}

/// Fails with every table that differs from the code, and every feature that Cargo.toml has wrong.
pub(crate) fn check() -> Result<()> {
    let mut faults =
        features(&read("Cargo.toml")?, &BACKENDS.iter().map(|backend| backend.feature).collect::<Vec<_>>());
    for table in tables() {
        for file in table.files {
            match read(file).and_then(|text| replaced(&text, table.name, &table.text)) {
                Err(error) => faults.push(format!("{file}: {error:#}")),
                Ok(Some(_)) => faults.push(format!("{file}: the table `{}` differs from the code", table.name)),
                Ok(None) => {}
            }
        }
    }
    if faults.is_empty() {
        return Ok(());
    }
    bail!("{}\n`cargo xtask tables --write` writes the tables", faults.join("\n"))
}

/// Writes what can be written; [`check`] then names what could not.
fn write() -> Result<()> {
    for table in tables() {
        for file in table.files {
            if let Ok(Some(text)) = read(file).and_then(|text| replaced(&text, table.name, &table.text)) {
                fs::write(root::dir().join(file), text).with_context(|| format!("cannot write {file}"))?;
                eprintln!("{file}: wrote the table `{}`", table.name);
            }
        }
    }
    Ok(())
}

fn read(file: &str) -> Result<String> {
    fs::read_to_string(root::dir().join(file)).with_context(|| format!("cannot read {file}"))
}

fn tables() -> [Table; 2] {
    let backends = BACKENDS.iter().map(|backend| {
        [
            format!("`{}`", backend.feature),
            format!("{}: {}", backend.title, backend.doc),
            backend.platforms.to_owned(),
            backend.needs.to_owned(),
        ]
    });
    let variables = VARIABLES
        .iter()
        .map(|variable| [format!("`{}`", variable.name), variable.doc.to_owned(), variable.default.to_owned()]);
    [
        Table {
            name: "backends",
            files: &["README.md", "docs/features.md"],
            text: markdown(["feature", "what it adds", "builds on", "needs"], backends),
        },
        Table {
            name: "variables",
            files: &["docs/building.md"],
            text: markdown(["variable", "what it does", "when unset"], variables),
        },
    ]
}

fn markdown<const N: usize>(head: [&str; N], rows: impl Iterator<Item = [String; N]>) -> String {
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let cell = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|");
    let mut text = line(head.map(str::to_owned).to_vec());
    text.push_str(&format!("|{}\n", "---|".repeat(N)));
    text.extend(rows.map(|row| line(row.iter().map(|text| cell(text)).collect())));
    text
}

/// The text with the table in its place; `None` when it is there already.
fn replaced(text: &str, name: &str, table: &str) -> Result<Option<String>> {
    let (start, end) = (format!("<!-- {name}:start -->"), format!("<!-- {name}:end -->"));
    let parts = text.split_once(&start).and_then(|(head, rest)| Some((head, rest.split_once(&end)?)));
    let Some((head, (have, tail))) = parts else {
        bail!("no lines `{start}` and `{end}`, between which the table goes")
    };
    let wanted = format!("\n{table}");
    if have.replace("\r\n", "\n") == wanted {
        return Ok(None);
    }
    Ok(Some(format!("{head}{start}{wanted}{end}{tail}")))
}

/// Each backend is a feature of the manifest, once, under a comment.
fn features(manifest: &str, wanted: &[&str]) -> Vec<String> {
    let section = manifest.split_once("\n[features]\n").map_or("", |(_, rest)| rest);
    let section = section.split("\n[").next().unwrap_or(section);
    let lines: Vec<&str> = section.lines().collect();
    let named = |line: &&str, feature: &str| line.split_once('=').is_some_and(|(name, _)| name.trim() == feature);
    let mut faults = Vec::new();
    for feature in wanted {
        let places: Vec<usize> =
            lines.iter().enumerate().filter(|(_, line)| named(line, feature)).map(|(number, _)| number).collect();
        match places.as_slice() {
            [place] => {
                let above = place.checked_sub(1).and_then(|above| lines.get(above));
                if !above.is_some_and(|line| line.starts_with('#')) {
                    faults.push(format!("Cargo.toml: the feature `{feature}` has no comment above it"));
                }
            }
            places => {
                faults.push(format!("Cargo.toml: the feature `{feature}` is there {} times, not once", places.len()))
            }
        }
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_put_between_its_marks() {
        let text = "a\n<!-- x:start -->\nold\n<!-- x:end -->\nb\n";
        let new = replaced(text, "x", "new\n").unwrap().unwrap();
        assert_eq!(new, "a\n<!-- x:start -->\nnew\n<!-- x:end -->\nb\n");
        assert_eq!(replaced(&new, "x", "new\n").unwrap(), None);
        assert!(replaced("nothing", "x", "").is_err());
    }

    #[test]
    fn cells_stay_in_their_row() {
        let rows = [["a|b".to_owned(), "two\n  lines".to_owned()]];
        assert_eq!(markdown(["x", "y"], rows.into_iter()), "| x | y |\n|---|---|\n| a\\|b | two lines |\n");
    }

    #[test]
    fn features_stand_once_under_a_comment() {
        let manifest = "[package]\n\n[features]\ndefault = []\n# One.\na = []\nb = []\n\n[dependencies]\nc = \"1\"\n";
        assert!(features(manifest, &["a"]).is_empty());
        assert!(features(manifest, &["b"])[0].contains("no comment"));
        assert!(features(manifest, &["c"])[0].contains("0 times"));
    }

    #[test]
    fn every_backend_and_variable_has_its_words() {
        for table in tables() {
            assert!(!table.text.contains("|  |"), "an empty cell:\n{}", table.text);
        }
    }
}
