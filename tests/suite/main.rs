//! The tests of this repository, a module for each part, in one program: every file of its own would link the library once more.
//! `cargo test --test suite MODULE::` runs one module. What needs a process of its own (`guarded`, `browser`), the processor for itself
//! (`growth`) or another build (`families`) is a test target beside this one.
#[path = "../common/mod.rs"]
mod common;

mod bounded;
mod bug;
mod build_systems;
mod c_source;
mod calls;
mod checked;
mod cli;
mod cluster;
mod convolutions;
mod custom_calls;
mod docs;
mod examples;
mod files;
mod graphs;
mod jax;
mod kernel_text;
mod kernels;
mod limits;
mod lists;
mod loops;
mod marked;
mod masked_stores;
mod object_code;
mod objects;
mod ops;
mod precision;
mod python;
mod ranks;
mod recipes;
mod reduce;
mod report;
mod rewrite;
mod rewrite_signatures;
mod run;
mod saved_model;
mod scalar_ops;
mod self_test;
mod shapes;
mod size_branches;
mod sized_objects;
mod state;
mod state_objects;
mod tables;
mod targets;
mod tfcompile;
mod tidy;
mod tiles;
mod value_sizes;
mod variables;
mod verify;
mod weights_file;
mod workspace;
