//! For the tests of the build: where things lie, and the build script run by hand.

// Each test program uses a part of it.
#![allow(dead_code)]

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::SystemTime;
use std::{env, fs};

/// `target/[TRIPLE/]PROFILE`, where this test was built. Cargo names the build script's folder to tests too.
pub(crate) fn profile_dir() -> PathBuf {
    let dir = Path::new(env!("OUT_DIR")).ancestors().nth(3).expect("OUT_DIR is not target/PROFILE/build/NAME/out");
    dir.to_path_buf()
}

/// The folder that holds `ggml-llama-native`: `target`, or `target/TRIPLE`.
fn shared_dir() -> PathBuf {
    profile_dir().parent().expect("a profile's folder has a parent").to_path_buf()
}

/// What `CARGO_TARGET_DIR` has to be, and the `--target` that was given, so that another cargo run meets this one.
pub(crate) fn target_dir() -> (PathBuf, Option<&'static str>) {
    let shared = shared_dir();
    let triple = ggml_llama::build_info().target;
    match shared.parent() {
        Some(root) if shared.file_name() == Some(OsStr::new(triple)) => (root.to_path_buf(), Some(triple)),
        _ => (shared, None),
    }
}

/// Cargo's arguments for the profile that this test was built in.
pub(crate) fn profile_args() -> Vec<String> {
    let dir = profile_dir();
    match dir.file_name().and_then(OsStr::to_str) {
        Some("debug") | None => Vec::new(),
        Some(profile) => vec!["--profile".to_owned(), profile.to_owned()],
    }
}

/// The cargo that runs the tests.
pub(crate) fn cargo() -> OsString {
    env::var_os("CARGO").unwrap_or_else(|| env!("CARGO").into())
}

/// The features that this test was built with.
pub(crate) fn features() -> Vec<&'static str> {
    let all = [
        ("cuda", cfg!(feature = "cuda")),
        ("hip", cfg!(feature = "hip")),
        ("metal", cfg!(feature = "metal")),
        ("vulkan", cfg!(feature = "vulkan")),
        ("opencl", cfg!(feature = "opencl")),
        ("blas", cfg!(feature = "blas")),
        ("rpc", cfg!(feature = "rpc")),
        ("openmp", cfg!(feature = "openmp")),
        ("serde", cfg!(feature = "serde")),
    ];
    all.into_iter().filter(|(_, on)| *on).map(|(name, _)| name).collect()
}

/// Each native build in the shared cache, with when it was last brought up to date.
pub(crate) fn native_builds() -> BTreeMap<PathBuf, SystemTime> {
    let cache = shared_dir().join("ggml-llama-native");
    let entries = fs::read_dir(&cache).unwrap_or_else(|e| panic!("{}: {e}", cache.display()));
    entries
        .flatten()
        .filter_map(|entry| {
            let time = entry.path().join("stamp").metadata().and_then(|stamp| stamp.modified()).ok()?;
            Some((entry.path(), time))
        })
        .collect()
}

/// A tree that may change at any time is built again each time, or looked through at least.
pub(crate) fn source_is_editable() -> bool {
    ["GGML_LLAMA_SOURCE_DIR", "vendor/llama.cpp"].contains(&ggml_llama::build_info().source)
}

/// The compiled build script of this package: the newest, should there be several.
fn build_script() -> PathBuf {
    let name = format!("build-script-build{}", env::consts::EXE_SUFFIX);
    // With --target, build scripts lie in the host's folder.
    let host = profile_dir().file_name().map(|profile| target_dir().0.join(profile));
    let folders = [Some(profile_dir()), host].into_iter().flatten().map(|dir| dir.join("build"));
    let scripts = folders
        .filter_map(|dir| fs::read_dir(dir).ok())
        .flat_map(|entries| entries.flatten())
        .filter(|entry| entry.file_name().to_string_lossy().starts_with("ggml-llama-"))
        .map(|entry| entry.path().join(&name));
    let newest = scripts.filter_map(|path| Some((path.metadata().ok()?.modified().ok()?, path))).max();
    newest.expect("the compiled build script is not there any more").1
}

/// One run of the build script, with what cargo would tell it.
pub(crate) struct BuildScript {
    command: Command,
}

/// What came of it.
pub(crate) struct Ran {
    pub(crate) ok: bool,
    /// The text of its `cargo::error=` lines.
    pub(crate) error: String,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl BuildScript {
    /// For a package's folder and a folder for its output.
    pub(crate) fn new(package: &Path, out: &Path) -> BuildScript {
        fs::create_dir_all(out).unwrap();
        let info = ggml_llama::build_info();
        let cargo = PathBuf::from(cargo());
        let mut command = Command::new(build_script());
        // The variables of ours and cargo's that this run was started with say nothing about that one.
        for (name, _) in env::vars_os() {
            let ours = name.to_string_lossy();
            if ["GGML_LLAMA_", "CARGO_FEATURE_", "CARGO_PKG_"].iter().any(|prefix| ours.starts_with(prefix)) {
                command.env_remove(&name);
            }
        }
        command.current_dir(package).env_remove("DOCS_RS");
        for (name, value) in [("TARGET", info.target), ("HOST", info.target), ("OPT_LEVEL", "0"), ("DEBUG", "true")] {
            command.env(name, value);
        }
        command.env("PROFILE", "debug").env("NUM_JOBS", "2");
        command.env("CARGO_MANIFEST_DIR", package).env("OUT_DIR", out);
        // Cargo names the compiler by its path, so that it is found whatever PATH is.
        let rustc = cargo.with_file_name(format!("rustc{}", env::consts::EXE_SUFFIX));
        if rustc.is_file() {
            command.env("RUSTC", rustc);
        }
        command.env("CARGO", cargo);
        // bindgen and cc take these for the sign that cargo runs them.
        let environment = if cfg!(target_env = "musl") {
            "musl"
        } else if cfg!(target_env = "gnu") {
            "gnu"
        } else {
            ""
        };
        let vendor = if cfg!(target_vendor = "apple") { "apple" } else { "unknown" };
        for (name, value) in [
            ("ARCH", env::consts::ARCH),
            ("OS", env::consts::OS),
            ("FAMILY", env::consts::FAMILY),
            ("ENV", environment),
            ("VENDOR", vendor),
        ] {
            command.env(format!("CARGO_CFG_TARGET_{name}"), value);
        }
        let crt_static = if cfg!(target_feature = "crt-static") { "crt-static" } else { "" };
        command.env("CARGO_CFG_TARGET_FEATURE", crt_static);
        BuildScript { command }
    }

    pub(crate) fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> BuildScript {
        self.command.env(name, value);
        self
    }

    /// The features and the settings of this test's own build.
    pub(crate) fn configured_as_this_test(mut self) -> BuildScript {
        for (name, value) in env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("GGML_LLAMA_")) {
            self.command.env(name, value);
        }
        for feature in features() {
            self.command.env(format!("CARGO_FEATURE_{}", feature.to_uppercase()), "1");
        }
        self
    }

    pub(crate) fn run(mut self) -> Ran {
        let Output { status, stdout, stderr } = self.command.output().unwrap();
        let stdout = String::from_utf8_lossy(&stdout).into_owned();
        let errors: Vec<&str> = stdout.lines().filter_map(|line| line.strip_prefix("cargo::error=")).collect();
        Ran {
            ok: status.success(),
            error: errors.join("\n"),
            stderr: String::from_utf8_lossy(&stderr).into_owned(),
            stdout,
        }
    }
}

impl Ran {
    /// The values of the `cargo::` lines that begin so.
    pub(crate) fn values(&self, prefix: &str) -> Vec<&str> {
        self.stdout.lines().filter_map(|line| line.strip_prefix(prefix)).collect()
    }

    /// The message of a run that must have failed, in a readable way.
    pub(crate) fn message(&self) -> &str {
        assert!(!self.ok, "it succeeded:\n{}", self.stdout);
        assert!(!self.error.is_empty(), "no message:\n{}{}", self.stdout, self.stderr);
        assert!(!self.stderr.contains("panicked"), "{}", self.stderr);
        &self.error
    }

    /// Demands success.
    pub(crate) fn success(self) -> Ran {
        assert!(self.ok, "{}\n{}\n{}", self.error, self.stdout, self.stderr);
        self
    }
}

/// A package with a native build of no size, and a source tree for it: what is tested is the build script around them.
pub(crate) struct Miniature {
    pub(crate) dir: tempfile::TempDir,
}

impl Miniature {
    pub(crate) fn new() -> Miniature {
        let dir = tempfile::tempdir().unwrap();
        let miniature = Miniature { dir };
        miniature.write("package/wrapper.h", "int gl_nothing(void);\n");
        miniature.write("package/native/shim/shim.h", "int gl_nothing(void);\n");
        miniature.write(
            "package/native/CMakeLists.txt",
            "cmake_minimum_required(VERSION 3.14...3.28)\nproject(miniature NONE)\n\
             file(APPEND \"${CMAKE_BINARY_DIR}/configured\" \"x\")\nadd_custom_target(gl_all)\n",
        );
        miniature.write(
            "tree/CMakeLists.txt",
            "set(LLAMA_VERSION_MAJOR 7)\nset(LLAMA_VERSION_MINOR 8)\nset(LLAMA_VERSION_PATCH 9)\n",
        );
        miniature.write("tree/ggml/CMakeLists.txt", "# too old to have its version here\n");
        miniature.write("tree/include/llama.h", "int llama_nothing(void);\n");
        miniature.write("tree/ggml/include/ggml.h", "int ggml_nothing(void);\n");
        miniature
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.dir.path().join(path)
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// The build script, as cargo would run it for this profile.
    pub(crate) fn script(&self, profile: &str) -> BuildScript {
        let out = self.path(&format!("target/{profile}/build/ggml-llama-0/out"));
        BuildScript::new(&self.path("package"), &out).env("GGML_LLAMA_SOURCE_DIR", self.path("tree"))
    }
}
