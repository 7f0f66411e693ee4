//! Gradients of `CropAndResize` with respect to the image and to the boxes.
use super::crop::{AxisSamples, axis_samples, gather_pixels};
use crate::diag::Result;
use crate::dims;
use crate::graph::TfType;
use crate::hlo::symbolic::{Builder, Dim, InstId};
use crate::ops::array::scatter::scatter;
use crate::ops::fact::Fact;
use crate::ops::math::special::{compare_scalar, mul_scalar};
use crate::ops::op_lowering::op;
use crate::ops::{LowerCtx, OpLowering, ShapeCtx, Value};
use crate::scalar::{Direction, ScalarOp};
use crate::tensor::DType;

/// Definitions of the ops of this file.
#[rustfmt::skip]
pub const ROWS: &[OpLowering] = &[
    op("CropAndResizeGradImage", "grads boxes box_ind image_size -> output", of_image).shape(image_shape).constant_inputs(&[3]).dtypes("f16, f32, f64"),
    op("CropAndResizeGradBoxes", "grads image boxes box_ind -> output", of_boxes).shape(boxes_shape)
        .dtypes("u8, u16, s8, s16, s32, s64, f16, f32, f64"),
];

/// Geometry of the crops: their sizes, the boxes, and the image of each box.
struct Crops {
    /// Sizes of the gradient, `[boxes, rows, columns, channels]`.
    dims: Vec<Dim>,
    rows: AxisSamples,
    columns: AxisSamples,
    owner: InstId,
}

fn crops(cx: &mut LowerCtx, boxes: usize, image: &[Dim]) -> Result<Crops> {
    let dims = cx.dims(0)?;
    let (corners, owner) = (cx.arg(boxes)?, cx.arg(boxes + 1)?);
    let &[n, rows, columns, depth] = &dims[..] else { return Err(cx.shape_mismatch("the gradient must be of rank 4")) };
    let fits =
        cx.b.dims(corners) == [n, Dim::from(4)] && cx.b.dims(owner) == [n] && image.len() == 4 && image[3] == depth;
    if !fits || image[1] == 0 || image[2] == 0 {
        return Err(
            cx.shape_mismatch(format!("a gradient {dims:?} of images {image:?} at boxes {:?}", cx.b.dims(corners)))
        );
    }
    let (rows, columns) = (
        axis_samples(cx.b, corners, Dim::from(0), image[1], rows),
        axis_samples(cx.b, corners, Dim::from(1), image[2], columns),
    );
    Ok(Crops { dims, rows, columns, owner })
}

/// Neighbors of a coordinate between two pixels.
struct Between {
    low: InstId,
    high: InstId,
    /// Interpolation weight of the higher pixel, broadcast to the gradient's sizes.
    weight: InstId,
}

fn between(b: &mut Builder, at: InstId, axis: usize, dims: &[Dim]) -> Between {
    let (low, high) = (b.unary(ScalarOp::Floor, at), b.unary(ScalarOp::Ceil, at));
    let weight = b.sub(at, low);
    Between { low, high, weight: b.broadcast(weight, dims, &[0, axis]) }
}

/// Whether each element of the gradient was read from inside the image.
fn is_inside(b: &mut Builder, crops: &Crops, dims: &[Dim]) -> InstId {
    let (rows, columns) =
        (b.broadcast(crops.rows.inside, dims, &[0, 1]), b.broadcast(crops.columns.inside, dims, &[0, 2]));
    b.binary(ScalarOp::And, rows, columns)
}

/// Lowers the gradient with respect to the image: each element of the gradient is added to the pixels it was interpolated from,
/// with the interpolation weights.
fn of_image(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let size = cx.constant_dims(3)?;
    let image: Option<Vec<Dim>> = size.iter().map(|&n| Dim::size(n).ok()).collect();
    let image = image.ok_or_else(|| cx.shape_mismatch(format!("an image of {size:?}")))?;
    let crops = crops(cx, 1, &image)?;
    let (dtype, grads) = (cx.attr_dtype("T")?, cx.arg(0)?);
    let is_nearest = match cx.node.str("method").unwrap_or("bilinear") {
        "bilinear" => false,
        "nearest" => true,
        other => return Err(cx.unsupported_case(format!("method {other}; bilinear and nearest are supported"))),
    };
    let dims = crops.dims.clone();
    let b = &mut *cx.b;
    let mut updates = Vec::new();
    if is_nearest {
        let [row, column] = [crops.rows.at, crops.columns.at].map(|at| b.unary(ScalarOp::RoundNearestAfz, at));
        updates.push((row, column, grads));
    } else {
        let (rows, columns) = (between(b, crops.rows.at, 1, &dims), between(b, crops.columns.at, 2, &dims));
        let [below, right] = [rows.weight, columns.weight];
        let [above, left] = [below, right].map(|weight| {
            let one = b.full_like(weight, 1.0);
            b.sub(one, weight)
        });
        for (row, down) in [(rows.low, above), (rows.high, below)] {
            let part = b.mul(down, grads);
            for (column, across) in [(columns.low, left), (columns.high, right)] {
                updates.push((row, column, b.mul(across, part)));
            }
        }
    }
    // The additions are made pixel by pixel, in the order of TensorFlow's kernel.
    let inside = is_inside(b, &crops, &dims[..3]);
    let (mut at, mut parts) = (Vec::new(), Vec::new());
    for (row, column, update) in updates {
        at.push(places(b, &crops, [row, column], inside));
        let update = b.convert(update, dtype);
        parts.push(b.reshape(update, &dims![dims[0], dims[1], dims[2], 1, dims[3]]));
    }
    let (at, parts) = (b.concatenate(&at, 3), b.concatenate(&parts, 3));
    let zeros = b.full(dtype, &image, 0.0);
    let y = scatter(cx, zeros, at, parts, Some(ScalarOp::Add))?;
    cx.one_output(y)
}

/// Scatter indices `s32[boxes, rows, columns, 1, 3]` into the images; out of range for elements that were not read from an
/// image.
fn places(b: &mut Builder, crops: &Crops, at: [InstId; 2], inside: InstId) -> InstId {
    let grid = b.dims(inside).to_vec();
    let [row, column] = at.map(|x| b.convert(x, DType::S32));
    let (row, column) = (b.broadcast(row, &grid, &[0, 1]), b.broadcast(column, &grid, &[0, 2]));
    let owner = b.broadcast(crops.owner, &grid, &[0]);
    let nowhere = b.full_like(owner, -1.0);
    let owner = b.select(inside, owner, nowhere);
    let single = [&grid[..], &dims![1, 1]].concat();
    let parts = [owner, row, column].map(|x| b.reshape(x, &single));
    b.concatenate(&parts, 4)
}

/// Lowers the gradient with respect to the boxes, `f32[boxes, 4]`.
fn of_boxes(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let image = cx.dims(1)?;
    let crops = crops(cx, 2, &image)?;
    let (grads, x) = (cx.arg(0)?, cx.arg(1)?);
    let (dims, grid) = (crops.dims.clone(), crops.dims[..3].to_vec());
    let b = &mut *cx.b;
    let x = b.convert(x, DType::F32);
    let owner = b.broadcast(crops.owner, &grid, &[0]);
    let (rows, columns) = (between(b, crops.rows.at, 1, &dims), between(b, crops.columns.at, 2, &dims));
    let [top_left, top_right, bottom_left, bottom_right] =
        [(rows.low, columns.low), (rows.low, columns.high), (rows.high, columns.low), (rows.high, columns.high)]
            .map(|(row, column)| gather_pixels(b, x, owner, row, column));
    let mut slope = |weight: InstId, pairs: [[InstId; 2]; 2]| {
        let one = b.full_like(weight, 1.0);
        let rest = b.sub(one, weight);
        let [near, far] = pairs.map(|[from, to]| b.sub(to, from));
        let (near, far) = (b.mul(rest, near), b.mul(weight, far));
        let slope = b.add(near, far);
        b.mul(slope, grads)
    };
    let down = slope(columns.weight, [[top_left, bottom_left], [top_right, bottom_right]]);
    let across = slope(rows.weight, [[top_left, top_right], [bottom_left, bottom_right]]);
    let inside = is_inside(b, &crops, &dims);
    let known = {
        let (zero, end) = (b.full_like(crops.owner, 0.0), b.full_like(crops.owner, image[0]));
        let (behind, before) =
            (b.compare(Direction::Ge, crops.owner, zero), b.compare(Direction::Lt, crops.owner, end));
        let known = b.binary(ScalarOp::And, behind, before);
        b.broadcast(known, &dims, &[0])
    };
    let counts = b.binary(ScalarOp::And, inside, known);
    let mut ends = Vec::new();
    for (grad, axis) in [(down, 1), (across, 2)] {
        let none = b.full_like(grad, 0.0);
        let grad = b.select(counts, grad, none);
        ends.push(shares(b, grad, axis, image[axis]));
    }
    let parts = [ends[0][0], ends[1][0], ends[0][1], ends[1][1]].map(|end| b.reshape(end, &dims![dims[0], 1]));
    let y = b.concatenate(&parts, 1);
    cx.one_output(y)
}

/// Gradients with respect to both ends of each box along an axis, `[boxes]` each.
fn shares(b: &mut Builder, grad: InstId, axis: usize, image: Dim) -> [InstId; 2] {
    let dims = b.dims(grad).to_vec();
    let (last, steps) = (image - 1, dims[axis] - 1);
    let (low, high) = if last.varies() || steps.varies() {
        varying_shares(b, &dims, axis, last)
    } else if steps > 0 {
        let ratio = f64::from(last.as_f64() as f32 / steps.as_f64() as f32);
        let place = b.iota(DType::F32, &dims, axis);
        let high = mul_scalar(b, place, ratio);
        let end = b.full_like(high, last);
        (b.sub(end, high), high)
    } else {
        let half = b.full(DType::F32, &dims, 0.5 * last.as_f64());
        (half, half)
    };
    [low, high].map(|share| {
        let part = b.mul(grad, share);
        let zero = b.scalar(DType::F32, 0.0);
        b.reduce(part, zero, ScalarOp::Add, &[1, 2, 3])
    })
}

/// Weights of both ends of a box for each position of the crop along `axis`, for open sizes; `last` is the last pixel of the
/// image. A crop of one position samples the middle.
fn varying_shares(b: &mut Builder, dims: &[Dim], axis: usize, last: Dim) -> (InstId, InstId) {
    let steps = dims[axis] - 1;
    let place = b.iota(DType::F32, dims, axis);
    let (end, several) = (b.full_like(place, last), b.full_like(place, steps.max(1)));
    let ratio = b.div(end, several);
    let along = b.mul(place, ratio);
    let half = mul_scalar(b, end, 0.5);
    let count = b.full_like(place, steps);
    let is_one = compare_scalar(b, Direction::Eq, count, 0.0);
    let high = b.select(is_one, half, along);
    (b.sub(end, high), high)
}

fn image_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let dims = cx.shape_from_value(3)?;
    cx.one_output_typed_by("T", dims)
}

fn boxes_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let dims = cx.dims(2)?;
    cx.one_output(TfType::Data(DType::F32), dims)
}
