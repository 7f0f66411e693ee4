//! Softplus and mish of f32, each by one exponential.
use super::super::arith::{add, div, fcmp, fma, magnitude, mul, negated, number, select};
use super::super::function::FunctionEmitter;
use super::super::value::Val;
use super::at_most;
use super::exp::exp_f32;
use super::log::log1p_rest;

/// Where e is above this, 1 + e is halved, so that it is at most √2.
const MOST_REST: f64 = std::f64::consts::SQRT_2 - 1.0;

/// max(x, 0) + ln(1 + e) with e = e^-|x|, which is at most 1: where e is large ln2 + ln(1 + (e - 1)/2).
pub fn softplus_f32(f: &mut FunctionEmitter, x: &Val) -> Val {
    let (zero, half) = (number(x, 0.0), number(x, 0.5));
    let size = magnitude(f, x);
    let minus = negated(f, &size);
    let e = exp_f32(f, &minus);
    let halves = fcmp(f, "ogt", &e, &number(x, MOST_REST));
    let near_one = fma(f, &e, &half, &number(x, -0.5));
    let rest = select(f, &halves, &near_one, &e);
    let base = select(f, &halves, &number(x, std::f64::consts::LN_2), &zero);
    let positive = fcmp(f, "ogt", x, &zero);
    let linear = select(f, &positive, x, &zero);
    let log = log1p_rest(f, &rest, &base);
    add(f, &linear, &log)
}

/// x·tanh(ln(1 + n)) with n = e^x, which is x·w/(w + 2) with w = n² + 2n; beyond 20 that is x.
pub fn mish_f32(f: &mut FunctionEmitter, x: &Val) -> Val {
    let two = number(x, 2.0);
    let limited = at_most(f, x, 20.0);
    let n = exp_f32(f, &limited);
    let twice = add(f, &n, &n);
    let w = fma(f, &n, &n, &twice);
    let below = add(f, &w, &two);
    let tanh = div(f, &w, &below);
    mul(f, x, &tanh)
}
