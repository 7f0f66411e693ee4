//! Softplus and mish of f32, each by one exponential.
use super::super::arith::{abs, add, div, fcmp, float_constant, fma, mul, neg, select};
use super::super::function::FunctionEmitter;
use super::super::value::Val;
use super::at_most;
use super::exp::exp_f32;
use super::log::log1p_reduced;

/// Value of e above which 1 + e is halved, so that it is at most √2.
const MOST_REST: f64 = std::f64::consts::SQRT_2 - 1.0;

/// Emits softplus of f32 as max(x, 0) + ln(1 + e) with e = e^-|x| ≤ 1; for large e, ln(1 + e) is ln2 + ln(1 + (e - 1)/2).
pub fn softplus_f32(f: &mut FunctionEmitter, x: &Val) -> Val {
    let (zero, half) = (float_constant(x, 0.0), float_constant(x, 0.5));
    let size = abs(f, x);
    let minus = neg(f, &size);
    let e = exp_f32(f, &minus);
    let halves = fcmp(f, "ogt", &e, &float_constant(x, MOST_REST));
    let near_one = fma(f, &e, &half, &float_constant(x, -0.5));
    let rest = select(f, &halves, &near_one, &e);
    let base = select(f, &halves, &float_constant(x, std::f64::consts::LN_2), &zero);
    let positive = fcmp(f, "ogt", x, &zero);
    let linear = select(f, &positive, x, &zero);
    let log = log1p_reduced(f, &rest, &base);
    add(f, &linear, &log)
}

/// Emits mish of f32, x·tanh(ln(1 + n)) with n = e^x, as x·w/(w + 2) with w = n² + 2n; above 20 the result is x.
pub fn mish_f32(f: &mut FunctionEmitter, x: &Val) -> Val {
    let two = float_constant(x, 2.0);
    let limited = at_most(f, x, 20.0);
    let n = exp_f32(f, &limited);
    let twice = add(f, &n, &n);
    let w = fma(f, &n, &n, &twice);
    let below = add(f, &w, &two);
    let tanh = div(f, &w, &below);
    mul(f, x, &tanh)
}
