//! The kernel of Winograd's method strip by strip (`recipe/strips.rs`).
use super::WinogradConvolution;
use super::pieces::piece_flops;
use super::tiles::ResultTile;
use super::transform::PointMemory;
use crate::schedule::families::winograd::recipe::{Strips, Winograd};
use crate::schedule::loops::grid::bind_linear_index;
use crate::schedule::loops::prelude::*;

impl<'a> Emitter<'a> {
    /// Emits the kernel of the weights and that of the strips.
    pub(super) fn emit_winograd_strips(&mut self, conv: &WinogradConvolution<'_>, strips: &Strips) -> Result<()> {
        let WinogradConvolution { ids, d, w, .. } = *conv;
        let [of_inputs, of_sums] = strips.piece.point_strides(w);
        let memory = |s: &mut Self, dtype: DType, elements: u64| match strips.on_stack {
            true => s.allocate_on_stack(dtype, elements),
            false => s.allocate_buffer(dtype, strips.bands * elements),
        };
        let products = self.emit_piece_products(conv, &strips.piece, memory)?;

        let mut e = self.start_kernel(ids.0);
        let k = &mut e.k;
        let (band, strip, number) =
            (k.add_var(strips.bands), k.add_var(strips.own), k.add_var(strips.bands * strips.own));
        let of_band = if strips.on_stack { Index::default() } else { Index::var(band).scale(w.point_count() as i64) };
        let reads: Vec<u64> = w.along.iter().map(|a| a.input_tiles()).collect();
        let strips_per_line = strips.piece.tiles[0] / strips.lines;
        let place = TileLoops::new(k, w, strips, number, strips_per_line, &reads);
        let first = place.tile_in_memory(strips_per_line).scale(w.inputs as i64).add(&of_band.scale(of_inputs as i64));
        let read = conv.tile_origin(k, &place.loops, |i, v| Index::var(v).scale(d.window[i].stride as i64));
        let to = PointMemory { buf: products.c.left, first, apart: of_inputs };
        let tile = conv.emit_tile_inputs(k, self.processor_lanes(w.types.points), place.loops[0], &read, &to);
        let mut body = vec![place.loop_over_tiles(k, strips, tile)];
        body.push(self.emit_piece_panels(&mut e, conv, &products, &of_band, &mut |s, e, columns| {
            let tiles: Vec<u64> = w.along.iter().map(|a| a.tiles).collect();
            let place = TileLoops::new(&mut e.k, w, strips, number, strips.tiles, &tiles);
            let at = place
                .tile_in_memory(strips.tiles)
                .scale(products.rows.panel_columns() as i64)
                .add(&of_band.scale(of_sums as i64));
            let spot = ResultTile::new(&e.k, conv, self.scope.comp.array_shape(ids.1).rank(), &place.loops);
            let from = PointMemory { buf: products.sums.buffer()?, first: at, apart: of_sums };
            let tile = s.emit_tile_results(e, conv, &spot, columns, &from)?;
            let tile = place.where_it_is(&mut e.k, w, strips, tile);
            Ok(vec![place.loop_over_tiles(&mut e.k, strips, tile)])
        })?);
        if strips.own > 1 && strips.is_ragged(w) {
            let first = Index::var(number).scale(strips.tiles as i64);
            let cond = e.k.add_expr(Expr::Within(first, 0, w.line_counts()[1] as i64));
            body = vec![Stmt::If { cond, body }];
        }
        let value = Index::var(band).scale(strips.own as i64).add(&Index::var(strip));
        body = vec![for_loop(strip, LoopKind::Seq, vec![Stmt::Let { var: number, value, body }])];
        self.launch_winograd(e.k, w, products.rows, piece_flops(w, w.result_tiles()), &[band], body);
        Ok(())
    }
}

/// The loops over the tiles of a strip.
struct TileLoops {
    /// Number of the strip.
    number: VarId,
    /// Number of the line in the strip, and among all lines.
    line: [VarId; 2],
    /// Number of the tile in the strip's line, and in the whole line.
    tile: [VarId; 2],
    /// Variables of the tile's position among all tiles, along each axis.
    loops: Vec<VarId>,
    lines: usize,
}

impl TileLoops {
    /// Creates the loops over the tiles of strip `number`, with `tiles` tiles per line of the strip; `all` has the number of all tiles
    /// along each axis of the method.
    fn new(k: &mut Kernel, w: &Winograd, strips: &Strips, number: VarId, tiles: u64, all: &[u64]) -> TileLoops {
        let (mut extents, lines) = w.tile_loops();
        let first = extents.len() - all.len();
        extents[first..].copy_from_slice(all);
        let line = [strips.lines, extents[..lines].iter().product()].map(|n| k.add_var(n));
        let tile = [tiles, extents[lines..].iter().product()].map(|n| k.add_var(n));
        TileLoops { number, line, tile, loops: extents.into_iter().map(|n| k.add_var(n)).collect(), lines }
    }
    /// Linear index of the current tile in memory that has `tiles` tiles per line of a strip.
    fn tile_in_memory(&self, tiles: u64) -> Index {
        Index::var(self.line[0]).scale(tiles as i64).add(&Index::var(self.tile[0]))
    }
    /// Index of the line of tiles in the plane and of the tile in the line; either may lie beyond the last.
    fn line_and_tile(&self, k: &Kernel, strips: &Strips) -> [Index; 2] {
        let (lines, tiles) = (
            Index::var(self.number).div(strips.strips_per_line as i64, &k.vars),
            Index::var(self.number).rem(strips.strips_per_line as i64, &k.vars),
        );
        [
            lines.scale(strips.lines as i64).add(&Index::var(self.line[0])),
            tiles.scale(strips.tiles as i64).add(&Index::var(self.tile[0])),
        ]
    }
    /// Wraps `body` in the condition that line and tile exist.
    fn where_it_is(&self, k: &mut Kernel, w: &Winograd, strips: &Strips, mut body: Vec<Stmt>) -> Vec<Stmt> {
        let ([line, tile], [lines, tiles]) = (self.line_and_tile(k, strips), w.line_counts());
        if !lines.is_multiple_of(strips.lines) {
            let cond = k.add_expr(Expr::Within(line, 0, lines as i64));
            body = vec![Stmt::If { cond, body }];
        }
        if strips.is_ragged(w) {
            let cond = k.add_expr(Expr::Within(tile, 0, tiles as i64));
            body = vec![Stmt::If { cond, body }];
        }
        body
    }
    /// Loops `body` over the tiles of the strip; the last existing tile is repeated in place of those beyond it.
    fn loop_over_tiles(&self, k: &mut Kernel, strips: &Strips, body: Vec<Stmt>) -> Stmt {
        let [line, tile] = self.line_and_tile(k, strips);
        let (lines, tiles) = self.loops.split_at(self.lines);
        let body = clamped_loops(k, self.tile, &tile, tiles, body);
        clamped_loops(k, self.line, &line, lines, vec![body])
    }
}

/// Wraps `body` in a loop over the first of `vars`. In the loop, the second one is `number`, clamped to its range, and `loops` are the
/// coordinates of that linear index.
fn clamped_loops(k: &Kernel, vars: [VarId; 2], number: &Index, loops: &[VarId], body: Vec<Stmt>) -> Stmt {
    let body = bind_linear_index(k, vars[1], loops, body);
    let value = number.clamp_to(0, k.vars[vars[1]] as i64 - 1, &k.vars);
    for_loop(vars[0], LoopKind::Seq, vec![Stmt::Let { var: vars[1], value, body }])
}
