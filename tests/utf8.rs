//! T7, `Utf8Decoder`: however a text is cut into pieces, the same text comes out, as early as it is certain.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use ggml_llama::Utf8Decoder;
use ggml_llama_testkit::rng::Rng;

const MARK: char = '\u{fffd}';

/// A 4-byte emoji, a family joined by zero-width joiners, a CJK character, all lengths mixed.
const TEXTS: [&str; 5] = [
    "\u{1f999}",
    "\u{1f468}\u{200d}\u{1f469}\u{200d}\u{1f467}\u{200d}\u{1f466}",
    "\u{6f22}",
    "a\u{e9}\u{6f22}\u{1f999}z",
    "\u{7f}\u{80}\u{7ff}\u{800}\u{ffff}\u{10000}\u{10ffff}",
];

/// The texts of all pieces and of the end.
fn decode<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> (Vec<String>, String) {
    let mut decoder = Utf8Decoder::new();
    let texts = pieces.into_iter().map(|piece| decoder.push(piece).to_owned()).collect();
    let end = decoder.finish().to_owned();
    assert_eq!((decoder.pending(), decoder.finish()), (0, ""));
    (texts, end)
}

/// The text that is certain after these bytes: all but an incomplete character at the end.
fn certain(bytes: &[u8]) -> &str {
    match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(e) => std::str::from_utf8(&bytes[..e.valid_up_to()]).unwrap(),
    }
}

#[test]
fn every_cut_into_two_and_three() {
    for text in TEXTS {
        let bytes = text.as_bytes();
        for i in 0..=bytes.len() {
            let (first, second) = bytes.split_at(i);
            let (texts, end) = decode([first, second]);
            assert_eq!(texts[0], certain(first), "{text} cut at {i}");
            assert_eq!((texts.concat().as_str(), end.as_str()), (text, ""), "{text} cut at {i}");
            for j in i..=bytes.len() {
                let (texts, end) = decode([first, &bytes[i..j], &bytes[j..]]);
                assert_eq!(texts[..2].concat(), certain(&bytes[..j]), "{text} cut at {i} and {j}");
                assert_eq!((texts.concat().as_str(), end.as_str()), (text, ""), "{text} cut at {i} and {j}");
            }
        }
    }
}

#[test]
fn byte_by_byte_nothing_is_early_or_late() {
    for text in TEXTS {
        let bytes = text.as_bytes();
        let mut decoder = Utf8Decoder::new();
        let mut out = String::new();
        for (i, byte) in bytes.iter().enumerate() {
            out += decoder.push(&[*byte]);
            assert_eq!(out, certain(&bytes[..=i]), "{text} after {i}");
            assert_eq!(decoder.pending(), i + 1 - out.len(), "{text} after {i}");
        }
        assert_eq!(out, text);
    }
}

#[test]
fn a_lone_continuation_byte_is_broken_at_once() {
    let mut decoder = Utf8Decoder::new();
    assert_eq!(decoder.push(b"a\x80b"), "a\u{fffd}b");
    assert_eq!(decoder.push(b"\xbf"), "\u{fffd}");
    assert_eq!((decoder.pending(), decoder.finish()), (0, ""));
}

#[test]
fn the_end_of_a_broken_tail_is_one_mark() {
    for text in TEXTS {
        for end in text.char_indices().map(|(at, c)| at + c.len_utf8()) {
            let last = text[..end].chars().next_back().unwrap();
            let start = end - last.len_utf8();
            for cut in start + 1..end {
                let bytes = &text.as_bytes()[..cut];
                let (texts, rest) = decode(bytes.iter().map(std::slice::from_ref));
                assert_eq!(texts.concat(), text[..start], "{text} up to {cut}");
                assert_eq!(rest, MARK.to_string(), "{text} up to {cut}");
            }
        }
    }
}

#[test]
fn what_ends_a_broken_character_is_not_lost() {
    let mut decoder = Utf8Decoder::new();
    assert_eq!(decoder.push(b"\xf0\x9f\xa6"), "");
    assert_eq!(decoder.pending(), 3);
    assert_eq!(decoder.push(b"!"), "\u{fffd}!");
    assert_eq!(decoder.push(b"\xe6"), "");
    assert_eq!(decoder.push("\u{6f22}".as_bytes()), "\u{fffd}\u{6f22}");
    // A surrogate and an overlong form: no byte of them begins a character.
    assert_eq!(decoder.push(b"\xed"), "");
    assert_eq!(decoder.push(b"\xa0\x80"), "\u{fffd}\u{fffd}\u{fffd}");
    assert_eq!(decoder.push(b"\xc0\xaf\xf5"), "\u{fffd}\u{fffd}\u{fffd}");
    assert_eq!(decoder.finish(), "");
}

#[test]
fn a_decoder_is_as_new_after_the_end() {
    let mut decoder = Utf8Decoder::new();
    decoder.push(b"\xf0\x9f");
    assert_eq!(decoder.finish(), "\u{fffd}");
    assert_eq!(decoder.push(b"\xa6\x99"), "\u{fffd}\u{fffd}");
    assert_eq!(decoder.push("\u{1f999}".as_bytes()), "\u{1f999}");
}

#[test]
fn empty_pieces_change_nothing() {
    let bytes = "\u{1f999}".as_bytes();
    let (texts, end) = decode([&b""[..], &bytes[..2], b"", &bytes[2..], b""]);
    assert_eq!((texts.concat().as_str(), end.as_str()), ("\u{1f999}", ""));
}

#[test]
fn a_copy_goes_on_apart() {
    let mut one = Utf8Decoder::new();
    one.push(b"\xf0\x9f");
    let mut other = one.clone();
    assert_eq!(one.push(b"\xa6\x99"), "\u{1f999}");
    assert_eq!(other.finish(), "\u{fffd}");
}

/// Random bytes with many starts of characters, cut at random: the same marks as the standard library's.
#[test]
fn random_bytes_are_those_of_the_standard_library() {
    let mut rng = Rng::new(7, "utf8");
    let mut below = move |n: u64| (rng.next_u64() % n) as usize;
    for round in 0..20_000 {
        let mut bytes = Vec::new();
        while bytes.len() < 24 {
            match below(4) {
                0 => bytes.push(below(256) as u8),
                1 => bytes.extend(TEXTS[below(5)].bytes().take(1 + below(8))),
                2 => bytes.push([0x80, 0xbf, 0xc2, 0xe0, 0xed, 0xf0, 0xf4, 0xf5][below(8)]),
                _ => bytes.push(b'a'),
            }
        }
        let mut pieces = Vec::new();
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            let (piece, tail) = rest.split_at(below(5).min(rest.len()));
            pieces.push(piece);
            rest = tail;
        }
        let (texts, end) = decode(pieces.iter().copied());
        assert_eq!(texts.concat() + &end, String::from_utf8_lossy(&bytes), "round {round}: {bytes:x?} {pieces:?}");
    }
}
