//! Changes a small sound file at random and checks that nothing panics and that memory stays bounded.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::io::Cursor;

use crate::gguf::header::{self, Header};
use crate::gguf::value::Value;
use crate::gguf::{check_model, check_overrides};

/// Counts the bytes of each thread, so that tests which run at the same time do not disturb each other.
struct Counting;

thread_local! {
    static NOW: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
}

fn count(change: isize) {
    // Without effect while a thread ends.
    let _ = NOW.try_with(|now| {
        now.set(now.get().wrapping_add(change));
        let _ = PEAK.try_with(|peak| peak.set(peak.get().max(now.get())));
    });
}

// SAFETY: all work is done by the system's allocator, with the same arguments.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: as for this function.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: as for this function.
        unsafe { System.dealloc(ptr, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn peak_of(work: impl FnOnce()) -> isize {
    let before = NOW.get();
    PEAK.set(before);
    work();
    PEAK.get() - before
}

/// A generator without dependencies (SplitMix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }
}

fn text(text: &str) -> Vec<u8> {
    [&(text.len() as u64).to_le_bytes(), text.as_bytes()].concat()
}

fn entry(key: &str, ty: u32, value: &[u8]) -> Vec<u8> {
    [&text(key)[..], &ty.to_le_bytes(), value].concat()
}

fn array(element: u32, len: u64, elements: &[u8]) -> Vec<u8> {
    [&element.to_le_bytes(), &len.to_le_bytes()[..], elements].concat()
}

fn tensor(name: &str, dims: &[u64], offset: u64) -> Vec<u8> {
    let dims_bytes: Vec<u8> = dims.iter().flat_map(|d| d.to_le_bytes()).collect();
    [&text(name)[..], &(dims.len() as u32).to_le_bytes(), &dims_bytes, &0u32.to_le_bytes(), &offset.to_le_bytes()]
        .concat()
}

fn sound() -> Vec<u8> {
    let tokens: Vec<u8> = ["<s>", "a", "b", "ab", ""].iter().flat_map(|t| text(t)).collect();
    let entries = [
        entry("general.architecture", 8, &text("llama")),
        entry("general.alignment", 4, &32u32.to_le_bytes()),
        entry("llama.block_count", 4, &1u32.to_le_bytes()),
        entry("llama.embedding_length", 4, &8u32.to_le_bytes()),
        entry("llama.context_length", 4, &64u32.to_le_bytes()),
        entry("llama.attention.head_count", 9, &array(4, 1, &2u32.to_le_bytes())),
        entry("llama.attention.head_count_kv", 4, &1u32.to_le_bytes()),
        entry("llama.attention.layer_norm_rms_epsilon", 6, &1e-5f32.to_le_bytes()),
        entry("llama.rope.scaling.type", 8, &text("none")),
        entry("tokenizer.ggml.model", 8, &text("llama")),
        entry("tokenizer.ggml.tokens", 9, &array(8, 5, &tokens)),
        entry("tokenizer.ggml.token_type", 9, &array(5, 5, &[1; 20])),
        entry("tokenizer.ggml.scores", 9, &array(6, 5, &[0; 20])),
    ];
    let tensors = [
        tensor("token_embd.weight", &[8, 5], 0),
        tensor("blk.0.attn_norm.weight", &[8], 160),
        tensor("output.weight", &[8, 5, 1, 1], 192),
    ];
    let counts = [tensors.len() as u64, entries.len() as u64];
    let mut bytes = [&b"GGUF\x03\0\0\0"[..], &counts[0].to_le_bytes(), &counts[1].to_le_bytes()].concat();
    bytes.extend(entries.concat());
    bytes.extend(tensors.concat());
    bytes.resize(bytes.len().next_multiple_of(32) + 352, 0);
    bytes
}

fn mutate(bytes: &mut Vec<u8>, random: &mut Random) {
    for _ in 0..=random.below(4) {
        let at = random.below(bytes.len());
        match random.below(8) {
            0 => bytes[at] ^= 1 << random.below(8),
            1 => bytes[at] = random.next() as u8,
            2 => bytes[at] = [0, 1, 9, 13, 64, 127, 128, 255][random.below(8)],
            3 => bytes.truncate(at.max(1)),
            4 => {
                // a whole length or count, somewhere
                let value = [0, 1, u64::MAX, 1 << 63, 1 << 62, 1 << 32, 1 << 20, 1 << 16][random.below(8)];
                for (b, v) in bytes[at..].iter_mut().zip(value.to_le_bytes()) {
                    *b = v;
                }
            }
            5 => {
                let n = random.below(9);
                bytes.splice(at..at, (0..n).map(|i| (i as u8).wrapping_mul(37)));
            }
            6 => {
                let end = (at + random.below(9)).min(bytes.len() - 1);
                bytes.drain(at..end.max(at));
            }
            _ => {
                let (from, n) = (random.below(bytes.len()), random.below(32));
                let piece: Vec<u8> = bytes[from..].iter().take(n).copied().collect();
                for (b, v) in bytes[at..].iter_mut().zip(piece) {
                    *b = v;
                }
            }
        }
    }
}

#[test]
fn twenty_thousand_changes() {
    let sound = sound();
    let whole = |bytes: Vec<u8>| {
        let size = bytes.len() as u64;
        let contents = header::read(Cursor::new(bytes), size).map_err(|p| format!("{p:?}"))?;
        check_model::check(&contents.metadata, &contents.tensors)?;
        let header = Header::new(contents);
        check_overrides(&header, &[("llama.block_count".to_owned(), Value::I64(1))])?;
        Ok::<_, String>(header)
    };
    assert_eq!(whole(sound.clone()).map(|h| h.n_tensors), Ok(3));
    let mut random = Random(20_000);
    let (mut refused, mut most) = (0, 0);
    for _ in 0..20_000 {
        let mut bytes = sound.clone();
        mutate(&mut bytes, &mut random);
        let len = bytes.len() as isize;
        let peak = peak_of(|| refused += usize::from(whole(bytes).is_err()));
        most = most.max(peak - len);
    }
    assert!((5_000..20_000).contains(&refused), "{refused}");
    // 64 KiB are the reader's own buffer; the file has 1.5 KiB.
    assert!(most < 128 << 10, "{most}");
}
