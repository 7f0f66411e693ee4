//! Segment reductions by sorted segment numbers, over rows that are gathered from a table, or over rows in order.
//!
//! The result has a row for each segment number up to the last one, or as many as the node says.
use super::runs::{SortedRuns, mask_positions};
use crate::diag::Result;
use crate::dims;
use crate::hlo::symbolic::Dim;
use crate::hlo::symbolic::InstId;
use crate::ops::array::gather::gather_along_axis;
use crate::ops::array::scatter::{NanResult, extremum_computation, scatter, scatter_with_computation};
use crate::ops::checks;
use crate::ops::fact::Fact;
use crate::ops::op_lowering::op;
use crate::ops::symbols::{InferredDim, UnknownReason};
use crate::ops::{LowerCtx, OpLowering, ShapeCtx, Value};
use crate::scalar::{Direction, ScalarOp};
use crate::tensor::DType;

/// Definitions of the ops of this file.
#[rustfmt::skip]
pub const ROWS: &[OpLowering] = &[
    op("SparseSegmentSum", "data indices segment_ids -> output", |cx| sparse(cx, Fold::Sum, false)).with_check(checks::check_sparse_segments).shape(|cx| found_shape(cx, 2)),
    op("SparseSegmentMean", "data indices segment_ids -> output", |cx| sparse(cx, Fold::Mean, false)).with_check(checks::check_sparse_segments).shape(|cx| found_shape(cx, 2)),
    op("SparseSegmentSqrtN", "data indices segment_ids -> output", |cx| sparse(cx, Fold::SqrtN, false)).with_check(checks::check_sparse_segments).shape(|cx| found_shape(cx, 2)),
    op("SparseSegmentSumWithNumSegments", "data indices segment_ids num_segments -> output", |cx| sparse(cx, Fold::Sum, true)).with_check(checks::check_sparse_segments).shape(|cx| counted_shape(cx, 3)).constant_inputs(&[3]),
    op("SparseSegmentMeanWithNumSegments", "data indices segment_ids num_segments -> output", |cx| sparse(cx, Fold::Mean, true)).with_check(checks::check_sparse_segments).shape(|cx| counted_shape(cx, 3)).constant_inputs(&[3]),
    op("SparseSegmentSqrtNWithNumSegments", "data indices segment_ids num_segments -> output", |cx| sparse(cx, Fold::SqrtN, true)).with_check(checks::check_sparse_segments).shape(|cx| counted_shape(cx, 3)).constant_inputs(&[3]),
    op("SparseSegmentSumGrad", "grad indices segment_ids output_dim0 -> output", |cx| gradient(cx, Fold::Sum)).shape(|cx| counted_shape(cx, 3)).constant_inputs(&[3]),
    op("SparseSegmentMeanGrad", "grad indices segment_ids output_dim0 -> output", |cx| gradient(cx, Fold::Mean)).shape(|cx| counted_shape(cx, 3)).constant_inputs(&[3]),
    op("SparseSegmentSqrtNGrad", "grad indices segment_ids output_dim0 -> output", |cx| gradient(cx, Fold::SqrtN)).shape(|cx| counted_shape(cx, 3)).constant_inputs(&[3]),
    op("SparseSegmentSumGradV2", "grad indices segment_ids dense_output_dim0 -> output sorted_unique_indices", |cx| sparse_gradient(cx, Fold::Sum)).shape(sparse_gradient_shape),
    op("SparseSegmentMeanGradV2", "grad indices segment_ids dense_output_dim0 -> output sorted_unique_indices", |cx| sparse_gradient(cx, Fold::Mean)).shape(sparse_gradient_shape),
    op("SparseSegmentSqrtNGradV2", "grad indices segment_ids dense_output_dim0 -> output sorted_unique_indices", |cx| sparse_gradient(cx, Fold::SqrtN)).shape(sparse_gradient_shape),
    op("SegmentSum", "data segment_ids -> output", |cx| segment(cx, Fold::Sum)).with_check(checks::check_sorted_segments).shape(|cx| found_shape(cx, 1)),
    op("SegmentMean", "data segment_ids -> output", |cx| segment(cx, Fold::Mean)).with_check(checks::check_sorted_segments).shape(|cx| found_shape(cx, 1)),
    op("SegmentProd", "data segment_ids -> output", |cx| segment(cx, Fold::Product)).with_check(checks::check_sorted_segments).shape(|cx| found_shape(cx, 1)),
    op("SegmentMax", "data segment_ids -> output", |cx| segment(cx, Fold::Largest)).with_check(checks::check_sorted_segments).shape(|cx| found_shape(cx, 1)),
    op("SegmentMin", "data segment_ids -> output", |cx| segment(cx, Fold::Smallest)).with_check(checks::check_sorted_segments).shape(|cx| found_shape(cx, 1)),
];

/// Upper bound of the number of segments.
const MOST_SEGMENTS: u64 = 1 << 31;

/// Reduction of the rows of a segment.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fold {
    Sum,
    Mean,
    /// Sum divided by the square root of the number of rows.
    SqrtN,
    Product,
    Largest,
    Smallest,
}

fn sparse(cx: &mut LowerCtx, fold: Fold, counted: bool) -> Result<Vec<Value>> {
    let (data, indices, ids) = (cx.arg(0)?, cx.arg(1)?, cx.arg(2)?);
    if cx.b.dims(indices) != cx.b.dims(ids) || cx.b.rank(ids) != 1 {
        return Err(cx.shape_mismatch(format!("indices {} for segments {}", cx.b.shape(indices), cx.b.shape(ids))));
    }
    let count = if counted { Some(told(cx, 3)?) } else { None };
    cx.reject_constant_indices(1, &[cx.b.dims(data).first().copied().unwrap_or(Dim::from(0))])?;
    cx.reject_constant_indices(2, &[count.unwrap_or(Dim::from(MOST_SEGMENTS))])?;
    let rows = gather_along_axis(cx, data, indices, 0, 0)?;
    folded(cx, rows, ids, fold, count)
}

fn segment(cx: &mut LowerCtx, fold: Fold) -> Result<Vec<Value>> {
    let (data, ids) = (cx.arg(0)?, cx.arg(1)?);
    if cx.b.rank(ids) != 1 || cx.b.dims(data).first() != cx.b.dims(ids).first() {
        return Err(cx.shape_mismatch(format!("segments {} for {}", cx.b.shape(ids), cx.b.shape(data))));
    }
    cx.reject_constant_indices(1, &dims![MOST_SEGMENTS])?;
    folded(cx, data, ids, fold, None)
}

/// Constant integer in input `i`, as a size.
fn told(cx: &LowerCtx, i: usize) -> Result<Dim> {
    let n = cx.constant_dim(i)?;
    Dim::size(n).ok().filter(|&n| n < MOST_SEGMENTS).ok_or_else(|| cx.shape_mismatch(format!("{n} rows")))
}

/// Number of rows of each of `n` segments: `s32[n]`.
fn sizes(cx: &mut LowerCtx, ids: InstId, n: Dim) -> Result<InstId> {
    let rows = cx.b.dims(ids)[0];
    let (none, ones) = (cx.b.full(DType::S32, &[n], 0.0), cx.b.full(DType::S32, &[rows], 1.0));
    let to = cx.b.reshape(ids, &dims![rows, 1]);
    scatter(cx, none, to, ones, Some(ScalarOp::Add))
}

/// Reduces `rows [k, ..]` by segment numbers `ids [k]`; an empty segment is 0, and 1 for products.
fn folded(cx: &mut LowerCtx, rows: InstId, ids: InstId, fold: Fold, count: Option<Dim>) -> Result<Vec<Value>> {
    let n = match count {
        Some(n) => n,
        // `SparseFillEmptyRows` leaves no row number unused, so that their count is known.
        None => match cx.ranges.index_set_size(cx.b, ids) {
            Some(n) => n,
            None => cx.size_from_maximum(ids, "the list of segments")?,
        },
    };
    let dims = cx.b.dims(rows).to_vec();
    let (out, dtype) = ([&[n], &dims[1..]].concat(), cx.b.dtype(rows));
    let work = if dtype.is_float() && dtype.bits() < 32 { DType::F32 } else { dtype };
    let rows = cx.b.convert(rows, work);
    let to = cx.b.reshape(ids, &dims![dims[0], 1]);
    let (base, op) = match fold {
        Fold::Sum | Fold::Mean | Fold::SqrtN => (cx.b.full(work, &out, 0.0), ScalarOp::Add),
        Fold::Product => (cx.b.full(work, &out, 1.0), ScalarOp::Multiply),
        Fold::Largest => (cx.b.full(work, &out, f64::NEG_INFINITY), ScalarOp::Maximum),
        Fold::Smallest => (cx.b.full(work, &out, f64::INFINITY), ScalarOp::Minimum),
    };
    let mut y = match op {
        ScalarOp::Maximum | ScalarOp::Minimum if work.is_float() => {
            let comp = extremum_computation(cx.b, work, op, NanResult::New);
            scatter_with_computation(cx, base, to, rows, comp)?
        }
        _ => scatter(cx, base, to, rows, Some(op))?,
    };
    let sized = |cx: &mut LowerCtx| -> Result<InstId> {
        let sizes = sizes(cx, ids, n)?;
        Ok(cx.b.broadcast(sizes, &out, &[0]))
    };
    match fold {
        Fold::Sum | Fold::Product => {}
        Fold::Mean | Fold::SqrtN => {
            let sizes = sized(cx)?;
            let by = divisor(cx, sizes, fold, work);
            y = cx.b.div(y, by);
        }
        Fold::Largest | Fold::Smallest => {
            let sizes = sized(cx)?;
            let none = cx.b.full_like(sizes, 0.0);
            let (some, zeros) = (cx.b.compare(Direction::Gt, sizes, none), cx.b.full(work, &out, 0.0));
            y = cx.b.select(some, y, zeros);
        }
    }
    let y = cx.b.convert(y, dtype);
    cx.one_output(y)
}

/// Divisor of the sum over a segment, from the number of its rows.
fn divisor(cx: &mut LowerCtx, sizes: InstId, fold: Fold, dtype: DType) -> InstId {
    let one = cx.b.full_like(sizes, 1.0);
    let sizes = cx.b.max(sizes, one);
    let sizes = cx.b.convert(sizes, dtype);
    if fold == Fold::SqrtN { cx.b.unary(ScalarOp::Sqrt, sizes) } else { sizes }
}

/// Lowers the gradient of a segment reduction: each segment's gradient is added to the rows that the segment gathered.
fn gradient(cx: &mut LowerCtx, fold: Fold) -> Result<Vec<Value>> {
    let (indices, rows) = (cx.arg(1)?, told(cx, 3)?);
    cx.reject_constant_indices(1, &[rows])?;
    let taken = taken_gradients(cx, fold)?;
    let (dims, work) = (cx.b.dims(taken).to_vec(), cx.b.dtype(taken));
    let zeros = cx.b.full(work, &[&[rows], &dims[1..]].concat(), 0.0);
    let to = cx.b.reshape(indices, &dims![dims[0], 1]);
    let y = scatter(cx, zeros, to, taken, Some(ScalarOp::Add))?;
    let y = cx.b.convert(y, cx.dtype(0)?);
    cx.one_output(y)
}

/// Gradient of the segment of each index, in the type in which gradients are accumulated.
fn taken_gradients(cx: &mut LowerCtx, fold: Fold) -> Result<InstId> {
    let (grad, indices, ids) = (cx.arg(0)?, cx.arg(1)?, cx.arg(2)?);
    if cx.b.dims(indices) != cx.b.dims(ids) || cx.b.rank(ids) != 1 || cx.b.rank(grad) == 0 {
        return Err(cx.shape_mismatch(format!("indices {} for segments {}", cx.b.shape(indices), cx.b.shape(ids))));
    }
    let (dims, dtype) = (cx.b.dims(grad).to_vec(), cx.b.dtype(grad));
    cx.reject_constant_indices(2, &dims[..1])?;
    let work = if dtype.is_float() && dtype.bits() < 32 { DType::F32 } else { dtype };
    let mut grad = cx.b.convert(grad, work);
    if fold != Fold::Sum {
        let sizes = sizes(cx, ids, dims[0])?;
        let sizes = cx.b.broadcast(sizes, &dims, &[0]);
        let by = divisor(cx, sizes, fold, work);
        grad = cx.b.div(grad, by);
    }
    gather_along_axis(cx, grad, ids, 0, 0)
}

/// Lowers the gradient of a segment reduction for the gathered rows alone: their gradients in ascending order of the rows, and
/// the row numbers.
fn sparse_gradient(cx: &mut LowerCtx, fold: Fold) -> Result<Vec<Value>> {
    let indices = cx.arg(1)?;
    let taken = taken_gradients(cx, fold)?;
    let runs = SortedRuns::from_keys(cx, &[indices])?;
    let n = cx.b.dims(indices)[0];
    let sorted = gather_along_axis(cx, taken, runs.order, 0, 0)?;
    let (zeros, to) = (cx.b.full_like(sorted, 0.0), cx.b.reshape(runs.run, &dims![n, 1]));
    let y = scatter(cx, zeros, to, sorted, Some(ScalarOp::Add))?;
    let (at, _) = mask_positions(cx, runs.exists, "the list of rows")?;
    let (y, rows) = (gather_along_axis(cx, y, at, 0, 0)?, gather_along_axis(cx, runs.keys[0], at, 0, 0)?);
    let y = cx.b.convert(y, cx.dtype(0)?);
    Ok(vec![Value::Array(y), Value::Array(rows)])
}

/// Shape function: a row for each distinct index.
fn sparse_gradient_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let n = cx.fresh_dim(UnknownReason::Data);
    let dims = match cx.ranked_dims(0)? {
        Some(dims) if !dims.is_empty() => [&[n], &dims[1..]].concat().into(),
        Some(_) => return Err(cx.shape_mismatch("a scalar has no rows")),
        None => cx.unranked_from(0),
    };
    Ok(vec![cx.one_output_like(0, dims)?.remove(0), Fact::new(cx.dtype(1), vec![n].into())])
}

/// Shape function: the rows of the first input, as many as the value of input `i`.
fn counted_shape(cx: &mut ShapeCtx, i: usize) -> Result<Vec<Fact>> {
    let n = cx.size_from_input(i);
    match cx.ranked_dims(0)? {
        Some(dims) if !dims.is_empty() => cx.one_output_like(0, [&[n], &dims[1..]].concat()),
        Some(_) => Err(cx.shape_mismatch("a scalar has no rows")),
        None => {
            let dims = cx.unranked_from(0);
            cx.one_output_like(0, dims)
        }
    }
}

/// Shape function: one row per segment, whose number is determined by the segment numbers in input `i`.
fn found_shape(cx: &mut ShapeCtx, i: usize) -> Result<Vec<Fact>> {
    let last = cx.constant_ints(i).map(|ids| ids.into_iter().fold(-1, i64::max));
    let n = last.and_then(|last| u64::try_from(last.checked_add(1)?).ok()).map(InferredDim::Known);
    let n = n.unwrap_or_else(|| cx.fresh_dim(UnknownReason::Data));
    match cx.ranked_dims(0)? {
        Some(dims) if !dims.is_empty() => cx.one_output_like(0, [&[n], &dims[1..]].concat()),
        Some(_) => Err(cx.shape_mismatch("a scalar has no segments")),
        None => {
            let dims = cx.unranked_from(0);
            cx.one_output_like(0, dims)
        }
    }
}
