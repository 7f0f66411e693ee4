//! Memory planning: the layout of an array in its buffer, the lifetimes of buffers, and their offsets in the workspace.
pub mod allocate;
pub mod layout;
pub mod liveness;
pub mod timeline;
pub(in crate::schedule) mod workspace;
