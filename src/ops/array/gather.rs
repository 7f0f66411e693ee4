//! Gathers at run-time indices. An index out of range is clamped, where TensorFlow's CPU kernels report an error.
use crate::diag::Result;
use crate::hlo::symbolic::GatherDims;
use crate::hlo::symbolic::{Builder, Dim, InstId, Op};
use crate::ops::ShapeCtx;
use crate::ops::checks;
use crate::ops::fact::{Fact, InferredInt};
use crate::ops::op_lowering::op;
use crate::ops::shape::like_first_input;
use crate::ops::symbols::{InferredDim, UnknownReason};
use crate::ops::{LowerCtx, OpLowering, Value};
use crate::scalar::{Direction, ScalarOp};
use crate::tensor::{DType, Tensor};

/// Definitions of the ops of this file.
pub const ROWS: &[OpLowering] = &[
    op("Gather", "params indices -> output", gather)
        .with_check(checks::check_row_indices)
        .moves_strings()
        .shape(|cx| gather_shape(cx, Some(0))),
    op("GatherV2", "params indices axis -> output", gather_v2)
        .with_check(checks::check_gather_indices)
        .moves_strings()
        .shape(|cx| gather_shape(cx, cx.constant_int(2)))
        .constant_inputs(&[2]),
    op("GatherNd", "params indices -> output", gather_nd)
        .with_check(checks::check_index_tuples)
        .moves_strings()
        .shape(gather_nd_shape),
    op("ReverseSequence", "input seq_lengths -> output", reverse_sequence)
        .with_check(checks::check_sequence_lengths)
        .shape(like_first_input),
];

pub fn gather(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (x, indices) = (cx.arg(0)?, cx.arg(1)?);
    let y = gather_along_axis(cx, x, indices, 0, 0)?;
    cx.one_output(y)
}

fn gather_v2(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (x, indices) = (cx.arg(0)?, cx.arg(1)?);
    let axis = cx.normalize_axis(cx.constant_int(2)?, cx.b.rank(x))?;
    let batch = cx.node.int("batch_dims").unwrap_or(0);
    let batch = if batch < 0 { batch + cx.b.rank(indices) as i64 } else { batch };
    let batch = usize::try_from(batch).ok().filter(|&n| n <= axis && n <= cx.b.rank(indices));
    let Some(batch) = batch else { return Err(cx.shape_mismatch("batch_dims is beyond the axis or the indices")) };
    if cx.b.dims(x)[..batch] != cx.b.dims(indices)[..batch] {
        return Err(cx.shape_mismatch("the batch dimensions differ"));
    }
    let y = gather_along_axis(cx, x, indices, axis, batch)?;
    cx.one_output(y)
}

/// Gather along `axis`: that dimension of `x` is replaced by the dimensions of `indices` behind its `batch` leading ones, which
/// `x` and `indices` share.
pub fn gather_along_axis(cx: &mut LowerCtx, x: InstId, indices: InstId, axis: usize, batch: usize) -> Result<InstId> {
    let (dims, places) = (cx.b.dims(x).to_vec(), cx.b.dims(indices).to_vec());
    let rank = dims.len();
    if axis >= rank {
        return Err(cx.shape_mismatch("a scalar has no elements to gather"));
    }
    let out: Vec<Dim> = [&dims[..axis], &places[batch..], &dims[axis + 1..]].concat();
    if crate::symbolic::has_zero(&dims) {
        return of_nothing(cx, x, &out);
    }
    let indices = index_type(cx, indices);
    Ok(gather_slices(cx.b, x, indices, axis, batch))
}

/// Gathers slices along `axis` of a nonempty array, at `s32` or `s64` indices whose first `batch` axes are those of the array.
pub fn gather_slices(b: &mut Builder, x: InstId, indices: InstId, axis: usize, batch: usize) -> InstId {
    let (mut slice_sizes, places) = (b.dims(x).to_vec(), b.rank(indices));
    let taken = places - batch;
    let window = (batch..axis).chain(axis + taken..slice_sizes.len() + taken - 1);
    slice_sizes[axis] = Dim::from(1);
    slice_sizes[..batch].fill(Dim::from(1));
    let g = GatherDims {
        offset_dims: window.collect(),
        collapsed_slice_dims: vec![axis],
        start_index_map: vec![axis],
        index_vector_dim: places,
        operand_batching_dims: (0..batch).collect(),
        start_indices_batching_dims: (0..batch).collect(),
        slice_sizes,
        indices_are_sorted: false,
    };
    b.add_inst(Op::Gather(Box::new(g)), &[x, indices])
}

/// Empty result of a gather from an array without elements. It is a reshape of the array, not a constant: the array may be
/// empty only because a data-dependent size is assumed to be 0 during lowering.
fn of_nothing(cx: &mut LowerCtx, x: InstId, out: &[Dim]) -> Result<InstId> {
    if !crate::symbolic::has_zero(out) {
        return Err(cx.shape_mismatch("elements of an empty array are asked for"));
    }
    Ok(cx.b.reshape(x, out))
}

/// Indices converted to a type that is wide enough for clamping.
fn index_type(cx: &mut LowerCtx, indices: InstId) -> InstId {
    match cx.b.dtype(indices) {
        DType::S32 | DType::S64 => indices,
        _ => cx.b.convert(indices, DType::S64),
    }
}

pub fn gather_nd(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (x, indices) = (cx.arg(0)?, cx.arg(1)?);
    let (dims, places) = (cx.b.dims(x).to_vec(), cx.b.dims(indices).to_vec());
    let batch = usize::try_from(cx.node.int("batch_dims").unwrap_or(0)).unwrap_or(usize::MAX);
    let depth = places.last().and_then(|&d| usize::try_from(d).ok());
    let Some(depth) = depth.filter(|&d| batch == 0 && d <= dims.len()) else {
        return Err(cx.shape_mismatch(format!("indices {places:?} into {dims:?}")));
    };
    let lead = places.len() - 1;
    let out = [&places[..lead], &dims[depth..]].concat();
    if crate::symbolic::has_zero(&dims) {
        let y = of_nothing(cx, x, &out)?;
        return cx.one_output(y);
    }
    let ignores = cx.node.str("bad_indices_policy") == Some("IGNORE");
    if !ignores {
        cx.reject_constant_indices(1, &dims[..depth])?;
    }
    let indices = index_type(cx, indices);
    let mut slice_sizes = dims.clone();
    slice_sizes[..depth].fill(Dim::from(1));
    let g = GatherDims {
        offset_dims: (lead..out.len()).collect(),
        collapsed_slice_dims: (0..depth).collect(),
        start_index_map: (0..depth).collect(),
        index_vector_dim: lead,
        slice_sizes,
        ..GatherDims::default()
    };
    let y = cx.b.add_inst(Op::Gather(Box::new(g)), &[x, indices]);
    let y = if ignores { ignoring(cx, y, indices, &dims[..depth]) } else { y };
    cx.one_output(y)
}

/// `y` where the indices are within these sizes, and 0 elsewhere.
fn ignoring(cx: &mut LowerCtx, y: InstId, indices: InstId, sizes: &[Dim]) -> InstId {
    let b = &mut *cx.b;
    let (places, out) = (b.dims(indices).to_vec(), b.dims(y).to_vec());
    let ends: Vec<i64> = sizes.iter().map(|&n| n.guarded_value()).collect();
    let ends = b.constant(Tensor::from_vec(DType::S64, vec![sizes.len() as u64], ends));
    let indices = b.convert(indices, DType::S64);
    let (ends, zeros) = (b.broadcast(ends, &places, &[places.len() - 1]), b.full_like(indices, 0.0));
    let (above, below) = (b.compare(Direction::Ge, indices, zeros), b.compare(Direction::Lt, indices, ends));
    let inside = b.binary(ScalarOp::And, above, below);
    let all = b.scalar(DType::Pred, 1.0);
    let inside = b.reduce(inside, all, ScalarOp::And, &[places.len() - 1]);
    let axes: Vec<usize> = (0..places.len() - 1).collect();
    let (inside, nothing) = (b.broadcast(inside, &out, &axes), b.full_like(y, 0.0));
    b.select(inside, y, nothing)
}

/// Lowers `ReverseSequence`: the first `seq_lengths[b]` elements of each batch entry in reverse, the rest unchanged.
fn reverse_sequence(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (x, lengths) = (cx.arg(0)?, cx.arg(1)?);
    let dims = cx.b.dims(x).to_vec();
    let seq = cx.normalize_axis(cx.require_attr(cx.node.int("seq_dim"), "seq_dim")?, dims.len())?;
    let batch = cx.normalize_axis(cx.node.int("batch_dim").unwrap_or(0), dims.len())?;
    if seq == batch || cx.b.dims(lengths) != [dims[batch]] {
        return Err(cx.shape_mismatch("seq_lengths needs one length a batch entry"));
    }
    let places = [dims[batch], dims[seq]];
    let dtype = cx.b.dtype(lengths);
    let position = cx.b.iota(dtype, &places, 1);
    let length = cx.b.broadcast(lengths, &places, &[0]);
    let inside = cx.b.compare(Direction::Lt, position, length);
    let one = cx.b.full(dtype, &places, 1.0);
    let last = cx.b.sub(length, one);
    let mirrored = cx.b.binary(ScalarOp::Subtract, last, position);
    let from = cx.b.select(inside, mirrored, position);
    let order: Vec<usize> =
        [batch, seq].into_iter().chain((0..dims.len()).filter(|&d| d != batch && d != seq)).collect();
    let moved = cx.b.transpose(x, &order);
    let y = gather_along_axis(cx, moved, from, 1, 1)?;
    let mut back = vec![0; order.len()];
    for (i, &d) in order.iter().enumerate() {
        back[d] = i;
    }
    let y = cx.b.transpose(y, &back);
    cx.one_output(y)
}

/// Shape function of `Gather`: dimension `axis` of input 0 is replaced by the dimensions of input 1 behind the shared batch
/// dimensions.
fn gather_shape(cx: &mut ShapeCtx, axis: Option<i64>) -> Result<Vec<Fact>> {
    let (Some(x), Some(places)) = (cx.ranked_dims(0)?, cx.ranked_dims(1)?) else {
        let dims = cx.unranked_from(usize::from(cx.dims(0)?.first_unknown().is_none()));
        return cx.one_output_like(0, dims);
    };
    let batch = cx.node.int("batch_dims").unwrap_or(0);
    let batch = if batch < 0 { batch + places.len() as i64 } else { batch };
    let batch = usize::try_from(batch).ok().filter(|&b| b <= places.len() && b < x.len().max(1));
    let batch = batch.ok_or_else(|| cx.shape_mismatch("batch_dims is beyond the indices"))?;
    let Some(axis) = axis else {
        let dims = cx.fresh_shape((x.len() + places.len()).saturating_sub(batch + 1), UnknownReason::Value(2));
        return cx.one_output_like(0, dims);
    };
    let axis = cx.normalize_axis(axis, x.len())?;
    if batch > axis {
        return Err(cx.shape_mismatch("batch_dims is beyond the axis"));
    }
    let mut out = Vec::with_capacity(x.len() + places.len());
    for (&a, &b) in x[..batch].iter().zip(&places) {
        out.push(cx.merge_dim(a, b).ok_or_else(|| cx.shape_mismatch("the batch dimensions differ"))?);
    }
    out.extend(&x[batch..axis]);
    out.extend(&places[batch..]);
    out.extend(&x[axis + 1..]);
    match (picked(cx), cx.dtype(0), crate::ops::fact::Dims::ranked(&out[..]).known_sizes()) {
        (Some(values), Some(dtype), Some(fixed)) if x.len() == 1 => Ok(vec![Fact::from_ints(dtype, &fixed, values)]),
        _ => cx.one_output_like(0, out),
    }
}

/// Elements of a vector of sizes at constant indices.
fn picked(cx: &ShapeCtx) -> Option<Vec<InferredInt>> {
    let values = cx.partial_ints(0)?;
    let at = |i: i64| usize::try_from(i).ok().and_then(|i| values.get(i).copied());
    cx.constant_ints(1)?.into_iter().map(at).collect()
}

fn gather_nd_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let (x, places) = (cx.ranked_dims(0)?, cx.ranked_dims(1)?);
    match (x, places.as_deref()) {
        (Some(x), Some([lead @ .., InferredDim::Known(depth)])) => {
            let depth = usize::try_from(*depth).ok().filter(|&d| d <= x.len());
            let depth = depth.ok_or_else(|| cx.shape_mismatch("the indices lead deeper than the rank"))?;
            cx.one_output_like(0, [lead, &x[depth..]].concat())
        }
        (x, _) => {
            let dims = cx.unranked_from(usize::from(x.is_some()));
            cx.one_output_like(0, dims)
        }
    }
}
