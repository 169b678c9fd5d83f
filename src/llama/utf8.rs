//! Text out of byte pieces: a token can end in the middle of a character.

/// Joins byte pieces to text, holding back the bytes of a character that is not complete yet.
///
/// It never fails and loses nothing: bytes that can be no character become one replacement mark per broken sequence,
/// as [`String::from_utf8_lossy`] does it for the whole, and no mark appears before a sequence is certainly broken.
///
/// ```
/// use ggml_llama::Utf8Decoder;
/// let mut decoder = Utf8Decoder::new();
/// let crab = "🦀".as_bytes();
/// assert_eq!(decoder.push(&crab[..2]), "");
/// assert_eq!(decoder.push(&crab[2..]), "🦀");
/// assert_eq!(decoder.push(&crab[..3]), "");
/// assert_eq!(decoder.finish(), "\u{fffd}");
/// ```
#[derive(Debug, Clone, Default)]
pub struct Utf8Decoder {
    /// Start of a character: at most three bytes.
    held: [u8; 4],
    n_held: usize,
    text: String,
}

/// Room for the text of nearly every token, taken by the first push: growing with each longer one would allocate in the
/// midst of a generation.
const ROOM: usize = 64;

impl Utf8Decoder {
    /// A decoder that holds nothing.
    #[must_use]
    pub fn new() -> Utf8Decoder {
        Utf8Decoder::default()
    }

    /// Takes the next bytes and gives the text that is certain now, valid until the next call.
    pub fn push(&mut self, bytes: &[u8]) -> &str {
        self.text.clear();
        self.text.reserve(ROOM);
        let mut bytes = bytes;
        // Complete the held character byte by byte; it needs three more at most.
        while self.n_held > 0 {
            let Some((&next, rest)) = bytes.split_first() else { return &self.text };
            self.held[self.n_held] = next;
            match std::str::from_utf8(&self.held[..=self.n_held]) {
                Ok(character) => {
                    self.text.push_str(character);
                    self.n_held = 0;
                    bytes = rest;
                }
                // Still the start of a character.
                Err(e) if e.error_len().is_none() => {
                    self.n_held += 1;
                    bytes = rest;
                }
                // `next` does not continue it: the held bytes are broken, `next` begins something new.
                Err(_) => {
                    self.text.push(char::REPLACEMENT_CHARACTER);
                    self.n_held = 0;
                }
            }
        }
        self.push_fresh(bytes);
        &self.text
    }

    fn push_fresh(&mut self, mut bytes: &[u8]) {
        loop {
            match std::str::from_utf8(bytes) {
                Ok(text) => return self.text.push_str(text),
                Err(e) => {
                    let (valid, rest) = bytes.split_at(e.valid_up_to());
                    self.text.push_str(&String::from_utf8_lossy(valid));
                    match e.error_len() {
                        Some(broken) => {
                            self.text.push(char::REPLACEMENT_CHARACTER);
                            bytes = &rest[broken..];
                        }
                        None => {
                            self.held[..rest.len()].copy_from_slice(rest);
                            self.n_held = rest.len();
                            return;
                        }
                    }
                }
            }
        }
    }

    /// Number of bytes that wait for the rest of their character.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.n_held
    }

    /// Ends the text: a character that stayed incomplete becomes one replacement mark. The decoder is as new then.
    pub fn finish(&mut self) -> &str {
        self.text.clear();
        if self.n_held > 0 {
            self.text.push(char::REPLACEMENT_CHARACTER);
            self.n_held = 0;
        }
        &self.text
    }
}
