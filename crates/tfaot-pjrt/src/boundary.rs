//! Between callers in C and functions in Rust: sizes of structs, null pointers, panics, errors.
use crate::failure::{Code, Failure};
use std::ffi::{c_char, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A function of the interface: a struct of arguments in, null or an error out.
pub type Function = unsafe extern "C" fn(*mut c_void) -> *mut c_void;

/// A struct of arguments.
///
/// # Safety
/// The struct is laid out as in C, and its first field is the number of bytes that the caller has of it.
pub unsafe trait Args {
    /// Bytes up to the end of the last field.
    const BYTES: usize;
}

/// Calls a function of the interface with the caller's struct.
///
/// # Safety
/// `args` is null or points to an `A` of which the caller has as many bytes as its first field says.
pub unsafe fn call<A: Args>(args: *mut c_void, function: fn(&mut A) -> Result<(), Failure>) -> *mut c_void {
    let attempt = || {
        if args.is_null() {
            return Err(Failure::new(Code::InvalidArgument, "the struct of arguments is null"));
        }
        // SAFETY: the first field of every struct of arguments is its size.
        let has = unsafe { args.cast::<usize>().read() };
        if has < A::BYTES {
            let told =
                format!("a struct of arguments has {has} bytes, and {} are needed: the caller is too old", A::BYTES);
            return Err(Failure::new(Code::InvalidArgument, told));
        }
        // SAFETY: the caller has all fields, and lends the struct to this call.
        function(unsafe { &mut *args.cast::<A>() })
    };
    match catch_unwind(AssertUnwindSafe(attempt)) {
        Ok(Ok(())) => std::ptr::null_mut(),
        Ok(Err(failure)) => failure.into_raw().cast(),
        Err(panic) => Failure::of_panic(&*panic).into_raw().cast(),
    }
}

/// The error of a function that the plugin has not.
pub fn refuse(name: &str) -> *mut c_void {
    Failure::new(Code::Unimplemented, format!("tfaot has no {name}")).into_raw().cast()
}

/// The object that a caller's pointer points at.
///
/// # Errors
/// `Code::InvalidArgument` for null.
pub fn object<'a, T>(pointer: *const T) -> Result<&'a T, Failure> {
    // SAFETY: pointers to objects come from this library, and callers keep them until they destroy them.
    unsafe { pointer.as_ref() }.ok_or_else(|| Failure::new(Code::InvalidArgument, "a pointer to an object is null"))
}

/// Gives an object to the caller.
pub fn give<T>(object: T) -> *mut T {
    Box::into_raw(Box::new(object))
}

/// Takes an object back and drops it; null is nothing.
pub fn take<T>(pointer: *mut T) {
    if !pointer.is_null() {
        // SAFETY: the object was given by `give`, and callers destroy it once.
        drop(unsafe { Box::from_raw(pointer) });
    }
}

/// The elements that a caller's pointer points at; none for null.
pub fn slice<'a, T>(pointer: *const T, count: usize) -> &'a [T] {
    if pointer.is_null() || count == 0 {
        return &[];
    }
    // SAFETY: callers pass a pointer with the number of elements behind it, and keep them during the call.
    unsafe { std::slice::from_raw_parts(pointer, count) }
}

/// The text that a caller's pointer points at; bytes that are not UTF-8 are replaced.
pub fn text(pointer: *const c_char, count: usize) -> String {
    String::from_utf8_lossy(slice(pointer.cast::<u8>(), count)).into_owned()
}

/// Lends a text to the caller, as long as the text's owner lives.
pub fn lend(text: &str, pointer: &mut *const c_char, count: &mut usize) {
    *pointer = text.as_ptr().cast();
    *count = text.len();
}

/// Bytes that a caller keeps until it calls their deleter.
pub struct GivenBytes {
    /// The first byte.
    pub at: *const c_char,
    /// Number of bytes.
    pub count: usize,
    /// Argument of the deleter.
    pub owner: *mut Vec<u8>,
}

impl GivenBytes {
    /// Hands bytes over to a caller.
    pub fn new(bytes: Vec<u8>) -> GivenBytes {
        let (at, count) = (bytes.as_ptr().cast(), bytes.len());
        // the bytes stay where they are when the vector moves
        GivenBytes { at, count, owner: give(bytes) }
    }
}

/// Deleter of [`GivenBytes`].
pub unsafe extern "C" fn delete_bytes(owner: *mut c_void) {
    take(owner.cast::<Vec<u8>>());
}
