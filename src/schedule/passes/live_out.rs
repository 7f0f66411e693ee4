//! Live-out values of statements: registers and memory on the stack that other statements read.
use crate::kernel::{
    BufId, BufferLocation, Expr, ExprId, Kernel, Program, RegId, Stmt, for_each_operand, for_each_run_time_value,
};
use std::collections::{BTreeMap, BTreeSet};

/// Whether statements outside `body` read registers that it sets.
pub fn has_live_out_registers(kernel: &Kernel, body: &[Stmt], all: &[Stmt]) -> bool {
    let (inner, outer) = (StorageUses::collect(kernel, body), StorageUses::collect(kernel, all));
    inner.set.iter().any(|r| inner.registers.get(r) != outer.registers.get(r))
}

/// Whether statements outside `body` access stack memory that it writes.
pub fn has_live_out_stack(program: &Program, kernel: &Kernel, body: &[Stmt], all: &[Stmt]) -> bool {
    let (inner, outer) = (StorageUses::collect(kernel, body), StorageUses::collect(kernel, all));
    let mut on_stack = inner.written.iter().filter(|b| program.buffers[**b].place == BufferLocation::Stack);
    on_stack.any(|b| inner.buffers.get(b) != outer.buffers.get(b))
}

/// The registers and buffers that statements use.
struct StorageUses<'k> {
    kernel: &'k Kernel,
    /// Number of uses of each register.
    registers: BTreeMap<RegId, usize>,
    /// Registers that are set.
    set: BTreeSet<RegId>,
    /// Number of uses of each buffer.
    buffers: BTreeMap<BufId, usize>,
    /// Buffers that are written.
    written: BTreeSet<BufId>,
}

impl<'k> StorageUses<'k> {
    fn collect(kernel: &'k Kernel, all: &[Stmt]) -> StorageUses<'k> {
        let (registers, set) = (BTreeMap::new(), BTreeSet::new());
        let mut named = StorageUses { kernel, registers, set, buffers: BTreeMap::new(), written: BTreeSet::new() };
        named.stmts(all);
        named
    }

    fn stmts(&mut self, all: &[Stmt]) {
        for s in all {
            match s {
                Stmt::For { body, .. } | Stmt::Let { body, .. } => self.stmts(body),
                Stmt::If { cond, body } | Stmt::While { cond, body } => {
                    self.read(*cond);
                    self.stmts(body);
                }
                Stmt::Store { buf, index, value } => {
                    self.write(*buf);
                    self.read(*value);
                    for_each_run_time_value(index, &mut |e| self.read(e));
                }
                Stmt::Prefetch { index, .. } => for_each_run_time_value(index, &mut |e| self.read(e)),
                Stmt::Set { reg, value, .. } => {
                    self.set.insert(*reg);
                    *self.registers.entry(*reg).or_default() += 1;
                    self.read(*value);
                }
                Stmt::Tiles(sums) => {
                    self.write(sums.writes().buf);
                    sums.reads().into_iter().for_each(|span| self.buffer(span.buf));
                }
                Stmt::Release => {}
            }
        }
    }

    fn buffer(&mut self, buf: BufId) {
        *self.buffers.entry(buf).or_default() += 1;
    }

    fn write(&mut self, buf: BufId) {
        self.written.insert(buf);
        self.buffer(buf);
    }

    fn read(&mut self, root: ExprId) {
        let (mut open, mut seen) = (vec![root], BTreeSet::new());
        while let Some(e) = open.pop() {
            if !seen.insert(e) {
                continue;
            }
            let expr = &self.kernel.exprs[e];
            match expr {
                Expr::Reg(r, _) | Expr::Lanes(r, ..) | Expr::Fold(_, r, _) => {
                    *self.registers.entry(*r).or_default() += 1;
                }
                Expr::Load(buf, _) | Expr::Word(buf, _) => self.buffer(*buf),
                _ => {}
            }
            for_each_operand(expr, &mut |e| open.push(e));
        }
    }
}
