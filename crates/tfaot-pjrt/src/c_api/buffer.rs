//! Arrays in memory of a device.
use super::objects::{Buffer, Client, Device, Event, Memory};
use std::ffi::{c_int, c_void};

/// `PJRT_Buffer_MemoryLayout_Tiled`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct BufferMemoryLayoutTiled {
    pub struct_size: usize,
    pub extension_start: *mut c_void,
    pub minor_to_major: *const i64,
    pub minor_to_major_size: usize,
    pub tile_dims: *const i64,
    pub tile_dim_sizes: *const usize,
    pub num_tiles: usize,
}
sized!(BufferMemoryLayoutTiled, num_tiles);

/// `PJRT_Buffer_MemoryLayout_Strides`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct BufferMemoryLayoutStrides {
    pub struct_size: usize,
    pub extension_start: *mut c_void,
    pub byte_strides: *const i64,
    pub num_byte_strides: usize,
}
sized!(BufferMemoryLayoutStrides, num_byte_strides);

/// The union in `PJRT_Buffer_MemoryLayout`.
#[repr(C)]
#[derive(Clone, Copy)]
pub union BufferMemoryLayoutContent {
    pub tiled: BufferMemoryLayoutTiled,
    pub strides: BufferMemoryLayoutStrides,
}

/// `PJRT_Buffer_MemoryLayout`.
#[repr(C)]
pub struct BufferMemoryLayout {
    pub struct_size: usize,
    pub extension_start: *mut c_void,
    pub content: BufferMemoryLayoutContent,
    pub kind: c_int,
}
sized!(BufferMemoryLayout, kind);

/// `PJRT_Client_CreateUninitializedBuffer_Args`.
#[repr(C)]
pub struct ClientCreateUninitializedBufferArgs {
    pub struct_size: usize,
    pub extension_start: *mut c_void,
    pub client: *mut Client,
    pub shape_dims: *const i64,
    pub shape_num_dims: usize,
    pub shape_element_type: c_int,
    pub shape_layout: *mut BufferMemoryLayout,
    pub device: *mut Device,
    pub memory: *mut Memory,
    pub buffer: *mut Buffer,
}
sized!(ClientCreateUninitializedBufferArgs, buffer);

/// `PJRT_Client_BufferFromHostBuffer_Args`.
#[repr(C)]
pub struct ClientBufferFromHostBufferArgs {
    pub struct_size: usize,
    pub extension_start: *mut c_void,
    pub client: *mut Client,
    pub data: *const c_void,
    pub kind: c_int,
    pub dims: *const i64,
    pub num_dims: usize,
    pub byte_strides: *const i64,
    pub num_byte_strides: usize,
    pub host_buffer_semantics: c_int,
    pub device: *mut Device,
    pub memory: *mut Memory,
    pub device_layout: *mut BufferMemoryLayout,
    pub done_with_host_buffer: *mut Event,
    pub buffer: *mut Buffer,
}
sized!(ClientBufferFromHostBufferArgs, buffer);

/// `PJRT_Client_CreateViewOfDeviceBuffer_Args`.
#[repr(C)]
pub struct ClientCreateViewOfDeviceBufferArgs {
    pub struct_size: usize,
    pub extension_start: *mut c_void,
    pub client: *mut Client,
    pub device_buffer_ptr: *mut c_void,
    pub dims: *const i64,
    pub num_dims: usize,
    pub element_type: c_int,
    pub layout: *mut BufferMemoryLayout,
    pub device: *mut Device,
    pub on_delete_callback: Option<unsafe extern "C" fn(*mut c_void, *mut c_void)>,
    pub on_delete_callback_arg: *mut c_void,
    pub stream: isize,
    pub buffer: *mut Buffer,
    pub memory: *mut Memory,
}
sized!(ClientCreateViewOfDeviceBufferArgs, memory);

/// `PJRT_Buffer_Destroy_Args`.
#[repr(C)]
pub struct BufferDestroyArgs {
    pub struct_size: usize,
    pub extension_start: *mut c_void,
    pub buffer: *mut Buffer,
}
sized!(BufferDestroyArgs, buffer);

/// `PJRT_Buffer_ElementType_Args`.
#[repr(C)]
pub struct BufferElementTypeArgs {
    pub struct_size: usize,
    pub extension_start: *mut c_void,
    pub buffer: *mut Buffer,
    pub kind: c_int,
}
sized!(BufferElementTypeArgs, kind);

/// `PJRT_Buffer_Dimensions_Args`.
#[repr(C)]
pub struct BufferDimensionsArgs {
    pub struct_size: usize,
    pub extension_start: *mut c_void,
    pub buffer: *mut Buffer,
    pub dims: *const i64,
    pub num_dims: usize,
}
sized!(BufferDimensionsArgs, num_dims);

/// `PJRT_Buffer_UnpaddedDimensions_Args`.
#[repr(C)]
pub struct BufferUnpaddedDimensionsArgs {
    pub struct_size: usize,
    pub extension_start: *mut c_void,
    pub buffer: *mut Buffer,
    pub unpadded_dims: *const i64,
    pub num_dims: usize,
}
sized!(BufferUnpaddedDimensionsArgs, num_dims);

/// `PJRT_Buffer_DynamicDimensionIndices_Args`.
#[repr(C)]
pub struct BufferDynamicDimensionIndicesArgs {
    pub struct_size: usize,
    pub extension_start: *mut c_void,
    pub buffer: *mut Buffer,
    pub dynamic_dim_indices: *const usize,
    pub num_dynamic_dims: usize,
}
sized!(BufferDynamicDimensionIndicesArgs, num_dynamic_dims);

/// `PJRT_Buffer_GetMemoryLayout_Args`.
#[repr(C)]
pub struct BufferGetMemoryLayoutArgs {
    pub struct_size: usize,
    pub extension_start: *mut c_void,
    pub buffer: *mut Buffer,
    pub layout: BufferMemoryLayout,
}
sized!(BufferGetMemoryLayoutArgs, layout);

/// `PJRT_Buffer_ToHostBuffer_Args`.
#[repr(C)]
pub struct BufferToHostBufferArgs {
    pub struct_size: usize,
    pub extension_start: *mut c_void,
    pub src: *mut Buffer,
    pub host_layout: *mut BufferMemoryLayout,
    pub dst: *mut c_void,
    pub dst_size: usize,
    pub event: *mut Event,
}
sized!(BufferToHostBufferArgs, event);

/// `PJRT_Buffer_OnDeviceSizeInBytes_Args`.
#[repr(C)]
pub struct BufferOnDeviceSizeInBytesArgs {
    pub struct_size: usize,
    pub extension_start: *mut c_void,
    pub buffer: *mut Buffer,
    pub on_device_size_in_bytes: usize,
}
sized!(BufferOnDeviceSizeInBytesArgs, on_device_size_in_bytes);

/// `PJRT_Buffer_Delete_Args`.
#[repr(C)]
pub struct BufferDeleteArgs {
    pub struct_size: usize,
    pub extension_start: *mut c_void,
    pub buffer: *mut Buffer,
}
sized!(BufferDeleteArgs, buffer);

/// `PJRT_Buffer_IsDeleted_Args`.
#[repr(C)]
pub struct BufferIsDeletedArgs {
    pub struct_size: usize,
    pub extension_start: *mut c_void,
    pub buffer: *mut Buffer,
    pub is_deleted: bool,
}
sized!(BufferIsDeletedArgs, is_deleted);

/// `PJRT_Buffer_CopyRawToHost_Args`.
#[repr(C)]
pub struct BufferCopyRawToHostArgs {
    pub struct_size: usize,
    pub extension_start: *mut c_void,
    pub buffer: *mut Buffer,
    pub dst: *mut c_void,
    pub offset: i64,
    pub transfer_size: i64,
    pub event: *mut Event,
}
sized!(BufferCopyRawToHostArgs, event);

/// `PJRT_Buffer_CopyToDevice_Args`.
#[repr(C)]
pub struct BufferCopyToDeviceArgs {
    pub struct_size: usize,
    pub extension_start: *mut c_void,
    pub buffer: *mut Buffer,
    pub dst_device: *mut Device,
    pub dst_buffer: *mut Buffer,
}
sized!(BufferCopyToDeviceArgs, dst_buffer);

/// `PJRT_Buffer_CopyToMemory_Args`.
#[repr(C)]
pub struct BufferCopyToMemoryArgs {
    pub struct_size: usize,
    pub extension_start: *mut c_void,
    pub buffer: *mut Buffer,
    pub dst_memory: *mut Memory,
    pub dst_buffer: *mut Buffer,
}
sized!(BufferCopyToMemoryArgs, dst_buffer);

/// `PJRT_Buffer_IsOnCpu_Args`.
#[repr(C)]
pub struct BufferIsOnCpuArgs {
    pub struct_size: usize,
    pub extension_start: *mut c_void,
    pub buffer: *mut Buffer,
    pub is_on_cpu: bool,
}
sized!(BufferIsOnCpuArgs, is_on_cpu);

/// `PJRT_Buffer_Device_Args`.
#[repr(C)]
pub struct BufferDeviceArgs {
    pub struct_size: usize,
    pub extension_start: *mut c_void,
    pub buffer: *mut Buffer,
    pub device: *mut Device,
}
sized!(BufferDeviceArgs, device);

/// `PJRT_Buffer_Memory_Args`.
#[repr(C)]
pub struct BufferMemoryArgs {
    pub struct_size: usize,
    pub extension_start: *mut c_void,
    pub buffer: *mut Buffer,
    pub memory: *mut Memory,
}
sized!(BufferMemoryArgs, memory);

/// `PJRT_Buffer_ReadyEvent_Args`.
#[repr(C)]
pub struct BufferReadyEventArgs {
    pub struct_size: usize,
    pub extension_start: *mut c_void,
    pub buffer: *mut Buffer,
    pub event: *mut Event,
}
sized!(BufferReadyEventArgs, event);

/// `PJRT_Buffer_UnsafePointer_Args`.
#[repr(C)]
pub struct BufferUnsafePointerArgs {
    pub struct_size: usize,
    pub extension_start: *mut c_void,
    pub buffer: *mut Buffer,
    pub buffer_pointer: usize,
}
sized!(BufferUnsafePointerArgs, buffer_pointer);

/// `PJRT_Buffer_IncreaseExternalReferenceCount_Args`.
#[repr(C)]
pub struct BufferIncreaseExternalReferenceCountArgs {
    pub struct_size: usize,
    pub extension_start: *mut c_void,
    pub buffer: *mut Buffer,
}
sized!(BufferIncreaseExternalReferenceCountArgs, buffer);

/// `PJRT_Buffer_DecreaseExternalReferenceCount_Args`.
#[repr(C)]
pub struct BufferDecreaseExternalReferenceCountArgs {
    pub struct_size: usize,
    pub extension_start: *mut c_void,
    pub buffer: *mut Buffer,
}
sized!(BufferDecreaseExternalReferenceCountArgs, buffer);

/// `PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args`.
#[repr(C)]
pub struct BufferOpaqueDeviceMemoryDataPointerArgs {
    pub struct_size: usize,
    pub extension_start: *mut c_void,
    pub buffer: *mut Buffer,
    pub device_memory_ptr: *mut c_void,
}
sized!(BufferOpaqueDeviceMemoryDataPointerArgs, device_memory_ptr);
