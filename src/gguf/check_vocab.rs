//! The vocabulary: what makes `llama_vocab::impl::load` or the tokenizers abort, hang or run out of memory.

use crate::gguf::metadata::Metadata;
use crate::gguf::problem::{bail, shown};
use crate::gguf::value::{Value, ValueType};

/// Memory for decoded texts or suffixes, with which upstream answers long tokens.
const MAX_EXPANSION: u64 = 1 << 30;
const MAX_PLAMO2_TOKEN: u64 = 1024;

/// The entries that name a tokenizer and a pre-tokenizer.
pub(crate) const MODEL: &str = "tokenizer.ggml.model";
const PRE: &str = "tokenizer.ggml.pre";

pub(crate) fn check(metadata: &Metadata) -> Result<(), String> {
    check_lengths(metadata)?;
    // Upstream refuses models without; adapters and later parts have none.
    let Some(model) = metadata.text(MODEL) else { return Ok(()) };
    if ["none", "no_vocab"].contains(&model) {
        return Ok(());
    }
    let Some(tokens) = &metadata.tokens else { return Ok(()) };
    if tokens.count == 0 {
        bail!("`tokenizer.ggml.tokens` is empty; expected at least one token");
    }
    // GGML_ASSERT(id_to_token.size() == token_to_id.size())
    if let Some((a, b)) = tokens.duplicate {
        bail!("`tokenizer.ggml.tokens` has the same text for the tokens {a} and {b}");
    }
    match model {
        // token_to_byte: "fatal error"
        "bert" if metadata.has_byte_tokens => {
            bail!("`tokenizer.ggml.token_type` holds 6 (byte), which the tokenizer `bert` does not know")
        }
        "gpt2" | "hybriddna" | "whitespace" | "gemma4" => {
            // GGML_ASSERT(token_left.find(' ') == std::string::npos), when a text has two spaces
            if model != "whitespace" && metadata.text(PRE) == Some("whitespace") {
                bail!("`{PRE}` is `whitespace`, but `{MODEL}` is {}; expected `whitespace`", shown(model));
            }
            if tokens.decoded_bytes > MAX_EXPANSION {
                bail!("`tokenizer.ggml.tokens` would take {} bytes to decode; expected less", tokens.decoded_bytes);
            }
        }
        "plamo2" => {
            if tokens.longest > MAX_PLAMO2_TOKEN {
                bail!("a token has {} bytes; expected at most {MAX_PLAMO2_TOKEN}", tokens.longest);
            }
            if tokens.suffix_bytes > MAX_EXPANSION {
                bail!(
                    "the tokens' suffixes would take {} bytes; expected at most {MAX_EXPANSION}",
                    tokens.suffix_bytes
                );
            }
        }
        // the tokenizer would go back to the start of the text for ever
        "rwkv" => {
            if let Some(id) = tokens.bad_escape {
                bail!(
                    "token {id} has an escape sequence that is not \\t, \\n, \\r, \\x with two digits or one character"
                );
            }
            if let Some(byte) = tokens.lonely_start {
                bail!("a token starts with the byte 0x{byte:02x}, but no token is that byte alone; expected one");
            }
        }
        _ => {}
    }
    Ok(())
}

/// Lists that go with the tokens.
fn check_lengths(metadata: &Metadata) -> Result<(), String> {
    let Some(tokens) = &metadata.tokens else { return Ok(()) };
    for (key, types) in [
        ("tokenizer.ggml.scores", &[ValueType::F32, ValueType::I32][..]),
        ("tokenizer.ggml.token_type", &[ValueType::I32]),
    ] {
        match metadata.get(key) {
            None => {}
            Some(Value::Array(array)) if types.contains(&array.element) && array.len >= tokens.count => {}
            Some(Value::Array(array)) => bail!(
                "`{key}` has {} elements of type {}; expected {} of type {}, one per token",
                array.len,
                array.element.name(),
                tokens.count,
                types.first().map_or("", |ty| ty.name())
            ),
            Some(other) => bail!("`{key}` has type {}; expected an array", other.value_type().name()),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::gguf::metadata::Metadata;
    use crate::gguf::tokens::TokenFacts;
    use crate::gguf::value::{Array, Value, ValueType};

    fn vocab(model: &str, tokens: TokenFacts) -> Metadata {
        let mut metadata = Metadata::default();
        metadata.set("tokenizer.ggml.model", Value::String(model.to_owned()));
        metadata.tokens = Some(tokens);
        metadata
    }

    fn three() -> TokenFacts {
        TokenFacts { count: 3, longest: 5, ..TokenFacts::default() }
    }

    fn bad(metadata: &Metadata, expected: &str) {
        let reason = check(metadata).unwrap_err();
        assert!(reason.contains(expected), "{reason}");
    }

    #[test]
    fn lists() {
        assert_eq!(check(&Metadata::default()), Ok(()));
        assert_eq!(check(&vocab("llama", three())), Ok(()));
        bad(&vocab("test", TokenFacts::default()), "at least one token");
        assert_eq!(check(&vocab("none", TokenFacts::default())), Ok(()));
        let twice = TokenFacts { duplicate: Some((1, 2)), ..three() };
        bad(&vocab("llama", twice.clone()), "the same text for the tokens 1 and 2");
        assert_eq!(check(&vocab("none", twice)), Ok(()));
        let scores = |element, len| {
            let mut metadata = vocab("llama", three());
            metadata.set("tokenizer.ggml.scores", Value::Array(Array { element, len, integers: Vec::new() }));
            metadata
        };
        assert_eq!(check(&scores(ValueType::F32, 3)), Ok(()));
        bad(&scores(ValueType::F32, 2), "has 2 elements of type f32; expected 3 of type f32");
        bad(&scores(ValueType::String, 3), "of type str");
    }

    #[test]
    fn tokenizers() {
        let mut bert = vocab("bert", three());
        assert_eq!(check(&bert), Ok(()));
        bert.has_byte_tokens = true;
        bad(&bert, "holds 6 (byte)");
        let mut bpe = vocab("gpt2", three());
        bpe.set("tokenizer.ggml.pre", Value::String("whitespace".to_owned()));
        bad(&bpe, "expected `whitespace`");
        bpe.set("tokenizer.ggml.model", Value::String("whitespace".to_owned()));
        assert_eq!(check(&bpe), Ok(()));
        bad(&vocab("gpt2", TokenFacts { decoded_bytes: 1 << 31, ..three() }), "to decode");
        bad(&vocab("plamo2", TokenFacts { longest: 1025, ..three() }), "1025 bytes");
        bad(&vocab("plamo2", TokenFacts { suffix_bytes: 1 << 31, ..three() }), "suffixes");
        let lonely = TokenFacts { lonely_start: Some(b'a'), ..three() };
        bad(&vocab("rwkv", lonely.clone()), "starts with the byte 0x61");
        assert_eq!(check(&vocab("llama", lonely)), Ok(()));
        bad(&vocab("rwkv", TokenFacts { bad_escape: Some(2), ..three() }), "token 2 has an escape");
    }
}
