//! The kernel of Winograd's method along one axis block by block (`recipe/blocks.rs`).
use super::WinogradConvolution;
use super::pieces::piece_flops;
use super::tiles::{ResultTile, tile_start};
use super::transform::PointMemory;
use crate::hlo::attrs::ConvDims;
use crate::schedule::families::winograd::recipe::BlockSplit;
use crate::schedule::loops::grid::bind_variable;
use crate::schedule::loops::prelude::*;

impl<'a> Emitter<'a> {
    /// Emits the kernel of the weights and that of the blocks.
    pub(super) fn emit_winograd_blocks(&mut self, conv: &WinogradConvolution<'_>, blocks: &BlockSplit) -> Result<()> {
        let WinogradConvolution { ids, d, w, .. } = *conv;
        let [of_inputs, of_sums] = blocks.piece.point_strides(w);
        let memory = |s: &mut Self, dtype: DType, elements: u64| s.allocate_on_stack(dtype, elements);
        let products = self.emit_piece_products(conv, &blocks.piece, memory)?;

        let mut e = self.start_kernel(ids.0);
        let k = &mut e.k;
        let place = BlockPosition { loops: [w.images, blocks.count[0], blocks.count[1]].map(|n| k.add_var(n)), blocks };
        let mut body = place.inputs(k, self.processor_lanes(w.types.points), conv, products.c.left, of_inputs);
        body.push(self.emit_piece_panels(&mut e, conv, &products, &Index::default(), &mut |s, e, columns| {
            let steps = blocks.made.map(|n| e.k.add_var(n));
            let (number, tile) = (e.k.add_var(w.size[blocks.across]), e.k.add_var(w.along[0].tiles));
            let at = place.write(d, number, self.scope.comp.array_shape(ids.1).rank());
            let spot = ResultTile { at, phases: vec![Index::default()], tiles: vec![tile] };
            let at = Index::var(steps[0]).scale(blocks.made[1] as i64).add(&Index::var(steps[1]));
            let first = at.scale(products.rows.panel_columns() as i64);
            let from = PointMemory { buf: products.sums.buffer()?, first, apart: of_sums };
            let mut back = s.emit_tile_results(e, conv, &spot, columns, &from)?;
            let [of_lines, of_tiles] = place.line_and_tile(steps, blocks.made);
            back = bind_variable(&mut e.k, tile, of_tiles, back);
            back = bind_variable(&mut e.k, number, of_lines, back);
            Ok(vec![for_loop(steps[0], LoopKind::Seq, vec![for_loop(steps[1], LoopKind::Seq, back)])])
        })?);
        let reads = w.images * blocks.count[0] * blocks.count[1] * blocks.piece.tiles[0];
        self.launch_winograd(e.k, w, products.rows, piece_flops(w, reads), &place.loops, body);
        Ok(())
    }
}

/// Position of a block: the loop variables over blocks.
struct BlockPosition<'b> {
    /// The image, and the number of the block along both axes.
    loops: [VarId; 3],
    blocks: &'b BlockSplit,
}

impl BlockPosition<'_> {
    /// The numbers of the line and the tile at `steps` within a block of `of_block` lines and tiles; these may lie beyond the last.
    fn line_and_tile(&self, steps: [VarId; 2], of_block: [u64; 2]) -> [Index; 2] {
        [0, 1].map(|i| Index::var(self.loops[i + 1]).scale(of_block[i] as i64).add(&Index::var(steps[i])))
    }

    /// Emits the transform of the inputs that the block reads.
    fn inputs(
        &self,
        k: &mut Kernel,
        lanes: u64,
        conv: &WinogradConvolution<'_>,
        to: BufId,
        of_inputs: u64,
    ) -> Vec<Stmt> {
        let WinogradConvolution { d, w, .. } = *conv;
        let BlockSplit { across, made, read, .. } = *self.blocks;
        let steps = read.map(|n| k.add_var(n));
        let [lines, tiles] = self.line_and_tile(steps, [made[0] * d.window[across].stride, made[1]]);
        let mut first = vec![Index::default(); 2];
        let along = &w.along[0];
        (first[across], first[along.axis]) = (lines, tile_start(along, &tiles, &Index::default()));
        let at = Index::var(steps[0]).scale(read[1] as i64).add(&Index::var(steps[1])).scale(w.inputs as i64);
        let tile = conv.emit_tile_inputs(
            k,
            lanes,
            self.loops[0],
            &first,
            &PointMemory { buf: to, first: at, apart: of_inputs },
        );
        vec![for_loop(steps[0], LoopKind::Seq, vec![for_loop(steps[1], LoopKind::Seq, tile)])]
    }

    /// The coordinates of a line of results, except along the axis of the method.
    fn write(&self, d: &ConvDims, line: VarId, rank: usize) -> Vec<Index> {
        let mut at = vec![Index::default(); rank];
        at[d.output_batch] = Index::var(self.loops[0]);
        at[d.output_spatial[self.blocks.across]] = Index::var(line);
        at
    }
}
