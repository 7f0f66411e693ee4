//! Complex numbers, computed in c128.
use num_complex::Complex;

use super::{map1, no_meaning};
use crate::diag::Result;
use crate::scalar::{Direction, ScalarOp};
use crate::tensor::{DType, Tensor};

type C = Complex<f64>;

/// The elements as c128; real types get an imaginary part of 0.
pub fn values(x: &Tensor) -> Vec<C> {
    match x.dtype {
        DType::C64 => map1(x, |v: Complex<f32>| C::new(f64::from(v.re), f64::from(v.im))),
        DType::C128 => x.view::<C>().into_owned(),
        _ => super::convert(x, DType::F64).view::<f64>().iter().map(|&v| C::new(v, 0.0)).collect(),
    }
}

/// The elements as `dtype`; real types drop the imaginary part.
pub fn tensor(dtype: DType, dims: Vec<u64>, values: Vec<C>) -> Tensor {
    match dtype {
        DType::C64 => {
            let out: Vec<Complex<f32>> = values.iter().map(|v| Complex::new(v.re as f32, v.im as f32)).collect();
            Tensor::from_vec(dtype, dims, out)
        }
        DType::C128 => Tensor::from_vec(dtype, dims, values),
        _ => {
            let real: Vec<f64> = values.iter().map(|v| v.re).collect();
            super::convert(&Tensor::from_vec(DType::F64, dims, real), dtype)
        }
    }
}

/// Complex numbers of two float arrays.
pub(super) fn join(re: &Tensor, im: &Tensor, dims: Vec<u64>) -> Tensor {
    if re.dtype == DType::F64 {
        Tensor::from_vec(DType::C128, dims, super::map2(re, im, |x: f64, y| C::new(x, y)))
    } else {
        Tensor::from_vec(DType::C64, dims, super::map2(re, im, |x: f32, y| Complex::new(x, y)))
    }
}

/// Equal or not; complex numbers have no order, which gives false.
pub(super) fn compare(direction: Direction, a: &Tensor, b: &Tensor, dims: Vec<u64>) -> Result<Tensor> {
    let (x, y) = (values(a), values(b));
    let at = |v: &[C], i: usize| if v.len() == 1 { v[0] } else { v[i] };
    let count = x.len().max(y.len()).min(if x.is_empty() || y.is_empty() { 0 } else { usize::MAX });
    let same = |i: usize| at(&x, i) == at(&y, i);
    let out: Vec<u8> = match direction {
        Direction::Eq => (0..count).map(|i| same(i) as u8).collect(),
        Direction::Ne => (0..count).map(|i| !same(i) as u8).collect(),
        Direction::Ge | Direction::Gt | Direction::Le | Direction::Lt => {
            return Err(no_meaning(ScalarOp::Compare(direction, crate::scalar::CompareKind::Partial), a.dtype));
        }
    };
    Ok(Tensor::from_vec(DType::Pred, dims, out))
}

fn power(x: C, y: C) -> C {
    if y == C::ZERO {
        C::ONE
    } else if x == C::ZERO {
        if y.re > 0.0 && y.im == 0.0 { C::ZERO } else { (x.ln() * y).exp() }
    } else {
        x.powc(y)
    }
}

fn expm1(x: C) -> C {
    // Re: e^a cos b - 1 = expm1(a) cos b - 2 sin²(b/2), which keeps digits near 0.
    let half = (x.im / 2.0).sin();
    C::new(x.re.exp_m1() * x.im.cos() - 2.0 * half * half, x.re.exp() * x.im.sin())
}

fn log1p(x: C) -> C {
    let re =
        if x.norm() < 0.5 { 0.5 * (2.0 * x.re + x.re * x.re + x.im * x.im).ln_1p() } else { (C::ONE + x).norm().ln() };
    C::new(re, x.im.atan2(1.0 + x.re))
}

fn tanh(x: C) -> C {
    if x.re.abs() > 20.0 { C::new(x.re.signum(), 0.0f64.copysign((2.0 * x.im).sin())) } else { x.tanh() }
}

fn tan(x: C) -> C {
    let t = tanh(C::new(-x.im, x.re));
    C::new(t.im, -t.re)
}

fn sign(x: C) -> C {
    let norm = x.norm();
    if norm == 0.0 || norm.is_nan() { x } else { x / norm }
}

/// 1 / sqrt(x); at zero the division of C's Annex G, which gives an infinite real part.
fn rsqrt(x: C) -> C {
    if x == C::ZERO { C::new(f64::INFINITY, f64::NAN) } else { x.sqrt().inv() }
}

fn exp(x: C) -> C {
    if x.im == 0.0 { C::new(x.re.exp(), x.im) } else { x.exp() }
}

fn unary(op: ScalarOp) -> Option<fn(C) -> C> {
    Some(match op {
        ScalarOp::Negate => |x| -x,
        ScalarOp::Sign => sign,
        ScalarOp::Exp => exp,
        ScalarOp::Expm1 => expm1,
        ScalarOp::Log => |x| x.ln(),
        ScalarOp::Log1p => log1p,
        ScalarOp::Logistic => |x| (C::ONE + exp(-x)).inv(),
        ScalarOp::Sqrt => |x| x.sqrt(),
        ScalarOp::Rsqrt => rsqrt,
        ScalarOp::Tanh => tanh,
        ScalarOp::Sin => |x| x.sin(),
        ScalarOp::Cos => |x| x.cos(),
        ScalarOp::Tan => tan,
        _ => return None,
    })
}

fn binary(op: ScalarOp) -> Option<fn(C, C) -> C> {
    Some(match op {
        ScalarOp::Add => |x, y| x + y,
        ScalarOp::Subtract => |x, y| x - y,
        ScalarOp::Multiply => |x, y| x * y,
        ScalarOp::Divide => |x, y| x / y,
        ScalarOp::Power => power,
        // -i ln((x + i y) / sqrt(x² + y²)), the first operand being y.
        ScalarOp::Atan2 => |y, x| -C::I * ((x + C::I * y) / (x * x + y * y).sqrt()).ln(),
        _ => return None,
    })
}

/// The op on complex numbers.
pub(super) fn eval(op: ScalarOp, args: &[&Tensor], dims: Vec<u64>) -> Result<Tensor> {
    let dtype = args[0].dtype;
    let a = values(args[0]);
    let part = |f: fn(&C) -> f64| {
        let real: Vec<f64> = a.iter().map(f).collect();
        super::convert(&Tensor::from_vec(DType::F64, dims.clone(), real), dtype.real_part())
    };
    match op {
        ScalarOp::Abs => return Ok(part(|x| x.norm())),
        ScalarOp::Real => return Ok(part(|x| x.re)),
        ScalarOp::Imag => return Ok(part(|x| x.im)),
        ScalarOp::IsFinite => {
            let out: Vec<u8> = a.iter().map(|x| x.is_finite() as u8).collect();
            return Ok(Tensor::from_vec(DType::Pred, dims, out));
        }
        _ => {}
    }
    if let Some(f) = unary(op) {
        return Ok(tensor(dtype, dims, a.into_iter().map(f).collect()));
    }
    let at = |v: &[C], i: usize| if v.len() == 1 { v[0] } else { v[i] };
    let count = dims.iter().product::<u64>() as usize;
    if let (ScalarOp::Fma, [_, y, z]) = (op, args) {
        let (b, c) = (values(y), values(z));
        return Ok(tensor(dtype, dims, (0..count).map(|i| at(&a, i) * at(&b, i) + at(&c, i)).collect()));
    }
    let f = binary(op).ok_or_else(|| no_meaning(op, dtype))?;
    let b = values(args[1]);
    Ok(tensor(dtype, dims, (0..count).map(|i| f(at(&a, i), at(&b, i))).collect()))
}
