//! Operations on a sparse and a dense tensor, and reductions of sparse tensors to dense ones.
use super::indices;
use crate::diag::Result;
use crate::hlo::symbolic::Dim;
use crate::hlo::symbolic::InstId;
use crate::ops::array::gather::gather_along_axis;
use crate::ops::array::scatter::{NanResult, extremum_computation, scatter, scatter_with_computation};
use crate::ops::array::shape::shape_from_input;
use crate::ops::fact::Fact;
use crate::ops::op_lowering::op;
use crate::ops::symbols::UnknownReason;
use crate::ops::{LowerCtx, OpLowering, ShapeCtx, Value};
use crate::scalar::{Direction, ScalarOp};
use crate::symbolic::constant_dims;
use crate::symbolic::guarded_counts;
use crate::tensor::DType;

/// Definitions of the ops of this file.
pub const ROWS: &[OpLowering] = &[
    op("SparseTensorDenseMatMul", "a_indices a_values a_shape b -> product", product)
        .shape(product_shape)
        .constant_inputs(&[2]),
    op("SparseTensorDenseAdd", "a_indices a_values a_shape b -> output", add)
        .shape(|cx| cx.one_output_like(3, cx.dims(3)?)),
    op("SparseDenseCwiseAdd", "sp_indices sp_values sp_shape dense -> output", |cx| pointwise(cx, ScalarOp::Add))
        .shape(|cx| cx.one_output_like(1, cx.dims(1)?)),
    op("SparseDenseCwiseMul", "sp_indices sp_values sp_shape dense -> output", |cx| pointwise(cx, ScalarOp::Multiply))
        .shape(|cx| cx.one_output_like(1, cx.dims(1)?)),
    op("SparseDenseCwiseDiv", "sp_indices sp_values sp_shape dense -> output", |cx| pointwise(cx, ScalarOp::Divide))
        .shape(|cx| cx.one_output_like(1, cx.dims(1)?)),
    op("SparseReduceSum", "input_indices input_values input_shape reduction_axes -> output", |cx| {
        reduce(cx, ScalarOp::Add)
    })
    .shape(reduce_shape)
    .constant_inputs(&[2, 3]),
    op("SparseReduceMax", "input_indices input_values input_shape reduction_axes -> output", |cx| {
        reduce(cx, ScalarOp::Maximum)
    })
    .shape(reduce_shape)
    .constant_inputs(&[2, 3])
    .dtypes("real numbers"),
];

/// Type in which values of `dtype` are accumulated.
fn wide(dtype: DType) -> DType {
    if dtype.is_float() && dtype.bits() < 32 { DType::F32 } else { dtype }
}

/// Lowers `SparseTensorDenseMatMul`: each sparse element scales a row of `b`, which is added to a row of the result, in the
/// order of the elements.
///
/// Shapes: `a_indices s64[n, 2]`, `a_values [n]`, `b [k, m]` -> `[rows, m]`.
fn product(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let ((places, n, rank), values, shape, b) = (indices(cx, 0)?, cx.arg(1)?, shape_from_input(cx, 2)?, cx.arg(3)?);
    let (adjoint_a, adjoint_b) = (cx.bool_attr("adjoint_a"), cx.bool_attr("adjoint_b"));
    let (dtype, dims) = (cx.b.dtype(values), cx.b.dims(b).to_vec());
    let (&[rows, inner], 2, &[x, y]) = (&shape[..], rank, &dims[..]) else {
        return Err(cx.shape_mismatch(format!("a product of {shape:?} and {dims:?}; matrices are needed")));
    };
    let (rows, inner) = if adjoint_a { (inner, rows) } else { (rows, inner) };
    let (k, m) = if adjoint_b { (y, x) } else { (x, y) };
    if inner != k || cx.b.dims(values) != [n] {
        return Err(cx.shape_mismatch(format!("a product of {rows} by {inner} and {k} by {m}, {n} elements given")));
    }
    let conjugated = |cx: &mut LowerCtx, x: InstId, adjoint: bool| {
        if adjoint && dtype.is_complex() { crate::ops::math::unary::conj(cx.b, x) } else { x }
    };
    let (values, b) = (conjugated(cx, values, adjoint_a), conjugated(cx, b, adjoint_b));
    let b = if adjoint_b { cx.b.transpose(b, &[1, 0]) } else { b };
    let (values, b) = (cx.b.convert(values, wide(dtype)), cx.b.convert(b, wide(dtype)));
    let zeros = cx.b.full(wide(dtype), &[rows, m], 0.0);
    if crate::symbolic::has_zero(&[n, rows, m, k]) {
        let y = cx.b.convert(zeros, dtype);
        return cx.one_output(y);
    }
    let (row, at) = if adjoint_a { (1, 0) } else { (0, 1) };
    let (row, at) = (cx.b.slice_axis(places, 1, Dim::from(row), Dim::from(row + 1)), super::column(cx, places, at));
    let taken = gather_along_axis(cx, b, at, 0, 0)?;
    let factors = cx.b.broadcast(values, &[n, m], &[0]);
    let terms = cx.b.mul(taken, factors);
    let y = scatter(cx, zeros, row, terms, Some(ScalarOp::Add))?;
    let y = cx.b.convert(y, dtype);
    cx.one_output(y)
}

/// Lowers `SparseTensorDenseAdd`: a dense tensor plus a sparse one of its shape.
fn add(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let ((places, n, rank), values, b) = (indices(cx, 0)?, cx.arg(1)?, cx.arg(3)?);
    if cx.b.rank(b) != rank || cx.b.dims(values) != [n] {
        return Err(cx.shape_mismatch(format!("{n} indices of rank {rank} into {}", cx.b.shape(b))));
    }
    let y = scatter(cx, b, places, values, Some(ScalarOp::Add))?;
    cx.one_output(y)
}

/// Lowers a pointwise op on the values of a sparse tensor and the values at their positions in a dense one, broadcast to its
/// shape.
fn pointwise(cx: &mut LowerCtx, op: ScalarOp) -> Result<Vec<Value>> {
    let ((places, n, rank), values, dense) = (indices(cx, 0)?, cx.arg(1)?, cx.arg(3)?);
    let dims = cx.b.dims(dense).to_vec();
    let Some(lead) = rank.checked_sub(dims.len()) else {
        return Err(cx.shape_mismatch(format!("a dense tensor {dims:?} for a sparse one of rank {rank}")));
    };
    let strides: Vec<Dim> = (0..dims.len()).map(|k| dims[k + 1..].iter().product()).collect();
    let mut at = cx.b.full(DType::S64, &[n], 0.0);
    for (k, (&size, &stride)) in dims.iter().zip(&strides).enumerate().filter(|(_, (size, _))| **size != 1) {
        let place = super::column(cx, places, lead + k);
        // An index out of range of its own axis is clamped.
        let (low, high) = (cx.b.scalar(DType::S64, 0.0), cx.b.scalar(DType::S64, size.saturating_sub(1)));
        let place = cx.b.max(place, low);
        let place = cx.b.min(place, high);
        let stride = cx.b.scalar(DType::S64, stride);
        let place = cx.b.mul(place, stride);
        at = cx.b.add(at, place);
    }
    let flat = cx.b.reshape(dense, &[dims.iter().product()]);
    let taken = gather_along_axis(cx, flat, at, 0, 0)?;
    let y = cx.b.binary(op, values, taken);
    cx.one_output(y)
}

/// Sizes of the axes that a reduction keeps, and sizes of its result, where `keep_dims` retains the reduced axes with size 1.
fn kept(shape: &[Dim], axes: &[usize], keep_dims: bool) -> (Vec<Dim>, Vec<Dim>) {
    let kept = |k: &usize| !axes.contains(k);
    let small: Vec<Dim> = (0..shape.len()).filter(kept).map(|k| shape[k]).collect();
    let whole = (0..shape.len()).map(|k| if kept(&k) { shape[k] } else { Dim::from(1) }).collect();
    (small.clone(), if keep_dims { whole } else { small })
}

/// Lowers a reduction of elements over some axes; zeros where there are no elements.
fn reduce(cx: &mut LowerCtx, op: ScalarOp) -> Result<Vec<Value>> {
    let ((places, n, rank), values, shape) = (indices(cx, 0)?, cx.arg(1)?, shape_from_input(cx, 2)?);
    if shape.len() != rank {
        return Err(cx.shape_mismatch(format!("indices of rank {rank} into {shape:?}")));
    }
    let axes = cx.constant_ints(3)?.into_iter().map(|a| cx.normalize_axis(a, rank)).collect::<Result<Vec<_>>>()?;
    let (small, out) = kept(&shape, &axes, cx.bool_attr("keep_dims"));
    let dtype = cx.b.dtype(values);
    let values = cx.b.convert(values, wide(dtype));
    let zeros = cx.b.full(wide(dtype), &small, 0.0);
    let leading: Vec<InstId> = (0..rank).filter(|k| !axes.contains(k)).map(|k| super::column(cx, places, k)).collect();
    let places = super::columns(cx, &leading, n);
    let y = match op {
        ScalarOp::Maximum => {
            let least = cx.b.full(wide(dtype), &small, f64::NEG_INFINITY);
            let comp = extremum_computation(cx.b, wide(dtype), op, NanResult::New);
            let most = scatter_with_computation(cx, least, places, values, comp)?;
            let (none, one) = (cx.b.full(DType::S32, &small, 0.0), cx.b.full(DType::S32, &[n], 1.0));
            let count = scatter(cx, none, places, one, Some(ScalarOp::Add))?;
            let some = cx.b.compare(Direction::Gt, count, none);
            cx.b.select(some, most, zeros)
        }
        _ => scatter(cx, zeros, places, values, Some(op))?,
    };
    let y = cx.b.convert(y, dtype);
    let y = cx.b.reshape(y, &out);
    cx.one_output(y)
}

fn product_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let (a, b) = (cx.shape_from_value(2)?, cx.dims_of_rank(3, 2)?);
    let rows = cx.require_rank(&a, 2).map(|a| a[usize::from(cx.bool_attr("adjoint_a"))]);
    let rows = rows.unwrap_or_else(|| cx.fresh_dim(UnknownReason::Value(2)));
    cx.one_output_like(1, vec![rows, b[usize::from(!cx.bool_attr("adjoint_b"))]])
}

fn reduce_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let (shape, axes) = (cx.shape_from_value(2)?.known_sizes(), cx.constant_ints(3));
    let (Some(shape), Some(axes)) = (shape, axes) else {
        let dims = cx.unranked(UnknownReason::Value(2));
        return cx.one_output_like(1, dims);
    };
    let axes = axes.into_iter().map(|a| cx.normalize_axis(a, shape.len())).collect::<Result<Vec<_>>>()?;
    let dims = crate::ops::fact::Dims::from_sizes(&guarded_counts(
        &kept(&constant_dims(&shape), &axes, cx.bool_attr("keep_dims")).1,
    ));
    cx.one_output_like(1, dims)
}
