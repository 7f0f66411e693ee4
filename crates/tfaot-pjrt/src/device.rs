//! Devices: processors of this process, each with memories.
use crate::boundary::{lend, object};
use crate::c_api::client::{
    DeviceAddressableMemoriesArgs, DeviceDefaultMemoryArgs, DeviceDescriptionAttributesArgs,
    DeviceDescriptionDebugStringArgs, DeviceDescriptionIdArgs, DeviceDescriptionKindArgs,
    DeviceDescriptionProcessIndexArgs, DeviceDescriptionToStringArgs, DeviceGetDescriptionArgs,
    DeviceIsAddressableArgs, DeviceLocalHardwareIdArgs, DeviceMemoryStatsArgs,
};
use crate::failure::{Code, Failure};
use crate::memory::Memory;
use crate::storage;
use std::sync::OnceLock;

/// `PJRT_DeviceDescription`.
pub struct DeviceDescription {
    /// The number of the device.
    pub id: i32,
    debug: String,
    text: String,
}

impl DeviceDescription {
    /// The description of device `id`.
    pub fn new(id: i32) -> DeviceDescription {
        DeviceDescription { id, debug: format!("TfaotCpuDevice(id={id})"), text: format!("TFAOT_CPU_{id}") }
    }
}

/// `PJRT_Device`.
pub struct Device {
    /// Number and names.
    pub description: DeviceDescription,
    /// The memories, the default one first; filled once, when the client is made.
    pub memories: OnceLock<Vec<*mut Memory>>,
}

// SAFETY: the memories live as long as the client, and do not change.
unsafe impl Send for Device {}
// SAFETY: as above.
unsafe impl Sync for Device {}

impl Device {
    /// The memories, the default one first.
    pub fn memories(&self) -> &[*mut Memory] {
        self.memories.get().map_or(&[], |all| all)
    }

    /// The memory in which arrays lie if nobody asks for another.
    ///
    /// # Errors
    /// `Code::Internal` where the client is not whole.
    pub fn default_memory(&self) -> Result<*mut Memory, Failure> {
        self.memories().first().copied().ok_or_else(|| Failure::new(Code::Internal, "the device has no memory"))
    }
}

/// `PJRT_DeviceDescription_Id`.
pub fn id(args: &mut DeviceDescriptionIdArgs) -> Result<(), Failure> {
    args.id = object(args.device_description)?.id;
    Ok(())
}

/// `PJRT_DeviceDescription_ProcessIndex`.
pub fn process_index(args: &mut DeviceDescriptionProcessIndexArgs) -> Result<(), Failure> {
    args.process_index = 0;
    Ok(())
}

/// `PJRT_DeviceDescription_Attributes`.
pub fn attributes(args: &mut DeviceDescriptionAttributesArgs) -> Result<(), Failure> {
    args.num_attributes = 0;
    args.attributes = std::ptr::null();
    Ok(())
}

/// `PJRT_DeviceDescription_Kind`.
pub fn kind(args: &mut DeviceDescriptionKindArgs) -> Result<(), Failure> {
    lend("tfaot", &mut args.device_kind, &mut args.device_kind_size);
    Ok(())
}

/// `PJRT_DeviceDescription_DebugString`.
pub fn debug_string(args: &mut DeviceDescriptionDebugStringArgs) -> Result<(), Failure> {
    lend(&object(args.device_description)?.debug, &mut args.debug_string, &mut args.debug_string_size);
    Ok(())
}

/// `PJRT_DeviceDescription_ToString`.
pub fn to_string(args: &mut DeviceDescriptionToStringArgs) -> Result<(), Failure> {
    lend(&object(args.device_description)?.text, &mut args.to_string, &mut args.to_string_size);
    Ok(())
}

/// `PJRT_Device_GetDescription`.
pub fn description(args: &mut DeviceGetDescriptionArgs) -> Result<(), Failure> {
    args.device_description = std::ptr::from_ref(&object(args.device)?.description).cast_mut();
    Ok(())
}

/// `PJRT_Device_IsAddressable`.
pub fn is_addressable(args: &mut DeviceIsAddressableArgs) -> Result<(), Failure> {
    args.is_addressable = true;
    Ok(())
}

/// `PJRT_Device_LocalHardwareId`.
pub fn local_hardware_id(args: &mut DeviceLocalHardwareIdArgs) -> Result<(), Failure> {
    args.local_hardware_id = object(args.device)?.description.id;
    Ok(())
}

/// `PJRT_Device_AddressableMemories`.
pub fn memories(args: &mut DeviceAddressableMemoriesArgs) -> Result<(), Failure> {
    let all = object(args.device)?.memories();
    args.memories = all.as_ptr();
    args.num_memories = all.len();
    Ok(())
}

/// `PJRT_Device_DefaultMemory`.
pub fn default_memory(args: &mut DeviceDefaultMemoryArgs) -> Result<(), Failure> {
    args.memory = object(args.device)?.default_memory()?;
    Ok(())
}

/// `PJRT_Device_MemoryStats`: bytes of all buffers that the plugin allocated.
pub fn memory_stats(args: &mut DeviceMemoryStatsArgs) -> Result<(), Failure> {
    args.bytes_in_use = storage::bytes_in_use();
    args.peak_bytes_in_use = storage::peak_bytes_in_use();
    args.peak_bytes_in_use_is_set = true;
    let unset = [
        &mut args.num_allocs_is_set,
        &mut args.largest_alloc_size_is_set,
        &mut args.bytes_limit_is_set,
        &mut args.bytes_reserved_is_set,
        &mut args.peak_bytes_reserved_is_set,
        &mut args.bytes_reservable_limit_is_set,
        &mut args.largest_free_block_bytes_is_set,
        &mut args.pool_bytes_is_set,
        &mut args.peak_pool_bytes_is_set,
    ];
    unset.into_iter().for_each(|flag| *flag = false);
    Ok(())
}
