//! Parameters of loading a model.

use std::ffi::CString;

use crate::error::{Error, Result};
use crate::ggml::{BufferType, Device, DeviceKind};
use crate::sys;
use crate::util::c_enum::c_enum;
use crate::util::cstr::to_c;

c_enum! {
    /// How a model is spread over several GPUs.
    pub enum SplitMode: sys::llama_split_mode, "split mode" {
        /// One GPU only: [`ModelParams::main_gpu`].
        None = sys::LLAMA_SPLIT_MODE_NONE,
        /// Layer by layer.
        Layer = sys::LLAMA_SPLIT_MODE_LAYER,
        /// By rows of the matrices.
        Row = sys::LLAMA_SPLIT_MODE_ROW,
        /// Tensor parallelism; needs flash attention.
        Tensor = sys::LLAMA_SPLIT_MODE_TENSOR,
    }
}

c_enum! {
    /// How the file is read.
    pub enum LoadMode: sys::llama_load_mode, "load mode" {
        /// As the devices allow.
        Auto = sys::LLAMA_LOAD_MODE_AUTO,
        /// Plain reads.
        None = sys::LLAMA_LOAD_MODE_NONE,
        /// Memory-mapped.
        Mmap = sys::LLAMA_LOAD_MODE_MMAP,
        /// Kept from being swapped out.
        Mlock = sys::LLAMA_LOAD_MODE_MLOCK,
        /// Memory-mapped and kept from being swapped out.
        MmapMlock = sys::LLAMA_LOAD_MODE_MMAP_MLOCK,
        /// Direct I/O where the system has it.
        DirectIo = sys::LLAMA_LOAD_MODE_DIRECT_IO,
    }
}

c_enum! {
    /// Whether rows of marked tensors are read when they are needed.
    pub enum LazyMode: sys::llama_lazy_mode, "lazy mode" {
        /// Always read whole tensors up front.
        Off = sys::LLAMA_LAZY_MODE_OFF,
        /// For marked tensors above 4 GiB, when memory-mapped.
        Auto = sys::LLAMA_LAZY_MODE_AUTO,
        /// For all marked tensors, when memory-mapped.
        On = sys::LLAMA_LAZY_MODE_ON,
    }
}

/// A value in place of one in the file's metadata.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum MetadataOverride {
    /// An integer.
    Int(i64),
    /// A float.
    Float(f64),
    /// A truth value.
    Bool(bool),
    /// A text of at most 127 bytes.
    Str(String),
}

/// Puts the tensors whose names match a pattern into buffers of a type.
#[derive(Debug, Clone, PartialEq)]
pub struct TensorBufferOverride {
    /// A regular expression (ECMAScript) over tensor names.
    pub pattern: String,
    /// Where they go.
    pub buffer_type: BufferType,
}

/// Parameters of [`Model::load`](crate::Model::load). The defaults are upstream's.
#[doc(alias = "llama_model_params")]
#[doc(alias = "llama_model_default_params")]
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ModelParams {
    /// Devices to use; `None` takes all, an empty list none but the CPU. At most 14.
    pub devices: Option<Vec<Device>>,
    /// Tensors that go elsewhere than by default.
    pub tensor_buffer_overrides: Vec<TensorBufferOverride>,
    /// Layers to keep on GPUs; negative means all. Default -1.
    pub n_gpu_layers: i32,
    /// How several GPUs share the model. Default by layers.
    pub split_mode: SplitMode,
    /// How the file is read. Default: as the devices allow.
    pub load_mode: LoadMode,
    /// Reading rows on demand. Default [`LazyMode::Auto`].
    pub lazy_mode: LazyMode,
    /// The GPU that is used with [`SplitMode::None`]. Default 0.
    pub main_gpu: i32,
    /// Share of each device, in any unit; empty means by free memory.
    pub tensor_split: Vec<f32>,
    /// Metadata values in place of the file's. Keys of at most 127 bytes.
    pub metadata_overrides: Vec<(String, MetadataOverride)>,
    /// Load the vocabulary only. Default false.
    pub vocab_only: bool,
    /// Check every value of the tensors. Default false.
    pub check_tensors: bool,
    /// Repack weights for the CPU where that is faster. Default true.
    pub use_extra_bufts: bool,
    /// Do not use host buffers of GPUs. Default false.
    pub no_host: bool,
    /// Read metadata and plan the memory, but allocate nothing. No context can be made. Default false.
    pub no_alloc: bool,
    /// Load the layers for multi-token prediction. Default false.
    pub load_mtp: bool,
}

impl Default for ModelParams {
    fn default() -> ModelParams {
        ModelParams {
            devices: None,
            tensor_buffer_overrides: Vec::new(),
            n_gpu_layers: -1,
            split_mode: SplitMode::Layer,
            load_mode: LoadMode::Auto,
            lazy_mode: LazyMode::Auto,
            main_gpu: 0,
            tensor_split: Vec::new(),
            metadata_overrides: Vec::new(),
            vocab_only: false,
            check_tensors: false,
            use_extra_bufts: true,
            no_host: false,
            no_alloc: false,
            load_mtp: false,
        }
    }
}

impl ModelParams {
    /// Sets [`devices`](Self::devices).
    #[must_use]
    pub fn with_devices(mut self, devices: impl IntoIterator<Item = Device>) -> Self {
        self.devices = Some(devices.into_iter().collect());
        self
    }

    /// Sets [`n_gpu_layers`](Self::n_gpu_layers).
    #[must_use]
    pub fn with_n_gpu_layers(mut self, n_gpu_layers: i32) -> Self {
        self.n_gpu_layers = n_gpu_layers;
        self
    }

    /// Sets [`split_mode`](Self::split_mode).
    #[must_use]
    pub fn with_split_mode(mut self, split_mode: SplitMode) -> Self {
        self.split_mode = split_mode;
        self
    }

    /// Sets [`load_mode`](Self::load_mode).
    #[must_use]
    pub fn with_load_mode(mut self, load_mode: LoadMode) -> Self {
        self.load_mode = load_mode;
        self
    }

    /// Sets [`vocab_only`](Self::vocab_only).
    #[must_use]
    pub fn with_vocab_only(mut self, vocab_only: bool) -> Self {
        self.vocab_only = vocab_only;
        self
    }

    /// Sets [`check_tensors`](Self::check_tensors).
    #[must_use]
    pub fn with_check_tensors(mut self, check_tensors: bool) -> Self {
        self.check_tensors = check_tensors;
        self
    }

    /// Adds to [`metadata_overrides`](Self::metadata_overrides).
    #[must_use]
    pub fn with_metadata_override(mut self, key: impl Into<String>, value: MetadataOverride) -> Self {
        self.metadata_overrides.push((key.into(), value));
        self
    }
}

/// The C struct together with everything that it points to.
pub(crate) struct CModelParams {
    pub(crate) params: sys::llama_model_params,
    _devices: Vec<sys::ggml_backend_dev_t>,
    _overrides: Vec<sys::llama_model_kv_override>,
    _patterns: Vec<CString>,
    _buffer_types: Vec<sys::llama_model_tensor_buft_override>,
    _tensor_split: Vec<f32>,
}

/// Upstream asserts on more than 16 backends; one is the CPU, and one may be an accelerator of it.
const MAX_DEVICES: usize = 16 - 2;

impl CModelParams {
    pub(crate) fn new(params: &ModelParams) -> Result<CModelParams> {
        // SAFETY: gives a plain struct.
        let mut c = unsafe { sys::llama_model_default_params() };
        let devices = device_list(params.devices.as_deref())?;
        let overrides = metadata_overrides(&params.metadata_overrides)?;
        let (patterns, buffer_types) = buffer_overrides(&params.tensor_buffer_overrides)?;
        let tensor_split = tensor_split(&params.tensor_split)?;
        // Upstream follows a null pointer when a context is made.
        let is_gpu = |device: &Device| matches!(device.kind(), DeviceKind::Gpu | DeviceKind::IntegratedGpu);
        if let Some(other) = params.devices.iter().flatten().find(|device| !is_gpu(device))
            && params.split_mode == SplitMode::Tensor
        {
            return Err(Error::parameter("devices", other.name(), "GPUs only for tensor parallelism"));
        }
        if params.main_gpu < 0 {
            return Err(Error::parameter("main_gpu", params.main_gpu, "0 or more"));
        }
        // Moving a Vec does not move what it points to, so these pointers stay good.
        if !devices.is_empty() {
            c.devices = devices.as_ptr().cast_mut();
        }
        if !overrides.is_empty() {
            c.kv_overrides = overrides.as_ptr();
        }
        if !buffer_types.is_empty() {
            c.tensor_buft_overrides = buffer_types.as_ptr();
        }
        if !tensor_split.is_empty() {
            c.tensor_split = tensor_split.as_ptr();
        }
        c.n_gpu_layers = params.n_gpu_layers;
        c.split_mode = params.split_mode.to_c();
        // Upstream asserts that nothing is mapped without memory to allocate.
        c.load_mode = if params.no_alloc { LoadMode::None } else { params.load_mode }.to_c();
        c.lazy_mode = params.lazy_mode.to_c();
        c.main_gpu = params.main_gpu;
        c.vocab_only = params.vocab_only;
        c.check_tensors = params.check_tensors;
        c.use_extra_bufts = params.use_extra_bufts;
        c.no_host = params.no_host;
        c.no_alloc = params.no_alloc;
        c.load_mtp = params.load_mtp;
        Ok(CModelParams {
            params: c,
            _devices: devices,
            _overrides: overrides,
            _patterns: patterns,
            _buffer_types: buffer_types,
            _tensor_split: tensor_split,
        })
    }
}

/// The devices with the null that ends the list; without a list nothing, which upstream reads as "all".
fn device_list(devices: Option<&[Device]>) -> Result<Vec<sys::ggml_backend_dev_t>> {
    let Some(devices) = devices else { return Ok(Vec::new()) };
    if devices.len() > MAX_DEVICES {
        return Err(Error::parameter(
            "devices",
            format!("{} devices", devices.len()),
            format!("at most {MAX_DEVICES}"),
        ));
    }
    Ok(devices.iter().map(|device| device.as_ptr()).chain([std::ptr::null_mut()]).collect())
}

fn metadata_overrides(overrides: &[(String, MetadataOverride)]) -> Result<Vec<sys::llama_model_kv_override>> {
    if overrides.is_empty() {
        return Ok(Vec::new());
    }
    let mut list = Vec::with_capacity(overrides.len() + 1);
    for (key, value) in overrides {
        let mut c = sys::llama_model_kv_override::default();
        if key.is_empty() {
            return Err(Error::parameter("metadata_overrides", "an empty key", "a key of 1 to 127 bytes"));
        }
        copy_text("the key of a metadata override", key, &mut c.key)?;
        match value {
            MetadataOverride::Int(value) => {
                c.tag = sys::LLAMA_KV_OVERRIDE_TYPE_INT;
                c.__bindgen_anon_1.val_i64 = *value;
            }
            MetadataOverride::Float(value) => {
                c.tag = sys::LLAMA_KV_OVERRIDE_TYPE_FLOAT;
                c.__bindgen_anon_1.val_f64 = *value;
            }
            MetadataOverride::Bool(value) => {
                c.tag = sys::LLAMA_KV_OVERRIDE_TYPE_BOOL;
                c.__bindgen_anon_1.val_bool = *value;
            }
            MetadataOverride::Str(value) => {
                c.tag = sys::LLAMA_KV_OVERRIDE_TYPE_STR;
                let mut text = [0; 128];
                copy_text("the value of a metadata override", value, &mut text)?;
                c.__bindgen_anon_1.val_str = text;
            }
        }
        list.push(c);
    }
    // An empty key ends the list.
    list.push(sys::llama_model_kv_override::default());
    Ok(list)
}

/// Copies a text into a C array, with its terminating NUL.
fn copy_text(what: &'static str, text: &str, target: &mut [std::ffi::c_char; 128]) -> Result<()> {
    let text = to_c(what, text)?;
    let bytes = text.as_bytes_with_nul();
    if bytes.len() > target.len() {
        let expected = format!("at most {} bytes", target.len() - 1);
        return Err(Error::parameter(what, format!("{} bytes long", bytes.len() - 1), expected));
    }
    for (to, from) in target.iter_mut().zip(bytes) {
        *to = *from as std::ffi::c_char;
    }
    Ok(())
}

/// Longest pattern of a tensor buffer override.
const MAX_PATTERN: usize = 1024;

type BufferOverrides = (Vec<CString>, Vec<sys::llama_model_tensor_buft_override>);

fn buffer_overrides(overrides: &[TensorBufferOverride]) -> Result<BufferOverrides> {
    // SAFETY: gives a constant.
    let max = unsafe { sys::llama_max_tensor_buft_overrides() };
    if overrides.len() >= max {
        let given = format!("{} entries", overrides.len());
        return Err(Error::parameter("tensor_buffer_overrides", given, format!("fewer than {max}")));
    }
    let mut patterns = Vec::with_capacity(overrides.len());
    let mut list = Vec::with_capacity(overrides.len() + 1);
    for entry in overrides {
        // The C++ library's regular expressions recurse for each parenthesis.
        if entry.pattern.len() > MAX_PATTERN {
            let given = format!("{} bytes long", entry.pattern.len());
            return Err(Error::parameter(
                "the pattern of a tensor buffer override",
                given,
                format!("at most {MAX_PATTERN} bytes"),
            ));
        }
        let pattern = to_c("the pattern of a tensor buffer override", entry.pattern.as_str())?;
        list.push(sys::llama_model_tensor_buft_override {
            pattern: pattern.as_ptr(),
            buft: entry.buffer_type.as_ptr(),
        });
        patterns.push(pattern);
    }
    if !list.is_empty() {
        list.push(sys::llama_model_tensor_buft_override::default());
    }
    Ok((patterns, list))
}

/// The shares, padded with zeros to the length that upstream reads.
fn tensor_split(shares: &[f32]) -> Result<Vec<f32>> {
    if shares.is_empty() {
        return Ok(Vec::new());
    }
    // SAFETY: gives a constant.
    let max = unsafe { sys::llama_max_devices() };
    if shares.len() > max {
        let given = format!("{} shares", shares.len());
        return Err(Error::parameter("tensor_split", given, format!("at most {max}")));
    }
    if let Some(bad) = shares.iter().find(|share| !(share.is_finite() && **share >= 0.0)) {
        return Err(Error::parameter("tensor_split", bad, "finite shares of 0 or more"));
    }
    let mut padded = shares.to_vec();
    padded.resize(max, 0.0);
    Ok(padded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_those_of_upstream() {
        // SAFETY: gives a plain struct.
        let c = unsafe { sys::llama_model_default_params() };
        let ours = ModelParams::default();
        assert!(c.devices.is_null() && c.tensor_buft_overrides.is_null() && c.tensor_split.is_null());
        assert!(c.kv_overrides.is_null());
        assert_eq!(ours.n_gpu_layers, c.n_gpu_layers);
        assert_eq!(ours.split_mode, SplitMode::from_c(c.split_mode).unwrap());
        assert_eq!(ours.load_mode, LoadMode::from_c(c.load_mode).unwrap());
        assert_eq!(ours.lazy_mode, LazyMode::from_c(c.lazy_mode).unwrap());
        assert_eq!(ours.main_gpu, c.main_gpu);
        let ours_flags =
            [ours.vocab_only, ours.check_tensors, ours.use_extra_bufts, ours.no_host, ours.no_alloc, ours.load_mtp];
        let c_flags = [c.vocab_only, c.check_tensors, c.use_extra_bufts, c.no_host, c.no_alloc, c.load_mtp];
        assert_eq!(ours_flags, c_flags);
    }

    #[test]
    fn overrides_are_terminated_and_checked() {
        let list = metadata_overrides(&[("a.b".to_owned(), MetadataOverride::Str("x".repeat(127)))]).unwrap();
        assert_eq!(list.len(), 2);
        assert_eq!(list[1].key[0], 0);
        for bad in [("", "x".to_owned()), ("k", "x".repeat(128)), ("k", "a\0b".to_owned())] {
            assert!(metadata_overrides(&[(bad.0.to_owned(), MetadataOverride::Str(bad.1))]).is_err());
        }
        assert!(metadata_overrides(&[("k".repeat(128), MetadataOverride::Int(1))]).is_err());
    }
}
