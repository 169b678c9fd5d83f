//! The generated declarations of upstream's C API and of our shim (`native/shim`), for those who need what the safe
//! layer does not offer. Everything here is unsafe and follows upstream without notice.

#![allow(
    missing_docs,
    non_camel_case_types,
    non_snake_case,
    non_upper_case_globals,
    unreachable_pub,
    clippy::all,
    clippy::undocumented_unsafe_blocks
)]

include!(concat!(env!("OUT_DIR"), "/bindings.rs"));
