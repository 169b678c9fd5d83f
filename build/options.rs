//! Every environment variable that the build reads, and the parsed [`Options`].

use super::cpu::CpuPolicy;

/// One environment variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Variable {
    /// Its name.
    pub name: &'static str,
    /// What holds when it is unset.
    pub default: &'static str,
    /// What it does, in one or two sentences.
    pub doc: &'static str,
}

/// Name of a variable.
pub const SOURCE_DIR: &str = "GGML_LLAMA_SOURCE_DIR";
/// Name of a variable.
pub const NO_FETCH: &str = "GGML_LLAMA_NO_FETCH";
/// Name of a variable.
pub const SKIP_NATIVE: &str = "GGML_LLAMA_SKIP_NATIVE";
/// Name of a variable.
pub const CPU: &str = "GGML_LLAMA_CPU";
/// Name of a variable.
pub const CMAKE_DEFINES: &str = "GGML_LLAMA_CMAKE_DEFINES";
/// Name of a variable.
pub const JOBS: &str = "GGML_LLAMA_JOBS";
/// Name of a variable.
pub const CCACHE: &str = "GGML_LLAMA_CCACHE";
/// Name of a variable.
pub const CUDA_ARCHS: &str = "GGML_LLAMA_CUDA_ARCHS";
/// Name of a variable.
pub const CUDA_STATIC: &str = "GGML_LLAMA_CUDA_STATIC";
/// Name of a variable.
pub const HIP_ARCHS: &str = "GGML_LLAMA_HIP_ARCHS";
/// Name of a variable.
pub const BLAS_VENDOR: &str = "GGML_LLAMA_BLAS_VENDOR";
/// Name of a variable.
pub const OPENMP_LIB: &str = "GGML_LLAMA_OPENMP_LIB";
/// Name of a variable.
pub const CXX_STDLIB: &str = "GGML_LLAMA_CXX_STDLIB";
/// Name of a variable.
pub const SANITIZE: &str = "GGML_LLAMA_SANITIZE";

/// CUDA architectures that are built when nothing is said.
pub const DEFAULT_CUDA_ARCHS: &str = "75-virtual;80-virtual;86-real;89-real";
/// AMD architectures that are built when nothing is said.
pub const DEFAULT_HIP_ARCHS: &str = "gfx90a;gfx942;gfx1030;gfx1100";

/// Every variable, ours first, then those of others that are only read.
pub const VARIABLES: &[Variable] = &[
    Variable {
        name: SOURCE_DIR,
        default: "vendor/llama.cpp if it holds a tree, else the pinned carrier package",
        doc: "A llama.cpp tree to build. Nothing is fetched when it is set.",
    },
    Variable {
        name: NO_FETCH,
        default: "0",
        doc: "1: never let cargo fetch the carrier package; the source must already be on this machine.",
    },
    Variable {
        name: SKIP_NATIVE,
        default: "0; 1 on docs.rs",
        doc: "1: generate the bindings only, without CMake and linking. Enough for check, clippy and doc.",
    },
    Variable {
        name: CPU,
        default: "native when the target is this machine's own, else portable",
        doc: "Instruction sets of the CPU backend: native, portable, x86-64-v2, x86-64-v3, x86-64-v4, or a list such as \
              `avx2,fma,f16c`.",
    },
    Variable {
        name: CMAKE_DEFINES,
        default: "none",
        doc: "Further CMake cache entries, `A=B;C=D` (`\\;` for a semicolon in a value). They come last and override ours.",
    },
    Variable { name: JOBS, default: "cargo's own number", doc: "How many compilers run at once." },
    Variable {
        name: CCACHE,
        default: "auto",
        doc: "Compiler cache: auto (ccache or sccache when there), off, or the name or path of one.",
    },
    Variable {
        name: CUDA_ARCHS,
        default: DEFAULT_CUDA_ARCHS,
        doc: "CUDA architectures to build, such as `90` or `80-virtual;89-real`, or native, all, all-major. Build time \
              grows with each. The default runs on every GPU since Turing: RTX 3000 and 4000 at once, the others \
              after the driver has compiled the code at the first start.",
    },
    Variable {
        name: CUDA_STATIC,
        default: "0",
        doc: "1: link CUDA's run time and cuBLAS statically. The program then needs only the driver, and grows by \
              several hundred megabytes. On Windows only the run time exists as a static library.",
    },
    Variable { name: HIP_ARCHS, default: DEFAULT_HIP_ARCHS, doc: "AMD GPU architectures to build, such as `gfx1100`." },
    Variable {
        name: BLAS_VENDOR,
        default: "accelerate on Apple systems, else openblas",
        doc: "The BLAS library: openblas, blis, mkl, aocl, accelerate, flexiblas or generic.",
    },
    Variable {
        name: OPENMP_LIB,
        default: "gomp with GNU systems, omp elsewhere, none with Visual C++",
        doc: "The OpenMP run time to link: auto, gomp, omp, iomp5 or none. Say omp when Clang compiles on Linux.",
    },
    Variable {
        name: CXX_STDLIB,
        default: "auto",
        doc: "The C++ run time to link: auto, stdc++, c++, static-stdc++, static-c++ or none.",
    },
    Variable {
        name: SANITIZE,
        default: "none",
        doc: "Compile the native code with a sanitizer: address, thread or undefined.",
    },
    Variable { name: "CUDA_PATH", default: "CUDA_HOME, /usr/local/cuda", doc: "Where the CUDA toolkit is." },
    Variable { name: "CUDA_HOME", default: "none", doc: "The same, when CUDA_PATH is unset." },
    Variable { name: "VULKAN_SDK", default: "the system's own folders", doc: "Where the Vulkan SDK is." },
    Variable { name: "ROCM_PATH", default: "HIP_PATH, /opt/rocm", doc: "Where ROCm is." },
    Variable { name: "HIP_PATH", default: "none", doc: "The same, when ROCM_PATH is unset." },
    Variable {
        name: "OPENBLAS_PATH",
        default: "the system's own folders",
        doc: "Where the BLAS library is, with `include` and `lib` in it.",
    },
    Variable { name: "ANDROID_NDK", default: "ANDROID_NDK_HOME, ANDROID_NDK_ROOT", doc: "Where the Android NDK is." },
    Variable { name: "ANDROID_NDK_HOME", default: "none", doc: "The same, when ANDROID_NDK is unset." },
    Variable { name: "ANDROID_NDK_ROOT", default: "none", doc: "The same, when the two others are unset." },
    Variable { name: "MACOSX_DEPLOYMENT_TARGET", default: "11.0; 13.3 with blas", doc: "The oldest macOS to run on." },
    Variable { name: "IPHONEOS_DEPLOYMENT_TARGET", default: "16.4", doc: "The oldest iOS to run on." },
    Variable { name: "TVOS_DEPLOYMENT_TARGET", default: "16.4", doc: "The oldest tvOS to run on." },
    Variable { name: "XROS_DEPLOYMENT_TARGET", default: "1.0", doc: "The oldest visionOS to run on." },
    Variable {
        name: "PKG_CONFIG",
        default: "pkg-config",
        doc: "The pkg-config program, which finds the BLAS headers.",
    },
    Variable { name: "Python3_ROOT_DIR", default: "none", doc: "Where Python is; it embeds the OpenCL kernels." },
    Variable { name: "DOCS_RS", default: "none", doc: "Set on docs.rs; implies GGML_LLAMA_SKIP_NATIVE." },
];

/// C++ run time to link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CxxStdlib {
    /// What the target's compiler uses.
    #[default]
    Auto,
    /// GNU's, shared.
    StdCxx,
    /// LLVM's, shared.
    LibCxx,
    /// GNU's, static.
    StaticStdCxx,
    /// LLVM's, static.
    StaticLibCxx,
    /// The user links it.
    None,
}

/// A sanitizer for the native code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Sanitizer {
    Address,
    Thread,
    Undefined,
}

impl Sanitizer {
    /// As the compilers spell it.
    pub fn name(self) -> &'static str {
        match self {
            Sanitizer::Address => "address",
            Sanitizer::Thread => "thread",
            Sanitizer::Undefined => "undefined",
        }
    }
}

/// A BLAS library.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum BlasVendor {
    OpenBlas,
    Blis,
    Mkl,
    Aocl,
    Accelerate,
    FlexiBlas,
    Generic,
}

/// OpenMP run time to link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(missing_docs)]
pub enum OpenMpLib {
    #[default]
    Auto,
    Gomp,
    Omp,
    Iomp5,
    None,
}

/// The environment, read and checked.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Options {
    /// A llama.cpp tree.
    pub source_dir: Option<String>,
    /// Fetching is forbidden; a given tree implies it.
    pub no_fetch: bool,
    /// Bindings only.
    pub skip_native: bool,
    /// Instruction sets; unset means [`CpuPolicy::default_for`].
    pub cpu: Option<CpuPolicy>,
    /// Further CMake entries, in the order given.
    pub cmake_defines: Vec<(String, String)>,
    /// Compilers at once.
    pub jobs: Option<usize>,
    /// Compiler cache, as given.
    pub ccache: Option<String>,
    /// CUDA architectures, separated by `;`.
    pub cuda_archs: Option<String>,
    /// Static CUDA libraries.
    pub cuda_static: bool,
    /// AMD architectures, separated by `;`.
    pub hip_archs: Option<String>,
    /// BLAS library.
    pub blas_vendor: Option<BlasVendor>,
    /// OpenMP run time.
    pub openmp_lib: OpenMpLib,
    /// C++ run time.
    pub cxx_stdlib: CxxStdlib,
    /// Sanitizer.
    pub sanitize: Option<Sanitizer>,
    /// The CUDA toolkit.
    pub cuda_path: Option<String>,
    /// The Vulkan SDK.
    pub vulkan_sdk: Option<String>,
    /// ROCm.
    pub rocm_path: Option<String>,
    /// The BLAS library's folder.
    pub blas_path: Option<String>,
    /// The Android NDK.
    pub android_ndk: Option<String>,
    /// A CMake toolchain file is named in the environment, where the cmake crate reads it.
    pub toolchain_file: bool,
    /// Deployment targets of Apple's systems: macOS, iOS, tvOS, visionOS.
    pub apple_deployment: [Option<String>; 4],
    /// The Rust target links the C run time statically (`crt-static` in cargo's `CARGO_CFG_TARGET_FEATURE`).
    pub crt_static: bool,
}

impl Options {
    /// Reads the variables through `get`. Empty counts as unset. A message names variable, value and what is allowed.
    pub fn parse(get: &dyn Fn(&str) -> Option<String>) -> Result<Options, String> {
        let var = |name: &str| get(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty());
        let first = |names: &[&str]| names.iter().find_map(|name| var(name));
        let target_suffixed = var("TARGET").map(|triple| format!("CMAKE_TOOLCHAIN_FILE_{triple}"));
        let source_dir = var(SOURCE_DIR);
        Ok(Options {
            no_fetch: flag(NO_FETCH, var(NO_FETCH))? || source_dir.is_some(),
            source_dir,
            skip_native: flag(SKIP_NATIVE, var(SKIP_NATIVE))? || var("DOCS_RS").is_some(),
            cpu: var(CPU)
                .map(|value| CpuPolicy::parse(&value).map_err(|e| format!("{CPU} is `{value}`: {e}")))
                .transpose()?,
            cmake_defines: cmake_defines(&var(CMAKE_DEFINES).unwrap_or_default())?,
            jobs: var(JOBS)
                .map(|value| match value.parse::<usize>() {
                    Ok(number) if number > 0 => Ok(number),
                    _ => Err(bad(JOBS, &value, "a number of at least 1")),
                })
                .transpose()?,
            ccache: var(CCACHE),
            cuda_archs: var(CUDA_ARCHS).map(|value| cuda_archs(&value)).transpose()?,
            cuda_static: flag(CUDA_STATIC, var(CUDA_STATIC))?,
            hip_archs: var(HIP_ARCHS).map(|value| hip_archs(&value)).transpose()?,
            blas_vendor: choice(BLAS_VENDOR, var(BLAS_VENDOR), BLAS_VENDORS)?,
            openmp_lib: choice(OPENMP_LIB, var(OPENMP_LIB), OPENMP_LIBS)?.unwrap_or_default(),
            cxx_stdlib: choice(CXX_STDLIB, var(CXX_STDLIB), CXX_STDLIBS)?.unwrap_or_default(),
            sanitize: choice(SANITIZE, var(SANITIZE), SANITIZERS)?.flatten(),
            cuda_path: first(&["CUDA_PATH", "CUDA_HOME"]),
            vulkan_sdk: var("VULKAN_SDK"),
            rocm_path: first(&["ROCM_PATH", "HIP_PATH"]),
            blas_path: var("OPENBLAS_PATH"),
            android_ndk: first(&["ANDROID_NDK", "ANDROID_NDK_HOME", "ANDROID_NDK_ROOT"]),
            toolchain_file: var("CMAKE_TOOLCHAIN_FILE").is_some()
                || target_suffixed.is_some_and(|name| var(&name).is_some() || var(&name.replace('-', "_")).is_some()),
            apple_deployment: [
                var("MACOSX_DEPLOYMENT_TARGET"),
                var("IPHONEOS_DEPLOYMENT_TARGET"),
                var("TVOS_DEPLOYMENT_TARGET"),
                var("XROS_DEPLOYMENT_TARGET"),
            ],
            crt_static: var("CARGO_CFG_TARGET_FEATURE")
                .is_some_and(|features| features.split(',').any(|feature| feature == "crt-static")),
        })
    }

    /// A CMake entry that the user gave.
    pub fn cmake_define(&self, name: &str) -> Option<&str> {
        self.cmake_defines.iter().rev().find(|(have, _)| have == name).map(|(_, value)| value.as_str())
    }
}

const BLAS_VENDORS: &[(&str, BlasVendor)] = &[
    ("openblas", BlasVendor::OpenBlas),
    ("blis", BlasVendor::Blis),
    ("mkl", BlasVendor::Mkl),
    ("aocl", BlasVendor::Aocl),
    ("accelerate", BlasVendor::Accelerate),
    ("flexiblas", BlasVendor::FlexiBlas),
    ("generic", BlasVendor::Generic),
];
const OPENMP_LIBS: &[(&str, OpenMpLib)] = &[
    ("auto", OpenMpLib::Auto),
    ("gomp", OpenMpLib::Gomp),
    ("omp", OpenMpLib::Omp),
    ("iomp5", OpenMpLib::Iomp5),
    ("none", OpenMpLib::None),
];
const CXX_STDLIBS: &[(&str, CxxStdlib)] = &[
    ("auto", CxxStdlib::Auto),
    ("stdc++", CxxStdlib::StdCxx),
    ("c++", CxxStdlib::LibCxx),
    ("static-stdc++", CxxStdlib::StaticStdCxx),
    ("static-c++", CxxStdlib::StaticLibCxx),
    ("none", CxxStdlib::None),
];
const SANITIZERS: &[(&str, Option<Sanitizer>)] = &[
    ("none", None),
    ("address", Some(Sanitizer::Address)),
    ("thread", Some(Sanitizer::Thread)),
    ("undefined", Some(Sanitizer::Undefined)),
];

fn bad(name: &str, value: &str, expected: &str) -> String {
    format!("{name} is `{value}`; expected {expected}")
}

fn flag(name: &str, value: Option<String>) -> Result<bool, String> {
    let Some(value) = value else { return Ok(false) };
    match value.to_ascii_lowercase().as_str() {
        "1" | "on" | "true" | "yes" => Ok(true),
        "0" | "off" | "false" | "no" => Ok(false),
        _ => Err(bad(name, &value, "1, on, true, yes, 0, off, false or no")),
    }
}

fn choice<T: Copy>(name: &str, value: Option<String>, allowed: &[(&str, T)]) -> Result<Option<T>, String> {
    let Some(value) = value else { return Ok(None) };
    let lower = value.to_ascii_lowercase();
    if let Some((_, found)) = allowed.iter().find(|(word, _)| *word == lower) {
        return Ok(Some(*found));
    }
    let words: Vec<&str> = allowed.iter().map(|(word, _)| *word).collect();
    Err(bad(name, &value, &format!("one of {}", words.join(", "))))
}

fn list(value: &str) -> Vec<&str> {
    value.split([';', ',', ' ']).map(str::trim).filter(|word| !word.is_empty()).collect()
}

fn cuda_archs(value: &str) -> Result<String, String> {
    let expected = "a list such as `75-virtual;89-real`, or native, all, all-major";
    let words = list(value);
    let known = |word: &str| {
        let number = word.strip_suffix("-real").or_else(|| word.strip_suffix("-virtual")).unwrap_or(word);
        let digits = number.strip_suffix(['a', 'f']).unwrap_or(number);
        (2..=3).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit())
    };
    match words.as_slice() {
        ["native" | "all" | "all-major"] => Ok(words.join(";")),
        [_, ..] if words.iter().all(|word| known(word)) => Ok(words.join(";")),
        _ => Err(bad(CUDA_ARCHS, value, expected)),
    }
}

fn hip_archs(value: &str) -> Result<String, String> {
    let words = list(value);
    let known = |word: &&str| {
        word.strip_prefix("gfx").is_some_and(|rest| {
            !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-+:".contains(&byte))
        })
    };
    if words.is_empty() || !words.iter().all(known) {
        return Err(bad(HIP_ARCHS, value, "a list such as `gfx1030;gfx1100`"));
    }
    Ok(words.join(";"))
}

/// `A=B;C=D`, with `\;` for a semicolon inside a value.
fn cmake_defines(text: &str) -> Result<Vec<(String, String)>, String> {
    let mut defines = Vec::new();
    for entry in text.replace("\\;", "\u{1}").split(';').map(str::trim).filter(|entry| !entry.is_empty()) {
        let entry = entry.replace('\u{1}', ";");
        let entry = entry.strip_prefix("-D").unwrap_or(&entry);
        let (name, value) = entry.split_once('=').ok_or_else(|| {
            bad(CMAKE_DEFINES, text, &format!("entries NAME=VALUE separated by `;`, but `{entry}` has no `=`"))
        })?;
        // `NAME:TYPE=VALUE` is CMake's own long form.
        let name = name.split_once(':').map_or(name, |(name, _)| name).trim();
        if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte)) {
            return Err(bad(
                CMAKE_DEFINES,
                text,
                &format!("entries NAME=VALUE separated by `;`, but `{name}` is no name"),
            ));
        }
        defines.push((name.to_owned(), value.trim().to_owned()));
    }
    Ok(defines)
}
