//! A loaded model.

use std::ffi::{CString, c_char};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::sync::Arc;

use crate::callback::Progress;
use crate::error::{Error, Result};
use crate::gguf;
use crate::llama::context::Context;
use crate::llama::context_params::ContextParams;
use crate::llama::model_params::{CModelParams, MetadataOverride, ModelParams};
use crate::llama::token::Token;
use crate::llama::vocab::Vocab;
use crate::raw::fault;
use crate::raw::model::RawModel;
use crate::raw::runtime;
use crate::sys;
use crate::util::cstr::{from_c, path_to_c, to_c};

/// A model: a handle that is cheap to clone and can be sent and shared freely.
///
/// Contexts, vocabularies and samplers made from it keep the weights alive; they may be dropped in any order, on any
/// thread. The last one frees the weights.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use ggml_llama::{Model, ModelParams};
/// # let path = ggml_llama_testkit::tiny_llama_path()?;
/// let model = Model::load(path, &ModelParams::default())?;
/// println!("{}: {} parameters", model.description(), model.n_params());
/// # Ok(())
/// # }
/// ```
#[doc(alias = "llama_model")]
#[derive(Clone)]
pub struct Model {
    raw: Arc<RawModel>,
    facts: Arc<Facts>,
}

/// What is read once, at load time: upstream changes some of it when a context is made.
struct Facts {
    path: PathBuf,
    header: gguf::Header,
    n_ctx_train: i32,
    weights: Weights,
}

/// Whether there are weights to compute with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Weights {
    Loaded,
    VocabOnly,
    NotAllocated,
}

/// How positions are encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RopeType {
    /// No rotary embedding.
    None,
    /// Pairs of neighbours.
    Norm,
    /// Pairs of halves (GPT-NeoX).
    Neox,
    /// Several positions per token (multimodal).
    Mrope,
    /// Interleaved multimodal.
    Imrope,
    /// Vision.
    Vision,
    /// A type that this crate does not know.
    Unknown(i64),
}

impl Model {
    /// Loads a model from a GGUF file. The first of a split file's parts (`name-00001-of-00003.gguf`) loads them all.
    ///
    /// # Errors
    ///
    /// [`Error::File`] and [`Error::InvalidGguf`] for files that are missing, unreadable or malformed;
    /// [`Error::ModelLoad`] with upstream's words when it refuses the model; [`Error::InvalidParameter`] for parameters
    /// that cannot work; [`Error::MissingCpuFeatures`] when this machine cannot run the compiled code.
    #[doc(alias = "llama_model_load_from_file")]
    pub fn load(path: impl AsRef<Path>, params: &ModelParams) -> Result<Model> {
        Model::load_paths(&[path.as_ref()], params, None)
    }

    /// Loads a model and reports progress from 0.0 to 1.0. [`ControlFlow::Break`] stops the loading.
    ///
    /// A panic in the callback stops the loading too, and goes on once upstream has returned.
    ///
    /// # Errors
    ///
    /// [`Error::LoadCancelled`] when the callback stopped it, else as [`Model::load`].
    #[doc(alias = "llama_progress_callback")]
    pub fn load_with_progress(
        path: impl AsRef<Path>,
        params: &ModelParams,
        mut progress: impl FnMut(f32) -> ControlFlow<()>,
    ) -> Result<Model> {
        Model::load_paths(&[path.as_ref()], params, Some(&mut progress))
    }

    /// Loads a model from the parts of a split file, in their order, whatever their names are.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidParameter`] for an empty list, else as [`Model::load`].
    #[doc(alias = "llama_model_load_from_splits")]
    pub fn load_splits<P: AsRef<Path>>(paths: &[P], params: &ModelParams) -> Result<Model> {
        let paths: Vec<&Path> = paths.iter().map(AsRef::as_ref).collect();
        Model::load_paths(&paths, params, None)
    }

    fn load_paths(
        paths: &[&Path],
        params: &ModelParams,
        progress: Option<&mut dyn FnMut(f32) -> ControlFlow<()>>,
    ) -> Result<Model> {
        let Some(first) = paths.first() else {
            return Err(Error::parameter("paths", "an empty list", "at least one file"));
        };
        runtime::start()?;
        let c_paths: Vec<CString> = paths.iter().map(|path| path_to_c(path)).collect::<Result<_>>()?;
        let mut pointers: Vec<*const c_char> = c_paths.iter().map(|path| path.as_ptr()).collect();
        let mut header = None;
        for path in paths {
            let part = gguf::check_file(path)?;
            header.get_or_insert(part);
        }
        let header = header.unwrap_or_default();
        gguf::check_overrides(&header, &overrides(&params.metadata_overrides))
            .map_err(|reason| Error::parameter("metadata_overrides", "not usable", reason))?;
        let mut c_params = CModelParams::new(params)?;
        let mut progress = Progress::new(progress);
        c_params.params.progress_callback = Some(Progress::trampoline);
        c_params.params.progress_callback_user_data = progress.user_data();
        let (result, detail) = fault::call_logged(|status| {
            // SAFETY: the paths and the parameters with all that they point to live through the call, and so does the
            // progress state, which only the trampoline uses meanwhile.
            unsafe { sys::gl_model_load(status, pointers.as_mut_ptr(), pointers.len(), c_params.params) }
        });
        let cancelled = progress.finish();
        let path = first.to_path_buf();
        let ptr = match result {
            Ok(ptr) => NonNull::new(ptr),
            Err(fault) => return Err(fault.into_error("llama_model_load_from_file")),
        };
        let Some(ptr) = ptr else {
            return Err(if cancelled { Error::LoadCancelled } else { Error::ModelLoad { path, detail } });
        };
        // SAFETY: upstream gave a model that is ours to free.
        let raw = Arc::new(unsafe { RawModel::from_ptr(ptr) });
        let weights = match (params.vocab_only, params.no_alloc) {
            (true, _) => Weights::VocabOnly,
            (false, true) => Weights::NotAllocated,
            (false, false) => Weights::Loaded,
        };
        // SAFETY: the model is valid.
        let n_ctx_train = unsafe { sys::llama_model_n_ctx_train(raw.as_ptr()) };
        let facts = Facts { path, header, n_ctx_train, weights };
        Ok(Model { raw, facts: Arc::new(facts) })
    }

    pub(crate) fn raw(&self) -> &Arc<RawModel> {
        &self.raw
    }

    pub(crate) fn weights(&self) -> Weights {
        self.facts.weights
    }

    /// Upstream's pointer, for use with [`sys`]. The model must outlive its use.
    #[must_use]
    pub fn as_ptr(&self) -> *mut sys::llama_model {
        self.raw.as_ptr()
    }

    /// Makes a context on this model. The same as [`Context::new`].
    ///
    /// # Errors
    ///
    /// As [`Context::new`].
    pub fn new_context(&self, params: &ContextParams) -> Result<Context> {
        Context::new(self, params)
    }

    /// The vocabulary.
    #[doc(alias = "llama_model_get_vocab")]
    #[must_use]
    pub fn vocab(&self) -> Vocab {
        Vocab::new(Arc::clone(&self.raw))
    }

    /// The (first) file that it was loaded from.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.facts.path
    }

    /// The architecture's name, such as `llama`.
    #[must_use]
    pub fn architecture(&self) -> &str {
        self.facts.header.architecture.as_deref().unwrap_or_default()
    }

    /// Whether it only works together with the context of another model.
    pub(crate) fn needs_other_context(&self) -> bool {
        self.facts.header.needs_other_context
    }

    /// Whether positions are rows of a table, so that those beyond the training length do not exist.
    pub(crate) fn has_learned_positions(&self) -> bool {
        self.facts.header.learned_positions
    }

    /// Whether its file asks for mean pooling.
    pub(crate) fn pools_by_mean(&self) -> bool {
        self.facts.header.pooling_type == Some(1)
    }

    pub(crate) fn header(&self) -> &gguf::Header {
        &self.facts.header
    }

    /// Length of the context that the model was trained with, in tokens.
    #[doc(alias = "llama_model_n_ctx_train")]
    #[must_use]
    pub fn n_ctx_train(&self) -> i32 {
        self.facts.n_ctx_train
    }

    /// Size of all tensors, in bytes.
    #[doc(alias = "llama_model_size")]
    #[must_use]
    pub fn size(&self) -> u64 {
        // SAFETY: the model is valid.
        unsafe { sys::llama_model_size(self.as_ptr()) }
    }

    /// Number of parameters.
    #[doc(alias = "llama_model_n_params")]
    #[must_use]
    pub fn n_params(&self) -> u64 {
        // SAFETY: the model is valid.
        unsafe { sys::llama_model_n_params(self.as_ptr()) }
    }

    /// One line about the model: architecture, size, quantization.
    #[doc(alias = "llama_model_desc")]
    #[must_use]
    pub fn description(&self) -> String {
        // SAFETY: the model is valid and the buffer has the length that is given.
        self.text(|buf, len| unsafe { sys::llama_model_desc(self.as_ptr(), buf, len) }).unwrap_or_default()
    }

    /// Name of the quantization, such as `Q4_1`.
    #[doc(alias = "llama_model_ftype")]
    #[doc(alias = "llama_ftype_name")]
    #[must_use]
    pub fn file_type(&self) -> String {
        // SAFETY: the model is valid; the name is a constant.
        unsafe { from_c(sys::llama_ftype_name(sys::llama_model_ftype(self.as_ptr()))) }.unwrap_or_default()
    }

    /// How positions are encoded.
    #[doc(alias = "llama_model_rope_type")]
    #[must_use]
    pub fn rope_type(&self) -> RopeType {
        // SAFETY: the model is valid.
        match unsafe { sys::llama_model_rope_type(self.as_ptr()) } {
            sys::LLAMA_ROPE_TYPE_NONE => RopeType::None,
            sys::LLAMA_ROPE_TYPE_NORM => RopeType::Norm,
            sys::LLAMA_ROPE_TYPE_NEOX => RopeType::Neox,
            sys::LLAMA_ROPE_TYPE_MROPE => RopeType::Mrope,
            sys::LLAMA_ROPE_TYPE_IMROPE => RopeType::Imrope,
            sys::LLAMA_ROPE_TYPE_VISION => RopeType::Vision,
            other => RopeType::Unknown(other.into()),
        }
    }

    /// The file's metadata of scalar types, as text, sorted by key. Arrays are left out, as upstream does.
    #[doc(alias = "llama_model_meta_count")]
    #[doc(alias = "llama_model_meta_key_by_index")]
    #[doc(alias = "llama_model_meta_val_str_by_index")]
    #[must_use]
    pub fn metadata(&self) -> Vec<(String, String)> {
        // SAFETY: the model is valid.
        let count = unsafe { sys::llama_model_meta_count(self.as_ptr()) };
        let key = |i| {
            // SAFETY: the model is valid, the index is below the count, the buffer has the length that is given.
            self.text(|buf, len| unsafe { sys::llama_model_meta_key_by_index(self.as_ptr(), i, buf, len) })
        };
        let value = |i| {
            // SAFETY: as above.
            self.text(|buf, len| unsafe { sys::llama_model_meta_val_str_by_index(self.as_ptr(), i, buf, len) })
        };
        // Upstream's order is that of a hash table.
        let sorted: std::collections::BTreeMap<_, _> = (0..count).filter_map(|i| Some((key(i)?, value(i)?))).collect();
        sorted.into_iter().collect()
    }

    /// One value of the file's metadata, as text; `None` when there is no such scalar.
    #[doc(alias = "llama_model_meta_val_str")]
    #[must_use]
    pub fn metadata_value(&self, key: &str) -> Option<String> {
        let key = to_c("a metadata key", key).ok()?;
        // SAFETY: the model is valid, the key ends with NUL, the buffer has the length that is given.
        self.text(|buf, len| unsafe { sys::llama_model_meta_val_str(self.as_ptr(), key.as_ptr(), buf, len) })
    }

    /// Calls a getter that fills a buffer, with a larger one when the first was too small.
    fn text(&self, get: impl Fn(*mut c_char, usize) -> i32) -> Option<String> {
        let mut buffer = vec![0u8; 256];
        loop {
            let length = usize::try_from(get(buffer.as_mut_ptr().cast(), buffer.len())).ok()?;
            if length < buffer.len() {
                buffer.truncate(length);
                return Some(String::from_utf8_lossy(&buffer).into_owned());
            }
            buffer.resize(length + 1, 0);
        }
    }

    /// The chat template in the file: the default one, or the one with the name.
    ///
    /// # Errors
    ///
    /// [`Error::Nul`] for a name with a NUL byte.
    #[doc(alias = "llama_model_chat_template")]
    pub fn chat_template(&self, name: Option<&str>) -> Result<Option<String>> {
        let name = name.map(|name| to_c("the template's name", name)).transpose()?;
        let name = name.as_ref().map_or(std::ptr::null(), |name| name.as_ptr());
        // SAFETY: the model is valid, the name is null or ends with NUL; the text lives as long as the model.
        Ok(unsafe { from_c(sys::llama_model_chat_template(self.as_ptr(), name)) })
    }

    /// For encoder-decoder models, the token that the decoder starts with.
    #[doc(alias = "llama_model_decoder_start_token")]
    #[must_use]
    pub fn decoder_start_token(&self) -> Option<Token> {
        // SAFETY: the model is valid.
        let token = unsafe { sys::llama_model_decoder_start_token(self.as_ptr()) };
        (token != sys::LLAMA_TOKEN_NULL).then_some(Token(token))
    }

    /// Number of outputs of the classification head, of models that have one.
    #[doc(alias = "llama_model_n_cls_out")]
    #[must_use]
    pub fn n_cls_out(&self) -> i32 {
        // SAFETY: the model is valid.
        let n = unsafe { sys::llama_model_n_cls_out(self.as_ptr()) };
        i32::try_from(n).unwrap_or(0)
    }

    /// Labels of the classifier's outputs; `None` where the file names none.
    #[doc(alias = "llama_model_cls_label")]
    #[must_use]
    pub fn classifier_labels(&self) -> Vec<Option<String>> {
        // SAFETY: the model is valid; each index is below the number of outputs.
        unsafe {
            let count = sys::llama_model_n_cls_out(self.as_ptr());
            (0..count).map(|i| from_c(sys::llama_model_cls_label(self.as_ptr(), i))).collect()
        }
    }
}

/// Getters that pass a number through. Models loaded with `vocab_only` have none of them and give 0 or `false`.
macro_rules! getters {
    ($($(#[$meta:meta])+ $name:ident -> $type:ty = $function:ident;)+) => {
        impl Model {
            $(
                $(#[$meta])+
                #[must_use]
                pub fn $name(&self) -> $type {
                    // GGML_ABORT in hparams.n_head() and its like when there are no layers.
                    if self.weights() == Weights::VocabOnly {
                        return Default::default();
                    }
                    // SAFETY: the model is valid and the function only reads it.
                    unsafe { sys::$function(self.as_ptr()) }
                }
            )+
        }
    };
}

getters! {
    /// Width of the hidden state.
    #[doc(alias = "llama_model_n_embd")]
    n_embd -> i32 = llama_model_n_embd;
    /// Width of embeddings given as input.
    #[doc(alias = "llama_model_n_embd_inp")]
    n_embd_inp -> i32 = llama_model_n_embd_inp;
    /// Width of embeddings that come out.
    #[doc(alias = "llama_model_n_embd_out")]
    n_embd_out -> i32 = llama_model_n_embd_out;
    /// Number of layers.
    #[doc(alias = "llama_model_n_layer")]
    n_layer -> i32 = llama_model_n_layer;
    /// Number of layers for multi-token prediction.
    #[doc(alias = "llama_model_n_layer_nextn")]
    n_layer_nextn -> i32 = llama_model_n_layer_nextn;
    /// Number of attention heads.
    #[doc(alias = "llama_model_n_head")]
    n_head -> i32 = llama_model_n_head;
    /// Number of key and value heads.
    #[doc(alias = "llama_model_n_head_kv")]
    n_head_kv -> i32 = llama_model_n_head_kv;
    /// Size of the sliding window in tokens, 0 without one.
    #[doc(alias = "llama_model_n_swa")]
    n_swa -> i32 = llama_model_n_swa;
    /// RoPE frequency scale that the model was trained with.
    #[doc(alias = "llama_model_rope_freq_scale_train")]
    rope_freq_scale_train -> f32 = llama_model_rope_freq_scale_train;
    /// Whether there is an encoder, which [`Context::encode`] runs.
    #[doc(alias = "llama_model_has_encoder")]
    has_encoder -> bool = llama_model_has_encoder;
    /// Whether there is a decoder.
    #[doc(alias = "llama_model_has_decoder")]
    has_decoder -> bool = llama_model_has_decoder;
    /// Whether the memory is a recurrent state (Mamba, RWKV).
    #[doc(alias = "llama_model_is_recurrent")]
    is_recurrent -> bool = llama_model_is_recurrent;
    /// Whether some layers are recurrent and some attend (Jamba, Granite).
    #[doc(alias = "llama_model_is_hybrid")]
    is_hybrid -> bool = llama_model_is_hybrid;
    /// Whether the model generates by diffusion.
    #[doc(alias = "llama_model_is_diffusion")]
    is_diffusion -> bool = llama_model_is_diffusion;
}

impl std::fmt::Debug for Model {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Model").field("path", &self.facts.path).field("description", &self.description()).finish()
    }
}

impl PartialEq for Model {
    /// Whether both are handles to the same loaded weights.
    fn eq(&self, other: &Model) -> bool {
        Arc::ptr_eq(&self.raw, &other.raw)
    }
}

impl Eq for Model {}

fn overrides(list: &[(String, MetadataOverride)]) -> Vec<(String, gguf::Value)> {
    let convert = |value: &MetadataOverride| match value {
        MetadataOverride::Int(value) => gguf::Value::I64(*value),
        MetadataOverride::Float(value) => gguf::Value::F64(*value),
        MetadataOverride::Bool(value) => gguf::Value::Bool(*value),
        MetadataOverride::Str(value) => gguf::Value::String(value.clone()),
    };
    list.iter().map(|(key, value)| (key.clone(), convert(value))).collect()
}
