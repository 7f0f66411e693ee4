//! Producers that are computed inside the kernel of their consumer, at one of its loop levels (Halide's `compute_at`): only the few rows, tiles
//! or elements that the consumer needs at a time are made, on the stack or in registers, so that the array between the two has no memory of
//! its own. Each element is computed as by a kernel of its own, so that the bits are the same.
pub(in crate::schedule) mod loops;
pub mod recipe;

pub use loops::FAMILY;
