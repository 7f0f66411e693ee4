//! Discrete Fourier transforms over the last one to three dimensions.
use super::ShapeCtx;
use super::fact::{Fact, InferredInt};
use super::op_lowering::op;
use super::shape::like_first_input;
use super::symbols::{InferredDim, UnknownReason};
use super::{LowerCtx, OpLowering, Value};
use crate::diag::{Code, Error, Result};
use crate::graph::TfType;
use crate::hlo::symbolic::{Dim, FftKind, PadDim};
use crate::hlo::symbolic::{InstId, Op};
use crate::tensor::DType;

const REAL: &str = "f32, f64";
const COMPLEX: &str = "c64, c128";
const ONE: &str = "input -> output";
const LENGTH: &str = "input fft_length -> output";

/// Definitions of the ops of this family.
#[rustfmt::skip]
pub const ROWS: &[&[OpLowering]] = &[&[
    op("FFT",    ONE,    |cx| complex(cx, FftKind::Fft, 1)).shape(like_first_input).dtypes(COMPLEX),
    op("FFT2D",  ONE,    |cx| complex(cx, FftKind::Fft, 2)).shape(like_first_input).dtypes(COMPLEX),
    op("FFT3D",  ONE,    |cx| complex(cx, FftKind::Fft, 3)).shape(like_first_input).dtypes(COMPLEX),
    op("IFFT",   ONE,    |cx| complex(cx, FftKind::Ifft, 1)).shape(like_first_input).dtypes(COMPLEX),
    op("IFFT2D", ONE,    |cx| complex(cx, FftKind::Ifft, 2)).shape(like_first_input).dtypes(COMPLEX),
    op("IFFT3D", ONE,    |cx| complex(cx, FftKind::Ifft, 3)).shape(like_first_input).dtypes(COMPLEX),
    op("RFFT",    LENGTH, |cx| real(cx, FftKind::Rfft, 1)).shape(|cx| real_shape(cx, 1, true)).constant_inputs(&[1]).dtypes(REAL),
    op("RFFT2D",  LENGTH, |cx| real(cx, FftKind::Rfft, 2)).shape(|cx| real_shape(cx, 2, true)).constant_inputs(&[1]).dtypes(REAL),
    op("RFFT3D",  LENGTH, |cx| real(cx, FftKind::Rfft, 3)).shape(|cx| real_shape(cx, 3, true)).constant_inputs(&[1]).dtypes(REAL),
    op("IRFFT",   LENGTH, |cx| real(cx, FftKind::Irfft, 1)).shape(|cx| real_shape(cx, 1, false)).constant_inputs(&[1]).dtypes(COMPLEX),
    op("IRFFT2D", LENGTH, |cx| real(cx, FftKind::Irfft, 2)).shape(|cx| real_shape(cx, 2, false)).constant_inputs(&[1]).dtypes(COMPLEX),
    op("IRFFT3D", LENGTH, |cx| real(cx, FftKind::Irfft, 3)).shape(|cx| real_shape(cx, 3, false)).constant_inputs(&[1]).dtypes(COMPLEX),
]];

fn transform(cx: &mut LowerCtx, x: InstId, kind: FftKind, length: Vec<Dim>) -> Result<Vec<Value>> {
    let y = cx.b.add_inst(Op::Fft { kind, length }, &[x]);
    cx.one_output(y)
}

fn complex(cx: &mut LowerCtx, kind: FftKind, n: usize) -> Result<Vec<Value>> {
    let (x, dims) = (cx.arg(0)?, cx.dims(0)?);
    let Some(lead) = dims.len().checked_sub(n) else {
        return Err(cx.shape_mismatch(format!("{n} dimensions are transformed, and the input is {dims:?}")));
    };
    transform(cx, x, kind, dims[lead..].to_vec())
}

/// Lowers a transform from or to real numbers; the input is truncated or zero-padded to `fft_length`.
fn real(cx: &mut LowerCtx, kind: FftKind, n: usize) -> Result<Vec<Value>> {
    let (x, dims) = (cx.arg(0)?, cx.dims(0)?);
    let size = |&v: &Dim| match Dim::size(v) {
        Ok(v) if v <= 1u64 << 32 => Ok(v),
        _ => Err(Error::user(Code::TooLarge, format!("an fft_length of {v}"))),
    };
    let length = cx.constant_dims(1)?.iter().map(size).collect::<Result<Vec<Dim>>>()?;
    let (Some(lead), true) = (dims.len().checked_sub(n), length.len() == n) else {
        return Err(cx.shape_mismatch(format!("fft_length {length:?} for {n} dimensions of {dims:?}")));
    };
    let mut wanted = length.clone();
    if kind == FftKind::Irfft {
        wanted[n - 1] = wanted[n - 1] / 2 + 1;
    }
    let mut pads = vec![PadDim::default(); dims.len()];
    for (i, &want) in wanted.iter().enumerate() {
        pads[lead + i].high = want - dims[lead + i];
    }
    let x = if dims[lead..] == wanted[..] {
        x
    } else {
        let zero = cx.b.scalar(cx.b.dtype(x), 0.0);
        cx.b.pad(x, zero, &pads)
    };
    transform(cx, x, kind, length)
}

/// Shape function: the last dimensions are those of `fft_length`; the last one is `n / 2 + 1` on the complex side of a real
/// transform.
fn real_shape(cx: &mut ShapeCtx, n: usize, forward: bool) -> Result<Vec<Fact>> {
    let wide = matches!(cx.dtype(0), Some(TfType::Data(DType::F64 | DType::C128)));
    let dtype = match (forward, wide) {
        (true, false) => DType::C64,
        (true, true) => DType::C128,
        (false, false) => DType::F32,
        (false, true) => DType::F64,
    };
    let length = cx.partial_ints(1).filter(|v| v.len() == n).unwrap_or_else(|| vec![InferredInt::Unknown; n]);
    let mut sizes = Vec::with_capacity(n);
    for v in length {
        sizes.push(v.as_dim().unwrap_or_else(|| cx.fresh_dim(UnknownReason::Value(1))));
    }
    if let (true, Some(last)) = (forward, sizes.last_mut()) {
        let half = cx.div(*last, InferredDim::Known(2));
        *last = if *last == InferredDim::Known(0) { *last } else { cx.add(half, InferredDim::Known(1)) };
    }
    let dims = match cx.ranked_dims(0)? {
        Some(dims) if dims.len() >= n => [&dims[..dims.len() - n], &sizes].concat().into(),
        Some(_) => return Err(cx.shape_mismatch(format!("{n} dimensions are transformed"))),
        None => cx.unranked_from(0),
    };
    cx.one_output(TfType::Data(dtype), dims)
}
