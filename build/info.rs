//! What the library can say about its own build, as a Rust file that `src/build_info.rs` includes.

use std::path::Path;

use super::bindings::write_if_changed;
use super::cpu;
use super::plan::BuildPlan;
use super::source::Source;
use super::target::Target;

/// Writes `build_info.rs` into `out_dir`.
pub(crate) fn write(plan: &BuildPlan, source: &Source, target: &Target, out_dir: &Path) -> Result<(), String> {
    let checks = cpu::runtime_check_names(&plan.cpu);
    // `{:?}` prints a slice as `["a"]`; inside a const of slices each must be a reference. Names hold no brackets.
    let checks = format!("{checks:?}").replace(", [", ", &[");
    let text = format!(
        "pub const SOURCE_ORIGIN: &str = {:?};\n\
         pub const SOURCE_HASH: &str = {:?};\n\
         pub const LLAMA_VERSION: &str = {:?};\n\
         pub const GGML_VERSION: &str = {:?};\n\
         pub const TARGET: &str = {:?};\n\
         pub const CPU_SETS: &[&str] = &{:?};\n\
         pub const CPU_CHECKS: &[(&str, &[&str])] = &{};\n\
         pub const CMAKE_OPTIONS: &[(&str, &str)] = &{:?};\n",
        source.origin,
        source.hash,
        source.llama_version,
        source.ggml_version,
        target.triple,
        plan.cpu.sets,
        checks,
        plan.cmake,
    );
    write_if_changed(&out_dir.join("build_info.rs"), &text)
}
