//! When a convolution is done by Winograd's method; `cut.rs` and the files that it uses decide how it is cut into kernels.
//!
//! Along both axes, with the points [`EvaluationPoints::SQUARE`], the error is below a tenth of `4·√K·2⁻²⁴·Σ|a·b|`, the bound of direct
//! sums. What is lost is locality: an infinity or a NaN spoils all results of the tiles that read it.
mod blocks;
mod cut;
pub mod numbers;
mod panels;
mod pieces;
pub mod points;
mod strips;

pub use blocks::BlockSplit;
pub use cut::{KernelSplit, WinogradSetup};
pub use panels::ProductPanels;
pub use pieces::{ConvolutionPiece, InputLayout, ProductRows};
pub use strips::Strips;

use crate::hlo::attrs::{ConvDims, WindowDim};
use crate::hlo::{Computation, InstId, Literal, Op};
use crate::schedule::families::contraction::recipe::register_tile::TiledExtents;
use crate::schedule::families::contraction::recipe::word_products::WordProducts;
use crate::schedule::plan::compressed_constants::{self, CompressedConstant};
use crate::schedule::target::KernelTarget;
use crate::target::machine::{L3_VECTOR, PRODUCTS_ADDED_APART};
use crate::target::{ConvolutionMethod, Target};
use crate::tensor::DType;
use numbers::TransformTypes;
use points::{EvaluationPoints, RESULTS, point_stride};

/// Taps per group of a long window; the taps of the next group begin a tile farther.
const GROUP: u64 = RESULTS;
/// Taps along each axis if the method is used along several.
pub const TAPS_OF_SEVERAL: u64 = 3;
/// Fewest input channels and fewest output channels: with fewer the transforms dominate and the error bound is near.
const FEWEST_CHANNELS: u64 = 16;
/// Least predicted speedup over the direct method for the method to be used.
const LEAST_GAIN: f64 = 1.15;

/// Sixteenths of the second-level cache within which intermediates stay between three kernels.
const NEAR_SIXTEENTHS: u64 = 4;
/// Sixteenths of the second-level cache that weights read by every piece may take, so that they and a piece stay there.
const WEIGHTS_SIXTEENTHS: u64 = 10;
/// Fewest pieces, for threads to share them.
const FEW_PIECES: u64 = 8;
/// Fewest pieces if memory is bounded.
const FEWEST_PIECES: u64 = 2;
/// Vectors per panel of weights along one axis.
const PANEL: u64 = 4;
/// Sixteenths of the second-level cache that a panel of weights may take to stay there.
const PANEL_SIXTEENTHS: u64 = 8;

/// Vector operations per point of a tile's transform along one axis: three, half of which overlap with others, and the vectors written
/// and read once more.
const TRANSFORM: f64 = 2.9;
/// Floating-point operations of the transforms along both axes: of a tile to points, of a tile back, and of the taps of a weight to points.
const OF_SQUARE: [u64; 3] = [144, 130, 90];

/// An axis of the window along which Winograd's method is used.
#[derive(Clone, Debug)]
pub struct TransformedAxis {
    /// Index of the axis among those of the window.
    pub axis: usize,
    /// Number of taps along the axis.
    pub size: u64,
    /// Taps per group.
    pub taps: u64,
    /// Number of groups of taps.
    pub groups: u64,
    /// The points at which polynomials are evaluated.
    pub points: EvaluationPoints,
    /// Number of interleaved phases of results: the distance of taps.
    pub phases: u64,
    /// Number of tiles of results per phase.
    pub tiles: u64,
}

impl TransformedAxis {
    /// Number of tiles of the input per phase.
    pub fn input_tiles(&self) -> u64 {
        self.tiles + self.groups - 1
    }
    /// Number of positions that a tile may read beyond a result and its taps.
    pub fn overhang(&self) -> u64 {
        (RESULTS - 1 + self.groups * self.taps - self.size) * self.phases
    }
}

/// The weights of a convolution.
#[derive(Clone, Debug)]
pub enum WinogradWeights {
    /// Constant weights, as they are stored.
    Known(CompressedConstant),
    /// Weights of these sizes that are computed or given at each call, and so transformed at each call.
    Computed(Vec<u64>),
}

impl WinogradWeights {
    /// The sizes of the weights.
    pub fn dims(&self) -> &[u64] {
        match self {
            WinogradWeights::Known(stored) => &stored.numbers.dims,
            WinogradWeights::Computed(dims) => dims,
        }
    }
    /// Whether the weights may be transformed at compile time: compressed weights are not, as that would make them larger.
    pub fn may_be_transformed(&self) -> bool {
        matches!(self, WinogradWeights::Known(stored) if matches!(stored.numbers.dtype, DType::F32 | DType::S16))
    }
}

/// The geometry of a convolution by Winograd's method.
#[derive(Clone, Debug)]
pub struct Winograd {
    /// The element types.
    pub types: TransformTypes,
    /// The weights.
    pub weights: WinogradWeights,
    /// The axes along which the method is used, one or both of a two-dimensional window.
    pub along: Vec<TransformedAxis>,
    /// Number of images.
    pub images: u64,
    /// Number of results along each axis of the window.
    pub size: Vec<u64>,
    /// Number of input elements along each axis of the window.
    pub inside: Vec<u64>,
    /// Number of positions of the padded input that windows read, from the first to the last, along each axis of the window.
    pub reach: Vec<u64>,
    /// Number of input channels.
    pub inputs: u64,
    /// Number of output channels.
    pub outputs: u64,
    /// Number of taps along the axes that are not transformed.
    across: u64,
}

impl Winograd {
    /// Whether the method is used along one axis alone.
    pub fn is_one_dimensional(&self) -> bool {
        self.along.len() == 1
    }
    /// The axes of the window along which the method is not used.
    pub fn other_axes(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.size.len()).filter(|&i| self.along.iter().all(|a| a.axis != i))
    }
    /// Number of points per tile; there is a product for each point.
    pub fn point_count(&self) -> u64 {
        self.along.iter().map(|a| a.points.count()).product()
    }
    /// Number of rows of points: points along the first axis.
    pub fn point_rows(&self) -> u64 {
        self.along[0].points.count()
    }
    /// Number of points per row: points along the further axes.
    pub fn row_points(&self) -> u64 {
        self.point_count() / self.point_rows()
    }
    /// Extents whose product is the number of lines of results: images, positions along the other axes, and phases.
    pub fn line_extents(&self) -> Vec<u64> {
        let others = self.other_axes().map(|i| self.size[i]);
        std::iter::once(self.images).chain(others).chain(self.along.iter().map(|a| a.phases)).collect()
    }
    /// Extents of the loops over all tiles of results, and how many of these loops, from the outermost on, are over lines. If the method is
    /// used along one axis, tiles form lines along that; otherwise all tiles are one line.
    pub fn tile_loops(&self) -> (Vec<u64>, usize) {
        let mut all = self.line_extents();
        let lines = if self.is_one_dimensional() { all.len() } else { 0 };
        all.extend(self.along.iter().map(|a| a.tiles));
        (all, lines)
    }
    /// Number of lines, and of tiles per line.
    pub fn line_counts(&self) -> [u64; 2] {
        let (all, lines) = self.tile_loops();
        [all[..lines].iter().product(), all[lines..].iter().product()]
    }
    /// Number of tiles of results.
    pub fn result_tiles(&self) -> u64 {
        self.line_counts().iter().product()
    }
    /// Number of tiles of the input.
    pub fn input_tiles(&self) -> u64 {
        let others: u64 = self.other_axes().map(|i| self.reach[i]).product();
        self.images * others * self.along.iter().map(|a| a.phases * a.input_tiles()).product::<u64>()
    }
    /// Number of terms of a product: taps along other axes, groups, channels.
    pub fn term_count(&self) -> u64 {
        self.across * self.along.iter().map(|a| a.groups).product::<u64>() * self.inputs
    }
    /// Distance in elements of panels of `panel` columns, if all weights are transformed before the products.
    pub fn panel_stride(&self, panel: u64) -> u64 {
        let dense = self.term_count() * panel;
        if self.is_one_dimensional() { point_stride(dense) } else { dense }
    }
    /// Distance in elements of the points of a row in a panel of `panel` columns, if weights are transformed panel by panel between the
    /// products.
    pub fn row_point_stride(&self, panel: u64) -> u64 {
        let dense = self.term_count() * panel;
        if self.is_one_dimensional() { dense } else { point_stride(dense) }
    }
    /// Size in bytes of the weights at all points.
    pub fn weight_bytes(&self) -> u64 {
        self.types.point_bytes() * self.point_count() * self.term_count() * self.outputs
    }
    /// Bytes by which constants grow if weights are transformed at compile time.
    pub fn added_constant_bytes(&self) -> u64 {
        let stored = self.types.stored.bytes() as u64 * self.tap_count() * self.inputs * self.outputs;
        self.weight_bytes().saturating_sub(stored)
    }
    /// Upper limit in bytes of intermediates between three kernels that stay in the second-level cache.
    fn near_bytes(target: &KernelTarget<'_>) -> u64 {
        target.machine().caches.l2_sixteenths(NEAR_SIXTEENTHS)
    }
    /// Upper limit in bytes of weights that stay in the second-level cache beside the piece that they are multiplied with.
    fn near_weights(target: &KernelTarget<'_>) -> u64 {
        target.machine().caches.l2_sixteenths(WEIGHTS_SIXTEENTHS)
    }
    /// Size in bytes of all transformed inputs and all sums, the intermediates between three kernels.
    fn whole_bytes(&self) -> u64 {
        let (inputs, sums) = (self.input_tiles() * self.inputs, self.result_tiles() * self.outputs);
        self.point_count() * (self.types.point_bytes() * inputs + self.types.sum_bytes() * sums)
    }
    /// Whether the memory bound is below what separate kernels for the transform, the products and the inverse transform take.
    fn is_bounded(&self, room: Option<u64>) -> bool {
        room.is_some_and(|room| self.whole_bytes() > room)
    }
    /// Fewest pieces of a convolution by the method along one axis, if it is done piece after piece: because the intermediates between
    /// three kernels would go to a farther cache, or exceed the memory bound `room`. `None` if pieces do not pay.
    fn fewest_pieces(&self, room: Option<u64>, target: &KernelTarget<'_>) -> Option<u64> {
        let (is_bounded, whole) = (self.is_bounded(room), self.whole_bytes());
        let is_far = whole > Winograd::near_bytes(target) && self.has_near_weights(target);
        let few = if is_bounded { FEWEST_PIECES } else { FEW_PIECES };
        ((is_bounded || is_far) && self.weight_bytes() < whole).then_some(few)
    }
    /// Whether the weights stay in a near cache while each piece reads them.
    fn has_near_weights(&self, target: &KernelTarget<'_>) -> bool {
        self.weight_bytes() <= Winograd::near_weights(target)
    }
    /// The extents of the products at a point, of so many rows along two axes, which are `apart` elements apart along the last.
    fn tiled_extents(&self, [height, width]: [u64; 2], columns: u64, apart: u64) -> TiledExtents {
        TiledExtents {
            height,
            width,
            columns,
            sum: self.term_count() / self.types.terms_per_word(),
            stride: self.types.point_bytes() * apart,
            adds_apart: self.types.words.is_some_and(WordProducts::adds_apart),
        }
    }
    /// Number of taps of the window.
    fn tap_count(&self) -> u64 {
        self.across * self.along.iter().map(|a| a.size).product::<u64>()
    }
    /// Floating-point operations of the direct method.
    pub fn direct_flops(&self) -> u64 {
        2 * self.images * self.size.iter().product::<u64>() * self.tap_count() * self.inputs * self.outputs
    }
    /// Floating-point operations of the transforms of one channel of a tile, to points and back.
    pub fn transform_flops(&self) -> [u64; 2] {
        let [there, back, _] = OF_SQUARE;
        if self.is_one_dimensional() { [3 * self.point_count(); 2] } else { [there, back] }
    }
    /// Floating-point operations of the transform of all weights.
    pub fn weight_flops(&self) -> u64 {
        let of_term =
            if self.is_one_dimensional() { 2 * self.point_count() * self.along[0].taps } else { OF_SQUARE[2] };
        of_term * self.term_count() * self.outputs
    }

    /// The key of this convolution in tuned choices and its algorithm: the measured one, or else the one expected to be faster.
    pub fn choose_method(&self, target: &KernelTarget<'_>) -> (String, ConvolutionMethod) {
        let form = format!("{} {} convolution {}", target.machine().cpu, self.types.points, self.tuning_key());
        let of_model = if self.predicted_speedup(target) >= LEAST_GAIN {
            ConvolutionMethod::Winograd
        } else {
            ConvolutionMethod::Direct
        };
        let method = target.request.tuning.convolution_method(&form, of_model);
        (form, method)
    }

    fn tuning_key(&self) -> String {
        let Winograd { images, inputs, outputs, across, size, .. } = self;
        match &self.along[..] {
            [TransformedAxis { axis, size: along, phases, .. }] => {
                let (lines, results): (u64, u64) = (self.other_axes().map(|i| size[i]).product(), size[*axis]);
                format!(
                    "along={along} across={across} dilation={phases} images={images} lines={lines} results={results} inputs={inputs} outputs={outputs}"
                )
            }
            _ => {
                let (height, width) = (size[0], size[1]);
                format!("images={images} height={height} width={width} inputs={inputs} outputs={outputs}")
            }
        }
    }

    /// Predicted time of the direct method over that of Winograd's, in vector operations and accesses.
    fn predicted_speedup(&self, target: &KernelTarget<'_>) -> f64 {
        let lanes = target.machine().lanes(4);
        let (of_c, of_o) = ((self.inputs / lanes) as f64, (self.outputs / lanes) as f64);
        let (points, rows) = (self.point_count() as f64, self.result_tiles() as f64);
        let direct = self.direct_flops() as f64 / 2.0 / lanes as f64;
        if self.is_one_dimensional() {
            // each point reads the taps of its panel again, which then had better be near
            let of_panel = 4 * self.tap_count() * self.inputs * self.outputs.min(PANEL * lanes);
            let read = if of_panel > target.machine().caches.l2_sixteenths(PANEL_SIXTEENTHS) { L3_VECTOR } else { 1.0 };
            let weights = 0.6 * (self.along[0].taps as f64 * (1.0 + read) + 2.0);
            let products = points * self.term_count() as f64 * of_o * (rows * 1.12 + weights);
            // the numbers are those of least squares over 100 convolutions of 2 to 11 taps, each done both ways: predicted gains
            // are 0.80 to 1.22 of the measured ones
            return direct / (products + TRANSFORM * points * (self.input_tiles() as f64 * of_c + rows * of_o));
        }
        // terms of a word are multiplied, and transformed, as one; where another instruction adds products, they take longer than transforms
        let terms = self.types.terms_per_word() as f64;
        let is_apart = self.types.words.is_some_and(WordProducts::adds_apart);
        let product = if is_apart { target.machine().ports.fmas / PRODUCTS_ADDED_APART } else { 1.0 };
        let (direct, c, of_c) = (direct * product / terms, self.inputs as f64 / terms, of_c / terms);
        // few tiles make few rows, over which the weights are read again
        let again = 1.15 + 1.6 / rows;
        // weights are transformed at each call; they are written and read once more, from memory that is far if they are many
        let weights = if self.weight_bytes() <= target.machine().caches.l2 { 4.0 } else { 8.0 };
        // numbers of operations a point of least squares over 42 convolutions, each done both ways: predicted gains are 0.75 to
        // 1.19 of those measured, and less where weights are so small that they are transformed at compile time
        direct / (points * (product * c * of_o * rows * again + 2.6 * rows * (of_c + of_o) + weights * c * of_o))
    }
}

/// The convolution `id` along both axes of its window, or along the one that gains most; `None` if the method does not apply.
pub fn recognize(comp: &Computation, id: InstId, target: &KernelTarget<'_>) -> Option<Winograd> {
    let Op::Convolution(d) = &comp[id].op else { return None };
    if !is_plain(comp, id, d, target.machine()) {
        return None;
    }
    let has_three_taps = |w: &WindowDim| w.size == TAPS_OF_SEVERAL && w.stride == 1 && w.rhs_dilate == 1;
    let is_square = d.window.len() == 2 && d.window.iter().all(has_three_taps);
    let types = numbers::types_of_convolution(comp, id, d, is_square, target.machine())?;
    if is_square && let Some(w) = of_axes(comp, id, d, &[0, 1], types) {
        return Some(w);
    }
    let all = (0..d.window.len()).filter_map(|axis| of_axes(comp, id, d, &[axis], types));
    all.max_by(|x, y| x.predicted_speedup(target).total_cmp(&y.predicted_speedup(target)))
}

/// Whether convolution `id` has one group, features last and enough of them to fill vectors, and windows without holes in the input that
/// begin at or before its first element.
fn is_plain(comp: &Computation, id: InstId, d: &ConvDims, machine: &Target) -> bool {
    let [x, w] = comp[id].operands[..] else { return false };
    let (input, kernel, result) = (comp.array_shape(x), comp.array_shape(w), comp.array_shape(id));
    let even = |axis: usize, dtype: DType| {
        kernel.dims[axis] >= FEWEST_CHANNELS && kernel.dims[axis].is_multiple_of(machine.lanes(dtype.bytes() as u64))
    };
    result.elements() > 0
        && input.elements() > 0
        && (d.feature_group_count, d.batch_group_count) == (1, 1)
        && d.window.iter().all(|w| w.lhs_dilate == 1 && !w.reversal && w.pad_low >= 0)
        && d.input_feature + 1 == input.rank()
        && d.output_feature + 1 == result.rank()
        && d.kernel_output_feature + 1 == kernel.rank()
        && even(d.kernel_input_feature, input.dtype)
        && even(d.kernel_output_feature, result.dtype)
}

/// The weights `id`: a constant, or if the method is used along several axes (not `is_line`), also compressed or computed weights. `None`
/// for others.
fn weights(comp: &Computation, id: InstId, d: &ConvDims, is_line: bool) -> Option<WinogradWeights> {
    if let Op::Constant(Literal::Array(numbers)) = &comp[id].op {
        return Some(WinogradWeights::Known(CompressedConstant { numbers: numbers.clone(), scales: None }));
    }
    if is_line {
        return None;
    }
    let Some(stored) = compressed_constants::find_compressed(comp, id) else {
        return Some(WinogradWeights::Computed(comp.array_shape(id).dims.clone()));
    };
    let fits = stored.scales.as_ref().is_none_or(|s| s.1 == [d.kernel_output_feature]);
    fits.then_some(WinogradWeights::Known(stored))
}

/// The geometry of convolution `id` with the method along `axes` of its window; `None` if the method does not apply to them.
fn of_axes(comp: &Computation, id: InstId, d: &ConvDims, axes: &[usize], types: TransformTypes) -> Option<Winograd> {
    let [x, w] = comp[id].operands[..] else { return None };
    let (input, kernel, result) = (comp.array_shape(x), comp.array_shape(w), comp.array_shape(id));
    let size: Vec<u64> = d.output_spatial.iter().map(|&a| result.dims[a]).collect();
    let along = |&axis: &usize| {
        let WindowDim { size: taps, stride, rhs_dilate: phases, .. } = d.window[axis];
        if stride != 1 || !size[axis].is_multiple_of(phases) || taps < 2 {
            return None;
        }
        let (of_group, groups) =
            if taps <= EvaluationPoints::MOST_TAPS { (taps, 1) } else { (GROUP, taps.div_ceil(GROUP)) };
        let points = match (axes.len(), types.is_integer()) {
            (1, _) => EvaluationPoints::for_taps(of_group)?,
            (_, false) => EvaluationPoints::SQUARE,
            (_, true) => EvaluationPoints::INTEGER_SQUARE,
        };
        let tiles = (size[axis] / phases).div_ceil(RESULTS);
        Some(TransformedAxis { axis, size: taps, taps: of_group, groups, points, phases, tiles })
    };
    let reach = |(w, &n): (&WindowDim, &u64)| (n - 1) * w.stride + (w.size - 1) * w.rhs_dilate + 1;
    Some(Winograd {
        types,
        weights: weights(comp, w, d, axes.len() == 1)?,
        along: axes.iter().map(along).collect::<Option<_>>()?,
        images: result.dims[d.output_batch],
        inside: d.input_spatial.iter().map(|&a| input.dims[a]).collect(),
        reach: d.window.iter().zip(&size).map(reach).collect(),
        inputs: kernel.dims[d.kernel_input_feature],
        outputs: kernel.dims[d.kernel_output_feature],
        across: d.window.iter().enumerate().filter(|(i, _)| !axes.contains(i)).map(|(_, w)| w.size).product(),
        size,
    })
}
