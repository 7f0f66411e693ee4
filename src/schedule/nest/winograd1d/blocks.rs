//! Winograd's method along one axis block by block, where the window has taps along another one too: some lines that lie one behind
//! the other along that, and some tiles of each, are transformed, multiplied and transformed back before the next ones begin, all
//! of it on the stack. Lines that two blocks read are transformed twice. Blocks are the chunks.
use super::super::MOST_STACK;
use super::super::contraction::{Axis, Contraction, Right, chunked, numbered};
use super::super::element::Elements;
use super::super::tile::{Cover, Tile};
use super::super::transform::apart;
use super::super::{each, label};
use super::strips::{FAR_BYTES, FEW_STRIPS, FEWEST_STRIPS, NEAR_BYTES};
use super::{Piece, TRANSFORM, inputs_of_tile};
use crate::diag::Result;
use crate::hlo::InstId;
use crate::hlo::attrs::ConvDims;
use crate::kernel::{BufId, Index, Kernel, LoopKind, Step, Stmt, VarId};
use crate::schedule::layout::Layout;
use crate::schedule::points::RESULTS;
use crate::schedule::winograd1d::Winograd1d;
use crate::schedule::{Scheduler, Scope, Value};
use crate::target::{Choice, LoopOrder};
use crate::tensor::DType;

/// Most lines of a block, and most tiles of each.
const MOST: u64 = 16;
/// Bytes of weights that a cycle reads where they are far.
const FAR_CYCLE: f64 = 8.0;

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
    tile: Tile,
    form: String,
}

impl Blocks {
    fn panel(&self) -> u64 {
        self.tile.vectors * self.tile.lanes
    }
    /// How far points are apart: inputs, sums.
    fn apart(&self, w: &Winograd1d) -> [u64; 2] {
        [self.read[0] * self.read[1] * w.inputs, self.made[0] * self.made[1] * self.panel()].map(apart)
    }
    fn bytes(&self, w: &Winograd1d) -> u64 {
        4 * w.points.count() * self.apart(w).iter().sum::<u64>()
    }

    /// The products of a block.
    fn products(&self, d: &ConvDims, w: &Winograd1d, (left, of_inputs): (BufId, u64), of_sums: u64) -> Contraction {
        let of = |extent: u64, a: u64, b: u64| Axis { extent, a: a as i64, b: b as i64 };
        let (window, line, terms) = (&d.window[self.across], self.read[1] * w.inputs, w.groups * w.inputs);
        Contraction {
            dtype: DType::F32,
            left,
            right: Right::Buffer(left),
            a0: 0,
            b0: 0,
            batch: vec![of(w.points.count(), of_inputs, 0)],
            rows: vec![of(self.made[0], window.stride * line, 0), of(self.made[1], w.inputs, 0)],
            columns: vec![of(self.panel(), 0, 1)],
            sum: vec![of(window.size, window.rhs_dilate * line, terms), of(terms, 1, 1)],
            first_column: 0,
            sums_apart: Some(of_sums),
            direct_flops: Some(w.direct_flops()),
        }
    }
}

impl<'a> Scheduler<'a> {
    /// The blocks that take least time, where what is between the transforms and the products would go to a cache farther away, or
    /// there is less room.
    pub(super) fn blocks_1d(&self, d: &ConvDims, w: &Winograd1d, room: Option<u64>) -> Option<Blocks> {
        let weights = 4 * w.points.count() * w.terms() * w.outputs;
        let whole = 4 * w.points.count() * (w.lines_read() * w.reads() * w.inputs + w.rows() * w.outputs);
        let is_bounded = room.is_some_and(|room| whole > room);
        let is_far = whole > FAR_BYTES && weights <= NEAR_BYTES;
        if w.size.len() != 2 || w.phases != 1 || !(is_bounded || is_far) || weights >= whole {
            return None;
        }
        let few = if is_bounded { FEWEST_STRIPS } else { FEW_STRIPS };
        let all = (1..=MOST).flat_map(|lines| (1..=MOST).map(move |tiles| [lines, tiles]));
        let costs = all.filter_map(|made| self.block_1d(d, w, made, few));
        costs.min_by(|x, y| x.0.total_cmp(&y.0)).map(|best| best.1)
    }

    /// Blocks of so many lines and tiles, with the cycles that all of them take, if they fit on the stack.
    fn block_1d(&self, d: &ConvDims, w: &Winograd1d, made: [u64; 2], few: u64) -> Option<(f64, Blocks)> {
        let across = 1 - w.axis;
        let all = [w.size[across], w.tiles];
        let count = [all[0].div_ceil(made[0]), all[1].div_ceil(made[1])];
        // equal blocks, and each size once
        if (0..2).any(|i| all[i].div_ceil(count[i]) != made[i]) || w.images * count[0] * count[1] < few {
            return None;
        }
        let window = &d.window[across];
        let read = [(made[0] - 1) * window.stride + (window.size - 1) * window.rhs_dilate + 1, made[1] + w.groups - 1];
        let tile = Tile { high: 1, wide: 1, vectors: 1, lanes: 1 };
        let mut blocks = Blocks { across, made, read, count, tile, form: String::new() };
        if blocks.bytes(w) > MOST_STACK {
            return None;
        }
        let c = blocks.products(d, w, (BufId(0), 0), 0);
        (_, blocks.tile, blocks.form) = self.tile_1d(w, &c);
        let cover = Cover { height: made[0], width: made[1], columns: w.outputs, sum: w.terms(), stride: 4 * w.inputs };
        let (points, lanes) = (w.points.count() as f64, self.lanes(DType::F32));
        let vectors = read[0] * read[1] * (w.inputs / lanes) + made[0] * made[1] * (w.outputs / lanes);
        let weights = 4 * w.points.count() * w.terms() * w.outputs;
        let far = if weights > NEAR_BYTES { weights as f64 / FAR_CYCLE } else { 0.0 };
        let products = far.max(points * self.predicted(DType::F32, cover));
        let cycles = products + points * TRANSFORM / 2.0 * vectors as f64;
        let fits = blocks.bytes(w) <= MOST_STACK;
        fits.then_some((cycles * (w.images * count[0] * count[1]) as f64, blocks))
    }

    /// The kernel of the weights and that of all else.
    pub(super) fn winograd_1d_blocks(
        &mut self,
        scope: &mut Scope<'a>,
        ids: (InstId, InstId),
        d: &ConvDims,
        (w, blocks): (&Winograd1d, &Blocks),
        (left, input): (BufId, &Layout),
        out: &Value,
        steps: &mut Vec<Step>,
    ) -> Result<()> {
        let (points, panel, [of_inputs, of_sums]) = (w.points.count(), blocks.panel(), blocks.apart(w));
        let name = label(scope.comp, ids.0);
        let packed = self.weights_of_panels(d, w, (panel, blocks.tile.lanes), &name, steps);
        let inputs = self.on_stack(DType::F32, points * of_inputs);
        let sums = Value { leaves: vec![self.on_stack(DType::F32, points * of_sums)], layout: None };
        let c = blocks.products(d, w, (inputs, of_inputs), of_sums);
        let (rows, _, _) = self.tile_1d(w, &c);

        let mut e = Elements::new(ids.0, name);
        let k = &mut e.k;
        let place = Place { loops: [w.images, blocks.count[0], blocks.count[1]].map(|n| k.var(n)), blocks };
        let mut body = place.inputs(k, self.lanes(DType::F32), (d, w), (left, input), (inputs, of_inputs));
        let piece = Piece { c: &c, rows: &rows, tile: blocks.tile, packed, sums: &sums };
        body.push(self.panels_of_piece(scope, &mut e, ids, w, &piece, &mut |s, scope, e, columns| {
            let steps = blocks.made.map(|n| e.k.var(n));
            let (line, tile, phase) = (e.k.var(w.size[blocks.across]), e.k.var(w.tiles), e.k.var(1));
            let at = place.write(d, line, scope.comp.array(ids.1).rank());
            let of_line = Index::var(steps[0]).scale(blocks.made[1] as i64).add(&Index::var(steps[1]));
            let from = (sums.buffer()?, of_line.scale(panel as i64), of_sums);
            let mut back = s.results_of_line(scope, e, ids, d, (w, &at, phase, tile), columns, from, out)?;
            let [of_lines, of_tiles] = place.numbers(steps, blocks.made);
            back = numbered(&mut e.k, tile, of_tiles, back);
            back = numbered(&mut e.k, line, of_lines, back);
            Ok(vec![each(steps[0], LoopKind::Seq, vec![each(steps[1], LoopKind::Seq, back)])])
        })?);
        let k = &mut e.k;
        let Tile { high, wide, vectors, lanes } = blocks.tile;
        k.chosen = Some((blocks.form.clone(), Choice { high, wide, vectors, lanes, order: LoopOrder::Panels }));
        let read = w.images * blocks.count[0] * blocks.count[1] * blocks.read[0] * blocks.read[1];
        let products = w.rows() * 2 * w.terms() * w.outputs;
        k.flops = points * (3 * read * w.inputs + products + 3 * w.rows() * w.outputs);
        k.direct_flops = Some(w.direct_flops());
        chunked(k, &place.loops, body);
        self.launch(e.k, steps);
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
    fn inputs(
        &self,
        k: &mut Kernel,
        lanes: u64,
        (d, w): (&ConvDims, &Winograd1d),
        (left, input): (BufId, &Layout),
        (to, of_inputs): (BufId, u64),
    ) -> Vec<Stmt> {
        let Blocks { across, made, read, .. } = *self.blocks;
        let steps = read.map(|n| k.var(n));
        let [lines, tiles] = self.numbers(steps, [made[0] * d.window[across].stride, made[1]]);
        let mut first = vec![Index::default(); 2];
        (first[across], first[w.axis]) = (lines, tiles.scale(RESULTS as i64));
        let at = Index::var(steps[0]).scale(read[1] as i64).add(&Index::var(steps[1])).scale(w.inputs as i64);
        let tile = inputs_of_tile(k, lanes, (d, w), (left, input, self.loops[0], &first), (to, at, of_inputs));
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
