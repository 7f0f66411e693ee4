//! Lifetimes of memory. Before there are kernels, [`MemoryDemand`] is the peak of a computation's arrays, without the scratch memory of kernels;
//! `memory/workspace.rs` computes the peak of a program's buffers in the same way.
use crate::hlo::{Computation, InstId, Op};
use crate::schedule::memory::layout::Layout;
use crate::schedule::plan::fuse::Fusion;
use crate::schedule::plan::placement::Placement;
use crate::util::id_vec::IdVec;
use std::collections::BTreeMap;

/// Positions at which instructions of a computation run and at which their values are last read.
#[derive(Clone, Debug)]
pub struct Lifetimes {
    /// Position of each instruction in the execution order.
    position: IdVec<InstId, usize>,
    /// Position of the last instruction that reads each value; beyond all positions for the result.
    last_read: IdVec<InstId, usize>,
}

impl Lifetimes {
    /// Computes the lifetimes of values in `comp` for the execution `order`. An inlined instruction runs, and reads its operands, where
    /// its readers run.
    pub fn new(comp: &Computation, fusion: &Fusion, order: &[InstId]) -> Lifetimes {
        let users = comp.users();
        let mut position: IdVec<InstId, usize> = comp.insts.ids().map(|_| 0).collect();
        for (i, &id) in order.iter().enumerate() {
            position[id] = i;
        }
        let mut last_read: IdVec<InstId, usize> = comp.insts.ids().map(|_| 0).collect();
        last_read[comp.root] = usize::MAX;
        for &id in order.iter().rev() {
            let read_at = |u: InstId| if fusion.is_materialised(u) { position[u] } else { last_read[u] };
            let last = users[id].iter().map(|&u| read_at(u)).max().unwrap_or(0);
            last_read[id] = last_read[id].max(last);
        }
        Lifetimes { position, last_read }
    }

    /// The position of the last instruction that reads a value; beyond all positions for the result.
    pub fn last_read(&self, id: InstId) -> usize {
        self.last_read[id]
    }

    /// The live range of a value.
    pub fn live_range(&self, id: InstId) -> LiveRange {
        let first = self.position[id];
        LiveRange { first, last: self.last_read[id].max(first) }
    }
}

/// The array that each value of a computation occupies.
struct ComputationArrays {
    /// The value whose memory each value is a view of; the value itself if it is no view.
    held: IdVec<InstId, InstId>,
    /// The array that holds each value: views are resolved, and parts of a concatenation that are written in place belong to its array.
    joined: IdVec<InstId, InstId>,
    /// Bytes of each array with margins and without; zero for values that are not allocated in the workspace.
    bytes: IdVec<InstId, (u64, u64)>,
}

impl ComputationArrays {
    /// Resolves the arrays of `comp`; `order` has operands before their readers.
    fn resolve(
        comp: &Computation,
        fusion: &Fusion,
        placements: &IdVec<InstId, Placement>,
        order: &[InstId],
    ) -> ComputationArrays {
        let mut held: IdVec<InstId, InstId> = comp.insts.ids().collect();
        let mut joined: IdVec<InstId, InstId> = comp.insts.ids().collect();
        for &id in order {
            let dense = |id: InstId| fusion.is_materialised(id) && placements[id] == Placement::Dense;
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
            if let Placement::Part { whole, .. } = placements[id] {
                joined[id] = joined[whole];
            }
        }
        let bytes = |id: InstId| -> (u64, u64) {
            let inst = &comp[id];
            let free = matches!(inst.op, Op::Parameter(_) | Op::Constant(_) | Op::Tuple) || !fusion.is_materialised(id);
            let dense: u64 = inst.shape.leaves().iter().map(|a| a.bytes()).sum();
            match (&placements[id], inst.shape.as_array()) {
                _ if free => (0, 0),
                (Placement::Margin { low, high, made: true }, Some(a)) => {
                    let elements = Layout::with_margin(&a.dims, low, high).element_count(&a.dims);
                    (elements.saturating_mul(a.dtype.bytes() as u64), dense)
                }
                _ => (dense, dense),
            }
        };
        ComputationArrays { held, joined, bytes: comp.insts.ids().map(bytes).collect() }
    }
}

/// Rule by which values may share an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArraySharing {
    /// Only views share an array with other values: arrays are dense, and concatenations are separate from their parts.
    Views,
    /// Sharing as planned: parts of concatenations are written in place, results overwrite operands that are dead, and arrays have the
    /// margins that windows want.
    Planned,
}

/// Memory of the arrays of a computation for one execution order.
pub struct MemoryDemand {
    /// Lifetimes of the values.
    pub lifetimes: Lifetimes,
    /// The array that holds each value.
    pub of: IdVec<InstId, InstId>,
    /// Bytes and live range of each array.
    pub spans: BTreeMap<InstId, (u64, LiveRange)>,
    /// The most bytes that live at one position.
    pub bytes: u64,
    /// The first position in the execution order at which `bytes` bytes live; `None` if no array does.
    pub at: Option<usize>,
}

impl MemoryDemand {
    /// Computes the memory of `comp` for an execution `order`.
    pub fn compute(
        comp: &Computation,
        fusion: &Fusion,
        placements: &IdVec<InstId, Placement>,
        order: &[InstId],
        sharing: ArraySharing,
    ) -> MemoryDemand {
        let lifetimes = Lifetimes::new(comp, fusion, order);
        let arrays = ComputationArrays::resolve(comp, fusion, placements, order);
        let of = match sharing {
            ArraySharing::Views => arrays.held,
            ArraySharing::Planned => in_place(comp, fusion, arrays.joined, &arrays.bytes, order, &lifetimes),
        };
        let mut spans: BTreeMap<InstId, (u64, LiveRange)> = BTreeMap::new();
        for &id in order.iter().filter(|&&id| fusion.is_materialised(id)) {
            let (with_margins, dense) = arrays.bytes[of[id]];
            let bytes = if sharing == ArraySharing::Views { dense } else { with_margins };
            let own = lifetimes.live_range(id);
            let (_, span) = spans.entry(of[id]).or_insert((bytes, own));
            *span = span.hull(own);
        }
        let (bytes, at) = peak_bytes(spans.values().copied());
        MemoryDemand { lifetimes, of, spans, bytes, at: at.filter(|_| bytes > 0) }
    }
}

/// Resolves the array that holds each value if results may overwrite operands that are dead.
fn in_place(
    comp: &Computation,
    fusion: &Fusion,
    mut of: IdVec<InstId, InstId>,
    bytes: &IdVec<InstId, (u64, u64)>,
    order: &[InstId],
    lifetimes: &Lifetimes,
) -> IdVec<InstId, InstId> {
    for &id in order {
        let whole = matches!(comp[id].op, Op::Elementwise(_)) && fusion.is_materialised(id);
        if !whole || of[id] != id {
            continue;
        }
        let now = lifetimes.live_range(id).first;
        let over = comp[id].operands.iter().copied().find(|&o| {
            let made = fusion.is_materialised(o) && bytes[of[o]] == bytes[id];
            made && bytes[o].0 > 0 && lifetimes.live_range(o).last == now
        });
        if let Some(over) = over {
            of[id] = of[over];
        }
    }
    of
}

/// A live range: an interval of moments, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LiveRange {
    /// The first moment.
    pub first: usize,
    /// The last moment.
    pub last: usize,
}

impl LiveRange {
    /// Calls `each` with the nodes of a segment tree over `moments` moments (a power of two) that together cover the range: node `n` has
    /// the children `2n` and `2n + 1`, and moment `m` is the leaf `moments + m`.
    pub fn for_each_tree_node(self, moments: usize, mut each: impl FnMut(usize)) {
        let (mut low, mut high) = (self.first + moments, self.last + moments + 1);
        while low < high {
            if low % 2 == 1 {
                each(low);
                low += 1;
            }
            if high % 2 == 1 {
                high -= 1;
                each(high);
            }
            (low, high) = (low / 2, high / 2);
        }
    }
    /// Whether the range contains a moment.
    pub fn contains(&self, at: usize) -> bool {
        self.first <= at && at <= self.last
    }

    /// Whether two ranges have a moment in common.
    #[cfg(test)]
    pub fn overlaps(&self, other: LiveRange) -> bool {
        self.first <= other.last && other.first <= self.last
    }

    /// The smallest range that contains both.
    pub fn hull(&self, other: LiveRange) -> LiveRange {
        LiveRange { first: self.first.min(other.first), last: self.last.max(other.last) }
    }

    /// The moments that both ranges contain.
    #[cfg(test)]
    pub fn intersection(&self, other: LiveRange) -> Option<LiveRange> {
        let both = LiveRange { first: self.first.max(other.first), last: self.last.min(other.last) };
        self.overlaps(other).then_some(both)
    }
}

/// The most bytes that live at one moment, and the first such moment; `None` if nothing lives.
pub fn peak_bytes(all: impl IntoIterator<Item = (u64, LiveRange)>) -> (u64, Option<usize>) {
    let mut changes: Vec<(usize, bool, u64)> = Vec::new();
    for (bytes, span) in all {
        changes.extend([(span.first, true, bytes), (span.last.saturating_add(1), false, bytes)]);
    }
    changes.sort_unstable();
    let (mut now, mut most, mut when) = (0u64, 0, None);
    for (at, begins, bytes) in changes {
        now = if begins { now.saturating_add(bytes) } else { now.saturating_sub(bytes) };
        if now > most {
            (most, when) = (now, Some(at));
        }
    }
    (most, when)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ends_as_another_begins_still_lives() {
        let span = |first, last| LiveRange { first, last };
        assert_eq!(peak_bytes([(64, span(0, 1)), (128, span(1, 2)), (64, span(2, usize::MAX))]), (192, Some(1)));
        assert_eq!(peak_bytes([(0, span(0, 1))]), (0, None));
        assert_eq!(peak_bytes([]), (0, None));
    }
}
