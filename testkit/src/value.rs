//! Metadata values of a GGUF file and how each is encoded.

/// The type tag that precedes a value in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueType {
    /// Unsigned, 8 bits.
    U8 = 0,
    /// Signed, 8 bits.
    I8 = 1,
    /// Unsigned, 16 bits.
    U16 = 2,
    /// Signed, 16 bits.
    I16 = 3,
    /// Unsigned, 32 bits.
    U32 = 4,
    /// Signed, 32 bits.
    I32 = 5,
    /// 32-bit float.
    F32 = 6,
    /// One byte, 0 or 1.
    Bool = 7,
    /// 64-bit length and that many bytes.
    Str = 8,
    /// Element type, 64-bit count and the elements.
    Array = 9,
    /// Unsigned, 64 bits.
    U64 = 10,
    /// Signed, 64 bits.
    I64 = 11,
    /// 64-bit float.
    F64 = 12,
}

/// One metadata value.
///
/// Strings are bytes, so that a test can write text that is not UTF-8.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Unsigned, 8 bits.
    U8(u8),
    /// Signed, 8 bits.
    I8(i8),
    /// Unsigned, 16 bits.
    U16(u16),
    /// Signed, 16 bits.
    I16(i16),
    /// Unsigned, 32 bits.
    U32(u32),
    /// Signed, 32 bits.
    I32(i32),
    /// 32-bit float.
    F32(f32),
    /// True or false.
    Bool(bool),
    /// Text, usually UTF-8.
    Str(Vec<u8>),
    /// Elements of one type. Nothing checks that they are: a mixed or nested array makes a malformed file.
    Array(ValueType, Vec<Value>),
    /// Unsigned, 64 bits.
    U64(u64),
    /// Signed, 64 bits.
    I64(i64),
    /// 64-bit float.
    F64(f64),
}

impl Value {
    /// The type tag of this value.
    #[must_use]
    pub fn value_type(&self) -> ValueType {
        match self {
            Self::U8(_) => ValueType::U8,
            Self::I8(_) => ValueType::I8,
            Self::U16(_) => ValueType::U16,
            Self::I16(_) => ValueType::I16,
            Self::U32(_) => ValueType::U32,
            Self::I32(_) => ValueType::I32,
            Self::F32(_) => ValueType::F32,
            Self::Bool(_) => ValueType::Bool,
            Self::Str(_) => ValueType::Str,
            Self::Array(..) => ValueType::Array,
            Self::U64(_) => ValueType::U64,
            Self::I64(_) => ValueType::I64,
            Self::F64(_) => ValueType::F64,
        }
    }

    /// An array of `ty` without elements.
    #[must_use]
    pub fn empty_array(ty: ValueType) -> Self {
        Self::Array(ty, Vec::new())
    }

    /// Appends the encoded value, without its type tag.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::U8(v) => out.push(*v),
            Self::I8(v) => out.extend(v.to_le_bytes()),
            Self::U16(v) => out.extend(v.to_le_bytes()),
            Self::I16(v) => out.extend(v.to_le_bytes()),
            Self::U32(v) => out.extend(v.to_le_bytes()),
            Self::I32(v) => out.extend(v.to_le_bytes()),
            Self::F32(v) => out.extend(v.to_le_bytes()),
            Self::Bool(v) => out.push(u8::from(*v)),
            Self::Str(v) => {
                out.extend((v.len() as u64).to_le_bytes());
                out.extend(v);
            }
            Self::Array(ty, items) => {
                out.extend((*ty as u32).to_le_bytes());
                out.extend((items.len() as u64).to_le_bytes());
                for item in items {
                    item.encode(out);
                }
            }
            Self::U64(v) => out.extend(v.to_le_bytes()),
            Self::I64(v) => out.extend(v.to_le_bytes()),
            Self::F64(v) => out.extend(v.to_le_bytes()),
        }
    }
}

/// `From` for a scalar and for slices and vectors of it.
macro_rules! scalar {
    ($($rust:ty => $variant:ident),* $(,)?) => {$(
        impl From<$rust> for Value {
            fn from(v: $rust) -> Self {
                Self::$variant(v)
            }
        }

        impl From<Vec<$rust>> for Value {
            fn from(v: Vec<$rust>) -> Self {
                Self::Array(ValueType::$variant, v.into_iter().map(Self::from).collect())
            }
        }

        impl From<&[$rust]> for Value {
            fn from(v: &[$rust]) -> Self {
                Self::Array(ValueType::$variant, v.iter().map(|x| Self::from(*x)).collect())
            }
        }
    )*};
}

scalar!(u8 => U8, i8 => I8, u16 => U16, i16 => I16, u32 => U32, i32 => I32, f32 => F32, bool => Bool,
        u64 => U64, i64 => I64, f64 => F64);

impl From<&str> for Value {
    fn from(v: &str) -> Self {
        Self::Str(v.as_bytes().to_vec())
    }
}

impl From<String> for Value {
    fn from(v: String) -> Self {
        Self::Str(v.into_bytes())
    }
}

impl From<Vec<String>> for Value {
    fn from(v: Vec<String>) -> Self {
        Self::Array(ValueType::Str, v.into_iter().map(Self::from).collect())
    }
}

impl From<Vec<&str>> for Value {
    fn from(v: Vec<&str>) -> Self {
        Self::Array(ValueType::Str, v.into_iter().map(Self::from).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::{Value, ValueType};

    fn encoded(v: impl Into<Value>) -> Vec<u8> {
        let mut out = Vec::new();
        v.into().encode(&mut out);
        out
    }

    #[test]
    fn scalars_are_little_endian() {
        assert_eq!(encoded(7u8), [7]);
        assert_eq!(encoded(-1i8), [0xff]);
        assert_eq!(encoded(0x0102u16), [2, 1]);
        assert_eq!(encoded(-2i16), [0xfe, 0xff]);
        assert_eq!(encoded(0x0102_0304u32), [4, 3, 2, 1]);
        assert_eq!(encoded(-1i32), [0xff; 4]);
        assert_eq!(encoded(1.0f32), [0, 0, 0x80, 0x3f]);
        assert_eq!(encoded(true), [1]);
        assert_eq!(encoded(1u64), [1, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(encoded(-1i64), [0xff; 8]);
        assert_eq!(encoded(1.0f64), [0, 0, 0, 0, 0, 0, 0xf0, 0x3f]);
    }

    #[test]
    fn strings_and_arrays_carry_their_length() {
        assert_eq!(encoded("ab"), [2, 0, 0, 0, 0, 0, 0, 0, b'a', b'b']);
        assert_eq!(encoded(vec![1u8, 2]), [0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 1, 2]);
        assert_eq!(encoded(vec!["x"]), [8, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, b'x']);
        assert_eq!(encoded(Value::empty_array(ValueType::F64)), [12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    }
}
