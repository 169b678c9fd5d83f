//! Metadata that the caller replaces when a model is loaded, which bypasses the checks of the file.

use std::collections::HashSet;

use crate::gguf::check_model;
use crate::gguf::header::Header;
use crate::gguf::problem::bail;
use crate::gguf::value::Value;

/// Upstream looks these up in the file first, so that a replacement for a missing one has no effect
/// (`llama_model_loader::get_key_or_arr`).
const ONLY_IF_PRESENT: &[&str] =
    &["attention.head_count", "attention.head_count_kv", "expert_used_count", "feed_forward_length"];

/// Checks the model as it would be with these entries replaced.
pub(crate) fn check_overrides(header: &Header, overrides: &[(String, Value)]) -> Result<(), String> {
    if overrides.is_empty() {
        return Ok(());
    }
    let mut metadata = header.metadata.clone();
    let mut seen = HashSet::new();
    for (key, value) in overrides {
        // The architecture decides which entries count, and the parts have been found by their number.
        if key == "general.architecture" || key.starts_with("split.") {
            bail!("`{key}` cannot be replaced");
        }
        // The first of several counts.
        if !seen.insert(key) {
            continue;
        }
        let value = as_read(key, value)?;
        let name = header.architecture.as_deref().and_then(|arch| key.strip_prefix(arch)?.strip_prefix('.'));
        match metadata.get(key) {
            // Upstream reads arrays from the file only.
            Some(Value::Array(_)) => {}
            None if name.is_some_and(|name| ONLY_IF_PRESENT.contains(&name)) => {}
            _ => metadata.set(key, value),
        }
    }
    check_model::check(&metadata, &header.tensors)
}

/// The value that upstream's `try_override` makes of it: it casts to the type of the variable that it sets, which for
/// whole numbers has 32 bits without a sign.
fn as_read(key: &str, value: &Value) -> Result<Value, String> {
    Ok(match value {
        Value::F32(_) | Value::F64(_) => Value::F32(match *value {
            Value::F32(v) => v,
            Value::F64(v) => v as f32,
            _ => 0.0,
        }),
        Value::Bool(v) => Value::Bool(*v),
        Value::String(text) => Value::String(text.clone()),
        Value::Array(_) => bail!("`{key}` is to be replaced by an array; expected a number, a truth value or a text"),
        number => {
            let number = number.as_integer().unwrap_or(i64::MAX);
            match u32::try_from(number).or_else(|_| i32::try_from(number).map(|n| n as u32)) {
                Ok(n) => Value::U32(n),
                Err(_) => bail!("`{key}` is to be replaced by {number}; expected a number of 32 bits"),
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::check_overrides;
    use crate::gguf::header::{Contents, Header};
    use crate::gguf::hyper::tests::{integers, model};
    use crate::gguf::tensors::Tensors;
    use crate::gguf::value::{Value, ValueType};

    fn result(entries: &[(&str, Value)], overrides: &[(&str, Value)]) -> Result<(), String> {
        let mut all = vec![("block_count", Value::U32(2)), ("embedding_length", Value::U32(32))];
        all.extend(entries.iter().cloned());
        let metadata = model("llama", &all);
        let header = Header::new(Contents { version: 3, n_kv: 2, metadata, tensors: Tensors::default() });
        let overrides: Vec<_> = overrides.iter().map(|(k, v)| ((*k).to_owned(), v.clone())).collect();
        check_overrides(&header, &overrides)
    }

    #[test]
    fn values_are_checked_as_upstream_reads_them() {
        assert_eq!(result(&[], &[]), Ok(()));
        assert_eq!(result(&[], &[("llama.block_count", Value::I64(3))]), Ok(()));
        for n in [0, 513, -1] {
            assert!(result(&[], &[("llama.block_count", Value::I64(n))]).is_err());
        }
        assert!(result(&[], &[("llama.block_count", Value::I64(1 << 32 | 2))]).unwrap_err().contains("32 bits"));
        assert!(result(&[], &[("llama.block_count", Value::F64(2.0))]).unwrap_err().contains("type f32"));
        assert_eq!(result(&[], &[("llama.pooling_type", Value::I64(-1))]), Ok(()));
        assert!(result(&[], &[("llama.pooling_type", Value::I64(5))]).is_err());
        let eps = "llama.attention.layer_norm_rms_epsilon";
        assert!(result(&[], &[(eps, Value::F64(1e300))]).is_err() && result(&[], &[(eps, Value::F64(1e-5))]).is_ok());
        assert!(result(&[], &[("llama.rope.scaling.type", Value::String("x".to_owned()))]).is_err());
        assert_eq!(result(&[], &[("tokenizer.ggml.add_bos_token", Value::Bool(false))]), Ok(()));
    }

    #[test]
    fn what_upstream_ignores_is_ignored() {
        // with no entry in the file, only the number of experts takes effect, and they do not fit together
        let both = [("llama.expert_count", Value::I64(4)), ("llama.expert_used_count", Value::I64(2))];
        assert!(result(&[], &both).is_err());
        assert_eq!(result(&[("expert_used_count", Value::U32(0))], &both), Ok(()));
        let array = [("expert_count", Value::U32(8)), ("expert_used_count", integers(ValueType::U32, &[6, 6]))];
        assert!(result(&array, &[("llama.expert_count", Value::I64(4)), both[1].clone()]).is_err());
        let twice = [("llama.block_count", Value::I64(2)), ("llama.block_count", Value::I64(0))];
        assert_eq!(result(&[], &twice), Ok(()));
    }

    #[test]
    fn some_cannot_be_replaced() {
        for key in ["general.architecture", "split.count"] {
            assert!(result(&[], &[(key, Value::I64(1))]).unwrap_err().contains("cannot be replaced"));
        }
    }
}
