//! Matrix exponential.
//!
//! Source: Higham, "Functions of Matrices", 10.3: scaling and squaring with Padé's approximant of degree 13, in double
//! precision.
use super::functions::{double_precision, input_matrices};
use super::least_squares::batch_matmul;
use super::{eliminate, identity};
use crate::diag::Result;
use crate::hlo::symbolic::{Builder, InstId, Op};
use crate::ops::math::expr::{build_formula, loop_condition};
use crate::ops::op_lowering::op;
use crate::ops::shape::like_first_input;
use crate::ops::{LowerCtx, OpLowering, Value};
use crate::scalar::{Direction, ScalarOp};
use crate::tensor::DType;

/// Definitions of the ops of this file.
pub const ROWS: &[OpLowering] =
    &[op("MatrixExponential", "input -> output", exponentials).shape(like_first_input).dtypes(super::FIELDS)];

/// Largest 1-norm for which Padé's approximant of degree 13 is exact in double precision.
const NEAR_ZERO: f64 = 5.371_920_351_148_152;

/// Lowers `MatrixExponential`: each matrix is halved until its norm is small, approximated, and squared as many times.
fn exponentials(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (a, dims) = input_matrices(cx)?;
    let dtype = cx.dtype(0)?;
    if crate::symbolic::has_zero(&dims) {
        return cx.one_output(cx.arg(0)?);
    }
    let b = &mut *cx.b;
    let a = b.convert(a, double_precision(dtype));
    let whole = b.dims(a).to_vec();
    let size = b.unary(ScalarOp::Abs, a);
    let zero = b.scalar(DType::F64, 0.0);
    let sums = b.reduce(size, zero, ScalarOp::Add, &[1]);
    let norm = b.reduce(sums, zero, ScalarOp::Maximum, &[1]);
    let halvings = build_formula(b, [norm], |[norm]| {
        let doublings = (norm * (1.0 / NEAR_ZERO)).ln() * std::f64::consts::LOG2_E;
        // A norm that is not finite is not scaled; the result is NaN.
        (-(-doublings).floor()).select_where(norm.gt(NEAR_ZERO).and(norm.lt(f64::INFINITY)), 0.0)
    });
    let scale = build_formula(b, [halvings], |[count]| count.constant(0.5).pow(count));
    let scale = b.convert(scale, b.dtype(a));
    let scale = b.broadcast(scale, &whole, &[0]);
    let small = b.mul(a, scale);
    let y = exponential_near_zero(b, small);
    let halvings = b.convert(halvings, DType::S32);
    let y = squared(b, y, halvings);
    let y = b.reshape(y, &dims);
    let y = b.convert(y, dtype);
    cx.one_output(y)
}

/// Padé approximant of degree 13 of the exponential; numerator and denominator share their even and odd parts.
fn exponential_near_zero(b: &mut Builder, a: InstId) -> InstId {
    let dims = b.dims(a).to_vec();
    let ones = identity(b, b.dtype(a), &dims);
    let a2 = batch_matmul(b, a, a);
    let a4 = batch_matmul(b, a2, a2);
    let a6 = batch_matmul(b, a4, a2);
    let high = build_formula(b, [a6, a4, a2], |[a6, a4, a2]| a6 + a4 * 16_380.0 + a2 * 40_840_800.0);
    let high = batch_matmul(b, a6, high);
    let odd = build_formula(b, [high, a6, a4, a2, ones], |[high, a6, a4, a2, ones]| {
        let low = a6 * 33_522_128_640.0 + a4 * 10_559_470_521_600.0 + a2 * 1_187_353_796_428_800.0;
        high + (low + ones * 32_382_376_266_240_000.0)
    });
    let odd = batch_matmul(b, a, odd);
    let high = build_formula(b, [a6, a4, a2], |[a6, a4, a2]| a6 * 182.0 + a4 * 960_960.0 + a2 * 1_323_241_920.0);
    let high = batch_matmul(b, a6, high);
    let even = build_formula(b, [high, a6, a4, a2, ones], |[high, a6, a4, a2, ones]| {
        let low = a6 * 670_442_572_800.0 + a4 * 129_060_195_264_000.0 + a2 * 7_771_770_303_897_600.0;
        high + (low + ones * 64_764_752_532_480_000.0)
    });
    let (below, above) = (b.sub(even, odd), b.add(even, odd));
    eliminate(b, below, above).0
}

/// Matrices `[count, n, n]`, each squared `times` times.
fn squared(b: &mut Builder, x: InstId, times: InstId) -> InstId {
    let dims = b.dims(x).to_vec();
    let (round, one) = (b.scalar(DType::S32, 1.0), b.full_like(times, 1.0));
    let going = b.compare(Direction::Ge, times, one);
    let start = b.tuple(&[round, going, x, times]);
    let shape = b.shape(start).clone();
    // A norm of the largest double is halved 1,022 times.
    let cond = loop_condition(b, &shape, 1100.0);
    b.begin_computation("square");
    let state = b.parameter(shape);
    let [round, going, x, times] = [0, 1, 2, 3].map(|i| b.get_tuple_element(state, i));
    let square = batch_matmul(b, x, x);
    let chosen = b.broadcast(going, &dims, &[0]);
    let x = b.select(chosen, square, x);
    let one = b.scalar(DType::S32, 1.0);
    let next = b.add(round, one);
    let going = b.compare(Direction::Ge, times, next);
    let root = b.tuple(&[next, going, x, times]);
    let body = b.end_computation(root);
    let end = b.add_inst(Op::While { cond, body }, &[start]);
    b.get_tuple_element(end, 2)
}
