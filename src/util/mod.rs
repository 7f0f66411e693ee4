//! What holds no tensor: ids, arenas, hashes.
pub mod id_vec;
