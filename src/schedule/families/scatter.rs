//! `scatter`: the operands are copied, then one index vector after another has its window combined into them.
use crate::hlo::attrs::ScatterDims;
use crate::schedule::loops::nest::vectorize_loop;
use crate::schedule::loops::prelude::*;
use crate::schedule::loops::scalar_loops::LocalVariable;

/// The family of scatters: a copy of the operands, unless they may be overwritten, and loops over the updates one after another.
pub const FAMILY: Family = Family {
    name: "scatter",
    recipe: |_, request| Ok(matches!(request.op(), Op::Scatter { .. }).then_some(RecipeSetup::Plain)),
    emit: |s, root, _| s.emit_scatter(root),
};

impl<'a> Emitter<'a> {
    /// Emits a scatter. Windows that do not fit are skipped; several updates of one element are combined in the order of their indices.
    pub(in crate::schedule) fn emit_scatter(&mut self, KernelRoot { id, out, .. }: KernelRoot<'_>) -> Result<()> {
        let comp = self.scope.comp;
        let Op::Scatter { dims: d, comp: combine } = &comp[id].op else { return Err(unsupported_error(comp, id, "")) };
        let n = comp[id].operands.len() / 2;
        let (operands, indices, updates) = (&comp[id].operands[..n], comp[id].operands[n], &comp[id].operands[n + 1..]);
        let dims = comp.array_shape(operands[0]).dims.clone();
        for (&operand, &leaf) in operands.iter().zip(&out.leaves) {
            let leaf = ValueBuffers { leaves: vec![leaf], layout: None };
            self.copy_operand_to_result(id, operand, &leaf)?;
        }
        let update_dims = comp.array_shape(updates[0]).dims.clone();
        if dims.contains(&0) || update_dims.contains(&0) {
            return Ok(());
        }
        let mut e = self.start_kernel(id);
        let (vars, at) = loop_variables(&mut e.k, &update_dims);
        let (mut body, fits, to) = self.window(&mut e, indices, d, &dims, &at)?;
        let index = linear_index(&to, &dims);
        let mut args: Vec<ExprId> = out.leaves.iter().map(|&b| e.k.add_load(b, index.clone())).collect();
        for &update in updates {
            args.push(self.emit_element(&mut e, update, &at)?);
        }
        let own: Vec<DType> = operands.iter().map(|&o| comp.array_shape(o).dtype).collect();
        let mut results = self.inline_widened(&mut e, *combine, &args, &[&own[..], &own].concat())?;
        let combine = &self.module.comps[*combine];
        let returned = combine[combine.root].shape.leaves().into_iter().map(|a| a.dtype);
        for ((x, from), &to) in results.iter_mut().zip(returned).zip(&own) {
            *x = convert(&mut e.k, *x, from, to);
        }
        let mut inside: Vec<Stmt> = Vec::new();
        if let [buf] = out.leaves[..] {
            inside.push(Stmt::Store { buf, index, value: results[0] });
        } else {
            // All results are computed before any is stored.
            let held: Vec<LocalVariable> =
                out.leaves.iter().map(|&b| LocalVariable::new(&mut e.k, self.program.buffers[b].dtype)).collect();
            inside.extend(held.iter().zip(&results).map(|(x, &value)| x.set(value)));
            let stores = held.iter().zip(&out.leaves);
            inside.extend(stores.map(|(x, &buf)| Stmt::Store { buf, index: index.clone(), value: x.value }));
        }
        let mut windowed: Vec<VarId> = d.update_window_dims.iter().map(|&u| vars[u]).collect();
        if out.leaves.len() == 1
            && let Some(v) = windowed.pop()
        {
            inside = vectorize_loop(&mut e.k, v, &inside, self.vector_lanes(comp.array_shape(operands[0]).dtype));
        }
        inside = nest_loops(&windowed, inside);
        match fits {
            Some(cond) => body.push(Stmt::If { cond, body: inside }),
            None => body.extend(inside),
        }
        for u in (0..vars.len()).rev().filter(|u| !d.update_window_dims.contains(u)) {
            body = vec![for_loop(vars[u], LoopKind::Seq, body)];
        }
        e.k.flops = update_dims.iter().product();
        e.k.body = body;
        self.launch(e.k);
        Ok(())
    }

    /// Statements that read an index vector, the condition that its window fits (`None` if it always does), and the coordinates at which
    /// element `at` of the updates goes.
    fn window(
        &mut self,
        e: &mut KernelBuilder,
        indices: InstId,
        d: &ScatterDims,
        dims: &[u64],
        at: &[Index],
    ) -> Result<(Vec<Stmt>, Option<ExprId>, Vec<Index>)> {
        let index_rank = self.scope.comp.array_shape(indices).rank();
        let mut batch = (0..at.len()).filter(|u| !d.update_window_dims.contains(u)).map(|u| at[u].clone());
        let vector: Vec<Index> = (0..index_rank)
            .map(|a| if a == d.index_vector_dim { Index::default() } else { batch.next().unwrap_or_default() })
            .collect();
        let mut sizes = vec![1u64; dims.len()];
        let mut to = vec![Index::default(); dims.len()];
        let skipped = |a: &usize| d.inserted_window_dims.contains(a) || d.input_batching_dims.contains(a);
        for (a, &u) in (0..dims.len()).filter(|a| !skipped(a)).zip(&d.update_window_dims) {
            let var = &at[u];
            sizes[a] = var.range(&e.k.vars).1 as u64 + 1;
            to[a] = var.clone();
        }
        for (&a, &b) in d.input_batching_dims.iter().zip(&d.scatter_indices_batching_dims) {
            to[a] = vector[b].clone();
        }
        let (mut body, mut fits) = (Vec::new(), None);
        for (component, &axis) in d.scatter_dims_to_operand_dims.iter().enumerate() {
            let mut place = vector.clone();
            if let Some(x) = place.get_mut(d.index_vector_dim) {
                *x = Index::constant(component as i64);
            }
            let start = self.emit_element(e, indices, &place)?;
            let start = self.index_as_s64(e, start, self.scope.comp.array_shape(indices).dtype);
            let held = LocalVariable::new(&mut e.k, DType::S64);
            body.push(held.set(start));
            let last = (dims[axis] as i64 - sizes[axis] as i64).max(0);
            add_condition(&mut e.k, &mut fits, Expr::Within(held.index(), 0, last + 1));
            to[axis] = to[axis].add(&held.index().clamp_to(0, last, &e.k.vars));
        }
        Ok((body, fits, to))
    }
}
