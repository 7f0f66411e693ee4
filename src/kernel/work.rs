//! How much a kernel does, as far as that decides whether other threads help.
use super::{Atom, Expr, ExprId, Index, Kernel, LoopKind, Stmt};
use crate::scalar::ScalarOp;
use crate::util::id_vec::Id;

/// What is less is done before another thread has begun: some 5 µs. To hand over and to wait takes about 1 µs.
const WORTH_SHARING: u64 = 16_000;

impl Kernel {
    /// Whether its chunks are offered to other threads: a kernel of little work is not worth the hand-over.
    pub fn is_shared(&self) -> bool {
        self.count() > 1 && self.work() >= WORTH_SHARING
    }

    /// Operations on vectors of one launch, of scalars where there are no vectors; most take a cycle each.
    pub fn work(&self) -> u64 {
        let mut count = Count { kernel: self, seen: vec![0; self.exprs.len()], statement: 0 };
        count.statements(&self.body, self.count())
    }
}

struct Count<'a> {
    kernel: &'a Kernel,
    /// The last statement that an expression was counted in.
    seen: Vec<u32>,
    statement: u32,
}

impl Count<'_> {
    /// The work of `body`, which runs `times`.
    fn statements(&mut self, body: &[Stmt], times: u64) -> u64 {
        body.iter().fold(0, |sum: u64, s| sum.saturating_add(self.one(s, times)))
    }

    fn one(&mut self, s: &Stmt, times: u64) -> u64 {
        match s {
            Stmt::For { var, kind, body } => {
                let rounds = match kind {
                    LoopKind::Seq | LoopKind::Unroll => self.kernel.vars[*var],
                    LoopKind::Vector | LoopKind::Masked(_) => 1,
                };
                self.statements(body, times.saturating_mul(rounds))
            }
            Stmt::Store { value, .. } => times.saturating_mul(1 + self.expression(*value)),
            Stmt::Set { value, .. } => times.saturating_mul(self.expression(*value)),
            Stmt::Let { body, .. } | Stmt::While { body, .. } => self.statements(body, times),
            Stmt::If { cond, body } => {
                let (part, whole) = self.share(*cond);
                self.statements(body, times.saturating_mul(part) / whole)
            }
        }
    }

    /// In how many of how many rounds of its loop a condition holds; one of one where that is not plain.
    fn share(&self, cond: ExprId) -> (u64, u64) {
        let Expr::Within(Index { terms, constant: 0 }, low, high) = &self.kernel.exprs[cond] else { return (1, 1) };
        let [(Atom::Var(v), 1)] = terms[..] else { return (1, 1) };
        let all = self.kernel.vars[v].max(1);
        (all.min(high.saturating_sub(*low).max(0) as u64), all)
    }

    /// The work of one statement's value, shared parts once.
    fn expression(&mut self, id: ExprId) -> u64 {
        self.statement += 1;
        let (mut open, mut sum) = (vec![id], 0);
        while let Some(id) = open.pop() {
            if std::mem::replace(&mut self.seen[id.index()], self.statement) == self.statement {
                continue;
            }
            sum += match &self.kernel.exprs[id] {
                Expr::Op(op, args, _) => {
                    open.extend(args);
                    cycles(*op)
                }
                Expr::PairSum { x, y, z } => {
                    open.extend([x, y, z]);
                    1
                }
                Expr::Load(..) | Expr::Pair(..) | Expr::Within(..) | Expr::Number(..) | Expr::Lanes(..) => 1,
                Expr::Fold(..) => 8,
                Expr::Const(..) | Expr::Reg(..) => 0,
            };
        }
        sum
    }
}

/// About how many cycles an op takes that waits for nothing.
fn cycles(op: ScalarOp) -> u64 {
    match op {
        op if op.is_long() => 20,
        ScalarOp::Divide | ScalarOp::Sqrt | ScalarOp::Rsqrt => 8,
        _ => 1,
    }
}
