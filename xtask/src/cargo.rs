//! Starts the inner cargo commands, and shows how the native build inside of them is getting on.

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsString;
use std::fs;
use std::io::{IsTerminal, stderr};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use anyhow::{Result, bail};
use serde_json::Value;

use crate::process::{self, Stream};
use crate::progress::Activity;
use crate::root;

/// The cargo that runs us, in the repository's root. On Linux it is started under mold when that is on `PATH`: a
/// wrapper changes no flag, so nothing is rebuilt because of it, and without mold rustc's own linker does the work.
pub(crate) fn cmd() -> Command {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mold = if cfg!(target_os = "linux") { root::program(&["mold"]) } else { None };
    let mut command = match mold {
        Some(mold) => {
            let mut command = Command::new(mold);
            command.arg("-run").arg(cargo);
            command
        }
        None => Command::new(cargo),
    };
    command.current_dir(root::dir());
    // What `cargo run` told us about ourselves is not about the packages that the inner cargo builds.
    for (name, _) in env::vars_os().filter(|(name, _)| about_us(name)) {
        command.env_remove(name);
    }
    command
}

fn about_us(name: &OsString) -> bool {
    let name = name.to_string_lossy();
    name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_") || name == "RUST_RECURSION_COUNT"
}

/// What cargo said that it built.
#[derive(Debug, Default)]
pub(crate) struct Built {
    /// Target name -> program.
    pub(crate) executables: BTreeMap<String, PathBuf>,
    /// `OUT_DIR` of this package's build script.
    pub(crate) out_dir: Option<PathBuf>,
}

/// Runs a cargo command that builds, with its lines passed on, and collects what it built. `last` are arguments that have
/// to stand at the end, after a `--`.
pub(crate) fn build(label: &str, command: &mut Command, last: &[&str]) -> Result<Built> {
    let mut built = Built::default();
    command.arg("--message-format=json-render-diagnostics").args(last);
    stream(label, command, &mut |line| match serde_json::from_str::<Value>(line) {
        Ok(message) => {
            note(&mut built, &message);
            true
        }
        Err(_) => false,
    })?;
    Ok(built)
}

/// Runs a cargo command with its lines passed on.
pub(crate) fn plain(label: &str, command: &mut Command) -> Result<()> {
    stream(label, command, &mut |_| false)
}

/// Runs a cargo command; lines of its standard output that `taken` takes are not shown.
fn stream(label: &str, command: &mut Command, taken: &mut dyn FnMut(&str) -> bool) -> Result<()> {
    // Cargo and rustc write to our pipe, and would leave their colours out.
    if stderr().is_terminal() && env::var_os("NO_COLOR").is_none() && env::var_os("CARGO_TERM_COLOR").is_none() {
        command.env("CARGO_TERM_COLOR", "always");
    }
    let shown = process::show(command);
    let mut activity = Activity::start(label);
    let mut native = NativeBuild::new();
    let mut on_line = |activity: &mut Activity, stream, line: String| {
        let hidden = match stream {
            Stream::Out => taken(&line),
            // Our own lines say when a step is over.
            Stream::Err => line.contains("Finished `") || line.contains("Finished\u{1b}"),
        };
        if !hidden {
            activity.line(&line);
        }
    };
    let status = process::watch(&mut activity, command, &mut on_line, &mut |activity| native.show(activity))?;
    drop(activity);
    if !status.success() {
        bail!("`{shown}` failed ({status})");
    }
    Ok(())
}

fn note(built: &mut Built, message: &Value) {
    let text = |pointer: &str| message.pointer(pointer).and_then(Value::as_str);
    match text("/reason") {
        Some("compiler-artifact") => {
            if let (Some(name), Some(program)) = (text("/target/name"), text("/executable")) {
                built.executables.insert(name.to_owned(), program.into());
            }
        }
        Some("build-script-executed") if text("/package_id").is_some_and(is_root_package) => {
            built.out_dir = text("/out_dir").map(PathBuf::from);
        }
        _ => {}
    }
}

/// `path+file:///a/folder#ggml-llama@0.1.0`, or without the name where the folder is called like the package.
fn is_root_package(id: &str) -> bool {
    let (place, rest) = id.rsplit_once('#').unwrap_or((id, ""));
    let name = rest.split_once('@').map_or_else(|| place.rsplit('/').next().unwrap_or(place), |(name, _)| name);
    place.starts_with("path+") && name == "ggml-llama"
}

/// Follows the native build, of which cargo shows nothing, through ninja's log.
struct NativeBuild {
    cache: PathBuf,
    started: SystemTime,
    ticks: u32,
}

impl NativeBuild {
    fn new() -> NativeBuild {
        let target = root::variable("CARGO_TARGET_DIR").unwrap_or_else(|| root::dir().join("target"));
        NativeBuild { cache: target.join("ggml-llama-native"), started: SystemTime::now(), ticks: 0 }
    }

    fn show(&mut self, activity: &mut Activity) {
        // Looking once a second or so is enough.
        self.ticks += 1;
        if self.ticks.is_multiple_of(4)
            && let Some((done, total)) = self.look()
        {
            activity.steps(done, total);
        }
    }

    /// Files compiled and files to compile, of a build that has been active since we started.
    fn look(&self) -> Option<(u64, u64)> {
        let logs = fs::read_dir(&self.cache).ok()?.flatten().map(|entry| entry.path().join("build/.ninja_log"));
        let log =
            logs.filter(|log| modified(log).is_some_and(|time| time > self.started)).max_by_key(|log| modified(log))?;
        let plan = fs::read_to_string(log.with_file_name("build.ninja")).ok()?;
        let total = plan.lines().filter(|line| line.starts_with("build ") && line.contains("_COMPILER__")).count();
        let log = fs::read_to_string(log).ok()?;
        let done = log.lines().filter(|line| line.contains(".o\t") || line.contains(".obj\t")).count();
        (done < total).then_some((done as u64, total as u64))
    }
}

fn modified(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).ok()?.modified().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_package_is_told_from_others() {
        assert!(is_root_package("path+file:///src/anywhere#ggml-llama@0.1.0"));
        assert!(is_root_package("path+file:///src/ggml-llama#0.1.0"));
        assert!(!is_root_package("path+file:///src/anywhere/testkit#ggml-llama-testkit@0.0.0"));
        assert!(!is_root_package("registry+https://github.com/rust-lang/crates.io-index#ggml-llama@0.1.0"));
    }

    #[test]
    fn messages_give_programs_and_out_dir() {
        let mut built = Built::default();
        for line in [
            r#"{"reason":"compiler-artifact","target":{"name":"00_demo"},"executable":"/t/release/examples/00_demo"}"#,
            r#"{"reason":"compiler-artifact","target":{"name":"libc"},"executable":null}"#,
            r#"{"reason":"build-script-executed","package_id":"path+file:///x#ggml-llama@0.1.0","out_dir":"/t/out"}"#,
            r#"{"reason":"build-script-executed","package_id":"registry+https://x#libc@0.2.0","out_dir":"/t/other"}"#,
        ] {
            note(&mut built, &serde_json::from_str(line).unwrap());
        }
        assert_eq!(built.executables.len(), 1);
        assert_eq!(built.executables["00_demo"], Path::new("/t/release/examples/00_demo"));
        assert_eq!(built.out_dir.as_deref(), Some(Path::new("/t/out")));
    }
}
