//! The set-up that every bigger command begins with: tools, upstream source, model. When all is there, it starts one
//! program (CMake, for its version) and reads some folders.

mod clang;
mod install;
mod managers;
mod message;
mod probe;
mod source;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;

use crate::{SetupArgs, model};

pub(crate) use managers::Tool;

/// What a command needs to be there.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Need {
    /// Installing what is missing is allowed.
    pub(crate) install: bool,
    /// pip, since the model is still to be fetched.
    pub(crate) pip: bool,
    /// rustfmt and clippy.
    pub(crate) rust_components: bool,
}

/// Why the set-up ended without everything in place.
#[derive(Debug)]
pub(crate) struct Stopped(pub(crate) String);

impl std::fmt::Display for Stopped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Stopped {}

/// Sees to the tools and the upstream source.
pub(crate) fn ensure(need: Need) -> Result<()> {
    install::tools(need)?;
    source::fetch_if_missing()
}

/// Sees to everything, and returns the model to use: the one that is named, else the one that is fetched once.
pub(crate) fn prepare(args: &SetupArgs, rust_components: bool) -> Result<PathBuf> {
    let given = args.model.as_deref();
    let need = Need { install: !args.no_install, pip: model::must_fetch(given)?, rust_components };
    ensure(need)?;
    model::path(given)
}

/// `cargo xtask setup`.
pub(crate) fn run(args: &SetupArgs) -> Result<ExitCode> {
    let model = prepare(args, true)?;
    for line in probe::report() {
        eprintln!("{line}");
    }
    eprintln!("{:<15}{}", "model", show(&model));
    Ok(ExitCode::SUCCESS)
}

fn show(path: &Path) -> String {
    path.display().to_string()
}
