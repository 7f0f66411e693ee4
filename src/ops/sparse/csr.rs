//! CSR matrices in variants: conversions from and to sparse and dense tensors, transposition, and access to components.
//!
//! A matrix is a list of elements ([`SparseMatrix`]) in the given order: TensorFlow's kernels require ordered rows, and ignore
//! the order of columns.
use super::{column, columns};
use crate::diag::{Code, Error, Result};
use crate::graph::TfType;
use crate::hlo::symbolic::InstId;
use crate::ops::array::gather::{gather_along_axis, gather_nd};
use crate::ops::array::scatter::scatter;
use crate::ops::array::shape::{dims_constant, shape_from_input};
use crate::ops::fact::Fact;
use crate::ops::math::unary::conj;
use crate::ops::op_lowering::op;
use crate::ops::shape::{S32, S64};
use crate::ops::symbols::{InferredDim, UnknownReason};
use crate::ops::value::SparseMatrix;
use crate::ops::{LowerCtx, OpLowering, ShapeCtx, Value};
use crate::scalar::{Direction, ScalarOp};
use crate::symbolic::Dim;
use crate::symbolic::constant_dims;
use crate::symbolic::guarded_counts;
use crate::tensor::DType;

/// Definitions of the ops of this file.
#[rustfmt::skip]
pub const ROWS: &[OpLowering] = &[
    op("SparseTensorToCSRSparseMatrix", "indices values dense_shape -> sparse_matrix", from_sparse).shape(matrix_shape).constant_inputs(&[2]).dtypes(TYPES),
    op("DenseToCSRSparseMatrix", "dense_input indices -> sparse_output", from_dense).shape(matrix_shape).dtypes(TYPES),
    op("CSRSparseMatrixToDense", "sparse_input -> dense_output", to_dense).shape(dense_shape).dtypes(TYPES),
    op("CSRSparseMatrixToSparseTensor", "sparse_matrix -> indices values dense_shape", to_sparse).shape(sparse_shape).dtypes(TYPES),
    op("CSRSparseMatrixComponents", "csr_sparse_matrix index -> row_ptrs col_inds values", components).shape(components_shape).dtypes("f32, f64, c64, c128; one matrix"),
    op("SparseMatrixTranspose", "input -> output", transpose).shape(matrix_shape).dtypes(TYPES),
    op("SparseMatrixNNZ", "sparse_matrix -> nnz", count).shape(count_shape).dtypes(TYPES),
];

/// Supported element types.
pub const TYPES: &str = "f32, f64, c64, c128";

/// CSR matrix in input `i`.
pub fn sparse_matrix_input(cx: &LowerCtx, i: usize) -> Result<SparseMatrix> {
    match cx.args.get(i) {
        Some(Value::Sparse(matrix)) => Ok(matrix.clone()),
        Some(Value::Unavailable(_)) => Err(cx.unsupported_case("a CSR matrix that comes from outside of the graph")),
        _ => Err(Error::user(Code::TypeMismatch, format!("input {i} must be a CSR matrix in a variant"))),
    }
}

/// Value of a matrix, checked. Errors: `UnsupportedType`; `ShapeMismatch` unless it is a matrix or a vector of matrices.
fn checked(cx: &LowerCtx, matrix: SparseMatrix) -> Result<Vec<Value>> {
    let (dtype, rank) = (cx.b.dtype(matrix.values), matrix.dims.len());
    if !(matches!(dtype, DType::F32 | DType::F64) || dtype.is_complex()) {
        return Err(Error::user(Code::UnsupportedType, format!("a CSR matrix of {dtype}; {TYPES} are supported")));
    }
    let places = cx.b.dims(matrix.indices);
    if !matches!(rank, 2 | 3)
        || places.len() != 2
        || places[1] != rank as u64
        || cx.b.dims(matrix.values) != &places[..1]
    {
        return Err(cx.shape_mismatch(format!("indices {places:?} of a CSR matrix of {:?}", matrix.dims)));
    }
    Ok(vec![Value::Sparse(matrix)])
}

fn from_sparse(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (indices, values, dims) = (cx.arg(0)?, cx.arg(1)?, shape_from_input(cx, 2)?);
    checked(cx, SparseMatrix { indices, values, dims: guarded_counts(&dims) })
}

fn from_dense(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (dense, indices) = (cx.arg(0)?, cx.arg(1)?);
    let dims = cx.b.dims(dense).to_vec();
    let mut own = cx.with_args(vec![Value::Array(dense), Value::Array(indices)]);
    let [Value::Array(values)] = gather_nd(&mut own)?[..] else {
        return Err(Error::internal("lower", "a gather without a result"));
    };
    checked(cx, SparseMatrix { indices, values, dims: guarded_counts(&dims) })
}

impl SparseMatrix {
    /// Column `k` of the indices, counted from the last one, the matrix column.
    pub fn index_column(&self, cx: &mut LowerCtx, k: usize) -> InstId {
        column(cx, self.indices, self.dims.len() - 1 - k)
    }
    /// Number of stored elements of the sparse matrix.
    pub fn len(&self, cx: &LowerCtx) -> u64 {
        cx.b.dims(self.values)[0].guarded_count()
    }
    /// Converts the matrix to a dense array. Of elements at one position the last one counts, or with `adds` their sum.
    ///
    /// # Errors
    /// `ShapeMismatch` if the indices do not fit the sizes.
    pub fn to_dense(&self, cx: &mut LowerCtx, adds: bool) -> Result<InstId> {
        let zeros = cx.b.full(cx.b.dtype(self.values), &constant_dims(&self.dims), 0.0);
        scatter(cx, zeros, self.indices, self.values, adds.then_some(ScalarOp::Add))
    }
    /// Transpose of each matrix.
    ///
    /// # Errors
    /// `ShapeMismatch` if the indices do not fit the sizes.
    pub fn transposed(&self, cx: &mut LowerCtx) -> Result<SparseMatrix> {
        let rank = self.dims.len();
        let n = self.len(cx);
        let mut all: Vec<InstId> = (0..rank).map(|k| column(cx, self.indices, k)).collect();
        all.swap(rank - 2, rank - 1);
        let mut dims = self.dims.clone();
        dims.swap(rank - 2, rank - 1);
        let mut keys = all[rank - 2];
        if rank == 3 {
            let rows = cx.b.scalar(DType::S64, dims[1] as f64);
            let first = cx.b.mul(all[0], rows);
            keys = cx.b.add(first, keys);
        }
        let indices = columns(cx, &all, Dim::from(n));
        let order = super::order::sorting_permutation(cx, keys);
        let (indices, values) =
            (gather_along_axis(cx, indices, order, 0, 0)?, gather_along_axis(cx, self.values, order, 0, 0)?);
        Ok(SparseMatrix { indices, values, dims })
    }
    /// Complex conjugate of the elements if `is_conjugated`.
    pub fn conjugated_if(self, cx: &mut LowerCtx, is_conjugated: bool) -> SparseMatrix {
        if !(is_conjugated && cx.b.dtype(self.values).is_complex()) {
            return self;
        }
        SparseMatrix { values: conj(cx.b, self.values), ..self }
    }
}

fn to_dense(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let dense = sparse_matrix_input(cx, 0)?.to_dense(cx, false)?;
    cx.one_output(dense)
}

fn to_sparse(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let matrix = sparse_matrix_input(cx, 0)?;
    let shape = dims_constant(cx, DType::S64, &[Dim::from(matrix.dims.len() as u64)], &constant_dims(&matrix.dims))?;
    Ok([matrix.indices, matrix.values, shape].map(Value::Array).to_vec())
}

/// Lowers `CSRSparseMatrixComponents`: row pointers, the column of each element, and the elements.
fn components(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let matrix = sparse_matrix_input(cx, 0)?;
    let &[rows, _] = &matrix.dims[..] else {
        return Err(cx.unsupported_case("the parts of one of several CSR matrices"));
    };
    let pairs = [rows + 1, matrix.len(cx)];
    let row = matrix.index_column(cx, 1);
    let row = cx.b.broadcast(row, &pairs.map(Dim::from), &[1]);
    let ends = cx.b.iota(DType::S64, &pairs.map(Dim::from), 0);
    let is_before = cx.b.compare(Direction::Lt, row, ends);
    let begins = counted(cx, is_before, 1);
    let at = matrix.index_column(cx, 0);
    let at = cx.b.convert(at, DType::S32);
    Ok([begins, at, matrix.values].map(Value::Array).to_vec())
}

/// Number of true values along an axis, `s32`.
fn counted(cx: &mut LowerCtx, mask: InstId, axis: usize) -> InstId {
    let ones = cx.b.convert(mask, DType::S32);
    let zero = cx.b.scalar(DType::S32, 0.0);
    cx.b.reduce(ones, zero, ScalarOp::Add, &[axis])
}

fn transpose(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let transposed = sparse_matrix_input(cx, 0)?.transposed(cx)?;
    let transposed = transposed.conjugated_if(cx, cx.bool_attr("conjugate"));
    Ok(vec![Value::Sparse(transposed)])
}

/// Lowers `SparseMatrixNNZ`: the number of elements of each matrix.
fn count(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let matrix = sparse_matrix_input(cx, 0)?;
    let n = matrix.len(cx);
    let y = match matrix.dims[..] {
        [matrices, ..] if matrix.dims.len() == 3 => {
            let pairs = [matrices, n];
            let own = matrix.index_column(cx, 2);
            let (own, each) =
                (cx.b.broadcast(own, &pairs.map(Dim::from), &[1]), cx.b.iota(DType::S64, &pairs.map(Dim::from), 0));
            let is_own = cx.b.compare(Direction::Eq, own, each);
            counted(cx, is_own, 1)
        }
        _ => dims_constant(cx, DType::S32, &[], &[Dim::from(n)])?,
    };
    cx.one_output(y)
}

/// Shape function of ops that return a CSR matrix in a variant.
pub fn matrix_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    cx.one_output(TfType::Variant, vec![])
}

fn dense_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let dims = cx.unranked(UnknownReason::NoShapeFunction);
    cx.one_output_typed_by("type", dims)
}

fn sparse_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let (n, rank) = (cx.fresh_dim(UnknownReason::NoShapeFunction), cx.fresh_dim(UnknownReason::NoShapeFunction));
    let indices = cx.one_output(S64, vec![n, rank])?;
    let values = cx.one_output_typed_by("type", vec![n])?;
    let shape = cx.one_output(S64, vec![rank])?;
    Ok([indices, values, shape].concat())
}

fn components_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let (rows, n): (InferredDim, InferredDim) =
        (cx.fresh_dim(UnknownReason::NoShapeFunction), cx.fresh_dim(UnknownReason::NoShapeFunction));
    let (begins, at) = (cx.one_output(S32, vec![rows])?, cx.one_output(S32, vec![n])?);
    let values = cx.one_output_typed_by("type", vec![n])?;
    Ok([begins, at, values].concat())
}

fn count_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let dims = cx.unranked(UnknownReason::NoShapeFunction);
    cx.one_output(S32, dims)
}
