//! `api/ledger.toml`: a table for each header, a row for each function.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};
use serde_json::{Map, Value};

/// What stands at the head of the file.
const HEAD: &str = "\
# Every public function of upstream, by header, and what became of it here:
#   wrapped = \"path\"    the safe layer offers it, there; the item has #[doc(alias = \"the function\")]
#   internal = \"who\"    used inside, not offered by itself
#   skipped = \"reason\"  not offered
# `cargo xtask ledger` compares this with upstream's headers and with src/; `--write` takes up what changed, and leaves
# reasons alone.
";

/// What became of a function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Row {
    Wrapped(String),
    Internal(String),
    Skipped(String),
}

/// Header -> function -> row.
pub(crate) type Ledger = BTreeMap<String, BTreeMap<String, Row>>;

/// Reads the file's text.
pub(crate) fn parse(text: &str) -> Result<Ledger> {
    let tables: Map<String, Value> = basic_toml::from_str(text).context("api/ledger.toml")?;
    let mut ledger = Ledger::new();
    let mut seen = BTreeMap::new();
    for (header, rows) in &tables {
        let rows = rows.as_object().with_context(|| format!("api/ledger.toml: `{header}` is no table"))?;
        for (function, value) in rows {
            let row = row(value).with_context(|| {
                format!("api/ledger.toml: {function} wants one of wrapped, internal and skipped, with a text that is not empty")
            })?;
            if let Some(other) = seen.insert(function.clone(), header) {
                bail!("api/ledger.toml: {function} has a row under {other} and under {header}");
            }
            ledger.entry(header.clone()).or_default().insert(function.clone(), row);
        }
    }
    Ok(ledger)
}

fn row(value: &Value) -> Option<Row> {
    let mut entries = value.as_object()?.iter();
    let (key, text) = entries.next()?;
    let text = text.as_str().filter(|text| !text.trim().is_empty())?.to_owned();
    if entries.next().is_some() {
        return None;
    }
    match key.as_str() {
        "wrapped" => Some(Row::Wrapped(text)),
        "internal" => Some(Row::Internal(text)),
        "skipped" => Some(Row::Skipped(text)),
        _ => None,
    }
}

/// The file's text, with the rows in the order of `order`: headers, and functions as they are declared.
pub(crate) fn format(ledger: &Ledger, order: &[(String, Vec<String>)]) -> String {
    let mut text = HEAD.to_owned();
    for (header, functions) in order {
        text.push_str(&format!("\n[{}]\n", quote(header)));
        let rows = ledger.get(header);
        for (function, row) in functions.iter().filter_map(|name| Some((name, rows?.get(name)?))) {
            let (key, value) = match row {
                Row::Wrapped(path) => ("wrapped", path),
                Row::Internal(who) => ("internal", who),
                Row::Skipped(reason) => ("skipped", reason),
            };
            text.push_str(&format!("{function} = {{ {key} = {} }}\n", quote(value)));
        }
    }
    text
}

fn quote(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_read_and_written() {
        let text = format!(
            "{HEAD}\n[\"llama.h\"]\nllama_decode = {{ wrapped = \"llama::Context::decode\" }}\n\
             llama_abc = {{ skipped = \"a \\\"reason\\\"\" }}\nllama_free = {{ internal = \"raw::context\" }}\n"
        );
        let ledger = parse(&text).unwrap();
        assert_eq!(ledger["llama.h"]["llama_abc"], Row::Skipped("a \"reason\"".to_owned()));
        let order = ["llama_decode", "llama_abc", "llama_free"].map(str::to_owned).to_vec();
        assert_eq!(format(&ledger, &[("llama.h".to_owned(), order)]), text);
    }

    #[test]
    fn faulty_rows_are_named() {
        for text in [
            "[\"a.h\"]\nf = { wraped = \"x\" }",
            "[\"a.h\"]\nf = { wrapped = \"\" }",
            "[\"a.h\"]\nf = { wrapped = \"x\", skipped = \"y\" }",
            "[\"a.h\"]\nf = {}",
            "[\"a.h\"]\nf = { skipped = \"y\" }\n[\"b.h\"]\nf = { skipped = \"y\" }",
        ] {
            assert!(parse(text).unwrap_err().to_string().contains("f "), "{text}");
        }
    }
}
