//! Orders of things that need one another.
use super::id_vec::Id;

/// Things behind what they need.
#[derive(Debug)]
pub struct Sorted<T> {
    /// All that need nothing of a cycle.
    pub order: Vec<T>,
    /// For each thing how much of what it needs is not in the order.
    pub missing: Vec<u32>,
}

impl<T: Id> Sorted<T> {
    /// The first thing that is on a cycle or needs what is.
    pub fn stuck(&self) -> Option<T> {
        self.missing.iter().position(|&n| n > 0).map(T::from_index)
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    crate::ids! {
        /// A number.
        pub struct Number;
    }

    fn sorted(count: usize, edges: &[(usize, usize)]) -> (Vec<usize>, Option<usize>) {
        let edges: Vec<_> = edges.iter().map(|&(from, to)| (Number(from as u32), Number(to as u32))).collect();
        let sorted = breadth_first(count, &edges);
        (sorted.order.iter().map(|n| n.index()).collect(), sorted.stuck().map(|n| n.index()))
    }

    #[test]
    fn things_come_behind_what_they_need_those_that_need_little_first() {
        assert_eq!(sorted(5, &[(4, 0), (4, 1), (3, 1), (0, 2)]), (vec![3, 4, 0, 1, 2], None));
        // the order of edges decides between what becomes ready at once, and an edge may be there twice
        assert_eq!(sorted(3, &[(0, 2), (0, 2), (0, 1)]), (vec![0, 2, 1], None));
    }

    #[test]
    fn what_is_on_a_cycle_or_behind_one_is_left_out() {
        assert_eq!(sorted(4, &[(1, 2), (2, 1), (2, 3)]), (vec![0], Some(1)));
        assert_eq!(sorted(0, &[]), (vec![], None));
    }
}
