//! `cargo xtask test`: every check and test of the project, the tests last.

use std::process::{Command, ExitCode};
use std::time::Instant;

use anyhow::{Context, Result};
use clap::Args;

use crate::progress::duration;
use crate::{SetupArgs, cargo, layers, ledger, process, root, setup, tables};

/// Arguments of `cargo xtask test`.
#[derive(Args)]
pub(crate) struct TestArgs {
    #[command(flatten)]
    setup: SetupArgs,
    /// Handed to the test runner, such as a filter.
    #[arg(last = true, value_name = "ARGS")]
    runner: Vec<String>,
}

/// Runs it.
pub(crate) fn run(args: TestArgs) -> Result<ExitCode> {
    let model = step("set-up", || setup::prepare(&args.setup, true))?;
    let cargo = || {
        let mut command = cargo::cmd();
        command.env("GGML_LLAMA_MODEL", &model).env("GGML_LLAMA_TEST_REQUIRE_MODEL", "1");
        command
    };
    step("formatting", || {
        process::quiet("cargo fmt", cargo().args(["fmt", "--all", "--check"]))
            .context("`cargo fmt --all` mends the formatting")
    })?;
    step("layers", layers::check)?;
    step("tables", tables::check)?;
    step("ledger, without upstream's list", ledger::check_static)?;
    // Clippy runs the build script: from here on everything uses the native build that comes of it.
    let built = step("clippy", || {
        let args = ["clippy", "--workspace", "--all-targets", "--locked"];
        cargo::build("cargo clippy", cargo().args(args), &["--", "-D", "warnings"])
    })?;
    step("ledger", || ledger::check(&built.out_dir.context("cargo clippy did not run the build script")?))?;
    step("docs", || {
        let args = ["doc", "--workspace", "--no-deps", "--locked"];
        cargo::plain("cargo doc", cargo().args(args).env("RUSTDOCFLAGS", "-Dwarnings"))
    })?;
    step("doctests", || cargo::plain("cargo test --doc", cargo().args(["test", "--doc", "--locked"])))?;

    let runner: &[&str] = match root::program(&["cargo-nextest"]) {
        Some(_) => &["nextest", "run", "--workspace", "--locked"],
        // Not --all-targets, which would run the benches.
        None => &["test", "--workspace", "--locked", "--lib", "--bins", "--tests"],
    };
    step("building the tests", || cargo::plain("building the tests", cargo().args(runner).arg("--no-run")))?;
    announce("tests");
    let status = with_args(cargo().args(runner), runner, &args.runner).status().context("cannot start cargo")?;
    // Nothing is printed from here on: the last words are the test runner's.
    Ok(crate::demo::exit_code(status))
}

/// `cargo test` wants `--` before what is for the test programs; nextest takes filters and flags of its own.
fn with_args<'a>(command: &'a mut Command, runner: &[&str], args: &[String]) -> &'a mut Command {
    if !args.is_empty() && runner.first() == Some(&"test") {
        command.arg("--");
    }
    command.args(args)
}

fn step<T>(name: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
    announce(name);
    let started = Instant::now();
    let result = work().with_context(|| format!("{name}: failed after {}", duration(started.elapsed())))?;
    eprintln!("    {name}: {}", duration(started.elapsed()));
    Ok(result)
}

fn announce(name: &str) {
    eprintln!("==> {name}");
}
