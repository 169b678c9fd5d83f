//! What the build script says when it cannot go on: each failure is one readable message.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
// Each of them runs programs of a Unix-like build.
#![cfg(unix)]

use std::fs;
use std::path::Path;

mod build_support;
use build_support::{BuildScript, Miniature};

/// Every one of these words is in the message.
#[track_caller]
fn assert_says(message: &str, words: &[&str]) {
    for word in words {
        assert!(message.contains(word), "`{word}` is not said in:\n{message}");
    }
}

const THREE_WAYS_OUT: [&str; 4] =
    ["Three ways", "1. set GGML_LLAMA_SOURCE_DIR", "2. put a checkout", "3. let cargo fetch"];

#[test]
fn a_source_folder_without_a_tree() {
    let miniature = Miniature::new();
    let empty = miniature.path("empty");
    fs::create_dir(&empty).unwrap();
    let missing = miniature.path("missing");
    for dir in [&empty, &missing] {
        let ran = miniature.script("debug").env("GGML_LLAMA_SOURCE_DIR", dir).run();
        let message = ran.message();
        assert_says(message, &["GGML_LLAMA_SOURCE_DIR", dir.to_str().unwrap(), "include/llama.h"]);
        assert_says(message, &THREE_WAYS_OUT);
    }
}

#[test]
fn no_tree_and_no_leave_to_fetch_one() {
    let miniature = Miniature::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for file in ["vendor/Cargo.toml", "vendor/Cargo.lock", "vendor/src/lib.rs"] {
        miniature.write(&format!("package/{file}"), &fs::read_to_string(root.join(file)).unwrap());
    }
    let home = miniature.path("cargo-home");
    fs::create_dir(&home).unwrap();
    let package = miniature.path("package");
    let script = BuildScript::new(&package, &miniature.path("target/debug/build/ggml-llama-0/out"));
    let ran = script.env("GGML_LLAMA_NO_FETCH", "1").env("CARGO_HOME", &home).run();
    let message = ran.message();
    let lock = fs::read_to_string(root.join("vendor/Cargo.lock")).unwrap();
    assert_says(&lock, &["llama-cpp-sys-2"]);
    assert_says(message, &["GGML_LLAMA_NO_FETCH", "llama-cpp-sys-2 0."]);
    assert_says(message, &THREE_WAYS_OUT);
    assert!(!home.join("registry/src").exists(), "cargo fetched all the same");
}

#[test]
fn a_pin_that_is_not_there() {
    let miniature = Miniature::new();
    let script = BuildScript::new(&miniature.path("package"), &miniature.path("target/debug/build/ggml-llama-0/out"));
    let ran = script.env("GGML_LLAMA_NO_FETCH", "1").run();
    assert_says(ran.message(), &["upstream pin", "vendor/Cargo.toml"]);
}

#[test]
fn a_value_that_means_nothing() {
    for (variable, value, allowed) in [
        ("GGML_LLAMA_CPU", "pentium", "native, portable, x86-64-v2"),
        ("GGML_LLAMA_NO_FETCH", "maybe", "1, on, true, yes, 0, off, false or no"),
        ("GGML_LLAMA_SKIP_NATIVE", "2", "1, on, true, yes, 0, off, false or no"),
        ("GGML_LLAMA_JOBS", "0", "a number of at least 1"),
        ("GGML_LLAMA_JOBS", "many", "a number of at least 1"),
        ("GGML_LLAMA_CUDA_ARCHS", "turing", "75-virtual"),
        ("GGML_LLAMA_HIP_ARCHS", "vega", "gfx"),
        ("GGML_LLAMA_CUDA_STATIC", "so", "1, on, true, yes"),
        ("GGML_LLAMA_BLAS_VENDOR", "atlas", "openblas, blis, mkl"),
        ("GGML_LLAMA_OPENMP_LIB", "pgi", "auto, gomp, omp"),
        ("GGML_LLAMA_CXX_STDLIB", "stlport", "auto, stdc++, c++"),
        ("GGML_LLAMA_SANITIZE", "memory", "none, address, thread, undefined"),
        ("GGML_LLAMA_CMAKE_DEFINES", "GGML_LTO", "="),
    ] {
        let ran = Miniature::new().script("debug").env(variable, value).run();
        assert_says(ran.message(), &[variable, &format!("`{value}`"), allowed]);
    }
}

#[test]
fn a_compiler_cache_that_is_no_program() {
    let ran = Miniature::new().script("debug").env("GGML_LLAMA_CCACHE", "no-such-cache").run();
    assert_says(ran.message(), &["GGML_LLAMA_CCACHE", "`no-such-cache`", "auto, off, ccache, sccache"]);
}

#[test]
fn no_cmake() {
    let miniature = Miniature::new();
    let nothing = miniature.path("bin");
    fs::create_dir(&nothing).unwrap();
    let ran = miniature.script("debug").env("PATH", &nothing).env("CMAKE", miniature.path("gone/cmake")).run();
    let message = ran.message();
    // What, why, how to install it here, and the variable.
    assert_says(message, &["`cmake` was not found", "needed:", "install:", "apt-get install", "or set CMAKE to"]);
    assert_eq!(message.matches("was not found").count(), 1, "{message}");
}

#[test]
fn no_compiler() {
    let ran = Miniature::new().script("debug").env("CXX", "/nowhere/bin/g++").run();
    let message = ran.message();
    assert_says(message, &["C++ compiler", "install:", "apt-get install g++", "set CXX"]);
    assert_says(message, &["/nowhere/bin/g++"]);
}

#[test]
fn no_libclang() {
    let miniature = Miniature::new();
    let nothing = miniature.path("lib");
    fs::create_dir(&nothing).unwrap();
    let ran = miniature.script("debug").env("LIBCLANG_PATH", &nothing).run();
    assert_says(ran.message(), &["`libclang` was not found", "needed:", "install:", "libclang-dev", "LIBCLANG_PATH"]);
}

#[test]
fn a_header_that_is_none() {
    let miniature = Miniature::new();
    miniature.write("package/wrapper.h", "#include \"not-there.h\"\n");
    assert_says(miniature.script("debug").run().message(), &["headers", miniature.path("tree").to_str().unwrap()]);
}

#[test]
fn a_cmake_step_that_fails() {
    let miniature = Miniature::new();
    miniature.write("package/native/CMakeLists.txt", "message(FATAL_ERROR \"failed on purpose\")\n");
    let ran = miniature.script("debug").run();
    let message = ran.message();
    assert_says(message, &["building llama.cpp failed", "GGML_LLAMA_SOURCE_DIR", "Build folder:"]);
    assert_says(message, &[miniature.path("target/ggml-llama-native").to_str().unwrap()]);
    assert_says(&format!("{}{}", ran.stdout, ran.stderr), &["failed on purpose"]);
}
