//! Samplers on logits made by hand: what survives, what is chosen, and what is refused.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::{argmax, batch_of, load_vocab_only, parameter_of, small, tiny_bert, tiny_llama, tokens};
use ggml_llama::{Error, Penalties, Sampler, SamplerChain, Token, Vocab};
use ggml_llama_testkit::{self as testkit, Gguf};

/// A vocabulary of five tokens.
fn five() -> Vocab {
    let file = Gguf::new()
        .with_kv("general.architecture", "llama")
        .with_kv("tokenizer.ggml.model", "test")
        .with_kv("tokenizer.ggml.tokens", vec!["a", "b", "c", "d", "e"]);
    load_vocab_only(testkit::cached("five-tokens.gguf", &file).unwrap()).vocab()
}

/// Logits with the probabilities 1/16, 1/2, 1/8, 1/4, 1/16.
fn logits() -> [f32; 5] {
    [0.0625f32, 0.5, 0.125, 0.25, 0.0625].map(f32::ln)
}

fn chain(samplers: impl IntoIterator<Item = Sampler>) -> SamplerChain {
    SamplerChain::new(&five(), samplers).unwrap()
}

/// The tokens that a sampler leaves of [`logits`], in the order of their ids.
fn survivors(sampler: Sampler) -> Vec<i32> {
    let mut chain = chain([sampler, Sampler::Greedy]);
    let left = chain.apply(&logits()).unwrap();
    assert_eq!(left.selected().unwrap().token, left.iter().max_by(|a, b| a.logit.total_cmp(&b.logit)).unwrap().token);
    assert!(!left.is_empty());
    let mut ids: Vec<i32> = left.iter().map(|candidate| candidate.token.0).collect();
    ids.sort_unstable();
    ids
}

/// The logits that samplers make of others, by id.
fn changed(chain: &mut SamplerChain, logits: &[f32]) -> Vec<f32> {
    let mut changed = vec![f32::NAN; logits.len()];
    for candidate in chain.apply(logits).unwrap().iter() {
        changed[candidate.token.0 as usize] = candidate.logit;
    }
    changed
}

fn assert_close(got: &[f32], expected: &[f32]) {
    let close = got.iter().zip(expected).all(|(a, b)| a == b || (a - b).abs() < 1e-5);
    assert!(close && got.len() == expected.len(), "{got:?}, expected {expected:?}");
}

#[test]
fn top_k_keeps_the_largest() {
    assert_eq!(survivors(Sampler::TopK { k: 1 }), [1]);
    assert_eq!(survivors(Sampler::TopK { k: 2 }), [1, 3]);
    assert_eq!(survivors(Sampler::TopK { k: 3 }), [1, 2, 3]);
    for all in [0, -1, 5, 6, i32::MAX, i32::MIN] {
        assert_eq!(survivors(Sampler::TopK { k: all }), [0, 1, 2, 3, 4], "{all}");
    }
}

/// Falling: 1/2, 1/4, 1/8, ...; the sums are 1/2, 3/4, 7/8, 15/16, 1.
#[test]
fn top_p_keeps_what_reaches_p() {
    let top_p = |p, min_keep| survivors(Sampler::TopP { p, min_keep });
    assert_eq!(top_p(0.4, 0), [1]);
    assert_eq!(top_p(0.7, 0), [1, 3]);
    assert_eq!(top_p(0.8, 0), [1, 2, 3]);
    assert_eq!(top_p(0.4, 3), [1, 2, 3]);
    assert_eq!(top_p(0.0, 1), [1]);
    assert_eq!(top_p(1.0, 0).len(), 5);
    assert_eq!(top_p(0.4, usize::MAX).len(), 5);
}

#[test]
fn min_p_keeps_a_share_of_the_largest() {
    let min_p = |p, min_keep| survivors(Sampler::MinP { p, min_keep });
    assert_eq!(min_p(0.6, 0), [1]);
    assert_eq!(min_p(0.4, 0), [1, 3]);
    assert_eq!(min_p(0.2, 0), [1, 2, 3]);
    assert_eq!(min_p(0.1, 0).len(), 5);
    assert_eq!(min_p(0.6, 2), [1, 3]);
    assert_eq!(min_p(0.0, 0).len(), 5);
}

/// The entropy is 1.2996; the surprises -ln p are 0.693, 1.386, 2.079, 2.773, at distances 0.61, 0.09, 0.78, 1.47.
#[test]
fn typical_keeps_the_least_surprising_surprise() {
    let typical = |p, min_keep| survivors(Sampler::Typical { p, min_keep });
    assert_eq!(typical(0.2, 0), [3]);
    assert_eq!(typical(0.7, 0), [1, 3]);
    assert_eq!(typical(0.8, 0), [1, 2, 3]);
    assert_eq!(typical(0.2, 2), [1, 3]);
    assert_eq!(typical(1.0, 0).len(), 5);
}

#[test]
fn temperature_divides() {
    let at = |t| changed(&mut chain([Sampler::Temperature { t }, Sampler::Greedy]), &[1.0, 4.0, -2.0, 0.0, 3.0]);
    assert_close(&at(0.5), &[2.0, 8.0, -4.0, 0.0, 6.0]);
    assert_close(&at(2.0), &[0.5, 2.0, -1.0, 0.0, 1.5]);
    const NO: f32 = f32::NEG_INFINITY;
    assert_close(&at(0.0), &[NO, 4.0, NO, NO, NO]);
    assert_close(&at(-1.0), &[NO, 4.0, NO, NO, NO]);
}

#[test]
fn penalties_count_the_last_tokens() {
    let penalties = Penalties::default().with_last_n(3).with_repeat(2.0).with_frequency(0.5).with_presence(0.25);
    let mut chain = chain([Sampler::Penalties(penalties), Sampler::Greedy]);
    let logits = [1.0, 4.0, -2.0, 0.0, 3.0];
    assert_close(&changed(&mut chain, &logits), &logits);
    for token in [4, 1, 1, 2] {
        chain.accept(Token(token)).unwrap();
    }
    // Token 4 has left the last three; 1 was there twice, 2 once. Negative logits are multiplied.
    let expected = [1.0, 4.0 / 2.0 - 2.0 * 0.5 - 0.25, -2.0 * 2.0 - 0.5 - 0.25, 0.0, 3.0];
    assert_close(&changed(&mut chain, &logits), &expected);
    chain.reset().unwrap();
    assert_close(&changed(&mut chain, &logits), &logits);
    // Zero tokens count: off.
    let mut off = self::chain([Sampler::Penalties(penalties.with_last_n(0)), Sampler::Greedy]);
    off.accept(Token(1)).unwrap();
    assert_close(&changed(&mut off, &logits), &logits);
}

#[test]
fn samplers_run_in_their_order() {
    // After the division the share of the second is 1/4 instead of 1/2, and min-p drops it.
    let sharp = Sampler::Temperature { t: 0.5 };
    let min_p = Sampler::MinP { p: 0.3, min_keep: 0 };
    assert_eq!(chain([min_p.clone(), sharp.clone(), Sampler::Greedy]).apply(&logits()).unwrap().len(), 2);
    assert_eq!(chain([sharp, min_p, Sampler::Greedy]).apply(&logits()).unwrap().len(), 1);
}

#[test]
fn dist_chooses_by_probability_and_by_its_seed() {
    let draw = |chain: &mut SamplerChain, n: usize| -> Vec<i32> {
        (0..n).map(|_| chain.apply(&logits()).unwrap().selected().unwrap().token.0).collect()
    };
    let mut chain = chain([Sampler::Dist { seed: 7 }]);
    assert_eq!(chain.seed(), Some(7));
    let drawn = draw(&mut chain, 8000);
    for (id, expected) in [500f64, 4000.0, 1000.0, 2000.0, 500.0].into_iter().enumerate() {
        let count = drawn.iter().filter(|token| **token == id as i32).count() as f64;
        // Five standard deviations.
        let deviation = (expected * (1.0 - expected / 8000.0)).sqrt();
        assert!((count - expected).abs() < 5.0 * deviation, "token {id}: {count} of {expected}");
    }
    let mut again = self::chain([Sampler::Dist { seed: 7 }]);
    assert_eq!(draw(&mut again, 50), drawn[..50]);
    assert_ne!(draw(&mut self::chain([Sampler::Dist { seed: 8 }]), 50), drawn[..50]);
    // A reset starts the numbers again; a copy goes on where the original is.
    chain.reset().unwrap();
    assert_eq!(draw(&mut chain, 20), drawn[..20]);
    let mut copy = chain.try_clone().unwrap();
    assert_eq!((draw(&mut chain, 20), draw(&mut copy, 20)), (drawn[20..40].to_vec(), drawn[20..40].to_vec()));
    let left = chain.apply(&logits()).unwrap();
    let mut p: Vec<(i32, f32)> = left.iter().map(|c| (c.token.0, c.p)).collect();
    p.sort_by_key(|(id, _)| *id);
    assert_close(&p.iter().map(|(_, p)| *p).collect::<Vec<_>>(), &[0.0625, 0.5, 0.125, 0.25, 0.0625]);
}

#[test]
fn a_random_seed_is_drawn_and_told() {
    let seeds: std::collections::HashSet<_> =
        (0..4).map(|_| chain([Sampler::Dist { seed: Sampler::SEED_RANDOM }]).seed().unwrap()).collect();
    assert!(seeds.len() > 1 && !seeds.contains(&Sampler::SEED_RANDOM), "{seeds:?}");
    assert_eq!(chain([Sampler::Greedy]).seed(), None);
}

#[test]
fn a_copy_remembers_the_same_tokens() {
    let penalties = Sampler::Penalties(Penalties::default().with_presence(10.0));
    let mut chain = chain([penalties, Sampler::Greedy]);
    chain.accept(Token(1)).unwrap();
    let mut copy = chain.try_clone().unwrap();
    assert_eq!(copy.samplers(), chain.samplers());
    chain.reset().unwrap();
    let chosen = |chain: &mut SamplerChain| chain.apply(&logits()).unwrap().selected().unwrap().token;
    assert_eq!((chosen(&mut chain), chosen(&mut copy)), (Token(1), Token(3)));
}

/// Upstream asserts that something was selected.
#[test]
fn chains_that_cannot_choose_are_refused() {
    let refused = |samplers: Vec<Sampler>, why: &str| match SamplerChain::new(&five(), samplers) {
        Err(Error::Sampling { reason }) => assert!(reason.contains(why), "{reason}"),
        other => panic!("{other:?}"),
    };
    refused(vec![], "must end with");
    refused(vec![Sampler::TopK { k: 3 }], "must end with");
    refused(vec![Sampler::Greedy, Sampler::TopK { k: 3 }], "TopK");
    refused(vec![Sampler::Dist { seed: 1 }, Sampler::Greedy], "must be the last");
}

#[test]
fn parameters_that_cannot_work_are_refused() {
    let refused = |sampler: Sampler| parameter_of(SamplerChain::new(&five(), [sampler, Sampler::Greedy]));
    let penalties = Penalties::default();
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        assert_eq!(refused(Sampler::TopP { p: bad, min_keep: 0 }), "top_p");
        assert_eq!(refused(Sampler::MinP { p: bad, min_keep: 0 }), "min_p");
        assert_eq!(refused(Sampler::Typical { p: bad, min_keep: 0 }), "typical_p");
        assert_eq!(refused(Sampler::Temperature { t: bad }), "temperature");
        assert_eq!(refused(Sampler::Penalties(penalties.with_repeat(bad))), "penalties.repeat");
        assert_eq!(refused(Sampler::Penalties(penalties.with_frequency(bad))), "penalties.frequency");
        assert_eq!(refused(Sampler::Penalties(penalties.with_presence(bad))), "penalties.presence");
    }
    assert_eq!(refused(Sampler::TopP { p: 1.5, min_keep: 0 }), "top_p");
    assert_eq!(refused(Sampler::MinP { p: -0.1, min_keep: 0 }), "min_p");
    assert_eq!(refused(Sampler::Penalties(penalties.with_repeat(0.0))), "penalties.repeat");
    // The history is allocated at once: 8 GiB for the largest number.
    for last_n in [-1, i32::MIN, (1 << 20) + 1, i32::MAX] {
        assert_eq!(refused(Sampler::Penalties(penalties.with_last_n(last_n))), "penalties.last_n");
    }
}

#[test]
fn logits_that_are_no_numbers_are_refused() {
    let wide = load_vocab_only(testkit::vocab_path("test").unwrap()).vocab();
    for samplers in [vec![Sampler::Greedy], vec![Sampler::TopP { p: 0.5, min_keep: 0 }, Sampler::Dist { seed: 1 }]] {
        let mut chain = SamplerChain::new(&wide, samplers).unwrap();
        let refused = |chain: &mut SamplerChain, logits: &[f32]| match chain.apply(logits) {
            Err(Error::Sampling { reason }) => reason,
            other => panic!("{other:?}"),
        };
        for bad in [f32::NAN, -f32::NAN, f32::INFINITY] {
            for at in [0, 1, 15, 16, 150, 298, 299] {
                let mut logits = vec![0.5; 300];
                logits[at] = bad;
                assert!(refused(&mut chain, &logits).contains("not a number or infinite"), "{bad} at {at}");
            }
        }
        assert!(refused(&mut chain, &[f32::NEG_INFINITY; 300]).contains("minus infinity"));
        for n in [0, 1, 299, 301] {
            assert!(refused(&mut chain, &vec![0.0; n]).contains(&format!("{n} logits for 300 tokens")));
        }
        // Some minus infinity is allowed, and never chosen; the chain is as good as before.
        let mut one = vec![f32::NEG_INFINITY; 300];
        one[123] = -1e30;
        assert_eq!(chain.apply(&one).unwrap().selected().unwrap().token, Token(123));
    }
}

#[test]
fn tokens_that_are_none_are_not_accepted() {
    let mut chain = chain([Sampler::Penalties(Penalties::default().with_presence(1.0)), Sampler::Greedy]);
    for id in [-1, 5, i32::MAX, i32::MIN] {
        let refused = chain.accept(Token(id));
        assert!(matches!(refused, Err(Error::TokenOutOfRange { token, n_vocab: 5 }) if token == id), "{refused:?}");
    }
    assert_close(&changed(&mut chain, &logits()), &logits());
}

#[test]
fn greedy_takes_the_largest_logit_of_a_decode() {
    let model = tiny_llama();
    let mut context = model.new_context(&small()).unwrap();
    let mut batch = batch_of(&tokens(&[1, 300, 411, 372]), 0);
    assert!(batch.set_output(1, true));
    context.decode(&batch).unwrap();
    let expected = [1, 3].map(|i| Token(argmax(context.logits(i).unwrap()) as i32));
    let mut greedy = SamplerChain::greedy(&model.vocab()).unwrap();
    let mut top_1 = SamplerChain::new(&model.vocab(), [Sampler::TopK { k: 1 }, Sampler::Dist { seed: 3 }]).unwrap();
    for chain in [&mut greedy, &mut top_1] {
        assert_eq!([chain.sample(&context, 1).unwrap(), chain.sample(&context, 3).unwrap()], expected);
        assert_eq!(chain.sample_last(&context).unwrap(), expected[1]);
        assert!(matches!(chain.sample(&context, 0), Err(Error::NoOutput { what: "logits", .. })));
        assert_eq!(chain.perf().n_sample, 3, "{:?}", chain.samplers());
        chain.reset_perf();
        assert_eq!(chain.perf(), ggml_llama::SamplerPerf::default());
    }
    // The first of several largest.
    assert_eq!(
        self::chain([Sampler::Greedy]).apply(&[0.0, 2.0, 1.0, 2.0, 2.0]).unwrap().selected().unwrap().token,
        Token(1)
    );
}

#[test]
fn a_chain_for_another_vocabulary_is_refused() {
    let model = tiny_llama();
    let mut context = model.new_context(&small()).unwrap();
    context.decode(&batch_of(&tokens(&[1, 300]), 0)).unwrap();
    for vocab in [five(), tiny_bert().vocab()] {
        let mut other = SamplerChain::greedy(&vocab).unwrap();
        let refused = other.sample_last(&context);
        let n_vocab = vocab.n_tokens().to_string();
        assert!(matches!(&refused, Err(Error::Sampling { reason }) if reason.contains(&n_vocab)), "{refused:?}");
    }
}
