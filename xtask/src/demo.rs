//! `cargo xtask demo`: from a fresh checkout to a model's answer.

use std::process::{Command, ExitCode};

use anyhow::{Context, Result};
use clap::Args;

use crate::{SetupArgs, cargo, setup};

/// Arguments of `cargo xtask demo`.
#[derive(Args)]
pub(crate) struct DemoArgs {
    /// What to ask.
    #[arg(default_value = "What is the capital of France?")]
    prompt: String,
    #[command(flatten)]
    setup: SetupArgs,
    /// Most tokens to generate.
    #[arg(long, value_name = "N")]
    n_predict: Option<u32>,
    /// Threads of the computation; otherwise the example decides.
    #[arg(long, value_name = "N")]
    threads: Option<u32>,
    /// Cargo features to build with, such as `vulkan`.
    #[arg(long, value_name = "LIST")]
    features: Option<String>,
}

/// Runs it.
pub(crate) fn run(args: DemoArgs) -> Result<ExitCode> {
    let model = setup::prepare(&args.setup, false)?;
    let mut command = cargo::cmd();
    command.args(["build", "--release", "--example", "00_demo"]);
    if let Some(features) = &args.features {
        command.arg("--features").arg(features);
    }
    let built = cargo::build("building llama.cpp and the demo", &mut command, &[])?;
    let program = built.executables.get("00_demo").context("cargo built no program named 00_demo")?;

    let mut demo = Command::new(program);
    demo.arg("--model").arg(model);
    for (flag, value) in [("--n-predict", args.n_predict), ("--threads", args.threads)] {
        if let Some(value) = value {
            demo.arg(flag).arg(value.to_string());
        }
    }
    // After `--`, a question may begin with a dash.
    let status =
        demo.arg("--").arg(&args.prompt).status().with_context(|| format!("cannot start {}", program.display()))?;
    Ok(exit_code(status))
}

/// Our exit status, made of a child's. One that a signal ended counts as failed, and says so.
pub(crate) fn exit_code(status: std::process::ExitStatus) -> ExitCode {
    match status.code() {
        Some(code) => ExitCode::from(u8::try_from(code).unwrap_or(1)),
        None => {
            eprintln!("the program was ended: {status}");
            ExitCode::FAILURE
        }
    }
}
