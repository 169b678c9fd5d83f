//! Models in several files that do not belong together.

use std::io;
use std::path::{Path, PathBuf};

use crate::broken::base;
use crate::files::write_atomically;
use crate::gguf::Gguf;
use crate::splits::{split, split_name};

/// The files of one model; the first is the one to load. `None` stands for a file that is missing.
#[derive(Clone, Debug)]
pub struct BrokenSplit {
    /// Name, fit for a file name.
    pub name: String,
    /// Bytes of each part, in order.
    pub parts: Vec<Option<Vec<u8>>>,
}

impl BrokenSplit {
    /// Writes the parts into a folder under upstream's names; returns the paths, also of those that are missing.
    ///
    /// # Errors
    ///
    /// What the file system reports.
    pub fn write(&self, folder: &Path) -> io::Result<Vec<PathBuf>> {
        let mut paths = Vec::new();
        for (index, bytes) in self.parts.iter().enumerate() {
            let path = folder.join(split_name(&self.name, index, self.parts.len()));
            if let Some(bytes) = bytes {
                write_atomically(&path, bytes)?;
            }
            paths.push(path);
        }
        Ok(paths)
    }
}

/// All of them.
#[must_use]
pub fn all() -> Vec<BrokenSplit> {
    let sound = split(&base(), 3);
    let changed = |index: usize, change: &dyn Fn(&Gguf) -> Gguf| -> Vec<Option<Vec<u8>>> {
        sound.iter().enumerate().map(|(i, g)| Some(if i == index { change(g) } else { g.clone() }.to_bytes())).collect()
    };
    let of = |name: &str, parts| BrokenSplit { name: name.to_owned(), parts };
    let mut missing = changed(0, &Gguf::clone);
    missing[2] = None;
    let mut empty = changed(0, &Gguf::clone);
    empty[1] = Some(Vec::new());
    let mut swapped = changed(0, &Gguf::clone);
    swapped.swap(1, 2);
    let mut first_is_second = changed(0, &Gguf::clone);
    first_is_second.swap(0, 1);
    vec![
        of("split-part-missing", missing),
        of("split-part-empty", empty),
        of("split-parts-swapped", swapped),
        of("split-first-is-second", first_is_second),
        of("split-no-missing", changed(1, &|g| g.clone().without_kv("split.no"))),
        of("split-no-u32", changed(1, &|g| g.clone().with_kv("split.no", 1u32))),
        of("split-no-string", changed(1, &|g| g.clone().with_kv("split.no", "1"))),
        of("split-no-array", changed(1, &|g| g.clone().with_kv("split.no", vec![1u16, 1]))),
        of("split-first-no-u32", changed(0, &|g| g.clone().with_kv("split.no", 0u32))),
        of("split-tensor-count-wrong", changed(0, &|g| g.clone().with_kv("split.tensors.count", 99i32))),
        of("split-tensor-count-missing", changed(0, &|g| g.clone().without_kv("split.tensors.count"))),
        of(
            "split-tensor-twice",
            changed(2, &|g| sound[0].tensors().first().map_or_else(|| g.clone(), |t| g.clone().with_tensor(t.clone()))),
        ),
        of(
            "split-tensors-missing",
            changed(2, &|g| g.tensors().first().map_or_else(|| g.clone(), |t| g.clone().without_tensor(&t.name))),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::all;

    #[test]
    fn three_parts_each() {
        for model in all() {
            assert_eq!(model.parts.len(), 3, "{}", model.name);
        }
    }
}
