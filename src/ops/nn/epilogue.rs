//! Fused ops: contractions followed by a list of pointwise ops.
use super::activation::{apply_activation, prelu, unsupported_fused_op};
use super::bias::{add_along_axis, check_bias};
use super::conv::{conv_shape, depthwise_shape, lower_conv, lower_depthwise_conv};
use super::norm::{BatchNormParams, batch_norm};
use super::window::DataFormat;
use crate::diag::Result;
use crate::hlo::symbolic::Dim;
use crate::hlo::symbolic::DotDims;
use crate::hlo::symbolic::InstId;
use crate::ops::math::matmul::product_shape;
use crate::ops::op_lowering::op;
use crate::ops::{LowerCtx, OpLowering, Value, Work};

const FLOATS: &str = "f16, bf16, f32, f64";

/// Definitions of the ops of this file.
#[rustfmt::skip]
pub const ROWS: &[OpLowering] = &[
    op("_FusedConv2D",                "input filter args* -> output", |cx| { let y = lower_conv(cx, 2)?; conv_tail(cx, y) }).shape(|cx| conv_shape(cx, 2)).dtypes(FLOATS).work(Work::Convolution(1)),
    op("_FusedDepthwiseConv2dNative", "input filter args* -> output", |cx| { let y = lower_depthwise_conv(cx)?; conv_tail(cx, y) }).shape(depthwise_shape).dtypes(FLOATS).work(Work::Convolution(2)),
    op("FusedDepthwiseConv2dNative",  "input filter args* -> output", |cx| { let y = lower_depthwise_conv(cx)?; conv_tail(cx, y) }).shape(depthwise_shape).dtypes(FLOATS).work(Work::Convolution(2)),
    op("_FusedMatMul",                "a b args* -> product",         matmul).shape(|cx| product_shape(cx, ["transpose_a", "transpose_b"])).dtypes(FLOATS).work(Work::MatrixProduct("transpose_a")),
];

fn conv_tail(cx: &mut LowerCtx, y: InstId) -> Result<Vec<Value>> {
    let axis = DataFormat::parse(cx.node, 2)?.feature;
    let y = tail(cx, y, axis)?;
    cx.one_output(y)
}

/// Applies the ops in attribute `fused_ops` in order; their arguments are the inputs from index 2 on.
fn tail(cx: &mut LowerCtx, mut y: InstId, axis: usize) -> Result<InstId> {
    let node = cx.node;
    let names = cx.require_attr(node.strs("fused_ops"), "fused_ops")?;
    let alpha = f64::from(node.float("leakyrelu_alpha").unwrap_or(0.2));
    let mut next = 2;
    for name in names {
        let dims = cx.b.dims(y).to_vec();
        match name {
            "BiasAdd" => {
                let bias = vector(cx, next, dims[axis])?;
                check_bias(cx, &dims, cx.b.dims(bias), axis)?;
                y = add_along_axis(cx.b, y, bias, axis);
                next += 1;
            }
            "Add" => {
                let other = cx.arg(next)?;
                y = cx.b.add(y, other);
                next += 1;
            }
            "Prelu" => {
                let slope = cx.arg(next)?;
                y = prelu(cx.b, y, slope);
                next += 1;
            }
            "FusedBatchNorm" => {
                let v = cx.arg_range(next, next + 4)?;
                let epsilon = f64::from(node.float("epsilon").unwrap_or(1e-4));
                let stats = BatchNormParams { scale: v[0], offset: v[1], mean: v[2], variance: v[3] };
                y = batch_norm(cx.b, y, &stats, axis, epsilon);
                next += 4;
            }
            other => y = apply_activation(cx.b, other, y, alpha).ok_or_else(|| unsupported_fused_op(other))?,
        }
    }
    Ok(y)
}

/// Input `i` as a vector of `n` elements: a scalar is repeated, and leading dimensions of size 1 are dropped.
fn vector(cx: &mut LowerCtx, i: usize, n: Dim) -> Result<InstId> {
    let id = cx.arg(i)?;
    let dims = cx.b.dims(id).to_vec();
    if dims.iter().product::<Dim>() == 1 {
        let scalar = cx.b.reshape(id, &[]);
        return Ok(cx.b.broadcast(scalar, &[n], &[]));
    }
    let ones = dims.iter().take_while(|&&d| d == 1).count();
    Ok(cx.b.reshape(id, &dims[ones..]))
}

/// Lowers `_FusedMatMul`: the product of the last two dimensions, with equal batch dimensions, and the fused ops.
fn matmul(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (x, y) = (cx.dims(0)?, cx.dims(1)?);
    let lead = x.len().saturating_sub(2);
    if x.len() < 2 || x.len() != y.len() || x[..lead] != y[..lead] {
        return Err(cx.shape_mismatch(format!("{x:?} and {y:?} are no matrices of one batch")));
    }
    let (ta, tb) = (cx.bool_attr("transpose_a"), cx.bool_attr("transpose_b"));
    let dims = DotDims {
        lhs_batch: (0..lead).collect(),
        rhs_batch: (0..lead).collect(),
        lhs_contracting: vec![if ta { lead } else { lead + 1 }],
        rhs_contracting: vec![if tb { lead + 1 } else { lead }],
    };
    if x[dims.lhs_contracting[0]] != y[dims.rhs_contracting[0]] {
        return Err(cx.shape_mismatch(format!("{x:?} and {y:?} do not fit: the contracted sizes differ")));
    }
    let (a, b) = (cx.arg(0)?, cx.arg(1)?);
    let product = cx.b.dot(a, b, dims);
    let result = tail(cx, product, lead + 1)?;
    cx.one_output(result)
}
