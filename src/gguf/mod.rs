//! Reads a GGUF file's header and checks it before upstream sees the file.
//!
//! Upstream's loader is written for files from its own converters: a malformed one can make it abort, hang or take all
//! memory. [`check_file`] refuses what would. It reads the header only, with memory bounded by the file's size, and
//! leaves to upstream what upstream itself reports as an error.
//!
//! | module | what |
//! |---|---|
//! | [`reader`], [`value`], [`problem`] | reading within bounds; the types of values; why a file was refused |
//! | [`metadata`], [`tokens`] | keys and values; facts about the vocabulary's tokens |
//! | [`tensors`], [`dtype`], [`tensor_roles`] | names, shapes, offsets; element types; which tensor may have which |
//! | [`header`], [`splits`] | one file; the parts of a model in several |
//! | [`hyper`], [`arch`] | access to hyper-parameters; what architectures have in common |
//! | [`check_model`] and `check_*` | the rules about the model |
//! | [`overrides`] | the same rules for metadata that the caller replaces |

mod arch;
mod check_experts;
mod check_model;
mod check_numbers;
mod check_ranges;
mod check_sizes;
mod check_vocab;
mod dtype;
mod header;
mod hyper;
mod metadata;
mod overrides;
mod problem;
mod reader;
mod splits;
mod tensor_roles;
mod tensors;
mod tokens;
mod value;

#[cfg(test)]
mod fuzz_test;

use std::path::Path;

use crate::error::Result;

pub(crate) use header::Header;
pub(crate) use overrides::check_overrides;
pub(crate) use value::Value;

/// Checks a model's file, or its first part and all others that upstream would load with it.
///
/// # Errors
///
/// [`Error::File`](crate::Error::File) when a file cannot be read, [`Error::InvalidGguf`](crate::Error::InvalidGguf)
/// when one is no usable GGUF file.
pub(crate) fn check_file(path: &Path) -> Result<Header> {
    let contents = splits::read(path)?;
    check_model::check(&contents.metadata, &contents.tensors)
        .map_err(|reason| problem::Problem::Invalid(reason).into_error(path))?;
    Ok(Header::new(contents))
}
