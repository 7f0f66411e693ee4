//! Activation functions and their gradients.
use crate::diag::{Code, Error, Result};
use crate::hlo::symbolic::{Builder, InstId};
use crate::ops::math::special::FormulaWriter;
use crate::ops::op_lowering::{binary, op, unary};
use crate::ops::{LowerCtx, OpLowering, Value};
use crate::scalar::formula;
use crate::scalar::{Direction, ScalarOp};

const SELU_SCALE: f64 = 1.0507009873554805;
const SELU_SCALE_ALPHA: f64 = 1.7580993408473768;
const FLOATS: &str = "f16, bf16, f32, f64";

/// Definitions of the ops of this file.
#[rustfmt::skip]
pub const ROWS: &[OpLowering] = &[
    unary("Relu",          relu),
    unary("Relu6",         relu6),
    unary("Elu",           elu).dtypes(FLOATS),
    unary("Selu",          selu).dtypes(FLOATS),
    unary("Softplus",      |b, x| formula::softplus(&mut FormulaWriter { b, like: x }, x)).dtypes(FLOATS),
    unary("Softsign",      softsign).dtypes(FLOATS),
    binary("Prelu",        prelu).dtypes(FLOATS),
    op("LeakyRelu",        "features -> activations", |cx| with_alpha(cx, leaky_relu)).pointwise().dtypes(FLOATS),
    binary("ReluGrad",     relu_grad),
    binary("Relu6Grad",    relu6_grad),
    binary("EluGrad",      elu_grad).dtypes(FLOATS),
    binary("SeluGrad",     selu_grad).dtypes(FLOATS),
    binary("SoftplusGrad", |b, g, x| { let s = b.unary(ScalarOp::Logistic, x); b.mul(g, s) }).dtypes(FLOATS),
    binary("SoftsignGrad", softsign_grad).dtypes(FLOATS),
    op("LeakyReluGrad",    "gradients features -> backprops", leaky_relu_grad).pointwise().dtypes(FLOATS),
];

/// ReLU: max(x, 0).
pub fn relu(b: &mut Builder, x: InstId) -> InstId {
    let zero = b.full_like(x, 0.0);
    b.max(x, zero)
}

/// ReLU6: x clamped to 0..6.
pub fn relu6(b: &mut Builder, x: InstId) -> InstId {
    let (zero, six) = (b.full_like(x, 0.0), b.full_like(x, 6.0));
    b.elementwise(ScalarOp::Clamp, &[zero, x, six])
}

fn is_positive(b: &mut Builder, x: InstId) -> InstId {
    let zero = b.full_like(x, 0.0);
    b.compare(Direction::Gt, x, zero)
}

/// ELU: x where it is positive, else e^x - 1.
pub fn elu(b: &mut Builder, x: InstId) -> InstId {
    let (positive, negative) = (is_positive(b, x), b.unary(ScalarOp::Expm1, x));
    b.select(positive, x, negative)
}

fn selu(b: &mut Builder, x: InstId) -> InstId {
    let positive = is_positive(b, x);
    let (scale, alpha) = (b.full_like(x, SELU_SCALE), b.full_like(x, SELU_SCALE_ALPHA));
    let up = b.mul(x, scale);
    let e = b.unary(ScalarOp::Expm1, x);
    let down = b.mul(e, alpha);
    b.select(positive, up, down)
}

/// Softsign: x / (1 + |x|).
fn softsign(b: &mut Builder, x: InstId) -> InstId {
    let (size, one) = (b.unary(ScalarOp::Abs, x), b.full_like(x, 1.0));
    let below = b.add(size, one);
    b.div(x, below)
}

/// PReLU: x where it is positive, else `alpha` times x; `alpha` is broadcast against the last dimensions.
pub fn prelu(b: &mut Builder, x: InstId, alpha: InstId) -> InstId {
    let positive = is_positive(b, x);
    let scaled = b.mul(x, alpha);
    b.select(positive, x, scaled)
}

/// Leaky ReLU: x where it is positive, else `alpha` times x.
pub fn leaky_relu(b: &mut Builder, x: InstId, alpha: f64) -> InstId {
    let alpha = b.full_like(x, alpha);
    prelu(b, x, alpha)
}

fn with_alpha(cx: &mut LowerCtx, f: fn(&mut Builder, InstId, f64) -> InstId) -> Result<Vec<Value>> {
    let alpha = f64::from(cx.node.float("alpha").unwrap_or(0.2));
    let x = cx.arg(0)?;
    let y = f(cx.b, x, alpha);
    cx.one_output(y)
}

/// `g` multiplied by a mask of 1 and 0: TensorFlow's kernels multiply, so that NaN or infinity times 0 is NaN.
fn masked(b: &mut Builder, g: InstId, keep: InstId) -> InstId {
    let mask = b.convert(keep, b.dtype(g));
    b.mul(g, mask)
}

fn relu_grad(b: &mut Builder, g: InstId, x: InstId) -> InstId {
    let positive = is_positive(b, x);
    masked(b, g, positive)
}

fn relu6_grad(b: &mut Builder, g: InstId, x: InstId) -> InstId {
    let (positive, six) = (is_positive(b, x), b.full_like(x, 6.0));
    let below = b.compare(Direction::Lt, x, six);
    let inside = b.binary(ScalarOp::And, positive, below);
    masked(b, g, inside)
}

/// Gradient of ELU as a function of its result `y`.
fn elu_grad(b: &mut Builder, g: InstId, y: InstId) -> InstId {
    let (zero, one) = (b.full_like(y, 0.0), b.full_like(y, 1.0));
    let negative = b.compare(Direction::Lt, y, zero);
    let slope = b.add(y, one);
    let down = b.mul(slope, g);
    b.select(negative, down, g)
}

fn selu_grad(b: &mut Builder, g: InstId, y: InstId) -> InstId {
    let (zero, scale, alpha) = (b.full_like(y, 0.0), b.full_like(y, SELU_SCALE), b.full_like(y, SELU_SCALE_ALPHA));
    let negative = b.compare(Direction::Lt, y, zero);
    let slope = b.add(y, alpha);
    let (down, up) = (b.mul(slope, g), b.mul(scale, g));
    b.select(negative, down, up)
}

fn softsign_grad(b: &mut Builder, g: InstId, x: InstId) -> InstId {
    let (size, one) = (b.unary(ScalarOp::Abs, x), b.full_like(x, 1.0));
    let below = b.add(size, one);
    let square = b.mul(below, below);
    b.div(g, square)
}

fn leaky_relu_grad(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let alpha = f64::from(cx.node.float("alpha").unwrap_or(0.2));
    let (g, x) = (cx.arg(0)?, cx.arg(1)?);
    let alpha = cx.b.full_like(g, alpha);
    let positive = is_positive(cx.b, x);
    let scaled = cx.b.mul(g, alpha);
    let y = cx.b.select(positive, g, scaled);
    cx.one_output(y)
}

fn gelu_exact(b: &mut Builder, x: InstId) -> InstId {
    let (root, one, half) = (b.full_like(x, std::f64::consts::FRAC_1_SQRT_2), b.full_like(x, 1.0), b.full_like(x, 0.5));
    let scaled = b.mul(x, root);
    let erf = b.unary(ScalarOp::Erf, scaled);
    let (above, below) = (b.add(erf, one), b.mul(x, half));
    b.mul(below, above)
}

fn gelu_tanh(b: &mut Builder, x: InstId) -> InstId {
    let (c, k) = (b.full_like(x, (2.0 / std::f64::consts::PI).sqrt()), b.full_like(x, 0.044715));
    let (one, half) = (b.full_like(x, 1.0), b.full_like(x, 0.5));
    let square = b.mul(x, x);
    let cube = b.mul(square, x);
    let bent = b.mul(k, cube);
    let inner = b.add(x, bent);
    let scaled = b.mul(c, inner);
    let tanh = b.unary(ScalarOp::Tanh, scaled);
    let (above, below) = (b.add(tanh, one), b.mul(x, half));
    b.mul(below, above)
}

/// Applies the activation that fused ops call `name`; `None` if the name is not an activation. `alpha` is the slope of
/// LeakyRelu.
pub fn apply_activation(b: &mut Builder, name: &str, x: InstId, alpha: f64) -> Option<InstId> {
    Some(match name {
        "Relu" => relu(b, x),
        "Relu6" => relu6(b, x),
        "Elu" => elu(b, x),
        "Sigmoid" => b.unary(ScalarOp::Logistic, x),
        "Tanh" => b.unary(ScalarOp::Tanh, x),
        "LeakyRelu" => leaky_relu(b, x, alpha),
        "GeluExact" => gelu_exact(b, x),
        "GeluApproximate" => gelu_tanh(b, x),
        _ => return None,
    })
}

/// Error for a fused op that is not supported.
pub fn unsupported_fused_op(name: &str) -> Error {
    Error::user(
        Code::UnsupportedCase,
        format!(
            "fused op {name} is not supported; BiasAdd, Add, FusedBatchNorm, Prelu, Relu, Relu6, Elu, LeakyRelu, \
             Sigmoid, Tanh, GeluExact and GeluApproximate are"
        ),
    )
}
