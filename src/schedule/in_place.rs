//! What may write over an operand: what reads it element for element, and updates, where it is memory of this computation's own
//! that nothing reads afterwards. A loop that fills a list element by element then copies no list, and a sum with what a layer
//! skipped, or a product with what squeezes it, moves two arrays and not three. Zeros around stay where they are.
use super::fuse::{Fate, Plan};
use super::{Scheduler, Scope, Value};
use crate::hlo::{Computation, InstId, Op};
use crate::kernel::{BufId, Place};
use crate::schedule::layout::{Layout, Spot};
use crate::util::id_vec::{Id, IdVec};

/// When instructions of a computation run, and when their values are read.
#[derive(Clone, Debug)]
pub struct Lifetimes {
    /// The place of each instruction in the order of execution.
    position: IdVec<InstId, usize>,
    /// The position of the last instruction that reads each value; beyond all for the result.
    last_read: IdVec<InstId, usize>,
}

impl Lifetimes {
    /// Of `comp`, which runs in `order`: an inlined instruction runs, and reads, where its readers run.
    pub fn new(comp: &Computation, plan: &Plan, order: &[InstId]) -> Lifetimes {
        let users = comp.users();
        let mut position: IdVec<InstId, usize> = comp.insts.ids().map(|_| 0).collect();
        for (i, &id) in order.iter().enumerate() {
            position[id] = i;
        }
        let mut last_read: IdVec<InstId, usize> = comp.insts.ids().map(|_| 0).collect();
        last_read[comp.root] = usize::MAX;
        for &id in order.iter().rev() {
            let read_at = |u: InstId| if plan.fate[u] == Fate::Materialised { position[u] } else { last_read[u] };
            let last = users[id].iter().map(|&u| read_at(u)).max().unwrap_or(0);
            last_read[id] = last_read[id].max(last);
        }
        Lifetimes { position, last_read }
    }

    /// When a value is made and when it is read for the last time.
    pub fn of(&self, id: InstId) -> (usize, usize) {
        (self.position[id], self.last_read[id].max(self.position[id]))
    }
}

impl<'a> Scheduler<'a> {
    /// Whether nothing reads `buf` after `id`, and it is memory that this computation may write to.
    pub(super) fn dies(&self, scope: &Scope<'a>, buf: BufId, id: InstId) -> bool {
        let now = scope.lifetimes.position[id];
        matches!(self.program.buffers[buf].place, Place::Workspace(_))
            && !scope.borrowed.contains(&buf)
            && scope
                .values
                .iter()
                .all(|(v, value)| !value.leaves.contains(&buf) || scope.lifetimes.last_read[*v] <= now)
    }

    /// The memory of the operands of an update that may become its result.
    pub(super) fn reused(&self, scope: &Scope<'a>, id: InstId) -> Option<Value> {
        let inst = &scope.comp[id];
        let count = match inst.op {
            Op::DynamicUpdateSlice => 1,
            Op::Scatter { .. } => inst.operands.len() / 2,
            _ => return None,
        };
        let mut leaves = Vec::new();
        for operand in &inst.operands[..count] {
            let value = scope.values.get(operand).filter(|v| v.layout.is_none())?;
            let buf = value.leaves.first().copied()?;
            if leaves.contains(&buf) || !self.dies(scope, buf, id) {
                return None;
            }
            leaves.push(buf);
        }
        // What else the update reads must lie elsewhere: it reads while it writes.
        let others = self.sources(scope, &inst.operands[count..]);
        (!others.iter().any(|b| leaves.contains(b))).then_some(Value { leaves, layout: None })
    }

    /// The memory of an operand that the kernel of `id`, pointwise or a product, may write over.
    pub(super) fn over_operand(&self, scope: &Scope<'a>, id: InstId) -> Option<Value> {
        let comp = scope.comp;
        let shape = comp[id].shape.as_array()?;
        let anchor = scope.plan.anchor[id].map(|a| &comp[a].op);
        let in_order = matches!(comp[id].op, Op::Elementwise(_))
            && matches!(anchor, None | Some(Op::Dot(_) | Op::Convolution(_)))
            && !scope.placed.contains_key(&id)
            && shape.elements() > 0;
        if !in_order {
            return None;
        }
        // where elements lie must suit those who read the result: dense, or with margins as wide as they need
        let suits = |layout: Option<&Layout>| match (&scope.spots[id], layout) {
            (Spot::Dense | Spot::Margin { made: false, .. }, None) => true,
            (Spot::Margin { low, high, made: true }, Some(l)) => {
                let wide = low.iter().zip(&l.low).chain(high.iter().zip(&l.high)).all(|(least, n)| least <= n);
                wide && *l == Layout::with_margin(&shape.dims, &l.low, &l.high)
            }
            (Spot::Dense | Spot::Margin { .. } | Spot::Part { .. }, _) => false,
        };
        let layout = |buf: &BufId| {
            let mut holders = scope.values.values().filter(|v| v.leaves.contains(buf)).map(|v| v.layout.as_ref());
            let layout = holders.next()?;
            holders.all(|l| l == layout).then_some(layout)
        };
        let free = |buf: &BufId| {
            let buffer = &self.program.buffers[*buf];
            let dense = |l: Option<&Layout>| l.is_some() || buffer.elements == shape.elements();
            buffer.dtype == shape.dtype
                && layout(buf).is_some_and(|l| dense(l) && suits(l))
                // the state of a loop is its next value's
                && !scope.states.values().any(|b| b == buf)
                && self.dies(scope, *buf, id)
                && self.reads_in_step(scope, id, *buf)
        };
        let buf = self.sources(scope, &comp[id].operands).into_iter().find(free)?;
        Some(Value { leaves: vec![buf], layout: layout(&buf)?.cloned() })
    }

    /// The buffers that the instructions `ids` are computed from, through inlined ones.
    pub(super) fn sources(&self, scope: &Scope<'a>, ids: &[InstId]) -> Vec<BufId> {
        let mut out = Vec::new();
        let mut seen = vec![false; scope.comp.insts.len()];
        let mut open = ids.to_vec();
        while let Some(id) = open.pop() {
            if std::mem::replace(&mut seen[id.index()], true) {
                continue;
            }
            match scope.values.get(&id) {
                Some(value) => out.extend(&value.leaves),
                None => open.extend(&scope.comp[id].operands),
            }
        }
        out
    }
}
