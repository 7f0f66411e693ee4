//! A directed graph that stays acyclic while edges are inserted and contracted. Each node has a rank, every edge goes up in rank, and
//! an insertion that violates this reorders the nodes in between (Pearce and Kelly, "A dynamic topological sort algorithm for
//! directed acyclic graphs", 2006).
//!
//! The order in which neighbours are listed decides which clusters form. Sets therefore keep the order of insertion, and an erased
//! element is replaced by the last one, as in TensorFlow.
use std::collections::HashMap;

/// Number of elements above which a set is indexed by a hash map.
const LARGE: usize = 24;

/// A set of numbers in the order of insertion; the last element fills the gap of an erased one.
#[derive(Default)]
struct OrderedSet {
    items: Vec<u32>,
    #[expect(clippy::box_collection, reason = "most sets are small and there are two a node")]
    places: Option<Box<HashMap<u32, u32>>>,
}

impl OrderedSet {
    fn place(&self, x: u32) -> Option<usize> {
        match &self.places {
            Some(places) => places.get(&x).map(|&at| at as usize),
            None => self.items.iter().position(|&y| y == x),
        }
    }
    fn insert(&mut self, x: u32) -> bool {
        if self.place(x).is_some() {
            return false;
        }
        self.items.push(x);
        match &mut self.places {
            Some(places) => {
                places.insert(x, self.items.len() as u32 - 1);
            }
            None if self.items.len() > LARGE => {
                let all = self.items.iter().enumerate().map(|(at, &x)| (x, at as u32));
                self.places = Some(Box::new(all.collect()));
            }
            None => {}
        }
        true
    }
    fn erase(&mut self, x: u32) {
        let Some(at) = self.place(x) else { return };
        self.items.swap_remove(at);
        if let Some(places) = &mut self.places {
            places.remove(&x);
            if let Some(&moved) = self.items.get(at) {
                places.insert(moved, at as u32);
            }
        }
    }
}

/// A graph that refuses edges which would close a cycle; TensorFlow's `GraphCycles`.
#[derive(Default)]
pub struct AcyclicGraph {
    ranks: Vec<u32>,
    ins: Vec<OrderedSet>,
    outs: Vec<OrderedSet>,
    retired: Vec<bool>,
    seen: Vec<u32>,
    walk: u32,
}

impl AcyclicGraph {
    /// Adds a node with the highest rank.
    pub fn add_node(&mut self) -> u32 {
        let n = self.ranks.len() as u32;
        self.ranks.push(n);
        self.ins.push(OrderedSet::default());
        self.outs.push(OrderedSet::default());
        self.retired.push(false);
        self.seen.push(0);
        n
    }
    /// The number of nodes ever added.
    pub fn node_count(&self) -> usize {
        self.ranks.len()
    }
    /// The successors of `x`, in the order of insertion.
    pub fn successors(&self, x: u32) -> &[u32] {
        &self.outs[x as usize].items
    }
    /// The predecessors of `x`, in the order of insertion.
    pub fn predecessors(&self, x: u32) -> &[u32] {
        &self.ins[x as usize].items
    }
    /// The nodes that were not contracted into others, successors before predecessors.
    pub fn post_order(&self) -> Vec<u32> {
        let mut all: Vec<u32> = (0..self.node_count() as u32).filter(|&n| !self.retired[n as usize]).collect();
        all.sort_unstable_by_key(|&n| std::cmp::Reverse(self.ranks[n as usize]));
        all
    }

    /// Inserts an edge; returns false, without a change, if the edge would close a cycle.
    pub fn insert_edge(&mut self, x: u32, y: u32) -> bool {
        if x == y {
            return false;
        }
        if !self.outs[x as usize].insert(y) {
            return true;
        }
        self.ins[y as usize].insert(x);
        let (from, to) = (self.ranks[x as usize], self.ranks[y as usize]);
        if from <= to {
            return true;
        }
        let Some(forward) = self.reachable_below(y, from) else {
            self.remove_edge(x, y);
            return false;
        };
        let backward = self.reaching_above(x, to);
        self.reorder(backward, forward);
        true
    }

    /// Nodes reachable from `n` at ranks below `bound`; `None` on a cycle, that is, if the node of rank `bound` itself is reachable.
    fn reachable_below(&mut self, n: u32, bound: u32) -> Option<Vec<u32>> {
        self.walk += 1;
        let (mut open, mut found) = (vec![n], Vec::new());
        while let Some(n) = open.pop() {
            if std::mem::replace(&mut self.seen[n as usize], self.walk) == self.walk {
                continue;
            }
            found.push(n);
            for &to in &self.outs[n as usize].items {
                let rank = self.ranks[to as usize];
                if rank == bound {
                    return None;
                }
                if rank < bound && self.seen[to as usize] != self.walk {
                    open.push(to);
                }
            }
        }
        Some(found)
    }

    /// Nodes at ranks above `bound` from which `n` is reachable, except those that [`Self::reachable_below`] visited just before.
    fn reaching_above(&mut self, n: u32, bound: u32) -> Vec<u32> {
        let (mut open, mut found) = (vec![n], Vec::new());
        while let Some(n) = open.pop() {
            if std::mem::replace(&mut self.seen[n as usize], self.walk) == self.walk {
                continue;
            }
            found.push(n);
            for &from in &self.ins[n as usize].items {
                if self.ranks[from as usize] > bound && self.seen[from as usize] != self.walk {
                    open.push(from);
                }
            }
        }
        found
    }

    /// Permutes the ranks of the nodes of both walks so that all of `backward` comes before `forward`.
    fn reorder(&mut self, mut backward: Vec<u32>, mut forward: Vec<u32>) {
        backward.sort_unstable_by_key(|&n| self.ranks[n as usize]);
        forward.sort_unstable_by_key(|&n| self.ranks[n as usize]);
        backward.append(&mut forward);
        let mut ranks: Vec<u32> = backward.iter().map(|&n| self.ranks[n as usize]).collect();
        ranks.sort_unstable();
        for (n, rank) in backward.into_iter().zip(ranks) {
            self.ranks[n as usize] = rank;
        }
    }

    fn remove_edge(&mut self, x: u32, y: u32) {
        self.outs[x as usize].erase(y);
        self.ins[y as usize].erase(x);
    }

    /// Whether a path leads from `x` to `y`.
    fn reaches(&mut self, x: u32, y: u32) -> bool {
        x == y
            || (self.ranks[x as usize] < self.ranks[y as usize]
                && self.reachable_below(x, self.ranks[y as usize]).is_none())
    }

    /// Whether there is an edge from `a` to `b`.
    pub fn has_edge(&self, a: u32, b: u32) -> bool {
        self.outs[a as usize].place(b).is_some()
    }

    /// Contracts the edge from `a` to `b` and returns the node that remains; `None` if another path leads from `a` to `b`. In that
    /// case the edge stays and moves to the end of the neighbour lists of both.
    pub fn contract_edge(&mut self, a: u32, b: u32) -> Option<u32> {
        if !self.has_edge(a, b) {
            return None;
        }
        self.remove_edge(a, b);
        if self.reaches(a, b) {
            self.insert_edge(a, b);
            return None;
        }
        let degree = |n: u32| self.ins[n as usize].items.len() + self.outs[n as usize].items.len();
        let (stays, goes) = if degree(b) > degree(a) { (b, a) } else { (a, b) };
        let outs = std::mem::take(&mut self.outs[goes as usize]).items;
        let ins = std::mem::take(&mut self.ins[goes as usize]).items;
        for &y in &outs {
            self.ins[y as usize].erase(goes);
        }
        for &y in &ins {
            self.outs[y as usize].erase(goes);
        }
        self.retired[goes as usize] = true;
        for y in outs {
            self.insert_edge(stays, y);
        }
        for y in ins {
            self.insert_edge(y, stays);
        }
        Some(stays)
    }

    /// A path from `a` to `b` other than the edge between them, both ends included.
    pub fn alternative_path(&mut self, a: u32, b: u32) -> Option<Vec<u32>> {
        self.walk += 1;
        let mut from: HashMap<u32, u32> = HashMap::new();
        let mut queue = std::collections::VecDeque::from([a]);
        let bound = self.ranks[b as usize];
        while let Some(n) = queue.pop_front() {
            for &to in &self.outs[n as usize].items {
                if (n == a && to == b) || self.ranks[to as usize] > bound || from.contains_key(&to) {
                    continue;
                }
                from.insert(to, n);
                if to == b {
                    let mut way = vec![b];
                    while let Some(&before) = way.last().and_then(|at| from.get(at)) {
                        way.push(before);
                        if before == a {
                            break;
                        }
                    }
                    way.reverse();
                    return Some(way);
                }
                queue.push_back(to);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(n: u32, edges: &[(u32, u32)]) -> AcyclicGraph {
        let mut g = AcyclicGraph::default();
        (0..n).for_each(|_| {
            g.add_node();
        });
        edges.iter().for_each(|&(x, y)| assert!(g.insert_edge(x, y)));
        g
    }

    #[test]
    fn cycles_are_refused() {
        let mut g = graph(4, &[(0, 1), (3, 0), (1, 2)]);
        assert!(!g.insert_edge(2, 3));
        assert!(!g.insert_edge(1, 1));
        assert!(g.successors(2).is_empty());
        let order = g.post_order();
        let place = |n| order.iter().position(|&x| x == n);
        assert!(place(3) > place(0) && place(0) > place(1) && place(1) > place(2));
    }

    #[test]
    fn contraction_needs_the_edge_to_be_the_only_way() {
        let mut g = graph(3, &[(0, 1), (1, 2), (0, 2)]);
        assert_eq!(g.contract_edge(0, 2), None);
        assert_eq!(g.alternative_path(0, 2), Some(vec![0, 1, 2]));
        let one = g.contract_edge(0, 1).expect("no other way");
        assert_eq!(g.contract_edge(one, 2).map(|n| g.successors(n).len()), Some(0));
    }

    #[test]
    fn erasing_moves_the_last_one() {
        let mut set = OrderedSet::default();
        (0..40).for_each(|x| {
            set.insert(x);
        });
        set.erase(1);
        assert_eq!(set.items[1], 39);
        assert_eq!(set.place(39), Some(1));
        assert_eq!(set.place(1), None);
    }
}
