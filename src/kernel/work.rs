//! How much a kernel does, as far as that decides whether other threads help.
use super::{Atom, BufId, Expr, ExprId, Index, Kernel, KernelId, LoopKind, Program, Step, Stmt, TileSums};
use crate::target::LINE;
use crate::util::id_vec::{Id, IdVec};
use std::collections::BTreeMap;

/// What is less is done before two threads have met: some 1.5 µs. To hand over and to wait takes about half a microsecond, and
/// what one thread reads that two have made comes slowly from the other's cache.
const WORTH_SHARING: u64 = 6_000;

/// Bytes that come from or go to other caches in the time of an operation, where a call has not just had them.
const BYTES_AT_ONCE: u64 = 16;

/// Which kernels offer their chunks to other threads: one of little work is not worth the hand-over. The memory that a kernel
/// reads and writes counts as work, but not in a loop, where it is near since the round before.
pub fn shared(program: &Program) -> IdVec<KernelId, bool> {
    let mut again = vec![false; program.kernels.len()];
    in_loops(&program.steps, false, &mut again);
    let mut shared = IdVec::new();
    for (kernel, again) in program.kernels.values().zip(again) {
        let memory = if again { 0 } else { kernel.traffic(program) / BYTES_AT_ONCE };
        shared.push(kernel.is_worth_sharing(memory));
    }
    shared
}

/// Marks the kernels that run again and again in one call.
fn in_loops(steps: &[Step], inside: bool, again: &mut [bool]) {
    for step in steps {
        match step {
            Step::Launch(id) => again[id.index()] |= inside,
            Step::Call(_) => {}
            Step::While { cond, body, .. } => {
                in_loops(cond, true, again);
                in_loops(body, true, again);
            }
            Step::Branch { branches: lists, .. } | Step::Together(lists) => {
                lists.iter().for_each(|list| in_loops(list, inside, again))
            }
        }
    }
}

impl Kernel {
    /// Whether its chunks are offered to other threads where it runs in a loop.
    pub fn is_shared_in_loops(&self) -> bool {
        self.is_worth_sharing(0)
    }

    fn is_worth_sharing(&self, memory: u64) -> bool {
        self.count() > 1 && self.work().saturating_add(memory) >= WORTH_SHARING
    }

    /// Operations that make a value, shared parts once.
    pub fn work_of(&self, value: ExprId) -> u64 {
        let mut count =
            Count { kernel: self, seen: vec![0; self.exprs.len()], statement: 0, accesses: BTreeMap::new() };
        count.expression(value, 1)
    }

    /// Operations on vectors of one launch, of scalars where there are no vectors; most take a cycle each.
    pub fn work(&self) -> u64 {
        self.counted().0
    }

    /// Bytes that one launch reads and writes, each buffer once and no more than its accesses can reach.
    pub fn traffic(&self, program: &Program) -> u64 {
        let of_buffer = |(&buf, &accesses): (&BufId, &u64)| {
            let b = &program.buffers[buf];
            b.elements.saturating_mul(b.dtype.bytes() as u64).min(accesses.saturating_mul(LINE))
        };
        self.counted().1.iter().map(of_buffer).fold(0, u64::saturating_add)
    }

    fn counted(&self) -> (u64, BTreeMap<BufId, u64>) {
        let mut count =
            Count { kernel: self, seen: vec![0; self.exprs.len()], statement: 0, accesses: BTreeMap::new() };
        let work = count.statements(&self.body, self.count());
        (work, count.accesses)
    }
}

struct Count<'a> {
    kernel: &'a Kernel,
    /// The last statement that an expression was counted in.
    seen: Vec<u32>,
    statement: u32,
    /// How often each buffer is read or written.
    accesses: BTreeMap<BufId, u64>,
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
            Stmt::Store { buf, value, .. } => {
                self.access(*buf, times);
                times.saturating_mul(1 + self.expression(*value, times))
            }
            Stmt::Tiles(sums) => self.tiles(sums, times),
            Stmt::Prefetch { .. } | Stmt::Release => 0,
            Stmt::Set { value, .. } => times.saturating_mul(self.expression(*value, times)),
            Stmt::Let { body, .. } | Stmt::While { body, .. } => self.statements(body, times),
            Stmt::If { cond, body } => {
                let (part, whole) = self.share(*cond);
                self.statements(body, times.saturating_mul(part) / whole)
            }
        }
    }

    /// A row of a tile takes a cycle a round.
    fn tiles(&mut self, sums: &TileSums, times: u64) -> u64 {
        let rounds = sums.loops.iter().fold(times, |n, &v| n.saturating_mul(self.kernel.vars[v]));
        for span in sums.reads().into_iter().chain([sums.writes()]) {
            self.access(span.buf, rounds.saturating_mul(span.count));
        }
        rounds.saturating_mul(sums.rows() * sums.across)
    }

    /// In how many of how many rounds of its loop a condition holds; one of one where that is not plain.
    fn share(&self, cond: ExprId) -> (u64, u64) {
        let Expr::Within(Index { terms, constant: 0 }, low, high) = &self.kernel.exprs[cond] else { return (1, 1) };
        let [(Atom::Var(v), 1)] = terms[..] else { return (1, 1) };
        let all = self.kernel.vars[v].max(1);
        (all.min(high.saturating_sub(*low).max(0) as u64), all)
    }

    fn access(&mut self, buf: BufId, times: u64) {
        let sum = self.accesses.entry(buf).or_default();
        *sum = sum.saturating_add(times);
    }

    /// The work of the value of one statement, which runs `times`, shared parts once.
    fn expression(&mut self, id: ExprId, times: u64) -> u64 {
        self.statement += 1;
        let (mut open, mut sum) = (vec![id], 0);
        while let Some(id) = open.pop() {
            if std::mem::replace(&mut self.seen[id.index()], self.statement) == self.statement {
                continue;
            }
            sum += match &self.kernel.exprs[id] {
                Expr::Op(op, args, _) => {
                    open.extend(args);
                    op.cycles()
                }
                Expr::PairSum { x, y, z, .. } => {
                    open.extend([x, y, z]);
                    1
                }
                Expr::Load(buf, _) | Expr::Pair(buf, _) => {
                    self.access(*buf, times);
                    1
                }
                Expr::Within(..) | Expr::Number(..) | Expr::Lanes(..) => 1,
                Expr::Fold(..) => 8,
                Expr::Const(..) | Expr::Reg(..) => 0,
            };
        }
        sum
    }
}
