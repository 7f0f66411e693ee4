//! Opcodes of several devices, hosts and newer texts, where their meaning on one device is plain.
use super::expand_with;
use super::single_device::{expand_on_one_device, forward_operands};
use crate::diag::Result;
use crate::hlo::attrs::ForeignOp;
use crate::hlo::groups::involves_collective;
use crate::hlo::{Builder, InstId, Module, Op, Shape};
use crate::optimize::rewrite::{Changed, Editor, rewrite};
use crate::scalar::{CompareKind, Direction, ScalarOp};
use crate::tensor::DType;

/// Replaces hints, inverse functions, conversions by random bits and ordering constraints and, in a module for one device, collectives and device numbers.
pub fn expand(module: &mut Module) -> Result<Changed> {
    let is_alone = module.devices() == [1, 1];
    rewrite(module, |editor, id| match editor.op(id).clone() {
        Op::Foreign(f) if !is_alone && involves_collective(&f.opcode) => Ok(None),
        Op::PartitionId | Op::ReplicaId if !is_alone => Ok(None),
        Op::Foreign(f) => expand_foreign(editor, id, &f),
        Op::AddDependency => Ok(Some(editor.operand(id, 0))),
        Op::PartitionId | Op::ReplicaId => expand_with(editor, id, |b, _| Some(b.scalar(DType::U32, 0.0))),
        Op::GetDimensionSize(axis) => {
            let size = editor.dims(editor.operand(id, 0)).get(axis).copied();
            let size = size.and_then(|n| i32::try_from(n).ok());
            Ok(size.map(|n| editor.add_constant(crate::tensor::Tensor::scalar(n))))
        }
        _ => Ok(None),
    })
}

fn expand_foreign(editor: &mut Editor, id: InstId, f: &ForeignOp) -> Result<Option<InstId>> {
    let target = f.attr("custom_call_target").unwrap_or("");
    match f.opcode.as_str() {
        "domain" => forward_operands(editor, id),
        "custom-call" => match target {
            _ if f.is_placement_hint() => forward_operands(editor, id),
            "TopK" => {
                let parts = editor.shape(id).as_tuple().and_then(|p| p.first()).and_then(Shape::as_array);
                let Some(&k) = parts.and_then(|a| a.dims.last()) else { return Ok(None) };
                expand_with(editor, id, |b, o| {
                    Some(b.add_inst(Op::TopK { k, largest: true, kind: CompareKind::Total }, &[o[0]]))
                })
            }
            _ => Ok(None),
        },
        "stochastic-convert" => {
            let Some(to) = editor.array(id).map(|a| a.dtype).filter(|t| t.is_signed()) else { return Ok(None) };
            expand_with(editor, id, |b, o| round_by_random_bits(b, o[0], o[1], to))
        }
        other => match inverse(other) {
            Some(write) if editor.dtype(editor.operand(id, 0)).is_some_and(|t| t.is_float()) => {
                expand_with(editor, id, |b, o| Some(write(b, o[0])))
            }
            _ => expand_on_one_device(editor, id, f),
        },
    }
}

/// `x` as a signed integer, its magnitude rounded up where the fraction, as a number of as many bits as `random` has, is more than
/// `random`. What lies beyond the integers gives the last of them, NaN gives 0. The steps are those of XLA's
/// `stochastic_convert_decomposer.cc`.
fn round_by_random_bits(b: &mut Builder, x: InstId, random: InstId, to: DType) -> Option<InstId> {
    let (least, most) = to.integer_bounds()?;
    let magnitude = b.unary(ScalarOp::Abs, x);
    let below = b.unary(ScalarOp::Floor, magnitude);
    let mut fraction = b.sub(magnitude, below);
    if b.dtype(x).bits() < 32 {
        // f16 has no 2^16
        fraction = b.convert(fraction, DType::F32);
    }
    let bits = b.dtype(random);
    let steps = b.full_like(fraction, f64::from(bits.bits()).exp2());
    let fraction = b.mul(fraction, steps);
    let fraction = b.convert(fraction, bits);
    let is_up = b.compare(Direction::Lt, random, fraction);
    let below = b.convert(below, to);
    let one = b.full_like(below, 1.0);
    let above = b.add(below, one);
    let rounded = b.select(is_up, above, below);
    let zero = b.full_like(x, 0.0);
    let is_negative = b.compare(Direction::Lt, x, zero);
    let negated = b.unary(ScalarOp::Negate, rounded);
    let mut result = b.select(is_negative, negated, rounded);
    for (direction, limit) in [(Direction::Le, least), (Direction::Ge, most)] {
        let (float, integer) = (b.full_like(x, limit), b.full_like(result, limit));
        let is_beyond = b.compare(direction, x, float);
        result = b.select(is_beyond, integer, result);
    }
    Some(result)
}

/// Definitions of functions that newer texts have as opcodes; for small arguments in forms without cancellation.
fn inverse(opcode: &str) -> Option<fn(&mut Builder, InstId) -> InstId> {
    Some(match opcode {
        "asin" => asin,
        "acos" => acos,
        "sinh" => sinh,
        "cosh" => cosh,
        "asinh" => asinh,
        "acosh" => acosh,
        "atanh" => atanh,
        _ => return None,
    })
}

/// √((1 - x)(1 + x)), the other leg of a right triangle with hypotenuse 1.
fn other_leg(b: &mut Builder, x: InstId) -> InstId {
    let one = b.full_like(x, 1.0);
    let (less, more) = (b.sub(one, x), b.add(one, x));
    let square = b.mul(less, more);
    b.unary(ScalarOp::Sqrt, square)
}

fn asin(b: &mut Builder, x: InstId) -> InstId {
    let leg = other_leg(b, x);
    b.binary(ScalarOp::Atan2, x, leg)
}

fn acos(b: &mut Builder, x: InstId) -> InstId {
    let leg = other_leg(b, x);
    b.binary(ScalarOp::Atan2, leg, x)
}

/// (e + e / (e + 1)) / 2 with e = e^x - 1.
fn sinh(b: &mut Builder, x: InstId) -> InstId {
    let e = b.unary(ScalarOp::Expm1, x);
    let (one, half) = (b.full_like(x, 1.0), b.full_like(x, 0.5));
    let more = b.add(e, one);
    let part = b.div(e, more);
    let sum = b.add(e, part);
    let small = b.mul(sum, half);
    // Where e^x overflows the result may not yet: e^(x - ln 2).
    let large = half_exponential(b, x);
    let magnitude = b.unary(ScalarOp::Sign, x);
    let large = b.mul(large, magnitude);
    let size = b.unary(ScalarOp::Abs, x);
    let limit = b.full_like(x, 20.0);
    let is_large = b.compare(Direction::Gt, size, limit);
    b.select(is_large, large, small)
}

/// e^|x| / 2, with no overflow before the result's.
fn half_exponential(b: &mut Builder, x: InstId) -> InstId {
    let size = b.unary(ScalarOp::Abs, x);
    let ln2 = b.full_like(x, std::f64::consts::LN_2);
    let less = b.sub(size, ln2);
    b.unary(ScalarOp::Exp, less)
}

fn cosh(b: &mut Builder, x: InstId) -> InstId {
    let half = half_exponential(b, x);
    let quarter = b.full_like(x, 0.25);
    let rest = b.div(quarter, half);
    b.add(half, rest)
}

/// The sign of x times log1p(|x| + x² / (1 + √(x² + 1))); of large numbers log|x| + ln 2.
fn asinh(b: &mut Builder, x: InstId) -> InstId {
    let size = b.unary(ScalarOp::Abs, x);
    let one = b.full_like(x, 1.0);
    let square = b.mul(x, x);
    let more = b.add(square, one);
    let root = b.unary(ScalarOp::Sqrt, more);
    let below = b.add(one, root);
    let part = b.div(square, below);
    let sum = b.add(size, part);
    let small = b.unary(ScalarOp::Log1p, sum);
    let y = with_large(b, size, small);
    let sign = b.unary(ScalarOp::Sign, x);
    b.mul(sign, y)
}

/// `small`, but log(x) + ln 2 where the square of x would overflow.
fn with_large(b: &mut Builder, x: InstId, small: InstId) -> InstId {
    let log = b.unary(ScalarOp::Log, x);
    let ln2 = b.full_like(x, std::f64::consts::LN_2);
    let large = b.add(log, ln2);
    let limit = if b.dtype(x).bits() < 32 { 100.0 } else { 1e8 };
    let limit = b.full_like(x, limit);
    let is_large = b.compare(Direction::Gt, x, limit);
    b.select(is_large, large, small)
}

/// log1p(t + √(t² + 2t)) with t = x - 1.
fn acosh(b: &mut Builder, x: InstId) -> InstId {
    let one = b.full_like(x, 1.0);
    let (t, more) = (b.sub(x, one), b.add(x, one));
    let square = b.mul(t, more);
    let root = b.unary(ScalarOp::Sqrt, square);
    let sum = b.add(t, root);
    let small = b.unary(ScalarOp::Log1p, sum);
    with_large(b, x, small)
}

/// (log1p(x) - log1p(-x)) / 2.
fn atanh(b: &mut Builder, x: InstId) -> InstId {
    let negated = b.unary(ScalarOp::Negate, x);
    let (up, down) = (b.unary(ScalarOp::Log1p, x), b.unary(ScalarOp::Log1p, negated));
    let difference = b.sub(up, down);
    let half = b.full_like(x, 0.5);
    b.mul(difference, half)
}
