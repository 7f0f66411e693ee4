//! Functions of the user that compiled programs call: handlers of XLA's FFI, and callbacks into Python.
//!
//! `registry.rs` has the handlers by name, and the types that they keep data of; a program finds its handlers when it is loaded
//! (`site.rs`), with the attributes of each call as the structs that handlers read (`attributes.rs`). Compiled code then calls
//! `tfaot_host_call` with the number of the call (`call.rs`), on the thread that runs the program; `api.rs` has the functions that a handler
//! may call meanwhile. `python.rs` calls back into Python through a function that the Python package provides.
//!
//! Source: `xla/ffi/api/c_api.h` of the version in [`structs::VERSION`].
mod api;
mod attributes;
mod call;
mod context;
mod exports;
mod python;
mod registry;
mod site;
mod structs;
#[cfg(test)]
mod tests;

pub use call::{CallContext, host_call, with_context};
pub use context::UserData;
pub use registry::is_callable;
pub use site::{CallFacts, CallSite};

use crate::boundary::{object, text};
use crate::c_api::ffi::{FfiRegisterHandlerArgs, FfiTypeRegisterArgs, FfiUserDataAddArgs};
use crate::failure::{Code, Failure};
use registry::{Bundle, register_handler, register_type};

/// `PJRT_FFI_Type_Register`.
pub fn type_register(args: &mut FfiTypeRegisterArgs) -> Result<(), Failure> {
    let name = text(args.type_name, args.type_name_size);
    let deleter = object(args.type_info.cast_const()).ok().and_then(|info| info.deleter);
    args.type_id = register_type(&name, args.type_id, deleter)?;
    Ok(())
}

/// `PJRT_FFI_UserData_Add`.
pub fn user_data_add(args: &mut FfiUserDataAddArgs) -> Result<(), Failure> {
    object(args.context)?.add_user_data(args.type_id, args.data);
    Ok(())
}

/// `PJRT_FFI_Register_Handler`.
pub fn handler_register(args: &mut FfiRegisterHandlerArgs) -> Result<(), Failure> {
    let name = text(args.target_name, args.target_name_size);
    if args.handler.is_null() {
        return Err(Failure::new(Code::InvalidArgument, format!("the handler of `{name}` is null")));
    }
    let none = std::ptr::null_mut();
    register_handler(&name, Bundle::of_pointers([none, none, none, args.handler]))
}
