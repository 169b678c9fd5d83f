//! The order of the modules, and who imports whom against it.

use crate::code::{self, Source, is_word, line_of};

/// From the bottom up. A module uses itself and lower ranks; modules of one rank do not know each other.
const RANKS: &[&[&str]] = &[
    &["error"],
    &["util"],
    &["sys"],
    &["callback", "logging"],
    &["raw"],
    &["build_info", "ggml", "gguf"],
    &["llama"],
    &["mtmd", "fusion"],
];

fn rank(module: &str) -> Option<usize> {
    RANKS.iter().position(|modules| modules.contains(&module))
}

/// Every import against the order, as `file:line: what`.
pub(crate) fn faults(source: &Source) -> Vec<String> {
    let Some(module) = module_of(&source.path) else { return Vec::new() };
    let Some(own) = rank(module) else {
        return vec![format!(
            "{}:1: the module `{module}` has no rank; give it one in xtask/src/layers/imports.rs",
            source.path
        )];
    };
    let blanked = code::blank(&source.text);
    let code = code::without_tests(&blanked);
    // In these files `super` is the crate.
    let outermost = !source.path.trim_start_matches("src/").contains('/') || source.path.ends_with("/mod.rs");
    let outermost = outermost && source.path.matches('/').count() <= 2;
    let mut found = imported(code, "crate::");
    if outermost {
        found.extend(imported(code, "super::").into_iter().filter(|(_, name)| rank(name).is_some()));
    }
    found.sort();
    found
        .into_iter()
        .filter(|(_, name)| *name != module)
        .filter_map(|(at, name)| {
            let fault = match rank(name) {
                Some(other) if other < own => return None,
                Some(other) if other == own => {
                    format!("`{module}` and `{name}` have the same rank and do not use each other")
                }
                Some(_) => format!("`{module}` stands below `{name}` and does not use it"),
                None => {
                    format!("`crate::{name}` is no module; name the module that has it, so that its rank can be seen")
                }
            };
            Some(format!("{}:{}: {fault}", source.path, line_of(code, at)))
        })
        .collect()
}

/// `src/llama/batch.rs` -> `llama`. The crate's own file stands outside of the order.
fn module_of(path: &str) -> Option<&str> {
    let rest = path.strip_prefix("src/")?;
    let module = rest.split('/').next()?;
    let module = module.strip_suffix(".rs").unwrap_or(module);
    (module != "lib").then_some(module)
}

/// The names behind each `crate::`, with their places: one, or those of a group in braces. Macros are everybody's.
fn imported<'a>(code: &'a str, start: &str) -> Vec<(usize, &'a str)> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices(start) {
        let before = code.get(..at).and_then(|before| before.chars().next_back());
        if before.is_some_and(|c| is_word(c) || c == ':') {
            continue;
        }
        let at = at + start.len();
        let rest = code.get(at..).unwrap_or_default();
        if rest.starts_with('{') {
            found.extend(group(rest).into_iter().map(|(inner, name)| (at + inner, name)));
        } else {
            found.extend(first_word(rest).map(|name| (at, name)));
        }
    }
    found.retain(|(at, name)| !matches!(*name, "" | "self") && !is_macro(code, at + name.len()));
    found
}

fn is_macro(code: &str, end: usize) -> bool {
    code.get(end..).is_some_and(|rest| rest.starts_with('!'))
}

fn first_word(text: &str) -> Option<&str> {
    text.split(|c: char| !is_word(c)).next().filter(|word| !word.is_empty())
}

/// First names of the entries of `{a, b::{c, d}, e}`.
fn group(text: &str) -> Vec<(usize, &str)> {
    let (mut depth, mut fresh, mut names) = (0, false, Vec::new());
    for (at, c) in text.char_indices() {
        match c {
            '{' => {
                depth += 1;
                fresh = depth == 1;
            }
            '}' => {
                depth -= 1;
                if depth == 0 {
                    break;
                }
            }
            ',' if depth == 1 => fresh = true,
            c if fresh && is_word(c) => {
                names.extend(text.get(at..).and_then(first_word).map(|name| (at, name)));
                fresh = false;
            }
            _ => {}
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &str, text: &str) -> Vec<String> {
        faults(&Source { path: path.to_owned(), text: text.to_owned() })
    }

    #[test]
    fn downwards_is_fine() {
        let text = "use crate::error::{Error, Result};\nuse crate::llama::token::Token;\nfn f() { crate::sys::g() }\n";
        assert!(check("src/llama/batch.rs", text).is_empty());
        assert!(check("src/lib.rs", "use crate::fusion::X;").is_empty());
    }

    #[test]
    fn upwards_names_file_line_and_both_modules() {
        let found = check("src/raw/model.rs", "use crate::error::Error;\n\nuse crate::llama::model::Model;\n");
        assert_eq!(found, ["src/raw/model.rs:3: `raw` stands below `llama` and does not use it"]);
    }

    #[test]
    fn siblings_do_not_use_each_other() {
        assert!(check("src/ggml/mod.rs", "use crate::gguf::Reader;")[0].contains("same rank"));
        assert!(check("src/callback.rs", "use crate::logging::capture;")[0].contains("same rank"));
    }

    #[test]
    fn groups_and_inline_paths_count() {
        let text = "use crate::{\n    error::{Error, Result},\n    llama::{batch, model},\n    sys,\n};\n";
        let found = check("src/ggml/device.rs", text);
        assert_eq!(found, ["src/ggml/device.rs:3: `ggml` stands below `llama` and does not use it"]);
        assert_eq!(check("src/sys/mod.rs", "fn f() -> crate::raw::X { $crate::raw::y() }").len(), 2);
    }

    #[test]
    fn super_in_an_outermost_file_is_the_crate() {
        assert_eq!(check("src/callback.rs", "use super::raw::X;").len(), 1);
        assert_eq!(check("src/raw/mod.rs", "use super::llama::X;").len(), 1);
        assert!(check("src/raw/model.rs", "use super::llama::X;").is_empty());
    }

    #[test]
    fn comments_tests_and_macros_do_not_count() {
        let text = "//! See [`crate::llama::Model`].\n// crate::llama\n/* crate::llama */ const A: &str = \"crate::llama::x\";\n\
                    fn f() { crate::something!() }\n#[cfg(test)]\nmod tests { use crate::llama::X; }";
        assert!(check("src/raw/model.rs", text).is_empty(), "{:?}", check("src/raw/model.rs", text));
    }

    #[test]
    fn re_exports_and_new_modules_are_pointed_out() {
        assert!(check("src/llama/model.rs", "use crate::Error;")[0].contains("is no module"));
        assert!(check("src/novelty.rs", "")[0].contains("has no rank"));
    }
}
