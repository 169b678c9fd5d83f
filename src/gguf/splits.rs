//! Models in several files.

use std::path::{Path, PathBuf};

use crate::error::Result;
use crate::gguf::header::{Contents, read_file};
use crate::gguf::metadata::Metadata;
use crate::gguf::problem::{Check, Problem, bail, shown};
use crate::gguf::value::Value;

/// Tensors of all parts together.
const MAX_TENSORS: usize = 1 << 17;

/// What a file says about the parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Split {
    no: Option<u16>,
    count: u16,
}

impl Split {
    /// Upstream takes the number of a later part without looking at its type, and aborts if it is not the right one.
    fn of(metadata: &Metadata) -> Check<Split> {
        let number = |key: &str| match metadata.get(key) {
            None => Ok(None),
            Some(Value::U16(n)) => Ok(Some(*n)),
            Some(other) => Err(format!("`{key}` has type {}; expected u16", other.value_type().name())),
        };
        Ok(Split { no: number("split.no")?, count: number("split.count")?.unwrap_or(0) })
    }
}

/// Reads a file, and the other parts when it is the first of a model and named as upstream expects it.
pub(crate) fn read(path: &Path) -> Result<Contents> {
    let mut first = read_file(path).map_err(|problem| problem.into_error(path))?;
    let split = Split::of(&first.metadata).map_err(|problem| problem.into_error(path))?;
    if split.count <= 1 {
        return Ok(first);
    }
    let names = match split.no {
        Some(0) => part_paths(path, split.count).map_err(|problem| problem.into_error(path))?,
        _ => None,
    };
    // Under other names, the caller has to say which files there are, and checks each.
    let Some(names) = names else {
        first.tensors.incomplete = true;
        return Ok(first);
    };
    for (no, part) in (1..split.count).zip(names) {
        read_part(&mut first, &part, no).map_err(|problem| problem.into_error(&part))?;
    }
    check_count(&first).map_err(|reason| Problem::Invalid(reason).into_error(path))?;
    Ok(first)
}

fn read_part(first: &mut Contents, path: &Path, no: u16) -> Check {
    let part = read_file(path)?;
    match Split::of(&part.metadata)?.no {
        Some(n) if n == no => {}
        Some(n) => bail!("`split.no` is {n}; expected {no}, as it is named so"),
        None => bail!("it has no entry `split.no`; expected one, as it is a part of a model"),
    }
    first.tensors.extend(part.tensors)?;
    if first.tensors.len() > MAX_TENSORS {
        bail!("the parts up to this one have {} tensors; expected at most {MAX_TENSORS}", first.tensors.len());
    }
    Ok(())
}

fn check_count(first: &Contents) -> Result<(), String> {
    let key = "split.tensors.count";
    match first.metadata.get(key).and_then(Value::as_integer) {
        Some(n) if usize::try_from(n) != Ok(first.tensors.len()) => {
            bail!("`{key}` is {n}, but its parts have {} tensors; some are missing or too many", first.tensors.len())
        }
        _ => Ok(()),
    }
}

/// The paths of the parts after the first; nothing for a name that does not end as upstream's naming rule says
/// (`llama_split_path`).
fn part_paths(path: &Path, count: u16) -> Check<Option<impl Iterator<Item = PathBuf> + use<>>> {
    let Some(name) = path.file_name() else { return Ok(None) };
    let suffix = move |no: u16| format!("-{no:05}-of-{count:05}.gguf");
    let Some(text) = name.to_str() else {
        if name.to_string_lossy().ends_with(&suffix(1)) {
            bail!("its name {} is not UTF-8, so the other parts cannot be found", shown(&name.to_string_lossy()));
        }
        return Ok(None);
    };
    let Some(prefix) = text.strip_suffix(&suffix(1)).map(str::to_owned) else { return Ok(None) };
    let path = path.to_path_buf();
    Ok(Some((2..=count).map(move |no| path.with_file_name(format!("{prefix}{}", suffix(no))))))
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::{Split, part_paths};
    use crate::gguf::metadata::Metadata;
    use crate::gguf::value::Value;

    #[test]
    fn names() {
        let parts = |path: &str, count| part_paths(Path::new(path), count).unwrap().map(|p| p.collect::<Vec<_>>());
        let expected = ["/d/m-00002-of-00003.gguf", "/d/m-00003-of-00003.gguf"].map(PathBuf::from);
        assert_eq!(parts("/d/m-00001-of-00003.gguf", 3), Some(expected.to_vec()));
        assert_eq!(parts("/d/m-00001-of-00002.gguf", 3), None);
        assert_eq!(parts("/d/m.gguf", 3), None);
        assert_eq!(parts("/", 3), None);
        assert_eq!(parts("m-00001-of-65535.gguf", u16::MAX).map(|p| p.len()), Some(65534));
    }

    #[test]
    fn types() {
        let with = |key: &str, value: Value| {
            let mut metadata = Metadata::default();
            metadata.set(key, value);
            Split::of(&metadata)
        };
        assert_eq!(Split::of(&Metadata::default()).unwrap(), Split { no: None, count: 0 });
        assert_eq!(with("split.no", Value::U16(3)).unwrap().no, Some(3));
        for value in [Value::U32(1), Value::String("1".to_owned())] {
            assert!(with("split.no", value.clone()).is_err() && with("split.count", value).is_err());
        }
    }
}
