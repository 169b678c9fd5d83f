//! Loading: files that are none, odd paths, split files, progress.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io};

use common::{child, greedy, parameter_of, small, tiny_llama, tokens};
use ggml_llama::{Error, Model, ModelParams};
use ggml_llama_testkit as testkit;

fn try_load(path: impl AsRef<Path>) -> Result<Model, Error> {
    Model::load(path, &ModelParams::default())
}

fn tiny_llama_bytes() -> Vec<u8> {
    fs::read(testkit::tiny_llama_path().unwrap()).unwrap()
}

/// A model that writes what the tiny Llama writes.
fn is_tiny_llama(model: &Model) {
    let prompt = tokens(&[1, 300, 411]);
    let run = |model: &Model| greedy(&mut model.new_context(&small()).unwrap(), &prompt, 4);
    assert_eq!(run(model), run(&tiny_llama()));
}

/// An error of an unusable file, which names it.
fn is_unusable(path: &Path, bytes: Option<&[u8]>) {
    if let Some(bytes) = bytes {
        fs::write(path, bytes).unwrap();
    }
    match try_load(path) {
        Err(Error::InvalidGguf { path: named, reason }) => {
            assert_eq!(named, path);
            assert!(!reason.is_empty());
        }
        other => panic!("{}: {other:?}", path.display()),
    }
}

#[test]
fn a_file_that_is_not_there() {
    let folder = tempfile::tempdir().unwrap();
    for path in [folder.path().join("no-such.gguf"), PathBuf::new(), folder.path().join("no/such/folder.gguf")] {
        match try_load(&path) {
            Err(Error::File { path: named, source }) => {
                assert_eq!((named, source.kind()), (path, io::ErrorKind::NotFound));
            }
            other => panic!("{}: {other:?}", path.display()),
        }
    }
}

#[test]
fn a_folder_is_no_model() {
    let folder = tempfile::tempdir().unwrap();
    match try_load(folder.path()) {
        Err(Error::File { path, .. } | Error::InvalidGguf { path, .. }) => assert_eq!(path, folder.path()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn files_that_are_no_gguf_files() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file.gguf");
    for bytes in [&b""[..], b"G", b"GGUF", b"GGUF\x03\0\0\0", b"not a model\n", &[0; 4096]] {
        is_unusable(&path, Some(bytes));
    }
}

/// Cut anywhere in its metadata, between its tensors, in the midst of its data, and one byte short.
#[test]
fn truncated_files() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cut.gguf");
    let (bytes, layout) = testkit::tiny_llama().to_bytes_and_layout();
    let infos = layout.tensor_infos.first().copied().unwrap();
    for length in
        [23, 24, 100, layout.kv[3], infos - 1, infos, layout.data - 1, layout.data, layout.data + 1, layout.len - 1]
    {
        is_unusable(&path, Some(&bytes[..length]));
    }
    fs::write(&path, &bytes).unwrap();
    is_tiny_llama(&try_load(&path).unwrap());
}

#[test]
fn absurd_counts() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("counts.gguf");
    for n in [1u64 << 32, 1 << 62, u64::MAX, i64::MAX as u64] {
        is_unusable(&path, Some(&testkit::RawFile::with_header(3, n, 0).pad(4096).bytes));
        is_unusable(&path, Some(&testkit::RawFile::with_header(3, 0, n).pad(4096).bytes));
    }
}

#[test]
fn a_path_with_a_nul_byte() {
    assert!(matches!(try_load("a\0b.gguf"), Err(Error::Nul { at: 1, .. })));
}

#[test]
#[cfg(target_os = "linux")]
fn a_path_that_is_not_utf8() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let folder = tempfile::tempdir().unwrap();
    let odd = folder.path().join(OsStr::from_bytes(b"caf\xff"));
    fs::create_dir(&odd).unwrap();
    let path = odd.join(OsStr::from_bytes(b"\xfe.gguf"));
    fs::write(&path, tiny_llama_bytes()).unwrap();
    let model = try_load(&path).unwrap();
    assert_eq!(model.path(), path);
    is_tiny_llama(&model);
    is_unusable(&path, Some(b"not a model"));
}

/// Opening a pipe that nobody writes to waits for ever; a device never ends.
#[test]
#[cfg(unix)]
fn pipes_and_devices_are_refused_at_once() {
    let outcome = child::run("child_that_loads_a_pipe", "pipe", Duration::from_secs(20));
    assert_eq!(outcome.failure(), None);
}

#[test]
#[cfg(unix)]
fn child_that_loads_a_pipe() {
    use std::os::unix::ffi::OsStrExt;
    if child::role().is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe.gguf");
    let name = std::ffi::CString::new(pipe.as_os_str().as_bytes()).unwrap();
    // SAFETY: the name ends with NUL.
    assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
    for path in [pipe.as_path(), Path::new("/dev/zero"), Path::new("/dev/null")] {
        match try_load(path) {
            Err(Error::File { path: named, .. } | Error::InvalidGguf { path: named, .. }) => assert_eq!(named, path),
            other => panic!("{}: {other:?}", path.display()),
        }
    }
}

#[test]
fn a_split_file_loads_through_its_first_part() {
    let folder = tempfile::tempdir().unwrap();
    let parts = testkit::write_split(&testkit::tiny_llama(), folder.path(), "model", 3).unwrap();
    let model = try_load(&parts[0]).unwrap();
    assert_eq!(model.n_params(), tiny_llama().n_params());
    is_tiny_llama(&model);
    // A later part is not where a model begins.
    assert!(matches!(try_load(&parts[1]), Err(Error::ModelLoad { .. } | Error::InvalidGguf { .. })));
    fs::remove_file(&parts[2]).unwrap();
    let error = try_load(&parts[0]).unwrap_err();
    assert!(matches!(&error, Error::ModelLoad { .. } | Error::InvalidGguf { .. } | Error::File { .. }), "{error:?}");
    assert!(error.to_string().contains("00003-of-00003"), "{error}");
}

#[test]
fn parts_with_odd_names_load_by_list() {
    let folder = tempfile::tempdir().unwrap();
    let names = ["b", "\u{fc}", "a b.bin"].map(|name| folder.path().join(name));
    for (part, path) in testkit::split(&testkit::tiny_llama(), 3).iter().zip(&names) {
        part.write(path).unwrap();
    }
    let load = |paths: &[&PathBuf]| Model::load_splits(paths, &ModelParams::default());
    let model = load(&[&names[0], &names[1], &names[2]]).unwrap();
    assert_eq!(model.path(), names[0]);
    is_tiny_llama(&model);
    let refused = |paths: &[&PathBuf]| {
        let result = load(paths);
        assert!(matches!(result, Err(Error::ModelLoad { .. } | Error::InvalidGguf { .. })), "{result:?}");
    };
    refused(&[&names[0], &names[2], &names[1]]);
    refused(&[&names[1], &names[0], &names[2]]);
    refused(&[&names[0], &names[1]]);
    refused(&[&names[0], &names[1], &names[1]]);
    let gone = folder.path().join("gone");
    assert!(matches!(load(&[&names[0], &names[1], &gone]), Err(Error::File { path, .. }) if path == gone));
    assert_eq!(parameter_of(Model::load_splits::<&Path>(&[], &ModelParams::default())), "paths");
}

fn load_reporting(report: impl FnMut(f32) -> ControlFlow<()>) -> Result<Model, Error> {
    Model::load_with_progress(testkit::tiny_llama_path().unwrap(), &ModelParams::default(), report)
}

#[test]
fn progress_rises_from_nothing_to_all() {
    let mut seen = Vec::new();
    let model = load_reporting(|progress| {
        seen.push(progress);
        ControlFlow::Continue(())
    });
    is_tiny_llama(&model.unwrap());
    assert!(seen.len() > 3 && seen.is_sorted(), "{seen:?}");
    assert!(seen[0] < 0.5 && seen.iter().all(|p| (0.0..=1.0).contains(p)), "{seen:?}");
    assert_eq!(seen.last(), Some(&1.0));
}

#[test]
fn progress_can_cancel_at_any_time() {
    for stop_at in [1, 2, 10] {
        let mut calls = 0;
        let result = load_reporting(|_| {
            calls += 1;
            if calls == stop_at { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        assert!(matches!(result, Err(Error::LoadCancelled)), "{result:?}");
        assert_eq!(calls, stop_at, "called after it had said no");
    }
    let at_the_end = load_reporting(|p| if p == 1.0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) });
    assert!(matches!(at_the_end, Err(Error::LoadCancelled)));
    is_tiny_llama(&tiny_llama());
}

#[test]
fn a_panic_in_progress_goes_on_after_the_load() {
    let mut calls = 0;
    let panic = catch_unwind(AssertUnwindSafe(|| {
        load_reporting(|_| {
            calls += 1;
            panic!("no more")
        })
    }))
    .unwrap_err();
    assert_eq!((panic.downcast_ref::<&str>(), calls), (Some(&"no more"), 1));
    is_tiny_llama(&tiny_llama());
}

/// A callback may itself use the crate.
#[test]
fn progress_can_load_another_model() {
    let mut inner = None;
    let outer = load_reporting(|_| {
        inner.get_or_insert_with(tiny_llama);
        ControlFlow::Continue(())
    });
    assert!(outer.unwrap() != inner.clone().unwrap());
    is_tiny_llama(&inner.unwrap());
}

#[test]
fn many_threads_load_at_once() {
    let threads: Vec<_> =
        (0..4).map(|_| std::thread::spawn(|| (0..3).map(|_| tiny_llama()).collect::<Vec<_>>())).collect();
    let models: Vec<Model> = threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
    assert_eq!(models.len(), 12);
    is_tiny_llama(&models[5]);
}
