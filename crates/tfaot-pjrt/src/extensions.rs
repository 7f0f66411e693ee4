//! The chain of extensions behind the table of functions.
use crate::boundary::{Function, call};
use crate::{ffi, layouts};
use std::ffi::{c_int, c_void};
use std::sync::OnceLock;

/// `PJRT_Extension_Type_Layouts`.
const LAYOUTS: c_int = 4;
/// `PJRT_Extension_Type_FFI`.
const FFI: c_int = 5;

/// `PJRT_Extension_Base`, with the functions of an extension behind it.
#[repr(C)]
struct Extension<const N: usize> {
    struct_size: usize,
    kind: c_int,
    next: *mut c_void,
    functions: [Function; N],
}

// SAFETY: extensions do not change.
unsafe impl<const N: usize> Send for Extension<N> {}
// SAFETY: as above.
unsafe impl<const N: usize> Sync for Extension<N> {}

macro_rules! function {
    ($function:path) => {{
        unsafe extern "C" fn entry(args: *mut c_void) -> *mut c_void {
            // SAFETY: the caller passes the struct that belongs to this function.
            unsafe { call(args, $function) }
        }
        entry as Function
    }};
}

/// The first extension.
pub fn chain() -> *mut c_void {
    static CALLS: OnceLock<Extension<3>> = OnceLock::new();
    static LAYOUT: OnceLock<Extension<6>> = OnceLock::new();
    let calls = CALLS.get_or_init(|| Extension {
        struct_size: size_of::<Extension<3>>(),
        kind: FFI,
        next: std::ptr::null_mut(),
        functions: [function!(ffi::type_register), function!(ffi::user_data_add), function!(ffi::handler_register)],
    });
    let layouts = LAYOUT.get_or_init(|| Extension {
        struct_size: size_of::<Extension<6>>(),
        kind: LAYOUTS,
        next: std::ptr::from_ref(calls).cast_mut().cast(),
        functions: [
            function!(layouts::destroy),
            function!(layouts::serialize),
            function!(layouts::of_client),
            function!(layouts::of_buffer),
            function!(layouts::of_topology),
            function!(layouts::of_outputs),
        ],
    });
    std::ptr::from_ref(layouts).cast_mut().cast()
}
