//! Greedy decoding for connectionist temporal classification.
use super::columns;
use crate::diag::Result;
use crate::dims;
use crate::hlo::symbolic::InstId;
use crate::ops::array::gather::gather_along_axis;
use crate::ops::compact::{Compaction, compact_mask};
use crate::ops::fact::Fact;
use crate::ops::op_lowering::op;
use crate::ops::shape::S64;
use crate::ops::symbols::{InferredDim, UnknownReason};
use crate::ops::{LowerCtx, OpLowering, ShapeCtx, Value};
use crate::scalar::{Direction, ScalarOp};
use crate::symbolic::Dim;
use crate::tensor::DType;

/// Definitions of the ops of this file.
pub const ROWS: &[OpLowering] = &[op(
    "CTCGreedyDecoder",
    "inputs sequence_length -> decoded_indices decoded_values decoded_shape log_probability",
    decode,
)
.shape(decode_shape)
.dtypes("f32, f64")];

/// Sizes `[time, batch, classes]` of the inputs of a CTC op, which also has a length for each batch item.
///
/// # Errors
/// `Code::ShapeMismatch` for other shapes and, as in TensorFlow, for empty inputs.
pub(super) fn input_dims(cx: &LowerCtx, x: InstId, lengths: InstId) -> Result<[Dim; 3]> {
    let &[time, batch, classes] = cx.b.dims(x) else { return Err(cx.shape_mismatch("inputs must be of rank 3")) };
    if time == 0 || batch == 0 || classes == 0 || cx.b.dims(lengths) != [batch] {
        let (lengths, inputs) = (cx.b.dims(lengths), [time, batch, classes]);
        return Err(cx.shape_mismatch(format!("lengths of {lengths:?} for inputs {inputs:?}")));
    }
    Ok([time, batch, classes])
}

/// Lowers `CTCGreedyDecoder`: the most likely class at each time without blanks, and without repetitions if `merge_repeated`.
///
/// Shapes: `inputs [time, batch, classes]`, `sequence_length s32[batch]` -> `s64[n, 2]`, `s64[n]`, `s64[2]`, `[batch, 1]`.
fn decode(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (x, lengths) = (cx.arg(0)?, cx.arg(1)?);
    let ([time, batch, classes], dtype) = (input_dims(cx, x, lengths)?, cx.b.dtype(x));
    let blank = cx.node.int("blank_index").unwrap_or(-1);
    let blank = if blank < 0 { classes + blank } else { Dim::from(blank) };
    let x = cx.b.transpose(x, &[1, 0, 2]);
    let all = [batch, time];
    let (best, class) = largest(cx, x, dtype);
    let step = cx.b.iota(DType::S32, &all, 1);
    let lengths = cx.b.broadcast(lengths, &all, &[0]);
    let inside = cx.b.compare(Direction::Lt, step, lengths);
    let blank = cx.b.full(DType::S32, &all, blank);
    let named = cx.b.compare(Direction::Ne, class, blank);
    let mut kept = cx.b.elementwise(ScalarOp::And, &[inside, named]);
    if cx.bool_attr("merge_repeated") {
        let none = cx.b.full(DType::S32, &dims![batch, 1], -1.0);
        let before = cx.b.slice_axis(class, 1, Dim::from(0), time - 1);
        let before = cx.b.concatenate(&[none, before], 1);
        let other = cx.b.compare(Direction::Ne, class, before);
        kept = cx.b.elementwise(ScalarOp::And, &[kept, other]);
    }
    let sparse = compact_rows(cx, kept, class)?;
    let none = cx.b.full(dtype, &all, 0.0);
    let counted = cx.b.select(inside, best, none);
    let zero = cx.b.scalar(dtype, 0.0);
    let sum = cx.b.reduce(counted, zero, ScalarOp::Add, &[1]);
    // Subtraction from 0, the result for zero steps, avoids -0.0.
    let none = cx.b.full_like(sum, 0.0);
    let sum = cx.b.sub(none, sum);
    let probability = cx.b.reshape(sum, &[batch, Dim::from(1)]);
    Ok(sparse.into_iter().chain([probability]).map(Value::Array).collect())
}

/// Elements of a matrix where `kept` is true, compacted in each row, as a sparse tensor: indices, values and shape.
///
/// Shapes: `pred[rows, columns]`, `s32[rows, columns]` -> `s64[n, 2]`, `s64[n]`, `s64[2]`.
pub(super) fn compact_rows(cx: &mut LowerCtx, kept: InstId, x: InstId) -> Result<[InstId; 3]> {
    let all = cx.b.dims(x).to_vec();
    let (rows, count) = (all[0], all[0] * all[1]);
    let ones = cx.b.convert(kept, DType::S32);
    let add = cx.b.scalar_computation(ScalarOp::Add, DType::S32);
    let up_to = crate::ops::math::scan::prefix_reduction(cx, ones, 1, add, 0.0);
    let place = cx.b.sub(up_to, ones);
    let longest = {
        let zero = cx.b.scalar(DType::S32, 0.0);
        cx.b.reduce(up_to, zero, ScalarOp::Maximum, &[0, 1])
    };
    let flat = |cx: &mut LowerCtx, x: InstId| cx.b.reshape(x, &[count]);
    let mask = flat(cx, kept);
    let Compaction { places, count: held, .. } = compact_mask(cx, mask)?;
    let size = cx.data_dependent_size(held, count, "the decoded list")?;
    let places = cx.b.slice_axis(places, 0, Dim::from(0), size);
    let item = cx.b.iota(DType::S32, &all, 0);
    let mut taken = Vec::new();
    for part in [item, place, x] {
        let part = flat(cx, part);
        let part = gather_along_axis(cx, part, places, 0, 0)?;
        taken.push(cx.b.convert(part, DType::S64));
    }
    let indices = columns(cx, &taken[..2], size);
    let longest = cx.b.convert(longest, DType::S64);
    let longest = cx.b.reshape(longest, &dims![1]);
    let items = cx.b.full(DType::S64, &dims![1], rows);
    let shape = cx.b.concatenate(&[items, longest], 0);
    Ok([indices, taken[2], shape])
}

/// Largest element along the last of three axes, and its first position: `[a, b]`, `s32[a, b]`. As in TensorFlow's kernel,
/// nothing compares larger than a NaN at the first position, and a NaN elsewhere does not compare larger.
fn largest(cx: &mut LowerCtx, x: InstId, dtype: DType) -> (InstId, InstId) {
    let dims = cx.b.dims(x).to_vec();
    let first = cx.b.slice_axis(x, 2, Dim::from(0), Dim::from(1));
    let first = cx.b.reshape(first, &dims[..2]);
    let is_nan = cx.b.compare(Direction::Ne, first, first);
    let least = cx.b.scalar(dtype, f64::NEG_INFINITY);
    let (lowest, is_number) = (cx.b.full_like(x, f64::NEG_INFINITY), cx.b.compare(Direction::Eq, x, x));
    let numbers = cx.b.select(is_number, x, lowest);
    let best = cx.b.reduce(numbers, least, ScalarOp::Maximum, &[2]);
    let spread = cx.b.broadcast(best, &dims, &[0, 1]);
    let is_best = cx.b.compare(Direction::Eq, x, spread);
    let number = cx.b.iota(DType::S32, &dims, 2);
    let none = cx.b.full(DType::S32, &dims, dims[2] - 1);
    let number = cx.b.select(is_best, number, none);
    let last = cx.b.scalar(DType::S32, dims[2] - 1);
    let place = cx.b.reduce(number, last, ScalarOp::Minimum, &[2]);
    let start = cx.b.full_like(place, 0.0);
    (cx.b.select(is_nan, first, best), cx.b.select(is_nan, start, place))
}

fn decode_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let (dims, n) = (cx.dims_of_rank(0, 3)?, cx.fresh_dim(UnknownReason::Data));
    let two = InferredDim::Known(2);
    Ok(vec![
        Fact::new(S64, vec![n, two].into()),
        Fact::new(S64, vec![n].into()),
        Fact::new(S64, vec![two].into()),
        Fact::new(cx.dtype(0), vec![dims[1], InferredDim::Known(1)].into()),
    ])
}
