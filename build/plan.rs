// long file: half of it is the table of pinned options, which is best read beside the rules that change it.
//! Options, features and target in; a [`BuildPlan`] out. Pure: the same input gives the same plan on every machine.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::{self, Write};

use super::backends::{self, BACKENDS, Backend, Tool};
use super::cpu::{self, CpuPolicy, CpuSelection, HostCpu};
use super::options::{self, BlasVendor, CxxStdlib, Options};
use super::target::{Arch, Env, Os, Target};

/// Something that the linker is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Link {
    /// A static library of the system or of a toolkit.
    Static(String),
    /// A shared library, or whatever `-l` finds.
    Dylib(String),
    /// A framework of Apple's.
    Framework(String),
    /// A folder to search.
    Search(String),
    /// A raw argument.
    Arg(String),
}

impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Link::Static(name) => write!(f, "static {name}"),
            Link::Dylib(name) => write!(f, "dylib {name}"),
            Link::Framework(name) => write!(f, "framework {name}"),
            Link::Search(dir) => write!(f, "search {dir}"),
            Link::Arg(arg) => write!(f, "arg {arg}"),
        }
    }
}

/// All that the build has to do.
#[derive(Debug, Clone, Default)]
pub struct BuildPlan {
    /// CMake cache entries, sorted by name.
    pub cmake: Vec<(String, String)>,
    /// The CMake generator's toolset, where the usual one cannot build this target.
    pub toolset: Option<&'static str>,
    /// Our archives, users before what they use.
    pub archives: Vec<String>,
    /// What to link after them, in this order.
    pub link: Vec<Link>,
    /// Conditions for the crate's sources.
    pub cfgs: Vec<String>,
    /// Programs that must be there.
    pub tools: Vec<&'static Tool>,
    /// Instruction sets.
    pub cpu: CpuSelection,
    /// Bindings only: nothing to build and nothing to link.
    pub skip_native: bool,
}

impl BuildPlan {
    /// Stable text, for golden files and for the cache key.
    pub fn render(&self) -> String {
        let mut text = String::new();
        let mut line = |kind: &str, rest: &str| {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{kind} {rest}");
        };
        if self.skip_native {
            line("skip", "native");
        }
        line("cpu", &if self.cpu.sets.is_empty() { "baseline".to_owned() } else { self.cpu.sets.join(" ") });
        for (name, value) in &self.cmake {
            line("cmake", &format!("{name}={value}"));
        }
        if let Some(toolset) = self.toolset {
            line("toolset", toolset);
        }
        for archive in &self.archives {
            line("archive", archive);
        }
        for link in &self.link {
            line("link", &link.to_string());
        }
        for cfg in &self.cfgs {
            line("cfg", cfg);
        }
        for tool in &self.tools {
            line("tool", tool.program);
        }
        text
    }
}

/// Why there is no plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlanError {
    /// The target as a whole.
    UnsupportedTarget {
        /// Its triple.
        target: String,
        /// What is missing there.
        reason: &'static str,
    },
    /// A feature that does not build for the target.
    UnsupportedFeature {
        /// The cargo feature.
        feature: &'static str,
        /// The target's triple.
        target: String,
        /// Where it builds.
        platforms: &'static str,
    },
    /// Two features that cannot be in one program.
    Conflict {
        /// One.
        feature: &'static str,
        /// The other.
        other: &'static str,
    },
    /// A variable whose value does not fit the target.
    Variable {
        /// Its name.
        name: &'static str,
        /// What is wrong and what was expected.
        reason: String,
    },
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PlanError::UnsupportedTarget { target, reason } => {
                write!(
                    f,
                    "the native code cannot be built for {target}: {reason} ({}=1 builds the Rust side alone)",
                    options::SKIP_NATIVE
                )
            }
            PlanError::UnsupportedFeature { feature, target, platforms } => write!(
                f,
                "the feature `{feature}` does not build for {target}; expected one of: {platforms}. Turn the feature off \
                 for this target ({}=1 checks the Rust side with all features)",
                options::SKIP_NATIVE
            ),
            PlanError::Conflict { feature, other } => write!(
                f,
                "the features `{feature}` and `{other}` define the same symbols and cannot be in one program; expected at \
                 most one of them ({}=1 checks the Rust side with all features)",
                options::SKIP_NATIVE
            ),
            PlanError::Variable { name, reason } => write!(f, "{name}: {reason}"),
        }
    }
}

impl Error for PlanError {}

/// CMake itself.
const CMAKE: Tool = Tool {
    program: "cmake",
    why: "it drives the build of llama.cpp (3.14 or later; more for some backends)",
    install: &[
        ("Debian, Ubuntu", "apt-get install cmake"),
        ("Fedora", "dnf install cmake"),
        ("Arch", "pacman -S cmake"),
        ("macOS", "brew install cmake"),
        ("Windows", "winget install Kitware.CMake"),
        ("any, by pip", "pip install cmake"),
    ],
    variable: "CMAKE",
    when: |_, _, _| true,
};

/// Options that hold for every plan. Upstream's defaults for them depend on the machine, on the generator, on whether it is
/// the top project, or on what happens to be installed; or a user could not tell why they changed.
const PINNED: &[(&str, &str)] = &[
    ("BUILD_SHARED_LIBS", "OFF"),
    ("CMAKE_BUILD_TYPE", "Release"),
    ("CMAKE_POSITION_INDEPENDENT_CODE", "ON"),
    ("GGML_ALL_WARNINGS", "OFF"),
    ("GGML_ALL_WARNINGS_3RD_PARTY", "OFF"),
    ("GGML_BACKEND_DIR", ""),
    ("GGML_BACKEND_DL", "OFF"),
    ("GGML_BUILD_EXAMPLES", "OFF"),
    ("GGML_BUILD_TESTS", "OFF"),
    ("GGML_CANN", "OFF"),
    // The compiler cache is set by `native.rs`, for every language at once.
    ("GGML_CCACHE", "OFF"),
    ("GGML_CPU", "ON"),
    ("GGML_CPU_ALL_VARIANTS", "OFF"),
    ("GGML_CPU_HBM", "OFF"),
    // Fetched from the network in the middle of a build.
    ("GGML_CPU_KLEIDIAI", "OFF"),
    ("GGML_CPU_REPACK", "ON"),
    ("GGML_CPU_RISCV64_SPACEMIT", "OFF"),
    ("GGML_ET", "OFF"),
    ("GGML_FATAL_WARNINGS", "OFF"),
    ("GGML_GPROF", "OFF"),
    ("GGML_HEXAGON", "OFF"),
    ("GGML_LTO", "OFF"),
    ("GGML_MUSA", "OFF"),
    ("GGML_OPENVINO", "OFF"),
    ("GGML_RV_ZBA", "OFF"),
    ("GGML_SANITIZE_ADDRESS", "OFF"),
    ("GGML_SANITIZE_THREAD", "OFF"),
    ("GGML_SANITIZE_UNDEFINED", "OFF"),
    ("GGML_SCHED_MAX_COPIES", "4"),
    ("GGML_SCHED_NO_REALLOC", "OFF"),
    ("GGML_STATIC", "OFF"),
    ("GGML_SYCL", "OFF"),
    ("GGML_VIRTGPU", "OFF"),
    ("GGML_VIRTGPU_BACKEND", "OFF"),
    ("GGML_WEBGPU", "OFF"),
    ("GGML_ZDNN", "OFF"),
    ("GGML_ZENDNN", "OFF"),
    // Git would describe whatever repository the source happens to lie in.
    ("GIT_EXE", "OFF"),
    ("LLAMA_ALL_WARNINGS", "OFF"),
    ("LLAMA_ALL_WARNINGS_3RD_PARTY", "OFF"),
    ("LLAMA_BUILD_APP", "OFF"),
    ("LLAMA_BUILD_COMMIT", "unknown"),
    ("LLAMA_BUILD_COMMON", "OFF"),
    ("LLAMA_BUILD_EXAMPLES", "OFF"),
    ("LLAMA_BUILD_MTMD", "OFF"),
    ("LLAMA_BUILD_NUMBER", "0"),
    ("LLAMA_BUILD_SERVER", "OFF"),
    ("LLAMA_BUILD_TESTS", "OFF"),
    ("LLAMA_BUILD_TOOLS", "OFF"),
    ("LLAMA_BUILD_UI", "OFF"),
    ("LLAMA_FATAL_WARNINGS", "OFF"),
    ("LLAMA_LLGUIDANCE", "OFF"),
    ("LLAMA_OPENSSL", "OFF"),
    ("LLAMA_SANITIZE_ADDRESS", "OFF"),
    ("LLAMA_SANITIZE_THREAD", "OFF"),
    ("LLAMA_SANITIZE_UNDEFINED", "OFF"),
    ("LLAMA_TESTS_INSTALL", "OFF"),
    ("LLAMA_TOOLS_INSTALL", "OFF"),
    ("LLAMA_USE_PREBUILT_UI", "OFF"),
    ("LLAMA_USE_SYSTEM_GGML", "OFF"),
];

/// Plans the build. `features` are cargo's names; those without a row in [`BACKENDS`] are not ours to judge. `host` is the
/// machine that builds: it decides the default CPU policy, and which of the tools it needs; nothing about the result.
pub fn plan(
    options: &Options,
    features: &[&str],
    target: &Target,
    host: &Target,
    cpu: &HostCpu,
) -> Result<BuildPlan, PlanError> {
    if options.skip_native {
        return Ok(BuildPlan { skip_native: true, ..BuildPlan::default() });
    }
    check_target(target)?;
    let chosen = chosen_backends(features, target)?;
    let policy = options.cpu.clone().unwrap_or_else(|| CpuPolicy::default_for(target, host));
    let cpu =
        cpu::resolve(&policy, target, cpu).map_err(|reason| PlanError::Variable { name: options::CPU, reason })?;

    let mut tools = vec![&CMAKE];
    let mut link = Vec::new();
    let mut archives: Vec<String> = ["gl_shim", "llama", "ggml"].map(str::to_owned).to_vec();
    for backend in &chosen {
        archives.extend(backend.archives.iter().map(|name| (*name).to_owned()));
        link.extend((backend.link)(target, options));
        tools.extend(backend.preflight.iter().filter(|tool| (tool.when)(target, host, options)));
    }
    archives.extend(["ggml-cpu", "ggml-base"].map(str::to_owned));
    link.extend(cxx_runtime(target, options)?);
    link.extend(system_libraries(target));
    if let Some(sanitizer) = options.sanitize {
        if target.is_msvc() {
            return Err(PlanError::Variable {
                name: options::SANITIZE,
                reason: format!("`{}` is not available with Visual C++ ({target}); expected none", sanitizer.name()),
            });
        }
        link.push(Link::Arg(format!("-fsanitize={}", sanitizer.name())));
    }

    Ok(BuildPlan {
        cmake: cmake_entries(options, &chosen, target, &cpu)?,
        toolset: toolset(target),
        archives,
        link: once(link),
        cfgs: Vec::new(),
        tools,
        cpu,
        skip_native: false,
    })
}

fn check_target(target: &Target) -> Result<(), PlanError> {
    let reason = match (&target.arch, &target.os) {
        (Arch::Wasm32, Os::Emscripten) => return Ok(()),
        (Arch::Wasm32, _) => "WebAssembly has a C++ library with Emscripten only; expected wasm32-unknown-emscripten",
        (_, Os::Other(name)) if name == "none" => "it has no operating system",
        _ => return Ok(()),
    };
    Err(PlanError::UnsupportedTarget { target: target.triple.clone(), reason })
}

fn chosen_backends(features: &[&str], target: &Target) -> Result<Vec<&'static Backend>, PlanError> {
    let chosen: Vec<&Backend> = BACKENDS.iter().filter(|backend| features.contains(&backend.feature)).collect();
    for backend in &chosen {
        if !(backend.supported)(target) {
            return Err(PlanError::UnsupportedFeature {
                feature: backend.feature,
                target: target.triple.clone(),
                platforms: backend.platforms,
            });
        }
        if let Some(other) = chosen.iter().find(|other| backend.conflicts.contains(&other.feature)) {
            return Err(PlanError::Conflict { feature: backend.feature, other: other.feature });
        }
    }
    Ok(chosen)
}

fn cmake_entries(
    options: &Options,
    chosen: &[&Backend],
    target: &Target,
    cpu: &CpuSelection,
) -> Result<Vec<(String, String)>, PlanError> {
    let mut entries: BTreeMap<String, String> = BTreeMap::new();
    let mut set = |name: &str, value: &str| entries.insert(name.to_owned(), value.to_owned());
    for (name, value) in PINNED {
        set(name, value);
    }
    set("GGML_ACCELERATE", if target.is_apple() { "ON" } else { "OFF" });
    // Its kernels do not compile for 32 bit Arm.
    set("GGML_LLAMAFILE", if target.arch == Arch::Arm { "OFF" } else { "ON" });
    for backend in BACKENDS {
        set(backend.option, "OFF");
    }
    for backend in chosen {
        set(backend.option, "ON");
        for (name, value) in backend.cmake {
            set(name, value);
        }
        for (name, value) in (backend.defines)(target, options) {
            set(&name, &value);
        }
    }
    for (name, value) in &cpu.defines {
        set(name, value);
    }
    for (name, value) in platform_entries(options, chosen, target)? {
        set(name, &value);
    }
    if let Some(sanitizer) = options.sanitize {
        set("GL_SANITIZE", sanitizer.name());
    }
    // The user's own, last.
    for (name, value) in &options.cmake_defines {
        set(name, value);
    }
    Ok(entries.into_iter().collect())
}

/// What CMake must know about the system. Compilers, and system names of ordinary cross builds, come from the cmake crate.
fn platform_entries(
    options: &Options,
    chosen: &[&Backend],
    target: &Target,
) -> Result<Vec<(&'static str, String)>, PlanError> {
    if target.is_msvc() {
        // As the Rust program has it, and never the debug variant: two C run times in one program do not mix.
        let library = if options.crt_static { "MultiThreaded" } else { "MultiThreadedDLL" };
        return Ok(vec![("CMAKE_MSVC_RUNTIME_LIBRARY", library.to_owned())]);
    }
    if target.is_apple() {
        return Ok(apple_entries(options, chosen, target));
    }
    if target.os == Os::Android {
        return android_entries(options, target);
    }
    Ok(Vec::new())
}

fn apple_entries(options: &Options, chosen: &[&Backend], target: &Target) -> Vec<(&'static str, String)> {
    let arch = if target.arch == Arch::X86_64 { "x86_64" } else { "arm64" };
    // Accelerate's new BLAS interface, which upstream asks for, came with these versions.
    let blas = chosen.iter().any(|backend| backend.feature == "blas")
        && backends::blas_vendor(target, options) == BlasVendor::Accelerate;
    let simulator = target.is_apple_simulator();
    let [mac, ios, tv, vision] = &options.apple_deployment;
    let (system, sysroot, oldest, wanted) = match target.os {
        Os::Ios if target.env == Env::MacAbi => (None, "macosx", "", &None),
        Os::Ios => (Some("iOS"), if simulator { "iphonesimulator" } else { "iphoneos" }, "16.4", ios),
        Os::TvOs => (Some("tvOS"), if simulator { "appletvsimulator" } else { "appletvos" }, "16.4", tv),
        Os::VisionOs => (Some("visionOS"), if simulator { "xrsimulator" } else { "xros" }, "1.0", vision),
        _ => (None, "", if blas { "13.3" } else { "11.0" }, mac),
    };
    let mut entries = vec![("CMAKE_OSX_ARCHITECTURES", arch.to_owned())];
    if let Some(system) = system {
        entries.push(("CMAKE_SYSTEM_NAME", system.to_owned()));
        entries.push(("CMAKE_SYSTEM_PROCESSOR", arch.to_owned()));
    }
    if !sysroot.is_empty() {
        entries.push(("CMAKE_OSX_SYSROOT", sysroot.to_owned()));
    }
    if !oldest.is_empty() {
        entries.push(("CMAKE_OSX_DEPLOYMENT_TARGET", wanted.clone().unwrap_or_else(|| oldest.to_owned())));
    }
    entries
}

fn android_entries(options: &Options, target: &Target) -> Result<Vec<(&'static str, String)>, PlanError> {
    let abi = match target.arch {
        Arch::Aarch64 => "arm64-v8a",
        Arch::Arm => "armeabi-v7a",
        Arch::X86_64 => "x86_64",
        Arch::X86 => "x86",
        _ => {
            let reason = "Android has no such architecture; expected aarch64, armv7, x86_64 or i686";
            return Err(PlanError::UnsupportedTarget { target: target.triple.clone(), reason });
        }
    };
    let stl = match options.cxx_stdlib {
        CxxStdlib::LibCxx => "c++_shared",
        CxxStdlib::None => "none",
        _ => "c++_static",
    };
    let mut entries = vec![
        ("ANDROID_ABI", abi.to_owned()),
        // posix_madvise and what else upstream calls; its own recipe for Android uses this level too.
        ("ANDROID_PLATFORM", "android-28".to_owned()),
        ("ANDROID_STL", stl.to_owned()),
    ];
    if options.toolchain_file || options.cmake_define("CMAKE_TOOLCHAIN_FILE").is_some() {
        return Ok(entries);
    }
    let ndk = options.android_ndk.as_deref().ok_or_else(|| PlanError::Variable {
        name: "ANDROID_NDK",
        reason: format!(
            "it is not set, and neither is ANDROID_NDK_HOME; expected the folder of an Android NDK (25 or later) to build \
             for {target}"
        ),
    })?;
    let ndk = ndk.replace('\\', "/");
    entries
        .push(("CMAKE_TOOLCHAIN_FILE", format!("{}/build/cmake/android.toolchain.cmake", ndk.trim_end_matches('/'))));
    Ok(entries)
}

/// `cl` cannot be told instruction sets of Arm, and upstream refuses it without GGML_NATIVE: Clang with cl's conventions,
/// which Visual Studio's installer offers, takes its place.
fn toolset(target: &Target) -> Option<&'static str> {
    (target.is_msvc() && target.arch == Arch::Aarch64).then_some("ClangCL")
}

/// The C++ run time, by target unless the user says otherwise.
fn cxx_runtime(target: &Target, options: &Options) -> Result<Vec<Link>, PlanError> {
    let android = target.os == Os::Android;
    let chosen = match options.cxx_stdlib {
        // Visual C++'s libraries are named in the objects; Emscripten's compiler driver adds its own.
        _ if target.is_msvc() || target.os == Os::Emscripten => CxxStdlib::None,
        CxxStdlib::Auto if android => CxxStdlib::StaticLibCxx,
        CxxStdlib::Auto if target.is_apple() => CxxStdlib::LibCxx,
        CxxStdlib::Auto => match (&target.os, &target.env) {
            (Os::FreeBsd, _) => CxxStdlib::LibCxx,
            (Os::Other(name), _) if name == "openbsd" => CxxStdlib::LibCxx,
            (Os::Windows, Env::GnuLlvm) => CxxStdlib::LibCxx,
            // A Rust program for MinGW needs no DLL of MinGW's: neither shall this library.
            (Os::Windows, _) => CxxStdlib::StaticStdCxx,
            _ if options.crt_static => CxxStdlib::StaticStdCxx,
            _ => CxxStdlib::StdCxx,
        },
        given => given,
    };
    if android && matches!(chosen, CxxStdlib::StdCxx | CxxStdlib::StaticStdCxx) {
        return Err(PlanError::Variable {
            name: options::CXX_STDLIB,
            reason: format!("the NDK has no libstdc++ ({target}); expected auto, c++, static-c++ or none"),
        });
    }
    let dylib = |name: &str| Link::Dylib(name.to_owned());
    let fixed = |name: &str| Link::Static(name.to_owned());
    let mut link = match chosen {
        CxxStdlib::Auto | CxxStdlib::None => Vec::new(),
        CxxStdlib::StdCxx => vec![dylib("stdc++")],
        CxxStdlib::LibCxx if android => vec![dylib("c++_shared")],
        CxxStdlib::LibCxx => vec![dylib("c++")],
        CxxStdlib::StaticStdCxx => vec![fixed("stdc++")],
        CxxStdlib::StaticLibCxx if android => vec![fixed("c++_static"), fixed("c++abi")],
        CxxStdlib::StaticLibCxx => vec![fixed("c++"), fixed("c++abi")],
    };
    if target.is_windows() && chosen == CxxStdlib::StaticStdCxx {
        // std::thread of MinGW's libstdc++.
        link.push(fixed("winpthread"));
    }
    Ok(link)
}

/// Libraries of the system that ggml and llama themselves use.
fn system_libraries(target: &Target) -> Vec<Link> {
    let dylib = |name: &&str| Link::Dylib((*name).to_owned());
    match &target.os {
        Os::Linux => ["pthread", "dl", "m"].iter().map(dylib).collect(),
        // Threads are part of Android's libc.
        Os::Android => ["dl", "m"].iter().map(dylib).collect(),
        Os::FreeBsd => ["pthread", "m"].iter().map(dylib).collect(),
        // ggml-cpu reads the processor's name from the registry.
        Os::Windows => ["advapi32"].iter().map(dylib).collect(),
        Os::Emscripten => Vec::new(),
        Os::Other(_) => ["pthread", "m"].iter().map(dylib).collect(),
        _ => ["Accelerate", "Foundation"].iter().map(|name| Link::Framework((*name).to_owned())).collect(),
    }
}

/// Each entry once, at its last place: a one-pass linker wants a library after its last user. Folders stay at their first.
fn once(link: Vec<Link>) -> Vec<Link> {
    let mut kept: Vec<Link> = Vec::new();
    for entry in link {
        if let Some(at) = kept.iter().position(|have| *have == entry) {
            if matches!(entry, Link::Search(_)) {
                continue;
            }
            kept.remove(at);
        }
        kept.push(entry);
    }
    kept
}
