//! `convolution` as contractions, one for each group of features and each combination of phases. `recipe/algorithm.rs` chooses the
//! algorithm of every convolution, those of other families included: Winograd's, depthwise, the gradient of a filter, or this one.
pub(in crate::schedule) mod loops;
pub mod recipe;

pub use loops::{EMPTY, FAMILY};
