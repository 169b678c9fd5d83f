//! Files that a loader must refuse, or at least survive.
//!
//! [`syntax`] holds files that are no GGUF files, [`semantics`] GGUF files that describe an impossible model,
//! [`vocabs`] impossible vocabularies, [`adapters`] LoRA adapters that do not fit, [`split_models`] models in several
//! files that do not belong together.

pub mod adapters;
pub mod semantics;
pub mod split_models;
pub mod syntax;
pub mod vocabs;

use std::sync::OnceLock;

use crate::gguf::Gguf;
use crate::models::LlamaOptions;

/// All single-file models, with names that are unique and fit for a file name.
#[must_use]
pub fn all() -> Vec<(String, Vec<u8>)> {
    let mut files = syntax::all();
    files.extend(semantics::all());
    files.extend(vocabs::all());
    files
}

/// The options of the sound model that the broken ones are made from: as small as possible, since there are many.
#[must_use]
pub fn base_options() -> LlamaOptions {
    LlamaOptions {
        name: "broken".to_owned(),
        n_ctx_train: 64,
        n_layer: 1,
        n_embd: 32,
        n_head: 2,
        n_head_kv: 2,
        n_ff: 48,
        chat_template: None,
        ..LlamaOptions::default()
    }
}

/// The sound model that the broken ones are made from.
#[must_use]
pub fn base() -> Gguf {
    static BASE: OnceLock<Gguf> = OnceLock::new();
    BASE.get_or_init(|| base_options().build()).clone()
}

#[cfg(test)]
mod tests {
    use super::{all, base};

    #[test]
    fn names_are_unique_and_plain() {
        let files = all();
        let mut names: Vec<&str> = files.iter().map(|(n, _)| n.as_str()).collect();
        assert!(names.iter().all(|n| n.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')));
        let n = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), n);
        assert!(n > 100, "{n}");
    }

    #[test]
    fn all_differ_from_the_sound_file() {
        let sound = base().to_bytes();
        for (name, bytes) in all() {
            assert_ne!(bytes, sound, "{name}");
        }
    }
}
