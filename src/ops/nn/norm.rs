//! Batch normalization.
use super::bias::feature_axis_of;
use super::bias::{accumulator_type, feature_axis};
use crate::diag::Result;
use crate::hlo::symbolic::{Builder, Dim, InstId};
use crate::ops::ShapeCtx;
use crate::ops::fact::{Dims, Fact};
use crate::ops::op_lowering::op;
use crate::ops::shape::like_first_input;
use crate::ops::symbols::InferredDim;
use crate::ops::{LowerCtx, OpLowering, Value, Work};
use crate::scalar::ScalarOp;
use crate::tensor::Tensor;

const INPUTS: &str = "x scale offset mean variance -> y batch_mean batch_variance reserve_space_1 reserve_space_2";
const V3: &str =
    "x scale offset mean variance -> y batch_mean batch_variance reserve_space_1 reserve_space_2 reserve_space_3";
const EX: &str = "x scale offset mean variance side_input* -> y batch_mean batch_variance reserve_space_1 reserve_space_2 reserve_space_3";
const GRAD: &str = "y_backprop x scale reserve_space_1 reserve_space_2 -> x_backprop scale_backprop offset_backprop reserve_space_3 reserve_space_4";
const GRAD_V3: &str = "y_backprop x scale reserve_space_1 reserve_space_2 reserve_space_3 -> x_backprop scale_backprop offset_backprop reserve_space_4 reserve_space_5";
const FLOATS: &str = "f16, bf16, f32";

/// Definitions of the ops of this file.
#[rustfmt::skip]
pub const ROWS: &[OpLowering] = &[
    op("FusedBatchNorm",    INPUTS, |cx| lower_batch_norm(cx, Reserve::Two)).shape(|cx| batch_norm_shape(cx, Reserve::Two)).dtypes("f32").work(Work::Normalise),
    op("FusedBatchNormV2",  INPUTS, |cx| lower_batch_norm(cx, Reserve::Two)).shape(|cx| batch_norm_shape(cx, Reserve::Two)).dtypes(FLOATS).work(Work::Normalise),
    op("FusedBatchNormV3",  V3,     |cx| lower_batch_norm(cx, Reserve::Three)).shape(|cx| batch_norm_shape(cx, Reserve::Three)).dtypes(FLOATS).work(Work::Normalise),
    op("_FusedBatchNormEx", EX,     |cx| lower_batch_norm(cx, Reserve::Three)).shape(|cx| batch_norm_shape(cx, Reserve::Three)).dtypes(FLOATS).work(Work::Normalise),
    op("FusedBatchNormGrad",   GRAD,    batch_norm_grad).shape(batch_norm_grad_shape).dtypes("f32"),
    op("FusedBatchNormGradV2", GRAD,    batch_norm_grad).shape(batch_norm_grad_shape).dtypes(FLOATS),
    op("FusedBatchNormGradV3", GRAD_V3, batch_norm_grad).shape(batch_norm_grad_shape).dtypes(FLOATS),
    op("BatchNormWithGlobalNormalization", "t m v beta gamma -> result", global_norm).shape(like_first_input).dtypes("f16, bf16, f32, f64"),
];

/// Number of reserved outputs of an op.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reserve {
    Two,
    Three,
}

/// The four parameter vectors of a batch normalization, one element per channel.
pub struct BatchNormParams {
    /// Scale factor.
    pub scale: InstId,
    /// Offset, which is added last.
    pub offset: InstId,
    /// Mean, which is subtracted from the input first.
    pub mean: InstId,
    /// Variance.
    pub variance: InstId,
}

/// Batch normalization `(x - mean) * (rsqrt(variance + epsilon) * scale) + offset` along `axis`, in the wider of the types of
/// `x` and the statistics.
///
/// Shapes: `x` any, the statistics vectors of its size along `axis`; the result has the type of `x`.
pub fn batch_norm(b: &mut Builder, x: InstId, stats: &BatchNormParams, axis: usize, epsilon: f64) -> InstId {
    let (dtype, dims) = (b.dtype(x), b.dims(x).to_vec());
    let work = accumulator_type(dtype);
    let x = b.convert(x, work);
    let epsilon = b.full(work, &[dims[axis]], epsilon);
    let [scale, offset, mean, variance] =
        [stats.scale, stats.offset, stats.mean, stats.variance].map(|v| b.convert(v, work));
    let shifted = b.add(variance, epsilon);
    let root = b.unary(ScalarOp::Rsqrt, shifted);
    let factor = b.mul(root, scale);
    let [factor, offset, mean] = [factor, offset, mean].map(|v| b.broadcast(v, &dims, &[axis]));
    let centred = b.sub(x, mean);
    let scaled = b.mul(centred, factor);
    let y = b.add(scaled, offset);
    b.convert(y, dtype)
}

/// Mean over all axes of `x` but `axis`, a vector.
fn channel_mean(b: &mut Builder, x: InstId, axis: usize) -> InstId {
    let dims = b.dims(x).to_vec();
    let others: Vec<usize> = (0..dims.len()).filter(|&a| a != axis).collect();
    let count: Dim = others.iter().map(|&a| dims[a]).product();
    let total = super::bias::sum_axes(b, x, &others);
    let count = b.full_like(total, count);
    b.div(total, count)
}

/// Lowers `FusedBatchNorm` and its later versions: inference with given statistics, or training with those of the batch.
///
/// Outputs: y, the (running) mean and variance, the statistics that the gradient needs, and for V3 an empty vector.
fn lower_batch_norm(cx: &mut LowerCtx, reserve: Reserve) -> Result<Vec<Value>> {
    let dims = cx.dims(0)?;
    let axis = feature_axis(cx, dims.len())?;
    for i in 1..5 {
        let given = cx.dims(i)?;
        let unused = i > 2 && given == [0];
        if given != [dims[axis]] && !unused {
            return Err(
                cx.shape_mismatch(format!("input {i} is {given:?}, and dimension {axis} of {dims:?} has the channels"))
            );
        }
    }
    let epsilon = f64::from(cx.node.float("epsilon").unwrap_or(1e-4));
    let v = cx.arg_range(0, 5)?;
    let (x, scale, offset, mean, variance) = (v[0], v[1], v[2], v[3], v[4]);
    let training = cx.node.bool("is_training").unwrap_or(true);
    let (y, tail) = if training {
        let stats = batch_statistics(cx.b, x, axis);
        let y =
            batch_norm(cx.b, x, &BatchNormParams { scale, offset, mean: stats[0], variance: stats[1] }, axis, epsilon);
        let count: Dim = (0..dims.len()).filter(|&a| a != axis).map(|a| dims[a]).product();
        let running = running_statistics(cx, stats, count, [mean, variance]);
        (y, vec![running[0], running[1], stats[0], stats[1]])
    } else {
        let y = batch_norm(cx.b, x, &BatchNormParams { scale, offset, mean, variance }, axis, epsilon);
        (y, vec![mean, variance, mean, variance])
    };
    let y = side_input_and_activation(cx, y)?;
    let mut out: Vec<Value> = std::iter::once(y).chain(tail).map(Value::Array).collect();
    if reserve == Reserve::Three {
        let empty = cx.b.constant(Tensor::of::<f32>(&[0], &[]));
        out.push(Value::Array(empty));
    }
    Ok(out)
}

/// Mean and biased variance of a batch, in f32 for narrow types.
fn batch_statistics(b: &mut Builder, x: InstId, axis: usize) -> [InstId; 2] {
    let dims = b.dims(x).to_vec();
    let x = b.convert(x, accumulator_type(b.dtype(x)));
    let mean = channel_mean(b, x, axis);
    let spread = b.broadcast(mean, &dims, &[axis]);
    let centred = b.sub(x, spread);
    let square = b.mul(centred, centred);
    [mean, channel_mean(b, square, axis)]
}

/// Outputs for the running averages: mean, and variance with Bessel's correction, mixed into the old values by
/// `exponential_avg_factor`.
fn running_statistics(cx: &mut LowerCtx, batch: [InstId; 2], count: Dim, old: [InstId; 2]) -> [InstId; 2] {
    let b = &mut *cx.b;
    let bessel = match count.varies() {
        true => {
            let (count, others) = (b.full_like(batch[1], count), b.full_like(batch[1], count.max(2) - 1));
            b.div(count, others)
        }
        false => b.full_like(batch[1], count.as_f64() / (count.max(2) - 1).as_f64()),
    };
    let fresh = [batch[0], b.mul(batch[1], bessel)];
    let factor = f64::from(cx.node.float("exponential_avg_factor").unwrap_or(1.0));
    if factor == 1.0 {
        return fresh;
    }
    let mut mix = |new: InstId, old: InstId| {
        let (f, rest) = (b.full_like(new, factor), b.full_like(new, 1.0 - factor));
        let old = b.convert(old, b.dtype(new));
        let (new, old) = (b.mul(new, f), b.mul(old, rest));
        b.add(old, new)
    };
    [mix(fresh[0], old[0]), mix(fresh[1], old[1])]
}

/// Tail of `_FusedBatchNormEx`: adds a further input to the result, and applies an activation.
fn side_input_and_activation(cx: &mut LowerCtx, mut y: InstId) -> Result<InstId> {
    let node = cx.node;
    if node.int("num_side_inputs").unwrap_or(0) > 0 {
        let side = cx.arg(5)?;
        y = cx.b.add(y, side);
    }
    match node.str("activation_mode").unwrap_or("Identity") {
        "Identity" => Ok(y),
        "Relu" => Ok(super::activation::relu(cx.b, y)),
        other => Err(cx.unsupported_case(format!("activation_mode {other} is not supported; Identity and Relu are"))),
    }
}

/// Lowers `BatchNormWithGlobalNormalization`, the batch normalization of GraphDefs before version 9.
fn global_norm(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let dims = cx.dims(0)?;
    let Some(axis) = dims.len().checked_sub(1) else { return Err(cx.shape_mismatch("a scalar has no channels")) };
    for i in 1..5 {
        let given = cx.dims(i)?;
        if given != [dims[axis]] {
            return Err(cx.shape_mismatch(format!("input {i} is {given:?}, and {dims:?} has {} channels", dims[axis])));
        }
    }
    let v = cx.arg_range(0, 5)?;
    let epsilon = f64::from(cx.require_attr(cx.node.float("variance_epsilon"), "variance_epsilon")?);
    let ones = cx.b.full_like(v[4], 1.0);
    let scale = if cx.bool_attr("scale_after_normalization") { v[4] } else { ones };
    let stats = BatchNormParams { scale, offset: v[3], mean: v[1], variance: v[2] };
    let y = batch_norm(cx.b, v[0], &stats, axis, epsilon);
    cx.one_output(y)
}

/// Lowers the gradients of a batch normalization with respect to x, scale and offset; inputs 3 and 4 are the statistics that it
/// used.
fn batch_norm_grad(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let dims = cx.dims(1)?;
    let axis = feature_axis(cx, dims.len())?;
    if cx.dims(0)? != dims {
        return Err(cx.shape_mismatch(format!("the gradient is {:?}, and x is {dims:?}", cx.dims(0)?)));
    }
    let epsilon = f64::from(cx.node.float("epsilon").unwrap_or(1e-4));
    let training = cx.node.bool("is_training").unwrap_or(true);
    let v = cx.arg_range(0, 5)?;
    let dtype = cx.b.dtype(v[1]);
    let others: Vec<usize> = (0..dims.len()).filter(|&a| a != axis).collect();
    let b = &mut *cx.b;
    let work = accumulator_type(dtype);
    let v = v.into_iter().map(|i| b.convert(i, work)).collect::<Vec<_>>();
    let [dy, x, scale, mean, variance] = v[..] else { return Err(cx.shape_mismatch("five inputs are needed")) };
    let epsilon = b.full_like(variance, epsilon);
    let shifted = b.add(variance, epsilon);
    let root = b.unary(ScalarOp::Rsqrt, shifted);
    let factor = b.mul(scale, root);
    let [wide_mean, wide_root, wide_factor] = [mean, root, factor].map(|i| b.broadcast(i, &dims, &[axis]));
    let centred = b.sub(x, wide_mean);
    let standard = b.mul(centred, wide_root);
    let product = b.mul(dy, standard);
    let d_scale = super::bias::sum_axes(b, product, &others);
    let d_offset = super::bias::sum_axes(b, dy, &others);
    let inner = if training {
        let count = b.full_like(d_offset, others.iter().map(|&a| dims[a]).product::<Dim>());
        let (a, c) = (b.div(d_offset, count), b.div(d_scale, count));
        let [a, c] = [a, c].map(|i| b.broadcast(i, &dims, &[axis]));
        let less = b.sub(dy, a);
        let bent = b.mul(standard, c);
        b.sub(less, bent)
    } else {
        dy
    };
    let dx = b.mul(inner, wide_factor);
    let dx = b.convert(dx, dtype);
    let empty = b.constant(Tensor::of::<f32>(&[0], &[]));
    Ok([dx, d_scale, d_offset, empty, empty].map(Value::Array).to_vec())
}

/// Shape of input `i` and its number of channels, merged with the sizes of the vector inputs `vectors`.
fn channels(cx: &mut ShapeCtx, i: usize, vectors: &[usize]) -> Result<(Dims, InferredDim)> {
    let (axis, dims) = (feature_axis_of(cx, i)?, cx.dims(i)?);
    let mut n = match (axis, dims.as_ranked()) {
        (Some(axis), Some(dims)) => dims[axis],
        _ => cx.dims_of_rank(vectors[0], 1)?[0],
    };
    for &v in vectors {
        let size = cx.dims_of_rank(v, 1)?[0];
        if size != InferredDim::Known(0) {
            let both = cx.merge_dim(n, size);
            n = both.ok_or_else(|| cx.shape_mismatch(format!("input {v} is {}, for {dims}", cx.args[v].dims)))?;
        }
    }
    let dims = match (axis, dims) {
        (Some(axis), Dims::Ranked(dims)) => {
            let mut dims = dims.to_vec();
            dims[axis] = n;
            dims.into()
        }
        (_, dims) => dims,
    };
    Ok((dims, n))
}

/// Shape function of `FusedBatchNorm`: y, four vectors over the channels, and for V3 an empty vector.
fn batch_norm_shape(cx: &mut ShapeCtx, reserve: Reserve) -> Result<Vec<Fact>> {
    let (y, n) = channels(cx, 0, &[1, 2, 3, 4])?;
    let given = |cx: &ShapeCtx, i: usize| cx.dims(i);
    let vector = Dims::ranked([n]);
    let mut dims = vec![vector.clone(); 4];
    if !cx.node.bool("is_training").unwrap_or(true) {
        dims = [3, 4, 3, 4].iter().map(|&i| given(cx, i)).collect::<Result<_>>()?;
    }
    let mut out = vec![Fact::new(cx.dtype(0), y)];
    out.extend(dims.into_iter().map(|d| Fact::new(cx.dtype(1), d)));
    if reserve == Reserve::Three {
        out.push(Fact::new(cx.dtype(1), Dims::from_sizes(&[0])));
    }
    Ok(out)
}

fn batch_norm_grad_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let (x, n) = channels(cx, 1, &[2])?;
    let vector = Fact::new(cx.dtype(2), vec![n].into());
    let empty = Fact::new(cx.dtype(2), Dims::from_sizes(&[0]));
    Ok(vec![Fact::new(cx.dtype(1), x), vector.clone(), vector, empty.clone(), empty])
}
