//! Execution of compiled code in this process: loading objects, calling their functions, threads, and the arguments of calls.
//!
//! A [`Model`] is a loaded object; an [`Instance`] adds the values of its variables; a [`Session`] keeps the memory for repeated calls
//! in measurements. An [`Interpreter`] evaluates the same functions without compiling them.
//!
//! Kernels are verified before code generation, but LLVM's output is not. [`Model::call_guarded`] therefore calls a function twice with
//! every array between guard pages ([`guard_pages`]): first with arrays that end at a guard page, with only the alignment of their
//! elements, which is all that the C header requires of callers, and then with arrays that begin behind a guard page. Arguments are
//! read-only. A memory fault becomes a message that names the array.
mod abi;
pub mod arguments;
pub mod calls;
mod executable;
pub mod guard_pages;
mod image;
mod instance;
mod interpreter;
mod library;
mod model;
pub mod npz;
mod pool;
mod ranks;
mod session;
pub mod sizes;
mod weights;

pub use executable::Executable;
pub use image::ExternalCode;
pub use instance::{Instance, call_once, compile_and_call};
pub use interpreter::{Interpreter, interpret};
pub use model::Model;
pub use pool::ThreadPool;
pub use ranks::{Communicator, call_ranks, on_ranks};
pub use session::{KernelTime, Session};
pub use weights::WeightSource;

#[cfg(test)]
mod tests;
