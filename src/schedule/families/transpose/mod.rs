//! Pointwise results that are written along one axis and read along another, as transposes are: block by block, so that the cache lines of a
//! block are read and written as a whole before they leave the cache.
//!
//! Loops in the order of the result read one element of each cache line and come back for the next one after as many lines as the result has
//! columns; once these no longer fit the cache, every element costs a miss. It pays from [`recipe::FEWEST_BYTES`] on.
mod loops;
pub mod recipe;

pub use loops::FAMILY;
