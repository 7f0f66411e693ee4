//! Each scalar op as LLVM text, on scalars and on vectors: one exhaustive match.
use super::function::{Function, Val, unsupported, value_type};
use super::math;
use crate::diag::{Code, Error, Result};
use crate::scalar::{CompareKind, Direction, ScalarOp};
use crate::target::Level;
use crate::tensor::{DType, DTypeClass};

/// `op` on values of equal lanes; the result has type `dtype`.
pub fn emit(f: &mut Function, op: ScalarOp, args: &[Val], dtype: DType) -> Result<Val> {
    let x = args.first().ok_or_else(|| Error::internal("codegen", "a scalar op has no operand"))?;
    let missing = || Error::internal("codegen", format!("{} has too few operands", op.name()));
    let y = || args.get(1).cloned().ok_or_else(missing);
    let class = x.dtype.class();
    let float = class == DTypeClass::Float;
    Ok(match op {
        ScalarOp::Add => arith(f, x, &y()?, ["fadd", "add", "or"]),
        ScalarOp::Subtract => arith(f, x, &y()?, ["fsub", "sub", "xor"]),
        ScalarOp::Multiply => arith(f, x, &y()?, ["fmul", "mul", "and"]),
        ScalarOp::And => arith(f, x, &y()?, ["", "and", "and"]),
        ScalarOp::Or => arith(f, x, &y()?, ["", "or", "or"]),
        ScalarOp::Xor => arith(f, x, &y()?, ["", "xor", "xor"]),
        ScalarOp::Divide if float => arith(f, x, &y()?, ["fdiv", "", ""]),
        ScalarOp::Divide => divide(f, x, &y()?),
        ScalarOp::Remainder if float => math::remainder(f, x, &y()?)?,
        ScalarOp::Remainder => remainder(f, x, &y()?),
        ScalarOp::Maximum => extreme(f, x, &y()?, true),
        ScalarOp::Minimum => extreme(f, x, &y()?, false),
        ScalarOp::Power if float => math::power(f, x, &y()?)?,
        ScalarOp::Atan2 if float => math::atan2(f, x, &y()?)?,
        ScalarOp::ShiftLeft => shift(f, "shl", x, &y()?),
        ScalarOp::ShiftRightLogical => shift(f, "lshr", x, &y()?),
        ScalarOp::ShiftRightArithmetic => shift(f, "ashr", x, &y()?),
        ScalarOp::Compare(direction, kind) => compare(f, direction, kind, x, &y()?)?,
        ScalarOp::Select => {
            let (t, e) = (y()?, args.get(2).cloned().ok_or_else(missing)?);
            select(f, x, &t, &e)
        }
        ScalarOp::Clamp => {
            let (v, high) = (y()?, args.get(2).cloned().ok_or_else(missing)?);
            let up = extreme(f, &v, x, true);
            extreme(f, &up, &high, false)
        }
        ScalarOp::Fma => {
            let (b, c) = (y()?, args.get(2).cloned().ok_or_else(missing)?);
            fma(f, x, &b, &c)
        }
        ScalarOp::Convert(to) => convert(f, x, to)?,
        ScalarOp::BitcastConvert(to) => bitcast(f, x, to)?,
        ScalarOp::Abs if float => call(f, "fabs", &[x]),
        ScalarOp::Abs if class == DTypeClass::Signed => {
            let ty = value_type(x.dtype, x.lanes);
            f.ins(&format!("call {ty} @llvm.abs.{}({ty} {}, i1 false)", suffix(x), x.text), x.dtype, x.lanes)
        }
        ScalarOp::Abs | ScalarOp::Real => x.clone(),
        ScalarOp::Negate if float => {
            f.ins(&format!("fneg {} {}", value_type(x.dtype, x.lanes), x.text), x.dtype, x.lanes)
        }
        ScalarOp::Negate => {
            let zero = f.constant(x.dtype, 0, x.lanes);
            arith(f, &zero, x, ["", "sub", "xor"])
        }
        ScalarOp::Not => {
            let ones = f.constant(
                x.dtype,
                u64::MAX >> (64 - if x.dtype == DType::Pred { 1 } else { x.dtype.bits() }),
                x.lanes,
            );
            arith(f, x, &ones, ["", "xor", "xor"])
        }
        ScalarOp::Sign => sign(f, x),
        ScalarOp::Popcnt => call(f, "ctpop", &[x]),
        ScalarOp::CountLeadingZeros => {
            let ty = value_type(x.dtype, x.lanes);
            f.ins(&format!("call {ty} @llvm.ctlz.{}({ty} {}, i1 false)", suffix(x), x.text), x.dtype, x.lanes)
        }
        ScalarOp::IsFinite => {
            let a = call(f, "fabs", &[x]);
            let inf = float_constant(f, x, f64::INFINITY);
            fcmp(f, "one", &a, &inf)
        }
        ScalarOp::Sqrt => call(f, "sqrt", &[x]),
        ScalarOp::Rsqrt => {
            let root = call(f, "sqrt", &[x]);
            let one = float_constant(f, x, 1.0);
            arith(f, &one, &root, ["fdiv", "", ""])
        }
        ScalarOp::Floor | ScalarOp::Ceil | ScalarOp::RoundNearestEven | ScalarOp::RoundNearestAfz => round(f, op, x),
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
        | ScalarOp::Cbrt => math::unary(f, op, x)?,
        ScalarOp::Power | ScalarOp::Atan2 | ScalarOp::Imag | ScalarOp::Complex | ScalarOp::ReducePrecision { .. } => {
            return Err(Error::user(
                Code::HloUnsupported,
                format!("native code has no `{}` on {} yet (result {dtype})", op.name(), x.dtype),
            ));
        }
    })
}

/// `f32`, `v8i32` …: the name that intrinsics carry.
pub fn suffix(x: &Val) -> String {
    let scalar = match x.dtype {
        DType::F32 => "f32".to_string(),
        DType::F64 => "f64".to_string(),
        DType::Pred => "i1".to_string(),
        t => format!("i{}", t.bits()),
    };
    if x.lanes == 1 { scalar } else { format!("v{}{scalar}", x.lanes) }
}

/// An intrinsic of values of one type.
pub fn call(f: &mut Function, name: &str, args: &[&Val]) -> Val {
    let ty = value_type(args[0].dtype, args[0].lanes);
    let list: Vec<String> = args.iter().map(|a| format!("{ty} {}", a.text)).collect();
    f.ins(&format!("call {ty} @llvm.{name}.{}({})", suffix(args[0]), list.join(", ")), args[0].dtype, args[0].lanes)
}

/// A constant of `like`'s float type and lanes.
pub fn float_constant(f: &Function, like: &Val, value: f64) -> Val {
    let bits = if like.dtype == DType::F32 { u64::from((value as f32).to_bits()) } else { value.to_bits() };
    f.constant(like.dtype, bits, like.lanes)
}

/// A float, integer or `pred` instruction, by the type.
pub fn arith(f: &mut Function, x: &Val, y: &Val, [float, int, pred]: [&str; 3]) -> Val {
    let name = match x.dtype.class() {
        DTypeClass::Float => float,
        DTypeClass::Pred => pred,
        DTypeClass::Signed | DTypeClass::Unsigned | DTypeClass::Complex => int,
    };
    f.ins(&format!("{name} {} {}, {}", value_type(x.dtype, x.lanes), x.text, y.text), x.dtype, x.lanes)
}

/// A float comparison.
pub fn fcmp(f: &mut Function, relation: &str, x: &Val, y: &Val) -> Val {
    f.ins(&format!("fcmp {relation} {} {}, {}", value_type(x.dtype, x.lanes), x.text, y.text), DType::Pred, x.lanes)
}

fn icmp(f: &mut Function, relation: &str, x: &Val, y: &Val) -> Val {
    f.ins(&format!("icmp {relation} {} {}, {}", value_type(x.dtype, x.lanes), x.text, y.text), DType::Pred, x.lanes)
}

/// `cond ? x : y`.
pub fn select(f: &mut Function, cond: &Val, x: &Val, y: &Val) -> Val {
    let (p, ty) = (value_type(DType::Pred, cond.lanes), value_type(x.dtype, x.lanes));
    f.ins(&format!("select {p} {}, {ty} {}, {ty} {}", cond.text, x.text, y.text), x.dtype, x.lanes)
}

/// x·y + z: one rounding where the target has the instruction, two elsewhere (never a library call).
pub fn fma(f: &mut Function, x: &Val, y: &Val, z: &Val) -> Val {
    if f.target.fma && x.dtype.is_float() {
        return call(f, "fma", &[x, y, z]);
    }
    let product = arith(f, x, y, ["fmul", "mul", "and"]);
    arith(f, &product, z, ["fadd", "add", "or"])
}

fn divide(f: &mut Function, x: &Val, y: &Val) -> Val {
    let (zero, one) = (f.constant(x.dtype, 0, x.lanes), f.constant(x.dtype, 1, x.lanes));
    let ones = f.constant(x.dtype, u64::MAX >> (64 - x.dtype.bits()), x.lanes);
    let by_zero = icmp(f, "eq", y, &zero);
    if !x.dtype.is_signed() {
        let safe = select(f, &by_zero, &one, y);
        let q = arith(f, x, &safe, ["", "udiv", ""]);
        return select(f, &by_zero, &ones, &q);
    }
    let by_minus = icmp(f, "eq", y, &ones);
    let odd = arith(f, &by_zero, &by_minus, ["", "", "or"]);
    let safe = select(f, &odd, &one, y);
    let q = arith(f, x, &safe, ["", "sdiv", ""]);
    let negated = arith(f, &zero, x, ["", "sub", ""]);
    let q = select(f, &by_minus, &negated, &q);
    select(f, &by_zero, &ones, &q)
}

fn remainder(f: &mut Function, x: &Val, y: &Val) -> Val {
    let (zero, one) = (f.constant(x.dtype, 0, x.lanes), f.constant(x.dtype, 1, x.lanes));
    let by_zero = icmp(f, "eq", y, &zero);
    let mut odd = by_zero.clone();
    if x.dtype.is_signed() {
        let ones = f.constant(x.dtype, u64::MAX >> (64 - x.dtype.bits()), x.lanes);
        let by_minus = icmp(f, "eq", y, &ones);
        odd = arith(f, &by_zero, &by_minus, ["", "", "or"]);
    }
    let safe = select(f, &odd, &one, y);
    let r = arith(f, x, &safe, ["", if x.dtype.is_signed() { "srem" } else { "urem" }, ""]);
    select(f, &by_zero, x, &r)
}

fn shift(f: &mut Function, name: &str, x: &Val, by: &Val) -> Val {
    let width = f.constant(x.dtype, u64::from(x.dtype.bits()), x.lanes);
    let last = f.constant(x.dtype, u64::from(x.dtype.bits() - 1), x.lanes);
    let zero = f.constant(x.dtype, 0, x.lanes);
    let fits = icmp(f, "ult", by, &width);
    let amount = select(f, &fits, by, &last);
    let shifted = arith(f, x, &amount, ["", name, ""]);
    if name == "ashr" { shifted } else { select(f, &fits, &shifted, &zero) }
}

/// The larger or smaller: NaN if either is, the first of equal ones. A constant operand saves the NaN test.
fn extreme(f: &mut Function, x: &Val, y: &Val, larger: bool) -> Val {
    let (float, signed, unsigned) = if larger { ("ogt", "sgt", "ugt") } else { ("olt", "slt", "ult") };
    match x.dtype.class() {
        DTypeClass::Float => {
            if !y.text.starts_with('%') {
                let wins = fcmp(f, float, y, x);
                return select(f, &wins, y, x);
            }
            let wins = fcmp(f, float, x, y);
            let best = select(f, &wins, x, y);
            if !x.text.starts_with('%') {
                return best;
            }
            let nan = fcmp(f, "uno", x, x);
            select(f, &nan, x, &best)
        }
        DTypeClass::Pred => arith(f, x, y, ["", "", if larger { "or" } else { "and" }]),
        DTypeClass::Signed => {
            let wins = icmp(f, signed, x, y);
            select(f, &wins, x, y)
        }
        DTypeClass::Unsigned | DTypeClass::Complex => {
            let wins = icmp(f, unsigned, x, y);
            select(f, &wins, x, y)
        }
    }
}

fn sign(f: &mut Function, x: &Val) -> Val {
    let zero = f.constant(x.dtype, 0, x.lanes);
    match x.dtype.class() {
        DTypeClass::Float => {
            let one = float_constant(f, x, 1.0);
            let unit = call(f, "copysign", &[&one, x]);
            let moves = fcmp(f, "one", x, &zero);
            select(f, &moves, &unit, x)
        }
        _ => {
            let (one, ones) =
                (f.constant(x.dtype, 1, x.lanes), f.constant(x.dtype, u64::MAX >> (64 - x.dtype.bits()), x.lanes));
            let nothing = icmp(f, "eq", x, &zero);
            let below = icmp(f, "slt", x, &zero);
            let unit = if x.dtype.is_signed() { select(f, &below, &ones, &one) } else { one };
            select(f, &nothing, &zero, &unit)
        }
    }
}

fn compare(f: &mut Function, direction: Direction, kind: CompareKind, x: &Val, y: &Val) -> Result<Val> {
    if x.dtype.is_float() && kind == CompareKind::Partial {
        let relation = match direction {
            Direction::Eq => "oeq",
            Direction::Ne => "une",
            Direction::Ge => "oge",
            Direction::Gt => "ogt",
            Direction::Le => "ole",
            Direction::Lt => "olt",
        };
        return Ok(fcmp(f, relation, x, y));
    }
    let (x, y) = if x.dtype.is_float() { (total(f, x)?, total(f, y)?) } else { (x.clone(), y.clone()) };
    let s = if x.dtype.is_signed() { "s" } else { "u" };
    let relation = match direction {
        Direction::Eq => "eq".to_string(),
        Direction::Ne => "ne".to_string(),
        Direction::Ge => format!("{s}ge"),
        Direction::Gt => format!("{s}gt"),
        Direction::Le => format!("{s}le"),
        Direction::Lt => format!("{s}lt"),
    };
    Ok(icmp(f, &relation, &x, &y))
}

/// A signed integer that orders as the float's total order: negative ones have their magnitude bits flipped.
fn total(f: &mut Function, x: &Val) -> Result<Val> {
    let (int, shift) = if x.dtype == DType::F64 { (DType::S64, 63) } else { (DType::S32, 31) };
    let bits = bitcast(f, x, int)?;
    let amount = f.constant(int, shift, x.lanes);
    let signs = arith(f, &bits, &amount, ["", "ashr", ""]);
    let one = f.constant(int, 1, x.lanes);
    let mask = arith(f, &signs, &one, ["", "lshr", ""]);
    Ok(arith(f, &bits, &mask, ["", "xor", ""]))
}

/// The same bits as another type of the same width.
pub fn bitcast(f: &mut Function, x: &Val, to: DType) -> Result<Val> {
    if super::function::scalar_type(to).is_none() {
        return Err(unsupported(to));
    }
    let (a, b) = (value_type(x.dtype, x.lanes), value_type(to, x.lanes));
    if a == b {
        return Ok(Val { dtype: to, ..x.clone() });
    }
    Ok(f.ins(&format!("bitcast {a} {} to {b}", x.text), to, x.lanes))
}

/// A value of another type: see [`ScalarOp::Convert`].
pub fn convert(f: &mut Function, x: &Val, to: DType) -> Result<Val> {
    if super::function::scalar_type(to).is_none() {
        return Err(unsupported(to));
    }
    if x.dtype == to {
        return Ok(x.clone());
    }
    let (a, b) = (value_type(x.dtype, x.lanes), value_type(to, x.lanes));
    let text = match (x.dtype.class(), to.class()) {
        (DTypeClass::Float, DTypeClass::Pred) => {
            let zero = float_constant(f, x, 0.0);
            return Ok(fcmp(f, "une", x, &zero));
        }
        (_, DTypeClass::Pred) => {
            let zero = f.constant(x.dtype, 0, x.lanes);
            return Ok(icmp(f, "ne", x, &zero));
        }
        (DTypeClass::Float, DTypeClass::Float) => {
            format!("{} {a} {} to {b}", if to == DType::F64 { "fpext" } else { "fptrunc" }, x.text)
        }
        (DTypeClass::Float, class) => {
            let kind = if class == DTypeClass::Signed { "s" } else { "u" };
            let like = Val { dtype: to, ..x.clone() };
            format!("call {b} @llvm.fpto{kind}i.sat.{}.{}({a} {})", suffix(&like), suffix(x), x.text)
        }
        (DTypeClass::Signed, DTypeClass::Float) => format!("sitofp {a} {} to {b}", x.text),
        (_, DTypeClass::Float) => format!("uitofp {a} {} to {b}", x.text),
        (from, _) => {
            let width = if x.dtype == DType::Pred { 1 } else { x.dtype.bits() };
            match to.bits().cmp(&width) {
                std::cmp::Ordering::Equal => return Ok(Val { dtype: to, ..x.clone() }),
                std::cmp::Ordering::Less => format!("trunc {a} {} to {b}", x.text),
                std::cmp::Ordering::Greater if from == DTypeClass::Signed => format!("sext {a} {} to {b}", x.text),
                std::cmp::Ordering::Greater => format!("zext {a} {} to {b}", x.text),
            }
        }
    };
    Ok(f.ins(&text, to, x.lanes))
}

/// Rounding to a whole number. SSE2 has no instruction for it: there, adding and taking away 2^23 (2^52) rounds to even.
pub fn round(f: &mut Function, op: ScalarOp, x: &Val) -> Val {
    if op == ScalarOp::RoundNearestAfz {
        // Away from zero at halves: truncate |x| + the largest number below a half.
        let magnitude = call(f, "fabs", &[x]);
        let half = float_constant(
            f,
            x,
            if x.dtype == DType::F32 { f64::from(0.5f32.next_down()) } else { 0.5f64.next_down() },
        );
        let sum = arith(f, &magnitude, &half, ["fadd", "", ""]);
        let whole = round(f, ScalarOp::Floor, &sum);
        return call(f, "copysign", &[&whole, x]);
    }
    if f.target.level() != Level::Sse2 {
        let name = match op {
            ScalarOp::Floor => "floor",
            ScalarOp::Ceil => "ceil",
            _ => "roundeven",
        };
        return call(f, name, &[x]);
    }
    let big = float_constant(f, x, if x.dtype == DType::F32 { 8_388_608.0 } else { 4_503_599_627_370_496.0 });
    let magnitude = call(f, "fabs", &[x]);
    let up = arith(f, &magnitude, &big, ["fadd", "", ""]);
    let even = arith(f, &up, &big, ["fsub", "", ""]);
    let even = call(f, "copysign", &[&even, x]);
    let one = float_constant(f, x, 1.0);
    let rounded = match op {
        ScalarOp::Floor => {
            let above = fcmp(f, "ogt", &even, x);
            let less = arith(f, &even, &one, ["fsub", "", ""]);
            select(f, &above, &less, &even)
        }
        ScalarOp::Ceil => {
            let below = fcmp(f, "olt", &even, x);
            let more = arith(f, &even, &one, ["fadd", "", ""]);
            select(f, &below, &more, &even)
        }
        _ => even,
    };
    let rounded = call(f, "copysign", &[&rounded, x]);
    let small = fcmp(f, "olt", &magnitude, &big);
    select(f, &small, &rounded, x)
}
