//! Reads one file's header, and what the crate wants to know of it.

use std::fs::{self, File};
use std::io::{Read, Seek};
use std::path::Path;

use crate::gguf::arch;
use crate::gguf::check_vocab;
use crate::gguf::hyper::Hyper;
use crate::gguf::metadata::{self, Metadata};
use crate::gguf::problem::{Check, Problem, bail};
use crate::gguf::reader::Reader;
use crate::gguf::tensors::{self, Tensors};
use crate::gguf::value::Value;

/// `GGUF_DEFAULT_ALIGNMENT`.
const DEFAULT_ALIGNMENT: u32 = 32;
/// An entry has at least a key of one byte with its length, a type, and a value of one byte.
const MIN_ENTRY: u64 = 8 + 1 + 4 + 1;
/// A tensor has at least a name of one byte with its length, a number of dimensions, a type and an offset.
const MIN_TENSOR: u64 = 8 + 1 + 4 + 4 + 8;

/// What a model's file says, once it has passed all checks.
#[derive(Debug, Clone, Default)]
#[allow(dead_code, reason = "a record of the file; each part of the crate reads what it needs")]
pub(crate) struct Header {
    pub(crate) version: u32,
    /// Entries of the (first) file.
    pub(crate) n_kv: u64,
    /// Tensors of all parts that were read.
    pub(crate) n_tensors: u64,
    pub(crate) architecture: Option<String>,
    pub(crate) vocab_model: Option<String>,
    pub(crate) context_length: Option<u64>,
    pub(crate) n_layer: Option<u64>,
    pub(crate) n_embd: Option<u64>,
    /// The most that any layer has.
    pub(crate) n_head: Option<u64>,
    /// The most that any layer has; as many as heads where the file does not say.
    pub(crate) n_head_kv: Option<u64>,
    pub(crate) key_length: Option<u64>,
    pub(crate) value_length: Option<u64>,
    pub(crate) sliding_window: Option<u64>,
    /// Nothing when the file leaves it open.
    pub(crate) pooling_type: Option<u64>,
    /// Whether positions are rows of a table, so that those from `context_length` on do not exist.
    pub(crate) learned_positions: bool,
    /// Whether a context of it only works together with the context of another model.
    pub(crate) needs_other_context: bool,
    pub(crate) metadata: Metadata,
    pub(crate) tensors: Tensors,
}

impl Header {
    pub(crate) fn new(file: Contents) -> Header {
        let Contents { version, n_kv, metadata, tensors } = file;
        let mut header = Header { version, n_kv, n_tensors: tensors.len() as u64, ..Header::default() };
        header.vocab_model = metadata.text(check_vocab::MODEL).map(str::to_owned);
        if let Some(hyper) = Hyper::of(&metadata) {
            // Arrays hold one number per layer.
            let number = |name: &str| match hyper.get(name)? {
                Value::Array(array) => array.integers.iter().max().and_then(|n| u64::try_from(*n).ok()),
                value => value.as_integer().and_then(|n| u64::try_from(n).ok()),
            };
            header.context_length = number("context_length");
            header.n_layer = number("block_count");
            header.n_embd = number("embedding_length");
            header.n_head = number("attention.head_count");
            header.n_head_kv = number("attention.head_count_kv").or(header.n_head);
            header.key_length = number("attention.key_length");
            header.value_length = number("attention.value_length");
            header.sliding_window = number("attention.sliding_window");
            header.pooling_type = number("pooling_type").filter(|n| *n <= 4);
            header.learned_positions = arch::has_position_table(hyper.arch)
                && (tensors.incomplete || tensors.get("position_embd.weight").is_some());
            header.needs_other_context = arch::needs_other_context(hyper.arch);
            header.architecture = Some(hyper.arch.to_owned());
        }
        Header { metadata, tensors, ..header }
    }
}

/// One file's header as it is.
#[derive(Debug)]
pub(crate) struct Contents {
    pub(crate) version: u32,
    pub(crate) n_kv: u64,
    pub(crate) metadata: Metadata,
    pub(crate) tensors: Tensors,
}

/// Opens a file and reads its header.
pub(crate) fn read_file(path: &Path) -> Check<Contents> {
    // Before it is opened: that would block for a pipe.
    check_kind(&fs::metadata(path)?)?;
    let file = File::open(path)?;
    let metadata = file.metadata()?;
    check_kind(&metadata)?;
    read(file, metadata.len())
}

fn check_kind(metadata: &fs::Metadata) -> Check {
    if metadata.is_dir() {
        bail!("it is a directory");
    }
    if !metadata.is_file() {
        bail!("it is not a regular file");
    }
    Ok(())
}

/// Reads the header of a file of `size` bytes.
pub(crate) fn read<R: Read + Seek>(file: R, size: u64) -> Check<Contents> {
    let mut reader = Reader::new(file, size);
    let version = read_version(&mut reader)?;
    let n_tensors = reader.u64("the number of tensors")?;
    let n_kv = reader.u64("the number of metadata entries")?;
    let needed = u128::from(n_tensors) * u128::from(MIN_TENSOR) + u128::from(n_kv) * u128::from(MIN_ENTRY);
    if needed > u128::from(reader.remaining()) {
        bail!(
            "it declares {n_kv} metadata entries and {n_tensors} tensors, which do not fit in its {} bytes",
            reader.at() + reader.remaining()
        );
    }
    let metadata = metadata::read(&mut reader, n_kv)?;
    let alignment = read_alignment(&metadata)?;
    let tensors = tensors::read(&mut reader, n_tensors, alignment.into())?;
    Ok(Contents { version, n_kv, metadata, tensors })
}

fn read_version<R: Read + Seek>(reader: &mut Reader<R>) -> Check<u32> {
    if reader.remaining() == 0 {
        bail!("it is empty");
    }
    match reader.array::<4>("the magic number")? {
        [b'G', b'G', b'U', b'F'] => {}
        [b'F', b'U', b'G', b'G'] => bail!("its bytes are swapped; expected a little-endian file"),
        other => bail!("it starts with {:?}; expected \"GGUF\"", String::from_utf8_lossy(&other)),
    }
    match reader.u32("the version")? {
        version @ 2..=3 => Ok(version),
        1 => bail!("it has version 1 of the format, which is no longer supported; convert the model again"),
        0 => bail!("its version is 0; expected 2 or 3"),
        version if version & 0xffff == 0 => {
            bail!("it is a big-endian file (version {}); expected a little-endian one", version.swap_bytes())
        }
        version => bail!("its version is {version}, which is newer than this program; expected 2 or 3"),
    }
}

fn read_alignment(metadata: &Metadata) -> Check<u32> {
    match metadata.get("general.alignment") {
        None => Ok(DEFAULT_ALIGNMENT),
        // GGML_ASSERT((uintptr_t)ptr % TENSOR_ALIGNMENT == 0), which is 32
        Some(Value::U32(n)) if n.is_power_of_two() && (32..=1 << 20).contains(n) => Ok(*n),
        Some(Value::U32(n)) => {
            bail!("`general.alignment` is {n}; expected a power of two from 32 to {}", 1 << 20)
        }
        Some(other) => {
            Err(Problem::Invalid(format!("`general.alignment` has type {}; expected u32", other.value_type().name())))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::{Contents, Header, read};
    use crate::gguf::hyper::tests::{integers, model};
    use crate::gguf::problem::{Check, Problem};
    use crate::gguf::tensors::Tensors;
    use crate::gguf::value::{Value, ValueType};

    fn parsed(bytes: &[u8]) -> Check<Contents> {
        read(Cursor::new(bytes.to_vec()), bytes.len() as u64)
    }

    fn reason(bytes: &[u8]) -> String {
        match parsed(bytes) {
            Err(Problem::Invalid(reason)) => reason,
            other => panic!("{other:?}"),
        }
    }

    fn start(version: u32, n_tensors: u64, n_kv: u64) -> Vec<u8> {
        [b"GGUF", &version.to_le_bytes(), &n_tensors.to_le_bytes()[..], &n_kv.to_le_bytes()].concat()
    }

    #[test]
    fn starts() {
        assert_eq!(reason(b""), "it is empty");
        assert!(reason(b"GGU").contains("the magic number needs 4 bytes"));
        assert_eq!(reason(b"this is no model"), "it starts with \"this\"; expected \"GGUF\"");
        assert!(reason(b"FUGG\0\0\0\x03").contains("swapped"));
        assert!(parsed(&start(2, 0, 0)).is_ok() && parsed(&start(3, 0, 0)).is_ok());
        assert!(reason(&start(0, 0, 0)).contains("version is 0"));
        assert!(reason(&start(1, 0, 0)).contains("no longer supported"));
        assert!(reason(&start(4, 0, 0)).contains("newer"));
        assert!(reason(&start(3 << 24, 0, 0)).contains("big-endian file (version 3)"));
    }

    #[test]
    fn counts() {
        for (n_tensors, n_kv) in [(1, 0), (0, 1), (u64::MAX, u64::MAX), (1 << 62, 0), (0, 1_000_000_000)] {
            assert!(reason(&start(3, n_tensors, n_kv)).contains("which do not fit in its 24 bytes"));
        }
    }

    #[test]
    fn alignment() {
        let with = |n: u32| {
            let key = b"general.alignment";
            let mut bytes = start(3, 0, 1);
            bytes.extend([&(key.len() as u64).to_le_bytes(), &key[..], &4u32.to_le_bytes(), &n.to_le_bytes()].concat());
            bytes
        };
        for good in [32, 64, 1 << 20] {
            assert!(parsed(&with(good)).is_ok());
        }
        for bad in [0, 1, 8, 16, 33, 1 << 21, 1 << 31] {
            assert!(reason(&with(bad)).contains(&format!("is {bad}; expected a power of two")));
        }
    }

    #[test]
    fn facts() {
        let metadata = model(
            "bert",
            &[
                ("context_length", Value::U32(512)),
                ("attention.head_count", integers(ValueType::U32, &[2, 4])),
                ("pooling_type", Value::U32(1)),
                ("attention.key_length", Value::U32(64)),
            ],
        );
        let tensors = Tensors::of(&[("position_embd.weight", [8, 512, 1, 1])]);
        let header = Header::new(Contents { version: 3, n_kv: 4, metadata, tensors });
        assert_eq!(header.architecture.as_deref(), Some("bert"));
        assert_eq!((header.context_length, header.pooling_type), (Some(512), Some(1)));
        assert_eq!((header.n_head, header.n_head_kv, header.key_length), (Some(4), Some(4), Some(64)));
        assert!(header.learned_positions && !header.needs_other_context);
        assert_eq!((header.n_tensors, header.vocab_model), (1, None));
        let contents = |arch: &str, value: u32| Contents {
            version: 3,
            n_kv: 1,
            metadata: model(arch, &[("pooling_type", Value::U32(value))]),
            tensors: Tensors::default(),
        };
        let mpt = Header::new(contents("mpt", u32::MAX));
        assert!(!mpt.learned_positions && mpt.pooling_type.is_none());
        assert!(Header::new(contents("eagle3", 0)).needs_other_context);
    }
}
