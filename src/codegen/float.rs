//! Scalar ops on f32 and f64: what is an instruction or a few of them; functions are in [`super::math`].
use super::arith::{
    binary_instruction, call_intrinsic, constant_bits, fcmp, float_constant, fma, icmp, reinterpret, select,
    undefined_op_error,
};
use super::function::FunctionEmitter;
use super::math;
use super::value::Val;
use crate::diag::Result;
use crate::scalar::ScalarOp;
use crate::tensor::DType;

/// Emits `op` on f32 or f64.
pub fn emit(f: &mut FunctionEmitter, op: ScalarOp, args: &[Val]) -> Result<Val> {
    let x = &args[0];
    Ok(match (op, args) {
        (ScalarOp::Add, [_, y]) => binary_instruction(f, "fadd", x, y),
        (ScalarOp::Subtract, [_, y]) => binary_instruction(f, "fsub", x, y),
        (ScalarOp::Multiply, [_, y]) => binary_instruction(f, "fmul", x, y),
        (ScalarOp::Divide, [_, y]) => binary_instruction(f, "fdiv", x, y),
        (ScalarOp::Remainder, [_, y]) => math::remainder(f, x, y),
        (ScalarOp::Maximum, [_, y]) => extreme(f, x, y, "ogt"),
        (ScalarOp::Minimum, [_, y]) => extreme(f, x, y, "olt"),
        (ScalarOp::Power, [_, y]) => math::power(f, x, y),
        (ScalarOp::Atan2, [_, y]) => math::atan2(f, x, y),
        (ScalarOp::Complex, [_, y]) => f.make_complex(x, y),
        (ScalarOp::Fma, [_, y, z]) => fma(f, x, y, z),
        (ScalarOp::Abs, _) => call_intrinsic(f, "fabs", &[x]),
        (ScalarOp::Negate, _) => f.push_instruction(&format!("fneg {} {}", x.ty(), x.text), x.dtype, x.lanes),
        (ScalarOp::Real, _) => x.clone(),
        (ScalarOp::Imag, _) => float_constant(x, 0.0),
        (ScalarOp::Sign, _) => sign(f, x),
        (ScalarOp::IsFinite, _) => {
            let magnitude = call_intrinsic(f, "fabs", &[x]);
            fcmp(f, "one", &magnitude, &float_constant(x, f64::INFINITY))
        }
        (ScalarOp::Sqrt, _) => call_intrinsic(f, "sqrt", &[x]),
        (ScalarOp::Rsqrt, _) => {
            let root = call_intrinsic(f, "sqrt", &[x]);
            binary_instruction(f, "fdiv", &float_constant(x, 1.0), &root)
        }
        (ScalarOp::Floor | ScalarOp::Ceil | ScalarOp::RoundNearestEven | ScalarOp::RoundNearestAfz, _) => {
            round(f, op, x)
        }
        (ScalarOp::ReducePrecision { exponent_bits, mantissa_bits }, _) => {
            reduce_precision(f, x, exponent_bits, mantissa_bits)
        }
        (
            ScalarOp::Exp
            | ScalarOp::Expm1
            | ScalarOp::Log
            | ScalarOp::Log1p
            | ScalarOp::Logistic
            | ScalarOp::Tanh
            | ScalarOp::Sin
            | ScalarOp::Cos
            | ScalarOp::Tan
            | ScalarOp::Erf
            | ScalarOp::Cbrt,
            _,
        ) => math::unary(f, op, x)?,
        _ => return Err(undefined_op_error(op, x.dtype)),
    })
}

/// Emits the maximum or minimum: NaN if either operand is NaN, the first of equal operands. x86's instruction returns its second operand if
/// neither is larger, so NaN tests are left out beside a constant; with a constant zero as the first operand, the result may be the other
/// zero.
fn extreme(f: &mut FunctionEmitter, x: &Val, y: &Val, relation: &str) -> Val {
    if x.is_constant() && !may_be_nan(x) {
        let wins = fcmp(f, relation, x, y);
        return select(f, &wins, x, y);
    }
    let wins = fcmp(f, relation, y, x);
    let best = select(f, &wins, y, x);
    if y.is_constant() && !may_be_nan(y) {
        return best;
    }
    let nan = fcmp(f, "uno", y, y);
    select(f, &nan, y, &best)
}

/// Whether the text of a value is a NaN constant.
fn may_be_nan(x: &Val) -> bool {
    let hex = x.text.rsplit("0x").next().unwrap_or("").trim_end_matches(')');
    u64::from_str_radix(hex, 16).is_ok_and(|bits| f64::from_bits(bits).is_nan())
}

fn sign(f: &mut FunctionEmitter, x: &Val) -> Val {
    let unit = call_intrinsic(f, "copysign", &[&float_constant(x, 1.0), x]);
    let moves = fcmp(f, "one", x, &float_constant(x, 0.0));
    select(f, &moves, &unit, x)
}

/// Emits rounding to an integral value. Without an instruction for it, adding and subtracting 2^23 (2^52 for f64) rounds to nearest even.
pub fn round(f: &mut FunctionEmitter, op: ScalarOp, x: &Val) -> Val {
    if op == ScalarOp::RoundNearestAfz {
        // Away from zero at halves: truncate |x| + the largest number below a half.
        let magnitude = call_intrinsic(f, "fabs", &[x]);
        let half = if x.dtype == DType::F32 { f64::from(0.5f32.next_down()) } else { 0.5f64.next_down() };
        let sum = binary_instruction(f, "fadd", &magnitude, &float_constant(x, half));
        let whole = round(f, ScalarOp::Floor, &sum);
        return call_intrinsic(f, "copysign", &[&whole, x]);
    }
    if f.target.level.has_rounding() {
        let name = match op {
            ScalarOp::Floor => "floor",
            ScalarOp::Ceil => "ceil",
            _ => "roundeven",
        };
        return call_intrinsic(f, name, &[x]);
    }
    let big = float_constant(x, if x.dtype == DType::F32 { 8_388_608.0 } else { 4_503_599_627_370_496.0 });
    let magnitude = call_intrinsic(f, "fabs", &[x]);
    let up = binary_instruction(f, "fadd", &magnitude, &big);
    let even = binary_instruction(f, "fsub", &up, &big);
    let even = call_intrinsic(f, "copysign", &[&even, x]);
    let one = float_constant(x, 1.0);
    let rounded = match op {
        ScalarOp::Floor => {
            let above = fcmp(f, "ogt", &even, x);
            let less = binary_instruction(f, "fsub", &even, &one);
            select(f, &above, &less, &even)
        }
        ScalarOp::Ceil => {
            let below = fcmp(f, "olt", &even, x);
            let more = binary_instruction(f, "fadd", &even, &one);
            select(f, &below, &more, &even)
        }
        _ => even,
    };
    let rounded = call_intrinsic(f, "copysign", &[&rounded, x]);
    let small = fcmp(f, "olt", &magnitude, &big);
    select(f, &small, &rounded, x)
}

/// Emits `reduce-precision`: rounds to fewer exponent and mantissa bits, to nearest even; values below the smallest normal number become 0.
fn reduce_precision(f: &mut FunctionEmitter, x: &Val, exponent_bits: u32, mantissa_bits: u32) -> Val {
    let (int, exponent, mantissa) = if x.dtype == DType::F32 { (DType::U32, 8, 23) } else { (DType::U64, 11, 52) };
    let word = reinterpret(f, x, int);
    let infinity = reinterpret(f, &float_constant(x, f64::INFINITY), int);
    let sign = binary_instruction(f, "and", &word, &constant_bits(&word, 1 << (exponent + mantissa)));
    let endless = binary_instruction(f, "or", &sign, &infinity);
    let mut out = word.clone();
    if mantissa_bits < mantissa {
        let dropped = u64::from(mantissa - mantissa_bits);
        let last = binary_instruction(f, "lshr", &word, &constant_bits(&word, dropped));
        let last = binary_instruction(f, "and", &last, &constant_bits(&word, 1));
        let up = binary_instruction(f, "add", &last, &constant_bits(&word, (1 << (dropped - 1)) - 1));
        out = binary_instruction(f, "add", &word, &up);
        out = binary_instruction(f, "and", &out, &constant_bits(&word, super::value::all_ones(int) << dropped));
    }
    if exponent_bits < exponent {
        let bias = (1u64 << (exponent - 1)) - 1;
        let reduced = (1u64 << (exponent_bits.max(1) - 1)) - 1;
        let field = binary_instruction(f, "and", &out, &infinity);
        let over = icmp(f, "ugt", &field, &constant_bits(&field, (bias + reduced) << mantissa));
        let under = icmp(f, "ule", &field, &constant_bits(&field, (bias - reduced) << mantissa));
        out = select(f, &over, &endless, &out);
        out = select(f, &under, &sign, &out);
    }
    let nan = fcmp(f, "uno", x, x);
    let kept = if mantissa_bits > 0 { &word } else { &endless };
    let out = select(f, &nan, kept, &out);
    reinterpret(f, &out, x.dtype)
}
