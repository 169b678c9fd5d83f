//! Handles may be dropped in any order, on any thread: two models with what was made from them, in every permutation.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::any::Any;
use std::path::Path;
use std::thread;

use common::{batch_of, load, tokens};
use ggml_llama::{Context, ContextParams, Model, SamplerChain, Special, Vocab};
use ggml_llama_testkit::{self as testkit, broken};

/// Uses what is left of a set of objects before one of them goes.
fn use_it(object: &mut (dyn Any + Send)) {
    if let Some(model) = object.downcast_mut::<Model>() {
        assert_eq!(model.n_layer(), 1);
    } else if let Some(context) = object.downcast_mut::<Context>() {
        context.memory().clear(false).unwrap();
        context.decode(&batch_of(&tokens(&[300]), 0)).unwrap();
        assert!(context.logits_last().unwrap().iter().all(|x| x.is_finite()));
    } else if let Some(chain) = object.downcast_mut::<SamplerChain>() {
        let logits: Vec<f32> = (0..testkit::SpmVocab::new().n_tokens()).map(|i| i as f32).collect();
        assert_eq!(chain.apply(&logits).unwrap().selected().unwrap().token.0 as usize, logits.len() - 1);
    } else {
        let vocab = object.downcast_mut::<Vocab>().unwrap();
        assert_eq!(vocab.tokenize("Hello", false, Special::AsText).unwrap().len(), 1);
    }
}

fn permutations(items: &[usize]) -> Vec<Vec<usize>> {
    if items.is_empty() {
        return vec![Vec::new()];
    }
    let mut all = Vec::new();
    for (i, first) in items.iter().enumerate() {
        let rest: Vec<usize> = items.iter().enumerate().filter(|(j, _)| *j != i).map(|(_, x)| *x).collect();
        all.extend(permutations(&rest).into_iter().map(|p| [vec![*first], p].concat()));
    }
    all
}

#[test]
fn there_are_as_many_orders_as_there_should_be() {
    let mut all = permutations(&[0, 1, 2, 3, 4, 5]);
    all.sort();
    all.dedup();
    assert_eq!(all.len(), 720);
}

#[test]
fn every_order_on_other_threads() {
    let path = testkit::cached("sound.gguf", &broken::base()).unwrap();
    let orders = permutations(&[0, 1, 2, 3, 4, 5]);
    // Two at a time, which also lets models come and go beside each other.
    thread::scope(|scope| {
        for half in orders.chunks(orders.len() / 2) {
            scope.spawn(|| half.iter().for_each(|order| drop_in_order(&path, order)));
        }
    });
}

fn drop_in_order(path: &Path, order: &[usize]) {
    let params = ContextParams::default().with_n_ctx(32).with_n_batch(8).with_threads(1);
    let (a, b) = (load(path), load(path));
    let (context_a, context_b) = (a.new_context(&params).unwrap(), b.new_context(&params).unwrap());
    let (sampler, vocab) = (SamplerChain::greedy(&a.vocab()).unwrap(), b.vocab());
    let objects: [Box<dyn Any + Send>; 6] =
        [Box::new(a), Box::new(b), Box::new(context_a), Box::new(context_b), Box::new(sampler), Box::new(vocab)];
    let mut objects = objects.map(Some);
    for i in order {
        let mut object = objects[*i].take().unwrap();
        thread::spawn(move || {
            use_it(&mut *object);
            drop(object);
        })
        .join()
        .unwrap();
    }
}

#[test]
fn all_at_once() {
    let path = testkit::cached("sound.gguf", &broken::base()).unwrap();
    let params = ContextParams::default().with_n_ctx(32).with_n_batch(8).with_threads(1);
    for _ in 0..20 {
        let model = load(&path);
        let context = model.new_context(&params).unwrap();
        let sampler = SamplerChain::greedy(&model.vocab()).unwrap();
        let objects: Vec<Box<dyn Any + Send>> =
            vec![Box::new(model.vocab()), Box::new(model), Box::new(context), Box::new(sampler)];
        let threads: Vec<_> = objects.into_iter().map(|object| thread::spawn(move || drop(object))).collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    }
}
