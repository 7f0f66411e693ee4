//! `rnn_ops.cc`: cells of recurrent networks as single ops, and sequences of them.
mod gru;
mod lstm;
mod lstm_grad;

use super::OpLowering;
use crate::hlo::symbolic::DotDims;
use crate::hlo::symbolic::{Builder, InstId};

/// Definitions of the ops of this family.
pub const ROWS: &[&[OpLowering]] = &[gru::ROWS, lstm::ROWS, lstm_grad::ROWS];

/// Operand of a matrix product that is transposed, if any.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Transposed {
    Neither,
    Left,
    Right,
}

/// Product of two matrices.
fn product(b: &mut Builder, x: InstId, y: InstId, transposed: Transposed) -> InstId {
    let dims = DotDims {
        lhs_batch: vec![],
        rhs_batch: vec![],
        lhs_contracting: vec![usize::from(transposed != Transposed::Left)],
        rhs_contracting: vec![usize::from(transposed == Transposed::Right)],
    };
    b.dot(x, y, dims)
}

/// Vector repeated in every row of a matrix like `x`.
fn in_rows(b: &mut Builder, v: InstId, x: InstId) -> InstId {
    let dims = b.dims(x).to_vec();
    b.broadcast(v, &dims, &[1])
}

/// `1 - x`.
fn one_minus(b: &mut Builder, x: InstId) -> InstId {
    let one = b.full_like(x, 1.0);
    b.sub(one, x)
}

/// Product of several arrays, from left to right.
fn product_of(b: &mut Builder, factors: &[InstId]) -> InstId {
    let mut product = factors[0];
    for &factor in &factors[1..] {
        product = b.mul(product, factor);
    }
    product
}
