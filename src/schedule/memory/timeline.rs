//! How many bytes live at each moment, and what lives then, as memory comes and goes: trees over moments, so that a question takes
//! logarithmic time.
use crate::schedule::memory::liveness::LiveRange;
use std::collections::BTreeMap;
use std::ops::Range;

/// Live bytes by moment: adding a range and asking for the maximum take logarithmic time.
pub struct Timeline {
    /// Number of leaves of the tree: a power of two.
    moments: usize,
    /// For each node of the segment tree (the root is 1), the bytes of ranges that cover the node's moments but not all of its parent's.
    own: Vec<u128>,
    /// For each node, the most bytes that live at one of the node's moments, without ranges that cover all moments of its parent.
    most: Vec<u128>,
}

impl Timeline {
    /// Creates a timeline of `moments` without live bytes.
    pub fn new(moments: usize) -> Timeline {
        let moments = moments.max(1).next_power_of_two();
        Timeline { moments, own: vec![0; 2 * moments], most: vec![0; 2 * moments] }
    }

    /// Adds bytes that live during `span`.
    pub fn add(&mut self, bytes: u64, span: LiveRange) {
        self.change(1, 0..self.moments, span, &|own| *own += u128::from(bytes));
    }

    /// Removes bytes that were added with the same `span`.
    pub fn remove(&mut self, bytes: u64, span: LiveRange) {
        self.change(1, 0..self.moments, span, &|own| *own -= u128::from(bytes));
    }

    fn change(&mut self, node: usize, moments: Range<usize>, span: LiveRange, change: &impl Fn(&mut u128)) {
        if span.last < moments.start || moments.end <= span.first {
            return;
        }
        if span.first <= moments.start && moments.end - 1 <= span.last {
            change(&mut self.own[node]);
            change(&mut self.most[node]);
            return;
        }
        let [low, high] = split_range(moments);
        self.change(2 * node, low, span, change);
        self.change(2 * node + 1, high, span, change);
        self.most[node] = self.own[node] + self.most[2 * node].max(self.most[2 * node + 1]);
    }

    /// The most bytes that live at one moment, and the first such moment; `None` where nothing lives.
    pub fn peak(&self) -> Option<(u64, usize)> {
        let mut node = 1;
        while node < self.moments {
            node *= 2;
            node += usize::from(self.most[node] < self.most[node + 1]);
        }
        let bytes = u64::try_from(self.most[1]).unwrap_or(u64::MAX);
        (bytes > 0).then_some((bytes, node - self.moments))
    }

    /// The most bytes that live at one moment of `span`.
    pub fn max_within(&self, span: LiveRange) -> u64 {
        u64::try_from(self.most_below(1, 0..self.moments, span)).unwrap_or(u64::MAX)
    }

    fn most_below(&self, node: usize, moments: Range<usize>, span: LiveRange) -> u128 {
        if span.last < moments.start || moments.end <= span.first {
            return 0;
        }
        if span.first <= moments.start && moments.end - 1 <= span.last {
            return self.most[node];
        }
        let [low, high] = split_range(moments);
        self.own[node] + self.most_below(2 * node, low, span).max(self.most_below(2 * node + 1, high, span))
    }
}

fn split_range(moments: Range<usize>) -> [Range<usize>; 2] {
    let middle = moments.start.midpoint(moments.end);
    [moments.start..middle, middle..moments.end]
}

/// A list of ranges that finds the last one that contains a given moment in logarithmic time.
pub struct StabbingQuery {
    moments: usize,
    /// For each node of the segment tree, the indices of the ranges that cover the node's moments but not all of its parent's, in the order
    /// of the list.
    covering: Vec<Vec<usize>>,
    is_gone: Vec<bool>,
}

impl StabbingQuery {
    /// Creates the list from `spans`, which end before `moments`.
    pub fn new(moments: usize, spans: impl ExactSizeIterator<Item = LiveRange>) -> StabbingQuery {
        let moments = moments.max(1).next_power_of_two();
        let is_gone = vec![false; spans.len()];
        let mut stabbed = StabbingQuery { moments, covering: vec![Vec::new(); 2 * moments], is_gone };
        for (i, span) in spans.enumerate() {
            let span = LiveRange { last: span.last.min(moments - 1), ..span };
            span.for_each_tree_node(moments, |node| stabbed.covering[node].push(i));
        }
        stabbed
    }

    /// The index of the last range of the list that contains `moment` and was not removed.
    pub fn last_containing(&mut self, moment: usize) -> Option<usize> {
        let mut found = None;
        let mut node = moment + self.moments;
        while node > 0 {
            while self.covering[node].last().is_some_and(|&i| self.is_gone[i]) {
                self.covering[node].pop();
            }
            found = found.max(self.covering[node].last().copied());
            node /= 2;
        }
        found
    }

    /// Removes a range from the list.
    pub fn remove(&mut self, i: usize) {
        self.is_gone[i] = true;
    }
}

/// Ranges of time in which a buffer is in use, no two of which overlap.
#[derive(Default)]
pub struct DisjointRanges {
    /// Last moment of each range, by its first moment.
    spans: BTreeMap<usize, usize>,
}

impl DisjointRanges {
    /// Whether `span` is disjoint from all ranges.
    pub fn is_disjoint(&self, span: LiveRange) -> bool {
        self.spans.range(..=span.last).next_back().is_none_or(|(_, &last)| last < span.first)
    }

    /// Adds a range, which must be disjoint from the others.
    pub fn add(&mut self, span: LiveRange) {
        self.spans.insert(span.first, span.last);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::memory::liveness;

    /// Numbers that repeat after a long time only.
    fn draw(state: &mut u64, below: usize) -> usize {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*state >> 33) as usize % below
    }

    #[test]
    fn the_most_at_once_is_that_of_a_count_of_all_spans() {
        let mut state = 1;
        for moments in [1, 2, 5, 16, 33] {
            let mut line = Timeline::new(moments);
            let mut all: Vec<(u64, LiveRange)> = Vec::new();
            for _ in 0..60 {
                let (a, b) = (draw(&mut state, moments), draw(&mut state, moments));
                let span = LiveRange { first: a.min(b), last: a.max(b) };
                if all.len() > 8 {
                    let (bytes, span) = all.swap_remove(draw(&mut state, all.len()));
                    line.remove(bytes, span);
                }
                let bytes = draw(&mut state, 4) as u64;
                line.add(bytes, span);
                all.push((bytes, span));
                let (most, at) = liveness::peak_bytes(all.iter().copied());
                assert_eq!(line.peak(), at.map(|at| (most, at)));
                let within = all.iter().filter_map(|(bytes, s)| Some((*bytes, s.intersection(span)?)));
                assert_eq!(line.max_within(span), liveness::peak_bytes(within).0);
            }
        }
    }

    #[test]
    fn the_last_span_at_a_moment_is_found_as_others_go() {
        let mut state = 2;
        let spans: Vec<LiveRange> = (0..40)
            .map(|_| {
                let (a, b) = (draw(&mut state, 21), draw(&mut state, 21));
                LiveRange { first: a.min(b), last: a.max(b) }
            })
            .collect();
        let mut stabbed = StabbingQuery::new(21, spans.iter().copied());
        let mut left: Vec<usize> = (0..spans.len()).collect();
        while !left.is_empty() {
            for moment in 0..21 {
                let last = left.iter().copied().filter(|&i| spans[i].contains(moment)).max();
                assert_eq!(stabbed.last_containing(moment), last);
            }
            stabbed.remove(left.swap_remove(draw(&mut state, left.len())));
        }
    }
}
