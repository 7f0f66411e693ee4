//! The generated messages of `protos/`. Included here and nowhere else.
#![allow(missing_docs, reason = "generated code")]

mod generated {
    include!(concat!(env!("OUT_DIR"), "/protos/mod.rs"));
}

pub use generated::{tensorflow, tf2xla};
