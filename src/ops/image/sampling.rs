//! Sampling positions and weights of resized images for open sizes, computed by the module at run time.
use super::resize::Sampling;
use crate::hlo::symbolic::{Builder, Dim, InstId};
use crate::ops::math::expr::build_formula;
use crate::ops::math::special::{add_scalar, compare_scalar, mul_scalar};
use crate::scalar::{Direction, ScalarOp};
use crate::tensor::DType;

/// Positions in the source image of the elements of a result along one axis.
struct SamplePositions {
    /// `f32[to]`: coordinate of each element in the image.
    at: InstId,
    /// `s32[]`: index of the last element of the image.
    last: InstId,
}

/// Size as an `s32[]`; sizes of images are at most 2^24.
fn number(b: &mut Builder, n: Dim) -> InstId {
    b.scalar(DType::S32, n)
}

/// Scale from positions in the result to positions in the image, `f32[]`.
pub fn coordinate_scale(b: &mut Builder, sampling: Sampling, from: Dim, to: Dim) -> InstId {
    let (from, to) = (number(b, from), number(b, to));
    let ratio = |b: &mut Builder, x: InstId, y: InstId| {
        let (x, y) = (b.convert(x, DType::F32), b.convert(y, DType::F32));
        b.div(x, y)
    };
    let whole = ratio(b, from, to);
    if !sampling.align_corners {
        return whole;
    }
    let one = number(b, Dim::from(1));
    let (before, steps) = (b.sub(from, one), b.sub(to, one));
    let steps = b.max(steps, one);
    let corners = ratio(b, before, steps);
    let several = b.compare(Direction::Gt, to, one);
    b.select(several, corners, whole)
}

impl SamplePositions {
    fn of(b: &mut Builder, sampling: Sampling, from: Dim, to: Dim) -> SamplePositions {
        let factor = coordinate_scale(b, sampling, from, to);
        let position = b.iota(DType::F32, &[to], 0);
        let half = b.scalar(DType::F32, 0.5);
        let at = match sampling.half_pixel_centers {
            true => {
                let middle = b.add(position, half);
                b.mul(middle, factor)
            }
            false => b.mul(position, factor),
        };
        let (one, count) = (number(b, Dim::from(1)), number(b, from));
        SamplePositions { at, last: b.sub(count, one) }
    }
    /// Elements of the image at coordinates that are whole numbers, clamped to the image: `s32[to]`.
    fn elements(&self, b: &mut Builder, at: InstId) -> InstId {
        let zero = b.scalar(DType::F32, 0.0);
        let at = b.max(at, zero);
        let index = b.convert(at, DType::S32);
        b.min(index, self.last)
    }
}

/// Interpolation tap along one axis: one source element for each element of the result.
pub struct Tap {
    /// `s32[to]`: index of the source element.
    index: InstId,
    /// `f32[to]`: weight of the source element.
    weight: InstId,
}

/// Tap of nearest-neighbor interpolation, for an image of size `from` and a result of size `to`.
pub fn nearest_tap(b: &mut Builder, sampling: Sampling, [from, to]: [Dim; 2]) -> Tap {
    let places = SamplePositions::of(b, sampling, from, to);
    let rounding = match sampling.align_corners && !sampling.half_pixel_centers {
        true => ScalarOp::RoundNearestAfz,
        false => ScalarOp::Floor,
    };
    let at = b.unary(rounding, places.at);
    Tap { index: places.elements(b, at), weight: b.full(DType::F32, &[to], 1.0) }
}

/// Nearest-neighbor interpolation of `x` along `axis` to size `to`.
pub fn resize_nearest(b: &mut Builder, x: InstId, axis: usize, sampling: Sampling, to: Dim) -> InstId {
    let tap = nearest_tap(b, sampling, [b.dims(x)[axis], to]);
    b.gather_along_axis(x, axis, tap.index, true)
}

/// Taps of linear interpolation: the elements below and above each position, with their weights.
pub fn linear_taps(b: &mut Builder, sampling: Sampling, [from, to]: [Dim; 2]) -> [Tap; 2] {
    let mut places = SamplePositions::of(b, sampling, from, to);
    if sampling.half_pixel_centers {
        let half = b.scalar(DType::F32, 0.5);
        places.at = b.sub(places.at, half);
    }
    let (below, above) = (b.unary(ScalarOp::Floor, places.at), b.unary(ScalarOp::Ceil, places.at));
    let upper = places.elements(b, above);
    let lower = places.elements(b, below);
    let lower = b.min(lower, upper);
    let weight = b.sub(places.at, below);
    let one = b.scalar(DType::F32, 1.0);
    [Tap { index: lower, weight: b.sub(one, weight) }, Tap { index: upper, weight }]
}

/// Linear interpolation of `x` along `axis` to size `to`.
pub fn resize_linear(b: &mut Builder, x: InstId, axis: usize, sampling: Sampling, to: Dim) -> InstId {
    let [lower, upper] = linear_taps(b, sampling, [b.dims(x)[axis], to]);
    let (low, high) =
        (b.gather_along_axis(x, axis, lower.index, true), b.gather_along_axis(x, axis, upper.index, true));
    let dims = b.dims(low).to_vec();
    let weight = b.broadcast(upper.weight, &dims, &[axis]);
    let difference = b.sub(high, low);
    let part = b.mul(difference, weight);
    b.add(low, part)
}

/// Four taps of a cubic convolution, for open sizes; `resize::cubic_taps` computes the same ones for fixed sizes.
pub fn cubic_taps(b: &mut Builder, sampling: Sampling, [from, to]: [Dim; 2]) -> Vec<Tap> {
    let mut places = SamplePositions::of(b, sampling, from, to);
    let half = b.scalar(DType::F32, 0.5);
    if sampling.half_pixel_centers {
        places.at = b.sub(places.at, half);
    }
    let start = b.unary(ScalarOp::Floor, places.at);
    let part = b.sub(places.at, start);
    let steps = mul_scalar(b, part, 1024.0);
    let steps = b.unary(ScalarOp::RoundNearestEven, steps);
    let t = mul_scalar(b, steps, 1.0 / 1024.0);
    let start = b.convert(start, DType::S32);
    let zero = b.scalar(DType::S32, 0.0);
    let mut taps = Vec::new();
    for k in 0..4 {
        let mut weight = cubic_weight(b, sampling, t, k);
        let index = add_scalar(b, start, f64::from(k) - 1.0);
        let inside = b.max(index, zero);
        let inside = b.min(inside, places.last);
        if sampling.half_pixel_centers {
            let is_inside = b.compare(Direction::Eq, index, inside);
            let none = b.full_like(weight, 0.0);
            weight = b.select(is_inside, weight, none);
        }
        taps.push(Tap { index: inside, weight });
    }
    if sampling.half_pixel_centers {
        let total = taps[1..].iter().fold(taps[0].weight, |total, tap| b.add(total, tap.weight));
        taps.iter_mut().for_each(|tap| tap.weight = normalize_weight(b, tap.weight, total));
    }
    taps
}

/// Weight of tap `k` of the four around a position that is `t` behind the second of them.
fn cubic_weight(b: &mut Builder, sampling: Sampling, t: InstId, k: u8) -> InstId {
    let a = if sampling.half_pixel_centers { -0.5 } else { -0.75 };
    build_formula(b, [t], |[t]| {
        let x = match k {
            0 => t + 1.0,
            1 => t,
            2 => 1.0 - t,
            _ => 2.0 - t,
        };
        match k {
            1 | 2 => ((x * (a + 2.0) - (a + 3.0)) * x) * x + 1.0,
            _ => ((x * a - 5.0 * a) * x + 8.0 * a) * x - 4.0 * a,
        }
    })
}

/// Weight divided by the total of all weights; unchanged if the total is nearly zero.
pub fn normalize_weight(b: &mut Builder, weight: InstId, total: InstId) -> InstId {
    let part = b.div(weight, total);
    let magnitude = b.unary(ScalarOp::Abs, total);
    let is_large = compare_scalar(b, Direction::Ge, magnitude, f64::from(1000.0 * f32::MIN_POSITIVE));
    b.select(is_large, part, weight)
}

/// Cubic interpolation of `x` along `axis`; `sizes` are those of the image and of the result.
pub fn resize_cubic(b: &mut Builder, x: InstId, axis: usize, sampling: Sampling, sizes: [Dim; 2]) -> InstId {
    let mut total = None;
    for tap in cubic_taps(b, sampling, sizes) {
        let part = b.gather_along_axis(x, axis, tap.index, true);
        let dims = b.dims(part).to_vec();
        let weight = b.broadcast(tap.weight, &dims, &[axis]);
        let part = b.mul(part, weight);
        total = Some(total.map_or(part, |total| b.add(total, part)));
    }
    total.unwrap_or(x)
}

/// Matrix `[from, to]` of type `dtype` with the weights of the taps.
pub fn interpolation_matrix(b: &mut Builder, dtype: DType, taps: &[Tap], [from, to]: [Dim; 2]) -> InstId {
    let dims = [from, to];
    let row = b.iota(DType::S32, &dims, 0);
    let none = b.full(DType::F32, &dims, 0.0);
    let mut total = None;
    for tap in taps {
        let index = b.broadcast(tap.index, &dims, &[1]);
        let weight = b.broadcast(tap.weight, &dims, &[1]);
        let is_it = b.compare(Direction::Eq, row, index);
        let own = b.select(is_it, weight, none);
        total = Some(total.map_or(own, |total| b.add(total, own)));
    }
    b.convert(total.unwrap_or(none), dtype)
}
