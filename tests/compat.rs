//! `native/compat/gcc-amx-tile-config.h`: with it, GCC keeps every store to a tile configuration. Assembly tells; no
//! machine with AMX is needed.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

mod build_support;

/// A 64-byte tile configuration: the width of tile 5 is at byte 26, the number of rows of tile 3 at byte 51. Both come
/// in registers, so that each store is an instruction of its own.
const SOURCE: &str = "
#include <immintrin.h>
#include <stdint.h>
struct config { uint8_t palette, start_row, reserved[14]; uint16_t colsb[16]; uint8_t rows[16]; };
extern \"C\" void configure(uint16_t colsb, uint8_t rows) {
    alignas(64) config c = {};
    c.palette = 1;
    c.colsb[5] = colsb;
    c.rows[3] = rows;
    _tile_loadconfig(&c);
}
";

fn header() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("native/compat/gcc-amx-tile-config.h")
}

fn compile(compiler: &str, source: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(compiler);
    command.args(args).args(["-x", "c++", "-o", "-"]).arg(source).env("LC_ALL", "C").output().unwrap()
}

/// The compiler of this machine, when it is a GCC for x86-64 that knows AMX.
fn gcc() -> Option<String> {
    let said = |compiler: &str, arg: &str| {
        let output = Command::new(compiler).arg(arg).env("LC_ALL", "C").output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let candidates = env::var("CXX").into_iter().chain(["g++".to_owned(), "c++".to_owned()]);
    candidates.into_iter().find(|compiler| {
        said(compiler, "--version").is_some_and(|text| text.contains("Free Software Foundation"))
            && said(compiler, "-dumpmachine").is_some_and(|machine| machine.starts_with("x86_64"))
            && said(compiler, "--target-help").is_some_and(|help| help.contains("-mamx-tile"))
    })
}

/// The assembly of [`SOURCE`].
fn assembly(compiler: &str, level: &str, with_header: bool) -> String {
    let dir = tempfile::tempdir().unwrap();
    let source = dir.path().join("configure.cpp");
    fs::write(&source, SOURCE).unwrap();
    let header = header().to_str().unwrap().to_owned();
    let mut args = vec!["-S", level, "-mamx-tile", "-std=c++17", "-Wall", "-Werror"];
    if with_header {
        args.extend(["-include", &header]);
    }
    let output = compile(compiler, &source, &args);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Offset and base of an operand such as `-64(%rsp)`.
fn operand(text: &str) -> Option<(i64, &str)> {
    let (offset, base) = text.trim().split_once('(')?;
    Some((if offset.is_empty() { 0 } else { offset.parse().ok()? }, base.strip_suffix(')')?))
}

/// The bytes of the configuration that `register` is stored to.
fn stored_at(assembly: &str, store: &str, register: &str) -> Vec<i64> {
    let after = |line: &'_ str, name: &str| line.trim().strip_prefix(name).map(|rest| rest.trim().to_owned());
    let loaded = assembly.lines().find_map(|line| after(line, "ldtilecfg")).expect("no ldtilecfg");
    let (start, base) = operand(&loaded).unwrap_or_else(|| panic!("an operand of another kind: {loaded}"));
    let stores = assembly.lines().filter_map(|line| after(line, store));
    stores
        .filter_map(|operands| operands.strip_prefix(&format!("{register}, ")).map(str::to_owned))
        .filter_map(|target| operand(&target).filter(|(_, have)| *have == base).map(|(offset, _)| offset - start))
        .collect()
}

#[test]
fn with_the_header_every_store_to_the_configuration_stays() {
    let Some(compiler) = gcc() else { return println!("skipped: no GCC for x86-64 that knows AMX") };
    for level in ["-O2", "-O3"] {
        let assembly = assembly(&compiler, level, true);
        assert_eq!(stored_at(&assembly, "movw", "%di"), [26], "{level}: the width of tile 5 in\n{assembly}");
        assert_eq!(stored_at(&assembly, "movb", "%sil"), [51], "{level}: the rows of tile 3 in\n{assembly}");
        // No detour: one instruction, without a call.
        assert_eq!(assembly.matches("ldtilecfg\t").count(), 1, "{level}: {assembly}");
        assert!(!assembly.contains("call"), "{level}: {assembly}");
    }
    // For the record: when no supported compiler has the fault any more, the header can go.
    let bare = assembly(&compiler, "-O2", false);
    let lost = stored_at(&bare, "movw", "%di").is_empty() || stored_at(&bare, "movb", "%sil").is_empty();
    println!("{compiler} without the header: the stores are {}", if lost { "lost (the fault)" } else { "kept" });
}

#[test]
fn the_header_is_nothing_without_amx() {
    let Some(compiler) = gcc() else { return println!("skipped: no GCC for x86-64 that knows AMX") };
    let dir = tempfile::tempdir().unwrap();
    let source = dir.path().join("empty.cpp");
    fs::write(&source, "int nothing;\n").unwrap();
    let header = header();
    let preprocessed = |flags: &[&str]| {
        let args = [&["-E", "-P", "-include", header.to_str().unwrap()], flags].concat();
        let output = compile(&compiler, &source, &args);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(preprocessed(&["-mavx2"]).trim(), "int nothing;");
    assert!(preprocessed(&["-mamx-tile"]).contains("gl_tile_loadconfig"));
    assert_eq!(preprocessed(&["-mamx-tile", "-D__clang__"]).trim(), "int nothing;", "Clang has no such fault");
}

/// Every C++ file of ggml-cpu, and no other, was compiled with the header.
#[test]
fn the_native_build_was_given_the_header() {
    let builds = build_support::native_builds();
    let newest = builds.iter().max_by_key(|(_, time)| **time).map(|(build, _)| build).expect("no native build");
    let cache = fs::read_to_string(newest.join("build/CMakeCache.txt")).unwrap();
    let Ok(commands) = fs::read_to_string(newest.join("build/compile_commands.json")) else {
        return println!("skipped: this generator writes no compile_commands.json");
    };
    let compiler = cache.lines().find_map(|line| line.strip_prefix("CMAKE_CXX_COMPILER:")).unwrap_or_default();
    let compiler = compiler.split_once('=').map_or("", |(_, path)| path);
    let version = Command::new(compiler).arg("--version").output().unwrap();
    if !String::from_utf8_lossy(&version.stdout).contains("Free Software Foundation") {
        return println!("skipped: {compiler} is no GCC");
    }
    let mut n_given = 0;
    for command in commands.lines().filter(|line| line.trim_start().starts_with("\"command\":")) {
        let cpp = command.contains(".cpp.o") || command.contains(".cc.o");
        let cpu = command.contains("ggml-cpu.dir");
        let given = command.contains("gcc-amx-tile-config.h");
        assert_eq!(given, cpp && cpu, "{command}");
        n_given += usize::from(given);
    }
    assert!(n_given > 5, "{n_given} files");
}
