//! `cargo xtask ledger`: what became of each function of upstream's.

mod check;
mod file;
mod functions;
mod scan;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::{cargo, code, root};
use check::Tally;
use file::Ledger;
use functions::Functions;
use scan::Scan;

/// Arguments of `cargo xtask ledger`.
#[derive(Args)]
pub(crate) struct LedgerArgs {
    /// Bring the ledger up to date: take up new functions and doc aliases, drop what is gone, keep reasons.
    #[arg(long)]
    write: bool,
}

/// `cargo xtask ledger`.
pub(crate) fn run(args: LedgerArgs) -> Result<ExitCode> {
    let functions = Functions::read(&bindings()?)?;
    if args.write {
        write(&functions)?;
    }
    report(&functions)?;
    Ok(ExitCode::SUCCESS)
}

/// What can be checked without upstream's list.
pub(crate) fn check_static() -> Result<()> {
    fail(check::against_code(&read()?, &scan_code()?))
}

/// The whole check, with the bindings in a build script's `OUT_DIR`.
pub(crate) fn check(out_dir: &Path) -> Result<()> {
    report(&Functions::read(out_dir)?)
}

/// Lets the build script generate the bindings, without the native build; in a target folder of its own, since the other
/// one holds a build with everything, which this would make stale.
fn bindings() -> Result<PathBuf> {
    let target = root::variable("CARGO_TARGET_DIR").unwrap_or_else(|| root::dir().join("target"));
    let mut command = cargo::cmd();
    command.args(["check", "--package", "ggml-llama", "--target-dir"]).arg(target.join("bindings-only"));
    command.env("GGML_LLAMA_SKIP_NATIVE", "1");
    let built = cargo::build("generating the bindings", &mut command, &[])?;
    built.out_dir.context("cargo check did not run the build script")
}

fn path() -> PathBuf {
    root::dir().join("api/ledger.toml")
}

fn read() -> Result<Ledger> {
    let path = path();
    let text = fs::read_to_string(&path)
        .with_context(|| format!("cannot read {}; `cargo xtask ledger --write` makes it", path.display()))?;
    file::parse(&text)
}

fn scan_code() -> Result<Scan> {
    let root = root::dir();
    Ok(scan::scan(&code::read(&root, "src", &["rs"])?, &code::read(&root, "native", &["cpp", "h"])?))
}

fn write(functions: &Functions) -> Result<()> {
    let old = if path().exists() { read()? } else { Ledger::new() };
    let new = check::update(&old, functions, &scan_code()?);
    fs::write(path(), file::format(&new, &functions.order())).context("cannot write api/ledger.toml")
}

/// Prints the percentages, and fails with every fault.
fn report(functions: &Functions) -> Result<()> {
    let ledger = read()?;
    print(&check::tally(&ledger, functions));
    let mut faults = check::against_upstream(&ledger, functions);
    faults.extend(check::against_code(&ledger, &scan_code()?));
    // Only worth saying when nothing else is wrong.
    let order = file::format(&ledger, &functions.order());
    if faults.is_empty() && fs::read_to_string(path()).is_ok_and(|text| text.replace("\r\n", "\n") != order) {
        faults.push(
            "api/ledger.toml is not in its form: rows in the headers' order, comments only at its head".to_owned(),
        );
    }
    fail(faults)
}

fn fail(faults: Vec<String>) -> Result<()> {
    if faults.is_empty() {
        return Ok(());
    }
    let n = faults.len();
    bail!(
        "{}\n{n} faults in api/ledger.toml; `cargo xtask ledger --write` mends what can be mended by itself",
        faults.join("\n")
    )
}

fn print(tallies: &[(String, Tally)]) {
    let line = |name: &str, tally: &Tally| {
        eprintln!(
            "  {name:<20}{:>6}{:>9}{:>10}{:>9}{:>7.1} %",
            tally.total(),
            tally.wrapped,
            tally.internal,
            tally.skipped,
            tally.percent()
        );
    };
    eprintln!("  {:<20}{:>6}{:>9}{:>10}{:>9}{:>9}", "header", "all", "wrapped", "internal", "skipped", "used");
    for (header, tally) in tallies {
        line(header, tally);
    }
    line("all", &tallies.iter().fold(Tally::default(), |sum, (_, tally)| sum.plus(*tally)));
}
