//! `convert`: every type to every type.
use bytemuck::Pod;
use half::{bf16, f16};

use super::complex;
use super::int::WrappingInt as _;
use super::map1;
use crate::scalar::small_float;
use crate::tensor::{DType, DTypeClass, Tensor};

/// The elements as another type: float to integer truncates and saturates, NaN gives 0; integers wrap; to `pred` is
/// `x != 0`; complex to real takes the real part.
pub fn convert(x: &Tensor, to: DType) -> Tensor {
    if x.dtype == to {
        return x.clone();
    }
    if to.is_complex() {
        return complex::tensor(to, x.dims.clone(), complex::values(x));
    }
    match x.dtype {
        DType::C64 | DType::C128 if to == DType::Pred => {
            let out: Vec<u8> = complex::values(x).iter().map(|v| (v.re != 0.0 || v.im != 0.0) as u8).collect();
            Tensor::from_vec(to, x.dims.clone(), out)
        }
        DType::C64 => {
            let re: Vec<f32> = map1(x, |v: num_complex::Complex<f32>| v.re);
            convert(&Tensor::from_vec(DType::F32, x.dims.clone(), re), to)
        }
        DType::C128 => {
            let re: Vec<f64> = map1(x, |v: num_complex::Complex<f64>| v.re);
            convert(&Tensor::from_vec(DType::F64, x.dims.clone(), re), to)
        }
        DType::Pred | DType::U1 | DType::U2 | DType::U4 | DType::U8 => from::<u8>(x, to),
        DType::S1 | DType::S2 | DType::S4 | DType::S8 => from::<i8>(x, to),
        DType::S16 => from::<i16>(x, to),
        DType::S32 => from::<i32>(x, to),
        DType::S64 => from::<i64>(x, to),
        DType::U16 => from::<u16>(x, to),
        DType::U32 => from::<u32>(x, to),
        DType::U64 => from::<u64>(x, to),
        DType::F32 => from::<f32>(x, to),
        DType::F64 => from::<f64>(x, to),
        DType::F16 => widened(x, map1(x, |v: f16| v.to_f32()), to),
        DType::BF16 => widened(x, map1(x, |v: bf16| v.to_f32()), to),
        small => {
            let table: Vec<f32> = (0..=255u8).map(|code| small_float::decode(small, code) as f32).collect();
            widened(x, map1(x, |v: u8| table[v as usize]), to)
        }
    }
}

fn widened(x: &Tensor, values: Vec<f32>, to: DType) -> Tensor {
    convert(&Tensor::from_vec(DType::F32, x.dims.clone(), values), to)
}

/// A stored number that Rust's `as` converts.
trait Number: Pod {
    fn i8(self) -> i8;
    fn i16(self) -> i16;
    fn i32(self) -> i32;
    fn i64(self) -> i64;
    fn u8(self) -> u8;
    fn u16(self) -> u16;
    fn u32(self) -> u32;
    fn u64(self) -> u64;
    fn f32(self) -> f32;
    fn f64(self) -> f64;
    fn is_true(self) -> bool;
    fn bf16(self) -> bf16;
    fn f16(self) -> f16;
}

macro_rules! numbers {
    ($($t:ident $zero:literal $half:ident $wide:ident;)*) => {$(
        impl Number for $t {
            fn i8(self) -> i8 { self as i8 }
            fn i16(self) -> i16 { self as i16 }
            fn i32(self) -> i32 { self as i32 }
            fn i64(self) -> i64 { self as i64 }
            fn u8(self) -> u8 { self as u8 }
            fn u16(self) -> u16 { self as u16 }
            fn u32(self) -> u32 { self as u32 }
            fn u64(self) -> u64 { self as u64 }
            fn f32(self) -> f32 { self as f32 }
            fn f64(self) -> f64 { self as f64 }
            fn is_true(self) -> bool { self != $zero }
            fn bf16(self) -> bf16 { bf16::$half(self as $wide) }
            fn f16(self) -> f16 { f16::$half(self as $wide) }
        }
    )*};
}
numbers! {
    i8 0 from_f32 f32; i16 0 from_f32 f32; i32 0 from_f64 f64; i64 0 from_f64 f64;
    u8 0 from_f32 f32; u16 0 from_f32 f32; u32 0 from_f64 f64; u64 0 from_f64 f64;
    f32 0.0 from_f32 f32; f64 0.0 from_f64 f64;
}

fn from<T: Number>(x: &Tensor, to: DType) -> Tensor {
    let dims = x.dims.clone();
    let from_float = x.dtype.class() == DTypeClass::Float;
    match to {
        DType::Pred => Tensor::from_vec(to, dims, map1(x, |v: T| v.is_true() as u8)),
        DType::S1 | DType::S2 | DType::S4 => {
            let bits = to.bits();
            let top = (1i64 << (bits - 1)) - 1;
            let narrow =
                |v: T| if from_float { v.i64().clamp(-top - 1, top) as i8 } else { (v.i64() as i8).wrap(bits) };
            Tensor::from_vec(to, dims, map1(x, narrow))
        }
        DType::U1 | DType::U2 | DType::U4 => {
            let bits = to.bits();
            let top = (1i64 << bits) - 1;
            let narrow = |v: T| if from_float { v.i64().clamp(0, top) as u8 } else { (v.i64() as u8).wrap(bits) };
            Tensor::from_vec(to, dims, map1(x, narrow))
        }
        DType::S8 => Tensor::from_vec(to, dims, map1(x, T::i8)),
        DType::S16 => Tensor::from_vec(to, dims, map1(x, T::i16)),
        DType::S32 => Tensor::from_vec(to, dims, map1(x, T::i32)),
        DType::S64 => Tensor::from_vec(to, dims, map1(x, T::i64)),
        DType::U8 => Tensor::from_vec(to, dims, map1(x, T::u8)),
        DType::U16 => Tensor::from_vec(to, dims, map1(x, T::u16)),
        DType::U32 => Tensor::from_vec(to, dims, map1(x, T::u32)),
        DType::U64 => Tensor::from_vec(to, dims, map1(x, T::u64)),
        DType::F32 => Tensor::from_vec(to, dims, map1(x, T::f32)),
        DType::F64 => Tensor::from_vec(to, dims, map1(x, T::f64)),
        DType::F16 => Tensor::from_vec(to, dims, map1(x, T::f16)),
        DType::BF16 => Tensor::from_vec(to, dims, map1(x, T::bf16)),
        DType::C64 | DType::C128 => complex::tensor(to, dims, complex::values(x)),
        DType::F8E5M2
        | DType::F8E4M3FN
        | DType::F8E4M3B11FNUZ
        | DType::F8E5M2FNUZ
        | DType::F8E4M3FNUZ
        | DType::F8E4M3
        | DType::F8E3M4
        | DType::F8E8M0FNU
        | DType::F4E2M1FN => Tensor::from_vec(to, dims, map1(x, |v: T| small_float::encode(to, v.f64()))),
    }
}
