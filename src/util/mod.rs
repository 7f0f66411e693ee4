//! What holds no tensor: ids, arenas, hashes, contents of files.
pub mod guarded;
pub mod id_vec;
pub mod order;
pub mod pieces;
