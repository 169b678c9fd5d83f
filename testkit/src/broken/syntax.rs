//! Files that break the rules of the GGUF format.

use crate::broken::base;
use crate::gguf::{Gguf, Layout};
use crate::raw::{MAGIC, RawFile, VERSION};
use crate::tensor::{Tensor, TensorType};
use crate::value::{Value, ValueType};

/// All of them, with their names.
#[must_use]
pub fn all() -> Vec<(String, Vec<u8>)> {
    let mut files = headers();
    files.extend(truncated());
    files.extend(counts());
    files.extend(values());
    files.extend(tensors());
    files.into_iter().map(|(name, bytes)| (name.to_owned(), bytes)).collect()
}

type Files = Vec<(&'static str, Vec<u8>)>;

/// A header that is not finished, not GGUF or of another version.
fn headers() -> Files {
    let version = |v: u32| patched(|bytes, _| put_u32(bytes, 4, v));
    vec![
        ("empty", Vec::new()),
        ("three-bytes", b"GGU".to_vec()),
        ("magic-only", MAGIC.to_vec()),
        ("wrong-magic", patched(|bytes, _| put_u32(bytes, 0, u32::from_le_bytes(*b"GGML")))),
        ("zeros", vec![0; 4096]),
        ("text", b"this is not a model\n".repeat(64)),
        ("version-0", version(0)),
        ("version-1", version(1)),
        ("version-4", version(4)),
        ("version-2-pow-31", version(1 << 31)),
        ("version-other-endian", version(VERSION.swap_bytes())),
        ("no-content", RawFile::with_header(VERSION, 0, 0).bytes),
    ]
}

/// A sound file of which the end is missing.
fn truncated() -> Files {
    let cut = |at: &dyn Fn(&Layout) -> usize| patched(|bytes, layout| bytes.truncate(at(layout)));
    vec![
        ("cut-in-version", cut(&|_| 6)),
        ("cut-in-tensor-count", cut(&|_| 12)),
        ("cut-in-kv-count", cut(&|_| 23)),
        ("cut-after-header", cut(&|_| 24)),
        ("cut-in-key-length", cut(&|l| l.kv[1] + 4)),
        ("cut-in-key", cut(&|l| l.kv[1] + 12)),
        ("cut-in-value-type", cut(&|l| l.kv[2] - 6)),
        ("cut-in-value", cut(&|l| l.kv[1] - 2)),
        ("cut-in-tokens", cut(&|l| l.tensor_infos[0] / 2)),
        ("cut-before-tensor-infos", cut(&|l| l.tensor_infos[0])),
        ("cut-in-tensor-name", cut(&|l| l.tensor_infos[0] + 10)),
        ("cut-in-tensor-info", cut(&|l| l.tensor_infos[1] - 9)),
        ("cut-before-data", cut(&|l| l.data)),
        ("cut-in-data", cut(&|l| (l.data + l.len) / 2)),
        ("cut-last-byte", cut(&|l| l.len - 1)),
    ]
}

/// Counts and lengths that no file can hold.
fn counts() -> Files {
    let n_tensors = |n: u64| patched(|bytes, _| put_u64(bytes, 8, n));
    let n_kv = |n: u64| patched(|bytes, _| put_u64(bytes, 16, n));
    let key_len = |n: u64| patched(|bytes, layout| put_u64(bytes, layout.kv[0], n));
    // the first value is a string: general.architecture
    let value_len = |n: u64| patched(|bytes, layout| put_u64(bytes, layout.kv[0] + 8 + 20 + 4, n));
    let array_len = |ty: ValueType, n: u64| {
        RawFile::with_header(VERSION, 0, 1)
            .put_str(b"array")
            .put_u32(ValueType::Array as u32)
            .put_u32(ty as u32)
            .put_u64(n)
            .put(&[0; 256])
            .bytes
    };
    vec![
        ("tensor-count-one-more", n_tensors(base().tensors().len() as u64 + 1)),
        ("tensor-count-1e9", n_tensors(1_000_000_000)),
        ("tensor-count-2-pow-62", n_tensors(1 << 62)),
        ("tensor-count-max", n_tensors(u64::MAX)),
        ("kv-count-one-more", n_kv(base().kvs().len() as u64 + 1)),
        ("kv-count-one-less", n_kv(base().kvs().len() as u64 - 1)),
        ("kv-count-1e9", n_kv(1_000_000_000)),
        ("kv-count-2-pow-62", n_kv(1 << 62)),
        ("kv-count-max", n_kv(u64::MAX)),
        ("key-length-0", key_len(0)),
        ("key-length-2-pow-31", key_len(1 << 31)),
        ("key-length-max", key_len(u64::MAX)),
        ("string-length-2-pow-30", value_len(1 << 30)),
        ("string-length-max", value_len(u64::MAX)),
        ("array-length-2-pow-30", array_len(ValueType::U8, 1 << 30)),
        ("array-length-2-pow-62", array_len(ValueType::U64, 1 << 62)),
        ("array-length-max", array_len(ValueType::U8, u64::MAX)),
        ("string-array-length-2-pow-60", array_len(ValueType::Str, 1 << 60)),
        ("string-array-length-2-pow-29", array_len(ValueType::Str, 1 << 29)),
    ]
}

/// Metadata entries that are not allowed.
fn values() -> Files {
    let tagged = |tag: u32| RawFile::with_header(VERSION, 0, 1).put_str(b"key").put_u32(tag).put(&[0; 64]).bytes;
    let nested = Value::Array(ValueType::Array, vec![Value::from(vec![1u8]), Value::from(vec![2u8])]);
    let element = RawFile::with_header(VERSION, 0, 1)
        .put_str(b"key")
        .put_u32(ValueType::Array as u32)
        .put_u32(77)
        .put_u64(1)
        .put(&[0; 64]);
    vec![
        ("value-type-13", tagged(13)),
        ("value-type-99", tagged(99)),
        ("value-type-max", tagged(u32::MAX)),
        ("array-element-type-77", element.bytes),
        ("nested-array", base().with_kv("nested", nested).to_bytes()),
        ("duplicate-key", base().with_duplicate_kv("general.name", "again").to_bytes()),
        ("empty-key", base().with_kv("", 1u32).to_bytes()),
        ("alignment-0", base().with_kv("general.alignment", 0u32).to_bytes()),
        ("alignment-3", base().with_kv("general.alignment", 3u32).to_bytes()),
        ("alignment-2-pow-31", base().with_kv("general.alignment", 1u32 << 31).to_bytes()),
        ("alignment-string", base().with_kv("general.alignment", "32").to_bytes()),
        ("alignment-64-unused", base().with_kv("general.alignment", 64u32).to_bytes()),
    ]
}

/// Tensor entries that are not allowed.
fn tensors() -> Files {
    let dims = |dims: &[u64]| with_info("extra", dims, TensorType::F32, None);
    let ty = |ty: u32| with_info("extra", &[32], TensorType(ty), None);
    let offset = |offset: u64| with_info("extra", &[32], TensorType::F32, Some(offset));
    let name = |name: &str| with_info(name, &[32], TensorType::F32, None);
    vec![
        ("tensor-duplicate", base().with_tensor(Tensor::f32("output_norm.weight", &[32], &[1.0; 32])).to_bytes()),
        ("tensor-name-empty", name("")),
        ("tensor-name-64-bytes", name(&"n".repeat(64))),
        ("tensor-name-1000-bytes", name(&"n".repeat(1000))),
        ("tensor-dims-0", dims(&[0])),
        ("tensor-dims-32-0", dims(&[32, 0])),
        ("tensor-dims-negative", dims(&[u64::MAX])),
        ("tensor-dims-overflow", dims(&[1 << 40, 1 << 40])),
        ("tensor-dims-overflow-bytes", dims(&[1 << 62])),
        ("tensor-dims-overflow-zero", dims(&[1 << 62, 1 << 62, 0, 4])),
        ("tensor-dims-too-large", dims(&[1 << 40])),
        ("tensor-five-dims", dims(&[2, 2, 2, 2, 2])),
        ("tensor-no-dims", dims(&[])),
        ("tensor-type-removed", ty(4)),
        ("tensor-type-99", ty(99)),
        ("tensor-type-max", ty(u32::MAX)),
        ("tensor-row-not-whole-blocks", with_info("extra", &[33], TensorType(8), None)),
        ("tensor-offset-0", offset(0)),
        ("tensor-offset-misaligned", offset(7)),
        ("tensor-offset-outside", offset(1 << 40)),
        ("tensor-offset-max", offset(u64::MAX)),
    ]
}

/// The sound file with one more tensor, described as given; its data are 128 bytes.
fn with_info(name: &str, dims: &[u64], ty: TensorType, offset: Option<u64>) -> Vec<u8> {
    let tensor = Tensor { name: name.to_owned(), dims: dims.to_vec(), ty, data: vec![0; 128] };
    let file = base().with_tensor(tensor);
    let (mut bytes, layout) = file.to_bytes_and_layout();
    if let (Some(offset), Some(at)) = (offset, layout.tensor_infos.last()) {
        put_u64(&mut bytes, at + 8 + name.len() + 4 + 8 * dims.len() + 4, offset);
    }
    bytes
}

/// The sound file after a change of its bytes.
fn patched(change: impl FnOnce(&mut Vec<u8>, &Layout)) -> Vec<u8> {
    let (mut bytes, layout) = Gguf::to_bytes_and_layout(&base());
    change(&mut bytes, &layout);
    bytes
}

fn put_u32(bytes: &mut [u8], at: usize, v: u32) {
    bytes[at..at + 4].copy_from_slice(&v.to_le_bytes());
}

fn put_u64(bytes: &mut [u8], at: usize, v: u64) {
    bytes[at..at + 8].copy_from_slice(&v.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::{all, base};

    fn file(name: &str) -> Vec<u8> {
        all().into_iter().find(|(n, _)| n == name).unwrap().1
    }

    #[test]
    fn patches_hit_their_place() {
        let (sound, layout) = base().to_bytes_and_layout();
        assert_eq!(&sound[layout.kv[0] + 8..layout.kv[0] + 28], b"general.architecture");
        let long = file("string-length-max");
        let differing: Vec<usize> = (0..sound.len()).filter(|i| sound[*i] != long[*i]).collect();
        let start = layout.kv[0] + 32;
        assert_eq!(differing, (start..start + 8).collect::<Vec<_>>());
        assert_eq!(&sound[start + 8..start + 13], b"llama");
        assert_eq!(file("cut-in-value").len(), layout.kv[1] - 2);
        assert_eq!(file("cut-before-data").len(), layout.data);
    }

    #[test]
    fn offset_is_the_last_field_of_the_last_entry() {
        let file = file("tensor-offset-outside");
        let needle = (1u64 << 40).to_le_bytes();
        assert_eq!(file.windows(8).filter(|w| *w == needle).count(), 1);
    }
}
