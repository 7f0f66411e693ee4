//! Hyperbolic functions and inverse functions of complex numbers, on the principal branch.
use super::special::mul_scalar;
use crate::hlo::{Builder, InstId};
use crate::scalar::ScalarOp;

/// i·z.
fn times_i(b: &mut Builder, z: InstId) -> InstId {
    let (re, im) = (b.unary(ScalarOp::Real, z), b.unary(ScalarOp::Imag, z));
    let minus = b.unary(ScalarOp::Negate, im);
    b.elementwise(ScalarOp::Complex, &[minus, re])
}

/// -i·z.
fn over_i(b: &mut Builder, z: InstId) -> InstId {
    let turned = times_i(b, z);
    b.unary(ScalarOp::Negate, turned)
}

/// Half of e^z and of e^-z.
fn halves(b: &mut Builder, z: InstId) -> (InstId, InstId) {
    let minus = b.unary(ScalarOp::Negate, z);
    let (p, q) = (b.unary(ScalarOp::Exp, z), b.unary(ScalarOp::Exp, minus));
    (mul_scalar(b, p, 0.5), mul_scalar(b, q, 0.5))
}

/// Hyperbolic sine.
pub fn sinh(b: &mut Builder, z: InstId) -> InstId {
    let (p, q) = halves(b, z);
    b.sub(p, q)
}

/// Hyperbolic cosine.
pub fn cosh(b: &mut Builder, z: InstId) -> InstId {
    let (p, q) = halves(b, z);
    b.add(p, q)
}

/// ln(z + sqrt(z² + 1)).
pub fn asinh(b: &mut Builder, z: InstId) -> InstId {
    let one = b.full_like(z, 1.0);
    let square = b.mul(z, z);
    let inner = b.add(square, one);
    let root = b.unary(ScalarOp::Sqrt, inner);
    let sum = b.add(z, root);
    b.unary(ScalarOp::Log, sum)
}

/// ln(z + sqrt(z + 1)·sqrt(z - 1)).
pub fn acosh(b: &mut Builder, z: InstId) -> InstId {
    let one = b.full_like(z, 1.0);
    let (p, q) = (b.add(z, one), b.sub(z, one));
    let (p, q) = (b.unary(ScalarOp::Sqrt, p), b.unary(ScalarOp::Sqrt, q));
    let root = b.mul(p, q);
    let sum = b.add(z, root);
    b.unary(ScalarOp::Log, sum)
}

/// (ln(1 + z) - ln(1 - z)) / 2.
pub fn atanh(b: &mut Builder, z: InstId) -> InstId {
    super::special::atanh(b, z)
}

/// -i·asinh(i·z).
pub fn asin(b: &mut Builder, z: InstId) -> InstId {
    let turned = times_i(b, z);
    let y = asinh(b, turned);
    over_i(b, y)
}

/// pi/2 - asin(z).
pub fn acos(b: &mut Builder, z: InstId) -> InstId {
    let y = asin(b, z);
    let quarter = b.full_like(z, std::f64::consts::FRAC_PI_2);
    b.sub(quarter, y)
}

/// -i·atanh(i·z).
pub fn atan(b: &mut Builder, z: InstId) -> InstId {
    let turned = times_i(b, z);
    let y = atanh(b, turned);
    over_i(b, y)
}
