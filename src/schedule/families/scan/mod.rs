//! Windows that always begin at the first element (or end at the last) as one running fold: each element is read once,
//! where folding every window anew reads it as often as windows hold it.
mod loops;
pub mod recipe;

pub use loops::FAMILY;
