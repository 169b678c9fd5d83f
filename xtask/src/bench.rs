//! `cargo xtask bench`: speed, side by side.

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::Args;

/// Arguments of `cargo xtask bench`.
#[derive(Args)]
pub(crate) struct BenchArgs {
    /// Where to write the results as JSON.
    #[arg(long)]
    json: Option<PathBuf>,
    /// How often each program runs.
    #[arg(long, default_value_t = 5)]
    runs: u32,
    /// Leave node-llama-cpp out.
    #[arg(long)]
    skip_node: bool,
    /// Leave llama-cpp-2 out.
    #[arg(long)]
    skip_llama_cpp_2: bool,
}

/// Runs it.
pub(crate) fn run(args: BenchArgs) -> Result<()> {
    let _ = (args.json, args.runs, args.skip_node, args.skip_llama_cpp_2);
    bail!("not written yet")
}
