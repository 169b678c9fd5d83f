//! What is there and what is missing.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::root;
use crate::setup::{Need, Tool, clang};

/// The oldest CMake that native/CMakeLists.txt takes.
const OLDEST_CMAKE: (u32, u32) = (3, 14);

/// A tool that is not there, with what was found in its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Missing {
    pub(crate) tool: Tool,
    pub(crate) found: Option<String>,
}

/// Looks for everything that is needed.
pub(crate) fn missing(need: Need) -> Vec<Missing> {
    let mut all = vec![
        (Tool::Compiler, compiler().map(drop)),
        (Tool::CMake, cmake().map(drop)),
        (Tool::Builder, if build_tool() { Ok(()) } else { Err(None) }),
        (Tool::Libclang, clang::look().map(drop)),
    ];
    if need.pip {
        all.push((Tool::Pip, crate::model::pip().map(drop).ok_or(None)));
    }
    if need.rust_components {
        all.push((Tool::RustComponents, rust_components()));
    }
    all.into_iter().filter_map(|(tool, state)| state.err().map(|found| Missing { tool, found })).collect()
}

/// Ninja is there.
pub(crate) fn ninja() -> Option<PathBuf> {
    root::program(&["ninja", "ninja-build"])
}

/// One line for each thing that the build uses, wanted or welcome.
pub(crate) fn report() -> Vec<String> {
    let line = |name: &str, what: String| format!("{name:<15}{what}");
    let path = |path: Option<PathBuf>| path.map(|path| path.display().to_string());
    let or = |found: Option<String>, otherwise: &str| found.unwrap_or_else(|| otherwise.to_owned());
    vec![
        line("C++ compiler", or(path(compiler().ok()), "missing")),
        line("CMake", or(cmake().ok(), "missing")),
        line("ninja", or(path(ninja()), "not there; make does it too, a little slower")),
        line("libclang", or(path(clang::look().ok()), "missing")),
        line(
            "compiler cache",
            or(path(root::program(&["ccache", "sccache"])), "none (ccache or sccache would be used)"),
        ),
        line("linker", linker()),
        line("test runner", or(path(root::program(&["cargo-nextest"])), "cargo test (cargo-nextest would be used)")),
    ]
}

fn linker() -> String {
    let mold = if cfg!(target_os = "linux") { root::program(&["mold"]) } else { None };
    match (mold, root::program(&["ld.lld", "lld"])) {
        (Some(mold), _) => mold.display().to_string(),
        (None, Some(_)) => "rustc's own choice (lld is there, mold would be used)".to_owned(),
        (None, None) => "rustc's own choice (mold would be used)".to_owned(),
    }
}

/// The compiler that the build script will find. Where the Rust toolchain itself links with Visual C++, it is there: this
/// program has been linked with it.
fn compiler() -> Result<PathBuf, Option<String>> {
    if let Some(named) = root::program_of_variable("CXX") {
        return Ok(named);
    }
    if cfg!(target_env = "msvc") {
        return Ok("Visual C++".into());
    }
    root::program(if cfg!(windows) { &["g++", "clang++"] } else { &["c++"] }).ok_or_else(|| {
        let other = root::program(&["g++", "clang++"])?;
        Some(format!("`c++` is not there, but {0} is: CXX={0} would do", other.display()))
    })
}

/// CMake with its version.
fn cmake() -> Result<String, Option<String>> {
    let program = root::program_of_variable("CMAKE").or_else(|| root::program(&["cmake"])).ok_or(None)?;
    let output = Command::new(&program).arg("--version").output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    judge_cmake(&program, &text)
}

fn judge_cmake(program: &Path, text: &str) -> Result<String, Option<String>> {
    let program = program.display();
    match version(text) {
        Some(have) if have >= OLDEST_CMAKE => Ok(format!("{program} ({}.{})", have.0, have.1)),
        Some((major, minor)) => Err(Some(format!("{program} is {major}.{minor}"))),
        None => Err(Some(format!("{program} does not tell its version"))),
    }
}

/// `cmake version 3.25.1` -> (3, 25).
fn version(text: &str) -> Option<(u32, u32)> {
    let number = text.split_whitespace().find(|word| word.starts_with(|c: char| c.is_ascii_digit()))?;
    let mut parts = number.split('.');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

fn build_tool() -> bool {
    cfg!(target_env = "msvc")
        || ninja().is_some()
        || root::program(&["make", "gmake", "mingw32-make"]).is_some()
        || root::variable("CMAKE_GENERATOR").is_some()
}

/// rustup puts stand-ins for both on `PATH` whether they are installed or not, so the toolchain's own folder decides.
fn rust_components() -> Result<(), Option<String>> {
    let cargo = root::variable("CARGO");
    let folder = cargo.as_deref().and_then(Path::parent).filter(|folder| folder.join("../lib/rustlib").is_dir());
    let lacking: Vec<&str> = ["cargo-fmt", "cargo-clippy"]
        .into_iter()
        .filter(|name| match folder {
            Some(folder) => !folder.join(format!("{name}{}", std::env::consts::EXE_SUFFIX)).is_file(),
            None => root::program(&[name]).is_none(),
        })
        .collect();
    if lacking.is_empty() { Ok(()) } else { Err(Some(format!("not there: {}", lacking.join(", ")))) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cmake_versions() {
        let judge = |text: &str| judge_cmake(Path::new("cmake"), text);
        assert_eq!(judge("cmake version 3.25.1\n\nCMake suite maintained"), Ok("cmake (3.25)".to_owned()));
        assert_eq!(judge("cmake version 4.0.0-rc1"), Ok("cmake (4.0)".to_owned()));
        assert_eq!(judge("cmake version 3.14.0"), Ok("cmake (3.14)".to_owned()));
        assert_eq!(judge("cmake version 3.10.2"), Err(Some("cmake is 3.10".to_owned())));
        assert_eq!(judge(""), Err(Some("cmake does not tell its version".to_owned())));
    }
}
