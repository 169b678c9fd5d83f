//! Mixtures of experts: the assertions of `llama_model_base::load_hparams`.

use crate::gguf::arch;
use crate::gguf::check_sizes::MAX_LAYERS;
use crate::gguf::hyper::Hyper;
use crate::gguf::problem::bail;

/// `LLAMA_MAX_EXPERTS`.
const MAX_EXPERTS: u32 = 1024;

pub(crate) fn check(hyper: Hyper<'_>) -> Result<(), String> {
    let Some(n_layer @ 1..=MAX_LAYERS) = hyper.u32("block_count")? else { return Ok(()) };
    let mut n_expert = hyper.in_range("expert_count", 0, MAX_EXPERTS)?.unwrap_or(0);
    let used = hyper.per_layer("expert_used_count", n_layer)?;
    let mut used = used.and_then(|used| used.into_iter().max()).unwrap_or(0);
    // Upstream takes these for dense models.
    if ["hunyuan-dense", "hunyuan_vl"].contains(&hyper.arch) && n_expert <= 1 {
        (n_expert, used) = (0, 0);
    }
    let fits = if n_expert == 0 { used == 0 } else { (1..=n_expert).contains(&used) };
    if !fits {
        bail!(
            "`{}` is {used}; expected {} of the {n_expert} experts (`{}`)",
            hyper.key("expert_used_count"),
            if n_expert == 0 { "none" } else { "at least one and at most all" },
            hyper.key("expert_count")
        );
    }
    if n_expert == 0 && arch::needs_experts(hyper.arch) {
        bail!("`{}` is 0 or missing; the architecture needs experts", hyper.key("expert_count"));
    }
    check_groups(hyper, n_expert)
}

fn check_groups(hyper: Hyper<'_>, n_expert: u32) -> Result<(), String> {
    let key = hyper.key("expert_group_count");
    let groups = hyper.u32("expert_group_count")?.unwrap_or(0);
    if n_expert == 0 && groups > 0 || n_expert > 0 && groups >= n_expert {
        bail!("`{key}` is {groups}; expected less than the {n_expert} experts, or 0");
    }
    if groups > 1 {
        if !n_expert.is_multiple_of(groups) {
            bail!("`{key}` is {groups}; expected a divisor of the {n_expert} experts");
        }
        let used = hyper.u32("expert_group_used_count")?.unwrap_or(0);
        if !(1..groups).contains(&used) {
            bail!("`{}` is {used}; expected 1 to {}", hyper.key("expert_group_used_count"), groups - 1);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::gguf::hyper::Hyper;
    use crate::gguf::hyper::tests::{integers, model};
    use crate::gguf::value::{Value, ValueType};

    fn result(arch: &str, numbers: &[(&str, u32)]) -> Result<(), String> {
        let mut entries = vec![("block_count", Value::U32(2))];
        entries.extend(numbers.iter().map(|(name, n)| (*name, Value::U32(*n))));
        check(Hyper::of(&model(arch, &entries)).unwrap())
    }

    #[test]
    fn counts() {
        let of = |n, used| result("llama", &[("expert_count", n), ("expert_used_count", used)]);
        assert_eq!(result("llama", &[]), Ok(()));
        assert_eq!(of(8, 2), Ok(()));
        assert_eq!(of(0, 0), Ok(()));
        for (n, used) in [(8, 9), (8, 0), (0, 2)] {
            assert!(of(n, used).unwrap_err().contains(&format!("`llama.expert_used_count` is {used}")));
        }
        assert!(of(1025, 1).unwrap_err().contains("expected 0 to 1024"));
        assert!(result("llama", &[("expert_used_count", 2)]).is_err());
        assert_eq!(result("hunyuan-dense", &[("expert_count", 1), ("expert_used_count", 5)]), Ok(()));
        assert!(result("qwen3moe", &[]).unwrap_err().contains("needs experts"));
        let per_layer = model(
            "llama",
            &[
                ("block_count", Value::U32(2)),
                ("expert_count", Value::U32(4)),
                ("expert_used_count", integers(ValueType::U32, &[1, 5])),
            ],
        );
        assert!(check(Hyper::of(&per_layer).unwrap()).unwrap_err().contains("is 5"));
    }

    #[test]
    fn groups() {
        let of = |groups, used| {
            result(
                "deepseek2",
                &[
                    ("expert_count", 8),
                    ("expert_used_count", 2),
                    ("expert_group_count", groups),
                    ("expert_group_used_count", used),
                ],
            )
        };
        assert_eq!(of(4, 2), Ok(()));
        assert_eq!(of(1, 9), Ok(()));
        assert!(of(8, 1).unwrap_err().contains("less than the 8 experts"));
        assert!(of(3, 1).unwrap_err().contains("a divisor of the 8 experts"));
        assert!(of(4, 0).unwrap_err().contains("expected 1 to 3"));
        assert!(of(4, 4).unwrap_err().contains("expected 1 to 3"));
        assert!(result("llama", &[("expert_group_count", 2)]).is_err());
    }
}
