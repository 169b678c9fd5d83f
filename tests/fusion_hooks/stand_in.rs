//! A backend registry with one device, written in Rust, that exports the fusion functions as Metal does.
//!
//! The tables below repeat, in declaration order, what upstream's internal header `ggml/src/ggml-backend-impl.h` (of
//! API version 3) declares: only their layout matters. Functions that no test calls stay null.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};

use ggml_llama::{Device, sys};

type Reg = sys::ggml_backend_reg_t;
type Dev = sys::ggml_backend_dev_t;
type Unused = *mut c_void;

#[repr(C)]
struct RegTable {
    get_name: unsafe extern "C" fn(Reg) -> *const c_char,
    get_device_count: unsafe extern "C" fn(Reg) -> usize,
    get_device: unsafe extern "C" fn(Reg, usize) -> Dev,
    get_proc_address: Option<unsafe extern "C" fn(Reg, *const c_char) -> *mut c_void>,
}

#[repr(C)]
struct RegObject {
    api_version: c_int,
    iface: RegTable,
    context: *mut c_void,
}

#[repr(C)]
struct DevTable {
    get_name: unsafe extern "C" fn(Dev) -> *const c_char,
    get_description: unsafe extern "C" fn(Dev) -> *const c_char,
    get_memory: Unused,
    get_type: unsafe extern "C" fn(Dev) -> sys::ggml_backend_dev_type,
    /// Properties, backend, buffer types, operations and events.
    rest: [Unused; 11],
}

#[repr(C)]
struct DevObject {
    iface: DevTable,
    reg: *mut RegObject,
    context: *mut c_void,
}

/// The five names.
pub(crate) const NAMES: [&CStr; 5] = [
    c"ggml_backend_fusion_get",
    c"ggml_backend_fusion_stats_init",
    c"ggml_backend_fusion_stats_reset",
    c"ggml_backend_fusion_stats_get",
    c"ggml_backend_fusion_set_enabled",
];

/// How `stats_get` misbehaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Quirk {
    /// As Metal's.
    None,
    /// One label more than were counted a moment before.
    Grows,
    /// Fills fewer than it counted.
    Shrinks,
    /// Answers -1, whatever is asked.
    Fails,
    /// Fills as many as there is room for, but says that there are more.
    Boasts,
    /// The second label is null.
    NullLabel,
}

/// What the device's record holds, and what the tests look at.
pub(crate) struct Record {
    labels: Vec<CString>,
    pub(crate) counts: Vec<AtomicU64>,
    pub(crate) counting: AtomicBool,
    pub(crate) enabled: AtomicBool,
    pub(crate) quirk: Quirk,
    /// A call is inside.
    inside: AtomicBool,
    /// Two calls were inside at once.
    pub(crate) overlapped: AtomicBool,
    /// A test says that a computation runs now.
    pub(crate) computing: AtomicBool,
    /// A call came in while it did.
    pub(crate) disturbed: AtomicBool,
    pub(crate) calls: AtomicU64,
}

/// How to make a backend.
pub(crate) struct Plan {
    /// A function that is not exported.
    pub(crate) without: Option<&'static CStr>,
    /// Whether there is a table of functions to ask for at all.
    pub(crate) proc_address: bool,
    /// `ggml_backend_fusion_get` answers null.
    pub(crate) null_handle: bool,
    /// The device names no registry.
    pub(crate) no_registry: bool,
    pub(crate) quirk: Quirk,
}

impl Default for Plan {
    fn default() -> Plan {
        Plan { without: None, proc_address: true, null_handle: false, no_registry: false, quirk: Quirk::None }
    }
}

/// The labels, in the backend's order, which is not the alphabet's.
pub(crate) const LABELS: [&str; 4] = ["RMS_NORM+MUL", "ADD+ADD", "RMS_NORM+MUL+ADD", "ADD+ADD+ADD"];

struct Backend {
    plan: Plan,
    record: Record,
}

/// Makes a device that lives as long as the process, as upstream's do.
pub(crate) fn device(plan: Plan) -> (Device, &'static Record) {
    let record = Record {
        labels: LABELS.iter().map(|label| CString::new(*label).unwrap()).collect(),
        counts: LABELS.iter().map(|_| AtomicU64::new(0)).collect(),
        counting: AtomicBool::new(false),
        enabled: AtomicBool::new(true),
        quirk: plan.quirk,
        inside: AtomicBool::new(false),
        overlapped: AtomicBool::new(false),
        computing: AtomicBool::new(false),
        disturbed: AtomicBool::new(false),
        calls: AtomicU64::new(0),
    };
    let (proc_address, no_registry) = (plan.proc_address, plan.no_registry);
    let backend: &'static Backend = Box::leak(Box::new(Backend { plan, record }));
    let context = std::ptr::from_ref(backend).cast_mut().cast::<c_void>();
    let reg = Box::leak(Box::new(RegObject {
        api_version: 3,
        iface: RegTable {
            get_name: reg_name,
            get_device_count: no_devices,
            get_device: no_device,
            get_proc_address: proc_address.then_some(get_proc_address),
        },
        context,
    }));
    let dev = Box::leak(Box::new(DevObject {
        iface: DevTable {
            get_name: dev_name,
            get_description: dev_name,
            get_memory: null_mut(),
            get_type: dev_type,
            rest: [null_mut(); 11],
        },
        reg: if no_registry { null_mut() } else { reg },
        context,
    }));
    // SAFETY: laid out as upstream's, never freed, and tests call only what is there.
    let device = unsafe { Device::from_ptr(std::ptr::from_mut(dev).cast()) };
    (device.unwrap(), &backend.record)
}

impl Record {
    /// As a graph that fuses this pattern would.
    pub(crate) fn fire(&self, pattern: usize, times: u64) {
        if self.counting.load(SeqCst) && self.enabled.load(SeqCst) {
            self.counts[pattern].fetch_add(times, SeqCst);
        }
    }

    fn enter(&self) -> Inside<'_> {
        if self.inside.swap(true, SeqCst) {
            self.overlapped.store(true, SeqCst);
        }
        if self.computing.load(SeqCst) {
            self.disturbed.store(true, SeqCst);
        }
        self.calls.fetch_add(1, SeqCst);
        // Long enough for another to come in, if it may.
        std::thread::yield_now();
        Inside(self)
    }
}

struct Inside<'a>(&'a Record);

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.0.inside.store(false, SeqCst);
    }
}

unsafe fn backend<'a>(reg: Reg) -> &'a Backend {
    // SAFETY: the registry was made by `device`, which leaks both.
    unsafe { &*(*reg.cast::<RegObject>()).context.cast::<Backend>() }
}

unsafe extern "C" fn reg_name(_: Reg) -> *const c_char {
    c"StandIn".as_ptr()
}

unsafe extern "C" fn no_devices(_: Reg) -> usize {
    0
}

unsafe extern "C" fn no_device(_: Reg, _: usize) -> Dev {
    null_mut()
}

unsafe extern "C" fn dev_name(_: Dev) -> *const c_char {
    c"StandIn0".as_ptr()
}

unsafe extern "C" fn dev_type(_: Dev) -> sys::ggml_backend_dev_type {
    sys::GGML_BACKEND_DEVICE_TYPE_GPU
}

unsafe extern "C" fn get_proc_address(reg: Reg, name: *const c_char) -> *mut c_void {
    // SAFETY: a name ends with NUL; the registry is ours.
    let (name, backend) = unsafe { (CStr::from_ptr(name), backend(reg)) };
    let functions: [*mut c_void; 5] = [
        fusion_get as *mut c_void,
        stats_init as *mut c_void,
        stats_reset as *mut c_void,
        stats_get as *mut c_void,
        set_enabled as *mut c_void,
    ];
    let found = NAMES.iter().position(|have| *have == name && backend.plan.without != Some(name));
    found.map_or(null_mut(), |i| functions[i])
}

unsafe extern "C" fn fusion_get(dev: Dev) -> *mut c_void {
    // SAFETY: the device was made by `device`.
    let backend = unsafe { &*(*dev.cast::<DevObject>()).context.cast::<Backend>() };
    if backend.plan.null_handle { null_mut() } else { std::ptr::from_ref(&backend.record).cast_mut().cast() }
}

unsafe fn record<'a>(handle: *mut c_void) -> &'a Record {
    // SAFETY: the handle came from `fusion_get`.
    unsafe { &*handle.cast::<Record>() }
}

unsafe extern "C" fn stats_init(handle: *mut c_void) {
    // SAFETY: by the contract.
    let record = unsafe { record(handle) };
    let _inside = record.enter();
    record.counting.store(true, SeqCst);
}

unsafe extern "C" fn stats_reset(handle: *mut c_void) {
    // SAFETY: by the contract.
    let record = unsafe { record(handle) };
    let _inside = record.enter();
    record.counts.iter().for_each(|count| count.store(0, SeqCst));
}

unsafe extern "C" fn set_enabled(handle: *mut c_void, enabled: bool) {
    // SAFETY: by the contract.
    let record = unsafe { record(handle) };
    let _inside = record.enter();
    record.enabled.store(enabled, SeqCst);
}

unsafe extern "C" fn stats_get(handle: *mut c_void, labels: *mut *const c_char, counts: *mut u64, n: c_int) -> c_int {
    // SAFETY: by the contract.
    let record = unsafe { record(handle) };
    let _inside = record.enter();
    let known = if record.counting.load(SeqCst) { record.labels.len() } else { 0 };
    let known = if record.quirk == Quirk::Grows && labels.is_null() { known.saturating_sub(1) } else { known };
    if record.quirk == Quirk::Fails {
        return -1;
    }
    if labels.is_null() {
        return known as c_int;
    }
    let room = if record.quirk == Quirk::Shrinks { n / 2 } else { n };
    let filled = known.min(usize::try_from(room).unwrap_or(0));
    for i in 0..filled {
        let label =
            if record.quirk == Quirk::NullLabel && i == 1 { std::ptr::null() } else { record.labels[i].as_ptr() };
        // SAFETY: the caller gives n places, and `filled` is not more; counts may be null.
        unsafe {
            labels.add(i).write(label);
            if !counts.is_null() {
                counts.add(i).write(record.counts[i].load(SeqCst));
            }
        }
    }
    (if record.quirk == Quirk::Boasts { filled + 3 } else { filled }) as c_int
}
