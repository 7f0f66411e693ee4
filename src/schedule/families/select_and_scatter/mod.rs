//! `select-and-scatter`: each source element is combined into the selected element of its window.
mod loops;
pub mod recipe;
mod vectors;

pub use loops::FAMILY;
