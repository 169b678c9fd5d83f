//! `Model`: what it tells about itself, and the parameters of loading.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::{load, parameter_of, real_model_path, small, tiny_bert, tiny_llama, tiny_mamba, tiny_t5};
use ggml_llama::{
    Device, Error, LazyMode, LoadMode, MetadataOverride, Model, ModelParams, RopeType, SplitMode, TensorBufferOverride,
    devices,
};
use ggml_llama_testkit::{self as testkit, Gguf, Value, models::CHATML};

fn with(params: &ModelParams) -> Result<Model, Error> {
    Model::load(testkit::tiny_llama_path().unwrap(), params)
}

fn params(change: impl FnOnce(&mut ModelParams)) -> ModelParams {
    let mut params = ModelParams::default();
    change(&mut params);
    params
}

fn override_of(key: &str, value: MetadataOverride) -> Result<Model, Error> {
    with(&ModelParams::default().with_metadata_override(key, value))
}

fn cpu() -> Device {
    devices().unwrap().into_iter().find(|device| device.kind() == ggml_llama::DeviceKind::Cpu).unwrap()
}

#[test]
fn numbers_are_those_of_the_file() {
    let model = tiny_llama();
    let file = testkit::tiny_llama();
    let n_params: u64 = file.tensors().iter().map(testkit::Tensor::n_elements).sum();
    assert_eq!((model.n_params(), model.size()), (n_params, 4 * n_params));
    assert_eq!((model.n_embd(), model.n_embd_inp(), model.n_embd_out()), (128, 128, 128));
    assert_eq!((model.n_layer(), model.n_head(), model.n_head_kv()), (2, 4, 2));
    assert_eq!((model.n_ctx_train(), model.n_swa(), model.n_layer_nextn()), (256, 0, 0));
    assert_eq!(model.rope_freq_scale_train(), 1.0);
    assert_eq!(model.path(), testkit::tiny_llama_path().unwrap());
    assert_eq!(model.vocab().n_tokens() as usize, testkit::SpmVocab::new().n_tokens());
}

#[test]
fn kinds_of_models_are_told_apart() {
    let flags = |m: &Model| [m.has_encoder(), m.has_decoder(), m.is_recurrent(), m.is_hybrid(), m.is_diffusion()];
    assert_eq!(flags(&tiny_llama()), [false, true, false, false, false]);
    assert_eq!(flags(&tiny_mamba()), [false, true, true, false, false]);
    assert_eq!(flags(&tiny_t5()), [true, true, false, false, false]);
    assert_eq!(tiny_llama().rope_type(), RopeType::Norm);
    assert_eq!((tiny_t5().rope_type(), tiny_mamba().rope_type()), (RopeType::None, RopeType::None));
    assert_eq!(
        (tiny_t5().decoder_start_token(), tiny_llama().decoder_start_token()),
        (Some(ggml_llama::Token(0)), None)
    );
    for (model, architecture) in
        [(tiny_llama(), "llama"), (tiny_bert(), "bert"), (tiny_mamba(), "mamba"), (tiny_t5(), "t5")]
    {
        assert_eq!(model.architecture(), architecture);
        let description = model.description();
        assert!(description.starts_with(architecture) && description.ends_with("all F32"), "{description}");
        assert_eq!(model.file_type(), "all F32");
    }
}

#[test]
fn metadata_is_that_of_the_file() {
    let path = testkit::tiny_llama_path().unwrap();
    let model = load(path);
    let text = |value: &Value| match value {
        Value::U32(value) => value.to_string(),
        Value::Str(value) => String::from_utf8(value.clone()).unwrap(),
        other => panic!("{other:?}"),
    };
    let file = testkit::tiny_llama();
    let floats = ["llama.attention.layer_norm_rms_epsilon", "llama.rope.freq_base"];
    let mut expected: Vec<(String, String)> = file
        .kvs()
        .iter()
        .filter(|(key, value)| !matches!(value, Value::Array(..)) && !floats.contains(&key.as_str()))
        .map(|(key, value)| (key.clone(), text(value)))
        .collect();
    expected.sort();
    let mut metadata = model.metadata();
    assert!(metadata.is_sorted());
    metadata.retain(|(key, _)| !floats.contains(&key.as_str()));
    assert_eq!(metadata, expected);
    assert_eq!(model.metadata_value("llama.rope.freq_base").unwrap().parse::<f32>().unwrap(), 10000.0);
    assert_eq!(model.metadata_value("general.name").as_deref(), Some("tiny-llama"));
    for absent in ["", "general", "no.such.key", "tokenizer.ggml.tokens", "general.name\0"] {
        assert_eq!(model.metadata_value(absent), None, "{absent:?}");
    }
}

#[test]
fn long_texts_come_whole() {
    let long = "x".repeat(100_000);
    let file = testkit::tiny_llama().with_kv("general.description", long.as_str());
    let model = load(testkit::cached("long-text.gguf", &file).unwrap());
    assert_eq!(model.metadata_value("general.description"), Some(long));
}

#[test]
fn chat_templates_are_found_by_name() {
    let model = tiny_llama();
    assert_eq!(model.chat_template(None).unwrap().as_deref(), Some(CHATML));
    assert_eq!(model.chat_template(Some("tool_use")).unwrap(), None);
    assert!(matches!(model.chat_template(Some("a\0b")), Err(Error::Nul { at: 1, .. })));
    assert_eq!(tiny_bert().chat_template(None).unwrap(), None);
    let file: Gguf = testkit::tiny_llama().with_kv("tokenizer.chat_template.tool_use", "special");
    let two = load(testkit::cached("two-templates.gguf", &file).unwrap());
    assert_eq!(two.chat_template(Some("tool_use")).unwrap().as_deref(), Some("special"));
    assert_eq!(two.chat_template(None).unwrap().as_deref(), Some(CHATML));
}

/// Upstream aborts when it is asked for the heads of a model without layers, and asserts in the context's decode.
#[test]
fn a_model_without_weights_makes_no_context() {
    let vocab_only = with(&ModelParams::default().with_vocab_only(true)).unwrap();
    assert_eq!((vocab_only.n_head(), vocab_only.n_head_kv(), vocab_only.n_swa(), vocab_only.n_layer()), (0, 0, 0, 0));
    assert_eq!(vocab_only.vocab().n_tokens(), tiny_llama().vocab().n_tokens());
    let no_alloc = with(&params(|p| p.no_alloc = true)).unwrap();
    assert_eq!(no_alloc.n_layer(), 2);
    for (model, why) in [(vocab_only, "vocab_only"), (no_alloc, "no_alloc")] {
        let error = model.new_context(&small()).unwrap_err();
        assert!(matches!(&error, Error::InvalidParameter { name: "model", .. }), "{error:?}");
        assert!(error.to_string().contains(why), "{error}");
    }
}

#[test]
fn overrides_replace_what_the_file_says() {
    let model = override_of("llama.context_length", MetadataOverride::Int(77)).unwrap();
    assert_eq!(model.n_ctx_train(), 77);
    let model = override_of("tokenizer.ggml.add_bos_token", MetadataOverride::Bool(false)).unwrap();
    assert!(!model.vocab().adds_bos() && tiny_llama().vocab().adds_bos());
}

#[test]
fn overrides_are_checked() {
    use MetadataOverride::{Bool, Float, Int, Str};
    assert_eq!(parameter_of(override_of("", Int(1))), "metadata_overrides");
    assert_eq!(parameter_of(override_of(&"k".repeat(128), Int(1))), "the key of a metadata override");
    assert_eq!(parameter_of(override_of("k", Str("v".repeat(128)))), "the value of a metadata override");
    assert!(matches!(override_of("a\0b", Int(1)), Err(Error::Nul { at: 1, .. })));
    assert!(matches!(override_of("k", Str("ab\0".to_owned())), Err(Error::Nul { at: 2, .. })));
    assert!(override_of(&"k".repeat(127), Str("v".repeat(127))).is_ok());
    assert!(override_of(&"\u{e9}".repeat(60), Int(1)).is_ok());
    // Each of these is an assertion or a crash in upstream.
    for (key, value) in [
        ("llama.block_count", Int(0)),
        ("llama.block_count", Int(513)),
        ("llama.expert_count", Int(4)),
        ("llama.expert_count", Int(5000)),
        ("llama.attention.layer_norm_rms_epsilon", Float(-1.0)),
        ("llama.attention.layer_norm_rms_epsilon", Float(f64::NAN)),
        ("llama.rope.scaling.type", Str("foo".to_owned())),
        ("llama.pooling_type", Int(77)),
    ] {
        let result = override_of(key, value.clone());
        let refused = matches!(&result, Err(Error::InvalidParameter { name: "metadata_overrides", .. }));
        assert!(refused, "{key} {value:?}: {result:?}");
    }
    // A value of another type than the file's is none that upstream takes.
    let result = override_of("llama.block_count", Bool(true)).map(|model| model.n_layer());
    assert!(matches!(result, Ok(2) | Err(Error::ModelLoad { .. } | Error::InvalidParameter { .. })), "{result:?}");
}

#[test]
fn devices_and_shares_are_checked() {
    assert_eq!(parameter_of(with(&ModelParams::default().with_devices(vec![cpu(); 15]))), "devices");
    assert!(with(&ModelParams::default().with_devices([])).is_ok());
    // The CPU may stand in the list, except for tensor parallelism: upstream follows a null pointer then.
    let on_cpu = with(&ModelParams::default().with_devices([cpu(), cpu()])).unwrap();
    assert_eq!(common::greedy(&mut on_cpu.new_context(&small()).unwrap(), &common::tokens(&[1, 300]), 4).len(), 4);
    let tensor = ModelParams::default().with_devices([cpu()]).with_split_mode(SplitMode::Tensor);
    assert_eq!(parameter_of(with(&tensor)), "devices");
    for bad in [vec![f32::NAN], vec![1.0, f32::INFINITY], vec![-1.0], vec![1.0; 17]] {
        assert_eq!(parameter_of(with(&params(|p| p.tensor_split = bad))), "tensor_split");
    }
    assert!(with(&params(|p| p.tensor_split = vec![0.0, 1.0, 0.5])).is_ok());
    assert_eq!(parameter_of(with(&params(|p| p.main_gpu = -1))), "main_gpu");
}

#[test]
fn patterns_for_buffers_are_checked() {
    let with_pattern = |pattern: &str| {
        let buffer_type = cpu().buffer_type().unwrap();
        let overrides = vec![TensorBufferOverride { pattern: pattern.to_owned(), buffer_type }];
        with(&params(|p| p.tensor_buffer_overrides = overrides))
    };
    assert!(with_pattern("blk\\.0\\..*").is_ok());
    assert!(matches!(with_pattern("("), Err(Error::ModelLoad { .. })));
    assert!(matches!(with_pattern("a\0"), Err(Error::Nul { at: 1, .. })));
}

/// Every way of reading, and every way of splitting, gives the same model or says why it cannot.
#[test]
fn every_mode_loads_the_same_or_says_why_not() {
    let expected = common::greedy(&mut tiny_llama().new_context(&small()).unwrap(), &common::tokens(&[1, 300]), 4);
    let mut all = Vec::new();
    for load_mode in
        [LoadMode::Auto, LoadMode::None, LoadMode::Mmap, LoadMode::Mlock, LoadMode::MmapMlock, LoadMode::DirectIo]
    {
        all.push(params(|p| p.load_mode = load_mode));
    }
    for lazy_mode in [LazyMode::Off, LazyMode::Auto, LazyMode::On] {
        all.push(params(|p| p.lazy_mode = lazy_mode));
    }
    for split_mode in [SplitMode::None, SplitMode::Layer, SplitMode::Row, SplitMode::Tensor] {
        for main_gpu in [0, 7] {
            all.push(params(|p| (p.split_mode, p.main_gpu) = (split_mode, main_gpu)));
        }
    }
    for n_gpu_layers in [0, 1, i32::MAX, i32::MIN] {
        all.push(ModelParams::default().with_n_gpu_layers(n_gpu_layers));
    }
    all.push(params(|p| (p.use_extra_bufts, p.no_host, p.load_mtp) = (false, true, true)));
    all.push(ModelParams::default().with_check_tensors(true));
    for params in all {
        match with(&params) {
            Ok(model) => {
                let mut context = model.new_context(&small()).unwrap();
                assert_eq!(common::greedy(&mut context, &common::tokens(&[1, 300]), 4), expected, "{params:?}");
            }
            Err(Error::ModelLoad { .. } | Error::InvalidParameter { .. }) => {
                assert!(params.split_mode != SplitMode::Layer, "{params:?} must load");
            }
            Err(other) => panic!("{params:?}: {other:?}"),
        }
    }
}

#[test]
fn check_tensors_finds_what_is_not_a_number() {
    let mut file = testkit::tiny_llama();
    file.tensor_mut("blk.0.attn_q.weight").unwrap().data[..4].copy_from_slice(&f32::NAN.to_le_bytes());
    let path = testkit::cached("nan.gguf", &file).unwrap();
    assert!(Model::load(&path, &ModelParams::default()).is_ok());
    match Model::load(&path, &ModelParams::default().with_check_tensors(true)) {
        Err(Error::ModelLoad { path: named, detail }) => {
            assert_eq!(named, path);
            assert!(detail.to_string().contains("blk.0.attn_q.weight"), "{detail}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_real_model_is_described() {
    let Some(path) = real_model_path() else { return };
    let model = load(&path);
    assert_eq!((model.n_layer(), model.n_embd(), model.n_head(), model.n_head_kv()), (30, 576, 9, 3));
    assert_eq!((model.n_ctx_train(), model.vocab().n_tokens()), (8192, 49152));
    // 134,515,008 parameters, published with the model.
    assert_eq!(model.n_params(), 134_515_008);
    assert_eq!(model.file_type(), "Q4_1");
    let bytes = std::fs::metadata(&path).unwrap().len();
    assert!(model.size() < bytes && model.size() > bytes * 9 / 10);
}
