//! Pseudo-random weights: the same on every machine, and independent of the order in which tensors are made.

/// A small generator (splitmix64), seeded by a number and a name.
#[derive(Clone, Debug)]
pub struct Rng {
    state: u64,
}

impl Rng {
    /// The generator of the tensor `name` of the model with seed `seed`.
    #[must_use]
    pub fn new(seed: u64, name: &str) -> Self {
        Self { state: hash(name.as_bytes()) ^ seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) }
    }

    /// The next 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Roughly normal, mean 0 and standard deviation 1: the sum of four uniform numbers, so that no
    /// platform's mathematics library has a part in it.
    pub fn normal(&mut self) -> f32 {
        let bits = self.next_u64();
        let sum: u32 = (0..4).map(|i| u32::from((bits >> (16 * i)) as u16)).sum();
        // the sum has mean 2*65535 and variance 4 * 65536^2 / 12
        (sum as f32 - 131_070.0) / 37_837.227
    }

    /// `n` numbers around `mean`.
    pub fn fill(&mut self, n: usize, mean: f32, deviation: f32) -> Vec<f32> {
        (0..n).map(|_| mean + deviation * self.normal()).collect()
    }
}

/// A 64-bit hash (FNV-1a).
#[must_use]
pub fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |h, b| (h ^ u64::from(*b)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::{Rng, hash};

    #[test]
    fn known_values() {
        assert_eq!(hash(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(hash(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(Rng { state: 0 }.next_u64(), 0xe220_a839_7b1d_cdaf);
    }

    #[test]
    fn moments() {
        let v = Rng::new(1, "t").fill(10_000, 2.0, 3.0);
        let mean = v.iter().sum::<f32>() / 10_000.0;
        let variance = v.iter().map(|x| (x - mean).powi(2)).sum::<f32>() / 10_000.0;
        assert!((mean - 2.0).abs() < 0.1, "{mean}");
        assert!((variance.sqrt() - 3.0).abs() < 0.1, "{variance}");
        assert_ne!(Rng::new(1, "t").next_u64(), Rng::new(2, "t").next_u64());
        assert_ne!(Rng::new(1, "t").next_u64(), Rng::new(1, "u").next_u64());
    }
}
