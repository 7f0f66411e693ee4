//! The kernel of Winograd's method strip by strip (`plan/winograd/strips.rs`).
use super::super::contraction::{Contraction, Right};
use super::super::element::Elements;
use super::super::grid::{chunked, guarded, shares};
use super::super::pairs::Order;
use super::super::tile::Part;
use super::super::{each, label};
use super::{Conv, Products, by_panels, inputs_of_tile, products, tile_loops};
use crate::diag::Result;
use crate::kernel::{Expr, Index, Kernel, LoopKind, Step, Stmt, VarId};
use crate::schedule::emit::{Emitter, Scope, Value};
use crate::schedule::plan::axis::Axis;
use crate::schedule::plan::points::apart;
use crate::schedule::plan::winograd::{POINTS, Strips, Winograd};
use crate::tensor::{DType, Tensor};

impl<'a> Emitter<'a> {
    /// The kernel.
    pub(super) fn winograd_strips(
        &mut self,
        scope: &mut Scope<'a>,
        conv: &Conv<'_>,
        (strips, known): (&Strips, Option<Tensor>),
        steps: &mut Vec<Step>,
    ) -> Result<()> {
        let Conv { ids, d, w, input, .. } = *conv;
        let (tiles, panel) = (strips.tiles, strips.panel());
        let (of_inputs, of_sums) = (apart(tiles * w.inputs), apart(tiles * panel));
        let mut memory = |of_point: u64| match strips.on_stack {
            true => self.on_stack(DType::F32, POINTS * of_point),
            false => self.buffer(DType::F32, strips.bands * POINTS * of_point),
        };
        let (inputs, sums) = (memory(of_inputs), memory(of_sums));
        let tiles_and_sums = |right| products(w, tiles, right, (inputs, of_inputs), of_sums);
        let packed = match known {
            Some(weights) => {
                let c = tiles_and_sums(Right::Constant(weights));
                self.pack(&c, &c.sum, (panel, w.outputs.div_ceil(panel), Order::Plain), steps)?
            }
            None => self.winograd_weights(scope, conv, (panel, strips.tile.lanes), steps),
        };
        // only one panel of the sums is there at a time
        let columns = vec![Axis { extent: panel, a: 0, b: 1 }];
        let c = Contraction { columns, ..tiles_and_sums(Right::Buffer(packed.buf)) };
        let sink = Value { leaves: vec![sums], layout: None };
        let products = Products { c: &c, tile: strips.tile, sums: &sink };

        let mut e = Elements::new(ids.0, label(scope.comp, ids.0));
        let k = &mut e.k;
        let (band, strip) = (k.var(strips.bands), k.var(strips.own));
        let (number, p) = (k.var(strips.bands * strips.own), k.var(w.outputs.div_ceil(panel)));
        let of_band = if strips.on_stack { Index::default() } else { Index::var(band).scale(POINTS as i64) };
        let place = Place::new(k, w, strips);
        let first = place.at(w.inputs).add(&of_band.scale(of_inputs as i64));
        let tile =
            inputs_of_tile(k, self.lanes(DType::F32), (d, w.reach), input, place.loops, (inputs, first, of_inputs));
        let mut body = vec![place.around(k, w, (strips, number), tile)];
        let mut panels = Vec::new();
        for columns in shares(&mut e.k, p, w.outputs, panel) {
            let point = e.k.var(POINTS);
            let batch = of_band.add(&Index::var(point));
            let right = Part {
                a: batch.scale(of_inputs as i64),
                b: columns.at.scale(packed.panel as i64).add(&Index::var(point).scale(packed.batch as i64)),
                packed: packed.buf,
                term: panel,
                columns: columns.count,
                batch,
                ..Part::default()
            };
            let product = self.products_of_point(scope, &mut e, ids, &products, &right)?;
            let mut inside = vec![each(point, LoopKind::Seq, vec![product])];
            let place = Place::new(&mut e.k, w, strips);
            let at = place.at(panel).add(&of_band.scale(of_sums as i64));
            let made = (columns.at.scale(panel as i64), columns.count);
            let mut tile = self.results_of_tile(scope, &mut e, conv, place.loops, made, (sums, at, of_sums))?;
            if strips.is_ragged(w) {
                let cond = e.k.expr(Expr::Within(place.number(strips, number), 0, w.count() as i64));
                tile = vec![Stmt::If { cond, body: tile }];
            }
            inside.push(place.around(&mut e.k, w, (strips, number), tile));
            panels.extend(guarded(&mut e.k, &[&columns], inside));
        }
        body.push(each(p, LoopKind::Seq, panels));
        let k = &mut e.k;
        if strips.is_ragged(w) {
            let first = Index::var(number).scale(strips.tiles as i64);
            let cond = k.expr(Expr::Within(first, 0, w.count() as i64));
            body = vec![Stmt::If { cond, body }];
        }
        let value = Index::var(band).scale(strips.own as i64).add(&Index::var(strip));
        body = vec![Stmt::Let { var: number, value, body }];
        k.chosen = Some((strips.form.clone(), by_panels(strips.tile)));
        let products = 2 * POINTS * w.inputs * w.outputs;
        k.flops = w.count() * (144 * w.inputs + products + 130 * w.outputs);
        k.direct_flops = Some(w.direct_flops());
        chunked(k, &[band], vec![each(strip, LoopKind::Seq, body)]);
        self.launch(e.k, steps);
        Ok(())
    }
}

/// The loop over the tiles of a strip.
struct Place {
    /// The tile in its strip.
    at: VarId,
    /// The tile among all.
    tile: VarId,
    /// Image, row and column of tiles.
    loops: [VarId; 3],
}

impl Place {
    fn new(k: &mut Kernel, w: &Winograd, strips: &Strips) -> Place {
        let loops = tile_loops(k, w);
        Place { at: k.var(strips.tiles), tile: k.var(w.count()), loops }
    }

    /// Where the tile begins in memory that has so many elements for each of a strip.
    fn at(&self, elements: u64) -> Index {
        Index::var(self.at).scale(elements as i64)
    }

    /// The number among all tiles; that of none in the last strips.
    fn number(&self, strips: &Strips, strip: VarId) -> Index {
        Index::var(strip).scale(strips.tiles as i64).add(&Index::var(self.at))
    }

    /// `body` for each tile of strip `number`, for the last one again instead of those that are none.
    fn around(&self, k: &mut Kernel, w: &Winograd, (strips, number): (&Strips, VarId), mut body: Vec<Stmt>) -> Stmt {
        let mut stride = 1;
        for var in self.loops.into_iter().rev() {
            let n = k.vars[var] as i64;
            let value = Index::var(self.tile).div(stride, &k.vars).rem(n, &k.vars);
            body = vec![Stmt::Let { var, value, body }];
            stride *= n;
        }
        let value = self.number(strips, number).limit(0, w.count() as i64 - 1, &k.vars);
        each(self.at, LoopKind::Seq, vec![Stmt::Let { var: self.tile, value, body }])
    }
}
