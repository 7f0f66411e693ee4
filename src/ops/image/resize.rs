//! Resizing of images `[batch, height, width, channels]` to constant sizes.
//!
//! The rows and columns to read and their weights are computed at compile time, in f32 as TensorFlow does, so that they are
//! exact. The module contains slices, repetitions or gathers with constant indices. For open sizes the module computes the same
//! at run time (`sampling.rs`). Columns are interpolated before rows.
use super::sampling;
use crate::diag::{Code, Error, Result};
use crate::graph::TfType;
use crate::hlo::symbolic::{Builder, InstId};
use crate::hlo::symbolic::{DotDims, SliceDim};
use crate::ops::ShapeCtx;
use crate::ops::fact::{Fact, InferredInt};
use crate::ops::nn::accumulator_type;
use crate::ops::op_lowering::op;
use crate::ops::shape::like_second_input;
use crate::ops::symbols::{InferredDim, UnknownReason};
use crate::ops::{LowerCtx, OpLowering, Value, Work};
use crate::symbolic::Dim;
use crate::tensor::{DType, Tensor};

const REAL: &str = "s8, u8, s16, u16, s32, s64, f16, bf16, f32, f64";
const FLOATS: &str = "f16, bf16, f32, f64";

/// Definitions of the ops of this file.
#[rustfmt::skip]
pub const ROWS: &[OpLowering] = &[
    op("ResizeBilinear",            "images size -> resized_images", bilinear).shape(|cx| resize_shape(cx, F32)).constant_inputs(&[1]).dtypes(REAL).work(Work::PerOutputElement(9)),
    op("ResizeNearestNeighbor",     "images size -> resized_images", nearest).shape(|cx| resize_shape(cx, cx.dtype(0))).constant_inputs(&[1]).dtypes(REAL).work(Work::None),
    op("ResizeBicubic",             "images size -> resized_images", bicubic).shape(|cx| resize_shape(cx, F32)).constant_inputs(&[1]).dtypes(REAL),
    op("ResizeBilinearGrad",        "grads original_image -> output", bilinear_grad).shape(like_second_input).dtypes(FLOATS),
    op("ResizeBicubicGrad",         "grads original_image -> output", bicubic_grad).shape(like_second_input).dtypes("f32, f64"),
    op("ResizeNearestNeighborGrad", "grads size -> output", nearest_grad).shape(|cx| resize_shape(cx, cx.dtype(0))).constant_inputs(&[1]).dtypes(REAL),
];

/// Convention that maps an output coordinate to an input coordinate.
#[derive(Clone, Copy)]
pub struct Sampling {
    /// Whether the corner elements of image and result coincide.
    pub align_corners: bool,
    /// Whether elements lie at the centers of their pixels.
    pub half_pixel_centers: bool,
}

/// Attributes and sizes of a resize op.
struct Args {
    sampling: Sampling,
    /// Height and width of the input.
    from: [Dim; 2],
    /// Height and width of the result.
    to: [Dim; 2],
}

impl Sampling {
    fn parse(cx: &LowerCtx) -> Result<Sampling> {
        let sampling = Sampling {
            align_corners: cx.bool_attr("align_corners"),
            half_pixel_centers: cx.bool_attr("half_pixel_centers"),
        };
        if sampling.align_corners && sampling.half_pixel_centers {
            return Err(Error::user(Code::BadAttr, "align_corners and half_pixel_centers exclude each other"));
        }
        Ok(sampling)
    }
    /// Step between two pixels of a result of size `to`, in pixels of an image of size `from`.
    pub fn scale(self, from: u64, to: u64) -> f32 {
        if self.align_corners && to > 1 { (from - 1) as f32 / (to - 1) as f32 } else { from as f32 / to as f32 }
    }
    /// Source coordinate of output `i`.
    fn source(self, i: u64, scale: f32) -> f32 {
        if self.half_pixel_centers { (i as f32 + 0.5) * scale - 0.5 } else { i as f32 * scale }
    }
    /// Nearest source element of each of `to` outputs.
    fn nearest(self, from: u64, to: u64) -> Vec<u64> {
        let scale = self.scale(from, to);
        let one = |i: u64| {
            let at = match (self.half_pixel_centers, self.align_corners) {
                (true, _) => ((i as f32 + 0.5) * scale).floor(),
                (false, true) => (i as f32 * scale).round(),
                (false, false) => (i as f32 * scale).floor(),
            };
            (at.max(0.0) as u64).min(from - 1)
        };
        (0..to).map(one).collect()
    }
    /// Lower source element, upper source element and weight of the upper one, for each of `to` outputs.
    pub(super) fn linear_taps(self, from: u64, to: u64) -> Vec<(u64, u64, f32)> {
        let scale = self.scale(from, to);
        let one = |i: u64| {
            let at = self.source(i, scale);
            let upper = (at.ceil().max(0.0) as u64).min(from - 1);
            let lower = (at.floor().max(0.0) as u64).min(upper);
            (lower, upper, at - at.floor())
        };
        (0..to).map(one).collect()
    }
}

impl Args {
    fn parse(cx: &mut LowerCtx) -> Result<Args> {
        let size = cx.sizes_from_input(1)?;
        let [height, width] = size[..] else {
            return Err(cx.shape_mismatch(format!("the size must be two numbers, not {size:?}")));
        };
        let image = cx.dims(0)?;
        Args::new(cx, &image, [height, width])
    }
    fn new(cx: &LowerCtx, image: &[Dim], to: [Dim; 2]) -> Result<Args> {
        if image.len() != 4 || image[1] == 0 || image[2] == 0 {
            return Err(
                cx.shape_mismatch(format!("the images must be [batch, height, width, channels], not {image:?}"))
            );
        }
        Ok(Args {
            sampling: Sampling::parse(cx)?,
            from: [image[1], image[2]],
            to: [check_pixel_count(to[0])?, check_pixel_count(to[1])?],
        })
    }
    /// Sizes along `axis` (1 or 2), as numbers unless one is open.
    fn line(&self, axis: usize) -> Line {
        let (from, to) = (self.from[axis - 1], self.to[axis - 1]);
        match from.varies() || to.varies() {
            true => Line::Varying { from, to },
            false => Line::Fixed { from: from.guarded_count(), to: to.guarded_count() },
        }
    }
}

/// Sizes of an image and of the resized image along one axis.
enum Line {
    /// Fixed sizes: the elements to read are computed at compile time.
    Fixed {
        /// Size of the image.
        from: u64,
        /// Size of the result.
        to: u64,
    },
    /// Open sizes: the elements to read are computed by the module.
    Varying {
        /// Size of the image.
        from: Dim,
        /// Size of the result.
        to: Dim,
    },
}

/// Checks a number of rows or columns.
///
/// # Errors
/// `Code::TooLarge` unless it is in `1..=2^24`.
pub fn check_pixel_count(n: Dim) -> Result<Dim> {
    let is_sound = (n.varies() || n > 0) && n <= 1i64 << 24;
    if is_sound { Ok(n) } else { Err(Error::user(Code::TooLarge, format!("a size of {n} pixels"))) }
}

/// Elements `index` along `axis`: a slice or a repetition if they form one, else a gather.
pub(super) fn take_along_axis(b: &mut Builder, x: InstId, axis: usize, index: &[u64]) -> InstId {
    let dims = b.dims(x).to_vec();
    let n = dims[axis];
    let step = match index {
        [a, c, ..] => c.checked_sub(*a).unwrap_or(0),
        _ => 1,
    };
    if step > 0 && index.windows(2).all(|p| p[1].checked_sub(p[0]) == Some(step)) {
        let (start, last) = (index.first().copied().unwrap_or(0), index.last().copied().unwrap_or(0));
        let slices = dims.iter().enumerate().map(|(a, &n)| match a == axis {
            true => SliceDim { start: Dim::from(start), limit: Dim::from(last + 1), stride: Dim::from(step) },
            false => SliceDim { start: Dim::from(0), limit: n, stride: Dim::from(1) },
        });
        let slices: Vec<_> = slices.collect();
        return if start == 0 && step == 1 && last + 1 == n { x } else { b.slice(x, &slices) };
    }
    let repeat = index.len() as u64 / n;
    if index.len() as u64 == repeat * n && index.iter().enumerate().all(|(i, &v)| v == i as u64 / repeat) {
        return repeated(b, x, axis, repeat.guarded_count());
    }
    let indices: Vec<i32> = index.iter().map(|&v| v as i32).collect();
    let indices = b.constant(Tensor::of(&[index.len() as u64], &indices));
    b.gather_along_axis(x, axis, indices, index.is_sorted())
}

/// Array with each element along `axis` repeated `times` times.
fn repeated(b: &mut Builder, x: InstId, axis: usize, times: u64) -> InstId {
    let dims = b.dims(x).to_vec();
    let mut wide = dims.clone();
    wide.insert(axis + 1, Dim::from(times));
    let map: Vec<usize> = (0..dims.len()).map(|a| if a > axis { a + 1 } else { a }).collect();
    let x = b.broadcast(x, &wide, &map);
    let mut out = dims;
    out[axis] *= times;
    b.reshape(x, &out)
}

/// Weights, one for each element along `axis`, broadcast to these sizes.
fn weights(b: &mut Builder, values: &[f32], axis: usize, dims: &[Dim]) -> InstId {
    let line = b.constant(Tensor::of(&[values.len() as u64], values));
    b.broadcast(line, dims, &[axis])
}

/// Linear interpolation along one axis: `lower + (upper - lower) * weight`.
pub(super) fn interpolate_axis(b: &mut Builder, x: InstId, axis: usize, taps: &[(u64, u64, f32)]) -> InstId {
    let lower: Vec<u64> = taps.iter().map(|t| t.0).collect();
    let low = take_along_axis(b, x, axis, &lower);
    if taps.iter().all(|t| t.2 == 0.0 || t.0 == t.1) {
        return low;
    }
    let upper: Vec<u64> = taps.iter().map(|t| t.1).collect();
    let high = take_along_axis(b, x, axis, &upper);
    let weight: Vec<f32> = taps.iter().map(|t| t.2).collect();
    let dims = b.dims(low).to_vec();
    let weight = weights(b, &weight, axis, &dims);
    let difference = b.sub(high, low);
    let part = b.mul(difference, weight);
    b.add(low, part)
}

fn bilinear(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let args = Args::parse(cx)?;
    let x = cx.arg(0)?;
    let mut y = cx.b.convert(x, DType::F32);
    for axis in [2, 1] {
        y = match args.line(axis) {
            Line::Varying { to, .. } => sampling::resize_linear(cx.b, y, axis, args.sampling, to),
            Line::Fixed { from, to } => interpolate_axis(cx.b, y, axis, &args.sampling.linear_taps(from, to)),
        };
    }
    cx.one_output(y)
}

fn nearest(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let args = Args::parse(cx)?;
    let mut y = cx.arg(0)?;
    for axis in [2, 1] {
        y = match args.line(axis) {
            Line::Varying { to, .. } => sampling::resize_nearest(cx.b, y, axis, args.sampling, to),
            Line::Fixed { from, to } => take_along_axis(cx.b, y, axis, &args.sampling.nearest(from, to)),
        };
    }
    cx.one_output(y)
}

/// Four taps of a cubic convolution for each output: index and weight.
///
/// Source: Keys, "Cubic convolution interpolation" (1981). As in TensorFlow the position is rounded to 1/1024. The parameter is
/// -0.5 with half-pixel centers, where taps outside of the image are left out, and else -0.75, where they repeat the edge.
fn cubic_taps(sampling: Sampling, from: u64, to: u64) -> Vec<[(u64, f32); 4]> {
    let a: f32 = if sampling.half_pixel_centers { -0.5 } else { -0.75 };
    let near = |x: f32| ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0;
    let far = |x: f32| ((a * x - 5.0 * a) * x + 8.0 * a) * x - 4.0 * a;
    let scale = sampling.scale(from, to);
    let one = |i: u64| {
        let at = sampling.source(i, scale);
        let start = at.floor();
        let t = ((at - start) * 1024.0).round_ties_even() / 1024.0;
        let raw = [far(t + 1.0), near(t), near(1.0 - t), far(2.0 - t)];
        let mut taps = [(0, 0.0); 4];
        for (k, tap) in taps.iter_mut().enumerate() {
            let index = start as i64 + k as i64 - 1;
            let bounded = index.clamp(0, from as i64 - 1);
            let outside = sampling.half_pixel_centers && index != bounded;
            *tap = (bounded as u64, if outside { 0.0 } else { raw[k] });
        }
        let total: f32 = taps.iter().map(|t| t.1).sum();
        if sampling.half_pixel_centers && total.abs() >= 1000.0 * f32::MIN_POSITIVE {
            taps.iter_mut().for_each(|t| t.1 /= total);
        }
        taps
    };
    (0..to).map(one).collect()
}

fn bicubic(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let args = Args::parse(cx)?;
    let x = cx.arg(0)?;
    let mut y = cx.b.convert(x, DType::F32);
    for axis in [2, 1] {
        let taps = match args.line(axis) {
            Line::Fixed { from, to } => cubic_taps(args.sampling, from, to),
            Line::Varying { from, to } => {
                y = sampling::resize_cubic(cx.b, y, axis, args.sampling, [from, to]);
                continue;
            }
        };
        let mut total = None;
        for k in 0..4 {
            let index: Vec<u64> = taps.iter().map(|t| t[k].0).collect();
            let weight: Vec<f32> = taps.iter().map(|t| t[k].1).collect();
            let part = take_along_axis(cx.b, y, axis, &index);
            let dims = cx.b.dims(part).to_vec();
            let weight = weights(cx.b, &weight, axis, &dims);
            let part = cx.b.mul(part, weight);
            total = Some(total.map_or(part, |t| cx.b.add(t, part)));
        }
        y = total.unwrap_or(y);
    }
    cx.one_output(y)
}

/// Matrix `[to, from]` of type `dtype`; entries at one position are added up.
pub fn interpolation_matrix(
    b: &mut Builder,
    dtype: DType,
    to: u64,
    from: u64,
    entries: &[(u64, u64, f32)],
) -> Result<InstId> {
    let count = crate::tensor::element_count(&[to, from])
        .filter(|&n| n <= 1 << 26)
        .ok_or_else(|| Error::user(Code::TooLarge, format!("a resize of {from} to {to} pixels")))?;
    let mut values = vec![0f32; count as usize];
    for &(row, column, weight) in entries {
        values[(row * from + column) as usize] += weight;
    }
    let m = b.constant(Tensor::of(&[to, from], &values));
    Ok(b.convert(m, dtype))
}

/// Contracts `axis` (1 or 2 of 4) of `x` with the last dimension of the matrix `m`.
pub fn contract_axis(b: &mut Builder, m: InstId, x: InstId, axis: usize) -> InstId {
    let dims = DotDims { lhs_contracting: vec![axis], rhs_contracting: vec![1], ..DotDims::default() };
    let y = b.dot(x, m, dims);
    let perm: &[usize] = if axis == 1 { &[0, 3, 1, 2] } else { &[0, 1, 3, 2] };
    b.transpose(y, perm)
}

/// Lowers the gradient of bilinear resizing: the transposed interpolation, as two products with constant matrices.
fn bilinear_grad(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (grad, image) = (cx.dims(0)?, cx.dims(1)?);
    if grad.len() != 4 {
        return Err(cx.shape_mismatch(format!("the gradient must have rank 4, not {grad:?}")));
    }
    let args = Args::new(cx, &image, [grad[1], grad[2]])?;
    let (g, dtype) = (cx.arg(0)?, cx.dtype(1)?);
    let work = accumulator_type(dtype);
    let mut y = cx.b.convert(g, work);
    for axis in [1, 2] {
        let m = match args.line(axis) {
            Line::Fixed { from, to } => {
                let mut entries = Vec::new();
                for (i, (lower, upper, weight)) in args.sampling.linear_taps(from, to).into_iter().enumerate() {
                    entries.extend([(lower, i as u64, 1.0 - weight), (upper, i as u64, weight)]);
                }
                interpolation_matrix(cx.b, work, from, to, &entries)?
            }
            Line::Varying { from, to } => {
                let taps = sampling::linear_taps(cx.b, args.sampling, [from, to]);
                sampling::interpolation_matrix(cx.b, dtype, &taps, [from, to])
            }
        };
        y = contract_axis(cx.b, m, y, axis);
    }
    let y = cx.b.convert(y, dtype);
    cx.one_output(y)
}

/// Lowers the gradient of bicubic resizing: the transposed convolution, as two products with constant matrices.
fn bicubic_grad(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (grad, image) = (cx.dims(0)?, cx.dims(1)?);
    if grad.len() != 4 {
        return Err(cx.shape_mismatch(format!("the gradient must have rank 4, not {grad:?}")));
    }
    let args = Args::new(cx, &image, [grad[1], grad[2]])?;
    let (grads, dtype) = (cx.arg(0)?, cx.dtype(1)?);
    let mut y = cx.b.convert(grads, dtype);
    for axis in [1, 2] {
        let m = match args.line(axis) {
            Line::Fixed { from, to } => {
                let taps = cubic_taps(args.sampling, from, to).into_iter().zip(0..);
                let of = |(taps, i): ([(u64, f32); 4], u64)| taps.map(|(index, weight)| (index, i, weight));
                let entries: Vec<_> = taps.flat_map(of).collect();
                interpolation_matrix(cx.b, dtype, from, to, &entries)?
            }
            Line::Varying { from, to } => {
                let taps = sampling::cubic_taps(cx.b, args.sampling, [from, to]);
                sampling::interpolation_matrix(cx.b, dtype, &taps, [from, to])
            }
        };
        y = contract_axis(cx.b, m, y, axis);
    }
    cx.one_output(y)
}

/// Lowers the gradient of nearest-neighbor resizing: each element of the gradient is added to the element it was read from.
fn nearest_grad(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (grad, size) = (cx.dims(0)?, cx.constant_dims(1)?);
    let ([height, width], 4) = (&size[..], grad.len()) else {
        return Err(cx.shape_mismatch(format!("gradient {grad:?} must have rank 4, and the size {size:?} two numbers")));
    };
    let rows = |v: Dim| Dim::size(v).map_err(|_| Error::user(Code::TooLarge, format!("a size of {v} pixels")));
    let image = [grad[0], rows(*height)?, rows(*width)?, grad[3]];
    let args = Args::new(cx, &image, [grad[1], grad[2]])?;
    let (mut y, dtype) = (cx.arg(0)?, cx.dtype(0)?);
    for axis in [1, 2] {
        let m = match args.line(axis) {
            Line::Fixed { from, to } => {
                let index = args.sampling.nearest(from, to);
                let entries: Vec<_> = index.iter().enumerate().map(|(i, &v)| (v, i as u64, 1.0)).collect();
                interpolation_matrix(cx.b, dtype, from, to, &entries)?
            }
            Line::Varying { from, to } => {
                let taps = [sampling::nearest_tap(cx.b, args.sampling, [from, to])];
                sampling::interpolation_matrix(cx.b, dtype, &taps, [from, to])
            }
        };
        y = contract_axis(cx.b, m, y, axis);
    }
    cx.one_output(y)
}

const F32: Option<TfType> = Some(TfType::Data(DType::F32));

/// Shape function of resize ops: height and width are those in input 1.
pub fn resize_shape(cx: &mut ShapeCtx, dtype: Option<TfType>) -> Result<Vec<Fact>> {
    let dims = resize_dims(cx, 1)?;
    cx.one_output(dtype, dims)
}

/// Sizes of the images, with height and width replaced by those in input `i`.
pub fn resize_dims(cx: &mut ShapeCtx, i: usize) -> Result<Vec<InferredDim>> {
    let mut dims = cx.dims_of_rank(0, 4)?;
    let sizes = cx.partial_ints(i).unwrap_or_else(|| vec![InferredInt::Unknown; 2]);
    if sizes.len() != 2 {
        return Err(cx.shape_mismatch("the size must be two numbers"));
    }
    for (d, size) in dims[1..3].iter_mut().zip(sizes) {
        *d = size.as_dim().unwrap_or_else(|| cx.fresh_dim(UnknownReason::Value(i)));
    }
    Ok(dims)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEGACY: Sampling = Sampling { align_corners: false, half_pixel_centers: false };
    const HALF: Sampling = Sampling { align_corners: false, half_pixel_centers: true };
    const CORNERS: Sampling = Sampling { align_corners: true, half_pixel_centers: false };

    fn line(s: Sampling) -> Vec<f32> {
        s.linear_taps(3, 5).iter().map(|&(l, u, w)| l as f32 + (u as f32 - l as f32) * w).collect()
    }

    #[test]
    fn three_to_five_as_tensorflow_does() {
        let near = |a: Vec<f32>, b: [f32; 5]| a.iter().zip(b).all(|(x, y)| (x - y).abs() < 1e-6);
        assert!(near(line(LEGACY), [0.0, 0.6, 1.2, 1.8, 2.0]));
        assert!(near(line(HALF), [0.0, 0.4, 1.0, 1.6, 2.0]));
        assert!(near(line(CORNERS), [0.0, 0.5, 1.0, 1.5, 2.0]));
        assert_eq!(LEGACY.nearest(3, 5), [0, 0, 1, 1, 2]);
        assert_eq!(HALF.nearest(3, 5), [0, 0, 1, 2, 2]);
        assert_eq!(CORNERS.nearest(3, 5), [0, 1, 1, 2, 2]);
    }
}
