//! Pooling, and local response normalization.
use super::bias::accumulator_type;
use super::window::{Padding, WindowAttrs, positive_sizes};
use super::window_counts::window_counts;
use crate::diag::{Code, Error, Result};
use crate::hlo::symbolic::WindowDim;
use crate::hlo::symbolic::{Builder, Dim, InstId, Op};
use crate::ops::ShapeCtx;
use crate::ops::fact::Fact;
use crate::ops::op_lowering::op;
use crate::ops::shape::like_first_input;
use crate::ops::symbols::{InferredDim, UnknownReason};
use crate::ops::{LowerCtx, OpLowering, Value, Work};
use crate::scalar::ScalarOp;
use crate::tensor::{DType, DTypeClass, Tensor};

const FLOATS: &str = "f16, bf16, f32, f64";

/// Definitions of the ops of this file.
#[rustfmt::skip]
pub const ROWS: &[OpLowering] = &[
    op("MaxPool",   "input -> output",               |cx| max_pool(cx, 2)).shape(|cx| pool_shape(cx, 2)).work(Work::Pool),
    op("MaxPoolV2", "input ksize strides -> output", |cx| max_pool(cx, 2)).shape(|cx| pool_shape(cx, 2)).constant_inputs(&[1, 2]),
    op("MaxPool3D", "input -> output",               |cx| max_pool(cx, 3)).shape(|cx| pool_shape(cx, 3)).work(Work::Pool),
    op("AvgPool",   "value -> output",               |cx| avg_pool(cx, 2)).shape(|cx| pool_shape(cx, 2)).dtypes(FLOATS).work(Work::Pool),
    op("AvgPool3D", "input -> output",               |cx| avg_pool(cx, 3)).shape(|cx| pool_shape(cx, 3)).dtypes(FLOATS).work(Work::Pool),
    op("LRNGrad",   "input_grads input_image output_image -> output", lrn_grad).shape(like_first_input).dtypes("f16, bf16, f32"),
    op("LRN",       "input -> output",               lrn).shape(like_first_input).dtypes("f16, bf16, f32"),
];

/// Attributes of a pooling op.
pub struct PoolAttrs {
    /// Window size along each axis.
    pub ksize: Vec<Dim>,
    /// Strides, padding and data format.
    pub args: WindowAttrs,
}

impl PoolAttrs {
    /// Reads the attributes; without them, inputs `at` and `at + 1` hold `ksize` and `strides` (`MaxPoolV2`).
    pub fn parse(cx: &LowerCtx, spatial: usize, at: usize) -> Result<PoolAttrs> {
        let mut args = WindowAttrs::parse(cx.node, spatial)?;
        let rank = args.layout.rank();
        if let Some(v) = cx.node.ints("ksize") {
            return Ok(PoolAttrs { ksize: positive_sizes(v, "ksize", rank)?, args });
        }
        let ksize = positive_sizes(&cx.constant_ints(at)?, "ksize", rank)?;
        args.strides = positive_sizes(&cx.constant_ints(at + 1)?, "strides", rank)?;
        Ok(PoolAttrs { ksize, args })
    }
    /// Windows over an array of these sizes.
    pub fn windows(&self, dims: &[Dim]) -> Result<Vec<WindowDim>> {
        if dims.len() != self.ksize.len() {
            return Err(Error::user(Code::ShapeMismatch, format!("a window {:?} over an array {dims:?}", self.ksize)));
        }
        (0..dims.len()).map(|a| self.args.window(a, dims[a], self.ksize[a])).collect()
    }
}

/// Lowest value of a type: -inf for floats.
pub fn lowest_value(b: &mut Builder, dtype: DType) -> InstId {
    let value = match dtype.class() {
        DTypeClass::Float => f64::NEG_INFINITY,
        DTypeClass::Signed if dtype == DType::S64 => return b.constant(Tensor::scalar(i64::MIN)),
        DTypeClass::Signed => -(2f64.powi(dtype.bits() as i32 - 1)),
        DTypeClass::Pred | DTypeClass::Unsigned | DTypeClass::Complex => 0.0,
    };
    b.scalar(dtype, value)
}

/// Reduces each window with an op.
pub fn reduce_window(b: &mut Builder, x: InstId, init: InstId, op: ScalarOp, window: Vec<WindowDim>) -> InstId {
    let comp = b.scalar_computation(op, b.dtype(x));
    b.add_inst(Op::ReduceWindow { window, comp }, &[x, init])
}

/// Initial value of TensorFlow's max-pool kernels: the lowest finite number in 2D, the lowest value in 3D.
fn start(b: &mut Builder, dtype: DType, spatial: usize) -> InstId {
    if spatial == 2 { lowest_finite(b, dtype) } else { lowest_value(b, dtype) }
}

/// Lowest finite number of a type.
pub fn lowest_finite(b: &mut Builder, dtype: DType) -> InstId {
    let value = match dtype {
        DType::F64 => f64::MIN,
        DType::F32 => f64::from(f32::MIN),
        DType::F16 => -65504.0,
        DType::BF16 => f64::from(f32::from_bits(0xFF7F_0000)),
        _ => return lowest_value(b, dtype),
    };
    b.scalar(dtype, value)
}

/// Lowers `MaxPool`: the largest number of each window. As in TensorFlow's kernels NaN is skipped, and in 2D a window without a
/// number above the lowest finite one gives that.
fn max_pool(cx: &mut LowerCtx, spatial: usize) -> Result<Vec<Value>> {
    let pool = PoolAttrs::parse(cx, spatial, 1)?;
    let window = pool.windows(&cx.dims(0)?)?;
    let x = cx.arg(0)?;
    let b = &mut *cx.b;
    let dtype = b.dtype(x);
    let init = start(b, dtype, spatial);
    let y = match dtype.is_float() {
        true => {
            let work = accumulator_type(dtype);
            let (x, init) = (b.convert(x, work), b.convert(init, work));
            let comp = b.max_computation(work);
            let y = b.add_inst(Op::ReduceWindow { window, comp }, &[x, init]);
            b.convert(y, dtype)
        }
        false => reduce_window(b, x, init, ScalarOp::Maximum, window),
    };
    cx.one_output(y)
}

/// Lowers `AvgPool`: the mean of each window over the elements that are not padding.
fn avg_pool(cx: &mut LowerCtx, spatial: usize) -> Result<Vec<Value>> {
    let pool = PoolAttrs::parse(cx, spatial, 1)?;
    if matches!(pool.args.padding, Padding::Explicit(_)) {
        return Err(cx.unsupported_case("padding EXPLICIT of an average pool is not supported; SAME and VALID are"));
    }
    let (dims, dtype) = (cx.dims(0)?, cx.dtype(0)?);
    if !dtype.is_float() {
        return Err(cx.unsupported_case(format!("an average pool of {dtype}; {FLOATS} are supported")));
    }
    let window = pool.windows(&dims)?;
    let x = cx.arg(0)?;
    let x = cx.b.convert(x, accumulator_type(dtype));
    let zero = cx.b.scalar(accumulator_type(dtype), 0.0);
    let total = reduce_window(cx.b, x, zero, ScalarOp::Add, window.clone());
    let counts = window_counts(cx.b, accumulator_type(dtype), &dims, &window, &pool.args.padding)?;
    let mean = cx.b.div(total, counts);
    let y = cx.b.convert(mean, dtype);
    cx.one_output(y)
}

/// Attributes of a local response normalization.
struct Response {
    radius: i64,
    bias: f64,
    alpha: f64,
    beta: f64,
}

impl Response {
    fn parse(cx: &LowerCtx, dims: &[Dim]) -> Result<Response> {
        if dims.len() != 4 {
            return Err(cx.shape_mismatch(format!("the input must have rank 4, not {dims:?}")));
        }
        let radius = cx.node.int("depth_radius").unwrap_or(5);
        if !(0..=i32::MAX as i64).contains(&radius) {
            return Err(Error::user(Code::BadAttr, format!("depth_radius is {radius}")));
        }
        let number = |name: &str, default: f32| f64::from(cx.node.float(name).unwrap_or(default));
        Ok(Response {
            radius: radius.min(dims[3].guarded_value()),
            bias: number("bias", 1.0),
            alpha: number("alpha", 1.0),
            beta: number("beta", 0.5),
        })
    }
    /// Sum over the neighboring channels.
    fn neighbours(&self, b: &mut Builder, x: InstId) -> InstId {
        let mut window = vec![WindowDim::default(); 4];
        let (low, high) = (self.radius, self.radius);
        window[3] = WindowDim {
            size: 2 * Dim::from(self.radius) + 1,
            pad_low: Dim::from(low),
            pad_high: Dim::from(high),
            ..window[3]
        };
        let zero = b.scalar(b.dtype(x), 0.0);
        reduce_window(b, x, zero, ScalarOp::Add, window)
    }
    /// `bias + alpha * sum of squares` over the neighboring channels.
    fn base(&self, b: &mut Builder, x: InstId) -> InstId {
        let square = b.mul(x, x);
        let total = self.neighbours(b, square);
        let (bias, alpha) = (b.full_like(x, self.bias), b.full_like(x, self.alpha));
        let scaled = b.mul(total, alpha);
        b.add(scaled, bias)
    }
}

/// Lowers `LRN`: x / (bias + alpha * sum of squares over `2 * depth_radius + 1` neighboring channels)^beta.
fn lrn(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (x, dtype) = (cx.arg(0)?, cx.dtype(0)?);
    let response = Response::parse(cx, &cx.dims(0)?)?;
    let b = &mut *cx.b;
    let x = b.convert(x, accumulator_type(dtype));
    let base = response.base(b, x);
    let beta = b.full_like(x, -response.beta);
    let factor = b.binary(ScalarOp::Power, base, beta);
    let y = b.mul(x, factor);
    let y = b.convert(y, dtype);
    cx.one_output(y)
}

/// Lowers the gradient of `LRN`: `g * base^-beta - 2 * alpha * beta * x * (sum over neighbors of g * y / base)`.
fn lrn_grad(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (v, dtype) = (cx.arg_range(0, 3)?, cx.dtype(0)?);
    let response = Response::parse(cx, &cx.dims(1)?)?;
    let b = &mut *cx.b;
    let v = v.into_iter().map(|i| b.convert(i, accumulator_type(dtype))).collect::<Vec<_>>();
    let (g, x, y) = (v[0], v[1], v[2]);
    let base = response.base(b, x);
    let beta = b.full_like(x, -response.beta);
    let factor = b.binary(ScalarOp::Power, base, beta);
    let own = b.mul(g, factor);
    let product = b.mul(g, y);
    let ratio = b.div(product, base);
    let total = response.neighbours(b, ratio);
    let weight = b.full_like(x, -2.0 * response.alpha * response.beta);
    let scaled = b.mul(weight, x);
    let others = b.mul(scaled, total);
    let dx = b.add(own, others);
    // The kernel adds both to 0, so that the result is never -0.0.
    let zero = b.full_like(dx, 0.0);
    let dx = b.add(dx, zero);
    let dx = b.convert(dx, dtype);
    cx.one_output(dx)
}

/// Shape function of a pool with `spatial` spatial axes; the window may be given by inputs 1 and 2.
pub fn pool_shape(cx: &mut ShapeCtx, spatial: usize) -> Result<Vec<Fact>> {
    let mut args = WindowAttrs::parse(cx.node, spatial)?;
    let rank = args.layout.rank();
    let ksize = match cx.node.ints("ksize") {
        Some(v) => positive_sizes(v, "ksize", rank)?,
        None => match (cx.constant_ints(1), cx.constant_ints(2)) {
            (Some(ksize), Some(strides)) => {
                args.strides = positive_sizes(&strides, "strides", rank)?;
                positive_sizes(&ksize, "ksize", rank)?
            }
            _ => {
                let dims = cx.fresh_shape(rank, UnknownReason::Value(1));
                return cx.one_output_like(0, dims);
            }
        },
    };
    let mut dims = cx.dims_of_rank(0, rank)?;
    for (axis, d) in dims.iter_mut().enumerate() {
        *d = args.window_count(cx, axis, *d, InferredDim::Known(ksize[axis].guarded_count()))?;
    }
    cx.one_output_like(0, dims)
}
