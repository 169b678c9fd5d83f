//! Reads the environment, plans the native build, carries it out. Each concept has its module in `build/`.

#![allow(dead_code, missing_docs, unreachable_pub)]

use std::env;
use std::path::PathBuf;

mod build {
    // Looked up in `build/`, as the inline module says.
    pub mod backends;
    pub mod bindings;
    pub mod cpu;
    pub mod emit;
    pub mod info;
    pub mod native;
    pub mod options;
    pub mod plan;
    pub mod source;
    pub mod target;
}
use build::{bindings, cpu, emit, info, native, options, plan, source, target};

fn main() {
    if let Err(message) = run() {
        emit::fail(&message);
    }
}

fn run() -> Result<(), String> {
    let package_dir = PathBuf::from(variable("CARGO_MANIFEST_DIR")?);
    let out_dir = PathBuf::from(variable("OUT_DIR")?);
    let target = target::Target::parse(&variable("TARGET")?)?;
    let host = target::Target::parse(&variable("HOST")?)?;
    let options = options::Options::parse(&|name| env::var(name).ok())?;
    let features = enabled_features();
    let features: Vec<&str> = features.iter().map(String::as_str).collect();
    let host_cpu = cpu::detect();

    let plan = plan::plan(&options, &features, &target, &host, &host_cpu).map_err(|e| e.to_string())?;
    let source = source::find(&options, &package_dir)?;
    emit::rerun_rules(&package_dir, source.editable.then_some(source.dir.as_path()));
    emit::cfgs(&plan);
    bindings::generate(&source, &package_dir, &out_dir)?;
    info::write(&plan, &source, &target, &out_dir)?;
    if plan.skip_native {
        emit::metadata(&source.dir, None);
        return Ok(());
    }
    if let Some(jobs) = options.jobs {
        // SAFETY: the build script has one thread. The cmake crate reads cargo's number of jobs from here.
        unsafe { env::set_var("NUM_JOBS", jobs.to_string()) };
    }
    let archives = native::build(&plan, &options, &target, &source, &package_dir, &out_dir)?;
    emit::link(&plan, &archives);
    emit::metadata(&source.dir, Some(&archives));
    Ok(())
}

fn variable(name: &str) -> Result<String, String> {
    env::var(name).map_err(|e| format!("cargo did not set {name}: {e}"))
}

/// Cargo's own list of the features that are on, in the spelling of Cargo.toml.
fn enabled_features() -> Vec<String> {
    env::vars()
        .filter_map(|(name, _)| name.strip_prefix("CARGO_FEATURE_").map(|rest| rest.to_lowercase().replace('_', "-")))
        .collect()
}
