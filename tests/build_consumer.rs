//! A program elsewhere that has this repository as a path dependency builds, without xtask, and runs.
//!
//! It is built into the target folder of this test, where it must find the native build ready.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use ggml_llama::{Model, ModelParams, build_info};

mod build_support;
use build_support::{cargo, native_builds, profile_args, profile_dir, source_is_editable, target_dir};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Builds the consumer; gives what cargo said and where the program is.
fn build() -> (Output, PathBuf) {
    let (target, triple) = target_dir();
    let mut command = Command::new(cargo());
    // Its folder, not the root's: cargo must find the consumer's own workspace.
    command.current_dir(root().join("tests/consumer")).env("CARGO_TARGET_DIR", &target);
    command.args(["build", "--offline", "--locked", "--color", "never"]).args(profile_args());
    if let Some(triple) = triple {
        command.args(["--target", triple]);
    }
    let program = profile_dir().join(format!("ggml-llama-consumer{}", std::env::consts::EXE_SUFFIX));
    (command.output().unwrap(), program)
}

#[test]
fn a_consumer_builds_without_a_second_native_build_and_runs() {
    let before = native_builds();
    assert!(!before.is_empty(), "this test links a native build that is not in the shared cache");
    let (built, program) = build();
    let said = text(&built.stderr);
    assert!(built.status.success(), "{said}");
    assert!(!said.contains("warning"), "{said}");

    // The features of the tests may differ from the default ones that the consumer takes; then so does its build.
    if build_support::features().iter().all(|feature| *feature == "serde") {
        let after = native_builds();
        assert!(after.keys().eq(before.keys()), "another native build: {after:?}, and before {before:?}");
        if !source_is_editable() {
            assert_eq!(after, before, "the native build was made again");
        }
    }

    let model = ggml_llama_testkit::tiny_llama_story_path().unwrap();
    let ran = Command::new(&program).arg(&model).output().unwrap_or_else(|e| panic!("{}: {e}", program.display()));
    assert!(ran.status.success(), "{}{}", text(&ran.stdout), text(&ran.stderr));
    let info = build_info();
    let n_vocab = Model::load(&model, &ModelParams::default()).unwrap().vocab().n_tokens();
    let expected = [
        format!("llama.cpp {}", info.llama_version),
        format!("ggml {}", info.ggml_version),
        format!("source {}", info.source),
        format!("hash {}", info.source_hash),
        format!("cpu {}", info.cpu_sets.join(" ")),
        format!("vocabulary {n_vocab}"),
        format!("text {}", ggml_llama_testkit::STORY),
    ];
    assert_eq!(text(&ran.stdout).lines().collect::<Vec<_>>(), expected);
    assert_eq!(text(&ran.stderr), "", "the library is quiet");

    // Once more: there is nothing to do.
    let (again, _) = build();
    let said = text(&again.stderr);
    assert!(again.status.success() && !said.contains("Compiling"), "{said}");
}

/// Name and version of each package in a lock file.
fn locked(file: &Path) -> BTreeSet<(String, String)> {
    let lock = fs::read_to_string(file).unwrap();
    let value = |entry: &str, key: &str| {
        let line = entry.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(" = "))?;
        Some(line.trim_matches('"').to_owned())
    };
    lock.split("[[package]]").filter_map(|entry| Some((value(entry, "name")?, value(entry, "version")?))).collect()
}

/// Otherwise the consumer would need packages that nobody has fetched, and could not use what is compiled.
#[test]
fn the_consumer_locks_the_versions_of_the_root() {
    let ours = locked(&root().join("Cargo.lock"));
    let theirs = locked(&root().join("tests/consumer/Cargo.lock"));
    assert!(theirs.iter().any(|(name, _)| name == "ggml-llama") && theirs.len() > 5, "{theirs:?}");
    let differing: Vec<_> = theirs.difference(&ours).filter(|(name, _)| name != "ggml-llama-consumer").collect();
    assert!(
        differing.is_empty(),
        "tests/consumer/Cargo.lock has other versions than Cargo.lock: {differing:?}; `cargo update --offline \
         --precise VERSION PACKAGE` in tests/consumer sets one"
    );
}
