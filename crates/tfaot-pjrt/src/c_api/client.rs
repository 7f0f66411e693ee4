//! Clients, devices, memories and topologies.
use super::base::NamedValue;
use super::objects::{Client, Device, DeviceDescription, Memory, Topology};
use std::ffi::{c_char, c_int, c_void};

/// `PJRT_Client_Create_Args`.
#[repr(C)]
pub struct ClientCreateArgs {
    pub struct_size: usize,
    pub extension_start: *mut c_void,
    pub create_options: *const NamedValue,
    pub num_options: usize,
    pub kv_get_callback: *const c_void,
    pub kv_get_user_arg: *mut c_void,
    pub kv_put_callback: *const c_void,
    pub kv_put_user_arg: *mut c_void,
    pub client: *mut Client,
    pub kv_try_get_callback: *const c_void,
    pub kv_try_get_user_arg: *mut c_void,
}
sized!(ClientCreateArgs, kv_try_get_user_arg);

/// `PJRT_Client_Destroy_Args`.
#[repr(C)]
pub struct ClientDestroyArgs {
    pub struct_size: usize,
    pub extension_start: *mut c_void,
    pub client: *mut Client,
}
sized!(ClientDestroyArgs, client);

/// `PJRT_Client_PlatformName_Args`.
#[repr(C)]
pub struct ClientPlatformNameArgs {
    pub struct_size: usize,
    pub extension_start: *mut c_void,
    pub client: *mut Client,
    pub platform_name: *const c_char,
    pub platform_name_size: usize,
}
sized!(ClientPlatformNameArgs, platform_name_size);

/// `PJRT_Client_ProcessIndex_Args`.
#[repr(C)]
pub struct ClientProcessIndexArgs {
    pub struct_size: usize,
    pub extension_start: *mut c_void,
    pub client: *mut Client,
    pub process_index: c_int,
}
sized!(ClientProcessIndexArgs, process_index);

/// `PJRT_Client_PlatformVersion_Args`.
#[repr(C)]
pub struct ClientPlatformVersionArgs {
    pub struct_size: usize,
    pub extension_start: *mut c_void,
    pub client: *mut Client,
    pub platform_version: *const c_char,
    pub platform_version_size: usize,
}
sized!(ClientPlatformVersionArgs, platform_version_size);

/// `PJRT_Client_TopologyDescription_Args`.
#[repr(C)]
pub struct ClientTopologyDescriptionArgs {
    pub struct_size: usize,
    pub extension_start: *mut c_void,
    pub client: *mut Client,
    pub topology: *mut Topology,
}
sized!(ClientTopologyDescriptionArgs, topology);

/// `PJRT_Client_Devices_Args`.
#[repr(C)]
pub struct ClientDevicesArgs {
    pub struct_size: usize,
    pub extension_start: *mut c_void,
    pub client: *mut Client,
    pub devices: *const *mut Device,
    pub num_devices: usize,
}
sized!(ClientDevicesArgs, num_devices);

/// `PJRT_Client_AddressableDevices_Args`.
#[repr(C)]
pub struct ClientAddressableDevicesArgs {
    pub struct_size: usize,
    pub extension_start: *mut c_void,
    pub client: *mut Client,
    pub addressable_devices: *const *mut Device,
    pub num_addressable_devices: usize,
}
sized!(ClientAddressableDevicesArgs, num_addressable_devices);

/// `PJRT_Client_LookupDevice_Args`.
#[repr(C)]
pub struct ClientLookupDeviceArgs {
    pub struct_size: usize,
    pub extension_start: *mut c_void,
    pub client: *mut Client,
    pub id: c_int,
    pub device: *mut Device,
}
sized!(ClientLookupDeviceArgs, device);

/// `PJRT_Client_LookupAddressableDevice_Args`.
#[repr(C)]
pub struct ClientLookupAddressableDeviceArgs {
    pub struct_size: usize,
    pub extension_start: *mut c_void,
    pub client: *mut Client,
    pub local_hardware_id: c_int,
    pub addressable_device: *mut Device,
}
sized!(ClientLookupAddressableDeviceArgs, addressable_device);

/// `PJRT_Client_AddressableMemories_Args`.
#[repr(C)]
pub struct ClientAddressableMemoriesArgs {
    pub struct_size: usize,
    pub extension_start: *mut c_void,
    pub client: *mut Client,
    pub addressable_memories: *const *mut Memory,
    pub num_addressable_memories: usize,
}
sized!(ClientAddressableMemoriesArgs, num_addressable_memories);

/// `PJRT_Client_DefaultDeviceAssignment_Args`.
#[repr(C)]
pub struct ClientDefaultDeviceAssignmentArgs {
    pub struct_size: usize,
    pub extension_start: *mut c_void,
    pub client: *mut Client,
    pub num_replicas: c_int,
    pub num_partitions: c_int,
    pub default_assignment_size: usize,
    pub default_assignment: *mut c_int,
}
sized!(ClientDefaultDeviceAssignmentArgs, default_assignment);

/// `PJRT_DeviceDescription_Id_Args`.
#[repr(C)]
pub struct DeviceDescriptionIdArgs {
    pub struct_size: usize,
    pub extension_start: *mut c_void,
    pub device_description: *mut DeviceDescription,
    pub id: c_int,
}
sized!(DeviceDescriptionIdArgs, id);

/// `PJRT_DeviceDescription_ProcessIndex_Args`.
#[repr(C)]
pub struct DeviceDescriptionProcessIndexArgs {
    pub struct_size: usize,
    pub extension_start: *mut c_void,
    pub device_description: *mut DeviceDescription,
    pub process_index: c_int,
}
sized!(DeviceDescriptionProcessIndexArgs, process_index);

/// `PJRT_DeviceDescription_Attributes_Args`.
#[repr(C)]
pub struct DeviceDescriptionAttributesArgs {
    pub struct_size: usize,
    pub extension_start: *mut c_void,
    pub device_description: *mut DeviceDescription,
    pub num_attributes: usize,
    pub attributes: *const NamedValue,
}
sized!(DeviceDescriptionAttributesArgs, attributes);

/// `PJRT_DeviceDescription_Kind_Args`.
#[repr(C)]
pub struct DeviceDescriptionKindArgs {
    pub struct_size: usize,
    pub extension_start: *mut c_void,
    pub device_description: *mut DeviceDescription,
    pub device_kind: *const c_char,
    pub device_kind_size: usize,
}
sized!(DeviceDescriptionKindArgs, device_kind_size);

/// `PJRT_DeviceDescription_DebugString_Args`.
#[repr(C)]
pub struct DeviceDescriptionDebugStringArgs {
    pub struct_size: usize,
    pub extension_start: *mut c_void,
    pub device_description: *mut DeviceDescription,
    pub debug_string: *const c_char,
    pub debug_string_size: usize,
}
sized!(DeviceDescriptionDebugStringArgs, debug_string_size);

/// `PJRT_DeviceDescription_ToString_Args`.
#[repr(C)]
pub struct DeviceDescriptionToStringArgs {
    pub struct_size: usize,
    pub extension_start: *mut c_void,
    pub device_description: *mut DeviceDescription,
    pub to_string: *const c_char,
    pub to_string_size: usize,
}
sized!(DeviceDescriptionToStringArgs, to_string_size);

/// `PJRT_Device_GetDescription_Args`.
#[repr(C)]
pub struct DeviceGetDescriptionArgs {
    pub struct_size: usize,
    pub extension_start: *mut c_void,
    pub device: *mut Device,
    pub device_description: *mut DeviceDescription,
}
sized!(DeviceGetDescriptionArgs, device_description);

/// `PJRT_Device_IsAddressable_Args`.
#[repr(C)]
pub struct DeviceIsAddressableArgs {
    pub struct_size: usize,
    pub extension_start: *mut c_void,
    pub device: *mut Device,
    pub is_addressable: bool,
}
sized!(DeviceIsAddressableArgs, is_addressable);

/// `PJRT_Device_LocalHardwareId_Args`.
#[repr(C)]
pub struct DeviceLocalHardwareIdArgs {
    pub struct_size: usize,
    pub extension_start: *mut c_void,
    pub device: *mut Device,
    pub local_hardware_id: c_int,
}
sized!(DeviceLocalHardwareIdArgs, local_hardware_id);

/// `PJRT_Device_AddressableMemories_Args`.
#[repr(C)]
pub struct DeviceAddressableMemoriesArgs {
    pub struct_size: usize,
    pub extension_start: *mut c_void,
    pub device: *mut Device,
    pub memories: *const *mut Memory,
    pub num_memories: usize,
}
sized!(DeviceAddressableMemoriesArgs, num_memories);

/// `PJRT_Device_DefaultMemory_Args`.
#[repr(C)]
pub struct DeviceDefaultMemoryArgs {
    pub struct_size: usize,
    pub extension_start: *mut c_void,
    pub device: *mut Device,
    pub memory: *mut Memory,
}
sized!(DeviceDefaultMemoryArgs, memory);

/// `PJRT_Device_MemoryStats_Args`.
#[repr(C)]
pub struct DeviceMemoryStatsArgs {
    pub struct_size: usize,
    pub extension_start: *mut c_void,
    pub device: *mut Device,
    pub bytes_in_use: i64,
    pub peak_bytes_in_use: i64,
    pub peak_bytes_in_use_is_set: bool,
    pub num_allocs: i64,
    pub num_allocs_is_set: bool,
    pub largest_alloc_size: i64,
    pub largest_alloc_size_is_set: bool,
    pub bytes_limit: i64,
    pub bytes_limit_is_set: bool,
    pub bytes_reserved: i64,
    pub bytes_reserved_is_set: bool,
    pub peak_bytes_reserved: i64,
    pub peak_bytes_reserved_is_set: bool,
    pub bytes_reservable_limit: i64,
    pub bytes_reservable_limit_is_set: bool,
    pub largest_free_block_bytes: i64,
    pub largest_free_block_bytes_is_set: bool,
    pub pool_bytes: i64,
    pub pool_bytes_is_set: bool,
    pub peak_pool_bytes: i64,
    pub peak_pool_bytes_is_set: bool,
}
sized!(DeviceMemoryStatsArgs, peak_pool_bytes_is_set);

/// `PJRT_Memory_Id_Args`.
#[repr(C)]
pub struct MemoryIdArgs {
    pub struct_size: usize,
    pub extension_start: *mut c_void,
    pub memory: *mut Memory,
    pub id: c_int,
}
sized!(MemoryIdArgs, id);

/// `PJRT_Memory_Kind_Args`.
#[repr(C)]
pub struct MemoryKindArgs {
    pub struct_size: usize,
    pub extension_start: *mut c_void,
    pub memory: *mut Memory,
    pub kind: *const c_char,
    pub kind_size: usize,
}
sized!(MemoryKindArgs, kind_size);

/// `PJRT_Memory_Kind_Id_Args`.
#[repr(C)]
pub struct MemoryKindIdArgs {
    pub struct_size: usize,
    pub extension_start: *mut c_void,
    pub memory: *mut Memory,
    pub kind_id: c_int,
}
sized!(MemoryKindIdArgs, kind_id);

/// `PJRT_Memory_DebugString_Args`.
#[repr(C)]
pub struct MemoryDebugStringArgs {
    pub struct_size: usize,
    pub extension_start: *mut c_void,
    pub memory: *mut Memory,
    pub debug_string: *const c_char,
    pub debug_string_size: usize,
}
sized!(MemoryDebugStringArgs, debug_string_size);

/// `PJRT_Memory_ToString_Args`.
#[repr(C)]
pub struct MemoryToStringArgs {
    pub struct_size: usize,
    pub extension_start: *mut c_void,
    pub memory: *mut Memory,
    pub to_string: *const c_char,
    pub to_string_size: usize,
}
sized!(MemoryToStringArgs, to_string_size);

/// `PJRT_Memory_AddressableByDevices_Args`.
#[repr(C)]
pub struct MemoryAddressableByDevicesArgs {
    pub struct_size: usize,
    pub extension_start: *mut c_void,
    pub memory: *mut Memory,
    pub devices: *const *mut Device,
    pub num_devices: usize,
}
sized!(MemoryAddressableByDevicesArgs, num_devices);

/// `PJRT_TopologyDescription_Create_Args`.
#[repr(C)]
pub struct TopologyDescriptionCreateArgs {
    pub struct_size: usize,
    pub extension_start: *mut c_void,
    pub topology_name: *const c_char,
    pub topology_name_size: usize,
    pub create_options: *const NamedValue,
    pub num_options: usize,
    pub topology: *mut Topology,
}
sized!(TopologyDescriptionCreateArgs, topology);

/// `PJRT_TopologyDescription_Destroy_Args`.
#[repr(C)]
pub struct TopologyDescriptionDestroyArgs {
    pub struct_size: usize,
    pub extension_start: *mut c_void,
    pub topology: *mut Topology,
}
sized!(TopologyDescriptionDestroyArgs, topology);

/// `PJRT_TopologyDescription_PlatformVersion_Args`.
#[repr(C)]
pub struct TopologyDescriptionPlatformVersionArgs {
    pub struct_size: usize,
    pub extension_start: *mut c_void,
    pub topology: *mut Topology,
    pub platform_version: *const c_char,
    pub platform_version_size: usize,
}
sized!(TopologyDescriptionPlatformVersionArgs, platform_version_size);

/// `PJRT_TopologyDescription_PlatformName_Args`.
#[repr(C)]
pub struct TopologyDescriptionPlatformNameArgs {
    pub struct_size: usize,
    pub extension_start: *mut c_void,
    pub topology: *const Topology,
    pub platform_name: *const c_char,
    pub platform_name_size: usize,
}
sized!(TopologyDescriptionPlatformNameArgs, platform_name_size);

/// `PJRT_TopologyDescription_GetDeviceDescriptions_Args`.
#[repr(C)]
pub struct TopologyDescriptionGetDeviceDescriptionsArgs {
    pub struct_size: usize,
    pub extension_start: *mut c_void,
    pub topology: *const Topology,
    pub descriptions: *const *mut DeviceDescription,
    pub num_descriptions: usize,
}
sized!(TopologyDescriptionGetDeviceDescriptionsArgs, num_descriptions);

/// `PJRT_TopologyDescription_Attributes_Args`.
#[repr(C)]
pub struct TopologyDescriptionAttributesArgs {
    pub struct_size: usize,
    pub extension_start: *mut c_void,
    pub topology: *mut Topology,
    pub attributes: *const NamedValue,
    pub num_attributes: usize,
}
sized!(TopologyDescriptionAttributesArgs, num_attributes);
