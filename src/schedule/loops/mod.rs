//! The vocabulary of loops that the families of kernels share: elements as expressions, nests, vectors, windows, views of memory.
pub(in crate::schedule) mod copies;
pub(in crate::schedule) mod element;
pub(in crate::schedule) mod grid;
pub(in crate::schedule) mod idioms;
pub(in crate::schedule) mod nest;
pub(in crate::schedule) mod prelude;
pub(in crate::schedule) mod row_tails;
pub(in crate::schedule) mod scalar_loops;
pub(in crate::schedule) mod vectors;
pub(in crate::schedule) mod view;
pub(in crate::schedule) mod window;
