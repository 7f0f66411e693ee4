//! Where resized images are read, computed by the module itself: for sizes that vary.
use super::resize::Sampling;
use crate::hlo::open::{Builder, Dim, InstId};
use crate::scalar::{Direction, ScalarOp};
use crate::tensor::{DType, Tensor};

/// The places of the elements of a result along one axis in the image that it is read from.
struct Places {
    /// `f32[to]`: the coordinate of each in the image.
    at: InstId,
    /// `s32[]`: the last element of the image.
    last: InstId,
}

/// `s32[]`; sizes of images are at most 2^24.
fn number(b: &mut Builder, n: Dim) -> InstId {
    b.constant(Tensor::scalar(n.known() as i32))
}

/// The factor from places in the result to places in the image, `f32[]`.
fn scale(b: &mut Builder, sampling: Sampling, from: Dim, to: Dim) -> InstId {
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

impl Places {
    fn of(b: &mut Builder, sampling: Sampling, from: Dim, to: Dim) -> Places {
        let factor = scale(b, sampling, from, to);
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
        Places { at, last: b.sub(count, one) }
    }
    /// Elements of the image for coordinates that are whole numbers: `s32[to]`.
    fn elements(&self, b: &mut Builder, at: InstId) -> InstId {
        let zero = b.scalar(DType::F32, 0.0);
        let at = b.max(at, zero);
        let index = b.convert(at, DType::S32);
        b.min(index, self.last)
    }
}

/// The elements of `x` along `axis` that are nearest to those of a result of `to`.
pub fn nearest(b: &mut Builder, x: InstId, axis: usize, sampling: Sampling, to: Dim) -> InstId {
    let places = Places::of(b, sampling, b.dims(x)[axis], to);
    let rounding = match sampling.align_corners && !sampling.half_pixel_centers {
        true => ScalarOp::RoundNearestAfz,
        false => ScalarOp::Floor,
    };
    let at = b.unary(rounding, places.at);
    let index = places.elements(b, at);
    b.take(x, axis, index, true)
}

/// What `x` is between its elements along `axis`, at `to` places.
pub fn linear(b: &mut Builder, x: InstId, axis: usize, sampling: Sampling, to: Dim) -> InstId {
    let mut places = Places::of(b, sampling, b.dims(x)[axis], to);
    if sampling.half_pixel_centers {
        let half = b.scalar(DType::F32, 0.5);
        places.at = b.sub(places.at, half);
    }
    let (below, above) = (b.unary(ScalarOp::Floor, places.at), b.unary(ScalarOp::Ceil, places.at));
    let upper = places.elements(b, above);
    let lower = places.elements(b, below);
    let lower = b.min(lower, upper);
    let weight = b.sub(places.at, below);
    let (low, high) = (b.take(x, axis, lower, true), b.take(x, axis, upper, true));
    let dims = b.dims(low).to_vec();
    let weight = b.broadcast(weight, &dims, &[axis]);
    let difference = b.sub(high, low);
    let part = b.mul(difference, weight);
    b.add(low, part)
}
