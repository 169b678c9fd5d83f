//! Epsilons, the pooling type, and what describes rotary positions.

use crate::gguf::arch;
use crate::gguf::hyper::Hyper;
use crate::gguf::metadata::Metadata;
use crate::gguf::problem::{bail, shown};
use crate::gguf::value::{Value, ValueType};

/// `llama_pooling_type`: none, mean, cls, last, rank.
const POOLING: std::ops::RangeInclusive<u32> = 0..=4;
/// `LLAMA_POOLING_TYPE_UNSPECIFIED`, -1.
const POOLING_UNSPECIFIED: u32 = u32::MAX;

pub(crate) fn check(hyper: Hyper<'_>) -> Result<(), String> {
    check_epsilons(hyper.metadata)?;
    if let Some(pooling) = hyper.u32("pooling_type")?
        && pooling != POOLING_UNSPECIFIED
        && !POOLING.contains(&pooling)
    {
        bail!("`{}` is {pooling}; expected 0 to 4", hyper.key("pooling_type"));
    }
    // GGML_ASSERT(hparams.rope_scaling_type_train != LLAMA_ROPE_SCALING_TYPE_UNSPECIFIED)
    match hyper.get("rope.scaling.type") {
        None => {}
        Some(Value::String(kind)) if ["linear", "longrope", "none", "yarn"].contains(&kind.as_str()) => {}
        Some(Value::String(kind)) => {
            bail!("`{}` is {}; expected none, linear, yarn or longrope", hyper.key("rope.scaling.type"), shown(kind))
        }
        Some(other) => {
            bail!("`{}` has type {}; expected str", hyper.key("rope.scaling.type"), other.value_type().name())
        }
    }
    check_sections(hyper)
}

/// `GGML_ASSERT(eps >= 0.0f)` when a norm is computed; not a number fails it too.
fn check_epsilons(metadata: &Metadata) -> Result<(), String> {
    for (key, value) in metadata.iter().filter(|(key, _)| key.ends_with("epsilon")) {
        let value = match *value {
            Value::F32(value) => f64::from(value),
            Value::F64(value) => value,
            ref other => bail!("`{key}` has type {}; expected f32", other.value_type().name()),
        };
        if !value.is_finite() || value < 0.0 {
            bail!("`{key}` is {value}; expected a finite number from 0 on");
        }
    }
    Ok(())
}

/// Upstream divides by the sum of the sections, and asserts that one of the first three is not empty.
fn check_sections(hyper: Hyper<'_>) -> Result<(), String> {
    let key = hyper.key("rope.dimension_sections");
    let sections = match hyper.get("rope.dimension_sections") {
        None => return Ok(()),
        Some(Value::Array(array)) if matches!(array.element, ValueType::I32 | ValueType::U32) => &array.integers,
        Some(Value::U32(_) | Value::I32(_)) => return Ok(()),
        Some(other) => bail!("`{key}` has type {}; expected an array of i32", other.value_type().name()),
    };
    if sections.len() != 4 || sections.iter().any(|n| !(0..=1 << 14).contains(n)) {
        bail!("`{key}` is {sections:?}; expected four numbers from 0 to {}", 1 << 14);
    }
    let empty = sections.iter().take(3).all(|&n| n == 0);
    let unused = !arch::needs_rope_sections(hyper.arch) && sections.iter().all(|&n| n == 0);
    if empty && !unused {
        bail!("`{key}` is {sections:?}; expected one of the first three to be more than 0");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::gguf::hyper::Hyper;
    use crate::gguf::hyper::tests::{integers, model};
    use crate::gguf::value::{Value, ValueType};

    fn result(arch: &str, name: &str, value: Value) -> Result<(), String> {
        check(Hyper::of(&model(arch, &[(name, value)])).unwrap())
    }

    #[test]
    fn epsilons() {
        let name = "attention.layer_norm_rms_epsilon";
        for good in [0.0, 1e-5, f32::MAX] {
            assert_eq!(result("llama", name, Value::F32(good)), Ok(()));
        }
        for bad in [-1.0, f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            assert!(result("llama", name, Value::F32(bad)).unwrap_err().contains("expected a finite number"));
        }
        assert!(result("llama", name, Value::U32(1)).unwrap_err().contains("type u32; expected f32"));
    }

    #[test]
    fn pooling() {
        for good in [0, 1, 2, 3, 4, u32::MAX] {
            assert_eq!(result("bert", "pooling_type", Value::U32(good)), Ok(()));
        }
        assert_eq!(
            result("bert", "pooling_type", Value::U32(5)).unwrap_err(),
            "`bert.pooling_type` is 5; expected 0 to 4"
        );
    }

    #[test]
    fn rope() {
        let kind = |kind: &str| result("llama", "rope.scaling.type", Value::String(kind.to_owned()));
        assert!(kind("yarn").is_ok() && kind("none").is_ok());
        assert!(kind("").is_err() && kind("yarn2").unwrap_err().contains("is `yarn2`; expected none, linear"));
        assert!(result("llama", "rope.scaling.type", Value::U32(1)).is_err());
        let sections =
            |arch: &str, sections: &[i64]| result(arch, "rope.dimension_sections", integers(ValueType::I32, sections));
        assert!(sections("qwen2vl", &[16, 24, 24, 0]).is_ok() && sections("glm4", &[0; 4]).is_ok());
        assert!(sections("qwen2vl", &[0; 4]).is_err() && sections("glm4", &[0, 0, 0, 3]).is_err());
        assert!(sections("qwen2vl", &[1, -1, 0, 0]).is_err() && sections("qwen2vl", &[1; 3]).is_err());
    }
}
