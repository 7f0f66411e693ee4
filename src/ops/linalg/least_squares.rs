//! Least squares, by the normal equations, or by singular values if matrices may lack full rank.
use super::jacobi::orthogonalize_rows;
use super::{adjoint, identity};
use crate::diag::Result;
use crate::dims;
use crate::hlo::symbolic::{Builder, InstId, Op};
use crate::hlo::symbolic::{DotDims, Transpose};
use crate::ops::fact::Fact;
use crate::ops::math::expr::build_formula;
use crate::ops::math::special::mul_scalar;
use crate::ops::op_lowering::op;
use crate::ops::{LowerCtx, OpLowering, ShapeCtx, Value};
use crate::symbolic::Dim;
use crate::tensor::DType;

/// Definitions of the ops of this file.
#[rustfmt::skip]
pub const ROWS: &[OpLowering] = &[
    op("MatrixSolveLs", "matrix rhs l2_regularizer -> output", least_squares).shape(least_squares_shape).dtypes(super::FIELDS),
];

/// Lowers `MatrixSolveLs`: the least-squares solution of minimum norm. With `fast` it solves the normal equations, with
/// `l2_regularizer` added to the diagonal. Otherwise nothing is added, and matrices may lack full rank.
///
/// Shapes: matrix `[.., m, n]`, rhs `[.., m, k]` -> `[.., n, k]`.
pub(super) fn least_squares(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (matrix, rhs) = (cx.dims(0)?, cx.dims(1)?);
    let ([batch @ .., m, n], [same @ .., rows, _]) = (&matrix[..], &rhs[..]) else {
        return Err(cx.shape_mismatch(format!("matrices {matrix:?} and right sides {rhs:?} do not fit")));
    };
    if batch != same || m != rows {
        return Err(cx.shape_mismatch(format!("matrices {matrix:?} and right sides {rhs:?} do not fit")));
    }
    let (a, y, l2) = (cx.arg(0)?, cx.arg(1)?, cx.arg(2)?);
    let fast = cx.node.bool("fast").unwrap_or(true);
    let b = &mut *cx.b;
    if !fast {
        let x = of_any_rank(b, a, y);
        return cx.one_output(x);
    }
    let turned = adjoint(b, a);
    let x = if m >= n {
        let square = regular(b, turned, a, l2);
        let side = batch_matmul(b, turned, y);
        solve(b, square, side)
    } else {
        let square = regular(b, a, turned, l2);
        let side = solve(b, square, y);
        batch_matmul(b, turned, side)
    };
    cx.one_output(x)
}

/// Minimum-norm least-squares solution by singular values. Singular values that rounding alone may produce count as zero, by
/// Eigen's rule for pivots.
fn of_any_rank(b: &mut Builder, a: InstId, y: InstId) -> InstId {
    let (of_a, of_y) = (b.dims(a).to_vec(), b.dims(y).to_vec());
    let outer = of_a.len() - 2;
    let (count, m, n, k) = (of_a[..outer].iter().product::<Dim>(), of_a[outer], of_a[outer + 1], of_y[outer + 1]);
    let dims = [&of_a[..outer], &[n, k]].concat();
    if crate::symbolic::has_zero(&[count, m, n, k]) {
        return b.full(b.dtype(a), &dims, 0.0);
    }
    let (a, y) = (b.reshape(a, &dims![count, m, n]), b.reshape(y, &dims![count, m, k]));
    let turned = orthogonalize_rows(b, a);
    let (left, right) = turned.singular_vectors(b);
    let largest = b.slice_axis(turned.sizes, 1, Dim::from(0), Dim::from(1));
    let epsilon = if b.dtype(largest) == DType::F64 { f64::EPSILON } else { f64::from(f32::EPSILON) };
    let rounding = match m.min(n) {
        fewer if fewer.varies() => {
            let fewer = b.full_like(largest, fewer);
            mul_scalar(b, fewer, epsilon)
        }
        fewer => b.full_like(largest, epsilon * fewer.as_f64()),
    };
    let inverse = build_formula(b, [turned.sizes, largest, rounding], |[size, largest, rounding]| {
        let least = largest * rounding;
        let least = least.build(|b| b.broadcast_to(least.id, &dims![count, m.min(n)]));
        (1.0 / size).select_where(size.gt(least), 0.0)
    });
    let left = adjoint(b, left);
    let side = batch_matmul(b, left, y);
    let inverse = b.convert(inverse, b.dtype(side));
    let inverse = b.broadcast(inverse, &dims![count, m.min(n), k], &[0, 1]);
    let side = b.mul(side, inverse);
    let x = batch_matmul(b, right, side);
    b.reshape(x, &dims)
}

/// Matrix products of two batches.
pub(super) fn batch_matmul(b: &mut Builder, x: InstId, y: InstId) -> InstId {
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

/// Product of two batches, with a scalar added to its diagonal.
fn regular(b: &mut Builder, x: InstId, y: InstId, l2: InstId) -> InstId {
    let square = batch_matmul(b, x, y);
    let (dims, dtype) = (b.dims(square).to_vec(), b.dtype(square));
    let l2 = b.convert(l2, dtype);
    let l2 = b.broadcast(l2, &dims, &[]);
    let ones = identity(b, dtype, &dims);
    let added = b.mul(ones, l2);
    b.add(square, added)
}

/// Solves positive definite systems by Cholesky factorization.
fn solve(b: &mut Builder, a: InstId, y: InstId) -> InstId {
    let factor = b.add_inst(Op::Cholesky { lower: true }, &[a]);
    let mut half = |y: InstId, transpose_a: Transpose| {
        let solve = Op::TriangularSolve { left_side: true, lower: true, unit_diagonal: false, transpose_a };
        b.add_inst(solve, &[factor, y])
    };
    let y = half(y, Transpose::No);
    half(y, Transpose::Adjoint)
}

/// Shape function of least squares: as many rows as the matrices have columns, and the columns of the right-hand sides.
pub(super) fn least_squares_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    match (cx.ranked_dims(0)?.as_deref(), cx.ranked_dims(1)?.as_deref()) {
        (Some([batch @ .., _, n]), Some([.., _, k])) => cx.one_output_like(0, [batch, &[*n, *k]].concat()),
        (Some(_), Some(_)) => Err(cx.shape_mismatch("matrices are needed")),
        (first, _) => {
            let dims = cx.unranked_from(usize::from(first.is_some()));
            cx.one_output_like(0, dims)
        }
    }
}
