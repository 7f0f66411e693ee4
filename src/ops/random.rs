//! Stateless random numbers by Philox4x32-10.
//!
//! Source: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (2011). As in TensorFlow's CPU kernels each block of
//! four words makes consecutive elements, and floats are made of the low bits of a word.
mod binomial;
mod categories;
mod cuts;
mod gamma;
mod parameterized_normal;
mod poisson;
mod shuffle;
mod stateful;
mod streams;
mod three_fry;
mod truncated_normal;
mod words;

pub(in crate::ops) use cuts::{AxisWindows, fixed_seeds, window_boundaries};
pub(in crate::ops) use words::StreamState;

use super::op_lowering::op;
use super::shape::shape_from_input_value;
use super::{LowerCtx, OpLowering, Value};
use crate::diag::{Code, Error, Result};
use crate::dims;
use crate::hlo::symbolic::SliceDim;
use crate::hlo::symbolic::{Builder, Dim, InstId};
use crate::ops::checks;
use crate::scalar::ScalarOp;
use crate::symbolic::product;
use crate::tensor::{DType, Tensor};

const V1: &str = "shape seed -> output";
const V2: &str = "shape key counter alg -> output";
const FLOATS: &str = "f16, bf16, f32, f64";
const INTS: &str = "s32, s64, u32, u64";

/// Definitions of the ops of this family.
pub const ROWS: &[&[OpLowering]] =
    &[STATELESS, gamma::ROWS, parameterized_normal::ROWS, poisson::ROWS, binomial::ROWS, shuffle::ROWS, stateful::ROWS];

#[rustfmt::skip]
const STATELESS: &[OpLowering] = &[
    op("StatelessRandomUniform",          V1, |cx| draw(cx, Source::Seed, uniform)).shape(shape_from_input_value).constant_inputs(&[0]).dtypes(FLOATS),
    op("StatelessRandomNormal",           V1, |cx| draw(cx, Source::Seed, normal)).shape(shape_from_input_value).constant_inputs(&[0]).dtypes(FLOATS),
    op("StatelessTruncatedNormal",        V1, |cx| draw(cx, Source::Seed, truncated_normal::draw_truncated_normal)).shape(shape_from_input_value).constant_inputs(&[0]).dtypes(FLOATS),
    op("StatelessTruncatedNormalV2",      V2, |cx| draw(cx, Source::KeyCounter, truncated_normal::draw_truncated_normal)).shape(shape_from_input_value).constant_inputs(&[0, 3]).dtypes(FLOATS),
    op("StatelessRandomUniformFullInt",   V1, |cx| draw(cx, Source::Seed, full_int)).shape(shape_from_input_value).constant_inputs(&[0]).dtypes(INTS),
    op("StatelessRandomUniformInt",       "shape seed minval maxval -> output", |cx| draw(cx, Source::Seed, ranged)).with_check(checks::check_random_range::<2>).shape(shape_from_input_value).constant_inputs(&[0]).dtypes(INTS),
    op("StatelessRandomUniformV2",        V2, |cx| draw(cx, Source::KeyCounter, uniform)).shape(shape_from_input_value).constant_inputs(&[0, 3]).dtypes(FLOATS),
    op("StatelessRandomNormalV2",         V2, |cx| draw(cx, Source::KeyCounter, normal)).shape(shape_from_input_value).constant_inputs(&[0, 3]).dtypes(FLOATS),
    op("StatelessRandomUniformFullIntV2", V2, |cx| draw(cx, Source::KeyCounter, full_int)).shape(shape_from_input_value).constant_inputs(&[0, 3]).dtypes(INTS),
    op("StatelessRandomUniformIntV2",     "shape key counter alg minval maxval -> output", |cx| draw(cx, Source::KeyCounter, ranged)).with_check(checks::check_random_range::<4>).shape(shape_from_input_value).constant_inputs(&[0, 3]).dtypes(INTS),
    op("StatelessMultinomial",            "logits num_samples seed -> output", categories::stateless_multinomial).shape(categories::categorical_shape).constant_inputs(&[1]).dtypes("f16, bf16, f32, f64"),
    op("StatelessRandomGetKeyCounter",    "seed -> key counter", |cx| key_counter(cx, false)),
    op("StatelessRandomGetKeyCounterAlg", "seed -> key counter alg", |cx| key_counter(cx, true)),
    op("StatelessRandomGetAlg",           "-> alg", |cx| { let alg = cx.b.scalar(DType::S32, 1.0); cx.one_output(alg) }),
];

/// Form in which an op takes its seed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Source {
    /// Two integers, which are scrambled into key and counter.
    Seed,
    /// Inputs for the key `u64[1]`, the counter `u64[2]` and the algorithm.
    KeyCounter,
}

/// State of a random generator: key and counter as u64 scalars.
struct Generator {
    key: InstId,
    counter: [InstId; 2],
    algorithm: Algorithm,
}

/// Random number generators.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Algorithm {
    /// Philox4x32-10, with the distributions of TensorFlow's CPU kernels.
    Philox,
    /// Threefry2x32-20, which only XLA has; distributions use the high bits of a word, as XLA's do.
    ThreeFry,
}

/// Description of the random numbers that an op draws.
struct Draw {
    dtype: DType,
    /// Sizes of the result.
    dims: Vec<Dim>,
    /// Number of elements of the result.
    count: Dim,
    /// Index of input `minval`, which `maxval` follows.
    bounds: usize,
}

type Distribution = fn(&mut LowerCtx, &Generator, &Draw) -> Result<InstId>;

fn draw(cx: &mut LowerCtx, source: Source, distribution: Distribution) -> Result<Vec<Value>> {
    let (dims, count) = sizes(cx, 0)?;
    let (philox, bounds) = match source {
        Source::Seed => {
            let seed = cx.arg(1)?;
            (from_seed(cx, seed)?, 2)
        }
        Source::KeyCounter => (from_key(cx)?, 4),
    };
    let integers = cx.node.tf_type("dtype").is_none();
    let dtype = if integers && bounds + 2 == cx.args.len() { cx.dtype(bounds)? } else { cx.attr_dtype("dtype")? };
    drawn(cx, &philox, &Draw { dtype, dims, count, bounds }, distribution)
}

/// Sizes that input `i` lists, and their product.
fn sizes(cx: &LowerCtx, i: usize) -> Result<(Vec<Dim>, Dim)> {
    let size = |&v: &Dim| Dim::size(v).map_err(|_| Error::user(Code::TooLarge, format!("a size of {v}")));
    let dims = cx.constant_dims(i)?.iter().map(size).collect::<Result<Vec<Dim>>>()?;
    let count = counted(&dims)?;
    Ok((dims, count))
}

/// Number of elements of an array of random numbers, at most 2^31.
fn counted(dims: &[Dim]) -> Result<Dim> {
    let count = product(dims).filter(|&n| n <= 1i64 << 31);
    count.ok_or_else(|| Error::user(Code::TooLarge, format!("{dims:?} random numbers")))
}

fn drawn(cx: &mut LowerCtx, generator: &Generator, draw: &Draw, distribution: Distribution) -> Result<Vec<Value>> {
    let y = distribution(cx, generator, draw)?;
    let y = cx.b.reshape(y, &draw.dims);
    cx.one_output(y)
}

/// Element `i` of a vector, as a scalar.
fn element(b: &mut Builder, x: InstId, i: Dim) -> InstId {
    let one = b.slice(x, &[SliceDim { start: i, limit: i + 1, stride: Dim::from(1) }]);
    b.reshape(one, &[])
}

/// Key and counter from a vector of two seeds: one Philox block with a fixed key, whose counter is the seeds as 64-bit numbers.
fn from_seed(cx: &mut LowerCtx, seed: InstId) -> Result<Generator> {
    if cx.b.dims(seed) != [2] || !cx.b.dtype(seed).is_integer() {
        return Err(cx.shape_mismatch(format!("the seed must be two integers, not {}", cx.b.shape(seed))));
    }
    let b = &mut *cx.b;
    let seed = if b.dtype(seed) == DType::U64 {
        seed
    } else {
        let seed = b.convert(seed, DType::S64);
        b.unary(ScalarOp::BitcastConvert(DType::U64), seed)
    };
    let parts = [element(b, seed, Dim::from(0)), element(b, seed, Dim::from(1))];
    let mut words = Vec::with_capacity(4);
    for part in parts {
        words.extend(split(b, part));
    }
    let key = [0x3ec8_f720, 0x0246_1e29].map(|v: u32| b.constant(Tensor::scalar(v)));
    let block = rounds(b, [words[0], words[1], words[2], words[3]], key);
    let key = join(b, block[0], block[1]);
    let high = join(b, block[2], block[3]);
    Ok(Generator { key, counter: [b.scalar(DType::U64, 0.0), high], algorithm: Algorithm::Philox })
}

fn from_key(cx: &mut LowerCtx) -> Result<Generator> {
    let algorithm = match cx.constant_int(3)? {
        1 | 3 => Algorithm::Philox,
        2 => Algorithm::ThreeFry,
        other => {
            return Err(cx.unsupported_case(format!(
                "random algorithm {other} is not supported; 1 (Philox) and 2 (ThreeFry) are"
            )));
        }
    };
    let (key, counter) = (cx.arg(1)?, cx.arg(2)?);
    if cx.b.dims(key) != [1] || !matches!(cx.b.dims(counter), [n] if *n >= 1) {
        return Err(cx.shape_mismatch(format!("key {} and counter {}", cx.b.shape(key), cx.b.shape(counter))));
    }
    let b = &mut *cx.b;
    let low = element(b, counter, Dim::from(0));
    let high = match (algorithm, b.dims(counter)[0]) {
        (Algorithm::Philox, n) if n >= 2 => element(b, counter, Dim::from(1)),
        (Algorithm::ThreeFry, _) => b.scalar(DType::U64, 0.0),
        (Algorithm::Philox, n) => return Err(cx.shape_mismatch(format!("a counter of {n} elements; Philox needs 2"))),
    };
    Ok(Generator { key: b.reshape(key, &[]), counter: [low, high], algorithm })
}

fn key_counter(cx: &mut LowerCtx, with_algorithm: bool) -> Result<Vec<Value>> {
    let seed = cx.arg(0)?;
    let philox = from_seed(cx, seed)?;
    let key = cx.b.reshape(philox.key, &dims![1]);
    let parts = philox.counter.map(|c| cx.b.reshape(c, &dims![1]));
    let counter = cx.b.concatenate(&parts, 0);
    let mut out = vec![Value::Array(key), Value::Array(counter)];
    if with_algorithm {
        out.push(Value::Array(cx.b.scalar(DType::S32, 1.0)));
    }
    Ok(out)
}

/// Low and high 32-bit halves of 64-bit numbers.
fn split(b: &mut Builder, x: InstId) -> [InstId; 2] {
    let half = b.full_like(x, 32.0);
    let high = b.elementwise(ScalarOp::ShiftRightLogical, &[x, half]);
    [x, high].map(|v| {
        let mask = b.full_like(v, f64::from(u32::MAX));
        let low = b.elementwise(ScalarOp::And, &[v, mask]);
        b.convert(low, DType::U32)
    })
}

/// 64-bit numbers from their low and high 32-bit halves.
fn join(b: &mut Builder, low: InstId, high: InstId) -> InstId {
    let (low, high) = (b.convert(low, DType::U64), b.convert(high, DType::U64));
    let half = b.full_like(high, 32.0);
    let high = b.elementwise(ScalarOp::ShiftLeft, &[high, half]);
    b.elementwise(ScalarOp::Or, &[low, high])
}

/// Ten Philox rounds on four words; the key is two words. All arrays have one shape.
fn rounds(b: &mut Builder, mut c: [InstId; 4], mut key: [InstId; 2]) -> [InstId; 4] {
    let word = |b: &mut Builder, like: InstId, v: u32| b.full_like(like, f64::from(v));
    for round in 0..10 {
        if round > 0 {
            let raise = [word(b, key[0], 0x9E37_79B9), word(b, key[1], 0xBB67_AE85)];
            key = [b.add(key[0], raise[0]), b.add(key[1], raise[1])];
        }
        let mut product = |x: InstId, by: u32| {
            let x = b.convert(x, DType::U64);
            let by = b.full_like(x, f64::from(by));
            let wide = b.mul(x, by);
            split(b, wide)
        };
        let [low_0, high_0] = product(c[0], 0xD251_1F53);
        let [low_2, high_2] = product(c[2], 0xCD9E_8D57);
        let mut mix = |x: InstId, y: InstId, k: InstId| {
            let x = b.elementwise(ScalarOp::Xor, &[x, y]);
            b.elementwise(ScalarOp::Xor, &[x, k])
        };
        c = [mix(high_2, c[1], key[0]), low_2, mix(high_0, c[3], key[1]), low_0];
    }
    c
}

/// Four vectors of words: word `j` of block `i` is element `i` of vector `j`. Block `i` has the counter raised by `i`.
fn blocks(b: &mut Builder, philox: &Generator, count: Dim) -> [InstId; 4] {
    let dims = [count];
    let i = b.iota(DType::U64, &dims, 0);
    let [low, high] = philox.counter.map(|c| b.broadcast(c, &dims, &[]));
    let raised = b.add(low, i);
    let wrapped = b.compare(crate::scalar::Direction::Lt, raised, low);
    let carry = b.convert(wrapped, DType::U64);
    let high = b.add(high, carry);
    let ([c0, c1], [c2, c3]) = (split(b, raised), split(b, high));
    let key = b.broadcast(philox.key, &dims, &[]);
    let key = split(b, key);
    rounds(b, [c0, c1, c2, c3], key)
}

/// Interleaves vectors of equal length and truncates the result to `count` elements.
fn interleave(b: &mut Builder, parts: &[InstId], count: Dim) -> InstId {
    let n = b.dims(parts[0])[0];
    let columns: Vec<InstId> = parts.iter().map(|&p| b.reshape(p, &dims![n, 1])).collect();
    let matrix = b.concatenate(&columns, 1);
    let flat = b.reshape(matrix, &[n * Dim::from(parts.len())]);
    b.slice(flat, &[SliceDim { start: Dim::from(0), limit: count, stride: Dim::from(1) }])
}

/// Random words for a draw: 64 bits each if `wide`, else 32.
fn bits(b: &mut Builder, philox: &Generator, wide: bool, draw: &Draw) -> InstId {
    let count = draw.count;
    if philox.algorithm == Algorithm::ThreeFry {
        return three_fry::random_words(b, philox, wide, &draw.dims);
    }
    if !wide {
        let words = blocks(b, philox, count.div_ceil(4));
        return interleave(b, &words, count);
    }
    let words = blocks(b, philox, count.div_ceil(2));
    let pairs = [join(b, words[0], words[1]), join(b, words[2], words[3])];
    interleave(b, &pairs, count)
}

/// Uniform f64 in [0, 1) from two words: the low 20 bits of the first are the high bits of the mantissa.
fn unit_f64(b: &mut Builder, first: InstId, second: InstId) -> InstId {
    let mask = b.full_like(first, f64::from(0xF_FFFFu32));
    let high = b.elementwise(ScalarOp::And, &[first, mask]);
    let mantissa = join(b, second, high);
    let fraction = b.convert(mantissa, DType::F64);
    let scale = b.full_like(fraction, 2f64.powi(-52));
    b.mul(fraction, scale)
}

/// Uniform f32 in [0, 1) from the low `digits` bits of a word.
fn unit_f32(b: &mut Builder, word: InstId, digits: i32) -> InstId {
    let mask = b.full_like(word, 2f64.powi(digits) - 1.0);
    let mantissa = b.elementwise(ScalarOp::And, &[word, mask]);
    let fraction = b.convert(mantissa, DType::F32);
    let scale = b.full_like(fraction, 2f64.powi(-digits));
    b.mul(fraction, scale)
}

fn wrong_type(cx: &LowerCtx, dtype: DType, supported: &str) -> Error {
    cx.unsupported_case(format!("random numbers of {dtype}; {supported} are supported"))
}

fn uniform(cx: &mut LowerCtx, philox: &Generator, draw: &Draw) -> Result<InstId> {
    if philox.algorithm == Algorithm::ThreeFry {
        return three_fry::draw_uniform(cx, philox, draw);
    }
    let digits = match draw.dtype {
        DType::F64 => {
            let words = blocks(cx.b, philox, draw.count.div_ceil(2));
            let parts = [unit_f64(cx.b, words[0], words[1]), unit_f64(cx.b, words[2], words[3])];
            return Ok(interleave(cx.b, &parts, draw.count));
        }
        DType::F32 => 23,
        DType::F16 => 10,
        DType::BF16 => 7,
        other => return Err(wrong_type(cx, other, FLOATS)),
    };
    let words = bits(cx.b, philox, false, draw);
    let y = unit_f32(cx.b, words, digits);
    Ok(cx.b.convert(y, draw.dtype))
}

/// Two standard normal numbers from two uniform words, by the Box-Muller transform.
fn box_muller(b: &mut Builder, first: InstId, second: InstId) -> [InstId; 2] {
    let (least, turn, minus_two) =
        (b.full_like(first, 1e-7), b.full_like(first, 2.0 * std::f64::consts::PI), b.full_like(first, -2.0));
    let first = b.max(first, least);
    let angle = b.mul(second, turn);
    let log = b.unary(ScalarOp::Log, first);
    let square = b.mul(log, minus_two);
    let radius = b.unary(ScalarOp::Sqrt, square);
    let (sin, cos) = (b.unary(ScalarOp::Sin, angle), b.unary(ScalarOp::Cos, angle));
    [b.mul(sin, radius), b.mul(cos, radius)]
}

fn normal(cx: &mut LowerCtx, philox: &Generator, draw: &Draw) -> Result<InstId> {
    if philox.algorithm == Algorithm::ThreeFry {
        return three_fry::draw_normal(cx, philox, draw);
    }
    let b = &mut *cx.b;
    match draw.dtype {
        DType::F64 => {
            let w = blocks(b, philox, draw.count.div_ceil(2));
            let (first, second) = (unit_f64(b, w[0], w[1]), unit_f64(b, w[2], w[3]));
            let pair = box_muller(b, first, second);
            Ok(interleave(b, &pair, draw.count))
        }
        DType::F16 | DType::BF16 | DType::F32 => {
            let u = blocks(b, philox, draw.count.div_ceil(4)).map(|w| unit_f32(b, w, 23));
            let ([y0, y1], [y2, y3]) = (box_muller(b, u[0], u[1]), box_muller(b, u[2], u[3]));
            let y = interleave(b, &[y0, y1, y2, y3], draw.count);
            Ok(b.convert(y, draw.dtype))
        }
        other => Err(wrong_type(cx, other, FLOATS)),
    }
}

fn full_int(cx: &mut LowerCtx, philox: &Generator, draw: &Draw) -> Result<InstId> {
    let wide = match draw.dtype {
        DType::S64 | DType::U64 => true,
        DType::S32 | DType::U32 => false,
        other => return Err(wrong_type(cx, other, INTS)),
    };
    let y = bits(cx.b, philox, wide, draw);
    Ok(match draw.dtype.is_signed() {
        true => cx.b.unary(ScalarOp::BitcastConvert(draw.dtype), y),
        false => y,
    })
}

/// Integers in `minval..maxval`: `minval + bits % (maxval - minval)`.
fn ranged(cx: &mut LowerCtx, philox: &Generator, draw: &Draw) -> Result<InstId> {
    let wide = match draw.dtype {
        DType::S64 | DType::U64 => DType::U64,
        DType::S32 | DType::U32 => DType::U32,
        other => return Err(wrong_type(cx, other, INTS)),
    };
    let (low, high) = (cx.arg(draw.bounds)?, cx.arg(draw.bounds + 1)?);
    let b = &mut *cx.b;
    let [low, high] = [low, high].map(|x| {
        let x = b.reshape(x, &[]);
        if draw.dtype.is_signed() { b.unary(ScalarOp::BitcastConvert(wide), x) } else { x }
    });
    let range = b.sub(high, low);
    let words = bits(b, philox, wide == DType::U64, draw);
    let rest = b.binary(ScalarOp::Remainder, words, range);
    let y = b.add(rest, low);
    Ok(if draw.dtype.is_signed() { b.unary(ScalarOp::BitcastConvert(draw.dtype), y) } else { y })
}
