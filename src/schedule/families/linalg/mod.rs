//! Linear algebra on batches of matrices: factors of positive matrices, and triangular systems.
mod cholesky;
mod matrices;
pub mod recipe;
mod triangular_solve;

pub use cholesky::FAMILY as CHOLESKY;
pub use triangular_solve::FAMILY as TRIANGULAR_SOLVE;
