//! What our own code says about upstream's functions: doc aliases, plain uses, and the names that are defined at all.

use std::collections::{BTreeMap, BTreeSet};

use crate::code::{self, Source};

/// What stands before a name of upstream's.
const ALIAS: &str = "doc(alias = \"";
/// Words before the name of an item.
const ITEMS: &[&str] = &["fn", "struct", "enum", "trait", "type", "const", "static", "union", "mod"];

/// What was found.
#[derive(Debug, Default)]
pub(crate) struct Scan {
    /// Upstream's name -> the items that wrap it, in the order of the files.
    pub(crate) aliases: BTreeMap<String, Vec<Alias>>,
    /// A name -> the first module or file that uses it.
    pub(crate) uses: BTreeMap<String, String>,
    /// The names of all items.
    pub(crate) defined: BTreeSet<String>,
}

/// An item with a doc alias.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Alias {
    /// Its path, as the ledger shows it.
    pub(crate) path: String,
    /// `file:line`.
    pub(crate) place: String,
}

/// Reads our Rust and C++ code. src/sys is left out: it names everything.
pub(crate) fn scan(rust: &[Source], cpp: &[Source]) -> Scan {
    let mut scan = Scan::default();
    for source in rust.iter().filter(|source| !source.path.starts_with("src/sys/")) {
        let blanked = code::blank(&source.text);
        let code = code::without_tests(&blanked);
        scan.items(source, code);
        let names = code::words(code).zip(code::words(code).skip(1)).filter(|(word, _)| ITEMS.contains(word));
        scan.defined.extend(names.map(|(_, name)| name.to_owned()));
        scan.note_uses(code, &module(&source.path));
    }
    for source in cpp {
        scan.note_uses(&code::blank(&source.text), &source.path);
    }
    scan
}

impl Scan {
    fn note_uses(&mut self, code: &str, user: &str) {
        for word in code::words(code) {
            if !self.uses.contains_key(word) {
                self.uses.insert(word.to_owned(), user.to_owned());
            }
        }
    }

    fn items(&mut self, source: &Source, code: &str) {
        let top = module(&source.path);
        let top = top.split("::").next().unwrap_or_default();
        let (mut depth, mut inside): (usize, Option<(usize, String)>) = (0, None);
        let mut waiting: Vec<(String, usize)> = Vec::new();
        for (number, (line, original)) in code.lines().zip(source.text.lines()).enumerate() {
            // The name stands in a literal, which the blanked text lacks; the attribute itself must be code.
            if line.contains("doc(alias") {
                let names = original.split(ALIAS).skip(1).filter_map(|rest| rest.split('"').next());
                waiting.extend(names.map(|name| (name.to_owned(), number + 1)));
            }
            if let Some(owner) = impl_owner(line) {
                inside = Some((depth, owner));
            }
            if let Some(name) = item_name(line) {
                let path = match &inside {
                    Some((_, owner)) => format!("{top}::{owner}::{name}"),
                    None => format!("{top}::{name}"),
                };
                for (upstream, line) in waiting.drain(..) {
                    let alias = Alias { path: path.clone(), place: format!("{}:{line}", source.path) };
                    self.aliases.entry(upstream).or_default().push(alias);
                }
            }
            for c in line.chars() {
                match c {
                    '{' => depth += 1,
                    '}' => {
                        depth = depth.saturating_sub(1);
                        inside = inside.filter(|(outer, _)| *outer < depth);
                    }
                    _ => {}
                }
            }
        }
        // An alias on something that is no item by our reading (an enum's variant, a macro's line) is still an alias.
        for (upstream, line) in waiting {
            let alias = Alias { path: top.to_owned(), place: format!("{}:{line}", source.path) };
            self.aliases.entry(upstream).or_default().push(alias);
        }
    }
}

/// `src/llama/sampler/chain.rs` -> `llama::sampler::chain`.
fn module(path: &str) -> String {
    let path = path.strip_prefix("src/").unwrap_or(path);
    let path = path.strip_suffix(".rs").unwrap_or(path);
    path.strip_suffix("/mod").unwrap_or(path).replace('/', "::")
}

/// The type of `impl<T> Trait for Type<T> {`.
fn impl_owner(line: &str) -> Option<String> {
    let rest = line.trim_start().trim_start_matches("unsafe ").strip_prefix("impl")?;
    let rest = if rest.starts_with('<') { after_generics(rest)? } else { rest.strip_prefix(' ')? };
    let owner = rest.split_once(" for ").map_or(rest, |(_, owner)| owner);
    let owner = owner.split(['<', '{']).next()?.trim();
    owner.rsplit("::").next().map(|name| name.trim_start_matches(['&', ' ']).to_owned()).filter(|name| !name.is_empty())
}

fn after_generics(text: &str) -> Option<&str> {
    let mut depth = 0;
    let end = text.char_indices().find_map(|(at, c)| {
        match c {
            '<' => depth += 1,
            '>' => depth -= 1,
            _ => {}
        }
        (depth == 0).then_some(at + 1)
    })?;
    text.get(end..)
}

/// The name of the item that a line begins to define.
fn item_name(line: &str) -> Option<&str> {
    let mut words = code::words(line);
    let mut before = words.next()?;
    let starts_item =
        |word: &str| matches!(word, "pub" | "crate" | "super" | "in" | "unsafe" | "const" | "async" | "extern" | "C");
    loop {
        let word = words.next();
        // `const fn` is a function; `const NAME` is not.
        if ITEMS.contains(&before) && !(before == "const" && matches!(word, Some("fn" | "unsafe" | "extern"))) {
            return word;
        }
        if !starts_item(before) {
            return None;
        }
        before = word?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(path: &str, text: &str) -> Source {
        Source { path: path.to_owned(), text: text.to_owned() }
    }

    #[test]
    fn aliases_get_the_path_of_their_item() {
        let text = r#"
/// Text with a { brace, and a mention of doc(alias = "llama_not_me").
impl<'a, T: Into<X>> Context {
    #[doc(alias = "llama_decode")]
    #[doc(alias = "llama_process")]
    pub fn decode(&mut self) -> Result<()> {
        if x { sys::llama_decode(self.raw) }
    }
    #[doc(alias = "llama_n_ctx")]
    #[must_use]
    pub const fn n_ctx(&self) -> u32 { 0 }
}
impl fmt::Display for Other<'_> { fn fmt(&self) {} }
#[doc(alias = "llama_supports_mmap")]
pub(crate) unsafe fn supports_mmap() -> bool { true }
#[cfg(test)]
mod tests { fn llama_unused() {} }
"#;
        let scan =
            scan(&[source("src/llama/context.rs", text)], &[source("native/shim/a.cpp", "llama_free(x); // llama_no")]);
        let path = |name: &str| scan.aliases[name][0].path.as_str();
        assert_eq!(path("llama_decode"), "llama::Context::decode");
        assert_eq!(path("llama_process"), "llama::Context::decode");
        assert_eq!(path("llama_n_ctx"), "llama::Context::n_ctx");
        assert_eq!(path("llama_supports_mmap"), "llama::supports_mmap");
        assert_eq!(scan.aliases["llama_decode"][0].place, "src/llama/context.rs:4");
        assert!(!scan.aliases.contains_key("llama_not_me"));
        assert_eq!(scan.uses["llama_free"], "native/shim/a.cpp");
        assert_eq!(scan.uses["llama_decode"], "llama::context");
        assert!(!scan.uses.contains_key("llama_no") && !scan.uses.contains_key("llama_unused"));
        assert!(scan.defined.contains("supports_mmap") && scan.defined.contains("fmt"));
    }

    #[test]
    fn owners_of_impls() {
        assert_eq!(impl_owner("impl Model {").as_deref(), Some("Model"));
        assert_eq!(impl_owner("unsafe impl<T> Send for a::Wrap<T> {}").as_deref(), Some("Wrap"));
        assert_eq!(impl_owner("implicit"), None);
    }

    #[test]
    fn names_of_items() {
        assert_eq!(item_name("pub(in crate::x) const unsafe fn a()"), None);
        assert_eq!(item_name("    pub(crate) unsafe extern \"C\" fn a()"), Some("a"));
        assert_eq!(item_name("pub const A: u8 = 1;"), Some("A"));
        assert_eq!(item_name("pub const fn b()"), Some("b"));
        assert_eq!(item_name("let fn_like = 3;"), None);
    }
}
