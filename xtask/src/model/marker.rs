//! Remembers that a file's checksum was right, so that later runs need not read all of it again.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use anyhow::{Context, Result};
use sha2::{Digest, Sha256};

/// Whether a file is there and unchanged since its checksum was found right.
pub(crate) fn holds(file: &Path, size: u64, sha256: &str) -> bool {
    let wanted = state(file, sha256).filter(|_| fs::metadata(file).is_ok_and(|meta| meta.len() == size));
    wanted.is_some() && fs::read_to_string(path(file)).ok() == wanted
}

/// Writes down that the file, as it is now, has this checksum.
pub(crate) fn write(file: &Path, sha256: &str) -> Result<()> {
    let text = state(file, sha256).with_context(|| format!("cannot read the state of {}", file.display()))?;
    fs::write(path(file), text).with_context(|| format!("cannot write beside {}", file.display()))
}

fn path(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".verified");
    name.into()
}

fn state(file: &Path, sha256: &str) -> Option<String> {
    let meta = fs::metadata(file).ok()?;
    let time = meta.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
    Some(format!("sha256 {sha256}\nsize {}\nmodified {}\n", meta.len(), time.as_nanos()))
}

/// Checksum of all that a reader gives, in hexadecimal.
pub(crate) fn sha256(reader: &mut dyn Read, mut on_bytes: impl FnMut(u64)) -> Result<String> {
    let mut digest = Sha256::new();
    let mut buffer = vec![0; 1 << 20];
    let mut done = 0;
    loop {
        let n = reader.read(&mut buffer).context("cannot read")?;
        let Some(chunk) = buffer.get(..n).filter(|chunk| !chunk.is_empty()) else { break };
        digest.update(chunk);
        done += n as u64;
        on_bytes(done);
    }
    Ok(digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// sha256 of "abc".
    const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

    #[test]
    fn checksum_of_a_known_text() {
        assert_eq!(sha256(&mut &b"abc"[..], |_| {}).unwrap(), ABC);
    }

    #[test]
    fn the_marker_holds_until_the_file_changes() {
        let file = std::env::temp_dir().join(format!("xtask-marker-{}", std::process::id()));
        fs::write(&file, "abc").unwrap();
        assert!(!holds(&file, 3, ABC), "no marker yet");
        write(&file, ABC).unwrap();
        assert!(holds(&file, 3, ABC));
        assert!(!holds(&file, 4, ABC), "another size is wanted");
        assert!(!holds(&file, 3, "00"), "another checksum is wanted");
        fs::write(&file, "abd").unwrap();
        let later = std::time::SystemTime::now() + std::time::Duration::from_secs(9);
        fs::File::options().write(true).open(&file).unwrap().set_modified(later).unwrap();
        assert!(!holds(&file, 3, ABC), "written to since");
        fs::remove_file(&file).unwrap();
        assert!(!holds(&file, 3, ABC), "gone");
        fs::remove_file(path(&file)).unwrap();
    }
}
