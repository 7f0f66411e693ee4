//! Loops of row kernels.
use super::passes::{RowPasses, plan_passes};
use crate::diag::Error;
use crate::schedule::loops::prelude::*;
use crate::schedule::loops::vectors::SIDE_BY_SIDE;
use crate::schedule::plan::fold::associative_op;
use crate::schedule::plan::fuse::{RowRole, RowShape, operand_role};
use std::collections::{BTreeSet, HashMap};

/// The columns of a row as full vectors and a tail.
struct ColumnSplit {
    lanes: u64,
    whole: u64,
    tail: u64,
}

impl ColumnSplit {
    fn new(columns: u64, lanes: u64) -> ColumnSplit {
        let lanes = lanes.min(columns.next_power_of_two());
        ColumnSplit { lanes, whole: columns / lanes, tail: columns % lanes }
    }
}

/// A row kernel under construction.
struct RowKernel<'p> {
    e: KernelBuilder,
    r: RowShape,
    passes: &'p RowPasses,
    row: Index,
    cut: ColumnSplit,
    /// The buffer of each value that is kept for later passes.
    buffers: HashMap<InstId, BufId>,
    out: ValueBuffers,
    held: Option<&'p RowBuffers>,
}

/// A row whose operand and result are in local buffers of a larger kernel.
#[derive(Clone, Debug)]
pub(in crate::schedule) struct RowBuffers {
    /// The operand; each element of the result depends on the operand's element at the same position.
    pub operand: InstId,
    /// The buffer with the operand's row.
    pub from: BufId,
    /// The buffer for the row of the result; may be the operand's.
    pub to: BufId,
    /// The position of the row's first element in both buffers.
    pub at: Index,
}

/// The position of a vector of columns in a row.
struct VectorNumber {
    /// Number of the vector in its loop.
    i: u64,
    /// Condition that a lane holds an element of the row; `None` if all lanes do.
    real: Option<ExprId>,
}

/// A row reduction while its pass is emitted.
struct Folding {
    id: InstId,
    input: InstId,
    op: ScalarOp,
    acc: RegId,
}

/// The family of row kernels: reductions of whole rows and everything computed between them.
pub const FAMILY: Family = Family {
    name: "rows",
    recipe: |_, request| Ok(request.fused.fusion.rows[request.id].map(RecipeSetup::Rows)),
    emit: |s, root, setup| match setup {
        RecipeSetup::Rows(rows) => s.emit_row_kernel(root, *rows),
        other => other.wrong_family_error(),
    },
};

impl<'a> Emitter<'a> {
    /// Emits the row kernel that fills `out` with root `id`.
    pub(in crate::schedule) fn emit_row_kernel(
        &mut self,
        KernelRoot { id, out, .. }: KernelRoot<'_>,
        r: RowShape,
    ) -> Result<()> {
        let mut e = self.start_kernel(id);
        let row_var = e.k.add_var(r.rows);
        let row = if r.rows == 1 { Index::constant(0) } else { Index::var(row_var) };
        let (mut e, body) = self.emit_kernel_row(e, id, r, row, out, None)?;
        if r.rows > 1 {
            e.k.chunks = Some(row_var);
        }
        e.k.body = body;
        self.launch(e.k);
        Ok(())
    }

    /// Emits row number `row` of root `id`; `held` has the buffers of operand and result if these are local to the kernel.
    pub(in crate::schedule) fn emit_kernel_row(
        &mut self,
        e: KernelBuilder,
        id: InstId,
        r: RowShape,
        row: Index,
        out: &ValueBuffers,
        held: Option<&RowBuffers>,
    ) -> Result<(KernelBuilder, Vec<Stmt>)> {
        let comp = self.scope.comp;
        let widest = comp.array_shape(id).dtype.bytes().max(4) as u64;
        let passes =
            plan_passes(comp, &self.scope.fusion, id, r, r.columns * widest <= self.target.machine().caches.l1d);
        let dtype = passes.members.iter().find(|&&m| matches!(comp[m].op, Op::Reduce { .. }));
        let lanes = self.vector_lanes(dtype.map_or(DType::F32, |&m| comp.array_shape(m).dtype));
        let cut = ColumnSplit::new(r.columns, lanes);
        let mut k = RowKernel { e, r, passes: &passes, row, cut, buffers: HashMap::new(), out: out.clone(), held };
        for &m in passes.kept.keys() {
            let dtype = comp.array_shape(m).dtype;
            k.buffers.insert(m, self.allocate_on_stack(dtype, r.columns));
        }
        let mut body = Vec::new();
        let last = passes.passes_before(id);
        for pass in 0..=last {
            self.hoist_shared_values(&mut k, pass, &mut body)?;
            self.pass(&mut k, pass, id, &mut body)?;
        }
        if self.scope.fusion.role[id] == RowRole::Row {
            let value = self.row_value(&mut k, id)?;
            let dims = &comp.array_shape(id).dims;
            let at = reshape_coordinates(std::slice::from_ref(&k.row), &[k.r.rows], dims, &k.e.k.vars);
            body.push(k.out.view(dims)?.store(&at, value));
        }
        let full = passes.members.iter().filter(|&&m| self.scope.fusion.role[m] == RowRole::Full).count() as u64;
        k.e.k.flops += r.rows * r.columns * full.max(1);
        Ok((k.e, body))
    }

    /// Value for the current row of member `id`, which has one value per row.
    fn row_value(&mut self, k: &mut RowKernel, id: InstId) -> Result<ExprId> {
        let at = reshape_coordinates(
            std::slice::from_ref(&k.row),
            &[k.r.rows],
            &self.scope.comp.array_shape(id).dims,
            &k.e.k.vars,
        );
        self.emit_element(&mut k.e, id, &at)
    }

    /// Element in `column` of the current row of member `id`, which has a value for each column.
    fn full_value(&mut self, k: &mut RowKernel, id: InstId, column: &Index) -> Result<ExprId> {
        let dims = &self.scope.comp.array_shape(id).dims;
        let at = reshape_coordinates(&[k.row.clone(), column.clone()], &[k.r.rows, k.r.columns], dims, &k.e.k.vars);
        self.emit_element(&mut k.e, id, &at)
    }

    /// The initial value of a reduction, in the type of its partial results.
    fn initial_value(&mut self, k: &mut RowKernel, reduce: InstId) -> Result<ExprId> {
        let dtype = self.scope.comp.array_shape(reduce).dtype;
        let value = self.emit_element(&mut k.e, self.scope.comp[reduce].operands[1], &[])?;
        Ok(convert(&mut k.e.k, value, dtype, dtype.compute_type()))
    }

    /// Computes values that are the same for all columns of a row into registers, before the first pass for which their operands are
    /// complete.
    fn hoist_shared_values(&mut self, k: &mut RowKernel, pass: usize, body: &mut Vec<Stmt>) -> Result<()> {
        let comp = self.scope.comp;
        for &m in &k.passes.members {
            let role = self.scope.fusion.role[m];
            let shared = matches!(comp[m].op, Op::Broadcast(_)) && operand_role(comp, m, 0, role, k.r) == RowRole::Row;
            if !shared || k.passes.passes_before(m) != pass {
                continue;
            }
            let value = self.row_value(k, comp[m].operands[0])?;
            let reg = k.e.k.add_reg(comp.array_shape(m).dtype, 1, 1);
            body.push(Stmt::set(reg, 0, value));
            let held = k.e.k.read_reg(reg, 0);
            k.e.fixed.insert(m, held);
        }
        k.e.forget_elements();
        Ok(())
    }

    /// Emits the loops of one pass over a row.
    fn pass(&mut self, k: &mut RowKernel, pass: usize, root: InstId, body: &mut Vec<Stmt>) -> Result<()> {
        let comp = self.scope.comp;
        let stores = self.scope.fusion.role[root] == RowRole::Full && pass == k.passes.passes_before(root);
        let mut folds = Vec::new();
        let side = if k.cut.whole >= 2 * SIDE_BY_SIDE { SIDE_BY_SIDE } else { k.cut.whole.clamp(1, 2) };
        for &m in &k.passes.members {
            let Op::Reduce { comp: folder, .. } = &comp[m].op else { continue };
            if k.passes.passes_before(m) == pass + 1 {
                let op = associative_op(&self.module.comps[*folder]).ok_or_else(|| unsupported_error(comp, m, ""))?;
                // sums of small floats are kept in f32
                let acc = k.e.k.add_reg(comp.array_shape(m).dtype.compute_type(), k.cut.lanes, side);
                folds.push(Folding { id: m, input: comp[m].operands[0], op, acc });
            }
        }
        if folds.is_empty() && !stores {
            return Ok(());
        }
        let mut start = Vec::new();
        for f in &folds {
            let value = match f.op {
                ScalarOp::Add | ScalarOp::Multiply => {
                    let neutral = if f.op == ScalarOp::Add { 0.0 } else { 1.0 };
                    constant_of_number(&mut k.e.k, comp.array_shape(f.id).dtype.compute_type(), neutral)
                }
                // folding the first value again changes nothing
                _ => self.initial_value(k, f.id)?,
            };
            start.extend((0..side).map(|i| Stmt::set(f.acc, i, value)));
        }
        let lane = k.e.k.add_var(k.cut.lanes);
        let mut inside = start;
        let rounds = k.cut.whole / side;
        if rounds > 0 {
            let round = k.e.k.add_var(rounds);
            let mut all = Vec::new();
            for i in 0..side {
                let vector = if rounds == 1 { Index::constant(0) } else { Index::var(round).scale(side as i64) };
                let column = vector.offset(i as i64).scale(k.cut.lanes as i64).add(&Index::var(lane));
                all.extend(self.emit_vector(
                    k,
                    pass,
                    stores.then_some(root),
                    &folds,
                    &column,
                    VectorNumber { i, real: None },
                )?);
            }
            inside.push(for_loop(round, LoopKind::Seq, all));
        }
        for vector in rounds * side..k.cut.whole {
            let column = Index::constant((vector * k.cut.lanes) as i64).add(&Index::var(lane));
            let i = vector - rounds * side;
            inside.extend(self.emit_vector(
                k,
                pass,
                stores.then_some(root),
                &folds,
                &column,
                VectorNumber { i, real: None },
            )?);
        }
        body.push(for_loop(lane, LoopKind::Vector, inside));
        if k.cut.tail > 0 {
            let lane = k.e.k.add_var(k.cut.lanes);
            let column = Index::constant((k.cut.whole * k.cut.lanes) as i64).add(&Index::var(lane));
            let real = k.e.k.add_expr(Expr::Within(Index::var(lane), 0, k.cut.tail as i64));
            let all = self.emit_vector(
                k,
                pass,
                stores.then_some(root),
                &folds,
                &column,
                VectorNumber { i: 0, real: Some(real) },
            )?;
            body.push(for_loop(lane, LoopKind::Masked(k.cut.tail), all));
        }
        self.combine_partial_results(k, &folds, side, body)
    }

    /// Emits one vector of columns of a pass: kept values, reductions, the result.
    fn emit_vector(
        &mut self,
        k: &mut RowKernel,
        pass: usize,
        stored: Option<InstId>,
        folds: &[Folding],
        column: &Index,
        VectorNumber { i, real }: VectorNumber,
    ) -> Result<Vec<Stmt>> {
        let comp = self.scope.comp;
        let mut body = Vec::new();
        k.e.forget_elements();
        if let Some(held) = k.held {
            let value = k.e.k.add_load(held.from, held.at.add(column));
            k.e.fixed.insert(held.operand, value);
        }
        let made: BTreeSet<InstId> = k.passes.kept.iter().filter(|m| *m.1 == pass).map(|m| *m.0).collect();
        for (&m, &by) in &k.passes.kept {
            if by < pass {
                let buf = k.buffers[&m];
                let kept = k.e.k.add_load(buf, column.clone());
                k.e.fixed.insert(m, kept);
            }
        }
        let members: Vec<InstId> = k.passes.members.iter().copied().filter(|m| made.contains(m)).collect();
        for m in members {
            let value = self.full_value(k, m, column)?;
            let reg = k.e.k.add_reg(comp.array_shape(m).dtype, k.cut.lanes, 1);
            body.push(Stmt::set(reg, 0, value));
            let value = k.e.k.read_reg(reg, 0);
            k.e.fixed.insert(m, value);
            body.push(Stmt::Store { buf: k.buffers[&m], index: column.clone(), value });
        }
        for f in folds {
            let (from, dtype) = (comp.array_shape(f.id).dtype, comp.array_shape(f.id).dtype.compute_type());
            let x = self.full_value(k, f.input, column)?;
            let x = convert(&mut k.e.k, x, from, dtype);
            let at = Index::constant(i as i64);
            let old = k.e.k.add_expr(Expr::Reg(f.acc, at.clone()));
            let mut value = k.e.k.add_op(f.op, &[old, x], dtype);
            if let Some(real) = real {
                value = k.e.k.add_op(ScalarOp::Select, &[real, value, old], dtype);
            }
            body.push(Stmt::Set { reg: f.acc, at, value });
        }
        if let Some(root) = stored {
            let value = self.full_value(k, root, column)?;
            let dims = &comp.array_shape(root).dims;
            let at = reshape_coordinates(&[k.row.clone(), column.clone()], &[k.r.rows, k.r.columns], dims, &k.e.k.vars);
            body.push(match k.held {
                Some(held) => Stmt::Store { buf: held.to, index: held.at.add(column), value },
                None => k.out.view(dims)?.store(&at, value),
            });
        }
        for m in made {
            k.e.fixed.remove(&m);
        }
        k.e.forget_elements();
        Ok(body)
    }

    /// Combines the partial results of each reduction in a fixed tree, vectors first and then lanes, together with the initial value.
    fn combine_partial_results(
        &mut self,
        k: &mut RowKernel,
        folds: &[Folding],
        side: u64,
        body: &mut Vec<Stmt>,
    ) -> Result<()> {
        let comp = self.scope.comp;
        let lane: VarId = k.e.k.add_var(k.cut.lanes);
        let mut joined = Vec::new();
        for f in folds {
            let dtype = comp.array_shape(f.id).dtype.compute_type();
            let mut width = side;
            while width > 1 {
                let half = width / 2;
                for i in 0..half {
                    let (low, high) = (Index::constant(i as i64), Index::constant((i + half) as i64));
                    let (a, b) = (Expr::Reg(f.acc, low.clone()), Expr::Reg(f.acc, high));
                    let (a, b) = (k.e.k.add_expr(a), k.e.k.add_expr(b));
                    let value = k.e.k.add_op(f.op, &[a, b], dtype);
                    joined.push(Stmt::Set { reg: f.acc, at: low, value });
                }
                width = half;
            }
        }
        if !joined.is_empty() {
            body.push(for_loop(lane, LoopKind::Vector, joined));
        }
        for f in folds {
            let dtype = comp.array_shape(f.id).dtype;
            let all = k.e.k.add_expr(Expr::Fold(f.op, f.acc, Index::constant(0)));
            let init = self.initial_value(k, f.id)?;
            let value = k.e.k.add_op(f.op, &[init, all], dtype.compute_type());
            let value = convert(&mut k.e.k, value, dtype.compute_type(), dtype);
            let reg = k.e.k.add_reg(dtype, 1, 1);
            body.push(Stmt::set(reg, 0, value));
            let result = k.e.k.read_reg(reg, 0);
            if k.e.fixed.insert(f.id, result).is_some() {
                return Err(Error::internal("schedule", "a reduction is folded twice"));
            }
        }
        k.e.forget_elements();
        Ok(())
    }
}
