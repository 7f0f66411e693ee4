//! From compiled code to the functions that it calls: `tfaot_host_call`.
use super::context::UserData;
use super::site::CallSite;
use crate::failure::Failure;
use std::cell::Cell;
use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};

/// The execution of a program on one device, which its calls have in common.
pub struct CallContext<'a> {
    /// The calls of the program, by number.
    pub sites: &'a [CallSite],
    /// Data of the caller for handlers.
    pub user_data: &'a [UserData],
    /// The device.
    pub device: c_int,
    /// A number of the execution.
    pub run: i64,
    /// The error of a function that failed.
    pub failure: &'a Mutex<Option<Failure>>,
}

thread_local! {
    /// The execution that this thread is in; functions may run programs themselves.
    static CURRENT: Cell<*const CallContext<'static>> = const { Cell::new(std::ptr::null()) };
}

/// Puts the execution back that the thread was in before.
struct Previous(*const CallContext<'static>);

impl Drop for Previous {
    fn drop(&mut self) {
        CURRENT.set(self.0);
    }
}

/// Runs a program whose calls are those of `context`, on this thread.
pub fn with_context<T>(context: &CallContext, run: impl FnOnce() -> T) -> T {
    let _previous = Previous(CURRENT.replace(std::ptr::from_ref(context).cast()));
    run()
}

/// The function that compiled code calls: 0, or 1 where the function failed.
///
/// # Safety
/// The thread is in an execution of the program whose code calls, with the arrays of call `number`.
pub unsafe extern "C" fn host_call(number: u64, arrays: *const *mut u8) -> c_int {
    // SAFETY: the context lives as long as the thread is in the execution.
    let Some(context) = (unsafe { CURRENT.get().as_ref() }) else { return 1 };
    let site = usize::try_from(number).ok().and_then(|number| context.sites.get(number));
    let Some(site) = site else { return 1 };
    // SAFETY: the program passes the arrays of this call.
    let attempt = AssertUnwindSafe(|| unsafe { site.call(arrays, context) });
    let outcome = catch_unwind(attempt).unwrap_or_else(|panic| Err(Failure::of_panic(&*panic)));
    let Err(failure) = outcome else { return 0 };
    context.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(failure);
    1
}
