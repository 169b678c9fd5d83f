//! The parts of a GGUF file one by one, for tests that need a malformed one.

use crate::tensor::TensorType;
use crate::value::Value;

/// The four bytes that every GGUF file starts with.
pub const MAGIC: [u8; 4] = *b"GGUF";
/// The version of the format that this crate writes.
pub const VERSION: u32 = 3;

/// A file that is put together piece by piece, in file order and without any check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RawFile {
    /// What has been written up to here.
    pub bytes: Vec<u8>,
}

impl RawFile {
    /// An empty file.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A file with a header: magic, `version` and the two counts.
    #[must_use]
    pub fn with_header(version: u32, n_tensors: u64, n_kv: u64) -> Self {
        Self::new().put(&MAGIC).put(&version.to_le_bytes()).put_u64(n_tensors).put_u64(n_kv)
    }

    /// Appends bytes as they are.
    #[must_use]
    pub fn put(mut self, bytes: &[u8]) -> Self {
        self.bytes.extend(bytes);
        self
    }

    /// Appends a 32-bit number.
    #[must_use]
    pub fn put_u32(self, v: u32) -> Self {
        self.put(&v.to_le_bytes())
    }

    /// Appends a 64-bit number.
    #[must_use]
    pub fn put_u64(self, v: u64) -> Self {
        self.put(&v.to_le_bytes())
    }

    /// Appends a string: its length and its bytes.
    #[must_use]
    pub fn put_str(self, text: &[u8]) -> Self {
        self.put_u64(text.len() as u64).put(text)
    }

    /// Appends a metadata entry: key, type tag, value.
    #[must_use]
    pub fn put_kv(self, key: &str, value: &Value) -> Self {
        let mut out = self.put_str(key.as_bytes()).put_u32(value.value_type() as u32);
        value.encode(&mut out.bytes);
        out
    }

    /// Appends a tensor entry: name, shape, type and the offset of its data in the data section.
    #[must_use]
    pub fn put_tensor_info(self, name: &str, dims: &[u64], ty: TensorType, offset: u64) -> Self {
        let mut out = self.put_str(name.as_bytes()).put_u32(dims.len() as u32);
        for dim in dims {
            out = out.put_u64(*dim);
        }
        out.put_u32(ty.0).put_u64(offset)
    }

    /// Appends zeros up to the next multiple of `alignment`.
    #[must_use]
    pub fn pad(mut self, alignment: usize) -> Self {
        self.bytes.resize(self.bytes.len().next_multiple_of(alignment), 0);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::RawFile;
    use crate::tensor::TensorType;
    use crate::value::Value;

    #[test]
    fn header_bytes() {
        let file = RawFile::with_header(3, 2, 1);
        assert_eq!(file.bytes, *b"GGUF\x03\0\0\0\x02\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0");
    }

    #[test]
    fn entry_bytes() {
        let kv = RawFile::new().put_kv("k", &Value::U16(5));
        assert_eq!(kv.bytes, *b"\x01\0\0\0\0\0\0\0k\x02\0\0\0\x05\0");
        let info = RawFile::new().put_tensor_info("t", &[3, 1], TensorType::F16, 32);
        let expected = b"\x01\0\0\0\0\0\0\0t\x02\0\0\0\x03\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\x01\0\0\0\x20\0\0\0\0\0\0\0";
        assert_eq!(info.bytes, *expected);
        assert_eq!(RawFile::new().put(&[1]).pad(4).bytes, [1, 0, 0, 0]);
        assert_eq!(RawFile::new().put(&[1; 4]).pad(4).bytes, [1; 4]);
    }
}
