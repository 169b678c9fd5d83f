//! Random weights for a model that is being put together.

use crate::gguf::Gguf;
use crate::rng::Rng;
use crate::tensor::Tensor;

/// Adds random tensors to a file, each seeded by the model's seed and its own name.
#[derive(Clone, Debug)]
pub struct Weights {
    seed: u64,
    gguf: Gguf,
}

impl Weights {
    /// Starts with a file that has its metadata.
    #[must_use]
    pub fn new(gguf: Gguf, seed: u64) -> Self {
        Self { seed, gguf }
    }

    /// Random numbers around `mean`.
    #[must_use]
    pub fn around(self, name: impl Into<String>, dims: &[u64], mean: f32, deviation: f32) -> Self {
        let name = name.into();
        let n = dims.iter().product::<u64>() as usize;
        let values = Rng::new(self.seed, &name).fill(n, mean, deviation);
        self.tensor(Tensor::f32(name, dims, &values))
    }

    /// A matrix that keeps the size of what it multiplies, times `gain`.
    #[must_use]
    pub fn matrix(self, name: impl Into<String>, n_in: u64, n_out: u64, gain: f32) -> Self {
        let deviation = gain / (n_in.max(1) as f32).sqrt();
        self.around(name, &[n_in, n_out], 0.0, deviation)
    }

    /// The factors of a norm: close to one.
    #[must_use]
    pub fn norm(self, name: impl Into<String>, n: u64) -> Self {
        self.around(name, &[n], 1.0, 0.05)
    }

    /// A bias: close to zero.
    #[must_use]
    pub fn bias(self, name: impl Into<String>, n: u64) -> Self {
        self.around(name, &[n], 0.0, 0.05)
    }

    /// An output matrix with a row for each token, as long as `lengths` says: the longer, the likelier the token.
    /// Rows of random length would let the longest one win too often.
    #[must_use]
    pub fn output(self, name: &str, n_embd: u64, lengths: &[f32]) -> Self {
        let mut rng = Rng::new(self.seed, name);
        let mut values = Vec::with_capacity(n_embd as usize * lengths.len());
        for length in lengths {
            let row = rng.fill(n_embd as usize, 0.0, 1.0);
            let norm = row.iter().map(|x| x * x).sum::<f32>().sqrt();
            values.extend(row.iter().map(|x| x * length / norm));
        }
        self.tensor(Tensor::f32(name, &[n_embd, lengths.len() as u64], &values))
    }

    /// A tensor with values of its own.
    #[must_use]
    pub fn tensor(mut self, tensor: Tensor) -> Self {
        self.gguf = self.gguf.with_tensor(tensor);
        self
    }

    /// The file.
    #[must_use]
    pub fn finish(self) -> Gguf {
        self.gguf
    }
}
