//! The state of a loop is changed where it lies: the next value of a part is written over the old one as soon as nothing reads
//! that again. So that this is soon, what reads the old value goes before what makes the next one.
//!
//! A next value that is computed from other elements of the old one (a product of the state, say), or that the old one must
//! outlive, gets memory of its own and is copied back at the end of the round.
use crate::hlo::{Computation, InstId, Op, Users};
use crate::schedule::plan::fuse::Fusion;
use crate::util::id_vec::{Id, IdVec};
use std::collections::{HashMap, HashSet};

/// The instructions of `comp` that make the next value of one array of a loop's state, with the index of that array.
pub fn next_values(comp: &Computation) -> Vec<(InstId, usize)> {
    let root = &comp[comp.root];
    if comp.params.len() != 1 || root.op != Op::Tuple {
        return Vec::new();
    }
    let times = count_occurrences(&root.operands);
    let made = |id: InstId| {
        let given = matches!(comp[id].op, Op::GetTupleElement(_) | Op::Parameter(_) | Op::Constant(_));
        !given && times[&id] == 1 && comp[id].shape.as_array().is_some()
    };
    root.operands.iter().enumerate().filter(|(_, id)| made(**id)).map(|(part, id)| (*id, part)).collect()
}

/// Number of occurrences of each instruction.
fn count_occurrences(all: &[InstId]) -> HashMap<InstId, usize> {
    let mut times = HashMap::new();
    for &id in all {
        *times.entry(id).or_default() += 1;
    }
    times
}

/// The variables of the entry. The entry has their values as parameters after the arguments, and the next values of those that change in
/// the root after the results.
#[derive(Clone, Debug, Default)]
pub struct EntryVariables {
    /// Number of arguments.
    pub args: usize,
    /// Number of results.
    pub results: usize,
    /// Whether each variable changes.
    pub changed: Vec<bool>,
}

impl EntryVariables {
    /// The instructions that make the next value of a variable, each with the parameter that holds the old one.
    pub fn next_values(&self, entry: &Computation) -> Vec<(InstId, InstId)> {
        let root = &entry[entry.root];
        let Some(next) = root.operands.get(self.results..).filter(|_| root.op == Op::Tuple) else { return Vec::new() };
        let old = entry.params.iter().skip(self.args).zip(&self.changed).filter(|(_, changed)| **changed);
        let times = count_occurrences(next);
        let made = |id: InstId| {
            let given = matches!(entry[id].op, Op::GetTupleElement(_) | Op::Parameter(_) | Op::Constant(_));
            !given && times[&id] == 1 && entry[id].shape.as_array().is_some()
        };
        next.iter().zip(old).filter(|(next, _)| made(**next)).map(|(&next, (&old, _))| (next, old)).collect()
    }
}

/// Reorders the execution order `plain` of an entry so that as many of `updates` as possible follow all readers of the old values.
pub fn order_updates_last(
    comp: &Computation,
    fusion: &Fusion,
    plain: Vec<InstId>,
    updates: &[(InstId, InstId)],
) -> Vec<InstId> {
    if updates.is_empty() {
        return plain;
    }
    let mut order = OrderConstraints::new(comp);
    for &(next, old) in updates {
        order.behind_readers(fusion, next, vec![old]);
    }
    order.topological_order(plain)
}

/// The indices of state arrays that no iteration changes.
pub fn invariant_elements(body: &Computation) -> HashSet<usize> {
    let Some(parts) = body.params.first().and_then(|&p| body[p].shape.as_tuple()) else { return HashSet::new() };
    let root = &body[body.root];
    let same = |i: usize| {
        let next = root.operands.get(i).filter(|_| root.op == Op::Tuple);
        next.is_some_and(|&n| body[n].op == Op::GetTupleElement(i) && body[n].operands == body.params)
    };
    let leaves = parts.iter().enumerate().flat_map(|(i, p)| std::iter::repeat_n(same(i), p.leaves().len()));
    leaves.enumerate().filter(|(_, same)| *same).map(|(leaf, _)| leaf).collect()
}

/// An execution order of a loop body in which as many next values as possible follow all readers of the old ones. Cost: one walk of the
/// body for each array of the state.
pub fn body_order(comp: &Computation, fusion: &Fusion) -> Vec<InstId> {
    let plain = comp.post_order();
    let mut o = OrderConstraints::new(comp);
    let is_part =
        |id: InstId, part: usize| comp[id].op == Op::GetTupleElement(part) && comp[id].operands == comp.params;
    for (next, part) in next_values(comp) {
        let old: Vec<InstId> = plain.iter().copied().filter(|&id| is_part(id, part)).collect();
        o.behind_readers(fusion, next, old);
    }
    let parts = plain.iter().copied().filter(|&id| matches!(comp[id].op, Op::GetTupleElement(_)));
    let starts = comp.params.iter().copied().chain(parts.filter(|&id| comp[id].operands == comp.params));
    o.topological_order(starts.chain([comp.root]).collect())
}

/// The kernels that read the values `old`, through inlined instructions and views.
fn readers(comp: &Computation, fusion: &Fusion, users: &Users, old: Vec<InstId>) -> Vec<InstId> {
    let mut seen: IdVec<InstId, bool> = comp.insts.ids().map(|_| false).collect();
    let (mut open, mut out) = (old, Vec::new());
    while let Some(id) = open.pop() {
        for &u in &users[id] {
            if std::mem::replace(&mut seen[u], true) {
                continue;
            }
            let view = matches!(comp[u].op, Op::Reshape | Op::Bitcast | Op::Copy | Op::OptimizationBarrier);
            if view || !fusion.is_materialised(u) {
                open.push(u);
            }
            out.push(u);
        }
    }
    out
}

/// Ordering constraints of instructions: operands come first, and readers of a state come before its next value.
struct OrderConstraints<'a> {
    comp: &'a Computation,
    users: Users,
    /// Instructions that must run before each instruction, besides its operands.
    before: IdVec<InstId, Vec<InstId>>,
    after: IdVec<InstId, Vec<InstId>>,
}

impl<'a> OrderConstraints<'a> {
    /// Creates the constraints that operands come before their readers.
    fn new(comp: &'a Computation) -> OrderConstraints<'a> {
        let users = comp.users();
        let after = comp.insts.ids().map(|id| users[id].to_vec()).collect();
        OrderConstraints { comp, before: comp.insts.ids().map(|_| Vec::new()).collect(), after, users }
    }

    /// Requires `next` to follow all readers of the values `old`, unless one of those needs `next`.
    fn behind_readers(&mut self, fusion: &Fusion, next: InstId, old: Vec<InstId>) {
        let readers = readers(self.comp, fusion, &self.users, old);
        let readers: Vec<InstId> = readers.into_iter().filter(|&u| u != next).collect();
        let follows = self.instructions_after(next);
        if readers.iter().any(|u| follows[*u]) {
            return;
        }
        for u in readers {
            self.before[next].push(u);
            self.after[u].push(next);
        }
    }

    /// The instructions that can only run after `id`.
    fn instructions_after(&self, id: InstId) -> IdVec<InstId, bool> {
        let mut seen: IdVec<InstId, bool> = self.comp.insts.ids().map(|_| false).collect();
        let mut open = vec![id];
        while let Some(id) = open.pop() {
            let fresh = self.after[id].iter().copied().filter(|&u| !std::mem::replace(&mut seen[u], true));
            open.extend(fresh);
        }
        seen
    }

    /// A topological order of `starts` and everything that must run before them.
    fn topological_order(&self, starts: Vec<InstId>) -> Vec<InstId> {
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
