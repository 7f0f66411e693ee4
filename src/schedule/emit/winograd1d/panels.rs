//! The second kernel of Winograd's method along one axis panel by panel (`plan/winograd1d/panels.rs`).
use super::super::element::Elements;
use super::super::grid::{guarded, shares};
use super::super::tile::Part;
use super::super::{each, label};
use super::{Conv, Lines, Products, Tiles, products};
use crate::diag::Result;
use crate::kernel::{Index, LoopKind, Step};
use crate::schedule::emit::{Emitter, Scope, Value};
use crate::schedule::plan::MOST_STACK;
use crate::schedule::plan::points::apart;
use crate::schedule::plan::winograd1d::rows;
use crate::tensor::DType;

impl<'a> Emitter<'a> {
    /// The second kernel.
    pub(super) fn winograd_1d_panels(
        &mut self,
        scope: &mut Scope<'a>,
        conv: &Conv<'_>,
        columns: u64,
        tiles: &Tiles,
        steps: &mut Vec<Step>,
    ) -> Result<()> {
        let Conv { ids, d, w, .. } = *conv;
        let (weights, rows) = (self.plain_weights_1d(w), rows(self.target, w, &tiles.rows(d, w), columns));
        let (panel, points) = (rows.panel(), w.points.count());
        let (of_sums, of_weights, panels) = (apart(w.rows() * panel), w.terms() * panel, w.outputs.div_ceil(panel));
        let sums = Value { leaves: vec![self.on_stack(DType::F32, points * of_sums)], layout: None };
        let near = 4 * (points * of_sums + of_weights) <= MOST_STACK;
        let packed = match near {
            true => self.on_stack(DType::F32, of_weights),
            false => self.buffer(DType::F32, panels * of_weights),
        };
        let c = products(w, (tiles.buf, packed, tiles.point), (&rows, panel), &tiles.terms(d, w), of_sums);
        let products = Products { c, rows: &rows, packed, sums };

        let mut e = Elements::new(ids.0, label(scope.comp, ids.0));
        let p = e.k.var(panels);
        let b = if near { Index::default() } else { Index::var(p).scale(of_weights as i64) };
        let mut body = Vec::new();
        for columns in shares(&mut e.k, p, w.outputs, panel) {
            let point = e.k.var(points);
            let (first, count) = (columns.at.scale(panel as i64), columns.count);
            let right = Part { b: b.clone(), packed, term: panel, columns: count, ..Part::default() };
            let made = self.products_of_panel(scope, &mut e, conv, &products, (weights, &first), point, &right)?;
            let mut inside = vec![each(point, LoopKind::Seq, made)];
            let lines = Lines::new(&mut e.k, d, w, scope.comp.array(ids.1).rank());
            let from = (products.sums.buffer()?, lines.row(&e.k).scale(panel as i64), of_sums);
            let back = self.results_of_line(scope, &mut e, conv, &lines.line, (first, count), from)?;
            inside.extend(lines.loops.iter().rev().fold(back, |body, &v| vec![each(v, LoopKind::Seq, body)]));
            body.extend(guarded(&mut e.k, &[&columns], inside));
        }
        let flops = points * w.rows() * w.outputs * (2 * w.terms() + 3);
        self.launch_1d(e.k, w, &rows, flops, (&[p], body), steps);
        Ok(())
    }
}
