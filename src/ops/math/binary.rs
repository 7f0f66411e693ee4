//! Pointwise ops of two arrays that are broadcast together.
use super::special::{compare_scalar, compute_binary_in_f32, compute_in_f32, zero_where_zero};
use super::unary::conj;
use crate::diag::Result;
use crate::hlo::symbolic::{Builder, Dim, InstId};
use crate::interp;
use crate::ops::ShapeCtx;
use crate::ops::checks;
use crate::ops::fact::{Dims, Fact};
use crate::ops::op_lowering::{binary, op};
use crate::ops::shape::{PRED, forward_first_input, merge_inputs};
use crate::ops::symbols::Symbols;
use crate::ops::{LowerCtx, OpLowering, Value, Work};
use crate::scalar::{Direction, ScalarOp};
use crate::symbolic::guarded_counts;
use crate::symbolic::trace::{self, SizeOp};
use crate::symbolic::{Interval, constant_dims};
use crate::tensor::DType;

/// Definitions of arithmetic and bitwise ops.
pub const ROWS: &[OpLowering] = &[
    binary("Add", Builder::add).size_arithmetic(Symbols::add),
    binary("AddV2", Builder::add).size_arithmetic(Symbols::add),
    op("AddN", "inputs* -> sum", add_n).shape(add_n_shape).work(Work::PerOutputElement(1)),
    binary("Sub", Builder::sub).size_arithmetic(Symbols::sub),
    binary("Mul", Builder::mul).size_arithmetic(Symbols::mul),
    binary("Div", Builder::div).with_check(checks::check_nonzero_divisor).size_arithmetic(Symbols::div_floor),
    binary("RealDiv", Builder::div),
    binary("TruncateDiv", truncate_div).with_check(checks::check_nonzero_divisor).size_arithmetic(Symbols::div_floor),
    binary("FloorDiv", floor_div).with_check(checks::check_nonzero_divisor).size_arithmetic(Symbols::div_floor),
    binary("FloorMod", floor_mod).with_check(checks::check_nonzero_divisor),
    binary("TruncateMod", |b, x, y| b.binary(ScalarOp::Remainder, x, y)).with_check(checks::check_nonzero_divisor),
    binary("Mod", |b, x, y| b.binary(ScalarOp::Remainder, x, y)).with_check(checks::check_nonzero_divisor),
    binary("Maximum", Builder::max).size_arithmetic(Symbols::max),
    binary("Minimum", Builder::min).size_arithmetic(Symbols::min),
    binary("Pow", |b, x, y| b.binary(ScalarOp::Power, x, y)).with_check(checks::check_non_negative_exponent),
    binary("Atan2", |b, x, y| b.binary(ScalarOp::Atan2, x, y)),
    binary("SquaredDifference", squared_difference),
    binary("DivNoNan", |b, x, y| {
        let z = b.div(x, y);
        zero_where_zero(b, y, z)
    }),
    binary("MulNoNan", |b, x, y| {
        let z = b.mul(x, y);
        zero_where_zero(b, y, z)
    }),
    binary("Xdivy", |b, x, y| {
        let z = b.div(x, y);
        zero_where_zero(b, x, z)
    }),
    binary("Xlogy", |b, x, y| times_zero_wins(b, x, y, ScalarOp::Log)),
    binary("Xlog1py", |b, x, y| times_zero_wins(b, x, y, ScalarOp::Log1p)),
    binary("BitwiseAnd", |b, x, y| b.binary(ScalarOp::And, x, y)),
    binary("BitwiseOr", |b, x, y| b.binary(ScalarOp::Or, x, y)),
    binary("BitwiseXor", |b, x, y| b.binary(ScalarOp::Xor, x, y)),
    binary("LeftShift", |b, x, y| {
        let y = clamp_shift(b, y);
        b.binary(ScalarOp::ShiftLeft, x, y)
    }),
    binary("RightShift", right_shift),
    op("Complex", "real imag -> out", complex).pointwise().dtypes("f32, f64"),
];

/// Definitions of comparisons and logical ops.
pub const COMPARISONS: &[OpLowering] = &[
    op("Equal", "x y -> z", |cx| equality(cx, Direction::Eq)).shape(equality_shape),
    op("NotEqual", "x y -> z", |cx| equality(cx, Direction::Ne)).shape(equality_shape),
    binary("Less", |b, x, y| b.compare(Direction::Lt, x, y)),
    binary("LessEqual", |b, x, y| b.compare(Direction::Le, x, y)),
    binary("Greater", |b, x, y| b.compare(Direction::Gt, x, y)),
    binary("GreaterEqual", |b, x, y| b.compare(Direction::Ge, x, y)),
    binary("LogicalAnd", |b, x, y| b.binary(ScalarOp::And, x, y)).dtypes("pred"),
    binary("LogicalOr", |b, x, y| b.binary(ScalarOp::Or, x, y)).dtypes("pred"),
    op("ApproximateEqual", "x y -> z", approximate_equal).pointwise(),
];

fn add_n(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    if cx.args.first().is_some_and(Value::is_list_or_optional) {
        return crate::ops::list::sum::sum_inputs(cx);
    }
    let mut parts = cx.arg_range(0, cx.args.len())?.into_iter();
    let Some(mut sum) = parts.next() else { return Err(cx.shape_mismatch("AddN needs an input")) };
    for part in parts {
        if cx.b.dims(part) != cx.b.dims(sum) {
            return Err(cx.shape_mismatch(format!("{} and {} differ", cx.b.shape(sum), cx.b.shape(part))));
        }
        sum = cx.b.add(sum, part);
    }
    cx.one_output(sum)
}

/// `FloorDiv`: the quotient rounded down for integers, floor(x / y) for floats.
pub fn floor_div(b: &mut Builder, x: InstId, y: InstId) -> InstId {
    if let Some(quotient) = of_sizes(b, x, y, |x, y| x.apply_op(SizeOp::FloorDivide, y)) {
        return quotient;
    }
    let dtype = b.dtype(x);
    if dtype.is_float() {
        let q = quotient(b, x, y);
        return compute_in_f32(b, q, |b, q| b.unary(ScalarOp::Floor, q));
    }
    let (x, y) = b.broadcast_together(x, y);
    let q = b.div(x, y);
    if !dtype.is_signed() {
        return q;
    }
    let r = b.binary(ScalarOp::Remainder, x, y);
    let off = wrong_sign(b, r, y);
    let one = b.full_like(q, 1.0);
    let down = b.sub(q, one);
    b.select(off, down, q)
}

/// Quotient in the type of its operands: TensorFlow's kernels round it to f16 or bf16 before they round it to a whole number.
fn quotient(b: &mut Builder, x: InstId, y: InstId) -> InstId {
    compute_binary_in_f32(b, x, y, Builder::div)
}

/// Quotient rounded towards zero.
fn truncate_div(b: &mut Builder, x: InstId, y: InstId) -> InstId {
    let q = quotient(b, x, y);
    compute_in_f32(b, q, |b, q| {
        if !b.dtype(q).is_float() {
            return q;
        }
        let (up, down) = (b.unary(ScalarOp::Ceil, q), b.unary(ScalarOp::Floor, q));
        let negative = compare_scalar(b, Direction::Lt, q, 0.0);
        b.select(negative, up, down)
    })
}

/// `FloorMod`: the remainder with the divisor's sign.
pub fn floor_mod(b: &mut Builder, x: InstId, y: InstId) -> InstId {
    let rest = |x: Dim, y: Dim| {
        let whole = x.apply_op(SizeOp::FloorDivide, y)?.apply_op(SizeOp::Multiply, y)?;
        x.apply_op(SizeOp::Subtract, whole)
    };
    if let Some(rest) = of_sizes(b, x, y, rest) {
        return rest;
    }
    compute_binary_in_f32(b, x, y, |b, x, y| {
        let (x, y) = b.broadcast_together(x, y);
        let r = b.binary(ScalarOp::Remainder, x, y);
        let dtype = b.dtype(x);
        if !dtype.is_signed() && !dtype.is_float() {
            return r;
        }
        let off = wrong_sign(b, r, y);
        let other = b.add(r, y);
        b.select(off, other, r)
    })
}

/// Result of `op` on integers that are expressions of open sizes, if it is known not to overflow: a single expression instead
/// of the instructions for arbitrary integers.
fn of_sizes(b: &mut Builder, x: InstId, y: InstId, op: impl Fn(Dim, Dim) -> Option<Dim>) -> Option<InstId> {
    let dtype = b.dtype(x);
    if !trace::is_recording() || !matches!(dtype, DType::S32 | DType::S64) || b.rank(x) + b.rank(y) > 0 {
        return None;
    }
    let (x, y) = (interp::symbolic_elements(b, x)?, interp::symbolic_elements(b, y)?);
    let made = op(*x.first()?, *y.first()?).filter(|made| made.varies())?;
    let most = if dtype == DType::S32 { i64::from(i32::MAX) } else { i64::MAX };
    let fits = trace::is_within(made, Interval::new((-most).into(), most.into()));
    fits.then(|| b.size_constant(dtype, &[], vec![made]))
}

/// Whether a remainder is nonzero and its sign differs from the divisor's.
fn wrong_sign(b: &mut Builder, r: InstId, y: InstId) -> InstId {
    let nonzero = compare_scalar(b, Direction::Ne, r, 0.0);
    let (p, q) = (compare_scalar(b, Direction::Lt, r, 0.0), compare_scalar(b, Direction::Lt, y, 0.0));
    let differ = b.binary(ScalarOp::Xor, p, q);
    b.binary(ScalarOp::And, nonzero, differ)
}

fn squared_difference(b: &mut Builder, x: InstId, y: InstId) -> InstId {
    let d = b.sub(x, y);
    let c = conj(b, d);
    b.mul(c, d)
}

/// x · f(y), or 0 where x is 0, whatever y is.
fn times_zero_wins(b: &mut Builder, x: InstId, y: InstId, f: ScalarOp) -> InstId {
    compute_binary_in_f32(b, x, y, |b, x, y| {
        let f = b.unary(f, y);
        let z = b.mul(x, f);
        zero_where_zero(b, x, z)
    })
}

/// Shift amount clamped to `0..bits`.
fn clamp_shift(b: &mut Builder, y: InstId) -> InstId {
    let dtype = b.dtype(y);
    let (low, high) = (b.scalar(dtype, 0.0), b.scalar(dtype, f64::from(dtype.bits() - 1)));
    b.elementwise(ScalarOp::Clamp, &[low, y, high])
}

fn right_shift(b: &mut Builder, x: InstId, y: InstId) -> InstId {
    let signed = b.dtype(x).is_signed();
    let y = clamp_shift(b, y);
    b.binary(if signed { ScalarOp::ShiftRightArithmetic } else { ScalarOp::ShiftRightLogical }, x, y)
}

fn complex(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (re, im) = (cx.arg(0)?, cx.arg(1)?);
    let z = cx.b.binary(ScalarOp::Complex, re, im);
    cx.one_output(z)
}

/// Lowers `Equal` and `NotEqual`. Shapes that cannot be broadcast compare unequal if the node's `incompatible_shape_error` is
/// false.
fn equality(cx: &mut LowerCtx, direction: Direction) -> Result<Vec<Value>> {
    if cx.args.iter().any(|arg| matches!(arg, Value::Text(_) | Value::Strings(_))) {
        return crate::ops::string::compare_strings(cx, direction);
    }
    let (x, y) = (cx.arg(0)?, cx.arg(1)?);
    let fits = Builder::broadcast_dims(cx.b.dims(x), cx.b.dims(y)).is_some();
    if !fits && cx.node.bool("incompatible_shape_error") == Some(false) {
        let z = cx.b.constant(crate::tensor::Tensor::from_bools(&[], &[direction == Direction::Ne]));
        return cx.one_output(z);
    }
    let z = cx.b.compare(direction, x, y);
    cx.one_output(z)
}

fn approximate_equal(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (x, y) = (cx.arg(0)?, cx.arg(1)?);
    if cx.b.dims(x) != cx.b.dims(y) {
        return Err(cx.shape_mismatch(format!("{} and {} must have one shape", cx.b.shape(x), cx.b.shape(y))));
    }
    let tolerance = f64::from(cx.node.float("tolerance").unwrap_or(1e-5));
    let d = cx.b.sub(x, y);
    let a = cx.b.unary(ScalarOp::Abs, d);
    let a = if cx.b.dtype(a).is_integer() { cx.b.convert(a, DType::F64) } else { a };
    let z = compare_scalar(cx.b, Direction::Lt, a, tolerance);
    cx.one_output(z)
}

/// Shape function of `AddN`. A list has the facts of the first input whose element shape is known.
fn add_n_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    match cx.args.iter().find(|a| a.element.as_ref().is_some_and(|e| !e.open)) {
        Some(list) => Ok(vec![list.clone()]),
        None if cx.args.len() == 1 || cx.arg(0)?.element.is_some() => forward_first_input(cx),
        None => merge_inputs(cx),
    }
}

/// Shape function of `Equal`: the broadcast shape. If shapes that cannot be broadcast are allowed, nothing is known before all
/// sizes are.
fn equality_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let (x, y) = (cx.dims(0)?, cx.dims(1)?);
    let strict = cx.node.bool("incompatible_shape_error").unwrap_or(true);
    if strict || x == y {
        let dims = cx.broadcast(&x, &y)?;
        return cx.one_output(PRED, dims);
    }
    let dims = match (x.known_sizes(), y.known_sizes()) {
        (Some(x), Some(y)) => {
            let (x, y) = (constant_dims(&x), constant_dims(&y));
            Dims::from_sizes(&guarded_counts(&Builder::broadcast_dims(&x, &y).unwrap_or_default()))
        }
        (None, _) => cx.unranked_from(0),
        (_, None) => cx.unranked_from(1),
    };
    cx.one_output(PRED, dims)
}
