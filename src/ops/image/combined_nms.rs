//! Non-maximum suppression for several classes and images at once (`CombinedNonMaxSuppression`).
//!
//! As in TensorFlow's kernel, the best boxes of each class are selected whose scores exceed a threshold and that do not overlap
//! one another; then the best over all classes. All classes of all images take each step together. Ties go to the box with the
//! lower index, then to the class with the lower index.
use super::nms::{box_corners, intersection_over_union};
use crate::diag::{Code, Error, Result};
use crate::dims;
use crate::hlo::symbolic::{Builder, CompId, InstId, Op, Shape};
use crate::hlo::symbolic::{Dim, GatherDims, PadDim};
use crate::ops::fact::Fact;
use crate::ops::op_lowering::op;
use crate::ops::shape::S32;
use crate::ops::symbols::{InferredDim, UnknownReason};
use crate::ops::{LowerCtx, OpLowering, ShapeCtx, Value};
use crate::scalar::{CompareKind, Direction, ScalarOp};
use crate::tensor::DType;

/// Definitions of the ops of this file.
#[rustfmt::skip]
pub const ROWS: &[OpLowering] = &[
    op("CombinedNonMaxSuppression", "boxes scores max_output_size_per_class max_total_size iou_threshold score_threshold -> nmsed_boxes nmsed_scores nmsed_classes valid_detections", combined).shape(combined_shape).constant_inputs(&[2, 3]).dtypes("f32"),
];

/// Upper bound of the number of selected boxes.
const MOST: u64 = 1 << 24;

/// Dimensions of the suppression problem.
#[derive(Clone, Copy)]
struct Sizes {
    images: Dim,
    boxes: Dim,
    classes: Dim,
    /// Upper bound of the boxes selected per class.
    each: Dim,
}

impl Sizes {
    fn of_classes(self) -> [Dim; 2] {
        [self.images, self.classes]
    }
    fn of_boxes(self) -> [Dim; 3] {
        [self.images, self.classes, self.boxes]
    }
    /// Whether there is no box to select from.
    fn are_none(self) -> bool {
        self.of_boxes().contains(&Dim::from(0))
    }
}

fn combined(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (boxes, scores) = (cx.dims(0)?, cx.dims(1)?);
    let ([images, n, q, four], [b, m, classes]) = (&boxes[..], &scores[..]) else {
        return Err(cx.shape_mismatch(format!(
            "boxes {boxes:?} must be [images, n, q, 4] and scores {scores:?} [images, n, classes]"
        )));
    };
    if *four != 4 || images != b || n != m || (*q != 1 && q != classes) {
        return Err(cx.shape_mismatch(format!("boxes {boxes:?} and scores {scores:?}")));
    }
    let of_class = count(cx, 2)?;
    let sizes = Sizes { images: *images, boxes: *n, classes: *classes, each: of_class.min(*n) };
    let most = count(cx, 3)?;
    let total = match cx.bool_attr("pad_per_class") {
        true => most.min(of_class.saturating_mul(*classes)),
        false => most,
    };
    let clip = cx.node.bool("clip_boxes").unwrap_or(true);
    let (boxes, scores) = (cx.arg(0)?, cx.arg(1)?);
    let threshold = |cx: &mut LowerCtx, i: usize| -> Result<InstId> {
        let x = cx.arg(i)?;
        Ok(cx.b.reshape(x, &[]))
    };
    let (iou, least) = (threshold(cx, 4)?, threshold(cx, 5)?);
    let b = &mut *cx.b;
    let boxes = b.transpose(boxes, &[0, 2, 1, 3]);
    let scores = b.transpose(scores, &[0, 2, 1]);
    let is_candidate = b.compare(Direction::Gt, scores, least);
    let nothing = b.full_like(scores, f64::NEG_INFINITY);
    let scores = b.select(is_candidate, scores, nothing);
    if sizes.are_none() {
        let [boxes, scores, classes] =
            [&[sizes.images, total, Dim::from(4)][..], &[sizes.images, total], &[sizes.images, total]]
                .map(|dims| Value::Array(b.full(DType::F32, dims, 0.0)));
        return Ok(vec![boxes, scores, classes, Value::Array(b.full(DType::S32, &[sizes.images], 0.0))]);
    }
    let (chosen, of) = of_each_class(b, sizes, [boxes, scores, iou]);
    best_of_all(cx.b, sizes, boxes, chosen, of, total, clip)
}

/// Shape function of `CombinedNonMaxSuppression`: the requested number of boxes an image, or with `pad_per_class` at most the boxes of all
/// classes.
fn combined_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let (images, scores) = (cx.dims_of_rank(0, 4)?[0], cx.dims_of_rank(1, 3)?);
    let images =
        cx.merge_dim(images, scores[0]).ok_or_else(|| cx.shape_mismatch("boxes and scores of other images"))?;
    let most = cx.size_from_input(3);
    let total = match (cx.bool_attr("pad_per_class"), cx.size_from_input(2), scores[2], most) {
        (false, ..) => most,
        (true, InferredDim::Known(each), InferredDim::Known(classes), InferredDim::Known(most)) => {
            InferredDim::Known(most.min(each.saturating_mul(classes)))
        }
        (true, ..) => cx.fresh_dim(UnknownReason::Data),
    };
    let boxes = cx.one_output_like(0, vec![images, total, InferredDim::Known(4)])?.remove(0);
    let [scores, classes] = [0, 1].map(|_| Fact::new(boxes.dtype, vec![images, total].into()));
    Ok(vec![boxes, scores, classes, Fact::new(S32, vec![images].into())])
}

/// Number of boxes that input `i` gives.
fn count(cx: &LowerCtx, i: usize) -> Result<Dim> {
    let n = cx.constant_dim(i)?;
    Dim::size(n)
        .ok()
        .filter(|&n| n > 0 && n <= MOST)
        .ok_or_else(|| Error::user(Code::TooLarge, format!("{n} boxes are to be selected")))
}

/// Selected scores and boxes of each class, best first, `[images, classes, each]`; the score is -inf where fewer boxes are
/// selected.
fn of_each_class(b: &mut Builder, sizes: Sizes, [boxes, scores, iou]: [InstId; 3]) -> (InstId, InstId) {
    let [images, classes] = sizes.of_classes();
    let chosen = b.full(DType::F32, &[images, classes, sizes.each], f64::NEG_INFINITY);
    let of = b.full(DType::S32, &[images, classes, sizes.each], 0.0);
    let zero = b.scalar(DType::S32, 0.0);
    let state = b.tuple(&[zero, scores, chosen, of, boxes, iou]);
    let shape = b.shape(state).clone();
    let cond = b.counter_below("combined_nms_condition", &shape, sizes.each);
    let body = step(b, &shape, sizes);
    let end = b.add_inst(Op::While { cond, body }, &[state]);
    (b.get_tuple_element(end, 2), b.get_tuple_element(end, 3))
}

/// Loop body of one selection step: the best box of each class is stored at position `i`, and boxes that overlap it are
/// removed.
fn step(b: &mut Builder, shape: &Shape, sizes: Sizes) -> CompId {
    b.begin_computation("combined_nms_step");
    let state = b.parameter(shape.clone());
    let [i, scores, chosen, of, boxes, iou] = [0, 1, 2, 3, 4, 5].map(|k| b.get_tuple_element(state, k));
    let (all, each) = (sizes.of_boxes(), sizes.of_classes());
    let lowest = b.scalar(DType::F32, f64::NEG_INFINITY);
    let best = b.reduce(scores, lowest, ScalarOp::Maximum, &[2]);
    let places = b.iota(DType::S32, &all, 2);
    let wide = b.broadcast(best, &all, &[0, 1]);
    let is_best = b.compare(Direction::Eq, scores, wide);
    let last = b.full_like(places, sizes.boxes - 1);
    let candidates = b.select(is_best, places, last);
    let behind = b.scalar(DType::S32, sizes.boxes - 1);
    let at = b.reduce(candidates, behind, ScalarOp::Minimum, &[2]);
    let zero = b.scalar(DType::S32, 0.0);
    let mut put = |x: InstId, value: InstId| {
        let value = b.reshape(value, &dims![each[0], each[1], 1]);
        b.add_inst(Op::DynamicUpdateSlice, &[x, value, zero, zero, i])
    };
    let (chosen, of) = (put(chosen, best), put(of, at));
    let one = taken(b, boxes, at);
    let ends = box_corners(b, boxes).map(|x| spread(b, x, &all));
    let one = box_corners(b, one).map(|x| b.broadcast(x, &all, &[0, 1]));
    let overlap = intersection_over_union(b, ends, one);
    let is_over = b.compare(Direction::Gt, overlap, iou);
    let at = b.broadcast(at, &all, &[0, 1]);
    let is_taken = b.compare(Direction::Eq, places, at);
    let gone = b.elementwise(ScalarOp::Or, &[is_over, is_taken]);
    let nothing = b.full_like(scores, f64::NEG_INFINITY);
    let scores = b.select(gone, nothing, scores);
    let step = b.scalar(DType::S32, 1.0);
    let next = b.add(i, step);
    let root = b.tuple(&[next, scores, chosen, of, boxes, iou]);
    b.end_computation(root)
}

/// `[images, q]` or `[images, q, boxes]` broadcast to each class.
fn spread(b: &mut Builder, x: InstId, all: &[Dim; 3]) -> InstId {
    let dims = b.dims(x).to_vec();
    if dims[1] == all[1] {
        return x;
    }
    let x = b.reshape(x, &[dims[0], dims[2]]);
    b.broadcast(x, all, &[0, 2])
}

/// Boxes at given positions for each class, `[images, classes, ...]` plus a dimension of four coordinates.
fn taken(b: &mut Builder, boxes: InstId, at: InstId) -> InstId {
    let (q, dims) = (b.dims(boxes)[1], b.dims(at).to_vec());
    let indices = b.reshape(at, &[&dims[..], &dims![1]].concat());
    let own = q == dims[1];
    let batch = if own { vec![0, 1] } else { vec![0] };
    let dims = GatherDims {
        offset_dims: vec![dims.len()],
        collapsed_slice_dims: if own { vec![2] } else { vec![1, 2] },
        start_index_map: vec![2],
        index_vector_dim: dims.len(),
        operand_batching_dims: batch.clone(),
        start_indices_batching_dims: batch,
        slice_sizes: vec![Dim::from(1), Dim::from(1), Dim::from(1), Dim::from(4)],
        indices_are_sorted: false,
    };
    b.add_inst(Op::Gather(Box::new(dims)), &[boxes, indices])
}

/// Best `total` boxes of each image over all classes, padded with zeros.
fn best_of_all(
    b: &mut Builder,
    sizes: Sizes,
    boxes: InstId,
    chosen: InstId,
    of: InstId,
    total: Dim,
    clip: bool,
) -> Result<Vec<Value>> {
    let [images, classes] = sizes.of_classes();
    let width = classes.saturating_mul(sizes.each);
    let k = total.min(width);
    let [scores, at] = [chosen, of].map(|x| b.reshape(x, &[images, width]));
    let best = b.add_inst(Op::TopK { k, largest: true, kind: CompareKind::Total }, &[scores]);
    let (scores, place) = (b.get_tuple_element(best, 0), b.get_tuple_element(best, 1));
    let nothing = b.full_like(scores, f64::NEG_INFINITY);
    let is_real = b.compare(Direction::Gt, scores, nothing);
    let each = b.full_like(place, sizes.each.max(1));
    let class = b.div(place, each);
    let at = picked(b, at, &[place]);
    // A missing box has index 0, so that the gather stays in range.
    let zero = b.full_like(at, 0.0);
    let class_of_box = if b.dims(boxes)[1] == 1 { zero } else { class };
    let selected = picked(b, boxes, &[class_of_box, at]);
    let selected = match clip {
        true => {
            let (low, high) = (b.full_like(selected, 0.0), b.full_like(selected, 1.0));
            let above = b.max(selected, low);
            b.min(above, high)
        }
        false => selected,
    };
    let class = b.convert(class, DType::F32);
    let mut filled = |x: InstId| {
        let dims = b.dims(x).to_vec();
        let real = b.broadcast(is_real, &dims, &[0, 1]);
        let zero = b.full_like(x, 0.0);
        let x = b.select(real, x, zero);
        let fill = b.scalar(DType::F32, 0.0);
        let grown = |axis| PadDim {
            low: Dim::from(0),
            high: if axis == 1 { total - k } else { Dim::from(0) },
            interior: Dim::from(0),
        };
        let pads: Vec<PadDim> = (0..dims.len()).map(grown).collect();
        Value::Array(b.pad(x, fill, &pads))
    };
    let mut out = vec![filled(selected), filled(scores), filled(class)];
    let real = b.convert(is_real, DType::S32);
    let zero = b.scalar(DType::S32, 0.0);
    out.push(Value::Array(b.reduce(real, zero, ScalarOp::Add, &[1])));
    Ok(out)
}

/// Elements of each image at index tuples, one index array `[images, k]` per axis: `[images, k, ...]`.
fn picked(b: &mut Builder, x: InstId, places: &[InstId]) -> InstId {
    let (dims, at) = (b.dims(x).to_vec(), b.dims(places[0]).to_vec());
    let parts: Vec<InstId> = places.iter().map(|&p| b.reshape(p, &dims![at[0], at[1], 1])).collect();
    let indices = if parts.len() == 1 { parts[0] } else { b.concatenate(&parts, 2) };
    let picked: Vec<usize> = (1..=places.len()).collect();
    let rest = dims.len() - picked.len() - 1;
    let slice_sizes = dims.iter().enumerate().map(|(a, &n)| if a <= picked.len() { Dim::from(1) } else { n }).collect();
    let dims = GatherDims {
        offset_dims: (2..2 + rest).collect(),
        collapsed_slice_dims: picked.clone(),
        start_index_map: picked,
        index_vector_dim: 2,
        operand_batching_dims: vec![0],
        start_indices_batching_dims: vec![0],
        slice_sizes,
        indices_are_sorted: false,
    };
    b.add_inst(Op::Gather(Box::new(dims)), &[x, indices])
}
