//! Functions of the library beside PJRT's, by which the Python package registers handlers of several stages and types: the extension of
//! PJRT knows handlers of one stage alone.
use super::registry::{Bundle, register_handler, register_type};
use crate::boundary::{slice, text};
use crate::failure::Failure;
use std::ffi::{c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Memory of the caller for the message of an error, which ends with a zero.
#[repr(C)]
pub struct Message {
    at: *mut c_char,
    bytes: usize,
}

impl Message {
    /// Returns 0, or 1 with the message of an error.
    fn of(&self, function: impl FnOnce() -> Result<(), Failure>) -> c_int {
        let outcome = catch_unwind(AssertUnwindSafe(function)).unwrap_or_else(|panic| Err(Failure::of_panic(&*panic)));
        let Err(failure) = outcome else { return 0 };
        let text = failure.message().as_bytes();
        let count = text.len().min(self.bytes.saturating_sub(1));
        if !self.at.is_null() && self.bytes > 0 {
            // SAFETY: the caller has as many bytes as it says.
            unsafe {
                std::ptr::copy_nonoverlapping(text.as_ptr(), self.at.cast(), count);
                self.at.add(count).write(0);
            }
        }
        1
    }
}

/// Registers the handlers of a name for the stages instantiate, prepare, initialize and execute, null where there is none. Returns 0, or 1
/// with a message.
///
/// # Safety
/// `name` has `bytes` bytes, `stages` four pointers to handlers of XLA's FFI that stay to the end of the process.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TfaotRegisterHandler(
    name: *const c_char,
    bytes: usize,
    stages: *const *mut c_void,
    message: Message,
) -> c_int {
    message.of(|| {
        let mut all = [std::ptr::null_mut(); 4];
        all.iter_mut().zip(slice(stages, 4)).for_each(|(own, &stage)| *own = stage);
        register_handler(&text(name, bytes), Bundle::of_pointers(all))
    })
}

/// Registers a type of data that handlers keep, with the function that frees it; writes the type's number where it was 0. Returns 0, or 1
/// with a message.
///
/// # Safety
/// `name` has `bytes` bytes, and `id` is a number that stays during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TfaotRegisterType(
    name: *const c_char,
    bytes: usize,
    id: *mut i64,
    deleter: Option<unsafe extern "C" fn(*mut c_void)>,
    message: Message,
) -> c_int {
    message.of(|| {
        let given = *crate::boundary::object(id)?;
        let made = register_type(&text(name, bytes), given, deleter)?;
        // SAFETY: the number is the caller's, who lends it to be written.
        unsafe { id.write(made) };
        Ok(())
    })
}
