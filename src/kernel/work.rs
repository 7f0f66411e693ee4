//! How much a kernel does, as far as that decides whether other threads help.
use super::{
    Atom, BufId, BufferLocation, Expr, ExprId, Index, Kernel, KernelId, LoopKind, Program, Step, Stmt, TileSums,
};
use crate::scalar::{Direction, ScalarOp};
use crate::target::LINE;
use crate::target::machine::WORTH_SHARING;
use crate::util::id_vec::{Id, IdVec};
use std::collections::BTreeMap;

/// Bytes of memory traffic that count as one operation when deciding whether threads share a kernel; in loops none are counted.
const BYTES_AT_ONCE: u64 = 16;

/// Bytes of memory traffic that count as one operation in estimates of a call's work.
const BYTES_MOVED: u64 = 8;

/// Decides for each kernel whether its chunks are shared with other threads: little work is not worth the hand-over. Memory traffic counts
/// as work, except in a loop, where the previous iteration has brought the data into a near cache.
pub fn parallel_kernels(program: &Program) -> IdVec<KernelId, bool> {
    let mut again = vec![false; program.kernels.len()];
    in_loops(&program.steps, false, &mut again);
    let mut shared = IdVec::new();
    for (kernel, again) in program.kernels.values().zip(again) {
        let memory = if again { 0 } else { kernel.accessed_bytes(program) / BYTES_AT_ONCE };
        shared.push(kernel.is_worth_sharing(memory));
    }
    shared
}

/// Marks in `again` the kernels that run repeatedly in one call.
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
    /// Whether the kernel offers its chunks to other threads when it runs in a loop.
    pub fn is_parallel_in_loops(&self) -> bool {
        self.is_worth_sharing(0)
    }

    fn is_worth_sharing(&self, memory: u64) -> bool {
        self.chunk_count() > 1 && self.work().saturating_add(memory) >= WORTH_SHARING
    }

    /// Work of the kernel in a call with these loop limits, on one thread and on each of two. Memory traffic counts too, except for constants:
    /// an array that is processed in part counts in proportion.
    pub(super) fn work_at_limits(&self, program: &Program, held: &LoopLimits) -> [u64; 2] {
        let ((work, accesses), whole) = (self.count_work(held), self.work().max(1));
        let is_moved = |buf: &BufId| !matches!(program.buffers[*buf].place, BufferLocation::Weights(_));
        let of_buffer = |(&buf, &accesses): (&BufId, &u64)| {
            let bytes = program.buffers[buf].elements.saturating_mul(program.buffers[buf].dtype.bytes() as u64);
            ((bytes as f64 * work as f64 / whole as f64) as u64).min(accesses.saturating_mul(LINE))
        };
        let memory: u64 = accesses.iter().filter(|(buf, _)| is_moved(buf)).map(of_buffer).fold(0, u64::saturating_add);
        let (work, chunks) = (work.saturating_add(memory / BYTES_MOVED), held.chunk_count(self));
        let shared = chunks > 1 && work >= WORTH_SHARING;
        [work, if shared { work / chunks * chunks.div_ceil(2) } else { work }]
    }

    /// Number of operations that compute a value; shared parts count once.
    pub fn work_of_value(&self, value: ExprId) -> u64 {
        WorkCounter::new(self, &LoopLimits::default()).expression(value, 1)
    }

    /// Number of operations of one launch, on vectors if there are any; most take a cycle each.
    pub fn work(&self) -> u64 {
        self.count_work(&LoopLimits::default()).0
    }

    /// Bytes that one launch reads and writes; each buffer counts once, up to what its accesses can reach.
    pub fn accessed_bytes(&self, program: &Program) -> u64 {
        let of_buffer = |(&buf, &accesses): (&BufId, &u64)| {
            let b = &program.buffers[buf];
            b.elements.saturating_mul(b.dtype.bytes() as u64).min(accesses.saturating_mul(LINE))
        };
        self.count_work(&LoopLimits::default()).1.iter().map(of_buffer).fold(0, u64::saturating_add)
    }

    fn count_work(&self, held: &LoopLimits) -> (u64, BTreeMap<BufId, u64>) {
        let mut count = WorkCounter::new(self, held);
        let work = count.statements(&self.body, self.chunk_count());
        (work, count.accesses)
    }
}

/// Run-time limits of loops in a call: the buffer that holds them, and its values.
#[derive(Debug, Default)]
pub(super) struct LoopLimits {
    pub(super) limits: Option<(BufId, Vec<i64>)>,
    /// For each size, the limits in a call in which only that size has its value in this call, and the others are the largest.
    pub(super) apart: Vec<Vec<i64>>,
}

impl LoopLimits {
    /// The index of the limit that an expression loads.
    fn limit_index(&self, e: &Expr) -> Option<usize> {
        let (Some((buf, _)), Expr::Load(from, at)) = (&self.limits, e) else { return None };
        usize::try_from(at.as_constant()?).ok().filter(|_| from == buf)
    }

    /// For each size, the fraction of `rounds` iterations below the limit with this index.
    fn needed_fractions(&self, place: usize, rounds: f64) -> Vec<f64> {
        let part = |values: &Vec<i64>| values.get(place).map_or(1.0, |&n| (n.max(0) as f64 / rounds).min(1.0));
        self.apart.iter().map(part).collect()
    }

    /// The index of the limit of a kernel's chunks.
    fn of_chunks(&self, kernel: &Kernel) -> Option<usize> {
        kernel.limit.and_then(|(buf, at)| self.limit_index(&Expr::Load(buf, Index::constant(at as i64))))
    }

    /// Number of chunks that a kernel executes.
    pub(super) fn chunk_count(&self, kernel: &Kernel) -> u64 {
        let values = self.limits.as_ref().map(|(_, values)| values);
        let limit = self.of_chunks(kernel).and_then(|place| values?.get(place).copied());
        limit.map_or(kernel.chunk_count(), |limit| u64::try_from(limit).unwrap_or(0).min(kernel.chunk_count()))
    }
}

struct WorkCounter<'a> {
    kernel: &'a Kernel,
    held: &'a LoopLimits,
    /// For each size the fraction of chunks and iterations that a call executes because of it: that of the tightest limit around. Nested
    /// limits that one size sets are the same limit, for a larger and a smaller step.
    parts: Vec<f64>,
    /// The last statement for which each expression was counted.
    seen: Vec<u32>,
    statement: u32,
    /// Number of reads and writes of each buffer.
    accesses: BTreeMap<BufId, u64>,
}

impl<'a> WorkCounter<'a> {
    fn new(kernel: &'a Kernel, held: &'a LoopLimits) -> WorkCounter<'a> {
        let chunks =
            held.of_chunks(kernel).map(|place| held.needed_fractions(place, kernel.chunk_count().max(1) as f64));
        let parts = chunks.unwrap_or_else(|| vec![1.0; held.apart.len()]);
        let seen = vec![0; kernel.exprs.len()];
        WorkCounter { kernel, held, parts, seen, statement: 0, accesses: BTreeMap::new() }
    }

    /// The work of `body`, executed `times` times.
    fn statements(&mut self, body: &[Stmt], times: u64) -> u64 {
        body.iter().fold(0, |sum: u64, s| sum.saturating_add(self.statement(s, times)))
    }

    fn statement(&mut self, s: &Stmt, times: u64) -> u64 {
        match s {
            Stmt::For { var, kind, body } => {
                let rounds = match kind {
                    LoopKind::Seq | LoopKind::Unroll => self.kernel.vars[*var],
                    LoopKind::Vector | LoopKind::Masked(_) => 1,
                };
                self.statements(body, times.saturating_mul(rounds))
            }
            Stmt::Store { buf, value, .. } => {
                let times = self.needed_rounds(times);
                self.access(*buf, times);
                times.saturating_mul(1 + self.expression(*value, times))
            }
            Stmt::Tiles(sums) => self.tiles(sums, times),
            Stmt::Prefetch { .. } | Stmt::Release => 0,
            Stmt::Set { value, .. } => {
                let times = self.needed_rounds(times);
                times.saturating_mul(self.expression(*value, times))
            }
            Stmt::Let { body, .. } | Stmt::While { body, .. } => self.statements(body, times),
            Stmt::If { cond, body } => {
                if let Some(parts) = self.condition_fractions(*cond) {
                    let tightest = self.parts.iter().zip(&parts).map(|(around, part)| around.min(*part)).collect();
                    let around = std::mem::replace(&mut self.parts, tightest);
                    let work = self.statements(body, times);
                    self.parts = around;
                    return work;
                }
                let (part, whole) = self.share(*cond);
                self.statements(body, times.saturating_mul(part) / whole)
            }
        }
    }

    /// Number of iterations, out of `times`, that a call with the given limits executes.
    fn needed_rounds(&self, times: u64) -> u64 {
        let part: f64 = self.parts.iter().product();
        if part < 1.0 { (times as f64 * part).ceil() as u64 } else { times }
    }

    /// For each size, the fraction of iterations in which a condition holds: that an index is below a limit, possibly combined with a
    /// range.
    fn condition_fractions(&self, cond: ExprId) -> Option<Vec<f64>> {
        if let Expr::Op(ScalarOp::Or, sides, _) = &self.kernel.exprs[cond] {
            let besides = self.range_share(*sides.get(1)?)?;
            let parts = self.condition_fractions(*sides.first()?)?;
            return Some(parts.into_iter().map(|part| (part + besides).min(1.0)).collect());
        }
        let Expr::Op(ScalarOp::Compare(Direction::Lt, _), sides, _) = &self.kernel.exprs[cond] else { return None };
        let (Expr::Number(x, _), limit) = (&self.kernel.exprs[*sides.first()?], &self.kernel.exprs[*sides.get(1)?])
        else {
            return None;
        };
        let rounds = x.range(&self.kernel.vars).1.max(0) as f64 + 1.0;
        Some(self.held.needed_fractions(self.held.limit_index(limit)?, rounds))
    }

    /// The fraction of an index's values that lie in a range, if they are evenly distributed.
    fn range_share(&self, cond: ExprId) -> Option<f64> {
        let Expr::Within(x, low, high) = &self.kernel.exprs[cond] else { return None };
        let (least, most) = x.range(&self.kernel.vars);
        let all = most.saturating_sub(least).saturating_add(1).max(1) as f64;
        Some(high.saturating_sub(*low).max(0) as f64 / all)
    }

    /// The work of a block of sums: a row of a tile takes a cycle per iteration.
    fn tiles(&mut self, sums: &TileSums, times: u64) -> u64 {
        let rounds = sums.loops.iter().fold(self.needed_rounds(times), |n, &v| n.saturating_mul(self.kernel.vars[v]));
        for span in sums.reads().into_iter().chain([sums.writes()]) {
            self.access(span.buf, rounds.saturating_mul(span.count));
        }
        rounds.saturating_mul(sums.rows() * sums.across)
    }

    /// The fraction of a loop's iterations in which a condition holds, as two integers; 1 of 1 if unknown.
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

    /// The work of one statement's value, executed `times` times; shared parts count once.
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
                Expr::DotProduct { x, y, z, .. } => {
                    open.extend([x, y, z]);
                    1
                }
                Expr::Load(buf, _) | Expr::Word(buf, _) => {
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
