//! `Dilation2D`, grayscale dilation: the largest sum of pixels and a structuring element under a window.
use super::pool::{lowest_finite, lowest_value};
use super::window::{DataFormat, WindowAttrs, positive_sizes};
use crate::diag::Result;
use crate::graph::Node;
use crate::hlo::symbolic::{Builder, InstId};
use crate::hlo::symbolic::{Dim, PadDim, SliceDim, WindowDim};
use crate::ops::fact::Fact;
use crate::ops::op_lowering::op;
use crate::ops::{LowerCtx, OpLowering, ShapeCtx, Value};
use crate::scalar::{Direction, ScalarOp};
use crate::tensor::DType;

/// Definitions of the ops of this file.
pub const ROWS: &[OpLowering] =
    &[op("Dilation2D", "input filter -> output", dilation).shape(dilation_shape).dtypes("real numbers")];

/// Sizes of the result of these windows over an image.
pub(super) fn output_sizes(cx: &LowerCtx, image: &[Dim], filter: &[Dim], windows: &[WindowDim]) -> Result<Vec<Dim>> {
    if image.len() != 4 || filter.len() != 3 || image[3] != filter[2] {
        return Err(cx.shape_mismatch(format!("an image {image:?} and a filter {filter:?} do not fit")));
    }
    let mut out = image.to_vec();
    for (axis, window) in windows.iter().enumerate() {
        out[axis + 1] = window.output_size(image[axis + 1]).ok_or_else(|| cx.shape_mismatch("a window overflows"))?;
    }
    Ok(out)
}

/// Window attributes of the node, whose dilations are in attribute `rates`.
pub(super) fn window_attrs(node: &Node) -> Result<WindowAttrs> {
    let mut args = WindowAttrs::parse(node, 2)?;
    args.layout = DataFormat::features_last(2);
    if let Some(rates) = node.ints("rates") {
        args.dilations = positive_sizes(rates, "rates", 4)?;
    }
    Ok(args)
}

/// Lowers `Dilation2D`: the largest `input + filter` under each window; pixels outside of the image and NaN are skipped.
///
/// Shapes: input `[batch, h, w, c]`, filter `[rows, columns, c]` -> `[batch, out_h, out_w, c]`.
fn dilation(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (image, filter) = (cx.dims(0)?, cx.dims(1)?);
    let args = window_attrs(cx.node)?;
    let windows = args.spatial_windows(&image, filter.get(..2).unwrap_or_default())?;
    let out = output_sizes(cx, &image, &filter, &windows)?;
    let y = max_window_sums(cx, &windows, &out, |_, _, _| {})?;
    cx.one_output(y)
}

/// Largest sum of a pixel (input 0) and the filter element (input 1) over it, under each window; the lowest finite number if no
/// sum is larger. `visit` is called for each filter element in order, with its row and column and a `pred` array of the windows
/// in which its sum is larger than all before.
pub(super) fn max_window_sums(
    cx: &mut LowerCtx,
    windows: &[WindowDim],
    out: &[Dim],
    mut visit: impl FnMut(&mut Builder, [u64; 2], InstId),
) -> Result<InstId> {
    let (x, filter, dtype) = (cx.arg(0)?, cx.arg(1)?, cx.dtype(0)?);
    let b = &mut *cx.b;
    let pads: Vec<PadDim> = (0..4).map(|axis| padding(windows, axis)).collect();
    let outside = lowest_value(b, dtype);
    let padded = b.pad(x, outside, &pads);
    // No sum with -inf is larger; integers have no -inf, so that padding needs a mask.
    let is_inside = dtype.is_integer().then(|| {
        let (dims, none) = (b.dims(x).to_vec(), b.scalar(DType::Pred, 0.0));
        let all = b.full(DType::Pred, &dims, 1.0);
        b.pad(all, none, &pads)
    });
    let sizes = b.dims(filter).to_vec();
    let start = lowest_finite(b, dtype);
    let mut largest = b.broadcast(start, out, &[]);
    for at in
        (0..sizes[0].guarded_count()).flat_map(|row| (0..sizes[1].guarded_count()).map(move |column| [row, column]))
    {
        let pixels = under(b, padded, windows, at, out);
        let weight = b.slice_axis(filter, 0, Dim::from(at[0]), Dim::from(at[0] + 1));
        let weight = b.slice_axis(weight, 1, Dim::from(at[1]), Dim::from(at[1] + 1));
        let weight = b.reshape(weight, &[sizes[2]]);
        let weight = b.broadcast(weight, out, &[3]);
        let sum = b.add(pixels, weight);
        let mut is_larger = b.compare(Direction::Gt, sum, largest);
        if let Some(is_inside) = is_inside {
            let is_inside = under(b, is_inside, windows, at, out);
            is_larger = b.binary(ScalarOp::And, is_larger, is_inside);
        }
        largest = b.select(is_larger, sum, largest);
        visit(b, at, is_larger);
    }
    Ok(largest)
}

fn padding(windows: &[WindowDim], axis: usize) -> PadDim {
    match axis.checked_sub(1).and_then(|i| windows.get(i)) {
        Some(window) => PadDim { low: window.pad_low, high: window.pad_high, interior: Dim::from(0) },
        None => PadDim { low: Dim::from(0), high: Dim::from(0), interior: Dim::from(0) },
    }
}

/// Pixels under one element of each window.
fn under(b: &mut Builder, padded: InstId, windows: &[WindowDim], at: [u64; 2], out: &[Dim]) -> InstId {
    let slices = (0..4).map(|axis| match axis {
        1 | 2 if out[axis] > 0 => {
            let window = &windows[axis - 1];
            let start = at[axis - 1] * window.rhs_dilate;
            let limit = start + (out[axis] - 1) * window.stride + 1;
            SliceDim { start, limit, stride: window.stride }
        }
        _ => SliceDim { start: Dim::from(0), limit: out[axis], stride: Dim::from(1) },
    });
    let slices: Vec<SliceDim> = slices.collect();
    b.slice(padded, &slices)
}

fn dilation_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let (mut image, filter) = (cx.dims_of_rank(0, 4)?, cx.dims_of_rank(1, 3)?);
    let args = window_attrs(cx.node)?;
    for axis in [1, 2] {
        image[axis] = args.window_count(cx, axis, image[axis], filter[axis - 1])?;
    }
    cx.one_output_like(0, image)
}
