//! `ExtractImagePatches`: windows of an image, with the elements of each window as channels.
use crate::diag::{Code, Error, Result};
use crate::hlo::symbolic::{Dim, PadDim, SliceDim, WindowDim};
use crate::ops::ShapeCtx;
use crate::ops::fact::Fact;
use crate::ops::nn::{DataFormat, Padding, WindowAttrs, positive_sizes, window_dim};
use crate::ops::op_lowering::op;
use crate::ops::symbols::InferredDim;
use crate::ops::{LowerCtx, OpLowering, Value, Work};

/// Definitions of the ops of this file.
#[rustfmt::skip]
pub const ROWS: &[OpLowering] = &[
    op("ExtractImagePatches", "images -> patches", extract).shape(extract_shape).work(Work::None),
];

/// Largest number of elements of a window; each of them becomes a slice.
const MOST: u64 = 4096;

/// Lowers `ExtractImagePatches`. Shapes: `[n, h, w, c]` -> `[n, out_h, out_w, rows * columns * c]`, row-major within the
/// window.
fn extract(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let dims = cx.dims(0)?;
    if dims.len() != 4 {
        return Err(cx.shape_mismatch(format!("the images must have rank 4, not {dims:?}")));
    }
    let list = |name: &str| positive_sizes(cx.require_attr(cx.node.ints(name), name)?, name, 4);
    let (size, stride, rate) = (list("ksizes")?, list("strides")?, list("rates")?);
    if [&size, &stride, &rate].iter().any(|l| l[0] != 1 || l[3] != 1) {
        return Err(cx.unsupported_case("windows over batch or channels; windows over height and width are supported"));
    }
    let padding = match cx.node.str("padding") {
        Some("SAME") => Padding::Same,
        Some("VALID") => Padding::Valid,
        other => return Err(cx.unsupported_case(format!("padding {other:?} is not supported; SAME and VALID are"))),
    };
    if size[1].saturating_mul(size[2]) > MOST {
        return Err(
            cx.unsupported_case(format!("a window of {} x {}; up to {MOST} elements are supported", size[1], size[2]))
        );
    }
    let window = |a: usize| window_dim(dims[a], size[a], stride[a], rate[a], &padding, a);
    let windows = [window(1)?, window(2)?];
    let mut pads = vec![PadDim::default(); 4];
    for (i, w) in windows.iter().enumerate() {
        pads[i + 1] = PadDim { low: w.pad_low, high: w.pad_high, interior: Dim::from(0) };
    }
    let x = cx.arg(0)?;
    let zero = cx.b.scalar(cx.b.dtype(x), 0.0);
    let x = cx.b.pad(x, zero, &pads);
    let mut parts = Vec::new();
    for row in 0..size[1].guarded_count() {
        for column in 0..size[2].guarded_count() {
            let mut slices: Vec<SliceDim> =
                dims.iter().map(|&n| SliceDim { start: Dim::from(0), limit: n, stride: Dim::from(1) }).collect();
            slices[1] = offsets(&windows[0], dims[1], Dim::from(row))?;
            slices[2] = offsets(&windows[1], dims[2], Dim::from(column))?;
            parts.push(cx.b.slice(x, &slices));
        }
    }
    let y = cx.b.concatenate(&parts, 3);
    cx.one_output(y)
}

/// Slice of the padded axis with element `k` of every window over `n` elements.
fn offsets(w: &WindowDim, n: Dim, k: Dim) -> Result<SliceDim> {
    let out = w.output_size(n).ok_or_else(|| Error::user(Code::TooLarge, "a size of a window overflows"))?;
    if out == 0 {
        return Ok(SliceDim { start: Dim::from(0), limit: Dim::from(0), stride: Dim::from(1) });
    }
    let start = k * w.rhs_dilate;
    let limit = start + (out - 1) * w.stride + 1;
    Ok(SliceDim { start, limit, stride: w.stride })
}

fn extract_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let mut dims = cx.dims_of_rank(0, 4)?;
    let list = |name: &str| positive_sizes(cx.node.ints(name).unwrap_or(&[]), name, 4);
    let (size, strides, dilations) = (list("ksizes")?, list("strides")?, list("rates")?);
    let padding = if cx.node.str("padding") == Some("SAME") { Padding::Same } else { Padding::Valid };
    let args = WindowAttrs { layout: DataFormat::features_last(2), strides, dilations, padding };
    for axis in [1, 2] {
        dims[axis] = args.window_count(cx, axis, dims[axis], InferredDim::Known(size[axis].guarded_count()))?;
    }
    dims[3] = cx.mul(dims[3], InferredDim::Known(size[1].saturating_mul(size[2]).guarded_count()));
    cx.one_output_like(0, dims)
}
