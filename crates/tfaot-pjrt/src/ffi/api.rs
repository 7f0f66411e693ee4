//! `XLA_FFI_Api`: the functions that a handler may call.
use super::context::ExecutionContext;
use super::registry;
use super::structs::{ApiVersion, ExtensionBase, TypeInfo, VERSION};
use crate::boundary::{give, object, take};
use crate::failure::{Code, Failure};
use crate::storage::{ALIGN, Block};
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::sync::{Condvar, Mutex, PoisonError};

/// `XLA_FFI_Error`.
pub struct FfiError {
    code: c_int,
    message: CString,
}

/// Frees an error; null is none.
pub fn drop_error(error: *mut FfiError) {
    take(error);
}

/// The error that a handler returned, which is freed; none for null.
pub fn take_error(error: *mut FfiError) -> Result<(), Failure> {
    let Ok(own) = object(error) else { return Ok(()) };
    let failure = Failure::of_caller(own.code, own.message.to_string_lossy().into_owned());
    drop_error(error);
    Err(failure)
}

/// An error for a handler.
fn error_of(failure: Failure) -> *mut FfiError {
    let message = CString::new(failure.message().replace('\0', " ")).unwrap_or_default();
    give(FfiError { code: failure.code(), message })
}

/// `XLA_FFI_Future`: the end of a handler's work on other threads.
#[derive(Default)]
pub struct Future {
    outcome: Mutex<Option<Result<(), Failure>>>,
    is_set: Condvar,
}

impl Future {
    fn set(&self, outcome: Result<(), Failure>) {
        self.outcome.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(outcome);
        self.is_set.notify_all();
    }
}

/// Waits for the end of a handler's work, and frees the future.
pub fn wait(future: *mut Future) -> Result<(), Failure> {
    let Ok(own) = object(future) else { return Ok(()) };
    let mut outcome = own.outcome.lock().unwrap_or_else(PoisonError::into_inner);
    let result = loop {
        match outcome.take() {
            Some(result) => break result,
            None => outcome = own.is_set.wait(outcome).unwrap_or_else(PoisonError::into_inner),
        }
    };
    drop(outcome);
    take(future);
    result
}

/// Structs of arguments: the size, extensions, and fields as in the interface's header.
macro_rules! structs {
    ($($name:ident { $($field:ident: $type:ty),* })*) => {
        $(
            #[repr(C)]
            struct $name {
                struct_size: usize,
                extension_start: *mut ExtensionBase,
                $($field: $type,)*
            }
        )*
    };
}

type Context = *const ExecutionContext<'static>;

structs! {
    ErrorCreate { message: *const c_char, code: c_int }
    ErrorGetMessage { error: *mut FfiError, message: *const c_char }
    ErrorDestroy { error: *mut FfiError }
    StreamGet { context: Context, stream: *mut c_void }
    TypeRegister { name: super::structs::ByteSpan, type_id: *mut i64, type_info: *const TypeInfo }
    ContextGet { context: Context, type_id: *const i64, data: *mut c_void }
    StateSet { context: Context, stage: c_int, type_id: *const i64, state: *mut c_void }
    StateGet { context: Context, stage: c_int, type_id: *const i64, state: *mut c_void }
    MemoryAllocate { context: Context, size: usize, alignment: usize, data: *mut c_void }
    MemoryFree { context: Context, size: usize, data: *mut c_void }
    Schedule { context: Context, task: Option<unsafe extern "C" fn(*mut c_void)>, data: *mut c_void }
    NumThreads { context: Context, count: *mut i64 }
    FutureCreate { future: *mut Future }
    FutureSetAvailable { future: *mut Future }
    FutureSetError { future: *mut Future, error: *mut FfiError }
    RunIdGet { context: Context, run: i64 }
    DeviceOrdinalGet { context: Context, device: c_int }
    HandlerRegister { name: super::structs::ByteSpan }
}

/// Runs a function on a handler's struct, and makes an error of what it returns.
///
/// # Safety
/// `args` is null or points to the struct, which is the function's alone.
unsafe fn run<A>(args: *mut A, function: impl FnOnce(&mut A) -> Result<(), Failure>) -> *mut FfiError {
    let attempt = || {
        // SAFETY: the caller says that the struct is there, and lends it.
        let args = unsafe { args.as_mut() };
        function(args.ok_or_else(|| Failure::new(Code::InvalidArgument, "the struct of arguments is null"))?)
    };
    match std::panic::catch_unwind(std::panic::AssertUnwindSafe(attempt)) {
        Ok(Ok(())) => std::ptr::null_mut(),
        Ok(Err(failure)) => error_of(failure),
        Err(panic) => error_of(Failure::of_panic(&*panic)),
    }
}

/// A function of the table that returns an error.
macro_rules! entry {
    ($args:ident, $function:expr) => {{
        unsafe extern "C" fn entry(args: *mut $args) -> *mut FfiError {
            // SAFETY: handlers pass the struct that belongs to this function.
            unsafe { run(args, $function) }
        }
        entry as unsafe extern "C" fn(*mut $args) -> *mut FfiError as *const c_void
    }};
}

unsafe extern "C" fn error_create(args: *mut ErrorCreate) -> *mut FfiError {
    let Ok(args) = object(args) else { return std::ptr::null_mut() };
    let message = match args.message.is_null() {
        true => CString::default(),
        // SAFETY: the message ends with a zero, as the interface says.
        false => unsafe { CStr::from_ptr(args.message) }.to_owned(),
    };
    give(FfiError { code: args.code, message })
}

unsafe extern "C" fn error_message(args: *mut ErrorGetMessage) {
    // SAFETY: handlers pass the struct that belongs to this function.
    if let Some(args) = unsafe { args.as_mut() } {
        args.message = object(args.error).map_or(c"".as_ptr(), |error| error.message.as_ptr());
    }
}

unsafe extern "C" fn error_destroy(args: *mut ErrorDestroy) {
    if let Ok(args) = object(args) {
        drop_error(args.error);
    }
}

/// Allocates memory that lives until the handler frees it, or to the end of the call.
fn allocate(args: &mut MemoryAllocate) -> Result<(), Failure> {
    if args.alignment > ALIGN {
        let told = format!("memory aligned to {} bytes, and {ALIGN} is the most", args.alignment);
        return Err(Failure::new(Code::Unimplemented, told));
    }
    let block = Block::new(args.size)?;
    args.data = block.as_ptr().cast();
    object(args.context)?.memory.lock().unwrap_or_else(PoisonError::into_inner).push(block);
    Ok(())
}

fn free(args: &mut MemoryFree) -> Result<(), Failure> {
    let mut all = object(args.context)?.memory.lock().unwrap_or_else(PoisonError::into_inner);
    let at = all.iter().position(|block| block.as_ptr() == args.data.cast());
    let at = at.ok_or_else(|| Failure::new(Code::NotFound, "the memory is not of this call"))?;
    drop(all.swap_remove(at));
    Ok(())
}

fn set_error(args: &mut FutureSetError) -> Result<(), Failure> {
    let outcome = take_error(args.error).and(Err(Failure::new(Code::InvalidArgument, "a future without an error")));
    object(args.future)?.set(outcome);
    Ok(())
}

fn register_type(args: &mut TypeRegister) -> Result<(), Failure> {
    let name = crate::boundary::text(args.name.ptr, args.name.len);
    let deleter = object(args.type_info).ok().and_then(|info| info.deleter);
    let id = registry::register_type(&name, *object(args.type_id)?, deleter)?;
    // SAFETY: the number is the caller's, who lends it to be written.
    unsafe { args.type_id.write(id) };
    Ok(())
}

/// Runs a task at once, on the thread of the handler, as the interface allows.
fn schedule(args: &mut Schedule) -> Result<(), Failure> {
    let task = args.task.ok_or_else(|| Failure::new(Code::InvalidArgument, "the task is null"))?;
    // SAFETY: the handler passes the task with its data.
    unsafe { task(args.data) };
    Ok(())
}

fn thread_count(args: &mut NumThreads) -> Result<(), Failure> {
    object(args.count)?;
    // SAFETY: the number is the caller's, who lends it to be written.
    unsafe { args.count.write(1) };
    Ok(())
}

fn refuse(what: &str) -> Result<(), Failure> {
    Err(Failure::new(Code::Unimplemented, what))
}

/// `XLA_FFI_Api`.
#[repr(C)]
pub struct Api {
    struct_size: usize,
    extension_start: *mut ExtensionBase,
    version: ApiVersion,
    internal: *const c_void,
    functions: [*const c_void; 18],
}

// SAFETY: the table does not change.
unsafe impl Send for Api {}
// SAFETY: as above.
unsafe impl Sync for Api {}

/// The table of functions, which is the same for all calls.
pub fn api() -> *const Api {
    static TABLE: std::sync::OnceLock<Api> = std::sync::OnceLock::new();
    TABLE.get_or_init(|| Api {
        struct_size: size_of::<Api>(),
        extension_start: std::ptr::null_mut(),
        version: ApiVersion {
            struct_size: size_of::<ApiVersion>(),
            extension_start: std::ptr::null_mut(),
            major_version: VERSION[0],
            minor_version: VERSION[1],
        },
        internal: std::ptr::null(),
        functions: [
            error_create as unsafe extern "C" fn(*mut ErrorCreate) -> *mut FfiError as *const c_void,
            error_message as unsafe extern "C" fn(*mut ErrorGetMessage) as *const c_void,
            error_destroy as unsafe extern "C" fn(*mut ErrorDestroy) as *const c_void,
            entry!(HandlerRegister, |_| refuse("handlers register themselves with jax.ffi.register_ffi_target")),
            entry!(StreamGet, |_| refuse("a CPU has no streams")),
            entry!(TypeRegister, register_type),
            entry!(ContextGet, |args| {
                args.data = object(args.context)?.user_data(*object(args.type_id)?)?;
                Ok(())
            }),
            entry!(StateSet, |args| object(args.context)?.set_state(args.stage, *object(args.type_id)?, args.state)),
            entry!(StateGet, |args| {
                args.state = object(args.context)?.state(args.stage, *object(args.type_id)?)?;
                Ok(())
            }),
            entry!(MemoryAllocate, allocate),
            entry!(MemoryFree, free),
            entry!(Schedule, schedule),
            entry!(NumThreads, thread_count),
            entry!(FutureCreate, |args| {
                args.future = give(Future::default());
                Ok(())
            }),
            entry!(FutureSetAvailable, |args| {
                object(args.future)?.set(Ok(()));
                Ok(())
            }),
            entry!(FutureSetError, set_error),
            entry!(RunIdGet, |args| {
                args.run = object(args.context)?.run;
                Ok(())
            }),
            entry!(DeviceOrdinalGet, |args| {
                args.device = object(args.context)?.device;
                Ok(())
            }),
        ],
    })
}
