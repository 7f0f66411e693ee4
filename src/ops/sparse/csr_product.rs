//! Products of CSR matrices with dense matrices and with one another.
use super::csr::{TYPES, matrix_shape, sparse_matrix_input};
use crate::diag::{Code, Error, Result};
use crate::hlo::symbolic::InstId;
use crate::ops::array::data_dependent_ops::nonzero_indices;
use crate::ops::array::gather::{gather_along_axis, gather_nd};
use crate::ops::array::scatter::scatter;
use crate::ops::fact::Fact;
use crate::ops::math::unary::conj;
use crate::ops::op_lowering::op;
use crate::ops::symbols::UnknownReason;
use crate::ops::value::SparseMatrix;
use crate::ops::{LowerCtx, OpLowering, ShapeCtx, Value};
use crate::scalar::ScalarOp;
use crate::symbolic::Dim;
use crate::symbolic::constant_dims;
use crate::tensor::DType;

/// Definitions of the ops of this file.
#[rustfmt::skip]
pub const ROWS: &[OpLowering] = &[
    op("SparseMatrixMatMul", "a b -> output", with_dense).shape(product_shape).dtypes(TYPES),
    op("SparseMatrixSparseMatMul", "a b -> c", with_sparse).shape(matrix_shape).dtypes(TYPES),
];

/// Largest number of element products considered for a product of two sparse matrices.
const MOST_PRODUCTS: u64 = 1 << 28;

/// Operand `i`, transposed or conjugate-transposed by its flags.
fn operand(cx: &mut LowerCtx, i: usize) -> Result<SparseMatrix> {
    let which = if i == 0 { "a" } else { "b" };
    let (is_transposed, is_adjoint) =
        (cx.bool_attr(&format!("transpose_{which}")), cx.bool_attr(&format!("adjoint_{which}")));
    let matrix = sparse_matrix_input(cx, i)?;
    let matrix = if is_transposed || is_adjoint { matrix.transposed(cx)? } else { matrix };
    Ok(matrix.conjugated_if(cx, is_adjoint))
}

/// Matrix with its last two axes exchanged.
fn exchanged(cx: &mut LowerCtx, x: InstId) -> InstId {
    let rank = cx.b.rank(x);
    let mut order: Vec<usize> = (0..rank).collect();
    order.swap(rank - 2, rank - 1);
    cx.b.transpose(x, &order)
}

/// Lowers sparse times dense: each sparse element scales a row of the dense matrix, which is added to a row of the result, in
/// the order of the elements.
fn with_dense(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let a = operand(cx, 0)?;
    let mut b = cx.arg(1)?;
    let dtype = cx.b.dtype(a.values);
    let rank = a.dims.len();
    if cx.b.rank(b) != rank || cx.b.dtype(b) != dtype {
        return Err(cx.shape_mismatch(format!(
            "a product of a CSR matrix {:?} of {dtype} and {}",
            a.dims,
            cx.b.shape(b)
        )));
    }
    if cx.bool_attr("transpose_b") || cx.bool_attr("adjoint_b") {
        b = exchanged(cx, b);
    }
    if cx.bool_attr("adjoint_b") && dtype.is_complex() {
        b = conj(cx.b, b);
    }
    let dims = cx.b.dims(b).to_vec();
    let (rows, inner, m) = (a.dims[rank - 2], a.dims[rank - 1], dims[rank - 1]);
    if dims[..rank - 1] != [&a.dims[..rank - 2], &[inner]].concat() {
        return Err(cx.shape_mismatch(format!("a product of {:?} and {dims:?}", a.dims)));
    }
    let out = [&a.dims[..rank - 1], &[m.guarded_count()]].concat();
    let n = a.len(cx);
    let zeros = cx.b.full(dtype, &constant_dims(&out), 0.0);
    let mut y = zeros;
    if n > 0 && !crate::symbolic::has_zero(&dims) && !out.contains(&0) {
        let matrices: u64 = a.dims[..rank - 2].iter().product();
        let (mut row, mut at) = (a.index_column(cx, 1), a.index_column(cx, 0));
        if rank == 3 {
            let first = a.index_column(cx, 2);
            [row, at] = [(row, rows), (at, inner)].map(|(index, size)| {
                let size = cx.b.scalar(DType::S64, size as f64);
                let first = cx.b.mul(first, size);
                cx.b.add(first, index)
            });
        }
        let b = cx.b.reshape(b, &[Dim::from(matrices * inner), m]);
        let taken = gather_along_axis(cx, b, at, 0, 0)?;
        let factors = cx.b.broadcast(a.values, &[Dim::from(n), m], &[0]);
        let terms = cx.b.mul(taken, factors);
        let row = cx.b.reshape(row, &[Dim::from(n), Dim::from(1)]);
        let flat = cx.b.reshape(zeros, &[Dim::from(matrices * rows), m]);
        let sums = scatter(cx, flat, row, terms, Some(ScalarOp::Add))?;
        y = cx.b.reshape(sums, &constant_dims(&out));
    }
    if cx.bool_attr("transpose_output") {
        y = exchanged(cx, y);
    }
    if cx.bool_attr("conjugate_output") && dtype.is_complex() {
        y = conj(cx.b, y);
    }
    cx.one_output(y)
}

/// Mask of the positions of the dense array that have an element.
fn pattern(cx: &mut LowerCtx, a: &SparseMatrix) -> Result<InstId> {
    let none = cx.b.full(DType::Pred, &constant_dims(&a.dims), 0.0);
    let yes = cx.b.full(DType::Pred, &[Dim::from(a.len(cx))], 1.0);
    scatter(cx, none, a.indices, yes, None)
}

/// Lowers sparse times sparse: the result has an element wherever elements of both meet, even if their sum is 0.
fn with_sparse(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (a, b) = (operand(cx, 0)?, operand(cx, 1)?);
    let rank = a.dims.len();
    let (rows, inner) = (a.dims[rank - 2], a.dims[rank - 1]);
    let fits = b.dims.len() == rank && b.dims[..rank - 1] == [&a.dims[..rank - 2], &[inner]].concat();
    if !fits || cx.b.dtype(a.values) != cx.b.dtype(b.values) {
        return Err(cx.shape_mismatch(format!("a product of the CSR matrices {:?} and {:?}", a.dims, b.dims)));
    }
    let columns = b.dims[rank - 1];
    let all = [&a.dims[..rank - 2], &[rows, inner, columns]].concat();
    if all.iter().try_fold(1u64, |n, &d| n.checked_mul(d)).is_none_or(|n| n > MOST_PRODUCTS) {
        return Err(Error::user(
            Code::TooLarge,
            format!("a product of the CSR matrices {:?} and {:?}", a.dims, b.dims),
        ));
    }
    let lead: Vec<usize> = (0..rank - 2).collect();
    let (left, right) = ([&lead[..], &[rank - 2, rank - 1]].concat(), [&lead[..], &[rank - 1, rank]].concat());
    let spread = |cx: &mut LowerCtx, matrix: &SparseMatrix, map: &[usize]| -> Result<[InstId; 2]> {
        let both = [matrix.to_dense(cx, true)?, pattern(cx, matrix)?];
        Ok(both.map(|x| cx.b.broadcast(x, &constant_dims(&all), map)))
    };
    let ([x, has_x], [y, has_y]) = (spread(cx, &a, &left)?, spread(cx, &b, &right)?);
    let (product, meets) = (cx.b.mul(x, y), cx.b.binary(ScalarOp::And, has_x, has_y));
    let none = cx.b.full_like(product, 0.0);
    let terms = cx.b.select(meets, product, none);
    let (zero, no) = (cx.b.scalar(cx.b.dtype(terms), 0.0), cx.b.scalar(DType::Pred, 0.0));
    let sums = cx.b.reduce(terms, zero, ScalarOp::Add, &[rank - 1]);
    let is_there = cx.b.reduce(meets, no, ScalarOp::Or, &[rank - 1]);
    let [Value::Array(indices)] = nonzero_indices(&mut cx.with_args(vec![Value::Array(is_there)]))?[..] else {
        return Err(Error::internal("lower", "places without a result"));
    };
    let taken = gather_nd(&mut cx.with_args(vec![Value::Array(sums), Value::Array(indices)]))?;
    let [Value::Array(values)] = taken[..] else { return Err(Error::internal("lower", "a gather without a result")) };
    let dims = [&a.dims[..rank - 1], &[columns]].concat();
    Ok(vec![Value::Sparse(SparseMatrix { indices, values, dims })])
}

fn product_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let dims = cx.unranked(UnknownReason::NoShapeFunction);
    cx.one_output_typed_by("T", dims)
}
