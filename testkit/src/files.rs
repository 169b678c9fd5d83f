//! Generated files on disk, made once and shared by all tests and doc examples of a user.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::gguf::Gguf;
use crate::models;
use crate::rng::hash;
use crate::vocabs;

/// The file `name` with the bytes of `gguf`, written if it is not there yet.
///
/// See [`cached_bytes`].
///
/// # Errors
///
/// What the file system reports.
pub fn cached(name: &str, gguf: &Gguf) -> io::Result<PathBuf> {
    cached_bytes(name, &gguf.to_bytes())
}

/// The file `name` with these bytes, written if it is not there yet.
///
/// It lies in a folder of the system's temporary directory that is named after the content, so that a changed
/// generator never meets an old file. It appears with its whole content at once: it is written under another name
/// and renamed.
///
/// # Errors
///
/// What the file system reports.
pub fn cached_bytes(name: &str, bytes: &[u8]) -> io::Result<PathBuf> {
    let path = cache_folder(hash(bytes)).join(name);
    if is_complete(&path, bytes.len()) {
        return Ok(path);
    }
    write_atomically(&path, bytes)?;
    Ok(path)
}

/// Writes a file so that nobody sees a part of it.
///
/// # Errors
///
/// What the file system reports.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> io::Result<()> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut draft = OsString::from(path.as_os_str());
    draft.push(format!(".{}-{}.tmp", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed)));
    let written = fs::write(&draft, bytes).and_then(|()| fs::rename(&draft, path));
    if written.is_err() {
        // the error that matters is the first one
        let _ = fs::remove_file(&draft);
        // on Windows a file that another test holds open cannot be replaced, and need not be
        if is_complete(path, bytes.len()) {
            return Ok(());
        }
    }
    written
}

fn is_complete(path: &Path, len: usize) -> bool {
    fs::metadata(path).is_ok_and(|m| m.len() == len as u64)
}

/// One folder per user and content: another user's folder could not be written to.
fn cache_folder(content: u64) -> PathBuf {
    let user = std::env::var("USER").or_else(|_| std::env::var("USERNAME")).unwrap_or_default();
    let user: String = user.chars().filter(char::is_ascii_alphanumeric).collect();
    let user = if user.is_empty() { user } else { format!("{user}-") };
    std::env::temp_dir().join(format!("ggml-llama-testkit-{user}{content:016x}"))
}

/// A file that is built once per process.
macro_rules! path_of {
    ($(#[$doc:meta])* $function:ident, $file:literal, $build:expr) => {
        $(#[$doc])*
        ///
        /// # Errors
        ///
        /// What the file system reports.
        pub fn $function() -> io::Result<PathBuf> {
            static BYTES: std::sync::OnceLock<Vec<u8>> = std::sync::OnceLock::new();
            cached_bytes($file, BYTES.get_or_init(|| $build.to_bytes()))
        }
    };
}

path_of!(
    /// The file of [`models::tiny_llama`].
    tiny_llama_path, "tiny-llama.gguf", models::tiny_llama()
);
path_of!(
    /// The file of [`models::tiny_llama_story`].
    tiny_llama_story_path, "tiny-llama-story.gguf", models::tiny_llama_story()
);

path_of!(
    /// The file of [`models::tiny_bert`].
    tiny_bert_path, "tiny-bert.gguf", models::tiny_bert()
);
path_of!(
    /// The file of [`models::tiny_bert_cls`].
    tiny_bert_cls_path, "tiny-bert-cls.gguf", models::tiny_bert_cls()
);
path_of!(
    /// The file of [`models::tiny_reranker`].
    tiny_reranker_path, "tiny-reranker.gguf", models::tiny_reranker()
);
path_of!(
    /// The file of [`models::tiny_mamba`].
    tiny_mamba_path, "tiny-mamba.gguf", models::tiny_mamba()
);
path_of!(
    /// The file of [`models::tiny_t5`].
    tiny_t5_path, "tiny-t5.gguf", models::tiny_t5()
);
path_of!(
    /// The file of [`models::tiny_lora`].
    tiny_lora_path, "tiny-lora.gguf", models::tiny_lora()
);

/// The vocabulary-only file of this name in [`vocabs::all`].
///
/// # Errors
///
/// `NotFound` for another name, else what the file system reports.
pub fn vocab_path(name: &str) -> io::Result<PathBuf> {
    let found = vocabs::all().into_iter().find(|(n, _)| *n == name);
    let (_, gguf) = found.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, format!("no vocabulary {name}")))?;
    cached(&format!("vocab-{name}.gguf"), &gguf)
}

#[cfg(test)]
mod tests {
    use super::{cached_bytes, tiny_llama_path, write_atomically};

    #[test]
    fn same_content_same_path() {
        let a = cached_bytes("a.bin", b"one").unwrap();
        assert_eq!(std::fs::read(&a).unwrap(), b"one");
        assert_eq!(cached_bytes("a.bin", b"one").unwrap(), a);
        assert_ne!(cached_bytes("a.bin", b"two").unwrap(), a);
    }

    #[test]
    fn many_threads_see_a_whole_file() {
        let threads: Vec<_> = (0..8)
            .map(|_| {
                std::thread::spawn(|| {
                    let path = tiny_llama_path().unwrap();
                    std::fs::read(path).unwrap().len()
                })
            })
            .collect();
        let sizes: Vec<_> = threads.into_iter().map(|t| t.join().unwrap()).collect();
        assert!(sizes.iter().all(|s| *s == sizes[0]));
    }

    #[test]
    fn a_failed_write_leaves_nothing() {
        let folder = std::env::temp_dir().join(format!("ggml-llama-testkit-test-{}", std::process::id()));
        let target = folder.join("is-a-folder");
        std::fs::create_dir_all(target.join("x")).unwrap();
        assert!(write_atomically(&target, b"data").is_err());
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
