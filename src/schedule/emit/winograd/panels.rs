//! The kernels of Winograd's method panel by panel (`plan/winograd/panels.rs`).
use super::super::contraction::{Contraction, Right};
use super::super::element::Elements;
use super::super::grid::{chunked, guarded, numbered, shares};
use super::super::tile::Part;
use super::super::{each, label};
use super::{Conv, Products, by_panels, products, tile_loops, tile_number};
use crate::diag::Result;
use crate::kernel::{Index, LoopKind, Step};
use crate::schedule::emit::{Emitter, Scope, Value};
use crate::schedule::plan::axis::Axis;
use crate::schedule::plan::points::apart;
use crate::schedule::plan::winograd::{POINTS, PanelByPanel, READS};
use crate::tensor::DType;

impl<'a> Emitter<'a> {
    /// The kernels.
    pub(super) fn winograd_panels(
        &mut self,
        scope: &mut Scope<'a>,
        conv: &Conv<'_>,
        panels: &PanelByPanel,
        steps: &mut Vec<Step>,
    ) -> Result<()> {
        let (w, panel) = (conv.w, panels.panel());
        let of_group = w.outputs.div_ceil(panel).div_ceil(panels.groups);
        let inputs = self.winograd_inputs(scope, conv, steps);
        let (of_sums, of_row) = (apart(w.count() * panel), READS * apart(w.inputs * panel));
        let weights = self.plain_weights(w);
        let [sums_near, weights_near] = panels.on_stack;
        let packed = match weights_near {
            true => self.on_stack(DType::F32, of_row),
            false => self.for_weights(conv, panels.groups * of_row),
        };
        let sums = match sums_near {
            true => self.on_stack(DType::F32, POINTS * of_sums),
            false => self.buffer(DType::F32, panels.groups * POINTS * of_sums),
        };
        let sink = Value { leaves: vec![sums], layout: None };
        let c = products(w, w.count(), Right::Buffer(packed), inputs, of_sums);
        // only one panel of the sums is there at a time
        let c = Contraction { columns: vec![Axis { extent: panel, a: 0, b: 1 }], ..c };
        let products = Products { c: &c, tile: panels.tile, sums: &sink };

        let mut e = Elements::new(conv.ids.0, label(scope.comp, conv.ids.0));
        let (group, of_it) = (e.k.var(panels.groups), e.k.var(of_group));
        let p = e.k.var(w.outputs.div_ceil(panel));
        let apart_in_groups = |near: bool, elements: u64| match near {
            true => Index::default(),
            false => Index::var(group).scale(elements as i64),
        };
        let (b, batch) = (apart_in_groups(weights_near, of_row), apart_in_groups(sums_near, POINTS));
        let mut body = Vec::new();
        for columns in shares(&mut e.k, p, w.outputs, panel) {
            let (first, count) = (columns.at.scale(panel as i64), columns.count);
            let i = e.k.var(READS);
            let right =
                Part { b: b.clone(), packed, term: panel, columns: count, batch: batch.clone(), ..Part::default() };
            let from = (weights, first.clone());
            let row = self.products_of_row(scope, &mut e, conv, &products, from, &Index::var(i), &right)?;
            let mut inside = vec![each(i, LoopKind::Seq, row)];
            let loops = tile_loops(&mut e.k, w);
            let at = tile_number(w, loops).scale(panel as i64).add(&batch.scale(of_sums as i64));
            let back = self.results_of_tile(scope, &mut e, conv, loops, (first, count), (sums, at, of_sums))?;
            inside.extend(loops.into_iter().rev().fold(back, |body, v| vec![each(v, LoopKind::Seq, body)]));
            body.extend(guarded(&mut e.k, &[&columns], inside));
        }
        let number = Index::var(group).scale(of_group as i64).add(&Index::var(of_it));
        let body = numbered(&mut e.k, p, number, body);
        e.k.chosen = Some((panels.form.clone(), by_panels(panels.tile)));
        e.k.flops = w.outputs * w.count() * (2 * POINTS * w.inputs + 130);
        e.k.direct_flops = Some(w.direct_flops());
        chunked(&mut e.k, &[group], vec![each(of_it, LoopKind::Seq, body)]);
        self.launch(e.k, steps);
        Ok(())
    }
}
