//! Computations that fold two values.
use crate::hlo::Computation;
use crate::scalar::ScalarOp;

/// The op that a computation applies to its two parameters, if it is associative and supported as a vector reduction.
pub fn associative_op(comp: &Computation) -> Option<ScalarOp> {
    comp.as_fold()?.op().filter(|op| *op != ScalarOp::Xor)
}
