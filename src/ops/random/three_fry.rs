//! Threefry2x32-20, and XLA's uniform and normal distributions based on it.
//!
//! The two words of a block are adjacent along the first even dimension of the result (or the largest one, rounded up, if none
//! is even).
use super::{Draw, FLOATS, Generator, box_muller, join, split, wrong_type};
use crate::diag::Result;
use crate::hlo::symbolic::{Builder, InstId};
use crate::ops::LowerCtx;
use crate::scalar::ScalarOp;
use crate::symbolic::Dim;
use crate::tensor::DType;

const ROTATIONS: [[u32; 4]; 2] = [[13, 15, 26, 6], [17, 29, 16, 24]];
const PARITY: u32 = 0x1BD1_1BDA;

fn rotated(b: &mut Builder, x: InstId, by: u32) -> InstId {
    let (left, right) = (b.full_like(x, f64::from(by)), b.full_like(x, f64::from(32 - by)));
    let high = b.elementwise(ScalarOp::ShiftLeft, &[x, left]);
    let low = b.elementwise(ScalarOp::ShiftRightLogical, &[x, right]);
    b.elementwise(ScalarOp::Or, &[high, low])
}

/// Two vectors of words; element `i` of each is made with the counter raised by `i`.
fn blocks(b: &mut Builder, generator: &Generator, count: Dim) -> [InstId; 2] {
    let dims = [count];
    let i = b.iota(DType::U64, &dims, 0);
    let counter = b.broadcast(generator.counter[0], &dims, &[]);
    let counter = b.add(counter, i);
    let mut x = split(b, counter);
    let key = b.broadcast(generator.key, &dims, &[]);
    let key = split(b, key);
    let parity = b.full_like(key[0], f64::from(PARITY));
    let mixed = b.elementwise(ScalarOp::Xor, &[key[0], key[1]]);
    let key = [key[0], key[1], b.elementwise(ScalarOp::Xor, &[mixed, parity])];
    x = [b.add(x[0], key[0]), b.add(x[1], key[1])];
    for group in 0..5 {
        for by in ROTATIONS[group % 2] {
            let sum = b.add(x[0], x[1]);
            let turned = rotated(b, x[1], by);
            x = [sum, b.elementwise(ScalarOp::Xor, &[turned, sum])];
        }
        let number = b.full_like(x[1], (group + 1) as f64);
        let second = b.add(x[1], key[(group + 2) % 3]);
        x = [b.add(x[0], key[(group + 1) % 3]), b.add(second, number)];
    }
    x
}

/// Axis along which the two words of a block are adjacent, and the sizes with that axis rounded up to even.
fn pair_axis(dims: &[Dim]) -> (usize, Vec<Dim>) {
    if dims.is_empty() {
        return (0, vec![Dim::from(2)]);
    }
    let even = dims.iter().position(|&d| d % 2 == 0);
    let largest = (0..dims.len()).rev().max_by_key(|&a| dims[a]).unwrap_or(0);
    let axis = even.unwrap_or(largest);
    let mut rounded = dims.to_vec();
    rounded[axis] = rounded[axis].div_ceil(2) * 2;
    (axis, rounded)
}

/// Interleaves the two words of each block along their axis; the result is flat.
fn paired(b: &mut Builder, parts: [InstId; 2], dims: &[Dim]) -> InstId {
    let one = [Dim::from(1)];
    let dims = if dims.is_empty() { &one[..] } else { dims };
    let (axis, rounded) = pair_axis(dims);
    let mut half = rounded.clone();
    half[axis] /= 2;
    half.insert(axis + 1, Dim::from(1));
    let parts = parts.map(|p| b.reshape(p, &half));
    let joined = b.concatenate(&parts, axis + 1);
    let whole = b.reshape(joined, &rounded);
    let cut = b.slice_axis(whole, axis, Dim::from(0), dims[axis]);
    b.reshape(cut, &[dims.iter().product()])
}

/// Number of two-word blocks for a result of these sizes.
fn pair_count(dims: &[Dim]) -> Dim {
    let one = [Dim::from(1)];
    let dims = if dims.is_empty() { &one[..] } else { dims };
    pair_axis(dims).1.iter().product::<Dim>() / 2
}

/// Random words for a result of these sizes, flat: 64 bits each if `wide`, else 32.
pub fn random_words(b: &mut Builder, generator: &Generator, wide: bool, dims: &[Dim]) -> InstId {
    if wide {
        let x = blocks(b, generator, dims.iter().product());
        return join(b, x[0], x[1]);
    }
    let x = blocks(b, generator, pair_count(dims));
    paired(b, x, dims)
}

/// Words as floats of `dtype` in [0, 1), as XLA makes them: from the high bits, or from the low ones for the narrow f16.
pub fn words_to_unit_floats(b: &mut Builder, words: InstId, dtype: DType) -> InstId {
    let (mantissa, digits) = match dtype {
        DType::F16 => {
            let mask = b.full_like(words, 1023.0);
            (b.elementwise(ScalarOp::And, &[words, mask]), 10)
        }
        _ => {
            let digits = if dtype == DType::F64 { 52 } else { 23 };
            let shift = b.full_like(words, f64::from(b.dtype(words).bits() - digits));
            (b.elementwise(ScalarOp::ShiftRightLogical, &[words, shift]), digits)
        }
    };
    let fraction = b.convert(mantissa, dtype);
    let scale = b.full_like(fraction, 2f64.powi(-(digits as i32)));
    b.mul(fraction, scale)
}

/// Type in which numbers of `dtype` are computed.
fn work(cx: &LowerCtx, dtype: DType) -> Result<DType> {
    match dtype {
        DType::F16 | DType::F32 | DType::F64 => Ok(dtype),
        DType::BF16 => Ok(DType::F32),
        other => Err(wrong_type(cx, other, FLOATS)),
    }
}

/// Converts numbers to `dtype`; bf16 is truncated, so that no number is rounded up to 1.
pub fn convert_result(b: &mut Builder, x: InstId, dtype: DType) -> InstId {
    if dtype != DType::BF16 {
        return b.convert(x, dtype);
    }
    let bits = b.unary(ScalarOp::BitcastConvert(DType::U32), x);
    let mask = b.full_like(bits, f64::from(0xffff_0000u32));
    let kept = b.elementwise(ScalarOp::And, &[bits, mask]);
    let kept = b.unary(ScalarOp::BitcastConvert(DType::F32), kept);
    b.convert(kept, dtype)
}

/// Uniform numbers in [0, 1), flat.
pub fn draw_uniform(cx: &mut LowerCtx, generator: &Generator, draw: &Draw) -> Result<InstId> {
    let work = work(cx, draw.dtype)?;
    let words = random_words(cx.b, generator, work == DType::F64, &draw.dims);
    let y = words_to_unit_floats(cx.b, words, work);
    Ok(convert_result(cx.b, y, draw.dtype))
}

/// Standard normal numbers, flat: the Box-Muller transform of two uniform numbers, which are adjacent along a new dimension
/// behind that of pairs.
pub fn draw_normal(cx: &mut LowerCtx, generator: &Generator, draw: &Draw) -> Result<InstId> {
    let work = work(cx, draw.dtype)?;
    let (axis, mut pairs) = pair_axis(&draw.dims);
    pairs[axis] /= 2;
    pairs.insert(axis + 1, Dim::from(2));
    let b = &mut *cx.b;
    let words = random_words(b, generator, work == DType::F64, &pairs);
    let all = words_to_unit_floats(b, words, work);
    let all = b.reshape(all, &pairs);
    let (first, second) = (
        b.slice_axis(all, axis + 1, Dim::from(0), Dim::from(1)),
        b.slice_axis(all, axis + 1, Dim::from(1), Dim::from(2)),
    );
    let count = pairs.iter().product::<Dim>() / 2;
    let [first, second] = [first, second].map(|x| b.reshape(x, &[count]));
    let pair = box_muller(b, first, second);
    let y = paired(b, pair, &draw.dims);
    Ok(convert_result(b, y, draw.dtype))
}
