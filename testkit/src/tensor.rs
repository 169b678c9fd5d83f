//! A tensor of a GGUF file: name, shape, type, data.

/// ggml's number for an element type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TensorType(pub u32);

impl TensorType {
    /// 32-bit float.
    pub const F32: Self = Self(0);
    /// 16-bit float.
    pub const F16: Self = Self(1);
    /// Signed, 32 bits.
    pub const I32: Self = Self(26);
}

/// One tensor with its data. Nothing checks that the data fit the shape.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    /// Name, at most 63 bytes in a well-formed file.
    pub name: String,
    /// Number of elements per dimension, the contiguous one first (ggml's order).
    pub dims: Vec<u64>,
    /// Element type.
    pub ty: TensorType,
    /// Little-endian elements.
    pub data: Vec<u8>,
}

impl Tensor {
    /// A tensor of 32-bit floats.
    #[must_use]
    pub fn f32(name: impl Into<String>, dims: &[u64], values: &[f32]) -> Self {
        let data = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        Self { name: name.into(), dims: dims.to_vec(), ty: TensorType::F32, data }
    }

    /// A tensor of 16-bit floats, rounded from `values`.
    #[must_use]
    pub fn f16(name: impl Into<String>, dims: &[u64], values: &[f32]) -> Self {
        let data = values.iter().flat_map(|v| f16_bits(*v).to_le_bytes()).collect();
        Self { name: name.into(), dims: dims.to_vec(), ty: TensorType::F16, data }
    }

    /// The number of elements that the shape asks for.
    #[must_use]
    pub fn n_elements(&self) -> u64 {
        self.dims.iter().fold(1u64, |n, d| n.saturating_mul(*d))
    }

    /// The data read as 32-bit floats (empty for another type).
    #[must_use]
    pub fn to_f32(&self) -> Vec<f32> {
        if self.ty != TensorType::F32 {
            return Vec::new();
        }
        self.data.as_chunks::<4>().0.iter().map(|c| f32::from_le_bytes(*c)).collect()
    }
}

/// IEEE half precision, rounded to nearest even.
#[must_use]
pub fn f16_bits(value: f32) -> u16 {
    let bits = value.to_bits();
    let sign = ((bits >> 16) & 0x8000) as u16;
    let magnitude = bits & 0x7fff_ffff;
    if magnitude > 0x7f80_0000 {
        return sign | 0x7e00;
    }
    // 65520 and more round to infinity
    if magnitude >= 0x477f_f000 {
        return sign | 0x7c00;
    }
    // below the smallest normal half (2^-14): scale to units of 2^-24 and round
    if magnitude < 0x3880_0000 {
        let units = (f32::from_bits(magnitude) * 16_777_216.0).round_ties_even();
        return sign | units as u16;
    }
    let shifted = magnitude - (112 << 23);
    let round = 0x0fff + ((shifted >> 13) & 1);
    sign | ((shifted + round) >> 13) as u16
}

#[cfg(test)]
mod tests {
    use super::{Tensor, f16_bits};

    #[test]
    fn half_floats() {
        for (value, bits) in [
            (0.0, 0x0000),
            (-0.0, 0x8000),
            (1.0, 0x3c00),
            (-2.0, 0xc000),
            (65504.0, 0x7bff),
            (65519.0, 0x7bff),
            (65520.0, 0x7c00),
            (f32::INFINITY, 0x7c00),
            (1.000_976_6, 0x3c01),
            (1.000_488_3, 0x3c00),
            (6.103_515_6e-5, 0x0400),
            (5.960_464_5e-8, 0x0001),
            (2.0e-8, 0x0000),
        ] {
            assert_eq!(f16_bits(value), bits, "{value}");
        }
        assert_eq!(f16_bits(f32::NAN) & 0x7e00, 0x7e00);
    }

    #[test]
    fn data_round_trip() {
        let t = Tensor::f32("t", &[2, 2], &[1.0, -2.0, 0.5, 0.0]);
        assert_eq!(t.data.len(), 16);
        assert_eq!(t.to_f32(), [1.0, -2.0, 0.5, 0.0]);
        assert_eq!(t.n_elements(), 4);
        assert_eq!(Tensor::f16("h", &[2], &[1.0, 2.0]).data, [0x00, 0x3c, 0x00, 0x40]);
    }
}
