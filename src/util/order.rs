//! Topological order.
use super::id_vec::Id;
use petgraph::algo::kosaraju_scc;
use petgraph::graph::DiGraph;

/// Result of a topological sort.
#[derive(Debug)]
pub struct Sorted<T> {
    /// Everything that depends on no cycle, in topological order.
    pub order: Vec<T>,
    /// By element: the number of dependencies that are not in `order`.
    pub missing: Vec<u32>,
}

/// Sorts `count` elements topologically by Kahn's algorithm ("Topological sorting of large networks", 1962). An edge goes from an element
/// to one that depends on it. Elements without dependencies come first, by number; then those that become ready, in the order of the
/// edges. The order of instructions, kernels and messages is defined by this, so it must not change.
pub fn breadth_first<T: Id>(count: usize, edges: &[(T, T)]) -> Sorted<T> {
    let (mut starts, mut missing) = (vec![0usize; count + 1], vec![0u32; count]);
    for (from, to) in edges {
        starts[from.index() + 1] += 1;
        missing[to.index()] += 1;
    }
    for i in 0..count {
        starts[i + 1] += starts[i];
    }
    let (mut next, mut users) = (starts.clone(), vec![T::from_index(0); edges.len()]);
    for &(from, to) in edges {
        let at = &mut next[from.index()];
        users[*at] = to;
        *at += 1;
    }
    let mut order: Vec<T> = (0..count).filter(|&i| missing[i] == 0).map(T::from_index).collect();
    let mut at = 0;
    while at < order.len() {
        let i = order[at].index();
        for &user in &users[starts[i]..starts[i + 1]] {
            missing[user.index()] -= 1;
            if missing[user.index()] == 0 {
                order.push(user);
            }
        }
        at += 1;
    }
    Sorted { order, missing }
}

/// The topological order of all elements, as by [`breadth_first`].
///
/// # Errors
/// The first element on a cycle, if there is one.
pub fn sorted<T: Id>(count: usize, edges: &[(T, T)]) -> Result<Vec<T>, T> {
    let order = breadth_first(count, edges).order;
    if order.len() == count {
        return Ok(order);
    }
    let graph = DiGraph::<(), ()>::from_edges(edges.iter().map(|(a, b)| (a.index() as u32, b.index() as u32)));
    let cycles =
        kosaraju_scc(&graph).into_iter().filter(|part| part.len() > 1 || graph.contains_edge(part[0], part[0]));
    let first = cycles.flatten().min().map_or(0, |node| node.index());
    Err(T::from_index(first))
}

#[cfg(test)]
mod tests {
    use super::*;

    crate::ids! {
        /// An element for tests.
        pub struct Number;
    }

    fn numbers(count: usize, edges: &[(u32, u32)]) -> Result<Vec<u32>, u32> {
        let edges: Vec<_> = edges.iter().map(|&(from, to)| (Number(from), Number(to))).collect();
        sorted(count, &edges).map(|order| order.iter().map(|n| n.0).collect()).map_err(|n| n.0)
    }

    #[test]
    fn things_come_behind_what_they_need_those_that_need_little_first() {
        assert_eq!(numbers(5, &[(4, 0), (4, 1), (3, 1), (0, 2)]), Ok(vec![3, 4, 0, 1, 2]));
        // the order of edges decides between elements that become ready at once, and edges may be repeated
        assert_eq!(numbers(3, &[(0, 2), (0, 2), (0, 1)]), Ok(vec![0, 2, 1]));
    }

    #[test]
    fn the_first_thing_on_a_cycle_is_told_and_not_what_is_behind_one() {
        assert_eq!(numbers(5, &[(2, 3), (3, 2), (3, 1), (0, 4)]), Err(2));
        assert_eq!(numbers(3, &[(1, 0), (1, 1), (0, 2)]), Err(1));
        assert_eq!(numbers(0, &[]), Ok(vec![]));
    }
}
