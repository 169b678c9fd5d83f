//! Parameters of a context.

use crate::error::{Error, Result};
use crate::sys;
use crate::util::c_enum::c_enum;

c_enum! {
    /// How positions are stretched beyond the trained context.
    pub enum RopeScaling: sys::llama_rope_scaling_type, "RoPE scaling type" {
        /// As the model says.
        Unspecified = sys::LLAMA_ROPE_SCALING_TYPE_UNSPECIFIED,
        /// Not at all.
        None = sys::LLAMA_ROPE_SCALING_TYPE_NONE,
        /// Linearly.
        Linear = sys::LLAMA_ROPE_SCALING_TYPE_LINEAR,
        /// YaRN.
        Yarn = sys::LLAMA_ROPE_SCALING_TYPE_YARN,
        /// LongRoPE.
        LongRope = sys::LLAMA_ROPE_SCALING_TYPE_LONGROPE,
    }
}

c_enum! {
    /// How the embeddings of a sequence's tokens become one.
    pub enum Pooling: sys::llama_pooling_type, "pooling type" {
        /// As the model says.
        Unspecified = sys::LLAMA_POOLING_TYPE_UNSPECIFIED,
        /// Not at all: one embedding per token.
        None = sys::LLAMA_POOLING_TYPE_NONE,
        /// Their mean.
        Mean = sys::LLAMA_POOLING_TYPE_MEAN,
        /// The first token's (CLS).
        Cls = sys::LLAMA_POOLING_TYPE_CLS,
        /// The last token's.
        Last = sys::LLAMA_POOLING_TYPE_LAST,
        /// The classification head's scores, for rerankers.
        Rank = sys::LLAMA_POOLING_TYPE_RANK,
    }
}

c_enum! {
    /// Which tokens a token attends to.
    pub enum Attention: sys::llama_attention_type, "attention type" {
        /// As the model says.
        Unspecified = sys::LLAMA_ATTENTION_TYPE_UNSPECIFIED,
        /// Itself and those before it.
        Causal = sys::LLAMA_ATTENTION_TYPE_CAUSAL,
        /// All of its sequence.
        NonCausal = sys::LLAMA_ATTENTION_TYPE_NON_CAUSAL,
    }
}

c_enum! {
    /// When flash attention is used.
    pub enum FlashAttention: sys::llama_flash_attn_type, "flash attention type" {
        /// Where the device can.
        Auto = sys::LLAMA_FLASH_ATTN_TYPE_AUTO,
        /// Never.
        Disabled = sys::LLAMA_FLASH_ATTN_TYPE_DISABLED,
        /// Always.
        Enabled = sys::LLAMA_FLASH_ATTN_TYPE_ENABLED,
    }
}

c_enum! {
    /// Data type of the KV cache. Only types that every device can write are offered: others end the process in
    /// upstream.
    pub enum CacheType: sys::ggml_type, "cache type" {
        /// 32-bit floats.
        F32 = sys::GGML_TYPE_F32,
        /// 16-bit floats; the default.
        F16 = sys::GGML_TYPE_F16,
        /// bfloat16.
        Bf16 = sys::GGML_TYPE_BF16,
        /// 8-bit blocks.
        Q8_0 = sys::GGML_TYPE_Q8_0,
        /// 4-bit blocks.
        Q4_0 = sys::GGML_TYPE_Q4_0,
        /// 4-bit blocks with a minimum.
        Q4_1 = sys::GGML_TYPE_Q4_1,
        /// 5-bit blocks.
        Q5_0 = sys::GGML_TYPE_Q5_0,
        /// 5-bit blocks with a minimum.
        Q5_1 = sys::GGML_TYPE_Q5_1,
        /// 4-bit blocks, non-linear.
        Iq4Nl = sys::GGML_TYPE_IQ4_NL,
    }
}

impl CacheType {
    /// Whether values are stored in blocks of 32.
    pub(crate) fn is_quantized(self) -> bool {
        !matches!(self, CacheType::F32 | CacheType::F16 | CacheType::Bf16)
    }

    /// Bytes for 32 values.
    pub(crate) fn bytes_per_32(self) -> u64 {
        match self {
            CacheType::F32 => 128,
            CacheType::F16 | CacheType::Bf16 => 64,
            CacheType::Q8_0 => 34,
            CacheType::Q4_0 | CacheType::Iq4Nl => 18,
            CacheType::Q4_1 => 20,
            CacheType::Q5_0 => 22,
            CacheType::Q5_1 => 24,
        }
    }
}

/// Parameters of a [`Context`](crate::Context). The defaults are upstream's.
#[doc(alias = "llama_context_params")]
#[doc(alias = "llama_context_default_params")]
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default))]
#[non_exhaustive]
pub struct ContextParams {
    /// Size of the context in tokens, for all sequences together; 0 takes the model's training length. Upstream rounds
    /// it up to a multiple of 256. Default 512.
    pub n_ctx: u32,
    /// Most tokens in one call of [`decode`](crate::Context::decode). Default 2048; never more than `n_ctx` for causal
    /// models.
    pub n_batch: u32,
    /// Most tokens computed in one piece; must hold a whole input of models that are not causal. Default 512.
    pub n_ubatch: u32,
    /// Most sequences (1 to 256). Default 1.
    pub n_seq_max: u32,
    /// Most output rows of one decode; 0 means `n_batch`. Default 0.
    pub n_outputs_max: u32,
    /// Threads for single tokens (1 to 512). Default 4; see [`with_threads`](Self::with_threads).
    pub n_threads: i32,
    /// Threads for batches (1 to 512). Default 4.
    pub n_threads_batch: i32,
    /// RoPE scaling. Default: as the model says.
    pub rope_scaling: RopeScaling,
    /// Pooling of embeddings. Default: as the model says.
    pub pooling: Pooling,
    /// Attention. Default: as the model says.
    pub attention: Attention,
    /// Flash attention. Default: where the device can.
    pub flash_attention: FlashAttention,
    /// RoPE base frequency; 0 takes the model's. Default 0.
    pub rope_freq_base: f32,
    /// RoPE frequency scale; 0 takes the model's. Default 0.
    pub rope_freq_scale: f32,
    /// YaRN extrapolation mix factor; negative takes the model's. Default -1.
    pub yarn_ext_factor: f32,
    /// YaRN magnitude scaling; negative takes the model's. Default -1.
    pub yarn_attn_factor: f32,
    /// YaRN low correction dimension; negative takes the model's. Default -1.
    pub yarn_beta_fast: f32,
    /// YaRN high correction dimension; negative takes the model's. Default -1.
    pub yarn_beta_slow: f32,
    /// Original context length for YaRN; 0 takes the model's. Default 0.
    pub yarn_orig_ctx: u32,
    /// Type of the K cache. Default F16.
    pub type_k: CacheType,
    /// Type of the V cache; a quantized one needs flash attention. Default F16.
    pub type_v: CacheType,
    /// Give embeddings. Every token is an output then. Default false.
    pub embeddings: bool,
    /// Keep the KV cache on the GPU. Default true.
    pub offload_kqv: bool,
    /// Do not measure times. Default true, as upstream: [`perf`](crate::Context::perf) counts nothing then.
    pub no_perf: bool,
    /// Let the GPU do operations on host tensors. Default true.
    pub op_offload: bool,
    /// Full-size cache also for layers with a sliding window. Default true.
    pub swa_full: bool,
    /// One cache for all sequences. Default false.
    pub kv_unified: bool,
}

impl Default for ContextParams {
    fn default() -> ContextParams {
        ContextParams {
            n_ctx: 512,
            n_batch: 2048,
            n_ubatch: 512,
            n_seq_max: 1,
            n_outputs_max: 0,
            n_threads: sys::GGML_DEFAULT_N_THREADS as i32,
            n_threads_batch: sys::GGML_DEFAULT_N_THREADS as i32,
            rope_scaling: RopeScaling::Unspecified,
            pooling: Pooling::Unspecified,
            attention: Attention::Unspecified,
            flash_attention: FlashAttention::Auto,
            rope_freq_base: 0.0,
            rope_freq_scale: 0.0,
            yarn_ext_factor: -1.0,
            yarn_attn_factor: -1.0,
            yarn_beta_fast: -1.0,
            yarn_beta_slow: -1.0,
            yarn_orig_ctx: 0,
            type_k: CacheType::F16,
            type_v: CacheType::F16,
            embeddings: false,
            offload_kqv: true,
            no_perf: true,
            op_offload: true,
            swa_full: true,
            kv_unified: false,
        }
    }
}

impl ContextParams {
    /// Sets [`n_ctx`](Self::n_ctx).
    #[must_use]
    pub fn with_n_ctx(mut self, n_ctx: u32) -> Self {
        self.n_ctx = n_ctx;
        self
    }

    /// Sets [`n_batch`](Self::n_batch).
    #[must_use]
    pub fn with_n_batch(mut self, n_batch: u32) -> Self {
        self.n_batch = n_batch;
        self
    }

    /// Sets [`n_ubatch`](Self::n_ubatch).
    #[must_use]
    pub fn with_n_ubatch(mut self, n_ubatch: u32) -> Self {
        self.n_ubatch = n_ubatch;
        self
    }

    /// Sets [`n_seq_max`](Self::n_seq_max).
    #[must_use]
    pub fn with_n_seq_max(mut self, n_seq_max: u32) -> Self {
        self.n_seq_max = n_seq_max;
        self
    }

    /// Sets [`n_threads`](Self::n_threads) and [`n_threads_batch`](Self::n_threads_batch). As many as there are
    /// physical cores is a good choice; [`available_threads`](crate::available_threads) gives a number.
    #[must_use]
    pub fn with_threads(mut self, n_threads: i32) -> Self {
        self.n_threads = n_threads;
        self.n_threads_batch = n_threads;
        self
    }

    /// Sets [`embeddings`](Self::embeddings).
    #[must_use]
    pub fn with_embeddings(mut self, embeddings: bool) -> Self {
        self.embeddings = embeddings;
        self
    }

    /// Sets [`pooling`](Self::pooling).
    #[must_use]
    pub fn with_pooling(mut self, pooling: Pooling) -> Self {
        self.pooling = pooling;
        self
    }

    /// Sets [`attention`](Self::attention).
    #[must_use]
    pub fn with_attention(mut self, attention: Attention) -> Self {
        self.attention = attention;
        self
    }

    /// Sets [`flash_attention`](Self::flash_attention).
    #[must_use]
    pub fn with_flash_attention(mut self, flash_attention: FlashAttention) -> Self {
        self.flash_attention = flash_attention;
        self
    }

    /// Sets [`type_k`](Self::type_k) and [`type_v`](Self::type_v).
    #[must_use]
    pub fn with_cache_types(mut self, type_k: CacheType, type_v: CacheType) -> Self {
        self.type_k = type_k;
        self.type_v = type_v;
        self
    }

    /// Sets [`kv_unified`](Self::kv_unified).
    #[must_use]
    pub fn with_kv_unified(mut self, kv_unified: bool) -> Self {
        self.kv_unified = kv_unified;
        self
    }

    /// Switches the measuring of times on or off; see [`no_perf`](Self::no_perf).
    #[must_use]
    pub fn with_perf(mut self, measure: bool) -> Self {
        self.no_perf = !measure;
        self
    }

    /// Checks what upstream asserts, or takes without a check, and that no model changes.
    pub(crate) fn check(&self) -> Result<()> {
        const MAX_THREADS: i32 = sys::GGML_MAX_N_THREADS as i32;
        check("n_threads", self.n_threads, 1..=MAX_THREADS)?;
        check("n_threads_batch", self.n_threads_batch, 1..=MAX_THREADS)?;
        // Padding to 256 must not wrap 32 bits.
        check("n_ctx", self.n_ctx, 0..=1 << 31)?;
        // output_reserve: GGML_ASSERT(n_outputs_max <= cparams.n_outputs_max)
        check("n_batch", self.n_batch, 1..=1 << 22)?;
        check("n_ubatch", self.n_ubatch, 0..=1 << 22)?;
        check("n_seq_max", self.n_seq_max, 1..=sys_max_sequences())?;
        if self.n_outputs_max != 0 {
            check("n_outputs_max", self.n_outputs_max, self.n_seq_max..=1 << 22)?;
        }
        for (name, value) in [
            ("rope_freq_base", self.rope_freq_base),
            ("rope_freq_scale", self.rope_freq_scale),
            ("yarn_ext_factor", self.yarn_ext_factor),
            ("yarn_attn_factor", self.yarn_attn_factor),
            ("yarn_beta_fast", self.yarn_beta_fast),
            ("yarn_beta_slow", self.yarn_beta_slow),
        ] {
            if !value.is_finite() {
                return Err(Error::parameter(name, value, "a finite number"));
            }
        }
        // Upstream divides a length by the scale and converts it to an unsigned integer.
        if self.rope_freq_base < 0.0 {
            return Err(Error::parameter("rope_freq_base", self.rope_freq_base, "0 or more"));
        }
        if self.rope_freq_scale != 0.0 && !(1e-4..=1e4).contains(&self.rope_freq_scale) {
            return Err(Error::parameter("rope_freq_scale", self.rope_freq_scale, "0, or 0.0001 to 10000"));
        }
        if self.type_v.is_quantized() && self.flash_attention == FlashAttention::Disabled {
            return Err(Error::parameter(
                "type_v",
                format!("{:?}", self.type_v),
                "F32, F16 or Bf16 without flash attention",
            ));
        }
        // Without flash attention upstream does not check that rows are whole blocks.
        if self.type_k.is_quantized() && self.flash_attention == FlashAttention::Disabled {
            return Err(Error::parameter(
                "type_k",
                format!("{:?}", self.type_k),
                "F32, F16 or Bf16 without flash attention",
            ));
        }
        Ok(())
    }

    /// The C struct.
    pub(crate) fn to_c(&self) -> sys::llama_context_params {
        // SAFETY: gives a plain struct.
        let mut c = unsafe { sys::llama_context_default_params() };
        c.n_ctx = self.n_ctx;
        c.n_batch = self.n_batch;
        c.n_ubatch = self.n_ubatch;
        c.n_seq_max = self.n_seq_max;
        c.n_outputs_max = self.n_outputs_max;
        c.n_threads = self.n_threads;
        c.n_threads_batch = self.n_threads_batch;
        c.rope_scaling_type = self.rope_scaling.to_c();
        c.pooling_type = self.pooling.to_c();
        c.attention_type = self.attention.to_c();
        c.flash_attn_type = self.flash_attention.to_c();
        c.rope_freq_base = self.rope_freq_base;
        c.rope_freq_scale = self.rope_freq_scale;
        c.yarn_ext_factor = self.yarn_ext_factor;
        c.yarn_attn_factor = self.yarn_attn_factor;
        c.yarn_beta_fast = self.yarn_beta_fast;
        c.yarn_beta_slow = self.yarn_beta_slow;
        c.yarn_orig_ctx = self.yarn_orig_ctx;
        c.type_k = self.type_k.to_c();
        c.type_v = self.type_v.to_c();
        c.embeddings = self.embeddings;
        c.offload_kqv = self.offload_kqv;
        c.no_perf = self.no_perf;
        c.op_offload = self.op_offload;
        c.swa_full = self.swa_full;
        c.kv_unified = self.kv_unified;
        c
    }

    /// The values of a C struct.
    #[cfg(test)]
    pub(crate) fn from_c(c: &sys::llama_context_params) -> Result<ContextParams> {
        Ok(ContextParams {
            n_ctx: c.n_ctx,
            n_batch: c.n_batch,
            n_ubatch: c.n_ubatch,
            n_seq_max: c.n_seq_max,
            n_outputs_max: c.n_outputs_max,
            n_threads: c.n_threads,
            n_threads_batch: c.n_threads_batch,
            rope_scaling: RopeScaling::from_c(c.rope_scaling_type)?,
            pooling: Pooling::from_c(c.pooling_type)?,
            attention: Attention::from_c(c.attention_type)?,
            flash_attention: FlashAttention::from_c(c.flash_attn_type)?,
            rope_freq_base: c.rope_freq_base,
            rope_freq_scale: c.rope_freq_scale,
            yarn_ext_factor: c.yarn_ext_factor,
            yarn_attn_factor: c.yarn_attn_factor,
            yarn_beta_fast: c.yarn_beta_fast,
            yarn_beta_slow: c.yarn_beta_slow,
            yarn_orig_ctx: c.yarn_orig_ctx,
            type_k: CacheType::from_c(c.type_k)?,
            type_v: CacheType::from_c(c.type_v)?,
            embeddings: c.embeddings,
            offload_kqv: c.offload_kqv,
            no_perf: c.no_perf,
            op_offload: c.op_offload,
            swa_full: c.swa_full,
            kv_unified: c.kv_unified,
        })
    }
}

/// The range check that all parameters share.
pub(crate) fn check<T: PartialOrd + ToString + Copy>(
    name: &'static str,
    value: T,
    range: std::ops::RangeInclusive<T>,
) -> Result<()> {
    if range.contains(&value) {
        return Ok(());
    }
    Err(Error::parameter(name, value, format!("{} to {}", range.start().to_string(), range.end().to_string())))
}

fn sys_max_sequences() -> u32 {
    // SAFETY: gives a constant.
    unsafe { sys::llama_max_parallel_sequences() }.try_into().unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_those_of_upstream() {
        // SAFETY: gives a plain struct.
        let upstream = unsafe { sys::llama_context_default_params() };
        assert_eq!(ContextParams::default(), ContextParams::from_c(&upstream).unwrap());
    }

    #[test]
    fn parameters_survive_the_way_to_c() {
        let params = ContextParams {
            n_ctx: 1024,
            n_batch: 77,
            n_ubatch: 33,
            n_seq_max: 3,
            n_outputs_max: 5,
            n_threads: 2,
            n_threads_batch: 7,
            rope_scaling: RopeScaling::Yarn,
            pooling: Pooling::Cls,
            attention: Attention::NonCausal,
            flash_attention: FlashAttention::Enabled,
            rope_freq_base: 1.5,
            rope_freq_scale: 0.5,
            yarn_ext_factor: 0.25,
            yarn_attn_factor: 0.75,
            yarn_beta_fast: 3.0,
            yarn_beta_slow: 4.0,
            yarn_orig_ctx: 9,
            type_k: CacheType::Q8_0,
            type_v: CacheType::Q4_1,
            embeddings: true,
            offload_kqv: false,
            no_perf: false,
            op_offload: false,
            swa_full: false,
            kv_unified: true,
        };
        assert_eq!(ContextParams::from_c(&params.to_c()).unwrap(), params);
    }
}
