//! The metadata section: keys and values.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io::{Read, Seek};

use crate::gguf::problem::{Check, bail, shown};
use crate::gguf::reader::Reader;
use crate::gguf::tokens::{self, TokenFacts};
use crate::gguf::value::{Array, Value, ValueType};

/// Upstream prints each entry, and searches them one by one. Real files have less than 200.
const MAX_ENTRIES: u64 = 1 << 14;
/// Upstream turns each array into a text of up to ten times its size to print its first 40 characters.
const MAX_SECTION: u64 = 128 << 20;
const MAX_KEY_BYTES: u64 = 1024;
/// Longer texts are kept up to here; all that a check compares with are shorter.
const KEPT_TEXT: usize = 256;
/// Longer arrays are not kept. Those that upstream reads element by element have at most one per layer, of which it
/// allows 512.
const KEPT_ARRAY: u64 = 1024;
/// Upstream copies the elements, each of which can take four times its size in the file.
const MAX_ARRAY: u64 = 1 << 24;
/// The type of a token that stands for one byte (`LLAMA_TOKEN_TYPE_BYTE`).
const BYTE_TOKEN: i32 = 6;

/// The entries of one file, without long texts and arrays.
#[derive(Debug, Clone, Default)]
pub(crate) struct Metadata {
    entries: HashMap<String, Value>,
    pub(crate) tokens: Option<TokenFacts>,
    pub(crate) has_byte_tokens: bool,
}

impl Metadata {
    pub(crate) fn get(&self, key: &str) -> Option<&Value> {
        self.entries.get(key)
    }

    pub(crate) fn set(&mut self, key: &str, value: Value) {
        self.entries.insert(key.to_owned(), value);
    }

    /// A text; nothing when the entry is missing or has another type.
    pub(crate) fn text(&self, key: &str) -> Option<&str> {
        match self.get(key) {
            Some(Value::String(text)) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.entries.iter().map(|(key, value)| (key.as_str(), value))
    }
}

/// Reads all `count` entries.
pub(crate) fn read<R: Read + Seek>(reader: &mut Reader<R>, count: u64) -> Check<Metadata> {
    if count > MAX_ENTRIES {
        bail!("it declares {count} metadata entries; expected at most {MAX_ENTRIES}");
    }
    let mut metadata = Metadata::default();
    for index in 0..count {
        let key = read_key(reader).map_err(|p| p.within(|| format!("metadata entry {index}")))?;
        let value = read_value(reader, &key, &mut metadata).map_err(|p| p.within(|| shown(&key)))?;
        if reader.at() > MAX_SECTION {
            bail!("its metadata has more than {MAX_SECTION} bytes");
        }
        match metadata.entries.entry(key) {
            Entry::Vacant(entry) => entry.insert(value),
            Entry::Occupied(entry) => bail!("it has two entries {}", shown(entry.key())),
        };
    }
    Ok(metadata)
}

fn read_key<R: Read + Seek>(reader: &mut Reader<R>) -> Check<String> {
    let len = reader.u64("the length of its key")?;
    if len == 0 || len > MAX_KEY_BYTES {
        bail!("its key has {len} bytes; expected 1 to {MAX_KEY_BYTES}");
    }
    let mut bytes = Vec::new();
    reader.bytes(len, "its key", &mut bytes)?;
    // Upstream compares C strings: what follows a NUL byte would make this check see another key than it does.
    match String::from_utf8(bytes) {
        Ok(key) if !key.contains('\0') => Ok(key),
        Ok(key) => bail!("its key {} holds a NUL byte", shown(&key)),
        Err(error) => bail!("its key {} is not UTF-8", shown(&String::from_utf8_lossy(error.as_bytes()))),
    }
}

fn read_type<R: Read + Seek>(reader: &mut Reader<R>, what: &str) -> Check<ValueType> {
    let id = reader.u32(what)?;
    match ValueType::from_id(id) {
        Some(ty) => Ok(ty),
        None => bail!("{what} is {id}; expected 0 to 12"),
    }
}

fn read_value<R: Read + Seek>(reader: &mut Reader<R>, key: &str, metadata: &mut Metadata) -> Check<Value> {
    let ty = read_type(reader, "its type")?;
    match ty {
        ValueType::String => read_text(reader).map(Value::String),
        ValueType::Array => read_array(reader, key, metadata).map(Value::Array),
        scalar => read_scalar(reader, scalar),
    }
}

fn read_scalar<R: Read + Seek>(reader: &mut Reader<R>, ty: ValueType) -> Check<Value> {
    let mut bytes = [0; 8];
    match ty.size() {
        Some(1) => put(&mut bytes, &reader.array::<1>("its value")?),
        Some(2) => put(&mut bytes, &reader.array::<2>("its value")?),
        Some(4) => put(&mut bytes, &reader.array::<4>("its value")?),
        _ => put(&mut bytes, &reader.array::<8>("its value")?),
    }
    match Value::from_le_bytes(ty, bytes) {
        Some(value) => Ok(value),
        None => bail!("a value of type {} was expected to be a number", ty.name()),
    }
}

fn put(to: &mut [u8; 8], from: &[u8]) {
    for (to, from) in to.iter_mut().zip(from) {
        *to = *from;
    }
}

/// A text up to its first NUL byte, where upstream stops reading it.
fn read_text<R: Read + Seek>(reader: &mut Reader<R>) -> Check<String> {
    let len = reader.u64("the length of its value")?;
    reader.need(len, "its value")?;
    let kept = len.min(KEPT_TEXT as u64);
    let mut bytes = Vec::new();
    reader.bytes(kept, "its value", &mut bytes)?;
    reader.skip(len - kept, "its value")?;
    let end = bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len());
    bytes.truncate(end);
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn read_array<R: Read + Seek>(reader: &mut Reader<R>, key: &str, metadata: &mut Metadata) -> Check<Array> {
    let element = read_type(reader, "the type of its elements")?;
    let len = reader.u64("its number of elements")?;
    if element == ValueType::Array {
        bail!("it is an array of arrays, which upstream does not know");
    }
    // A string takes at least the eight bytes of its length.
    let bytes = u128::from(len) * u128::from(element.size().unwrap_or(8));
    if len > MAX_ARRAY || bytes > u128::from(reader.remaining()) {
        bail!(
            "it is an array of {len} elements of type {}; expected at most {MAX_ARRAY}, in the {} bytes that are left",
            element.name(),
            reader.remaining()
        );
    }
    let mut integers = Vec::new();
    match (element.size(), key, element) {
        (None, "tokenizer.ggml.tokens", _) => metadata.tokens = Some(tokens::read(reader, len)?),
        (None, ..) => skip_strings(reader, len)?,
        (_, "tokenizer.ggml.token_type", ValueType::I32) => metadata.has_byte_tokens = has_byte_tokens(reader, len)?,
        (Some(_), _, ty) if len <= KEPT_ARRAY && !matches!(ty, ValueType::F32 | ValueType::F64) => {
            for _ in 0..len {
                integers.extend(read_scalar(reader, element)?.as_integer());
            }
        }
        (Some(size), ..) => reader.skip(len.saturating_mul(size), "its elements")?,
    }
    Ok(Array { element, len, integers })
}

fn skip_strings<R: Read + Seek>(reader: &mut Reader<R>, len: u64) -> Check {
    for _ in 0..len {
        let len = reader.u64("the length of an element")?;
        reader.skip(len, "an element")?;
    }
    Ok(())
}

fn has_byte_tokens<R: Read + Seek>(reader: &mut Reader<R>, len: u64) -> Check<bool> {
    let mut found = false;
    let mut left = len.saturating_mul(4);
    let mut bytes = Vec::new();
    while left > 0 {
        let n = left.min(1 << 14);
        reader.bytes(n, "its elements", &mut bytes)?;
        found = found || bytes.as_chunks::<4>().0.iter().any(|b| i32::from_le_bytes(*b) == BYTE_TOKEN);
        left -= n;
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::{Metadata, read};
    use crate::gguf::problem::{Check, Problem};
    use crate::gguf::reader::Reader;
    use crate::gguf::value::{Value, ValueType};

    fn entry(key: &[u8], ty: u32, value: &[u8]) -> Vec<u8> {
        [&(key.len() as u64).to_le_bytes(), key, &ty.to_le_bytes(), value].concat()
    }

    fn array(element: u32, len: u64, elements: &[u8]) -> Vec<u8> {
        [&element.to_le_bytes(), &len.to_le_bytes()[..], elements].concat()
    }

    fn text(text: &[u8]) -> Vec<u8> {
        [&(text.len() as u64).to_le_bytes(), text].concat()
    }

    fn parsed(entries: &[Vec<u8>]) -> Check<Metadata> {
        let bytes = entries.concat();
        let size = bytes.len() as u64;
        read(&mut Reader::new(Cursor::new(bytes), size), entries.len() as u64)
    }

    fn reason(entries: &[Vec<u8>]) -> String {
        match parsed(entries) {
            Err(Problem::Invalid(reason)) => reason,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn scalars_texts_and_arrays() {
        let metadata = parsed(&[
            entry(b"a", 4, &7u32.to_le_bytes()),
            entry(b"b", 8, &text(b"llama\0more")),
            entry(b"c", 9, &array(5, 2, &[1, 0, 0, 0, 0xff, 0xff, 0xff, 0xff])),
            entry(b"d", 6, &1.5f32.to_le_bytes()),
            entry(b"e", 8, &text(&[b'x'; 5000])),
            entry(b"tokenizer.ggml.tokens", 9, &array(8, 1, &text(b"hi"))),
            entry(b"tokenizer.ggml.token_type", 9, &array(5, 1, &6i32.to_le_bytes())),
        ])
        .unwrap();
        assert_eq!(metadata.get("a"), Some(&Value::U32(7)));
        assert_eq!(metadata.text("b"), Some("llama"));
        let Some(Value::Array(array)) = metadata.get("c") else { panic!() };
        assert_eq!((array.element, array.len, &array.integers[..]), (ValueType::I32, 2, &[1, -1][..]));
        assert_eq!(metadata.get("d"), Some(&Value::F32(1.5)));
        assert_eq!(metadata.text("e").map(str::len), Some(256));
        assert_eq!(metadata.tokens.as_ref().map(|t| (t.count, t.longest)), Some((1, 2)));
        assert!(metadata.has_byte_tokens);
        assert_eq!(metadata.iter().count(), 7);
    }

    #[test]
    fn keys() {
        assert!(reason(&[entry(b"", 4, &[0; 4])]).contains("metadata entry 0: its key has 0 bytes"));
        assert!(reason(&[entry(&[b'k'; 1025], 4, &[0; 4])]).contains("has 1025 bytes; expected 1 to 1024"));
        assert!(reason(&[entry(b"a\0b", 4, &[0; 4])]).contains("holds a NUL byte"));
        assert!(reason(&[entry(b"\xff", 4, &[0; 4])]).contains("is not UTF-8"));
        let twice = entry(b"a", 4, &[0; 4]);
        assert_eq!(reason(&[twice.clone(), twice]), "it has two entries `a`");
    }

    #[test]
    fn values() {
        assert_eq!(reason(&[entry(b"a", 13, &[0; 8])]), "`a`: its type is 13; expected 0 to 12");
        assert!(reason(&[entry(b"a", 4, &[0; 3])]).contains("its value needs 4 bytes"));
        assert!(reason(&[entry(b"a", 8, &u64::MAX.to_le_bytes())]).contains("its value needs 18446744073709551615"));
        assert!(reason(&[entry(b"a", 9, &array(9, 0, &[]))]).contains("array of arrays"));
        assert!(reason(&[entry(b"a", 9, &array(77, 0, &[]))]).contains("type of its elements is 77"));
        for (element, len) in [(0, u64::MAX), (10, 1 << 61), (8, 1 << 60), (8, 1 << 20), (0, 1 << 30)] {
            let reason = reason(&[entry(b"a", 9, &array(element, len, &[0; 64]))]);
            assert!(reason.starts_with(&format!("`a`: it is an array of {len} elements")), "{reason}");
        }
        assert!(reason(&[entry(b"a", 9, &array(8, 1, &u64::MAX.to_le_bytes()))]).contains("an element needs"));
    }

    #[test]
    fn count() {
        let bytes = vec![0; 64];
        let result = read(&mut Reader::new(Cursor::new(bytes), 64), u64::MAX);
        assert!(matches!(result, Err(Problem::Invalid(reason)) if reason.contains("expected at most 16384")));
    }
}
