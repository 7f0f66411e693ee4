//! Scalar ops on complex numbers, on their parts. Sums and products are in the type itself; quotients and functions are
//! computed in c128 and rounded.
use super::arith::{
    abs, add, binary_instruction, call_intrinsic, copysign, div, fcmp, float_constant, mul, neg, select, sub,
    undefined_op_error,
};
use super::convert::convert;
use super::float;
use super::function::FunctionEmitter;
use super::math::{atan2_f64, cos_f64, exp_f64, expm1_f64, log_f64, sin_f64};
use super::value::Val;
use crate::diag::Result;
use crate::scalar::{CompareKind, Direction, ScalarOp};
use crate::tensor::DType;

/// A complex number as its real and imaginary parts.
#[derive(Clone)]
struct C {
    re: Val,
    im: Val,
}

/// Emits `op` on complex numbers. Errors: internal, if it is not defined on them.
pub fn emit(f: &mut FunctionEmitter, op: ScalarOp, args: &[Val]) -> Result<Val> {
    let x = parts(f, &args[0]);
    let dtype = args[0].dtype;
    let out = match (op, args) {
        (ScalarOp::Real, _) => return Ok(x.re),
        (ScalarOp::Imag, _) => return Ok(x.im),
        (ScalarOp::IsFinite, _) => {
            let re = float::emit(f, op, &[x.re])?;
            let im = float::emit(f, op, &[x.im])?;
            return Ok(binary_instruction(f, "and", &re, &im));
        }
        (ScalarOp::Abs, _) => {
            let wide = widened(f, &x);
            let size = norm(f, &wide);
            return Ok(convert(f, &size, dtype.real_part()));
        }
        (ScalarOp::Negate, _) => C { re: neg(f, &x.re), im: neg(f, &x.im) },
        (ScalarOp::Add, [_, y]) => {
            let y = parts(f, y);
            C { re: add(f, &x.re, &y.re), im: add(f, &x.im, &y.im) }
        }
        (ScalarOp::Subtract, [_, y]) => {
            let y = parts(f, y);
            C { re: sub(f, &x.re, &y.re), im: sub(f, &x.im, &y.im) }
        }
        (ScalarOp::Multiply, [_, y]) => {
            let y = parts(f, y);
            product(f, &x, &y)
        }
        (ScalarOp::Fma, [_, y, z]) => {
            let (y, z) = (parts(f, y), parts(f, z));
            let p = product(f, &x, &y);
            C { re: add(f, &p.re, &z.re), im: add(f, &p.im, &z.im) }
        }
        (ScalarOp::Divide | ScalarOp::Power | ScalarOp::Atan2, [_, y]) => {
            let y = parts(f, y);
            let (x, y) = (widened(f, &x), widened(f, &y));
            match op {
                ScalarOp::Divide => quotient(f, &x, &y),
                ScalarOp::Power => power(f, &x, &y),
                _ => angle(f, &x, &y),
            }
        }
        _ => {
            let wide = widened(f, &x);
            function(f, op, &wide).ok_or_else(|| undefined_op_error(op, dtype))?
        }
    };
    let whole = f.make_complex(&out.re, &out.im);
    Ok(convert(f, &whole, dtype))
}

/// Emits the comparison of complex numbers for equality or inequality; they have no order.
pub fn compare(f: &mut FunctionEmitter, direction: Direction, kind: CompareKind, x: &Val, y: &Val) -> Result<Val> {
    let (relation, both) = match direction {
        Direction::Eq => ("oeq", "and"),
        Direction::Ne => ("une", "or"),
        Direction::Ge | Direction::Gt | Direction::Le | Direction::Lt => {
            return Err(undefined_op_error(ScalarOp::Compare(direction, kind), x.dtype));
        }
    };
    let (x, y) = (parts(f, x), parts(f, y));
    let (re, im) = (fcmp(f, relation, &x.re, &y.re), fcmp(f, relation, &x.im, &y.im));
    Ok(binary_instruction(f, both, &re, &im))
}

fn parts(f: &mut FunctionEmitter, x: &Val) -> C {
    let (re, im) = f.complex_parts(x);
    C { re, im }
}

fn widened(f: &mut FunctionEmitter, x: &C) -> C {
    C { re: convert(f, &x.re, DType::F64), im: convert(f, &x.im, DType::F64) }
}

fn chosen(f: &mut FunctionEmitter, cond: &Val, x: &C, y: &C) -> C {
    C { re: select(f, cond, &x.re, &y.re), im: select(f, cond, &x.im, &y.im) }
}

fn product(f: &mut FunctionEmitter, x: &C, y: &C) -> C {
    let (a, b) = (mul(f, &x.re, &y.re), mul(f, &x.im, &y.im));
    let (c, d) = (mul(f, &x.re, &y.im), mul(f, &x.im, &y.re));
    C { re: sub(f, &a, &b), im: add(f, &c, &d) }
}

/// The minimum and the maximum of |re| and |im|.
fn sizes(f: &mut FunctionEmitter, x: &C) -> (Val, Val) {
    let (a, b) = (abs(f, &x.re), abs(f, &x.im));
    let over = fcmp(f, "ogt", &a, &b);
    (select(f, &over, &b, &a), select(f, &over, &a, &b))
}

/// Emits x / y as x·conj(y) / |y|², with y scaled by its larger part so that the square neither overflows nor underflows.
fn quotient(f: &mut FunctionEmitter, x: &C, y: &C) -> C {
    let (_, size) = sizes(f, y);
    // A divisor of 0 or of infinite size is not scaled, so that IEEE's rules hold.
    let (one, zero) = (float_constant(&size, 1.0), float_constant(&size, 0.0));
    let positive = fcmp(f, "ogt", &size, &zero);
    let finite = fcmp(f, "olt", &size, &float_constant(&size, f64::INFINITY));
    let usual = binary_instruction(f, "and", &positive, &finite);
    let size = select(f, &usual, &size, &one);
    let y = C { re: div(f, &y.re, &size), im: div(f, &y.im, &size) };
    let x = C { re: div(f, &x.re, &size), im: div(f, &x.im, &size) };
    let (a, b) = (mul(f, &y.re, &y.re), mul(f, &y.im, &y.im));
    let below = add(f, &a, &b);
    let conjugate = C { re: y.re.clone(), im: neg(f, &y.im) };
    let above = product(f, &x, &conjugate);
    C { re: div(f, &above.re, &below), im: div(f, &above.im, &below) }
}

/// Emits |x|, infinite if a part is.
fn norm(f: &mut FunctionEmitter, x: &C) -> Val {
    let (low, high) = sizes(f, x);
    let ratio = div(f, &low, &high);
    let square = mul(f, &ratio, &ratio);
    let sum = add(f, &square, &float_constant(&low, 1.0));
    let root = call_intrinsic(f, "sqrt", &[&sum]);
    let size = mul(f, &high, &root);
    // 0/0 and inf/inf: the sum of the parts is right for both.
    let sum = add(f, &low, &high);
    let zero = fcmp(f, "oeq", &high, &float_constant(&low, 0.0));
    let endless = fcmp(f, "oeq", &sum, &float_constant(&low, f64::INFINITY));
    let plain = binary_instruction(f, "or", &zero, &endless);
    let size = select(f, &plain, &sum, &size);
    let (a, b) = (abs(f, &x.re), abs(f, &x.im));
    let infinite = float_constant(&low, f64::INFINITY);
    let (a, b) = (fcmp(f, "oeq", &a, &infinite), fcmp(f, "oeq", &b, &infinite));
    let either = binary_instruction(f, "or", &a, &b);
    select(f, &either, &infinite, &size)
}

fn log(f: &mut FunctionEmitter, x: &C) -> C {
    let size = norm(f, x);
    C { re: log_f64(f, &size), im: atan2_f64(f, &x.im, &x.re) }
}

fn exp(f: &mut FunctionEmitter, x: &C) -> C {
    let size = exp_f64(f, &x.re);
    let (c, s) = (cos_f64(f, &x.im), sin_f64(f, &x.im));
    let whole = C { re: mul(f, &size, &c), im: mul(f, &size, &s) };
    // A real number stays one, also where e^x is infinite.
    let real = fcmp(f, "oeq", &x.im, &float_constant(&x.im, 0.0));
    let plain = C { re: size, im: x.im.clone() };
    chosen(f, &real, &plain, &whole)
}

/// The principal square root: √((|x| + |re x|) / 2) as one part, and im divided by twice that as the other.
fn sqrt(f: &mut FunctionEmitter, x: &C) -> C {
    let half = float_constant(&x.re, 0.5);
    let size = norm(f, x);
    let re = abs(f, &x.re);
    let (a, b) = (mul(f, &size, &half), mul(f, &re, &half));
    let sum = add(f, &a, &b);
    let root = call_intrinsic(f, "sqrt", &[&sum]);
    let other = mul(f, &x.im, &half);
    let other = div(f, &other, &root);
    let size_of_other = abs(f, &other);
    let left = C { re: size_of_other, im: copysign(f, &root, &x.im) };
    let right = C { re: root.clone(), im: other };
    let negative = fcmp(f, "olt", &x.re, &float_constant(&x.re, 0.0));
    let whole = chosen(f, &negative, &left, &right);
    let zero = fcmp(f, "oeq", &root, &float_constant(&x.re, 0.0));
    chosen(f, &zero, &C { re: root, im: x.im.clone() }, &whole)
}

/// Emits cosh and sinh of a real number.
fn hyperbolic(f: &mut FunctionEmitter, x: &Val) -> (Val, Val) {
    let (one, half) = (float_constant(x, 1.0), float_constant(x, 0.5));
    let size = abs(f, x);
    let e = exp_f64(f, &size);
    let inverse = div(f, &one, &e);
    let sum = add(f, &e, &inverse);
    let cosh = mul(f, &sum, &half);
    let minus = expm1_f64(f, &size);
    let under = add(f, &minus, &one);
    let other = div(f, &minus, &under);
    let sum = add(f, &minus, &other);
    let sinh = mul(f, &sum, &half);
    let endless = fcmp(f, "oeq", &minus, &float_constant(x, f64::INFINITY));
    let sinh = select(f, &endless, &minus, &sinh);
    (cosh, copysign(f, &sinh, x))
}

/// Emits tanh(a + ib) as (sinh 2a + i sin 2b) / (cosh 2a + cos 2b); ±1 for |a| above 20.
fn tanh(f: &mut FunctionEmitter, x: &C) -> C {
    let size = abs(f, &x.re);
    let far = fcmp(f, "ogt", &size, &float_constant(&size, 20.0));
    let held = select(f, &far, &float_constant(&size, 0.0), &x.re);
    let (a, b) = (add(f, &held, &held), add(f, &x.im, &x.im));
    let ((cosh, sinh), cos, sin) = (hyperbolic(f, &a), cos_f64(f, &b), sin_f64(f, &b));
    let below = add(f, &cosh, &cos);
    let near = C { re: div(f, &sinh, &below), im: div(f, &sin, &below) };
    let one = float_constant(&size, 1.0);
    let zero = float_constant(&size, 0.0);
    let ends = C { re: copysign(f, &one, &x.re), im: copysign(f, &zero, &sin) };
    chosen(f, &far, &ends, &near)
}

fn inverse(f: &mut FunctionEmitter, x: &C) -> C {
    let one = C { re: float_constant(&x.re, 1.0), im: float_constant(&x.re, 0.0) };
    quotient(f, &one, x)
}

/// Emits i·x.
fn multiply_by_i(f: &mut FunctionEmitter, x: &C) -> C {
    C { re: neg(f, &x.im), im: x.re.clone() }
}

fn function(f: &mut FunctionEmitter, op: ScalarOp, x: &C) -> Option<C> {
    Some(match op {
        ScalarOp::Exp => exp(f, x),
        ScalarOp::Log => log(f, x),
        ScalarOp::Sqrt => sqrt(f, x),
        ScalarOp::Rsqrt => {
            let root = sqrt(f, x);
            inverse(f, &root)
        }
        ScalarOp::Sign => {
            let size = norm(f, x);
            let unit = C { re: div(f, &x.re, &size), im: div(f, &x.im, &size) };
            let zero = fcmp(f, "ueq", &size, &float_constant(&size, 0.0));
            chosen(f, &zero, x, &unit)
        }
        ScalarOp::Expm1 => {
            // expm1(a)·cos b - 2·sin²(b/2) keeps digits near 0.
            let half = mul(f, &x.im, &float_constant(&x.im, 0.5));
            let half = sin_f64(f, &half);
            let square = mul(f, &half, &half);
            let twice = add(f, &square, &square);
            let (size, c) = (expm1_f64(f, &x.re), cos_f64(f, &x.im));
            let re = mul(f, &size, &c);
            let (e, s) = (exp_f64(f, &x.re), sin_f64(f, &x.im));
            C { re: sub(f, &re, &twice), im: mul(f, &e, &s) }
        }
        ScalarOp::Log1p => log1p(f, x),
        ScalarOp::Logistic => {
            let minus = C { re: neg(f, &x.re), im: neg(f, &x.im) };
            let e = exp(f, &minus);
            let below = C { re: add(f, &e.re, &float_constant(&e.re, 1.0)), im: e.im };
            inverse(f, &below)
        }
        ScalarOp::Tanh => tanh(f, x),
        ScalarOp::Tan => {
            let t = multiply_by_i(f, x);
            let t = tanh(f, &t);
            C { im: neg(f, &t.re), re: t.im }
        }
        ScalarOp::Sin => {
            let ((cosh, sinh), s, c) = (hyperbolic(f, &x.im), sin_f64(f, &x.re), cos_f64(f, &x.re));
            C { re: mul(f, &s, &cosh), im: mul(f, &c, &sinh) }
        }
        ScalarOp::Cos => {
            let ((cosh, sinh), s, c) = (hyperbolic(f, &x.im), sin_f64(f, &x.re), cos_f64(f, &x.re));
            let im = mul(f, &s, &sinh);
            C { re: mul(f, &c, &cosh), im: neg(f, &im) }
        }
        _ => return None,
    })
}

/// Emits log1p(a + ib); its real part is ½·log1p(2a + a² + b²) near 0, ln|1 + x| elsewhere.
fn log1p(f: &mut FunctionEmitter, x: &C) -> C {
    let one = float_constant(&x.re, 1.0);
    let (a, b) = (mul(f, &x.re, &x.re), mul(f, &x.im, &x.im));
    let (squares, twice) = (add(f, &a, &b), add(f, &x.re, &x.re));
    let inner = add(f, &twice, &squares);
    let near = super::math::log1p(f, &inner);
    let near = mul(f, &near, &float_constant(&near, 0.5));
    let moved = C { re: add(f, &x.re, &one), im: x.im.clone() };
    let size = norm(f, &moved);
    let far = log_f64(f, &size);
    let small = fcmp(f, "olt", &squares, &float_constant(&squares, 0.25));
    C { re: select(f, &small, &near, &far), im: atan2_f64(f, &x.im, &moved.re) }
}

/// Emits x^y as e^(y·ln x); 1 for y = 0, 0 for x = 0 and a positive real y.
fn power(f: &mut FunctionEmitter, x: &C, y: &C) -> C {
    let (zero, one) = (float_constant(&x.re, 0.0), float_constant(&x.re, 1.0));
    let l = log(f, x);
    let p = product(f, &l, y);
    let r = exp(f, &p);
    let mut is_zero = |v: &C| {
        let (a, b) = (fcmp(f, "oeq", &v.re, &zero), fcmp(f, "oeq", &v.im, &zero));
        binary_instruction(f, "and", &a, &b)
    };
    let (x_zero, y_zero) = (is_zero(x), is_zero(y));
    let (positive, real) = (fcmp(f, "ogt", &y.re, &zero), fcmp(f, "oeq", &y.im, &zero));
    let vanishes = binary_instruction(f, "and", &positive, &real);
    let vanishes = binary_instruction(f, "and", &vanishes, &x_zero);
    let r = chosen(f, &vanishes, &C { re: zero.clone(), im: zero.clone() }, &r);
    chosen(f, &y_zero, &C { re: one, im: zero }, &r)
}

/// Emits atan2(y, x) as -i·ln((x + i·y) / √(x² + y²)).
fn angle(f: &mut FunctionEmitter, y: &C, x: &C) -> C {
    let (xx, yy) = (product(f, x, x), product(f, y, y));
    let below = C { re: add(f, &xx.re, &yy.re), im: add(f, &xx.im, &yy.im) };
    let below = sqrt(f, &below);
    let up = multiply_by_i(f, y);
    let above = C { re: add(f, &x.re, &up.re), im: add(f, &x.im, &up.im) };
    let ratio = quotient(f, &above, &below);
    let l = log(f, &ratio);
    C { re: l.im.clone(), im: neg(f, &l.re) }
}
