//! Compares the instruction sets that were compiled in with those of the machine.

use crate::error::{Error, Result};

mod generated {
    #![allow(dead_code, unreachable_pub)]
    include!(concat!(env!("OUT_DIR"), "/build_info.rs"));
}
pub(crate) use generated::*;

/// An error that names the missing sets when upstream's code could not run here.
pub(crate) fn check() -> Result<()> {
    match missing(CPU_CHECKS, has_feature).as_slice() {
        [] => Ok(()),
        missing => Err(Error::MissingCpuFeatures { missing: missing.join(", "), compiled: CPU_SETS.join(", ") }),
    }
}

fn missing<'a>(checks: &[(&'a str, &[&str])], has: impl Fn(&str) -> bool) -> Vec<&'a str> {
    checks.iter().filter(|(_, features)| !features.iter().all(|name| has(name))).map(|(set, _)| *set).collect()
}

#[cfg(any(target_arch = "x86_64", target_arch = "x86"))]
fn has_feature(name: &str) -> bool {
    macro_rules! detect {
        ($($feature:tt),*) => {
            match name {
                $($feature => std::arch::is_x86_feature_detected!($feature),)*
                "amx-tile" => amx_bit(24),
                "amx-int8" => amx_bit(25),
                "amx-bf16" => amx_bit(22),
                // A set that we cannot ask for is not held against the machine.
                _ => true,
            }
        };
    }
    detect!(
        "sse3",
        "ssse3",
        "sse4.1",
        "sse4.2",
        "popcnt",
        "avx",
        "avx2",
        "bmi1",
        "bmi2",
        "fma",
        "f16c",
        "avxvnni",
        "avx512f",
        "avx512cd",
        "avx512vl",
        "avx512dq",
        "avx512bw",
        "avx512vbmi",
        "avx512vnni",
        "avx512bf16"
    )
}

/// A bit of CPUID leaf 7 (EDX), together with the operating system's leave to use tile registers.
#[cfg(target_arch = "x86_64")]
fn amx_bit(bit: u32) -> bool {
    use std::arch::x86_64::{__cpuid, __cpuid_count, _xgetbv};
    #[target_feature(enable = "xsave")]
    unsafe fn tile_state_enabled() -> bool {
        // SAFETY: reached only when OSXSAVE is set. Bits 17 and 18 of XCR0 are tile configuration and tile data.
        unsafe { _xgetbv(0) & 0x6_0000 == 0x6_0000 }
    }
    #[allow(unused_unsafe)]
    // SAFETY: CPUID exists on every x86-64.
    let (max_leaf, osxsave) = unsafe { (__cpuid(0).eax, __cpuid(1).ecx & 1 << 27 != 0) };
    if max_leaf < 7 || !osxsave {
        return false;
    }
    #[allow(unused_unsafe)]
    // SAFETY: leaf 7 exists.
    let edx = unsafe { __cpuid_count(7, 0).edx };
    // SAFETY: OSXSAVE was tested above.
    edx & 1 << bit != 0 && unsafe { tile_state_enabled() }
}

#[cfg(target_arch = "x86")]
fn amx_bit(_bit: u32) -> bool {
    false
}

#[cfg(target_arch = "aarch64")]
fn has_feature(name: &str) -> bool {
    macro_rules! detect {
        ($($feature:tt),*) => {
            match name {
                $($feature => std::arch::is_aarch64_feature_detected!($feature),)*
                _ => true,
            }
        };
    }
    detect!("dotprod", "fp16", "i8mm", "bf16", "sve", "sve2")
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "x86", target_arch = "aarch64")))]
fn has_feature(_name: &str) -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_is_missing_when_one_of_its_features_is() {
        let checks: &[(&str, &[&str])] = &[("avx2", &["avx2"]), ("avx512", &["avx512f", "avx512bw"])];
        assert_eq!(missing(checks, |name| name != "avx512bw"), ["avx512"]);
        assert_eq!(missing(checks, |_| true), Vec::<&str>::new());
    }

    #[test]
    fn this_machine_can_run_what_was_built_on_it() {
        check().unwrap();
    }
}
