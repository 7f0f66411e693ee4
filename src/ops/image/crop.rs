//! `CropAndResize`: crops of images at boxes known at run time.
use crate::diag::{Code, Error, Result};
use crate::dims;
use crate::graph::TfType;
use crate::hlo::symbolic::GatherDims;
use crate::hlo::symbolic::{Builder, Dim, InstId, Op};
use crate::ops::ShapeCtx;
use crate::ops::checks;
use crate::ops::fact::{Fact, InferredInt};
use crate::ops::op_lowering::op;
use crate::ops::symbols::UnknownReason;
use crate::ops::{LowerCtx, OpLowering, Value, Work};
use crate::scalar::{Direction, ScalarOp};
use crate::tensor::DType;

/// Definitions of the ops of this file.
#[rustfmt::skip]
pub const ROWS: &[OpLowering] = &[
    op("CropAndResize", "image boxes box_ind crop_size -> crops", crop_and_resize).with_check(checks::check_box_images).shape(crop_shape).constant_inputs(&[3])
        .dtypes("image: s8, u8, s16, u16, s32, s64, f16, f32, f64; boxes: f32").work(Work::None),
];

/// Sampling positions along one spatial axis: arrays `[boxes, crop]`.
pub(super) struct AxisSamples {
    /// Source coordinate in the image.
    pub(super) at: InstId,
    /// Whether the coordinate lies in the image.
    pub(super) inside: InstId,
}

/// Lowers `CropAndResize`: crops each box (normalized `y1, x1, y2, x2`) from its image and resizes it. Positions outside of the
/// image get `extrapolation_value`.
///
/// Shapes: image `[batch, h, w, c]`, boxes `[n, 4]`, box_ind `[n]` -> f32 `[n, crop_h, crop_w, c]`.
fn crop_and_resize(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (image, boxes, owner) = (cx.dims(0)?, cx.dims(1)?, cx.dims(2)?);
    let crop = cx.constant_dims(3)?;
    let ([crop_h, crop_w], 4, [n, four]) = (&crop[..], image.len(), &boxes[..]) else {
        return Err(cx.shape_mismatch(format!("image {image:?}, boxes {boxes:?} and crop_size {crop:?} do not fit")));
    };
    if *four != 4 || owner[..] != [*n] || image[1] == 0 || image[2] == 0 {
        return Err(cx.shape_mismatch(format!("image {image:?}, boxes {boxes:?} and box_ind {owner:?} do not fit")));
    }
    let size = |v: Dim| match Dim::size(v) {
        Ok(v) if v > 0 && v <= 1i64 << 24 => Ok(v),
        _ => Err(Error::user(Code::TooLarge, format!("a crop of {v} pixels"))),
    };
    let (crop_h, crop_w) = (size(*crop_h)?, size(*crop_w)?);
    let fill = f64::from(cx.node.float("extrapolation_value").unwrap_or(0.0));
    let nearest = match cx.node.str("method").unwrap_or("bilinear") {
        "bilinear" => false,
        "nearest" => true,
        other => return Err(cx.unsupported_case(format!("method {other} is not supported; bilinear and nearest are"))),
    };
    let (x, boxes, owner) = (cx.arg(0)?, cx.arg(1)?, cx.arg(2)?);
    let b = &mut *cx.b;
    let boxes = b.convert(boxes, DType::F32);
    let rows = axis_samples(b, boxes, Dim::from(0), image[1], crop_h);
    let columns = axis_samples(b, boxes, Dim::from(1), image[2], crop_w);
    let x = b.convert(x, DType::F32);
    let grid = [*n, crop_h, crop_w];
    let out = [*n, crop_h, crop_w, image[3]];
    let owner = b.broadcast(owner, &grid, &[0]);
    let y = if nearest {
        let row = b.unary(ScalarOp::RoundNearestAfz, rows.at);
        let column = b.unary(ScalarOp::RoundNearestAfz, columns.at);
        gather_pixels(b, x, owner, row, column)
    } else {
        lerp_2d(b, x, owner, rows.at, columns.at)
    };
    let (r, c) = (b.broadcast(rows.inside, &out, &[0, 1]), b.broadcast(columns.inside, &out, &[0, 2]));
    let inside = b.binary(ScalarOp::And, r, c);
    let fill = b.full(DType::F32, &out, fill);
    let y = b.select(inside, y, fill);
    cx.one_output(y)
}

/// Source coordinates along one axis; columns `first` and `first + 2` of `boxes` are the ends of each box.
pub(super) fn axis_samples(b: &mut Builder, boxes: InstId, first: Dim, image: Dim, crop: Dim) -> AxisSamples {
    let n = b.dims(boxes)[0];
    let dims = [n, crop];
    let mut end = |column: Dim| {
        let end = b.slice_axis(boxes, 1, column, column + 1);
        b.broadcast_to(end, &dims)
    };
    let (start, stop) = (end(first), end(first + 2));
    let last = b.full(DType::F32, &dims, image - 1);
    let at = if crop > 1 {
        let range = b.sub(stop, start);
        let range = b.mul(range, last);
        let steps = b.full(DType::F32, &dims, crop - 1);
        let scale = b.div(range, steps);
        let i = b.iota(DType::F32, &dims, 1);
        let moved = b.mul(i, scale);
        let start = b.mul(start, last);
        b.add(start, moved)
    } else {
        let both = b.add(start, stop);
        let half = b.full(DType::F32, &dims, 0.5);
        let middle = b.mul(both, half);
        b.mul(middle, last)
    };
    let zero = b.full(DType::F32, &dims, 0.0);
    let (above, below) = (b.compare(Direction::Ge, at, zero), b.compare(Direction::Le, at, last));
    AxisSamples { at, inside: b.binary(ScalarOp::And, above, below) }
}

/// Pixels at `row [n, crop_h]` and `column [n, crop_w]` (whole numbers as floats) of the images given by `owner`.
pub(super) fn gather_pixels(b: &mut Builder, x: InstId, owner: InstId, row: InstId, column: InstId) -> InstId {
    let grid = b.dims(owner).to_vec();
    let (row, column) = (b.convert(row, DType::S32), b.convert(column, DType::S32));
    let (row, column) = (b.broadcast(row, &grid, &[0, 1]), b.broadcast(column, &grid, &[0, 2]));
    pixels_at_indices(b, x, [owner, row, column])
}

/// Pixels of images at index arrays for image, row and column, all `s32` of one rank-3 shape.
pub fn pixels_at_indices(b: &mut Builder, x: InstId, places: [InstId; 3]) -> InstId {
    let image = b.dims(x).to_vec();
    let single = [b.dims(places[0]), &dims![1]].concat();
    let parts = places.map(|i| b.reshape(i, &single));
    let index = b.concatenate(&parts, 3);
    let dims = GatherDims {
        offset_dims: vec![3],
        collapsed_slice_dims: vec![0, 1, 2],
        start_index_map: vec![0, 1, 2],
        index_vector_dim: 3,
        slice_sizes: vec![Dim::from(1), Dim::from(1), Dim::from(1), image[3]],
        ..GatherDims::default()
    };
    b.add_inst(Op::Gather(Box::new(dims)), &[x, index])
}

fn lerp_2d(b: &mut Builder, x: InstId, owner: InstId, row: InstId, column: InstId) -> InstId {
    let (top, left) = (b.unary(ScalarOp::Floor, row), b.unary(ScalarOp::Floor, column));
    let (bottom, right) = (b.unary(ScalarOp::Ceil, row), b.unary(ScalarOp::Ceil, column));
    let (down, across) = (b.sub(row, top), b.sub(column, left));
    let mut mix = |y: InstId| {
        let (l, r) = (gather_pixels(b, x, owner, y, left), gather_pixels(b, x, owner, y, right));
        let dims = b.dims(l).to_vec();
        let weight = b.broadcast(across, &dims, &[0, 2]);
        let difference = b.sub(r, l);
        let part = b.mul(difference, weight);
        b.add(l, part)
    };
    let (upper, lower) = (mix(top), mix(bottom));
    let dims = b.dims(upper).to_vec();
    let weight = b.broadcast(down, &dims, &[0, 1]);
    let difference = b.sub(lower, upper);
    let part = b.mul(difference, weight);
    b.add(upper, part)
}

fn crop_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let (image, boxes) = (cx.dims_of_rank(0, 4)?, cx.dims_of_rank(1, 2)?);
    let sizes = cx.partial_ints(3).filter(|v| v.len() == 2).unwrap_or_else(|| vec![InferredInt::Unknown; 2]);
    let mut dims = vec![boxes[0]];
    for size in sizes {
        dims.push(size.as_dim().unwrap_or_else(|| cx.fresh_dim(UnknownReason::Value(3))));
    }
    dims.push(image[3]);
    cx.one_output(TfType::Data(DType::F32), dims)
}
