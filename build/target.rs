//! A target triple, taken apart. Every decision of the build looks at this, never at the host's `cfg!`.

use std::fmt;

/// Instruction set architecture of a target.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Arch {
    X86_64,
    X86,
    Aarch64,
    Arm,
    Wasm32,
    Riscv64,
    PowerPc64,
    LoongArch64,
    S390x,
    Other(String),
}

/// Operating system of a target.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs, clippy::enum_variant_names)] // Their own names.
pub enum Os {
    Linux,
    Android,
    MacOs,
    Ios,
    TvOs,
    VisionOs,
    Windows,
    FreeBsd,
    Emscripten,
    Other(String),
}

/// C library or ABI of a target; for Apple, the kind of device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Env {
    /// glibc, or MinGW on Windows.
    Gnu,
    /// MinGW with LLVM's tools and libc++.
    GnuLlvm,
    /// musl libc.
    Musl,
    /// Visual C++.
    Msvc,
    /// An Apple simulator.
    Sim,
    /// Mac Catalyst.
    MacAbi,
    /// The triple names none.
    None,
    /// Any other.
    Other(String),
}

/// A parsed target triple.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The triple as given.
    pub triple: String,
    /// Architecture.
    pub arch: Arch,
    /// The vendor part; `unknown` where the triple has none.
    pub vendor: String,
    /// Operating system.
    pub os: Os,
    /// C library or ABI.
    pub env: Env,
}

impl Target {
    /// Takes a Rust target triple apart, such as `x86_64-unknown-linux-gnu` or `aarch64-linux-android`.
    pub fn parse(triple: &str) -> Result<Target, String> {
        let parts: Vec<&str> = triple.split('-').collect();
        let (arch, vendor, os, env) = match parts.as_slice() {
            [arch, os @ ("linux" | "wasip1" | "wasip2" | "none"), env] => (*arch, "unknown", *os, *env),
            [arch, vendor, os, env] => (*arch, *vendor, *os, *env),
            [arch, vendor, os] => (*arch, *vendor, *os, ""),
            [arch, os] => (*arch, "unknown", *os, ""),
            _ => {
                return Err(format!(
                    "`{triple}` is not a target triple; expected something like x86_64-unknown-linux-gnu"
                ));
            }
        };
        if [arch, vendor, os].contains(&"") {
            return Err(format!("`{triple}` is not a target triple: a part of it is empty"));
        }
        let os = parse_os(os, env);
        let arch = parse_arch(arch);
        let env = parse_env(env, &os, &arch);
        Ok(Target { triple: triple.to_owned(), arch, vendor: vendor.to_owned(), os, env })
    }

    /// Compiled with Visual C++ conventions.
    pub fn is_msvc(&self) -> bool {
        self.env == Env::Msvc
    }

    /// Any Windows.
    pub fn is_windows(&self) -> bool {
        self.os == Os::Windows
    }

    /// Any of Apple's systems.
    pub fn is_apple(&self) -> bool {
        matches!(self.os, Os::MacOs | Os::Ios | Os::TvOs | Os::VisionOs)
    }

    /// An Apple simulator rather than a device.
    pub fn is_apple_simulator(&self) -> bool {
        self.env == Env::Sim
    }

    /// Linux proper, whatever the C library; Android is not counted.
    pub fn is_linux(&self) -> bool {
        self.os == Os::Linux
    }

    /// A Unix with ELF objects and a one-pass linker by tradition.
    pub fn is_unix_like_elf(&self) -> bool {
        match &self.os {
            Os::Linux | Os::Android | Os::FreeBsd => true,
            Os::Other(name) => {
                ["netbsd", "openbsd", "dragonfly", "illumos", "solaris", "haiku"].contains(&name.as_str())
            }
            _ => false,
        }
    }

    /// 32 or 64 bit x86.
    pub fn is_x86(&self) -> bool {
        matches!(self.arch, Arch::X86_64 | Arch::X86)
    }

    /// File name of the static library `name`: `libggml.a`, or `ggml.lib` with Visual C++.
    pub fn archive_name(&self, name: &str) -> String {
        if self.is_msvc() { format!("{name}.lib") } else { format!("lib{name}.a") }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.triple)
    }
}

fn parse_arch(name: &str) -> Arch {
    match name {
        "x86_64" | "x86_64h" => Arch::X86_64,
        "i386" | "i586" | "i686" => Arch::X86,
        "aarch64" | "arm64" | "arm64e" | "arm64ec" => Arch::Aarch64,
        "wasm32" => Arch::Wasm32,
        "powerpc64" | "powerpc64le" => Arch::PowerPc64,
        "loongarch64" => Arch::LoongArch64,
        "s390x" => Arch::S390x,
        _ if name.starts_with("riscv64") => Arch::Riscv64,
        _ if name.starts_with("armv") || name.starts_with("thumbv") || name == "arm" => Arch::Arm,
        _ => Arch::Other(name.to_owned()),
    }
}

fn parse_os(name: &str, env: &str) -> Os {
    match name {
        "linux" if env.starts_with("android") => Os::Android,
        "linux" => Os::Linux,
        "darwin" | "macos" => Os::MacOs,
        "ios" => Os::Ios,
        "tvos" => Os::TvOs,
        "visionos" => Os::VisionOs,
        "windows" => Os::Windows,
        "freebsd" => Os::FreeBsd,
        "emscripten" => Os::Emscripten,
        _ => Os::Other(name.to_owned()),
    }
}

fn parse_env(name: &str, os: &Os, arch: &Arch) -> Env {
    match name {
        "gnullvm" => Env::GnuLlvm,
        "msvc" => Env::Msvc,
        "sim" => Env::Sim,
        "macabi" => Env::MacAbi,
        // Apple's mobile devices have no x86: such a target is the simulator.
        "" if matches!(os, Os::Ios | Os::TvOs) && *arch == Arch::X86_64 => Env::Sim,
        "" => Env::None,
        _ if *os == Os::Android => Env::None,
        _ if name.starts_with("gnu") => Env::Gnu,
        _ if name.starts_with("musl") => Env::Musl,
        _ => Env::Other(name.to_owned()),
    }
}
