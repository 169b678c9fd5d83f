//! Numbers with a range of their own: each row stands for an assertion or a division in upstream.

use crate::gguf::hyper::Hyper;
use crate::gguf::problem::bail;

/// For which architectures, which number, and its range. An entry that is missing is fine here: upstream has a default,
/// or says itself that it needs one.
type Row = (&'static [&'static str], &'static str, u32, u32);

const ANY: &[&str] = &[];
const MANY: u32 = 1 << 24;
const LAYERS: u32 = 512;
const GATED_DELTA: &[&str] = &["clef", "qwen35", "qwen35moe", "qwen3next", "qwen4exp"];
const MAMBA2: &[&str] = &["falcon-h1", "granitehybrid", "mamba2", "nemotron_h", "nemotron_h_moe"];

const ROWS: &[Row] = &[
    // llama_model_n_ctx_train gives it as a signed number
    (ANY, "context_length", 0, i32::MAX as u32),
    // one entry of 48 bytes each, when there is no list of tokens
    (ANY, "vocab_size", 0, MANY),
    // graph: "unknown pooling type"
    (ANY, "classifier.pooling_type", 0, 4),
    // divisors and lengths
    (ANY, "ssm.conv_kernel", 1, 1 << 10),
    (ANY, "ssm.inner_size", 1, MANY),
    (ANY, "ssm.state_size", 1, MANY),
    (ANY, "ssm.time_step_rank", 1, MANY),
    (GATED_DELTA, "ssm.group_count", 1, MANY),
    (MAMBA2, "ssm.group_count", 1, MANY),
    (ANY, "wkv.head_size", 1, 1 << 14),
    (ANY, "kda.head_dim", 1, 1 << 14),
    (GATED_DELTA, "full_attention_interval", 1, LAYERS),
    (&["minimax-01"], "full_attention_interval", 1, LAYERS),
    (&["ernie4_5-moe"], "interleave_moe_layer_step", 1, LAYERS),
    (&["wavtokenizer-dec"], "attention.group_norm_groups", 1, MANY),
    (&["deepseek4"], "attention.output_group_count", 1, 1 << 14),
    (&["minimax-m3"], "attention.indexer.block_size", 1, MANY),
    // recurrent layers
    (&["rwkv6", "rwkv7"], "token_shift_count", 2, 2),
    (&["arwkv7", "rwkv6qwen2"], "token_shift_count", 1, 1),
    (&["lfm2", "lfm2moe"], "shortconv.l_cache", 2, 1 << 10),
    // layers of several kinds
    (&["wavtokenizer-dec"], "posnet.block_count", 0, 6),
    (&["grovemoe"], "experts_per_group", 1, 1024),
    (&["hrm_text"], "hrm.layers_per_stack", 1, LAYERS),
    (&["hrm_text"], "hrm.h_cycles", 1, LAYERS),
    (&["hrm_text"], "hrm.l_cycles", 1, LAYERS),
    (&["nanbeige"], "num_loops", 1, LAYERS),
    (&["deepseek4", "hy_v4", "qwen4exp"], "hyper_connection.count", 1, 64),
    (&["glm5-next"], "hyper_connection.count", 4, 4),
    (&["glm5-next"], "attention.indexer.kpool", 2, MANY),
    // encoders and decoders; buckets are halved twice
    (&["t5"], "decoder_block_count", 1, LAYERS),
    (&["t5", "t5encoder"], "attention.relative_buckets_count", 4, 1 << 16),
];

pub(crate) fn check(hyper: Hyper<'_>) -> Result<(), String> {
    for (archs, name, min, max) in ROWS {
        if archs.is_empty() || archs.contains(&hyper.arch) {
            hyper.in_range(name, *min, *max)?;
        }
    }
    let n_embd = hyper.u32("embedding_length")?;
    divides(hyper, "ssm.group_count", GATED_DELTA, "ssm.time_step_rank")?;
    divides(hyper, "ssm.group_count", MAMBA2, "ssm.inner_size")?;
    divides(hyper, "ssm.group_count", MAMBA2, "ssm.time_step_rank")?;
    divides(hyper, "ssm.time_step_rank", MAMBA2, "ssm.inner_size")?;
    divides(hyper, "ssm.time_step_rank", GATED_DELTA, "ssm.inner_size")?;
    divides(hyper, "ssm.time_step_rank", &["plamo2"], "ssm.inner_size")?;
    divides(hyper, "attention.indexer.kpool", &["glm5-next"], "attention.indexer.top_k")?;
    divides(hyper, "wkv.head_size", &["arwkv7", "rwkv6", "rwkv6qwen2", "rwkv7"], "embedding_length")?;
    if ["granitehybrid", "jamba"].contains(&hyper.arch)
        && let (Some(inner), Some(n_embd)) = (hyper.u32("ssm.inner_size")?, n_embd)
        && u64::from(inner) != 2 * u64::from(n_embd)
    {
        bail!("`{}` is {inner}; expected twice the embedding's length, {n_embd}", hyper.key("ssm.inner_size"));
    }
    for name in ["dense_2_feat_in", "dense_3_feat_out"] {
        if hyper.arch == "gemma-embedding"
            && let Some(width @ 1..) = hyper.u32(name)?
            && Some(width) != n_embd
        {
            bail!("`{}` is {width}; expected 0 or the embedding's length", hyper.key(name));
        }
    }
    check_layers(hyper)
}

/// Sums and products of layers.
fn check_layers(hyper: Hyper<'_>) -> Result<(), String> {
    let Some(n_layer) = hyper.u32("block_count")? else { return Ok(()) };
    for name in ["posnet.block_count", "convnext.block_count"] {
        if hyper.arch == "wavtokenizer-dec" {
            hyper.in_range(name, 0, n_layer)?;
        }
    }
    if hyper.arch == "nanbeige" {
        let loops = hyper.u32("num_loops")?.unwrap_or(1);
        if u64::from(loops) * u64::from(n_layer) > u64::from(LAYERS) {
            bail!("`{}` is {loops}; with {n_layer} layers at most {LAYERS} in all", hyper.key("num_loops"));
        }
    }
    Ok(())
}

fn divides(hyper: Hyper<'_>, divisor: &str, archs: &[&str], dividend: &str) -> Result<(), String> {
    if !archs.contains(&hyper.arch) {
        return Ok(());
    }
    let (Some(n), Some(of)) = (hyper.u32(divisor)?, hyper.u32(dividend)?) else { return Ok(()) };
    if n == 0 || !of.is_multiple_of(n) {
        bail!("`{}` is {n}; expected a divisor of `{}`, {of}", hyper.key(divisor), hyper.key(dividend));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::gguf::hyper::Hyper;
    use crate::gguf::hyper::tests::model;
    use crate::gguf::value::Value;

    fn result(arch: &str, numbers: &[(&str, u32)]) -> Result<(), String> {
        let entries: Vec<_> = numbers.iter().map(|(name, n)| (*name, Value::U32(*n))).collect();
        check(Hyper::of(&model(arch, &entries)).unwrap())
    }

    #[test]
    fn ranges() {
        assert_eq!(result("llama", &[]), Ok(()));
        assert_eq!(result("llama", &[("full_attention_interval", 0)]), Ok(()));
        for (arch, name, n) in [
            ("llama", "vocab_size", u32::MAX),
            ("llama", "context_length", u32::MAX),
            ("mamba", "ssm.conv_kernel", 0),
            ("mamba", "ssm.time_step_rank", u32::MAX),
            ("qwen3next", "full_attention_interval", 0),
            ("rwkv7", "token_shift_count", 1),
            ("lfm2", "shortconv.l_cache", 1),
            ("t5", "decoder_block_count", u32::MAX),
            ("t5", "attention.relative_buckets_count", 0),
        ] {
            assert!(result(arch, &[(name, n)]).unwrap_err().contains(&format!("`{arch}.{name}` is {n}; expected")));
        }
    }

    #[test]
    fn relations() {
        let mamba2 = |rank, groups| {
            let rest = [("ssm.time_step_rank", rank), ("ssm.group_count", groups)];
            result("mamba2", &[&[("ssm.inner_size", 64)], &rest[..]].concat())
        };
        assert_eq!(mamba2(8, 4), Ok(()));
        assert!(mamba2(7, 1).unwrap_err().contains("a divisor of `mamba2.ssm.inner_size`, 64"));
        assert!(mamba2(8, 3).is_err() && mamba2(8, 16).is_err() && mamba2(8, 0).is_err());
        assert!(result("jamba", &[("ssm.inner_size", 32), ("embedding_length", 32)]).is_err());
        assert!(result("jamba", &[("ssm.inner_size", 64), ("embedding_length", 32)]).is_ok());
        assert!(result("nanbeige", &[("num_loops", 3), ("block_count", 200)]).is_err());
        assert!(result("wavtokenizer-dec", &[("convnext.block_count", 3), ("block_count", 2)]).is_err());
        assert!(result("rwkv6", &[("wkv.head_size", 5), ("embedding_length", 32)]).is_err());
        let dense = [("dense_2_feat_in", 16), ("embedding_length", 32)];
        assert!(result("gemma-embedding", &dense).is_err() && result("llama", &dense).is_ok());
    }
}
