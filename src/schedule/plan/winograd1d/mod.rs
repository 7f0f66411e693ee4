//! When a convolution is done by Winograd's method along one axis of its window, F(4, r): r + 3 products make 4 results of r
//! taps, which take 4·r otherwise; the other axes of the window are summed over as they are. Longer windows are taken in
//! groups of 4 taps, each of which reads the tile after that of the group before, and dilated ones a phase at a time.
mod blocks;
mod panels;
mod pieces;
mod strips;

pub use blocks::Blocks;
pub use pieces::{Piece, Rows, rows};
pub use strips::Strips;

use super::points::{Points, RESULTS};
use super::winograd;
use crate::hlo::attrs::{ConvDims, WindowDim};
use crate::hlo::{Computation, InstId, Literal, Op};
use crate::target::machine::L3_VECTOR;
use crate::target::{Method, Target};
use crate::tensor::Tensor;

/// Taps of a group of a long window: those of the next begin a tile farther.
const GROUP: u64 = RESULTS;
/// Vectors of a panel of weights.
const PANEL: u64 = 4;
/// Sixteenths of the second level that a panel of weights may have to stay there.
const PANEL_SIXTEENTHS: u64 = 8;

/// Fewest pieces, so that threads share them.
const FEW_PIECES: u64 = 8;
/// Fewest where there is little room.
const FEWEST_PIECES: u64 = 2;

/// Vector operations of a tile's transform for each point: three, of which half run beside the others, and vectors that are
/// written and read once more.
pub const TRANSFORM: f64 = 2.9;

/// A convolution that is done this way.
#[derive(Clone, Debug)]
pub struct Winograd1d {
    /// The weights.
    pub weights: Tensor,
    /// The axis, of those of the window.
    pub axis: usize,
    /// Taps of a group.
    pub taps: u64,
    /// Groups of taps.
    pub groups: u64,
    /// Where polynomials are evaluated.
    pub points: Points,
    /// Images.
    pub images: u64,
    /// Results along each axis of the window.
    pub size: Vec<u64>,
    /// Elements of the input along each axis of the window.
    pub inside: Vec<u64>,
    /// Positions of the padded input along each axis that windows begin at or reach; of no meaning for `axis`.
    pub reach: Vec<u64>,
    /// Results along the axis that belong together, as many as taps are apart.
    pub phases: u64,
    /// Tiles of a phase.
    pub tiles: u64,
    /// Channels read.
    pub inputs: u64,
    /// Channels made.
    pub outputs: u64,
    /// Taps along the axis.
    along: u64,
    /// Taps along the other axes.
    across: u64,
}

/// How it is cut into kernels.
#[derive(Clone, Debug)]
pub enum Cut {
    /// Three kernels: all inputs are transformed, multiplied, transformed back.
    Whole,
    /// Strip after strip in one kernel: some tiles of a line.
    Strips(Strips),
    /// Block after block in one kernel: some lines, and some tiles of each.
    Blocks(Blocks),
    /// All inputs are transformed, then panels of so many channels are multiplied and transformed back one after another.
    Panels(u64),
}

/// A convolution that is done this way, and how.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The convolution.
    pub w: Winograd1d,
    /// Whether weights of strips and blocks are transformed at compile time.
    pub is_known: bool,
    /// How it is cut.
    pub cut: Cut,
}

impl Setup {
    /// The kernels of `w`, which may take so much memory for themselves, if that is bounded.
    pub fn new(w: Winograd1d, d: &ConvDims, is_known: bool, room: Option<u64>, target: &Target) -> Setup {
        let cut = if let Some(strips) = strips::choose(&w, room, target) {
            Cut::Strips(strips)
        } else if let Some(blocks) = blocks::choose(d, &w, room, target) {
            Cut::Blocks(blocks)
        } else {
            panels::choose(&w, room, target).map_or(Cut::Whole, Cut::Panels)
        };
        Setup { w, is_known, cut }
    }
}

impl Winograd1d {
    /// Floating-point operations of the direct way.
    pub fn direct_flops(&self) -> u64 {
        let results = self.images * self.size.iter().product::<u64>();
        2 * results * self.along * self.across * self.inputs * self.outputs
    }
    /// Images, positions along the other axes, phases: each of them has lines of results.
    pub fn extents(&self) -> Vec<u64> {
        let others = (0..self.size.len()).filter(|&i| i != self.axis).map(|i| self.size[i]);
        std::iter::once(self.images).chain(others).chain([self.phases]).collect()
    }
    /// Lines of results.
    pub fn lines(&self) -> u64 {
        self.extents().iter().product()
    }
    /// Tiles of results.
    pub fn rows(&self) -> u64 {
        self.lines() * self.tiles
    }
    /// Lines of the padded input.
    pub fn lines_read(&self) -> u64 {
        self.images * self.others(&self.reach) * self.phases
    }
    /// Tiles of the input in a phase.
    pub fn reads(&self) -> u64 {
        self.tiles + self.groups - 1
    }
    /// Terms of a product: the taps along other axes, groups, channels.
    pub fn terms(&self) -> u64 {
        self.across * self.groups * self.inputs
    }
    /// Bytes of the weights at all points.
    pub fn weight_bytes(&self) -> u64 {
        4 * self.points.count() * self.terms() * self.outputs
    }
    /// Whether those stay near where each piece reads them.
    pub fn has_near_weights(&self, target: &Target) -> bool {
        self.weight_bytes() <= winograd::near_weights(target)
    }
    /// Bytes of all transformed inputs and all sums, which are between three kernels.
    fn whole_bytes(&self) -> u64 {
        4 * self.points.count() * (self.lines_read() * self.reads() * self.inputs + self.rows() * self.outputs)
    }
    /// Whether there is less room than three kernels take.
    pub fn is_bounded(&self, room: Option<u64>) -> bool {
        room.is_some_and(|room| self.whole_bytes() > room)
    }
    /// The fewest pieces that are done one after the other, where what is between three kernels would go to a cache farther away,
    /// or there is less room.
    pub fn fewest_pieces(&self, room: Option<u64>, target: &Target) -> Option<u64> {
        let (is_bounded, whole) = (self.is_bounded(room), self.whole_bytes());
        let is_far = whole > winograd::near_bytes(target) && self.has_near_weights(target);
        let few = if is_bounded { FEWEST_PIECES } else { FEW_PIECES };
        ((is_bounded || is_far) && self.weight_bytes() < whole).then_some(few)
    }
    /// The product of what `extents` has for the other axes.
    fn others(&self, extents: &[u64]) -> u64 {
        (0..extents.len()).filter(|&i| i != self.axis).map(|i| extents[i]).product()
    }
    /// What the tuned choices call this convolution.
    fn form(&self, target: &Target) -> String {
        let Winograd1d { along, across, images, phases, inputs, outputs, .. } = self;
        let (lines, results) = (self.others(&self.size), self.size[self.axis]);
        format!(
            "{} f32 convolution along={along} across={across} dilation={phases} images={images} lines={lines} results={results} inputs={inputs} outputs={outputs}",
            target.cpu
        )
    }
    /// The measured way, else what is expected to be faster, unless the other one is to be measured.
    pub fn method(&self, target: &Target) -> (String, Method) {
        winograd::chosen(self.form(target), self.gain(target), target)
    }
    /// Predicted time of the direct way over that of this one, in vector operations and accesses.
    fn gain(&self, target: &Target) -> f64 {
        let lanes = target.lanes(4);
        let (of_c, of_o) = ((self.inputs / lanes) as f64, (self.outputs / lanes) as f64);
        let (points, rows) = (self.points.count() as f64, self.rows() as f64);
        let direct = self.direct_flops() as f64 / 2.0 / lanes as f64;
        // each point reads the taps of its panel again, which then had better be near
        let of_panel = 4 * self.across * self.along * self.inputs * self.outputs.min(PANEL * lanes);
        let read = if of_panel > target.caches.l2_sixteenths(PANEL_SIXTEENTHS) { L3_VECTOR } else { 1.0 };
        let weights = 0.6 * (self.taps as f64 * (1.0 + read) + 2.0);
        let products = points * self.terms() as f64 * of_o * (rows * 1.12 + weights);
        let lines = self.lines_read() * self.reads();
        // the numbers are those of least squares over 100 convolutions of 2 to 11 taps, each done both ways: predicted gains
        // are 0.80 to 1.22 of the measured ones
        direct / (products + TRANSFORM * points * (lines as f64 * of_c + rows * of_o))
    }
}

/// The convolution `id` along the axis of its window where most is won, where it can be done this way.
pub fn possible(comp: &Computation, id: InstId, target: &Target) -> Option<Winograd1d> {
    let Op::Convolution(d) = &comp[id].op else { return None };
    if !winograd::is_plain(comp, id, d, target.lanes(4)) {
        return None;
    }
    let all = (0..d.window.len()).filter_map(|axis| along(comp, id, d, axis));
    all.max_by(|x, y| x.gain(target).total_cmp(&y.gain(target)))
}

/// The plain convolution `id` along one axis of its window, where that has taps one behind the other.
fn along(comp: &Computation, id: InstId, d: &ConvDims, axis: usize) -> Option<Winograd1d> {
    let w = comp[id].operands[1];
    let Op::Constant(Literal::Array(weights)) = &comp[w].op else { return None };
    let (input, kernel, result) = (comp.array(comp[id].operands[0]), comp.array(w), comp.array(id));
    let (along, size) = (&d.window[axis], d.output_spatial.iter().map(|&a| result.dims[a]).collect::<Vec<_>>());
    if along.stride != 1 || !size[axis].is_multiple_of(along.rhs_dilate) {
        return None;
    }
    let (taps, groups) = match along.size {
        2..=Points::MOST_TAPS => (along.size, 1),
        size => (GROUP, size.div_ceil(GROUP)),
    };
    let reach = |(w, &n): (&WindowDim, &u64)| (n - 1) * w.stride + (w.size - 1) * w.rhs_dilate + 1;
    Some(Winograd1d {
        weights: weights.clone(),
        axis,
        taps,
        groups,
        points: Points::of(taps).filter(|_| along.size > 1)?,
        images: result.dims[d.output_batch],
        inside: d.input_spatial.iter().map(|&a| input.dims[a]).collect(),
        reach: d.window.iter().zip(&size).map(reach).collect(),
        phases: along.rhs_dilate,
        tiles: (size[axis] / along.rhs_dilate).div_ceil(RESULTS),
        size,
        inputs: kernel.dims[d.kernel_input_feature],
        outputs: kernel.dims[d.kernel_output_feature],
        along: along.size,
        across: d.window.iter().enumerate().filter(|(i, _)| *i != axis).map(|(_, w)| w.size).product(),
    })
}
