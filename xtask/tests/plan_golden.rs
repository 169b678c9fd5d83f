//! The build plan for a grid of targets, features and CPU policies, without compiling anything native: golden files in
//! `golden/`, and assertions from independent reasoning. `UPDATE_GOLDEN=1` rewrites the files; read the diff.

#![allow(dead_code, missing_docs, unreachable_pub)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::{env, fs};

#[path = "../../build"]
mod build_script {
    pub mod backends;
    pub mod cpu;
    pub mod options;
    pub mod plan;
    pub mod target;
}

use build_script::backends::{self, BACKENDS};
use build_script::cpu::{self, CpuPolicy, HostCpu, ISA_SETS};
use build_script::options::{Options, VARIABLES};
use build_script::plan::{BuildPlan, Link, PlanError, plan};
use build_script::target::{Arch, Env, Os, Target};

type Result<T = ()> = std::result::Result<T, String>;

const TARGETS: &[&str] = &[
    "x86_64-unknown-linux-gnu",
    "aarch64-unknown-linux-gnu",
    "riscv64gc-unknown-linux-gnu",
    "x86_64-unknown-linux-musl",
    "aarch64-apple-darwin",
    "x86_64-apple-darwin",
    "x86_64-pc-windows-msvc",
    "aarch64-pc-windows-msvc",
    "x86_64-pc-windows-gnu",
    "aarch64-linux-android",
    "aarch64-apple-ios",
    "aarch64-apple-ios-sim",
    "x86_64-unknown-freebsd",
];

const LINUX: &str = "x86_64-unknown-linux-gnu";

/// A CPU of the grid: name, architecture, features as the detection reports them.
struct Machine {
    name: &'static str,
    arch: Arch,
    features: &'static str,
}

const MACHINES: &[Machine] = &[
    Machine { name: "Zen 3", arch: Arch::X86_64, features: "sse3 ssse3 sse4.1 sse4.2 popcnt avx f16c fma bmi2 avx2" },
    Machine {
        name: "Alder Lake",
        arch: Arch::X86_64,
        features: "sse3 ssse3 sse4.1 sse4.2 popcnt avx f16c fma bmi2 avx2 avxvnni",
    },
    Machine {
        name: "Sapphire Rapids",
        arch: Arch::X86_64,
        features: "sse3 ssse3 sse4.1 sse4.2 popcnt avx f16c fma bmi2 avx2 avxvnni avx512f avx512cd avx512vl avx512dq \
                   avx512bw avx512vbmi avx512vnni avx512bf16 amx-tile amx-int8 amx-bf16",
    },
    Machine { name: "Apple M1", arch: Arch::Aarch64, features: "dotprod fp16" },
    Machine { name: "Neoverse V2", arch: Arch::Aarch64, features: "dotprod fp16 i8mm sve sve2" },
];

fn machine(name: &str) -> Result<HostCpu> {
    let machine = MACHINES.iter().find(|m| m.name == name).ok_or_else(|| format!("no machine {name}"))?;
    Ok(HostCpu {
        arch: machine.arch.clone(),
        features: machine.features.split_whitespace().map(str::to_owned).collect(),
    })
}

/// A machine that has nothing to do with any target of the grid.
fn stranger() -> HostCpu {
    HostCpu { arch: Arch::Other("stranger".to_owned()), features: vec!["avx512f".to_owned()] }
}

fn target(triple: &str) -> Result<Target> {
    Target::parse(triple)
}

/// Options from `NAME=VALUE` pairs, with what every build for that target has set.
fn options(target: &Target, variables: &[(&str, &str)]) -> Result<Options> {
    let mut map: BTreeMap<&str, &str> = variables.iter().copied().collect();
    if target.os == Os::Android {
        map.entry("ANDROID_NDK").or_insert("/ndk");
    }
    if target.env == Env::Musl {
        map.entry("CARGO_CFG_TARGET_FEATURE").or_insert("crt-static,fxsr,sse2");
    }
    Options::parse(&|name| map.get(name).map(|value| (*value).to_owned()))
}

/// A cross build from Linux, portable unless the variables say otherwise.
fn cross(triple: &str, features: &[&str], variables: &[(&str, &str)]) -> Result<BuildPlan> {
    let target = target(triple)?;
    let mut variables = variables.to_vec();
    if !variables.iter().any(|(name, _)| *name == "GGML_LLAMA_CPU") {
        variables.push(("GGML_LLAMA_CPU", "portable"));
    }
    let options = options(&target, &variables)?;
    let host = Target::parse("x86_64-unknown-linux-gnu")?;
    plan(&options, features, &target, &host, &stranger()).map_err(|e| format!("{triple} {features:?}: {e}"))
}

fn failure(triple: &str, features: &[&str], variables: &[(&str, &str)]) -> Result<String> {
    match cross(triple, features, variables) {
        Ok(_) => Err(format!("{triple} with {features:?} and {variables:?} should have been refused")),
        Err(message) => Ok(message),
    }
}

fn supported(triple: &str) -> Result<Vec<&'static str>> {
    let target = target(triple)?;
    Ok(BACKENDS.iter().filter(|b| (b.supported)(&target)).map(|b| b.feature).collect())
}

/// All features that one program for the target can have at once.
fn all_at_once(triple: &str) -> Result<Vec<&'static str>> {
    let mut chosen: Vec<&str> = Vec::new();
    for feature in supported(triple)? {
        if !backends::find(feature).is_some_and(|b| b.conflicts.iter().any(|other| chosen.contains(other))) {
            chosen.push(feature);
        }
    }
    Ok(chosen)
}

fn feature_sets(triple: &str) -> Result<Vec<Vec<&'static str>>> {
    let single = supported(triple)?;
    let mut sets: Vec<Vec<&str>> = vec![vec![]];
    sets.extend(single.iter().map(|feature| vec![*feature]));
    let trio = vec!["vulkan", "rpc", "blas"];
    if trio.iter().all(|feature| single.contains(feature)) {
        sets.push(trio);
    }
    sets.push(all_at_once(triple)?);
    Ok(sets)
}

/// Every plan of the grid with all features of each set, portable.
fn grid() -> Result<Vec<(String, BuildPlan)>> {
    let mut plans = Vec::new();
    for triple in TARGETS {
        for features in feature_sets(triple)? {
            plans.push((format!("{triple} {features:?}"), cross(triple, &features, &[])?));
        }
    }
    Ok(plans)
}

fn value<'a>(plan: &'a BuildPlan, name: &str) -> Option<&'a str> {
    plan.cmake.iter().find(|(have, _)| have == name).map(|(_, value)| value.as_str())
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

// ---------------------------------------------------------------------------------------------------- golden files

/// Lines that differ from the base, `-` and `+`, in a stable order.
fn difference(base: &str, other: &str) -> String {
    let old: BTreeSet<&str> = base.lines().collect();
    let new: BTreeSet<&str> = other.lines().collect();
    let mut text: Vec<String> =
        base.lines().filter(|line| !new.contains(line)).map(|line| format!("- {line}")).collect();
    text.extend(other.lines().filter(|line| !old.contains(line)).map(|line| format!("+ {line}")));
    // Order matters to linkers: where only the order changed, say it whole.
    let order = |text: &str| -> Vec<String> {
        text.lines().filter(|line| line.starts_with("link ")).map(|line| line.replacen("link ", "", 1)).collect()
    };
    if text.iter().any(|line| line.contains(" link ")) {
        text.push(format!("= link order: {}", order(other).join(", ")));
    }
    if text.is_empty() { "(the same)".to_owned() } else { text.join("\n") }
}

fn golden_text(triple: &str) -> Result<String> {
    let here = target(triple)?;
    let base = cross(triple, &[], &[])?.render();
    let mut text =
        format!("# Build plans for {triple}. Rewritten by UPDATE_GOLDEN=1 cargo test -p xtask --test plan_golden\n");
    text.push_str(&format!("\n## no features, portable\n{base}"));
    for features in feature_sets(triple)?.iter().skip(1) {
        let other = cross(triple, features, &[])?.render();
        text.push_str(&format!("\n## features {}\n{}\n", features.join(" "), difference(&base, &other)));
    }
    for machine in MACHINES.iter().filter(|machine| machine.arch == here.arch) {
        let cpu = self::machine(machine.name)?;
        let other = plan(&options(&here, &[])?, &[], &here, &here, &cpu).map_err(|e| e.to_string())?.render();
        text.push_str(&format!("\n## native on {}\n{}\n", machine.name, difference(&base, &other)));
    }
    let policies: &[&str] = match here.arch {
        Arch::X86_64 => &["x86-64-v2", "x86-64-v3", "x86-64-v4", "avx2,fma,f16c"],
        Arch::Aarch64 => &["dotprod,i8mm", "sve2"],
        Arch::Riscv64 => &["rvv,zfh,zvfh"],
        _ => &[],
    };
    for policy in policies {
        let other = cross(triple, &[], &[("GGML_LLAMA_CPU", policy)])?.render();
        text.push_str(&format!("\n## GGML_LLAMA_CPU={policy}\n{}\n", difference(&base, &other)));
    }
    let mut variables: Vec<(&str, &str, &[&str])> =
        vec![("GGML_LLAMA_CMAKE_DEFINES", "GGML_LTO=ON;EXTRA=1", &[]), ("GGML_LLAMA_CXX_STDLIB", "none", &[])];
    let features = supported(triple)?;
    if features.contains(&"cuda") {
        variables.push(("GGML_LLAMA_CUDA_STATIC", "1", &["cuda"]));
        variables.push(("GGML_LLAMA_CUDA_ARCHS", "90", &["cuda"]));
        variables.push(("CUDA_PATH", "/toolkit", &["cuda"]));
        variables.push(("GGML_LLAMA_CMAKE_DEFINES", "GGML_CUDA_NO_VMM=ON", &["cuda"]));
    }
    if features.contains(&"blas") {
        variables.push(("GGML_LLAMA_BLAS_VENDOR", "mkl", &["blas"]));
        variables.push(("OPENBLAS_PATH", "/blas", &["blas"]));
    }
    if features.contains(&"openmp") {
        variables.push(("GGML_LLAMA_OPENMP_LIB", "omp", &["openmp"]));
    }
    if here.is_msvc() {
        variables.push(("CARGO_CFG_TARGET_FEATURE", "crt-static", &[]));
    } else {
        variables.push(("GGML_LLAMA_SANITIZE", "address", &[]));
    }
    for (name, value, features) in variables {
        let base = cross(triple, features, &[])?.render();
        let other = cross(triple, features, &[(name, value)])?.render();
        let with = if features.is_empty() { String::new() } else { format!(" with {}", features.join(" ")) };
        text.push_str(&format!("\n## {name}={value}{with}\n{}\n", difference(&base, &other)));
    }
    Ok(text)
}

#[test]
fn plans_equal_their_golden_files() -> Result {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let update = env::var_os("UPDATE_GOLDEN").is_some_and(|value| value != "0");
    let mut wrong = Vec::new();
    let mut names = BTreeSet::new();
    for triple in TARGETS {
        let name = format!("{triple}.txt");
        let path = folder.join(&name);
        let text = golden_text(triple)?;
        names.insert(name);
        // A checkout may have turned line ends.
        let have = fs::read_to_string(&path).unwrap_or_default().replace("\r\n", "\n");
        if have == text {
            continue;
        }
        if update {
            fs::write(&path, &text).map_err(|e| format!("cannot write {}: {e}", path.display()))?;
        } else {
            let first = have.lines().zip(text.lines()).position(|(a, b)| a != b);
            let at = first.unwrap_or_else(|| have.lines().count().min(text.lines().count()));
            wrong.push(format!(
                "{}:{}: the file says `{}`, the plan says `{}`",
                path.display(),
                at + 1,
                have.lines().nth(at).unwrap_or("(nothing)"),
                text.lines().nth(at).unwrap_or("(nothing)")
            ));
        }
    }
    let stored = fs::read_dir(&folder).map_err(|e| e.to_string())?.flatten();
    let stored: BTreeSet<String> = stored.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    for extra in stored.difference(&names) {
        wrong.push(format!("golden/{extra} belongs to no target of the grid"));
    }
    assert!(wrong.is_empty(), "{}\nUPDATE_GOLDEN=1 rewrites the files.", wrong.join("\n"));
    Ok(())
}

// ---------------------------------------------------------------------------------------- what holds for every plan

#[test]
fn no_plan_compiles_for_the_machine_by_a_compiler_flag() -> Result {
    for (name, plan) in grid()? {
        assert_eq!(value(&plan, "GGML_NATIVE"), Some("OFF"), "{name}");
        assert!(!plan.render().contains("native"), "{name}");
        assert!(!plan.render().contains("-march"), "{name}");
    }
    for machine_name in ["Zen 3", "Sapphire Rapids"] {
        let linux = target(LINUX)?;
        let plan =
            plan(&Options::default(), &[], &linux, &linux, &machine(machine_name)?).map_err(|e| e.to_string())?;
        assert_eq!(value(&plan, "GGML_NATIVE"), Some("OFF"));
        assert!(!plan.render().contains("-march") && !plan.render().contains("=native"));
    }
    Ok(())
}

#[test]
fn entries_are_sorted_and_unique() -> Result {
    for (name, plan) in grid()? {
        let names: Vec<&str> = plan.cmake.iter().map(|(name, _)| name.as_str()).collect();
        let sorted: BTreeSet<&str> = names.iter().copied().collect();
        assert_eq!(names, sorted.into_iter().collect::<Vec<_>>(), "{name}");
    }
    Ok(())
}

#[test]
fn a_plan_is_always_optimised_static_and_small() -> Result {
    for (name, plan) in grid()? {
        assert_eq!(value(&plan, "CMAKE_BUILD_TYPE"), Some("Release"), "{name}");
        assert_eq!(value(&plan, "BUILD_SHARED_LIBS"), Some("OFF"), "{name}");
        for part in ["COMMON", "TESTS", "TOOLS", "EXAMPLES", "SERVER", "APP", "MTMD", "UI"] {
            assert_eq!(value(&plan, &format!("LLAMA_BUILD_{part}")), Some("OFF"), "{name}");
        }
    }
    Ok(())
}

#[test]
fn every_backend_is_explicitly_on_or_off() -> Result {
    for triple in TARGETS {
        for features in feature_sets(triple)? {
            let plan = cross(triple, &features, &[])?;
            for backend in BACKENDS {
                let expected = if features.contains(&backend.feature) { "ON" } else { "OFF" };
                assert_eq!(value(&plan, backend.option), Some(expected), "{triple} {features:?} {}", backend.option);
            }
            for other in ["SYCL", "CANN", "MUSA", "WEBGPU", "HEXAGON", "OPENVINO", "ZDNN", "ZENDNN", "VIRTGPU", "ET"] {
                assert_eq!(value(&plan, &format!("GGML_{other}")), Some("OFF"), "{triple} {other}");
            }
        }
    }
    Ok(())
}

/// A plan with more features holds all that the smaller one holds, in the same order of archives, and turns nothing off.
#[test]
fn features_only_add() -> Result {
    for triple in TARGETS {
        let sets = feature_sets(triple)?;
        for small in &sets {
            for big in sets.iter().filter(|big| small.iter().all(|feature| big.contains(feature))) {
                let what = format!("{triple} {small:?} in {big:?}");
                let (less, more) = (cross(triple, small, &[])?, cross(triple, big, &[])?);
                let kept: Vec<&String> = more.archives.iter().filter(|name| less.archives.contains(name)).collect();
                assert_eq!(kept, less.archives.iter().collect::<Vec<_>>(), "{what}");
                assert!(less.link.iter().all(|link| more.link.contains(link)), "{what}");
                for (name, value) in less.cmake.iter().filter(|(_, value)| value == "ON") {
                    assert_eq!(self::value(&more, name), Some(value.as_str()), "{what}: {name}");
                }
                assert_eq!(less.cpu, more.cpu, "{what}");
            }
        }
    }
    Ok(())
}

#[test]
fn the_order_of_features_does_not_matter() -> Result {
    let one = cross(LINUX, &["rpc", "vulkan", "blas"], &[])?;
    let other = cross(LINUX, &["blas", "default", "rpc", "serde", "vulkan"], &[])?;
    assert_eq!(one.render(), other.render());
    Ok(())
}

/// Only the default CPU policy and the preflight look at the machine that builds.
#[test]
fn the_building_machine_does_not_matter() -> Result {
    let hosts = ["x86_64-unknown-linux-gnu", "aarch64-apple-darwin", "x86_64-pc-windows-msvc"];
    for triple in TARGETS {
        let here = target(triple)?;
        let options = options(&here, &[("GGML_LLAMA_CPU", "portable")])?;
        for features in feature_sets(triple)? {
            let mut texts = BTreeSet::new();
            for host in hosts.iter().chain([triple]) {
                for cpu in [stranger(), machine("Sapphire Rapids")?, machine("Apple M1")?] {
                    let plan = plan(&options, &features, &here, &target(host)?, &cpu).map_err(|e| e.to_string())?;
                    let text = plan.render();
                    let built: Vec<&str> = text.lines().filter(|line| !line.starts_with("tool ")).collect();
                    texts.insert(built.join("\n"));
                }
            }
            assert_eq!(texts.len(), 1, "{triple} {features:?}");
        }
    }
    Ok(())
}

// --------------------------------------------------------------------------------- hazards read in other build scripts

/// H49: with GGML_NATIVE off, upstream's own defaults turn AVX2 on for a native build and off for a cross build.
#[test]
fn h49_instruction_sets_never_depend_on_upstream_defaults() -> Result {
    let x86 = [
        "SSE42",
        "AVX",
        "AVX2",
        "BMI2",
        "FMA",
        "F16C",
        "AVX_VNNI",
        "AVX512",
        "AVX512_VBMI",
        "AVX512_VNNI",
        "AVX512_BF16",
        "AMX_TILE",
        "AMX_INT8",
        "AMX_BF16",
    ];
    for triple in TARGETS {
        let plan = cross(triple, &[], &[])?;
        for set in x86 {
            assert_eq!(value(&plan, &format!("GGML_{set}")), Some("OFF"), "{triple} {set}");
        }
        // RISC-V's are on by default upstream, and the Rust target has none of them.
        for set in ["RVV", "RV_ZFH", "RV_ZVFH", "RV_ZICBOP", "RV_ZIHINTPAUSE"] {
            assert_eq!(value(&plan, &format!("GGML_{set}")), Some("OFF"), "{triple} {set}");
        }
    }
    // The mapping has AVX-512, AMX and Arm.
    let names: Vec<&str> = ISA_SETS.iter().map(|set| set.name).collect();
    for name in ["avx512", "amx_int8", "dotprod", "i8mm", "sve"] {
        assert!(names.contains(&name), "{name}");
    }
    Ok(())
}

/// H50: the link set belongs to the target. From Linux, a Windows build gets Windows' libraries.
#[test]
fn h50_link_sets_follow_the_target() -> Result {
    let windows = cross("x86_64-pc-windows-msvc", &["cuda"], &[("GGML_LLAMA_CUDA_STATIC", "1")])?;
    for name in ["culibos", "cublas_static", "cublasLt_static", "rt", "pthread", "dl"] {
        assert!(!links(&windows).contains(&name), "{name} does not exist on Windows");
    }
    assert!(links(&windows).contains(&"cublas") && links(&windows).contains(&"cuda"));
    let linux = cross(LINUX, &["cuda"], &[("GGML_LLAMA_CUDA_STATIC", "1")])?;
    for name in ["culibos", "cublas_static", "cublasLt_static", "cudart_static"] {
        assert!(linux.link.contains(&Link::Static(name.to_owned())), "{name}");
    }
    assert!(links(&cross("x86_64-pc-windows-msvc", &["vulkan"], &[])?).contains(&"vulkan-1"));
    assert!(links(&cross(LINUX, &["vulkan"], &[])?).contains(&"vulkan"));
    assert!(links(&cross("x86_64-pc-windows-gnu", &["rpc"], &[])?).contains(&"ws2_32"));
    assert!(!links(&cross(LINUX, &["rpc"], &[])?).contains(&"ws2_32"));
    assert!(links(&cross("x86_64-pc-windows-gnu", &[], &[])?).contains(&"advapi32"));
    Ok(())
}

/// H51: what the build reads is what cargo watches.
#[test]
fn h51_every_variable_that_is_read_is_registered() -> Result {
    let asked = std::cell::RefCell::new(BTreeSet::new());
    Options::parse(&|name| {
        asked.borrow_mut().insert(name.to_owned());
        None
    })?;
    let known: BTreeSet<String> = VARIABLES.iter().map(|variable| variable.name.to_owned()).collect();
    assert_eq!(known.len(), VARIABLES.len(), "a variable is listed twice");
    // Cargo's own, and one that `emit.rs` registers beside the table.
    let elsewhere = ["TARGET", "CARGO_CFG_TARGET_FEATURE", "CMAKE_TOOLCHAIN_FILE"];
    for name in asked.borrow().iter().filter(|name| !elsewhere.contains(&name.as_str())) {
        assert!(known.contains(name), "{name} is read, but not in VARIABLES");
    }
    for variable in VARIABLES {
        assert!(!variable.doc.is_empty() && !variable.default.is_empty(), "{}", variable.name);
    }
    for tool in BACKENDS.iter().flat_map(|backend| backend.preflight) {
        assert!(known.contains(tool.variable), "{} names {}, which is not in VARIABLES", tool.program, tool.variable);
        assert!(!tool.install.is_empty() && !tool.why.is_empty(), "{}", tool.program);
    }
    Ok(())
}

/// H53: no path of the building machine gets into the result; only toolkits have folders, and only for linking.
#[test]
fn h53_no_build_path_in_a_plan() -> Result {
    for (name, plan) in grid()? {
        for (option, value) in &plan.cmake {
            let toolchain = option == "CMAKE_TOOLCHAIN_FILE" && value.starts_with("/ndk/");
            assert!(toolchain || !(value.contains('/') || value.contains('\\')), "{name}: {option}={value}");
        }
        for link in &plan.link {
            match link {
                Link::Search(dir) => {
                    assert!(dir.starts_with("/usr/local/cuda/") || dir.starts_with("/opt/rocm/"), "{name}: {dir}");
                }
                Link::Arg(arg) => assert!(!arg.contains("rpath"), "{name}: {arg}"),
                _ => {}
            }
        }
        assert_eq!(value(&plan, "GGML_BACKEND_DIR"), Some(""), "{name}");
    }
    Ok(())
}

/// H54: archives in the order that a one-pass linker needs, not in that of a directory.
#[test]
fn h54_archives_come_before_what_they_use() -> Result {
    for (name, plan) in grid()? {
        let first: Vec<&str> = plan.archives.iter().take(3).map(String::as_str).collect();
        let last: Vec<&str> = plan.archives.iter().rev().take(2).map(String::as_str).collect();
        assert_eq!(first, ["gl_shim", "llama", "ggml"], "{name}");
        assert_eq!(last, ["ggml-base", "ggml-cpu"], "{name}");
        let unique: BTreeSet<&String> = plan.archives.iter().collect();
        assert_eq!(unique.len(), plan.archives.len(), "{name}");
        // The C++ run time after the backends' libraries, the system's after that.
        let at = |link: &Link| plan.link.iter().position(|have| have == link);
        let stdcxx = at(&Link::Dylib("stdc++".to_owned()));
        if let (Some(cxx), Some(blas)) = (stdcxx, at(&Link::Dylib("openblas".to_owned()))) {
            assert!(blas < cxx, "{name}");
        }
        if let (Some(cxx), Some(math)) = (stdcxx, at(&Link::Dylib("m".to_owned()))) {
            assert!(cxx < math, "{name}");
        }
        let links: BTreeSet<String> = plan.link.iter().map(Link::to_string).collect();
        assert_eq!(links.len(), plan.link.len(), "{name}: something is linked twice");
    }
    // Static CUDA libraries need dl and pthread after them.
    let cuda = cross(LINUX, &["cuda"], &[("GGML_LLAMA_CUDA_STATIC", "1")])?;
    let names = links(&cuda);
    let at = |name: &str| names.iter().position(|have| *have == name);
    assert!(at("stdc++") < at("dl") && at("stdc++") < at("pthread"), "the backend's mention must not come first");
    assert!(
        at("culibos") < at("dl") && at("cudart_static") < at("culibos") && at("cublas_static") < at("cublasLt_static")
    );
    Ok(())
}

/// H55: the C++ run time and OpenMP by target, and by variable.
#[test]
fn h55_cxx_runtime_and_openmp_follow_the_target() -> Result {
    let expected: &[(&str, &[&str])] = &[
        ("x86_64-unknown-linux-gnu", &["dylib stdc++"]),
        ("riscv64gc-unknown-linux-gnu", &["dylib stdc++"]),
        ("x86_64-unknown-linux-musl", &["static stdc++"]),
        ("aarch64-apple-darwin", &["dylib c++"]),
        ("aarch64-apple-ios", &["dylib c++"]),
        ("x86_64-unknown-freebsd", &["dylib c++"]),
        ("x86_64-pc-windows-msvc", &[]),
        ("x86_64-pc-windows-gnu", &["static stdc++"]),
        ("x86_64-pc-windows-gnullvm", &["dylib c++"]),
        ("aarch64-linux-android", &["static c++_static", "static c++abi"]),
        ("x86_64-unknown-openbsd", &["dylib c++"]),
    ];
    for (triple, wanted) in expected {
        let all: Vec<String> = cross(triple, &[], &[])?.link.iter().map(Link::to_string).collect();
        let cxx: Vec<&String> = all.iter().filter(|link| link.contains("c++")).collect();
        assert_eq!(cxx, wanted.iter().collect::<Vec<_>>(), "{triple}");
    }
    let by_variable: &[(&str, &str, &str)] = &[
        (LINUX, "c++", "dylib c++"),
        (LINUX, "static-stdc++", "static stdc++"),
        (LINUX, "static-c++", "static c++"),
        ("x86_64-pc-windows-gnu", "stdc++", "dylib stdc++"),
        ("aarch64-linux-android", "c++", "dylib c++_shared"),
    ];
    for (triple, given, wanted) in by_variable {
        let plan = cross(triple, &[], &[("GGML_LLAMA_CXX_STDLIB", given)])?;
        assert!(plan.link.iter().any(|link| link.to_string() == *wanted), "{triple} {given}: {:?}", plan.link);
    }
    let shared = cross("aarch64-linux-android", &[], &[("GGML_LLAMA_CXX_STDLIB", "c++")])?;
    assert_eq!(value(&shared, "ANDROID_STL"), Some("c++_shared"));

    let openmp: &[(&str, &str)] = &[
        (LINUX, "dylib gomp"),
        ("x86_64-unknown-linux-musl", "static gomp"),
        ("x86_64-pc-windows-gnu", "static gomp"),
        ("x86_64-unknown-freebsd", "dylib omp"),
        ("aarch64-linux-android", "static omp"),
    ];
    for (triple, wanted) in openmp {
        let plan = cross(triple, &["openmp"], &[])?;
        assert_eq!(value(&plan, "GGML_OPENMP"), Some("ON"), "{triple}");
        assert!(plan.link.iter().any(|link| link.to_string() == *wanted), "{triple}: {:?}", plan.link);
    }
    let msvc = cross("x86_64-pc-windows-msvc", &["openmp"], &[])?;
    assert!(links(&msvc).iter().all(|name| !name.contains("omp")));
    Ok(())
}

fn links(plan: &BuildPlan) -> Vec<&str> {
    plan.link
        .iter()
        .filter_map(|link| match link {
            Link::Static(name) | Link::Dylib(name) | Link::Framework(name) => Some(name.as_str()),
            _ => None,
        })
        .collect()
}

// -------------------------------------------------------------------------------------------------------- platforms

#[test]
fn visual_cxx_run_time_follows_the_rust_target() -> Result {
    for triple in ["x86_64-pc-windows-msvc", "aarch64-pc-windows-msvc"] {
        let shared = cross(triple, &[], &[])?;
        assert_eq!(value(&shared, "CMAKE_MSVC_RUNTIME_LIBRARY"), Some("MultiThreadedDLL"));
        let fixed = cross(triple, &[], &[("CARGO_CFG_TARGET_FEATURE", "cmpxchg16b,crt-static,sse3")])?;
        assert_eq!(value(&fixed, "CMAKE_MSVC_RUNTIME_LIBRARY"), Some("MultiThreaded"));
    }
    assert_eq!(value(&cross(LINUX, &[], &[])?, "CMAKE_MSVC_RUNTIME_LIBRARY"), None);
    // Upstream stops with `cl` on Arm unless GGML_NATIVE is on.
    assert_eq!(cross("aarch64-pc-windows-msvc", &[], &[])?.toolset, Some("ClangCL"));
    assert_eq!(cross("x86_64-pc-windows-msvc", &[], &[])?.toolset, None);
    Ok(())
}

#[test]
fn apple_targets_name_system_and_frameworks() -> Result {
    let device = cross("aarch64-apple-ios", &["metal"], &[])?;
    let simulator = cross("aarch64-apple-ios-sim", &["metal"], &[])?;
    assert_eq!(value(&device, "CMAKE_SYSTEM_NAME"), Some("iOS"));
    assert_eq!(value(&device, "CMAKE_OSX_SYSROOT"), Some("iphoneos"));
    assert_eq!(value(&simulator, "CMAKE_OSX_SYSROOT"), Some("iphonesimulator"));
    assert_eq!(value(&cross("x86_64-apple-ios", &[], &[])?, "CMAKE_OSX_SYSROOT"), Some("iphonesimulator"));
    for plan in [&device, &simulator, &cross("aarch64-apple-darwin", &["metal"], &[])?] {
        assert_eq!(value(plan, "GGML_METAL_EMBED_LIBRARY"), Some("ON"));
        assert_eq!(value(plan, "GGML_ACCELERATE"), Some("ON"));
        for framework in ["Accelerate", "Foundation", "Metal", "MetalKit"] {
            assert!(plan.link.contains(&Link::Framework(framework.to_owned())), "{framework}");
        }
        assert!(!plan.archives.contains(&"ggml-blas".to_owned()));
    }
    assert_eq!(value(&cross(LINUX, &[], &[])?, "GGML_ACCELERATE"), Some("OFF"));
    let blas = cross("aarch64-apple-darwin", &["blas"], &[])?;
    assert_eq!(value(&blas, "GGML_BLAS_VENDOR"), Some("Apple"));
    let given = cross("aarch64-apple-darwin", &["blas"], &[("MACOSX_DEPLOYMENT_TARGET", "14.0")])?;
    assert_eq!(value(&given, "CMAKE_OSX_DEPLOYMENT_TARGET"), Some("14.0"));
    Ok(())
}

#[test]
fn android_needs_its_ndk_or_a_toolchain_file() -> Result {
    let plan = cross("aarch64-linux-android", &[], &[("ANDROID_NDK", "C:\\ndk\\r27\\")])?;
    assert_eq!(value(&plan, "CMAKE_TOOLCHAIN_FILE"), Some("C:/ndk/r27/build/cmake/android.toolchain.cmake"));
    assert_eq!(value(&plan, "ANDROID_ABI"), Some("arm64-v8a"));
    let here = target("aarch64-linux-android")?;
    let host = target(LINUX)?;
    match self::plan(&Options::default(), &[], &here, &host, &stranger()) {
        Err(error @ PlanError::Variable { .. }) => {
            for word in ["ANDROID_NDK", "ANDROID_NDK_HOME", "expected", "aarch64-linux-android"] {
                assert!(error.to_string().contains(word), "{error}");
            }
        }
        other => return Err(format!("{other:?}")),
    }
    let own = Options::parse(&|name| (name == "CMAKE_TOOLCHAIN_FILE").then(|| "/my.cmake".to_owned()))?;
    let plan = self::plan(&own, &[], &here, &host, &stranger()).map_err(|e| e.to_string())?;
    assert_eq!(value(&plan, "CMAKE_TOOLCHAIN_FILE"), None, "the cmake crate passes the user's own");
    Ok(())
}

#[test]
fn triples_are_taken_apart() -> Result {
    let cases: &[(&str, Arch, Os, Env)] = &[
        ("x86_64-unknown-linux-gnu", Arch::X86_64, Os::Linux, Env::Gnu),
        ("armv7-unknown-linux-gnueabihf", Arch::Arm, Os::Linux, Env::Gnu),
        ("aarch64-unknown-linux-musl", Arch::Aarch64, Os::Linux, Env::Musl),
        ("aarch64-linux-android", Arch::Aarch64, Os::Android, Env::None),
        ("armv7-linux-androideabi", Arch::Arm, Os::Android, Env::None),
        ("aarch64-apple-darwin", Arch::Aarch64, Os::MacOs, Env::None),
        ("aarch64-apple-ios-sim", Arch::Aarch64, Os::Ios, Env::Sim),
        ("aarch64-apple-visionos", Arch::Aarch64, Os::VisionOs, Env::None),
        ("i686-pc-windows-msvc", Arch::X86, Os::Windows, Env::Msvc),
        ("x86_64-pc-windows-gnullvm", Arch::X86_64, Os::Windows, Env::GnuLlvm),
        ("riscv64gc-unknown-linux-gnu", Arch::Riscv64, Os::Linux, Env::Gnu),
        ("powerpc64le-unknown-linux-gnu", Arch::PowerPc64, Os::Linux, Env::Gnu),
        ("wasm32-unknown-emscripten", Arch::Wasm32, Os::Emscripten, Env::None),
        ("x86_64-unknown-freebsd", Arch::X86_64, Os::FreeBsd, Env::None),
    ];
    for (triple, arch, os, env) in cases {
        let parsed = target(triple)?;
        assert_eq!((&parsed.arch, &parsed.os, &parsed.env), (arch, os, env), "{triple}");
        assert_eq!(parsed.triple, *triple);
    }
    for bad in ["", "linux", "a--b", "x86_64-pc-linux-gnu-extra"] {
        match Target::parse(bad) {
            Err(message) => assert!(message.contains(&format!("`{bad}`")), "{message}"),
            Ok(parsed) => return Err(format!("{parsed:?}")),
        }
    }
    assert_eq!(target("x86_64-pc-windows-msvc")?.archive_name("ggml"), "ggml.lib");
    assert_eq!(target("x86_64-pc-windows-gnu")?.archive_name("ggml"), "libggml.a");
    Ok(())
}

#[test]
fn unsupported_features_are_refused_by_name() -> Result {
    let message = failure(LINUX, &["metal"], &[])?;
    for word in ["`metal`", LINUX, "macOS", "GGML_LLAMA_SKIP_NATIVE"] {
        assert!(message.contains(word), "{message}");
    }
    assert!(failure("aarch64-apple-darwin", &["cuda"], &[])?.contains("`cuda`"));
    for backend in BACKENDS {
        for other in backend.conflicts.iter().map(|name| backends::find(name)) {
            assert!(other.is_some_and(|other| other.conflicts.contains(&backend.feature)), "{}", backend.feature);
        }
    }
    let message = failure(LINUX, &["cuda", "hip"], &[])?;
    assert!(message.contains("`cuda`") && message.contains("`hip`"), "{message}");
    assert!(failure("wasm32-unknown-unknown", &[], &[])?.contains("wasm32-unknown-emscripten"));
    cross("wasm32-unknown-emscripten", &[], &[])?;
    let message = failure("x86_64-pc-windows-msvc", &[], &[("GGML_LLAMA_SANITIZE", "address")])?;
    assert!(message.contains("GGML_LLAMA_SANITIZE") && message.contains("address"), "{message}");
    let message = failure("aarch64-linux-android", &[], &[("GGML_LLAMA_CXX_STDLIB", "stdc++")])?;
    assert!(message.contains("GGML_LLAMA_CXX_STDLIB") && message.contains("static-c++"), "{message}");
    Ok(())
}

/// docs.rs and `cargo check --all-features` plan everything everywhere.
#[test]
fn skipping_the_native_part_never_fails() -> Result {
    let all: Vec<&str> = BACKENDS.iter().map(|backend| backend.feature).collect();
    for triple in TARGETS.iter().chain(&["wasm32-unknown-unknown", "x86_64-unknown-none"]) {
        for variable in ["GGML_LLAMA_SKIP_NATIVE", "DOCS_RS"] {
            let plan = cross(triple, &all, &[(variable, "1"), ("GGML_LLAMA_CPU", "amx_int8")])?;
            assert!(plan.skip_native);
            assert!(
                plan.archives.is_empty() && plan.link.is_empty() && plan.tools.is_empty() && plan.cpu.sets.is_empty()
            );
        }
    }
    Ok(())
}

#[test]
fn preflight_asks_for_what_a_build_needs() -> Result {
    let programs = |plan: &BuildPlan| -> Vec<&str> { plan.tools.iter().map(|tool| tool.program).collect() };
    assert_eq!(programs(&cross(LINUX, &[], &[])?), ["cmake"]);
    assert_eq!(programs(&cross(LINUX, &["vulkan", "rpc", "blas"], &[])?), ["cmake", "glslc", "pkg-config"]);
    assert_eq!(programs(&cross(LINUX, &["cuda"], &[])?), ["cmake", "nvcc"]);
    assert_eq!(programs(&cross(LINUX, &["cuda"], &[("CUDA_PATH", "/x")])?), ["cmake"]);
    assert_eq!(programs(&cross("aarch64-apple-darwin", &["blas", "metal"], &[])?), ["cmake"]);
    Ok(())
}

// -------------------------------------------------------------------------------------------------------------- CPU

fn native(triple: &str, name: &str) -> Result<cpu::CpuSelection> {
    cpu::resolve(&CpuPolicy::Native, &target(triple)?, &machine(name)?)
}

fn sets(triple: &str, policy: &str) -> Result<Vec<&'static str>> {
    cpu::resolve(&CpuPolicy::parse(policy)?, &target(triple)?, &stranger()).map(|selection| selection.sets)
}

#[test]
fn native_takes_what_the_machine_has() -> Result {
    assert_eq!(native(LINUX, "Zen 3")?.sets, ["sse42", "avx", "f16c", "fma", "bmi2", "avx2"]);
    let rapids = native(LINUX, "Sapphire Rapids")?;
    let all: Vec<&str> = ISA_SETS.iter().map(|set| set.name).take_while(|name| *name != "dotprod").collect();
    assert_eq!(rapids.sets, all);
    assert_eq!(rapids.arm_arch, None);
    let m1 = native("aarch64-apple-darwin", "Apple M1")?;
    assert_eq!(m1.arm_arch.as_deref(), Some("armv8.2-a+dotprod+fp16"));
    // SVE only on demand.
    let neoverse = native("aarch64-unknown-linux-gnu", "Neoverse V2")?;
    assert_eq!(neoverse.arm_arch.as_deref(), Some("armv8.2-a+dotprod+fp16+i8mm"));
    // Visual C++ has no AMX and upstream leaves its BF16 out.
    let msvc = native("x86_64-pc-windows-msvc", "Sapphire Rapids")?;
    assert!(msvc.sets.contains(&"avx512_vnni"));
    assert!(!msvc.sets.iter().any(|set| set.starts_with("amx") || *set == "avx512_bf16"));
    Ok(())
}

/// A set is used only with all that the compiler, or ggml, takes for granted with it.
#[test]
fn native_never_takes_half_a_set() -> Result {
    let without = |features: &[&str]| -> Result<Vec<&'static str>> {
        let mut cpu = machine("Sapphire Rapids")?;
        cpu.features.retain(|feature| !features.contains(&feature.as_str()));
        cpu::resolve(&CpuPolicy::Native, &target(LINUX)?, &cpu).map(|selection| selection.sets)
    };
    assert_eq!(without(&["sse4.2"])?, ["bmi2"]);
    assert!(!without(&["avx512bw"])?.iter().any(|set| set.contains("512") || set.contains("amx")));
    let no_vnni = without(&["avx512vnni"])?;
    assert!(no_vnni.contains(&"amx_tile") && !no_vnni.contains(&"amx_int8"));
    assert!(!without(&["amx-tile"])?.iter().any(|set| set.starts_with("amx")));
    // /arch:AVX2 of Visual C++ emits FMA.
    let mut cpu = machine("Zen 3")?;
    cpu.features.retain(|feature| feature != "fma");
    let here = target("x86_64-pc-windows-msvc")?;
    assert_eq!(cpu::resolve(&CpuPolicy::Native, &here, &cpu)?.sets, ["sse42", "avx", "f16c", "bmi2"]);
    Ok(())
}

#[test]
fn levels_and_lists() -> Result {
    assert!(sets(LINUX, "portable")?.is_empty());
    assert_eq!(sets(LINUX, "x86-64-v2")?, ["sse42"]);
    assert_eq!(sets(LINUX, "x86-64-v3")?, ["sse42", "avx", "f16c", "fma", "bmi2", "avx2"]);
    assert_eq!(sets(LINUX, "x86-64-v4")?, ["sse42", "avx", "f16c", "fma", "bmi2", "avx2", "avx512"]);
    assert_eq!(sets(LINUX, "avx2,fma,f16c")?, ["sse42", "avx", "f16c", "fma", "avx2"]);
    assert_eq!(sets(LINUX, "FMA; avx2")?, sets(LINUX, "avx2,fma")?);
    assert_eq!(sets("x86_64-pc-windows-msvc", "avx2")?, ["sse42", "avx", "f16c", "fma", "avx2"]);
    let amx = sets(LINUX, "amx_int8")?;
    for implied in ["avx2", "fma", "f16c", "avx512", "avx512_vnni", "amx_tile"] {
        assert!(amx.contains(&implied), "{implied}");
    }
    assert_eq!(
        cpu::resolve(&CpuPolicy::parse("sve2")?, &target("aarch64-unknown-linux-gnu")?, &stranger())?
            .arm_arch
            .as_deref(),
        Some("armv8.5-a+fp16+sve+sve2")
    );
    Ok(())
}

#[test]
fn a_policy_that_does_not_fit_is_refused_by_name() -> Result {
    let cases: &[(&str, &str, &[&str])] = &[
        (LINUX, "dotprod", &["dotprod", LINUX, "avx512"]),
        ("aarch64-apple-darwin", "avx2", &["avx2", "aarch64-apple-darwin", "dotprod"]),
        ("aarch64-apple-darwin", "x86-64-v3", &["x86-64-v3", "aarch64-apple-darwin"]),
        ("x86_64-pc-windows-msvc", "amx_int8", &["amx", "Visual C++"]),
        (LINUX, "native", &["native", LINUX, "portable"]),
    ];
    for (triple, policy, words) in cases {
        let message = failure(triple, &[], &[("GGML_LLAMA_CPU", policy)])?;
        for word in words.iter().chain(&["GGML_LLAMA_CPU"]) {
            assert!(message.contains(word), "{triple} {policy}: {message}");
        }
    }
    Ok(())
}

#[test]
fn the_default_policy_is_native_only_at_home() -> Result {
    let here = target(LINUX)?;
    let cpu = machine("Zen 3")?;
    let home = plan(&Options::default(), &[], &here, &here, &cpu).map_err(|e| e.to_string())?;
    assert_eq!(value(&home, "GGML_AVX2"), Some("ON"));
    let musl = target("x86_64-unknown-linux-musl")?;
    let away = plan(&Options::default(), &[], &musl, &here, &cpu).map_err(|e| e.to_string())?;
    assert_eq!(value(&away, "GGML_AVX2"), Some("OFF"));
    Ok(())
}

#[test]
fn the_isa_table_is_consistent() {
    let names: BTreeSet<&str> = ISA_SETS.iter().map(|set| set.name).collect();
    assert_eq!(names.len(), ISA_SETS.len());
    for set in ISA_SETS {
        for implied in set.implies {
            let row = ISA_SETS.iter().find(|row| row.name == *implied);
            assert!(row.is_some_and(|row| row.family == set.family), "{} implies {implied}", set.name);
        }
        assert!(!set.native || !set.features.is_empty(), "{}: native without a way to detect it", set.name);
    }
}

#[test]
fn run_time_checks_cover_what_is_compiled_in() -> Result {
    let rapids = native(LINUX, "Sapphire Rapids")?;
    let checks = cpu::runtime_check_names(&rapids);
    let checked: Vec<&str> = checks.iter().map(|(set, _)| *set).collect();
    assert_eq!(checked, rapids.sets);
    let have = machine("Sapphire Rapids")?.features;
    for (set, features) in checks {
        assert!(features.iter().all(|feature| have.iter().any(|name| name == feature)), "{set}");
    }
    assert!(cpu::runtime_check_names(&cpu::CpuSelection::default()).is_empty());
    assert_eq!(cpu::beyond_compiler(&rapids, false, 10), ["avx_vnni", "amx_tile", "amx_int8", "amx_bf16"]);
    assert!(cpu::beyond_compiler(&rapids, false, 12).is_empty());
    Ok(())
}

/// Intel's manual: CPUID.7.0:EDX has AMX-BF16 in bit 22, AMX-TILE in 24, AMX-INT8 in 25; XCR0 bits 17 and 18 are theirs.
#[test]
fn amx_needs_the_cpu_and_the_system() {
    assert_eq!(cpu::amx_features(0x0340_0000, 0x6_00e7), ["amx-bf16", "amx-tile", "amx-int8"]);
    assert_eq!(cpu::amx_features(0x0100_0000, 0x6_0000), ["amx-tile"]);
    assert_eq!(cpu::amx_features(0x0280_0000, 0x6_0000), ["amx-int8"], "bit 23 is AVX512-FP16");
    for xcr0 in [0xe7, 0x2_00e7, 0x4_00e7] {
        assert!(cpu::amx_features(u32::MAX, xcr0).is_empty(), "{xcr0:#x}");
    }
}

/// What the detection says, against the kernel's own list.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[test]
fn detection_agrees_with_the_kernel() -> Result {
    let text = fs::read_to_string("/proc/cpuinfo").map_err(|e| e.to_string())?;
    let flags: Vec<&str> = text
        .lines()
        .find(|line| line.starts_with("flags"))
        .map_or(Vec::new(), |line| line.split_whitespace().collect());
    let detected = cpu::detect();
    assert_eq!(detected.arch, Arch::X86_64);
    let pairs = [
        ("sse3", "pni"),
        ("ssse3", "ssse3"),
        ("sse4.2", "sse4_2"),
        ("popcnt", "popcnt"),
        ("avx", "avx"),
        ("f16c", "f16c"),
        ("fma", "fma"),
        ("bmi2", "bmi2"),
        ("avx2", "avx2"),
        ("avxvnni", "avx_vnni"),
        ("avx512f", "avx512f"),
        ("avx512bw", "avx512bw"),
        ("avx512vbmi", "avx512vbmi"),
        ("avx512vnni", "avx512_vnni"),
        ("avx512bf16", "avx512_bf16"),
        ("amx-tile", "amx_tile"),
        ("amx-int8", "amx_int8"),
        ("amx-bf16", "amx_bf16"),
    ];
    for (ours, kernel) in pairs {
        assert_eq!(detected.features.iter().any(|name| name == ours), flags.contains(&kernel), "{ours}");
    }
    Ok(())
}

// ---------------------------------------------------------------------------------------------------------- options

#[test]
fn parse_errors_name_variable_value_and_what_is_allowed() -> Result {
    let cases: &[(&str, &str, &[&str])] = &[
        ("GGML_LLAMA_CPU", "avx3", &["native", "portable", "x86-64-v3", "avx512_vnni", "dotprod"]),
        ("GGML_LLAMA_CPU", ",", &["native", "portable"]),
        ("GGML_LLAMA_SKIP_NATIVE", "maybe", &["1", "off"]),
        ("GGML_LLAMA_NO_FETCH", "2", &["1", "off"]),
        ("GGML_LLAMA_JOBS", "0", &["at least 1"]),
        ("GGML_LLAMA_JOBS", "many", &["at least 1"]),
        ("GGML_LLAMA_CUDA_ARCHS", "sm_90", &["75-virtual;89-real", "all-major"]),
        ("GGML_LLAMA_CUDA_ARCHS", "90;native", &["75-virtual;89-real"]),
        ("GGML_LLAMA_CUDA_STATIC", "static", &["1", "off"]),
        ("GGML_LLAMA_HIP_ARCHS", "1030", &["gfx1030"]),
        ("GGML_LLAMA_BLAS_VENDOR", "eigen", &["openblas", "mkl", "accelerate"]),
        ("GGML_LLAMA_OPENMP_LIB", "tbb", &["gomp", "omp"]),
        ("GGML_LLAMA_CXX_STDLIB", "libc++", &["stdc++", "static-c++", "none"]),
        ("GGML_LLAMA_SANITIZE", "memory", &["address", "thread", "undefined"]),
        ("GGML_LLAMA_CMAKE_DEFINES", "GGML_LTO", &["NAME=VALUE"]),
        ("GGML_LLAMA_CMAKE_DEFINES", "A B=1", &["NAME=VALUE"]),
    ];
    for (name, value, words) in cases {
        match Options::parse(&|asked| (asked == *name).then(|| (*value).to_owned())) {
            Ok(options) => return Err(format!("{name}={value} was accepted: {options:?}")),
            Err(message) => {
                for word in words.iter().chain(&[*name, *value, "expected"]) {
                    assert!(message.contains(word), "{name}={value}: `{message}` lacks `{word}`");
                }
            }
        }
    }
    Ok(())
}

#[test]
fn values_are_read() -> Result {
    let read = |pairs: &[(&str, &str)]| -> Result<Options> {
        let map: BTreeMap<&str, &str> = pairs.iter().copied().collect();
        Options::parse(&|name| map.get(name).map(|value| (*value).to_owned()))
    };
    assert_eq!(read(&[])?, Options::default());
    // Empty is unset.
    let blank: Vec<(&str, &str)> = VARIABLES.iter().map(|variable| (variable.name, " ")).collect();
    assert_eq!(read(&blank)?, Options::default());
    assert!(read(&[("GGML_LLAMA_SOURCE_DIR", "/src")])?.no_fetch, "a given tree forbids fetching");
    assert!(read(&[("DOCS_RS", "1")])?.skip_native);
    let given =
        read(&[("GGML_LLAMA_CUDA_ARCHS", "80-virtual, 89-real 120a"), ("CUDA_HOME", "/a"), ("CUDA_PATH", "/b")])?;
    assert_eq!(given.cuda_archs.as_deref(), Some("80-virtual;89-real;120a"));
    assert_eq!(given.cuda_path.as_deref(), Some("/b"));
    let defines = read(&[("GGML_LLAMA_CMAKE_DEFINES", "-DA=1;B:STRING=x\\;y; C= ;")])?.cmake_defines;
    let pairs: Vec<(&str, &str)> = defines.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    assert_eq!(pairs, [("A", "1"), ("B", "x;y"), ("C", "")]);
    Ok(())
}

#[test]
fn the_users_own_entries_come_last() -> Result {
    let plan =
        cross(LINUX, &["cuda"], &[("GGML_LLAMA_CMAKE_DEFINES", "GGML_CUDA_NO_VMM=ON;GGML_LTO=ON;GGML_LTO=OFF;NEW=1")])?;
    assert_eq!(value(&plan, "GGML_LTO"), Some("OFF"));
    assert_eq!(value(&plan, "NEW"), Some("1"));
    assert!(!links(&plan).contains(&"cuda"), "without the memory pool nothing calls the driver directly");
    assert_ne!(plan.render(), cross(LINUX, &["cuda"], &[])?.render(), "another plan is another cache key");
    Ok(())
}

// ---------------------------------------------------------------------------------------- against the rest of the world

#[test]
fn every_row_is_a_cargo_feature() -> Result {
    let manifest = fs::read_to_string(repository().join("Cargo.toml")).map_err(|e| e.to_string())?;
    let features = manifest.split("[features]").nth(1).and_then(|rest| rest.split("\n[").next()).unwrap_or_default();
    for backend in BACKENDS {
        assert!(
            features.lines().any(|line| line.starts_with(&format!("{} = ", backend.feature))),
            "{}",
            backend.feature
        );
        for text in [backend.title, backend.doc, backend.platforms, backend.needs] {
            assert!(!text.is_empty() && !text.contains('|') && !text.contains('\n'), "{}: `{text}`", backend.feature);
        }
    }
    Ok(())
}

/// Upstream's tree: the variable, or the carrier in cargo's registry folder, or none.
fn upstream() -> Option<PathBuf> {
    if let Some(dir) = env::var_os("GGML_LLAMA_SOURCE_DIR") {
        return Some(PathBuf::from(dir));
    }
    let vendored = repository().join("vendor/llama.cpp");
    if vendored.join("ggml/CMakeLists.txt").is_file() {
        return Some(vendored);
    }
    let lock = fs::read_to_string(repository().join("vendor/Cargo.lock")).ok()?;
    let carrier = lock.split("[[package]]").find(|entry| entry.contains("name = \"llama-cpp-sys-2\""))?;
    let version = carrier.lines().find_map(|line| line.strip_prefix("version = "))?.trim_matches('"');
    let home = env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| env::var_os("HOME").map(|home| PathBuf::from(home).join(".cargo")))?;
    let registries = fs::read_dir(home.join("registry/src")).ok()?.flatten();
    registries
        .map(|registry| registry.path().join(format!("llama-cpp-sys-2-{version}/llama.cpp")))
        .find(|dir| dir.join("ggml/CMakeLists.txt").is_file())
}

/// All of a tree's CMake code.
fn cmake_code(dir: &Path) -> String {
    let mut text = String::new();
    let mut pending = vec![dir.to_path_buf()];
    while let Some(dir) = pending.pop() {
        for path in fs::read_dir(&dir).into_iter().flatten().flatten().map(|entry| entry.path()) {
            if path.is_dir() {
                pending.push(path);
            } else if path.extension().is_some_and(|ext| ext == "cmake") || path.ends_with("CMakeLists.txt") {
                text.push_str(&fs::read_to_string(&path).unwrap_or_default());
            }
        }
    }
    text
}

fn words(code: &str) -> BTreeSet<&str> {
    code.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).collect()
}

/// A misspelt or a removed option would do nothing, silently.
#[test]
fn every_option_of_a_plan_exists_upstream() -> Result {
    let Some(dir) = upstream() else {
        println!("skipped: no upstream tree (GGML_LLAMA_SOURCE_DIR, vendor/llama.cpp or the fetched carrier)");
        return Ok(());
    };
    let code = cmake_code(&dir);
    let known = words(&code);
    // CMake's own, the NDK's, and our wrapper's.
    let foreign = |name: &str| ["CMAKE_", "ANDROID_", "GL_"].iter().any(|prefix| name.starts_with(prefix));
    for (what, plan) in grid()? {
        for (name, _) in plan.cmake.iter().filter(|(name, _)| !foreign(name)) {
            assert!(known.contains(name.as_str()), "{what}: {name} is in no CMake file of {}", dir.display());
        }
    }
    Ok(())
}

/// An option that a new upstream version adds must be judged: pin it, or say here why not.
#[test]
fn every_upstream_option_is_pinned() -> Result {
    let Some(dir) = upstream() else {
        println!("skipped: no upstream tree");
        return Ok(());
    };
    let mut given: BTreeSet<String> = BTreeSet::new();
    for (_, plan) in grid()? {
        given.extend(plan.cmake.into_iter().map(|(name, _)| name));
    }
    let exempt = [
        // Parts of backends that are off.
        "GGML_ET_",
        "GGML_MUSA_",
        "GGML_SYCL_",
        "GGML_WEBGPU_",
        "GGML_HEXAGON_",
        "GGML_OPENVINO_",
        "ZENDNN_ROOT",
        // Of KleidiAI, which is off.
        "KLEIDIAI_",
        // Of Emscripten's HTML page; of the Metal library as a file; a host toolchain, which only the user knows.
        "GGML_WASM_",
        "LLAMA_WASM_",
        "LLAMA_BUILD_HTML",
        "GGML_METAL_TARGET_OS",
        "GGML_VULKAN_SHADERS_GEN_TOOLCHAIN",
        // Of `common` and the tools, which are not built; how upstream words its own version.
        "LLAMA_SUBPROCESS",
        "LLAMA_BUILD_IS_DEV",
    ];
    let mut missing = Vec::new();
    let mut files = vec!["CMakeLists.txt".to_owned(), "src/CMakeLists.txt".to_owned()];
    files.extend(["ggml", "ggml/src", "ggml/src/ggml-cpu"].map(|dir| format!("{dir}/CMakeLists.txt")));
    let archives = BACKENDS.iter().flat_map(|backend| backend.archives);
    files.extend(archives.map(|archive| format!("ggml/src/{archive}/CMakeLists.txt")));
    for file in files {
        let code = fs::read_to_string(dir.join(&file)).map_err(|e| format!("{file}: {e}"))?;
        for line in code.lines().map(str::trim_start).filter(|line| !line.contains("CACHE INTERNAL")) {
            let rest = match line.strip_prefix("option(") {
                Some(rest) => rest,
                None if line.contains(" CACHE ") => match line.strip_prefix("set") {
                    Some(rest) => rest.trim_start().trim_start_matches('('),
                    None => continue,
                },
                None => continue,
            };
            let name = rest.split_whitespace().next().unwrap_or_default();
            let installs = name.ends_with("_INSTALL_DIR");
            if !given.contains(name) && !installs && !exempt.iter().any(|prefix| name.starts_with(prefix)) {
                missing.push(format!("{file}: {name}"));
            }
        }
    }
    assert!(missing.is_empty(), "neither pinned nor exempt:\n{}", missing.join("\n"));
    Ok(())
}
