//! Which types a tensor of a given name may have.
//!
//! Upstream's loader asks the backend whether it can compute with a tensor, and the CPU backend says yes to types that
//! then end the process: what is added to or multiplied with activations element by element must be F32
//! (`binary_op` aborts), and what is multiplied as a matrix must have a `vec_dot`. The lists follow
//! `LLM_TENSOR_INFOS` in upstream's `llama-arch.cpp`. All converters store these tensors as F32.

use crate::gguf::dtype::{Dtype, F32, I32, I64};

/// Tensors that are used element by element, without the layer's prefix. Norms and biases come on top.
const ELEMENTWISE: &[&str] = &[
    "altup_correct_scale",
    "attn_res_score",
    "attn_sinks",
    "channel_mix_lerp_k",
    "channel_mix_lerp_r",
    "decision.scales",
    "exp_probs_b",
    "exp_probs_b_vl",
    "ffn.act",
    "ffn_res_score",
    "gamma",
    "hc_attn_base",
    "hc_attn_scale",
    "hc_ffn_base",
    "hc_ffn_scale",
    "hrm.z_l_init",
    "layer_output_scale",
    "output_hc_base",
    "output_hc_scale",
    "output_res_score",
    "ple_conv1d",
    "rope_factors_long",
    "rope_factors_short",
    "rope_freqs",
    "shortconv.conv",
    "ssm_a",
    "ssm_conv1d",
    "ssm_conv1d_k",
    "ssm_conv1d_q",
    "ssm_conv1d_v",
    "ssm_d",
    "time_mix_a0",
    "time_mix_decay",
    "time_mix_first",
    "time_mix_k_a",
    "time_mix_k_k",
    "time_mix_lerp_fused",
    "time_mix_lerp_g",
    "time_mix_lerp_k",
    "time_mix_lerp_r",
    "time_mix_lerp_v",
    "time_mix_lerp_w",
    "time_mix_lerp_x",
    "time_mix_ln",
    "time_mix_r_k",
    "time_mix_v0",
    "time_mix_w0",
    // its first row is added without a lookup
    "token_types",
];

/// Lists of token or expert numbers.
const INDICES: &[&str] = &["d2t", "ffn_gate_tid2eid", "masked_embd_ordering"];

/// One-dimensional tensors that are multiplied as a matrix of one row, so that any weight type works.
const ROWS: &[&str] = &["cls", "cls.output", "conf_proj", "decision.scorer_out", "ffn_gate_inp_shexp"];

/// Checks a tensor's type against what it is used for.
pub(crate) fn check(name: &str, n_dims: u32, dtype: Dtype) -> Result<(), String> {
    let base = base_name(name);
    let stem = base.strip_suffix(".weight").unwrap_or(base);
    if INDICES.contains(&stem) && matches!(dtype.id, I32 | I64) || dtype.id == F32 {
        return Ok(());
    }
    if !dtype.is_weight {
        return Err(format!("its type is {}, with which upstream cannot compute", dtype.name));
    }
    // Adapters of rank 1 are matrices all the same.
    let is_adapter = stem.ends_with(".lora_a") || stem.ends_with(".lora_b");
    let elementwise = ELEMENTWISE.contains(&stem)
        || [".bias", ".scale", ".input_scale"].iter().any(|suffix| base.ends_with(suffix))
        || stem.contains("norm");
    if !is_adapter && (elementwise || n_dims <= 1 && !ROWS.contains(&stem)) {
        return Err(format!("its type is {}; expected f32, as it is used element by element", dtype.name));
    }
    Ok(())
}

/// The name without the layer that it belongs to: `blk.3.`, `enc.blk.3.`, `convnext.3.`.
fn base_name(name: &str) -> &str {
    let name = name.strip_prefix("enc.").or_else(|| name.strip_prefix("dec.")).unwrap_or(name);
    let layer = ["blk.", "convnext.", "posnet."].iter().find_map(|prefix| name.strip_prefix(prefix));
    let after_number = layer.and_then(|rest| rest.split_once('.'));
    match after_number {
        Some((number, rest)) if !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()) => rest,
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::{base_name, check};
    use crate::gguf::dtype::dtype;

    fn ok(name: &str, n_dims: u32, id: u32) -> bool {
        check(name, n_dims, dtype(id).unwrap()).is_ok()
    }

    #[test]
    fn layers() {
        assert_eq!(base_name("blk.12.attn_q.weight"), "attn_q.weight");
        assert_eq!(base_name("dec.blk.0.attn_rel_b.weight"), "attn_rel_b.weight");
        assert_eq!(base_name("enc.output_norm.weight"), "output_norm.weight");
        assert_eq!(base_name("convnext.1.gamma.weight"), "gamma.weight");
        for name in ["output.weight", "blk.x.y", "blk.1", "blk."] {
            assert_eq!(base_name(name), name);
        }
    }

    #[test]
    fn types() {
        // f16, q4_0, i8, i32, f64, i64
        assert!(ok("blk.0.attn_q.weight", 2, 1) && ok("token_embd.weight", 2, 2));
        for id in [9, 15, 24, 25, 26, 27, 28] {
            assert!(!ok("blk.0.attn_q.weight", 2, id));
        }
        for name in ["blk.0.attn_norm.weight", "blk.0.attn_q.bias", "rope_freqs.weight", "blk.3.ssm_a", "a.scale"] {
            assert!(ok(name, 1, 0));
            assert!(!ok(name, 1, 1) && !ok(name, 2, 30), "{name}");
        }
        assert!(!ok("unknown", 1, 1) && ok("unknown", 2, 1));
        assert!(ok("cls.output.weight", 1, 1) && ok("blk.1.attn_q.weight.lora_a", 1, 1));
        assert!(ok("d2t", 1, 27) && ok("blk.0.ffn_gate_tid2eid.weight", 2, 26));
    }
}
