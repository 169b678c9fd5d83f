//! ggml: the devices that compute, and where their memory lies.

mod buffer_type;
mod device;

pub use buffer_type::BufferType;
pub use device::{Device, DeviceKind, DeviceMemory, DeviceProps, devices};
