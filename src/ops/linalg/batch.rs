//! Ops on batches of matrices under their names from before TensorFlow 1.0, and eigenvalues stacked on eigenvectors in one
//! array.
use super::jacobi::{hermitian_eigen, self_adjoint_eig, svd};
use super::least_squares::{least_squares, least_squares_shape};
use super::{cholesky, determinant, determinant_shape, inverse, solve, solve_shape, square, triangular_solve};
use crate::diag::Result;
use crate::dims;
use crate::ops::fact::Fact;
use crate::ops::op_lowering::op;
use crate::ops::shape::like_first_input;
use crate::ops::{LowerCtx, OpLowering, ShapeCtx, Value};
use crate::symbolic::Dim;
use crate::tensor::DType;

const REAL: &str = "f32, f64";

/// Definitions of the ops of this file.
#[rustfmt::skip]
pub const ROWS: &[OpLowering] = &[
    op("BatchCholesky",              "input -> output",        cholesky).shape(like_first_input).dtypes(REAL),
    op("BatchMatrixDeterminant",     "input -> output",        determinant).shape(|cx| determinant_shape(cx, 1)).dtypes(super::FIELDS),
    op("BatchMatrixInverse",         "input -> output",        inverse).shape(like_first_input).dtypes(REAL),
    op("BatchMatrixSolve",           "matrix rhs -> output",   solve).shape(solve_shape).dtypes(REAL),
    op("BatchMatrixSolveLs",         "matrix rhs l2_regularizer -> output", least_squares).shape(least_squares_shape).dtypes(REAL),
    op("BatchMatrixTriangularSolve", "matrix rhs -> output",   triangular_solve).shape(solve_shape).dtypes(REAL),
    op("BatchSelfAdjointEig",        "input -> output",        stacked).shape(stacked_shape).dtypes(REAL),
    op("SelfAdjointEig",             "input -> output",        stacked).shape(stacked_shape).dtypes(REAL),
    op("BatchSelfAdjointEigV2",      "input -> e v",           self_adjoint_eig).dtypes(REAL),
    op("BatchSvd",                   "input -> s u v",         svd).dtypes(super::FIELDS),
];

/// Lowers `SelfAdjointEig`: eigenvalues of symmetric matrices `[batch.., n, n]` in ascending order, with the eigenvectors as
/// columns below them: `[batch.., n + 1, n]`.
fn stacked(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (dims, n) = square(cx, 0)?;
    match cx.dtype(0)? {
        DType::F32 | DType::F64 => {}
        other => return Err(cx.unsupported_case(format!("{} of {other}; {REAL} are supported", cx.node.op))),
    }
    let (batch, x) = (&dims[..dims.len() - 2], cx.arg(0)?);
    let b = &mut *cx.b;
    let count = batch.iter().product::<Dim>();
    let x = b.reshape(x, &dims![count, n, n]);
    let (values, vectors) = hermitian_eigen(b, x);
    let values = b.reshape(values, &dims![count, 1, n]);
    let both = b.concatenate(&[values, vectors], 1);
    let both = b.reshape(both, &[batch, &[n + 1, n]].concat());
    cx.one_output(both)
}

fn stacked_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    match cx.ranked_dims(0)?.as_deref() {
        Some([batch @ .., rows, columns]) => {
            let n = cx.merge_dim(*rows, *columns).ok_or_else(|| cx.shape_mismatch("square matrices are needed"))?;
            let longer = cx.add(n, crate::ops::symbols::InferredDim::Known(1));
            cx.one_output_like(0, [batch, &[longer, n]].concat())
        }
        Some(_) => Err(cx.shape_mismatch("matrices are needed")),
        None => {
            let dims = cx.unranked_from(0);
            cx.one_output_like(0, dims)
        }
    }
}
