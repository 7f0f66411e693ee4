//! Whether memory on the stack carries anything from one execution of some statements to the next.
use crate::kernel::index::Extents;
use crate::kernel::{
    Atom, BufId, BufferLocation, Expr, ExprId, Index, Kernel, LoopKind, Program, Stmt, VarId, for_each_operand,
    for_each_run_time_value,
};
use std::collections::BTreeSet;

/// Upper limit of stores whose elements are remembered as written.
const MOST_STORES: usize = 64;

/// Whether `body` reads only those elements of stack memory that it has certainly written before, in the same execution.
///
/// Stores are followed in program order. Leaving a loop turns a store's index into a box: the first element and a step for each loop. A
/// store under a condition counts inside it only. Returns `false` if unknown.
pub fn is_written_before_read(program: &Program, kernel: &Kernel, body: &[Stmt]) -> bool {
    let mut flow = ScratchFlow { program, kernel, extents: kernel.vars.clone(), written: Vec::new() };
    flow.visit_all(body)
}

/// A box of elements that were certainly written: a block at `first`, repeated by each step.
struct WrittenBox {
    buf: BufId,
    first: Index,
    block: u64,
    /// Distance and count of each repetition.
    steps: Vec<(i64, u64)>,
}

impl WrittenBox {
    /// Number of elements from the first on that are written without a gap.
    fn dense_prefix(&self) -> u64 {
        let mut steps = self.steps.clone();
        steps.sort_unstable();
        let fits = |length: u64, (by, count): (i64, u64)| {
            (by.unsigned_abs() <= length).then(|| length.saturating_add(by.unsigned_abs().saturating_mul(count - 1)))
        };
        steps.into_iter().try_fold(self.block, |length, step| fits(length, step).ok_or(length)).unwrap_or_else(|n| n)
    }

    /// The box of all iterations of a loop over `var`; `None` if they form no box.
    fn of_all_rounds(mut self, var: VarId, extent: u64) -> Option<WrittenBox> {
        if extent == 0 {
            return None;
        }
        if !self.first.depends_on(var, &|_| true) {
            return Some(self);
        }
        let at = self.first.terms.iter().position(|(atom, _)| *atom == Atom::Var(var))?;
        let (_, by) = self.first.terms.remove(at);
        if self.first.depends_on(var, &|_| true) {
            return None;
        }
        if by < 0 {
            self.first.constant = self.first.constant.checked_add(by.checked_mul(i64::try_from(extent - 1).ok()?)?)?;
        }
        self.steps.push((by.checked_abs()?, extent));
        Some(self)
    }
}

struct ScratchFlow<'a> {
    program: &'a Program,
    kernel: &'a Kernel,
    /// The extents of loop variables; for masked loops the number of active lanes.
    extents: Extents,
    written: Vec<WrittenBox>,
}

impl ScratchFlow<'_> {
    fn visit_all(&mut self, all: &[Stmt]) -> bool {
        all.iter().all(|stmt| self.visit(stmt))
    }

    fn visit(&mut self, stmt: &Stmt) -> bool {
        let before = self.written.len();
        match stmt {
            Stmt::For { var, kind, body } => {
                let whole = self.extents[*var];
                let extent = if let LoopKind::Masked(lanes) = kind { *lanes } else { whole };
                self.extents[*var] = extent;
                let is_sound = self.visit_all(body);
                self.extents[*var] = whole;
                let inside = self.written.split_off(before);
                self.written.extend(inside.into_iter().filter_map(|one| one.of_all_rounds(*var, extent)));
                is_sound
            }
            Stmt::Let { var, value, body } => {
                let is_sound = self.reads_of_index(value) && self.visit_all(body);
                let inside = self.written.split_off(before);
                self.written.extend(inside.into_iter().filter(|one| !one.first.depends_on(*var, &|_| true)));
                is_sound
            }
            Stmt::If { cond, body } | Stmt::While { cond, body } => {
                let is_sound = self.reads(&[*cond]) && self.visit_all(body);
                self.written.truncate(before);
                is_sound
            }
            Stmt::Store { buf, index, value } => {
                let is_sound = self.reads(&[*value]) && self.reads_of_index(index);
                self.write(*buf, index, 1);
                is_sound
            }
            Stmt::Set { at, value, .. } => self.reads(&[*value]) && self.reads_of_index(at),
            Stmt::Tiles(sums) => {
                let is_sound = sums.reads().iter().all(|span| self.is_written(span.buf, span.first, span.last));
                let to = sums.writes();
                if to.count == to.last + 1 {
                    self.write(to.buf, to.first, to.count);
                }
                is_sound
            }
            Stmt::Prefetch { .. } | Stmt::Release => true,
        }
    }

    fn is_on_stack(&self, buf: BufId) -> bool {
        self.program.buffers[buf].place == BufferLocation::Stack
    }

    /// Records a store, unless its index is known only at run time.
    fn write(&mut self, buf: BufId, first: &Index, block: u64) {
        let mut is_fixed = true;
        for_each_run_time_value(first, &mut |_| is_fixed = false);
        if is_fixed && self.is_on_stack(buf) && self.written.len() < MOST_STORES {
            self.written.push(WrittenBox { buf, first: first.clone(), block, steps: Vec::new() });
        }
    }

    fn reads_of_index(&self, index: &Index) -> bool {
        let mut roots = Vec::new();
        for_each_run_time_value(index, &mut |e| roots.push(e));
        self.reads(&roots)
    }

    /// Whether all elements that the expressions load were written before.
    fn reads(&self, roots: &[ExprId]) -> bool {
        let (mut open, mut seen) = (roots.to_vec(), BTreeSet::new());
        while let Some(e) = open.pop() {
            if !seen.insert(e) {
                continue;
            }
            let expr = &self.kernel.exprs[e];
            let is_sound = match expr {
                Expr::Load(buf, index) => self.is_written(*buf, index, 0),
                Expr::Word(buf, index) => {
                    let elements = 4 / self.program.buffers[*buf].dtype.bytes() as u64;
                    self.is_written(*buf, index, elements - 1)
                }
                _ => true,
            };
            if !is_sound {
                return false;
            }
            for_each_operand(expr, &mut |operand| open.push(operand));
        }
        true
    }

    /// Whether all elements from `first` to `first + last` were written before.
    fn is_written(&self, buf: BufId, first: &Index, last: u64) -> bool {
        let covers = |one: &WrittenBox| {
            let (low, high) = first.add(&one.first.scale(-1)).range(&self.extents);
            low >= 0 && high.checked_add_unsigned(last).is_some_and(|high| high < one.dense_prefix() as i64)
        };
        !self.is_on_stack(buf) || self.written.iter().any(|one| one.buf == buf && covers(one))
    }
}
