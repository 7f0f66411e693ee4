//! Attributes of windowed ops: data format, strides, dilations, padding.
use crate::diag::{Code, Error, Result};
use crate::graph::{Attr, Node};
use crate::hlo::symbolic::Dim;
use crate::hlo::symbolic::WindowDim;
use crate::hlo::symbolic::{Builder, InstId};
use crate::ops::ShapeCtx;
use crate::ops::symbols::InferredDim;

/// Positions of the batch, feature and spatial axes of an array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataFormat {
    /// Batch axis.
    pub batch: usize,
    /// Feature (channel) axis.
    pub feature: usize,
    /// Spatial axes, outermost first.
    pub spatial: Vec<usize>,
}

/// Padding of the edges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Padding {
    /// Padding with which the result has `ceil(n / stride)` elements.
    Same,
    /// No padding.
    Valid,
    /// Padding `(before, after)` for each axis of the array.
    Explicit(Vec<(i64, i64)>),
}

/// Attributes of a windowed op; lists have one entry per axis of the array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WindowAttrs {
    /// Data format.
    pub layout: DataFormat,
    /// Strides: steps between windows.
    pub strides: Vec<Dim>,
    /// Dilations: 1 + holes between the elements of a window.
    pub dilations: Vec<Dim>,
    /// Padding.
    pub padding: Padding,
}

impl DataFormat {
    /// Layout of attribute `data_format` (default: features last) for an array with `spatial` spatial axes.
    pub fn parse(node: &Node, spatial: usize) -> Result<DataFormat> {
        match node.str("data_format").unwrap_or("NHWC") {
            "NHWC" | "NDHWC" | "NWC" | "CHANNELS_LAST" | "channelsLast" | "" => Ok(DataFormat::features_last(spatial)),
            "NCHW" | "NCDHW" | "NCW" | "CHANNELS_FIRST" | "channelsFirst" => {
                Ok(DataFormat { batch: 0, feature: 1, spatial: (2..spatial + 2).collect() })
            }
            other => Err(Error::user(
                Code::UnsupportedCase,
                format!("data_format {other} is not supported; NHWC, NCHW, NDHWC and NCDHW are"),
            )),
        }
    }
    /// Layout with the batch first and features last.
    pub fn features_last(spatial: usize) -> DataFormat {
        DataFormat { batch: 0, feature: spatial + 1, spatial: (1..=spatial).collect() }
    }
    /// Number of axes.
    pub fn rank(&self) -> usize {
        self.spatial.len() + 2
    }
}

impl WindowAttrs {
    /// Reads `data_format`, `strides`, `dilations`, `padding` and `explicit_paddings`.
    ///
    /// Errors: `Code::BadAttr` for lists of a wrong length, or values that are not positive.
    pub fn parse(node: &Node, spatial: usize) -> Result<WindowAttrs> {
        let layout = DataFormat::parse(node, spatial)?;
        let rank = layout.rank();
        let strides = int_list(node, "strides", rank)?;
        let dilations = int_list(node, "dilations", rank)?;
        Ok(WindowAttrs { padding: padding(node, rank)?, layout, strides, dilations })
    }
    /// Reads the attributes of a convolution, whose strides and dilations over batch and features must be 1.
    pub fn parse_spatial(node: &Node, spatial: usize) -> Result<WindowAttrs> {
        let args = WindowAttrs::parse(node, spatial)?;
        for axis in [args.layout.batch, args.layout.feature] {
            if args.strides[axis] != 1 || args.dilations[axis] != 1 {
                return Err(Error::user(
                    Code::UnsupportedCase,
                    "strides and dilations over batch or features are not supported; spatial ones are",
                ));
            }
        }
        Ok(args)
    }
    /// Window of size `k` over `n` elements along `axis`.
    pub fn window(&self, axis: usize, n: Dim, k: Dim) -> Result<WindowDim> {
        window_dim(n, k, self.strides[axis], self.dilations[axis], &self.padding, axis)
    }
    /// Windows over the spatial axes of an array `dims`, with a kernel of these spatial sizes.
    pub fn spatial_windows(&self, dims: &[Dim], kernel: &[Dim]) -> Result<Vec<WindowDim>> {
        self.layout.spatial.iter().zip(kernel).map(|(&axis, &k)| self.window(axis, dims[axis], k)).collect()
    }
}

impl WindowAttrs {
    /// Number of windows of size `k` over `n` elements along `axis`.
    pub fn window_count(&self, cx: &mut ShapeCtx, axis: usize, n: InferredDim, k: InferredDim) -> Result<InferredDim> {
        let (stride, dilation) = (self.strides[axis], self.dilations[axis]);
        let (n, k) = match (n, k) {
            (InferredDim::Known(n), InferredDim::Known(k)) => {
                let window = self.window(axis, Dim::from(n), Dim::from(k))?;
                return window
                    .output_size(Dim::from(n))
                    .map(|n| InferredDim::Known(n.guarded_count()))
                    .ok_or_else(|| cx.shape_mismatch("a size of a window overflows"));
            }
            (n, k) => (n, k),
        };
        let pad = match &self.padding {
            Padding::Same => return Ok(cx.div_ceil(n, InferredDim::Known(stride.guarded_count()))),
            Padding::Valid => 0,
            Padding::Explicit(pads) => pads.get(axis).map_or(0, |p| p.0.unsigned_abs() + p.1.unsigned_abs()),
        };
        // (n + pad - reach) / stride + 1, with reach = (k - 1) * dilation + 1; known terms are combined first.
        let (more, less) = match k {
            InferredDim::Known(k) => {
                let less = k.saturating_sub(1).saturating_mul(dilation.guarded_count());
                (InferredDim::Known(pad.saturating_sub(less)), InferredDim::Known(less.saturating_sub(pad)))
            }
            k => {
                let holes = cx.sub(k, InferredDim::Known(1));
                (InferredDim::Known(pad), cx.mul(holes, InferredDim::Known(dilation.guarded_count())))
            }
        };
        let wide = cx.add(n, more);
        let starts = cx.sub(wide, less);
        Ok(cx.div_ceil(starts, InferredDim::Known(stride.guarded_count())))
    }
}

/// Window of size `k` over `n` elements by TensorFlow's padding rules; an odd element of SAME padding goes behind.
///
/// Errors: `Code::ShapeMismatch` if the window does not fit.
pub fn window_dim(n: Dim, k: Dim, stride: Dim, dilation: Dim, padding: &Padding, axis: usize) -> Result<WindowDim> {
    let too_large = || Error::user(Code::TooLarge, "a size of a window overflows");
    let reach = k.saturating_sub(1).checked_mul(dilation).and_then(|v| v.checked_add(1)).ok_or_else(too_large)?;
    let (pad_low, pad_high) = match padding {
        Padding::Valid => (Dim::from(0), Dim::from(0)),
        Padding::Explicit(pads) => {
            let (low, high) = pads.get(axis).copied().unwrap_or((0, 0));
            (Dim::from(low), Dim::from(high))
        }
        Padding::Same => {
            let out = n.div_ceil(stride);
            let covered = (out - 1).checked_mul(stride).and_then(|v| v.checked_add(reach)).ok_or_else(too_large)?;
            let total = if out == 0 { Dim::from(0) } else { (covered - n).max(0) };
            (total / 2, total - total / 2)
        }
    };
    let padded = n.checked_add(pad_low).and_then(|v| v.checked_add(pad_high)).ok_or_else(too_large)?;
    // SAME gives no windows over zero elements.
    let fits = padded - reach + stride >= 0 || matches!(padding, Padding::Same) && n == 0;
    if k == 0 || !fits {
        return Err(Error::user(
            Code::ShapeMismatch,
            format!("a window of {reach} does not fit over {padded} elements (padding included) of dimension {axis}"),
        ));
    }
    Ok(WindowDim {
        size: k,
        stride,
        pad_low,
        pad_high,
        lhs_dilate: Dim::from(1),
        rhs_dilate: dilation,
        reversal: false,
    })
}

/// Window of a transposed convolution: it sums, for each input element, the contributions of the result elements that it
/// affected.
pub struct TransposedWindow {
    /// Window over the gradient, with base dilation by the forward stride.
    pub window: WindowDim,
    /// Number of leading result elements that do not belong to the input's gradient.
    pub skipped: Dim,
}

impl TransposedWindow {
    /// Transpose of the window `forward`, which computes `out` elements from `n`.
    ///
    /// Leading padding that depends on sizes is impossible with base dilation, as the holes would move. In that case all
    /// elements to which the gradient contributes are computed, and the first `skipped` ones are not elements of the input.
    ///
    /// # Errors
    /// `Code::TooLarge` if a size overflows.
    pub fn new(forward: &WindowDim, n: Dim, out: Dim) -> Result<TransposedWindow> {
        let most = dilated_extent(forward.size, forward.rhs_dilate)? - 1;
        let is_moved = forward.pad_low.varies() && forward.stride != 1;
        let skipped = if is_moved { forward.pad_low } else { Dim::from(0) };
        let window = WindowDim {
            size: forward.size,
            stride: Dim::from(1),
            pad_low: most - (forward.pad_low - skipped),
            pad_high: n - dilated_extent(out, forward.stride)? + forward.pad_low,
            lhs_dilate: forward.stride,
            rhs_dilate: forward.rhs_dilate,
            reversal: false,
        };
        Ok(TransposedWindow { window, skipped })
    }
    /// The `n` elements along `axis` of the transposed window's result that belong to the input's gradient.
    pub fn crop_to_input(&self, b: &mut Builder, x: InstId, axis: usize, n: Dim) -> InstId {
        if self.skipped.is_zero() { x } else { b.slice_axis(x, axis, self.skipped, self.skipped + n) }
    }
}

/// Extent of `n` elements dilated by `by`: `(n - 1) * by + 1`, and 0 for no elements.
///
/// # Errors
/// `Code::TooLarge` if it overflows.
pub fn dilated_extent(n: Dim, by: Dim) -> Result<Dim> {
    let reach = n.checked_mul(by).map(|v| (v - (by - 1)).max(0));
    reach.ok_or_else(|| Error::user(Code::TooLarge, "a size of a window overflows"))
}

/// Attribute `name`, a list of positive integers for each axis; ones if it is missing or empty.
///
/// A single number applies to all spatial axes; a list of the spatial axes alone is completed with ones.
fn int_list(node: &Node, name: &str, rank: usize) -> Result<Vec<Dim>> {
    match node.attr(name) {
        Some(Attr::Ints(v)) if !v.is_empty() => positive_sizes(v, name, rank),
        _ => Ok(vec![Dim::from(1); rank]),
    }
}

/// Checks `values`, positive integers for each axis, and converts them to sizes.
pub fn positive_sizes(values: &[i64], name: &str, rank: usize) -> Result<Vec<Dim>> {
    if values.len() != rank {
        return Err(Error::user(Code::BadAttr, format!("`{name}` has {} entries for rank {rank}", values.len())));
    }
    let one = |&v: &i64| match Dim::size(v) {
        Ok(v) if v > 0 && v <= Dim::from(i32::MAX) => Ok(v),
        _ => Err(Error::user(Code::BadAttr, format!("`{name}` must hold positive 32-bit numbers, not {v}"))),
    };
    values.iter().map(one).collect()
}

fn padding(node: &Node, rank: usize) -> Result<Padding> {
    match node.str("padding").unwrap_or("VALID") {
        "SAME" | "same" => Ok(Padding::Same),
        "VALID" | "valid" => Ok(Padding::Valid),
        "EXPLICIT" | "explicit" => {
            let pads = node.ints("explicit_paddings").unwrap_or(&[]);
            if pads.len() != 2 * rank || pads.iter().any(|&p| p < 0 || p > i32::MAX as i64) {
                return Err(Error::user(
                    Code::BadAttr,
                    format!("`explicit_paddings` must be {} non-negative numbers, not {pads:?}", 2 * rank),
                ));
            }
            Ok(Padding::Explicit(pads.chunks(2).map(|p| (p[0], p[1])).collect()))
        }
        other => Err(Error::user(
            Code::UnsupportedCase,
            format!("padding {other} is not supported; SAME, VALID and EXPLICIT are"),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(n: u64, k: u64, stride: u64, dilation: u64, padding: &Padding, axis: usize) -> Result<WindowDim> {
        window_dim(n.into(), k.into(), stride.into(), dilation.into(), padding, axis)
    }

    #[test]
    fn same_puts_the_odd_element_behind() {
        let w = window(6, 3, 2, 1, &Padding::Same, 0).expect("fits");
        assert_eq!([w.pad_low, w.pad_high], [0, 1]);
        assert_eq!(w.output_size(6.into()), Some(3.into()));
    }

    #[test]
    fn dilation_widens_the_window() {
        let w = window(7, 3, 1, 2, &Padding::Same, 0).expect("fits");
        assert_eq!([w.pad_low, w.pad_high], [2, 2]);
        assert!(window(3, 3, 1, 2, &Padding::Valid, 0).is_err());
    }
}
