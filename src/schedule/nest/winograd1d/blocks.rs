//! Winograd's method along one axis block by block, where the window has taps along another one too: some lines that lie one behind
//! the other along that, and some tiles of each, are transformed, multiplied and transformed back before the next ones begin.
//! Lines that two blocks read are transformed twice.
use super::super::contraction::numbered;
use super::super::element::Elements;
use super::super::tile::Cover;
use super::super::{MOST_STACK, each, label};
use super::pieces::{Piece, flops};
use super::{Conv, Line, TRANSFORM, inputs_of_tile};
use crate::diag::Result;
use crate::hlo::attrs::ConvDims;
use crate::kernel::{BufId, Index, Kernel, LoopKind, Step, Stmt, VarId};
use crate::schedule::points::RESULTS;
use crate::schedule::winograd::FAR_CYCLE;
use crate::schedule::winograd1d::Winograd1d;
use crate::schedule::{Scheduler, Scope};
use crate::tensor::DType;

/// Most lines of a block, and most tiles of each.
const MOST: u64 = 16;

/// How a convolution is cut.
#[derive(Clone, Debug)]
pub(super) struct Blocks {
    /// The axis of the window along which lines lie one behind the other.
    across: usize,
    /// Lines and tiles that a block makes.
    made: [u64; 2],
    /// Those that it reads.
    read: [u64; 2],
    /// Blocks along both axes.
    count: [u64; 2],
    piece: Piece,
}

impl<'a> Scheduler<'a> {
    /// The blocks that take least time, where what is between the transforms and the products would go to a cache farther away, or
    /// there is less room.
    pub(super) fn blocks_1d(&self, d: &ConvDims, w: &Winograd1d, room: Option<u64>) -> Option<Blocks> {
        let few = w.fewest_pieces(room).filter(|_| w.size.len() == 2 && w.phases == 1)?;
        let all = (1..=MOST).flat_map(|lines| (1..=MOST).map(move |tiles| [lines, tiles]));
        let costs = all.filter_map(|made| self.block_1d(d, w, made, few));
        costs.min_by(|x, y| x.0.total_cmp(&y.0)).map(|best| best.1)
    }

    /// Blocks of so many lines and tiles, with the cycles that all of them take, if they fit on the stack.
    fn block_1d(&self, d: &ConvDims, w: &Winograd1d, made: [u64; 2], few: u64) -> Option<(f64, Blocks)> {
        let across = 1 - w.axis;
        let all = [w.size[across], w.tiles];
        let count = [all[0].div_ceil(made[0]), all[1].div_ceil(made[1])];
        let blocks = w.images * count[0] * count[1];
        // equal blocks, and each size once
        if (0..2).any(|i| all[i].div_ceil(count[i]) != made[i]) || blocks < few {
            return None;
        }
        let window = &d.window[across];
        let read = [(made[0] - 1) * window.stride + (window.size - 1) * window.rhs_dilate + 1, made[1] + w.groups - 1];
        let line = read[1] * w.inputs;
        let piece = Piece {
            tiles: [read[0] * read[1], made[0] * made[1]],
            rows: self.rows_1d(w, &[(made[0], window.stride * line), (made[1], w.inputs)], w.outputs),
            sum: vec![(window.size, window.rhs_dilate * line), (w.groups * w.inputs, 1)],
        };
        let cover = Cover { height: made[0], width: made[1], columns: w.outputs, sum: w.terms(), stride: 4 * w.inputs };
        let (points, lanes) = (w.points.count() as f64, self.lanes(DType::F32));
        let vectors = piece.tiles[0] * (w.inputs / lanes) + piece.tiles[1] * (w.outputs / lanes);
        let far = if w.has_near_weights() { 0.0 } else { w.weight_bytes() as f64 / FAR_CYCLE };
        let products = far.max(points * self.predicted(DType::F32, cover));
        let cycles = products + points * TRANSFORM / 2.0 * vectors as f64;
        let fits = piece.bytes(w) <= MOST_STACK;
        fits.then_some((cycles * blocks as f64, Blocks { across, made, read, count, piece }))
    }

    /// The kernel of the weights and that of all else.
    pub(super) fn winograd_1d_blocks(
        &mut self,
        scope: &mut Scope<'a>,
        conv: &Conv<'_>,
        blocks: &Blocks,
        steps: &mut Vec<Step>,
    ) -> Result<()> {
        let Conv { ids, d, w, .. } = *conv;
        let [of_inputs, of_sums] = blocks.piece.apart(w);
        let products = self.products_of_piece(scope, conv, &blocks.piece, steps);

        let mut e = Elements::new(ids.0, label(scope.comp, ids.0));
        let k = &mut e.k;
        let place = Place { loops: [w.images, blocks.count[0], blocks.count[1]].map(|n| k.var(n)), blocks };
        let mut body = place.inputs(k, self.lanes(DType::F32), conv, (products.c.left, of_inputs));
        body.push(self.panels_of_piece(scope, &mut e, conv, &products, &mut |s, scope, e, columns| {
            let steps = blocks.made.map(|n| e.k.var(n));
            let (number, tile, phase) = (e.k.var(w.size[blocks.across]), e.k.var(w.tiles), e.k.var(1));
            let line = Line { at: place.write(d, number, scope.comp.array(ids.1).rank()), phase, tile };
            let at = Index::var(steps[0]).scale(blocks.made[1] as i64).add(&Index::var(steps[1]));
            let from = (products.sums.buffer()?, at.scale(products.rows.panel() as i64), of_sums);
            let mut back = s.results_of_line(scope, e, conv, &line, columns, from)?;
            let [of_lines, of_tiles] = place.numbers(steps, blocks.made);
            back = numbered(&mut e.k, tile, of_tiles, back);
            back = numbered(&mut e.k, number, of_lines, back);
            Ok(vec![each(steps[0], LoopKind::Seq, vec![each(steps[1], LoopKind::Seq, back)])])
        })?);
        let reads = w.images * blocks.count[0] * blocks.count[1] * blocks.piece.tiles[0];
        self.launch_1d(e.k, w, products.rows, flops(w, reads), (&place.loops, body), steps);
        Ok(())
    }
}

/// The block that is being done.
struct Place<'b> {
    /// Its image, and its numbers along both axes.
    loops: [VarId; 3],
    blocks: &'b Blocks,
}

impl Place<'_> {
    /// The numbers among all lines and tiles of those at `steps`, of which a block has so many; beyond all, too.
    fn numbers(&self, steps: [VarId; 2], of_block: [u64; 2]) -> [Index; 2] {
        [0, 1].map(|i| Index::var(self.loops[i + 1]).scale(of_block[i] as i64).add(&Index::var(steps[i])))
    }

    /// What the block reads, at all points.
    fn inputs(&self, k: &mut Kernel, lanes: u64, conv: &Conv<'_>, (to, of_inputs): (BufId, u64)) -> Vec<Stmt> {
        let Conv { d, w, .. } = *conv;
        let Blocks { across, made, read, .. } = *self.blocks;
        let steps = read.map(|n| k.var(n));
        let [lines, tiles] = self.numbers(steps, [made[0] * d.window[across].stride, made[1]]);
        let mut first = vec![Index::default(); 2];
        (first[across], first[w.axis]) = (lines, tiles.scale(RESULTS as i64));
        let at = Index::var(steps[0]).scale(read[1] as i64).add(&Index::var(steps[1])).scale(w.inputs as i64);
        let tile = inputs_of_tile(k, lanes, conv, (self.loops[0], &first), (to, at, of_inputs));
        vec![each(steps[0], LoopKind::Seq, vec![each(steps[1], LoopKind::Seq, tile)])]
    }

    /// Where results lie, but along the axis of the method.
    fn write(&self, d: &ConvDims, line: VarId, rank: usize) -> Vec<Index> {
        let mut at = vec![Index::default(); rank];
        at[d.output_batch] = Index::var(self.loops[0]);
        at[d.output_spatial[self.blocks.across]] = Index::var(line);
        at
    }
}
