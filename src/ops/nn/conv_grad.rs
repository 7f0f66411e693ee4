//! Transposed convolutions and gradients of convolutions.
use super::conv::{convolution, group_count};
use super::window::{TransposedWindow, WindowAttrs, dilated_extent, window_dim};
use crate::diag::{Code, Error, Result};
use crate::hlo::symbolic::{ConvDims, Dim, WindowDim};
use crate::hlo::symbolic::{InstId, Op};
use crate::ops::ShapeCtx;
use crate::ops::fact::Dims;
use crate::ops::fact::Fact;
use crate::ops::op_lowering::op;
use crate::ops::symbols::UnknownReason;
use crate::ops::{LowerCtx, OpLowering, Value, Work};

const FLOATS: &str = "f16, bf16, f32, f64, s32";
const INPUT: &str = "input_sizes filter out_backprop -> output";
const FILTER: &str = "input filter_sizes out_backprop -> output";

/// Definitions of the ops of this file.
#[rustfmt::skip]
pub const ROWS: &[OpLowering] = &[
    op("Conv2DBackpropInput",    INPUT,  |cx| backprop_input(cx, 2, Kind::Full)).shape(|cx| input_shape(cx, 2)).constant_inputs(&[0]).dtypes(FLOATS).work(Work::ConvolutionInputGradient(1)),
    op("Conv3DBackpropInputV2",  INPUT,  |cx| backprop_input(cx, 3, Kind::Full)).shape(|cx| input_shape(cx, 3)).constant_inputs(&[0]).dtypes(FLOATS).work(Work::ConvolutionInputGradient(1)),
    op("DepthwiseConv2dNativeBackpropInput", INPUT, |cx| backprop_input(cx, 2, Kind::Depthwise)).shape(|cx| input_shape(cx, 2)).constant_inputs(&[0]).dtypes(FLOATS).work(Work::ConvolutionInputGradient(2)),
    op("Conv2DBackpropFilter",   FILTER, |cx| backprop_filter(cx, 2, Kind::Full)).shape(filter_shape).constant_inputs(&[1]).dtypes(FLOATS).work(Work::ConvolutionFilterGradient(1)),
    op("Conv3DBackpropFilterV2", FILTER, |cx| backprop_filter(cx, 3, Kind::Full)).shape(filter_shape).constant_inputs(&[1]).dtypes(FLOATS).work(Work::ConvolutionFilterGradient(1)),
    op("DepthwiseConv2dNativeBackpropFilter", FILTER, |cx| backprop_filter(cx, 2, Kind::Depthwise)).shape(filter_shape).constant_inputs(&[1]).dtypes(FLOATS).work(Work::ConvolutionFilterGradient(2)),
];

/// Layout of the filter.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Full convolution: `[space.., in / groups, out]`.
    Full,
    /// Depthwise convolution: `[space.., channels, multiplier]`.
    Depthwise,
}

/// Sizes given by the constant input `i`; spatial sizes alone are completed from `whole`.
fn sizes(cx: &LowerCtx, i: usize, args: &WindowAttrs, whole: &[Dim]) -> Result<Vec<Dim>> {
    let given = cx.constant_dims(i)?;
    let given = given
        .iter()
        .map(|&v| Dim::size(v).map_err(|_| Error::user(Code::TooLarge, format!("a size of {v} in input {i}"))))
        .collect::<Result<Vec<Dim>>>()?;
    if given.len() == args.layout.rank() {
        return Ok(given);
    }
    if given.len() != args.layout.spatial.len() || whole.is_empty() {
        return Err(cx.shape_mismatch(format!(
            "input {i} gives {} sizes for rank {}",
            given.len(),
            args.layout.rank()
        )));
    }
    let mut full = whole.to_vec();
    for (&axis, v) in args.layout.spatial.iter().zip(given) {
        full[axis] = v;
    }
    Ok(full)
}

/// Lowers the gradient of a convolution with respect to its input, which is also the transposed convolution.
///
/// Shapes: the result has the sizes that input 0 gives. Source: TF `Conv2DBackpropInput`. The stride becomes holes in the
/// operand (base dilation), and the filter is reversed.
fn backprop_input(cx: &mut LowerCtx, spatial: usize, kind: Kind) -> Result<Vec<Value>> {
    let args = WindowAttrs::parse_spatial(cx.node, spatial)?;
    let (filter, grad) = (cx.dims(1)?, cx.dims(2)?);
    if filter.len() != spatial + 2 || grad.len() != spatial + 2 {
        return Err(
            cx.shape_mismatch(format!("filter {filter:?} and out_backprop {grad:?} must have rank {}", spatial + 2))
        );
    }
    let mut whole = grad.clone();
    whole[args.layout.feature] = filter[spatial];
    let result = sizes(cx, 0, &args, &whole)?;
    if result[args.layout.batch] != grad[args.layout.batch] {
        return Err(cx.shape_mismatch(format!("input_sizes {result:?} and out_backprop {grad:?} differ in batch")));
    }
    let mut turned = Vec::with_capacity(spatial);
    for (i, &axis) in args.layout.spatial.iter().enumerate() {
        turned.push(transposed_window(cx, &args, axis, result[axis], filter[i], grad[axis])?);
    }
    let features = result[args.layout.feature];
    let (kernel, groups) = turned_filter(cx, &filter, features, kind)?;
    let x = cx.arg(2)?;
    let window = turned.iter().map(|turned| turned.window).collect();
    let mut y = convolution(cx.b, x, kernel, &args.layout, window, groups);
    for (turned, &axis) in turned.iter().zip(&args.layout.spatial) {
        y = turned.crop_to_input(cx.b, y, axis, result[axis]);
    }
    cx.one_output(y)
}

fn transposed_window(
    cx: &LowerCtx,
    args: &WindowAttrs,
    axis: usize,
    n: Dim,
    k: Dim,
    out: Dim,
) -> Result<TransposedWindow> {
    let forward = window_dim(n, k, args.strides[axis], args.dilations[axis], &args.padding, axis)?;
    if forward.output_size(n) != Some(out) {
        return Err(cx.shape_mismatch(format!(
            "out_backprop has {out} elements along dimension {axis}, and a window over {n} makes {}",
            forward.output_size(n).unwrap_or(Dim::from(0))
        )));
    }
    TransposedWindow::new(&forward, n, out)
}

/// Filter reversed in space, with its two feature axes exchanged group by group, and the number of groups.
fn turned_filter(cx: &mut LowerCtx, dims: &[Dim], features: Dim, kind: Kind) -> Result<(InstId, Dim)> {
    let n = dims.len() - 2;
    let filter = cx.arg(1)?;
    let turned = cx.b.add_inst(Op::Reverse((0..n).collect()), &[filter]);
    let groups = match kind {
        Kind::Depthwise if dims[n] != features => {
            return Err(cx.shape_mismatch(format!("{features} features against a depthwise filter of {}", dims[n])));
        }
        Kind::Depthwise => features.max(1),
        Kind::Full => group_count(features, dims[n], dims[n + 1])?,
    };
    let mut swap: Vec<usize> = (0..n).collect();
    if kind == Kind::Depthwise || groups == 1 {
        swap.extend([n + 1, n]);
        return Ok((cx.b.transpose(turned, &swap), groups));
    }
    let (inside, outside) = (dims[n], dims[n + 1] / groups);
    let split = cx.b.reshape(turned, &[&dims[..n], &[inside, groups, outside]].concat());
    swap.extend([n + 2, n + 1, n]);
    let swapped = cx.b.transpose(split, &swap);
    Ok((cx.b.reshape(swapped, &[&dims[..n], &[outside, groups * inside]].concat()), groups))
}

/// Lowers the gradient of a convolution with respect to its filter.
///
/// Shapes: the result has the sizes that input 1 gives. Batch and features change roles; the incoming gradient is the kernel.
fn backprop_filter(cx: &mut LowerCtx, spatial: usize, kind: Kind) -> Result<Vec<Value>> {
    let args = WindowAttrs::parse_spatial(cx.node, spatial)?;
    let (x, grad) = (cx.dims(0)?, cx.dims(2)?);
    let filter = sizes(cx, 1, &args, &[])?;
    if x.len() != spatial + 2 || grad.len() != spatial + 2 {
        return Err(cx.shape_mismatch(format!("input {x:?} and out_backprop {grad:?} must have rank {}", spatial + 2)));
    }
    let layout = &args.layout;
    let features = x[layout.feature];
    let groups = match kind {
        Kind::Depthwise => features.max(1),
        Kind::Full => group_count(features, filter[spatial], filter[spatial + 1])?,
    };
    let mut window = Vec::with_capacity(spatial);
    for (i, &axis) in layout.spatial.iter().enumerate() {
        let (n, k, out) = (x[axis], filter[i], grad[axis]);
        let forward = args.window(axis, n, k)?;
        if forward.output_size(n) != Some(out) {
            return Err(
                cx.shape_mismatch(format!("out_backprop {grad:?} does not fit input {x:?} and filter {filter:?}"))
            );
        }
        let base = dilated_extent(k, forward.rhs_dilate)? + dilated_extent(out, forward.stride)? - 1;
        window.push(WindowDim {
            size: out,
            stride: forward.rhs_dilate,
            pad_low: forward.pad_low,
            pad_high: base - n - forward.pad_low,
            lhs_dilate: Dim::from(1),
            rhs_dilate: forward.stride,
            reversal: false,
        });
    }
    if window.iter().any(|w: &WindowDim| w.size.is_zero()) {
        // No window fits into the image, so that no element contributes to the gradient.
        let zeros = cx.b.full(cx.dtype(2)?, &filter, 0.0);
        return cx.one_output(zeros);
    }
    let dims = ConvDims {
        window,
        input_batch: layout.feature,
        input_feature: layout.batch,
        input_spatial: layout.spatial.clone(),
        kernel_input_feature: layout.batch,
        kernel_output_feature: layout.feature,
        kernel_spatial: layout.spatial.clone(),
        output_batch: spatial,
        output_feature: spatial + 1,
        output_spatial: (0..spatial).collect(),
        feature_group_count: 1,
        batch_group_count: groups.guarded_count(),
    };
    let (input, grad) = (cx.arg(0)?, cx.arg(2)?);
    let y = cx.b.add_inst(Op::Convolution(Box::new(dims)), &[input, grad]);
    let y = cx.b.reshape(y, &filter);
    cx.one_output(y)
}

/// Shape function: the sizes that input 0 gives; spatial sizes alone are completed with the batch of the gradient.
fn input_shape(cx: &mut ShapeCtx, spatial: usize) -> Result<Vec<Fact>> {
    let given = cx.shape_from_value(0)?;
    let dims = match given {
        Dims::Ranked(sizes) if sizes.len() == spatial => {
            let args = WindowAttrs::parse_spatial(cx.node, spatial)?;
            let (filter, grad) = (cx.dims_of_rank(1, spatial + 2)?, cx.dims_of_rank(2, spatial + 2)?);
            let mut dims = grad;
            for (&axis, &size) in args.layout.spatial.iter().zip(sizes.iter()) {
                dims[axis] = size;
            }
            dims[args.layout.feature] = filter[spatial];
            dims.into()
        }
        Dims::Ranked(sizes) if sizes.len() != spatial + 2 => {
            return Err(cx.shape_mismatch(format!("{} sizes for rank {}", sizes.len(), spatial + 2)));
        }
        Dims::Unranked(id) => cx.fresh_shape(spatial + 2, UnknownReason::From(id)),
        whole => whole,
    };
    cx.one_output_like(2, dims)
}

fn filter_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let dims = cx.shape_from_value(1)?;
    cx.one_output_like(2, dims)
}
