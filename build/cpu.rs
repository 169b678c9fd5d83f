//! Which instruction sets the CPU backend is compiled for, each named to CMake; never `-march=native`.
//!
//! Upstream's defaults depend on whether it thinks the build is native: with `GGML_NATIVE=OFF` on a native build, AVX2 and
//! friends are silently on. So every option of the table is given, ON or OFF, whatever the policy.

use super::target::{Arch, Target};

/// What `GGML_LLAMA_CPU` asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CpuPolicy {
    /// What the machine that builds has; the default when it is also the target.
    Native,
    /// Nothing beyond the baseline of the Rust target; the default for cross builds.
    Portable,
    /// The x86-64-v2 level.
    X86_64V2,
    /// The x86-64-v3 level: AVX2, FMA.
    X86_64V3,
    /// The x86-64-v4 level: AVX-512.
    X86_64V4,
    /// These sets, and what they imply.
    Sets(Vec<IsaSet>),
}

/// One row of [`ISA_SETS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IsaSet {
    /// Our name, as in `GGML_LLAMA_CPU`.
    pub name: &'static str,
    /// Where it exists.
    pub family: Family,
    /// Upstream's option; empty for Arm, where the sets are spelt in `GGML_CPU_ARM_ARCH`.
    pub cmake: &'static str,
    /// Names that run-time detection must report (those of `is_x86_feature_detected!`; `amx-*` as in [`detect`]).
    pub features: &'static [&'static str],
    /// Sets that a compiler or ggml takes for granted with this one.
    pub implies: &'static [&'static str],
    /// `native` takes it when the machine has it; the others only on demand.
    pub native: bool,
    /// Part of the baseline of the Rust target: on unless the user lists sets without it.
    pub baseline: bool,
    /// Visual C++ can build it. `cl` has no AMX, and upstream leaves its BF16 out.
    pub msvc: bool,
    /// First major version of GCC and of Clang that know the flag.
    pub since: (u32, u32),
}

/// Architecture family of an instruction set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Family {
    X86,
    Arm64,
    Riscv64,
    LoongArch64,
    S390x,
}

impl Family {
    fn of(arch: &Arch) -> Option<Family> {
        match arch {
            Arch::X86_64 | Arch::X86 => Some(Family::X86),
            Arch::Aarch64 => Some(Family::Arm64),
            Arch::Riscv64 => Some(Family::Riscv64),
            Arch::LoongArch64 => Some(Family::LoongArch64),
            Arch::S390x => Some(Family::S390x),
            _ => None,
        }
    }
}

const X86: IsaSet = IsaSet {
    name: "",
    family: Family::X86,
    cmake: "",
    features: &[],
    implies: &[],
    native: true,
    baseline: false,
    msvc: true,
    since: (5, 4),
};
const ARM: IsaSet = IsaSet { family: Family::Arm64, msvc: false, since: (8, 6), ..X86 };
const OTHER: IsaSet = IsaSet { family: Family::Riscv64, native: false, msvc: false, since: (13, 17), ..X86 };

/// Every instruction set that upstream has an option for. A new one is a new row.
pub const ISA_SETS: &[IsaSet] = &[
    IsaSet {
        name: "sse42",
        cmake: "GGML_SSE42",
        // What compilers turn on with -msse4.2, popcnt included.
        features: &["sse3", "ssse3", "sse4.1", "sse4.2", "popcnt"],
        ..X86
    },
    IsaSet { name: "avx", cmake: "GGML_AVX", features: &["avx"], implies: &["sse42"], ..X86 },
    IsaSet { name: "f16c", cmake: "GGML_F16C", features: &["f16c"], implies: &["avx"], ..X86 },
    IsaSet { name: "fma", cmake: "GGML_FMA", features: &["fma"], implies: &["avx"], ..X86 },
    IsaSet { name: "bmi2", cmake: "GGML_BMI2", features: &["bmi2"], ..X86 },
    IsaSet { name: "avx2", cmake: "GGML_AVX2", features: &["avx2"], implies: &["avx"], ..X86 },
    IsaSet {
        name: "avx_vnni",
        cmake: "GGML_AVX_VNNI",
        features: &["avxvnni"],
        implies: &["avx2"],
        since: (11, 12),
        ..X86
    },
    IsaSet {
        name: "avx512",
        cmake: "GGML_AVX512",
        features: &["avx512f", "avx512cd", "avx512vl", "avx512dq", "avx512bw"],
        // Clang's -mavx512f turns FMA and F16C on as well.
        implies: &["avx2", "fma", "f16c"],
        ..X86
    },
    IsaSet { name: "avx512_vbmi", cmake: "GGML_AVX512_VBMI", features: &["avx512vbmi"], implies: &["avx512"], ..X86 },
    IsaSet {
        name: "avx512_vnni",
        cmake: "GGML_AVX512_VNNI",
        features: &["avx512vnni"],
        implies: &["avx512"],
        since: (8, 6),
        ..X86
    },
    IsaSet {
        name: "avx512_bf16",
        cmake: "GGML_AVX512_BF16",
        features: &["avx512bf16"],
        implies: &["avx512"],
        msvc: false,
        since: (10, 9),
        ..X86
    },
    IsaSet {
        name: "amx_tile",
        cmake: "GGML_AMX_TILE",
        features: &["amx-tile"],
        implies: &["avx512"],
        msvc: false,
        since: (11, 11),
        ..X86
    },
    IsaSet {
        name: "amx_int8",
        cmake: "GGML_AMX_INT8",
        features: &["amx-int8"],
        // ggml's AMX kernels are only compiled where AVX512-VNNI is on as well.
        implies: &["amx_tile", "avx512_vnni"],
        msvc: false,
        since: (11, 11),
        ..X86
    },
    IsaSet {
        name: "amx_bf16",
        cmake: "GGML_AMX_BF16",
        features: &["amx-bf16"],
        implies: &["amx_tile"],
        msvc: false,
        since: (11, 11),
        ..X86
    },
    IsaSet { name: "dotprod", features: &["dotprod"], ..ARM },
    IsaSet { name: "fp16", features: &["fp16"], ..ARM },
    IsaSet { name: "i8mm", features: &["i8mm"], since: (10, 11), ..ARM },
    // ggml's SVE kernels are written for some vector lengths only: on demand.
    IsaSet { name: "sve", features: &["sve"], implies: &["fp16"], native: false, ..ARM },
    IsaSet { name: "sve2", features: &["sve2"], implies: &["sve"], native: false, since: (10, 11), ..ARM },
    // std cannot detect SME on stable Rust, so there is nothing to compare at run time.
    IsaSet { name: "sme", native: false, since: (14, 18), ..ARM },
    IsaSet { name: "rvv", cmake: "GGML_RVV", ..OTHER },
    IsaSet { name: "zfh", cmake: "GGML_RV_ZFH", ..OTHER },
    IsaSet { name: "zvfh", cmake: "GGML_RV_ZVFH", implies: &["rvv"], ..OTHER },
    IsaSet { name: "zicbop", cmake: "GGML_RV_ZICBOP", ..OTHER },
    IsaSet { name: "zihintpause", cmake: "GGML_RV_ZIHINTPAUSE", ..OTHER },
    IsaSet { name: "zvfbfwma", cmake: "GGML_RV_ZVFBFWMA", implies: &["rvv"], ..OTHER },
    IsaSet { name: "xtheadvector", cmake: "GGML_XTHEADVECTOR", ..OTHER },
    IsaSet { name: "lsx", cmake: "GGML_LSX", family: Family::LoongArch64, baseline: true, since: (14, 17), ..OTHER },
    IsaSet {
        name: "lasx",
        cmake: "GGML_LASX",
        family: Family::LoongArch64,
        implies: &["lsx"],
        since: (14, 17),
        ..OTHER
    },
    IsaSet { name: "vxe", cmake: "GGML_VXE", family: Family::S390x, since: (7, 6), ..OTHER },
];

const V2: &[&str] = &["sse42"];
const V3: &[&str] = &["sse42", "avx", "avx2", "bmi2", "f16c", "fma"];
const V4: &[&str] = &["sse42", "avx", "avx2", "bmi2", "f16c", "fma", "avx512"];

/// What `GGML_LLAMA_CPU` may say, for messages.
pub const POLICIES: &str = "native, portable, x86-64-v2, x86-64-v3, x86-64-v4, or a list of instruction sets";

impl CpuPolicy {
    /// Reads a value of `GGML_LLAMA_CPU`.
    pub fn parse(text: &str) -> Result<CpuPolicy, String> {
        match text.trim().to_ascii_lowercase().as_str() {
            "native" => return Ok(CpuPolicy::Native),
            "portable" => return Ok(CpuPolicy::Portable),
            "x86-64-v2" => return Ok(CpuPolicy::X86_64V2),
            "x86-64-v3" => return Ok(CpuPolicy::X86_64V3),
            "x86-64-v4" => return Ok(CpuPolicy::X86_64V4),
            _ => {}
        }
        let mut sets = Vec::new();
        for word in text.split([',', ';', ' ']).map(str::trim).filter(|word| !word.is_empty()) {
            let name = word.to_ascii_lowercase();
            let set = find(&name).ok_or_else(|| {
                format!("`{word}` is no known instruction set or policy; expected {POLICIES} ({})", known_names(None))
            })?;
            sets.push(*set);
        }
        if sets.is_empty() {
            return Err(format!("it names nothing; expected {POLICIES} ({})", known_names(None)));
        }
        Ok(CpuPolicy::Sets(sets))
    }

    /// `native` when the machine that builds is also the target, else `portable`.
    pub fn default_for(target: &Target, host: &Target) -> CpuPolicy {
        if target.triple == host.triple { CpuPolicy::Native } else { CpuPolicy::Portable }
    }
}

fn find(name: &str) -> Option<&'static IsaSet> {
    ISA_SETS.iter().find(|set| set.name == name)
}

fn known_names(family: Option<Family>) -> String {
    let names: Vec<&str> =
        ISA_SETS.iter().filter(|set| family.is_none_or(|f| set.family == f)).map(|set| set.name).collect();
    names.join(", ")
}

/// The CPU of the machine that runs the build script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostCpu {
    /// Its architecture, as the build script was compiled for.
    pub arch: Arch,
    /// What it has, in the names of the table's `features`.
    pub features: Vec<String>,
}

/// The chosen instruction sets, in the order of the table.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CpuSelection {
    /// Names of the sets beyond the target's baseline.
    pub sets: Vec<&'static str>,
    /// CMake options: each set of the table ON or OFF, `GGML_NATIVE=OFF`, `GGML_CPU_ARM_ARCH`.
    pub defines: Vec<(String, String)>,
    /// The `-march` value for Arm, where sets are chosen.
    pub arm_arch: Option<String>,
}

/// Turns a policy into explicit options for `target`. `cpu` is only looked at by `native`.
pub fn resolve(policy: &CpuPolicy, target: &Target, cpu: &HostCpu) -> Result<CpuSelection, String> {
    let family = Family::of(&target.arch);
    let wanted: Vec<&'static str> = match policy {
        CpuPolicy::Native => native_sets(target, family, cpu)?,
        CpuPolicy::Portable => baseline_sets(family),
        CpuPolicy::X86_64V2 => level("x86-64-v2", V2, target)?,
        CpuPolicy::X86_64V3 => level("x86-64-v3", V3, target)?,
        CpuPolicy::X86_64V4 => level("x86-64-v4", V4, target)?,
        CpuPolicy::Sets(sets) => {
            let mut names = Vec::new();
            for set in sets {
                if Some(set.family) != family {
                    return Err(format!(
                        "the instruction set `{}` does not exist on {}; sets of this target: {}",
                        set.name,
                        target.triple,
                        family.map_or("none".to_owned(), |family| known_names(Some(family)))
                    ));
                }
                names.extend(closure(set.name, target));
            }
            names
        }
    };
    if target.is_msvc()
        && target.is_x86()
        && let Some(set) = wanted.iter().filter_map(|name| find(name)).find(|set| !set.msvc)
    {
        return Err(format!("the instruction set `{}` cannot be built with Visual C++ ({})", set.name, target.triple));
    }
    // In the table's order, each once.
    let sets: Vec<&'static str> = ISA_SETS.iter().map(|set| set.name).filter(|name| wanted.contains(name)).collect();
    let arm_arch = (family == Some(Family::Arm64)).then(|| arm_arch(&sets)).flatten();
    let mut defines = vec![
        ("GGML_NATIVE".to_owned(), "OFF".to_owned()),
        ("GGML_CPU_ARM_ARCH".to_owned(), arm_arch.clone().unwrap_or_default()),
        ("GGML_CPU_POWERPC_CPUTYPE".to_owned(), String::new()),
    ];
    for set in ISA_SETS.iter().filter(|set| !set.cmake.is_empty()) {
        defines.push((set.cmake.to_owned(), on_off(sets.contains(&set.name))));
    }
    Ok(CpuSelection { sets, defines, arm_arch })
}

fn on_off(on: bool) -> String {
    if on { "ON".to_owned() } else { "OFF".to_owned() }
}

fn baseline_sets(family: Option<Family>) -> Vec<&'static str> {
    ISA_SETS.iter().filter(|set| set.baseline && Some(set.family) == family).map(|set| set.name).collect()
}

fn level(name: &str, sets: &[&'static str], target: &Target) -> Result<Vec<&'static str>, String> {
    if target.arch != Arch::X86_64 {
        return Err(format!("`{name}` is a level of x86-64, but the target is {}", target.triple));
    }
    Ok(sets.to_vec())
}

/// Sets that the machine has whole: a set counts only with all that it implies.
fn native_sets(target: &Target, family: Option<Family>, cpu: &HostCpu) -> Result<Vec<&'static str>, String> {
    if cpu.arch != target.arch {
        return Err(format!(
            "`native` means the machine that builds, which is {:?}, but the target is {}; expected portable or a list \
             of instruction sets",
            cpu.arch, target.triple
        ));
    }
    let has = |name: &str| {
        find(name).is_some_and(|set| set.features.iter().all(|feature| cpu.features.iter().any(|have| have == feature)))
    };
    let can = |name: &str| !target.is_msvc() || find(name).is_some_and(|set| set.msvc || set.family != Family::X86);
    let mut names = baseline_sets(family);
    for set in ISA_SETS.iter().filter(|set| Some(set.family) == family && set.native) {
        if closure(set.name, target).iter().all(|name| has(name) && can(name)) {
            names.push(set.name);
        }
    }
    Ok(names)
}

/// A set with everything that it implies. Visual C++'s /arch:AVX2 takes FMA and F16C along.
fn closure(name: &'static str, target: &Target) -> Vec<&'static str> {
    let mut done: Vec<&'static str> = Vec::new();
    let mut pending = vec![name];
    while let Some(name) = pending.pop() {
        if done.contains(&name) {
            continue;
        }
        done.push(name);
        pending.extend(find(name).map_or(&[] as &[&str], |set| set.implies));
        if name == "avx2" && target.is_msvc() {
            pending.extend(["fma", "f16c"]);
        }
    }
    done
}

/// The lowest Armv8 revision that may carry the sets, then each by name. Nothing chosen: the compiler's own default,
/// which for Apple's desktops already includes what every one of them has.
fn arm_arch(sets: &[&'static str]) -> Option<String> {
    let base = match sets {
        [] => return None,
        _ if sets.contains(&"sme") => "armv9.2-a",
        _ if sets.contains(&"sve2") => "armv8.5-a",
        _ => "armv8.2-a",
    };
    Some(sets.iter().fold(base.to_owned(), |arch, set| arch + "+" + set))
}

/// What the library must find on the machine at first use, per compiled-in set.
pub fn runtime_check_names(selection: &CpuSelection) -> Vec<(&'static str, &'static [&'static str])> {
    ISA_SETS
        .iter()
        .filter(|set| selection.sets.contains(&set.name) && !set.features.is_empty())
        .map(|set| (set.name, set.features))
        .collect()
}

/// Chosen sets that a compiler of this major version has no flag for. Visual C++ is not asked.
pub fn beyond_compiler(selection: &CpuSelection, clang: bool, major: u32) -> Vec<&'static str> {
    ISA_SETS
        .iter()
        .filter(|set| selection.sets.contains(&set.name))
        .filter(|set| major < if clang { set.since.1 } else { set.since.0 })
        .map(|set| set.name)
        .collect()
}

/// Looks at the CPU that runs this. The only function here that is not pure.
#[cfg(any(target_arch = "x86_64", target_arch = "x86"))]
pub fn detect() -> HostCpu {
    let mut features = Vec::new();
    macro_rules! ask {
        ($($name:tt)*) => { $(if std::arch::is_x86_feature_detected!($name) { features.push($name.to_owned()); })* };
    }
    ask!("sse3" "ssse3" "sse4.1" "sse4.2" "popcnt" "avx" "f16c" "fma" "bmi2" "avx2" "avxvnni");
    ask!("avx512f" "avx512cd" "avx512vl" "avx512dq" "avx512bw" "avx512vbmi" "avx512vnni" "avx512bf16");
    features.extend(detect_amx());
    let arch = if cfg!(target_arch = "x86_64") { Arch::X86_64 } else { Arch::X86 };
    HostCpu { arch, features }
}

/// AMX, which std's macro only knows on nightly: the CPU must have it and the system must save its registers.
///
/// On Linux a process must also ask the kernel before its first tile instruction; ggml does that itself
/// (`ggml_amx_init` in `ggml-cpu/amx/amx.cpp`, with `arch_prctl(ARCH_REQ_XCOMP_PERM)`), and leaves AMX unused when refused.
#[cfg(target_arch = "x86_64")]
fn detect_amx() -> Vec<String> {
    use std::arch::x86_64::{__cpuid, __cpuid_count, _xgetbv};

    /// Only to be called where the system has turned XSAVE on.
    #[target_feature(enable = "xsave")]
    fn enabled_state() -> u64 {
        // SAFETY: register 0 exists wherever OSXSAVE is set, which the caller has checked.
        unsafe { _xgetbv(0) }
    }

    const OSXSAVE: u32 = 1 << 27;
    #[allow(unused_unsafe)] // `__cpuid` became a safe function in newer toolchains.
    // SAFETY: every x86-64 CPU has CPUID.
    let (highest, leaf1) = unsafe { (__cpuid(0).eax, __cpuid(1)) };
    if highest < 7 || leaf1.ecx & OSXSAVE == 0 {
        return Vec::new();
    }
    #[allow(unused_unsafe)]
    // SAFETY: leaf 7 exists, as checked above.
    let leaf7 = unsafe { __cpuid_count(7, 0) };
    // SAFETY: OSXSAVE says that XSAVE, and with it XGETBV, is there and enabled.
    let xcr0 = unsafe { enabled_state() };
    amx_features(leaf7.edx, xcr0).into_iter().map(str::to_owned).collect()
}

/// AMX features from CPUID leaf 7 (EDX), if XCR0 says that the system saves both kinds of tile state.
pub fn amx_features(leaf7_edx: u32, xcr0: u64) -> Vec<&'static str> {
    const TILE_STATE: u64 = (1 << 17) | (1 << 18);
    if xcr0 & TILE_STATE != TILE_STATE {
        return Vec::new();
    }
    let bits = [("amx-bf16", 22), ("amx-tile", 24), ("amx-int8", 25)];
    bits.iter().filter(|(_, bit)| leaf7_edx & (1 << bit) != 0).map(|(name, _)| *name).collect()
}

#[cfg(target_arch = "x86")]
fn detect_amx() -> Vec<String> {
    Vec::new()
}

/// Looks at the CPU that runs this. The only function here that is not pure.
#[cfg(target_arch = "aarch64")]
pub fn detect() -> HostCpu {
    let mut features = Vec::new();
    macro_rules! ask {
        ($($name:tt)*) => {
            $(if std::arch::is_aarch64_feature_detected!($name) { features.push($name.to_owned()); })*
        };
    }
    ask!("dotprod" "fp16" "i8mm" "sve" "sve2");
    HostCpu { arch: Arch::Aarch64, features }
}

/// Architectures without detection: `native` then means the baseline.
#[cfg(not(any(target_arch = "x86_64", target_arch = "x86", target_arch = "aarch64")))]
pub fn detect() -> HostCpu {
    let arch = match std::env::consts::ARCH {
        "riscv64" => Arch::Riscv64,
        "powerpc64" => Arch::PowerPc64,
        "loongarch64" => Arch::LoongArch64,
        "s390x" => Arch::S390x,
        "arm" => Arch::Arm,
        other => Arch::Other(other.to_owned()),
    };
    HostCpu { arch, features: Vec::new() }
}
