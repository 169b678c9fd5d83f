//! What the checks need to know of a vocabulary's tokens, collected while they are read.
//!
//! The texts are not kept: what would crash upstream depends on the tokenizer, whose name may come later in the file.

use std::io::{Read, Seek};

use crate::gguf::problem::{Check, bail};
use crate::gguf::reader::Reader;

/// More tokens than any vocabulary has: eight times the largest known.
pub(crate) const MAX_TOKENS: u64 = 1 << 21;
/// A longer text is no token. The longest known ones are runs of 128 to 512 spaces.
pub(crate) const MAX_TOKEN_BYTES: u64 = 4096;

/// Facts about the list of tokens.
#[derive(Debug, Clone, Default)]
pub(crate) struct TokenFacts {
    pub(crate) count: u64,
    /// Two tokens that are the same to upstream.
    pub(crate) duplicate: Option<(u64, u64)>,
    /// Length of the longest text in bytes.
    pub(crate) longest: u64,
    /// Bytes that upstream's table of texts takes at most when it decodes characters that stand for no byte (BPE).
    pub(crate) decoded_bytes: u64,
    /// Bytes that upstream's table of suffixes takes at most (PLaMo-2).
    pub(crate) suffix_bytes: u64,
    /// The first token whose escapes are malformed (RWKV).
    pub(crate) bad_escape: Option<u64>,
    /// A byte that starts a token, but is none by itself (RWKV).
    pub(crate) lonely_start: Option<u8>,
}

/// Reads the `count` strings of the list.
pub(crate) fn read<R: Read + Seek>(reader: &mut Reader<R>, count: u64) -> Check<TokenFacts> {
    if count > MAX_TOKENS {
        bail!("it has {count} tokens; expected at most {MAX_TOKENS}");
    }
    let mut facts = TokenFacts { count, ..TokenFacts::default() };
    let mut starts = ByteSet::default();
    let mut singles = ByteSet::default();
    // One entry per string, each of which takes at least eight bytes in the file.
    let mut hashes: Vec<u128> = Vec::with_capacity(usize::try_from(count.min(reader.remaining() / 8)).unwrap_or(0));
    let mut text = Vec::new();
    for id in 0..count {
        let len = reader.u64("the length of a token")?;
        if len > MAX_TOKEN_BYTES {
            bail!("token {id} has {len} bytes; expected at most {MAX_TOKEN_BYTES}");
        }
        reader.bytes(len, "a token", &mut text)?;
        // Upstream reads the text as a C string, and names those without one.
        let end = text.iter().position(|&b| b == 0).unwrap_or(text.len());
        text.truncate(end);
        if text.is_empty() {
            text.extend_from_slice(format!("[EMPTY_{id}]").as_bytes());
        }
        hashes.push((hash(&text) << 32) | u128::from(id));
        let len = text.len() as u64;
        facts.longest = facts.longest.max(len);
        facts.decoded_bytes = facts.decoded_bytes.saturating_add(len + undecodable(&text) * (len + 24));
        facts.suffix_bytes = facts.suffix_bytes.saturating_add(len * (len / 2 + 128));
        let bytes = Unescaped::of(&text);
        if bytes.malformed && facts.bad_escape.is_none() {
            facts.bad_escape = Some(id);
        }
        if let Some(first) = bytes.first {
            starts.insert(first);
            if bytes.count == 1 {
                singles.insert(first);
            }
        }
    }
    facts.duplicate = duplicate(hashes);
    facts.lonely_start = (0..=u8::MAX).find(|&b| starts.contains(b) && !singles.contains(b));
    Ok(facts)
}

/// The ids of two equal texts. Each entry holds 96 bits of a text's hash above its id.
fn duplicate(mut hashes: Vec<u128>) -> Option<(u64, u64)> {
    hashes.sort_unstable();
    let id = |entry: u128| u64::from(entry as u32);
    let pairs = hashes.iter().zip(hashes.iter().skip(1));
    pairs.filter(|(a, b)| **a >> 32 == **b >> 32).map(|(a, b)| (id(*a), id(*b))).min()
}

/// Equal texts have equal hashes, so a duplicate is never missed. Two others with the same hash are not to be expected
/// unless they were made for it, and then the file is refused.
fn hash(text: &[u8]) -> u128 {
    let mut hash: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d ^ text.len() as u128;
    for chunk in text.chunks(8) {
        let word = chunk.iter().fold(0u64, |word, &b| (word << 8) | u64::from(b));
        hash = (hash ^ u128::from(word)).wrapping_mul(0x2360_ed05_1fc6_5da4_4385_df64_9fcc_f645);
        hash ^= hash >> 64;
    }
    hash
}

/// Bytes that belong to no character of the byte-level alphabet, at least as many as such characters.
fn undecodable(text: &[u8]) -> u64 {
    let mut n = 0;
    let mut bytes = text.iter().copied().peekable();
    while let Some(b) = bytes.next() {
        let second = match b {
            0x21..=0x7e => continue,
            0xc2 => 0xa1..=0xbf,
            0xc3 | 0xc4 => 0x80..=0xbf,
            0xc5 => 0x80..=0x83,
            _ => {
                n += 1;
                continue;
            }
        };
        match bytes.next_if(|next| second.contains(next) && (b, *next) != (0xc2, 0xad)) {
            Some(_) => {}
            None => n += 1,
        }
    }
    n
}

/// What `llama_unescape_rwkv_token` makes of a text.
struct Unescaped {
    first: Option<u8>,
    count: u64,
    malformed: bool,
}

impl Unescaped {
    fn of(text: &[u8]) -> Unescaped {
        let mut out = Unescaped { first: None, count: 0, malformed: false };
        let mut bytes = text.iter().copied();
        while let Some(b) = bytes.next() {
            let byte = match b {
                b'\\' => match bytes.next() {
                    Some(b't') => b'\t',
                    Some(b'n') => b'\n',
                    Some(b'r') => b'\r',
                    Some(b'x') => match (hex(bytes.next()), hex(bytes.next())) {
                        (Some(high), Some(low)) => (high << 4) | low,
                        _ => {
                            out.malformed = true;
                            break;
                        }
                    },
                    Some(other) => other,
                    None => {
                        out.malformed = true;
                        break;
                    }
                },
                other => other,
            };
            out.first = out.first.or(Some(byte));
            out.count += 1;
        }
        out
    }
}

/// The digits that upstream reads right: it knows no capital letters.
fn hex(digit: Option<u8>) -> Option<u8> {
    match digit? {
        d @ b'0'..=b'9' => Some(d - b'0'),
        d @ b'a'..=b'f' => Some(d - b'a' + 10),
        _ => None,
    }
}

#[derive(Default)]
struct ByteSet([u128; 2]);

impl ByteSet {
    fn insert(&mut self, byte: u8) {
        let [low, high] = &mut self.0;
        *(if byte < 128 { low } else { high }) |= 1 << (byte & 127);
    }

    fn contains(&self, byte: u8) -> bool {
        let [low, high] = &self.0;
        (if byte < 128 { low } else { high }) >> (byte & 127) & 1 == 1
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::{TokenFacts, read, undecodable};
    use crate::gguf::problem::Problem;
    use crate::gguf::reader::Reader;

    fn encoded(texts: &[&[u8]]) -> Vec<u8> {
        texts.iter().flat_map(|t| [&(t.len() as u64).to_le_bytes(), *t].concat()).collect()
    }

    fn facts(texts: &[&[u8]]) -> TokenFacts {
        let bytes = encoded(texts);
        let size = bytes.len() as u64;
        read(&mut Reader::new(Cursor::new(bytes), size), texts.len() as u64).unwrap()
    }

    #[test]
    fn duplicates_as_upstream_sees_them() {
        assert_eq!(facts(&[b"a", b"b", b"aa"]).duplicate, None);
        assert_eq!(facts(&[b"a", b"b", b"a"]).duplicate, Some((0, 2)));
        assert_eq!(facts(&[b"b\0c", b"a", b"b\0d"]).duplicate, Some((0, 2)));
        assert_eq!(facts(&[b"", b"x", b""]).duplicate, None);
        assert_eq!(facts(&[b"[EMPTY_1]", b""]).duplicate, Some((0, 1)));
        let many: Vec<String> = (0..3000).map(|i| format!("token number {i}")).collect();
        let mut many: Vec<&[u8]> = many.iter().map(|t| t.as_bytes()).collect();
        assert_eq!(facts(&many).duplicate, None);
        many.push(b"token number 77");
        assert_eq!(facts(&many).duplicate, Some((77, 3000)));
    }

    #[test]
    fn rwkv_tokens() {
        assert_eq!(facts(&[b"a", b"ab", b"\\n"]).lonely_start, None);
        assert_eq!(facts(&[b"b", b"ab"]).lonely_start, Some(b'a'));
        assert_eq!(facts(&[b"\\xff", b"\\xffa"]).lonely_start, None);
        assert_eq!(facts(&[b"\\n\\n"]).lonely_start, Some(b'\n'));
        assert_eq!(facts(&[b"\\\\", b"\\\\a"]).lonely_start, None);
        for bad in [&b"\\"[..], b"\\x", b"\\x1", b"\\xzz", b"\\xFF"] {
            assert_eq!(facts(&[b"a", bad]).bad_escape, Some(1));
        }
    }

    #[test]
    fn alphabet_of_bytes() {
        assert_eq!(undecodable("\u{120}hello!~\u{a1}\u{ff}\u{143}".as_bytes()), 0);
        assert_eq!(undecodable(b" "), 1);
        assert_eq!(undecodable("\u{ad}".as_bytes()), 2);
        assert_eq!(undecodable("\u{144}".as_bytes()), 2);
        assert_eq!(undecodable("\u{65e5}".as_bytes()), 3);
        assert_eq!(undecodable(&[0xc2]), 1);
    }

    #[test]
    fn limits_come_before_memory() {
        let bytes = encoded(&[b"a"]);
        let attempt = |bytes: &[u8], n: u64| {
            let Err(Problem::Invalid(reason)) =
                read(&mut Reader::new(Cursor::new(bytes.to_vec()), bytes.len() as u64), n)
            else {
                panic!()
            };
            reason
        };
        assert!(attempt(&bytes, u64::MAX).contains("at most 2097152"));
        assert!(attempt(&bytes, 2).contains("only 0 are left"));
        assert!(attempt(&u64::MAX.to_le_bytes(), 1).contains("token 0 has 18446744073709551615 bytes"));
    }
}
