//! The loops over the blocks of a result and over the elements of a block.
use super::recipe::CrossedAxes;
use crate::schedule::families::pointwise::loops::ElementStores;
use crate::schedule::loops::nest::{split_into_vector_loops, substitute_variable};
use crate::schedule::loops::prelude::*;

/// The family of pointwise results that are read along another axis than they are written.
pub const FAMILY: Family = Family {
    name: "transpose",
    recipe: |_, request| {
        let find = || CrossedAxes::find(request.context.comp, &request.fused.fusion, request.id);
        Ok((request.is_pointwise() && find().is_some()).then_some(RecipeSetup::Plain))
    },
    emit: |s, root, _| s.emit_crossed(root),
};

impl<'a> Emitter<'a> {
    /// Emits the loops of a result that is computed in blocks.
    ///
    /// # Errors
    /// Errors of the elements' own emission.
    fn emit_crossed(&mut self, KernelRoot { id, out, .. }: KernelRoot<'_>) -> Result<()> {
        // none where emission gave buffers of their own to more instructions than the plan did
        let Some(crossed) = CrossedAxes::find(self.scope.comp, &self.scope.fusion, id) else {
            return self.emit_pointwise(id, out);
        };
        let dims = self.scope.comp.array_shape(id).dims.clone();
        let layout = out.layout(&dims);
        let ElementStores { mut e, vars, store, lanes } =
            self.element_stores(id, id, &dims, |at| layout.offset_of(at), out)?;
        let (read, written) = (vars[crossed.read], vars[crossed.written]);
        let around = vars.into_iter().filter(|&v| v != read && v != written && e.k.vars[v] != 1).collect();
        let nest = BlockNest { around, read, written, block: crossed.block };
        nest.set_body(&mut e.k, &[store], lanes);
        self.launch(e.k);
        Ok(())
    }
}

/// The loop variables of a result that is computed in blocks.
struct BlockNest {
    /// The loops over the other axes, outermost first.
    around: Vec<VarId>,
    /// The loop along the axis that is read.
    read: VarId,
    /// The loop along the axis that is written.
    written: VarId,
    /// Elements of a block along the axis that is read.
    block: u64,
}

impl BlockNest {
    /// Makes `body` the body of the kernel: loops over the other axes, over blocks along both crossed axes, over the elements of a block along
    /// the axis that is read, and vectors along the axis that is written. The outermost loop gives the chunks.
    fn set_body(&self, k: &mut Kernel, body: &[Stmt], lanes: u64) {
        let (whole, rest) = (k.vars[self.read] / self.block, k.vars[self.read] % self.block);
        let band = k.add_var(whole);
        let inside = self.band_loops(k, body, &Index::var(band).scale(self.block as i64), self.block, lanes);
        let first_of_rest = Index::constant((whole * self.block) as i64);
        let rest = if rest == 0 { Vec::new() } else { self.band_loops(k, body, &first_of_rest, rest, lanes) };
        if let Some((&outermost, others)) = self.around.split_first() {
            let mut parts = vec![for_loop(band, LoopKind::Seq, inside)];
            parts.extend(rest);
            k.chunks = Some(outermost);
            k.body = nest_loops(others, parts);
            return;
        }
        k.chunks = Some(band);
        k.body = inside;
        if !rest.is_empty() {
            // with the last chunk
            let cond = k.add_expr(Expr::Within(Index::var(band), whole as i64 - 1, whole as i64));
            k.body.push(Stmt::If { cond, body: rest });
        }
    }

    /// Loops over the blocks of a band of `count` elements from `first` along the axis that is read.
    fn band_loops(&self, k: &mut Kernel, body: &[Stmt], first: &Index, count: u64, lanes: u64) -> Vec<Stmt> {
        let row = k.add_var(count);
        let of_row = substitute_variable(k, body, self.read, &first.add(&Index::var(row)));
        let columns = split_into_vector_loops(k, &of_row, self.written, lanes);
        let block =
            |(column, vector)| for_loop(column, LoopKind::Seq, vec![for_loop(row, LoopKind::Seq, vec![vector])]);
        columns.into_iter().map(block).collect()
    }
}
