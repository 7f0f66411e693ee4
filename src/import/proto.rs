//! The message types generated from `protos/`, included only here.
#![allow(missing_docs, clippy::all, clippy::unwrap_used, clippy::iter_over_hash_type, reason = "generated code")]

mod generated {
    include!(concat!(env!("OUT_DIR"), "/protos/mod.rs"));
}

pub use generated::{tensorflow, tf2xla};
