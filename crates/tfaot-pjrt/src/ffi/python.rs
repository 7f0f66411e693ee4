//! Callbacks into Python, which JAX makes of `pure_callback`, `io_callback` and `debug.callback`.
//!
//! JAX hands a list of callables to each execution as data for handlers (`xla::FfiLoadedHostCallbacks`), and a call names one of them by its
//! attribute `index`. The Python package provides the function that calls it with arrays: [`TfaotSetPythonCaller`].
use super::context::UserData;
use super::structs::Buffer;
use crate::failure::{Code, Failure};
use std::ffi::{c_char, c_int, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};

/// The functions by which JAX's programs call back; of shards the one or the other.
const CALLBACKS: [&str; 2] = ["xla_ffi_python_cpu_callback", "xla_ffi_partitioned_python_cpu_callback"];

/// Calls a Python callable: the callable, arrays that it reads with their number, arrays for its results with theirs, and memory for a
/// message. Returns 0, or 1 with a message.
type PythonCaller =
    unsafe extern "C" fn(*mut c_void, *const Buffer, usize, *const Buffer, usize, *mut c_char, usize) -> c_int;

/// Bytes of memory for the message of an exception, with its traceback.
const MESSAGE_BYTES: usize = 1 << 16;

static CALLER: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());

/// Sets the function that calls Python callables; null for none.
///
/// # Safety
/// The function is one of [`PythonCaller`], and stays to the end of the process.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TfaotSetPythonCaller(caller: *mut c_void) {
    CALLER.store(caller, Ordering::Release);
}

fn caller() -> Option<PythonCaller> {
    // SAFETY: the pointer is null, which is none, or was set as one to such a function.
    unsafe { std::mem::transmute::<*mut c_void, Option<PythonCaller>>(CALLER.load(Ordering::Acquire)) }
}

/// Whether a name is that of callbacks, and Python is there.
pub fn is_callback(name: &str) -> bool {
    CALLBACKS.contains(&name) && caller().is_some()
}

/// `xla::FfiLoadedHostCallbacks`.
#[repr(C)]
struct HostCallbacks {
    callbacks: *const *mut c_void,
    count: usize,
}

/// Calls the callable `index` of an execution.
///
/// # Errors
/// `Code::FailedPrecondition` where the execution has no such callable; `Code::Internal` with the traceback of an exception.
pub fn call(user_data: &[UserData], index: Option<u64>, args: &[Buffer], results: &[Buffer]) -> Result<(), Failure> {
    let missing = || Failure::new(Code::FailedPrecondition, "the call has no such Python callback");
    let &[(_, callbacks)] = user_data else { return Err(missing()) };
    let index = index.and_then(|index| usize::try_from(index).ok()).ok_or_else(missing)?;
    // SAFETY: JAX hands a list of callbacks to executions, and nothing else.
    let all = unsafe { callbacks.cast::<HostCallbacks>().as_ref() }.ok_or_else(missing)?;
    if index >= all.count {
        return Err(missing());
    }
    // SAFETY: the list has as many callables as it says.
    let callable = unsafe { *all.callbacks.add(index) };
    let caller = caller().ok_or_else(missing)?;
    let mut message = vec![0u8; MESSAGE_BYTES];
    // SAFETY: the function takes the arrays with their numbers, and writes a message of at most so many bytes.
    let code = unsafe {
        caller(
            callable,
            args.as_ptr(),
            args.len(),
            results.as_ptr(),
            results.len(),
            message.as_mut_ptr().cast(),
            message.len(),
        )
    };
    if code == 0 {
        return Ok(());
    }
    let end = message.iter().position(|&byte| byte == 0).unwrap_or(message.len());
    let text = String::from_utf8_lossy(&message[..end]);
    Err(Failure::new(Code::Internal, format!("CpuCallback error calling callback: {text}")))
}
