//! Winograd's method panel by panel, of weights that are transformed on the way (`recipe/panels.rs`).
use super::tiles::{ColumnRange, ResultTile, TransformedInputs, iteration_number};
use super::transform::PointMemory;
use super::weights::WeightColumns;
use super::{ContractionRight, PointProducts, Products, WinogradConvolution, point_products};
use crate::schedule::families::contraction::loops::register_block::RegisterBlock;
use crate::schedule::families::winograd::recipe::ProductPanels;
use crate::schedule::families::winograd::recipe::points::point_stride;
use crate::schedule::loops::grid::{bind_variable, guard_by_tiles, split_into_tiles};
use crate::schedule::loops::prelude::*;

impl<'a> Emitter<'a> {
    /// Emits the products of the three-kernel scheme, for a panel of channels and a row of points at a time, so that weights stay in a
    /// near cache.
    pub(super) fn emit_winograd_products(
        &mut self,
        conv: &WinogradConvolution<'_>,
        panels: &ProductPanels,
        TransformedInputs { buf: left, layout: inputs }: &TransformedInputs,
        sums: &ValueBuffers,
        of_sums: u64,
    ) -> Result<()> {
        let (w, panel) = (conv.w, panels.rows.panel_columns());
        let all = w.outputs.div_ceil(panel);
        let (of_group, own) = (all.div_ceil(panels.groups), w.point_rows().div_ceil(panels.parts));
        let of_row = w.row_points() * w.row_point_stride(panel);
        let weights = self.untransformed_weights(conv)?;
        let packed = self.for_row(conv, panels, of_row);
        let right = ContractionRight::Buffer(packed);
        let memory = PointProducts { left: *left, right, of_inputs: inputs.point, of_sums };
        let c = point_products(w, memory, panels.rows.axes.clone(), w.outputs, &inputs.contracted_axes(conv.d, w));
        let products = Products { c, rows: &panels.rows, packed, sums: sums.clone() };

        let mut e = self.start_kernel(conv.ids.0);
        let (group, part) = (e.k.add_var(panels.groups), e.k.add_var(panels.parts));
        let (p, of_it, row, i) =
            (e.k.add_var(all), e.k.add_var(of_group), e.k.add_var(w.point_rows()), e.k.add_var(own));
        let b = match panels.on_stack[1] {
            true => Index::default(),
            false => Index::var(group).scale(panels.parts as i64).add(&Index::var(part)).scale(of_row as i64),
        };
        let mut body = Vec::new();
        for columns in split_into_tiles(&mut e.k, p, w.outputs, panel) {
            let column = columns.at.scale(panel as i64);
            let right = RegisterBlock {
                b: b.clone(),
                packed,
                term: panel,
                column: column.clone(),
                columns: columns.count,
                ..RegisterBlock::default()
            };
            let from = WeightColumns { weights: &weights, first: &column, count: columns.count };
            let number = Index::var(part).scale(own as i64).add(&Index::var(i));
            let is_even = own * panels.parts == w.point_rows();
            let at = if is_even { number.clone() } else { Index::var(row) };
            let mut made = self.products_of_row(&mut e, conv, &products, &from, &at, &right)?;
            if !is_even {
                made = bind_variable(&mut e.k, row, number, made);
            }
            let made = vec![for_loop(i, LoopKind::Seq, made)];
            body.extend(guard_by_tiles(&mut e.k, &[&columns], made));
        }
        let number = Index::var(group).scale(of_group as i64).add(&Index::var(of_it));
        let body = vec![for_loop(of_it, LoopKind::Seq, bind_variable(&mut e.k, p, number, body))];
        let flops = 2 * w.point_count() * w.term_count() * w.outputs * w.result_tiles();
        self.launch_winograd(e.k, w, &panels.rows, flops, &[group, part], body);
        Ok(())
    }

    /// Allocates memory for the weights of a row of points.
    fn for_row(&mut self, conv: &WinogradConvolution<'_>, panels: &ProductPanels, of_row: u64) -> BufId {
        match panels.on_stack[1] {
            true => self.allocate_on_stack(conv.w.types.points, of_row),
            false => self.allocate_weights(conv, panels.groups * panels.parts * of_row),
        }
    }

    /// Emits products and results, one panel after the other.
    pub(super) fn emit_winograd_panels(
        &mut self,
        conv: &WinogradConvolution<'_>,
        panels: &ProductPanels,
        TransformedInputs { buf: left, layout: inputs }: &TransformedInputs,
    ) -> Result<()> {
        let (w, panel) = (conv.w, panels.rows.panel_columns());
        let of_group = w.outputs.div_ceil(panel).div_ceil(panels.groups);
        let (of_sums, of_row) = (point_stride(w.result_tiles() * panel), w.row_points() * w.row_point_stride(panel));
        let [sums_near, weights_near] = panels.on_stack;
        let weights = self.untransformed_weights(conv)?;
        let packed = self.for_row(conv, panels, of_row);
        let sums = match sums_near {
            true => self.allocate_on_stack(w.types.sums, w.point_count() * of_sums),
            false => self.allocate_buffer(w.types.sums, panels.groups * w.point_count() * of_sums),
        };
        // only one panel of the sums is there at a time
        let right = ContractionRight::Buffer(packed);
        let memory = PointProducts { left: *left, right, of_inputs: inputs.point, of_sums };
        let c = point_products(w, memory, panels.rows.axes.clone(), panel, &inputs.contracted_axes(conv.d, w));
        let products =
            Products { c, rows: &panels.rows, packed, sums: ValueBuffers { leaves: vec![sums], layout: None } };

        let mut e = self.start_kernel(conv.ids.0);
        let (group, of_it) = (e.k.add_var(panels.groups), e.k.add_var(of_group));
        let p = e.k.add_var(w.outputs.div_ceil(panel));
        let apart_in_groups = |near: bool, elements: u64| match near {
            true => Index::default(),
            false => Index::var(group).scale(elements as i64),
        };
        let (b, batch) = (apart_in_groups(weights_near, of_row), apart_in_groups(sums_near, w.point_count()));
        let mut body = Vec::new();
        for columns in split_into_tiles(&mut e.k, p, w.outputs, panel) {
            let (first, count) = (columns.at.scale(panel as i64), columns.count);
            let row = e.k.add_var(w.point_rows());
            let right = RegisterBlock {
                b: b.clone(),
                packed,
                term: panel,
                columns: count,
                batch: batch.clone(),
                ..RegisterBlock::default()
            };
            let from = WeightColumns { weights: &weights, first: &first, count };
            let made = self.products_of_row(&mut e, conv, &products, &from, &Index::var(row), &right)?;
            let mut inside = vec![for_loop(row, LoopKind::Seq, made)];
            let loops: Vec<VarId> = w.tile_loops().0.into_iter().map(|n| e.k.add_var(n)).collect();
            let at = iteration_number(&e.k, &loops).scale(panel as i64).add(&batch.scale(of_sums as i64));
            let spot = ResultTile::new(&e.k, conv, self.scope.comp.array_shape(conv.ids.1).rank(), &loops);
            let back = self.emit_tile_results(
                &mut e,
                conv,
                &spot,
                ColumnRange { first, count },
                &PointMemory { buf: sums, first: at, apart: of_sums },
            )?;
            inside.extend(loops.iter().rev().fold(back, |body, &v| vec![for_loop(v, LoopKind::Seq, body)]));
            body.extend(guard_by_tiles(&mut e.k, &[&columns], inside));
        }
        let number = Index::var(group).scale(of_group as i64).add(&Index::var(of_it));
        let body = vec![for_loop(of_it, LoopKind::Seq, bind_variable(&mut e.k, p, number, body))];
        let flops = w.result_tiles() * w.outputs * (2 * w.point_count() * w.term_count() + w.transform_flops()[1]);
        self.launch_winograd(e.k, w, &panels.rows, flops, &[group], body);
        Ok(())
    }
}
