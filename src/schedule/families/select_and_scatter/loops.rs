//! Loops of `select-and-scatter` element by element, tap after tap.
use crate::schedule::families::select_and_scatter::recipe::{SelectMethod, WindowGeometry};
use crate::schedule::loops::prelude::*;
use crate::schedule::loops::scalar_loops::{LocalVariable, set_nested_body};

/// The family of `select-and-scatter`.
pub const FAMILY: Family = Family {
    name: "select-and-scatter",
    recipe: |_, request| Ok(SelectMethod::choose(request).map(RecipeSetup::SelectMethod)),
    emit: |s, root, setup| match setup {
        RecipeSetup::SelectMethod(selected) => s.select_and_scatter(root, *selected),
        other => other.wrong_family_error(),
    },
};

impl<'a> Emitter<'a> {
    /// Emits a `select-and-scatter`: the result starts as `init`, and each window selects the element that wins against every later one.
    fn select_and_scatter(&mut self, root: KernelRoot<'_>, selected: SelectMethod) -> Result<()> {
        let KernelRoot { id, out, .. } = root;
        let comp = self.scope.comp;
        let Op::SelectAndScatter { window, select, scatter } = &comp[id].op else {
            return Err(unsupported_error(comp, id, ""));
        };
        let [x, source, init] = comp[id].operands[..] else { return Err(unsupported_error(comp, id, "")) };
        let (dims, source_dims) = (&comp.array_shape(x).dims, &comp.array_shape(source).dims);
        let windows = WindowGeometry { window, dims, counts: source_dims };
        match selected {
            SelectMethod::Apart { covers } => {
                return self.emit_disjoint_windows(root, &windows, *select, *scatter, covers);
            }
            SelectMethod::Gathered => return self.gather_windows(root, &windows, *select, *scatter),
            SelectMethod::TapByTap => {}
        }
        self.emit_splat(id, init, dims, out)?;
        if dims.contains(&0) || source_dims.contains(&0) {
            return Ok(());
        }
        let mut e = self.start_kernel(id);
        let (vars, at) = loop_variables(&mut e.k, source_dims);
        let (taps, from, inside) = crate::schedule::loops::window::window_taps(&mut e.k, window, dims, &at);
        let buf = out.dense_buffer()?;
        let found = LocalVariable::new(&mut e.k, DType::Pred);
        let best = LocalVariable::new(&mut e.k, comp.array_shape(x).dtype);
        let candidate = LocalVariable::new(&mut e.k, comp.array_shape(x).dtype);
        let place = LocalVariable::new(&mut e.k, DType::S64);
        let (no, yes) = (e.k.add_expr(Expr::Const(DType::Pred, 0)), e.k.add_expr(Expr::Const(DType::Pred, 1)));
        let value = self.emit_element(&mut e, x, &from)?;
        let keep = self.inline_computation(&mut e, *select, &[best.value, candidate.value])?[0];
        let keep = logical_and(&mut e.k, found.value, keep);
        let replace = logical_not(&mut e.k, keep);
        let taken =
            vec![best.set(candidate.value), place.set_to_index(&mut e.k, &linear_index(&from, dims)), found.set(yes)];
        let mut tap = vec![candidate.set(value), Stmt::If { cond: replace, body: taken }];
        if let Some(cond) = inside {
            tap = vec![Stmt::If { cond, body: tap }];
        }
        tap = nest_loops(&taps, tap);
        let index = place.index().clamp_to(0, dims.iter().product::<u64>() as i64 - 1, &e.k.vars);
        let old = e.k.add_load(buf, index.clone());
        let new = self.emit_element(&mut e, source, &at)?;
        let value = self.inline_computation(&mut e, *scatter, &[old, new])?[0];
        let mut body = vec![found.set(no)];
        body.extend(tap);
        body.push(Stmt::If { cond: found.value, body: vec![Stmt::Store { buf, index, value }] });
        // Windows that share elements run one after another; the other dimensions are apart.
        let (free, shared): (Vec<usize>, Vec<usize>) = (0..vars.len()).partition(|&d| window[d].is_identity());
        for &d in shared.iter().rev() {
            body = vec![for_loop(vars[d], LoopKind::Seq, body)];
        }
        let free: Vec<VarId> = free.into_iter().map(|d| vars[d]).collect();
        e.k.flops = source_dims.iter().product::<u64>() * taps.iter().map(|&v| e.k.vars[v]).product::<u64>();
        set_nested_body(&mut e.k, &free, body);
        self.launch(e.k);
        Ok(())
    }
}
