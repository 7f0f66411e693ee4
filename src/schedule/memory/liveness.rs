//! Lifetimes of memory. Before there are kernels, [`MemoryDemand`] is the peak of a computation's arrays, without the scratch memory of kernels;
//! `memory/workspace.rs` computes the peak of a program's buffers in the same way.
use crate::hlo::{Computation, InstId, Op};
use crate::schedule::memory::layout::Layout;
use crate::schedule::plan::fuse::Fusion;
use crate::schedule::plan::placement::Placement;
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
    /// Computes the lifetimes of values in `comp`, which runs in `order`: an inlined instruction runs, and reads, where its readers run.
    pub fn new(comp: &Computation, fusion: &Fusion, order: &[InstId]) -> Lifetimes {
        let users = comp.users();
        let mut position: IdVec<InstId, usize> = comp.insts.ids().map(|_| 0).collect();
        for (i, &id) in order.iter().enumerate() {
            position[id] = i;
        }
        let mut last_read: IdVec<InstId, usize> = comp.insts.ids().map(|_| 0).collect();
        last_read[comp.root] = usize::MAX;
        for &id in order.iter().rev() {
            let read_at = |u: InstId| if fusion.is_made(u) { position[u] } else { last_read[u] };
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
    pub fn of(&self, id: InstId) -> LiveRange {
        let first = self.position[id];
        LiveRange { first, last: self.last_read[id].max(first) }
    }
}

/// The arrays of a computation.
struct Arrays {
    /// A view is the value that it shows.
    held: IdVec<InstId, InstId>,
    /// The array that holds each value: views are resolved, and a part of a concatenation that is made in its place is the whole.
    joined: IdVec<InstId, InstId>,
    /// Bytes with margins, and without; none where nothing is made in the workspace.
    bytes: IdVec<InstId, (u64, u64)>,
}

impl Arrays {
    /// Resolves the arrays of `comp`; `order` has operands before their readers.
    fn of(comp: &Computation, fusion: &Fusion, placements: &IdVec<InstId, Placement>, order: &[InstId]) -> Arrays {
        let mut held: IdVec<InstId, InstId> = comp.insts.ids().collect();
        let mut joined: IdVec<InstId, InstId> = comp.insts.ids().collect();
        for &id in order {
            let dense = |id: InstId| fusion.is_made(id) && placements[id] == Placement::Dense;
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
            let free = matches!(inst.op, Op::Parameter(_) | Op::Constant(_) | Op::Tuple) || !fusion.is_made(id);
            let dense: u64 = inst.shape.leaves().iter().map(|a| a.bytes()).sum();
            match (&placements[id], inst.shape.as_array()) {
                _ if free => (0, 0),
                (Placement::Margin { low, high, made: true }, Some(a)) => {
                    let elements = Layout::with_margin(&a.dims, low, high).elements(&a.dims);
                    (elements.saturating_mul(a.dtype.bytes() as u64), dense)
                }
                _ => (dense, dense),
            }
        };
        Arrays { held, joined, bytes: comp.insts.ids().map(bytes).collect() }
    }
}

/// The rule by which values share an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// Views, and no others: arrays are dense, and concatenations lie beside their parts.
    Views,
    /// The arrays of the plan: parts of concatenations are made in their places, results are written over operands that nothing reads
    /// afterwards, and arrays have the margins that windows want.
    Planned,
}

/// The memory that the arrays of a computation take, as its kernels run in some order.
pub struct MemoryDemand {
    /// When values live.
    pub lifetimes: Lifetimes,
    /// The array that holds each value.
    pub of: IdVec<InstId, InstId>,
    /// The bytes of each array, and between which places in the order it lives.
    pub spans: BTreeMap<InstId, (u64, LiveRange)>,
    /// The most bytes that live at once.
    pub bytes: u64,
    /// The first place in the order at which that many bytes live.
    pub at: Option<usize>,
}

impl MemoryDemand {
    /// Computes the memory of `comp` in `order`, which has operands before their readers.
    pub fn of(
        comp: &Computation,
        fusion: &Fusion,
        placements: &IdVec<InstId, Placement>,
        order: &[InstId],
        sharing: Sharing,
    ) -> MemoryDemand {
        let lifetimes = Lifetimes::new(comp, fusion, order);
        let arrays = Arrays::of(comp, fusion, placements, order);
        let of = match sharing {
            Sharing::Views => arrays.held,
            Sharing::Planned => in_place(comp, fusion, arrays.joined, &arrays.bytes, order, &lifetimes),
        };
        let mut spans: BTreeMap<InstId, (u64, LiveRange)> = BTreeMap::new();
        for &id in order.iter().filter(|&&id| fusion.is_made(id)) {
            let (with_margins, dense) = arrays.bytes[of[id]];
            let bytes = if sharing == Sharing::Views { dense } else { with_margins };
            let own = lifetimes.of(id);
            let (_, span) = spans.entry(of[id]).or_insert((bytes, own));
            *span = span.with(own);
        }
        let (bytes, at) = most(spans.values().copied());
        MemoryDemand { lifetimes, of, spans, bytes, at: at.filter(|_| bytes > 0) }
    }
}

/// Resolves the array that holds each value, where a result may be written over an operand that nothing reads afterwards.
fn in_place(
    comp: &Computation,
    fusion: &Fusion,
    mut of: IdVec<InstId, InstId>,
    bytes: &IdVec<InstId, (u64, u64)>,
    order: &[InstId],
    lifetimes: &Lifetimes,
) -> IdVec<InstId, InstId> {
    for &id in order {
        let whole = matches!(comp[id].op, Op::Elementwise(_)) && fusion.is_made(id);
        if !whole || of[id] != id {
            continue;
        }
        let now = lifetimes.of(id).first;
        let over = comp[id].operands.iter().copied().find(|&o| {
            let made = fusion.is_made(o) && bytes[of[o]] == bytes[id];
            made && bytes[o].0 > 0 && lifetimes.of(o).last == now
        });
        if let Some(over) = over {
            of[id] = of[over];
        }
    }
    of
}

/// From one moment to another, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LiveRange {
    /// When memory is first touched.
    pub first: usize,
    /// The last moment.
    pub last: usize,
}

impl LiveRange {
    /// The nodes of a segment tree over `moments` moments, a power of two, that together cover the span: each half of node `n` is a
    /// child, `2n` and `2n + 1`, and moment `m` is the leaf `moments + m`.
    pub fn nodes(self, moments: usize, mut each: impl FnMut(usize)) {
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
    /// Whether the span contains a moment.
    pub fn has(&self, at: usize) -> bool {
        self.first <= at && at <= self.last
    }

    /// Whether both live at some moment.
    #[cfg(test)]
    pub fn meets(&self, other: LiveRange) -> bool {
        self.first <= other.last && other.first <= self.last
    }

    /// From the first moment of both to the last.
    pub fn with(&self, other: LiveRange) -> LiveRange {
        LiveRange { first: self.first.min(other.first), last: self.last.max(other.last) }
    }

    /// The part of the span that is also in another one.
    #[cfg(test)]
    pub fn within(&self, other: LiveRange) -> Option<LiveRange> {
        let both = LiveRange { first: self.first.max(other.first), last: self.last.min(other.last) };
        self.meets(other).then_some(both)
    }
}

/// The most bytes that live at one moment, and the first such moment; none where nothing lives.
pub fn most(all: impl IntoIterator<Item = (u64, LiveRange)>) -> (u64, Option<usize>) {
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
        assert_eq!(most([(64, span(0, 1)), (128, span(1, 2)), (64, span(2, usize::MAX))]), (192, Some(1)));
        assert_eq!(most([(0, span(0, 1))]), (0, None));
        assert_eq!(most([]), (0, None));
    }
}
