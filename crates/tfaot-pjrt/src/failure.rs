//! Errors as callers get them: a code and a message.
use crate::boundary::{lend, object, take};
use crate::c_api::base::{ErrorDestroyArgs, ErrorGetCodeArgs, ErrorMessageArgs};
use std::any::Any;
use std::ffi::c_int;
use tfaot::Error;

/// `PJRT_Error_Code`, as far as the plugin gives them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// The caller passed what is not valid.
    InvalidArgument = 3,
    /// There is no such object.
    NotFound = 5,
    /// There is not enough memory.
    ResourceExhausted = 8,
    /// An object is not in the state that a function needs.
    FailedPrecondition = 9,
    /// The plugin has no such function, or tfaot has no code for an operation.
    Unimplemented = 12,
    /// The plugin or the compiler is at fault.
    Internal = 13,
}

/// `PJRT_Error`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    code: c_int,
    message: String,
}

impl Failure {
    /// An error of the plugin.
    pub fn new(code: Code, message: impl Into<String>) -> Failure {
        Failure { code: code as c_int, message: message.into() }
    }

    /// An error with the number and message of a caller.
    pub fn of_caller(code: c_int, message: String) -> Failure {
        Failure { code, message }
    }

    /// The error for a panic, which is always a fault of tfaot.
    pub fn of_panic(panic: &(dyn Any + Send)) -> Failure {
        let text = panic.downcast_ref::<&str>().map(|s| s.to_string());
        let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
        Failure::new(Code::Internal, format!("tfaot has a fault: {text}"))
    }

    /// The number of the error.
    pub fn code(&self) -> c_int {
        self.code
    }

    /// The text of the error.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The error as an object of the caller.
    pub fn into_raw(self) -> *mut Failure {
        Box::into_raw(Box::new(self))
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        let code = match &error {
            Error::User(all) => match all.first().map(|d| d.code) {
                Some(tfaot::Code::TooLarge) => Code::ResourceExhausted,
                Some(tfaot::Code::HloUnsupported | tfaot::Code::UnsupportedCase | tfaot::Code::NoBody) => {
                    Code::Unimplemented
                }
                _ => Code::InvalidArgument,
            },
            Error::Internal { .. } => Code::Internal,
        };
        Failure::new(code, error.to_string())
    }
}

/// `PJRT_Error_Destroy`.
pub fn destroy(args: &mut ErrorDestroyArgs) -> Result<(), Failure> {
    take(args.error);
    Ok(())
}

/// `PJRT_Error_Message`.
pub fn message(args: &mut ErrorMessageArgs) -> Result<(), Failure> {
    lend(&object(args.error)?.message, &mut args.message, &mut args.message_size);
    Ok(())
}

/// `PJRT_Error_GetCode`.
pub fn code(args: &mut ErrorGetCodeArgs) -> Result<(), Failure> {
    args.code = object(args.error)?.code;
    Ok(())
}
