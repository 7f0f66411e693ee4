//! `ImageProjectiveTransform`: images under projective transforms known at run time.
use super::crop::pixels_at_indices;
use super::resize::resize_dims;
use crate::diag::{Code, Error, Result};
use crate::hlo::symbolic::{Builder, Dim, InstId};
use crate::ops::fact::Fact;
use crate::ops::math::cast::convert;
use crate::ops::math::special::{add_scalar, compare_scalar, mul_scalar};
use crate::ops::op_lowering::op;
use crate::ops::{LowerCtx, OpLowering, ShapeCtx, Value};
use crate::scalar::{Direction, ScalarOp};
use crate::tensor::DType;

const REAL: &str = "images: u8, s32, s64, f16, bf16, f32, f64; transforms: f32";

/// Definitions of the ops of this file.
#[rustfmt::skip]
pub const ROWS: &[OpLowering] = &[
    op("ImageProjectiveTransformV2", "images transforms output_shape -> transformed_images", projective)
        .shape(projective_shape).constant_inputs(&[2]).dtypes(REAL),
    op("ImageProjectiveTransformV3", "images transforms output_shape fill_value -> transformed_images", projective)
        .shape(projective_shape).constant_inputs(&[2]).dtypes(REAL),
];

/// Fill mode of a projective transform, for coordinates outside of the image.
#[derive(Clone, Copy)]
enum Fill {
    Constant,
    Reflect,
    Wrap,
    Nearest,
}

/// Lowers the projective transform: each pixel of the result is read from the position in the image to which its transform maps
/// it.
///
/// Shapes: images `[batch, h, w, c]`, transforms `[batch, 8]` or `[1, 8]` -> `[batch, out_h, out_w, c]`.
fn projective(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (image, transforms, to) = (cx.dims(0)?, cx.dims(1)?, cx.constant_dims(2)?);
    let ([batch, height, width, depth], [count, eight], [rows, columns]) = (&image[..], &transforms[..], &to[..])
    else {
        return Err(
            cx.shape_mismatch(format!("images {image:?}, transforms {transforms:?} and size {to:?} do not fit"))
        );
    };
    if *eight != 8 || (count != batch && *count != 1) {
        return Err(cx.shape_mismatch(format!("{count} transforms of images {image:?}")));
    }
    let size = |v: Dim| match Dim::size(v) {
        Ok(v) if v > 0 && v <= 1i64 << 24 => Ok(v),
        _ => Err(Error::user(Code::TooLarge, format!("a size of {v} pixels"))),
    };
    let grid = [*batch, size(*rows)?, size(*columns)?];
    let mode = fill_mode(cx)?;
    let bilinear = match cx.node.str("interpolation") {
        Some("BILINEAR") => true,
        Some("NEAREST") => false,
        other => return Err(cx.unsupported_case(format!("no interpolation is called {}", other.unwrap_or("nothing")))),
    };
    let (x, transforms, dtype) = (cx.arg(0)?, cx.arg(1)?, cx.dtype(0)?);
    let fill = if cx.args.len() > 3 { cx.arg(3)? } else { cx.b.scalar(DType::F32, 0.0) };
    let b = &mut *cx.b;
    let fill = b.convert(fill, dtype);
    if crate::symbolic::has_zero(&image) {
        // No pixel of the result lies in the image.
        let y = b.broadcast(fill, &[&grid[..], &[*depth]].concat(), &[]);
        return cx.one_output(y);
    }
    let view = View { x, fill, grid };
    let (at_row, at_column, is_finite) = places(b, transforms, grid);
    let row = mapped(b, at_row, *height, mode);
    let column = mapped(b, at_column, *width, mode);
    let y = if bilinear { view.bilinear(b, row, column) } else { view.nearest(b, row, column) };
    let dims = b.dims(y).to_vec();
    let (is_finite, fill) = (b.broadcast(is_finite, &dims, &[0, 1, 2]), b.broadcast(fill, &dims, &[]));
    let y = b.select(is_finite, y, fill);
    cx.one_output(y)
}

fn fill_mode(cx: &LowerCtx) -> Result<Fill> {
    match cx.node.str("fill_mode").unwrap_or("CONSTANT") {
        "CONSTANT" => Ok(Fill::Constant),
        "REFLECT" => Ok(Fill::Reflect),
        "WRAP" => Ok(Fill::Wrap),
        "NEAREST" => Ok(Fill::Nearest),
        other => Err(cx.unsupported_case(format!("no fill mode is called {other}"))),
    }
}

/// Row and column in the image of each pixel of the output grid, and whether the position is finite.
fn places(b: &mut Builder, transforms: InstId, grid: [Dim; 3]) -> (InstId, InstId, InstId) {
    let all = [grid[0], Dim::from(8)];
    let transforms = b.convert(transforms, DType::F32);
    let transforms = b.broadcast_to(transforms, &all);
    let numbers: [InstId; 8] = std::array::from_fn(|i| {
        let one = b.slice_axis(transforms, 1, Dim::from(i), Dim::from(i) + 1);
        let one = b.reshape(one, &[grid[0]]);
        b.broadcast(one, &grid, &[0])
    });
    let (x, y) = (b.iota(DType::F32, &grid, 2), b.iota(DType::F32, &grid, 1));
    let sum = |b: &mut Builder, of: InstId, and: InstId| {
        let (across, down) = (b.mul(of, x), b.mul(and, y));
        b.add(across, down)
    };
    let depth = sum(b, numbers[6], numbers[7]);
    let depth = add_scalar(b, depth, 1.0);
    let mut coordinate = |first: usize| {
        let turned = sum(b, numbers[first], numbers[first + 1]);
        let moved = b.add(turned, numbers[first + 2]);
        b.div(moved, depth)
    };
    let (column, row) = (coordinate(0), coordinate(3));
    (row, column, compare_scalar(b, Direction::Ne, depth, 0.0))
}

/// Coordinate in an image of `n` pixels for a coordinate that may lie outside, by the fill mode.
fn mapped(b: &mut Builder, at: InstId, n: Dim, mode: Fill) -> InstId {
    let last = n - 1;
    let inner = match mode {
        Fill::Constant => return at,
        Fill::Nearest => at,
        Fill::Reflect | Fill::Wrap if last.is_zero() => b.full_like(at, 0.0),
        Fill::Reflect => reflected(b, at, n),
        Fill::Wrap => wrapped(b, at, n),
    };
    let (low, high) = (b.full_like(inner, 0.0), b.full_like(inner, last));
    let inner = b.max(inner, low);
    b.min(inner, high)
}

/// Number rounded towards zero.
fn truncated(b: &mut Builder, x: InstId) -> InstId {
    let (down, up) = (b.unary(ScalarOp::Floor, x), b.unary(ScalarOp::Ceil, x));
    let is_negative = compare_scalar(b, Direction::Lt, x, 0.0);
    b.select(is_negative, up, down)
}

/// Coordinate in an image continued by reflection, `[dcba|abcd|dcba]`.
fn reflected(b: &mut Builder, at: InstId, n: Dim) -> InstId {
    let turns = mul_scalar(b, at, -1.0);
    let period = b.full_like(at, 2 * n);
    let turns = b.div(turns, period);
    let turns = truncated(b, turns);
    let turned = b.mul(turns, period);
    // `turned` counts whole periods: added in front of the image, subtracted behind it.
    let inside = b.add(turned, at);
    let up = b.add(inside, period);
    let opposite = mul_scalar(b, inside, -1.0);
    let opposite = add_scalar(b, opposite, -1.0);
    let is_far = compare_scalar(b, Direction::Lt, inside, -n);
    let before = b.select(is_far, up, opposite);
    let mirrored = b.sub(period, inside);
    let mirrored = add_scalar(b, mirrored, -1.0);
    let is_far = compare_scalar(b, Direction::Ge, inside, n);
    let behind = b.select(is_far, mirrored, inside);
    by_side(b, at, n - 1, [before, behind])
}

/// Coordinate in an image continued periodically, `[abcd|abcd|abcd]`.
fn wrapped(b: &mut Builder, at: InstId, n: Dim) -> InstId {
    let last = n - 1;
    let steps = b.full_like(at, last.max(1));
    let turns = b.div(at, steps);
    let turns = truncated(b, turns);
    let (up, down) = (add_scalar(b, turns, -1.0), turns);
    let [up, down] = [up, down].map(|turns| mul_scalar(b, turns, n));
    let (before, behind) = (b.sub(at, up), b.sub(at, down));
    by_side(b, at, last, [before, behind])
}

/// Selects `before` for coordinates in front of the first pixel, `behind` for those past the last one, else the coordinate
/// itself.
fn by_side(b: &mut Builder, at: InstId, last: Dim, [before, behind]: [InstId; 2]) -> InstId {
    let is_before = compare_scalar(b, Direction::Lt, at, 0.0);
    let is_behind = compare_scalar(b, Direction::Gt, at, last);
    let rest = b.select(is_behind, behind, at);
    b.select(is_before, before, rest)
}

/// Images that are sampled at a grid of positions.
struct View {
    x: InstId,
    /// Value of pixels outside of the image, a scalar.
    fill: InstId,
    /// Batch, rows and columns of the grid.
    grid: [Dim; 3],
}

impl View {
    /// Pixels at whole coordinates; the fill value outside of the images.
    fn read(&self, b: &mut Builder, row: InstId, column: InstId) -> InstId {
        let image = b.dims(self.x).to_vec();
        let mut within = |at: InstId, n: Dim| {
            let above = compare_scalar(b, Direction::Ge, at, 0.0);
            let below = compare_scalar(b, Direction::Lt, at, n);
            b.binary(ScalarOp::And, above, below)
        };
        let (down, across) = (within(row, image[1]), within(column, image[2]));
        let inside = b.binary(ScalarOp::And, down, across);
        let zero = b.full_like(row, 0.0);
        let place = |b: &mut Builder, at: InstId| {
            let at = b.select(inside, at, zero);
            b.convert(at, DType::S32)
        };
        let (row, column) = (place(b, row), place(b, column));
        let owner = b.iota(DType::S32, &self.grid, 0);
        let y = pixels_at_indices(b, self.x, [owner, row, column]);
        let dims = b.dims(y).to_vec();
        let (inside, fill) = (b.broadcast(inside, &dims, &[0, 1, 2]), b.broadcast(self.fill, &dims, &[]));
        b.select(inside, y, fill)
    }
    fn nearest(&self, b: &mut Builder, row: InstId, column: InstId) -> InstId {
        let row = b.unary(ScalarOp::RoundNearestAfz, row);
        let column = b.unary(ScalarOp::RoundNearestAfz, column);
        self.read(b, row, column)
    }
    /// Bilinear interpolation of the four pixels around each position, in f32.
    fn bilinear(&self, b: &mut Builder, row: InstId, column: InstId) -> InstId {
        let (top, left) = (b.unary(ScalarOp::Floor, row), b.unary(ScalarOp::Floor, column));
        let (bottom, right) = (add_scalar(b, top, 1.0), add_scalar(b, left, 1.0));
        let dtype = b.dtype(self.x);
        let mix = |b: &mut Builder, [low, high]: [InstId; 2], [before, at, behind]: [InstId; 3]| {
            let dims = b.dims(low).to_vec();
            let (near, far) = (b.sub(behind, at), b.sub(at, before));
            let (near, far) = (b.broadcast(near, &dims, &[0, 1, 2]), b.broadcast(far, &dims, &[0, 1, 2]));
            let (low, high) = (b.mul(near, low), b.mul(far, high));
            b.add(low, high)
        };
        let lines = [top, bottom].map(|line| {
            let ends = [left, right].map(|end| {
                let y = self.read(b, line, end);
                b.convert(y, DType::F32)
            });
            mix(b, ends, [left, column, right])
        });
        let y = mix(b, lines, [top, row, bottom]);
        convert(b, y, dtype)
    }
}

/// Shape function: height and width are those in input 2.
fn projective_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let dtype = cx.dtype(0);
    let dims = resize_dims(cx, 2)?;
    cx.one_output(dtype, dims)
}
