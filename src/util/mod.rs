//! Utilities that hold no tensor: ids, arenas, hashes, contents of files, work and meetings of threads.
pub mod id_lists;
pub mod id_vec;
pub mod meetings;
pub mod order;
pub mod parallel;
pub mod pieces;
