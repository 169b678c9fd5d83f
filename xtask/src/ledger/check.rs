//! Compares ledger, upstream's list and our code; and brings the ledger up to date.

use std::collections::BTreeMap;

use crate::ledger::file::{Ledger, Row};
use crate::ledger::functions::Functions;
use crate::ledger::scan::Scan;

/// What `--write` puts where nobody has said anything yet.
const NOT_YET: &str = "not wrapped yet";
const DEPRECATED: &str = "deprecated upstream";

/// What can be seen without upstream's list: the rows against our code.
pub(crate) fn against_code(ledger: &Ledger, scan: &Scan) -> Vec<String> {
    let mut faults = Vec::new();
    for (function, row) in ledger.values().flatten() {
        let aliases = scan.aliases.get(function);
        match (row, aliases) {
            (Row::Wrapped(path), None) => {
                faults.push(format!(
                    "{function}: wrapped as {path}, but nothing in src/ has #[doc(alias = \"{function}\")]"
                ));
            }
            (Row::Wrapped(path), Some(_)) => {
                let last = path.rsplit("::").next().unwrap_or(path);
                if !scan.defined.contains(last) {
                    faults.push(format!("{function}: wrapped as {path}, but nothing in src/ is called {last}"));
                }
            }
            (_, Some(aliases)) => {
                for alias in aliases {
                    faults.push(format!(
                        "{function}: {} wraps it ({}), but its row does not say so",
                        alias.path, alias.place
                    ));
                }
            }
            (Row::Internal(who), None) if !scan.uses.contains_key(function) => {
                faults.push(format!("{function}: internal to {who}, but neither src/ nor native/ uses it"));
            }
            _ => {}
        }
    }
    faults
}

/// The rows against upstream's list.
pub(crate) fn against_upstream(ledger: &Ledger, functions: &Functions) -> Vec<String> {
    let known = functions.by_name();
    let rows: BTreeMap<&str, &str> = ledger
        .iter()
        .flat_map(|(header, rows)| rows.keys().map(move |name| (name.as_str(), header.as_str())))
        .collect();
    let missing = known.iter().filter_map(|(name, (header, _))| match rows.get(name) {
        None => Some(format!("{name}: no row; it is declared in {header}")),
        Some(have) if have != header => Some(format!("{name}: its row is under {have}, but {header} declares it")),
        Some(_) => None,
    });
    let stale = rows.iter().filter(|(name, _)| !known.contains_key(*name));
    missing
        .chain(stale.map(|(name, header)| format!("{name}: a row under {header}, but upstream has no such function")))
        .collect()
}

/// The ledger as it should be: rows that stand are kept, our code's claims are taken up, what is gone goes.
pub(crate) fn update(ledger: &Ledger, functions: &Functions, scan: &Scan) -> Ledger {
    let old: BTreeMap<&str, &Row> = ledger.values().flatten().map(|(name, row)| (name.as_str(), row)).collect();
    let mut new = Ledger::new();
    for (header, list) in &functions.0 {
        for function in list {
            let row = row(&function.name, function.deprecated, old.get(function.name.as_str()).copied(), scan);
            new.entry(header.clone()).or_default().insert(function.name.clone(), row);
        }
    }
    new
}

fn row(name: &str, deprecated: bool, old: Option<&Row>, scan: &Scan) -> Row {
    if let Some(aliases) = scan.aliases.get(name) {
        let stands = |path: &str| path.rsplit("::").next().is_some_and(|last| scan.defined.contains(last));
        return match (old, aliases.first()) {
            (Some(Row::Wrapped(path)), _) if stands(path) => Row::Wrapped(path.clone()),
            (_, Some(alias)) => Row::Wrapped(alias.path.clone()),
            (_, None) => Row::Skipped(NOT_YET.to_owned()),
        };
    }
    let user = scan.uses.get(name);
    match (old, user) {
        // A name given by hand stays; one that was only ours moves with the code.
        (Some(Row::Internal(who)), Some(_)) => Row::Internal(who.clone()),
        (Some(Row::Skipped(reason)), _) if reason != NOT_YET && reason != DEPRECATED => Row::Skipped(reason.clone()),
        (_, Some(user)) => Row::Internal(user.clone()),
        (_, None) => Row::Skipped(if deprecated { DEPRECATED } else { NOT_YET }.to_owned()),
    }
}

/// Counts for one header, deprecated functions left out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) wrapped: usize,
    pub(crate) internal: usize,
    pub(crate) skipped: usize,
    pub(crate) missing: usize,
}

impl Tally {
    /// All functions.
    pub(crate) fn total(self) -> usize {
        self.wrapped + self.internal + self.skipped + self.missing
    }

    /// Percentage that is used here, one way or the other.
    pub(crate) fn percent(self) -> f64 {
        (self.wrapped + self.internal) as f64 * 100.0 / self.total().max(1) as f64
    }

    /// Sum of two.
    pub(crate) fn plus(self, other: Tally) -> Tally {
        Tally {
            wrapped: self.wrapped + other.wrapped,
            internal: self.internal + other.internal,
            skipped: self.skipped + other.skipped,
            missing: self.missing + other.missing,
        }
    }
}

/// Counts by header.
pub(crate) fn tally(ledger: &Ledger, functions: &Functions) -> Vec<(String, Tally)> {
    let count = |(header, list): &(String, Vec<crate::ledger::functions::Function>)| {
        let mut tally = Tally::default();
        for function in list.iter().filter(|function| !function.deprecated) {
            match ledger.get(header).and_then(|rows| rows.get(&function.name)) {
                Some(Row::Wrapped(_)) => tally.wrapped += 1,
                Some(Row::Internal(_)) => tally.internal += 1,
                Some(Row::Skipped(_)) => tally.skipped += 1,
                None => tally.missing += 1,
            }
        }
        (header.clone(), tally)
    };
    functions.0.iter().map(count).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code::Source;
    use crate::ledger::{file, functions, scan};

    fn code() -> Scan {
        let text =
            "impl Context {\n#[doc(alias = \"llama_decode\")]\nfn decode() {}\n}\nfn f() { sys::llama_free() }\n";
        scan::scan(&[Source { path: "src/llama/context.rs".to_owned(), text: text.to_owned() }], &[])
    }

    fn upstream() -> Functions {
        functions::parse(
            "llama.h\tllama_decode\tcurrent\nllama.h\tllama_free\tcurrent\nllama.h\tllama_new\tcurrent\nllama.h\tllama_old\tdeprecated\n",
        )
        .unwrap()
    }

    #[test]
    fn an_empty_ledger_is_filled() {
        let ledger = update(&Ledger::new(), &upstream(), &code());
        let rows = &ledger["llama.h"];
        assert_eq!(rows["llama_decode"], Row::Wrapped("llama::Context::decode".to_owned()));
        assert_eq!(rows["llama_free"], Row::Internal("llama::context".to_owned()));
        assert_eq!(rows["llama_new"], Row::Skipped(NOT_YET.to_owned()));
        assert_eq!(rows["llama_old"], Row::Skipped(DEPRECATED.to_owned()));
        assert!(against_code(&ledger, &code()).is_empty());
        assert!(against_upstream(&ledger, &upstream()).is_empty());
        let tally = tally(&ledger, &upstream())[0].1;
        assert_eq!(tally, Tally { wrapped: 1, internal: 1, skipped: 1, missing: 0 });
        assert_eq!(tally.percent().round(), 67.0);
    }

    #[test]
    fn what_was_written_by_hand_stays() {
        let text = "[\"llama.h\"]\nllama_decode = { wrapped = \"Context::decode\" }\nllama_new = { skipped = \"C++ only\" }\n\
                    llama_free = { internal = \"Drop of raw::Context\" }\nllama_gone = { skipped = \"x\" }\n";
        let rows = &update(&file::parse(text).unwrap(), &upstream(), &code())["llama.h"];
        assert_eq!(rows["llama_decode"], Row::Wrapped("Context::decode".to_owned()));
        assert_eq!(rows["llama_new"], Row::Skipped("C++ only".to_owned()));
        assert_eq!(rows["llama_free"], Row::Internal("Drop of raw::Context".to_owned()));
        assert!(!rows.contains_key("llama_gone"));
    }

    #[test]
    fn every_kind_of_fault_is_found() {
        let text = "[\"llama.h\"]\nllama_decode = { skipped = \"x\" }\nllama_new = { wrapped = \"llama::New::new\" }\n\
                    llama_gone = { internal = \"raw\" }\n[\"ggml.h\"]\nllama_free = { internal = \"x\" }\n";
        let ledger = file::parse(text).unwrap();
        let faults = [against_code(&ledger, &code()), against_upstream(&ledger, &upstream())].concat().join("\n");
        for part in [
            "llama_decode: llama::Context::decode wraps it (src/llama/context.rs:2), but its row does not say so",
            "llama_new: wrapped as llama::New::new, but nothing in src/ has",
            "llama_gone: internal to raw, but neither",
            "llama_gone: a row under llama.h, but upstream has no such function",
            "llama_free: its row is under ggml.h, but llama.h declares it",
            "llama_old: no row",
        ] {
            assert!(faults.contains(part), "{part} is not in:\n{faults}");
        }
    }

    #[test]
    fn a_path_must_lead_to_something() {
        let ledger = file::parse("[\"llama.h\"]\nllama_decode = { wrapped = \"llama::Context::decod\" }").unwrap();
        assert!(against_code(&ledger, &code())[0].contains("nothing in src/ is called decod"));
    }
}
