//! The generated messages of `protos/hlo.proto` and `protos/xla_data.proto`.
#![allow(missing_docs, clippy::all, clippy::unwrap_used, clippy::iter_over_hash_type, reason = "generated code")]

mod messages {
    include!(concat!(env!("OUT_DIR"), "/protos_hlo/mod.rs"));
}

pub use messages::{hlo, xla_data};
