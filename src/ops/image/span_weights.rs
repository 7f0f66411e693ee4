//! Weights of spans of pixels for open sizes, computed by the module at run time; `spans.rs` computes the same for fixed sizes.
use super::resize::Sampling;
use super::sampling;
use super::spans::ResampleKernel;
use crate::hlo::symbolic::{Builder, Dim, InstId};
use crate::ops::math::expr::{ArrayExpr, build_formula};
use crate::ops::math::special::compare_scalar;
use crate::scalar::{Direction, ScalarOp};
use crate::tensor::DType;

/// Indices of the pixels of the result and of the image along one axis, `f32[to, from]` each.
fn pixels(b: &mut Builder, [from, to]: [Dim; 2]) -> [InstId; 2] {
    [0, 1].map(|axis| b.iota(DType::F32, &[to, from], axis))
}

/// Fraction of each result pixel's span that each image pixel covers: `f32[to, from]`.
pub fn covered_fractions(b: &mut Builder, sampling: Sampling, [from, to]: [Dim; 2]) -> InstId {
    let [place, pixel] = pixels(b, [from, to]);
    let scale = sampling::coordinate_scale(b, sampling, from, to);
    let scale = b.broadcast(scale, &[to, from], &[]);
    let count = b.full_like(pixel, from);
    build_formula(b, [place, pixel, scale, count], |[place, pixel, scale, count]| {
        let (start, end, behind) = (place * scale, (place + 1.0) * scale, pixel + 1.0);
        let is_within = pixel.lt(start).and(behind.gt(end));
        let overlap = smaller(behind, end) - pixel.max(start);
        let share = scale.select_where(is_within, overlap.max(0.0));
        // The part of a span behind the image counts as its last pixel.
        let beyond = (end - count).max(0.0).select_where(behind.equals(count), 0.0);
        // With `align_corners` the span of an image of one pixel is empty, and stands for that pixel.
        ((share + beyond) / scale).select_where(scale.gt(0.0), 1.0)
    })
}

fn smaller<'s, 'b>(x: ArrayExpr<'s, 'b>, y: ArrayExpr<'s, 'b>) -> ArrayExpr<'s, 'b> {
    x.apply_binary(ScalarOp::Minimum, y)
}

/// Scale and translation of an image along one axis: `f32[]` each.
pub struct AxisTransform {
    /// Pixels of the result per pixel of the image.
    pub scale: InstId,
    /// Translation, in pixels of the result.
    pub translation: InstId,
}

/// Resampling weights `f32[to, from]` of the image pixels around the source position of each result pixel; they add up to 1. A
/// position outside of the image has no weights.
pub fn resampling_weights(
    b: &mut Builder,
    how: &AxisTransform,
    kernel: ResampleKernel,
    antialias: bool,
    [from, to]: [Dim; 2],
) -> InstId {
    let dims = [to, from];
    let [place, pixel] = pixels(b, [from, to]);
    let [scale, translation] = [how.scale, how.translation].map(|x| b.broadcast(x, &dims, &[]));
    let count = b.full_like(pixel, from);
    let weights =
        build_formula(b, [place, pixel, scale, translation, count], |[place, pixel, scale, translation, count]| {
            let inverse = 1.0 / scale;
            let width = if antialias { inverse.max(1.0) } else { inverse.constant(1.0) };
            let at = (place + 0.5) * inverse - inverse * translation;
            let (reach, last) = (width * f64::from(kernel.radius()), count - 1.0);
            let start = (at - reach - 0.5).apply_unary(ScalarOp::Ceil);
            let end = (at + reach - 0.5).floor();
            let [start, end] = [start, end].map(|x| smaller(x.max(0.0), last));
            let is_there = at.ge(0.0).and(at.le(count));
            let counts = is_there.and(pixel.ge(start)).and(pixel.le(end));
            weight(kernel, ((pixel + 0.5 - at) * (1.0 / width)).abs()).select_where(counts, 0.0)
        });
    let zero = b.scalar(DType::F32, 0.0);
    let total = b.reduce(weights, zero, ScalarOp::Add, &[1]);
    let total = b.broadcast(total, &dims, &[0]);
    let part = b.div(weights, total);
    let magnitude = b.unary(ScalarOp::Abs, total);
    let is_large = compare_scalar(b, Direction::Ge, magnitude, f64::from(1000.0 * f32::MIN_POSITIVE));
    let none = b.full_like(part, 0.0);
    b.select(is_large, part, none)
}

/// Weight of a pixel at distance `x`.
fn weight<'s, 'b>(kernel: ResampleKernel, x: ArrayExpr<'s, 'b>) -> ArrayExpr<'s, 'b> {
    use std::f64::consts::PI;
    match kernel {
        ResampleKernel::Lanczos(radius) => {
            let radius = f64::from(radius);
            let (angle, slow) = (x * PI, x * (PI / radius));
            let lobes = (angle.sin() * slow.sin() * radius) / (x * x * (PI * PI));
            let lobes = lobes.select_where(x.gt(1e-3), 1.0);
            lobes.select_where(x.le(radius), 0.0)
        }
        ResampleKernel::Gaussian => (x * x * -2.0).exp().select_where(x.lt(f64::from(kernel.radius())), 0.0),
        ResampleKernel::Box => {
            x.constant(1.0).select_where(x.lt(0.5), x.constant(0.5).select_where(x.equals(0.5), 0.0))
        }
        ResampleKernel::Triangle => (1.0 - x).max(0.0),
        ResampleKernel::KeysCubic => {
            let far = ((x * -0.5 + 2.5) * x - 4.0) * x + 2.0;
            let near = ((x * 1.5 - 2.5) * x) * x + 1.0;
            near.select_where(x.lt(1.0), far.select_where(x.lt(2.0), 0.0))
        }
        ResampleKernel::MitchellCubic => {
            let far = ((x * (-7.0 / 18.0) + 2.0) * x - 10.0 / 3.0) * x + 16.0 / 9.0;
            let near = ((x * (7.0 / 6.0) - 2.0) * x) * x + 8.0 / 9.0;
            near.select_where(x.lt(1.0), far.select_where(x.lt(2.0), 0.0))
        }
    }
}
