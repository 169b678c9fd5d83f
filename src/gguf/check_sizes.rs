//! Numbers of layers and heads, and the sizes of heads.

use crate::gguf::arch;
use crate::gguf::hyper::Hyper;
use crate::gguf::problem::bail;

/// `LLAMA_MAX_LAYERS`.
pub(crate) const MAX_LAYERS: u32 = 512;
/// Upstream multiplies these as 32-bit numbers; with these limits the products do not wrap.
const MAX_HEADS: u32 = 1 << 14;
const MAX_HEAD_SIZE: u32 = 1 << 14;
const MAX_WIDTH: u32 = 1 << 24;

pub(crate) fn check(hyper: Hyper<'_>) -> Result<(), String> {
    let n_layer = hyper.in_range("block_count", 1, MAX_LAYERS)?;
    if let (Some(nextn), Some(n_layer)) = (hyper.u32("nextn_predict_layers")?, n_layer) {
        // An assistant consists of such layers only.
        let all_allowed = arch::needs_other_context(hyper.arch);
        if nextn > n_layer || nextn == n_layer && !all_allowed {
            bail!("`{}` is {nextn}; expected less than the {n_layer} layers", hyper.key("nextn_predict_layers"));
        }
    }
    let n_embd = hyper.in_range("embedding_length", 1, MAX_WIDTH)?;
    hyper.in_range("features_length", 1, MAX_WIDTH)?;
    for name in ["key_length", "value_length", "key_length_swa", "value_length_swa"] {
        hyper.in_range(&format!("attention.{name}"), 1, MAX_HEAD_SIZE)?;
    }
    for name in ["key_length_mla", "value_length_mla", "key_length_mla_swa", "value_length_mla_swa"] {
        hyper.in_range(&format!("attention.{name}"), 0, MAX_HEAD_SIZE)?;
    }
    let Some(n_layer) = n_layer else { return Ok(()) };
    if let Some(widths) = hyper.per_layer("feed_forward_length", n_layer)?
        && let Some(n_ff) = widths.iter().find(|&&n_ff| n_ff > MAX_WIDTH)
    {
        bail!("`{}` is {n_ff}; expected at most {MAX_WIDTH}", hyper.key("feed_forward_length"));
    }
    check_heads(hyper, n_layer)?;
    if let Some(sizes) = HeadSizes::of(hyper, n_embd, n_layer)? {
        sizes.check(hyper)?;
    }
    Ok(())
}

/// Numbers of heads in each layer.
fn check_heads(hyper: Hyper<'_>, n_layer: u32) -> Result<(), String> {
    let Some(n_head) = hyper.per_layer("attention.head_count", n_layer)? else { return Ok(()) };
    if let Some(n) = n_head.iter().find(|&&n| n > MAX_HEADS) {
        bail!("`{}` is {n}; expected at most {MAX_HEADS}", hyper.key("attention.head_count"));
    }
    if n_head.iter().all(|&n| n == 0) && !arch::may_lack_attention(hyper.arch) {
        bail!("`{}` is 0; expected at least 1", hyper.key("attention.head_count"));
    }
    let Some(n_head_kv) = hyper.per_layer("attention.head_count_kv", n_layer)? else { return Ok(()) };
    for (layer, (&n_head, &n_head_kv)) in n_head.iter().zip(&n_head_kv).enumerate() {
        let divides = match n_head_kv {
            0 => n_head == 0 || arch::may_lack_attention(hyper.arch),
            n => n <= MAX_HEADS && (n_head == 0 || n_head.is_multiple_of(n)),
        };
        // `GGML_ASSERT(ggml_can_mul_mat(a, b))` and its like, when a context is made
        if !divides {
            bail!(
                "`{}` is {n_head_kv} in layer {layer}; expected a divisor of the {n_head} heads",
                hyper.key("attention.head_count_kv")
            );
        }
    }
    Ok(())
}

/// Sizes of the heads of layers with full attention, as upstream works them out.
struct HeadSizes {
    key: u32,
    value: u32,
    rotated: u32,
    rotated_is_given: bool,
}

impl HeadSizes {
    fn of(hyper: Hyper<'_>, n_embd: Option<u32>, n_layer: u32) -> Result<Option<HeadSizes>, String> {
        let n_head = hyper.per_layer("attention.head_count", n_layer)?;
        let Some(first @ 1..) = n_head.and_then(|n| n.first().copied()) else { return Ok(None) };
        let n_embd = match hyper.arch {
            "wavtokenizer-dec" => hyper.u32("features_length")?,
            _ => n_embd,
        };
        let key = hyper.u32("attention.key_length")?;
        let value = hyper.u32("attention.value_length")?;
        // Upstream says itself that it needs the embedding's length.
        let Some(n_embd) = n_embd else { return Ok(None) };
        let default = n_embd / first;
        if default == 0 && (key.is_none() || value.is_none()) {
            bail!(
                "`{}` is {first}; expected at most the embedding's length, {n_embd}",
                hyper.key("attention.head_count")
            );
        }
        let key = key.unwrap_or(default);
        let rotated = hyper.u32("rope.dimension_count")?;
        Ok(Some(HeadSizes {
            key,
            value: value.unwrap_or(default),
            rotated: rotated.unwrap_or(key),
            rotated_is_given: rotated.is_some(),
        }))
    }

    fn check(&self, hyper: Hyper<'_>) -> Result<(), String> {
        let HeadSizes { key, value, rotated, rotated_is_given } = *self;
        // Layers with a sliding window can have heads of their own, and which kind comes first is up to the model.
        let one_size = !["attention.key_length_swa", "attention.value_length_swa", "rope.dimension_count_swa"]
            .iter()
            .any(|name| hyper.get(name).is_some());
        if one_size && arch::needs_equal_heads(hyper.arch) && key != value {
            bail!("its attention heads have keys of {key} numbers and values of {value}; expected the same size");
        }
        if one_size && arch::needs_full_rotation(hyper.arch) && rotated != value {
            bail!("`{}` is {rotated}; expected the size of a head, {value}", hyper.key("rope.dimension_count"));
        }
        let rotates = rotated_is_given || !arch::lacks_rope(hyper.arch);
        if rotates && !rotated.is_multiple_of(2) {
            bail!("`{}` is {rotated}; expected an even number", hyper.key("rope.dimension_count"));
        }
        if rotated > key {
            bail!("`{}` is {rotated}; expected at most the size of a key, {key}", hyper.key("rope.dimension_count"));
        }
        let key = hyper.u32("attention.key_length_swa")?.unwrap_or(key);
        if let Some(rotated) = hyper.u32("rope.dimension_count_swa")?
            && (!rotated.is_multiple_of(2) || rotated > key)
        {
            bail!(
                "`{}` is {rotated}; expected an even number up to the size of a key, {key}",
                hyper.key("rope.dimension_count_swa")
            );
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::gguf::hyper::Hyper;
    use crate::gguf::hyper::tests::{integers, model};
    use crate::gguf::value::{Value, ValueType};

    fn result(arch: &str, changes: &[(&str, Value)]) -> Result<(), String> {
        let mut entries = vec![
            ("block_count", Value::U32(2)),
            ("embedding_length", Value::U32(32)),
            ("attention.head_count", Value::U32(4)),
        ];
        entries.extend(changes.iter().cloned());
        check(Hyper::of(&model(arch, &entries)).unwrap())
    }

    fn bad(arch: &str, changes: &[(&str, Value)], expected: &str) {
        let reason = result(arch, changes).unwrap_err();
        assert!(reason.contains(expected), "{reason}");
    }

    #[test]
    fn layers() {
        assert_eq!(result("llama", &[]), Ok(()));
        for n in [0, 513, u32::MAX] {
            bad("llama", &[("block_count", Value::U32(n))], &format!("is {n}; expected 1 to 512"));
        }
        bad("llama", &[("block_count", Value::String("2".to_owned()))], "has type str; expected u32");
        bad("qwen35", &[("nextn_predict_layers", Value::U32(2))], "less than the 2 layers");
        assert_eq!(result("qwen35", &[("nextn_predict_layers", Value::U32(1))]), Ok(()));
        assert_eq!(result("gemma4-assistant", &[("nextn_predict_layers", Value::U32(2))]), Ok(()));
    }

    #[test]
    fn heads() {
        let n_head = "attention.head_count";
        let n_head_kv = "attention.head_count_kv";
        bad("llama", &[(n_head, Value::U32(0))], "is 0; expected at least 1");
        assert_eq!(result("mamba", &[(n_head, Value::U32(0))]), Ok(()));
        bad("llama", &[(n_head, Value::U32(33))], "at most the embedding's length, 32");
        bad("llama", &[(n_head, Value::U32(u32::MAX))], "expected at most 16384");
        bad("llama", &[(n_head, integers(ValueType::U32, &[4; 3]))], "one per layer, 2");
        for n in [0, 3, 8, u32::MAX] {
            bad("llama", &[(n_head_kv, Value::U32(n))], "a divisor of the 4 heads");
        }
        assert_eq!(result("llama", &[(n_head_kv, Value::U32(2))]), Ok(()));
        assert_eq!(result("lfm2", &[(n_head_kv, integers(ValueType::I32, &[0, 2]))]), Ok(()));
        bad("llama", &[(n_head_kv, integers(ValueType::U32, &[0, 2]))], "is 0 in layer 0");
    }

    #[test]
    fn sizes_of_heads() {
        let (key, value, rotated) = ("attention.key_length", "attention.value_length", "rope.dimension_count");
        bad("llama", &[(key, Value::U32(0))], "is 0; expected 1 to 16384");
        bad("llama", &[(key, Value::U32(u32::MAX))], "expected 1 to 16384");
        bad("llama", &[(value, Value::U32(4))], "keys of 8 numbers and values of 4");
        assert_eq!(result("deepseek2", &[(value, Value::U32(4))]), Ok(()));
        bad("llama", &[(rotated, Value::U32(4))], "is 4; expected the size of a head, 8");
        assert_eq!(result("phi3", &[(rotated, Value::U32(4))]), Ok(()));
        bad("phi3", &[(rotated, Value::U32(3))], "an even number");
        bad("phi3", &[(rotated, Value::U32(10))], "at most the size of a key, 8");
        bad("phi3", &[(key, Value::U32(7)), (value, Value::U32(7))], "an even number");
        assert_eq!(result("gpt2", &[(key, Value::U32(7)), (value, Value::U32(7))]), Ok(()));
        bad("gemma3", &[("rope.dimension_count_swa", Value::U32(10))], "up to the size of a key, 8");
    }
}
