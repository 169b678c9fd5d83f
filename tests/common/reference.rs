//! The Llama architecture written by hand in double precision: what the logits of a tiny model must be.
//!
//! Written after the papers (RMS norm, rotary positions in pairs of neighbours, grouped-query attention, SwiGLU), not
//! after upstream's code.

use ggml_llama_testkit::{Gguf, LlamaOptions};

struct Matrix {
    values: Vec<f64>,
    width: usize,
}

impl Matrix {
    fn of(gguf: &Gguf, name: &str) -> Matrix {
        let tensor = gguf.tensor(name).unwrap();
        Matrix { values: tensor.to_f32().into_iter().map(f64::from).collect(), width: tensor.dims[0] as usize }
    }

    fn row(&self, i: usize) -> &[f64] {
        &self.values[i * self.width..(i + 1) * self.width]
    }

    fn times(&self, x: &[f64]) -> Vec<f64> {
        assert_eq!(x.len(), self.width);
        self.values.chunks(self.width).map(|row| dot(row, x)).collect()
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn rms_norm(x: &[f64], weights: &Matrix) -> Vec<f64> {
    let scale = 1.0 / (dot(x, x) / x.len() as f64 + 1e-5).sqrt();
    x.iter().zip(&weights.values).map(|(x, w)| x * scale * w).collect()
}

/// Turns each pair of neighbours of each head by an angle that grows with the position.
fn rotate(x: &mut [f64], n_heads: usize, pos: usize) {
    let head = x.len() / n_heads;
    for pairs in x.chunks_mut(head) {
        for (i, pair) in pairs.chunks_mut(2).enumerate() {
            let (sin, cos) = (pos as f64 * 10000f64.powf(-2.0 * i as f64 / head as f64)).sin_cos();
            let (a, b) = (pair[0], pair[1]);
            pair[0] = a * cos - b * sin;
            pair[1] = a * sin + b * cos;
        }
    }
}

fn softmax(x: &mut [f64]) {
    let max = x.iter().copied().fold(f64::MIN, f64::max);
    x.iter_mut().for_each(|x| *x = (*x - max).exp());
    let sum: f64 = x.iter().sum();
    x.iter_mut().for_each(|x| *x /= sum);
}

/// The logits after each token of a prompt.
pub(crate) fn logits(gguf: &Gguf, options: &LlamaOptions, tokens: &[i32]) -> Vec<Vec<f32>> {
    let embeddings = Matrix::of(gguf, "token_embd.weight");
    let mut states: Vec<Vec<f64>> = tokens.iter().map(|token| embeddings.row(*token as usize).to_vec()).collect();
    for layer in 0..options.n_layer {
        block(gguf, options, layer, &mut states);
    }
    let (norm, output) = (Matrix::of(gguf, "output_norm.weight"), Matrix::of(gguf, "output.weight"));
    let rows = states.iter().map(|state| output.times(&rms_norm(state, &norm)));
    rows.map(|row| row.into_iter().map(|x| x as f32).collect()).collect()
}

fn block(gguf: &Gguf, options: &LlamaOptions, layer: u32, states: &mut [Vec<f64>]) {
    let weights = |part: &str| Matrix::of(gguf, &format!("blk.{layer}.{part}.weight"));
    let (n_head, n_kv) = (options.n_head as usize, options.n_head_kv as usize);
    let head = options.n_embd as usize / n_head;
    let norm = weights("attn_norm");
    let (wq, wk, wv, wo) = (weights("attn_q"), weights("attn_k"), weights("attn_v"), weights("attn_output"));
    let (mut keys, mut values) = (Vec::new(), Vec::new());
    for (pos, state) in states.iter_mut().enumerate() {
        let x = rms_norm(state, &norm);
        let (mut query, mut key) = (wq.times(&x), wk.times(&x));
        rotate(&mut query, n_head, pos);
        rotate(&mut key, n_kv, pos);
        keys.push(key);
        values.push(wv.times(&x));
        let mut attended = vec![0.0; query.len()];
        for (h, (q, out)) in query.chunks(head).zip(attended.chunks_mut(head)).enumerate() {
            let at = h / (n_head / n_kv) * head;
            let mut scores: Vec<f64> =
                keys.iter().map(|key| dot(q, &key[at..at + head]) / (head as f64).sqrt()).collect();
            softmax(&mut scores);
            for (score, value) in scores.iter().zip(&values) {
                out.iter_mut().zip(&value[at..at + head]).for_each(|(out, v)| *out += score * v);
            }
        }
        add(state, &wo.times(&attended));
    }
    let (norm, gate, up, down) = (weights("ffn_norm"), weights("ffn_gate"), weights("ffn_up"), weights("ffn_down"));
    for state in states {
        let x = rms_norm(state, &norm);
        let silu = |x: f64| x / (1.0 + (-x).exp());
        let hidden: Vec<f64> = gate.times(&x).into_iter().map(silu).zip(up.times(&x)).map(|(g, u)| g * u).collect();
        add(state, &down.times(&hidden));
    }
}

fn add(state: &mut [f64], change: &[f64]) {
    state.iter_mut().zip(change).for_each(|(x, c)| *x += c);
}
