//! The project's own commands. `cargo xtask --help` lists them; each module here is one command or one thing that
//! several commands need.

mod bench;
mod cargo;
mod code;
mod demo;
mod layers;
mod ledger;
mod model;
mod process;
mod progress;
mod root;
mod setup;
mod tables;
mod test;

/// The build script's own tables, so that docs can be generated from them. Std-only by agreement.
#[path = "../../build"]
#[allow(dead_code, missing_docs, unreachable_pub)]
mod build_script {
    pub mod backends;
    pub mod cpu;
    pub mod options;
    pub mod plan;
    pub mod target;
}

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};

/// The project's own commands.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Set up what is missing, build in release mode, and let a real model answer one question.
    ///
    /// Looks for the tools that the build needs and installs what is missing (only as root, or with sudo that asks no
    /// password); fetches the upstream source and, once, a small instruct model of 98 MB; builds; answers.
    Demo(demo::DemoArgs),
    /// Set up what is missing, then run every check and test of the project.
    ///
    /// In this order, stopping at the first failure: formatting, the checks of layers, tables and ledger, clippy, docs,
    /// doctests, and last the tests, with cargo-nextest when it is installed.
    Test(test::TestArgs),
    /// Only set up: tools, upstream source, model.
    Setup(SetupArgs),
    /// Compare api/ledger.toml with upstream's functions and with what src/ wraps.
    ///
    /// Every public function of upstream has a row: wrapped = "path", internal = "who uses it", or skipped = "why". Fails
    /// when a row is missing, stale or not true, and prints the percentages by header.
    Ledger(ledger::LedgerArgs),
    /// Check that imports between modules go one way, and that no file is too long.
    Layers,
    /// Check the tables in README.md and docs/ that restate code.
    ///
    /// The backends come from build/backends.rs, the environment variables from build/options.rs.
    Tables(tables::TablesArgs),
    /// Compare the speed with a C++ program on the same libraries and with other bindings.
    Bench(bench::BenchArgs),
}

/// Flags of the set-up, shared by the commands that begin with it.
#[derive(Args, Clone)]
pub(crate) struct SetupArgs {
    /// Install nothing: when a tool is missing, print the commands that would install it and stop with status 1.
    #[arg(long)]
    no_install: bool,
    /// A GGUF file to use in place of the small model that is fetched. GGML_LLAMA_MODEL says the same.
    #[arg(long, value_name = "PATH")]
    model: Option<PathBuf>,
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Demo(args) => demo::run(args),
        Command::Test(args) => test::run(args),
        Command::Setup(args) => setup::run(&args),
        Command::Ledger(args) => ledger::run(args),
        Command::Layers => layers::run(),
        Command::Tables(args) => tables::run(args),
        Command::Bench(args) => bench::run(args).map(|()| ExitCode::SUCCESS),
    };
    result.unwrap_or_else(|error| {
        eprintln!("\n{error:#}");
        ExitCode::FAILURE
    })
}
