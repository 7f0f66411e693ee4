//! Typed u32 ids, and vectors indexed by them.
use std::marker::PhantomData;
use std::ops::{Index, IndexMut};

/// A newtype over `u32` that indexes one kind of arena.
pub trait Id: Copy + Eq + Ord + std::hash::Hash + std::fmt::Debug {
    /// The id of index `index`.
    fn from_index(index: usize) -> Self;
    /// The index that this id stands for.
    fn index(self) -> usize;
}

/// Declares id types, for example `ids! { /// doc pub struct InstId; }`.
#[macro_export]
macro_rules! ids {
    ($($(#[$doc:meta])* pub struct $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub struct $name(pub u32);
        impl $crate::util::id_vec::Id for $name {
            fn from_index(index: usize) -> Self { $name(u32::try_from(index).expect("an arena holds fewer than 2^32 items")) }
            fn index(self) -> usize { self.0 as usize }
        }
    )*};
}

/// A vector indexed by an id type of its own.
#[derive(Clone, Debug, PartialEq)]
pub struct IdVec<I, T> {
    items: Vec<T>,
    id: PhantomData<I>,
}

impl<I, T> Default for IdVec<I, T> {
    fn default() -> Self {
        IdVec { items: Vec::new(), id: PhantomData }
    }
}

impl<I: Id, T> IdVec<I, T> {
    /// An empty vector.
    pub fn new() -> Self {
        Self::default()
    }
    /// An empty vector with memory reserved for `items` items.
    pub fn with_capacity(items: usize) -> Self {
        IdVec { items: Vec::with_capacity(items), id: PhantomData }
    }
    /// Reserves memory for exactly `more` further items.
    pub fn reserve_exact(&mut self, more: usize) {
        self.items.reserve_exact(more);
    }
    /// Releases unused memory.
    pub fn shrink_to_fit(&mut self) {
        self.items.shrink_to_fit();
    }
    /// Appends `item` and returns its id.
    pub fn push(&mut self, item: T) -> I {
        self.items.push(item);
        I::from_index(self.items.len() - 1)
    }
    /// Removes all items but the first `len`.
    pub fn truncate(&mut self, len: usize) {
        self.items.truncate(len);
    }
    /// The number of items.
    pub fn len(&self) -> usize {
        self.items.len()
    }
    /// Whether there are no items.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }
    /// All ids, in order.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = I> + ExactSizeIterator + use<I, T> {
        (0..self.items.len()).map(I::from_index)
    }
    /// All ids with their items, in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (I, &T)> {
        self.items.iter().enumerate().map(|(i, x)| (I::from_index(i), x))
    }
    /// The items in order.
    pub fn values(&self) -> std::slice::Iter<'_, T> {
        self.items.iter()
    }
    /// The items in order, mutable.
    pub fn values_mut(&mut self) -> std::slice::IterMut<'_, T> {
        self.items.iter_mut()
    }
    /// The item of `id`, if there is one.
    pub fn get(&self, id: I) -> Option<&T> {
        self.items.get(id.index())
    }
}

impl<I: Id, T> Index<I> for IdVec<I, T> {
    type Output = T;
    fn index(&self, id: I) -> &T {
        &self.items[id.index()]
    }
}

impl<I: Id, T> IndexMut<I> for IdVec<I, T> {
    fn index_mut(&mut self, id: I) -> &mut T {
        &mut self.items[id.index()]
    }
}

impl<I: Id, T> FromIterator<T> for IdVec<I, T> {
    fn from_iter<A: IntoIterator<Item = T>>(items: A) -> Self {
        IdVec { items: items.into_iter().collect(), id: PhantomData }
    }
}

impl<I, T> IntoIterator for IdVec<I, T> {
    type Item = T;
    type IntoIter = std::vec::IntoIter<T>;
    fn into_iter(self) -> Self::IntoIter {
        self.items.into_iter()
    }
}
