//! The tensor section: names, shapes, types and where the data lie.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io::{Read, Seek};

use crate::gguf::dtype::{Dtype, dtype};
use crate::gguf::problem::{Check, Problem, bail, shown};
use crate::gguf::reader::Reader;
use crate::gguf::tensor_roles;

/// Upstream searches the list once per tensor, from its start. Real files have less than 3000.
pub(crate) const MAX_TENSORS: u64 = 1 << 15;
/// `GGML_MAX_NAME`, which counts the final NUL.
const MAX_NAME: u64 = 64;
const MAX_DIMS: u32 = 4;
/// Keeps the products of upstream's checks far from overflow; with the data they are bounded by the file's size.
const MAX_DIM: u64 = 1 << 40;

/// One entry of the section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) dims: [u64; 4],
}

/// The tensors of a file, or of several that are parts of one model.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tensors {
    shapes: HashMap<String, Shape>,
    /// Whether there may be more in files that were not read.
    pub(crate) incomplete: bool,
}

impl Tensors {
    pub(crate) fn len(&self) -> usize {
        self.shapes.len()
    }

    pub(crate) fn get(&self, name: &str) -> Option<Shape> {
        self.shapes.get(name).copied()
    }

    #[cfg(test)]
    pub(crate) fn of(list: &[(&str, [u64; 4])]) -> Tensors {
        let shapes = list.iter().map(|(name, dims)| ((*name).to_owned(), Shape { dims: *dims })).collect();
        Tensors { shapes, incomplete: false }
    }

    /// Adds those of another part; an error when both have one of the same name.
    pub(crate) fn extend(&mut self, other: Tensors) -> Check {
        for (name, shape) in other.shapes {
            match self.shapes.entry(name) {
                Entry::Vacant(entry) => entry.insert(shape),
                Entry::Occupied(entry) => bail!("tensor {} is in an earlier part too", shown(entry.key())),
            };
        }
        Ok(())
    }
}

struct Info {
    name: String,
    dims: [u64; 4],
    n_dims: u32,
    dtype: Dtype,
    offset: u64,
}

/// Reads all `count` entries and checks that their data lie in the file as upstream expects them.
pub(crate) fn read<R: Read + Seek>(reader: &mut Reader<R>, count: u64, alignment: u64) -> Check<Tensors> {
    if count > MAX_TENSORS {
        bail!("it declares {count} tensors; expected at most {MAX_TENSORS}");
    }
    let mut tensors = Tensors::default();
    let mut next = 0;
    let mut end = 0;
    for index in 0..count {
        let info = read_info(reader, index)?;
        let bytes = check_data(&info, next, alignment).map_err(|p| p.within(|| place(&info)))?;
        tensor_roles::check(&info.name, info.n_dims, info.dtype)
            .map_err(|reason| Problem::from(reason).within(|| place(&info)))?;
        end = next + bytes;
        next = end.next_multiple_of(alignment);
        match tensors.shapes.entry(info.name) {
            Entry::Vacant(entry) => entry.insert(Shape { dims: info.dims }),
            Entry::Occupied(entry) => bail!("it has two tensors {}", shown(entry.key())),
        };
    }
    if count > 0 {
        // All sums stay below 2^63: each tensor is smaller than that by far, and the list is short.
        let start = reader.at().next_multiple_of(alignment);
        let size = reader.at() + reader.remaining();
        if start + end > size {
            bail!("its tensors need a file of {} bytes, but it has only {size}; it was cut off", start + end);
        }
    }
    Ok(tensors)
}

fn place(info: &Info) -> String {
    format!("tensor {}", shown(&info.name))
}

fn read_info<R: Read + Seek>(reader: &mut Reader<R>, index: u64) -> Check<Info> {
    let name = read_name(reader).map_err(|p| p.within(|| format!("tensor {index}")))?;
    read_shape(reader, &name).map_err(|p| p.within(|| format!("tensor {}", shown(&name))))
}

fn read_name<R: Read + Seek>(reader: &mut Reader<R>) -> Check<String> {
    let len = reader.u64("the length of its name")?;
    if len == 0 || len >= MAX_NAME {
        bail!("its name has {len} bytes; expected 1 to {}", MAX_NAME - 1);
    }
    let mut bytes = Vec::new();
    reader.bytes(len, "its name", &mut bytes)?;
    match String::from_utf8(bytes) {
        Ok(name) if !name.contains('\0') => Ok(name),
        Ok(name) => bail!("its name {} holds a NUL byte", shown(&name)),
        Err(error) => bail!("its name {} is not UTF-8", shown(&String::from_utf8_lossy(error.as_bytes()))),
    }
}

fn read_shape<R: Read + Seek>(reader: &mut Reader<R>, name: &str) -> Check<Info> {
    let n_dims = reader.u32("its number of dimensions")?;
    if n_dims > MAX_DIMS {
        bail!("it has {n_dims} dimensions; expected at most {MAX_DIMS}");
    }
    let mut dims = [1; 4];
    for (axis, dim) in (0..n_dims).zip(&mut dims) {
        *dim = reader.u64("a dimension")?;
        // A dimension of 0 makes upstream's trial operations abort.
        if *dim == 0 || *dim > MAX_DIM {
            bail!("dimension {axis} is {dim}; expected 1 to {MAX_DIM}");
        }
    }
    let id = reader.u32("its type")?;
    let Some(dtype) = dtype(id) else { bail!("its type is {id}, which is unknown or was removed from the format") };
    let offset = reader.u64("its offset")?;
    Ok(Info { name: name.to_owned(), dims, n_dims, dtype, offset })
}

/// The size of its data.
fn check_data(info: &Info, expected_offset: u64, alignment: u64) -> Check<u64> {
    let [width, dims @ ..] = info.dims;
    let Dtype { name, block, size, .. } = info.dtype;
    if !width.is_multiple_of(block) {
        bail!("its rows have {width} elements; expected a multiple of {block}, as its type is {name}");
    }
    let row = Some(width / block).and_then(|blocks| blocks.checked_mul(size));
    let bytes = dims.iter().fold(row, |bytes, dim| bytes.and_then(|bytes| bytes.checked_mul(*dim)));
    let Some(bytes) = bytes.filter(|bytes| *bytes <= MAX_DIM * 64) else {
        bail!("its shape {:?} is too large", info.dims);
    };
    if info.offset != expected_offset {
        bail!(
            "its data start at {}; expected {expected_offset}, where the data before it end (aligned to {alignment})",
            info.offset
        );
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::{Tensors, read};
    use crate::gguf::problem::{Check, Problem};
    use crate::gguf::reader::Reader;

    fn info(name: &str, dims: &[u64], ty: u32, offset: u64) -> Vec<u8> {
        let mut out = [&(name.len() as u64).to_le_bytes(), name.as_bytes()].concat();
        out.extend((dims.len() as u32).to_le_bytes());
        out.extend(dims.iter().flat_map(|d| d.to_le_bytes()));
        out.extend(ty.to_le_bytes());
        out.extend(offset.to_le_bytes());
        out
    }

    fn parsed(infos: &[Vec<u8>], data: usize) -> Check<Tensors> {
        let mut bytes = infos.concat();
        bytes.resize(bytes.len().next_multiple_of(32) + data, 0);
        let size = bytes.len() as u64;
        read(&mut Reader::new(Cursor::new(bytes), size), infos.len() as u64, 32)
    }

    fn reason(infos: &[Vec<u8>], data: usize) -> String {
        match parsed(infos, data) {
            Err(Problem::Invalid(reason)) => reason,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn good() {
        let infos = [info("a.weight", &[3, 2], 0, 0), info("b.weight", &[32, 1], 8, 32), info("s.scale", &[], 0, 96)];
        let tensors = parsed(&infos, 100).unwrap();
        assert_eq!(tensors.len(), 3);
        assert_eq!(tensors.get("a.weight").unwrap().dims, [3, 2, 1, 1]);
        assert!(reason(&infos, 99).contains("it was cut off"));
        assert_eq!(parsed(&[], 0).unwrap().len(), 0);
    }

    #[test]
    fn names() {
        assert!(reason(&[info("", &[1], 0, 0)], 4).contains("its name has 0 bytes"));
        assert!(parsed(&[info(&"n".repeat(63), &[1], 0, 0)], 4).is_ok());
        assert!(reason(&[info(&"n".repeat(64), &[1], 0, 0)], 4).contains("has 64 bytes; expected 1 to 63"));
        assert!(reason(&[info("a\0", &[1], 0, 0)], 4).contains("NUL"));
        let twice = [info("a", &[8], 0, 0), info("a", &[8], 0, 32)];
        assert_eq!(reason(&twice, 64), "it has two tensors `a`");
    }

    #[test]
    fn shapes() {
        let bad = |dims: &[u64]| reason(&[info("a", dims, 0, 0)], 128);
        assert_eq!(bad(&[0]), "tensor `a`: dimension 0 is 0; expected 1 to 1099511627776");
        assert!(bad(&[32, 0]).contains("dimension 1 is 0"));
        assert!(bad(&[u64::MAX]).contains("dimension 0 is 18446744073709551615"));
        assert!(bad(&[1 << 40, 1 << 40, 1 << 40, 1 << 40]).contains("too large"));
        assert!(bad(&[1 << 40]).contains("cut off"));
        assert!(bad(&[2, 2, 2, 2, 2]).contains("5 dimensions"));
        assert!(reason(&[info("a", &[33], 8, 0)], 128).contains("expected a multiple of 32, as its type is q8_0"));
        assert!(reason(&[info("a", &[32], 4, 0)], 128).contains("its type is 4, which"));
        assert!(reason(&[info("a", &[2, 2], 26, 0)], 128).contains("i32"));
    }

    #[test]
    fn offsets() {
        let bad = |offset| reason(&[info("a", &[8], 0, 0), info("b", &[8], 0, offset)], 96);
        for offset in [0, 7, 64, 1 << 40, u64::MAX] {
            assert!(bad(offset).contains(&format!("tensor `b`: its data start at {offset}; expected 32")));
        }
    }

    #[test]
    fn count() {
        let result = read(&mut Reader::new(Cursor::new(Vec::new()), 0), 1 << 62, 32);
        assert!(matches!(result, Err(Problem::Invalid(reason)) if reason.contains("expected at most 32768")));
    }

    #[test]
    fn parts() {
        let mut a = parsed(&[info("a", &[8], 0, 0)], 32).unwrap();
        a.extend(parsed(&[info("b", &[8], 0, 0)], 32).unwrap()).unwrap();
        assert_eq!(a.len(), 2);
        assert!(a.extend(parsed(&[info("b", &[8], 0, 0)], 32).unwrap()).is_err());
    }
}
