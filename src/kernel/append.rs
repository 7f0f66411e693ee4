//! One kernel behind another in one function.
use super::{Atom, Expr, ExprId, Index, Kernel, LoopKind, RegId, Stmt, TileRows, TileSums, VarId};
use crate::util::id_vec::{Id, IdVec};

impl Kernel {
    /// Adds operation counts: operations executed, and operations of the direct method.
    pub fn add_flops(&mut self, [done, direct]: [u64; 2]) {
        self.set_direct_flops(Some(self.direct_flops().unwrap_or(self.flops) + direct));
        self.flops += done;
    }

    /// Appends `other`: its work follows this kernel's, all in one chunk. Neither may have a variable for the start of a range of chunks.
    /// The label is that of the kernel with more work; the provenance of this kernel is kept if it has one.
    pub fn append(&mut self, other: &Kernel) {
        if other.work() > self.work() {
            self.label.clone_from(&other.label);
        }
        self.all_chunks();
        let mut second = other.clone();
        second.all_chunks();
        let vars = second.vars.values().map(|&extent| self.vars.push(extent)).collect();
        let numbers = Renumbering { vars, regs: self.regs.len(), exprs: self.exprs.len() };
        second.regs.values().for_each(|&reg| _ = self.regs.push(reg));
        second.exprs.values().for_each(|e| _ = self.exprs.push(numbers.renumber_expr(e)));
        self.body.extend(second.body.iter().map(|s| numbers.renumber_stmt(s)));
        let new: Vec<String> = second.insts.into_iter().filter(|i| !self.insts.contains(i)).collect();
        self.insts.extend(new);
        self.append_provenance(other);
        self.flops = self.flops.saturating_add(other.flops);
    }

    /// Moves the loop over chunks into the body.
    fn all_chunks(&mut self) {
        if let Some(var) = self.chunks.take() {
            let body = std::mem::take(&mut self.body);
            self.body = vec![Stmt::For { var, kind: LoopKind::Seq, body }];
        }
    }
}

/// Renumbering of a kernel's variables, registers and expressions when it is appended to another kernel.
pub(super) struct Renumbering {
    /// Variables of the appended kernel, as variables of the other.
    pub vars: IdVec<VarId, VarId>,
    /// Offset that is added to register numbers.
    pub regs: usize,
    /// Offset that is added to expression numbers.
    pub exprs: usize,
}

impl Renumbering {
    fn var(&self, var: VarId) -> VarId {
        self.vars[var]
    }
    fn reg(&self, reg: RegId) -> RegId {
        RegId::from_index(reg.index() + self.regs)
    }
    fn id(&self, id: ExprId) -> ExprId {
        ExprId::from_index(id.index() + self.exprs)
    }

    fn index(&self, index: &Index) -> Index {
        let mut terms: Vec<(Atom, i64)> = index.terms.iter().map(|(atom, c)| (self.atom(atom), *c)).collect();
        terms.sort();
        Index { terms, constant: index.constant }
    }

    fn atom(&self, atom: &Atom) -> Atom {
        let inner = |x: &Index| Box::new(self.index(x));
        match atom {
            Atom::Var(v) => Atom::Var(self.var(*v)),
            Atom::Div(x, n) => Atom::Div(inner(x), *n),
            Atom::Rem(x, n) => Atom::Rem(inner(x), *n),
            Atom::Clamp(x, low, high) => Atom::Clamp(inner(x), *low, *high),
            Atom::Value(e) => Atom::Value(self.id(*e)),
        }
    }

    pub(super) fn renumber_expr(&self, expr: &Expr) -> Expr {
        match expr {
            Expr::Const(dtype, bits) => Expr::Const(*dtype, *bits),
            Expr::Load(buf, x) => Expr::Load(*buf, self.index(x)),
            Expr::Word(buf, x) => Expr::Word(*buf, self.index(x)),
            Expr::DotProduct { x, y, z, instruction } => {
                Expr::DotProduct { x: self.id(*x), y: self.id(*y), z: self.id(*z), instruction: *instruction }
            }
            Expr::Op(op, args, dtype) => Expr::Op(*op, args.iter().map(|a| self.id(*a)).collect(), *dtype),
            Expr::Number(x, dtype) => Expr::Number(self.index(x), *dtype),
            Expr::Within(x, low, high) => Expr::Within(self.index(x), *low, *high),
            Expr::Reg(reg, at) => Expr::Reg(self.reg(*reg), self.index(at)),
            Expr::Lanes(reg, at, first, count) => Expr::Lanes(self.reg(*reg), self.index(at), *first, *count),
            Expr::Fold(op, reg, at) => Expr::Fold(*op, self.reg(*reg), self.index(at)),
        }
    }

    fn tiles(&self, sums: &TileSums) -> TileSums {
        let rows = |r: &TileRows| TileRows { first: self.index(&r.first), ..*r };
        TileSums {
            loops: sums.loops.iter().map(|&v| self.var(v)).collect(),
            rows: sums.rows.iter().map(rows).collect(),
            first: self.index(&sums.first),
            at: self.index(&sums.at),
            ..*sums
        }
    }

    pub(super) fn renumber_stmt(&self, stmt: &Stmt) -> Stmt {
        let all = |body: &[Stmt]| body.iter().map(|s| self.renumber_stmt(s)).collect();
        match stmt {
            Stmt::For { var, kind, body } => Stmt::For { var: self.var(*var), kind: *kind, body: all(body) },
            Stmt::Store { buf, index, value } => {
                Stmt::Store { buf: *buf, index: self.index(index), value: self.id(*value) }
            }
            Stmt::Prefetch { buf, index } => Stmt::Prefetch { buf: *buf, index: self.index(index) },
            Stmt::Tiles(sums) => Stmt::Tiles(Box::new(self.tiles(sums))),
            Stmt::Release => Stmt::Release,
            Stmt::Set { reg, at, value } => {
                Stmt::Set { reg: self.reg(*reg), at: self.index(at), value: self.id(*value) }
            }
            Stmt::Let { var, value, body } => {
                Stmt::Let { var: self.var(*var), value: self.index(value), body: all(body) }
            }
            Stmt::If { cond, body } => Stmt::If { cond: self.id(*cond), body: all(body) },
            Stmt::While { cond, body } => Stmt::While { cond: self.id(*cond), body: all(body) },
        }
    }
}
