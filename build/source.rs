//! Where the upstream source comes from: a directory that the user names, `vendor/llama.cpp`, or the pinned carrier.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use super::options::Options;

/// A llama.cpp tree and what is known about it.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    /// The tree's root.
    pub(crate) dir: PathBuf,
    /// What to show for it: the variable, the folder, or the carrier with its version.
    pub(crate) origin: String,
    /// Checksum of the carrier package, or a digest over the tree's files.
    pub(crate) hash: String,
    /// Upstream's own version numbers.
    pub(crate) llama_version: String,
    pub(crate) ggml_version: String,
    /// The tree can change under us: always let the native build look for changed files.
    pub(crate) editable: bool,
}

/// Finds the source, fetching the carrier when that is allowed and needed.
pub(crate) fn find(options: &Options, package_dir: &Path) -> Result<Source, String> {
    if let Some(dir) = &options.source_dir {
        let dir = PathBuf::from(dir);
        if !holds_tree(&dir) {
            return Err(format!(
                "GGML_LLAMA_SOURCE_DIR is `{}`, but there is no llama.cpp tree in it (looked for CMakeLists.txt, \
                 include/llama.h and ggml/include/ggml.h).\n\n{WAYS_OUT}",
                dir.display()
            ));
        }
        return from_tree(dir, "GGML_LLAMA_SOURCE_DIR".to_owned());
    }
    let vendored = package_dir.join("vendor/llama.cpp");
    if holds_tree(&vendored) {
        return from_tree(vendored, "vendor/llama.cpp".to_owned());
    }
    carrier(options, &package_dir.join("vendor"))
}

const WAYS_OUT: &str = "Three ways to give the build a source tree:\n\
    \x20 1. set GGML_LLAMA_SOURCE_DIR to a llama.cpp checkout;\n\
    \x20 2. put a checkout (or a link to one) at vendor/llama.cpp in this package;\n\
    \x20 3. let cargo fetch the pinned carrier package: unset GGML_LLAMA_NO_FETCH and be online once, or run\n\
    \x20    `cargo fetch --locked --manifest-path vendor/Cargo.toml` beforehand.";

fn holds_tree(dir: &Path) -> bool {
    ["CMakeLists.txt", "include/llama.h", "ggml/include/ggml.h"].iter().all(|file| dir.join(file).is_file())
}

fn from_tree(dir: PathBuf, origin: String) -> Result<Source, String> {
    let dir = dir.canonicalize().map_err(|e| format!("cannot resolve {}: {e}", dir.display()))?;
    let hash = digest_tree(&dir)?;
    describe(dir, origin, hash, true)
}

fn describe(dir: PathBuf, origin: String, hash: String, editable: bool) -> Result<Source, String> {
    let llama_version = cmake_version(&dir.join("CMakeLists.txt"), "LLAMA_VERSION")?;
    let ggml_version = cmake_version(&dir.join("ggml/CMakeLists.txt"), "GGML_VERSION")?;
    Ok(Source { dir, origin, hash, llama_version, ggml_version, editable })
}

/// Reads `set(PREFIX_MAJOR 1)` and its companions; a tree older than these lines gives "unknown".
fn cmake_version(file: &Path, prefix: &str) -> Result<String, String> {
    let text = fs::read_to_string(file).map_err(|e| format!("cannot read {}: {e}", file.display()))?;
    let part = |name: &str| {
        let start = text.find(&format!("set({prefix}_{name} "))?;
        let rest = text.get(start..)?;
        rest.split([' ', ')']).nth(1).map(str::to_owned)
    };
    Ok(match (part("MAJOR"), part("MINOR"), part("PATCH")) {
        (Some(major), Some(minor), Some(patch)) => format!("{major}.{minor}.{patch}"),
        _ => "unknown".to_owned(),
    })
}

fn carrier(options: &Options, pin_dir: &Path) -> Result<Source, String> {
    let pin = Pin::read(pin_dir)?;
    let manifest = pin_dir.join("Cargo.toml");
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let dir = match locate(&cargo, &manifest, &pin) {
        Ok(dir) => dir,
        Err(_) if !options.no_fetch => {
            run(Command::new(&cargo).args(["fetch", "--locked", "--manifest-path"]).arg(&manifest))
                .map_err(|e| format!("fetching {} {} failed:\n{e}\n\n{WAYS_OUT}", pin.package, pin.version))?;
            locate(&cargo, &manifest, &pin).map_err(|e| format!("{e}\n\n{WAYS_OUT}"))?
        }
        Err(e) => {
            return Err(format!(
                "no llama.cpp source: GGML_LLAMA_NO_FETCH is set and the carrier {} {} is not in cargo's registry \
                 folder ({e}).\n\n{WAYS_OUT}",
                pin.package, pin.version
            ));
        }
    };
    describe(dir, format!("{} {}", pin.package, pin.version), pin.checksum, false)
}

/// What `vendor/Cargo.toml` and its lock file say about the carrier.
struct Pin {
    package: String,
    folder: String,
    version: String,
    checksum: String,
}

impl Pin {
    fn read(dir: &Path) -> Result<Pin, String> {
        let read = |name: &str| {
            let path = dir.join(name);
            fs::read_to_string(&path).map_err(|e| format!("cannot read the upstream pin {}: {e}", path.display()))
        };
        let manifest = read("Cargo.toml")?;
        let lock = read("Cargo.lock")?;
        let metadata = section(&manifest, "[package.metadata.carrier]");
        let package = value(metadata, "package").ok_or("vendor/Cargo.toml does not name the carrier package")?;
        let folder = value(metadata, "folder").ok_or("vendor/Cargo.toml does not name the carrier's folder")?;
        let entry = lock
            .split("[[package]]")
            .find(|entry| value(entry, "name").as_deref() == Some(package.as_str()))
            .ok_or_else(|| format!("vendor/Cargo.lock has no entry for {package}"))?;
        let version = value(entry, "version").ok_or("vendor/Cargo.lock gives the carrier no version")?;
        let checksum = value(entry, "checksum").ok_or("vendor/Cargo.lock gives the carrier no checksum")?;
        Ok(Pin { package, folder, version, checksum })
    }
}

fn section<'a>(toml: &'a str, header: &str) -> &'a str {
    let rest = toml.split_once(header).map_or("", |(_, rest)| rest);
    rest.split("\n[").next().unwrap_or(rest)
}

fn value(toml: &str, key: &str) -> Option<String> {
    toml.lines().find_map(|line| {
        let (name, value) = line.split_once('=')?;
        (name.trim() == key).then(|| value.trim().trim_matches('"').to_owned())
    })
}

/// Asks cargo, without the network, where the carrier lies.
fn locate(cargo: &std::ffi::OsStr, manifest: &Path, pin: &Pin) -> Result<PathBuf, String> {
    let args = ["metadata", "--offline", "--locked", "--format-version", "1", "--manifest-path"];
    let json = run(Command::new(cargo).args(args).arg(manifest))?;
    // The one string that is needed, taken without a JSON parser: `"manifest_path":".../llama-cpp-sys-2-0.1.161/Cargo.toml"`.
    let wanted = format!("{}-{}", pin.package, pin.version);
    let dir = json
        .split("\"manifest_path\":\"")
        .skip(1)
        .filter_map(|rest| rest.split('"').next())
        .map(|path| PathBuf::from(path.replace("\\\\", "\\")))
        .filter_map(|path| path.parent().map(Path::to_path_buf))
        .find(|dir| dir.file_name().is_some_and(|name| name == wanted.as_str()))
        .ok_or_else(|| format!("cargo metadata does not list {wanted}"))?;
    let tree = dir.join(&pin.folder);
    if holds_tree(&tree) { Ok(tree) } else { Err(format!("{} holds no llama.cpp tree", tree.display())) }
}

fn run(command: &mut Command) -> Result<String, String> {
    // The outer build's settings are about our own package; a wrapper or flags must not reach this inner client.
    for name in ["RUSTC_WRAPPER", "RUSTC_WORKSPACE_WRAPPER", "CARGO_ENCODED_RUSTFLAGS", "RUSTFLAGS"] {
        command.env_remove(name);
    }
    let output = command.output().map_err(|e| format!("cannot start {command:?}: {e}"))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).trim().to_owned())
    }
}

/// A digest over names and contents of the files that are compiled or included, independent of the file system's order.
fn digest_tree(dir: &Path) -> Result<String, String> {
    let mut files = Vec::new();
    for folder in ["include", "src", "ggml", "cmake", "common", "tools/mtmd", "vendor"] {
        collect(&dir.join(folder), &mut files);
    }
    files.push(dir.join("CMakeLists.txt"));
    files.sort();
    let mut digest = Fnv::new();
    for file in &files {
        let contents = fs::read(file).map_err(|e| format!("cannot read {}: {e}", file.display()))?;
        digest.update(file.strip_prefix(dir).unwrap_or(file).to_string_lossy().as_bytes());
        digest.update(&contents);
    }
    Ok(digest.hex())
}

fn collect(dir: &Path, files: &mut Vec<PathBuf>) {
    // A folder that is not there (an older or slimmer tree) adds nothing.
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.is_file() {
            files.push(path);
        }
    }
}

/// FNV-1a over 8-byte words: quick even in an unoptimised build script; it names trees and caches, it secures nothing.
pub(crate) struct Fnv(u64, u64);

impl Fnv {
    pub(crate) fn new() -> Fnv {
        Fnv(0xcbf2_9ce4_8422_2325, 0x9ae1_6a3b_2f90_404f)
    }

    pub(crate) fn update(&mut self, bytes: &[u8]) {
        let mut words = bytes.chunks_exact(8);
        for word in &mut words {
            let word = word.iter().rev().fold(0u64, |sum, byte| sum << 8 | u64::from(*byte));
            self.mix(word);
        }
        let tail = words.remainder().iter().fold(1u64, |sum, byte| sum << 8 | u64::from(*byte));
        self.mix(tail);
        self.mix(bytes.len() as u64);
    }

    fn mix(&mut self, word: u64) {
        self.0 = (self.0 ^ word).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(23);
        self.1 = (self.1.rotate_left(29) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    pub(crate) fn hex(&self) -> String {
        format!("{:016x}{:016x}", self.0, self.1)
    }
}
