//! A product whose left side is made in its own kernel, a block of rows at a time: attention, where scores are a product of
//! their own, softmax folds their rows, and what it leaves is multiplied with the values. Of each block of rows the scores are
//! made on the stack, the reductions run over them there, and the second product reads them while they are near. So scores,
//! the largest arrays of a transformer, have no memory of their own. Blocks of rows are the chunks.
//!
//! Rows are whole, and each element is added up as the three kernels alone do it: the bits are the same.
use crate::hlo::attrs::DotDims;
use crate::hlo::{Computation, InstId, Literal, Op, Users};
use crate::schedule::families::contraction::recipe::axis::{ContractionAxis, merge_axes};
use crate::schedule::families::contraction::recipe::register_tile::{
    MOST_ROWS, RegisterTile, TiledExtents, single_axis_tiles,
};
use crate::schedule::plan::context::PlanContext;
use crate::schedule::plan::fuse::{CoordinateChange, Fusion, RowRole, RowShape, operand_role};
use crate::schedule::plan::{MOST_NARROW_COLUMNS, MOST_STACK};
use crate::target::LINE;
use crate::target::machine::{L2_SCORE, L3_SCORE, WORTH_SHARING};

/// Sixteenths of the second-level cache that scores may take to stay there until they are read.
const NEAR_SIXTEENTHS: u64 = 8;
/// Number of blocks that there should be for threads, as long as tiles keep enough rows.
const FEW_BLOCKS: u64 = 16;
/// Least number of threads assumed of a machine with several: with as many blocks none of them idles.
const FEW_THREADS: f64 = 4.0;

/// Attention: a matrix product whose kernel also computes its left side, a block of rows at a time.
#[derive(Clone, Debug)]
pub struct Attention {
    /// The left side, a row computation such as a softmax.
    pub left: InstId,
    /// The product that the rows are computed from, with its epilogue.
    pub scores: InstId,
    /// The rows of both products.
    pub rows: RowShape,
    /// Rows per block.
    pub height: u64,
    /// Distance of a block's rows in elements.
    pub stride: u64,
    /// Register tiles of the product of scores and of the other.
    pub tiles: [RegisterTile; 2],
}

/// The sizes of a dot: batches, rows, columns, terms.
struct DotSizes {
    batch: u64,
    rows: u64,
    columns: u64,
    sum: u64,
}

impl DotSizes {
    fn choose(comp: &Computation, id: InstId, d: &DotDims) -> DotSizes {
        let (x, y) = (comp.array_shape(comp[id].operands[0]), comp.array_shape(comp[id].operands[1]));
        let along = |axes: &[usize]| axes.iter().map(|&i| x.dims[i]).product::<u64>();
        let (batch, sum) = (along(&d.lhs_batch), along(&d.lhs_contracting));
        let others = |elements: u64| elements / (batch * sum).max(1);
        DotSizes { batch, rows: others(x.elements()), columns: others(y.elements()), sum }
    }
}

/// Recognizes attention that ends in `id`.
pub fn choose(context: &PlanContext<'_>, fusion: &Fusion, id: InstId) -> Option<Attention> {
    let PlanContext { comp, users, target, .. } = *context;
    let anchor = dot_kernel(comp, fusion, id)?;
    let left = comp[anchor].operands[0];
    let full = fusion.is_materialised(left) && fusion.role[left] == RowRole::Full;
    let alone = users[left] == [anchor] && left != comp.root && comp[anchor].operands[1] != left;
    let rows = fusion.rows[left].filter(|_| full && alone)?;
    let scores = operand_of_rows(comp, fusion, users, left, rows)?;
    let first = dot_kernel(comp, fusion, scores)?;
    let (Op::Dot(p), Op::Dot(d)) = (&comp[first].op, &comp[anchor].op) else { return None };
    let (made, read) = (DotSizes::choose(comp, first, p), DotSizes::choose(comp, anchor, d));
    let in_order =
        fusion.path[first].iter().all(|m| matches!(m, CoordinateChange::Reshape(..))) && is_row_major(comp, anchor, d);
    let alike = made.batch == read.batch
        && made.columns == rows.columns
        && read.sum == rows.columns
        && made.batch * made.rows == rows.rows
        && read.rows == made.rows;
    let wide = [(first, &made), (anchor, &read)].iter().all(|(i, s)| !is_narrow(comp, *i, s.columns));
    if !in_order || !alike || !wide || comp.array_shape(anchor).elements() == 0 {
        return None;
    }
    let bytes = [left, scores].iter().map(|&i| comp.array_shape(i).dtype.bytes() as u64).max()?;
    // an odd number of lines, so that rows do not meet in the sets of a cache
    let lines = (rows.columns * bytes).div_ceil(LINE) | 1;
    let step = left_step(comp, first, p)? * comp.array_shape(comp[first].operands[0]).dtype.bytes() as u64;
    let cover = |s: &DotSizes, stride: u64| TiledExtents {
        height: 1,
        width: s.rows,
        columns: s.columns,
        sum: s.sum,
        stride,
        adds_apart: false,
    };
    let products = [(first, cover(&made, step)), (anchor, cover(&read, lines * LINE))];
    let candidates = products
        .map(|(i, cover)| single_axis_tiles(target.machine(), comp.array_shape(i).dtype.accumulator_type(), cover));
    let is_far = made.batch * made.rows * rows.columns * bytes > target.machine().caches.l2_sixteenths(NEAR_SIXTEENTHS);
    let saved = (made.rows * rows.columns) as f64 * if is_far { L3_SCORE } else { L2_SCORE };
    let evenly = (made.batch * made.rows).div_ceil(FEW_BLOCKS).max(MOST_ROWS);
    let (time, height, tiles) =
        choose_block_height(&candidates, [made.rows.min(evenly), target.machine().caches.l1d], lines * LINE, saved)?;
    let blocks = made.batch * made.rows.div_ceil(height);
    (idle_factor(blocks, made.batch as f64 * time) <= made.batch as f64 * saved + WORTH_SHARING as f64)
        .then_some(Attention { left, scores, rows, height, stride: lines * LINE / bytes, tiles })
}

/// Extra cycles that threads take if they share `blocks` blocks of `cycles` cycles in all, instead of panels of columns, of which both
/// products have enough. Decoding a token is one row: one thread would do all of a language model's last product.
fn idle_factor(blocks: u64, cycles: f64) -> f64 {
    cycles * (1.0 / blocks as f64 - 1.0 / FEW_THREADS).max(0.0)
}

/// Chooses the rows of a block: at most `most` of `bytes` bytes each, better as many as `near_bytes` of the first level hold. Returns the
/// least predicted time of both products in cycles, the rows, and the tiles; `None` if that is longer by more than `saved` than with
/// unconstrained tiles.
fn choose_block_height(
    candidates: &[Vec<(f64, RegisterTile)>; 2],
    [most, near_bytes]: [u64; 2],
    bytes: u64,
    saved: f64,
) -> Option<(f64, u64, [RegisterTile; 2])> {
    let best = |all: &[(f64, RegisterTile)], height: u64| {
        let fits = all.iter().filter(|(_, t)| height.is_multiple_of(t.wide));
        fits.copied().min_by(|x, y| x.0.total_cmp(&y.0))
    };
    let both = |height: u64| {
        let (a, b) = (best(&candidates[0], height)?, best(&candidates[1], height)?);
        Some((a.0 + b.0, height, [a.1, b.1]))
    };
    // of equal times the highest block that is near
    let (near, all) = (most.min(near_bytes / bytes), most.min(MOST_STACK / bytes));
    let heights = (1..=near).rev().chain(near + 1..=all);
    let (time, height, tiles) = heights.filter_map(both).min_by(|x, y| x.0.total_cmp(&y.0))?;
    // nothing is a multiple of all
    let (apart, ..) = both(0)?;
    (time <= apart + saved).then_some((time, height, tiles))
}

/// The dot that the kernel with root `id` computes, if that root is materialised and no row kernel.
fn dot_kernel(comp: &Computation, fusion: &Fusion, id: InstId) -> Option<InstId> {
    let anchor = fusion.anchor[id].unwrap_or(id);
    let alone = fusion.is_materialised(id) && fusion.rows[id].is_none();
    (alone && matches!(comp[anchor].op, Op::Dot(_))).then_some(anchor)
}

/// The product that the rows of `left` are computed from, element by element, if nothing else reads it.
fn operand_of_rows(comp: &Computation, fusion: &Fusion, users: &Users, left: InstId, rows: RowShape) -> Option<InstId> {
    let is_member = |id: InstId| fusion.is_row_value(id, left);
    let is_full = |id: InstId, user: InstId| {
        let operands = comp[user].operands.iter().enumerate().filter(|(_, o)| **o == id);
        let mut request = operands.map(|(i, _)| operand_role(comp, user, i, fusion.role[user], rows));
        is_member(user) && request.all(|role| role == RowRole::Full)
    };
    let members = fusion.row_kernel_members(comp, left);
    members.into_iter().flat_map(|m| comp[m].operands.iter().copied()).find(|&o| {
        let readers = &users[o];
        o != comp.root && dot_kernel(comp, fusion, o).is_some() && readers.iter().all(|&u| is_full(o, u))
    })
}

/// Whether the left side of dot `id` is laid out in the order of batches, rows and terms.
fn is_row_major(comp: &Computation, id: InstId, d: &DotDims) -> bool {
    let x = comp.array_shape(comp[id].operands[0]);
    let wide = |i: &usize| x.dims[*i] != 1;
    let free = (0..x.rank()).filter(|i| !d.lhs_batch.contains(i) && !d.lhs_contracting.contains(i));
    let order = d.lhs_batch.iter().copied().chain(free).chain(d.lhs_contracting.iter().copied());
    order.filter(wide).is_sorted()
}

/// Distance in elements of the left side's rows of dot `id`; `None` if it is not the same everywhere.
fn left_step(comp: &Computation, id: InstId, d: &DotDims) -> Option<u64> {
    let x = comp.array_shape(comp[id].operands[0]);
    let free = |i: &usize| !d.lhs_batch.contains(i) && !d.lhs_contracting.contains(i);
    let (dims, steps) = (&x.dims, x.strides());
    let axis = |i: usize| ContractionAxis { extent: dims[i], a: steps[i] as i64, b: 0 };
    match merge_axes(&(0..x.rank()).filter(free).map(axis).collect::<Vec<_>>())[..] {
        [] => Some(0),
        [rows] => Some(rows.a.unsigned_abs()),
        _ => None,
    }
}

/// Whether dot `id` may be vectorized along its sums.
fn is_narrow(comp: &Computation, id: InstId, columns: u64) -> bool {
    let right = comp[id].operands[1];
    columns <= MOST_NARROW_COLUMNS && matches!(comp[right].op, Op::Constant(Literal::Array(_)))
}
