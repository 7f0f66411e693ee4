//! Conversion of windows and convolution dimension numbers to and from protobuf messages.
use super::messages::xla_data::{ConvolutionDimensionNumbers, Window, WindowDimension};
use crate::diag::{Code, Error, Result};
use crate::hlo::SizeRepr;
use crate::hlo::attrs::{ConvAxes, ConvDims, WindowDim};

/// Upper limit of axes: more than the labels of a convolution can name.
const MAX_RANK: usize = 12;

pub(super) fn write_window(window: &[WindowDim]) -> Window {
    let one = |w: &WindowDim| WindowDimension {
        size: w.size as i64,
        stride: w.stride as i64,
        padding_low: w.pad_low,
        padding_high: w.pad_high,
        window_dilation: w.rhs_dilate as i64,
        base_dilation: w.lhs_dilate as i64,
        window_reversal: w.reversal,
        ..Default::default()
    };
    Window { dimensions: window.iter().map(one).collect(), ..Default::default() }
}

pub(super) fn read_window(p: &Window) -> Result<Vec<WindowDim>> {
    let size =
        |v: i64| u64::try_from(v).map_err(|_| Error::user(Code::BadEncoding, format!("a window has a size {v}")));
    let one = |w: &WindowDimension| {
        Ok(WindowDim {
            size: size(w.size)?,
            stride: size(w.stride)?,
            pad_low: w.padding_low,
            pad_high: w.padding_high,
            lhs_dilate: size(w.base_dilation)?,
            rhs_dilate: size(w.window_dilation)?,
            reversal: w.window_reversal,
        })
    };
    p.dimensions.iter().map(one).collect()
}

pub(super) fn write_convolution(d: &ConvDims) -> ConvolutionDimensionNumbers {
    let list = |v: &[usize]| v.iter().map(|&a| a as i64).collect();
    ConvolutionDimensionNumbers {
        input_batch_dimension: d.input_batch as i64,
        input_feature_dimension: d.input_feature as i64,
        input_spatial_dimensions: list(&d.input_spatial),
        kernel_input_feature_dimension: d.kernel_input_feature as i64,
        kernel_output_feature_dimension: d.kernel_output_feature as i64,
        kernel_spatial_dimensions: list(&d.kernel_spatial),
        output_batch_dimension: d.output_batch as i64,
        output_feature_dimension: d.output_feature as i64,
        output_spatial_dimensions: list(&d.output_spatial),
        ..Default::default()
    }
}

/// Reads the dimension numbers of a convolution, without a window and in one group. Errors: `Code::BadEncoding` if the axes are
/// not a permutation.
pub(super) fn read_convolution<D: SizeRepr>(p: &ConvolutionDimensionNumbers) -> Result<ConvDims<D>> {
    Ok(ConvDims::from_axes(
        axes(p.input_batch_dimension, p.input_feature_dimension, &p.input_spatial_dimensions)?,
        axes(p.kernel_input_feature_dimension, p.kernel_output_feature_dimension, &p.kernel_spatial_dimensions)?,
        axes(p.output_batch_dimension, p.output_feature_dimension, &p.output_spatial_dimensions)?,
    ))
}

fn axes(first: i64, second: i64, spatial: &[i64]) -> Result<ConvAxes> {
    let all: Vec<i64> = [first, second].into_iter().chain(spatial.iter().copied()).collect();
    let mut sorted = all.clone();
    sorted.sort_unstable();
    let distinct = sorted.windows(2).all(|w| w[0] != w[1]);
    if !distinct || sorted[0] < 0 || sorted.last().is_some_and(|&d| d >= MAX_RANK as i64) {
        return Err(Error::user(Code::BadEncoding, format!("{all:?} are no axes of a convolution")));
    }
    Ok((first as usize, second as usize, spatial.iter().map(|&d| d as usize).collect()))
}
