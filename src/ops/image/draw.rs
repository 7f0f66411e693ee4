//! `DrawBoundingBoxes`: draws the outlines of boxes into images, one over the other.
use crate::diag::Result;
use crate::hlo::symbolic::{Builder, Dim, InstId};
use crate::ops::array::gather::gather_slices;
use crate::ops::counted_loop::{counted_loop, slice_at};
use crate::ops::math::special::compare_scalar;
use crate::ops::op_lowering::op;
use crate::ops::shape::like_first_input;
use crate::ops::{LowerCtx, OpLowering, Value};
use crate::scalar::{Direction, ScalarOp};
use crate::tensor::{DType, Tensor};

/// Definitions of the ops of this file.
#[rustfmt::skip]
pub const ROWS: &[OpLowering] = &[
    op("DrawBoundingBoxes",   "images boxes -> output",        draw).shape(like_first_input).dtypes("f16, f32"),
    op("DrawBoundingBoxesV2", "images boxes colors -> output", draw).shape(like_first_input).dtypes("f16, f32"),
];

/// Default colors of boxes, used in turn: red, green, blue and opacity. Source: TensorFlow's `draw_bounding_box_op.cc`.
const COLORS: [[f32; 4]; 10] = [
    [1.0, 1.0, 0.0, 1.0],
    [0.0, 0.0, 1.0, 1.0],
    [1.0, 0.0, 0.0, 1.0],
    [0.0, 1.0, 0.0, 1.0],
    [0.5, 0.0, 0.5, 1.0],
    [0.5, 0.5, 0.0, 1.0],
    [0.5, 0.0, 0.0, 1.0],
    [0.0, 0.0, 0.5, 1.0],
    [0.0, 1.0, 1.0, 1.0],
    [1.0, 0.0, 1.0, 1.0],
];

/// Color table, one color per row, `f32[colors, depth]`.
fn colors(cx: &mut LowerCtx, depth: Dim) -> Result<InstId> {
    if cx.args.len() == 3 {
        let (given, dims) = (cx.arg(2)?, cx.dims(2)?);
        match dims[..] {
            [_, channels] if channels >= depth => {}
            _ => return Err(cx.shape_mismatch(format!("colors {dims:?} for images of {depth} channels"))),
        }
        if !crate::symbolic::has_zero(&dims) {
            return Ok(cx.b.slice_axis(given, 1, Dim::from(0), depth));
        }
    }
    let of = |color: &[f32; 4]| if depth == 1 { vec![1.0] } else { color[..depth.guarded_index()].to_vec() };
    let values: Vec<f32> = COLORS.iter().flat_map(of).collect();
    Ok(cx.b.constant(Tensor::of(&[COLORS.len() as u64, depth.guarded_count()], &values)))
}

/// Lowers `DrawBoundingBoxes`: the outline of each box, `[y1, x1, y2, x2]` as fractions of height and width, in the color of
/// its number.
fn draw(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (images, boxes) = (cx.arg(0)?, cx.arg(1)?);
    let (dims, of_boxes) = (cx.dims(0)?, cx.dims(1)?);
    let (&[batch, _, _, depth], &[items, count, four]) = (&dims[..], &of_boxes[..]) else {
        return Err(cx.shape_mismatch(format!("images {dims:?} and boxes {of_boxes:?}")));
    };
    if batch != items || four != 4 || ![1, 3, 4].map(Dim::from).contains(&depth) {
        return Err(cx.shape_mismatch(format!("images {dims:?} and boxes {of_boxes:?}; 1, 3 or 4 channels are needed")));
    }
    if crate::symbolic::has_zero(&dims) || count == 0 {
        return cx.one_output(images);
    }
    let colors = colors(cx, depth)?;
    let colors = cx.b.convert(colors, cx.b.dtype(images));
    let boxes = cx.b.convert(boxes, DType::F32);
    let boxes = cx.b.transpose(boxes, &[1, 0, 2]);
    let end = counted_loop(cx.b, "draw_boxes", count, &[images, boxes, colors], |b, i, parts| {
        let [canvas, boxes, colors] = parts[..] else { return parts };
        let one = slice_at(b, boxes, i);
        let frame = frame(b, one, &dims);
        let colors_count = b.full_like(i, b.dims(colors)[0]);
        let number = b.binary(ScalarOp::Remainder, i, colors_count);
        let color = gather_slices(b, colors, number, 0, 0);
        let color = b.broadcast(color, &dims, &[3]);
        vec![b.select(frame, color, canvas), boxes, colors]
    });
    cx.one_output(end[0])
}

/// Extent of boxes along one axis, as masks over rows or columns.
struct Side {
    /// `pred[batch, n]`: the first and the last row or column.
    is_edge: InstId,
    /// `pred[batch, n]`: all rows or columns from the first to the last.
    is_within: InstId,
    /// `pred[batch]`: whether any part of the extent is in the image.
    is_seen: InstId,
}

fn side(b: &mut Builder, boxes: InstId, first: Dim, n: Dim) -> Side {
    let batch = b.dims(boxes)[0];
    let dims = [batch, n];
    let [low, high] = [first, first + 2].map(|column| {
        let end = b.slice_axis(boxes, 1, column, column + 1);
        let end = b.reshape(end, &[batch]);
        let size = b.full_like(end, n - 1);
        let end = b.mul(end, size);
        b.convert(end, DType::S64)
    });
    let upright = b.compare(Direction::Le, low, high);
    let starts = compare_scalar(b, Direction::Lt, low, n);
    let ends = compare_scalar(b, Direction::Ge, high, 0.0);
    let is_seen = b.binary(ScalarOp::And, upright, starts);
    let is_seen = b.binary(ScalarOp::And, is_seen, ends);
    let place = b.iota(DType::S64, &dims, 1);
    let (low, high) = (b.broadcast(low, &dims, &[0]), b.broadcast(high, &dims, &[0]));
    let (at_low, at_high) = (b.compare(Direction::Eq, place, low), b.compare(Direction::Eq, place, high));
    let (behind, before) = (b.compare(Direction::Ge, place, low), b.compare(Direction::Le, place, high));
    Side {
        is_edge: b.binary(ScalarOp::Or, at_low, at_high),
        is_within: b.binary(ScalarOp::And, behind, before),
        is_seen,
    }
}

/// Mask of the pixels of images of these sizes that the outlines of boxes `f32[batch, 4]` cover.
fn frame(b: &mut Builder, boxes: InstId, dims: &[Dim]) -> InstId {
    let (rows, columns) = (side(b, boxes, Dim::from(0), dims[1]), side(b, boxes, Dim::from(1), dims[2]));
    let mut both = |x: InstId, y: InstId| {
        let (x, y) = (b.broadcast(x, dims, &[0, 1]), b.broadcast(y, dims, &[0, 2]));
        b.binary(ScalarOp::And, x, y)
    };
    let (across, down) = (both(rows.is_edge, columns.is_within), both(rows.is_within, columns.is_edge));
    let frame = b.binary(ScalarOp::Or, across, down);
    let is_seen = b.binary(ScalarOp::And, rows.is_seen, columns.is_seen);
    let is_seen = b.broadcast(is_seen, dims, &[0]);
    b.binary(ScalarOp::And, frame, is_seen)
}
