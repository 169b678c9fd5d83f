//! The steady state of the generate loop allocates nothing on Rust's heap.
//!
//! Process-wide, because of the counting allocator. It counts the allocations of the calling thread only, so that the
//! test runner's own threads do not matter. What C++ allocates goes past it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::hint::black_box;

use ggml_llama::{
    Batch, Context, ContextParams, Model, ModelParams, Pos, Sampler, SamplerChain, SeqId, Special, Token, Utf8Decoder,
};

struct Counting;

thread_local! {
    // Constant and without a destructor: reading it never allocates.
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

fn note() {
    // A thread that ends may still allocate.
    let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
}

// SAFETY: every call goes to the system's allocator with the same arguments.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note();
        // SAFETY: by the caller's contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        note();
        // SAFETY: by the caller's contract.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        note();
        // SAFETY: by the caller's contract.
        unsafe { System.realloc(ptr, layout, new_size) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: by the caller's contract.
        unsafe { System.dealloc(ptr, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Runs `f` and adds to `total` what it allocated on this thread.
fn counted<R>(total: &mut u64, f: impl FnOnce() -> R) -> R {
    let before = ALLOCATIONS.get();
    let result = f();
    *total += ALLOCATIONS.get() - before;
    result
}

/// Allocations in each step of one turn of the loop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Steps {
    decode: u64,
    sample: u64,
    is_eog: u64,
    piece: u64,
    text: u64,
    batch: u64,
}

/// The loop with everything that it reuses.
struct Generation {
    context: Context,
    sampler: SamplerChain,
    batch: Batch,
    piece: Vec<u8>,
    text: Utf8Decoder,
    next: i32,
    tokens: Vec<Token>,
}

impl Generation {
    fn new(model: &Model, samplers: impl IntoIterator<Item = Sampler>) -> Generation {
        let vocab = model.vocab();
        let context = model.new_context(&ContextParams::default().with_n_ctx(256).with_threads(1)).unwrap();
        let prompt = vocab.tokenize("Once there was", true, Special::AsText).unwrap();
        let mut batch = Batch::new();
        batch.add_sequence(&prompt, Pos(0), SeqId(0)).unwrap();
        Generation {
            context,
            sampler: SamplerChain::new(&vocab, samplers).unwrap(),
            batch,
            piece: Vec::new(),
            text: Utf8Decoder::new(),
            next: prompt.len() as i32,
            tokens: Vec::with_capacity(256),
        }
    }

    /// Decodes the batch, chooses a token, turns it into text, and puts it into the batch.
    fn turn(&mut self) -> Steps {
        let mut steps = Steps::default();
        let vocab = self.context.model().vocab();
        counted(&mut steps.decode, || self.context.decode(&self.batch)).unwrap();
        let token = counted(&mut steps.sample, || self.sampler.sample_last(&self.context)).unwrap();
        // The end of the sequence does not end this loop: tokens are counted, not read.
        black_box(counted(&mut steps.is_eog, || vocab.is_eog(token)).unwrap());
        counted(&mut steps.piece, || vocab.piece_into(token, false, &mut self.piece)).unwrap();
        counted(&mut steps.text, || black_box(self.text.push(&self.piece)).len());
        counted(&mut steps.batch, || {
            self.batch.clear();
            self.batch.add(token, Pos(self.next), &[SeqId(0)], true)
        })
        .unwrap();
        self.next += 1;
        self.tokens.push(token);
        steps
    }
}

const WARM_UP: usize = 8;
const MEASURED: usize = 32;

fn check(name: &str, model: &Model, samplers: impl IntoIterator<Item = Sampler>) {
    let mut generation = Generation::new(model, samplers);
    for _ in 0..WARM_UP {
        generation.turn();
    }
    let mut turns = [Steps::default(); MEASURED];
    let mut all = 0;
    counted(&mut all, || turns.iter_mut().for_each(|steps| *steps = generation.turn()));
    for (i, (steps, token)) in turns.iter().zip(&generation.tokens[WARM_UP..]).enumerate() {
        assert_eq!(*steps, Steps::default(), "{name}: allocations for generated token {i}, which is {token:?}");
    }
    assert_eq!(all, 0, "{name}: allocations between the steps");
    assert_eq!(generation.tokens.len(), WARM_UP + MEASURED);
}

fn load(path: std::io::Result<std::path::PathBuf>) -> Model {
    Model::load(path.unwrap(), &ModelParams::default()).unwrap()
}

#[test]
fn the_counter_counts_this_thread_and_no_other() {
    let mut count = 0;
    counted(&mut count, || drop(black_box(Vec::<u8>::with_capacity(10))));
    assert_eq!(count, 1, "one allocation");

    let mut count = 0;
    let mut bytes = Vec::<u8>::with_capacity(10);
    counted(&mut count, || black_box(&mut bytes).reserve(1000));
    assert_eq!(count, 1, "one reallocation");

    let mut count = 0;
    counted(&mut count, || black_box(vec![0u8; 10]));
    assert_eq!(count, 1, "one zeroed allocation");

    let mut count = 0;
    counted(&mut count, || black_box(1 + black_box(1)));
    assert_eq!(count, 0);

    let (ready, go) = (std::sync::Barrier::new(2), std::sync::Barrier::new(2));
    let mut count = 0;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            ready.wait();
            drop(black_box(vec![1u8; 100]));
            go.wait();
        });
        counted(&mut count, || {
            ready.wait();
            go.wait();
        });
    });
    assert_eq!(count, 0, "another thread's");
}

#[test]
fn the_first_turn_does_allocate() {
    let model = load(ggml_llama_testkit::tiny_llama_path());
    let mut generation = Generation::new(&model, [Sampler::TopK { k: 40 }, Sampler::Dist { seed: 1 }]);
    let first = generation.turn();
    // The lists of candidates and outputs, the piece and the text are made here: what the other tests see to be zero
    // is measured.
    assert!(first.decode > 0, "{first:?}");
    assert!(first.sample > 0, "{first:?}");
    assert!(first.piece > 0, "{first:?}");
    assert!(first.text > 0, "{first:?}");
}

#[test]
fn greedy_generation_allocates_nothing() {
    check("greedy", &load(ggml_llama_testkit::tiny_llama_path()), [Sampler::Greedy]);
}

#[test]
fn random_generation_allocates_nothing() {
    let samplers = [Sampler::TopK { k: 40 }, Sampler::Temperature { t: 0.8 }, Sampler::Dist { seed: 7 }];
    check("top-k, temperature, dist", &load(ggml_llama_testkit::tiny_llama_path()), samplers);
}

#[test]
fn multi_byte_text_allocates_nothing() {
    // The story ends with a character of four tokens, and goes round.
    check("story", &load(ggml_llama_testkit::tiny_llama_story_path()), [Sampler::Greedy]);
}

#[test]
fn a_real_model_allocates_nothing() {
    let Some(path) = std::env::var_os("GGML_LLAMA_MODEL") else {
        let required = std::env::var_os("GGML_LLAMA_TEST_REQUIRE_MODEL").is_some_and(|value| value == "1");
        assert!(!required, "GGML_LLAMA_MODEL is not set");
        println!("skipped: GGML_LLAMA_MODEL is not set");
        return;
    };
    let model = load(Ok(path.into()));
    check("real model, greedy", &model, [Sampler::Greedy]);
    let samplers = [Sampler::TopK { k: 40 }, Sampler::Temperature { t: 0.8 }, Sampler::Dist { seed: 7 }];
    check("real model, top-k, temperature, dist", &model, samplers);
}
