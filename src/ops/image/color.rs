//! Color conversion and adjustment: HSV, contrast, saturation, hue. The last dimension holds the three channels.
use crate::diag::Result;
use crate::hlo::symbolic::{Builder, InstId};
use crate::ops::nn::{accumulator_type, sum_axes};
use crate::ops::op_lowering::op;
use crate::ops::shape::like_first_input;
use crate::ops::{LowerCtx, OpLowering, Value};
use crate::scalar::{Direction, ScalarOp};
use crate::symbolic::Dim;

const FLOATS: &str = "f16, bf16, f32, f64";

/// Definitions of the ops of this file.
#[rustfmt::skip]
pub const ROWS: &[OpLowering] = &[
    op("RGBToHSV", "images -> output", |cx| channels(cx, |b, c, _| to_hsv(b, c))).shape(like_first_input).dtypes(FLOATS),
    op("HSVToRGB", "images -> output", |cx| channels(cx, |b, c, _| to_rgb(b, c))).shape(like_first_input).dtypes(FLOATS),
    op("AdjustHue",        "images delta -> output", |cx| channels(cx, adjust_hue)).shape(like_first_input).dtypes("f16, f32"),
    op("AdjustSaturation", "images scale -> output", |cx| channels(cx, adjust_saturation)).shape(like_first_input).dtypes("f16, f32"),
    op("AdjustContrastv2", "images contrast_factor -> output", adjust_contrast).shape(like_first_input).dtypes("f16, f32"),
];

type Channels = [InstId; 3];

/// Splits the last dimension of size 3, applies `f` to the channels and the second input, and joins the results.
fn channels(cx: &mut LowerCtx, f: fn(&mut Builder, Channels, Option<InstId>) -> Channels) -> Result<Vec<Value>> {
    let (x, dims, dtype) = (cx.arg(0)?, cx.dims(0)?, cx.dtype(0)?);
    if dims.last() != Some(&Dim::from(3)) {
        return Err(cx.shape_mismatch(format!("the last dimension must hold 3 channels, not {dims:?}")));
    }
    let axis = dims.len() - 1;
    let amount = match cx.args.len() {
        1 => None,
        _ => Some(cx.arg(1)?),
    };
    let b = &mut *cx.b;
    let x = b.convert(x, accumulator_type(dtype));
    let amount = amount.map(|a| b.convert(a, accumulator_type(dtype)));
    let parts = [0, 1, 2].map(|i| b.slice_axis(x, axis, Dim::from(i), Dim::from(i + 1)));
    let parts = f(b, parts, amount);
    let y = b.concatenate(&parts, axis);
    let y = b.convert(y, dtype);
    cx.one_output(y)
}

/// Hue, saturation and value from red, green and blue.
///
/// Value is the maximum, saturation the range divided by the value, hue the angle in units of a full turn, from 0 to 1.
fn to_hsv(b: &mut Builder, [red, green, blue]: Channels) -> Channels {
    let high = b.max(green, blue);
    let high = b.max(red, high);
    let low = b.min(green, blue);
    let low = b.min(red, low);
    let range = b.sub(high, low);
    let zero = b.full_like(high, 0.0);
    let coloured = b.compare(Direction::Gt, range, zero);
    let bright = b.compare(Direction::Gt, high, zero);
    let ratio = b.div(range, high);
    let saturation = b.select(bright, ratio, zero);
    let sixth = b.full_like(high, 1.0 / 6.0);
    let unit = b.div(sixth, range);
    let mut sector = |x: InstId, y: InstId, turn: f64| {
        let difference = b.sub(x, y);
        let angle = b.mul(unit, difference);
        let turn = b.full_like(angle, turn);
        b.add(angle, turn)
    };
    let (from_red, from_green, from_blue) =
        (sector(green, blue, 0.0), sector(blue, red, 2.0 / 6.0), sector(red, green, 4.0 / 6.0));
    let is_green = b.compare(Direction::Eq, green, high);
    let hue = b.select(is_green, from_green, from_blue);
    let is_red = b.compare(Direction::Eq, red, high);
    let hue = b.select(is_red, from_red, hue);
    let hue = b.select(coloured, hue, zero);
    let one = b.full_like(hue, 1.0);
    let (negative, turned) = (b.compare(Direction::Lt, hue, zero), b.add(hue, one));
    [b.select(negative, turned, hue), saturation, high]
}

/// Red, green and blue from hue, saturation and value.
fn to_rgb(b: &mut Builder, [hue, saturation, value]: Channels) -> Channels {
    let six = b.full_like(hue, 6.0);
    let angle = b.mul(hue, six);
    // Distance of the angle from the point where the color is absent, clamped to 0..1: a trapezium.
    let mut share = |centre: f64, sign: f64, base: f64| {
        let centre = b.full_like(angle, centre);
        let away = b.sub(angle, centre);
        let away = b.unary(ScalarOp::Abs, away);
        let (sign, base) = (b.full_like(angle, sign), b.full_like(angle, base));
        let slope = b.mul(away, sign);
        let slope = b.add(slope, base);
        let (zero, one) = (b.full_like(angle, 0.0), b.full_like(angle, 1.0));
        b.elementwise(ScalarOp::Clamp, &[zero, slope, one])
    };
    let shares = [share(3.0, 1.0, -1.0), share(2.0, -1.0, 2.0), share(4.0, -1.0, 2.0)];
    let one = b.full_like(hue, 1.0);
    let grey = b.sub(one, saturation);
    shares.map(|share| {
        let colour = b.mul(share, saturation);
        let mixed = b.add(grey, colour);
        b.mul(mixed, value)
    })
}

fn adjust_hue(b: &mut Builder, rgb: Channels, delta: Option<InstId>) -> Channels {
    let [hue, saturation, value] = to_hsv(b, rgb);
    let Some(delta) = delta else { return rgb };
    let moved = b.add(hue, delta);
    let whole = b.unary(ScalarOp::Floor, moved);
    let hue = b.sub(moved, whole);
    to_rgb(b, [hue, saturation, value])
}

fn adjust_saturation(b: &mut Builder, rgb: Channels, scale: Option<InstId>) -> Channels {
    let [hue, saturation, value] = to_hsv(b, rgb);
    let Some(scale) = scale else { return rgb };
    let scaled = b.mul(saturation, scale);
    let (zero, one) = (b.full_like(scaled, 0.0), b.full_like(scaled, 1.0));
    let saturation = b.elementwise(ScalarOp::Clamp, &[zero, scaled, one]);
    to_rgb(b, [hue, saturation, value])
}

/// Lowers `AdjustContrast`: `(x - mean) * factor + mean`, with the mean of each channel over height and width.
fn adjust_contrast(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (x, factor, dims, dtype) = (cx.arg(0)?, cx.arg(1)?, cx.dims(0)?, cx.dtype(0)?);
    let Some(first) = dims.len().checked_sub(3) else {
        return Err(cx.shape_mismatch(format!("the images must end in [height, width, channels], not {dims:?}")));
    };
    let b = &mut *cx.b;
    let x = b.convert(x, accumulator_type(dtype));
    let factor = b.convert(factor, accumulator_type(dtype));
    let total = sum_axes(b, x, &[first, first + 1]);
    let count = b.full_like(total, dims[first] * dims[first + 1]);
    let mean = b.div(total, count);
    let kept: Vec<usize> = (0..dims.len()).filter(|&a| a != first && a != first + 1).collect();
    let mean = b.broadcast(mean, &dims, &kept);
    let centred = b.sub(x, mean);
    let scaled = b.mul(centred, factor);
    let y = b.add(scaled, mean);
    let y = b.convert(y, dtype);
    cx.one_output(y)
}
