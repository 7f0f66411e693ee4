//! The pool of threads that C programs may use.

/// The text of `tfaot_pool.h`, the same for all models.
pub const HEADER: &str = include_str!("pool/tfaot_pool.h");
