//! Upstream's functions, as the build script lists them: `functions.txt` beside the bindings.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

/// What the names of our own C functions begin with.
const OURS: &str = "gl_";

/// A declared function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Function {
    pub(crate) name: String,
    pub(crate) deprecated: bool,
}

/// Upstream's functions by header, in the order of their declarations.
#[derive(Debug, Clone, Default)]
pub(crate) struct Functions(pub(crate) Vec<(String, Vec<Function>)>);

impl Functions {
    /// Reads the list in a build script's `OUT_DIR`.
    pub(crate) fn read(out_dir: &Path) -> Result<Functions> {
        let path = out_dir.join("functions.txt");
        parse(&fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?)
    }

    /// Function -> its header, and whether it is deprecated.
    pub(crate) fn by_name(&self) -> BTreeMap<&str, (&str, bool)> {
        self.0
            .iter()
            .flat_map(|(header, list)| list.iter().map(move |f| (f.name.as_str(), (header.as_str(), f.deprecated))))
            .collect()
    }

    /// The order of the ledger's rows.
    pub(crate) fn order(&self) -> Vec<(String, Vec<String>)> {
        let names = |list: &[Function]| list.iter().map(|function| function.name.clone()).collect();
        self.0.iter().map(|(header, list)| (header.clone(), names(list))).collect()
    }
}

/// Lines `header<TAB>function<TAB>current|deprecated`. Our own functions do not count.
pub(crate) fn parse(text: &str) -> Result<Functions> {
    let mut functions = Functions::default();
    for (number, line) in text.lines().enumerate() {
        let mut parts = line.split('\t');
        let (Some(header), Some(name), Some(state @ ("current" | "deprecated"))) =
            (parts.next(), parts.next(), parts.next())
        else {
            bail!("functions.txt:{}: not `header, function, state`: {line}", number + 1);
        };
        if name.starts_with(OURS) {
            continue;
        }
        let function = Function { name: name.to_owned(), deprecated: state == "deprecated" };
        match functions.0.iter_mut().find(|(have, _)| have == header) {
            Some((_, list)) => list.push(function),
            None => functions.0.push((header.to_owned(), vec![function])),
        }
    }
    Ok(functions)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_grouped_and_ours_left_out() {
        let text =
            "llama.h\tllama_b\tcurrent\nllama.h\tllama_a\tdeprecated\nshim.h\tgl_x\tcurrent\nggml.h\tggml_c\tcurrent\n";
        let functions = parse(text).unwrap();
        let order: Vec<_> = functions.order().into_iter().map(|(header, list)| (header, list.join(" "))).collect();
        let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
        assert_eq!(order, [pair("llama.h", "llama_b llama_a"), pair("ggml.h", "ggml_c")]);
        assert_eq!(functions.by_name()["llama_a"], ("llama.h", true));
        assert!(parse("llama.h llama_b\n").is_err());
    }
}
