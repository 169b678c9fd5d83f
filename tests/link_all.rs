//! Every function that the bindings declare can be linked: a missing archive or a wrong order of archives shows here.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeSet;

use ggml_llama::sys;

/// The functions' names with their addresses, for which the linker must find them all.
macro_rules! functions {
    ($($name:ident)*) => {
        pub(crate) fn all() -> Vec<(&'static str, *const ())> {
            vec![$((stringify!($name), crate::sys::$name as *const ()),)*]
        }
    };
}

#[path = "link_all/functions.rs"]
mod functions;

/// Headers of backends that a build may lack.
const BACKENDS: [&str; 13] = [
    "blas", "cann", "cuda", "hexagon", "metal", "opencl", "rpc", "sycl", "virtgpu", "vulkan", "webgpu", "zdnn",
    "zendnn",
];

/// Declared by upstream, and defined nowhere.
const UNDEFINED: [&str; 1] = ["ggml_threadpool_get_n_threads"];

/// What the build script found in the headers: header, name and state of each function.
const DECLARED: &str = include_str!(concat!(env!("OUT_DIR"), "/functions.txt"));

fn declared() -> BTreeSet<&'static str> {
    let is_backend = |header: &str| BACKENDS.iter().any(|backend| header == format!("ggml-{backend}.h"));
    let lines = DECLARED.lines().map(|line| {
        let mut fields = line.split('\t');
        (fields.next().unwrap(), fields.next().unwrap())
    });
    lines.filter(|(header, name)| !is_backend(header) && !UNDEFINED.contains(name)).map(|(_, name)| name).collect()
}

#[test]
fn every_function_has_an_address_of_its_own() {
    let all = functions::all();
    assert!(all.iter().all(|(_, address)| !std::hint::black_box(*address).is_null()));
    // A linker may fold functions with the same code into one, but not most of them.
    let different: BTreeSet<usize> = all.iter().map(|(_, address)| address.addr()).collect();
    assert!(different.len() > all.len() * 3 / 4, "{} of {}", different.len(), all.len());
}

/// After a move of upstream: what the list lacks, and what it has too much.
#[test]
fn the_list_is_that_of_the_headers() {
    let listed: BTreeSet<&str> = functions::all().into_iter().map(|(name, _)| name).collect();
    let declared = declared();
    assert!(declared.len() > 800, "{}", declared.len());
    let missing: Vec<_> = declared.difference(&listed).collect();
    let stale: Vec<_> = listed.difference(&declared).collect();
    assert!(missing.is_empty() && stale.is_empty(), "tests/link_all/functions.rs lacks {missing:?} and has {stale:?}");
}

#[test]
fn one_function_of_each_archive_answers() {
    // SAFETY: each gives a constant or a plain struct and needs nothing to be started.
    unsafe {
        assert!(sys::llama_max_devices() > 0);
        assert_eq!(sys::ggml_type_size(sys::GGML_TYPE_F32), 4);
        assert_eq!(sys::ggml_blck_size(sys::GGML_TYPE_Q4_0), 32);
        assert_eq!(sys::ggml_cpu_has_wasm_simd(), 0);
        let gguf = sys::gguf_init_empty();
        assert_eq!(sys::gguf_get_n_kv(gguf), 0);
        sys::gguf_free(gguf);
        assert!(sys::ggml_backend_reg_count() > 0);
    }
}
