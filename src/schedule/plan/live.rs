//! How much memory lives when, as far as that can be told before there are kernels: the arrays of a computation, not what a kernel
//! takes for itself.
use super::fuse::{Fate, Fusion};
use super::spots::Spot;
use crate::hlo::{Computation, InstId, Op};
use crate::schedule::layout::Layout;
use crate::util::id_vec::IdVec;
use std::collections::BTreeMap;

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
    pub fn new(comp: &Computation, fusion: &Fusion, order: &[InstId]) -> Lifetimes {
        let users = comp.users();
        let mut position: IdVec<InstId, usize> = comp.insts.ids().map(|_| 0).collect();
        for (i, &id) in order.iter().enumerate() {
            position[id] = i;
        }
        let mut last_read: IdVec<InstId, usize> = comp.insts.ids().map(|_| 0).collect();
        last_read[comp.root] = usize::MAX;
        for &id in order.iter().rev() {
            let read_at = |u: InstId| if fusion.fate[u] == Fate::Materialised { position[u] } else { last_read[u] };
            let last = users[id].iter().map(|&u| read_at(u)).max().unwrap_or(0);
            last_read[id] = last_read[id].max(last);
        }
        Lifetimes { position, last_read }
    }

    /// The position of the last instruction that reads a value; beyond all for the result.
    pub fn last_read(&self, id: InstId) -> usize {
        self.last_read[id]
    }

    /// When a value is made and when it is read for the last time.
    pub fn of(&self, id: InstId) -> (usize, usize) {
        (self.position[id], self.last_read[id].max(self.position[id]))
    }
}

/// The arrays of a computation.
pub struct Arrays {
    /// A view is the value that it shows.
    pub held: IdVec<InstId, InstId>,
    /// That, and a part of a concatenation that is made in its place is the whole.
    pub joined: IdVec<InstId, InstId>,
    /// Bytes with margins, and without; none where nothing is made in the workspace.
    pub bytes: IdVec<InstId, (u64, u64)>,
}

impl Arrays {
    /// Of `comp`; `order` has operands before their readers.
    pub fn of(comp: &Computation, fusion: &Fusion, spots: &IdVec<InstId, Spot>, order: &[InstId]) -> Arrays {
        let mut held: IdVec<InstId, InstId> = comp.insts.ids().collect();
        let mut joined: IdVec<InstId, InstId> = comp.insts.ids().collect();
        for &id in order {
            let dense = |id: InstId| fusion.fate[id] == Fate::Materialised && spots[id] == Spot::Dense;
            let view = match comp[id].op {
                Op::GetTupleElement(_) => true,
                // loops make what is inlined or lies otherwise
                Op::Reshape | Op::Bitcast | Op::Copy | Op::OptimizationBarrier => {
                    dense(id) && dense(comp[id].operands[0])
                }
                _ => false,
            };
            if let (true, Some(&operand)) = (view, comp[id].operands.first()) {
                (held[id], joined[id]) = (held[operand], joined[operand]);
            }
        }
        for &id in order.iter().rev() {
            if let Spot::Part { whole, .. } = spots[id] {
                joined[id] = joined[whole];
            }
        }
        let bytes = |id: InstId| -> (u64, u64) {
            let inst = &comp[id];
            let free = matches!(inst.op, Op::Parameter(_) | Op::Constant(_) | Op::Tuple)
                || fusion.fate[id] != Fate::Materialised;
            let dense: u64 = inst.shape.leaves().iter().map(|a| a.bytes()).sum();
            match (&spots[id], inst.shape.as_array()) {
                _ if free => (0, 0),
                (Spot::Margin { low, high, made: true }, Some(a)) => {
                    let elements = Layout::with_margin(&a.dims, low, high).elements(&a.dims);
                    (elements.saturating_mul(a.dtype.bytes() as u64), dense)
                }
                _ => (dense, dense),
            }
        };
        Arrays { held, joined, bytes: comp.insts.ids().map(bytes).collect() }
    }
}

/// Between which positions of `order` each array lives, where `of` says which array a value is.
pub fn spans(
    order: &[InstId],
    fusion: &Fusion,
    lifetimes: &Lifetimes,
    of: &IdVec<InstId, InstId>,
) -> BTreeMap<InstId, (usize, usize)> {
    let mut spans: BTreeMap<InstId, (usize, usize)> = BTreeMap::new();
    for &id in order.iter().filter(|&&id| fusion.fate[id] == Fate::Materialised) {
        let (first, last) = lifetimes.of(id);
        let span = spans.entry(of[id]).or_insert((first, last));
        *span = (span.0.min(first), span.1.max(last));
    }
    spans
}

/// The most bytes that live at one position of `length`, and the first such position.
pub fn most(
    length: usize,
    spans: &BTreeMap<InstId, (usize, usize)>,
    bytes: impl Fn(InstId) -> u64,
) -> (u64, Option<usize>) {
    let mut changes = vec![0i128; length + 1];
    for (&id, &(first, last)) in spans {
        let bytes = i128::from(bytes(id));
        changes[first] += bytes;
        changes[last.min(length.saturating_sub(1)) + 1] -= bytes;
    }
    let (mut now, mut most, mut at) = (0, 0, None);
    for (i, change) in changes.into_iter().take(length).enumerate() {
        now += change;
        if now > most {
            (most, at) = (now, Some(i));
        }
    }
    (u64::try_from(most).unwrap_or(u64::MAX), at)
}
