//! Connectionist temporal classification loss, and its gradient.
//!
//! Source: TensorFlow's `ctc_loss_calculator.h`: forward and backward variables as logarithms (Graves, "Supervised Sequence
//! Labelling with Recurrent Neural Networks", section 7.4), whose sums are computed in f32 even for f64. In shapes, `states` is
//! the number of positions in a path, `2 * labels + 1`: a blank before, between and behind the labels.
use super::column;
use super::ctc::input_dims;
use crate::diag::Result;
use crate::dims;
use crate::hlo::symbolic::{Builder, InstId, Op, Shape};
use crate::hlo::symbolic::{Dim, PadDim, SliceDim};
use crate::ops::array::gather::gather_along_axis;
use crate::ops::array::scatter::scatter;
use crate::ops::compact::prefix_reduce;
use crate::ops::counted_loop::{counted_loop, replace_slice_at, slice_at};
use crate::ops::fact::Fact;
use crate::ops::op_lowering::op;
use crate::ops::{LowerCtx, OpLowering, ShapeCtx, Value};
use crate::scalar::{Direction, ScalarOp};
use crate::tensor::DType;

/// Definitions of the ops of this file.
pub const ROWS: &[OpLowering] =
    &[op("CTCLoss", "inputs labels_indices labels_values sequence_length -> loss gradient", loss)
        .shape(loss_shape)
        .dtypes("f32, f64")];

/// Labels of each batch item.
struct Labels {
    /// `s32[batch, labels]`: labels, followed by blanks.
    dense: InstId,
    /// `s32[batch]`: number of labels that are kept.
    kept: InstId,
    /// `s32[batch]`: number of labels given, including repetitions and blanks.
    given: InstId,
}

/// Emissions and transitions of the label paths, for the forward and the backward pass; logarithms have the type of the inputs.
struct Paths {
    /// `[time, batch, states]`: log-probability of the label that each state emits.
    emissions: InstId,
    /// `pred[batch, states]`: whether a state may repeat.
    stays: InstId,
    /// `pred[batch, states]`: whether a state may follow the state two positions before.
    skips: InstId,
    /// `s32[batch]`: number of states.
    states: InstId,
    /// `s32[batch]`: number of steps.
    steps: InstId,
}

fn loss(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (x, lengths) = (cx.arg(0)?, cx.arg(3)?);
    let [time, batch, classes] = input_dims(cx, x, lengths)?;
    let labels = labels(cx, batch, time, classes)?;
    let y = softmax(cx.b, x);
    let paths = paths(cx, y, &labels, lengths)?;
    let (forward, backward) = (forward(cx.b, &paths), backward(cx.b, &paths));
    let both = cx.b.add(forward, backward);
    let first = cx.b.slice_axis(both, 0, Dim::from(0), Dim::from(1));
    let log_p = sum_of_logarithms(cx.b, first);
    // The gradient is 0 for an item without steps, or with fewer steps than labels.
    let nothing = cx.b.full_like(lengths, 0.0);
    let mut counts = cx.b.compare(Direction::Gt, lengths, nothing);
    if cx.bool_attr("ignore_longer_outputs_than_inputs") {
        let fit = cx.b.compare(Direction::Le, labels.given, lengths);
        counts = cx.b.binary(ScalarOp::And, counts, fit);
    }
    let gradient = gradient(cx, y, both, log_p, labels.dense)?;
    let all = [time, batch, classes];
    let step = cx.b.iota(DType::S32, &all, 0);
    let lengths = cx.b.broadcast(lengths, &all, &[1]);
    let is_within = cx.b.compare(Direction::Lt, step, lengths);
    let is_counted = cx.b.broadcast(counts, &all, &[1]);
    let is_counted = cx.b.binary(ScalarOp::And, is_counted, is_within);
    let none = cx.b.full_like(gradient, 0.0);
    let gradient = cx.b.select(is_counted, gradient, none);
    let none = cx.b.full_like(log_p, 0.0);
    let loss = cx.b.unary(ScalarOp::Negate, log_p);
    let loss = cx.b.select(counts, loss, none);
    Ok([loss, gradient].map(Value::Array).into())
}

/// Labels from their sparse form, whose rows are ordered; without repetitions if `preprocess_collapse_repeated`.
fn labels(cx: &mut LowerCtx, batch: Dim, time: Dim, classes: Dim) -> Result<Labels> {
    let (indices, values) = (cx.arg(1)?, cx.arg(2)?);
    let [n] = cx.b.dims(values)[..] else { return Err(cx.shape_mismatch("labels_values must be a vector")) };
    if cx.b.dims(indices) != [n, Dim::from(2)] {
        return Err(cx.shape_mismatch(format!("indices {:?} of {n} labels", cx.b.dims(indices))));
    }
    let item = column(cx, indices, 0);
    let item = cx.b.convert(item, DType::S32);
    let blank = cx.b.full_like(values, classes - 1);
    let mut keeps = cx.b.compare(Direction::Lt, values, blank);
    if cx.bool_attr("preprocess_collapse_repeated") && n > 0 {
        let mut before = |x: InstId| {
            let none = cx.b.full(DType::S32, &dims![1], -1.0);
            let most = cx.b.slice_axis(x, 0, Dim::from(0), n - 1);
            cx.b.concatenate(&[none, most], 0)
        };
        let (previous_item, previous) = (before(item), before(values));
        let is_first = cx.b.compare(Direction::Ne, item, previous_item);
        let is_other = cx.b.compare(Direction::Ne, values, previous);
        let is_new = cx.b.binary(ScalarOp::Or, is_first, is_other);
        keeps = cx.b.binary(ScalarOp::And, keeps, is_new);
    }
    let ones = cx.b.convert(keeps, DType::S32);
    let place = cx.b.reshape(item, &dims![n, 1]);
    let zeros = cx.b.full(DType::S32, &[batch], 0.0);
    let kept = scatter(cx, zeros, place, ones, Some(ScalarOp::Add))?;
    let every = cx.b.full(DType::S32, &[n], 1.0);
    let given = scatter(cx, zeros, place, every, Some(ScalarOp::Add))?;
    let up_to = prefix_reduce(cx, ones, ScalarOp::Add, 0.0);
    let items_up_to = prefix_reduce(cx, kept, ScalarOp::Add, 0.0);
    let start = cx.b.sub(items_up_to, kept);
    let start = gather_along_axis(cx, start, item, 0, 0)?;
    let at = cx.b.sub(up_to, ones);
    let at = cx.b.sub(at, start);
    // A path has at most as many labels as steps; labels left out get an index out of range.
    let outside = cx.b.full_like(at, -1.0);
    let at = cx.b.select(keeps, at, outside);
    let at = cx.b.reshape(at, &dims![n, 1]);
    let places = cx.b.concatenate(&[place, at], 1);
    let blanks = cx.b.full(DType::S32, &[batch, n.min(time)], classes - 1);
    let dense = scatter(cx, blanks, places, values, None)?;
    Ok(Labels { dense, kept, given })
}

/// Softmax over the classes, the last axis.
fn softmax(b: &mut Builder, x: InstId) -> InstId {
    let (dims, dtype) = (b.dims(x).to_vec(), b.dtype(x));
    let least = b.scalar(dtype, f64::NEG_INFINITY);
    let largest = b.reduce(x, least, ScalarOp::Maximum, &[2]);
    let largest = b.broadcast(largest, &dims, &[0, 1]);
    let shifted = b.sub(x, largest);
    let e = b.unary(ScalarOp::Exp, shifted);
    let zero = b.scalar(dtype, 0.0);
    let sum = b.reduce(e, zero, ScalarOp::Add, &[2]);
    let sum = b.broadcast(sum, &dims, &[0, 1]);
    b.div(e, sum)
}

fn paths(cx: &mut LowerCtx, y: InstId, labels: &Labels, steps: InstId) -> Result<Paths> {
    let (dims, count) = (cx.b.dims(y).to_vec(), cx.b.dims(labels.dense)[1]);
    let (time, batch, classes, states) = (dims[0], dims[1], dims[2], 2 * count + 1);
    let merges = cx.node.bool("ctc_merge_repeated").unwrap_or(true);
    let log = cx.b.unary(ScalarOp::Log, y);
    let blank = cx.b.slice_axis(log, 2, classes - 1, classes);
    let by_item = cx.b.transpose(log, &[1, 0, 2]);
    let of_labels = gather_along_axis(cx, by_item, labels.dense, 2, 1)?;
    let of_labels = cx.b.transpose(of_labels, &[1, 0, 2]);
    let pair = |cx: &mut LowerCtx, x: InstId| cx.b.reshape(x, &dims![time, batch, count, 1]);
    let blanks = cx.b.broadcast_to(blank, &[time, batch, count]);
    let parts = [pair(cx, blanks), pair(cx, of_labels)];
    let pairs = cx.b.concatenate(&parts, 3);
    let pairs = cx.b.reshape(pairs, &[time, batch, 2 * count]);
    let emissions = cx.b.concatenate(&[pairs, blank], 2);
    let b = &mut *cx.b;
    let two = b.scalar(DType::S32, 2.0);
    let one = b.scalar(DType::S32, 1.0);
    let doubled = b.mul(labels.kept, two);
    let number = b.iota(DType::S32, &[batch, states], 1);
    let odd = b.binary(ScalarOp::And, number, one);
    let is_label = b.convert(odd, DType::Pred);
    let is_blank = b.unary(ScalarOp::Not, is_label);
    let mut skips = is_label;
    if merges {
        let minus = b.scalar(DType::S32, -1.0);
        let before = b.pad(
            labels.dense,
            minus,
            &[PadDim::default(), PadDim { low: Dim::from(1), high: Dim::from(-1), interior: Dim::from(0) }],
        );
        let is_other = b.compare(Direction::Ne, labels.dense, before);
        // Labels are the states of odd index.
        let each = dims![batch, count, 1];
        let (blanks, labels) = (b.full(DType::Pred, &each, 0.0), b.reshape(is_other, &each));
        let pairs = b.concatenate(&[blanks, labels], 2);
        let pairs = b.reshape(pairs, &dims![batch, 2 * count]);
        let spaced = b.pad_axis(pairs, 1, Dim::from(1));
        skips = b.binary(ScalarOp::And, is_label, spaced);
    }
    let stays = if merges { b.full(DType::Pred, &[batch, states], 1.0) } else { is_blank };
    Ok(Paths { emissions, stays, skips, states: b.add(doubled, one), steps })
}

/// ln(e^x + e^y), with the second term computed in f32.
pub(super) fn log_add_exp(b: &mut Builder, x: InstId, y: InstId) -> InstId {
    let (high, low) = (b.max(x, y), b.min(x, y));
    let difference = b.sub(low, high);
    let narrow = b.convert(difference, DType::F32);
    let e = b.unary(ScalarOp::Exp, narrow);
    let log = b.unary(ScalarOp::Log1p, e);
    let log = b.convert(log, b.dtype(x));
    let sum = b.add(high, log);
    let nothing = b.full_like(low, f64::NEG_INFINITY);
    let is_one = b.compare(Direction::Eq, low, nothing);
    b.select(is_one, high, sum)
}

/// Log of the sum over all states, `[batch]`, of the exponentials of `[1, batch, states]`.
fn sum_of_logarithms(b: &mut Builder, x: InstId) -> InstId {
    let dtype = b.dtype(x);
    b.begin_computation("add_logarithms");
    let [p, q] = [0, 1].map(|_| b.parameter(Shape::array(dtype, [])));
    let root = log_add_exp(b, p, q);
    let comp = b.end_computation(root);
    let nothing = b.scalar(dtype, f64::NEG_INFINITY);
    b.add_inst(Op::Reduce { dims: vec![0, 2], comp }, &[x, nothing])
}

/// `x`, `[batch, states]`, shifted along its states and filled with -inf.
fn moved(b: &mut Builder, x: InstId, by: i64) -> InstId {
    let nothing = b.scalar(b.dtype(x), f64::NEG_INFINITY);
    let states = b.dims(x)[1];
    if !states.varies() && by.abs() > states {
        return b.full_like(x, f64::NEG_INFINITY);
    }
    b.pad(x, nothing, &[PadDim::default(), PadDim { low: Dim::from(by), high: Dim::from(-by), interior: Dim::from(0) }])
}

/// `x` where the condition is true, else -inf, the logarithm of probability 0.
fn only(b: &mut Builder, condition: InstId, x: InstId) -> InstId {
    let nothing = b.full_like(x, f64::NEG_INFINITY);
    b.select(condition, x, nothing)
}

/// Forward variables: log-probability of all path prefixes that are in a state after a step, `[time, batch, states]`.
fn forward(b: &mut Builder, p: &Paths) -> InstId {
    let dims = b.dims(p.emissions).to_vec();
    // At the first step only the first two states are possible.
    let number = b.iota(DType::S32, &dims[1..], 1);
    let two = b.full_like(number, 2.0);
    let is_start = b.compare(Direction::Lt, number, two);
    let first = b.full(b.dtype(p.emissions), &dims[1..], 0.0);
    let first = only(b, is_start, first);
    let all = b.full(b.dtype(p.emissions), &dims, f64::NEG_INFINITY);
    let state = [all, first, p.emissions, p.stays, p.skips];
    let end = counted_loop(b, "ctc_forward", dims[0], &state, |b, t, parts| {
        let [all, before, emissions, stays, skips] = parts[..] else { return parts };
        let none = b.full_like(t, 0.0);
        let is_first = b.compare(Direction::Eq, t, none);
        let same = only(b, stays, before);
        let (one, two) = (moved(b, before, 1), moved(b, before, 2));
        let two = only(b, skips, two);
        let sum = log_add_exp(b, same, one);
        let sum = log_add_exp(b, sum, two);
        let sum = b.select(is_first, before, sum);
        let emitted = slice_at(b, emissions, t);
        let now = b.add(emitted, sum);
        vec![replace_slice_at(b, all, t, now), now, emissions, stays, skips]
    });
    end[0]
}

/// Backward variables: log-probability of all path suffixes that follow a state after a step, `[time, batch, states]`.
fn backward(b: &mut Builder, p: &Paths) -> InstId {
    let dims = b.dims(p.emissions).to_vec();
    let number = b.iota(DType::S32, &dims[1..], 1);
    let states = b.broadcast(p.states, &dims[1..], &[0]);
    let two = b.full_like(number, 2.0);
    let last = b.sub(states, two);
    let (from, to) = (b.compare(Direction::Ge, number, last), b.compare(Direction::Lt, number, states));
    let is_end = b.binary(ScalarOp::And, from, to);
    let ends = b.full(b.dtype(p.emissions), &dims[1..], 0.0);
    let ends = only(b, is_end, ends);
    let all = b.full(b.dtype(p.emissions), &dims, f64::NEG_INFINITY);
    let behind = b.full_like(ends, f64::NEG_INFINITY);
    // A transition that skips forward from a state is one that skips into the state two positions behind it.
    let no = b.scalar(DType::Pred, 0.0);
    let skips = if dims[2].varies() || dims[2] > 2 {
        b.pad(
            p.skips,
            no,
            &[PadDim::default(), PadDim { low: Dim::from(-2), high: Dim::from(2), interior: Dim::from(0) }],
        )
    } else {
        b.full(DType::Pred, &dims[1..], 0.0)
    };
    let state = [all, behind, p.emissions, p.stays, skips, ends, p.steps];
    let end = counted_loop(b, "ctc_backward", dims[0], &state, |b, round, parts| {
        let [all, next, emissions, stays, skips, ends, steps] = parts[..] else { return parts };
        let last = b.full_like(round, dims[0] - 1);
        let t = b.sub(last, round);
        // `next` includes the emissions of the following step.
        let same = only(b, stays, next);
        let (one, two) = (moved(b, next, -1), moved(b, next, -2));
        let two = only(b, skips, two);
        let sum = log_add_exp(b, same, one);
        let sum = log_add_exp(b, sum, two);
        let one = b.full_like(t, 1.0);
        let behind = b.add(t, one);
        let is_last = b.compare(Direction::Eq, steps, behind);
        let is_last = b.broadcast(is_last, &dims[1..], &[0]);
        let now = b.select(is_last, ends, sum);
        let emitted = slice_at(b, emissions, t);
        let next = b.add(now, emitted);
        vec![replace_slice_at(b, all, t, now), next, emissions, stays, skips, ends, steps]
    });
    end[0]
}

/// Gradient: the probability of each class minus its fraction on paths of the labels; the probability alone if there is no
/// path.
fn gradient(cx: &mut LowerCtx, y: InstId, both: InstId, log_p: InstId, labels: InstId) -> Result<InstId> {
    let (dims, places) = (cx.b.dims(y).to_vec(), cx.b.dims(both).to_vec());
    let (time, batch, classes, count) = (dims[0], dims[1], dims[2], cx.b.dims(labels)[1]);
    let log_p_of = cx.b.broadcast(log_p, &places, &[1]);
    let part = cx.b.sub(both, log_p_of);
    let nothing = cx.b.full_like(both, f64::NEG_INFINITY);
    let is_nothing = cx.b.compare(Direction::Eq, both, nothing);
    let part = cx.b.select(is_nothing, nothing, part);
    let part = cx.b.unary(ScalarOp::Exp, part);
    // Even states are blanks, odd ones are the labels in order.
    let zero = cx.b.scalar(cx.b.dtype(y), 0.0);
    let even = cx.b.slice(part, &every_second(&places, Dim::from(0)));
    let of_blank = cx.b.reduce(even, zero, ScalarOp::Add, &[2]);
    let of_blank = cx.b.transpose(of_blank, &[1, 0]);
    let sums = cx.b.full(cx.b.dtype(y), &[batch, classes - 1, time], 0.0);
    let of_blank = cx.b.reshape(of_blank, &dims![batch, 1, time]);
    let mut sums = cx.b.concatenate(&[sums, of_blank], 1);
    if !count.is_zero() {
        let odd = cx.b.slice(part, &every_second(&places, Dim::from(1)));
        let odd = cx.b.transpose(odd, &[1, 2, 0]);
        let item = cx.b.iota(DType::S32, &dims![batch, count, 1], 0);
        let label = cx.b.reshape(labels, &dims![batch, count, 1]);
        let at = cx.b.concatenate(&[item, label], 2);
        sums = scatter(cx, sums, at, odd, Some(ScalarOp::Add))?;
    }
    let sums = cx.b.transpose(sums, &[2, 0, 1]);
    let rest = cx.b.sub(y, sums);
    let nothing = cx.b.full_like(log_p, f64::NEG_INFINITY);
    let is_impossible = cx.b.compare(Direction::Eq, log_p, nothing);
    let is_impossible = cx.b.broadcast(is_impossible, &dims, &[1]);
    Ok(cx.b.select(is_impossible, y, rest))
}

/// Slices of every second position along the last of three axes.
fn every_second(dims: &[Dim], start: Dim) -> Vec<SliceDim> {
    let whole = |&n: &Dim| SliceDim { start: Dim::from(0), limit: n, stride: Dim::from(1) };
    let mut slices: Vec<SliceDim> = dims.iter().map(whole).collect();
    slices[2] = SliceDim { start, limit: dims[2], stride: Dim::from(2) };
    slices
}

fn loss_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let dims = cx.dims_of_rank(0, 3)?;
    Ok(vec![Fact::new(cx.dtype(0), vec![dims[1]].into()), Fact::new(cx.dtype(0), dims.into())])
}
