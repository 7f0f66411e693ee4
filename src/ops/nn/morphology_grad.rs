//! Gradients of `Dilation2D` with respect to the image and to the structuring element.
//!
//! Source: TensorFlow's `dilation_ops.cc`. The gradient goes to the first largest sum of each window. If no sum exceeds the
//! lowest finite number, it goes to the first pixel of the window that is in the image, or to the first filter element.
use super::morphology::{max_window_sums, output_sizes, window_attrs};
use crate::diag::Result;
use crate::dims;
use crate::hlo::symbolic::WindowDim;
use crate::hlo::symbolic::{Builder, InstId};
use crate::ops::array::scatter;
use crate::ops::math::special::{add_scalar, compare_scalar, mul_scalar};
use crate::ops::op_lowering::op;
use crate::ops::shape::{like_first_input, like_second_input};
use crate::ops::{LowerCtx, OpLowering, Value};
use crate::scalar::{Direction, ScalarOp};
use crate::tensor::DType;

/// Definitions of the ops of this file.
#[rustfmt::skip]
pub const ROWS: &[OpLowering] = &[
    op("Dilation2DBackpropInput",  "input filter out_backprop -> in_backprop", of_image).shape(like_first_input).dtypes("real numbers"),
    op("Dilation2DBackpropFilter", "input filter out_backprop -> filter_backprop", of_filter).shape(like_second_input).dtypes("real numbers"),
];

/// Row and column of the filter element with the largest sum under each window: `s32` arrays of the result's sizes, -1 if there
/// is none.
struct Largest {
    row: InstId,
    column: InstId,
    windows: Vec<WindowDim>,
}

fn largest(cx: &mut LowerCtx) -> Result<Largest> {
    let (image, filter) = (cx.dims(0)?, cx.dims(1)?);
    let windows = window_attrs(cx.node)?.spatial_windows(&image, filter.get(..2).unwrap_or_default())?;
    let out = output_sizes(cx, &image, &filter, &windows)?;
    if cx.dims(2)? != out {
        return Err(cx.shape_mismatch(format!("a gradient {:?}, where {out:?} is needed", cx.dims(2)?)));
    }
    let mut at = [cx.b.full(DType::S32, &out, -1.0), cx.b.full(DType::S32, &out, -1.0)];
    max_window_sums(cx, &windows, &out, |b, element, is_larger| {
        for (at, place) in at.iter_mut().zip(element) {
            let place = b.full_like(*at, place as f64);
            *at = b.select(is_larger, place, *at);
        }
    })?;
    Ok(Largest { row: at[0], column: at[1], windows })
}

/// Index tuples along a new last axis, from coordinates of each element of the gradient.
fn indices(b: &mut Builder, parts: &[InstId]) -> InstId {
    let single = [b.dims(parts[0]), &dims![1]].concat();
    let parts: Vec<InstId> = parts.iter().map(|&part| b.reshape(part, &single)).collect();
    b.concatenate(&parts, single.len() - 1)
}

/// Row or column of the image under an element of the filter.
fn in_image(b: &mut Builder, place: InstId, window: &WindowDim, axis: usize) -> InstId {
    let dims = b.dims(place).to_vec();
    let start = b.iota(DType::S32, &dims, axis);
    let start = mul_scalar(b, start, window.stride);
    let start = add_scalar(b, start, -window.pad_low);
    let offset = mul_scalar(b, place, window.rhs_dilate);
    let over = b.add(start, offset);
    let zero = b.full_like(start, 0.0);
    let first = b.max(start, zero);
    let is_there = compare_scalar(b, Direction::Ge, place, 0.0);
    b.select(is_there, over, first)
}

fn of_image(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (Largest { row, column, windows }, grad) = (largest(cx)?, cx.arg(2)?);
    let x = cx.arg(0)?;
    let b = &mut *cx.b;
    let dims = b.dims(row).to_vec();
    let (row, column) = (in_image(b, row, &windows[0], 1), in_image(b, column, &windows[1], 2));
    let (item, channel) = (b.iota(DType::S32, &dims, 0), b.iota(DType::S32, &dims, 3));
    let at = indices(b, &[item, row, column, channel]);
    let zeros = b.full_like(x, 0.0);
    let y = scatter(cx, zeros, at, grad, Some(ScalarOp::Add))?;
    cx.one_output(y)
}

fn of_filter(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (Largest { row, column, .. }, grad) = (largest(cx)?, cx.arg(2)?);
    let filter = cx.arg(1)?;
    let b = &mut *cx.b;
    let dims = b.dims(row).to_vec();
    let zero = b.full_like(row, 0.0);
    let (row, column) = (b.max(row, zero), b.max(column, zero));
    let channel = b.iota(DType::S32, &dims, 3);
    let at = indices(b, &[row, column, channel]);
    let zeros = b.full_like(filter, 0.0);
    let y = scatter(cx, zeros, at, grad, Some(ScalarOp::Add))?;
    cx.one_output(y)
}
