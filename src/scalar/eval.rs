//! The reference of every [`ScalarOp`]: whole arrays at once, operands of one element broadcast.
//!
//! Floats below 32 bits are computed in f32 and rounded; transcendental functions of f32 in f64 and rounded, so they are
//! within half an ulp and a little. Complex numbers are computed in c128.
mod complex;
mod convert;
mod float;
mod int;

use bytemuck::Pod;

use super::{CompareKind, Direction, ScalarOp, small_float};
use crate::diag::{Error, Result};
use crate::tensor::{DType, DTypeClass, Tensor};

pub use complex::{tensor as complex_tensor, values as complex_values};
pub use convert::convert;
pub use float::{Real, reduce_precision};
pub use int::WrappingInt;

/// The op applied point by point.
///
/// Shapes: operands agree, but those of one element repeat; the result has the sizes of the operand of highest rank.
///
/// # Errors
/// Internal, where number, sizes or types of operands do not fit (the verifier's rules).
pub fn eval(op: ScalarOp, args: &[&Tensor]) -> Result<Tensor> {
    let dims = check(op, args)?;
    let last = args[args.len() - 1];
    match op {
        ScalarOp::Select => Ok(select(args[0], args[1], args[2], dims)),
        ScalarOp::Clamp => {
            let low = eval(ScalarOp::Maximum, &[args[1], args[0]])?;
            let out = eval(ScalarOp::Minimum, &[&low, args[2]])?;
            Ok(out.with_dims(dims))
        }
        ScalarOp::Convert(to) => Ok(convert(last, to)),
        ScalarOp::BitcastConvert(to) => bitcast(last, to),
        ScalarOp::Compare(direction, kind) => compare(direction, kind, args[0], args[1], dims),
        _ => with_copies_by_class(op, args, dims),
    }
}

/// Checks the frame, and gives the sizes of the result.
fn check(op: ScalarOp, args: &[&Tensor]) -> Result<Vec<u64>> {
    let bad = |why: String| Err(Error::internal("scalar eval", format!("{}: {why}", op.name())));
    if args.len() != op.arity() {
        return bad(format!("{} operands", args.len()));
    }
    let Some(main) = args.iter().max_by_key(|t| (t.dims.len(), t.len() != 1)) else {
        return bad("no operand".to_string());
    };
    if let Some(odd) = args.iter().find(|t| t.len() != main.len() && t.len() != 1) {
        return bad(format!("{odd:?} beside {main:?}"));
    }
    let typed = if op == ScalarOp::Select { &args[1..] } else { args };
    if typed.windows(2).any(|w| w[0].dtype != w[1].dtype) {
        return bad(format!("operands of different types: {:?}", args));
    }
    if op == ScalarOp::Select && args[0].dtype != DType::Pred {
        return bad(format!("predicate {:?}", args[0]));
    }
    Ok(main.dims.clone())
}

/// Arithmetic by the family of the operands.
fn with_copies_by_class(op: ScalarOp, args: &[&Tensor], dims: Vec<u64>) -> Result<Tensor> {
    let dtype = args[0].dtype;
    match dtype.class() {
        DTypeClass::Pred => int::eval_pred(op, args, dims),
        DTypeClass::Signed | DTypeClass::Unsigned => int::eval(op, args, dims),
        DTypeClass::Complex => complex::eval(op, args, dims),
        DTypeClass::Float if matches!(dtype, DType::F32 | DType::F64) => float::eval(op, args, dims),
        DTypeClass::Float if small_float::is_sign_bit_alone(op, dtype) => Ok(sign_bit(op, args[0], dims)),
        DTypeClass::Float => {
            let wide: Vec<Tensor> = args.iter().map(|t| convert(t, DType::F32)).collect();
            let out = float::eval(op, &wide.iter().collect::<Vec<_>>(), dims)?;
            Ok(if out.dtype == DType::F32 { convert(&out, dtype) } else { out })
        }
    }
}

/// `negate` or `abs` of floats below 32 bits by their sign bits.
fn sign_bit(op: ScalarOp, x: &Tensor, dims: Vec<u64>) -> Tensor {
    let mut bytes = x.bytes.to_vec();
    let width = x.dtype.bytes();
    for last in bytes.iter_mut().skip(width - 1).step_by(width) {
        *last = if op == ScalarOp::Negate { *last ^ 0x80 } else { *last & 0x7f };
    }
    Tensor::new(x.dtype, dims, bytes)
}

/// "This op has no meaning on this type."
fn no_meaning(op: ScalarOp, dtype: DType) -> Error {
    Error::user(crate::diag::Code::HloInvalid, format!("`{}` has no meaning on {dtype}", op.name()))
}

/// `f` of each element.
fn map1<T: Pod, R>(a: &Tensor, f: impl Fn(T) -> R) -> Vec<R> {
    a.view::<T>().iter().map(|&x| f(x)).collect()
}

/// `f` of each pair of elements; an operand of one element repeats.
fn map2<T: Pod, R>(a: &Tensor, b: &Tensor, f: impl Fn(T, T) -> R) -> Vec<R> {
    let (a, b) = (a.view::<T>(), b.view::<T>());
    match (a.len(), b.len()) {
        (1, n) if n != 1 => {
            let x = a[0];
            b.iter().map(|&y| f(x, y)).collect()
        }
        (n, 1) if n != 1 => {
            let y = b[0];
            a.iter().map(|&x| f(x, y)).collect()
        }
        _ => a.iter().zip(b.iter()).map(|(&x, &y)| f(x, y)).collect(),
    }
}

/// Runs `$body` with `$T` an unsigned type as wide as an element of `$dtype`.
#[macro_export]
macro_rules! by_width {
    ($dtype:expr, $T:ident => $body:expr) => {
        match $dtype.bytes() {
            1 => {
                type $T = u8;
                $body
            }
            2 => {
                type $T = u16;
                $body
            }
            4 => {
                type $T = u32;
                $body
            }
            8 => {
                type $T = u64;
                $body
            }
            _ => {
                type $T = u128;
                $body
            }
        }
    };
}

fn select(pred: &Tensor, on_true: &Tensor, on_false: &Tensor, dims: Vec<u64>) -> Tensor {
    let count = dims.iter().product::<u64>() as usize;
    let wanted = if pred.len() == 1 && pred.bytes[0] != 0 { on_true } else { on_false };
    if pred.len() == 1 && wanted.len() == count {
        return wanted.with_dims(dims);
    }
    by_width!(on_true.dtype, T => {
        let (t, f) = (on_true.view::<T>(), on_false.view::<T>());
        let at = |v: &[T], i: usize| if v.len() == 1 { v[0] } else { v[i] };
        let out: Vec<T> = if t.len() == count && f.len() == count && pred.len() == count {
            pred.bytes.iter().zip(t.iter().zip(f.iter())).map(|(&p, (&t, &f))| if p != 0 { t } else { f }).collect()
        } else {
            (0..count).map(|i| if at_byte(pred, i) { at(&t, i) } else { at(&f, i) }).collect()
        };
        Tensor::from_vec(on_true.dtype, dims, out)
    })
}

fn at_byte(pred: &Tensor, i: usize) -> bool {
    pred.bytes[if pred.len() == 1 { 0 } else { i }] != 0
}

fn bitcast(x: &Tensor, to: DType) -> Result<Tensor> {
    if x.dtype.bytes() != to.bytes() {
        return Err(Error::internal("scalar eval", format!("bitcast-convert of {:?} to {to}", x)));
    }
    let out = Tensor::new(to, x.dims.clone(), x.bytes.clone());
    Ok(match to {
        DType::Pred => truth(&out),
        _ if to.bits() < 8 => int::wrap_stored(&out),
        _ => out,
    })
}

/// Bytes as truth values, which are 0 and 1: true where a byte is not 0.
pub fn truth(bytes: &Tensor) -> Tensor {
    let out: Vec<u8> = bytes.bytes.iter().map(|&b| u8::from(b != 0)).collect();
    Tensor::new(DType::Pred, bytes.dims.clone(), out)
}

fn relation<T: Pod + PartialOrd>(direction: Direction, a: &Tensor, b: &Tensor) -> Vec<u8> {
    match direction {
        Direction::Eq => map2(a, b, |x: T, y| (x == y) as u8),
        Direction::Ne => map2(a, b, |x: T, y| (x != y) as u8),
        Direction::Ge => map2(a, b, |x: T, y| (x >= y) as u8),
        Direction::Gt => map2(a, b, |x: T, y| (x > y) as u8),
        Direction::Le => map2(a, b, |x: T, y| (x <= y) as u8),
        Direction::Lt => map2(a, b, |x: T, y| (x < y) as u8),
    }
}

/// Integers whose order is the total order of these floats.
pub fn total_keys(x: &Tensor) -> Tensor {
    let dims = x.dims.clone();
    match x.dtype {
        DType::F64 => Tensor::from_vec(DType::S64, dims, map1(x, total_key64)),
        DType::F32 => Tensor::from_vec(DType::S32, dims, map1(x, |v: f32| total_key(v.to_bits() as i32))),
        small if small_float::is_ieee(small) && small.bytes() == 2 => {
            Tensor::from_vec(DType::S32, dims, map1(x, |v: i16| total_key(v.into())))
        }
        small if small_float::is_ieee(small) => {
            Tensor::from_vec(DType::S32, dims, map1(x, |v: i8| total_key(v.into())))
        }
        _ => total_keys(&convert(x, DType::F32)),
    }
}

/// The place in the total order of the float of this code, whose sign is extended.
fn total_key(code: i32) -> i32 {
    code ^ (((code >> 31) as u32) >> 1) as i32
}

/// The place of a double in IEEE total order.
pub fn total_key64(x: f64) -> i64 {
    let bits = x.to_bits() as i64;
    bits ^ (((bits >> 63) as u64) >> 1) as i64
}

fn compare(direction: Direction, kind: CompareKind, a: &Tensor, b: &Tensor, dims: Vec<u64>) -> Result<Tensor> {
    if kind == CompareKind::Total && a.dtype.is_float() {
        return compare(direction, CompareKind::Partial, &total_keys(a), &total_keys(b), dims);
    }
    let out = match a.dtype {
        DType::Pred | DType::U1 | DType::U2 | DType::U4 | DType::U8 => relation::<u8>(direction, a, b),
        DType::S1 | DType::S2 | DType::S4 | DType::S8 => relation::<i8>(direction, a, b),
        DType::S16 => relation::<i16>(direction, a, b),
        DType::S32 => relation::<i32>(direction, a, b),
        DType::S64 => relation::<i64>(direction, a, b),
        DType::U16 => relation::<u16>(direction, a, b),
        DType::U32 => relation::<u32>(direction, a, b),
        DType::U64 => relation::<u64>(direction, a, b),
        DType::F32 => relation::<f32>(direction, a, b),
        DType::F64 => relation::<f64>(direction, a, b),
        DType::C64 | DType::C128 => return complex::compare(direction, a, b, dims),
        DType::F16
        | DType::BF16
        | DType::F8E5M2
        | DType::F8E4M3FN
        | DType::F8E4M3B11FNUZ
        | DType::F8E5M2FNUZ
        | DType::F8E4M3FNUZ
        | DType::F8E4M3
        | DType::F8E3M4
        | DType::F8E8M0FNU
        | DType::F4E2M1FN => {
            return compare(direction, kind, &convert(a, DType::F32), &convert(b, DType::F32), dims);
        }
    };
    Ok(Tensor::from_vec(DType::Pred, dims, out))
}
