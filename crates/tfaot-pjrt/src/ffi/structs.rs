//! Structs of XLA's C interface for foreign functions, version 0.3, as a C compiler lays them out.
//!
//! Source: `xla/ffi/api/c_api.h`, of which fields have the names.
#![allow(missing_docs, reason = "fields are called as in the interface's header, which describes them")]
use super::api::{FfiError, Future};
use super::context::ExecutionContext;
use std::ffi::{c_char, c_int, c_void};

/// The version of the interface.
pub const VERSION: [c_int; 2] = [0, 3];

/// `XLA_FFI_Handler`: null, or an error.
pub type Handler = unsafe extern "C" fn(*mut CallFrame) -> *mut FfiError;

/// `XLA_FFI_AttrType`.
pub const ATTR_ARRAY: c_int = 1;
pub const ATTR_DICTIONARY: c_int = 2;
pub const ATTR_SCALAR: c_int = 3;
pub const ATTR_STRING: c_int = 4;

/// `XLA_FFI_ArgType_BUFFER`, and that of results.
pub const BUFFER: c_int = 1;

/// `XLA_FFI_DataType_TOKEN`.
pub const TOKEN: c_int = 17;

/// `XLA_FFI_ExecutionStage`, of which handlers run in two.
pub const INSTANTIATE: c_int = 0;
pub const EXECUTE: c_int = 3;

/// `XLA_FFI_Extension_Base`.
#[repr(C)]
pub struct ExtensionBase {
    pub struct_size: usize,
    pub kind: c_int,
    pub next: *mut ExtensionBase,
}

/// `XLA_FFI_Extension_Metadata`.
pub const METADATA: c_int = 1;

/// `XLA_FFI_Api_Version`.
#[repr(C)]
pub struct ApiVersion {
    pub struct_size: usize,
    pub extension_start: *mut ExtensionBase,
    pub major_version: c_int,
    pub minor_version: c_int,
}

/// `XLA_FFI_Metadata`.
#[repr(C)]
pub struct Metadata {
    pub struct_size: usize,
    pub api_version: ApiVersion,
    pub traits: u32,
    pub state_type_id: i64,
}

/// `XLA_FFI_Metadata_Extension`.
#[repr(C)]
pub struct MetadataExtension {
    pub base: ExtensionBase,
    pub metadata: *mut Metadata,
}

/// `XLA_FFI_Buffer`.
#[repr(C)]
pub struct Buffer {
    pub struct_size: usize,
    pub extension_start: *mut ExtensionBase,
    pub dtype: c_int,
    pub data: *mut c_void,
    pub rank: i64,
    pub dims: *const i64,
}

/// `XLA_FFI_ByteSpan`.
#[repr(C)]
pub struct ByteSpan {
    pub ptr: *const c_char,
    pub len: usize,
}

/// `XLA_FFI_Scalar`.
#[repr(C)]
pub struct Scalar {
    pub dtype: c_int,
    pub value: *const c_void,
}

/// `XLA_FFI_Array`.
#[repr(C)]
pub struct Array {
    pub dtype: c_int,
    pub size: usize,
    pub data: *const c_void,
}

/// `XLA_FFI_Args`, and `XLA_FFI_Rets`.
#[repr(C)]
pub struct Values {
    pub struct_size: usize,
    pub extension_start: *mut ExtensionBase,
    pub size: i64,
    pub types: *const c_int,
    pub values: *const *const Buffer,
}

/// `XLA_FFI_Attrs`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Attrs {
    pub struct_size: usize,
    pub extension_start: *mut ExtensionBase,
    pub size: i64,
    pub types: *const c_int,
    pub names: *const *const ByteSpan,
    pub attrs: *const *const c_void,
}

/// `XLA_FFI_CallFrame`.
#[repr(C)]
pub struct CallFrame {
    pub struct_size: usize,
    pub extension_start: *mut ExtensionBase,
    pub api: *const super::api::Api,
    pub ctx: *const ExecutionContext<'static>,
    pub stage: c_int,
    pub args: Values,
    pub rets: Values,
    pub attrs: Attrs,
    pub future: *mut Future,
}

/// Bytes of a call frame up to its attributes, which handlers compare with theirs: the future behind them does not count.
pub const CALL_FRAME_BYTES: usize = std::mem::offset_of!(CallFrame, future);

/// `XLA_FFI_TypeInfo`.
#[repr(C)]
pub struct TypeInfo {
    pub struct_size: usize,
    pub extension_start: *mut ExtensionBase,
    pub deleter: Option<unsafe extern "C" fn(*mut c_void)>,
}
