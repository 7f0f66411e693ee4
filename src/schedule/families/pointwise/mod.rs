//! Kernels that compute each element of a result from a few elements of other arrays: pointwise operations, concatenations and updates of
//! slices.
pub(in crate::schedule) mod loops;

pub use loops::{CONCATENATE, FAMILY, UPDATE};
