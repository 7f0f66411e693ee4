//! f32 and f64.
use bytemuck::Pod;

use super::{map1, map2, no_meaning};
use crate::diag::Result;
use crate::scalar::ScalarOp;
use crate::tensor::{DType, Tensor};

/// Operations and constants common to f32 and f64.
pub trait Real: Pod + PartialOrd + Send {
    /// A function of doubles, rounded.
    fn via(self, f: impl Fn(f64) -> f64) -> Self;
    /// A function of two doubles, rounded.
    fn via2(self, y: Self, f: impl Fn(f64, f64) -> f64) -> Self;
    /// Sum, rounded once.
    fn add(self, y: Self) -> Self;
    /// Difference, rounded once.
    fn sub(self, y: Self) -> Self;
    /// Product, rounded once.
    fn mul(self, y: Self) -> Self;
    /// Quotient, rounded once.
    fn div(self, y: Self) -> Self;
    /// Remainder of truncated division, exact.
    fn rem(self, y: Self) -> Self;
    /// Square root, rounded once.
    fn sqrt(self) -> Self;
    /// x * y + z, rounded once.
    fn fma(self, y: Self, z: Self) -> Self;
    /// Sign change.
    fn neg(self) -> Self;
    /// Magnitude.
    fn abs(self) -> Self;
    /// Towards +inf.
    fn ceil(self) -> Self;
    /// Towards -inf.
    fn floor(self) -> Self;
    /// Halves away from zero.
    fn round(self) -> Self;
    /// Halves to even.
    fn round_ties_even(self) -> Self;
    /// Not infinite, not NaN.
    fn is_finite(self) -> bool;
    /// NaN if either is; of equal operands the first.
    fn max(self, y: Self) -> Self;
    /// NaN if either is; of equal operands the first.
    fn min(self, y: Self) -> Self;
    /// Fewer bits.
    fn reduce(self, exponent_bits: u32, mantissa_bits: u32) -> Self;
}

macro_rules! reals {
    ($($t:ident $bits:ident $e:literal $m:literal;)*) => {$(
        impl Real for $t {
            fn via(self, f: impl Fn(f64) -> f64) -> $t { f(self as f64) as $t }
            fn via2(self, y: $t, f: impl Fn(f64, f64) -> f64) -> $t { f(self as f64, y as f64) as $t }
            fn add(self, y: $t) -> $t { self + y }
            fn sub(self, y: $t) -> $t { self - y }
            fn mul(self, y: $t) -> $t { self * y }
            fn div(self, y: $t) -> $t { self / y }
            fn rem(self, y: $t) -> $t { self % y }
            fn sqrt(self) -> $t { $t::sqrt(self) }
            fn fma(self, y: $t, z: $t) -> $t { self.mul_add(y, z) }
            fn neg(self) -> $t { -self }
            fn abs(self) -> $t { $t::abs(self) }
            fn ceil(self) -> $t { $t::ceil(self) }
            fn floor(self) -> $t { $t::floor(self) }
            fn round(self) -> $t { $t::round(self) }
            fn round_ties_even(self) -> $t { $t::round_ties_even(self) }
            fn is_finite(self) -> bool { $t::is_finite(self) }
            fn max(self, y: $t) -> $t { if self.is_nan() || self >= y { self } else { y } }
            fn min(self, y: $t) -> $t { if self.is_nan() || self <= y { self } else { y } }
            fn reduce(self, exponent_bits: u32, mantissa_bits: u32) -> $t {
                let mut bits = self.to_bits();
                let sign = bits & (1 << ($e + $m));
                let infinity = $t::INFINITY.to_bits();
                if self.is_nan() {
                    return if mantissa_bits > 0 { self } else { $t::from_bits(sign | infinity) };
                }
                if mantissa_bits < $m {
                    let dropped = $m - mantissa_bits;
                    let last = (bits >> dropped) & 1;
                    bits += (1 << (dropped - 1)) - 1 + last;
                    bits &= !((1 << dropped) - 1);
                }
                if exponent_bits < $e {
                    let bias: $bits = (1 << ($e - 1)) - 1;
                    let reduced: $bits = (1 << (exponent_bits.max(1) - 1)) - 1;
                    let field = bits & infinity;
                    if field > (bias + reduced) << $m { return $t::from_bits(sign | infinity); }
                    if field <= (bias - reduced) << $m { return $t::from_bits(sign); }
                }
                $t::from_bits(bits)
            }
        }
    )*};
}
reals! { f32 u32 8 23; f64 u64 11 52; }

/// `value` with fewer exponent and mantissa bits, as `reduce-precision` does it; what becomes subnormal becomes 0.
pub fn reduce_precision(value: f32, exponent_bits: u32, mantissa_bits: u32) -> f32 {
    value.reduce(exponent_bits, mantissa_bits)
}

/// The op on f32 or f64.
pub(super) fn eval(op: ScalarOp, args: &[&Tensor], dims: Vec<u64>) -> Result<Tensor> {
    if args[0].dtype == DType::F32 { typed::<f32>(op, args, dims) } else { typed::<f64>(op, args, dims) }
}

fn logistic(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

fn typed<T: Real>(op: ScalarOp, args: &[&Tensor], dims: Vec<u64>) -> Result<Tensor> {
    let dtype = args[0].dtype;
    let (a, b) = (args[0], args[args.len() - 1]);
    let via = |f: fn(f64) -> f64| map1(a, |x: T| x.via(f));
    let out: Vec<T> = match op {
        ScalarOp::Abs => map1(a, T::abs),
        ScalarOp::Negate => map1(a, T::neg),
        ScalarOp::Sign => via(|x| if x.is_nan() || x == 0.0 { x } else { x.signum() }),
        ScalarOp::Ceil => map1(a, T::ceil),
        ScalarOp::Floor => map1(a, T::floor),
        ScalarOp::RoundNearestAfz => map1(a, T::round),
        ScalarOp::RoundNearestEven => map1(a, T::round_ties_even),
        ScalarOp::Exp => via(f64::exp),
        ScalarOp::Expm1 => via(f64::exp_m1),
        ScalarOp::Log => via(f64::ln),
        ScalarOp::Log1p => via(f64::ln_1p),
        ScalarOp::Logistic => via(logistic),
        ScalarOp::Sqrt => map1(a, T::sqrt),
        ScalarOp::Rsqrt => via(|x| 1.0 / x.sqrt()),
        ScalarOp::Cbrt => via(f64::cbrt),
        ScalarOp::Tanh => via(f64::tanh),
        ScalarOp::Sin => via(f64::sin),
        ScalarOp::Cos => via(f64::cos),
        ScalarOp::Tan => via(f64::tan),
        ScalarOp::Erf => via(libm::erf),
        ScalarOp::Real => return Ok(a.clone()),
        ScalarOp::Imag => via(|_| 0.0),
        ScalarOp::IsFinite => {
            let out: Vec<u8> = map1(a, |x: T| x.is_finite() as u8);
            return Ok(Tensor::from_vec(DType::Pred, dims, out));
        }
        ScalarOp::ReducePrecision { exponent_bits, mantissa_bits } => {
            map1(a, |x: T| x.reduce(exponent_bits, mantissa_bits))
        }
        ScalarOp::Add => map2(a, b, T::add),
        ScalarOp::Subtract => map2(a, b, T::sub),
        ScalarOp::Multiply => map2(a, b, T::mul),
        ScalarOp::Divide => map2(a, b, T::div),
        ScalarOp::Remainder => map2(a, b, T::rem),
        ScalarOp::Maximum => map2(a, b, T::max),
        ScalarOp::Minimum => map2(a, b, T::min),
        ScalarOp::Power => map2(a, b, |x: T, y: T| x.via2(y, f64::powf)),
        ScalarOp::Atan2 => map2(a, b, |x: T, y: T| x.via2(y, f64::atan2)),
        ScalarOp::Complex => return Ok(super::complex::join(a, b, dims)),
        ScalarOp::Fma => return Ok(fma::<T>(args, dims)),
        _ => return Err(no_meaning(op, dtype)),
    };
    Ok(Tensor::from_vec(dtype, dims, out))
}

fn fma<T: Real>(args: &[&Tensor], dims: Vec<u64>) -> Tensor {
    let views: Vec<_> = args.iter().map(|t| t.view::<T>()).collect();
    let at = |k: usize, i: usize| if views[k].len() == 1 { views[k][0] } else { views[k][i] };
    let count = dims.iter().product::<u64>() as usize;
    let out: Vec<T> = (0..count).map(|i| at(0, i).fma(at(1, i), at(2, i))).collect();
    Tensor::from_vec(args[0].dtype, dims, out)
}
