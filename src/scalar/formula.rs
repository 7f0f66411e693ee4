//! Functions that HLO has no op for, as formulas of ops that it has: lowering writes them out, and code generation, which may
//! have a shorter way, knows them again.
use super::{CompareKind, Direction, ScalarOp};

/// A builder that formulas are written with: of HLO instructions in lowering, of patterns to recognize in code generation.
pub trait ScalarBuilder {
    /// A value of it.
    type Value: Copy;
    /// A constant.
    fn number(&mut self, value: f64) -> Self::Value;
    /// The value of an op.
    fn op(&mut self, op: ScalarOp, args: &[Self::Value]) -> Self::Value;
}

/// The complementary error function in f32: of magnitudes, e^(-x²) times a fit of erfc(x)·e^(x²) in t = 2/(2 + x), whose
/// relative error is below 4.4e-8 up to 10.2, where erfc(x) is less than the least f32, and 2 minus that below 0.
pub fn erfc<F: ScalarBuilder>(f: &mut F, x: F::Value) -> F::Value {
    /// erfc(x)·e^(x²)/t, rising powers of t: the best relative error of this degree.
    const FIT: [f64; 9] = [
        0.282_086_038_7,
        0.282_381_931_3,
        0.243_055_771_3,
        0.202_876_067_6,
        -0.027_071_341_33,
        0.278_712_147,
        -0.487_762_11,
        0.284_845_792_6,
        -0.059_124_340_19,
    ];
    let (zero, two) = (f.number(0.0), f.number(2.0));
    let a = f.op(ScalarOp::Abs, &[x]);
    let below = f.op(ScalarOp::Add, &[two, a]);
    let t = f.op(ScalarOp::Divide, &[two, below]);
    let fit = polynomial_in_pairs(f, t, &FIT);
    let fit = f.op(ScalarOp::Multiply, &[t, fit]);
    let square = f.op(ScalarOp::Multiply, &[a, a]);
    let minus = f.op(ScalarOp::Negate, &[square]);
    let e = f.op(ScalarOp::Exp, &[minus]);
    let of_magnitude = f.op(ScalarOp::Multiply, &[fit, e]);
    let mirrored = f.op(ScalarOp::Subtract, &[two, of_magnitude]);
    let is_negative = f.op(ScalarOp::Compare(Direction::Lt, CompareKind::Partial), &[x, zero]);
    f.op(ScalarOp::Select, &[is_negative, mirrored, of_magnitude])
}

/// log(1 + e^x) as max(x, 0) + log1p(e^-|x|), which neither overflows nor loses small values.
pub fn softplus<F: ScalarBuilder>(f: &mut F, x: F::Value) -> F::Value {
    let size = f.op(ScalarOp::Abs, &[x]);
    let minus = f.op(ScalarOp::Negate, &[size]);
    let e = f.op(ScalarOp::Exp, &[minus]);
    let tail = f.op(ScalarOp::Log1p, &[e]);
    let zero = f.number(0.0);
    let linear = f.op(ScalarOp::Maximum, &[x, zero]);
    f.op(ScalarOp::Add, &[linear, tail])
}

/// x·tanh(softplus x), as models write it.
pub fn mish<F: ScalarBuilder>(f: &mut F, x: F::Value) -> F::Value {
    let softplus = softplus(f, x);
    let tanh = f.op(ScalarOp::Tanh, &[softplus]);
    f.op(ScalarOp::Multiply, &[x, tanh])
}

/// A polynomial of rising powers by Estrin's scheme: neighbours are joined with x, then those with x², and so on. Few of its
/// steps wait for one another, which is what costs time where many elements are at work at once.
fn polynomial_in_pairs<F: ScalarBuilder>(f: &mut F, x: F::Value, coefficients: &[f64]) -> F::Value {
    let mut terms: Vec<F::Value> = coefficients.iter().map(|&c| f.number(c)).collect();
    let mut power = x;
    while terms.len() > 1 {
        let mut join = |pair: &[F::Value]| match *pair {
            [low, high] => {
                let scaled = f.op(ScalarOp::Multiply, &[high, power]);
                f.op(ScalarOp::Add, &[scaled, low])
            }
            _ => pair[0],
        };
        terms = terms.chunks(2).map(&mut join).collect();
        if terms.len() > 1 {
            power = f.op(ScalarOp::Multiply, &[power, power]);
        }
    }
    terms.first().copied().unwrap_or(x)
}
