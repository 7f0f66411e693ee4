//! What the kernels of strips and of blocks have in common: the products of a piece (`plan/winograd1d/pieces.rs`).
use super::super::each;
use super::super::element::Elements;
use super::super::grid::{guarded, shares};
use super::super::tile::Part;
use super::{Conv, Products, products};
use crate::diag::Result;
use crate::kernel::{Index, LoopKind, Step, Stmt};
use crate::schedule::emit::{Emitter, Scope, Value};
use crate::schedule::plan::points::apart;
use crate::schedule::plan::winograd1d::{Piece, Winograd1d};
use crate::tensor::DType;

/// What becomes of the sums of a panel: of the columns from one on, and how many.
type Back<'t, 'a> =
    &'t mut dyn FnMut(&mut Emitter<'a>, &mut Scope<'a>, &mut Elements, (Index, u64)) -> Result<Vec<Stmt>>;

impl<'a> Emitter<'a> {
    /// The products of a piece, with memory for its inputs and sums, after the kernel of the weights.
    pub(super) fn products_of_piece<'c>(
        &mut self,
        scope: &Scope<'a>,
        conv: &Conv<'_>,
        piece: &'c Piece,
        steps: &mut Vec<Step>,
    ) -> Products<'c> {
        let (w, rows, [of_inputs, of_sums]) = (conv.w, &piece.rows, piece.apart(conv.w));
        let packed = self.weights_of_panels(scope, conv, (rows.panel(), rows.tile.lanes), steps);
        let [inputs, sums] = [of_inputs, of_sums].map(|n| self.on_stack(DType::F32, w.points.count() * n));
        let c = products(w, (inputs, packed, of_inputs), (rows, rows.panel()), &piece.sum, of_sums);
        Products { c, rows, packed, sums: Value { leaves: vec![sums], layout: None } }
    }

    /// Panel after panel of a piece whose inputs are there: its products at all points, and what `back` makes of the sums.
    pub(super) fn panels_of_piece(
        &mut self,
        scope: &mut Scope<'a>,
        e: &mut Elements,
        conv: &Conv<'_>,
        products: &Products<'_>,
        back: Back<'_, 'a>,
    ) -> Result<Stmt> {
        let (w, packed, panel) = (conv.w, products.packed, products.rows.panel());
        let p = e.k.var(w.outputs.div_ceil(panel));
        let mut body = Vec::new();
        for columns in shares(&mut e.k, p, w.outputs, panel) {
            let point = e.k.var(w.points.count());
            let of_panel = Index::var(point).scale(e.k.vars[p] as i64).add(&columns.at);
            let b = of_panel.scale(apart(w.terms() * panel) as i64);
            let right = Part { b, packed, term: panel, columns: columns.count, ..Part::default() };
            let made = self.products_of_rows(scope, e, conv.ids, products, point, &right)?;
            let mut inside = vec![each(point, LoopKind::Seq, made)];
            inside.extend(back(self, scope, e, (columns.at.scale(panel as i64), columns.count))?);
            body.extend(guarded(&mut e.k, &[&columns], inside));
        }
        Ok(each(p, LoopKind::Seq, body))
    }
}

/// Operations of all pieces, which read so many tiles.
pub(super) fn flops(w: &Winograd1d, reads: u64) -> u64 {
    w.points.count() * (3 * reads * w.inputs + w.rows() * (2 * w.terms() + 3) * w.outputs)
}
