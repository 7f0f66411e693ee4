//! Reductions and windows: each result is folded in a register over the loops of its terms, and the epilogue follows. Vectors lie where
//! elements lie side by side: along the results, along the terms (partial results that are combined in a fixed tree at the end), or along
//! short rows of which each lane folds one.
mod lanes;
pub(in crate::schedule) mod loops;
pub mod recipe;
mod vectors;

pub use loops::FAMILY;
