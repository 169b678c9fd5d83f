//! The devices that backends offer.

use std::ptr::NonNull;

use crate::error::Result;
use crate::ggml::BufferType;
use crate::raw::{fault, runtime};
use crate::sys;
use crate::util::cstr::from_c;

/// What a device is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DeviceKind {
    /// The CPU with the system's memory.
    Cpu,
    /// A GPU with memory of its own.
    Gpu,
    /// A GPU that shares the system's memory.
    IntegratedGpu,
    /// Helps the CPU with its memory (BLAS, AMX).
    Accelerator,
    /// A wrapper over several devices.
    Meta,
    /// A kind that this crate does not know.
    Unknown(i64),
}

/// Memory of a device, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct DeviceMemory {
    /// Free now, as far as the backend can tell.
    pub free: usize,
    /// In all.
    pub total: usize,
}

/// What a device says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeviceProps {
    /// Short name, such as `CUDA0`.
    pub name: String,
    /// The product's name.
    pub description: String,
    /// Memory.
    pub memory: DeviceMemory,
    /// What it is.
    pub kind: DeviceKind,
    /// An id on the system's bus, where there is one.
    pub device_id: Option<String>,
    /// Computes and copies without blocking the caller.
    pub supports_async: bool,
    /// Has host memory that it reaches quickly.
    pub supports_host_buffer: bool,
    /// Can take over a buffer of the host.
    pub supports_buffer_from_host_ptr: bool,
    /// Can signal events.
    pub supports_events: bool,
}

/// A device of a backend. An entry of upstream's registry: `Copy`, and good as long as the process lives.
#[doc(alias = "ggml_backend_dev_t")]
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Device(NonNull<sys::ggml_backend_device>);

// SAFETY: devices are entries of upstream's registry, made once and never freed.
unsafe impl Send for Device {}
// SAFETY: as above; the getters that are called through a shared device only read it.
unsafe impl Sync for Device {}

/// All devices of all backends that were compiled in, the CPU among them.
///
/// ```
/// # fn main() -> ggml_llama::Result<()> {
/// for device in ggml_llama::devices()? {
///     println!("{} ({:?}): {}", device.name(), device.kind(), device.description());
/// }
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// [`Error::MissingCpuFeatures`](crate::Error::MissingCpuFeatures), or what a backend threw while it started.
#[doc(alias = "ggml_backend_dev_count")]
#[doc(alias = "ggml_backend_dev_get")]
pub fn devices() -> Result<Vec<Device>> {
    runtime::start()?;
    // SAFETY: the registry exists once the runtime has started.
    let count = unsafe { sys::ggml_backend_dev_count() };
    // SAFETY: each index is below the count, which only grows.
    Ok((0..count).filter_map(|i| NonNull::new(unsafe { sys::ggml_backend_dev_get(i) }).map(Device)).collect())
}

impl Device {
    /// The device with this name, such as `CPU`, `CUDA0` or `Vulkan0`.
    ///
    /// # Errors
    ///
    /// As [`devices`]. A name that no device has gives `None`.
    #[doc(alias = "ggml_backend_dev_by_name")]
    pub fn by_name(name: &str) -> Result<Option<Device>> {
        Ok(devices()?.into_iter().find(|device| device.name().eq_ignore_ascii_case(name)))
    }

    /// Makes a device of a pointer that comes from elsewhere.
    ///
    /// # Safety
    ///
    /// `ptr` is null or a device that stays valid as long as the process lives.
    #[must_use]
    pub unsafe fn from_ptr(ptr: sys::ggml_backend_dev_t) -> Option<Device> {
        NonNull::new(ptr).map(Device)
    }

    /// Upstream's pointer.
    #[must_use]
    pub fn as_ptr(self) -> sys::ggml_backend_dev_t {
        self.0.as_ptr()
    }

    /// Short name, such as `CUDA0`.
    #[doc(alias = "ggml_backend_dev_name")]
    #[must_use]
    pub fn name(self) -> String {
        // SAFETY: the device is valid and its name lives as long.
        unsafe { from_c(sys::ggml_backend_dev_name(self.as_ptr())) }.unwrap_or_default()
    }

    /// The product's name.
    #[doc(alias = "ggml_backend_dev_description")]
    #[must_use]
    pub fn description(self) -> String {
        // SAFETY: as for the name.
        unsafe { from_c(sys::ggml_backend_dev_description(self.as_ptr())) }.unwrap_or_default()
    }

    /// What it is.
    #[doc(alias = "ggml_backend_dev_type")]
    #[must_use]
    pub fn kind(self) -> DeviceKind {
        // SAFETY: the device is valid.
        match unsafe { sys::ggml_backend_dev_type(self.as_ptr()) } {
            sys::GGML_BACKEND_DEVICE_TYPE_CPU => DeviceKind::Cpu,
            sys::GGML_BACKEND_DEVICE_TYPE_GPU => DeviceKind::Gpu,
            sys::GGML_BACKEND_DEVICE_TYPE_IGPU => DeviceKind::IntegratedGpu,
            sys::GGML_BACKEND_DEVICE_TYPE_ACCEL => DeviceKind::Accelerator,
            sys::GGML_BACKEND_DEVICE_TYPE_META => DeviceKind::Meta,
            other => DeviceKind::Unknown(other.into()),
        }
    }

    /// Name of the backend that it belongs to, such as `CPU` or `CUDA`.
    #[doc(alias = "ggml_backend_dev_backend_reg")]
    #[doc(alias = "ggml_backend_reg_name")]
    #[must_use]
    pub fn backend_name(self) -> String {
        // SAFETY: the device is valid; a registry that it names lives as long as the process.
        let reg = unsafe { sys::ggml_backend_dev_backend_reg(self.as_ptr()) };
        if reg.is_null() {
            return String::new();
        }
        // SAFETY: not null, see above.
        unsafe { from_c(sys::ggml_backend_reg_name(reg)) }.unwrap_or_default()
    }

    /// Memory that is free and that there is.
    ///
    /// # Errors
    ///
    /// [`Error::Upstream`](crate::Error::Upstream) when the driver fails.
    #[doc(alias = "ggml_backend_dev_memory")]
    pub fn memory(self) -> Result<DeviceMemory> {
        let (mut free, mut total) = (0, 0);
        fault::call(|status| {
            // SAFETY: the device is valid and both pointers are.
            unsafe { sys::gl_dev_memory(status, self.as_ptr(), &mut free, &mut total) }
        })
        .map_err(|fault| fault.into_error("ggml_backend_dev_memory"))?;
        Ok(DeviceMemory { free, total })
    }

    /// Everything that the device says of itself.
    ///
    /// # Errors
    ///
    /// [`Error::Upstream`](crate::Error::Upstream) when the driver fails.
    #[doc(alias = "ggml_backend_dev_get_props")]
    pub fn props(self) -> Result<DeviceProps> {
        let mut c = sys::ggml_backend_dev_props::default();
        fault::call(|status| {
            // SAFETY: the device is valid and so is the struct.
            unsafe { sys::gl_dev_props(status, self.as_ptr(), &mut c) }
        })
        .map_err(|fault| fault.into_error("ggml_backend_dev_get_props"))?;
        // SAFETY: the texts live as long as the device.
        let (name, description, device_id) = unsafe { (from_c(c.name), from_c(c.description), from_c(c.device_id)) };
        Ok(DeviceProps {
            name: name.unwrap_or_default(),
            description: description.unwrap_or_default(),
            memory: DeviceMemory { free: c.memory_free, total: c.memory_total },
            kind: self.kind(),
            device_id,
            supports_async: c.caps.async_,
            supports_host_buffer: c.caps.host_buffer,
            supports_buffer_from_host_ptr: c.caps.buffer_from_host_ptr,
            supports_events: c.caps.events,
        })
    }

    /// The kind of memory that tensors on this device lie in.
    #[doc(alias = "ggml_backend_dev_buffer_type")]
    #[must_use]
    pub fn buffer_type(self) -> Option<BufferType> {
        // SAFETY: the device is valid; its buffer type lives as long.
        unsafe { BufferType::from_ptr(sys::ggml_backend_dev_buffer_type(self.as_ptr())) }
    }
}

impl std::fmt::Debug for Device {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Device").field(&self.name()).finish()
    }
}
