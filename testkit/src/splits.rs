//! A model in several files.

use std::io;
use std::path::{Path, PathBuf};

use crate::files::write_atomically;
use crate::gguf::Gguf;

/// The name of part `index` (from 0) of `count`.
#[must_use]
pub fn split_name(name: &str, index: usize, count: usize) -> String {
    format!("{name}-{:05}-of-{count:05}.gguf", index + 1)
}

/// The parts of a file. The first has all metadata and, like the others, its share of the tensors, in order.
#[must_use]
pub fn split(gguf: &Gguf, count: usize) -> Vec<Gguf> {
    let count = count.max(1);
    let share = gguf.tensors().len().div_ceil(count).max(1);
    let mut tensors = gguf.tensors().chunks(share);
    (0..count)
        .map(|index| {
            let mut part = Gguf::new();
            if index == 0 {
                for (key, value) in gguf.kvs() {
                    part.set_kv(key, value.clone());
                }
            }
            part = part
                .with_kv("split.no", index as u16)
                .with_kv("split.count", count as u16)
                .with_kv("split.tensors.count", gguf.tensors().len() as i32);
            for tensor in tensors.next().unwrap_or_default() {
                part = part.with_tensor(tensor.clone());
            }
            part
        })
        .collect()
}

/// Writes the parts of a file into a folder, under upstream's names.
///
/// # Errors
///
/// What the file system reports.
pub fn write_split(gguf: &Gguf, folder: &Path, name: &str, count: usize) -> io::Result<Vec<PathBuf>> {
    let parts = split(gguf, count);
    let mut paths = Vec::new();
    for (index, part) in parts.iter().enumerate() {
        let path = folder.join(split_name(name, index, parts.len()));
        write_atomically(&path, &part.to_bytes())?;
        paths.push(path);
    }
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::{split, split_name};
    use crate::models::tiny_llama;
    use crate::value::Value;

    #[test]
    fn names() {
        assert_eq!(split_name("m", 0, 3), "m-00001-of-00003.gguf");
        assert_eq!(split_name("m", 11, 12), "m-00012-of-00012.gguf");
    }

    #[test]
    fn shares() {
        let whole = tiny_llama();
        let parts = split(&whole, 3);
        assert_eq!(parts.len(), 3);
        let names: Vec<_> = parts.iter().flat_map(|p| p.tensors()).map(|t| t.name.clone()).collect();
        let expected: Vec<_> = whole.tensors().iter().map(|t| t.name.clone()).collect();
        assert_eq!(names, expected);
        assert!(parts[0].kv("general.architecture").is_some());
        assert!(parts[1].kv("general.architecture").is_none());
        assert_eq!(parts[2].kv("split.no"), Some(&Value::U16(2)));
        assert_eq!(parts[2].kv("split.tensors.count"), Some(&Value::I32(21)));
        assert_eq!(split(&whole, 100).len(), 100);
    }
}
