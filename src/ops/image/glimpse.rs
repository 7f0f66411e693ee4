//! `ExtractGlimpse`: windows of equal size out of images, each at its own position.
//!
//! Source: TensorFlow's `eigen_attention.h`. Pixels outside of an image are 0 (`noise` "zero"); other noise comes from a
//! generator that no seed controls, and is not supported.
use crate::diag::Result;
use crate::hlo::symbolic::{Builder, Dim, InstId};
use crate::ops::fact::Fact;
use crate::ops::image::crop::pixels_at_indices;
use crate::ops::image::resize::resize_dims;
use crate::ops::math::special::{add_scalar, mul_scalar};
use crate::ops::op_lowering::op;
use crate::ops::{LowerCtx, OpLowering, ShapeCtx, Value};
use crate::scalar::{Direction, ScalarOp};
use crate::tensor::DType;

const SIGNATURE: &str = "input size offsets -> glimpse";

/// Definitions of the ops of this file.
#[rustfmt::skip]
pub const ROWS: &[OpLowering] = &[
    op("ExtractGlimpse",   SIGNATURE, |cx| glimpse(cx, Version::First)).shape(glimpse_shape).constant_inputs(&[1]).dtypes("f32, noise zero"),
    op("ExtractGlimpseV2", SIGNATURE, |cx| glimpse(cx, Version::Second)).shape(glimpse_shape).constant_inputs(&[1]).dtypes("f32, noise zero"),
];

/// Version of the op, which determines the meaning of offsets: the first version always measures them from the middle of the
/// window.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Version {
    First,
    Second,
}

/// Position `at` plus half of `size`.
fn moved_by_half(b: &mut Builder, at: InstId, size: Dim) -> InstId {
    if !size.varies() {
        return add_scalar(b, at, size.as_f64() / 2.0);
    }
    let whole = b.full_like(at, size);
    let half = mul_scalar(b, whole, 0.5);
    b.add(at, half)
}

fn glimpse(cx: &mut LowerCtx, version: Version) -> Result<Vec<Value>> {
    let (x, dims, offsets, size) = (cx.arg(0)?, cx.dims(0)?, cx.arg(2)?, cx.constant_dims(1)?);
    let (&[batch, height, width, depth], &[rows, columns]) = (&dims[..], &size[..]) else {
        return Err(cx.shape_mismatch(format!("images {dims:?} and a size {size:?}")));
    };
    if cx.b.dims(offsets) != [batch, Dim::from(2)] || rows < 0 || columns < 0 {
        return Err(cx.shape_mismatch(format!("offsets {:?} and a size {size:?} for {dims:?}", cx.b.dims(offsets))));
    }
    let is_uniform = cx.node.bool("uniform_noise").unwrap_or(true);
    let noise = cx.node.str("noise").unwrap_or(if is_uniform { "uniform" } else { "gaussian" });
    if noise != "zero" {
        return Err(
            cx.unsupported_case(format!("noise {noise}, which a generator without a seed draws; zero is supported"))
        );
    }
    if crate::symbolic::has_zero(&dims) {
        // No pixel of any window is in the image.
        let y = cx.b.full(cx.b.dtype(x), &[batch, rows, columns, depth], 0.0);
        return cx.one_output(y);
    }
    let how = |name: &str| cx.node.bool(name).unwrap_or(true);
    let (normalized, centered) = (how("normalized"), how("centered"));
    let b = &mut *cx.b;
    let mut start = |column: Dim, image: Dim, window: Dim| {
        let at = b.slice_axis(offsets, 1, column, column + 1);
        let mut at = b.reshape(at, &[batch]);
        if normalized {
            at = mul_scalar(b, at, image);
        }
        let is_halved = centered && (version == Version::First || normalized);
        if is_halved {
            at = mul_scalar(b, at, 0.5);
        }
        if centered {
            at = moved_by_half(b, at, image);
        }
        if version == Version::First || is_halved {
            at = moved_by_half(b, at, -window);
        }
        b.convert(at, DType::S32)
    };
    let (top, left) = (start(Dim::from(0), height, rows), start(Dim::from(1), width, columns));
    let grid = [batch, rows, columns];
    let (row, in_rows) = places(b, top, 1, &grid, height);
    let (column, in_columns) = places(b, left, 2, &grid, width);
    let item = b.iota(DType::S32, &grid, 0);
    let y = pixels_at_indices(b, x, [item, row, column]);
    let inside = b.binary(ScalarOp::And, in_rows, in_columns);
    let inside = b.broadcast(inside, &[batch, rows, columns, depth], &[0, 1, 2]);
    let none = b.full_like(y, 0.0);
    let y = b.select(inside, y, none);
    cx.one_output(y)
}

/// Row or column of the image under each element of the windows, and whether it is in the image.
fn places(b: &mut Builder, start: InstId, axis: usize, grid: &[Dim], image: Dim) -> (InstId, InstId) {
    let start = b.broadcast(start, grid, &[0]);
    let place = b.iota(DType::S32, grid, axis);
    let place = b.add(place, start);
    let (zero, end) = (b.full_like(place, 0.0), b.full_like(place, image));
    let (behind, before) = (b.compare(Direction::Ge, place, zero), b.compare(Direction::Lt, place, end));
    (place, b.binary(ScalarOp::And, behind, before))
}

fn glimpse_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let dims = resize_dims(cx, 1)?;
    cx.one_output_like(0, dims)
}
