//! Sorting and the largest elements: `sort` and `topk`.
mod comparison_top_k;
mod loops;
mod top_k;

pub use loops::FAMILY as SORT;
pub use top_k::FAMILY as TOP_K;
