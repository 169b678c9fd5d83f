//! Reads a file front to back and never beyond its end.

use std::io::{BufReader, Read, Seek};

use crate::gguf::problem::{Check, bail};

/// A position in a file of known size.
pub(crate) struct Reader<R> {
    inner: BufReader<R>,
    at: u64,
    end: u64,
}

impl<R: Read + Seek> Reader<R> {
    /// Reads from where `inner` is, which counts as 0.
    pub(crate) fn new(inner: R, size: u64) -> Reader<R> {
        Reader { inner: BufReader::with_capacity(1 << 16, inner), at: 0, end: size }
    }

    pub(crate) fn at(&self) -> u64 {
        self.at
    }

    pub(crate) fn remaining(&self) -> u64 {
        self.end.saturating_sub(self.at)
    }

    /// An error unless that many bytes are left.
    pub(crate) fn need(&self, n: u64, what: &str) -> Check {
        if n > self.remaining() {
            bail!("{what} needs {n} bytes at offset {}, but only {} are left in the file", self.at, self.remaining());
        }
        Ok(())
    }

    pub(crate) fn array<const N: usize>(&mut self, what: &str) -> Check<[u8; N]> {
        self.need(N as u64, what)?;
        let mut bytes = [0; N];
        self.inner.read_exact(&mut bytes)?;
        self.at = self.at.saturating_add(N as u64);
        Ok(bytes)
    }

    pub(crate) fn u32(&mut self, what: &str) -> Check<u32> {
        self.array(what).map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self, what: &str) -> Check<u64> {
        self.array(what).map(u64::from_le_bytes)
    }

    /// Replaces the content of `bytes` by the next `n` of the file. The memory is taken after the check that they exist.
    pub(crate) fn bytes(&mut self, n: u64, what: &str, bytes: &mut Vec<u8>) -> Check {
        self.need(n, what)?;
        let Ok(len) = usize::try_from(n) else { bail!("{what} has {n} bytes, more than this machine can address") };
        bytes.clear();
        bytes.resize(len, 0);
        self.inner.read_exact(bytes)?;
        self.at = self.at.saturating_add(n);
        Ok(())
    }

    pub(crate) fn skip(&mut self, n: u64, what: &str) -> Check {
        self.need(n, what)?;
        let Ok(offset) = i64::try_from(n) else { bail!("{what} has {n} bytes, which no file can hold") };
        self.inner.seek_relative(offset)?;
        self.at = self.at.saturating_add(n);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::Reader;
    use crate::gguf::problem::Problem;

    #[test]
    fn stays_inside() {
        let mut reader = Reader::new(Cursor::new(vec![1, 0, 0, 0, 9, 9, 9, 7]), 8);
        assert_eq!(reader.u32("x").unwrap(), 1);
        reader.skip(3, "x").unwrap();
        assert_eq!((reader.at(), reader.remaining()), (7, 1));
        let Err(Problem::Invalid(reason)) = reader.u32("the count") else { panic!() };
        assert_eq!(reason, "the count needs 4 bytes at offset 7, but only 1 are left in the file");
        let mut bytes = Vec::new();
        assert!(reader.bytes(u64::MAX, "x", &mut bytes).is_err());
        assert_eq!(bytes.capacity(), 0);
        assert!(reader.skip(2, "x").is_err());
        reader.bytes(1, "x", &mut bytes).unwrap();
        assert_eq!(bytes, [7]);
    }

    #[test]
    fn a_file_that_shrank_is_invalid() {
        let mut reader = Reader::new(Cursor::new(vec![1, 2]), 8);
        assert!(matches!(reader.u32("x"), Err(Problem::Invalid(_))));
    }
}
