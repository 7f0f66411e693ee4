//! Windows that leave out rows of taps that lie on the padding: where a plane is a few rows high, those are a good part of all
//! taps, and the operand needs no rows of zeros before its first and behind its last one. A tile lies in one row of results then.
use crate::hlo::attrs::{ConvDims, WindowDim};
use crate::hlo::{Computation, InstId};
use crate::schedule::families::contraction::recipe::register_tile::{TiledExtents, candidate_tiles, single_axis_tiles};
use crate::schedule::plan::MOST_NARROW_COLUMNS;
use crate::schedule::target::KernelTarget;
use crate::target::{MathType, Target};
use crate::tensor::DType;

/// Largest ratio of the predicted times without and with the taps on the padding for which leaving them out pays.
const MOST_TIME: f64 = 0.97;

/// A linear map from a row of results and a row of taps to the row of the operand that they read, along the first axis of a window.
#[derive(Clone, Copy, Debug)]
pub struct TapRows {
    /// The row that the first tap of the first result reads.
    pub first: i64,
    /// Distance in operand rows between the reads of neighboring results, and between those of neighboring taps.
    pub steps: [i64; 2],
    /// Number of rows of the operand.
    pub rows: i64,
    /// Distance of rows of the operand, in elements.
    pub apart: i64,
}

impl TapRows {
    fn new(w: &WindowDim, rows: u64) -> TapRows {
        TapRows { first: -w.pad_low, steps: [w.stride as i64, w.rhs_dilate as i64], rows: rows as i64, apart: 0 }
    }

    /// Number of pairs of a result row and a tap row that read a row of the operand.
    pub fn count_reading_pairs(&self, results: u64, taps: u64) -> u64 {
        let ends = |row: i64| {
            let first = row * self.steps[0] + self.first;
            let before =
                |end: i64| (end - first).max(0).unsigned_abs().div_ceil(self.steps[1].unsigned_abs()).min(taps);
            before(self.rows) - before(0)
        };
        (0..results as i64).map(ends).sum()
    }
}

/// Whether `machine` has a dot-product instruction for integers of type `dtype`.
fn is_of_words(dtype: DType, machine: &Target) -> bool {
    match dtype {
        DType::S8 | DType::U8 => machine.byte_dot.is_some(),
        DType::S16 => machine.short_dot.is_some(),
        _ => false,
    }
}

/// Decides whether direct convolution `id`, over several channels, leaves out rows of taps: its rows then have the first spatial axis
/// behind that of images, and its terms begin with that of the window.
pub fn choose_tap_rows(comp: &Computation, id: InstId, d: &ConvDims, target: &KernelTarget<'_>) -> Option<TapRows> {
    let [input, kernel] = comp[id].operands[..] else { return None };
    let (input, kernel, result) = (comp.array_shape(input), comp.array_shape(kernel), comp.array_shape(id));
    let columns = kernel.dims[d.kernel_output_feature] / d.feature_group_count.max(1);
    let plain = d.window.len() >= 2
        && d.window.iter().all(|w| w.lhs_dilate == 1)
        && input.elements() > 0
        && result.elements() > 0
        && columns > MOST_NARROW_COLUMNS
        // terms are summed by the word in loops of their own
        && target.request.precision.math != MathType::Bf16
        && !is_of_words(input.dtype, target.machine());
    if !plain {
        return None;
    }
    let inside = TapRows::new(&d.window[0], input.dims[d.input_spatial[0]]);
    let (high, taps) = (result.dims[d.output_spatial[0]], d.window[0].size);
    let (pairs, all) = (inside.count_reading_pairs(high, taps), high * taps);
    let [.., height, width] = d.output_spatial.iter().map(|&a| result.dims[a]).collect::<Vec<u64>>()[..] else {
        return None;
    };
    let features = kernel.dims[d.kernel_input_feature];
    let sum = features * d.window.iter().map(|w| w.size).product::<u64>();
    let dtype = result.dtype.accumulator_type();
    let stride = features * d.feature_group_count * d.window[d.window.len() - 1].stride * dtype.bytes() as u64;
    let cover = TiledExtents { height, width, columns, sum, stride, adds_apart: false };
    let least = |all: Vec<(f64, _)>| all.into_iter().map(|(time, _)| time).min_by(f64::total_cmp);
    let time = least(single_axis_tiles(target.machine(), dtype, cover))? * pairs as f64 / all as f64;
    (time <= MOST_TIME * least(candidate_tiles(target.machine(), dtype, cover))?).then_some(inside)
}
