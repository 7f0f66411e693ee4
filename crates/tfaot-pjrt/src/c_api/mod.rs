//! Structs of PJRT's C interface, version 0.90, as a C compiler lays them out.
#![allow(missing_docs, reason = "fields are called as in the interface's header, which describes them")]

/// Says how many bytes of a struct a caller must have: up to its last field.
macro_rules! sized {
    ($name:ident, $last:ident) => {
        // SAFETY: the first field is the size that the caller has.
        unsafe impl crate::boundary::Args for $name {
            const BYTES: usize = {
                const fn bytes_of<T>(_: *const T) -> usize {
                    size_of::<T>()
                }
                let value = std::mem::MaybeUninit::<$name>::uninit();
                // SAFETY: the place is in the value, and is not read.
                std::mem::offset_of!($name, $last) + bytes_of(unsafe { &raw const (*value.as_ptr()).$last })
            };
        }
    };
}

pub mod base;
pub mod buffer;
pub mod client;
pub mod executable;
pub mod extensions;
pub mod ffi;

/// Objects that callers know by pointers alone.
pub mod objects {
    pub use crate::buffer::Buffer;
    pub use crate::client::Client;
    pub use crate::device::{Device, DeviceDescription};
    pub use crate::event::Event;
    pub use crate::executable::{Executable, LoadedExecutable};
    pub use crate::execute::ExecuteContext;
    pub use crate::failure::Failure;
    pub use crate::layouts::MinorToMajor;
    pub use crate::memory::Memory;
    pub use crate::topology::Topology;
}
