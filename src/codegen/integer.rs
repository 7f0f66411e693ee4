//! Scalar ops on integers of all widths and on truth values.
use super::arith::{
    all_bits_set, binary_instruction, call_intrinsic, constant_bits, icmp, intrinsic_suffix, select, undefined_op_error,
};
use super::function::FunctionEmitter;
use super::value::Val;
use crate::diag::Result;
use crate::scalar::ScalarOp;
use crate::tensor::DType;

/// Emits `op` on integers or `pred`; [`ScalarOp`] defines division by zero, wide shifts and the like.
pub fn emit(f: &mut FunctionEmitter, op: ScalarOp, args: &[Val]) -> Result<Val> {
    let x = &args[0];
    if x.dtype == DType::Pred {
        return truth(f, op, args);
    }
    Ok(match (op, args) {
        (ScalarOp::Add, [_, y]) => binary_instruction(f, "add", x, y),
        (ScalarOp::Subtract, [_, y]) => binary_instruction(f, "sub", x, y),
        (ScalarOp::Multiply, [_, y]) => binary_instruction(f, "mul", x, y),
        (ScalarOp::And, [_, y]) => binary_instruction(f, "and", x, y),
        (ScalarOp::Or, [_, y]) => binary_instruction(f, "or", x, y),
        (ScalarOp::Xor, [_, y]) => binary_instruction(f, "xor", x, y),
        (ScalarOp::Divide, [_, y]) => divide(f, x, y),
        (ScalarOp::Remainder, [_, y]) => remainder(f, x, y),
        (ScalarOp::Maximum, [_, y]) => extreme(f, x, y, "gt"),
        (ScalarOp::Minimum, [_, y]) => extreme(f, x, y, "lt"),
        (ScalarOp::Power, [_, y]) => power(f, x, y),
        (ScalarOp::ShiftLeft, [_, y]) => shift(f, "shl", x, y),
        (ScalarOp::ShiftRightLogical, [_, y]) => shift(f, "lshr", x, y),
        (ScalarOp::ShiftRightArithmetic, [_, y]) => shift(f, "ashr", x, y),
        (ScalarOp::Fma, [_, y, z]) => {
            let product = binary_instruction(f, "mul", x, y);
            binary_instruction(f, "add", &product, z)
        }
        (ScalarOp::Abs, _) if x.dtype.is_signed() => flagged(f, "abs", x),
        (ScalarOp::Abs | ScalarOp::Real, _) => x.clone(),
        (ScalarOp::Negate, _) => binary_instruction(f, "sub", &constant_bits(x, 0), x),
        (ScalarOp::Not, _) => binary_instruction(f, "xor", x, &all_bits_set(x)),
        (ScalarOp::Sign, _) => sign(f, x),
        (ScalarOp::Popcnt, _) => call_intrinsic(f, "ctpop", &[x]),
        (ScalarOp::CountLeadingZeros, _) => flagged(f, "ctlz", x),
        _ => return Err(undefined_op_error(op, x.dtype)),
    })
}

fn truth(f: &mut FunctionEmitter, op: ScalarOp, args: &[Val]) -> Result<Val> {
    let x = &args[0];
    Ok(match (op, args) {
        (ScalarOp::Add | ScalarOp::Or | ScalarOp::Maximum, [_, y]) => binary_instruction(f, "or", x, y),
        (ScalarOp::Multiply | ScalarOp::And | ScalarOp::Minimum, [_, y]) => binary_instruction(f, "and", x, y),
        (ScalarOp::Xor | ScalarOp::Subtract, [_, y]) => binary_instruction(f, "xor", x, y),
        (ScalarOp::Fma, [_, y, z]) => {
            let product = binary_instruction(f, "and", x, y);
            binary_instruction(f, "or", &product, z)
        }
        (ScalarOp::Not, _) => binary_instruction(f, "xor", x, &all_bits_set(x)),
        (ScalarOp::Abs | ScalarOp::Real | ScalarOp::Sign | ScalarOp::Popcnt, _) => x.clone(),
        _ => return Err(undefined_op_error(op, x.dtype)),
    })
}

/// Emits an intrinsic that has a flag for undefined results, such as `ctlz` of 0, with the flag off.
fn flagged(f: &mut FunctionEmitter, name: &str, x: &Val) -> Val {
    let ty = x.ty();
    f.push_instruction(
        &format!("call {ty} @llvm.{name}.{}({ty} {}, i1 false)", intrinsic_suffix(x), x.text),
        x.dtype,
        x.lanes,
    )
}

/// Replaces divisors that trap by 1; returns the new divisor, the condition that it was 0 and, for signed integers, that it was -1.
fn safe_divisor(f: &mut FunctionEmitter, y: &Val) -> (Val, Val, Option<Val>) {
    let by_zero = icmp(f, "eq", y, &constant_bits(y, 0));
    if !y.dtype.is_signed() {
        return (select(f, &by_zero, &constant_bits(y, 1), y), by_zero, None);
    }
    let by_minus = icmp(f, "eq", y, &all_bits_set(y));
    let odd = binary_instruction(f, "or", &by_zero, &by_minus);
    (select(f, &odd, &constant_bits(y, 1), y), by_zero, Some(by_minus))
}

fn divide(f: &mut FunctionEmitter, x: &Val, y: &Val) -> Val {
    let (safe, by_zero, by_minus) = safe_divisor(f, y);
    let mut q = binary_instruction(f, if x.dtype.is_signed() { "sdiv" } else { "udiv" }, x, &safe);
    if let Some(by_minus) = by_minus {
        let negated = binary_instruction(f, "sub", &constant_bits(x, 0), x);
        q = select(f, &by_minus, &negated, &q);
    }
    select(f, &by_zero, &all_bits_set(x), &q)
}

fn remainder(f: &mut FunctionEmitter, x: &Val, y: &Val) -> Val {
    let (safe, by_zero, _) = safe_divisor(f, y);
    let r = binary_instruction(f, if x.dtype.is_signed() { "srem" } else { "urem" }, x, &safe);
    select(f, &by_zero, x, &r)
}

fn shift(f: &mut FunctionEmitter, name: &str, x: &Val, by: &Val) -> Val {
    // The width itself may be no number of the type (2 as s2): the last possible amount is.
    let last = constant_bits(x, u64::from(x.dtype.bits() - 1));
    let fits = icmp(f, "ule", by, &last);
    let amount = select(f, &fits, by, &last);
    let shifted = binary_instruction(f, name, x, &amount);
    if name == "ashr" { shifted } else { select(f, &fits, &shifted, &constant_bits(x, 0)) }
}

fn extreme(f: &mut FunctionEmitter, x: &Val, y: &Val, relation: &str) -> Val {
    let wins = icmp(f, &format!("{}{relation}", if x.dtype.is_signed() { "s" } else { "u" }), x, y);
    select(f, &wins, x, y)
}

fn sign(f: &mut FunctionEmitter, x: &Val) -> Val {
    let nothing = icmp(f, "eq", x, &constant_bits(x, 0));
    let unit = if x.dtype.is_signed() {
        let below = icmp(f, "slt", x, &constant_bits(x, 0));
        select(f, &below, &all_bits_set(x), &constant_bits(x, 1))
    } else {
        constant_bits(x, 1)
    };
    select(f, &nothing, &constant_bits(x, 0), &unit)
}

/// Emits an integer power by repeated squaring over all bits of the exponent; with a negative exponent the result is 1 for base 1, ±1 for
/// -1, else 0.
fn power(f: &mut FunctionEmitter, x: &Val, y: &Val) -> Val {
    let (zero, one) = (constant_bits(x, 0), constant_bits(x, 1));
    let (mut out, mut square) = (one.clone(), x.clone());
    let last = x.dtype.bits() - u32::from(x.dtype.is_signed());
    for i in 0..last {
        let bit = binary_instruction(f, "and", y, &constant_bits(y, 1 << i));
        let set = icmp(f, "ne", &bit, &zero);
        let product = binary_instruction(f, "mul", &out, &square);
        out = select(f, &set, &product, &out);
        if i + 1 < last {
            square = binary_instruction(f, "mul", &square, &square);
        }
    }
    if !x.dtype.is_signed() {
        return out;
    }
    let odd = binary_instruction(f, "and", y, &one);
    let odd = icmp(f, "ne", &odd, &zero);
    let alternating = select(f, &odd, &all_bits_set(x), &one);
    let (is_one, is_minus) = (icmp(f, "eq", x, &one), icmp(f, "eq", x, &all_bits_set(x)));
    let inverse = select(f, &is_minus, &alternating, &zero);
    let inverse = select(f, &is_one, &one, &inverse);
    let negative = icmp(f, "slt", y, &zero);
    select(f, &negative, &inverse, &out)
}
