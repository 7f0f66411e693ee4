//! Where memory lies that is wanted from one moment to another, so that little is taken: several orders, first fit.
use crate::kernel::BufId;
use crate::schedule::memory::liveness::{self, LiveRange};
use crate::util::id_vec::Id;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

/// A buffer that needs memory from one launch to another.
#[derive(Clone, Copy)]
pub struct BufferRequest {
    /// The buffer.
    pub buf: BufId,
    /// The size in bytes, a multiple of the alignment.
    pub bytes: u64,
    /// The alignment of the buffer's offset.
    pub align: u64,
    /// The launches from the first that touches the buffer to the last.
    pub span: LiveRange,
}

/// Upper limit of comparisons of two buffers that the search for a better plan may take.
const BUDGET: u64 = 50_000_000;

/// Plans the offsets of buffers; returns the total size and the offsets.
///
/// The buffers are placed one after the other, each at the lowest offset that no buffer with an overlapping lifetime uses: the largest
/// first, then the longest-lived, then in the order of the program. While the plan takes more than the bytes that live at one launch, the
/// buffer that ends highest is moved to the front and all are placed again; the best plan is kept. If too many lifetimes overlap to
/// compare buffers in pairs, they are placed in the order of the program alone, which takes n log n.
pub fn plan_offsets(wanted: &[BufferRequest]) -> (u64, Vec<u64>) {
    if overlapping_pairs(wanted) > BUDGET {
        return place_by_sweep(wanted);
    }
    let (least, _) = peak_live_bytes(wanted);
    let mut orders: Vec<Vec<usize>> = vec![(0..wanted.len()).collect(); 2];
    let of = |i: &usize| &wanted[*i];
    orders[0].sort_by_key(|i| (Reverse(of(i).bytes), of(i).buf.index()));
    orders[1].sort_by_key(|i| (Reverse(of(i).span.last - of(i).span.first), of(i).buf.index()));
    orders.push(program_order(wanted));
    let mut space = Space::new(wanted);
    let mut found = space.place_in_order(&orders[0]);
    let mut rounds = BUDGET / (wanted.len() as u64).pow(2).max(1);
    for (number, order) in orders.iter_mut().enumerate() {
        let mut tried = if number == 0 { found.clone() } else { space.place_in_order(order) };
        for _ in 0..wanted.len() {
            if tried.0 < found.0 {
                found = tried.clone();
            }
            if found.0 <= least || rounds == 0 {
                return found;
            }
            rounds -= 1;
            let highest = order.iter().position(|&i| tried.1[i] + wanted[i].bytes == tried.0);
            let Some(highest) = highest.filter(|&at| at > 0) else { break };
            order[..=highest].rotate_right(1);
            tried = space.place_in_order(order);
        }
    }
    found
}

/// Buffers sorted by when they are first touched, the largest first among equals.
fn program_order(wanted: &[BufferRequest]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by_key(|&i| (wanted[i].span.first, Reverse(wanted[i].bytes), wanted[i].buf.index()));
    order
}

/// Number of pairs of buffers with overlapping lifetimes.
fn overlapping_pairs(wanted: &[BufferRequest]) -> u64 {
    let mut firsts: Vec<usize> = wanted.iter().map(|w| w.span.first).collect();
    let mut lasts: Vec<usize> = wanted.iter().map(|w| w.span.last).collect();
    firsts.sort_unstable();
    lasts.sort_unstable();
    let before = |w: &BufferRequest| firsts.partition_point(|&first| first <= w.span.last) as u64;
    let over = |w: &BufferRequest| lasts.partition_point(|&last| last < w.span.first) as u64;
    wanted.iter().map(|w| before(w) - over(w) - 1).sum::<u64>() / 2
}

/// The most bytes that live at one launch (a lower bound of every plan), and the first such launch.
pub fn peak_live_bytes(wanted: &[BufferRequest]) -> (u64, Option<usize>) {
    liveness::peak_bytes(wanted.iter().map(|w| (w.bytes, w.span)))
}

/// Assigns offsets to buffers one by one.
struct Space<'w> {
    wanted: &'w [BufferRequest],
    /// Number of leaves of the segment tree over moments: a power of two.
    moments: usize,
    /// For each node of the segment tree, the placed buffers whose lifetimes cover the node's moments but not all of its parent's.
    covering: Vec<Vec<usize>>,
    /// The placed buffers by the moment at which they are first touched.
    firsts: BTreeSet<(usize, usize)>,
}

impl<'w> Space<'w> {
    fn new(wanted: &'w [BufferRequest]) -> Space<'w> {
        let moments = wanted.iter().map(|w| w.span.last + 1).max().unwrap_or(1).next_power_of_two();
        Space { wanted, moments, covering: vec![Vec::new(); 2 * moments], firsts: BTreeSet::new() }
    }

    /// Places buffers in this order; returns the total size and the offsets.
    fn place_in_order(&mut self, order: &[usize]) -> (u64, Vec<u64>) {
        self.covering.iter_mut().for_each(Vec::clear);
        self.firsts.clear();
        let (mut offsets, mut top) = (vec![0; self.wanted.len()], 0);
        let mut taken: Vec<(u64, u64)> = Vec::new();
        for &i in order {
            let w = self.wanted[i];
            taken.clear();
            self.for_each_overlapping(w.span, |other| {
                let at: u64 = offsets[other];
                taken.push((at, at.saturating_add(self.wanted[other].bytes)));
            });
            taken.sort_unstable();
            let mut at = 0u64;
            for &(from, to) in &taken {
                if from >= at.saturating_add(w.bytes) {
                    break;
                }
                at = at.max(to).next_multiple_of(w.align);
            }
            self.add(i);
            offsets[i] = at;
            top = top.max(at.saturating_add(w.bytes));
        }
        (top, offsets)
    }

    /// Calls `each` with every placed buffer whose lifetime overlaps `span`: those that live at its first moment, and those that begin
    /// later.
    fn for_each_overlapping(&self, span: LiveRange, mut each: impl FnMut(usize)) {
        let mut node = span.first + self.moments;
        while node > 0 {
            self.covering[node].iter().for_each(|&other| each(other));
            node /= 2;
        }
        let later = self.firsts.range((span.first + 1, 0)..);
        later.take_while(|(first, _)| *first <= span.last).for_each(|&(_, other)| each(other));
    }

    fn add(&mut self, i: usize) {
        let span = self.wanted[i].span;
        self.firsts.insert((span.first, i));
        span.for_each_tree_node(self.moments, |node| self.covering[node].push(i));
    }
}

/// Places buffers in the order of the program, as [`Space::place_in_order`] would, in one sweep: buffers whose lifetimes have ended leave gaps,
/// and each buffer goes into the lowest gap that is large enough.
fn place_by_sweep(wanted: &[BufferRequest]) -> (u64, Vec<u64>) {
    let (mut offsets, mut top) = (vec![0; wanted.len()], 0);
    let mut gaps = FreeGaps::of_empty_memory();
    let mut ends: BinaryHeap<Reverse<(usize, usize)>> = BinaryHeap::new();
    for i in program_order(wanted) {
        let w = wanted[i];
        while let Some(&Reverse((last, dead))) = ends.peek()
            && last < w.span.first
        {
            ends.pop();
            gaps.free(offsets[dead], wanted[dead].bytes);
        }
        offsets[i] = gaps.allocate(w.bytes, w.align);
        ends.push(Reverse((w.span.last, i)));
        top = top.max(offsets[i].saturating_add(w.bytes));
    }
    (top, offsets)
}

/// Free bytes as disjoint gaps; the last gap has no end.
struct FreeGaps {
    /// End offset of each gap, by its start offset.
    ends: BTreeMap<u64, u64>,
    /// Start offsets of the gaps, by size class: `by_size[i]` has the gaps of 2^i to 2^(i+1) - 1 bytes.
    by_size: Vec<BTreeSet<u64>>,
}

impl FreeGaps {
    /// Empty memory: one gap without end.
    fn of_empty_memory() -> FreeGaps {
        let mut gaps = FreeGaps { ends: BTreeMap::new(), by_size: vec![BTreeSet::new(); 64] };
        gaps.add(0, u64::MAX);
        gaps
    }

    fn add(&mut self, from: u64, to: u64) {
        if from < to {
            self.ends.insert(from, to);
            self.by_size[(to - from).ilog2() as usize].insert(from);
        }
    }

    fn remove(&mut self, from: u64) {
        if let Some(to) = self.ends.remove(&from) {
            self.by_size[(to - from).ilog2() as usize].remove(&from);
        }
    }

    /// Allocates bytes at the lowest free multiple of `align` and returns their offset.
    fn allocate(&mut self, bytes: u64, align: u64) -> u64 {
        let fit = |from: u64| {
            let at = from.checked_next_multiple_of(align)?;
            (at.checked_add(bytes)? <= *self.ends.get(&from)?).then_some((from, at))
        };
        let sizes = &self.by_size[bytes.max(1).ilog2() as usize..];
        let Some((from, at)) = sizes.iter().filter_map(|all| all.iter().find_map(|&from| fit(from))).min() else {
            return u64::MAX;
        };
        let to = self.ends[&from];
        self.remove(from);
        self.add(from, at);
        self.add(at + bytes, to);
        at
    }

    /// Frees bytes.
    fn free(&mut self, at: u64, bytes: u64) {
        let (mut from, mut to) = (at, at.saturating_add(bytes));
        if let Some((&before, &end)) = self.ends.range(..at).next_back()
            && end == at
        {
            self.remove(before);
            from = before;
        }
        if let Some(&end) = self.ends.get(&to) {
            self.remove(to);
            to = end;
        }
        self.add(from, to);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(all: &[(u64, usize, usize)]) -> Vec<BufferRequest> {
        let one = |(i, &(bytes, first, last)): (usize, &(u64, usize, usize))| BufferRequest {
            buf: BufId(i as u32),
            bytes,
            align: 1,
            span: LiveRange { first, last },
        };
        all.iter().enumerate().map(one).collect()
    }

    #[test]
    fn another_order_takes_less_than_the_largest_first() {
        // the two largest lie beside one another; what lives with both of its neighbours fits between only if it comes earlier
        let wanted = wanted(&[(336, 5, 6), (335, 3, 5), (334, 7, 14), (168, 6, 7), (64, 0, 20)]);
        let by_size: Vec<usize> = vec![0, 1, 2, 3, 4];
        let (top, offsets) = plan_offsets(&wanted);
        assert!(top <= Space::new(&wanted).place_in_order(&by_size).0);
        assert_eq!(top, peak_live_bytes(&wanted).0);
        for (i, a) in wanted.iter().enumerate() {
            for (j, b) in wanted.iter().enumerate().skip(i + 1) {
                assert!(
                    !a.span.overlaps(b.span)
                        || offsets[i] + a.bytes <= offsets[j]
                        || offsets[j] + b.bytes <= offsets[i]
                );
            }
        }
    }

    #[test]
    fn a_sweep_places_buffers_as_comparing_all_in_the_order_of_the_program_does() {
        let mut state = 7u64;
        let mut draw = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        for _ in 0..40 {
            let one = |i: u32| {
                let (bytes, first) = (1 + draw(300), draw(40) as usize);
                let align = bytes.next_power_of_two().min(64);
                let span = LiveRange { first, last: first + draw(12) as usize };
                BufferRequest { buf: BufId(i), bytes: bytes.next_multiple_of(align), align, span }
            };
            let wanted: Vec<BufferRequest> = (0..60).map(one).collect();
            assert_eq!(place_by_sweep(&wanted), Space::new(&wanted).place_in_order(&program_order(&wanted)));
            let meet =
                |(i, a): (usize, &BufferRequest)| wanted[..i].iter().filter(|b| a.span.overlaps(b.span)).count() as u64;
            assert_eq!(overlapping_pairs(&wanted), wanted.iter().enumerate().map(meet).sum::<u64>());
        }
    }
}
