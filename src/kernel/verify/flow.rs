//! Rules of the steps: k9, k10 and k11. Which buffers hold values is followed through launches, branches and loops; a store to
//! memory that another buffer shares makes that one undefined. Time is n log n in launches and the buffers that they touch.
use super::memory::{BufferOverlaps, DefinedBuffers};
use super::{Fault, bytes};
use crate::kernel::call::find_call;
use crate::kernel::{
    BufId, BufferAccess, BufferLocation, Call, Expr, ExprId, Index, Kernel, KernelId, Program, Step, Stmt, TileSums,
};
use crate::util::id_vec::Id;
use std::collections::{BTreeMap, BTreeSet};

/// Upper limit of iterations of the fixed point for the buffers that hold values before each iteration of a loop.
const MOST_ROUNDS: usize = 64;

/// Loads and stores of a kernel.
#[derive(Clone, Debug, Default)]
struct KernelAccesses<'k> {
    /// Buffers that the kernel loads before it stores to them.
    outside: BTreeSet<BufId>,
    /// Buffers of which one statement accesses several elements.
    several: BTreeSet<BufId>,
    /// Every load.
    loads: Vec<(BufId, &'k Index)>,
    /// Every store.
    stores: Vec<(BufId, &'k Index)>,
}

/// Checks k9, k10 and k11 for all steps of a program.
pub fn check_data_flow(program: &Program) -> Result<(), Fault> {
    let f = DefinitionFlow { program, kernels: program.kernels.values().map(accesses_in_order).collect() };
    for k in 0..f.kernels.len() {
        f.in_place(KernelId::from_index(k))?;
    }
    let given = |b: &BufId| {
        matches!(
            program.buffers[*b].place,
            BufferLocation::Arg(_) | BufferLocation::Weights(_) | BufferLocation::State(_)
        )
    };
    let mut defined = DefinedBuffers::new(program, program.buffers.ids().filter(given));
    f.steps(&program.steps, &mut defined)?;
    // other values may have been where a result is in the end
    let mut written = vec![false; program.results.len()];
    for (b, buffer) in program.buffers.iter() {
        if let BufferLocation::Result(i) = buffer.place
            && bytes(program, b) == program.results[i].bytes()
        {
            written[i] |= defined.is_defined(b);
        }
    }
    match (0..written.len()).find(|&i| !written[i] && program.results[i].bytes() > 0) {
        Some(i) => Err(format!("k9: result {i} is never written")),
        None => Ok(()),
    }
}

struct DefinitionFlow<'a> {
    program: &'a Program,
    kernels: Vec<KernelAccesses<'a>>,
}

impl DefinitionFlow<'_> {
    fn steps(&self, all: &[Step], defined: &mut DefinedBuffers) -> Result<(), Fault> {
        for step in all {
            match step {
                Step::Launch(k) => self.launch(*k, defined)?,
                Step::Call(call) => self.call(call, defined)?,
                Step::While { cond, pred, body, .. } => self.rounds(cond, *pred, body, defined)?,
                Step::Branch { selector, branches } => {
                    self.require_defined(*selector, defined)?;
                    self.follow_branches(branches, defined)?;
                }
                Step::Together(parts) => {
                    self.check_independent(parts)?;
                    parts.iter().try_for_each(|part| self.steps(part, defined))?;
                }
            }
        }
        Ok(())
    }

    /// Follows a loop: the buffers that hold values before every iteration are those before the first and after any, a set that only
    /// shrinks.
    fn rounds(&self, cond: &[Step], pred: BufId, body: &[Step], defined: &mut DefinedBuffers) -> Result<(), Fault> {
        for round in 0.. {
            let before = defined.checkpoint();
            self.steps(cond, defined)?;
            self.require_defined(pred, defined)?;
            let after_cond = defined.checkpoint();
            self.steps(body, defined)?;
            let mut lost = defined.changed_since(before);
            lost.retain(|&b| !defined.is_defined(b));
            if lost.is_empty() || round > MOST_ROUNDS {
                defined.roll_back(after_cond);
                break;
            }
            defined.roll_back(before);
            lost.into_iter().for_each(|b| defined.undefine(b));
        }
        Ok(())
    }

    /// Follows branches of which one is taken: afterwards the buffers hold values that do so after every branch.
    fn follow_branches(&self, branches: &[Vec<Step>], defined: &mut DefinedBuffers) -> Result<(), Fault> {
        let before = defined.checkpoint();
        let mut changed: BTreeMap<BufId, usize> = BTreeMap::new();
        for branch in branches {
            self.steps(branch, defined)?;
            for b in defined.changed_since(before) {
                *changed.entry(b).or_default() += 1;
            }
            defined.roll_back(before);
        }
        let (held, new): (Vec<_>, Vec<_>) = changed.into_iter().partition(|(b, _)| defined.is_defined(*b));
        held.into_iter().for_each(|(b, _)| defined.undefine(b));
        new.into_iter().filter(|(_, times)| *times == branches.len()).for_each(|(b, _)| defined.define(b));
        Ok(())
    }

    fn require_defined(&self, buf: BufId, defined: &DefinedBuffers) -> Result<(), Fault> {
        if defined.is_defined(buf) {
            return Ok(());
        }
        Err(format!("k9: b{} is read and holds nothing", buf.0))
    }

    fn launch(&self, id: KernelId, defined: &mut DefinedBuffers) -> Result<(), Fault> {
        let touched = &self.kernels[id.index()];
        let limit = self.program.kernels[id].limit.map(|(buf, _)| buf);
        for &b in touched.outside.iter().chain(&limit) {
            self.require_defined(b, defined).map_err(|why| format!("{why} by k{}", id.0))?;
        }
        let stays = |b: &BufId| self.program.buffers[*b].place != BufferLocation::Stack;
        touched.stores.iter().map(|s| s.0).filter(stays).for_each(|b| defined.define(b));
        Ok(())
    }

    fn call(&self, call: &Call, defined: &mut DefinedBuffers) -> Result<(), Fault> {
        for &b in &call.args {
            self.require_defined(b, defined).map_err(|why| format!("{why} by `{}`", call.to.name()))?;
        }
        let args = BufferOverlaps::new(self.program, call.args.iter().copied());
        for &b in &call.results {
            if let Some(read) = args.overlapping(b).next() {
                return Err(format!("k10: `{}` reads b{} and overwrites it", call.to.name(), read.0));
            }
            if matches!(
                self.program.buffers[b].place,
                BufferLocation::Arg(_) | BufferLocation::Weights(_) | BufferLocation::Stack
            ) {
                return Err(format!("k8: `{}` writes b{}", call.to.name(), b.0));
            }
            defined.define(b);
        }
        Ok(())
    }

    /// Checks rule k11: lists of steps that run at once write nothing that another one touches.
    fn check_independent(&self, parts: &[Vec<Step>]) -> Result<(), Fault> {
        if let Some(call) = parts.iter().find_map(|part| find_call(part, &mut Some)) {
            return Err(format!("k11: `{}` is called beside other steps", call.name()));
        }
        let touched: Vec<BufferAccess> = parts.iter().map(|part| BufferAccess::of_steps(self.program, part)).collect();
        let mut users: BTreeMap<BufId, BTreeSet<usize>> = BTreeMap::new();
        for (i, part) in touched.iter().enumerate() {
            for &b in part.read.iter().chain(&part.written) {
                users.entry(b).or_default().insert(i);
            }
        }
        let all = BufferOverlaps::new(self.program, users.keys().copied());
        for (i, part) in touched.iter().enumerate() {
            for &written in &part.written {
                if let Some(b) = all.overlapping(written).find(|b| users[b].iter().any(|&user| user != i)) {
                    return Err(format!("k11: b{} is written while b{} is in use", written.0, b.0));
                }
            }
        }
        Ok(())
    }

    /// Checks rule k10: a kernel that reads and writes a buffer reads only the element that it writes.
    fn in_place(&self, id: KernelId) -> Result<(), Fault> {
        let touched = &self.kernels[id.index()];
        let written: BTreeSet<BufId> = touched.stores.iter().map(|s| s.0).collect();
        let read = BufferOverlaps::new(self.program, touched.outside.iter().copied());
        for &w in &written {
            for p in read.overlapping(w).filter(|&p| p != w) {
                let (a, b) = (&self.program.buffers[w], &self.program.buffers[p]);
                let onto = a.place == b.place && a.dtype == b.dtype;
                let at: BTreeSet<&Index> = touched.stores.iter().filter(|s| s.0 == w).map(|s| s.1).collect();
                let same = touched.loads.iter().filter(|l| l.0 == p).all(|l| at.contains(l.1));
                if !onto || !same || touched.several.contains(&p) || touched.several.contains(&w) {
                    return Err(format!("k10: k{} reads b{} while it writes b{} over it", id.0, p.0, w.0));
                }
            }
        }
        Ok(())
    }
}

/// The loads and stores of `kernel` in the order of its text.
fn accesses_in_order(kernel: &Kernel) -> KernelAccesses<'_> {
    let mut walk = AccessWalk {
        kernel,
        out: KernelAccesses::default(),
        stored: BTreeSet::new(),
        seen: vec![false; kernel.exprs.len()],
    };
    walk.stmts(&kernel.body);
    walk.out
}

struct AccessWalk<'k> {
    kernel: &'k Kernel,
    out: KernelAccesses<'k>,
    stored: BTreeSet<BufId>,
    seen: Vec<bool>,
}

impl<'k> AccessWalk<'k> {
    fn stmts(&mut self, all: &'k [Stmt]) {
        for s in all {
            match s {
                Stmt::Store { buf, index, value } => {
                    let mut from = vec![*value];
                    super::body::for_each_run_time_value(index, &mut |e| from.push(e));
                    self.read(from);
                    self.out.stores.push((*buf, index));
                    self.stored.insert(*buf);
                }
                Stmt::Tiles(sums) => self.tiles(sums),
                Stmt::Release => {}
                Stmt::Prefetch { index, .. } => {
                    let mut from = Vec::new();
                    super::body::for_each_run_time_value(index, &mut |e| from.push(e));
                    self.read(from);
                }
                Stmt::Set { value, .. } => self.read(vec![*value]),
                Stmt::If { cond, body } | Stmt::While { cond, body } => {
                    self.read(vec![*cond]);
                    self.stmts(body);
                }
                Stmt::Let { value, body, .. } => {
                    let mut from = Vec::new();
                    super::body::for_each_run_time_value(value, &mut |e| from.push(e));
                    self.read(from);
                    self.stmts(body);
                }
                Stmt::For { body, .. } => self.stmts(body),
            }
        }
    }

    fn tiles(&mut self, sums: &'k TileSums) {
        for span in sums.reads() {
            let mut from = Vec::new();
            super::body::for_each_run_time_value(span.first, &mut |e| from.push(e));
            self.read(from);
            self.out.several.insert(span.buf);
            self.load(span.buf, span.first);
        }
        self.out.several.insert(sums.to);
        self.out.stores.push((sums.to, &sums.at));
        self.stored.insert(sums.to);
    }

    fn load(&mut self, buf: BufId, at: &'k Index) {
        self.out.loads.push((buf, at));
        if !self.stored.contains(&buf) {
            self.out.outside.insert(buf);
        }
    }

    fn read(&mut self, mut open: Vec<ExprId>) {
        while let Some(e) = open.pop() {
            if std::mem::replace(&mut self.seen[e.index()], true) {
                continue;
            }
            if let Expr::Word(b, _) = &self.kernel.exprs[e] {
                self.out.several.insert(*b);
            }
            if let Expr::Load(b, x) | Expr::Word(b, x) = &self.kernel.exprs[e] {
                self.load(*b, x);
            }
            super::body::for_each_operand(&self.kernel.exprs[e], &mut |e| open.push(e));
        }
    }
}
