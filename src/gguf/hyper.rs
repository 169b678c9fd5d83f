//! Access to a model's hyper-parameters, `<architecture>.<name>`.

use crate::gguf::metadata::Metadata;
use crate::gguf::problem::bail;
use crate::gguf::value::{Value, ValueType};

/// The metadata of a model with the prefix of its architecture.
#[derive(Clone, Copy)]
pub(crate) struct Hyper<'a> {
    pub(crate) metadata: &'a Metadata,
    pub(crate) arch: &'a str,
}

impl<'a> Hyper<'a> {
    /// Nothing for files that name no architecture, which upstream refuses as models.
    pub(crate) fn of(metadata: &'a Metadata) -> Option<Hyper<'a>> {
        Some(Hyper { metadata, arch: metadata.text("general.architecture")? })
    }

    pub(crate) fn key(&self, name: &str) -> String {
        format!("{}.{name}", self.arch)
    }

    pub(crate) fn get(&self, name: &str) -> Option<&'a Value> {
        self.metadata.get(&self.key(name))
    }

    fn wrong_type(&self, name: &str, value: &Value, expected: &str) -> String {
        format!("`{}` has type {}; expected {expected}", self.key(name), value.value_type().name())
    }

    /// A number of the only type that upstream takes here.
    pub(crate) fn u32(&self, name: &str) -> Result<Option<u32>, String> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::U32(value)) => Ok(Some(*value)),
            Some(other) => Err(self.wrong_type(name, other, "u32")),
        }
    }

    /// One number per layer: an array of that length, or one for all.
    pub(crate) fn per_layer(&self, name: &str, n_layer: u32) -> Result<Option<Vec<u32>>, String> {
        let array = match self.get(name) {
            None => return Ok(None),
            Some(Value::U32(value)) => return Ok(Some(vec![*value; n_layer as usize])),
            Some(Value::Array(array)) => array,
            Some(other) => return Err(self.wrong_type(name, other, "u32, or an array of it")),
        };
        let key = self.key(name);
        if array.len != u64::from(n_layer) {
            bail!("`{key}` has {} elements; expected one per layer, {n_layer}", array.len);
        }
        if !matches!(array.element, ValueType::U32 | ValueType::I32 | ValueType::Bool) {
            bail!("`{key}` is an array of {}; expected u32", array.element.name());
        }
        let numbers = array.integers.iter().map(|&n| u32::try_from(n).map_err(|_| n)).collect::<Result<_, _>>();
        numbers.map(Some).map_err(|n| format!("`{key}` holds {n}; expected numbers from 0 on"))
    }

    /// An error unless the entry is missing or in the range.
    pub(crate) fn in_range(&self, name: &str, min: u32, max: u32) -> Result<Option<u32>, String> {
        let value = self.u32(name)?;
        match value {
            Some(value) if value < min || value > max => {
                bail!("`{}` is {value}; expected {min} to {max}", self.key(name))
            }
            value => Ok(value),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::Hyper;
    use crate::gguf::metadata::Metadata;
    use crate::gguf::value::{Array, Value, ValueType};

    pub(crate) fn model(arch: &str, entries: &[(&str, Value)]) -> Metadata {
        let mut metadata = Metadata::default();
        metadata.set("general.architecture", Value::String(arch.to_owned()));
        for (name, value) in entries {
            metadata.set(&format!("{arch}.{name}"), value.clone());
        }
        metadata
    }

    pub(crate) fn integers(element: ValueType, integers: &[i64]) -> Value {
        Value::Array(Array { element, len: integers.len() as u64, integers: integers.to_vec() })
    }

    #[test]
    fn types_and_lengths() {
        let metadata = model(
            "x",
            &[
                ("n", Value::U32(3)),
                ("i", Value::I32(3)),
                ("f", Value::F32(0.5)),
                ("list", integers(ValueType::U32, &[1, 2])),
                ("negative", integers(ValueType::I32, &[1, -2])),
                ("floats", integers(ValueType::F32, &[])),
            ],
        );
        let hyper = Hyper::of(&metadata).unwrap();
        assert_eq!(hyper.u32("n"), Ok(Some(3)));
        assert_eq!(hyper.u32("missing"), Ok(None));
        assert_eq!(hyper.u32("i").unwrap_err(), "`x.i` has type i32; expected u32");
        assert_eq!(hyper.u32("f").unwrap_err(), "`x.f` has type f32; expected u32");
        assert_eq!(hyper.per_layer("n", 2), Ok(Some(vec![3, 3])));
        assert_eq!(hyper.per_layer("list", 2), Ok(Some(vec![1, 2])));
        assert_eq!(hyper.per_layer("list", 3).unwrap_err(), "`x.list` has 2 elements; expected one per layer, 3");
        assert!(hyper.per_layer("negative", 2).unwrap_err().contains("holds -2"));
        assert!(hyper.per_layer("floats", 0).unwrap_err().contains("array of f32"));
        assert_eq!(hyper.in_range("n", 3, 3), Ok(Some(3)));
        assert_eq!(hyper.in_range("n", 4, 5).unwrap_err(), "`x.n` is 3; expected 4 to 5");
        assert!(Hyper::of(&Metadata::default()).is_none());
    }
}
