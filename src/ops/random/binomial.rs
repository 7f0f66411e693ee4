//! Binomial random numbers, with the same draws as TensorFlow's CPU kernel.
//!
//! Sources: for means below 10, Devroye, "Non-uniform random variate generation" (1986): geometric numbers are added until they
//! exceed the count. From 10 on, Hormann, "The generation of binomial random variates" (1993), without a logarithm that
//! TensorFlow omits. For a probability above 1/2 the failures are drawn. An iteration takes one block, two uniform numbers: two
//! geometric numbers, or one rejection attempt.
use super::streams::{self, BLOCKS};
use super::{Generator, from_seed, sizes};
use crate::diag::Result;
use crate::hlo::symbolic::{Builder, Dim, InstId};
use crate::ops::math::expr::{ArrayExpr, build_formula, build_formulas, iterate_elementwise};
use crate::ops::op_lowering::op;
use crate::ops::shape::shape_from_input_value;
use crate::ops::{LowerCtx, OpLowering, Value};
use crate::scalar::ScalarOp;
use crate::tensor::DType;

/// Mean from which on rejection is used.
const LARGE: f64 = 10.0;
/// Blocks that TensorFlow reserves for an element with a smaller mean.
const SMALL_BLOCKS: f64 = 42.0;
/// Remainder of Stirling's formula for ln k! at k = 0 to 9.
const TAILS: [f64; 10] = [
    0.081_061_466_795_327_2,
    0.041_340_695_955_409_2,
    0.027_677_925_684_998_3,
    0.020_790_672_103_765_09,
    0.016_644_691_189_821_1,
    0.013_876_128_823_070_7,
    0.011_896_709_945_891_7,
    0.010_411_265_261_972_0,
    0.009_255_462_182_712_73,
    0.008_330_563_433_362_87,
];

/// Definitions of the ops of this file.
#[rustfmt::skip]
pub const ROWS: &[OpLowering] = &[
    op("StatelessRandomBinomial", "shape seed counts probs -> output", |cx| { let seed = cx.arg(1)?; let g = from_seed(cx, seed)?; let (dims, _) = sizes(cx, 0)?; draw_binomial(cx, &g, &dims, 2) }).shape(shape_from_input_value).constant_inputs(&[0]).dtypes("f16, f32, f64, s32, s64"),
];

/// Parameters of the distributions, f64, and the choice of method.
struct BinomialInputs {
    count: InstId,
    /// Probability of the outcome that is drawn: at most 1/2, unless it is certain.
    rare: InstId,
    probability: InstId,
    large: InstId,
}

/// Draws a result of sizes `dims`, with counts in input `first` and probabilities in the next one.
pub(super) fn draw_binomial(
    cx: &mut LowerCtx,
    generator: &Generator,
    dims: &[Dim],
    first: usize,
) -> Result<Vec<Value>> {
    let dtype = cx.attr_dtype("dtype")?;
    streams::largest_drawable(dtype)?;
    let of = parameter_dims(cx, first)?;
    let sizes = streams::sample_dims(cx, dims, &of)?;
    if !cx.dtype(first)?.is_float() || cx.dtype(first)? != cx.dtype(first + 1)? {
        let told = format!("counts of {}; floats are supported", cx.dtype(first)?);
        return Err(cx.unsupported_case(told));
    }
    if crate::symbolic::has_zero(&sizes) {
        let none = cx.b.full(dtype, dims, 0.0);
        return cx.one_output(none);
    }
    let given = [cx.arg(first)?, cx.arg(first + 1)?].map(|x| cx.b.broadcast_to(x, &of));
    let asked = asked(cx.b, given, sizes)?;
    let y = drawn(cx.b, generator, &asked, sizes)?;
    let y = streams::convert_result(cx.b, y, dtype);
    let y = cx.b.reshape(y, dims);
    cx.one_output(y)
}

/// Broadcast sizes of the counts in input `first` and the probabilities in the next one.
pub(super) fn parameter_dims(cx: &LowerCtx, first: usize) -> Result<Vec<Dim>> {
    let of = Builder::broadcast_dims(&cx.dims(first)?, &cx.dims(first + 1)?);
    of.ok_or_else(|| cx.shape_mismatch("counts and probabilities that do not broadcast"))
}

/// Chooses outcome and method for each element; means are computed in the type of the inputs.
fn asked(b: &mut Builder, [count, probability]: [InstId; 2], sizes: [Dim; 2]) -> Result<BinomialInputs> {
    let parts = build_formulas(b, &[count, probability], |x| {
        let (count, p) = (x[0], x[1]);
        let rare = (1.0 - p).select_where(p.gt(0.5), p);
        Ok(vec![rare, (count * rare).ge(LARGE)])
    })?;
    let flat = b.reshape(parts[1], &[sizes[1]]);
    let large = b.broadcast(flat, &sizes, &[1]);
    let [count, rare, probability] = [count, parts[0], probability].map(|x| streams::repeat_parameters(b, x, sizes));
    Ok(BinomialInputs { count, rare, probability, large })
}

/// Draws one number from each stream.
///
/// The result is NaN for a NaN count, for which TensorFlow's kernel does not terminate.
fn drawn(b: &mut Builder, generator: &Generator, asked: &BinomialInputs, sizes: [Dim; 2]) -> Result<InstId> {
    let BinomialInputs { count, rare, probability, large } = *asked;
    let (many, few) = (b.full(DType::U64, &sizes, BLOCKS), b.full(DType::U64, &sizes, SMALL_BLOCKS));
    let blocks = b.select(large, many, few);
    let [low, high, key] = streams::initial_streams(b, generator, sizes, blocks);
    let going = build_formula(b, [count, probability], |[n, p]| n.gt(0.0).and(p.gt(0.0)).and(p.lt(1.0)));
    let edge = build_formula(b, [count, rare, large], |[n, p, large]| of_mode(n, p).select_where(large, (-p).ln_1p()));
    let zero = b.full_like(count, 0.0);
    let state = [low, high, key, count, rare, large, edge, zero, zero];
    let end = iterate_elementwise(b, going, state, f64::from(i32::MAX), |state, _| round(state));
    let y = build_formula(b, [count, probability, end[8]], |[n, p, y]| {
        let y = (n - y).select_where(p.gt(0.5), y);
        let y = n.select_where(p.ge(1.0), y).replace_where(p.is_nan().or(n.is_nan()), f64::NAN);
        y.replace_where(n.le(0.0).or(p.le(0.0)), 0.0)
    });
    Ok(y)
}

/// Loop body: processes one block of every element. The state is the stream, count, probability, method, precomputed terms, sum
/// of geometric numbers, and the number so far.
fn round<'s, 'b>(
    [low, high, key, count, p, large, edge, sum, number]: [ArrayExpr<'s, 'b>; 9],
) -> (ArrayExpr<'s, 'b>, [ArrayExpr<'s, 'b>; 9]) {
    let stream = [low, high, key];
    let [second, first] = streams::uniform_doubles(stream);
    let geometric = |u: ArrayExpr<'s, 'b>| (u.ln() / edge).apply_unary(ScalarOp::Ceil);
    let sum = sum + geometric(first);
    let after = sum + geometric(second);
    let (one, two) = (sum.gt(count), after.gt(count));
    let counted = number.select_where(one, (number + 1.0).select_where(two, number + 2.0));
    let (taken, k) = attempt([first, second], [count, p], edge);
    let [low, high, key] = streams::advance(stream, low.constant(1.0));
    let ended = large.and(taken).or(large.not().and(one.or(two)));
    (ended.not(), [low, high, key, count, p, large, edge, after, k.select_where(large, counted)])
}

/// Remainder of Stirling's formula for ln k!.
fn tail<'s, 'b>(k: ArrayExpr<'s, 'b>) -> ArrayExpr<'s, 'b> {
    let next = k + 1.0;
    let square = next * next;
    let mut y = (1.0 / 12.0 - (1.0 / 360.0 - 1.0 / 1260.0 / square) / square) / next;
    for (i, &value) in TAILS.iter().enumerate().rev() {
        let below = if i == 9 { k.le(9.0) } else { k.lt(i as f64 + 1.0) };
        y = y.replace_where(below, value);
    }
    y
}

/// Terms of the acceptance ratio's logarithm that depend on the mode alone.
fn of_mode<'s, 'b>(n: ArrayExpr<'s, 'b>, p: ArrayExpr<'s, 'b>) -> ArrayExpr<'s, 'b> {
    let r = p / (1.0 - p);
    let m = ((n + 1.0) * p).floor();
    (m + 0.5) * ((m + 1.0) / (r * (n - m + 1.0))).ln() + tail(m) + tail(n - m)
}

/// Rejection attempt: whether it is accepted, and its number.
fn attempt<'s, 'b>(
    [u, v]: [ArrayExpr<'s, 'b>; 2],
    [n, p]: [ArrayExpr<'s, 'b>; 2],
    of_mode: ArrayExpr<'s, 'b>,
) -> (ArrayExpr<'s, 'b>, ArrayExpr<'s, 'b>) {
    let deviation = (n * p * (1.0 - p)).sqrt();
    let b = deviation * 2.53 + 1.15;
    let a = b * 0.0248 + -0.0873 + p * 0.01;
    let r = p / (1.0 - p);
    let alpha = (5.1 / b + 2.83) * deviation;
    let m = ((n + 1.0) * p).floor();
    let u = u - 0.5;
    let shifted = 0.5 - u.abs();
    let k = ((a * 2.0 / shifted + b) * u + (n * p + 0.5)).floor();
    let boxed = shifted.ge(0.07).and(v.le(0.92 - 4.2 / b));
    let outside = k.lt(0.0).or(k.gt(n));
    let v = (v * alpha / (a / (shifted * shifted) + b)).ln();
    let bound =
        of_mode + (n + 1.0) * ((n - m + 1.0) / (n - k + 1.0)).ln() + (k + 0.5) * (r * (n - k + 1.0) / (k + 1.0)).ln()
            - tail(k)
            - tail(n - k);
    (boxed.or(outside.not().and(v.le(bound))), k)
}
