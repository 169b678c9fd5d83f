//! The types that a tensor's elements can have.

/// What a type's id in the file (`ggml_type`) stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Dtype {
    pub(crate) id: u32,
    pub(crate) name: &'static str,
    /// Elements per block; rows consist of whole blocks.
    pub(crate) block: u64,
    /// Bytes per block.
    pub(crate) size: u64,
    /// Whether the CPU backend multiplies with it and looks rows up in it. With another type upstream reaches a null
    /// function pointer or an abort when it computes, and checks neither before.
    pub(crate) is_weight: bool,
}

pub(crate) const F32: u32 = 0;
pub(crate) const I32: u32 = 26;
pub(crate) const I64: u32 = 27;

const fn weight(id: u32, name: &'static str, block: u64, size: u64) -> Dtype {
    Dtype { id, name, block, size, is_weight: true }
}

const fn other(id: u32, name: &'static str, block: u64, size: u64) -> Dtype {
    Dtype { id, name, block, size, is_weight: false }
}

const TYPES: [Dtype; 35] = [
    weight(F32, "f32", 1, 4),
    weight(1, "f16", 1, 2),
    weight(2, "q4_0", 32, 18),
    weight(3, "q4_1", 32, 20),
    weight(6, "q5_0", 32, 22),
    weight(7, "q5_1", 32, 24),
    weight(8, "q8_0", 32, 34),
    other(9, "q8_1", 32, 36),
    weight(10, "q2_K", 256, 84),
    weight(11, "q3_K", 256, 110),
    weight(12, "q4_K", 256, 144),
    weight(13, "q5_K", 256, 176),
    weight(14, "q6_K", 256, 210),
    other(15, "q8_K", 256, 292),
    weight(16, "iq2_xxs", 256, 66),
    weight(17, "iq2_xs", 256, 74),
    weight(18, "iq3_xxs", 256, 98),
    weight(19, "iq1_s", 256, 50),
    weight(20, "iq4_nl", 32, 18),
    weight(21, "iq3_s", 256, 110),
    weight(22, "iq2_s", 256, 82),
    weight(23, "iq4_xs", 256, 136),
    other(24, "i8", 1, 1),
    other(25, "i16", 1, 2),
    other(I32, "i32", 1, 4),
    other(I64, "i64", 1, 8),
    other(28, "f64", 1, 8),
    weight(29, "iq1_m", 256, 56),
    weight(30, "bf16", 1, 2),
    weight(34, "tq1_0", 256, 54),
    weight(35, "tq2_0", 256, 66),
    weight(39, "mxfp4", 32, 17),
    weight(40, "nvfp4", 64, 36),
    weight(41, "q1_0", 128, 18),
    weight(42, "q2_0", 64, 18),
];

/// The type of this id; nothing for unknown and removed ones.
pub(crate) fn dtype(id: u32) -> Option<Dtype> {
    TYPES.iter().copied().find(|ty| ty.id == id)
}

#[cfg(test)]
mod tests {
    use super::{TYPES, dtype};

    #[test]
    fn ids() {
        for pair in TYPES.windows(2) {
            assert!(pair[0].id < pair[1].id);
        }
        for removed in [4, 5, 31, 32, 33, 36, 37, 38, 43, u32::MAX] {
            assert_eq!(dtype(removed), None);
        }
        assert_eq!(dtype(12).map(|t| (t.name, t.block, t.size)), Some(("q4_K", 256, 144)));
    }
}
