//! Row kernels (softmax, norms): an array is taken row by row, and each row in several passes while it is in the nearest cache. A pass
//! computes the reductions whose operands earlier passes have completed: the maximum, then the sum of exponentials; the mean, then the
//! variance. Values that a later pass reads, and that are expensive to compute again, are kept in a buffer of one row on the stack.
pub(in crate::schedule) mod loops;
mod passes;

pub use loops::FAMILY;
