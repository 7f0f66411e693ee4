//! Non-maximum suppression: selection of boxes that do not overlap.
//!
//! Each step selects the remaining box of the highest score (ties go to the lower index) and lowers the scores of boxes that
//! overlap it: to -inf if the overlap exceeds the threshold, or gradually (soft suppression). The results equal those of
//! TensorFlow's priority queue, at a cost of `max_output_size * boxes`. Versions without padding return a data-dependent number
//! of boxes.
use crate::diag::{Code, Error, Result};
use crate::hlo::symbolic::{Builder, InstId, Op, Shape};
use crate::hlo::symbolic::{Dim, PadDim, SliceDim};
use crate::ops::ShapeCtx;
use crate::ops::fact::{Dims, Fact};
use crate::ops::op_lowering::op;
use crate::ops::shape::S32;
use crate::ops::symbols::UnknownReason;
use crate::ops::{LowerCtx, OpLowering, Value};
use crate::scalar::{Direction, ScalarOp};
use crate::tensor::DType;

const FLOATS: &str = "f16, f32";

/// Definitions of the ops of this file.
#[rustfmt::skip]
pub const ROWS: &[OpLowering] = &[
    op("NonMaxSuppression",   "boxes scores max_output_size -> selected_indices", |cx| suppress(cx, Form::V1)).shape(|cx| nms_shape(cx, Form::V1)).constant_inputs(&[2]).dtypes(FLOATS),
    op("NonMaxSuppressionV2", "boxes scores max_output_size iou_threshold -> selected_indices", |cx| suppress(cx, Form::V2)).shape(|cx| nms_shape(cx, Form::V2)).constant_inputs(&[2]).dtypes(FLOATS),
    op("NonMaxSuppressionV3", "boxes scores max_output_size iou_threshold score_threshold -> selected_indices", |cx| suppress(cx, Form::V3)).shape(|cx| nms_shape(cx, Form::V3)).constant_inputs(&[2]).dtypes(FLOATS),
    op("NonMaxSuppressionV4", "boxes scores max_output_size iou_threshold score_threshold -> selected_indices valid_outputs", |cx| suppress(cx, Form::V4)).shape(|cx| nms_shape(cx, Form::V4)).constant_inputs(&[2]).dtypes(FLOATS),
    op("NonMaxSuppressionV5", "boxes scores max_output_size iou_threshold score_threshold soft_nms_sigma -> selected_indices selected_scores valid_outputs", |cx| suppress(cx, Form::V5)).shape(|cx| nms_shape(cx, Form::V5)).constant_inputs(&[2]).dtypes(FLOATS),
    op("NonMaxSuppressionWithOverlaps", "overlaps scores max_output_size overlap_threshold score_threshold -> selected_indices", |cx| suppress(cx, Form::Overlaps)).shape(|cx| nms_shape(cx, Form::Overlaps)).constant_inputs(&[2]).dtypes("f32"),
];

/// Version of the op. `Overlaps` has the signature of `V3`, but its input is a matrix of overlaps.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Form {
    V1,
    V2,
    V3,
    Overlaps,
    V4,
    V5,
}

/// Inputs of the suppression loop apart from its state; all f32.
struct Problem {
    /// `[1 + n, 4]`: corners in any order; or `[1 + n, n]`: overlaps of every box with each box. The first row is a dummy, so
    /// that a row can be read even if there are no boxes.
    table: InstId,
    /// Kind of data that the rows of `table` hold.
    rows: Rows,
    /// `[n]`: scores, -inf for boxes that are not candidates.
    scores: InstId,
    /// Thresholds and the parameter of soft suppression, scalars.
    iou_threshold: InstId,
    score_threshold: InstId,
    sigma: InstId,
    /// Upper bound of the number of selected boxes.
    count: Dim,
}

/// Kind of data about each box: its corners, or its overlaps with every box.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rows {
    Corners,
    Overlaps,
}

fn suppress(cx: &mut LowerCtx, form: Form) -> Result<Vec<Value>> {
    let (boxes, scores) = (cx.dims(0)?, cx.dims(1)?);
    let ([n, width], [m]) = (&boxes[..], &scores[..]) else {
        return Err(cx.shape_mismatch(format!("boxes {boxes:?} must be a matrix and scores {scores:?} a vector")));
    };
    let needed = if form == Form::Overlaps { *n } else { Dim::from(4) };
    if n != m || *width != needed {
        return Err(cx.shape_mismatch(format!("{m} scores and boxes [{n}, {width}], which must be [{m}, {needed}]")));
    }
    let wanted = cx.constant_dim(2)?;
    let wanted = Dim::size(wanted)
        .ok()
        .filter(|&v| v <= 1i64 << 24)
        .ok_or_else(|| Error::user(Code::TooLarge, format!("max_output_size is {wanted}")))?;
    let padded = form >= Form::V4 && cx.bool_attr("pad_to_max_output_size");
    let score_type = cx.dtype(1)?;
    let problem = problem(cx, form, wanted.min(*n))?;
    let (indices, scores, valid) = run(cx.b, &problem, *n)?;
    let size = if padded { wanted } else { cx.data_dependent_size(valid, wanted.min(*n), "the list of boxes")? };
    let indices = resized(cx.b, indices, size);
    let scores = resized(cx.b, scores, size);
    let scores = cx.b.convert(scores, score_type);
    Ok(match form {
        Form::V1 | Form::V2 | Form::V3 | Form::Overlaps => vec![Value::Array(indices)],
        Form::V4 => vec![Value::Array(indices), Value::Array(valid)],
        Form::V5 => vec![Value::Array(indices), Value::Array(scores), Value::Array(valid)],
    })
}

fn problem(cx: &mut LowerCtx, form: Form, count: Dim) -> Result<Problem> {
    let scalar = |cx: &mut LowerCtx, i: usize, given: bool, default: f64| -> Result<InstId> {
        if !given {
            return Ok(cx.b.scalar(DType::F32, default));
        }
        let id = cx.arg(i)?;
        let id = cx.b.reshape(id, &[]);
        Ok(cx.b.convert(id, DType::F32))
    };
    let attr = f64::from(cx.node.float("iou_threshold").unwrap_or(0.5));
    let iou_threshold = scalar(cx, 3, form >= Form::V2, attr)?;
    let score_threshold = scalar(cx, 4, form >= Form::V3, f64::NEG_INFINITY)?;
    let sigma = scalar(cx, 5, form >= Form::V5, 0.0)?;
    let (boxes, scores) = (cx.arg(0)?, cx.arg(1)?);
    let b = &mut *cx.b;
    let (boxes, scores) = (b.convert(boxes, DType::F32), b.convert(scores, DType::F32));
    let (boxes, rows) = match form {
        // Row `i` of the transpose holds the overlaps of all candidates with the selected box `i`; the matrix need not be
        // symmetric.
        Form::Overlaps => (b.transpose(boxes, &[1, 0]), Rows::Overlaps),
        _ => (boxes, Rows::Corners),
    };
    let candidate = b.compare(Direction::Gt, scores, score_threshold);
    let nothing = b.full_like(scores, f64::NEG_INFINITY);
    let scores = b.select(candidate, scores, nothing);
    let zero = b.scalar(DType::F32, 0.0);
    let table = b.pad(boxes, zero, &[PadDim { low: Dim::from(1), ..PadDim::default() }, PadDim::default()]);
    Ok(Problem { table, rows, scores, iou_threshold, score_threshold, sigma, count })
}

/// Vector `x` truncated or zero-padded to `size` elements.
fn resized(b: &mut Builder, x: InstId, size: Dim) -> InstId {
    let n = b.dims(x)[0];
    let high = (size - n).max(0);
    if high.is_zero() {
        return b.slice(x, &[SliceDim { start: Dim::from(0), limit: size, stride: Dim::from(1) }]);
    }
    let zero = b.scalar(b.dtype(x), 0.0);
    b.pad(x, zero, &[PadDim { high, ..PadDim::default() }])
}

/// Emits the suppression loop. Results: indices s32 and scores f32 of `count` elements, zero behind the last selected box, and
/// the number of selected boxes. The same code works for no boxes, so that an open number of boxes needs one version.
fn run(b: &mut Builder, p: &Problem, n: Dim) -> Result<(InstId, InstId, InstId)> {
    let zero = b.scalar(DType::S32, 0.0);
    let indices = b.full(DType::S32, &[p.count], 0.0);
    let chosen = b.full(DType::F32, &[p.count], 0.0);
    let parts = [zero, p.scores, indices, chosen, zero, p.table, p.iou_threshold, p.score_threshold, p.sigma];
    let state = b.tuple(&parts);
    let shape = b.shape(state).clone();
    let cond = b.counter_below("nms_condition", &shape, p.count);
    let body = step(b, &shape, n, p.rows);
    let end = b.add_inst(Op::While { cond, body }, &[state]);
    Ok((b.get_tuple_element(end, 2), b.get_tuple_element(end, 3), b.get_tuple_element(end, 4)))
}

/// Loop body of one selection step: stores the best box at position `i`, if there is one, and lowers the scores of the others.
fn step(b: &mut Builder, shape: &Shape, n: Dim, rows: Rows) -> crate::hlo::symbolic::CompId {
    b.begin_computation("nms_step");
    let state = b.parameter(shape.clone());
    let [i, scores, indices, chosen, valid, table, iou_threshold, score_threshold, sigma] =
        [0, 1, 2, 3, 4, 5, 6, 7, 8].map(|k| b.get_tuple_element(state, k));
    let (best, at) = first_largest(b, scores, n);
    let nothing = b.scalar(DType::F32, f64::NEG_INFINITY);
    let found = b.compare(Direction::Gt, best, nothing);
    let (no_index, no_score) = (b.scalar(DType::S32, 0.0), b.scalar(DType::F32, 0.0));
    let index = b.select(found, at, no_index);
    let score = b.select(found, best, no_score);
    let indices = put(b, indices, index, i);
    let chosen = put(b, chosen, score, i);
    let one = b.scalar(DType::S32, 1.0);
    let more = b.convert(found, DType::S32);
    let valid = b.add(valid, more);
    let overlap = overlap_with(b, table, at, n, rows);
    let scores = sunk(b, scores, overlap, [iou_threshold, score_threshold, sigma]);
    let places = b.iota(DType::S32, &[n], 0);
    let taken = b.compare(Direction::Eq, places, at);
    let scores = b.select(taken, nothing, scores);
    let next = b.add(i, one);
    let root = b.tuple(&[next, scores, indices, chosen, valid, table, iou_threshold, score_threshold, sigma]);
    b.end_computation(root)
}

/// Largest element of a vector of `n`, and its first position.
fn first_largest(b: &mut Builder, x: InstId, n: Dim) -> (InstId, InstId) {
    let lowest = b.scalar(DType::F32, f64::NEG_INFINITY);
    let best = b.reduce(x, lowest, ScalarOp::Maximum, &[0]);
    let places = b.iota(DType::S32, &[n], 0);
    let end = n - 1;
    let behind = b.full(DType::S32, &[n], end);
    let is_best = b.compare(Direction::Eq, x, best);
    let places = b.select(is_best, places, behind);
    let last = b.scalar(DType::S32, end);
    (best, b.reduce(places, last, ScalarOp::Minimum, &[0]))
}

/// Vector with a scalar written at one position.
fn put(b: &mut Builder, x: InstId, value: InstId, at: InstId) -> InstId {
    let dims = b.dims(x).to_vec();
    let places = b.iota(DType::S32, &dims, 0);
    let is_there = b.compare(Direction::Eq, places, at);
    b.select(is_there, value, x)
}

/// Overlap of each box with box `at`, from `table` with row contents `rows` and one dummy row in front.
fn overlap_with(b: &mut Builder, table: InstId, at: InstId, n: Dim, rows: Rows) -> InstId {
    let width = b.dims(table)[1];
    let (first, column) = (b.scalar(DType::S32, 1.0), b.scalar(DType::S32, 0.0));
    let behind = b.add(at, first);
    let one = b.add_inst(Op::DynamicSlice(vec![Dim::from(1), width]), &[table, behind, column]);
    if rows == Rows::Overlaps {
        return b.reshape(one, &[n]);
    }
    let all = b.slice_axis(table, 0, Dim::from(1), 1 + n);
    let all = box_corners(b, all);
    let one = box_corners(b, one).map(|x| {
        let x = b.reshape(x, &[]);
        b.broadcast(x, &[n], &[])
    });
    intersection_over_union(b, all, one)
}

/// Intersection over union of boxes, both given by their [`box_corners`]; 0 where an area is not positive.
pub(super) fn intersection_over_union(b: &mut Builder, these: [InstId; 4], those: [InstId; 4]) -> InstId {
    let zero = b.full_like(these[0], 0.0);
    let mut side = |low: usize, high: usize| {
        let start = b.max(these[low], those[low]);
        let stop = b.min(these[high], those[high]);
        let length = b.sub(stop, start);
        b.max(length, zero)
    };
    let (height, width) = (side(0, 2), side(1, 3));
    let common = b.mul(height, width);
    let (area_these, area_those) = (area(b, these), area(b, those));
    let both = b.add(area_these, area_those);
    let union = b.sub(both, common);
    let ratio = b.div(common, union);
    let smaller = b.min(area_these, area_those);
    let real = b.compare(Direction::Gt, smaller, zero);
    b.select(real, ratio, zero)
}

/// Corners of boxes, whose coordinates are along the last axis: `[y low, x low, y high, x high]`, each without that axis.
pub(super) fn box_corners(b: &mut Builder, boxes: InstId) -> [InstId; 4] {
    let mut dims = b.dims(boxes).to_vec();
    let axis = dims.len() - 1;
    dims.truncate(axis);
    let columns = [0, 1, 2, 3].map(|i| {
        let column = b.slice_axis(boxes, axis, Dim::from(i), Dim::from(i + 1));
        b.reshape(column, &dims)
    });
    let [y1, x1, y2, x2] = columns;
    [b.min(y1, y2), b.min(x1, x2), b.max(y1, y2), b.max(x1, x2)]
}

fn area(b: &mut Builder, [y1, x1, y2, x2]: [InstId; 4]) -> InstId {
    let (height, width) = (b.sub(y2, y1), b.sub(x2, x1));
    b.mul(height, width)
}

/// Scores after a box was selected that overlaps them by `overlap`.
///
/// Hard suppression: -inf where the overlap exceeds the threshold, and times 0 where it is NaN. Soft suppression (sigma > 0):
/// times `exp(-overlap^2 / (2 sigma))`. A score that does not exceed the score threshold then becomes -inf.
fn sunk(b: &mut Builder, scores: InstId, overlap: InstId, [iou, threshold, sigma]: [InstId; 3]) -> InstId {
    let nothing = b.full_like(scores, f64::NEG_INFINITY);
    let (none, zero, half) = (b.full_like(scores, 0.0), b.scalar(DType::F32, 0.0), b.scalar(DType::F32, -0.5));
    let is_soft = b.compare(Direction::Gt, sigma, zero);
    let scale = b.div(half, sigma);
    let scale = b.select(is_soft, scale, zero);
    let exponent = b.mul(scale, overlap);
    let exponent = b.mul(exponent, overlap);
    let factor = b.unary(ScalarOp::Exp, exponent);
    let (within, over) = (b.compare(Direction::Le, overlap, iou), b.compare(Direction::Gt, overlap, iou));
    let hard = b.select(within, factor, none);
    let weight = b.select(is_soft, factor, hard);
    let faded = b.mul(scores, weight);
    let alive = b.compare(Direction::Gt, faded, threshold);
    let left = b.select(alive, faded, nothing);
    let hard = b.select(over, nothing, left);
    b.select(is_soft, left, hard)
}

/// Shape function of `NonMaxSuppression` and its versions: the number of selected boxes, which is known only for padded
/// results.
fn nms_shape(cx: &mut ShapeCtx, form: Form) -> Result<Vec<Fact>> {
    cx.dims_of_rank(0, 2)?;
    cx.dims_of_rank(1, 1)?;
    let n = if form >= Form::V4 && cx.bool_attr("pad_to_max_output_size") {
        cx.size_from_input(2)
    } else {
        cx.fresh_dim(UnknownReason::Data)
    };
    let mut out = vec![Fact::new(S32, vec![n].into())];
    if form == Form::V5 {
        out.push(Fact::new(cx.dtype(1), vec![n].into()));
    }
    if form >= Form::V4 {
        out.push(Fact::new(S32, Dims::from_sizes(&[])));
    }
    Ok(out)
}
