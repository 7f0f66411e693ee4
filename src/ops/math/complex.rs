//! Hyperbolic and inverse functions of complex numbers, on the principal branch.
use super::special::{self, compare_scalar, mul_scalar};
use crate::hlo::symbolic::{Builder, InstId};
use crate::scalar::{Direction, ScalarOp};

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

/// Hyperbolic sine: sinh x cos y + i cosh x sin y.
pub fn sinh(b: &mut Builder, z: InstId) -> InstId {
    by_parts(b, z, [special::sinh, special::cosh])
}

/// Hyperbolic cosine: cosh x cos y + i sinh x sin y.
pub fn cosh(b: &mut Builder, z: InstId) -> InstId {
    by_parts(b, z, [special::cosh, special::sinh])
}

/// f(x) cos y + i g(x) sin y for x + i y; the imaginary part is 0 for y = 0 even if g(x) is infinite.
fn by_parts(b: &mut Builder, z: InstId, [f, g]: [fn(&mut Builder, InstId) -> InstId; 2]) -> InstId {
    let (x, y) = parts(b, z);
    let (f, g) = (f(b, x), g(b, x));
    let (cos, sin) = (b.unary(ScalarOp::Cos, y), b.unary(ScalarOp::Sin, y));
    let (re, im) = (b.mul(f, cos), b.mul(g, sin));
    let is_real = compare_scalar(b, Direction::Eq, y, 0.0);
    let im = b.select(is_real, y, im);
    b.elementwise(ScalarOp::Complex, &[re, im])
}

/// Real and imaginary parts.
fn parts(b: &mut Builder, z: InstId) -> (InstId, InstId) {
    (b.unary(ScalarOp::Real, z), b.unary(ScalarOp::Imag, z))
}

/// sqrt(1 - z) and sqrt(1 + z), computed so that an imaginary zero keeps its sign: the sign tells on which side of a branch cut
/// z lies.
fn roots(b: &mut Builder, z: InstId) -> (InstId, InstId) {
    let (re, im) = parts(b, z);
    let one = b.full_like(re, 1.0);
    let (down, up) = (b.sub(one, re), b.add(one, re));
    let minus = b.unary(ScalarOp::Negate, im);
    let (down, up) = (b.elementwise(ScalarOp::Complex, &[down, minus]), b.elementwise(ScalarOp::Complex, &[up, im]));
    (b.unary(ScalarOp::Sqrt, down), b.unary(ScalarOp::Sqrt, up))
}

/// Real and imaginary parts of conj(p)·q.
fn conjugate_product(b: &mut Builder, p: InstId, q: InstId) -> (InstId, InstId) {
    let ((a, c), (d, e)) = (parts(b, p), parts(b, q));
    let (ad, ce, ae, cd) = (b.mul(a, d), b.mul(c, e), b.mul(a, e), b.mul(c, d));
    (b.add(ad, ce), b.sub(ae, cd))
}

/// Inverse sine: with p = sqrt(1 - z) and q = sqrt(1 + z), atan(Re z / Re(p·q)) + i·asinh(Im(conj(p)·q)).
///
/// Source of this and the next three: Kahan, "Branch cuts for complex elementary functions" (1987).
pub fn asin(b: &mut Builder, z: InstId) -> InstId {
    let (p, q) = roots(b, z);
    let product = b.mul(p, q);
    let (below, above) = (b.unary(ScalarOp::Real, product), b.unary(ScalarOp::Real, z));
    let re = b.binary(ScalarOp::Atan2, above, below);
    let (_, cross) = conjugate_product(b, p, q);
    let im = special::asinh(b, cross);
    b.elementwise(ScalarOp::Complex, &[re, im])
}

/// Inverse cosine: 2·atan(Re p / Re q) + i·asinh(Im(conj(q)·p)).
pub fn acos(b: &mut Builder, z: InstId) -> InstId {
    let (p, q) = roots(b, z);
    let (above, below) = (b.unary(ScalarOp::Real, p), b.unary(ScalarOp::Real, q));
    let angle = b.binary(ScalarOp::Atan2, above, below);
    let re = mul_scalar(b, angle, 2.0);
    let (_, cross) = conjugate_product(b, q, p);
    let im = special::asinh(b, cross);
    b.elementwise(ScalarOp::Complex, &[re, im])
}

/// Inverse hyperbolic cosine: with p = sqrt(z - 1) and q = sqrt(z + 1), asinh(Re(conj(p)·q)) + 2i·atan(Im p / Re q).
pub fn acosh(b: &mut Builder, z: InstId) -> InstId {
    let (re, im) = parts(b, z);
    let one = b.full_like(re, 1.0);
    let (down, up) = (b.sub(re, one), b.add(re, one));
    let (down, up) = (b.elementwise(ScalarOp::Complex, &[down, im]), b.elementwise(ScalarOp::Complex, &[up, im]));
    let (p, q) = (b.unary(ScalarOp::Sqrt, down), b.unary(ScalarOp::Sqrt, up));
    let (along, _) = conjugate_product(b, p, q);
    let re = special::asinh(b, along);
    let (above, below) = (b.unary(ScalarOp::Imag, p), b.unary(ScalarOp::Real, q));
    let angle = b.binary(ScalarOp::Atan2, above, below);
    let im = mul_scalar(b, angle, 2.0);
    b.elementwise(ScalarOp::Complex, &[re, im])
}

/// Inverse hyperbolic tangent of x + iy: ln1p(4|x| / ((1 - |x|)² + y²)) / 4 with the sign of x, and
/// i·atan(2y / ((1 - x)(1 + x) - y²)) / 2.
pub fn atanh(b: &mut Builder, z: InstId) -> InstId {
    let (x, y) = parts(b, z);
    let a = b.unary(ScalarOp::Abs, x);
    let one = b.full_like(x, 1.0);
    let rest = b.sub(one, a);
    let (near, squared) = (b.mul(rest, rest), b.mul(y, y));
    let below = b.add(near, squared);
    let above = mul_scalar(b, a, 4.0);
    let ratio = b.div(above, below);
    let log = b.unary(ScalarOp::Log1p, ratio);
    let re = mul_scalar(b, log, 0.25);
    let re = special::copy_sign(b, re, x);
    let sum = b.add(one, a);
    let along = b.mul(rest, sum);
    let below = b.sub(along, squared);
    let above = b.add(y, y);
    let angle = b.binary(ScalarOp::Atan2, above, below);
    let im = mul_scalar(b, angle, 0.5);
    b.elementwise(ScalarOp::Complex, &[re, im])
}

/// -i·asin(i·z).
pub fn asinh(b: &mut Builder, z: InstId) -> InstId {
    let turned = times_i(b, z);
    let y = asin(b, turned);
    over_i(b, y)
}

/// -i·atanh(i·z).
pub fn atan(b: &mut Builder, z: InstId) -> InstId {
    let turned = times_i(b, z);
    let y = atanh(b, turned);
    over_i(b, y)
}
