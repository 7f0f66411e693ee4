//! Rules of the steps: k9, k10 and k11. Which buffers hold values is followed through launches, branches and loops; a store to
//! memory that another buffer shares makes that one undefined.
use super::{Fault, bytes};
use crate::kernel::call::find_call;
use crate::kernel::{Access, BufId, Call, Expr, ExprId, Index, Kernel, KernelId, Place, Program, Step, Stmt, TileSums};
use crate::util::id_vec::Id;
use std::collections::BTreeSet;

/// Loads and stores of a kernel.
#[derive(Clone, Debug, Default)]
struct Touched<'k> {
    /// Buffers that are loaded before the kernel itself stores to them.
    outside: BTreeSet<BufId>,
    /// Buffers whose elements are loaded or stored together with others.
    several: BTreeSet<BufId>,
    /// Every load.
    loads: Vec<(BufId, &'k Index)>,
    /// Every store.
    stores: Vec<(BufId, &'k Index)>,
}

/// Follows all steps.
pub fn check(program: &Program) -> Result<(), Fault> {
    let mut f = Flow { program, kernels: program.kernels.values().map(touched).collect(), shared: shared(program) };
    for k in 0..f.kernels.len() {
        f.in_place(KernelId::from_index(k))?;
    }
    let given = |b: &BufId| matches!(program.buffers[*b].place, Place::Arg(_) | Place::Weights(_) | Place::State(_));
    let mut defined: BTreeSet<BufId> = program.buffers.ids().filter(given).collect();
    f.steps(&program.steps, &mut defined)?;
    // other values may have been where a result is in the end
    let made = |i: usize| {
        let whole =
            |b: BufId| program.buffers[b].place == Place::Result(i) && bytes(program, b) == program.results[i].bytes();
        program.results[i].bytes() == 0 || defined.iter().any(|&b| whole(b))
    };
    match (0..program.results.len()).find(|&i| !made(i)) {
        Some(i) => Err(format!("k9: result {i} is never written")),
        None => Ok(()),
    }
}

/// The buffers that share memory with each buffer.
fn shared(program: &Program) -> Vec<Vec<BufId>> {
    let span = |b: BufId| match program.buffers[b].place {
        Place::Workspace(at) if bytes(program, b) > 0 => Some((at, at + bytes(program, b))),
        _ => None,
    };
    let result = |b: BufId| match program.buffers[b].place {
        Place::Result(i) => Some(i),
        _ => None,
    };
    let mut all: Vec<(u64, u64, BufId)> =
        program.buffers.ids().filter_map(|b| span(b).map(|(from, to)| (from, to, b))).collect();
    all.sort_unstable();
    let mut out = vec![Vec::new(); program.buffers.len()];
    for (i, &(_, to, a)) in all.iter().enumerate() {
        for &(_, _, b) in all[i + 1..].iter().take_while(|x| x.0 < to) {
            out[a.index()].push(b);
            out[b.index()].push(a);
        }
    }
    for a in program.buffers.ids().filter(|&a| result(a).is_some()) {
        out[a.index()] = program.buffers.ids().filter(|&b| b != a && result(b) == result(a)).collect();
    }
    out
}

struct Flow<'a> {
    program: &'a Program,
    kernels: Vec<Touched<'a>>,
    shared: Vec<Vec<BufId>>,
}

impl Flow<'_> {
    fn steps(&mut self, all: &[Step], defined: &mut BTreeSet<BufId>) -> Result<(), Fault> {
        for step in all {
            match step {
                Step::Launch(k) => self.launch(*k, defined)?,
                Step::Call(call) => self.call(call, defined)?,
                Step::While { cond, pred, body } => {
                    // What holds before every round is what holds before the first and after any: it only shrinks.
                    let mut rounds = 0;
                    loop {
                        let before = defined.clone();
                        self.steps(cond, defined)?;
                        self.needs(*pred, defined)?;
                        let after_cond = defined.clone();
                        self.steps(body, defined)?;
                        let kept: BTreeSet<BufId> = defined.intersection(&before).copied().collect();
                        *defined = after_cond;
                        if kept == before || rounds > 64 {
                            break;
                        }
                        (*defined, rounds) = (kept, rounds + 1);
                    }
                }
                Step::Branch { selector, branches } => {
                    self.needs(*selector, defined)?;
                    let mut joined: Option<BTreeSet<BufId>> = None;
                    for branch in branches {
                        let mut after = defined.clone();
                        self.steps(branch, &mut after)?;
                        joined = Some(joined.map_or(after.clone(), |j| j.intersection(&after).copied().collect()));
                    }
                    *defined = joined.unwrap_or_else(|| defined.clone());
                }
                Step::Together(parts) => {
                    self.apart(parts)?;
                    parts.iter().try_for_each(|part| self.steps(part, defined))?;
                }
            }
        }
        Ok(())
    }

    fn needs(&self, buf: BufId, defined: &BTreeSet<BufId>) -> Result<(), Fault> {
        if defined.contains(&buf) {
            return Ok(());
        }
        Err(format!("k9: b{} is read and holds nothing", buf.0))
    }

    fn launch(&mut self, id: KernelId, defined: &mut BTreeSet<BufId>) -> Result<(), Fault> {
        let touched = &self.kernels[id.index()];
        let limit = self.program.kernels[id].limit.map(|(buf, _)| buf);
        for &b in touched.outside.iter().chain(&limit) {
            self.needs(b, defined).map_err(|why| format!("{why} by k{}", id.0))?;
        }
        for (b, _) in &touched.stores {
            for other in &self.shared[b.index()] {
                defined.remove(other);
            }
        }
        let stays = |b: &BufId| self.program.buffers[*b].place != Place::Stack;
        defined.extend(touched.stores.iter().map(|s| s.0).filter(stays));
        Ok(())
    }

    fn call(&self, call: &Call, defined: &mut BTreeSet<BufId>) -> Result<(), Fault> {
        for &b in &call.args {
            self.needs(b, defined).map_err(|why| format!("{why} by `{}`", call.to.name()))?;
        }
        for b in &call.results {
            if let Some(read) = self.shared[b.index()].iter().chain([b]).find(|b| call.args.contains(b)) {
                return Err(format!("k10: `{}` reads b{} and overwrites it", call.to.name(), read.0));
            }
            for other in &self.shared[b.index()] {
                defined.remove(other);
            }
            if matches!(self.program.buffers[*b].place, Place::Arg(_) | Place::Weights(_) | Place::Stack) {
                return Err(format!("k8: `{}` writes b{}", call.to.name(), b.0));
            }
        }
        defined.extend(&call.results);
        Ok(())
    }

    /// k11.
    fn apart(&self, parts: &[Vec<Step>]) -> Result<(), Fault> {
        if let Some(call) = parts.iter().find_map(|part| find_call(part, &mut Some)) {
            return Err(format!("k11: `{}` is called beside other steps", call.name()));
        }
        let touched: Vec<Access> = parts.iter().map(|part| Access::of(self.program, part)).collect();
        for (i, part) in touched.iter().enumerate() {
            for &written in &part.written {
                let memory = self.shared[written.index()].iter().copied().chain([written]);
                let others = touched.iter().enumerate().filter(|other| other.0 != i);
                let met = |b: &BufId| others.clone().any(|(_, o)| o.read.contains(b) || o.written.contains(b));
                if let Some(b) = memory.into_iter().find(met) {
                    return Err(format!("k11: b{} is written while b{} is in use", written.0, b.0));
                }
            }
        }
        Ok(())
    }

    /// k10.
    fn in_place(&self, id: KernelId) -> Result<(), Fault> {
        let touched = &self.kernels[id.index()];
        let written: BTreeSet<BufId> = touched.stores.iter().map(|s| s.0).collect();
        for &w in &written {
            let partners = self.shared[w.index()].iter().filter(|p| touched.outside.contains(p));
            for &p in partners {
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
fn touched(kernel: &Kernel) -> Touched<'_> {
    let mut walk =
        Walk { kernel, out: Touched::default(), stored: BTreeSet::new(), seen: vec![false; kernel.exprs.len()] };
    walk.stmts(&kernel.body);
    walk.out
}

struct Walk<'k> {
    kernel: &'k Kernel,
    out: Touched<'k>,
    stored: BTreeSet<BufId>,
    seen: Vec<bool>,
}

impl<'k> Walk<'k> {
    fn stmts(&mut self, all: &'k [Stmt]) {
        for s in all {
            match s {
                Stmt::Store { buf, index, value } => {
                    let mut from = vec![*value];
                    super::body::for_values(index, &mut |e| from.push(e));
                    self.read(from);
                    self.out.stores.push((*buf, index));
                    self.stored.insert(*buf);
                }
                Stmt::Tiles(sums) => self.tiles(sums),
                Stmt::Release => {}
                Stmt::Prefetch { index, .. } => {
                    let mut from = Vec::new();
                    super::body::for_values(index, &mut |e| from.push(e));
                    self.read(from);
                }
                Stmt::Set { value, .. } => self.read(vec![*value]),
                Stmt::If { cond, body } | Stmt::While { cond, body } => {
                    self.read(vec![*cond]);
                    self.stmts(body);
                }
                Stmt::Let { value, body, .. } => {
                    let mut from = Vec::new();
                    super::body::for_values(value, &mut |e| from.push(e));
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
            super::body::for_values(span.first, &mut |e| from.push(e));
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
            if let Expr::Pair(b, _) = &self.kernel.exprs[e] {
                self.out.several.insert(*b);
            }
            if let Expr::Load(b, x) | Expr::Pair(b, x) = &self.kernel.exprs[e] {
                self.load(*b, x);
            }
            super::body::for_operands(&self.kernel.exprs[e], &mut |e| open.push(e));
        }
    }
}
