//! The values that a file's metadata can hold.

/// The type of a value, as the file encodes it (`gguf_type`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ValueType {
    U8,
    I8,
    U16,
    I16,
    U32,
    I32,
    F32,
    Bool,
    String,
    Array,
    U64,
    I64,
    F64,
}

impl ValueType {
    pub(crate) fn from_id(id: u32) -> Option<ValueType> {
        use ValueType::*;
        [U8, I8, U16, I16, U32, I32, F32, Bool, String, Array, U64, I64, F64].get(usize::try_from(id).ok()?).copied()
    }

    /// Bytes of one value; nothing for the types whose values differ in length.
    pub(crate) fn size(self) -> Option<u64> {
        match self {
            ValueType::U8 | ValueType::I8 | ValueType::Bool => Some(1),
            ValueType::U16 | ValueType::I16 => Some(2),
            ValueType::U32 | ValueType::I32 | ValueType::F32 => Some(4),
            ValueType::U64 | ValueType::I64 | ValueType::F64 => Some(8),
            ValueType::String | ValueType::Array => None,
        }
    }

    /// The name that upstream gives it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            ValueType::U8 => "u8",
            ValueType::I8 => "i8",
            ValueType::U16 => "u16",
            ValueType::I16 => "i16",
            ValueType::U32 => "u32",
            ValueType::I32 => "i32",
            ValueType::F32 => "f32",
            ValueType::Bool => "bool",
            ValueType::String => "str",
            ValueType::Array => "arr",
            ValueType::U64 => "u64",
            ValueType::I64 => "i64",
            ValueType::F64 => "f64",
        }
    }
}

/// A value of the metadata.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    U8(u8),
    I8(i8),
    U16(u16),
    I16(i16),
    U32(u32),
    I32(i32),
    F32(f32),
    Bool(bool),
    String(String),
    Array(Array),
    U64(u64),
    I64(i64),
    F64(f64),
}

/// What is kept of an array.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Array {
    pub(crate) element: ValueType,
    pub(crate) len: u64,
    /// The elements of short arrays of whole numbers or truth values; else empty.
    pub(crate) integers: Vec<i64>,
}

impl Value {
    pub(crate) fn value_type(&self) -> ValueType {
        match self {
            Value::U8(_) => ValueType::U8,
            Value::I8(_) => ValueType::I8,
            Value::U16(_) => ValueType::U16,
            Value::I16(_) => ValueType::I16,
            Value::U32(_) => ValueType::U32,
            Value::I32(_) => ValueType::I32,
            Value::F32(_) => ValueType::F32,
            Value::Bool(_) => ValueType::Bool,
            Value::String(_) => ValueType::String,
            Value::Array(_) => ValueType::Array,
            Value::U64(_) => ValueType::U64,
            Value::I64(_) => ValueType::I64,
            Value::F64(_) => ValueType::F64,
        }
    }

    /// A scalar of fixed size from its bytes, which are at least as many as [`ValueType::size`] says.
    pub(crate) fn from_le_bytes(ty: ValueType, bytes: [u8; 8]) -> Option<Value> {
        let [a, b, c, d, ..] = bytes;
        Some(match ty {
            ValueType::U8 => Value::U8(a),
            ValueType::I8 => Value::I8(i8::from_le_bytes([a])),
            ValueType::U16 => Value::U16(u16::from_le_bytes([a, b])),
            ValueType::I16 => Value::I16(i16::from_le_bytes([a, b])),
            ValueType::U32 => Value::U32(u32::from_le_bytes([a, b, c, d])),
            ValueType::I32 => Value::I32(i32::from_le_bytes([a, b, c, d])),
            ValueType::F32 => Value::F32(f32::from_le_bytes([a, b, c, d])),
            ValueType::Bool => Value::Bool(a != 0),
            ValueType::U64 => Value::U64(u64::from_le_bytes(bytes)),
            ValueType::I64 => Value::I64(i64::from_le_bytes(bytes)),
            ValueType::F64 => Value::F64(f64::from_le_bytes(bytes)),
            ValueType::String | ValueType::Array => return None,
        })
    }

    /// Whole numbers and truth values as one type. Numbers beyond its range end at its limit.
    pub(crate) fn as_integer(&self) -> Option<i64> {
        match *self {
            Value::U8(v) => Some(v.into()),
            Value::I8(v) => Some(v.into()),
            Value::U16(v) => Some(v.into()),
            Value::I16(v) => Some(v.into()),
            Value::U32(v) => Some(v.into()),
            Value::I32(v) => Some(v.into()),
            Value::Bool(v) => Some(v.into()),
            Value::U64(v) => Some(i64::try_from(v).unwrap_or(i64::MAX)),
            Value::I64(v) => Some(v),
            Value::F32(_) | Value::F64(_) | Value::String(_) | Value::Array(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Value, ValueType};

    #[test]
    fn ids_are_upstreams() {
        let expected = ["u8", "i8", "u16", "i16", "u32", "i32", "f32", "bool", "str", "arr", "u64", "i64", "f64"];
        for (id, name) in (0u32..).zip(expected) {
            assert_eq!(ValueType::from_id(id).unwrap().name(), name);
        }
        assert_eq!(ValueType::from_id(13), None);
        assert_eq!(ValueType::from_id(u32::MAX), None);
    }

    #[test]
    fn bytes_to_values() {
        let bytes = [0xff; 8];
        for id in 0..13 {
            let ty = ValueType::from_id(id).unwrap();
            assert_eq!(Value::from_le_bytes(ty, bytes).map(|v| v.value_type()), ty.size().map(|_| ty));
        }
        assert_eq!(Value::from_le_bytes(ValueType::I16, bytes), Some(Value::I16(-1)));
        assert_eq!(Value::from_le_bytes(ValueType::U32, bytes).and_then(|v| v.as_integer()), Some(0xffff_ffff));
        assert_eq!(Value::U64(u64::MAX).as_integer(), Some(i64::MAX));
        assert_eq!(Value::F32(1.0).as_integer(), None);
    }
}
