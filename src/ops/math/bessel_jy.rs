//! Bessel functions of the first and the second kind, orders 0 and 1.
//!
//! Source: Cephes. f32: a polynomial up to 2, modulus and phase beyond. f64: rational functions up to 5, Hankel's expansion
//! beyond.
use super::bessel::lower_float_function;
use super::bessel_tables::{
    J0_NEAR, J0_OVER, J0_UNDER, J1_NEAR, J1_OVER, J1_UNDER, MODULUS_0, MODULUS_1, P0_OVER, P0_UNDER, P1_OVER, P1_UNDER,
    PHASE_0, PHASE_1, Q0_OVER, Q0_UNDER, Q1_OVER, Q1_UNDER, Y0_NEAR, Y0_OVER, Y0_UNDER, Y1_NEAR, Y1_OVER, Y1_UNDER,
};
use super::expr::ArrayExpr;
use crate::ops::OpLowering;
use crate::ops::op_lowering::op;
use crate::tensor::DType;
use std::f64::consts::{FRAC_2_PI, FRAC_PI_4};

const FLOATS: &str = "f16, f32, f64";
/// √(2/π).
const ROOT: f64 = 0.797_884_560_802_865_4;

/// Definitions of the ops of this file.
#[rustfmt::skip]
pub const ROWS: &[OpLowering] = &[
    op("BesselJ0", "x -> y", |cx| lower_float_function(cx, FLOATS, |[x]| j0(x))).pointwise().dtypes(FLOATS),
    op("BesselJ1", "x -> y", |cx| lower_float_function(cx, FLOATS, |[x]| j1(x))).pointwise().dtypes(FLOATS),
    op("BesselY0", "x -> y", |cx| lower_float_function(cx, FLOATS, |[x]| y0(x))).pointwise().dtypes(FLOATS),
    op("BesselY1", "x -> y", |cx| lower_float_function(cx, FLOATS, |[x]| y1(x))).pointwise().dtypes(FLOATS),
];

/// Coefficients for the Bessel functions of one order.
struct Order {
    /// For f32: modulus times √x in 1/x, and phase times x in 1/x².
    modulus: &'static [f64],
    phase: &'static [f64],
    /// For f64: Hankel's two rational functions in 25/x².
    p: [&'static [f64]; 2],
    q: [&'static [f64]; 2],
    /// Phase lag relative to x.
    shift: f64,
}

impl Order {
    /// J (`is_second` false) or Y for large arguments.
    fn far<'s, 'b>(&self, x: ArrayExpr<'s, 'b>, is_second: bool) -> ArrayExpr<'s, 'b> {
        if x.dtype() != DType::F64 {
            let inverse = 1.0 / x;
            let modulus = x.rsqrt() * inverse.polynomial(self.modulus);
            let phase = inverse * (inverse * inverse).polynomial(self.phase) - self.shift + x;
            return modulus * if is_second { phase.sin() } else { phase.cos() };
        }
        let s = 25.0 / (x * x);
        let [p, q] = [self.p, self.q].map(|[over, under]| s.polynomial(over) / s.polynomial(under));
        let phase = x - self.shift;
        let w = (if is_second { 5.0 } else { -5.0 }) / x;
        let (along, across) = if is_second { (phase.sin(), phase.cos()) } else { (phase.cos(), phase.sin()) };
        (p * along + w * (q * across)) * (x.rsqrt() * ROOT)
    }
}

fn quotient<'s, 'b>(z: ArrayExpr<'s, 'b>, over: &[f64], under: &[f64]) -> ArrayExpr<'s, 'b> {
    z.polynomial(over) / z.polynomial(under)
}

/// Largest argument for which the near formula is used.
fn limit(x: ArrayExpr) -> f64 {
    if x.dtype() == DType::F64 { 5.0 } else { 2.0 }
}

fn j0<'s, 'b>(x: ArrayExpr<'s, 'b>) -> ArrayExpr<'s, 'b> {
    let y = x.abs();
    let z = y * y;
    let tiny = z * -0.25 + 1.0;
    let near = if x.dtype() == DType::F64 {
        let near = (z - ZEROS_0[0]) * (z - ZEROS_0[1]) * quotient(z, J0_OVER, J0_UNDER);
        tiny.select_where(y.lt(1e-5), near)
    } else {
        tiny.select_where(y.lt(1e-3), (z - ZEROS_0[0]) * z.polynomial(J0_NEAR))
    };
    near.select_where(y.le(limit(x)), ORDER_0.far(y, false))
}

fn j1<'s, 'b>(x: ArrayExpr<'s, 'b>) -> ArrayExpr<'s, 'b> {
    let y = x.abs();
    let z = y * y;
    let near = if x.dtype() == DType::F64 {
        quotient(z, J1_OVER, J1_UNDER) * x * (z - ZEROS_1[0]) * (z - ZEROS_1[1])
    } else {
        (z - ZEROS_1[0]) * (x * z.polynomial(J1_NEAR))
    };
    let far = ORDER_1.far(y, false);
    near.select_where(y.le(limit(x)), (-far).select_where(x.lt(0.0), far))
}

fn y0<'s, 'b>(x: ArrayExpr<'s, 'b>) -> ArrayExpr<'s, 'b> {
    let z = x * x;
    let logarithm = x.ln() * j0(x) * FRAC_2_PI;
    let near = if x.dtype() == DType::F64 {
        quotient(z, Y0_OVER, Y0_UNDER) + logarithm
    } else {
        (z - ZERO_Y0) * z.polynomial(Y0_NEAR) + logarithm
    };
    near.replace_where(x.le(0.0), f64::NEG_INFINITY).select_where(x.le(limit(x)), ORDER_0.far(x, true))
}

/// Y1. At 0 the result is NaN for f32, as in TensorFlow, and -∞ for f64.
fn y1<'s, 'b>(x: ArrayExpr<'s, 'b>) -> ArrayExpr<'s, 'b> {
    let z = x * x;
    let logarithm = (j1(x) * x.ln() - 1.0 / x) * FRAC_2_PI;
    let (near, outside) = if x.dtype() == DType::F64 {
        (quotient(z, Y1_OVER, Y1_UNDER) * x + logarithm, x.le(0.0))
    } else {
        ((z - ZERO_Y1) * z.polynomial(Y1_NEAR) * x + logarithm, x.lt(0.0))
    };
    near.replace_where(outside, f64::NEG_INFINITY).select_where(x.le(limit(x)), ORDER_1.far(x, true))
}

/// Squares of the first zeros of J0.
const ZEROS_0: [f64; 2] = [5.783_185_962_946_785, 30.471_262_343_662_087];
const ZEROS_1: [f64; 2] = [14.681_970_642_123_893, 49.218_456_321_694_6];
const ZERO_Y0: f64 = 0.432_214_556_865_108_34;
const ZERO_Y1: f64 = 4.665_393_301_856_689;

const ORDER_0: Order =
    Order { modulus: MODULUS_0, phase: PHASE_0, p: [P0_OVER, P0_UNDER], q: [Q0_OVER, Q0_UNDER], shift: FRAC_PI_4 };
const ORDER_1: Order = Order {
    modulus: MODULUS_1,
    phase: PHASE_1,
    p: [P1_OVER, P1_UNDER],
    q: [Q1_OVER, Q1_UNDER],
    shift: 3.0 * FRAC_PI_4,
};
