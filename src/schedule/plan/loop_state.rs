//! The state of a loop is changed where it lies: the next value of a part is written over the old one as soon as nothing reads
//! that again. So that this is soon, what reads the old value goes before what makes the next one.
//!
//! A next value that is computed from other elements of the old one (a product of the state, say), or that the old one must
//! outlive, gets memory of its own and is copied back at the end of the round.
use crate::hlo::{Computation, InstId, Op, Users};
use crate::schedule::plan::fuse::Fusion;
use crate::util::id_vec::{Id, IdVec};
use std::collections::{HashMap, HashSet};

/// The instructions of `comp` that make the next value of one array of the state, with the number of that part.
pub fn next_values(comp: &Computation) -> Vec<(InstId, usize)> {
    let root = &comp[comp.root];
    if comp.params.len() != 1 || root.op != Op::Tuple {
        return Vec::new();
    }
    let times = times(&root.operands);
    let made = |id: InstId| {
        let given = matches!(comp[id].op, Op::GetTupleElement(_) | Op::Parameter(_) | Op::Constant(_));
        !given && times[&id] == 1 && comp[id].shape.as_array().is_some()
    };
    root.operands.iter().enumerate().filter(|(_, id)| made(**id)).map(|(part, id)| (*id, part)).collect()
}

/// How many times each instruction occurs.
fn times(all: &[InstId]) -> HashMap<InstId, usize> {
    let mut times = HashMap::new();
    for &id in all {
        *times.entry(id).or_default() += 1;
    }
    times
}

/// The variables of the entry: behind the arguments its parameters are their values, and behind the results its root has the
/// next values of those that change.
#[derive(Clone, Debug, Default)]
pub struct Variables {
    /// How many arguments there are.
    pub args: usize,
    /// How many results.
    pub results: usize,
    /// Whether each variable changes.
    pub changed: Vec<bool>,
}

impl Variables {
    /// The instructions of the entry that make the next value of one variable each, with the parameter that has the old one.
    pub fn updates(&self, entry: &Computation) -> Vec<(InstId, InstId)> {
        let root = &entry[entry.root];
        let Some(next) = root.operands.get(self.results..).filter(|_| root.op == Op::Tuple) else { return Vec::new() };
        let old = entry.params.iter().skip(self.args).zip(&self.changed).filter(|(_, changed)| **changed);
        let times = times(next);
        let made = |id: InstId| {
            let given = matches!(entry[id].op, Op::GetTupleElement(_) | Op::Parameter(_) | Op::Constant(_));
            !given && times[&id] == 1 && entry[id].shape.as_array().is_some()
        };
        next.iter().zip(old).filter(|(next, _)| made(**next)).map(|(&next, (&old, _))| (next, old)).collect()
    }
}

/// The order of execution `plain` of an entry, but as many of `updates` as possible come behind what reads the old values.
pub fn updated(comp: &Computation, fusion: &Fusion, plain: Vec<InstId>, updates: &[(InstId, InstId)]) -> Vec<InstId> {
    if updates.is_empty() {
        return plain;
    }
    let mut order = Order::of(comp);
    for &(next, old) in updates {
        order.behind_readers(fusion, next, vec![old]);
    }
    order.sorted(plain)
}

/// The numbers of the arrays of the state that no round changes.
pub fn kept(body: &Computation) -> HashSet<usize> {
    let Some(parts) = body.params.first().and_then(|&p| body[p].shape.as_tuple()) else { return HashSet::new() };
    let root = &body[body.root];
    let same = |i: usize| {
        let next = root.operands.get(i).filter(|_| root.op == Op::Tuple);
        next.is_some_and(|&n| body[n].op == Op::GetTupleElement(i) && body[n].operands == body.params)
    };
    let leaves = parts.iter().enumerate().flat_map(|(i, p)| std::iter::repeat_n(same(i), p.leaves().len()));
    leaves.enumerate().filter(|(_, same)| *same).map(|(leaf, _)| leaf).collect()
}

/// An order of execution of the body of a loop in which as many next values as possible come behind what reads the old ones.
/// Cost: one walk of the body for each part of the state.
pub fn order(comp: &Computation, fusion: &Fusion) -> Vec<InstId> {
    let plain = comp.post_order();
    let mut o = Order::of(comp);
    let is_part =
        |id: InstId, part: usize| comp[id].op == Op::GetTupleElement(part) && comp[id].operands == comp.params;
    for (next, part) in next_values(comp) {
        let old: Vec<InstId> = plain.iter().copied().filter(|&id| is_part(id, part)).collect();
        o.behind_readers(fusion, next, old);
    }
    let parts = plain.iter().copied().filter(|&id| matches!(comp[id].op, Op::GetTupleElement(_)));
    let starts = comp.params.iter().copied().chain(parts.filter(|&id| comp[id].operands == comp.params));
    o.sorted(starts.chain([comp.root]).collect())
}

/// The kernels that read the values `old`, through what is inlined into them and what is another view of the same memory.
fn readers(comp: &Computation, fusion: &Fusion, users: &Users, old: Vec<InstId>) -> Vec<InstId> {
    let mut seen: IdVec<InstId, bool> = comp.insts.ids().map(|_| false).collect();
    let (mut open, mut out) = (old, Vec::new());
    while let Some(id) = open.pop() {
        for &u in &users[id] {
            if std::mem::replace(&mut seen[u], true) {
                continue;
            }
            let view = matches!(comp[u].op, Op::Reshape | Op::Bitcast | Op::Copy | Op::OptimizationBarrier);
            if view || !fusion.is_made(u) {
                open.push(u);
            }
            out.push(u);
        }
    }
    out
}

/// The constraints on the order of instructions: operands, and readers of a state that come before its next value.
struct Order<'a> {
    comp: &'a Computation,
    users: Users,
    /// Instructions that must run before each, beside its operands.
    before: IdVec<InstId, Vec<InstId>>,
    after: IdVec<InstId, Vec<InstId>>,
}

impl<'a> Order<'a> {
    /// Operands before their readers.
    fn of(comp: &'a Computation) -> Order<'a> {
        let users = comp.users();
        let after = comp.insts.ids().map(|id| users[id].to_vec()).collect();
        Order { comp, before: comp.insts.ids().map(|_| Vec::new()).collect(), after, users }
    }

    /// Puts `next` behind all that reads the values `old`, where none of that needs `next`.
    fn behind_readers(&mut self, fusion: &Fusion, next: InstId, old: Vec<InstId>) {
        let readers = readers(self.comp, fusion, &self.users, old);
        let readers: Vec<InstId> = readers.into_iter().filter(|&u| u != next).collect();
        let follows = self.following(next);
        if readers.iter().any(|u| follows[*u]) {
            return;
        }
        for u in readers {
            self.before[next].push(u);
            self.after[u].push(next);
        }
    }

    /// The instructions that can only run behind `id`.
    fn following(&self, id: InstId) -> IdVec<InstId, bool> {
        let mut seen: IdVec<InstId, bool> = self.comp.insts.ids().map(|_| false).collect();
        let mut open = vec![id];
        while let Some(id) = open.pop() {
            let fresh = self.after[id].iter().copied().filter(|&u| !std::mem::replace(&mut seen[u], true));
            open.extend(fresh);
        }
        seen
    }

    /// All that `starts` need, each behind what must run before it.
    fn sorted(&self, starts: Vec<InstId>) -> Vec<InstId> {
        let mut seen = vec![false; self.comp.insts.len()];
        let mut out = Vec::with_capacity(seen.len());
        for start in starts {
            let mut stack = vec![(start, 0)];
            while let Some((id, next)) = stack.pop() {
                if next == 0 && std::mem::replace(&mut seen[id.index()], true) {
                    continue;
                }
                let needed = self.comp[id].operands.iter().chain(&self.before[id]);
                match needed.copied().nth(next) {
                    Some(other) => {
                        stack.push((id, next + 1));
                        stack.push((other, 0));
                    }
                    None => out.push(id),
                }
            }
        }
        out
    }
}
