//! Orders of things that need one another.
use super::id_vec::Id;
use petgraph::algo::kosaraju_scc;
use petgraph::graph::DiGraph;

/// Things behind what they need.
#[derive(Debug)]
pub struct Sorted<T> {
    /// All that need nothing of a cycle.
    pub order: Vec<T>,
    /// For each thing how much of what it needs is not in the order.
    pub missing: Vec<u32>,
}

/// An order of `count` things in which each edge goes forwards, from a thing to one that needs it (Kahn, "Topological sorting of large
/// networks", 1962). What needs nothing comes first, by number; then, one after another, what each of the order was the last need
/// of, as edges have it: the order of instructions, kernels and messages depends on that, so that no other will do.
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

/// The order of all things that [`breadth_first`] has.
///
/// # Errors
/// The first thing on a cycle, where there is one.
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
        /// A number.
        pub struct Number;
    }

    fn numbers(count: usize, edges: &[(u32, u32)]) -> Result<Vec<u32>, u32> {
        let edges: Vec<_> = edges.iter().map(|&(from, to)| (Number(from), Number(to))).collect();
        sorted(count, &edges).map(|order| order.iter().map(|n| n.0).collect()).map_err(|n| n.0)
    }

    #[test]
    fn things_come_behind_what_they_need_those_that_need_little_first() {
        assert_eq!(numbers(5, &[(4, 0), (4, 1), (3, 1), (0, 2)]), Ok(vec![3, 4, 0, 1, 2]));
        // the order of edges decides between what becomes ready at once, and an edge may be there twice
        assert_eq!(numbers(3, &[(0, 2), (0, 2), (0, 1)]), Ok(vec![0, 2, 1]));
    }

    #[test]
    fn the_first_thing_on_a_cycle_is_told_and_not_what_is_behind_one() {
        assert_eq!(numbers(5, &[(2, 3), (3, 2), (3, 1), (0, 4)]), Err(2));
        assert_eq!(numbers(3, &[(1, 0), (1, 1), (0, 2)]), Err(1));
        assert_eq!(numbers(0, &[]), Ok(vec![]));
    }
}
