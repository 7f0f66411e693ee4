//! Sums over all pixels of each channel, as squeeze-excite takes them, partly made by the kernels that make the pixels.
pub(in crate::schedule) mod loops;
pub mod recipe;
