//! The kernel of Winograd's method along one axis strip by strip (`plan/winograd1d/strips.rs`).
use super::super::element::Elements;
use super::super::{each, label};
use super::pieces::flops;
use super::{Conv, Line, first_of_tile, inputs_of_tile};
use crate::diag::Result;
use crate::hlo::attrs::ConvDims;
use crate::kernel::{Expr, Index, Kernel, LoopKind, Step, Stmt, VarId};
use crate::schedule::emit::{Emitter, Scope};
use crate::schedule::plan::winograd1d::{Strips, Winograd1d};
use crate::tensor::DType;

impl<'a> Emitter<'a> {
    /// The kernel of the weights and that of all else.
    pub(super) fn winograd_1d_strips(
        &mut self,
        scope: &mut Scope<'a>,
        conv: &Conv<'_>,
        strips: &Strips,
        steps: &mut Vec<Step>,
    ) -> Result<()> {
        let Conv { ids, d, w, .. } = *conv;
        let [of_inputs, of_sums] = strips.piece.apart(w);
        let products = self.products_of_piece(scope, conv, &strips.piece, steps);

        let mut e = Elements::new(ids.0, label(scope.comp, ids.0));
        let k = &mut e.k;
        let number = k.var(strips.count);
        let place = Place::new(k, w, strips, number, [strips.reads(w), w.reads()]);
        let to = (products.c.left, place.at(strips.reads(w)).scale(w.inputs as i64), of_inputs);
        let from = (place.loops[0], &place.read(d, w)[..]);
        let tile = inputs_of_tile(k, self.lanes(DType::F32), conv, from, to);
        let mut body = vec![place.around(k, (w, strips), tile)];
        body.push(self.panels_of_piece(scope, &mut e, conv, &products, &mut |s, scope, e, columns| {
            let place = Place::new(&mut e.k, w, strips, number, [strips.tiles, w.tiles]);
            let at = place.at(strips.tiles).scale(strips.piece.rows.panel() as i64);
            let line = Line::new(d, w, scope.comp.array(ids.1).rank(), &place.loops, place.tile);
            let tile = s.results_of_line(scope, e, conv, &line, columns, (products.sums.buffer()?, at, of_sums))?;
            let tile = place.where_it_is(&mut e.k, (w, strips), tile);
            Ok(vec![place.around(&mut e.k, (w, strips), tile)])
        })?);
        self.launch_1d(e.k, w, products.rows, flops(w, w.rows()), (&[number], body), steps);
        Ok(())
    }
}

/// The loops over the tiles of a strip.
struct Place {
    /// The strip.
    number: VarId,
    /// The line in the strip, and among all.
    line: [VarId; 2],
    /// The tile in the strip.
    step: VarId,
    /// The tile in the line.
    tile: VarId,
    /// Image, positions along the other axes, phase.
    loops: Vec<VarId>,
}

impl Place {
    /// The first number of tiles is that of the strip in a line, the second that of a line.
    fn new(k: &mut Kernel, w: &Winograd1d, strips: &Strips, number: VarId, tiles: [u64; 2]) -> Place {
        let lines = [k.var(strips.lines), k.var(w.lines())];
        let loops = w.extents().into_iter().map(|n| k.var(n)).collect();
        Place { number, line: lines, step: k.var(tiles[0]), tile: k.var(tiles[1]), loops }
    }
    /// The number of the tile in memory that has `tiles` for each line of a strip.
    fn at(&self, tiles: u64) -> Index {
        Index::var(self.line[0]).scale(tiles as i64).add(&Index::var(self.step))
    }
    /// The position in the padded input that the tile begins at.
    fn read(&self, d: &ConvDims, w: &Winograd1d) -> Vec<Index> {
        let mut from = vec![Index::default(); w.size.len()];
        let others = (0..w.size.len()).filter(|&i| i != w.axis);
        for (i, &v) in others.zip(&self.loops[1..]) {
            from[i] = Index::var(v).scale(d.window[i].stride as i64);
        }
        from[w.axis] = first_of_tile(w, self.tile, self.loops[self.loops.len() - 1]);
        from
    }
    /// The line and the tile of a strip among all, those that are none too.
    fn numbers(&self, k: &Kernel, strips: &Strips) -> [Index; 2] {
        let (lines, tiles) = (
            Index::var(self.number).div(strips.of_line as i64, &k.vars),
            Index::var(self.number).rem(strips.of_line as i64, &k.vars),
        );
        [
            lines.scale(strips.lines as i64).add(&Index::var(self.line[0])),
            tiles.scale(strips.tiles as i64).add(&Index::var(self.step)),
        ]
    }
    /// `body` where line and tile are some.
    fn where_it_is(&self, k: &mut Kernel, (w, strips): (&Winograd1d, &Strips), mut body: Vec<Stmt>) -> Vec<Stmt> {
        let [line, tile] = self.numbers(k, strips);
        let lines = w.lines();
        if !lines.is_multiple_of(strips.lines) {
            let cond = k.expr(Expr::Within(line, 0, lines as i64));
            body = vec![Stmt::If { cond, body }];
        }
        if !w.tiles.is_multiple_of(strips.tiles) {
            let cond = k.expr(Expr::Within(tile, 0, w.tiles as i64));
            body = vec![Stmt::If { cond, body }];
        }
        body
    }
    /// `body` for each tile of the strip, for the last one again instead of those that are none.
    fn around(&self, k: &mut Kernel, (w, strips): (&Winograd1d, &Strips), mut body: Vec<Stmt>) -> Stmt {
        let [line, tile] = self.numbers(k, strips);
        let mut stride = 1;
        for &var in self.loops.iter().rev() {
            let n = k.vars[var] as i64;
            let value = Index::var(self.line[1]).div(stride, &k.vars).rem(n, &k.vars);
            body = vec![Stmt::Let { var, value, body }];
            stride *= n;
        }
        let value = tile.limit(0, k.vars[self.tile] as i64 - 1, &k.vars);
        body = vec![each(self.step, LoopKind::Seq, vec![Stmt::Let { var: self.tile, value, body }])];
        let value = line.limit(0, w.lines() as i64 - 1, &k.vars);
        each(self.line[0], LoopKind::Seq, vec![Stmt::Let { var: self.line[1], value, body }])
    }
}
