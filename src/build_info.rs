//! What this build is made of: upstream's version and source, the target, the instruction sets.

use crate::raw::cpu_check as generated;

/// Facts about the build, fixed when it was compiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct BuildInfo {
    /// Version of this crate.
    pub crate_version: &'static str,
    /// Version of llama.cpp.
    pub llama_version: &'static str,
    /// Version of ggml.
    pub ggml_version: &'static str,
    /// Where the source came from: the carrier package with its version, `vendor/llama.cpp`, or
    /// `GGML_LLAMA_SOURCE_DIR`.
    pub source: &'static str,
    /// Checksum of the carrier package, or a digest of the tree.
    pub source_hash: &'static str,
    /// The target triple.
    pub target: &'static str,
    /// Instruction sets that the CPU backend was compiled for, beyond the target's baseline.
    pub cpu_sets: &'static [&'static str],
    /// Options that upstream's build was given.
    pub cmake_options: &'static [(&'static str, &'static str)],
}

/// Facts about this build.
///
/// ```
/// let info = ggml_llama::build_info();
/// println!("llama.cpp {} from {}", info.llama_version, info.source);
/// ```
#[doc(alias = "llama_version")]
#[doc(alias = "ggml_version")]
#[must_use]
pub fn build_info() -> BuildInfo {
    BuildInfo {
        crate_version: env!("CARGO_PKG_VERSION"),
        llama_version: generated::LLAMA_VERSION,
        ggml_version: generated::GGML_VERSION,
        source: generated::SOURCE_ORIGIN,
        source_hash: generated::SOURCE_HASH,
        target: generated::TARGET,
        cpu_sets: generated::CPU_SETS,
        cmake_options: generated::CMAKE_OPTIONS,
    }
}
