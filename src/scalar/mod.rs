//! Pointwise meaning: one enum, [`ScalarOp`], with one reference ([`eval`]) and one emitter (`codegen/scalar.rs`).
pub mod eval;
pub mod formula;
mod op;
pub mod small_float;
pub mod sums;

pub use op::{CompareKind, Direction, PLAIN_OPS, ScalarOp};
