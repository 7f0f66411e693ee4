//! Least squares by the normal equations.
use super::{adjoint, identity};
use crate::diag::Result;
use crate::hlo::attrs::{DotDims, Transpose};
use crate::hlo::{Builder, InstId, Op};
use crate::ops::fact::Fact;
use crate::ops::row::op;
use crate::ops::{LowerCtx, OpRow, ShapeCtx, Value};

/// The rows of this file.
#[rustfmt::skip]
pub const ROWS: &[OpRow] = &[
    op("MatrixSolveLs", "matrix rhs l2_regularizer -> output", least_squares).shape(least_squares_shape).dtypes(super::FIELDS),
];

/// What is nearest to the right sides under the matrices, of all such what is smallest; `l2_regularizer` is added to the diagonal of the
/// matrices that are factored. Without `fast` TensorFlow factors the matrix itself, and finds its rank.
///
/// Shapes: matrix `[.., m, n]`, rhs `[.., m, k]` -> `[.., n, k]`.
fn least_squares(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    if !cx.node.bool("fast").unwrap_or(true) {
        return Err(cx.unsupported("least squares without `fast` are not supported; with it they are"));
    }
    let (matrix, rhs) = (cx.dims(0)?, cx.dims(1)?);
    let ([batch @ .., m, n], [same @ .., rows, _]) = (&matrix[..], &rhs[..]) else {
        return Err(cx.mismatch(format!("matrices {matrix:?} and right sides {rhs:?} do not fit")));
    };
    if batch != same || m != rows {
        return Err(cx.mismatch(format!("matrices {matrix:?} and right sides {rhs:?} do not fit")));
    }
    let (a, y, l2) = (cx.arg(0)?, cx.arg(1)?, cx.arg(2)?);
    let b = &mut *cx.b;
    let turned = adjoint(b, a);
    let x = if m >= n {
        let square = regular(b, turned, a, l2);
        let side = product(b, turned, y);
        solve(b, square, side)
    } else {
        let square = regular(b, a, turned, l2);
        let side = solve(b, square, y);
        product(b, turned, side)
    };
    cx.one(x)
}

/// The products of matrices.
fn product(b: &mut Builder, x: InstId, y: InstId) -> InstId {
    let rank = b.rank(x);
    let batch: Vec<usize> = (0..rank - 2).collect();
    let dims = DotDims {
        lhs_batch: batch.clone(),
        rhs_batch: batch,
        lhs_contracting: vec![rank - 1],
        rhs_contracting: vec![rank - 2],
    };
    b.dot(x, y, dims)
}

/// A product with a scalar added to its diagonal.
fn regular(b: &mut Builder, x: InstId, y: InstId, l2: InstId) -> InstId {
    let square = product(b, x, y);
    let (dims, dtype) = (b.dims(square).to_vec(), b.dtype(square));
    let l2 = b.convert(l2, dtype);
    let l2 = b.broadcast(l2, &dims, &[]);
    let ones = identity(b, dtype, &dims);
    let added = b.mul(ones, l2);
    b.add(square, added)
}

/// Solves systems of positive definite matrices.
fn solve(b: &mut Builder, a: InstId, y: InstId) -> InstId {
    let factor = b.add_inst(Op::Cholesky { lower: true }, &[a]);
    let mut half = |y: InstId, transpose_a: Transpose| {
        let solve = Op::TriangularSolve { left_side: true, lower: true, unit_diagonal: false, transpose_a };
        b.add_inst(solve, &[factor, y])
    };
    let y = half(y, Transpose::No);
    half(y, Transpose::Adjoint)
}

/// A row a column of the matrices, and the columns of the right sides.
fn least_squares_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    match (cx.ranked(0)?.as_deref(), cx.ranked(1)?.as_deref()) {
        (Some([batch @ .., _, n]), Some([.., _, k])) => cx.like(0, [batch, &[*n, *k]].concat()),
        (Some(_), Some(_)) => Err(cx.mismatch("matrices are needed")),
        (first, _) => {
            let dims = cx.unranked_from(usize::from(first.is_some()));
            cx.like(0, dims)
        }
    }
}
