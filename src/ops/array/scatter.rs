//! Scatters to run-time indices. An update out of range is dropped, where TensorFlow's CPU kernels report an error.
use crate::diag::Result;
use crate::dims;
use crate::hlo::symbolic::ScatterDims;
use crate::hlo::symbolic::{Builder, CompId, Dim, InstId, Op, Shape};
use crate::ops::ShapeCtx;
use crate::ops::checks;
use crate::ops::fact::Fact;
use crate::ops::op_lowering::op;
use crate::ops::shape::like_first_input;
use crate::ops::symbols::{InferredDim, UnknownReason};
use crate::ops::{LowerCtx, OpLowering, Value};
use crate::scalar::{Direction, ScalarOp};
use crate::symbolic::constant_dims;
use crate::symbolic::guarded_counts;
use crate::tensor::{DType, element_count};

/// Definitions of the ops of this file.
pub const ROWS: &[OpLowering] = &[
    op("ScatterNd", "indices updates shape -> output", scatter_nd)
        .with_check(checks::check_scatter_indices::<2>)
        .shape(scatter_nd_shape)
        .constant_inputs(&[2]),
    op("ScatterNdNonAliasingAdd", "input indices updates -> output", |cx| scatter_into_input(cx, Some(ScalarOp::Add)))
        .with_check(checks::check_index_tuples)
        .shape(like_first_input),
    op("TensorScatterAdd", "tensor indices updates -> output", |cx| scatter_into_input(cx, Some(ScalarOp::Add)))
        .with_check(checks::check_index_tuples)
        .shape(like_first_input),
    op("TensorScatterSub", "tensor indices updates -> output", |cx| scatter_into_input(cx, Some(ScalarOp::Subtract)))
        .with_check(checks::check_index_tuples)
        .shape(like_first_input),
    op("TensorScatterMax", "tensor indices updates -> output", |cx| scatter_into_input(cx, Some(ScalarOp::Maximum)))
        .with_check(checks::check_index_tuples)
        .shape(like_first_input),
    op("TensorScatterMin", "tensor indices updates -> output", |cx| scatter_into_input(cx, Some(ScalarOp::Minimum)))
        .with_check(checks::check_index_tuples)
        .shape(like_first_input),
    op("TensorScatterUpdate", "tensor indices updates -> output", |cx| scatter_into_input(cx, None))
        .with_check(checks::check_index_tuples)
        .moves_strings()
        .shape(like_first_input),
    op("SparseToDense", "sparse_indices output_shape sparse_values default_value -> dense", sparse_to_dense)
        .with_check(checks::check_scatter_indices::<1>)
        .moves_strings()
        .shape(sparse_to_dense_shape)
        .constant_inputs(&[1]),
    op("DynamicStitch", "indices_and_data* -> merged", dynamic_stitch)
        .with_check(checks::check_stitch_indices)
        .moves_strings()
        .shape(dynamic_stitch_shape),
    op("ParallelDynamicStitch", "indices_and_data* -> merged", dynamic_stitch)
        .with_check(checks::check_stitch_indices)
        .moves_strings()
        .shape(dynamic_stitch_shape),
];

/// Operand that a maximum or minimum returns if one of the two is NaN.
#[derive(Clone, Copy, PartialEq)]
pub enum NanResult {
    /// The old element: Eigen's `cwiseMax(array, update)`.
    Old,
    /// The update: Eigen's `cwiseMax(update, array)`.
    New,
}

/// Scatter computation (old, new) that returns the new element, or combines both by `op`.
fn combine(b: &mut Builder, dtype: DType, op: Option<ScalarOp>) -> CompId {
    let Some(op) = op else {
        b.begin_computation("update");
        b.parameter(Shape::array(dtype, []));
        let new = b.parameter(Shape::array(dtype, []));
        return b.end_computation(new);
    };
    match (op, dtype) {
        (ScalarOp::Add | ScalarOp::Maximum, DType::Pred) => b.scalar_computation(ScalarOp::Or, dtype),
        (ScalarOp::Maximum | ScalarOp::Minimum, _) if dtype.is_float() => {
            extremum_computation(b, dtype, op, NanResult::Old)
        }
        _ => b.scalar_computation(op, dtype),
    }
}

/// Scatter computation (old, new) that returns the larger (`Maximum`) or the smaller element by comparison, as TensorFlow's
/// kernels do for one update after another.
pub fn extremum_computation(b: &mut Builder, dtype: DType, op: ScalarOp, unordered: NanResult) -> CompId {
    b.begin_computation("extreme");
    let old = b.parameter(Shape::array(dtype, []));
    let new = b.parameter(Shape::array(dtype, []));
    let better = if op == ScalarOp::Maximum { Direction::Gt } else { Direction::Lt };
    let (stays, other) = if unordered == NanResult::Old { (old, new) } else { (new, old) };
    let beaten = b.compare(better, other, stays);
    let root = b.select(beaten, other, stays);
    b.end_computation(root)
}

/// Scatters `updates` into `x` at `indices`, combined by `op` or replacing old elements. See [`scatter_with_computation`].
pub fn scatter(cx: &mut LowerCtx, x: InstId, indices: InstId, updates: InstId, op: Option<ScalarOp>) -> Result<InstId> {
    let comp = combine(cx.b, cx.b.dtype(x), op);
    scatter_with_computation(cx, x, indices, updates, comp)
}

/// Scatters `updates` (batch dimensions, then window dimensions) into `x` at `indices`, whose last dimension holds index
/// tuples. `comp` maps (old, new) to the result element.
pub fn scatter_with_computation(
    cx: &mut LowerCtx,
    x: InstId,
    indices: InstId,
    updates: InstId,
    comp: CompId,
) -> Result<InstId> {
    let (dims, places) = (cx.b.dims(x).to_vec(), cx.b.dims(indices).to_vec());
    let depth = places.last().and_then(|&d| usize::try_from(d).ok()).filter(|&d| d <= dims.len());
    let Some(depth) = depth else { return Err(cx.shape_mismatch(format!("indices {places:?} into {dims:?}"))) };
    let lead = places.len() - 1;
    let want = [&places[..lead], &dims[depth..]].concat();
    if cx.b.dims(updates) != want && cx.b.rank(updates) != 0 {
        return Err(cx.shape_mismatch(format!("updates of {:?}, where {want:?} is needed", cx.b.dims(updates))));
    }
    let updates = cx.b.broadcast_to(updates, &want);
    // With a data-dependent size assumed to be 0 the scatter is kept, as it is empty only under that assumption.
    let is_taken_empty =
        cx.b.data_dependent_sizes().iter().any(|f| f.assumed.is_zero()) && !crate::symbolic::has_zero(&dims);
    if crate::symbolic::has_zero(&want) && !is_taken_empty {
        return Ok(x);
    }
    let indices = match cx.b.dtype(indices) {
        DType::S32 | DType::S64 => indices,
        _ => cx.b.convert(indices, DType::S64),
    };
    let dims = ScatterDims {
        update_window_dims: (lead..want.len()).collect(),
        inserted_window_dims: (0..depth).collect(),
        scatter_dims_to_operand_dims: (0..depth).collect(),
        index_vector_dim: lead,
        ..ScatterDims::default()
    };
    Ok(cx.b.add_inst(Op::Scatter { dims: Box::new(dims), comp }, &[x, indices, updates]))
}

/// Rejects indices and updates for an array without elements, as TensorFlow does.
fn check_empty(cx: &LowerCtx, dims: &[Dim], indices: InstId, updates: InstId) -> Result<()> {
    let has = |id: InstId| !crate::symbolic::has_zero(cx.b.dims(id));
    if crate::symbolic::has_zero(dims) && (has(indices) || has(updates)) {
        return Err(cx.shape_mismatch(format!("indices and updates for an empty array {dims:?}")));
    }
    Ok(())
}

/// Rejects constant indices in input `i` that are out of bounds, and a scalar as updates, as TensorFlow does.
fn check_places(cx: &LowerCtx, i: usize, dims: &[Dim]) -> Result<()> {
    let depth = cx.dims(i)?.last().map_or(0, |&d| d.min(dims.len()).guarded_index());
    if cx.dims(i + 1)?.is_empty() && !cx.dims(i)?.is_empty() {
        return Err(cx.shape_mismatch("updates that are one number; TensorFlow's kernels want one for each index"));
    }
    cx.reject_constant_indices(i, &dims[..depth])
}

fn scatter_nd(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (indices, updates, dims) = (cx.arg(0)?, cx.arg(1)?, super::shape::shape_from_input(cx, 2)?);
    check_empty(cx, &dims, indices, updates)?;
    check_places(cx, 0, &dims)?;
    let zeros = cx.b.full(cx.b.dtype(updates), &dims, 0.0);
    let y = scatter(cx, zeros, indices, updates, Some(ScalarOp::Add))?;
    cx.one_output(y)
}

pub fn scatter_into_input(cx: &mut LowerCtx, op: Option<ScalarOp>) -> Result<Vec<Value>> {
    let (x, indices, updates) = (cx.arg(0)?, cx.arg(1)?, cx.arg(2)?);
    let dims = cx.dims(0)?;
    check_empty(cx, &dims, indices, updates)?;
    check_places(cx, 1, &dims)?;
    let y = scatter(cx, x, indices, updates, op)?;
    cx.one_output(y)
}

fn sparse_to_dense(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (indices, dims, values, fill) = (cx.arg(0)?, super::shape::shape_from_input(cx, 1)?, cx.arg(2)?, cx.arg(3)?);
    let base = cx.b.broadcast(fill, &dims, &[]);
    let places = cx.b.dims(indices).to_vec();
    let indices = match places.len() {
        0 => cx.b.reshape(indices, &dims![1, 1]),
        1 => cx.b.reshape(indices, &dims![places[0], 1]),
        _ => indices,
    };
    let y = scatter(cx, base, indices, values, None)?;
    cx.one_output(y)
}

/// Lowers `DynamicStitch`: merges rows by their indices; of equal indices the last one wins.
fn dynamic_stitch(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let n = cx.args.len() / 2;
    if (0..n).any(|i| cx.constant(i).is_err()) {
        return stitched_at_run_time(cx, n);
    }
    let mut rows: Vec<Option<InstId>> = Vec::new();
    let mut row_dims: Option<Vec<Dim>> = None;
    for i in 0..n {
        let (indices, data) = (cx.constant(i)?, cx.arg(n + i)?);
        let (places, dims) = (indices.dims.clone(), cx.b.dims(data).to_vec());
        if dims.len() < places.len() || dims[..places.len()] != places {
            return Err(cx.shape_mismatch(format!("indices of {places:?} for data of {dims:?}")));
        }
        let rest = dims[places.len()..].to_vec();
        if row_dims.get_or_insert_with(|| rest.clone()) != &rest {
            return Err(cx.shape_mismatch("the data have rows of different shapes"));
        }
        let count = Dim::from(indices.len());
        let flat = cx.b.reshape(data, &[&[count][..], &rest].concat());
        for (row, at) in indices.to_i64s().unwrap_or_default().into_iter().enumerate() {
            let at = usize::try_from(at).ok().filter(|&a| a < 1 << 20);
            let Some(at) = at else { return Err(cx.shape_mismatch("an index is negative or beyond 2^20")) };
            rows.resize(rows.len().max(at + 1), None);
            rows[at] = Some(cx.b.slice_axis(flat, 0, Dim::from(row), Dim::from(row) + 1));
        }
    }
    let dims = row_dims.unwrap_or_default();
    let dtype = if n > 0 { cx.dtype(n)? } else { DType::F32 };
    if rows.is_empty() {
        let y = cx.b.full(dtype, &[&dims![0][..], &dims].concat(), 0.0);
        return cx.one_output(y);
    }
    let one = [&dims![1][..], &dims].concat();
    let parts: Vec<InstId> = rows.into_iter().map(|r| r.unwrap_or_else(|| cx.b.full(dtype, &one, 0.0))).collect();
    let y = cx.b.concatenate(&parts, 0);
    cx.one_output(y)
}

/// Lowers `DynamicStitch` with indices known only at run time: the result has one row more than the largest index.
fn stitched_at_run_time(cx: &mut LowerCtx, n: usize) -> Result<Vec<Value>> {
    let (mut all, mut rows, mut row_dims) = (Vec::new(), Vec::new(), None);
    for i in 0..n {
        let (indices, data) = (cx.arg(i)?, cx.arg(n + i)?);
        let (places, dims) = (cx.b.dims(indices).to_vec(), cx.b.dims(data).to_vec());
        let rest = dims.strip_prefix(&places[..]).map(<[Dim]>::to_vec);
        let rest = rest.ok_or_else(|| cx.shape_mismatch(format!("indices of {places:?} for data of {dims:?}")))?;
        let count = element_count(&guarded_counts(&places)).ok_or_else(|| cx.shape_mismatch("the size overflows"))?;
        if row_dims.get_or_insert_with(|| rest.clone()) != &rest {
            return Err(cx.shape_mismatch("the data have rows of different shapes"));
        }
        all.push(cx.b.reshape(indices, &dims![count]));
        rows.push(cx.b.reshape(data, &constant_dims(&[&[count][..], &guarded_counts(&rest)].concat())));
    }
    let (indices, data) = (cx.b.concatenate(&all, 0), cx.b.concatenate(&rows, 0));
    let count = cx.size_from_maximum(indices, "the merged array")?;
    let (dims, total) = (row_dims.unwrap_or_default(), cx.b.dims(indices)[0]);
    let base = cx.b.full(cx.b.dtype(data), &[&[count][..], &dims].concat(), 0.0);
    let places = cx.b.reshape(indices, &dims![total, 1]);
    let y = scatter(cx, base, places, data, None)?;
    cx.one_output(y)
}

fn scatter_nd_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let dims = cx.shape_from_value(2)?;
    cx.one_output_like(1, dims)
}

fn sparse_to_dense_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let dims = cx.shape_from_value(1)?;
    cx.one_output_like(2, dims)
}

/// Shape function of `DynamicStitch`: one row more than the largest index, of the data's shape behind the indices' dimensions.
fn dynamic_stitch_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let n = cx.args.len() / 2;
    let (mut largest, mut open, mut rest) = (0, None, None);
    for i in 0..n {
        match cx.constant_ints(i) {
            Some(places) => largest = places.into_iter().map(|p| p.saturating_add(1)).fold(largest, i64::max),
            None => open = Some(i),
        }
        if let (Some(places), Some(data)) = (cx.ranked_dims(i)?, cx.ranked_dims(n + i)?) {
            rest = rest.or(data.get(places.len()..).map(<[InferredDim]>::to_vec));
        }
    }
    let rows = match open {
        Some(i) => cx.fresh_dim(UnknownReason::Value(i)),
        None => InferredDim::Known(largest.unsigned_abs()),
    };
    match rest {
        Some(rest) => cx.one_output_like(n, [&[rows], &rest[..]].concat()),
        None => {
            let dims = cx.unranked_from(n);
            cx.one_output_like(n, dims)
        }
    }
}
