//! Pointwise formulas that several ops share.
use crate::hlo::symbolic::{Builder, Dim, InstId, Number};
use crate::scalar::formula::{self, ScalarBuilder};
use crate::scalar::{Direction, ScalarOp};
use crate::tensor::DType;

/// Computes `f` of an array in f32 if its type is narrower, and rounds once, at the end.
pub fn compute_in_f32(b: &mut Builder, x: InstId, f: impl FnOnce(&mut Builder, InstId) -> InstId) -> InstId {
    let dtype = b.dtype(x);
    if dtype.is_float() && dtype.bits() < 32 {
        let x = b.convert(x, DType::F32);
        let y = f(b, x);
        return b.convert(y, dtype);
    }
    f(b, x)
}

/// Applies `f` of two operands in f32 if their type is narrower, and rounds once, at the end.
pub fn compute_binary_in_f32(
    b: &mut Builder,
    x: InstId,
    y: InstId,
    f: impl FnOnce(&mut Builder, InstId, InstId) -> InstId,
) -> InstId {
    let dtype = b.dtype(x);
    if dtype.is_float() && dtype.bits() < 32 {
        let (x, y) = (b.convert(x, DType::F32), b.convert(y, DType::F32));
        let z = f(b, x, y);
        return b.convert(z, dtype);
    }
    f(b, x, y)
}

/// `x + value`.
pub fn add_scalar(b: &mut Builder, x: InstId, value: impl Into<Number>) -> InstId {
    let c = b.full_like(x, value);
    b.add(x, c)
}

/// Quotient `x / by` rounded up, for integers that are not negative.
pub fn div_ceil(b: &mut Builder, x: InstId, by: Dim) -> InstId {
    if by == 1 {
        return x;
    }
    let last = add_scalar(b, x, by - 1);
    let by = b.full_like(x, by);
    b.div(last, by)
}

/// `x * value`.
pub fn mul_scalar(b: &mut Builder, x: InstId, value: impl Into<Number>) -> InstId {
    let c = b.full_like(x, value);
    b.mul(x, c)
}

/// Comparison of `x` with a number.
pub fn compare_scalar(b: &mut Builder, direction: Direction, x: InstId, value: impl Into<Number>) -> InstId {
    let c = b.full_like(x, value);
    b.compare(direction, x, c)
}

/// 0 where `test` is 0 for TensorFlow's kernels, else `z`. Both have one type and are broadcast together.
pub fn zero_where_zero(b: &mut Builder, test: InstId, z: InstId) -> InstId {
    let (test, z) = b.broadcast_together(test, z);
    let zero = b.full_like(z, 0.0);
    let is_zero = is_zero_to_kernels(b, test);
    b.select(is_zero, zero, z)
}

/// Whether `x` is 0, or a subnormal number of a type in which processors compute: TensorFlow's kernels read subnormal operands
/// as zeros (denormals-are-zero). f16 is computed in f32, where its subnormal numbers are normal.
fn is_zero_to_kernels(b: &mut Builder, x: InstId) -> InstId {
    let dtype = b.dtype(x);
    if dtype.is_complex() {
        let (re, im) = (b.unary(ScalarOp::Real, x), b.unary(ScalarOp::Imag, x));
        let (re, im) = (is_zero_to_kernels(b, re), is_zero_to_kernels(b, im));
        return b.binary(ScalarOp::And, re, im);
    }
    let least_normal = match dtype {
        DType::F32 | DType::BF16 => f64::from(f32::MIN_POSITIVE),
        DType::F64 => f64::MIN_POSITIVE,
        _ => return compare_scalar(b, Direction::Eq, x, 0.0),
    };
    let size = b.unary(ScalarOp::Abs, x);
    compare_scalar(b, Direction::Lt, size, least_normal)
}

/// Whether two elements are the same key of TensorFlow's hash tables: equal values, and for 16-bit floats also equal bits, as
/// those are hashed by their bits, which differ for -0 and 0.
pub fn table_keys_equal(b: &mut Builder, x: InstId, y: InstId) -> InstId {
    let equal = b.compare(Direction::Eq, x, y);
    if !matches!(b.dtype(x), DType::F16 | DType::BF16) {
        return equal;
    }
    let [x, y] = [x, y].map(|x| b.unary(ScalarOp::BitcastConvert(DType::U16), x));
    let same = b.compare(Direction::Eq, x, y);
    b.binary(ScalarOp::And, equal, same)
}

/// A polynomial by Horner's rule, highest coefficient first.
pub fn polynomial(b: &mut Builder, x: InstId, coefficients: &[f64]) -> InstId {
    let mut sum = b.full_like(x, coefficients.first().copied().unwrap_or(0.0));
    for &c in coefficients.iter().skip(1) {
        sum = b.mul(sum, x);
        sum = add_scalar(b, sum, c);
    }
    sum
}

/// Inverse hyperbolic sine.
pub fn asinh(b: &mut Builder, x: InstId) -> InstId {
    let a = b.unary(ScalarOp::Abs, x);
    let square = b.mul(a, a);
    let one = b.full_like(a, 1.0);
    let root = b.add(square, one);
    let root = b.unary(ScalarOp::Sqrt, root);
    let root = b.add(root, one);
    let quotient = b.div(square, root);
    let small = b.add(a, quotient);
    let small = b.unary(ScalarOp::Log1p, small);
    let log = b.unary(ScalarOp::Log, a);
    let large = add_scalar(b, log, std::f64::consts::LN_2);
    let big = compare_scalar(b, Direction::Ge, a, 1e9);
    let magnitude = b.select(big, large, small);
    copy_sign(b, magnitude, x)
}

/// `magnitude` with the sign of `x`, keeping -0 and NaN of `x`.
pub fn copy_sign(b: &mut Builder, magnitude: InstId, x: InstId) -> InstId {
    let minus = b.unary(ScalarOp::Negate, magnitude);
    let negative = compare_scalar(b, Direction::Lt, x, 0.0);
    let zero = compare_scalar(b, Direction::Eq, x, 0.0);
    let signed = b.select(negative, minus, magnitude);
    b.select(zero, x, signed)
}

/// Inverse hyperbolic cosine; NaN below 1.
pub fn acosh(b: &mut Builder, x: InstId) -> InstId {
    let t = add_scalar(b, x, -1.0);
    let two = add_scalar(b, t, 2.0);
    let (r, s) = (b.unary(ScalarOp::Sqrt, t), b.unary(ScalarOp::Sqrt, two));
    let root = b.mul(r, s);
    let sum = b.add(t, root);
    let small = b.unary(ScalarOp::Log1p, sum);
    let log = b.unary(ScalarOp::Log, x);
    let large = add_scalar(b, log, std::f64::consts::LN_2);
    let big = compare_scalar(b, Direction::Ge, x, 1e9);
    b.select(big, large, small)
}

/// Inverse hyperbolic tangent.
pub fn atanh(b: &mut Builder, x: InstId) -> InstId {
    let minus = b.unary(ScalarOp::Negate, x);
    let (p, q) = (b.unary(ScalarOp::Log1p, x), b.unary(ScalarOp::Log1p, minus));
    let difference = b.sub(p, q);
    mul_scalar(b, difference, 0.5)
}

/// Hyperbolic sine.
pub fn sinh(b: &mut Builder, x: InstId) -> InstId {
    let e = b.unary(ScalarOp::Expm1, x);
    let next = add_scalar(b, e, 1.0);
    let quotient = b.div(e, next);
    let sum = b.add(e, quotient);
    let small = mul_scalar(b, sum, 0.5);
    let (up, down) = half_exponentials(b, x);
    let large = b.sub(up, down);
    let a = b.unary(ScalarOp::Abs, x);
    let near = compare_scalar(b, Direction::Lt, a, 1.0);
    b.select(near, small, large)
}

/// Hyperbolic cosine.
pub fn cosh(b: &mut Builder, x: InstId) -> InstId {
    let (up, down) = half_exponentials(b, x);
    b.add(up, down)
}

/// e^x / 2 and e^-x / 2, computed without early overflow.
fn half_exponentials(b: &mut Builder, x: InstId) -> (InstId, InstId) {
    let half = mul_scalar(b, x, 0.5);
    let e = b.unary(ScalarOp::Exp, half);
    let halved = mul_scalar(b, e, 0.5);
    let up = b.mul(e, halved);
    let minus = b.unary(ScalarOp::Negate, half);
    let e = b.unary(ScalarOp::Exp, minus);
    let halved = mul_scalar(b, e, 0.5);
    let down = b.mul(e, halved);
    (up, down)
}

/// Inverse sine.
pub fn asin(b: &mut Builder, x: InstId) -> InstId {
    let root = one_minus_square_root(b, x);
    b.binary(ScalarOp::Atan2, x, root)
}

/// Inverse cosine.
pub fn acos(b: &mut Builder, x: InstId) -> InstId {
    let root = one_minus_square_root(b, x);
    b.binary(ScalarOp::Atan2, root, x)
}

/// sqrt(1 - x²) without cancellation near 1.
fn one_minus_square_root(b: &mut Builder, x: InstId) -> InstId {
    let one = b.full_like(x, 1.0);
    let (p, q) = (b.add(one, x), b.sub(one, x));
    let product = b.mul(p, q);
    b.unary(ScalarOp::Sqrt, product)
}

/// Inverse tangent.
pub fn atan(b: &mut Builder, x: InstId) -> InstId {
    let one = b.full_like(x, 1.0);
    b.binary(ScalarOp::Atan2, x, one)
}

/// Complementary error function: for f32 a [formula](formula::erfc), for f64 1 - erf up to 2 and a continued fraction beyond.
pub fn erfc(b: &mut Builder, x: InstId) -> InstId {
    if b.dtype(x) == DType::F64 {
        let a = b.unary(ScalarOp::Abs, x);
        let erf = b.unary(ScalarOp::Erf, x);
        let one = b.full_like(x, 1.0);
        let (near, far) = (b.sub(one, erf), erfc_fraction(b, a));
        let is_far = compare_scalar(b, Direction::Gt, x, 2.0);
        return b.select(is_far, far, near);
    }
    formula::erfc(&mut FormulaWriter { b, like: x }, x)
}

/// Writer of a scalar formula as instructions of the shape and type of `like`.
pub struct FormulaWriter<'b> {
    /// Builder that receives the instructions.
    pub b: &'b mut Builder,
    /// Instruction whose shape and type the formula has.
    pub like: InstId,
}

impl ScalarBuilder for FormulaWriter<'_> {
    type Value = InstId;

    fn number(&mut self, value: f64) -> InstId {
        self.b.full_like(self.like, value)
    }

    fn op(&mut self, op: ScalarOp, args: &[InstId]) -> InstId {
        self.b.elementwise(op, args)
    }
}

/// Continued fraction of erfc for large arguments: e^(-x²)/sqrt(pi) over x + (1/2)/(x + 1/(x + (3/2)/(x + …))).
fn erfc_fraction(b: &mut Builder, a: InstId) -> InstId {
    let mut below = a;
    for k in (1..=60).rev() {
        let above = b.full_like(a, f64::from(k) / 2.0);
        let part = b.div(above, below);
        below = b.add(a, part);
    }
    let square = b.mul(a, a);
    let minus = b.unary(ScalarOp::Negate, square);
    let e = b.unary(ScalarOp::Exp, minus);
    let scaled = mul_scalar(b, e, 0.564_189_583_547_756_3);
    b.div(scaled, below)
}
