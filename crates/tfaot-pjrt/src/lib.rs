//! A PJRT plugin: `libtfaot_pjrt.so` has the C interface by which JAX and other programs compile and run StableHLO, and tfaot behind it.
//!
//! A program calls `GetPjrtApi` and gets a table of functions (`table.rs`), each of which takes one struct of arguments (`c_api/`).
//! `boundary.rs` stands between: it checks the struct's size, keeps panics from unwinding into the caller, and makes objects of errors.
//! Behind it are the objects that the interface names: a client with its devices and memories, buffers, events, and executables, whose
//! code tfaot compiles for the processor at hand and loads into the process without a linker.
//!
//! Calls run on the thread that asks for them, and on the threads of one pool; when a function returns, what it promised is done, so that
//! every event is ready at once but for those that callers make.
//!
//! Source of the interface: `xla/pjrt/c/pjrt_c_api.h`, version 0.90, and the headers of its extensions.
mod boundary;
mod buffer;
mod c_api;
mod client;
mod compile;
mod compile_options;
mod device;
mod element;
mod event;
mod executable;
mod execute;
mod extensions;
mod failure;
mod ffi;
mod host;
mod layouts;
mod memory;
mod named_values;
mod optimized_text;
mod plugin;
mod program;
mod serialize;
mod storage;
mod table;
#[cfg(test)]
mod tests;
mod topology;

/// The table of the interface's functions, by which a program uses the plugin.
#[unsafe(no_mangle)]
pub extern "C" fn GetPjrtApi() -> *const table::Api {
    table::api()
}
