//! bindgen's configuration, and the list of upstream's functions that the ledger is compared with.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::{fs, panic};

use super::source::Source;

/// Writes `bindings.rs` and `functions.txt` into `out_dir`.
pub(crate) fn generate(source: &Source, package_dir: &Path, out_dir: &Path) -> Result<(), String> {
    let includes = include_dirs(source, package_dir);
    let mut builder = bindgen::Builder::default()
        .header(package_dir.join("wrapper.h").display().to_string())
        .allowlist_function("(llama|ggml|gguf|gl)_.*")
        .allowlist_type("(llama|ggml|gguf|gl)_.*")
        .allowlist_var("(LLAMA|GGML|GGUF|GL|RPC)_.*")
        // The declarations only: upstream's comments stay upstream's.
        .generate_comments(false)
        .default_enum_style(bindgen::EnumVariation::Consts)
        .prepend_enum_name(false)
        .derive_default(true)
        .layout_tests(true)
        .wrap_unsafe_ops(true)
        .rust_edition(bindgen::RustEdition::Edition2024)
        .formatter(bindgen::Formatter::None);
    for dir in &includes {
        builder = builder.clang_arg(format!("-I{}", dir.display()));
    }
    // bindgen panics when it finds no libclang.
    panic::set_hook(Box::new(|_| {}));
    let generated = panic::catch_unwind(panic::AssertUnwindSafe(|| builder.generate()));
    drop(panic::take_hook());
    let bindings = match generated {
        Ok(Ok(bindings)) => bindings,
        Ok(Err(e)) => {
            return Err(format!("bindgen could not read upstream's headers in {}: {e}", source.dir.display()));
        }
        Err(_) => return Err(NO_LIBCLANG.to_owned()),
    };
    let text = bindings.to_string();
    write_if_changed(&out_dir.join("bindings.rs"), &text)?;
    write_if_changed(&out_dir.join("functions.txt"), &functions(&includes, &text)?)
}

const NO_LIBCLANG: &str = "`libclang` was not found.
  needed: bindgen reads upstream's C headers with it
  install:
    apt: apt-get install libclang-dev
    dnf: dnf install clang-devel
    pacman: pacman -S clang
    brew: brew install llvm (or xcode-select --install)
    winget: winget install LLVM.LLVM
  or set LIBCLANG_PATH to the folder that holds it; `cargo xtask setup` installs what the default build needs";

fn include_dirs(source: &Source, package_dir: &Path) -> Vec<PathBuf> {
    vec![source.dir.join("include"), source.dir.join("ggml/include"), package_dir.join("native/shim")]
}

/// Writes a file unless it already holds this text, so that cargo does not see a newer file for nothing.
pub(crate) fn write_if_changed(path: &Path, text: &str) -> Result<(), String> {
    if fs::read_to_string(path).is_ok_and(|old| old == text) {
        return Ok(());
    }
    fs::write(path, text).map_err(|e| format!("cannot write {}: {e}", path.display()))
}

/// One line per declared function that the bindings contain: header, name, `current` or `deprecated`.
fn functions(includes: &[PathBuf], bindings: &str) -> Result<String, String> {
    let bound: BTreeSet<&str> =
        bindings.split("pub fn ").skip(1).filter_map(|rest| rest.split('(').next()).map(str::trim).collect();
    let mut lines = String::new();
    let mut seen = BTreeSet::new();
    for dir in includes {
        let mut headers: Vec<PathBuf> = fs::read_dir(dir)
            .map_err(|e| format!("cannot read {}: {e}", dir.display()))?
            .flatten()
            .map(|entry| entry.path())
            .filter(|path| path.extension().is_some_and(|ext| ext == "h"))
            // C++ conveniences: they call the C functions and declare none.
            .filter(|path| !path.to_string_lossy().ends_with("-cpp.h"))
            .collect();
        headers.sort();
        for header in headers {
            let name = header.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let text = fs::read_to_string(&header).map_err(|e| format!("cannot read {}: {e}", header.display()))?;
            for (function, deprecated) in declarations(&text) {
                if bound.contains(function.as_str()) && seen.insert(function.clone()) {
                    let state = if deprecated { "deprecated" } else { "current" };
                    lines.push_str(&format!("{name}\t{function}\t{state}\n"));
                }
            }
        }
    }
    Ok(lines)
}

/// The functions that a header declares, with whether the declaration says that they are deprecated.
fn declarations(header: &str) -> Vec<(String, bool)> {
    let text = strip_comments(header);
    let code: String = text.lines().filter(|line| !line.trim_start().starts_with('#')).collect::<Vec<_>>().join("\n");
    code.split([';', '{', '}'])
        .filter_map(|statement| {
            let name = declared_name(statement)?;
            Some((name, statement.contains("DEPRECATED")))
        })
        .collect()
}

/// The first identifier of upstream's that is directly followed by an opening parenthesis.
fn declared_name(statement: &str) -> Option<String> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut rest = statement;
    while let Some(open) = rest.find('(') {
        let before = rest.get(..open)?.trim_end();
        let start = before.rfind(|c: char| !is_word(c)).map_or(0, |at| at + 1);
        let name = before.get(start..)?;
        if ["llama_", "ggml_", "gguf_", "gl_"].iter().any(|prefix| name.starts_with(prefix)) {
            return Some(name.to_owned());
        }
        rest = rest.get(open + 1..)?;
    }
    None
}

fn strip_comments(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    loop {
        let line = rest.find("//");
        let block = rest.find("/*");
        let (at, end) = match (line, block) {
            (Some(line), Some(block)) if line < block => (line, "\n"),
            (_, Some(block)) => (block, "*/"),
            (Some(line), None) => (line, "\n"),
            (None, None) => break,
        };
        let (code, comment) = rest.split_at(at);
        out.push_str(code);
        out.push('\n');
        rest = comment.split_once(end).map_or("", |(_, rest)| rest);
    }
    out.push_str(rest);
    out
}
