//! Poisson random numbers, with the same draws as TensorFlow's CPU kernel.
//!
//! Sources: for rates below 10, Knuth's product of uniform numbers ("Seminumerical algorithms"); from 10 on, Hormann, "The
//! transformed rejection method for generating Poisson random variables" (1993). An iteration takes one block, two uniform
//! numbers: two factors of the product, or one rejection attempt.
use super::streams::{self, StreamPositions};
use super::{Generator, from_seed, sizes};
use crate::diag::Result;
use crate::hlo::symbolic::{Builder, Dim, InstId};
use crate::ops::math::expr::{ArrayExpr, build_formula, build_formulas, iterate_elementwise};
use crate::ops::math::gamma::lgamma;
use crate::ops::op_lowering::op;
use crate::ops::shape::shape_from_input_value;
use crate::ops::{LowerCtx, OpLowering, Value};

/// Rate from which on rejection is used.
const LARGE: f64 = 10.0;

/// Definitions of the ops of this file.
#[rustfmt::skip]
pub const ROWS: &[OpLowering] = &[
    op("StatelessRandomPoisson", "shape seed lam -> output", |cx| { let seed = cx.arg(1)?; let g = from_seed(cx, seed)?; let (dims, _) = sizes(cx, 0)?; draw_poisson(cx, &g, &dims, 2) }).shape(shape_from_input_value).constant_inputs(&[0]).dtypes("f16, f32, f64, s32, s64"),
];

/// Draws a result of sizes `dims`; input `rate` has the rates.
pub(super) fn draw_poisson(cx: &mut LowerCtx, generator: &Generator, dims: &[Dim], rate: usize) -> Result<Vec<Value>> {
    let dtype = cx.attr_dtype("dtype")?;
    let highest = streams::largest_drawable(dtype)?;
    streams::draw_per_parameters(cx, generator, dtype, dims, rate, |b, start, rate| {
        drawn(b, start, rate, highest, dtype.is_float())
    })
}

/// Draws one number from each stream, with these rates, f64, none above `highest`.
///
/// The result is NaN for a NaN rate, and `highest` for a rate so large that no draw is below; TensorFlow's kernel does not
/// terminate for either.
fn drawn(
    b: &mut Builder,
    [low, high, key]: StreamPositions<InstId>,
    rate: InstId,
    highest: f64,
    float: bool,
) -> Result<InstId> {
    let deviations = 16.0;
    let going = build_formula(b, [rate], |[rate]| (rate - deviations * rate.max(0.0).sqrt()).le(highest));
    let edge = build_formula(b, [rate], |[rate]| (-rate).exp().select_where(rate.lt(LARGE), rate.ln()));
    let (one, zero) = (b.full_like(rate, 1.0), b.full_like(rate, 0.0));
    let state = [low, high, key, rate, edge, one, zero];
    let end = iterate_elementwise(b, going, state, f64::from(i32::MAX), |state, _| round(state, highest));
    let y = build_formulas(b, &[going, rate, end[6]], |x| {
        let (rate, infinite) = (x[1], x[1].equals(f64::INFINITY));
        let unbounded = if float { rate } else { rate.constant(0.0) };
        let without = unbounded.select_where(infinite, rate.constant(highest)).select_where(rate.is_nan().not(), rate);
        Ok(vec![x[2].select_where(x[0], without)])
    })?;
    Ok(y[0])
}

/// Loop body: processes one block of every element. The state is the stream, the rate, e^-rate or ln(rate), the product so far
/// for rates below 10, and the number so far.
fn round<'s, 'b>(
    [low, high, key, rate, edge, product, count]: [ArrayExpr<'s, 'b>; 7],
    highest: f64,
) -> (ArrayExpr<'s, 'b>, [ArrayExpr<'s, 'b>; 7]) {
    let stream = [low, high, key];
    let [second, first] = streams::uniform_doubles(stream);
    let product = product * first;
    let after = product * second;
    let (one, two) = (product.le(edge), after.le(edge));
    let counted = count.select_where(one, (count + 1.0).select_where(two, count + 2.0));
    let (taken, k) = attempt([first, second], rate, edge, highest);
    let small = rate.lt(LARGE);
    let [low, high, key] = streams::advance(stream, low.constant(1.0));
    let ended = small.and(one.or(two)).or(small.not().and(taken));
    (ended.not(), [low, high, key, rate, edge, after, counted.select_where(small, k)])
}

/// Rejection attempt: whether it is accepted, and its number.
fn attempt<'s, 'b>(
    [u, v]: [ArrayExpr<'s, 'b>; 2],
    rate: ArrayExpr<'s, 'b>,
    log_rate: ArrayExpr<'s, 'b>,
    highest: f64,
) -> (ArrayExpr<'s, 'b>, ArrayExpr<'s, 'b>) {
    let u = u - 0.5;
    let b = rate.sqrt() * 2.53 + 0.931;
    let a = b * 0.02483 + -0.059;
    let inverse_alpha = 1.1328 / (b - 3.4) + 1.1239;
    let shifted = 0.5 - u.abs();
    let k = ((a * 2.0 / shifted + b) * u + rate + 0.43).floor();
    let boxed = shifted.ge(0.07).and(v.le(0.9277 - 3.6224 / (b - 2.0)));
    let outside = k.lt(0.0).or(shifted.lt(0.013).and(v.gt(shifted)));
    let s = (v * inverse_alpha / (a / (shifted * shifted) + b)).ln();
    let t = k * log_rate - rate - lgamma(k + 1.0);
    let taken = boxed.or(outside.not().and(s.le(t)));
    (taken.and(k.gt(highest).not()), k)
}
