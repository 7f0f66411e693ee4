//! The products of a piece (`recipe/pieces.rs`), which kernels of strips and of blocks share.
use super::tiles::Columns;
use super::{Conv, PointProducts, Products, Right, products};
use crate::schedule::families::contraction::loops::register_block::RegisterBlock;
use crate::schedule::families::winograd::recipe::{Piece, Winograd};
use crate::schedule::loops::grid::{guarded, shares};
use crate::schedule::loops::prelude::*;

/// A continuation that receives the columns of a panel whose sums are there.
type Back<'t, 'a> = &'t mut dyn FnMut(&mut Emitter<'a>, &mut Elements, Columns) -> Result<Vec<Stmt>>;

impl<'a> Emitter<'a> {
    /// The products of a piece, after the kernel of the weights, with what `memory` gives for so many elements of inputs and sums.
    pub(super) fn products_of_piece<'c>(
        &mut self,
        conv: &Conv<'_>,
        piece: &'c Piece,
        memory: impl Fn(&mut Self, u64) -> BufId,
    ) -> Result<Products<'c>> {
        let (w, rows, [of_inputs, of_sums]) = (conv.w, &piece.rows, piece.apart(conv.w));
        let [inputs, sums] = [of_inputs, of_sums].map(|n| memory(self, w.points() * n));
        let packed = self.weights_of_panels(conv, rows.panel(), rows.tile.lanes)?;
        let memory = PointProducts { left: inputs, right: Right::Buffer(packed), of_inputs, of_sums };
        // only one panel of the sums is there at a time
        let c = products(w, memory, rows.axes.clone(), rows.panel(), &piece.sum);
        Ok(Products { c, rows, packed, sums: ValueBuffers { leaves: vec![sums], layout: None } })
    }

    /// Panel after panel of a piece whose inputs are there, from a point of its memory on: its products at all points, and what `back`
    /// makes of the sums.
    pub(super) fn panels_of_piece(
        &mut self,
        e: &mut Elements,
        conv: &Conv<'_>,
        products: &Products<'_>,
        of_piece: &Index,
        back: Back<'_, 'a>,
    ) -> Result<Stmt> {
        let (w, packed, panel) = (conv.w, products.packed, products.rows.panel());
        let p = e.k.var(w.outputs.div_ceil(panel));
        let mut body = Vec::new();
        for columns in shares(&mut e.k, p, w.outputs, panel) {
            let point = e.k.var(w.points());
            let batch = of_piece.add(&Index::var(point));
            let of_panel = Index::var(point).scale(e.k.vars[p] as i64).add(&columns.at);
            let (a, b) = (batch.scale(products.c.batch[0].a), of_panel.scale(w.panels_apart(panel) as i64));
            let right =
                RegisterBlock { a, b, packed, term: panel, columns: columns.count, batch, ..RegisterBlock::default() };
            let made = self.products_of_point(e, conv, products, &right)?;
            let mut inside = vec![each(point, LoopKind::Seq, made)];
            inside.extend(back(self, e, Columns { first: columns.at.scale(panel as i64), count: columns.count })?);
            body.extend(guarded(&mut e.k, &[&columns], inside));
        }
        Ok(each(p, LoopKind::Seq, body))
    }
}

/// Operations of all pieces, which read so many tiles.
pub(super) fn flops(w: &Winograd, reads: u64) -> u64 {
    let [there, back] = w.transform_flops();
    there * reads * w.inputs + w.rows() * (2 * w.points() * w.terms() + back) * w.outputs
}
