//! T8: contexts of one model made, moved and used in several threads, with the model's handle gone first.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::sync::{Arc, Barrier};
use std::thread;

use common::{argmax, batch_of, greedy, ids, plain, small, story, tiny_llama, tokens};
use ggml_llama::{Context, Model, Token};
use ggml_llama_testkit::{SpmVocab, models::story_tokens};

/// Makes two contexts in two threads at once, moves them to two more, and lets both generate at once.
fn in_other_threads(model: Model, prompts: [Vec<Token>; 2], n: usize) -> [Vec<Token>; 2] {
    let gate = Arc::new(Barrier::new(2));
    let makers: Vec<_> = (0..2)
        .map(|_| {
            let (model, gate) = (model.clone(), Arc::clone(&gate));
            thread::spawn(move || {
                gate.wait();
                model.new_context(&small()).unwrap()
            })
        })
        .collect();
    let contexts: Vec<Context> = makers.into_iter().map(|maker| maker.join().unwrap()).collect();
    drop(model);
    let users: Vec<_> = contexts
        .into_iter()
        .zip(prompts)
        .map(|(mut context, prompt)| {
            let gate = Arc::clone(&gate);
            thread::spawn(move || {
                gate.wait();
                greedy(&mut context, &prompt, n)
            })
        })
        .collect();
    let mut results = users.into_iter().map(|user| user.join().unwrap());
    [results.next().unwrap(), results.next().unwrap()]
}

#[test]
fn a_known_text_comes_from_both() {
    let model = story();
    let prompts = [plain(&model, "Hello"), plain(&model, "the lazy dog")];
    let expected = story_tokens(&SpmVocab::new());
    for generated in in_other_threads(model, prompts, 100) {
        assert_eq!(ids(&generated), expected);
    }
}

#[test]
fn the_same_tokens_come_as_from_one_thread() {
    let prompts = [tokens(&[1, 300, 411, 372]), tokens(&[1, 401, 290])];
    let alone = prompts.clone().map(|prompt| greedy(&mut tiny_llama().new_context(&small()).unwrap(), &prompt, 40));
    assert_ne!(alone[0], alone[1]);
    for _ in 0..3 {
        assert_eq!(in_other_threads(tiny_llama(), prompts.clone(), 40), alone);
    }
}

/// A context moves on to another thread after every token.
#[test]
fn a_context_wanders_from_thread_to_thread() {
    let prompt = tokens(&[1, 300, 411, 372]);
    let mut context = tiny_llama().new_context(&small()).unwrap();
    let expected = greedy(&mut context, &prompt, 12);
    context.memory().clear(false).unwrap();
    let mut next = prompt.clone();
    let mut pos = 0;
    let mut generated = Vec::new();
    for _ in 0..12 {
        (context, next) = thread::spawn(move || {
            context.decode(&batch_of(&next, pos)).unwrap();
            let token = Token(argmax(context.logits_last().unwrap()) as i32);
            (context, vec![token])
        })
        .join()
        .unwrap();
        generated.push(next[0]);
        pos = (prompt.len() + generated.len() - 1) as i32;
    }
    assert_eq!(generated, expected);
}

/// The threads of a context are its own: two contexts with two threads each compute at once.
#[test]
fn contexts_with_several_threads_compute_at_once() {
    let model = tiny_llama();
    let prompt = tokens(&[1, 300, 411, 372]);
    let expected = greedy(&mut model.new_context(&small()).unwrap(), &prompt, 10);
    let workers: Vec<_> = (0..2)
        .map(|_| {
            let (model, prompt) = (model.clone(), prompt.clone());
            thread::spawn(move || greedy(&mut model.new_context(&small().with_threads(2)).unwrap(), &prompt, 10))
        })
        .collect();
    for worker in workers {
        assert_eq!(worker.join().unwrap(), expected);
    }
}
