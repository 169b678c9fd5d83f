//! Which types may go to other threads, and which may be shared: a contract, checked when this compiles.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use ggml_llama::{
    Batch, BufferType, Candidate, ChatMessage, Context, ContextParams, DecodeError, Device, Error, Memory, Model,
    ModelParams, Sampler, SamplerChain, Token, Utf8Decoder, Vocab, logging,
};

fn send_and_sync<T: Send + Sync>() {}
fn send<T: Send>() {}
fn outlives_everything<T: 'static>() {}

/// Fails to compile when the type has the trait: two implementations would fit then.
macro_rules! assert_lacks {
    ($type:ty: $trait:path) => {{
        trait Ambiguous<A> {
            fn item() {}
        }
        impl<T: ?Sized> Ambiguous<()> for T {}
        #[allow(dead_code)]
        struct HasIt;
        impl<T: ?Sized + $trait> Ambiguous<HasIt> for T {}
        <$type as Ambiguous<_>>::item();
    }};
}

#[test]
fn handles_and_data_are_shared_freely() {
    send_and_sync::<Model>();
    send_and_sync::<Vocab>();
    send_and_sync::<Device>();
    send_and_sync::<BufferType>();
    send_and_sync::<Batch>();
    send_and_sync::<Error>();
    send_and_sync::<DecodeError>();
    send_and_sync::<ModelParams>();
    send_and_sync::<ContextParams>();
    send_and_sync::<Sampler>();
    send_and_sync::<Token>();
    send_and_sync::<Candidate>();
    send_and_sync::<ChatMessage>();
    send_and_sync::<Utf8Decoder>();
    send_and_sync::<logging::LogCrate>();
}

/// Nearly every call changes them, also those that only read: upstream waits for results and reorders rows.
#[test]
fn what_computes_is_moved_and_not_shared() {
    send::<Context>();
    send::<SamplerChain>();
    assert_lacks!(Context: Sync);
    assert_lacks!(SamplerChain: Sync);
    assert_lacks!(Memory<'static>: Sync);
    assert_lacks!(Context: Clone);
    assert_lacks!(SamplerChain: Clone);
}

#[test]
fn owners_have_no_lifetime() {
    outlives_everything::<Model>();
    outlives_everything::<Vocab>();
    outlives_everything::<Context>();
    outlives_everything::<SamplerChain>();
    outlives_everything::<Error>();
}
