//! The version, errors, named values, the plugin and events.
use super::objects::{Event, Failure};
use std::ffi::{c_char, c_int, c_void};

/// `PJRT_Api_Version`.
#[repr(C)]
pub struct ApiVersion {
    pub struct_size: usize,
    pub extension_start: *mut c_void,
    pub major_version: c_int,
    pub minor_version: c_int,
}
sized!(ApiVersion, minor_version);

/// `PJRT_Error_Destroy_Args`.
#[repr(C)]
pub struct ErrorDestroyArgs {
    pub struct_size: usize,
    pub extension_start: *mut c_void,
    pub error: *mut Failure,
}
sized!(ErrorDestroyArgs, error);

/// `PJRT_Error_Message_Args`.
#[repr(C)]
pub struct ErrorMessageArgs {
    pub struct_size: usize,
    pub extension_start: *mut c_void,
    pub error: *const Failure,
    pub message: *const c_char,
    pub message_size: usize,
}
sized!(ErrorMessageArgs, message_size);

/// `PJRT_Error_GetCode_Args`.
#[repr(C)]
pub struct ErrorGetCodeArgs {
    pub struct_size: usize,
    pub extension_start: *mut c_void,
    pub error: *const Failure,
    pub code: c_int,
}
sized!(ErrorGetCodeArgs, code);

/// `PJRT_NamedValue`.
#[repr(C)]
pub struct NamedValue {
    pub struct_size: usize,
    pub extension_start: *mut c_void,
    pub name: *const c_char,
    pub name_size: usize,
    pub kind: c_int,
    pub value: NamedValueContent,
    pub value_size: usize,
}
sized!(NamedValue, value_size);

/// `PJRT_Plugin_Initialize_Args`.
#[repr(C)]
pub struct PluginInitializeArgs {
    pub struct_size: usize,
    pub extension_start: *mut c_void,
}
sized!(PluginInitializeArgs, extension_start);

/// `PJRT_Plugin_Attributes_Args`.
#[repr(C)]
pub struct PluginAttributesArgs {
    pub struct_size: usize,
    pub extension_start: *mut c_void,
    pub attributes: *const NamedValue,
    pub num_attributes: usize,
}
sized!(PluginAttributesArgs, num_attributes);

/// `PJRT_Event_Destroy_Args`.
#[repr(C)]
pub struct EventDestroyArgs {
    pub struct_size: usize,
    pub extension_start: *mut c_void,
    pub event: *mut Event,
}
sized!(EventDestroyArgs, event);

/// `PJRT_Event_IsReady_Args`.
#[repr(C)]
pub struct EventIsReadyArgs {
    pub struct_size: usize,
    pub extension_start: *mut c_void,
    pub event: *mut Event,
    pub is_ready: bool,
}
sized!(EventIsReadyArgs, is_ready);

/// `PJRT_Event_Error_Args`.
#[repr(C)]
pub struct EventErrorArgs {
    pub struct_size: usize,
    pub extension_start: *mut c_void,
    pub event: *mut Event,
}
sized!(EventErrorArgs, event);

/// `PJRT_Event_Await_Args`.
#[repr(C)]
pub struct EventAwaitArgs {
    pub struct_size: usize,
    pub extension_start: *mut c_void,
    pub event: *mut Event,
}
sized!(EventAwaitArgs, event);

/// `PJRT_Event_OnReady_Args`.
#[repr(C)]
pub struct EventOnReadyArgs {
    pub struct_size: usize,
    pub extension_start: *mut c_void,
    pub event: *mut Event,
    pub callback: Option<unsafe extern "C" fn(*mut Failure, *mut c_void)>,
    pub user_arg: *mut c_void,
}
sized!(EventOnReadyArgs, user_arg);

/// `PJRT_Event_Create_Args`.
#[repr(C)]
pub struct EventCreateArgs {
    pub struct_size: usize,
    pub extension_start: *mut c_void,
    pub event: *mut Event,
}
sized!(EventCreateArgs, event);

/// `PJRT_Event_Set_Args`.
#[repr(C)]
pub struct EventSetArgs {
    pub struct_size: usize,
    pub extension_start: *mut c_void,
    pub event: *mut Event,
    pub error_code: c_int,
    pub error_message: *const c_char,
    pub error_message_size: usize,
}
sized!(EventSetArgs, error_message_size);

/// The union in `PJRT_NamedValue`.
#[repr(C)]
#[derive(Clone, Copy)]
pub union NamedValueContent {
    pub string: *const c_char,
    pub int64: i64,
    pub int64_array: *const i64,
    pub float: f32,
    pub boolean: bool,
}
