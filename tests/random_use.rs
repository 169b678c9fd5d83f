//! Random use of the safe layer: whatever the parameters and the batches are, the outcome is a value or a typed error
//! that upstream did not have to assert.
//!
//! It runs in a child process, so that a crash shows as a failure with the round that led to it. More rounds, or others:
//! `GGML_LLAMA_TEST_ROUNDS=5000 GGML_LLAMA_TEST_SEED=1 cargo test --test random_use`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use common::{child, tiny_bert, tiny_llama, tiny_mamba, tiny_t5};
use ggml_llama::{
    Attention, Batch, CacheType, Context, ContextParams, DecodeError, Error, FlashAttention, Model, Penalties, Pooling,
    Pos, RopeScaling, Sampler, SamplerChain, SeqId, Token,
};
use ggml_llama_testkit::{self as testkit, rng::Rng};

const DEFAULT_ROUNDS: u64 = 250;

const MARK: &str = "ROUND ";

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn random_use_ends_no_process() {
    let rounds = number("GGML_LLAMA_TEST_ROUNDS").unwrap_or(DEFAULT_ROUNDS);
    let outcome = child::run("child_that_uses_everything", "run", Duration::from_secs(60 + rounds / 5));
    let last = outcome.stdout.lines().rfind(|line| line.contains(MARK)).unwrap_or("nothing was done");
    assert_eq!(outcome.failure(), None, "last was {last}\n{}", outcome.stderr);
    assert!(last.contains(&format!("{MARK}{}", rounds - 1)), "{last}");
}

#[test]
fn child_that_uses_everything() {
    if child::role().is_none() {
        return;
    }
    let models = [
        tiny_llama(),
        tiny_bert(),
        common::load(testkit::tiny_reranker_path().unwrap()),
        tiny_mamba(),
        tiny_t5(),
        common::load(testkit::cached("sound.gguf", &testkit::broken::base()).unwrap()),
    ];
    let seed = number("GGML_LLAMA_TEST_SEED").unwrap_or(1);
    let rounds = number("GGML_LLAMA_TEST_ROUNDS").unwrap_or(DEFAULT_ROUNDS);
    let failed = (0..rounds).filter(|round| {
        let mut dice = Dice(Rng::new(seed, &round.to_string()));
        let model = dice.of(&models).clone();
        let params = params(&mut dice);
        println!("{MARK}{round} of {}: {params:?}", model.architecture());
        let result = play(&mut dice, &model, &params);
        if let Err(error) = &result {
            eprintln!("{MARK}{round} of {}: {error}\n{params:?}", model.architecture());
        }
        result.is_err()
    });
    assert_eq!(failed.count(), 0);
    let [contexts, refused, decodes] = [&CONTEXTS, &REFUSED, &DECODES].map(|counter| counter.load(SeqCst));
    println!("{contexts} contexts made, {refused} refused, {decodes} batches computed");
    // Else the parameters are so odd that nothing was tried.
    assert!(contexts > rounds / 3 && decodes > rounds);
}

static CONTEXTS: AtomicU64 = AtomicU64::new(0);
static REFUSED: AtomicU64 = AtomicU64::new(0);
static DECODES: AtomicU64 = AtomicU64::new(0);

/// One context, and some calls of it. The error is one that should not have been possible.
fn play(dice: &mut Dice, model: &Model, params: &ContextParams) -> Result<(), Error> {
    match model.new_context(params) {
        Ok(mut context) => {
            CONTEXTS.fetch_add(1, SeqCst);
            (0..dice.below(25)).try_for_each(|_| step(dice, &mut context))
        }
        Err(Error::InvalidParameter { .. } | Error::ContextCreation { .. }) => {
            REFUSED.fetch_add(1, SeqCst);
            Ok(())
        }
        Err(other) => Err(other),
    }
}

struct Dice(Rng);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        (self.0.next_u64() % n as u64) as usize
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    fn of<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.below(list.len())]
    }
}

fn params(dice: &mut Dice) -> ContextParams {
    use CacheType::{Bf16, F16, F32, Iq4Nl, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0};
    let mut p = ContextParams::default().with_threads(if dice.one_in(40) { 2 } else { 1 });
    p.n_ctx = *dice.of(&[0, 1, 16, 255, 256, 257, 512, 512, 1000, 2048]);
    p.n_batch = *dice.of(&[1, 7, 8, 33, 256, 512, 2048]);
    p.n_ubatch = *dice.of(&[0, 1, 3, 8, 64, 512, 4096]);
    p.n_seq_max = *dice.of(&[1, 1, 1, 1, 2, 3, 4, 16]);
    p.n_outputs_max = *dice.of(&[0, 0, 0, 0, 0, 1, 4, 16]);
    p.kv_unified = dice.one_in(2);
    p.embeddings = dice.one_in(3);
    p.no_perf = dice.one_in(2);
    p.swa_full = dice.one_in(2);
    p.offload_kqv = dice.one_in(2);
    p.pooling =
        *dice.of(&[Pooling::Unspecified, Pooling::None, Pooling::Mean, Pooling::Cls, Pooling::Last, Pooling::Rank]);
    p.attention = *dice.of(&[Attention::Unspecified, Attention::Unspecified, Attention::Causal, Attention::NonCausal]);
    p.flash_attention = *dice.of(&[FlashAttention::Auto, FlashAttention::Enabled, FlashAttention::Disabled]);
    if dice.one_in(3) {
        p.type_k = *dice.of(&[F32, Bf16, Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, Iq4Nl]);
        p.type_v = *dice.of(&[F16, F32, Bf16, Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, Iq4Nl]);
    }
    p.rope_scaling =
        *dice.of(&[RopeScaling::Unspecified, RopeScaling::Linear, RopeScaling::Yarn, RopeScaling::LongRope]);
    p.rope_freq_scale = *dice.of(&[0.0, 0.0, 1.0, 0.25, 1e-4, 1e4]);
    p.rope_freq_base = *dice.of(&[0.0, 10000.0, 1e-30, 1e30]);
    p.yarn_ext_factor = *dice.of(&[-1.0, 0.0, 1.0, f32::MAX]);
    p.yarn_orig_ctx = *dice.of(&[0, 1, 256, u32::MAX]);
    p
}

/// A batch that mostly goes on where the memory ends.
fn batch(dice: &mut Dice, context: &mut Context) -> Batch {
    let n_vocab = context.model().vocab().n_tokens();
    let n_seq = context.n_seq_max() as i32;
    let mut next: Vec<i32> =
        (0..n_seq).map(|seq| context.memory().seq_pos_max(SeqId(seq)).map_or(0, |pos| pos.0 + 1)).collect();
    let mut batch = Batch::new();
    for _ in 0..*dice.of(&[0, 1, 1, 2, 5, 8, 9, 40, 300]) {
        let seq = dice.below(n_seq as usize);
        let odd = dice.one_in(400);
        let token = if odd { *dice.of(&[-1, n_vocab, i32::MAX]) } else { dice.below(n_vocab as usize) as i32 };
        let pos = if dice.one_in(400) { *dice.of(&[-1, 0, 7, 1 << 20, i32::MAX]) } else { next[seq] };
        next[seq] = pos.wrapping_add(1);
        let mut seqs = vec![SeqId(if dice.one_in(400) { *dice.of(&[-1, n_seq, i32::MAX]) } else { seq as i32 })];
        if dice.one_in(200) {
            seqs.push(SeqId(dice.below(n_seq as usize) as i32));
        }
        batch.add(Token(token), Pos(pos), &seqs, dice.one_in(3)).unwrap();
    }
    batch
}

/// Passes on what upstream asserted or threw; other errors are as they should be.
fn allowed<T>(result: Result<T, impl Into<Error>>) -> Result<(), Error> {
    match result.map_err(Into::into) {
        Err(error @ (Error::Upstream { .. } | Error::Poisoned { .. })) => Err(error),
        Err(Error::Decode(
            error @ (DecodeError::Upstream { .. } | DecodeError::Poisoned(_) | DecodeError::Compute(_)),
        )) => Err(error.into()),
        _ => Ok(()),
    }
}

fn step(dice: &mut Dice, context: &mut Context) -> Result<(), Error> {
    let seq = SeqId(*dice.of(&[0, 0, 1, 2, -1, 300]));
    let index = *dice.of(&[0, 0, 1, 3, 8, usize::MAX]);
    match dice.below(12) {
        0..=4 => {
            let batch = batch(dice, context);
            let result = context.decode(&batch);
            DECODES.fetch_add(u64::from(result.is_ok()), SeqCst);
            allowed(result)
        }
        5 => {
            let batch = batch(dice, context);
            allowed(context.encode(&batch))
        }
        6 => {
            let bounds = [None, Some(-1), Some(0), Some(3), Some(200), Some(i32::MAX)];
            let (from, to) = (dice.of(&bounds).map(Pos), dice.of(&bounds).map(Pos));
            allowed(context.memory().seq_rm(seq, from, to))
        }
        7 => allowed(context.memory().clear(dice.one_in(2))),
        8 => {
            allowed(context.logits(index))?;
            allowed(context.logits_last())
        }
        9 => {
            allowed(context.embeddings(index))?;
            allowed(context.embeddings_seq(seq))
        }
        10 => sample(dice, context),
        _ => {
            let _ = (context.perf(), context.pooling(), context.memory().seq_pos_min(seq));
            allowed(context.set_n_threads(*dice.of(&[1, 0, 600]), 1))?;
            allowed(context.synchronize())
        }
    }
}

fn sample(dice: &mut Dice, context: &mut Context) -> Result<(), Error> {
    let vocab = context.model().vocab();
    let samplers = [
        Sampler::TopK { k: *dice.of(&[-1, 0, 1, 40, i32::MAX]) },
        Sampler::TopP { p: *dice.of(&[0.0, 0.5, 1.0]), min_keep: *dice.of(&[0, 1, usize::MAX]) },
        Sampler::MinP { p: *dice.of(&[0.0, 0.5, 1.0]), min_keep: *dice.of(&[0, 1, usize::MAX]) },
        Sampler::Typical { p: *dice.of(&[0.0, 0.5, 1.0]), min_keep: *dice.of(&[0, 1, usize::MAX]) },
        Sampler::Temperature { t: *dice.of(&[-1.0, 0.0, 1e-30, 1.0, 1e30]) },
        Sampler::Penalties(Penalties::default().with_last_n(*dice.of(&[0, 1, 64])).with_repeat(1e30)),
    ];
    let mut chosen: Vec<Sampler> = (0..dice.below(5)).map(|_| dice.of(&samplers).clone()).collect();
    chosen.push(dice.of(&[Sampler::Greedy, Sampler::Dist { seed: 3 }]).clone());
    let mut chain = SamplerChain::new(&vocab, chosen)?;
    for _ in 0..3 {
        let token = chain.sample_last(context);
        assert!(token.as_ref().is_ok_and(|token| (0..vocab.n_tokens()).contains(&token.0)) || token.is_err());
        allowed(token)?;
    }
    Ok(())
}
