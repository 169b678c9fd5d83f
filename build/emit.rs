//! The only place that prints `cargo::` lines.

use std::path::Path;

use super::options::VARIABLES;
use super::plan::{BuildPlan, Link};

/// Says what makes cargo run the build script again.
pub(crate) fn rerun_rules(package_dir: &Path, editable_source: Option<&Path>) {
    // All of `vendor`: a tree that appears in it takes the carrier's place. Not the tree itself, since cargo takes a path
    // that is not there for changed, each time.
    for path in ["build.rs", "build", "native", "wrapper.h", "vendor"] {
        println!("cargo::rerun-if-changed={}", package_dir.join(path).display());
    }
    if let Some(dir) = editable_source {
        println!("cargo::rerun-if-changed={}", dir.display());
    }
    for variable in VARIABLES {
        println!("cargo::rerun-if-env-changed={}", variable.name);
    }
    // Cross-compilers name the target in their variables.
    if let Ok(target) = std::env::var("TARGET") {
        let target_ = target.replace('-', "_");
        for name in ["CC", "CXX", "CFLAGS", "CXXFLAGS", "CMAKE_TOOLCHAIN_FILE"] {
            println!("cargo::rerun-if-env-changed={name}_{target}");
            println!("cargo::rerun-if-env-changed={name}_{target_}");
        }
    }
    for name in ["CC", "CXX", "CFLAGS", "CXXFLAGS", "CMAKE", "CMAKE_GENERATOR", "CMAKE_TOOLCHAIN_FILE", "LIBCLANG_PATH"]
    {
        println!("cargo::rerun-if-env-changed={name}");
    }
}

/// Conditional compilation that the crate's sources may ask about.
pub(crate) fn cfgs(plan: &BuildPlan) {
    println!("cargo::rustc-check-cfg=cfg(ggml_llama_skip_native)");
    if plan.skip_native {
        println!("cargo::rustc-cfg=ggml_llama_skip_native");
    }
    for cfg in &plan.cfgs {
        println!("cargo::rustc-check-cfg=cfg({cfg})");
        println!("cargo::rustc-cfg={cfg}");
    }
}

/// What to link. The order is the plan's: one-pass linkers need users before what they use.
pub(crate) fn link(plan: &BuildPlan, archive_dir: &Path) {
    println!("cargo::rustc-link-search=native={}", archive_dir.display());
    for archive in &plan.archives {
        println!("cargo::rustc-link-lib=static={archive}");
    }
    for link in &plan.link {
        match link {
            Link::Static(name) => println!("cargo::rustc-link-lib=static:-bundle={name}"),
            Link::Dylib(name) => println!("cargo::rustc-link-lib=dylib={name}"),
            Link::Framework(name) => println!("cargo::rustc-link-lib=framework={name}"),
            Link::Search(dir) => println!("cargo::rustc-link-search=native={dir}"),
            Link::Arg(arg) => println!("cargo::rustc-link-arg={arg}"),
        }
    }
}

/// What packages that depend on this one can read as `DEP_LLAMA_*`.
pub(crate) fn metadata(source_dir: &Path, archive_dir: Option<&Path>) {
    println!("cargo::metadata=source={}", source_dir.display());
    println!("cargo::metadata=include={}", source_dir.join("include").display());
    if let Some(dir) = archive_dir {
        println!("cargo::metadata=lib={}", dir.display());
    }
}

/// Ends the build with one readable block.
pub(crate) fn fail(message: &str) -> ! {
    for line in message.lines() {
        println!("cargo::error={line}");
    }
    std::process::exit(1)
}
