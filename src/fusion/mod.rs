//! Fusion: what a backend computes with one kernel instead of several, counted.
//!
//! A backend may export functions that count how often each of its fusion patterns fired and that switch fusion on and
//! off. [`Hooks::of`] finds them for a device. At this version of upstream only Metal has them.

mod hooks;

pub use hooks::{FusionCount, Hooks};
