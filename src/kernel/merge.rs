//! Two kernels that go through the same elements in the same loops as one, which reads what both read once.
use super::append::Renumbering;
use super::index::Atom;
use super::{BufId, Expr, ExprId, Index, Kernel, Stmt, VarId};
use crate::util::id_vec::IdVec;
use std::collections::BTreeSet;

/// Upper limit of expressions in a merged kernel.
const MOST_EXPRESSIONS: usize = 256;

impl Kernel {
    /// Merges two kernels into one that does for each element first the work of `self`, then that of `other`; `None` unless both are the
    /// same loops around stores alone, and access the same element in an iteration of every buffer that one writes and the other
    /// accesses.
    pub fn merge_with(&self, other: &Kernel) -> Option<Kernel> {
        let fits = self.exprs.len() + other.exprs.len() <= MOST_EXPRESSIONS;
        if !fits || !self.is_loops_of_stores() || !other.is_loops_of_stores() {
            return None;
        }
        let mut vars: IdVec<VarId, Option<VarId>> = other.vars.values().map(|_| None).collect();
        match (self.chunks, other.chunks) {
            (Some(x), Some(y)) => same_variable(self, other, x, y, &mut vars)?,
            (None, None) => {}
            _ => return None,
        }
        same_loops(self, other, &self.body, &other.body, &mut vars)?;
        let mut out = self.clone();
        // a variable that no loop has stays one that none has
        let vars = other.vars.iter().map(|(v, &extent)| vars[v].unwrap_or_else(|| out.vars.push(extent))).collect();
        let numbers = Renumbering { vars, regs: 0, exprs: self.exprs.len() };
        other.exprs.values().for_each(|e| _ = out.exprs.push(numbers.renumber_expr(e)));
        let second: Vec<Stmt> = other.body.iter().map(|s| numbers.renumber_stmt(s)).collect();
        let open: Vec<VarId> = self.chunks.into_iter().collect();
        out.body = merge_bodies(&out, &self.body, &second, &open)?;
        if other.work() > self.work() {
            out.label.clone_from(&other.label);
        }
        out.insts.extend(other.insts.iter().filter(|i| !self.insts.contains(i)).cloned());
        out.flops = self.flops.saturating_add(other.flops);
        Some(out)
    }

    fn is_loops_of_stores(&self) -> bool {
        let is_plain = self.regs.is_empty() && self.range.is_none() && self.limit.is_none() && self.streamed.is_none();
        is_plain && self.provenance.is_none()
    }
}

/// Maps variable `y` of the second kernel to `x` of the first, if their extents are equal.
fn same_variable(
    first: &Kernel,
    second: &Kernel,
    x: VarId,
    y: VarId,
    vars: &mut IdVec<VarId, Option<VarId>>,
) -> Option<()> {
    let is_free = vars[y].is_none_or(|known| known == x);
    (is_free && first.vars[x] == second.vars[y]).then(|| vars[y] = Some(x))
}

/// Whether both kernels have the same loops around stores; also maps the variables of the second to those of the first.
fn same_loops(
    first: &Kernel,
    second: &Kernel,
    x: &[Stmt],
    y: &[Stmt],
    vars: &mut IdVec<VarId, Option<VarId>>,
) -> Option<()> {
    let is_store = |s: &Stmt| matches!(s, Stmt::Store { .. });
    if x.iter().chain(y).all(is_store) {
        return Some(());
    }
    if x.len() != y.len() {
        return None;
    }
    for pair in x.iter().zip(y) {
        let (Stmt::For { var: a, kind: x_kind, body: x }, Stmt::For { var: b, kind: y_kind, body: y }) = pair else {
            return None;
        };
        if x_kind != y_kind {
            return None;
        }
        same_variable(first, second, *a, *b, vars)?;
        same_loops(first, second, x, y, vars)?;
    }
    Some(())
}

/// Merges two bodies inside the loops `open`; `None` if their order would matter.
fn merge_bodies(kernel: &Kernel, x: &[Stmt], y: &[Stmt], open: &[VarId]) -> Option<Vec<Stmt>> {
    let of_loops = |pair: (&Stmt, &Stmt)| match pair {
        (Stmt::For { var, kind, body: x }, Stmt::For { body: y, .. }) => {
            let body = merge_bodies(kernel, x, y, &[open, &[*var]].concat())?;
            Some(Stmt::For { var: *var, kind: *kind, body })
        }
        _ => None,
    };
    if matches!(x.first(), Some(Stmt::For { .. })) {
        return x.iter().zip(y).map(of_loops).collect();
    }
    let (first, second) = (accessed_elements(kernel, x), accessed_elements(kernel, y));
    let runs = |var: &&VarId| kernel.vars[**var] > 1;
    for write in first.iter().chain(&second).filter(|t| t.is_written) {
        // each round has an element of its own
        if !open.iter().filter(runs).all(|&var| depends_on(&write.index, var)) {
            return None;
        }
        let others = if first.contains(write) { &second } else { &first };
        if others.iter().any(|other| other.buf == write.buf && other.index != write.index) {
            return None;
        }
    }
    Some(x.iter().chain(y).cloned().collect())
}

/// An element that an iteration reads or writes.
#[derive(Clone, PartialEq, Eq)]
struct ElementAccess {
    buf: BufId,
    index: Index,
    is_written: bool,
}

/// The elements that stores write and that the stored values read.
fn accessed_elements(kernel: &Kernel, stores: &[Stmt]) -> Vec<ElementAccess> {
    let mut all = Vec::new();
    let (mut open, mut seen): (Vec<ExprId>, BTreeSet<ExprId>) = (Vec::new(), BTreeSet::new());
    for stmt in stores {
        let Stmt::Store { buf, index, value } = stmt else { continue };
        all.push(ElementAccess { buf: *buf, index: index.clone(), is_written: true });
        open.push(*value);
        values(index, &mut open);
    }
    while let Some(id) = open.pop() {
        if !seen.insert(id) {
            continue;
        }
        let expr = &kernel.exprs[id];
        if let Expr::Load(buf, index) | Expr::Word(buf, index) = expr {
            all.push(ElementAccess { buf: *buf, index: index.clone(), is_written: false });
        }
        match expr {
            Expr::Op(_, args, _) => open.extend(args),
            Expr::DotProduct { x, y, z, .. } => open.extend([x, y, z]),
            _ => {}
        }
        expr.index().into_iter().for_each(|index| values(index, &mut open));
    }
    all
}

/// The run-time expressions in an index.
fn values(index: &Index, out: &mut Vec<ExprId>) {
    for (atom, _) in &index.terms {
        match atom {
            Atom::Value(e) => out.push(*e),
            Atom::Div(x, _) | Atom::Rem(x, _) | Atom::Clamp(x, ..) => values(x, out),
            Atom::Var(_) => {}
        }
    }
}

/// Whether a variable is a term of an index.
fn depends_on(index: &Index, var: VarId) -> bool {
    index.terms.iter().any(|(atom, _)| *atom == Atom::Var(var))
}
