//! Convolutions over few features: pixels along the last spatial axis and their features as one axis, whose terms lie side by side.
//!
//! Three features of a pixel are no word of four bytes, but the features of a row of taps lie side by side. The row becomes a window along an axis of
//! `W * C` elements with one feature, widened by taps of zero to whole words:
//!
//! | before | after |
//! |---|---|
//! | `u8[1,224,224,3]`, window 3x3 of stride 2x2 | `u8[1,224,672,1]`, window 3x12 of stride 2x6, the last 3 taps zero |
use super::TERMS_OF_A_WORD;
use crate::hlo::attrs::{ConvDims, PadDim};
use crate::tensor::{DType, Tensor};

/// Largest factor by which taps of zero may widen a window.
const MOST_WIDENING: u64 = 2;

/// A convolution whose last spatial axis is merged with its features.
#[derive(Clone, Copy, Debug)]
pub struct MergedFeatures {
    /// Number of features of a pixel.
    features: u64,
    /// Number of taps of a row of the window, with those of zero.
    taps: u64,
}

impl MergedFeatures {
    /// The merged form of a convolution of images of the sizes `left` by a window of the sizes `right`; `None` if its rows of taps do not lie
    /// side by side, or not in a good part of their words.
    pub fn of_convolution(d: &ConvDims, left: &[u64], right: &[u64]) -> Option<MergedFeatures> {
        let last = d.window.len().checked_sub(1)?;
        let spatial: Vec<usize> = (1..=last + 1).collect();
        let is_natural = d.input_batch == 0 && d.input_spatial == spatial && d.input_feature == last + 2;
        let window: Vec<usize> = (0..=last).collect();
        let is_row_major =
            d.kernel_spatial == window && d.kernel_input_feature == last + 1 && d.kernel_output_feature == last + 2;
        let w = &d.window[last];
        let is_dense = w.rhs_dilate == 1 && w.lhs_dilate == 1 && !w.reversal;
        let features = *left.get(d.input_feature)?;
        let plain = right[last].checked_mul(features)?;
        let taps = plain.checked_next_multiple_of(TERMS_OF_A_WORD)?;
        let is_one_group = d.feature_group_count == 1 && d.batch_group_count == 1;
        let fits = plain > 0 && taps <= plain.saturating_mul(MOST_WIDENING);
        (is_natural && is_row_major && is_dense && is_one_group && fits).then_some(MergedFeatures { features, taps })
    }

    /// The sizes of images whose last two axes are one.
    pub fn merged_sizes(self, dims: &[u64]) -> Vec<u64> {
        let mut merged = dims.to_vec();
        let features = merged.pop().unwrap_or(1);
        if let Some(width) = merged.last_mut() {
            *width *= features;
        }
        merged
    }

    /// The padding of merged images, of one along the axes of images.
    pub fn merge_padding(self, mut padding: Vec<PadDim>) -> Vec<PadDim> {
        padding.pop();
        if let Some(width) = padding.last_mut() {
            (width.low, width.high) = (width.low * self.features as i64, width.high * self.features as i64);
        }
        padding
    }

    /// Makes the window one along the merged axis.
    pub fn widen_window(self, d: &mut ConvDims) {
        if let Some(w) = d.window.last_mut() {
            let (features, added) = (self.features as i64, self.taps - w.size * self.features);
            (w.size, w.stride) = (self.taps, w.stride * self.features);
            (w.pad_low, w.pad_high) = (w.pad_low * features, w.pad_high * features + added as i64);
        }
    }

    /// The weights of the widened window, from an array of `s8` whose last axes are a row of taps, input features and output features.
    pub fn widen_weights(self, weights: &Tensor) -> Tensor {
        let rank = weights.dims.len();
        let outputs = weights.dims[rank - 1] as usize;
        let row = (weights.dims[rank - 3] * weights.dims[rank - 2]) as usize * outputs;
        let wide = self.taps as usize * outputs;
        let levels = weights.view::<i8>();
        let rows = levels.len().checked_div(row).unwrap_or(0);
        let mut values = vec![0i8; rows * wide];
        for (to, from) in values.chunks_mut(wide.max(1)).zip(levels.chunks(row.max(1))) {
            to[..row].copy_from_slice(from);
        }
        let mut dims = weights.dims.clone();
        (dims[rank - 3], dims[rank - 2]) = (self.taps, 1);
        Tensor::from_vec(DType::S8, dims, values)
    }
}
