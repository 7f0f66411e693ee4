//! The products of a piece (`recipe/pieces.rs`), which kernels of strips and of blocks share.
use super::tiles::ColumnRange;
use super::{ContractionRight, PointProducts, Products, WinogradConvolution, point_products};
use crate::schedule::families::contraction::loops::register_block::RegisterBlock;
use crate::schedule::families::winograd::recipe::{ConvolutionPiece, Winograd};
use crate::schedule::loops::grid::{guard_by_tiles, split_into_tiles};
use crate::schedule::loops::prelude::*;

/// A continuation that receives the columns of a panel whose sums are complete.
type Back<'t, 'a> = &'t mut dyn FnMut(&mut Emitter<'a>, &mut KernelBuilder, ColumnRange) -> Result<Vec<Stmt>>;

impl<'a> Emitter<'a> {
    /// The products of a piece; `memory` allocates inputs and sums of given types and sizes. Emits the kernel that transforms the weights, unless
    /// they are transformed at compile time.
    pub(super) fn emit_piece_products<'c>(
        &mut self,
        conv: &WinogradConvolution<'_>,
        piece: &'c ConvolutionPiece,
        memory: impl Fn(&mut Self, DType, u64) -> BufId,
    ) -> Result<Products<'c>> {
        let (w, rows, [of_inputs, of_sums]) = (conv.w, &piece.rows, piece.point_strides(conv.w));
        let inputs = memory(self, w.types.points, w.point_count() * of_inputs);
        let sums = memory(self, w.types.sums, w.point_count() * of_sums);
        let packed = self.panel_weights(conv, rows)?;
        let memory = PointProducts { left: inputs, right: ContractionRight::Buffer(packed), of_inputs, of_sums };
        // only one panel of the sums is there at a time
        let c = point_products(w, memory, rows.axes.clone(), rows.panel_columns(), &piece.sum);
        Ok(Products { c, rows, packed, sums: ValueBuffers { leaves: vec![sums], layout: None } })
    }

    /// Emits the products of a piece panel after panel, from its transformed inputs, and passes the sums to `back`.
    pub(super) fn emit_piece_panels(
        &mut self,
        e: &mut KernelBuilder,
        conv: &WinogradConvolution<'_>,
        products: &Products<'_>,
        of_piece: &Index,
        back: Back<'_, 'a>,
    ) -> Result<Stmt> {
        let (w, packed, panel) = (conv.w, products.packed, products.rows.panel_columns());
        let p = e.k.add_var(w.outputs.div_ceil(panel));
        let mut body = Vec::new();
        for columns in split_into_tiles(&mut e.k, p, w.outputs, panel) {
            let point = e.k.add_var(w.point_count());
            let batch = of_piece.add(&Index::var(point));
            let of_panel = Index::var(point).scale(e.k.vars[p] as i64).add(&columns.at);
            let (a, b) = (batch.scale(products.c.batch[0].a), of_panel.scale(w.panel_stride(panel) as i64));
            let right =
                RegisterBlock { a, b, packed, term: panel, columns: columns.count, batch, ..RegisterBlock::default() };
            let made = self.products_of_point(e, conv, products, &right)?;
            let mut inside = vec![for_loop(point, LoopKind::Seq, made)];
            inside.extend(back(self, e, ColumnRange { first: columns.at.scale(panel as i64), count: columns.count })?);
            body.extend(guard_by_tiles(&mut e.k, &[&columns], inside));
        }
        Ok(for_loop(p, LoopKind::Seq, body))
    }
}

/// Floating-point operations of all pieces, which read `reads` tiles of the input in all.
pub(super) fn piece_flops(w: &Winograd, reads: u64) -> u64 {
    let [there, back] = w.transform_flops();
    there * reads * w.inputs + w.result_tiles() * (2 * w.point_count() * w.term_count() + back) * w.outputs
}
