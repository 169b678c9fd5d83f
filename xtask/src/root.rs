//! Where things are: the repository, and the cache outside of it.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// The repository's root. Asked of cargo at run time first, so that a moved checkout with old build products works.
pub(crate) fn dir() -> PathBuf {
    let xtask = env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from);
    xtask.parent().map(Path::to_path_buf).unwrap_or(xtask)
}

/// A variable that is set and not empty.
pub(crate) fn variable(name: &str) -> Option<PathBuf> {
    env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// The folder for what is fetched once and kept: outside the repository, so that `cargo clean` and a second checkout
/// do not cost another download.
pub(crate) fn cache() -> Result<PathBuf> {
    if let Some(dir) = variable("GGML_LLAMA_CACHE") {
        return Ok(dir);
    }
    let home = || variable("HOME").or_else(|| variable("USERPROFILE"));
    let base = if cfg!(windows) {
        variable("LOCALAPPDATA")
    } else {
        variable("XDG_CACHE_HOME").or_else(|| {
            home().map(|home| home.join(if cfg!(target_os = "macos") { "Library/Caches" } else { ".cache" }))
        })
    };
    base.map(|base| base.join("ggml-llama")).context("no cache folder: set GGML_LLAMA_CACHE, or HOME")
}

/// The first of some programs that is on `PATH`.
pub(crate) fn program(names: &[&str]) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    let dirs: Vec<PathBuf> = env::split_paths(&path).collect();
    names.iter().find_map(|name| {
        dirs.iter().map(|dir| dir.join(format!("{name}{}", env::consts::EXE_SUFFIX))).find(|file| file.is_file())
    })
}

/// A program that a variable names, by path or by a name on `PATH`. A compiler variable may begin with a launcher or
/// carry flags: its last path-like word decides.
pub(crate) fn program_of_variable(name: &str) -> Option<PathBuf> {
    let value = variable(name)?;
    if value.is_file() {
        return Some(value);
    }
    let text = value.to_string_lossy().into_owned();
    text.split_whitespace().filter(|word| !word.starts_with('-')).find_map(|word| {
        if Path::new(word).components().count() > 1 {
            Some(PathBuf::from(word)).filter(|path| path.is_file())
        } else {
            program(&[word])
        }
    })
}
