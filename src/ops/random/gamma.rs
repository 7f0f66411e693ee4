//! Gamma-distributed random numbers, with the same draws as TensorFlow's CPU kernel.
//!
//! Source: Marsaglia and Tsang, "A simple method for generating gamma variables" (2000). A cubed normal number is accepted or
//! rejected by a uniform one. Normal and uniform numbers come from one stream, two per block; a new block of a kind is drawn
//! when the last number of that kind is used up. For shapes below 1, a number of shape + 1 is multiplied by u^(1/shape).
use super::streams::{self, StreamPositions};
use super::{Generator, box_muller, from_key, from_seed, sizes};
use crate::diag::Result;
use crate::hlo::symbolic::{Builder, Dim, InstId};
use crate::ops::math::expr::{ArrayExpr, build_formula, build_formulas, iterate_elementwise};
use crate::ops::op_lowering::op;
use crate::ops::shape::shape_from_input_value;
use crate::ops::{LowerCtx, OpLowering, Value};
use crate::tensor::DType;

/// Definitions of the ops of this file.
#[rustfmt::skip]
pub const ROWS: &[OpLowering] = &[
    op("StatelessRandomGammaV2", "shape seed alpha -> output", |cx| { let seed = cx.arg(1)?; let g = from_seed(cx, seed)?; let (dims, _) = sizes(cx, 0)?; draw_gamma(cx, &g, &dims, 2) }).shape(shape_from_input_value).constant_inputs(&[0]).dtypes("f16, f32, f64"),
    op("StatelessRandomGammaV3", "shape key counter alg alpha -> output", |cx| { let g = from_key(cx)?; let (dims, _) = sizes(cx, 0)?; draw_gamma(cx, &g, &dims, 4) }).shape(shape_from_input_value).constant_inputs(&[0, 3]).dtypes("f16, f32, f64"),
];

/// Draws a result of sizes `dims`; input `alpha` has the shape parameters.
pub(super) fn draw_gamma(cx: &mut LowerCtx, generator: &Generator, dims: &[Dim], alpha: usize) -> Result<Vec<Value>> {
    streams::require_philox(cx, generator)?;
    let dtype = cx.dtype(alpha)?;
    if !matches!(dtype, DType::F16 | DType::F32 | DType::F64) {
        return Err(
            cx.unsupported_case(format!("gamma-distributed numbers of {dtype}; f16, f32 and f64 are supported"))
        );
    }
    streams::draw_per_parameters(cx, generator, dtype, dims, alpha, drawn)
}

/// Draws one number from each stream, with shape parameters `alpha`, f64.
fn drawn(b: &mut Builder, start: StreamPositions<InstId>, alpha: InstId) -> Result<InstId> {
    let going = build_formula(b, [alpha], |[alpha]| alpha.not_equals(1.0));
    let d =
        build_formula(b, [alpha], |[alpha]| alpha + alpha.constant(2.0 / 3.0).select_where(alpha.lt(1.0), -1.0 / 3.0));
    let dims = b.dims(d).to_vec();
    let (zero, none) = (b.full_like(d, 0.0), b.full(DType::Pred, &dims, 0.0));
    let [low, high, key] = start;
    let state = [low, high, key, d, zero, none, zero, none, zero];
    let [low, high, _, _, _, _, uniform, kept, y] = iterate_elementwise(b, going, state, f64::from(i32::MAX), attempt);
    let arrays = [start[0], start[1], key, low, high, uniform, kept, y, alpha];
    let parts = build_formulas(b, &arrays, |x| {
        let (y, alpha) = (x[7], x[8]);
        let [_, first] = streams::uniform_doubles([x[0], x[1], x[2]]);
        let exponential = -(-first).ln_1p();
        let [_, fresh] = streams::uniform_doubles([x[3], x[4], x[2]]);
        let u = x[5].select_where(x[6], fresh);
        let lowered = y * u.pow(1.0 / alpha);
        Ok(vec![exponential.select_where(alpha.equals(1.0), lowered.select_where(alpha.lt(1.0), y))])
    })?;
    Ok(parts[0])
}

/// Loop body: one attempt for every element. The state is the stream, `alpha - 1/3`, the remaining normal and uniform number of
/// a block with flags of their presence, and the result.
fn attempt<'s, 'b>(
    [low, high, key, d, normal, has_normal, uniform, has_uniform, _]: [ArrayExpr<'s, 'b>; 9],
    _round: ArrayExpr<'s, 'b>,
) -> (ArrayExpr<'s, 'b>, [ArrayExpr<'s, 'b>; 9]) {
    let stream = [low, high, key];
    let [first, second] = streams::uniform_doubles(stream);
    let [rest, fresh] = first.build_all(|b| box_muller(b, first.id, second.id));
    let x = normal.select_where(has_normal, fresh);
    let stream = streams::advance(stream, has_normal.not());
    let v = (1.0 / 3.0 / d.sqrt()) * x + 1.0;
    let inside = v.le(0.0).not();
    let v = v * v * v;
    let [left, fresh] = streams::uniform_doubles(stream);
    let u = uniform.select_where(has_uniform, fresh);
    let drew = inside.and(has_uniform.not());
    let square = x * x;
    let squeezed = u.lt(1.0 - 0.0331 * square * square);
    let taken = squeezed.or(u.ln().lt(0.5 * x * x + d * (1.0 - v + v.ln())));
    let taken = inside.and(taken);
    let [low, high, key] = streams::advance(stream, drew);
    let has_uniform = has_uniform.not_equals(inside);
    (taken.not(), [low, high, key, d, rest, has_normal.not(), left.select_where(drew, uniform), has_uniform, d * v])
}
