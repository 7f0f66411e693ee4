//! Lists of items by id, stored in one allocation.
use super::id_vec::Id;
use std::marker::PhantomData;
use std::ops::Index;

/// A list of items for each id; like `Vec<Vec<T>>`, but without an allocation per list.
#[derive(Clone, Debug)]
pub struct IdLists<I, T> {
    items: Vec<T>,
    /// By id: start of its list in `items`; the last element is the end of the last list.
    starts: Vec<usize>,
    id: PhantomData<I>,
}

impl<I: Id, T: Copy> IdLists<I, T> {
    /// Groups `pairs` by id, which must be below `ids`. Lists keep the order of the pairs.
    pub fn grouped(ids: usize, pairs: &[(I, T)]) -> Self {
        let mut starts = vec![0; ids + 1];
        for (id, _) in pairs {
            starts[id.index() + 1] += 1;
        }
        for i in 0..ids {
            starts[i + 1] += starts[i];
        }
        let mut next = starts.clone();
        let mut places = vec![0; pairs.len()];
        for (at, (id, _)) in pairs.iter().enumerate() {
            let place = &mut next[id.index()];
            places[*place] = at;
            *place += 1;
        }
        IdLists { items: places.into_iter().map(|at| pairs[at].1).collect(), starts, id: PhantomData }
    }
}

impl<I: Id, T> Index<I> for IdLists<I, T> {
    type Output = [T];
    fn index(&self, id: I) -> &[T] {
        &self.items[self.starts[id.index()]..self.starts[id.index() + 1]]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    crate::ids! {
        /// An id for tests.
        pub struct TestId;
    }

    #[test]
    fn items_keep_their_order() {
        let pairs = [(2, 'a'), (0, 'b'), (2, 'c'), (0, 'd')].map(|(id, item)| (TestId(id), item));
        let lists = IdLists::grouped(4, &pairs);
        let all: Vec<String> = (0..4).map(|id| lists[TestId(id)].iter().collect()).collect();
        assert_eq!(all, ["bd", "", "ac", ""]);
    }
}
