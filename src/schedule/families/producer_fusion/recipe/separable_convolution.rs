//! A 1x1 convolution whose operand, a depthwise window, is made in its kernel: of each row of pixels all channels on the stack,
//! where the product reads them while they are near. So what is between the two has no memory of its own, at the peak of nets
//! with separable layers a third of all; the time is that of two kernels, but where they are the first to write to their memory.
//! Rows are the chunks.
//!
//! Each element is added up as the two kernels alone do it: the bits are the same.
use crate::hlo::InstId;
use crate::schedule::families::contraction::recipe::register_tile::{self, RegisterTile, TiledExtents};
use crate::schedule::families::depthwise::recipe::DepthwiseTiling;
use crate::schedule::families::producer_fusion::recipe::KernelPair;
use crate::schedule::families::producer_fusion::recipe::depthwise_chain::{is_plain_contraction, is_plain_depthwise};
use crate::schedule::plan::context::PlanContext;
use crate::schedule::plan::fuse::Fusion;
use crate::schedule::plan::{MOST_NARROW_COLUMNS, MOST_STACK};
use crate::target::LINE;
use crate::target::machine::{L2_BYTES_BY_ROW, L3_THERE_AND_BACK};
use crate::tensor::DType;

/// Sixteenths of the second-level cache that an operand may take to stay there until it is read.
const NEAR_SIXTEENTHS: u64 = 8;

/// A product whose kernel computes its left side, a depthwise convolution.
#[derive(Clone, Debug)]
pub struct SeparableConvolution {
    /// The instruction that is the operand.
    pub producer: InstId,
    /// The tile of the product.
    pub tile: RegisterTile,
    /// Key of the 1x1 convolution's product in tuned choices.
    pub form: String,
    /// Distance of pixels in local memory, in elements.
    pub stride: u64,
    /// The depthwise convolution.
    pub window: DepthwiseTiling,
}

/// Recognizes a separable convolution that ends in `id`, if it takes less memory and saves more time in far caches than it spends on
/// weights read again for each row and on smaller tiles.
pub fn choose(context: &PlanContext<'_>, fusion: &Fusion, id: InstId) -> Option<SeparableConvolution> {
    let PlanContext { comp, users, target, .. } = *context;
    let pair = KernelPair::ending_in(context, fusion, id)?;
    let KernelPair { made: producer, first: window, anchor } = pair;
    let [d, p] = pair.compatible_convolutions(context, fusion)?;
    let operand = comp.array_shape(producer);
    let one_by_one = p.window.iter().all(|w| (w.size, w.stride, w.pad_low, w.pad_high) == (1, 1, 0, 0));
    let is_far = operand.elements() * 4 > target.machine().caches.l2_sixteenths(NEAR_SIXTEENTHS);
    if !is_far || !one_by_one || !is_plain_depthwise(context, window, d) || !is_plain_contraction(context, anchor, p) {
        return None;
    }
    let (sum, width) = (operand.dims[d.output_feature], operand.dims[d.output_spatial[1]]);
    let columns = comp.array_shape(anchor).dims[p.output_feature];
    // an odd number of lines, so that pixels do not meet in the sets of a cache, where that takes little more
    let lines = (sum * 4).div_ceil(LINE);
    let stride = if lines >= 8 { (lines | 1) * LINE / 4 } else { sum };
    if columns <= MOST_NARROW_COLUMNS || width * stride * 4 > MOST_STACK {
        return None;
    }
    // What the window reads lives until the product is done: that takes less memory where it lives on anyway, or where the
    // window is larger than it or the product.
    let source = comp[window].operands[0];
    let (read, made) = (comp.array_shape(source).elements(), comp.array_shape(anchor).elements());
    if users[source].len() == 1 && operand.elements() <= read.min(made) {
        return None;
    }
    let pixels = operand.elements() / sum;
    let cover = TiledExtents { height: 1, width, columns, sum, stride: stride * 4, adds_apart: false };
    let form = register_tile::tuning_key(target, DType::F32, cover, pixels, 1);
    let tile = register_tile::best_tile(target, DType::F32, cover, &form);
    let rows = (pixels / width) as f64;
    let by_row = rows
        * (register_tile::predicted_cycles(target, DType::F32, cover) + (sum * columns * 4) as f64 / L2_BYTES_BY_ROW);
    let apart =
        register_tile::predicted_cycles(target, DType::F32, TiledExtents { width: pixels, stride: sum * 4, ..cover });
    (by_row < apart + operand.elements() as f64 * L3_THERE_AND_BACK).then(|| SeparableConvolution {
        producer,
        tile,
        form,
        stride,
        window: DepthwiseTiling::choose(context, window, d),
    })
}
