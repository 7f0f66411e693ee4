//! Computations that fold two values.
use crate::hlo::Computation;
use crate::scalar::ScalarOp;

/// The op of a computation that applies one op to its two parameters, if it is associative and vectors can be folded by it.
pub fn simple_fold(comp: &Computation) -> Option<ScalarOp> {
    comp.fold()?.op().filter(|op| *op != ScalarOp::Xor)
}
