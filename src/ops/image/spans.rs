//! Resizing by weighted sums of spans of pixels: area averages, and resampling kernels with any scale and translation.
//!
//! The weights are computed at compile time in f32, as TensorFlow does; the module has two products with constant matrices. For
//! open sizes it computes the weights, too (`span_weights.rs`).
use super::resize::{Sampling, check_pixel_count, contract_axis, interpolation_matrix, resize_shape};
use super::span_weights;
use crate::diag::Result;
use crate::graph::TfType;
use crate::hlo::symbolic::{Dim, InstId};
use crate::ops::op_lowering::op;
use crate::ops::shape::like_second_input;
use crate::ops::{LowerCtx, OpLowering, Value};
use crate::tensor::DType;

const REAL: &str = "s8, u8, s16, u16, s32, s64, f16, bf16, f32, f64";

/// Definitions of the ops of this file.
#[rustfmt::skip]
pub const ROWS: &[OpLowering] = &[
    op("ResizeArea",        "images size -> resized_images", area).shape(|cx| resize_shape(cx, F32)).constant_inputs(&[1]).dtypes(REAL),
    op("ScaleAndTranslate", "images size scale translation -> resized_images", scale_and_translate)
        .shape(|cx| resize_shape(cx, F32)).constant_inputs(&[1, 2, 3]).dtypes(REAL),
    op("ScaleAndTranslateGrad", "grads original_image scale translation -> output", scale_and_translate_grad)
        .shape(like_second_input).constant_inputs(&[2, 3]).dtypes("f32"),
];

const F32: Option<TfType> = Some(TfType::Data(DType::F32));

/// Matrix entry: index of the result pixel, index of the image pixel, and weight of the latter in the former.
type Entry = (u64, u64, f32);

/// Sizes of an image and of a result along one axis.
type Sizes = [Dim; 2];

/// Sizes along height and along width.
fn sizes(cx: &LowerCtx) -> Result<[Sizes; 2]> {
    let (image, size) = (cx.dims(0)?, cx.constant_dims(1)?);
    let ([_, height, width, _], [rows, columns]) = (&image[..], &size[..]) else {
        return Err(cx.shape_mismatch(format!("image {image:?} must have rank 4, and the size {size:?} two numbers")));
    };
    if *height == 0 || *width == 0 {
        return Err(cx.shape_mismatch(format!("the images {image:?} have no pixels")));
    }
    Ok([[*height, check_pixel_count(*rows)?], [*width, check_pixel_count(*columns)?]])
}

/// Sizes as numbers; `None` if one is open, so that the module must compute the weights.
fn fixed(sizes: [Sizes; 2]) -> Option<[(u64, u64); 2]> {
    let varies = sizes.iter().flatten().any(|size| size.varies());
    (!varies).then(|| sizes.map(|[from, to]| (from.guarded_count(), to.guarded_count())))
}

/// Image multiplied by a weight matrix along columns, then along rows; `weights` returns the matrix `[to, from]` of an axis, 0
/// for rows.
fn weighted(cx: &mut LowerCtx, weights: impl Fn(&mut LowerCtx, usize) -> Result<InstId>) -> Result<Vec<Value>> {
    let x = cx.arg(0)?;
    let mut y = cx.b.convert(x, DType::F32);
    for axis in [2, 1] {
        let m = weights(cx, axis - 1)?;
        y = contract_axis(cx.b, m, y, axis);
    }
    cx.one_output(y)
}

/// Resizes images by matrices of constant weights, one for rows and one for columns.
fn weighted_by(cx: &mut LowerCtx, sizes: [(u64, u64); 2], entries: &[Vec<Entry>; 2]) -> Result<Vec<Value>> {
    weighted(cx, |cx, i| interpolation_matrix(cx.b, DType::F32, sizes[i].1, sizes[i].0, &entries[i]))
}

/// Lowers `ResizeArea`: each result pixel is the mean of its span of the image.
fn area(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let sizes = sizes(cx)?;
    let sampling = Sampling { align_corners: cx.bool_attr("align_corners"), half_pixel_centers: false };
    let Some(known) = fixed(sizes) else {
        return weighted(cx, |cx, i| Ok(span_weights::covered_fractions(cx.b, sampling, sizes[i])));
    };
    let entries = known.map(|(from, to)| covered(from, to, sampling.scale(from, to)));
    weighted_by(cx, known, &entries)
}

/// Fraction of each result pixel's span that each image pixel covers.
fn covered(from: u64, to: u64, scale: f32) -> Vec<Entry> {
    if scale == 0.0 {
        // The span of an image of one pixel is empty with `align_corners`, and stands for that pixel.
        return (0..to).map(|i| (i, 0, 1.0)).collect();
    }
    let mut entries = Vec::new();
    for i in 0..to {
        let (start, end) = (i as f32 * scale, (i + 1) as f32 * scale);
        for pixel in start.floor() as u64..end.ceil() as u64 {
            let (at, behind) = (pixel as f32, (pixel + 1) as f32);
            let share = match (at < start, behind > end) {
                (true, true) => scale,
                (true, false) => behind - start,
                (false, true) => end - at,
                (false, false) => 1.0,
            };
            entries.push((i, pixel.min(from - 1), share / scale));
        }
    }
    entries
}

/// Lowers `ScaleAndTranslate`: each result pixel is a sum of the pixels around its source position, weighted by a kernel.
fn scale_and_translate(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let sizes = sizes(cx)?;
    let Some(known) = fixed(sizes) else { return weighted(cx, |cx, i| varying_weights(cx, i, sizes[i])) };
    let entries = moved(cx, known)?;
    weighted_by(cx, known, &entries)
}

/// Resampling weights `[to, from]` along axis `i`, for open sizes.
fn varying_weights(cx: &mut LowerCtx, i: usize, sizes: Sizes) -> Result<InstId> {
    let (kernel, antialias) = kernel(cx)?;
    let mut number = |input: usize| -> Result<InstId> {
        let pair = cx.arg(input)?;
        if cx.b.dims(pair) != [2] {
            return Err(cx.shape_mismatch(format!("input {input} must be two numbers")));
        }
        let one = cx.b.slice_axis(pair, 0, Dim::from(i), Dim::from(i + 1));
        let one = cx.b.reshape(one, &[]);
        Ok(cx.b.convert(one, DType::F32))
    };
    let how = span_weights::AxisTransform { scale: number(2)?, translation: number(3)? };
    Ok(span_weights::resampling_weights(cx.b, &how, kernel, antialias, sizes))
}

/// Resampling kernel, and whether antialiasing widens it when the image is reduced.
fn kernel(cx: &LowerCtx) -> Result<(ResampleKernel, bool)> {
    let kernel = match cx.node.str("kernel_type") {
        Some(name) => {
            ResampleKernel::named(name).ok_or_else(|| cx.unsupported_case(format!("no kernel is called {name}")))?
        }
        None => ResampleKernel::Lanczos(3.0),
    };
    Ok((kernel, cx.node.bool("antialias").unwrap_or(true)))
}

/// Lowers the gradient of `ScaleAndTranslate`, the transpose of the weight matrices.
fn scale_and_translate_grad(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (grad, image) = (cx.dims(0)?, cx.dims(1)?);
    let (&[_, rows, columns, _], &[_, height, width, _]) = (&grad[..], &image[..]) else {
        return Err(cx.shape_mismatch(format!("a gradient {grad:?} of images {image:?}")));
    };
    if crate::symbolic::has_zero(&grad) || height == 0 || width == 0 {
        let none = cx.b.full(DType::F32, &[grad[0], height, width, grad[3]], 0.0);
        return cx.one_output(none);
    }
    let sizes = [[height, rows], [width, columns]];
    let Some(known) = fixed(sizes) else {
        return weighted(cx, |cx, i| {
            let weights = varying_weights(cx, i, sizes[i])?;
            Ok(cx.b.transpose(weights, &[1, 0]))
        });
    };
    let turned = moved(cx, known)?.map(|all| all.into_iter().map(|(to, from, weight)| (from, to, weight)).collect());
    weighted_by(cx, known.map(|(from, to)| (to, from)), &turned)
}

/// Resampling weights along rows and columns.
fn moved(cx: &LowerCtx, sizes: [(u64, u64); 2]) -> Result<[Vec<Entry>; 2]> {
    let (kernel, antialias) = kernel(cx)?;
    let pair = |cx: &LowerCtx, i: usize| {
        let numbers = cx.constant(i)?;
        match (numbers.get_f64(0), numbers.get_f64(1), numbers.get_f64(2)) {
            (Some(rows), Some(columns), None) => Ok([rows as f32, columns as f32]),
            _ => Err(cx.shape_mismatch(format!("input {i} must be two numbers"))),
        }
    };
    let (scale, translation) = (pair(cx, 2)?, pair(cx, 3)?);
    if !scale.iter().all(|&s| s > 0.0 && s.is_finite()) || !translation.iter().all(|t| t.is_finite()) {
        return Err(cx.shape_mismatch(format!("a scale of {scale:?} and a translation of {translation:?}")));
    }
    let line = |i: usize| Line { from: sizes[i].0, to: sizes[i].1, scale: scale[i], translation: translation[i] };
    Ok([0, 1].map(|i| line(i).spans(kernel, antialias)))
}

/// Scale and translation along one axis, with the sizes.
struct Line {
    from: u64,
    to: u64,
    scale: f32,
    translation: f32,
}

impl Line {
    /// Weights of the image pixels around the source position of each result pixel. A position outside of the image has none.
    fn spans(&self, kernel: ResampleKernel, antialias: bool) -> Vec<Entry> {
        let inverse = 1.0 / self.scale;
        let moved = -inverse * self.translation;
        let width = if antialias { inverse.max(1.0) } else { 1.0 };
        let (narrow, reach, last) = (1.0 / width, kernel.radius() * width, self.from as i64 - 1);
        let mut entries = Vec::new();
        for i in 0..self.to {
            let at = (i as f32 + 0.5) * inverse + moved;
            if at < 0.0 || at > self.from as f32 {
                continue;
            }
            let start = ((at - reach - 0.5).ceil() as i64).clamp(0, last);
            let end = ((at + reach - 0.5).floor() as i64).clamp(0, last);
            let weight = |pixel: i64| kernel.weight(((pixel as f32 + 0.5 - at) * narrow).abs());
            let weights: Vec<f32> = (start..=end).map(weight).collect();
            let total: f32 = weights.iter().sum();
            if total.abs() >= 1000.0 * f32::MIN_POSITIVE {
                let whole = 1.0 / total;
                entries.extend((start..).zip(weights).map(|(pixel, w)| (i, pixel as u64, w * whole)));
            }
        }
        entries
    }
}

/// Resampling kernel: weight of a pixel as a function of distance.
#[derive(Clone, Copy)]
pub enum ResampleKernel {
    /// Sinc windowed by the main lobe of another sinc, as wide as the radius.
    Lanczos(f32),
    /// Normal density with a standard deviation of half a pixel.
    Gaussian,
    /// Constant within half a pixel.
    Box,
    /// Linear descent to zero at a distance of one pixel.
    Triangle,
    /// Cubic convolution of Keys with the parameter -0.5.
    KeysCubic,
    /// Cubic of Mitchell and Netravali with both parameters 1/3.
    MitchellCubic,
}

impl ResampleKernel {
    fn named(name: &str) -> Option<ResampleKernel> {
        Some(match name {
            "lanczos1" => ResampleKernel::Lanczos(1.0),
            "lanczos3" => ResampleKernel::Lanczos(3.0),
            "lanczos5" => ResampleKernel::Lanczos(5.0),
            "gaussian" => ResampleKernel::Gaussian,
            "box" => ResampleKernel::Box,
            "triangle" => ResampleKernel::Triangle,
            "keyscubic" => ResampleKernel::KeysCubic,
            "mitchellcubic" => ResampleKernel::MitchellCubic,
            _ => return None,
        })
    }
    /// Distance beyond which the weight is zero.
    pub fn radius(self) -> f32 {
        match self {
            ResampleKernel::Lanczos(radius) => radius,
            ResampleKernel::Gaussian => 1.5,
            ResampleKernel::Box | ResampleKernel::Triangle => 1.0,
            ResampleKernel::KeysCubic | ResampleKernel::MitchellCubic => 2.0,
        }
    }
    fn weight(self, x: f32) -> f32 {
        const PI: f32 = std::f32::consts::PI;
        match self {
            ResampleKernel::Lanczos(radius) if x > radius => 0.0,
            ResampleKernel::Lanczos(_) if x <= 1e-3 => 1.0,
            ResampleKernel::Lanczos(radius) => radius * (PI * x).sin() * (PI * x / radius).sin() / (PI * PI * x * x),
            ResampleKernel::Gaussian if x >= self.radius() => 0.0,
            ResampleKernel::Gaussian => (-x * x / (2.0 * 0.5 * 0.5)).exp(),
            ResampleKernel::Box if x < 0.5 => 1.0,
            ResampleKernel::Box => {
                if x == 0.5 {
                    0.5
                } else {
                    0.0
                }
            }
            ResampleKernel::Triangle => (1.0 - x).max(0.0),
            ResampleKernel::KeysCubic | ResampleKernel::MitchellCubic if x >= 2.0 => 0.0,
            ResampleKernel::KeysCubic if x >= 1.0 => ((-0.5 * x + 2.5) * x - 4.0) * x + 2.0,
            ResampleKernel::KeysCubic => ((1.5 * x - 2.5) * x) * x + 1.0,
            ResampleKernel::MitchellCubic if x >= 1.0 => (((-7.0 / 18.0) * x + 2.0) * x - 10.0 / 3.0) * x + 16.0 / 9.0,
            ResampleKernel::MitchellCubic => (((7.0 / 6.0) * x - 2.0) * x) * x + 8.0 / 9.0,
        }
    }
}
