//! A depthwise convolution and the one that makes its operand in one kernel, row by row: of each row of pixels one panel of
//! channels is made on the stack, where the window finds it while it is near. The rows that the next window reads again stay
//! there, each new one takes the place of the oldest. So what is between the two, the largest arrays of MobileNets, has no
//! memory of its own. Bands of rows of a panel are the chunks; a band whose thread did not do the one above it makes the rows
//! that they share again.
//!
//! Each element is added up as the two kernels alone do it: the bits are the same.
use crate::hlo::attrs::{ConvDims, WindowDim};
use crate::hlo::{Computation, InstId};
use crate::schedule::families::contraction::recipe::register_tile::{self, RegisterTile, TiledExtents};
use crate::schedule::families::convolution::recipe::algorithm::ConvolutionAlgorithm;
use crate::schedule::families::depthwise::recipe::DepthwiseTiling;
use crate::schedule::families::producer_fusion::recipe::KernelPair;
use crate::schedule::plan::context::PlanContext;
use crate::schedule::plan::fuse::Fusion;
use crate::schedule::plan::{MOST_NARROW_COLUMNS, MOST_STACK};
use crate::target::machine::{F32_ENDS, F32_FMAS, L3_THERE_AND_BACK};
use crate::tensor::DType;

/// Sixteenths of the second-level cache that an operand may take to stay there until it is read, beside the weights and its margin.
const NEAR_SIXTEENTHS: u64 = 3;
/// Fewest chunks of a kernel, for threads to share it.
const FEW_CHUNKS: u64 = 8;
/// Fewest vectors of a panel narrowed below its natural width: products with a single vector are limited by loads.
const FEWEST_VECTORS: u64 = 2;

/// A depthwise convolution whose kernel computes its operand.
#[derive(Clone, Debug)]
pub struct DepthwiseChain {
    /// The instruction that is the operand.
    pub producer: InstId,
    /// The tile of the producer's convolution.
    pub tile: RegisterTile,
    /// Key of the producer's product in tuned choices.
    pub form: String,
    /// Number of bands of rows.
    pub bands: u64,
    /// The depthwise convolution.
    pub window: DepthwiseTiling,
}

/// Rows or columns that a window spans.
pub fn window_span(w: &WindowDim) -> u64 {
    (w.size - 1) * w.rhs_dilate + 1
}

/// The division of the convolution that makes the operand into panels of channels, with its register tile and key in tuned choices.
struct Panels {
    tile: RegisterTile,
    form: String,
    count: u64,
}

/// Recognizes a chain that ends in `id`, if it saves more time in far caches than it spends on rows computed twice.
pub fn choose(context: &PlanContext<'_>, fusion: &Fusion, id: InstId) -> Option<DepthwiseChain> {
    let PlanContext { comp, target, .. } = *context;
    let pair = KernelPair::ending_in(context, fusion, id)?;
    let KernelPair { made: producer, first, anchor } = pair;
    let [p, d] = pair.compatible_convolutions(context, fusion)?;
    let operand = comp.array_shape(producer);
    let is_far = operand.elements() * 4 > target.machine().caches.l2_sixteenths(NEAR_SIXTEENTHS);
    if !is_far || !is_plain_depthwise(context, anchor, d) || !is_plain_contraction(context, first, p) {
        return None;
    }
    let (rows, w) = (comp.array_shape(anchor).dims[d.output_spatial[0]], &d.window[0]);
    let all = operand.dims[p.output_feature];
    // where wide panels are too few for threads, and bands of their rows too dear, so many that no bands are needed
    let narrow = Some(all / FEW_CHUNKS).filter(|n| n / target.machine().lanes(4) >= FEWEST_VECTORS);
    [Some(all), narrow].into_iter().flatten().find_map(|most| {
        let panels = choose_panels(context, d, first, p, most)?;
        let chunks = operand.dims[d.input_batch] * panels.count;
        let fits = |n: &u64| rows.is_multiple_of(*n) && n * chunks >= FEW_CHUNKS;
        // an even number, of which threads have halves
        let even = (2..=rows).step_by(2).find(fits).filter(|_| chunks < FEW_CHUNKS);
        let bands = even.or_else(|| (1..=rows).find(fits)).unwrap_or(rows);
        let again = (bands - 1) * (window_span(w) - w.stride) * (operand.elements() / operand.dims[d.input_spatial[0]]);
        let terms = terms_per_sum(comp, first, p);
        let made_again = again as f64 * (terms as f64 + F32_ENDS) / F32_FMAS;
        let pays = made_again < operand.elements() as f64 * L3_THERE_AND_BACK;
        let window = || DepthwiseTiling::choose(context, anchor, d);
        pays.then(|| DepthwiseChain { producer, tile: panels.tile, form: panels.form, bands, window: window() })
    })
}

/// Panels of the producer's convolution narrow enough for their rows to fit, of at most `widest` columns.
fn choose_panels(context: &PlanContext<'_>, d: &ConvDims, first: InstId, p: &ConvDims, widest: u64) -> Option<Panels> {
    let PlanContext { comp, target, .. } = *context;
    let (operand, input) = (comp.array_shape(first), comp.array_shape(comp[first].operands[0]));
    let (all, width) = (operand.dims[p.output_feature], operand.dims[p.output_spatial[1]]);
    let lanes = target.machine().lanes(4);
    let fit = MOST_STACK / (4 * window_span(&d.window[0]) * width);
    let most = fit.min(widest.max(lanes)) / lanes * lanes;
    // as many columns in each as come out even
    let columns = all.div_ceil(all.div_ceil(most.max(1))).next_multiple_of(lanes).min(all);
    if most == 0 || all <= MOST_NARROW_COLUMNS {
        return None;
    }
    let stride = input.dims[p.input_feature] * p.window[1].stride * 4;
    let cover =
        TiledExtents { height: 1, width, columns, sum: terms_per_sum(comp, first, p), stride, adds_apart: false };
    let form = register_tile::tuning_key(target, DType::F32, cover, operand.elements() / all, 1);
    let tile = register_tile::best_tile(target, DType::F32, cover, &form);
    Some(Panels { count: all.div_ceil(tile.vectors * tile.lanes), tile, form })
}

/// Whether `id` is a contraction of floats with one phase and one group.
pub fn is_plain_contraction(context: &PlanContext<'_>, id: InstId, p: &ConvDims) -> bool {
    let PlanContext { comp, convolutions, .. } = *context;
    let floats = comp[id].operands.iter().chain([&id]).all(|&o| comp.array_shape(o).dtype == DType::F32);
    floats
        && p.window.len() == 2
        && p.feature_group_count == 1
        && p.batch_group_count == 1
        && p.window.iter().all(|w| w.lhs_dilate == 1)
        && p.output_feature + 1 == comp.array_shape(id).rank()
        && matches!(convolutions[&id].algorithm, ConvolutionAlgorithm::Direct { .. })
}

/// Number of terms of a sum of the convolution `id`.
fn terms_per_sum(comp: &Computation, id: InstId, p: &ConvDims) -> u64 {
    let kernel = comp.array_shape(comp[id].operands[1]);
    kernel.elements() / kernel.dims[p.kernel_output_feature].max(1)
}

/// Whether `id` is a depthwise convolution whose windows skip no row except padding.
pub fn is_plain_depthwise(context: &PlanContext<'_>, id: InstId, d: &ConvDims) -> bool {
    let PlanContext { comp, convolutions, .. } = *context;
    d.window.len() == 2
        && d.batch_group_count == 1
        && window_span(&d.window[0]) >= d.window[0].stride
        && comp.array_shape(comp[id].operands[1]).dtype == DType::F32
        && comp.array_shape(id).elements() > 0
        && comp.array_shape(id).dims[d.output_feature] == d.feature_group_count
        && matches!(convolutions[&id].algorithm, ConvolutionAlgorithm::Depthwise { has_margin: false })
}
