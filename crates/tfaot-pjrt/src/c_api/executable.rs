//! Compiling, executables and calls of them.
use super::base::NamedValue;
use super::objects::{Buffer, Client, Device, Event, Executable, ExecuteContext, LoadedExecutable, Topology};
use std::ffi::{c_char, c_int, c_void};

/// `PJRT_Program`.
#[repr(C)]
pub struct Program {
    pub struct_size: usize,
    pub extension_start: *mut c_void,
    pub code: *mut c_char,
    pub code_size: usize,
    pub format: *const c_char,
    pub format_size: usize,
}
sized!(Program, format_size);

/// `PJRT_Client_Compile_Args`.
#[repr(C)]
pub struct ClientCompileArgs {
    pub struct_size: usize,
    pub extension_start: *mut c_void,
    pub client: *mut Client,
    pub program: *const Program,
    pub compile_options: *const c_char,
    pub compile_options_size: usize,
    pub executable: *mut LoadedExecutable,
}
sized!(ClientCompileArgs, executable);

/// `PJRT_Compile_Args`.
#[repr(C)]
pub struct CompileArgs {
    pub struct_size: usize,
    pub extension_start: *mut c_void,
    pub topology: *const Topology,
    pub program: *const Program,
    pub compile_options: *const c_char,
    pub compile_options_size: usize,
    pub client: *mut Client,
    pub executable: *mut Executable,
}
sized!(CompileArgs, executable);

/// `PJRT_ExecuteContext_Create_Args`.
#[repr(C)]
pub struct ExecuteContextCreateArgs {
    pub struct_size: usize,
    pub extension_start: *mut c_void,
    pub context: *mut ExecuteContext,
}
sized!(ExecuteContextCreateArgs, context);

/// `PJRT_ExecuteContext_Destroy_Args`.
#[repr(C)]
pub struct ExecuteContextDestroyArgs {
    pub struct_size: usize,
    pub extension_start: *mut c_void,
    pub context: *mut ExecuteContext,
}
sized!(ExecuteContextDestroyArgs, context);

/// `PJRT_Executable_Destroy_Args`.
#[repr(C)]
pub struct ExecutableDestroyArgs {
    pub struct_size: usize,
    pub extension_start: *mut c_void,
    pub executable: *mut Executable,
}
sized!(ExecutableDestroyArgs, executable);

/// `PJRT_LoadedExecutable_Destroy_Args`.
#[repr(C)]
pub struct LoadedExecutableDestroyArgs {
    pub struct_size: usize,
    pub extension_start: *mut c_void,
    pub executable: *mut LoadedExecutable,
}
sized!(LoadedExecutableDestroyArgs, executable);

/// `PJRT_LoadedExecutable_GetExecutable_Args`.
#[repr(C)]
pub struct LoadedExecutableGetExecutableArgs {
    pub struct_size: usize,
    pub extension_start: *mut c_void,
    pub loaded_executable: *mut LoadedExecutable,
    pub executable: *mut Executable,
}
sized!(LoadedExecutableGetExecutableArgs, executable);

/// `PJRT_LoadedExecutable_GetDeviceAssignment_Args`.
#[repr(C)]
pub struct LoadedExecutableGetDeviceAssignmentArgs {
    pub struct_size: usize,
    pub extension_start: *mut c_void,
    pub executable: *mut LoadedExecutable,
    pub serialized_bytes: *const c_char,
    pub serialized_bytes_size: usize,
    pub serialized_device_assignment: *mut c_void,
    pub serialized_device_assignment_deleter: Option<unsafe extern "C" fn(*mut c_void)>,
}
sized!(LoadedExecutableGetDeviceAssignmentArgs, serialized_device_assignment_deleter);

/// `PJRT_Executable_Name_Args`.
#[repr(C)]
pub struct ExecutableNameArgs {
    pub struct_size: usize,
    pub extension_start: *mut c_void,
    pub executable: *mut Executable,
    pub executable_name: *const c_char,
    pub executable_name_size: usize,
}
sized!(ExecutableNameArgs, executable_name_size);

/// `PJRT_Executable_NumReplicas_Args`.
#[repr(C)]
pub struct ExecutableNumReplicasArgs {
    pub struct_size: usize,
    pub extension_start: *mut c_void,
    pub executable: *mut Executable,
    pub num_replicas: usize,
}
sized!(ExecutableNumReplicasArgs, num_replicas);

/// `PJRT_Executable_NumPartitions_Args`.
#[repr(C)]
pub struct ExecutableNumPartitionsArgs {
    pub struct_size: usize,
    pub extension_start: *mut c_void,
    pub executable: *mut Executable,
    pub num_partitions: usize,
}
sized!(ExecutableNumPartitionsArgs, num_partitions);

/// `PJRT_LoadedExecutable_AddressableDevices_Args`.
#[repr(C)]
pub struct LoadedExecutableAddressableDevicesArgs {
    pub struct_size: usize,
    pub extension_start: *mut c_void,
    pub executable: *mut LoadedExecutable,
    pub addressable_devices: *const *mut Device,
    pub num_addressable_devices: usize,
}
sized!(LoadedExecutableAddressableDevicesArgs, num_addressable_devices);

/// `PJRT_Executable_OptimizedProgram_Args`.
#[repr(C)]
pub struct ExecutableOptimizedProgramArgs {
    pub struct_size: usize,
    pub extension_start: *mut c_void,
    pub executable: *mut Executable,
    pub program: *mut Program,
}
sized!(ExecutableOptimizedProgramArgs, program);

/// `PJRT_LoadedExecutable_Delete_Args`.
#[repr(C)]
pub struct LoadedExecutableDeleteArgs {
    pub struct_size: usize,
    pub extension_start: *mut c_void,
    pub executable: *mut LoadedExecutable,
}
sized!(LoadedExecutableDeleteArgs, executable);

/// `PJRT_LoadedExecutable_IsDeleted_Args`.
#[repr(C)]
pub struct LoadedExecutableIsDeletedArgs {
    pub struct_size: usize,
    pub extension_start: *mut c_void,
    pub executable: *mut LoadedExecutable,
    pub is_deleted: bool,
}
sized!(LoadedExecutableIsDeletedArgs, is_deleted);

/// `PJRT_SendCallbackInfo`.
#[repr(C)]
pub struct SendCallbackInfo {
    pub channel_id: i64,
    pub user_arg: *mut c_void,
    pub send_callback: *const c_void,
}

/// `PJRT_RecvCallbackInfo`.
#[repr(C)]
pub struct RecvCallbackInfo {
    pub channel_id: i64,
    pub user_arg: *mut c_void,
    pub recv_callback: *const c_void,
}

/// `PJRT_ExecuteOptions`.
#[repr(C)]
pub struct ExecuteOptions {
    pub struct_size: usize,
    pub extension_start: *mut c_void,
    pub send_callbacks: *mut *mut SendCallbackInfo,
    pub recv_callbacks: *mut *mut RecvCallbackInfo,
    pub num_send_ops: usize,
    pub num_recv_ops: usize,
    pub launch_id: c_int,
    pub non_donatable_input_indices: *const i64,
    pub num_non_donatable_input_indices: usize,
    pub context: *mut ExecuteContext,
    pub call_location: *const c_char,
    pub num_tasks: usize,
    pub task_ids: *mut c_int,
    pub incarnation_ids: *mut i64,
}
sized!(ExecuteOptions, incarnation_ids);

/// `PJRT_LoadedExecutable_Execute_Args`.
#[repr(C)]
pub struct LoadedExecutableExecuteArgs {
    pub struct_size: usize,
    pub extension_start: *mut c_void,
    pub executable: *mut LoadedExecutable,
    pub options: *mut ExecuteOptions,
    pub argument_lists: *const *const *mut Buffer,
    pub num_devices: usize,
    pub num_args: usize,
    pub output_lists: *const *mut *mut Buffer,
    pub device_complete_events: *mut *mut Event,
    pub execute_device: *mut Device,
}
sized!(LoadedExecutableExecuteArgs, execute_device);

/// `PJRT_Executable_NumOutputs_Args`.
#[repr(C)]
pub struct ExecutableNumOutputsArgs {
    pub struct_size: usize,
    pub extension_start: *mut c_void,
    pub executable: *mut Executable,
    pub num_outputs: usize,
}
sized!(ExecutableNumOutputsArgs, num_outputs);

/// `PJRT_Executable_SizeOfGeneratedCodeInBytes_Args`.
#[repr(C)]
pub struct ExecutableSizeOfGeneratedCodeInBytesArgs {
    pub struct_size: usize,
    pub extension_start: *mut c_void,
    pub executable: *mut Executable,
    pub size_in_bytes: i64,
}
sized!(ExecutableSizeOfGeneratedCodeInBytesArgs, size_in_bytes);

/// `PJRT_Executable_Fingerprint_Args`.
#[repr(C)]
pub struct ExecutableFingerprintArgs {
    pub struct_size: usize,
    pub extension_start: *mut c_void,
    pub executable: *mut Executable,
    pub executable_fingerprint: *const c_char,
    pub executable_fingerprint_size: usize,
}
sized!(ExecutableFingerprintArgs, executable_fingerprint_size);

/// `PJRT_Executable_GetCostAnalysis_Args`.
#[repr(C)]
pub struct ExecutableGetCostAnalysisArgs {
    pub struct_size: usize,
    pub extension_start: *mut c_void,
    pub executable: *mut Executable,
    pub num_properties: usize,
    pub properties: *const NamedValue,
}
sized!(ExecutableGetCostAnalysisArgs, properties);

/// `PJRT_Executable_GetCompiledMemoryStats_Args`.
#[repr(C)]
pub struct ExecutableGetCompiledMemoryStatsArgs {
    pub struct_size: usize,
    pub extension_start: *mut c_void,
    pub executable: *mut Executable,
    pub generated_code_size_in_bytes: i64,
    pub argument_size_in_bytes: i64,
    pub output_size_in_bytes: i64,
    pub alias_size_in_bytes: i64,
    pub temp_size_in_bytes: i64,
    pub host_generated_code_size_in_bytes: i64,
    pub host_argument_size_in_bytes: i64,
    pub host_output_size_in_bytes: i64,
    pub host_alias_size_in_bytes: i64,
    pub host_temp_size_in_bytes: i64,
    pub peak_memory_in_bytes: i64,
    pub total_size_in_bytes: i64,
}
sized!(ExecutableGetCompiledMemoryStatsArgs, total_size_in_bytes);

/// `PJRT_Executable_OutputElementTypes_Args`.
#[repr(C)]
pub struct ExecutableOutputElementTypesArgs {
    pub struct_size: usize,
    pub extension_start: *mut c_void,
    pub executable: *mut Executable,
    pub output_types: *mut c_int,
    pub num_output_types: usize,
}
sized!(ExecutableOutputElementTypesArgs, num_output_types);

/// `PJRT_Executable_OutputDimensions_Args`.
#[repr(C)]
pub struct ExecutableOutputDimensionsArgs {
    pub struct_size: usize,
    pub extension_start: *mut c_void,
    pub executable: *mut Executable,
    pub num_outputs: usize,
    pub dims: *const i64,
    pub dim_sizes: *const usize,
}
sized!(ExecutableOutputDimensionsArgs, dim_sizes);

/// `PJRT_Executable_OutputMemoryKinds_Args`.
#[repr(C)]
pub struct ExecutableOutputMemoryKindsArgs {
    pub struct_size: usize,
    pub extension_start: *mut c_void,
    pub executable: *mut Executable,
    pub num_outputs: usize,
    pub memory_kinds: *const *const c_char,
    pub memory_kind_sizes: *const usize,
}
sized!(ExecutableOutputMemoryKindsArgs, memory_kind_sizes);

/// `PJRT_Executable_Serialize_Args`.
#[repr(C)]
pub struct ExecutableSerializeArgs {
    pub struct_size: usize,
    pub extension_start: *mut c_void,
    pub executable: *const Executable,
    pub serialized_bytes: *const c_char,
    pub serialized_bytes_size: usize,
    pub serialized_executable: *mut c_void,
    pub serialized_executable_deleter: Option<unsafe extern "C" fn(*mut c_void)>,
}
sized!(ExecutableSerializeArgs, serialized_executable_deleter);

/// `PJRT_Executable_GetCompileOptions_Args`.
#[repr(C)]
pub struct ExecutableGetCompileOptionsArgs {
    pub struct_size: usize,
    pub extension_start: *mut c_void,
    pub executable: *mut Executable,
    pub serialized_bytes: *const c_char,
    pub serialized_bytes_size: usize,
    pub serialized_compile_options: *mut c_void,
    pub serialized_compile_options_deleter: Option<unsafe extern "C" fn(*mut c_void)>,
}
sized!(ExecutableGetCompileOptionsArgs, serialized_compile_options_deleter);

/// `PJRT_Executable_DeserializeAndLoad_Args`.
#[repr(C)]
pub struct ExecutableDeserializeAndLoadArgs {
    pub struct_size: usize,
    pub extension_start: *mut c_void,
    pub client: *mut Client,
    pub serialized_executable: *const c_char,
    pub serialized_executable_size: usize,
    pub loaded_executable: *mut LoadedExecutable,
    pub overridden_serialized_compile_options: *const c_char,
    pub overridden_serialized_compile_options_size: usize,
}
sized!(ExecutableDeserializeAndLoadArgs, overridden_serialized_compile_options_size);

/// `PJRT_LoadedExecutable_Fingerprint_Args`.
#[repr(C)]
pub struct LoadedExecutableFingerprintArgs {
    pub struct_size: usize,
    pub extension_start: *mut c_void,
    pub executable: *mut LoadedExecutable,
    pub executable_fingerprint: *const c_char,
    pub executable_fingerprint_size: usize,
}
sized!(LoadedExecutableFingerprintArgs, executable_fingerprint_size);
