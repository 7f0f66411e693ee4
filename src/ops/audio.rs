//! `audio_ops.cc`: spectrograms and mel-frequency cepstral coefficients.
//!
//! Source: TensorFlow's `spectrogram.cc`, `mfcc_mel_filterbank.cc` and `mfcc_dct.cc`, which compute in f64.
use super::array::gather::gather_slices;
use super::fact::Fact;
use super::math::special::mul_scalar;
use super::op_lowering::op;
use super::symbols::InferredDim;
use super::{LowerCtx, OpLowering, ShapeCtx, Value};
use crate::diag::{Code, Error, Result};
use crate::dims;
use crate::graph::TfType;
use crate::hlo::symbolic::{Builder, InstId, Op};
use crate::hlo::symbolic::{DotDims, FftKind, PadDim};
use crate::scalar::ScalarOp;
use crate::symbolic::Dim;
use crate::tensor::{DType, Tensor};
use std::f64::consts::PI;

/// Definitions of the ops of this family.
#[rustfmt::skip]
pub const ROWS: &[&[OpLowering]] = &[&[
    op("AudioSpectrogram", "input -> spectrogram",              spectrogram).shape(spectrogram_shape).dtypes("f32"),
    op("Mfcc",             "spectrogram sample_rate -> output", cepstrum).shape(cepstrum_shape).constant_inputs(&[1]).dtypes("f32"),
]];

const F32: Option<TfType> = Some(TfType::Data(DType::F32));

/// Division of audio into frames: the samples in each frame, and the samples between the starts of two frames.
struct Framing {
    window: u64,
    stride: u64,
}

impl Framing {
    fn parse(node: &crate::graph::Node) -> Result<Framing> {
        let number = |name: &str, least: i64| match node.int(name) {
            Some(v) if (least..=1 << 24).contains(&v) => Ok(v as u64),
            other => Err(Error::user(Code::BadAttr, format!("`{name}` is {other:?}"))),
        };
        Ok(Framing { window: number("window_size", 2)?, stride: number("stride", 1)? })
    }
    /// Number of frequency bins of a frame.
    fn frequencies(&self) -> u64 {
        self.window.next_power_of_two() / 2 + 1
    }
}

/// Lowers `AudioSpectrogram`: magnitudes of the frequencies of each frame under a Hann window, `[samples, channels]` ->
/// `[channels, frames, frequencies]`.
fn spectrogram(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (x, framing) = (cx.arg(0)?, Framing::parse(cx.node)?);
    let [samples, channels] = cx.dims(0)?[..] else { return Err(cx.shape_mismatch("the input must be a matrix")) };
    let Framing { window, stride } = framing;
    let count = samples.guarded_count().checked_sub(window).map_or(0, |rest| 1 + rest / stride);
    let out = [channels, Dim::from(count), Dim::from(framing.frequencies())];
    if crate::symbolic::has_zero(&out) {
        let y = cx.b.full(DType::F32, &out, 0.0);
        return cx.one_output(y);
    }
    let is_squared = cx.bool_attr("magnitude_squared");
    let b = &mut *cx.b;
    let grid = [count, window].map(Dim::from);
    let (frame, place) = (b.iota(DType::S32, &grid, 0), b.iota(DType::S32, &grid, 1));
    let start = mul_scalar(b, frame, stride as f64);
    let at = b.add(start, place);
    let x = b.transpose(x, &[1, 0]);
    let frames = gather_slices(b, x, at, 1, 0);
    let hann: Vec<f64> = (0..window).map(|i| 0.5 - 0.5 * ((2.0 * PI * i as f64) / window as f64).cos()).collect();
    let hann = b.constant(Tensor::of(&[window], &hann));
    let hann = b.broadcast(hann, &dims![channels, count, window], &[2]);
    let frames = b.convert(frames, DType::F64);
    let frames = b.mul(frames, hann);
    let length = window.next_power_of_two();
    let zero = b.scalar(DType::F64, 0.0);
    let behind = PadDim { high: Dim::from((length - window) as i64), ..PadDim::default() };
    let frames = b.pad(frames, zero, &[PadDim::default(), PadDim::default(), behind]);
    let spectrum = b.add_inst(Op::Fft { kind: FftKind::Rfft, length: vec![Dim::from(length)] }, &[frames]);
    let [re, im] = [ScalarOp::Real, ScalarOp::Imag].map(|part| {
        let part = b.unary(part, spectrum);
        b.mul(part, part)
    });
    let sum = b.add(re, im);
    let mut y = b.convert(sum, DType::F32);
    if !is_squared {
        y = b.unary(ScalarOp::Sqrt, y);
    }
    cx.one_output(y)
}

/// Triangular filters that are evenly spaced on the mel scale.
struct Filters {
    channels: u64,
    lower: f64,
    upper: f64,
}

fn mel(frequency: f64) -> f64 {
    1127.0 * (frequency / 700.0).ln_1p()
}

impl Filters {
    /// Weight of each of `length` frequency bins in each filter, `[length, channels]`. `None` where the highest bin lies below
    /// the upper frequency limit; TensorFlow's kernel returns zeros then.
    fn weights(&self, length: u64, rate: f64) -> Option<Vec<f64>> {
        let (low, high) = (mel(self.lower), mel(self.upper));
        let spacing = (high - low) / (self.channels + 1) as f64;
        let center = |i: u64| low + spacing * (i + 1) as f64;
        let step = 0.5 * rate / (length - 1) as f64;
        let (start, end) = ((1.5 + self.lower / step) as u64, (self.upper / step) as u64);
        if length <= end {
            return None;
        }
        let mut weights = vec![0.0; (length * self.channels) as usize];
        let mut right = 0;
        for i in start..=end {
            let at = mel(i as f64 * step);
            while right < self.channels && center(right) < at {
                right += 1;
            }
            let row = i * self.channels;
            // The filter whose falling side covers this bin has the number before.
            let weight = match right.checked_sub(1) {
                Some(left) => (center(right) - at) / (center(right) - center(left)),
                None => (center(0) - at) / (center(0) - low),
            };
            if let Some(left) = right.checked_sub(1) {
                weights[(row + left) as usize] = weight;
            }
            if right < self.channels {
                weights[(row + right) as usize] = 1.0 - weight;
            }
        }
        Some(weights)
    }
}

/// Product of the last axis of a rank-3 array with a matrix.
fn by_matrix(b: &mut Builder, x: InstId, matrix: InstId) -> InstId {
    b.dot(x, matrix, DotDims { lhs_contracting: vec![2], rhs_contracting: vec![0], ..DotDims::default() })
}

/// Lowers `Mfcc`: the discrete cosine transform of the logarithms of the filters' sums.
fn cepstrum(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (x, rate) = (cx.arg(0)?, cx.constant_int(1)?);
    let [channels, frames, length] = cx.dims(0)?[..] else {
        return Err(cx.shape_mismatch("the spectrogram must be of rank 3"));
    };
    let limit = |name: &str, default: f64| cx.node.float(name).map_or(default, f64::from);
    let (lower, upper) = (limit("lower_frequency_limit", 20.0), limit("upper_frequency_limit", 4000.0));
    let count = |name: &str, default: i64| match cx.node.int(name).unwrap_or(default) {
        v @ 1..=65_536 => Ok(v as u64),
        v => Err(Error::user(Code::BadAttr, format!("`{name}` is {v}"))),
    };
    let (filters, kept) = (count("filterbank_channel_count", 40)?, count("dct_coefficient_count", 13)?);
    if length < 2 || rate <= 0 || lower < 0.0 || upper <= lower || kept > filters || filters * length > 1 << 26 {
        let told =
            format!("{kept} of {filters} filters from {lower} to {upper} of {length} frequencies at a rate of {rate}");
        return Err(Error::user(Code::BadInputs, told));
    }
    let weights = Filters { channels: filters, lower, upper }.weights(length.guarded_count(), rate as f64);
    let Some(weights) = weights else {
        let y = cx.b.full(DType::F32, &dims![channels, frames, kept], 0.0);
        return cx.one_output(y);
    };
    let norm = (2.0 / filters as f64).sqrt();
    let cosine = |j: u64, i: u64| norm * (i as f64 * (PI / filters as f64) * (j as f64 + 0.5)).cos();
    let cosines: Vec<f64> = (0..filters).flat_map(|j| (0..kept).map(move |i| cosine(j, i))).collect();
    let b = &mut *cx.b;
    let x = b.convert(x, DType::F64);
    let magnitudes = b.unary(ScalarOp::Sqrt, x);
    let weights = b.constant(Tensor::of(&[length.guarded_count(), filters], &weights));
    let sums = by_matrix(b, magnitudes, weights);
    let least = b.full_like(sums, 1e-12);
    let sums = b.max(sums, least);
    let logs = b.unary(ScalarOp::Log, sums);
    let cosines = b.constant(Tensor::of(&[filters, kept], &cosines));
    let y = by_matrix(b, logs, cosines);
    let y = b.convert(y, DType::F32);
    cx.one_output(y)
}

fn spectrogram_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let (dims, framing) = (cx.dims_of_rank(0, 2)?, Framing::parse(cx.node)?);
    let frames = match dims[0] {
        InferredDim::Known(n) => {
            InferredDim::Known(n.checked_sub(framing.window).map_or(0, |rest| 1 + rest / framing.stride))
        }
        _ => cx.fresh_dim(cx.unknown_cause(0)),
    };
    cx.one_output(F32, vec![dims[1], frames, InferredDim::Known(framing.frequencies())])
}

fn cepstrum_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let dims = cx.dims_of_rank(0, 3)?;
    let kept = u64::try_from(cx.node.int("dct_coefficient_count").unwrap_or(13)).unwrap_or(0);
    cx.one_output(F32, vec![dims[0], dims[1], InferredDim::Known(kept)])
}
