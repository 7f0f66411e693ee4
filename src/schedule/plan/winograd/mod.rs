//! When a convolution is done by Winograd's method F(4x4, 3x3): 36 products make 16 results of a 3x3 window, which takes 144
//! otherwise. The input is read in tiles of 6x6 that overlap by 2; what they read outside of it is zero.
//!
//! With the points [`super::points::Points::SQUARE`] the error is below a tenth of `4·√K·2⁻²⁴·Σ|a·b|`, the bound of direct
//! sums. What is lost is locality: an infinity or a NaN spoils the 16 results of its tiles, not 9.
mod panels;
mod strips;

pub use panels::PanelByPanel;
pub use strips::Strips;

use super::points::RESULTS;
use super::stored::{self, Stored};
use crate::hlo::attrs::ConvDims;
use crate::hlo::{Computation, InstId, Literal, Op};
use crate::target::{Method, Target};
use crate::tensor::DType;

/// Elements that a tile reads along each axis.
pub const READS: u64 = 6;
/// Products of a tile.
pub const POINTS: u64 = READS * READS;

/// Groups of panels that are made at once in weights that are transformed on the way, each with memory for a panel.
pub const FEW_GROUPS: u64 = 4;
/// Vectors of a narrow panel.
pub const NARROW: u64 = 2;

/// Fewest terms of a sum: below, the transforms dominate and the error bound is near.
const FEWEST_CHANNELS: u64 = 16;
/// Sixteenths of the second level: what stays there between three kernels.
const NEAR_SIXTEENTHS: u64 = 4;
/// Sixteenths of the second level that weights may have, which every piece reads, so that they and a piece stay there.
const WEIGHTS_SIXTEENTHS: u64 = 10;

/// The most bytes between three kernels that stay in the second level.
pub fn near_bytes(target: &Target) -> u64 {
    target.caches.l2_sixteenths(NEAR_SIXTEENTHS)
}

/// The most bytes of weights that stay in the second level beside the piece that they are multiplied with.
pub fn near_weights(target: &Target) -> u64 {
    target.caches.l2_sixteenths(WEIGHTS_SIXTEENTHS)
}

/// Least predicted time of the direct way over that of this one.
const LEAST_GAIN: f64 = 1.15;

/// A convolution that is done this way.
#[derive(Clone, Debug)]
pub struct Winograd {
    /// The weights, as they are stored.
    pub weights: Stored,
    /// Images.
    pub images: u64,
    /// Rows and columns of the input.
    pub reach: [u64; 2],
    /// Rows and columns of the result.
    pub size: [u64; 2],
    /// Tiles along both axes.
    pub tiles: [u64; 2],
    /// Channels read.
    pub inputs: u64,
    /// Channels made.
    pub outputs: u64,
}

/// How it is cut into kernels.
#[derive(Clone, Debug)]
pub enum Cut {
    /// Three kernels: all inputs are transformed, multiplied, transformed back.
    Whole,
    /// Some tiles after the others in one kernel, which all weights are ready for.
    Strips(Strips),
    /// All inputs are transformed, then a panel of channels after the other has its weights transformed, is multiplied and
    /// transformed back.
    Panels(PanelByPanel),
}

/// A convolution that is done this way, and how.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The convolution.
    pub w: Winograd,
    /// Whether its weights are transformed at compile time.
    pub is_known: bool,
    /// How it is cut.
    pub cut: Cut,
}

impl Setup {
    /// The kernels of `w`, which may take so much memory for themselves, if that is bounded.
    pub fn new(w: Winograd, is_known: bool, room: Option<u64>, target: &Target) -> Setup {
        let strips = strips::choose(&w, is_known, room, target);
        let panels = room.filter(|_| !is_known).and_then(|room| panels::choose(&w, room, target));
        let bytes = strips.as_ref().map_or(u64::MAX, |strips| strips.bytes(&w, is_known));
        let cut = match (panels.filter(|panels| panels.bytes(&w) < bytes), strips) {
            (Some(panels), _) => Cut::Panels(panels),
            (None, Some(strips)) => Cut::Strips(strips),
            (None, None) => Cut::Whole,
        };
        Setup { w, is_known, cut }
    }
}

impl Winograd {
    /// What the tuned choices call this convolution.
    fn form(&self, target: &Target) -> String {
        let Winograd { images, size: [height, width], inputs, outputs, .. } = self;
        format!(
            "{} f32 convolution images={images} height={height} width={width} inputs={inputs} outputs={outputs}",
            target.cpu
        )
    }

    /// Tiles of all images.
    pub fn count(&self) -> u64 {
        self.images * self.tiles[0] * self.tiles[1]
    }

    /// Bytes of the weights at all points.
    pub fn weight_bytes(&self) -> u64 {
        4 * POINTS * self.inputs * self.outputs
    }

    /// By how many bytes the constants grow with weights that are transformed at compile time.
    pub fn grown_bytes(&self) -> u64 {
        (POINTS - 9) * self.inputs * self.outputs * 4
    }

    /// Floating-point operations of the direct way.
    pub fn direct_flops(&self) -> u64 {
        18 * self.images * self.size[0] * self.size[1] * self.inputs * self.outputs
    }

    /// The measured way, else what is expected to be faster, unless the other one is to be measured.
    pub fn method(&self, target: &Target) -> (String, Method) {
        chosen(self.form(target), self.gain(target), target)
    }

    /// Predicted time of the direct way over that of this one, in vector operations and accesses.
    fn gain(&self, target: &Target) -> f64 {
        let lanes = target.lanes(4);
        let (c, t) = (self.inputs as f64, self.count() as f64);
        let (of_c, of_o) = ((self.inputs / lanes) as f64, (self.outputs / lanes) as f64);
        let points = POINTS as f64;
        let direct = 9.0 * c * of_o * (self.images * self.size[0] * self.size[1]) as f64;
        // few tiles make few rows, over which the weights are read again
        let rows = 1.15 + 1.6 / t;
        // weights are transformed at each call; they are written and read once more, from memory that is far if they are many
        let weights = if self.weight_bytes() <= target.caches.l2 { 4.0 } else { 8.0 };
        // numbers of operations a point of least squares over 42 convolutions, each done both ways: predicted gains are 0.75 to
        // 1.19 of those measured, and less where weights are so small that they are transformed at compile time
        direct / (points * (c * of_o * t * rows + 2.6 * t * (of_c + of_o) + weights * c * of_o))
    }
}

/// How the convolution of that name is done, where the direct way is predicted to take `gain` times as long as the other.
pub fn chosen(form: String, gain: f64, target: &Target) -> (String, Method) {
    let of_model = if gain >= LEAST_GAIN { Method::Winograd } else { Method::Direct };
    let method = target.tuning.method(&form, of_model);
    (form, method)
}

/// Whether convolution `id` has f32 numbers, one group, features last, as many of them as fill vectors, and windows without
/// holes in the input that begin at or before its first element.
pub fn is_plain(comp: &Computation, id: InstId, d: &ConvDims, lanes: u64) -> bool {
    let [x, w] = comp[id].operands[..] else { return false };
    let (input, kernel, result) = (comp.array(x), comp.array(w), comp.array(id));
    let even = |axis: usize| kernel.dims[axis] >= FEWEST_CHANNELS && kernel.dims[axis].is_multiple_of(lanes);
    [input.dtype, kernel.dtype, result.dtype] == [DType::F32; 3]
        && result.elements() > 0
        && input.elements() > 0
        && (d.feature_group_count, d.batch_group_count) == (1, 1)
        && d.window.iter().all(|w| w.lhs_dilate == 1 && !w.reversal && w.pad_low >= 0)
        && d.input_feature + 1 == input.rank()
        && d.output_feature + 1 == result.rank()
        && d.kernel_output_feature + 1 == kernel.rank()
        && even(d.kernel_input_feature)
        && even(d.kernel_output_feature)
}

/// The convolution `id`, where it can be done this way.
pub fn possible(comp: &Computation, id: InstId, target: &Target) -> Option<Winograd> {
    let Op::Convolution(d) = &comp[id].op else { return None };
    let is_square = d.window.len() == 2 && d.window.iter().all(|w| w.size == 3 && w.stride == 1 && w.rhs_dilate == 1);
    if !is_square || !is_plain(comp, id, d, target.lanes(4)) {
        return None;
    }
    let w = comp[id].operands[1];
    let weights = match &comp[w].op {
        Op::Constant(Literal::Array(numbers)) => Stored { numbers: numbers.clone(), scales: None },
        _ => stored::find(comp, w).filter(|s| s.scales.as_ref().is_none_or(|s| s.1 == [d.kernel_output_feature]))?,
    };
    let (input, kernel, result) = (comp.array(comp[id].operands[0]), comp.array(w), comp.array(id));
    let size = [result.dims[d.output_spatial[0]], result.dims[d.output_spatial[1]]];
    Some(Winograd {
        weights,
        images: result.dims[d.output_batch],
        reach: [input.dims[d.input_spatial[0]], input.dims[d.input_spatial[1]]],
        size,
        tiles: size.map(|n| n.div_ceil(RESULTS)),
        inputs: kernel.dims[d.kernel_input_feature],
        outputs: kernel.dims[d.kernel_output_feature],
    })
}
