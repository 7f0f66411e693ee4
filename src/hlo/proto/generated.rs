//! The generated messages of `protos/hlo.proto` and `protos/xla_data.proto`.
#![allow(missing_docs, reason = "generated code")]

mod messages {
    include!(concat!(env!("OUT_DIR"), "/protos_hlo/mod.rs"));
}

pub use messages::{hlo, xla_data};
