//! Integers and truth values. Types below a byte are computed in a byte and wrapped.
use bytemuck::Pod;

use super::{map1, map2, no_meaning};
use crate::diag::Result;
use crate::scalar::ScalarOp;
use crate::tensor::{DType, Tensor};

/// Two's complement arithmetic of one width; `bits` is the number of bits in use.
pub trait WrappingInt: Pod + Ord + Send {
    /// Sum, wrapping.
    fn add(self, y: Self) -> Self;
    /// Difference, wrapping.
    fn sub(self, y: Self) -> Self;
    /// Product, wrapping.
    fn mul(self, y: Self) -> Self;
    /// Quotient; all ones by 0.
    fn div(self, y: Self) -> Self;
    /// Remainder; the dividend by 0.
    fn rem(self, y: Self) -> Self;
    /// Power, wrapping.
    fn pow(self, y: Self) -> Self;
    /// Magnitude, wrapping.
    fn abs(self) -> Self;
    /// -1, 0, 1.
    fn sign(self) -> Self;
    /// Ones in the lowest `bits`.
    fn popcnt(self, bits: u32) -> Self;
    /// Zeros above the highest one in the lowest `bits`.
    fn clz(self, bits: u32) -> Self;
    /// Left shift, 0 beyond `bits`.
    fn shl(self, y: Self, bits: u32) -> Self;
    /// Right shift with sign.
    fn shra(self, y: Self, bits: u32) -> Self;
    /// Right shift with zeros.
    fn shrl(self, y: Self, bits: u32) -> Self;
    /// Sign-extends or masks to `bits`.
    fn wrap(self, bits: u32) -> Self;
    /// Bitwise and.
    fn and(self, y: Self) -> Self;
    /// Bitwise or.
    fn or(self, y: Self) -> Self;
    /// Bitwise exclusive or.
    fn xor(self, y: Self) -> Self;
    /// Bitwise not.
    fn not(self) -> Self;
    /// 0.
    const ZERO: Self;
}

macro_rules! ints {
    ($($t:ident $u:ident $s:ident $signed:literal;)*) => {$(
        impl WrappingInt for $t {
            const ZERO: $t = 0;
            fn add(self, y: $t) -> $t { self.wrapping_add(y) }
            fn sub(self, y: $t) -> $t { self.wrapping_sub(y) }
            fn mul(self, y: $t) -> $t { self.wrapping_mul(y) }
            fn div(self, y: $t) -> $t { if y == 0 { !0 } else { self.wrapping_div(y) } }
            fn rem(self, y: $t) -> $t { if y == 0 { self } else { self.wrapping_rem(y) } }
            fn pow(self, y: $t) -> $t {
                if $signed && (y as $s) < 0 {
                    return match self as $s { 1 => 1, -1 => if y & 1 == 0 { 1 } else { !0 }, _ => 0 };
                }
                let (mut base, mut exponent, mut out) = (self, y as $u, 1 as $t);
                while exponent != 0 {
                    if exponent & 1 == 1 { out = out.wrapping_mul(base); }
                    base = base.wrapping_mul(base);
                    exponent >>= 1;
                }
                out
            }
            fn abs(self) -> $t { if $signed { (self as $s).wrapping_abs() as $t } else { self } }
            fn sign(self) -> $t { if $signed { (self as $s).signum() as $t } else { (self != 0) as $t } }
            fn popcnt(self, bits: u32) -> $t { (self as $u & ($u::MAX >> ($u::BITS - bits))).count_ones() as $t }
            fn clz(self, bits: u32) -> $t {
                ((self as $u & ($u::MAX >> ($u::BITS - bits))).leading_zeros() - ($u::BITS - bits)) as $t
            }
            fn shl(self, y: $t, bits: u32) -> $t { if (y as $u as u64) < bits as u64 { self << y } else { 0 } }
            fn shra(self, y: $t, bits: u32) -> $t {
                let by = if (y as $u as u64) < bits as u64 { y as u32 } else { bits - 1 };
                if $signed { self >> by } else {
                    let up = $u::BITS - bits;
                    ((((self << up) as $s) >> (by + up)) as $t).wrap(bits)
                }
            }
            fn shrl(self, y: $t, bits: u32) -> $t {
                let low = self as $u & ($u::MAX >> ($u::BITS - bits));
                if (y as $u as u64) < bits as u64 { (low >> y as u32) as $t } else { 0 }
            }
            fn wrap(self, bits: u32) -> $t { let up = $u::BITS - bits; (self << up) >> up }
            fn and(self, y: $t) -> $t { self & y }
            fn or(self, y: $t) -> $t { self | y }
            fn xor(self, y: $t) -> $t { self ^ y }
            fn not(self) -> $t { !self }
        }
    )*};
}
ints! {
    i8 u8 i8 true; i16 u16 i16 true; i32 u32 i32 true; i64 u64 i64 true;
    u8 u8 i8 false; u16 u16 i16 false; u32 u32 i32 false; u64 u64 i64 false;
}

/// The op on integers.
pub(super) fn eval(op: ScalarOp, args: &[&Tensor], dims: Vec<u64>) -> Result<Tensor> {
    let dtype = args[0].dtype;
    match dtype {
        DType::S1 | DType::S2 | DType::S4 | DType::S8 => typed::<i8>(op, args, dims),
        DType::S16 => typed::<i16>(op, args, dims),
        DType::S32 => typed::<i32>(op, args, dims),
        DType::S64 => typed::<i64>(op, args, dims),
        DType::U1 | DType::U2 | DType::U4 | DType::U8 => typed::<u8>(op, args, dims),
        DType::U16 => typed::<u16>(op, args, dims),
        DType::U32 => typed::<u32>(op, args, dims),
        DType::U64 => typed::<u64>(op, args, dims),
        other => Err(no_meaning(op, other)),
    }
}

fn typed<T: WrappingInt>(op: ScalarOp, args: &[&Tensor], dims: Vec<u64>) -> Result<Tensor> {
    let dtype = args[0].dtype;
    let bits = dtype.bits();
    let (a, b) = (args[0], args[args.len() - 1]);
    let out: Vec<T> = match op {
        ScalarOp::Abs => map1(a, T::abs),
        ScalarOp::Negate => map1(a, |x: T| T::ZERO.sub(x)),
        ScalarOp::Sign => map1(a, T::sign),
        ScalarOp::Not => map1(a, T::not),
        ScalarOp::Popcnt => map1(a, |x: T| x.popcnt(bits)),
        ScalarOp::CountLeadingZeros => map1(a, |x: T| x.clz(bits)),
        ScalarOp::Add => map2(a, b, T::add),
        ScalarOp::Subtract => map2(a, b, T::sub),
        ScalarOp::Multiply => map2(a, b, T::mul),
        ScalarOp::Divide => map2(a, b, T::div),
        ScalarOp::Remainder => map2(a, b, T::rem),
        ScalarOp::Maximum => map2(a, b, |x: T, y: T| x.max(y)),
        ScalarOp::Minimum => map2(a, b, |x: T, y: T| x.min(y)),
        ScalarOp::Power => map2(a, b, T::pow),
        ScalarOp::And => map2(a, b, T::and),
        ScalarOp::Or => map2(a, b, T::or),
        ScalarOp::Xor => map2(a, b, T::xor),
        ScalarOp::ShiftLeft => map2(a, b, |x: T, y| x.shl(y, bits)),
        ScalarOp::ShiftRightArithmetic => map2(a, b, |x: T, y| x.shra(y, bits)),
        ScalarOp::ShiftRightLogical => map2(a, b, |x: T, y| x.shrl(y, bits)),
        ScalarOp::Fma => {
            let product: Vec<T> = map2(a, args[1], T::mul);
            let product = Tensor::from_vec(dtype, dims.clone(), product);
            map2(&product, b, T::add)
        }
        ScalarOp::Real => return Ok(a.clone()),
        _ => return Err(no_meaning(op, dtype)),
    };
    let out = Tensor::from_vec(dtype, dims, out);
    Ok(if bits < 8 { wrap_stored(&out) } else { out })
}

/// Elements of a type below a byte with their upper bits made right.
pub(super) fn wrap_stored(x: &Tensor) -> Tensor {
    let bits = x.dtype.bits();
    if x.dtype.is_signed() {
        Tensor::from_vec(x.dtype, x.dims.clone(), map1(x, |v: i8| v.wrap(bits)))
    } else {
        Tensor::from_vec(x.dtype, x.dims.clone(), map1(x, |v: u8| v.wrap(bits)))
    }
}

/// The op on truth values.
pub(super) fn eval_pred(op: ScalarOp, args: &[&Tensor], dims: Vec<u64>) -> Result<Tensor> {
    let (a, b) = (args[0], args[args.len() - 1]);
    let out: Vec<u8> = match op {
        ScalarOp::Not => map1(a, |x: u8| x ^ 1),
        ScalarOp::Add | ScalarOp::Or | ScalarOp::Maximum => map2(a, b, |x: u8, y| x | y),
        ScalarOp::Multiply | ScalarOp::And | ScalarOp::Minimum => map2(a, b, |x: u8, y| x & y),
        ScalarOp::Xor | ScalarOp::Subtract => map2(a, b, |x: u8, y| x ^ y),
        ScalarOp::Abs | ScalarOp::Real | ScalarOp::Sign | ScalarOp::Popcnt => return Ok(a.clone()),
        _ => return Err(no_meaning(op, DType::Pred)),
    };
    Ok(Tensor::from_vec(DType::Pred, dims, out))
}
