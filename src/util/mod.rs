//! Utilities independent of tensors: ids, arenas, topological order, file contents, parallel work and rendezvous of threads.
pub mod id_lists;
pub mod id_vec;
pub mod meetings;
pub mod order;
pub mod parallel;
pub mod pieces;
