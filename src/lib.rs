//! tfaot compiles TensorFlow graphs ahead of time into native objects.
//!
//! Nouns are data (`tensor`, `graph`, `hlo`, `kernel`), verbs are steps. In the order in which a graph passes through them:
//! import → prepare → lower → optimize → schedule → codegen → package; `compile` is the straight line, `cli` the face.
#![deny(unsafe_code)]

pub mod util;
pub mod diag;
pub mod tensor;
pub mod scalar;
pub mod target;
pub mod graph;
pub mod opdef;
pub mod hlo;
pub mod kernel;
pub mod import;
pub mod interp;
pub mod optimize;
pub mod ops;
pub mod infer;
pub mod prepare;
pub mod cluster;
pub mod lower;
pub mod bounded;
pub mod schedule;
pub mod codegen;
pub mod package;
pub mod dump;
pub mod rewrite;
pub mod reduce;
pub mod report;
pub mod compile;
pub mod cli;
