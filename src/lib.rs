//! tfaot compiles TensorFlow graphs ahead of time into native objects.
//!
//! Nouns are data (`tensor`, `graph`, `hlo`, `kernel`), verbs are steps. In the order in which a graph passes through them:
//! import → prepare → lower → optimize → schedule → codegen → package; `compile` is the straight line, `cli` the face.
//!
//! A module of HLO becomes an object and its header so; [`compile::fronts`] reads graphs:
//!
//! ```
//! use tfaot::{codegen::Launches, compile, hlo, kernel::Face, package::header, target::Target};
//!
//! let text = "HloModule double\nENTRY e {\n  x = f32[4] parameter(0)\n  ROOT y = f32[4] add(x, x)\n}\n";
//! let lowered = compile::wrap(hlo::text::parse(text)?)?;
//! let target = Target::resolve(Some("aarch64-unknown-linux-gnu"), None, None)?;
//! let built = compile::build(lowered, "double", "double.hlo", &target, Launches::Direct, &mut None)?;
//! assert!(built.object.content.joined().starts_with(b"\x7fELF"));
//! assert!(header::header(&Face::of(&built.program), &[&target]).contains("int double_run("));
//! # Ok::<(), tfaot::diag::Error>(())
//! ```
#![deny(unsafe_code)]

pub mod util;
pub mod symbolic;
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
pub mod run;
pub mod measure;
pub mod verify;
pub mod cli;
