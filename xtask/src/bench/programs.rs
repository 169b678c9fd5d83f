//! Builds the contestants and the models.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::UNIX_EPOCH;

use anyhow::{Context as _, Result, anyhow, bail};
use serde_json::Value;

use super::Folders;
use super::contestant::Program;

/// Where the release build of this crate put its native libraries.
#[derive(Debug, Clone)]
pub(crate) struct Native {
    /// How a C++ program links them.
    link: Vec<String>,
    /// The upstream source they were built from.
    source: PathBuf,
}

/// Builds the example `bench_contestant`, and tells which native libraries it was linked with.
pub(crate) fn ours(folders: &Folders) -> Result<(Program, Native)> {
    let output = Command::new(cargo())
        .current_dir(&folders.root)
        .args(["build", "--release", "--package", "ggml-llama", "--example", "bench_contestant"])
        .args(["--message-format", "json-render-diagnostics"])
        .stderr(Stdio::inherit())
        .output()
        .context("cannot run cargo")?;
    if !output.status.success() {
        bail!("cargo build of the example bench_contestant: {}", output.status);
    }
    let messages = String::from_utf8_lossy(&output.stdout);
    let messages: Vec<Value> = messages.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let program = example_path(&messages).ok_or_else(|| anyhow!("cargo names no program bench_contestant"))?;
    let archives = archives_folder(&messages).ok_or_else(|| anyhow!("cargo names no folder of native libraries"))?;
    let native = native(&archives)?;
    Ok((Program { letter: 'a', who: "ggml-llama", program, args: Vec::new() }, native))
}

fn cargo() -> OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

fn example_path(messages: &[Value]) -> Option<PathBuf> {
    messages
        .iter()
        .filter(|message| message.pointer("/target/name").and_then(Value::as_str) == Some("bench_contestant"))
        .find_map(|message| message.get("executable").and_then(Value::as_str).map(PathBuf::from))
}

/// From the build script's own search path: several native builds may lie side by side, this one is the one in use.
fn archives_folder(messages: &[Value]) -> Option<PathBuf> {
    messages
        .iter()
        .filter(|message| message.get("reason").and_then(Value::as_str) == Some("build-script-executed"))
        .filter_map(|message| message.get("linked_paths").and_then(Value::as_array))
        .flatten()
        .filter_map(Value::as_str)
        .map(|path| PathBuf::from(path.split_once('=').map_or(path, |(_, path)| path)))
        .find(|path| path.components().any(|part| part.as_os_str() == "ggml-llama-native"))
}

fn native(archives: &Path) -> Result<Native> {
    let file = |name: &str| archives.ancestors().map(|dir| dir.join(name)).find(|path| path.is_file());
    let read = |name: &str| -> Result<String> {
        let path = file(name).ok_or_else(|| anyhow!("no {name} above {}", archives.display()))?;
        fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
    };
    let cache = read("CMakeCache.txt")?;
    let source = cache
        .lines()
        .filter_map(|line| line.strip_prefix("GL_UPSTREAM:"))
        .find_map(|rest| rest.split_once('='))
        .map(|(_, path)| PathBuf::from(path))
        .ok_or_else(|| anyhow!("CMakeCache.txt does not name the upstream source"))?;
    Ok(Native { link: read("link.txt")?.split_whitespace().map(str::to_owned).collect(), source })
}

/// Compiles `benches/cpp/bench.cpp` when it, the libraries or the compiler call changed.
pub(crate) fn cpp(folders: &Folders, native: &Native) -> Result<Program> {
    let source = folders.root.join("benches/cpp/bench.cpp");
    let dir = folders.bench.join("cpp");
    let program = dir.join(format!("bench{}", std::env::consts::EXE_SUFFIX));
    let mut command = Command::new(std::env::var_os("CXX").unwrap_or_else(|| "c++".into()));
    command.args(["-std=c++17", "-O3"]).arg(&source).arg("-o").arg(&program);
    for include in ["include", "ggml/include"] {
        command.arg("-I").arg(native.source.join(include));
    }
    command.args(&native.link);

    let mut inputs = vec![source];
    for dir in native.link.iter().filter_map(|word| word.strip_prefix("-L")) {
        let archives = fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path());
        inputs.extend(archives.filter(|path| path.extension().is_some_and(|ext| ext == "a" || ext == "lib")));
    }
    inputs.sort();
    let state: Vec<String> = inputs.iter().map(|path| format!("{} {}", path.display(), version_of(path))).collect();
    let stamp = format!("{command:?}\n{}\n", state.join("\n"));
    if !program.is_file() || !is_stamped(&dir, &stamp) {
        fs::create_dir_all(&dir).with_context(|| format!("cannot create {}", dir.display()))?;
        run(&mut command)?;
        put_stamp(&dir, &stamp)?;
    }
    Ok(Program { letter: 'b', who: "c++", program, args: Vec::new() })
}

/// Builds the package in `benches/llama-cpp-2`; the first time this takes minutes.
pub(crate) fn llama_cpp_2(folders: &Folders) -> Result<Program> {
    let target = folders.bench.join("llama-cpp-2");
    let mut command = Command::new(cargo());
    command.args(["build", "--release", "--locked", "--manifest-path"]);
    command.arg(llama_cpp_2_manifest(folders)).arg("--target-dir").arg(&target);
    run(&mut command)?;
    let program = target.join("release").join(format!("bench-llama-cpp-2{}", std::env::consts::EXE_SUFFIX));
    Ok(Program { letter: 'c', who: "llama-cpp-2", program, args: Vec::new() })
}

pub(crate) fn llama_cpp_2_manifest(folders: &Folders) -> PathBuf {
    folders.root.join("benches/llama-cpp-2/Cargo.toml")
}

/// Installs node-llama-cpp from its lock file. `None` where Node.js or npm is missing.
pub(crate) fn node(folders: &Folders) -> Result<Option<Program>> {
    let answers = |name: &str| Command::new(name).arg("--version").output().is_ok_and(|output| output.status.success());
    // On Windows npm is a batch file, which has to be called by its whole name.
    let npm = if cfg!(windows) { "npm.cmd" } else { "npm" };
    if !answers("node") || !answers(npm) {
        return Ok(None);
    }
    let dir = folders.bench.join("node");
    fs::create_dir_all(&dir).with_context(|| format!("cannot create {}", dir.display()))?;
    let sources = folders.root.join("benches/node");
    for name in ["package.json", "package-lock.json", "bench.mjs"] {
        fs::copy(sources.join(name), dir.join(name))
            .with_context(|| format!("cannot copy {name} to {}", dir.display()))?;
    }
    let lock = dir.join("package-lock.json");
    let stamp = fs::read_to_string(&lock).with_context(|| format!("cannot read {}", lock.display()))?;
    if !is_stamped(&dir, &stamp) {
        // The binaries lie in the packages; the install script would only look for others.
        let mut command = Command::new(npm);
        command.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"]).current_dir(&dir);
        run(command.env("NODE_LLAMA_CPP_SKIP_DOWNLOAD", "true"))?;
        drop_gpu_binaries(&dir.join("node_modules/@node-llama-cpp"));
        put_stamp(&dir, &stamp)?;
    }
    let args = vec![dir.join("bench.mjs").into_os_string()];
    Ok(Some(Program { letter: 'd', who: "node-llama-cpp", program: "node".into(), args }))
}

/// More than 600 MB that are not used here.
fn drop_gpu_binaries(packages: &Path) {
    for path in fs::read_dir(packages).into_iter().flatten().flatten().map(|entry| entry.path()) {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if ["-cuda", "-cuda-ext", "-vulkan"].iter().any(|gpu| name.ends_with(gpu)) {
            // Left where it is, it only takes room.
            let _ = fs::remove_dir_all(&path);
        }
    }
}

/// The model in one quantization: the given file when its name says so, else a copy quantized from it.
pub(crate) fn model(folders: &Folders, cpp: &Program, base: &Path, kind: &str) -> Result<PathBuf> {
    let name = base.file_stem().unwrap_or_default().to_string_lossy();
    if name.ends_with(kind) {
        return Ok(base.to_path_buf());
    }
    let dir = folders.bench.join("models").join(version_of(base));
    let title = name.rsplit_once('.').map_or(&*name, |(title, _)| title);
    let path = dir.join(format!("{title}.{kind}.gguf"));
    if !path.is_file() {
        fs::create_dir_all(&dir).with_context(|| format!("cannot create {}", dir.display()))?;
        let part = path.with_extension("part");
        run(Command::new(&cpp.program).arg("quantize").arg(base).arg(&part).arg(kind))?;
        fs::rename(&part, &path).with_context(|| format!("cannot rename {}", part.display()))?;
    }
    Ok(path)
}

/// Size and time of change, as a name.
fn version_of(path: &Path) -> String {
    let metadata = fs::metadata(path).ok();
    let changed =
        metadata.as_ref().and_then(|m| m.modified().ok()).and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    format!("{}-{}", metadata.map_or(0, |m| m.len()), changed.unwrap_or_default().as_millis())
}

fn is_stamped(dir: &Path, stamp: &str) -> bool {
    fs::read_to_string(dir.join("stamp")).is_ok_and(|have| have == stamp)
}

fn put_stamp(dir: &Path, stamp: &str) -> Result<()> {
    fs::write(dir.join("stamp"), stamp).with_context(|| format!("cannot write a stamp into {}", dir.display()))
}

/// Runs a command whose output stays out of sight unless it fails.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("cannot run {command:?}"))?;
    if !output.status.success() {
        let mut said = String::from_utf8_lossy(&output.stdout).into_owned();
        said.push_str(&String::from_utf8_lossy(&output.stderr));
        let lines: Vec<&str> = said.lines().collect();
        let tail = lines.get(lines.len().saturating_sub(30)..).unwrap_or_default().join("\n    ");
        bail!("{command:?}: {}\n    {tail}", output.status);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn reads_what_cargo_says() {
        let messages = [
            json!({"reason": "build-script-executed", "linked_paths": ["native=/elsewhere/lib"]}),
            json!({"reason": "build-script-executed", "linked_paths": ["native=/t/ggml-llama-native/k/build/lib"]}),
            json!({"reason": "compiler-artifact", "target": {"name": "bench_contestant"}, "executable": "/t/x"}),
        ];
        assert_eq!(example_path(&messages), Some("/t/x".into()));
        assert_eq!(archives_folder(&messages), Some("/t/ggml-llama-native/k/build/lib".into()));
    }
}
