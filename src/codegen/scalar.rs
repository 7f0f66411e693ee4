//! Each scalar op as LLVM text, on scalars and on vectors: what all types share, then one file a family of types.
use super::arith::{binary_instruction, constant_bits, fcmp, icmp, reinterpret, select};
use super::function::FunctionEmitter;
use super::value::Val;
use super::{complex, convert, float, integer, small_float};
use crate::diag::{Code, Error, Result};
use crate::scalar::small_float::{is_ieee, is_sign_bit_alone};
use crate::scalar::{CompareKind, Direction, ScalarOp};
use crate::tensor::{DType, DTypeClass};

/// Emits a scalar op on values with equally many lanes.
///
/// Floats of fewer than 32 bits are computed in f32 and rounded after each op, as TensorFlow's CPU kernels do, except for ops that only
/// change the sign bit. Errors: `Code::HloUnsupported` if the op is not defined on the type.
pub fn emit(f: &mut FunctionEmitter, op: ScalarOp, args: &[Val]) -> Result<Val> {
    if args.len() != op.arity() {
        return Err(Error::internal("codegen", format!("{} has {} operands", op.name(), args.len())));
    }
    match (op, args) {
        (ScalarOp::Select, [cond, x, y]) => return Ok(select(f, cond, x, y)),
        (ScalarOp::Convert(to), [x]) => return Ok(convert::convert(f, x, to)),
        (ScalarOp::BitcastConvert(to), [x]) => return bitcast(f, x, to),
        (ScalarOp::Compare(direction, kind), [x, y]) => return compare(f, direction, kind, x, y),
        (ScalarOp::Clamp, [low, x, high]) => {
            let up = emit(f, ScalarOp::Maximum, &[x.clone(), low.clone()])?;
            return emit(f, ScalarOp::Minimum, &[up, high.clone()]);
        }
        _ => {}
    }
    let from = args[0].dtype;
    match from.class() {
        DTypeClass::Pred | DTypeClass::Signed | DTypeClass::Unsigned => integer::emit(f, op, args),
        DTypeClass::Complex => complex::emit(f, op, args),
        DTypeClass::Float if from.compute_type() == from => float::emit(f, op, args),
        DTypeClass::Float if is_sign_bit_alone(op, from) => Ok(small_float::apply_to_sign_bit(f, op, &args[0])),
        DTypeClass::Float => {
            let wide: Vec<Val> = args.iter().map(|x| convert::convert(f, x, DType::F32)).collect();
            let out = float::emit(f, op, &wide)?;
            Ok(if out.dtype == DType::F32 { convert::convert(f, &out, from) } else { out })
        }
    }
}

fn compare(f: &mut FunctionEmitter, direction: Direction, kind: CompareKind, x: &Val, y: &Val) -> Result<Val> {
    match x.dtype.class() {
        DTypeClass::Complex => return complex::compare(f, direction, kind, x, y),
        DTypeClass::Float if kind == CompareKind::Total && is_ieee(x.dtype) => {
            let (x, y) = (total(f, x), total(f, y));
            return Ok(relation(f, direction, &x, &y));
        }
        DTypeClass::Float => {
            let t = x.dtype.compute_type();
            let (x, y) = (convert::convert(f, x, t), convert::convert(f, y, t));
            if kind == CompareKind::Partial {
                let relation = match direction {
                    Direction::Eq => "oeq",
                    Direction::Ne => "une",
                    Direction::Ge => "oge",
                    Direction::Gt => "ogt",
                    Direction::Le => "ole",
                    Direction::Lt => "olt",
                };
                return Ok(fcmp(f, relation, &x, &y));
            }
            let (x, y) = (total(f, &x), total(f, &y));
            return Ok(relation(f, direction, &x, &y));
        }
        DTypeClass::Pred | DTypeClass::Signed | DTypeClass::Unsigned => {}
    }
    Ok(relation(f, direction, x, y))
}

/// Emits a comparison of integers or booleans.
fn relation(f: &mut FunctionEmitter, direction: Direction, x: &Val, y: &Val) -> Val {
    let s = if x.dtype.is_signed() { "s" } else { "u" };
    let relation = match direction {
        Direction::Eq => "eq".to_string(),
        Direction::Ne => "ne".to_string(),
        Direction::Ge => format!("{s}ge"),
        Direction::Gt => format!("{s}gt"),
        Direction::Le => format!("{s}le"),
        Direction::Lt => format!("{s}lt"),
    };
    icmp(f, &relation, x, y)
}

/// Emits a signed integer with the float's total order: the magnitude bits of negative numbers are flipped.
fn total(f: &mut FunctionEmitter, x: &Val) -> Val {
    let int = match x.dtype.bytes() {
        1 => DType::S8,
        2 => DType::S16,
        4 => DType::S32,
        _ => DType::S64,
    };
    let word = reinterpret(f, x, int);
    let signs = binary_instruction(f, "ashr", &word, &constant_bits(&word, u64::from(int.bits()) - 1));
    let mask = binary_instruction(f, "lshr", &signs, &constant_bits(&word, 1));
    binary_instruction(f, "xor", &word, &mask)
}

/// Emits `bitcast-convert`: complex types only convert to complex types, and `pred` is a byte.
fn bitcast(f: &mut FunctionEmitter, x: &Val, to: DType) -> Result<Val> {
    let fits = x.dtype.bits() == to.bits() && x.dtype.is_complex() == to.is_complex();
    if !fits {
        return Err(Error::user(Code::HloUnsupported, format!("native code has no bitcast of {} to {to}", x.dtype)));
    }
    Ok(match (x.dtype == DType::Pred, to == DType::Pred) {
        (true, false) => {
            let byte = convert::convert(f, x, DType::U8);
            reinterpret(f, &byte, to)
        }
        (false, true) => {
            let byte = reinterpret(f, x, DType::U8);
            convert::convert(f, &byte, to)
        }
        _ => reinterpret(f, x, to),
    })
}
