//! `--cold-build`: how long building from nothing takes, for this crate and for `llama-cpp-2`.

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Result, bail};
use serde_json::{Value, json};

use super::programs::{llama_cpp_2_manifest, run};
use super::{Folders, machine, progress};

/// This crate's wall time over that of `llama-cpp-2`.
const TARGET: f64 = 0.5;

#[derive(Debug, Clone, Copy)]
struct Cost {
    wall: f64,
    cpu: Option<f64>,
}

impl Cost {
    fn json(self) -> Value {
        json!({ "wall_s": self.wall, "cpu_s": self.cpu })
    }
}

/// Builds both from nothing, one after the other, and prints what it took.
pub(crate) fn measure(folders: &Folders) -> Result<Value> {
    let ours = folders.root.join("Cargo.toml");
    let theirs = llama_cpp_2_manifest(folders);
    progress("fetching what both builds need", || {
        fetch(&ours)?;
        fetch(&folders.root.join("vendor/Cargo.toml"))?;
        fetch(&theirs)
    })?;
    let dir = folders.bench.join("cold");
    let ours = progress("cold build of this crate", || build(&ours, &["--package", "ggml-llama"], &dir.join("a")))?;
    let theirs = progress("cold build of llama-cpp-2", || build(&theirs, &[], &dir.join("c")))?;

    let ratio = ours.wall / theirs.wall;
    let met = ratio < TARGET;
    let cpu = |cost: Cost| cost.cpu.map_or("not known".to_owned(), |cpu| format!("{cpu:.0} s"));
    println!("cold release build, default features, no compiler cache, dependencies fetched before");
    println!("{:<14} {:>9} {:>14}", "", "wall", "processor");
    println!("{:<14} {:>7.0} s {:>14}", "a ggml-llama", ours.wall, cpu(ours));
    println!("{:<14} {:>7.0} s {:>14}", "c llama-cpp-2", theirs.wall, cpu(theirs));
    println!("a/c wall {ratio:.3}  target < {TARGET} {}", if met { "met" } else { "not met" });
    Ok(json!({ "ours": ours.json(), "llama_cpp_2": theirs.json(), "wall_ratio": ratio, "target": TARGET, "met": met }))
}

fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo")))
}

fn fetch(manifest: &Path) -> Result<()> {
    run(cargo().args(["fetch", "--locked", "--manifest-path"]).arg(manifest))
}

/// One build into a new, empty folder, which is removed afterwards.
fn build(manifest: &Path, extra: &[&str], target: &Path) -> Result<Cost> {
    remove(target)?;
    let mut command = cargo();
    command.args(["build", "--release", "--locked", "--offline", "--manifest-path"]).arg(manifest);
    command.args(extra).arg("--target-dir").arg(target);
    command.env("GGML_LLAMA_CCACHE", "off");
    // Upstream's own CMake files, which llama-cpp-2 runs as they are, take a compiler cache wherever they find one.
    command.env("CCACHE_DISABLE", "1").env("SCCACHE_RECACHE", "1");
    for variable in ["RUSTC_WRAPPER", "CMAKE_C_COMPILER_LAUNCHER", "CMAKE_CXX_COMPILER_LAUNCHER"] {
        command.env_remove(variable);
    }
    let cpu_before = machine::cpu_seconds_of_ended_children();
    let start = Instant::now();
    let result = run(&mut command);
    let wall = start.elapsed().as_secs_f64();
    let cpu = machine::cpu_seconds_of_ended_children().zip(cpu_before).map(|(after, before)| after - before);
    remove(target)?;
    result?;
    Ok(Cost { wall, cpu })
}

fn remove(dir: &Path) -> Result<()> {
    match fs::remove_dir_all(dir) {
        Err(error) if dir.exists() => bail!("cannot remove {}, which a cold build needs empty: {error}", dir.display()),
        _ => Ok(()),
    }
}
