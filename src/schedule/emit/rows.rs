//! Row kernels: row after row, and in each row pass after pass, so that the row stays near. A pass folds what the passes
//! before it made possible: the maximum, then the sum of exponentials; the mean, then the variance. What a later pass needs
//! and is dear to compute again is kept in a buffer of one row on the stack.
use super::cut::SIDE_BY_SIDE;
use super::prelude::*;
use crate::diag::Error;
use crate::schedule::plan::fold::simple_fold;
use crate::schedule::plan::fuse::{Role, Rows, demand};
use crate::schedule::plan::passes::{Passes, passes};
use std::collections::{BTreeSet, HashMap};

/// How a row is cut into vectors.
struct Cut {
    lanes: u64,
    whole: u64,
    tail: u64,
}

impl Cut {
    fn new(columns: u64, lanes: u64) -> Cut {
        let lanes = lanes.min(columns.next_power_of_two());
        Cut { lanes, whole: columns / lanes, tail: columns % lanes }
    }
}

/// One kernel under construction.
struct Row<'p> {
    e: Elements,
    r: Rows,
    passes: &'p Passes,
    row: Index,
    cut: Cut,
    /// Buffers of kept values.
    buffers: HashMap<InstId, BufId>,
    out: Value,
    held: Option<&'p Held>,
}

/// A row whose operand and result lie in memory of the kernel.
#[derive(Clone, Debug)]
pub(in crate::schedule) struct Held {
    /// The operand, of which each element is read for the one at the same place.
    pub operand: InstId,
    /// Where its row is.
    pub from: BufId,
    /// Where the result goes; may be the same.
    pub to: BufId,
    /// The first element of the row in both.
    pub at: Index,
}

/// A reduction while its pass runs.
struct Folding {
    id: InstId,
    input: InstId,
    op: ScalarOp,
    acc: RegId,
}

/// Row after row: reductions of whole rows and all between them.
pub const FAMILY: Family = Family {
    name: "rows",
    recipe: |_, asked| Ok(asked.fused.fusion.rows[asked.id].map(Setup::Rows)),
    emit: |s, root, setup| match setup {
        Setup::Rows(rows) => s.rows(root, *rows),
        other => other.unfit(),
    },
};

impl<'a> Emitter<'a> {
    /// The kernel that fills `out` with `id`, a root with rows.
    pub(in crate::schedule) fn rows(&mut self, Root { id, out, .. }: Root<'_>, r: Rows) -> Result<()> {
        let mut e = self.elements(id);
        let row_var = e.k.var(r.rows);
        let row = if r.rows == 1 { Index::constant(0) } else { Index::var(row_var) };
        let (mut e, body) = self.row(e, (id, r, row), out, None)?;
        if r.rows > 1 {
            e.k.chunks = Some(row_var);
        }
        e.k.body = body;
        self.launch(e.k);
        Ok(())
    }

    /// What is done with row number `row` of the rows of `id`; `held` is where its operand and result lie, where those have no
    /// memory outside the kernel.
    pub(in crate::schedule) fn row(
        &mut self,
        e: Elements,
        (id, r, row): (InstId, Rows, Index),
        out: &Value,
        held: Option<&Held>,
    ) -> Result<(Elements, Vec<Stmt>)> {
        let comp = self.scope.comp;
        let widest = comp.array(id).dtype.bytes().max(4) as u64;
        let passes = passes(comp, &self.scope.fusion, id, r, r.columns * widest <= self.target.caches.l1d);
        let dtype = passes.members.iter().find(|&&m| matches!(comp[m].op, Op::Reduce { .. }));
        let lanes = self.lanes(dtype.map_or(DType::F32, |&m| comp.array(m).dtype));
        let cut = Cut::new(r.columns, lanes);
        let mut k = Row { e, r, passes: &passes, row, cut, buffers: HashMap::new(), out: out.clone(), held };
        for &m in passes.kept.keys() {
            let dtype = comp.array(m).dtype;
            k.buffers.insert(m, self.on_stack(dtype, r.columns));
        }
        let mut body = Vec::new();
        let last = passes.after(id);
        for pass in 0..=last {
            self.hoist(&mut k, pass, &mut body)?;
            self.pass(&mut k, pass, id, &mut body)?;
        }
        if self.scope.fusion.role[id] == Role::Row {
            let value = self.row_value(&mut k, id)?;
            let dims = &comp.array(id).dims;
            let at = reshape(std::slice::from_ref(&k.row), &[k.r.rows], dims, &k.e.k.vars);
            body.push(k.out.view(dims)?.store(&at, value));
        }
        let full = passes.members.iter().filter(|&&m| self.scope.fusion.role[m] == Role::Full).count() as u64;
        k.e.k.flops += r.rows * r.columns * full.max(1);
        Ok((k.e, body))
    }

    /// Element `row` of a value that has one a row.
    fn row_value(&mut self, k: &mut Row, id: InstId) -> Result<ExprId> {
        let at = reshape(std::slice::from_ref(&k.row), &[k.r.rows], &self.scope.comp.array(id).dims, &k.e.k.vars);
        self.element(&mut k.e, id, &at)
    }

    /// The element of a full value at `column` of the row.
    fn full_value(&mut self, k: &mut Row, id: InstId, column: &Index) -> Result<ExprId> {
        let dims = &self.scope.comp.array(id).dims;
        let at = reshape(&[k.row.clone(), column.clone()], &[k.r.rows, k.r.columns], dims, &k.e.k.vars);
        self.element(&mut k.e, id, &at)
    }

    /// The initial value of a reduction, as its partial results are held.
    fn initial(&mut self, k: &mut Row, reduce: InstId) -> Result<ExprId> {
        let dtype = self.scope.comp.array(reduce).dtype;
        let value = self.element(&mut k.e, self.scope.comp[reduce].operands[1], &[])?;
        Ok(convert(&mut k.e.k, value, dtype, dtype.computed()))
    }

    /// What every element of a row shares goes into registers before the pass that first can have it.
    fn hoist(&mut self, k: &mut Row, pass: usize, body: &mut Vec<Stmt>) -> Result<()> {
        let comp = self.scope.comp;
        for &m in &k.passes.members {
            let role = self.scope.fusion.role[m];
            let shared = matches!(comp[m].op, Op::Broadcast(_)) && demand(comp, m, 0, role, k.r) == Role::Row;
            if !shared || k.passes.after(m) != pass {
                continue;
            }
            let value = self.row_value(k, comp[m].operands[0])?;
            let reg = k.e.k.reg(comp.array(m).dtype, 1, 1);
            body.push(Stmt::set(reg, 0, value));
            let held = k.e.k.get(reg, 0);
            k.e.fixed.insert(m, held);
        }
        k.e.forget();
        Ok(())
    }

    /// The loops over one row.
    fn pass(&mut self, k: &mut Row, pass: usize, root: InstId, body: &mut Vec<Stmt>) -> Result<()> {
        let comp = self.scope.comp;
        let stores = self.scope.fusion.role[root] == Role::Full && pass == k.passes.after(root);
        let mut folds = Vec::new();
        let side = if k.cut.whole >= 2 * SIDE_BY_SIDE { SIDE_BY_SIDE } else { k.cut.whole.clamp(1, 2) };
        for &m in &k.passes.members {
            let Op::Reduce { comp: folder, .. } = &comp[m].op else { continue };
            if k.passes.after(m) == pass + 1 {
                let op = simple_fold(&self.module.comps[*folder]).ok_or_else(|| refuse(comp, m, ""))?;
                // sums of small floats are kept in f32
                let acc = k.e.k.reg(comp.array(m).dtype.computed(), k.cut.lanes, side);
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
                    number(&mut k.e.k, comp.array(f.id).dtype.computed(), neutral)
                }
                // folding the first value again changes nothing
                _ => self.initial(k, f.id)?,
            };
            start.extend((0..side).map(|i| Stmt::set(f.acc, i, value)));
        }
        let lane = k.e.k.var(k.cut.lanes);
        let mut inside = start;
        let rounds = k.cut.whole / side;
        if rounds > 0 {
            let round = k.e.k.var(rounds);
            let mut all = Vec::new();
            for i in 0..side {
                let vector = if rounds == 1 { Index::constant(0) } else { Index::var(round).scale(side as i64) };
                let column = vector.offset(i as i64).scale(k.cut.lanes as i64).add(&Index::var(lane));
                all.extend(self.vector(k, (pass, stores.then_some(root)), &folds, &column, (i, None))?);
            }
            inside.push(each(round, LoopKind::Seq, all));
        }
        for vector in rounds * side..k.cut.whole {
            let column = Index::constant((vector * k.cut.lanes) as i64).add(&Index::var(lane));
            let i = vector - rounds * side;
            inside.extend(self.vector(k, (pass, stores.then_some(root)), &folds, &column, (i, None))?);
        }
        body.push(each(lane, LoopKind::Vector, inside));
        if k.cut.tail > 0 {
            let lane = k.e.k.var(k.cut.lanes);
            let column = Index::constant((k.cut.whole * k.cut.lanes) as i64).add(&Index::var(lane));
            let real = k.e.k.expr(Expr::Within(Index::var(lane), 0, k.cut.tail as i64));
            let all = self.vector(k, (pass, stores.then_some(root)), &folds, &column, (0, Some(real)))?;
            body.push(each(lane, LoopKind::Masked(k.cut.tail), all));
        }
        self.finish(k, &folds, side, body)
    }

    /// What one vector of columns does in a pass: kept values, folds, the result.
    fn vector(
        &mut self,
        k: &mut Row,
        (pass, stored): (usize, Option<InstId>),
        folds: &[Folding],
        column: &Index,
        (i, real): (u64, Option<ExprId>),
    ) -> Result<Vec<Stmt>> {
        let comp = self.scope.comp;
        let mut body = Vec::new();
        k.e.forget();
        if let Some(held) = k.held {
            let value = k.e.k.load(held.from, held.at.add(column));
            k.e.fixed.insert(held.operand, value);
        }
        let made: BTreeSet<InstId> = k.passes.kept.iter().filter(|m| *m.1 == pass).map(|m| *m.0).collect();
        for (&m, &by) in &k.passes.kept {
            if by < pass {
                let buf = k.buffers[&m];
                let kept = k.e.k.load(buf, column.clone());
                k.e.fixed.insert(m, kept);
            }
        }
        let members: Vec<InstId> = k.passes.members.iter().copied().filter(|m| made.contains(m)).collect();
        for m in members {
            let value = self.full_value(k, m, column)?;
            let reg = k.e.k.reg(comp.array(m).dtype, k.cut.lanes, 1);
            body.push(Stmt::set(reg, 0, value));
            let value = k.e.k.get(reg, 0);
            k.e.fixed.insert(m, value);
            body.push(Stmt::Store { buf: k.buffers[&m], index: column.clone(), value });
        }
        for f in folds {
            let (from, dtype) = (comp.array(f.id).dtype, comp.array(f.id).dtype.computed());
            let x = self.full_value(k, f.input, column)?;
            let x = convert(&mut k.e.k, x, from, dtype);
            let at = Index::constant(i as i64);
            let old = k.e.k.expr(Expr::Reg(f.acc, at.clone()));
            let mut value = k.e.k.op(f.op, &[old, x], dtype);
            if let Some(real) = real {
                value = k.e.k.op(ScalarOp::Select, &[real, value, old], dtype);
            }
            body.push(Stmt::Set { reg: f.acc, at, value });
        }
        if let Some(root) = stored {
            let value = self.full_value(k, root, column)?;
            let dims = &comp.array(root).dims;
            let at = reshape(&[k.row.clone(), column.clone()], &[k.r.rows, k.r.columns], dims, &k.e.k.vars);
            body.push(match k.held {
                Some(held) => Stmt::Store { buf: held.to, index: held.at.add(column), value },
                None => k.out.view(dims)?.store(&at, value),
            });
        }
        for m in made {
            k.e.fixed.remove(&m);
        }
        k.e.forget();
        Ok(body)
    }

    /// Side-by-side vectors become one, its lanes one number, in a fixed tree; the initial value comes first.
    fn finish(&mut self, k: &mut Row, folds: &[Folding], side: u64, body: &mut Vec<Stmt>) -> Result<()> {
        let comp = self.scope.comp;
        let lane: VarId = k.e.k.var(k.cut.lanes);
        let mut joined = Vec::new();
        for f in folds {
            let dtype = comp.array(f.id).dtype.computed();
            let mut width = side;
            while width > 1 {
                let half = width / 2;
                for i in 0..half {
                    let (low, high) = (Index::constant(i as i64), Index::constant((i + half) as i64));
                    let (a, b) = (Expr::Reg(f.acc, low.clone()), Expr::Reg(f.acc, high));
                    let (a, b) = (k.e.k.expr(a), k.e.k.expr(b));
                    let value = k.e.k.op(f.op, &[a, b], dtype);
                    joined.push(Stmt::Set { reg: f.acc, at: low, value });
                }
                width = half;
            }
        }
        if !joined.is_empty() {
            body.push(each(lane, LoopKind::Vector, joined));
        }
        for f in folds {
            let dtype = comp.array(f.id).dtype;
            let all = k.e.k.expr(Expr::Fold(f.op, f.acc, Index::constant(0)));
            let init = self.initial(k, f.id)?;
            let value = k.e.k.op(f.op, &[init, all], dtype.computed());
            let value = convert(&mut k.e.k, value, dtype.computed(), dtype);
            let reg = k.e.k.reg(dtype, 1, 1);
            body.push(Stmt::set(reg, 0, value));
            let result = k.e.k.get(reg, 0);
            if k.e.fixed.insert(f.id, result).is_some() {
                return Err(Error::internal("schedule", "a reduction is folded twice"));
            }
        }
        k.e.forget();
        Ok(())
    }
}
