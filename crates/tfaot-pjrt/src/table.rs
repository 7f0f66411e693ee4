//! The table of functions that a program gets of `GetPjrtApi`, in the order of version 0.90.
use crate::boundary::{Function, call, refuse};
use crate::c_api::base::ApiVersion;
use crate::{
    buffer, client, compile, device, event, executable, execute, extensions, failure, host, memory, plugin, serialize,
    topology,
};
use std::ffi::c_void;
use std::sync::OnceLock;

/// The minor version of the interface, of which the order and the size of all structs are.
pub const MINOR_VERSION: i32 = 90;

/// `PJRT_Api`.
#[repr(C)]
pub struct Api {
    struct_size: usize,
    extension_start: *mut c_void,
    version: ApiVersion,
    functions: [Function; COUNT],
}

// SAFETY: the table and what it points at do not change.
unsafe impl Send for Api {}
// SAFETY: as above.
unsafe impl Sync for Api {}

/// The entry of a function: the one that is named, or one that refuses by name.
macro_rules! entry {
    ($name:ident) => {{
        unsafe extern "C" fn missing(_: *mut c_void) -> *mut c_void {
            refuse(stringify!($name))
        }
        missing as Function
    }};
    ($name:ident $function:path) => {{
        unsafe extern "C" fn entry(args: *mut c_void) -> *mut c_void {
            // SAFETY: the caller passes the struct that belongs to this function.
            unsafe { call(args, $function) }
        }
        entry as Function
    }};
}

macro_rules! entries {
    ($($name:ident $(=> $function:path)?,)*) => {
        const FUNCTIONS: &[Function] = &[$(entry!($name $($function)?)),*];
        #[cfg(test)]
        const NAMES: &[&str] = &[$(stringify!($name)),*];
    };
}

entries! {
    PJRT_Error_Destroy => failure::destroy,
    PJRT_Error_Message => failure::message,
    PJRT_Error_GetCode => failure::code,
    PJRT_Plugin_Initialize => plugin::initialize,
    PJRT_Plugin_Attributes => plugin::attributes,
    PJRT_Event_Destroy => event::destroy,
    PJRT_Event_IsReady => event::is_ready,
    PJRT_Event_Error => event::error,
    PJRT_Event_Await => event::wait,
    PJRT_Event_OnReady => event::on_ready,
    PJRT_Client_Create => client::create,
    PJRT_Client_Destroy => client::destroy,
    PJRT_Client_PlatformName => client::platform_name,
    PJRT_Client_ProcessIndex => client::process_index,
    PJRT_Client_PlatformVersion => client::platform_version,
    PJRT_Client_Devices => client::devices,
    PJRT_Client_AddressableDevices => client::addressable_devices,
    PJRT_Client_LookupDevice => client::lookup_device,
    PJRT_Client_LookupAddressableDevice => client::lookup_addressable_device,
    PJRT_Client_AddressableMemories => client::addressable_memories,
    PJRT_Client_Compile => compile::compile_and_load,
    PJRT_Client_DefaultDeviceAssignment => client::default_device_assignment,
    PJRT_Client_BufferFromHostBuffer => host::from_host,
    PJRT_DeviceDescription_Id => device::id,
    PJRT_DeviceDescription_ProcessIndex => device::process_index,
    PJRT_DeviceDescription_Attributes => device::attributes,
    PJRT_DeviceDescription_Kind => device::kind,
    PJRT_DeviceDescription_DebugString => device::debug_string,
    PJRT_DeviceDescription_ToString => device::to_string,
    PJRT_Device_GetDescription => device::description,
    PJRT_Device_IsAddressable => device::is_addressable,
    PJRT_Device_LocalHardwareId => device::local_hardware_id,
    PJRT_Device_AddressableMemories => device::memories,
    PJRT_Device_DefaultMemory => device::default_memory,
    PJRT_Device_MemoryStats => device::memory_stats,
    PJRT_Memory_Id => memory::id,
    PJRT_Memory_Kind => memory::kind,
    PJRT_Memory_DebugString => memory::debug_string,
    PJRT_Memory_ToString => memory::to_string,
    PJRT_Memory_AddressableByDevices => memory::devices,
    PJRT_Executable_Destroy => executable::destroy,
    PJRT_Executable_Name => executable::name,
    PJRT_Executable_NumReplicas => executable::num_replicas,
    PJRT_Executable_NumPartitions => executable::num_partitions,
    PJRT_Executable_NumOutputs => executable::num_outputs,
    PJRT_Executable_SizeOfGeneratedCodeInBytes => executable::code_bytes,
    PJRT_Executable_GetCostAnalysis => executable::cost_analysis,
    PJRT_Executable_OutputMemoryKinds => executable::output_memory_kinds,
    PJRT_Executable_OptimizedProgram => executable::optimized_program,
    PJRT_Executable_Serialize => serialize::serialize,
    PJRT_LoadedExecutable_Destroy => executable::destroy_loaded,
    PJRT_LoadedExecutable_GetExecutable => executable::executable,
    PJRT_LoadedExecutable_AddressableDevices => executable::devices,
    PJRT_LoadedExecutable_Delete => executable::delete,
    PJRT_LoadedExecutable_IsDeleted => executable::is_deleted,
    PJRT_LoadedExecutable_Execute => execute::execute,
    PJRT_Executable_DeserializeAndLoad => serialize::deserialize_and_load,
    PJRT_LoadedExecutable_Fingerprint => executable::loaded_fingerprint,
    PJRT_Buffer_Destroy => buffer::destroy,
    PJRT_Buffer_ElementType => buffer::element_type,
    PJRT_Buffer_Dimensions => buffer::dimensions,
    PJRT_Buffer_UnpaddedDimensions => buffer::unpadded_dimensions,
    PJRT_Buffer_DynamicDimensionIndices => buffer::dynamic_dimensions,
    PJRT_Buffer_GetMemoryLayout => buffer::memory_layout,
    PJRT_Buffer_OnDeviceSizeInBytes => buffer::bytes,
    PJRT_Buffer_Device => buffer::device,
    PJRT_Buffer_Memory => buffer::memory,
    PJRT_Buffer_Delete => buffer::delete,
    PJRT_Buffer_IsDeleted => buffer::is_deleted,
    PJRT_Buffer_CopyToDevice => buffer::copy_to_device,
    PJRT_Buffer_ToHostBuffer => host::to_host,
    PJRT_Buffer_IsOnCpu => buffer::is_on_cpu,
    PJRT_Buffer_ReadyEvent => buffer::ready_event,
    PJRT_Buffer_UnsafePointer => buffer::unsafe_pointer,
    PJRT_Buffer_IncreaseExternalReferenceCount => buffer::add_reference,
    PJRT_Buffer_DecreaseExternalReferenceCount => buffer::drop_reference,
    PJRT_Buffer_OpaqueDeviceMemoryDataPointer => buffer::data_pointer,
    PJRT_CopyToDeviceStream_Destroy,
    PJRT_CopyToDeviceStream_AddChunk,
    PJRT_CopyToDeviceStream_TotalBytes,
    PJRT_CopyToDeviceStream_GranuleSize,
    PJRT_CopyToDeviceStream_CurrentBytes,
    PJRT_TopologyDescription_Create => topology::create,
    PJRT_TopologyDescription_Destroy => topology::destroy,
    PJRT_TopologyDescription_PlatformName => topology::platform_name,
    PJRT_TopologyDescription_PlatformVersion => topology::platform_version,
    PJRT_TopologyDescription_GetDeviceDescriptions => topology::device_descriptions,
    PJRT_TopologyDescription_Serialize,
    PJRT_TopologyDescription_Attributes => topology::attributes,
    PJRT_Compile => compile::compile,
    PJRT_Executable_OutputElementTypes => executable::output_types,
    PJRT_Executable_OutputDimensions => executable::output_dimensions,
    PJRT_Buffer_CopyToMemory => buffer::copy_to_memory,
    PJRT_Client_CreateViewOfDeviceBuffer => buffer::create_view,
    PJRT_Executable_Fingerprint => executable::fingerprint,
    PJRT_Client_TopologyDescription => client::topology,
    PJRT_Executable_GetCompiledMemoryStats => executable::memory_stats,
    PJRT_Memory_Kind_Id => memory::kind_id,
    PJRT_ExecuteContext_Create => execute::create_context,
    PJRT_ExecuteContext_Destroy => execute::destroy_context,
    PJRT_Buffer_CopyRawToHost => host::raw_to_host,
    PJRT_AsyncHostToDeviceTransferManager_Destroy,
    PJRT_AsyncHostToDeviceTransferManager_TransferData,
    PJRT_Client_CreateBuffersForAsyncHostToDevice,
    PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer,
    PJRT_AsyncHostToDeviceTransferManager_Device,
    PJRT_AsyncHostToDeviceTransferManager_BufferCount,
    PJRT_AsyncHostToDeviceTransferManager_BufferSize,
    PJRT_AsyncHostToDeviceTransferManager_SetBufferError,
    PJRT_AsyncHostToDeviceTransferManager_AddMetadata,
    PJRT_Client_DmaMap,
    PJRT_Client_DmaUnmap,
    PJRT_Client_CreateUninitializedBuffer => buffer::create_uninitialized,
    PJRT_Client_UpdateGlobalProcessInfo,
    PJRT_TopologyDescription_Deserialize,
    PJRT_Client_CreateAliasBuffer,
    PJRT_Client_FulfillAliasBuffer,
    PJRT_LoadedExecutable_GetDeviceAssignment => executable::device_assignment,
    PJRT_Client_CreateErrorBuffer,
    PJRT_AsyncHostToDeviceTransferManager_TransferLiteral,
    PJRT_Buffer_CopyRawToHostFuture,
    PJRT_Device_PoisonExecution,
    PJRT_Device_CreateAsyncTrackingEvent,
    PJRT_AsyncTrackingEvent_Destroy,
    PJRT_Executable_GetCompileOptions => serialize::compile_options,
    PJRT_Buffer_DonateWithControlDependency,
    PJRT_Event_Create => event::create,
    PJRT_Event_Set => event::set,
}

/// The number of functions.
pub const COUNT: usize = FUNCTIONS.len();

/// The function with a name.
#[cfg(test)]
pub fn function(name: &str) -> Option<Function> {
    NAMES.iter().position(|n| *n == name).map(|i| FUNCTIONS[i])
}

/// The table, which is the same for all callers.
pub fn api() -> &'static Api {
    static TABLE: OnceLock<Api> = OnceLock::new();
    TABLE.get_or_init(|| {
        let mut functions = [FUNCTIONS[0]; COUNT];
        functions.copy_from_slice(FUNCTIONS);
        Api {
            struct_size: size_of::<Api>(),
            extension_start: extensions::chain(),
            version: ApiVersion {
                struct_size: size_of::<ApiVersion>(),
                extension_start: std::ptr::null_mut(),
                major_version: 0,
                minor_version: MINOR_VERSION,
            },
            functions,
        }
    })
}
