//! Forward convolutions.
use super::window::{DataFormat, WindowAttrs, positive_sizes};
use crate::diag::{Code, Error, Result};
use crate::dims;
use crate::graph::Node;
use crate::hlo::symbolic::{Builder, InstId, Op};
use crate::hlo::symbolic::{ConvDims, Dim, WindowDim};
use crate::ops::ShapeCtx;
use crate::ops::fact::Fact;
use crate::ops::op_lowering::op;
use crate::ops::symbols::{InferredDim, UnknownReason};
use crate::ops::{LowerCtx, OpLowering, Value, Work};

const FLOATS: &str = "f16, bf16, f32, f64, s32";

/// Definitions of the ops of this file.
#[rustfmt::skip]
pub const ROWS: &[OpLowering] = &[
    op("Conv",                  "input filter -> output", any_rank).shape(any_rank_shape).dtypes(FLOATS).work(Work::Convolution(1)),
    op("Conv1D",                "input filter -> output", conv1d).shape(conv1d_shape).dtypes(FLOATS).work(Work::Convolution(1)),
    op("Conv2D",                "input filter -> output", |cx| one(cx, 2)).shape(|cx| conv_shape(cx, 2)).dtypes(FLOATS).work(Work::Convolution(1)),
    op("Conv3D",                "input filter -> output", |cx| one(cx, 3)).shape(|cx| conv_shape(cx, 3)).dtypes(FLOATS).work(Work::Convolution(1)),
    op("DepthwiseConv2dNative", "input filter -> output", depthwise).shape(depthwise_shape).dtypes(FLOATS).work(Work::Convolution(2)),
];

/// Convolution of an array in `layout` with a kernel `[space.., in, out]`; the result has the same layout.
pub fn convolution(
    b: &mut Builder,
    x: InstId,
    kernel: InstId,
    layout: &DataFormat,
    window: Vec<WindowDim>,
    groups: Dim,
) -> InstId {
    let n = window.len();
    let dims = ConvDims {
        window,
        input_batch: layout.batch,
        input_feature: layout.feature,
        input_spatial: layout.spatial.clone(),
        kernel_input_feature: n,
        kernel_output_feature: n + 1,
        kernel_spatial: (0..n).collect(),
        output_batch: layout.batch,
        output_feature: layout.feature,
        output_spatial: layout.spatial.clone(),
        feature_group_count: groups.guarded_count(),
        batch_group_count: 1,
    };
    b.add_inst(Op::Convolution(Box::new(dims)), &[x, kernel])
}

/// Number of feature groups of a kernel that contracts `kernel_in` of `features` input features.
///
/// Errors: `Code::ShapeMismatch` if they are not divisible.
pub fn group_count(features: Dim, kernel_in: Dim, outputs: Dim) -> Result<Dim> {
    if features == kernel_in {
        return Ok(Dim::from(1));
    }
    if kernel_in == 0 || !features.is_multiple_of(kernel_in) || !outputs.is_multiple_of(features / kernel_in) {
        return Err(Error::user(
            Code::ShapeMismatch,
            format!("{features} features do not divide into groups for a filter of {kernel_in} in and {outputs} out"),
        ));
    }
    Ok(features / kernel_in)
}

/// Rejects inputs 0 and 1 that do not have this rank; returns their sizes.
pub fn check_ranks(cx: &LowerCtx, rank: usize) -> Result<(Vec<Dim>, Vec<Dim>)> {
    let (x, kernel) = (cx.dims(0)?, cx.dims(1)?);
    if x.len() != rank || kernel.len() != rank {
        return Err(cx.shape_mismatch(format!("input {x:?} and filter {kernel:?} must both have rank {rank}")));
    }
    Ok((x, kernel))
}

/// Convolution of inputs 0 (array) and 1 (filter) with `spatial` spatial axes.
pub fn lower_conv(cx: &mut LowerCtx, spatial: usize) -> Result<InstId> {
    let args = WindowAttrs::parse_spatial(cx.node, spatial)?;
    conv_with(cx, &args)
}

fn conv_with(cx: &mut LowerCtx, args: &WindowAttrs) -> Result<InstId> {
    let spatial = args.layout.spatial.len();
    let (x, kernel) = check_ranks(cx, spatial + 2)?;
    let window = args.spatial_windows(&x, &kernel[..spatial])?;
    let groups = group_count(x[args.layout.feature], kernel[spatial], kernel[spatial + 1])?;
    let (x, kernel) = (cx.arg(0)?, cx.arg(1)?);
    Ok(convolution(cx.b, x, kernel, &args.layout, window, groups))
}

/// Depthwise convolution: filter `[h, w, c, multiplier]`, result features `c * multiplier`.
pub fn lower_depthwise_conv(cx: &mut LowerCtx) -> Result<InstId> {
    let args = WindowAttrs::parse_spatial(cx.node, 2)?;
    let (x, kernel) = check_ranks(cx, 4)?;
    let channels = x[args.layout.feature];
    if kernel[2] != channels {
        return Err(cx.shape_mismatch(format!("{channels} features against a depthwise filter of {}", kernel[2])));
    }
    let window = args.spatial_windows(&x, &kernel[..2])?;
    let (x, filter) = (cx.arg(0)?, cx.arg(1)?);
    let flat = cx.b.reshape(filter, &dims![kernel[0], kernel[1], 1, kernel[2] * kernel[3]]);
    Ok(convolution(cx.b, x, flat, &args.layout, window, channels.max(1)))
}

fn one(cx: &mut LowerCtx, spatial: usize) -> Result<Vec<Value>> {
    let y = lower_conv(cx, spatial)?;
    cx.one_output(y)
}

fn depthwise(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let y = lower_depthwise_conv(cx)?;
    cx.one_output(y)
}

/// Lowers TF.js's `Conv1D`, with a single `stride` and `dilation`.
fn conv1d(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let args = conv1d_args(cx.node)?;
    let y = conv_with(cx, &args)?;
    cx.one_output(y)
}

fn conv1d_args(node: &Node) -> Result<WindowAttrs> {
    let mut args = WindowAttrs::parse_spatial(node, 1)?;
    let axis = args.layout.spatial[0];
    for (name, list) in [("stride", &mut args.strides), ("dilation", &mut args.dilations)] {
        if let Some(v) = node.int(name) {
            list[axis] = positive_sizes(&[v], name, 1)?[0];
        }
    }
    Ok(args)
}

/// Lowers `Conv`, for 1 to 3 spatial axes and any number of batch axes.
fn any_rank(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let kernel_rank = cx.dims(1)?.len();
    let Some(spatial @ 1..=3) = kernel_rank.checked_sub(2) else {
        return Err(cx.unsupported_case(format!("a filter of rank {kernel_rank}; ranks 3, 4 and 5 are supported")));
    };
    let args = WindowAttrs::parse_spatial(cx.node, spatial)?;
    let dims = cx.dims(0)?;
    let batch_dims = usize::try_from(cx.node.int("batch_dims").unwrap_or(1)).unwrap_or(0);
    if dims.len() != batch_dims + spatial + 1 {
        return Err(
            cx.shape_mismatch(format!("input {dims:?} with {batch_dims} batch dimensions for a filter of {spatial}"))
        );
    }
    if batch_dims == 1 {
        let y = conv_with(cx, &args)?;
        return cx.one_output(y);
    }
    let batch: Dim = dims[..batch_dims].iter().product();
    let x = cx.arg(0)?;
    let flat = cx.b.reshape(x, &[&[batch], &dims[batch_dims..]].concat());
    cx.args[0] = Value::Array(flat);
    let y = conv_with(cx, &args)?;
    let out = [&dims[..batch_dims], &cx.b.dims(y)[1..]].concat();
    let y = cx.b.reshape(y, &out);
    cx.one_output(y)
}

/// Shape function of a convolution with `spatial` spatial axes.
pub fn conv_shape(cx: &mut ShapeCtx, spatial: usize) -> Result<Vec<Fact>> {
    let args = WindowAttrs::parse_spatial(cx.node, spatial)?;
    let (x, kernel) = (cx.dims_of_rank(0, spatial + 2)?, cx.dims_of_rank(1, spatial + 2)?);
    let y = convolved(cx, &args, &x, &kernel, kernel[spatial + 1])?;
    cx.one_output_like(0, y)
}

fn conv1d_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let args = conv1d_args(cx.node)?;
    let (x, kernel) = (cx.dims_of_rank(0, 3)?, cx.dims_of_rank(1, 3)?);
    let y = convolved(cx, &args, &x, &kernel, kernel[2])?;
    cx.one_output_like(0, y)
}

/// Shape function of a depthwise convolution: the features are channels times multiplier.
pub fn depthwise_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let args = WindowAttrs::parse_spatial(cx.node, 2)?;
    let (x, kernel) = (cx.dims_of_rank(0, 4)?, cx.dims_of_rank(1, 4)?);
    let channels = cx.merge_dim(x[args.layout.feature], kernel[2]);
    let channels = channels.ok_or_else(|| cx.shape_mismatch("the filter has other channels than the input"))?;
    let features = cx.mul(channels, kernel[3]);
    let y = convolved(cx, &args, &x, &kernel, features)?;
    cx.one_output_like(0, y)
}

fn convolved(
    cx: &mut ShapeCtx,
    args: &WindowAttrs,
    x: &[InferredDim],
    kernel: &[InferredDim],
    features: InferredDim,
) -> Result<Vec<InferredDim>> {
    let mut y = x.to_vec();
    for (&axis, &k) in args.layout.spatial.iter().zip(kernel) {
        y[axis] = args.window_count(cx, axis, x[axis], k)?;
    }
    y[args.layout.feature] = features;
    Ok(y)
}

fn any_rank_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let batch = usize::try_from(cx.node.int("batch_dims").unwrap_or(1)).unwrap_or(0);
    let (Some(x), Some(kernel)) = (cx.ranked_dims(0)?, cx.ranked_dims(1)?) else {
        let dims = cx.unranked(UnknownReason::Value(0));
        return cx.one_output_like(0, dims);
    };
    let spatial = kernel.len().checked_sub(2).filter(|&s| x.len() == batch + s + 1 && batch > 0);
    let spatial = spatial.ok_or_else(|| cx.shape_mismatch("the ranks of input and filter do not fit"))?;
    let args = WindowAttrs::parse_spatial(cx.node, spatial)?;
    let y = convolved(cx, &args, &x[batch - 1..], &kernel, kernel[spatial + 1])?;
    cx.one_output_like(0, [&x[..batch], &y[1..]].concat())
}
