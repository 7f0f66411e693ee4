//! Convolutions of uniformly quantized integers: 32-bit sums, converted to the scale of the result.
//!
//! Source: TensorFlow's `uniform_quant_ops/uniform_quantized_convolution_ops.cc`. Padding and base dilation are filled with the
//! zero point of the left operand.
use super::uniform::{
    broadcast_along, clamp_to_range, constant_scales, multiply_and_round, quantization_axis, scale_ratios,
    subtract_zero_point,
};
use crate::diag::{Code, Error, Result};
use crate::graph::Attr;
use crate::hlo::proto::dimension_numbers;
use crate::hlo::symbolic::Op;
use crate::hlo::symbolic::{ConvDims, Dim, WindowDim};
use crate::ops::nn::{Padding, positive_sizes, window_dim};
use crate::ops::op_lowering::op;
use crate::ops::{LowerCtx, OpLowering, Value, Work};

/// Definitions of the ops of this file.
pub const ROWS: &[OpLowering] = &[op(
    "UniformQuantizedConvolution",
    "lhs rhs lhs_scales lhs_zero_points rhs_scales rhs_zero_points output_scales output_zero_points -> output",
    convolution,
)
.constant_inputs(&[2, 4, 6])
.dtypes("s8 to s32")
.work(Work::Contraction)];

/// Dimension numbers in attribute `dimension_numbers`; batch, features, space in that order if it is empty.
fn axes(cx: &LowerCtx, rank: usize) -> Result<ConvDims> {
    let dims = match cx.node.attr("dimension_numbers") {
        Some(Attr::Str(bytes)) if !bytes.is_empty() => dimension_numbers::uniform_convolution(bytes)?,
        _ => {
            let space = || (2..rank).collect::<Vec<usize>>();
            ConvDims::from_axes((0, 1, space()), (1, 0, space()), (0, 1, space()))
        }
    };
    let spatial = [&dims.input_spatial, &dims.kernel_spatial, &dims.output_spatial];
    let input = [dims.input_batch, dims.input_feature];
    let kernel = [dims.kernel_input_feature, dims.kernel_output_feature];
    let output = [dims.output_batch, dims.output_feature];
    let within = [input, kernel, output].iter().flatten().chain(spatial.into_iter().flatten()).all(|&a| a < rank);
    if !within || spatial.iter().any(|s| s.len() + 2 != rank) {
        return Err(cx.shape_mismatch(format!("axes of a convolution that are not those of {rank} dimensions")));
    }
    Ok(dims)
}

fn padding(cx: &LowerCtx, spatial: usize) -> Result<Padding> {
    let pads = cx.node.ints("explicit_padding").unwrap_or(&[]);
    match cx.node.str("padding") {
        Some("SAME") if pads.is_empty() => Ok(Padding::Same),
        Some("VALID") if pads.is_empty() => Ok(Padding::Valid),
        Some("EXPLICIT") if pads.len() == 2 * spatial && pads.iter().all(|p| (0..1 << 31).contains(p)) => {
            Ok(Padding::Explicit(pads.chunks(2).map(|p| (p[0], p[1])).collect()))
        }
        other => Err(Error::user(
            Code::BadAttr,
            format!("`padding` {} with {pads:?} for {spatial} spatial dimensions", other.unwrap_or("of no kind")),
        )),
    }
}

/// Windows over the spatial dimensions of the left operand.
fn windows(cx: &LowerCtx, axes: &ConvDims, sides: [&[Dim]; 2]) -> Result<Vec<WindowDim>> {
    let spatial = axes.input_spatial.len();
    let list = |name: &str| match cx.node.ints(name) {
        Some(list) if !list.is_empty() => positive_sizes(list, name, spatial),
        _ => Ok(vec![Dim::from(1); spatial]),
    };
    let (strides, holes, dilations) = (list("window_strides")?, list("lhs_dilation")?, list("rhs_dilation")?);
    let padding = padding(cx, spatial)?;
    let one = |i: usize| {
        let (n, k) = (sides[0][axes.input_spatial[i]], sides[1][axes.kernel_spatial[i]]);
        let wide = WindowDim { size: n, rhs_dilate: holes[i], ..WindowDim::default() }.span();
        let wide = wide.ok_or_else(|| Error::user(Code::TooLarge, "a size of a window overflows"))?;
        Ok(WindowDim { lhs_dilate: holes[i], ..window_dim(wide, k, strides[i], dilations[i], &padding, i)? })
    };
    (0..spatial).map(one).collect()
}

/// Dimension numbers, windows and groups of a convolution of inputs 0 and 1.
pub(super) fn convolution_dims(cx: &LowerCtx) -> Result<ConvDims> {
    let (left, right) = (cx.dims(0)?, cx.dims(1)?);
    if left.len() != right.len() || left.len() < 3 {
        return Err(cx.shape_mismatch(format!("{left:?} and {right:?} must have one rank of at least 3")));
    }
    let mut dims = axes(cx, left.len())?;
    dims.window = windows(cx, &dims, [&left, &right])?;
    let groups = |name: &str| match u64::try_from(cx.node.int(name).unwrap_or(1)) {
        Ok(n) if n > 0 => Ok(n),
        _ => Err(cx.shape_mismatch(format!("`{name}` must be positive"))),
    };
    (dims.feature_group_count, dims.batch_group_count) = (groups("feature_group_count")?, groups("batch_group_count")?);
    Ok(dims)
}

fn convolution(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let dims = convolution_dims(cx)?;
    let (by_kernel, by_feature) =
        (quantization_axis(cx, "rhs_quantization_axis"), quantization_axis(cx, "output_quantization_axis"));
    let known = quantization_axis(cx, "lhs_quantization_axis").is_none()
        && by_kernel.is_none_or(|a| a == dims.kernel_output_feature)
        && by_feature.is_none_or(|a| a == dims.output_feature && by_kernel.is_some());
    if !known {
        return Err(cx.shape_mismatch("scales for each place of another axis than the features of the result"));
    }
    let (x, kernel, zeros, out_zeros) = (cx.arg(0)?, cx.arg(1)?, (cx.arg(3)?, cx.arg(5)?), cx.arg(7)?);
    let (x, kernel) =
        (subtract_zero_point(cx, x, zeros.0, None)?, subtract_zero_point(cx, kernel, zeros.1, by_kernel)?);
    let features = by_kernel.map(|_| dims.output_feature);
    let sum = cx.b.add_inst(Op::Convolution(Box::new(dims)), &[x, kernel]);
    let factors = scale_ratios(cx, &[&constant_scales(cx, 2)?, &constant_scales(cx, 4)?], &constant_scales(cx, 6)?)?;
    let q = multiply_and_round(cx, sum, &factors, features)?;
    let sizes = cx.b.dims(q).to_vec();
    let zeros = broadcast_along(cx, out_zeros, &sizes, by_feature)?;
    let q = cx.b.add(q, zeros);
    let q = clamp_to_range(cx, q, "output_")?;
    cx.one_output(q)
}
