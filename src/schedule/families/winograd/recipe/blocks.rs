//! Winograd's method along one axis block by block, where the window has taps along another one too: some lines that lie one behind
//! the other along that, and some tiles of each, are transformed, multiplied and transformed back before the next ones begin.
//! Lines that two blocks read are transformed twice.
use super::{ConvolutionPiece, ProductRows, TRANSFORM, Winograd};
use crate::hlo::attrs::ConvDims;
use crate::schedule::families::contraction::recipe::register_tile;
use crate::schedule::plan::MOST_STACK;
use crate::schedule::target::KernelTarget;
use crate::target::machine::L3_BYTES;

/// Upper limit of lines per block, and of tiles per line.
const MOST: u64 = 16;

/// The division of a Winograd convolution into blocks: some lines of tiles, and some tiles of each.
#[derive(Clone, Debug)]
pub struct BlockSplit {
    /// The axis of the window along which the lines of a block follow one another.
    pub across: usize,
    /// Lines and tiles that a block makes.
    pub made: [u64; 2],
    /// Lines and tiles that a block reads.
    pub read: [u64; 2],
    /// Number of blocks along lines and along tiles.
    pub count: [u64; 2],
    pub piece: ConvolutionPiece,
}

/// Chooses the fastest blocks, if the intermediates between the transforms and the products would go to a farther cache or exceed the
/// memory bound `room`.
pub fn choose(d: &ConvDims, w: &Winograd, room: Option<u64>, target: &KernelTarget<'_>) -> Option<BlockSplit> {
    let few = w.fewest_pieces(room, target).filter(|_| w.size.len() == 2 && w.along[0].phases == 1)?;
    let all = (1..=MOST).flat_map(|lines| (1..=MOST).map(move |tiles| [lines, tiles]));
    let costs = all.filter_map(|made| fit_blocks(d, w, made, few, target));
    costs.min_by(|x, y| x.0.total_cmp(&y.0)).map(|best| best.1)
}

/// Blocks of `made` lines and tiles, with the predicted cycles of all of them; `None` if a block does not fit on the stack, or the blocks
/// are unequal or fewer than `few`.
fn fit_blocks(
    d: &ConvDims,
    w: &Winograd,
    made: [u64; 2],
    few: u64,
    target: &KernelTarget<'_>,
) -> Option<(f64, BlockSplit)> {
    let along = &w.along[0];
    let across = 1 - along.axis;
    let all = [w.size[across], along.tiles];
    let count = [all[0].div_ceil(made[0]), all[1].div_ceil(made[1])];
    let blocks = w.images * count[0] * count[1];
    // equal blocks, and each size once
    if (0..2).any(|i| all[i].div_ceil(count[i]) != made[i]) || blocks < few {
        return None;
    }
    let window = &d.window[across];
    let read = [(made[0] - 1) * window.stride + (window.size - 1) * window.rhs_dilate + 1, made[1] + along.groups - 1];
    let line = read[1] * w.inputs;
    let piece = ConvolutionPiece {
        tiles: [read[0] * read[1], made[0] * made[1]],
        rows: ProductRows::new(w, &[(made[0], window.stride * line), (made[1], w.inputs)], w.outputs, target),
        sum: vec![(window.size, window.rhs_dilate * line), (along.groups * w.inputs, 1)],
    };
    let cover = w.tiled_extents(made, w.outputs, w.inputs);
    let (points, lanes) = (w.point_count() as f64, target.machine().lanes(4));
    let vectors = piece.tiles[0] * (w.inputs / lanes) + piece.tiles[1] * (w.outputs / lanes);
    let far = if w.has_near_weights(target) { 0.0 } else { w.weight_bytes() as f64 / L3_BYTES };
    let products = far.max(points * register_tile::predicted_cycles(target, w.types.sums, cover));
    let cycles = products + points * TRANSFORM / 2.0 * vectors as f64;
    let fits = piece.scratch_bytes(w) <= MOST_STACK;
    fits.then_some((cycles * blocks as f64, BlockSplit { across, made, read, count, piece }))
}
