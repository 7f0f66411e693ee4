//! Running compiled code in this process: loading objects, calling their functions, threads, and the arguments of calls.
//!
//! A [`Model`] is a loaded object; an [`Instance`] has the values of its variables too; a [`Session`] has the memory of many calls,
//! for measurements. An [`Interpreter`] evaluates the same functions without compiling them.
//!
//! Kernels are verified before they become code, but the code that LLVM makes of them is not. So [`Model::call_guarded`] calls a
//! function twice with every array between guard pages ([`guard_pages`]), once ending at the page behind it, aligned as its
//! elements alone, which is all that the C header asks of callers, and once beginning behind the page before it. Arguments
//! can't be written. A memory fault becomes a message that names the array.
mod abi;
pub mod arguments;
pub mod calls;
pub mod guard_pages;
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

pub use instance::{Instance, call_once, compile_and_call};
pub use interpreter::{Interpreter, interpret};
pub use model::Model;
pub use pool::ThreadPool;
pub use ranks::call_ranks;
pub use session::{KernelTime, Session};
pub use weights::WeightSource;

#[cfg(test)]
mod tests;
