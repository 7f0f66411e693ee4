//! The extension for foreign functions.
use super::objects::ExecuteContext;
use std::ffi::{c_char, c_int, c_void};

/// `PJRT_FFI_Type_Info`; the functions behind the deleter have no use yet.
#[repr(C)]
pub struct FfiTypeInfo {
    pub deleter: Option<unsafe extern "C" fn(*mut c_void)>,
}

/// `PJRT_FFI_Type_Register_Args`.
#[repr(C)]
pub struct FfiTypeRegisterArgs {
    pub struct_size: usize,
    pub extension_start: *mut c_void,
    pub type_name: *const c_char,
    pub type_name_size: usize,
    pub type_id: i64,
    pub type_info: *mut FfiTypeInfo,
}
sized!(FfiTypeRegisterArgs, type_info);

/// `PJRT_FFI_UserData_Add_Args`, with `PJRT_FFI_UserData` in it.
#[repr(C)]
pub struct FfiUserDataAddArgs {
    pub struct_size: usize,
    pub extension_start: *mut c_void,
    pub context: *mut ExecuteContext,
    pub type_id: i64,
    pub data: *mut c_void,
}
sized!(FfiUserDataAddArgs, data);

/// `PJRT_FFI_Register_Handler_Args`.
#[repr(C)]
pub struct FfiRegisterHandlerArgs {
    pub struct_size: usize,
    pub target_name: *const c_char,
    pub target_name_size: usize,
    pub handler: *mut c_void,
    pub platform_name: *const c_char,
    pub platform_name_size: usize,
    pub traits: c_int,
}
sized!(FfiRegisterHandlerArgs, traits);
