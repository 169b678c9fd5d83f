//! A GGUF file as data: metadata, tensors, alignment; and its bytes.

use std::io;
use std::path::Path;

use crate::raw::{RawFile, VERSION};
use crate::tensor::Tensor;
use crate::value::Value;

/// The alignment of tensor data where the file does not state one.
pub const DEFAULT_ALIGNMENT: usize = 32;

/// A GGUF file before it is written.
///
/// ```
/// use ggml_llama_testkit::{Gguf, Tensor};
///
/// let bytes = Gguf::new()
///     .with_kv("general.architecture", "none")
///     .with_tensor(Tensor::f32("t", &[2], &[1.0, 2.0]))
///     .to_bytes();
/// assert_eq!(&bytes[..4], b"GGUF");
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Gguf {
    kv: Vec<(String, Value)>,
    tensors: Vec<Tensor>,
    alignment: Option<u32>,
}

/// Where the parts of a written file begin, in bytes from its start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    /// Start of each metadata entry.
    pub kv: Vec<usize>,
    /// Start of each tensor entry.
    pub tensor_infos: Vec<usize>,
    /// Start of the tensor data.
    pub data: usize,
    /// Length of the file.
    pub len: usize,
}

impl Gguf {
    /// A file without metadata and tensors.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a metadata entry, or changes it where the key exists.
    #[must_use]
    pub fn with_kv(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.set_kv(key, value);
        self
    }

    /// Adds a metadata entry, or changes it where the key exists.
    pub fn set_kv(&mut self, key: impl Into<String>, value: impl Into<Value>) {
        let (key, value) = (key.into(), value.into());
        match self.kv.iter_mut().find(|(k, _)| *k == key) {
            Some(entry) => entry.1 = value,
            None => self.kv.push((key, value)),
        }
    }

    /// Adds a metadata entry even where the key exists.
    #[must_use]
    pub fn with_duplicate_kv(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.kv.push((key.into(), value.into()));
        self
    }

    /// Drops a metadata entry.
    #[must_use]
    pub fn without_kv(mut self, key: &str) -> Self {
        self.kv.retain(|(k, _)| k != key);
        self
    }

    /// The value of a metadata entry.
    #[must_use]
    pub fn kv(&self, key: &str) -> Option<&Value> {
        self.kv.iter().find(|(k, _)| k == key).map(|(_, v)| v)
    }

    /// All metadata entries, in file order.
    #[must_use]
    pub fn kvs(&self) -> &[(String, Value)] {
        &self.kv
    }

    /// Adds a tensor, also where the name exists.
    #[must_use]
    pub fn with_tensor(mut self, tensor: Tensor) -> Self {
        self.tensors.push(tensor);
        self
    }

    /// Drops a tensor.
    #[must_use]
    pub fn without_tensor(mut self, name: &str) -> Self {
        self.tensors.retain(|t| t.name != name);
        self
    }

    /// A tensor by name.
    #[must_use]
    pub fn tensor(&self, name: &str) -> Option<&Tensor> {
        self.tensors.iter().find(|t| t.name == name)
    }

    /// A tensor by name, to be changed.
    pub fn tensor_mut(&mut self, name: &str) -> Option<&mut Tensor> {
        self.tensors.iter_mut().find(|t| t.name == name)
    }

    /// All tensors, in file order.
    #[must_use]
    pub fn tensors(&self) -> &[Tensor] {
        &self.tensors
    }

    /// Aligns tensor data to `alignment`, a power of two, and says so in `general.alignment`.
    #[must_use]
    pub fn with_alignment(mut self, alignment: u32) -> Self {
        self.alignment = Some(alignment);
        self.with_kv("general.alignment", alignment)
    }

    /// The alignment that the data are laid out with.
    #[must_use]
    pub fn alignment(&self) -> usize {
        match self.alignment {
            Some(a) if a > 0 => a as usize,
            _ => DEFAULT_ALIGNMENT,
        }
    }

    /// The file's bytes.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        self.to_bytes_and_layout().0
    }

    /// The file's bytes and where its parts begin.
    #[must_use]
    pub fn to_bytes_and_layout(&self) -> (Vec<u8>, Layout) {
        let alignment = self.alignment();
        let mut layout = Layout::default();
        let mut file = RawFile::with_header(VERSION, self.tensors.len() as u64, self.kv.len() as u64);
        for (key, value) in &self.kv {
            layout.kv.push(file.bytes.len());
            file = file.put_kv(key, value);
        }
        let mut offset = 0;
        for tensor in &self.tensors {
            layout.tensor_infos.push(file.bytes.len());
            file = file.put_tensor_info(&tensor.name, &tensor.dims, tensor.ty, offset as u64);
            offset = (offset + tensor.data.len()).next_multiple_of(alignment);
        }
        file = file.pad(alignment);
        layout.data = file.bytes.len();
        for tensor in &self.tensors {
            file = file.put(&tensor.data).pad(alignment);
        }
        layout.len = file.bytes.len();
        (file.bytes, layout)
    }

    /// Writes the file.
    ///
    /// # Errors
    ///
    /// What the file system reports.
    pub fn write(&self, path: impl AsRef<Path>) -> io::Result<()> {
        std::fs::write(path, self.to_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::Gguf;
    use crate::tensor::Tensor;
    use crate::value::Value;

    #[test]
    fn whole_file_by_hand() {
        let bytes = Gguf::new()
            .with_kv("a", 1u8)
            .with_tensor(Tensor::f32("x", &[1], &[1.0]))
            .with_tensor(Tensor::f32("y", &[1], &[2.0]))
            .to_bytes();
        let mut expected = Vec::new();
        expected.extend(b"GGUF\x03\0\0\0\x02\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0");
        expected.extend(b"\x01\0\0\0\0\0\0\0a\0\0\0\0\x01");
        expected.extend(b"\x01\0\0\0\0\0\0\0x\x01\0\0\0\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0");
        expected.extend(b"\x01\0\0\0\0\0\0\0y\x01\0\0\0\x01\0\0\0\0\0\0\0\0\0\0\0\x20\0\0\0\0\0\0\0");
        assert_eq!(expected.len(), 24 + 14 + 33 + 33);
        expected.resize(128, 0);
        expected.extend(1.0f32.to_le_bytes());
        expected.resize(160, 0);
        expected.extend(2.0f32.to_le_bytes());
        expected.resize(192, 0);
        assert_eq!(bytes, expected);
    }

    #[test]
    fn layout_and_alignment() {
        let file =
            Gguf::new().with_kv("k", "v").with_alignment(64).with_tensor(Tensor::f16("t", &[3], &[0.0, 1.0, 2.0]));
        let (bytes, layout) = file.to_bytes_and_layout();
        assert_eq!(layout.kv[0], 24);
        assert_eq!(layout.kv[1], 24 + 9 + 4 + 9);
        assert_eq!(&bytes[layout.kv[1] + 8..layout.kv[1] + 25], b"general.alignment");
        assert_eq!(layout.tensor_infos, [layout.kv[1] + 8 + 17 + 4 + 4]);
        assert_eq!(layout.data % 64, 0);
        assert_eq!(layout.len, layout.data + 64);
        assert_eq!(bytes.len(), layout.len);
        assert_eq!(bytes[layout.data..layout.data + 6], [0, 0, 0, 0x3c, 0, 0x40]);
    }

    #[test]
    fn entries_can_be_changed() {
        let mut file = Gguf::new().with_kv("a", 1u32).with_kv("b", 2u32).with_kv("a", 3u32);
        assert_eq!(file.kvs().len(), 2);
        assert_eq!(file.kv("a"), Some(&Value::U32(3)));
        file = file.without_kv("a").with_duplicate_kv("b", 4u32);
        assert_eq!(file.kvs().len(), 2);
        file = file.with_tensor(Tensor::f32("t", &[1], &[0.0]));
        if let Some(t) = file.tensor_mut("t") {
            t.dims = vec![2];
        }
        assert_eq!(file.tensor("t").map(|t| t.dims.clone()), Some(vec![2]));
        assert!(file.without_tensor("t").tensors().is_empty());
    }
}
