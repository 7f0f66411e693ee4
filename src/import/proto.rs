//! The generated messages of `protos/`. Included here and nowhere else.
#![allow(missing_docs, clippy::all, clippy::unwrap_used, clippy::iter_over_hash_type, reason = "generated code")]

mod generated {
    include!(concat!(env!("OUT_DIR"), "/protos/mod.rs"));
}

pub use generated::{tensorflow, tf2xla};
