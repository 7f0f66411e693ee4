//! Bilinear resizing of quantized images in fixed-point integers, as TensorFlow's kernel does it.
use super::resize::{Sampling, check_pixel_count, interpolate_axis, resize_dims, take_along_axis};
use crate::diag::Result;
use crate::graph::TfType;
use crate::hlo::symbolic::{Builder, Dim, InstId};
use crate::ops::fact::{Dims, Fact};
use crate::ops::math::special::add_scalar;
use crate::ops::op_lowering::op;
use crate::ops::{LowerCtx, OpLowering, ShapeCtx, Value};
use crate::tensor::{DType, Tensor};

/// Definitions of the ops of this file.
#[rustfmt::skip]
pub const ROWS: &[OpLowering] = &[
    op("QuantizedResizeBilinear", "images size min max -> resized_images out_min out_max", resize).shape(shape).constant_inputs(&[1]).dtypes("u8, s32, f32"),
];

fn shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let dims = resize_dims(cx, 1)?;
    let end = Fact::new(Some(TfType::Data(DType::F32)), Dims::from_sizes(&[]));
    Ok(vec![Fact::new(cx.dtype(0), dims.into()), end.clone(), end])
}

/// Fixed-point format in which images of one element type are interpolated.
#[derive(Clone, Copy)]
struct FixedPoint {
    work: DType,
    bits: u32,
}

impl FixedPoint {
    /// Fixed-point representation of 1.
    fn one(self) -> i64 {
        1 << self.bits
    }
}

/// Lower and upper input element of each output along an axis, and the weight of the upper one.
type Taps = Vec<(u64, u64, f32)>;

fn resize(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (image, size, dtype) = (cx.dims(0)?, cx.constant_dims(1)?, cx.dtype(0)?);
    let (&[_, height, width, _], &[rows, columns]) = (&image[..], &size[..]) else {
        return Err(cx.shape_mismatch(format!("images {image:?} must have rank 4, and the size {size:?} two numbers")));
    };
    if height == 0 || width == 0 {
        return Err(cx.shape_mismatch(format!("the images {image:?} have no pixels")));
    }
    let sampling = Sampling {
        align_corners: cx.bool_attr("align_corners"),
        half_pixel_centers: cx.bool_attr("half_pixel_centers"),
    };
    let taps = |from: Dim, to: Dim| -> Result<Taps> {
        Ok(sampling.linear_taps(from.guarded_count(), check_pixel_count(to)?.guarded_count()))
    };
    let taps: [Taps; 2] = [taps(height, rows)?, taps(width, columns)?];
    let (x, min, max) = (cx.arg(0)?, cx.arg(2)?, cx.arg(3)?);
    if !cx.dims(2)?.is_empty() || !cx.dims(3)?.is_empty() {
        return Err(cx.shape_mismatch("the ends of the range must be scalars"));
    }
    let y = match dtype {
        DType::F32 | DType::U8 | DType::S32 if [rows, columns] == [height, width] => x,
        DType::F32 => in_floats(cx.b, x, &taps),
        DType::U8 => in_fixed_point(cx.b, x, &taps, FixedPoint { work: DType::S32, bits: 7 }),
        DType::S32 => in_fixed_point(cx.b, x, &taps, FixedPoint { work: DType::S64, bits: 30 }),
        other => return Err(cx.unsupported_case(format!("quantized {other}; u8, s32 and f32 are supported"))),
    };
    Ok([y, min, max].map(Value::Array).into())
}

fn in_floats(b: &mut Builder, x: InstId, [rows, columns]: &[Taps; 2]) -> InstId {
    let x = interpolate_axis(b, x, 2, columns);
    interpolate_axis(b, x, 1, rows)
}

/// Lower and upper elements along an axis, and the weights of the upper ones as fixed-point integers.
fn neighbors(b: &mut Builder, x: InstId, axis: usize, taps: &Taps, point: FixedPoint) -> [InstId; 3] {
    let lower: Vec<u64> = taps.iter().map(|t| t.0).collect();
    let upper: Vec<u64> = taps.iter().map(|t| t.1).collect();
    let (lower, upper) = (take_along_axis(b, x, axis, &lower), take_along_axis(b, x, axis, &upper));
    let weights: Vec<i64> = taps.iter().map(|t| (t.2 * point.one() as f32) as i64).collect();
    let weights = b.constant(Tensor::of(&[taps.len() as u64], &weights));
    let weights = b.convert(weights, point.work);
    let dims = b.dims(lower).to_vec();
    [lower, upper, b.broadcast(weights, &dims, &[axis])]
}

/// Interpolates columns, then rows. Values between the two steps are scaled by `one`; quotients are rounded towards zero.
fn in_fixed_point(b: &mut Builder, x: InstId, [rows, columns]: &[Taps; 2], point: FixedPoint) -> InstId {
    let dtype = b.dtype(x);
    // TensorFlow's kernel converts a quantized integer by way of f32.
    let x = b.convert(x, DType::F32);
    let x = b.convert(x, point.work);
    let [left, right, weights] = neighbors(b, x, 2, columns, point);
    let difference = b.sub(right, left);
    let part = b.mul(difference, weights);
    let one = b.constant(Tensor::scalar(point.one()));
    let one = b.convert(one, point.work);
    let along = |b: &mut Builder, x: InstId| {
        let dims = b.dims(x).to_vec();
        b.broadcast(one, &dims, &[])
    };
    let ones = along(b, left);
    let whole = b.mul(left, ones);
    let line = b.add(whole, part);
    let [top, bottom, weights] = neighbors(b, line, 1, rows, point);
    let ones = along(b, top);
    let difference = b.sub(bottom, top);
    let difference = b.div(difference, ones);
    let part = b.mul(difference, weights);
    let y = b.add(top, part);
    let y = add_scalar(b, y, (point.one() / 2) as f64);
    let y = b.div(y, ones);
    b.convert(y, dtype)
}
