//! Memories of a device. All of them are the memory of this process; programs that name a kind find it.
use crate::boundary::{lend, object};
use crate::c_api::client::{
    MemoryAddressableByDevicesArgs, MemoryDebugStringArgs, MemoryIdArgs, MemoryKindArgs, MemoryKindIdArgs,
    MemoryToStringArgs,
};
use crate::device::Device;
use crate::failure::Failure;

/// Kinds of memory, as JAX's own backend for CPUs has them, the default one first.
pub const KINDS: [&str; 3] = ["device", "pinned_host", "unpinned_host"];

/// `PJRT_Memory`.
pub struct Memory {
    id: i32,
    kind: usize,
    /// The device whose memory this is.
    pub device: *mut Device,
    text: String,
}

// SAFETY: the device lives as long as the client, as the memory does.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Memory {
    /// Memory `id` of a kind, by its index in [`KINDS`].
    pub fn new(id: i32, kind: usize, device: *mut Device) -> Memory {
        Memory { id, kind, device, text: format!("TFAOT_MEMORY_{id}({})", KINDS[kind]) }
    }
}

/// `PJRT_Memory_Id`.
pub fn id(args: &mut MemoryIdArgs) -> Result<(), Failure> {
    args.id = object(args.memory)?.id;
    Ok(())
}

/// `PJRT_Memory_Kind`.
pub fn kind(args: &mut MemoryKindArgs) -> Result<(), Failure> {
    lend(KINDS[object(args.memory)?.kind], &mut args.kind, &mut args.kind_size);
    Ok(())
}

/// `PJRT_Memory_Kind_Id`.
pub fn kind_id(args: &mut MemoryKindIdArgs) -> Result<(), Failure> {
    args.kind_id = object(args.memory)?.kind as i32;
    Ok(())
}

/// `PJRT_Memory_DebugString`.
pub fn debug_string(args: &mut MemoryDebugStringArgs) -> Result<(), Failure> {
    lend(&object(args.memory)?.text, &mut args.debug_string, &mut args.debug_string_size);
    Ok(())
}

/// `PJRT_Memory_ToString`.
pub fn to_string(args: &mut MemoryToStringArgs) -> Result<(), Failure> {
    lend(&object(args.memory)?.text, &mut args.to_string, &mut args.to_string_size);
    Ok(())
}

/// `PJRT_Memory_AddressableByDevices`.
pub fn devices(args: &mut MemoryAddressableByDevicesArgs) -> Result<(), Failure> {
    let memory = object(args.memory)?;
    args.devices = &raw const memory.device;
    args.num_devices = 1;
    Ok(())
}
