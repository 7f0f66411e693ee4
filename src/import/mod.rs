//! Files to [`crate::graph::Program`].
