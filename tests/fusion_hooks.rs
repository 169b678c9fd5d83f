//! `fusion::Hooks`: the five functions by name, against a stand-in for a backend that has them.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::ffi::{c_char, c_int, c_void};
use std::ptr::{null, null_mut};
use std::sync::atomic::Ordering::SeqCst;

use ggml_llama::fusion::{FusionCount, Hooks};
use ggml_llama::{Device, sys};

#[path = "fusion_hooks/gate.rs"]
mod gate;
#[path = "fusion_hooks/stand_in.rs"]
mod stand_in;
use stand_in::{LABELS, NAMES, Plan, Quirk};

fn stats(hooks: &Hooks) -> Vec<(String, u64)> {
    hooks.stats().unwrap().into_iter().map(|FusionCount { label, count, .. }| (label, count)).collect()
}

fn with_counts(counts: [u64; 4]) -> Vec<(String, u64)> {
    LABELS.map(str::to_owned).into_iter().zip(counts).collect()
}

#[test]
fn the_cpu_backend_exports_no_hooks() {
    let cpu = Device::by_name("CPU").unwrap().unwrap();
    assert!(Hooks::of(cpu).is_none());
}

#[test]
fn the_stand_in_is_a_device() {
    let (device, _) = stand_in::device(Plan::default());
    assert_eq!((device.name().as_str(), device.backend_name().as_str()), ("StandIn0", "StandIn"));
    assert_eq!(device.kind(), ggml_llama::DeviceKind::Gpu);
    assert_eq!(Hooks::of(device).unwrap().device(), device);
}

/// What notes and tests rely on, called as C calls it.
#[test]
fn the_stand_in_keeps_the_contract() {
    type StatsGet = unsafe extern "C" fn(*mut c_void, *mut *const c_char, *mut u64, c_int) -> c_int;
    let (device, record) = stand_in::device(Plan::default());
    // SAFETY: the device is a whole one; the name ends with NUL.
    let address = unsafe {
        let reg = sys::ggml_backend_dev_backend_reg(device.as_ptr());
        assert!(sys::ggml_backend_reg_get_proc_address(reg, c"ggml_backend_fusion_other".as_ptr()).is_null());
        sys::ggml_backend_reg_get_proc_address(reg, NAMES[3].as_ptr())
    };
    // SAFETY: this name stands for a function of this type.
    let get = unsafe { std::mem::transmute::<*mut c_void, StatsGet>(address) };
    let handle = std::ptr::from_ref(record).cast_mut().cast::<c_void>();
    let mut labels = [null::<c_char>(); 4];
    let mut counts = [77u64; 4];
    // SAFETY: the handle is the record, and the arrays have the places that are given.
    unsafe {
        assert_eq!(get(handle, null_mut(), null_mut(), 0), 0, "no labels before counting starts");
        assert_eq!(get(handle, labels.as_mut_ptr(), counts.as_mut_ptr(), 4), 0);
        record.counting.store(true, SeqCst);
        assert_eq!(get(handle, null_mut(), null_mut(), 0), 4, "null labels: how many");
        assert_eq!(get(handle, labels.as_mut_ptr(), counts.as_mut_ptr(), 2), 2, "no more than there is room for");
        assert_eq!(get(handle, labels.as_mut_ptr(), null_mut(), 3), 3, "counts may be null");
    }
    assert_eq!(counts, [0, 0, 77, 77]);
    assert!(!labels[2].is_null() && labels[3].is_null());
}

#[test]
fn counting_starts_from_an_empty_list() {
    let (device, record) = stand_in::device(Plan::default());
    let hooks = Hooks::of(device).unwrap();
    record.fire(0, 9);
    assert_eq!(stats(&hooks), []);
    hooks.start_counting().unwrap();
    assert_eq!(stats(&hooks), with_counts([0; 4]));
    record.fire(0, 3);
    record.fire(2, u64::MAX);
    assert_eq!(stats(&hooks), with_counts([3, 0, u64::MAX, 0]));
}

#[test]
fn reset_sets_the_counters_to_zero_and_keeps_the_labels() {
    let (device, record) = stand_in::device(Plan::default());
    let hooks = Hooks::of(device).unwrap();
    hooks.start_counting().unwrap();
    record.fire(1, 5);
    hooks.reset().unwrap();
    assert_eq!(stats(&hooks), with_counts([0; 4]));
    record.fire(3, 1);
    assert_eq!(stats(&hooks), with_counts([0, 0, 0, 1]));
}

#[test]
fn the_switch_reaches_the_device() {
    let (device, record) = stand_in::device(Plan::default());
    let hooks = Hooks::of(device).unwrap();
    hooks.start_counting().unwrap();
    hooks.set_enabled(false).unwrap();
    record.fire(0, 5);
    assert_eq!(stats(&hooks), with_counts([0; 4]));
    hooks.set_enabled(true).unwrap();
    record.fire(0, 2);
    assert_eq!(stats(&hooks), with_counts([2, 0, 0, 0]));
}

#[test]
fn two_hooks_of_one_device_are_the_same_record() {
    let (device, record) = stand_in::device(Plan::default());
    let (one, two) = (Hooks::of(device).unwrap(), Hooks::of(device).unwrap());
    one.start_counting().unwrap();
    record.fire(1, 4);
    assert_eq!(stats(&two), with_counts([0, 4, 0, 0]));
    let (other, _) = stand_in::device(Plan::default());
    assert_eq!(stats(&Hooks::of(other).unwrap()), [], "another device has its own");
}

#[test]
fn all_five_functions_or_none() {
    for name in NAMES {
        let (device, record) = stand_in::device(Plan { without: Some(name), ..Plan::default() });
        assert!(Hooks::of(device).is_none(), "{name:?} is missing");
        assert_eq!(record.calls.load(SeqCst), 0, "nothing is called on the way");
    }
}

#[test]
fn backends_without_a_record_have_no_hooks() {
    let (device, _) = stand_in::device(Plan { null_handle: true, ..Plan::default() });
    assert!(Hooks::of(device).is_none(), "null handle");
    let (device, _) = stand_in::device(Plan { proc_address: false, ..Plan::default() });
    assert!(Hooks::of(device).is_none(), "no table of functions");
    let (device, _) = stand_in::device(Plan { no_registry: true, ..Plan::default() });
    assert!(Hooks::of(device).is_none(), "no registry");
}

#[test]
fn whatever_a_backend_answers_is_read_within_bounds() {
    for (quirk, expected) in [
        (Quirk::Grows, &LABELS[..3]),
        (Quirk::Shrinks, &LABELS[..2]),
        (Quirk::Fails, &[]),
        (Quirk::Boasts, &LABELS[..]),
        (Quirk::NullLabel, &[LABELS[0], LABELS[2], LABELS[3]]),
    ] {
        let (device, _) = stand_in::device(Plan { quirk, ..Plan::default() });
        let hooks = Hooks::of(device).unwrap();
        hooks.start_counting().unwrap();
        let labels: Vec<String> = stats(&hooks).into_iter().map(|(label, _)| label).collect();
        assert_eq!(labels, expected, "{quirk:?}");
    }
}
