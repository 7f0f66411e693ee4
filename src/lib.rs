//! tfaot compiles TensorFlow graphs, StableHLO and HLO ahead of time into native objects with a C99 header.
//!
//! # Where to start
//!
//! [`ModelFile`] is a file with a model. Its methods check a model, lower it to HLO, compile it, form TensorFlow's clusters, rewrite a
//! graph with compiled clusters, report on it and verify its code. A [`Request`] has feeds, fetches, signatures and sizes, where the
//! file leaves them open; a [`Target`] is the machine to compile for, a [`CodeRequest`] a machine with wishes about its code.
//!
//! ```
//! use tfaot::{ModelFile, Request, Target};
//!
//! let target = Target::resolve(Some("aarch64-unknown-linux-gnu"), None, None)?;
//! let compiled = ModelFile::open("testdata/graphs/attention/graph.pb").compile(&Request::default(), &target)?;
//! std::fs::write(std::env::temp_dir().join("attention.o"), compiled.object.content.to_bytes()).expect("it is written");
//! # Ok::<(), tfaot::Error>(())
//! ```
//!
//! | to | use |
//! |---|---|
//! | open a model | [`ModelFile::open`] |
//! | find what keeps it from being compiled | [`ModelFile::check`] |
//! | form TensorFlow's clusters | [`ModelFile::cluster`], a [`Clustering`] |
//! | lower it to HLO | [`ModelFile::lower`], [`Functions`] of a [`Module`] each |
//! | compile it | [`ModelFile::compile`], a [`Compiled`] object and its [`header`] |
//! | rewrite the graph | [`ModelFile::rewrite`] in a [`RewriteMode`] |
//! | report on its clusters | [`ModelFile::report`], a [`Report`] |
//! | compare its code with the interpreter | [`ModelFile::verify`], a [`Verification`] |
//! | call it | [`Instance`], or [`Interpreter`] without compiling, on [`Tensor`]s |
//!
//! Every step fails with an [`Error`]: a [`Diagnostic`] with a stable [`Code`] where the input is at fault.
//!
//! # Inside
//!
//! The modules behind these names follow the pipeline import → prepare → lower → optimize → schedule → codegen → package;
//! `ARCHITECTURE.md` describes them. They are no interface, and are documented with
//! `RUSTDOCFLAGS="--cfg internals" cargo doc --document-private-items`.
#![deny(unsafe_code)]

#[doc(inline)]
pub use cluster::Clustering;
/// A compiled model: the object, and the signatures of its functions.
///
/// ```
/// use tfaot::{ModelFile, Request, Target};
///
/// let (model, request, target) =
///     (ModelFile::open("testdata/graphs/attention/graph.pb"), Request::default(), Target::resolve(None, None, None)?);
/// let compiled = model.compile(&request, &target)?;
/// println!("{} bytes", compiled.object.content.len());
/// # assert_eq!(compiled.bundle.face.entries.len(), 1);
/// # Ok::<(), tfaot::Error>(())
/// ```
#[doc(inline)]
pub use compile::Compiled;
/// Functions of a model in HLO, ready to be compiled.
///
/// ```
/// use tfaot::{ModelFile, Request};
///
/// let functions = ModelFile::open("testdata/graphs/attention/graph.pb").lower(&Request::default())?;
/// for (name, lowered) in &functions.all {
///     println!("{name}: {} arguments, {} results", lowered.args.len(), lowered.results.len());
/// }
/// # assert_eq!(functions.all.len(), 1);
/// # Ok::<(), tfaot::Error>(())
/// ```
#[doc(inline)]
pub use compile::Functions;
#[doc(inline)]
pub use diag::{Code, Diagnostic, Error, Result};
#[doc(inline)]
pub use hlo::Module;
#[doc(inline)]
pub use model::ModelFile;
#[doc(inline)]
pub use package::header::header;
#[doc(inline)]
pub use prepare::Request;
#[doc(inline)]
pub use report::Report;
#[doc(inline)]
pub use rewrite::Mode as RewriteMode;
#[doc(inline)]
pub use run::{Instance, Interpreter, arguments::for_function as arguments};
#[doc(inline)]
pub use target::{CodeRequest, Target};
#[doc(inline)]
pub use tensor::{DType, Tensor};
#[doc(inline)]
pub use verify::Verification;

#[cfg_attr(not(internals), doc(hidden))]
pub mod util;
#[cfg_attr(not(internals), doc(hidden))]
pub mod symbolic;
#[cfg_attr(not(internals), doc(hidden))]
pub mod diag;
#[cfg_attr(not(internals), doc(hidden))]
pub mod tensor;
#[cfg_attr(not(internals), doc(hidden))]
pub mod scalar;
#[cfg_attr(not(internals), doc(hidden))]
pub mod target;
#[cfg_attr(not(internals), doc(hidden))]
pub mod graph;
#[cfg_attr(not(internals), doc(hidden))]
pub mod opdef;
#[cfg_attr(not(internals), doc(hidden))]
pub mod hlo;
#[cfg_attr(not(internals), doc(hidden))]
pub mod kernel;
#[cfg_attr(not(internals), doc(hidden))]
pub mod import;
#[cfg_attr(not(internals), doc(hidden))]
pub mod interp;
#[cfg_attr(not(internals), doc(hidden))]
pub mod optimize;
#[cfg_attr(not(internals), doc(hidden))]
pub mod ops;
#[cfg_attr(not(internals), doc(hidden))]
pub mod infer;
#[cfg_attr(not(internals), doc(hidden))]
pub mod prepare;
#[cfg_attr(not(internals), doc(hidden))]
pub mod cluster;
#[cfg_attr(not(internals), doc(hidden))]
pub mod lower;
#[cfg_attr(not(internals), doc(hidden))]
pub mod bounded;
#[cfg_attr(not(internals), doc(hidden))]
pub mod schedule;
#[cfg_attr(not(internals), doc(hidden))]
pub mod codegen;
#[cfg_attr(not(internals), doc(hidden))]
pub mod package;
#[cfg_attr(not(internals), doc(hidden))]
pub mod dump;
#[cfg_attr(not(internals), doc(hidden))]
pub mod rewrite;
#[cfg_attr(not(internals), doc(hidden))]
pub mod reduce;
#[cfg_attr(not(internals), doc(hidden))]
pub mod report;
#[cfg_attr(not(internals), doc(hidden))]
pub mod compile;
#[cfg_attr(not(internals), doc(hidden))]
pub mod run;
#[cfg_attr(not(internals), doc(hidden))]
pub mod measure;
#[cfg_attr(not(internals), doc(hidden))]
pub mod verify;
#[cfg_attr(not(internals), doc(hidden))]
pub mod model;
#[cfg_attr(not(internals), doc(hidden))]
pub mod cli;
