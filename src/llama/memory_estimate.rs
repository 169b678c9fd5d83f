//! Refuses a context whose memory could not exist. Linux grants allocations beyond what there is and ends the process
//! when they are touched, so upstream cannot report this itself.

use crate::error::{Error, Result};
use crate::ggml::{self, DeviceKind};
use crate::llama::context_params::ContextParams;
use crate::llama::model::Model;

/// An error when the KV cache alone would take more than the machine has left.
pub(crate) fn check(model: &Model, params: &ContextParams) -> Result<()> {
    // A GPU's allocation fails in the ordinary way, and how much of the cache lies there is upstream's choice.
    let gpu = |device: ggml::Device| matches!(device.kind(), DeviceKind::Gpu | DeviceKind::IntegratedGpu);
    if params.offload_kqv && ggml::devices()?.into_iter().any(gpu) {
        return Ok(());
    }
    let Some(available) = available_memory() else { return Ok(()) };
    let n_ctx = match params.n_ctx {
        0 => u64::try_from(model.n_ctx_train()).unwrap_or(0),
        n_ctx => u64::from(n_ctx),
    };
    let needed = cache_bytes(model, params, n_ctx);
    if needed > available {
        return Err(Error::parameter(
            "n_ctx",
            n_ctx,
            format!(
                "a context whose cache fits into the {} MiB that are free; this one needs at least {} MiB",
                available >> 20,
                needed >> 20
            ),
        ));
    }
    Ok(())
}

/// A lower bound of the cache's size.
fn cache_bytes(model: &Model, params: &ContextParams, n_ctx: u64) -> u64 {
    // Bookkeeping per cell, about what upstream's vectors take.
    let cells = n_ctx.saturating_mul(32);
    if model.is_recurrent() {
        return cells;
    }
    let count = |n: i32| u64::try_from(n).unwrap_or(0);
    // Layers with a sliding window or a recurrent state need less; how many there are is not told. An eighth attends
    // to everything in all models known.
    let layers = match model.n_swa() > 0 && !params.swa_full || model.is_hybrid() {
        true => count(model.n_layer()).div_ceil(8),
        false => count(model.n_layer()),
    };
    let head = count(model.n_embd()) / count(model.n_head()).max(1);
    let width = |named: Option<u64>| named.unwrap_or(head).saturating_mul(count(model.n_head_kv()));
    let header = model.header();
    let per_32 = width(header.key_length)
        .saturating_mul(params.type_k.bytes_per_32())
        .saturating_add(width(header.value_length).saturating_mul(params.type_v.bytes_per_32()));
    (per_32.saturating_mul(layers) / 32).saturating_mul(n_ctx).saturating_add(cells)
}

/// Bytes that the process may still take, where the system tells.
fn available_memory() -> Option<u64> {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    {
        let system = meminfo(&std::fs::read_to_string("/proc/meminfo").ok()?)?;
        let group =
            |name: &str| std::fs::read_to_string(format!("/sys/fs/cgroup/{name}")).ok()?.trim().parse::<u64>().ok();
        // The control group's own use counts its file cache, which can go; only its limit is certain.
        Some(group("memory.max").map_or(system, |limit| limit.min(system)))
    }
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    {
        let cpu = ggml::devices().ok()?.into_iter().find(|device| device.kind() == DeviceKind::Cpu)?;
        cpu.memory().ok().map(|memory| memory.total as u64)
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn meminfo(text: &str) -> Option<u64> {
    let value = |key: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(key))?;
        line.trim().trim_end_matches("kB").trim().parse::<u64>().ok()
    };
    Some((value("MemAvailable:")? + value("SwapFree:").unwrap_or(0)) << 10)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::meminfo;

    #[test]
    fn meminfo_counts_available_memory_and_swap() {
        let text = "MemTotal:  100 kB\nMemAvailable:     40 kB\nSwapFree:   2 kB\n";
        assert_eq!(meminfo(text), Some(42 << 10));
        assert_eq!(meminfo("MemTotal: 1 kB\n"), None);
    }
}
