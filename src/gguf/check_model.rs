//! All checks that are about the model and not about the format.

use crate::gguf::hyper::Hyper;
use crate::gguf::metadata::Metadata;
use crate::gguf::problem::bail;
use crate::gguf::tensors::Tensors;
use crate::gguf::value::{Value, ValueType};
use crate::gguf::{check_experts, check_numbers, check_ranges, check_sizes, check_vocab};

pub(crate) fn check(metadata: &Metadata, tensors: &Tensors) -> Result<(), String> {
    check_vocab::check(metadata)?;
    // Files without an architecture are later parts, or upstream refuses them.
    let Some(hyper) = Hyper::of(metadata) else { return Ok(()) };
    check_sizes::check(hyper)?;
    check_experts::check(hyper)?;
    check_numbers::check(hyper)?;
    check_ranges::check(hyper)?;
    check_outputs(hyper, tensors)?;
    check_position_bias(hyper, tensors)
}

/// Widths of results, which upstream believes when it copies them out of a tensor.
fn check_outputs(hyper: Hyper<'_>, tensors: &Tensors) -> Result<(), String> {
    let n_embd = hyper.u32("embedding_length")?.unwrap_or(0);
    let width_of = |name: &str| tensors.get(name).map_or(0, |shape| shape.dims[1]);
    let known = !tensors.incomplete && tensors.len() > 0;
    let own_output = ["dflash", "eagle3", "gemma4-assistant", "wavtokenizer-dec"].contains(&hyper.arch);
    if let Some(width) = hyper.u32("embedding_length_out")?
        && known
        && !own_output
        && width > n_embd
        && width_of("dense_2.weight") != u64::from(width)
    {
        bail!(
            "`{}` is {width}; expected at most the embedding's length, {n_embd}, as no tensor `dense_2.weight` makes more",
            hyper.key("embedding_length_out")
        );
    }
    let labels = match hyper.get("classifier.output_labels") {
        Some(Value::Array(array)) if array.element == ValueType::String => array.len,
        Some(Value::Array(array)) => {
            bail!("`{}` is an array of {}; expected str", hyper.key("classifier.output_labels"), array.element.name())
        }
        // Upstream does not look at other values.
        _ => 0,
    };
    if known && labels > u64::from(n_embd) && width_of("cls.output.weight") != labels {
        bail!(
            "`{}` has {labels} elements; expected at most the embedding's length, {n_embd}, as no tensor \
             `cls.output.weight` makes more",
            hyper.key("classifier.output_labels")
        );
    }
    Ok(())
}

/// The loader takes these for optional in each layer, but the first layer's stands in for the others.
fn check_position_bias(hyper: Hyper<'_>, tensors: &Tensors) -> Result<(), String> {
    let needed: &[&str] = match hyper.arch {
        "t5" => &["enc.blk.0.attn_rel_b.weight", "dec.blk.0.attn_rel_b.weight"],
        "t5encoder" => &["enc.blk.0.attn_rel_b.weight"],
        _ => return Ok(()),
    };
    let known = !tensors.incomplete && tensors.len() > 0;
    match needed.iter().find(|name| tensors.get(name).is_none()) {
        Some(name) if known => bail!("it has no tensor `{name}`; expected one"),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::gguf::hyper::tests::model;
    use crate::gguf::metadata::Metadata;
    use crate::gguf::tensors::Tensors;
    use crate::gguf::value::{Array, Value, ValueType};

    fn labels(len: u64) -> Value {
        Value::Array(Array { element: ValueType::String, len, integers: Vec::new() })
    }

    #[test]
    fn outputs() {
        let tensors = |name: &str, width| Tensors::of(&[(name, [8, width, 1, 1])]);
        let out =
            |width| model("lfm2", &[("embedding_length", Value::U32(8)), ("embedding_length_out", Value::U32(width))]);
        assert_eq!(check(&out(8), &tensors("a", 1)), Ok(()));
        assert!(check(&out(9), &tensors("a", 1)).unwrap_err().contains("`lfm2.embedding_length_out` is 9"));
        assert_eq!(check(&out(9), &tensors("dense_2.weight", 9)), Ok(()));
        assert_eq!(check(&out(9), &Tensors::default()), Ok(()));
        let bert = |n| model("bert", &[("embedding_length", Value::U32(8)), ("classifier.output_labels", labels(n))]);
        assert_eq!(check(&bert(8), &tensors("a", 1)), Ok(()));
        assert!(check(&bert(9), &tensors("a", 1)).unwrap_err().contains("has 9 elements"));
        assert_eq!(check(&bert(9), &tensors("cls.output.weight", 9)), Ok(()));
    }

    #[test]
    fn position_bias() {
        let t5 = model("t5", &[]);
        let encoder = ("enc.blk.0.attn_rel_b.weight", [2, 32, 1, 1]);
        let decoder = ("dec.blk.0.attn_rel_b.weight", [2, 32, 1, 1]);
        assert_eq!(check(&t5, &Tensors::of(&[encoder, decoder])), Ok(()));
        assert!(check(&t5, &Tensors::of(&[encoder])).unwrap_err().contains("`dec.blk.0.attn_rel_b.weight`"));
        assert_eq!(check(&model("t5encoder", &[]), &Tensors::of(&[encoder])), Ok(()));
        let mut part = Tensors::of(&[encoder]);
        part.incomplete = true;
        assert_eq!(check(&t5, &part), Ok(()));
    }

    #[test]
    fn nothing_known_is_left_to_upstream() {
        assert_eq!(check(&Metadata::default(), &Tensors::default()), Ok(()));
        assert_eq!(check(&model("no-such-architecture", &[]), &Tensors::default()), Ok(()));
    }
}
