//! The extension for layouts.
use super::objects::{Buffer, Client, Executable, MinorToMajor, Topology};
use std::ffi::{c_char, c_int, c_void};

/// `PJRT_Layouts_MemoryLayout_Destroy_Args`.
#[repr(C)]
pub struct LayoutsMemoryLayoutDestroyArgs {
    pub struct_size: usize,
    pub extension_start: *mut c_void,
    pub layout: *mut MinorToMajor,
}
sized!(LayoutsMemoryLayoutDestroyArgs, layout);

/// `PJRT_Layouts_MemoryLayout_Serialize_Args`.
#[repr(C)]
pub struct LayoutsMemoryLayoutSerializeArgs {
    pub struct_size: usize,
    pub extension_start: *mut c_void,
    pub layout: *mut MinorToMajor,
    pub serialized_bytes: *const c_char,
    pub serialized_bytes_size: usize,
    pub serialized_layout: *mut c_void,
    pub serialized_layout_deleter: Option<unsafe extern "C" fn(*mut c_void)>,
}
sized!(LayoutsMemoryLayoutSerializeArgs, serialized_layout_deleter);

/// `PJRT_Layouts_PJRT_Buffer_MemoryLayout_Args`.
#[repr(C)]
pub struct LayoutsPjrtBufferMemoryLayoutArgs {
    pub struct_size: usize,
    pub extension_start: *mut c_void,
    pub buffer: *mut Buffer,
    pub layout: *mut MinorToMajor,
}
sized!(LayoutsPjrtBufferMemoryLayoutArgs, layout);

/// `PJRT_Layouts_PJRT_Client_GetDefaultLayout_Args`.
#[repr(C)]
pub struct LayoutsPjrtClientGetDefaultLayoutArgs {
    pub struct_size: usize,
    pub extension_start: *mut c_void,
    pub client: *mut Client,
    pub kind: c_int,
    pub dims: *const i64,
    pub num_dims: usize,
    pub layout: *mut MinorToMajor,
}
sized!(LayoutsPjrtClientGetDefaultLayoutArgs, layout);

/// `PJRT_Layouts_PJRT_Topology_GetDefaultLayout_Args`.
#[repr(C)]
pub struct LayoutsPjrtTopologyGetDefaultLayoutArgs {
    pub struct_size: usize,
    pub extension_start: *mut c_void,
    pub topology_description: *mut Topology,
    pub kind: c_int,
    pub dims: *const i64,
    pub num_dims: usize,
    pub layout: *mut MinorToMajor,
}
sized!(LayoutsPjrtTopologyGetDefaultLayoutArgs, layout);

/// `PJRT_Layouts_PJRT_Executable_GetOutputLayouts_Args`.
#[repr(C)]
pub struct LayoutsPjrtExecutableGetOutputLayoutsArgs {
    pub struct_size: usize,
    pub extension_start: *mut c_void,
    pub executable: *mut Executable,
    pub num_outputs: usize,
    pub layouts: *mut *mut MinorToMajor,
}
sized!(LayoutsPjrtExecutableGetOutputLayoutsArgs, layouts);
