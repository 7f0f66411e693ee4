//! Rules of one kernel: k1 to k8.
use super::Fault;
use crate::kernel::index::Extents;
use crate::kernel::{
    Atom, BufId, BufferLocation, Expr, ExprId, Index, Kernel, LoopKind, Program, RegId, Stmt, VarId, dot_sum_type,
};
use crate::scalar::ScalarOp;
use crate::tensor::DType;
use crate::util::id_vec::Id;

/// Checks one kernel.
pub fn check_kernel(program: &Program, kernel: &Kernel) -> Result<(), Fault> {
    let mut c = BodyVerifier {
        program,
        kernel,
        types: Vec::with_capacity(kernel.exprs.len()),
        sound: vec![false; kernel.exprs.len()],
        open: vec![None; kernel.vars.len()],
        lane: None,
        extents: kernel.vars.clone(),
        seen: vec![0; kernel.exprs.len()],
        round: 0,
    };
    for (id, expr) in kernel.exprs.iter() {
        c.check_order(id, expr)?;
        let dtype = c.type_of(expr)?;
        c.types.push(dtype);
    }
    for var in kernel.range.into_iter().flatten() {
        c.open[var.index()] = Some(LoopKind::Seq);
    }
    match kernel.chunks {
        Some(var) => c.body_of(var, LoopKind::Seq, &kernel.body),
        None => c.stmts(&kernel.body),
    }
}

pub(super) struct BodyVerifier<'a> {
    pub(super) program: &'a Program,
    pub(super) kernel: &'a Kernel,
    types: Vec<DType>,
    /// Expressions whose own indices are known to be in bounds.
    sound: Vec<bool>,
    /// The open loops, by variable.
    pub(super) open: Vec<Option<LoopKind>>,
    pub(super) lane: Option<(VarId, u64)>,
    /// The extents of the variables; in a masked loop, its elements.
    extents: Extents,
    /// The last statement for which each expression was visited.
    seen: Vec<usize>,
    round: usize,
}

impl<'a> BodyVerifier<'a> {
    /// Checks rule k1: operands come before their expression.
    fn check_order(&self, id: ExprId, expr: &Expr) -> Result<(), Fault> {
        let mut bad = None;
        for_each_operand(expr, &mut |e| {
            if e >= id {
                bad = Some(e);
            }
        });
        if let Some(e) = bad {
            return Err(format!("k1: expression {} reads {}, which is made later", id.0, e.0));
        }
        let reg = |r: RegId| r.index() < self.kernel.regs.len();
        let there = match expr {
            Expr::Load(b, _) | Expr::Word(b, _) => b.index() < self.program.buffers.len(),
            Expr::Reg(r, _) | Expr::Lanes(r, _, _, _) | Expr::Fold(_, r, _) => reg(*r),
            Expr::Const(..) | Expr::Op(..) | Expr::DotProduct { .. } | Expr::Number(..) | Expr::Within(..) => true,
        };
        if there { Ok(()) } else { Err(format!("k1: expression {} reads what is not there", id.0)) }
    }

    /// Checks rule k4 and returns the type of an expression.
    fn type_of(&self, expr: &Expr) -> Result<DType, Fault> {
        let reg = |r: RegId| self.kernel.regs[r].dtype;
        Ok(match expr {
            Expr::Const(t, _) | Expr::Number(_, t) => *t,
            Expr::Load(b, _) => self.program.buffers[*b].dtype,
            Expr::Word(b, _) => match self.program.buffers[*b].dtype {
                DType::BF16 | DType::S8 | DType::U8 | DType::S16 => DType::U32,
                other => return Err(format!("k4: a word of {other}")),
            },
            Expr::DotProduct { instruction, x, y, z } => match [x, y, z].map(|a| self.types[a.index()]) {
                [DType::U32, DType::U32, sum] if sum == dot_sum_type(*instruction) => sum,
                types => return Err(format!("k4: dot-product of {types:?}")),
            },
            Expr::Within(..) => DType::Pred,
            Expr::Reg(r, _) | Expr::Lanes(r, _, _, _) | Expr::Fold(_, r, _) => reg(*r),
            Expr::Op(op, args, dtype) => {
                let types: Vec<DType> = args.iter().map(|a| self.types[a.index()]).collect();
                let alike = if *op == ScalarOp::Select { types.get(1..).unwrap_or_default() } else { &types };
                let select = *op != ScalarOp::Select || types.first() == Some(&DType::Pred);
                let fits = types.len() == op.arity() && alike.windows(2).all(|w| w[0] == w[1]) && select;
                if !fits || op.result(&types) != *dtype {
                    return Err(format!("k4: {} of {types:?} gives {dtype}", op.name()));
                }
                *dtype
            }
        })
    }

    fn stmts(&mut self, all: &[Stmt]) -> Result<(), Fault> {
        all.iter().try_for_each(|s| self.check_stmt(s))
    }

    fn check_stmt(&mut self, stmt: &Stmt) -> Result<(), Fault> {
        self.round += 1;
        match stmt {
            Stmt::For { var, kind, body } => self.body_of(*var, *kind, body),
            Stmt::Store { buf, index, value } => {
                self.value(*value)?;
                self.check_index(index)?;
                self.check_bounds(*buf, index)?;
                self.check_storable(*buf)?;
                self.check_dtype(self.program.buffers[*buf].dtype, *value, &format!("b{}", buf.0))
            }
            Stmt::Prefetch { index, .. } => self.check_index(index),
            Stmt::Tiles(sums) => self.check_tiles(sums),
            Stmt::Release => Ok(()),
            Stmt::Set { reg, at, value } => {
                self.value(*value)?;
                self.check_register(*reg, at)?;
                let info = self.kernel.regs[*reg];
                if info.lanes == 1 && self.varies(*value) {
                    return Err(format!("k7: r{} has one lane and gets a vector", reg.0));
                }
                self.check_dtype(info.dtype, *value, &format!("r{}", reg.0))
            }
            Stmt::Let { var, value, body } => {
                self.check_index(value)?;
                let most = self.kernel.vars[*var].max(1) as i64 - 1;
                let inside = |(low, high): (i64, i64)| low >= 0 && high <= most;
                if !inside(value.range(&self.extents)) && !exact_range(value, &self.extents).is_some_and(inside) {
                    return Err(format!("k2: v{} gets {value:?}, which is not in 0..={most}", var.0));
                }
                if self.lane.is_some_and(|l| value.depends_on(l.0, &|e| self.varies(e))) {
                    return Err(format!("k7: v{} gets a value that differs from lane to lane", var.0));
                }
                self.body_of(*var, LoopKind::Seq, body)
            }
            Stmt::If { cond, body } | Stmt::While { cond, body } => {
                self.value(*cond)?;
                if self.types[cond.index()] != DType::Pred || self.varies(*cond) {
                    return Err("k5: a condition is no `pred` of one lane".to_string());
                }
                self.stmts(body)
            }
        }
    }

    fn body_of(&mut self, var: VarId, kind: LoopKind, body: &[Stmt]) -> Result<(), Fault> {
        if self.open[var.index()].is_some() {
            return Err(format!("k2: a loop over v{} stands inside itself", var.0));
        }
        let lanes = self.kernel.vars[var];
        if let LoopKind::Masked(valid) = kind {
            if valid == 0 || valid > lanes || lanes < 2 {
                return Err(format!("k7: {valid} of the {lanes} lanes of v{} are elements", var.0));
            }
            self.extents[var] = valid;
        }
        let vector = kind != LoopKind::Seq && kind != LoopKind::Unroll && lanes > 1;
        if vector && self.lane.is_some() {
            return Err(format!("k7: the vector loop over v{} stands inside another", var.0));
        }
        self.open[var.index()] = Some(kind);
        if vector {
            self.lane = Some((var, lanes));
        }
        self.stmts(body)?;
        self.extents[var] = lanes;
        self.open[var.index()] = None;
        if vector {
            self.lane = None;
        }
        Ok(())
    }

    /// Checks rule k8: the buffer may be stored to.
    pub(super) fn check_storable(&self, buf: BufId) -> Result<(), Fault> {
        match self.program.buffers[buf].place {
            BufferLocation::Arg(_) | BufferLocation::Weights(_) => Err(format!("k8: b{} is stored to", buf.0)),
            BufferLocation::State(at) if !self.program.state.iter().any(|v| v.offset == at && v.changed) => {
                Err(format!("k13: b{} is stored to, and no call changes it", buf.0))
            }
            BufferLocation::State(_)
            | BufferLocation::Result(_)
            | BufferLocation::Workspace(_)
            | BufferLocation::Stack => Ok(()),
        }
    }

    fn check_dtype(&self, want: DType, value: ExprId, place: &str) -> Result<(), Fault> {
        let got = self.types[value.index()];
        if got == want { Ok(()) } else { Err(format!("k4: {place} of {want} gets {got}")) }
    }

    /// Checks an expression and everything it is computed from.
    fn value(&mut self, id: ExprId) -> Result<(), Fault> {
        if self.seen[id.index()] == self.round {
            return Ok(());
        }
        self.seen[id.index()] = self.round;
        let kernel = self.kernel;
        match &kernel.exprs[id] {
            Expr::Const(..) => {}
            Expr::Op(_, args, _) => args.iter().try_for_each(|&a| self.value(a))?,
            Expr::Load(buf, x) => {
                self.check_index(x)?;
                if !self.sound[id.index()] {
                    self.check_bounds(*buf, x)?;
                    self.sound[id.index()] = true;
                }
            }
            Expr::Word(buf, x) => {
                self.check_index(x)?;
                self.check_bounds(*buf, x)?;
                let elements = 4 / self.program.buffers[*buf].dtype.bytes() as i64;
                self.check_bounds(*buf, &x.offset(elements - 1))?;
            }
            Expr::DotProduct { x, y, z, .. } => [*x, *y, *z].iter().try_for_each(|&a| self.value(a))?,
            Expr::Number(x, _) | Expr::Within(x, _, _) => self.check_index(x)?,
            Expr::Reg(r, at) => {
                self.check_register(*r, at)?;
                let lanes = kernel.regs[*r].lanes;
                if lanes > 1 && self.lane.map(|l| l.1) != Some(lanes) {
                    return Err(format!("k7: r{} of {lanes} lanes is read whole outside such a loop", r.0));
                }
            }
            Expr::Lanes(r, at, first, count) => {
                self.check_register(*r, at)?;
                if first + count > kernel.regs[*r].lanes {
                    return Err(format!("k6: lanes {first} to {} of r{}", first + count, r.0));
                }
                if *count > 1 && self.lane.map(|l| l.1) != Some(*count) {
                    return Err(format!("k7: {count} lanes of r{} are read outside such a loop", r.0));
                }
            }
            Expr::Fold(_, r, at) => self.check_register(*r, at)?,
        }
        Ok(())
    }

    /// Checks rules k2 and k5 for the parts of an index.
    pub(super) fn check_index(&mut self, x: &Index) -> Result<(), Fault> {
        for (atom, _) in &x.terms {
            match atom {
                Atom::Var(v) if self.open[v.index()].is_none() && self.kernel.vars[*v] != 1 => {
                    return Err(format!("k2: v{} is read outside its loop", v.0));
                }
                Atom::Var(_) => {}
                Atom::Div(y, _) | Atom::Rem(y, _) | Atom::Clamp(y, _, _) => self.check_index(y)?,
                Atom::Value(e) => {
                    self.value(*e)?;
                    let integer = self.types[e.index()].is_integer() || self.types[e.index()] == DType::Pred;
                    if !integer {
                        return Err(format!("k5: {} is no number for an index", self.types[e.index()]));
                    }
                }
            }
        }
        Ok(())
    }

    /// Checks rule k3 by the bounds of the index; if these are too wide because terms depend on each other, by trying all values.
    pub(super) fn check_bounds(&self, buf: BufId, x: &Index) -> Result<(), Fault> {
        let elements = i64::try_from(self.program.buffers[buf].elements).unwrap_or(i64::MAX);
        let inside = |(low, high): (i64, i64)| low >= 0 && high < elements;
        if inside(x.range(&self.extents)) || exact_range(x, &self.extents).is_some_and(inside) {
            return Ok(());
        }
        let (low, high) = x.range(&self.extents);
        Err(format!("k3: {x:?} of b{} lies in {low}..={high} of {elements}", buf.0))
    }

    /// Checks rule k6: the register exists.
    fn check_register(&mut self, reg: RegId, at: &Index) -> Result<(), Fault> {
        self.check_index(at)?;
        let constant = |v: VarId| match self.open[v.index()] {
            Some(LoopKind::Unroll) => true,
            Some(LoopKind::Seq) => false,
            Some(LoopKind::Vector | LoopKind::Masked(_)) | None => self.kernel.vars[v] == 1,
        };
        let (low, high) = at.range(&self.kernel.vars);
        if !at.terms.iter().all(|(a, _)| matches!(a, Atom::Var(v) if constant(*v))) {
            return Err(format!("k6: r{} at {at:?}", reg.0));
        }
        if low < 0 || high >= self.kernel.regs[reg].count as i64 {
            return Err(format!("k6: r{} has no {low}..={high}", reg.0));
        }
        Ok(())
    }

    /// Whether a value differs between lanes here.
    fn varies(&self, id: ExprId) -> bool {
        self.lane.is_some_and(|(lane, _)| self.kernel.varies_by_lane(id, lane))
    }
}

/// Calls `f` for every expression that `expr` reads directly.
pub fn for_each_operand(expr: &Expr, f: &mut impl FnMut(ExprId)) {
    match expr {
        Expr::Const(..) => {}
        Expr::Op(_, args, _) => args.iter().for_each(|&a| f(a)),
        Expr::DotProduct { x, y, z, .. } => [*x, *y, *z].into_iter().for_each(f),
        Expr::Load(_, x)
        | Expr::Word(_, x)
        | Expr::Number(x, _)
        | Expr::Within(x, _, _)
        | Expr::Reg(_, x)
        | Expr::Lanes(_, x, _, _)
        | Expr::Fold(_, _, x) => for_each_run_time_value(x, f),
    }
}

/// Calls `f` for every run-time number of an index.
pub fn for_each_run_time_value(x: &Index, f: &mut impl FnMut(ExprId)) {
    for (atom, _) in &x.terms {
        match atom {
            Atom::Var(_) => {}
            Atom::Div(y, _) | Atom::Rem(y, _) | Atom::Clamp(y, _, _) => for_each_run_time_value(y, f),
            Atom::Value(e) => f(*e),
        }
    }
}

/// Upper limit of combinations of variable values that are tried for one index.
const MOST_TRIES: u64 = 1 << 16;

/// The least and greatest value of an index, by trying all values of its variables; `None` if there are too many or if it has run-time
/// numbers.
fn exact_range(x: &Index, extents: &Extents) -> Option<(i64, i64)> {
    let mut vars = Vec::new();
    variables(x, &mut vars)?;
    vars.sort_unstable();
    vars.dedup();
    let total = vars.iter().try_fold(1u64, |n, &v| n.checked_mul(extents[v].max(1)))?;
    if total > MOST_TRIES {
        return None;
    }
    let (mut low, mut high) = (i64::MAX, i64::MIN);
    for mut i in 0..total {
        let mut at = Vec::with_capacity(vars.len());
        for &v in &vars {
            let n = extents[v].max(1);
            at.push((v, (i % n) as i64));
            i /= n;
        }
        let value = value_at(x, &at);
        (low, high) = (low.min(value), high.max(value));
    }
    Some((low, high))
}

fn variables(x: &Index, out: &mut Vec<VarId>) -> Option<()> {
    for (atom, _) in &x.terms {
        match atom {
            Atom::Var(v) => out.push(*v),
            Atom::Div(y, _) | Atom::Rem(y, _) | Atom::Clamp(y, _, _) => variables(y, out)?,
            Atom::Value(_) => return None,
        }
    }
    Some(())
}

fn value_at(x: &Index, at: &[(VarId, i64)]) -> i64 {
    let of = |atom: &Atom| match atom {
        Atom::Var(v) => at.iter().find(|p| p.0 == *v).map_or(0, |p| p.1),
        Atom::Div(y, n) => value_at(y, at).div_euclid(*n),
        Atom::Rem(y, n) => value_at(y, at).rem_euclid(*n),
        Atom::Clamp(y, a, b) => value_at(y, at).clamp(*a, *b),
        Atom::Value(_) => 0,
    };
    x.constant + x.terms.iter().map(|(atom, c)| of(atom) * c).sum::<i64>()
}
