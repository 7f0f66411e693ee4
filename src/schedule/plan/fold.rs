//! Computations that fold two values.
use crate::hlo::{Computation, Op};
use crate::scalar::ScalarOp;

/// The op of a computation that applies one op to its two parameters, if it is associative.
pub fn simple_fold(comp: &Computation) -> Option<ScalarOp> {
    let root = &comp[comp.root];
    let Op::Elementwise(op) = root.op else { return None };
    let known = matches!(
        op,
        ScalarOp::Add | ScalarOp::Multiply | ScalarOp::Maximum | ScalarOp::Minimum | ScalarOp::And | ScalarOp::Or
    );
    let mut operands = root.operands.clone();
    operands.sort_unstable();
    let mut params = comp.params.clone();
    params.sort_unstable();
    (known && params.len() == 2 && operands == params).then_some(op)
}
