//! A model file and the operations on it: the methods of [`ModelFile`] call the steps of the other modules in order.
mod analysis;
mod check;
mod cluster_input;

pub use analysis::Analysis;
pub use check::{Check, check};
pub use cluster_input::{ClusterInput, load_for_clustering};

use crate::cluster::{self, Clustering, JitLevel};
use crate::codegen::Launches;
use crate::compile::{self, Compiled, Functions};
use crate::diag::Result;
use crate::import;
use crate::package::names;
use crate::prepare::Request;
use crate::report::{self, Report};
use crate::rewrite::{self, Mode, Rewritten};
use crate::run::WeightSource;
use crate::target::{CodeRequest, Target};
use crate::tensor::Tensor;
use crate::verify::{Verification, VerifyCase, VerifyOptions, verify};
use std::path::{Path, PathBuf};

/// A file or folder with a TensorFlow graph, or with a module of HLO or StableHLO: GraphDef, MetaGraphDef, SavedModel, TF.js,
/// StableHLO text and bytecode, HLO text and protos. The format is detected.
///
/// ```
/// use tfaot::{ModelFile, Request};
///
/// let model = ModelFile::open("testdata/graphs/attention/graph.pb");
/// assert!(model.check(&Request::default())?.blockers.is_empty());
/// # Ok::<(), tfaot::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct ModelFile {
    path: PathBuf,
    format: Option<String>,
}

impl ModelFile {
    /// Refers to a file or folder, which the other methods read.
    pub fn open(path: impl AsRef<Path>) -> ModelFile {
        ModelFile { path: path.as_ref().to_path_buf(), format: None }
    }

    /// Sets the format instead of detecting it, as the command-line option `--format` does.
    pub fn with_format(self, format: Option<&str>) -> ModelFile {
        ModelFile { format: format.map(str::to_string), ..self }
    }

    /// The path that was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Prefix of C names, derived from the file name.
    pub fn name(&self) -> String {
        names::model_name_from_path(&self.path.display().to_string())
    }

    /// Finds everything that prevents the model from being compiled for this machine.
    ///
    /// ```
    /// use tfaot::{ModelFile, Request};
    ///
    /// let check = ModelFile::open("testdata/graphs/attention/graph.pb").check(&Request::default())?;
    /// for blocker in &check.blockers {
    ///     println!("{}: {}", blocker.code.id(), blocker.message);
    /// }
    /// assert!(check.blockers.is_empty());
    /// # Ok::<(), tfaot::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Code::Io` if there is no such file; any other problem is a blocker.
    pub fn check(&self, request: &Request) -> Result<Check> {
        check(self, request, &self.name(), &Target::resolve(None, None, None)?.into())
    }

    /// Lowers the functions of the model to HLO, unoptimized.
    ///
    /// ```
    /// use tfaot::{ModelFile, Request};
    ///
    /// let functions = ModelFile::open("testdata/graphs/attention/graph.pb").lower(&Request::default())?;
    /// let (name, lowered) = &functions.all[0];
    /// println!("{name} takes {} arrays:\n{}", lowered.args.len(), lowered.module);
    /// # assert_eq!(name, "run");
    /// # Ok::<(), tfaot::Error>(())
    /// ```
    ///
    /// # Errors
    /// Errors of reading the file; every blocker.
    pub fn lower(&self, request: &Request) -> Result<Functions> {
        let fronts = compile::load_and_lower(&self.path, self.format.as_deref(), request)?;
        let all = fronts.entries.into_iter().map(|entry| (entry.name, entry.lowered)).collect();
        Ok(Functions { all, init: fronts.init })
    }

    /// Compiles the model to an object file, whose C names begin with [`ModelFile::name`].
    ///
    /// ```
    /// use tfaot::{ModelFile, Request, Target, header};
    ///
    /// let target = Target::resolve(Some("aarch64-unknown-linux-gnu"), None, None)?;
    /// let compiled = ModelFile::open("testdata/graphs/attention/graph.pb").compile(&Request::default(), &target)?;
    /// let object: Vec<u8> = compiled.object.content.to_bytes().to_vec();
    /// let header: String = header(&compiled.bundle.face, &[&target]);
    /// # assert!(object.starts_with(b"\x7fELF") && header.contains("_run("));
    /// # Ok::<(), tfaot::Error>(())
    /// ```
    ///
    /// # Errors
    /// Errors of [`ModelFile::lower`]; `Code::TooLarge`, `Code::UnsupportedCase`.
    pub fn compile(&self, request: &Request, code: impl Into<CodeRequest>) -> Result<Compiled> {
        let name = self.name();
        let (functions, source) = (self.lower(request)?, compile::source_name(&self.path));
        compile::build_functions(functions, &name, &source, &[code.into()], Launches::Direct, &mut [])
    }

    /// Forms the clusters that TensorFlow's auto-clustering forms if XLA is enabled for CPUs.
    ///
    /// ```
    /// use tfaot::ModelFile;
    ///
    /// let clustering = ModelFile::open("testdata/graphs/attention/graph.pb").cluster()?;
    /// for node in &clustering.nodes {
    ///     if let Err(reason) = &node.cluster {
    ///         println!("{} ({}): {}", node.name, node.op, reason.text(&node.op));
    ///     }
    /// }
    /// assert_eq!(clustering.clusters.len(), 1);
    /// # Ok::<(), tfaot::Error>(())
    /// ```
    ///
    /// # Errors
    /// Errors of reading the file; `Code::BadGraph`.
    pub fn cluster(&self) -> Result<Clustering> {
        let mut options = cluster_options();
        let input = load_for_clustering(self, &mut Request::default(), &mut options)?;
        cluster::cluster(&input.program, &input.program.graph, &options).map_err(|e| e.in_file(&self.path))
    }

    /// Rewrites the graph with its clusters marked, or replaced by functions that XLA compiles or ops of a shared library.
    ///
    /// ```
    /// use tfaot::{ModelFile, RewriteMode};
    ///
    /// let rewritten = ModelFile::open("testdata/graphs/attention/graph.pb").rewrite(RewriteMode::Annotate)?;
    /// assert!(rewritten.clusters > 0 && !rewritten.bytes.is_empty());
    /// # Ok::<(), tfaot::Error>(())
    /// ```
    ///
    /// # Errors
    /// Errors of reading the file and of [`rewrite::rewrite`].
    pub fn rewrite(&self, mode: Mode) -> Result<Rewritten> {
        let (format, bytes) = import::load_bytes(&self.path, self.format.as_deref())?;
        let program = import::load_as_saved(&self.path, self.format.as_deref())?;
        let request = rewrite::RewriteOptions {
            options: &cluster_options(),
            mode,
            fetches: Vec::new(),
            signature: None,
            feeds: Vec::new(),
            variables: Vec::new(),
            library: "libtfaot.so",
            dumps: None,
        };
        rewrite::rewrite(&bytes, format, &program, &request).map_err(|e| e.in_file(&self.path))
    }

    /// Describes the clusters of the graph, the reasons for nodes outside, and what compiling these would change.
    ///
    /// ```
    /// use tfaot::ModelFile;
    ///
    /// let report = ModelFile::open("testdata/graphs/attention/graph.pb").report()?;
    /// println!("{} of {} nodes are in clusters", report.summary.clustered, report.summary.nodes);
    /// # assert_eq!(report.clusters.len(), 1);
    /// # Ok::<(), tfaot::Error>(())
    /// ```
    ///
    /// # Errors
    /// Errors of [`ModelFile::cluster`].
    pub fn report(&self) -> Result<Report> {
        let mut options = cluster_options();
        options.refused_edges = true;
        let mut request = Request::default();
        let input = load_for_clustering(self, &mut request, &mut options)?;
        let analysis = Analysis::new(self, input, request, options, &mut |_, _, _| Ok(()))?;
        let source = compile::source_name(&self.path);
        let Analysis { program, found, facts, options, gone, assumed, .. } = analysis;
        let input = report::Input { program: &program, found: &found, facts: &facts, gone, assumed, source };
        let mut report = report::report(&input);
        report::evaluate_what_ifs(&mut report, &program, &found, &options).map_err(|e| e.in_file(&self.path))?;
        Ok(report)
    }

    /// Compiles the model for this machine, calls it, and compares the results with the interpreter's.
    ///
    /// ```
    /// use tfaot::{ModelFile, Request, Target, arguments};
    ///
    /// let (model, request) = (ModelFile::open("testdata/graphs/attention/graph.pb"), Request::default());
    /// let args = arguments(None, &model.lower(&request)?.all[0].1, &[])?;
    /// let outcome = model.verify(&request, &args, &Target::resolve(None, None, None)?)?;
    /// assert!(outcome.comparisons.iter().all(|c| !c.departs()));
    /// # Ok::<(), tfaot::Error>(())
    /// ```
    ///
    /// # Errors
    /// Errors of [`ModelFile::compile`]; `Code::NoLinker`.
    pub fn verify(&self, request: &Request, args: &[Tensor], code: impl Into<CodeRequest>) -> Result<Verification> {
        let code = code.into();
        let functions = self.lower(request)?;
        let results = functions.all.first().map_or(&[][..], |(_, lowered)| &lowered.results);
        let keys: Vec<String> = results.iter().map(|r| r.display_name().to_string()).collect();
        let case = VerifyCase {
            graph: &self.path,
            format: self.format.as_deref(),
            request,
            functions: &functions,
            keys: &keys,
            args,
            expect: None,
            weights: WeightSource::Object,
            all_ops: false,
            conditions: VerifyOptions { name: &self.name(), code: &code, threads: 1, rtol: None, atol: None },
        };
        verify(&case, &|_| ())
    }
}

/// Options that enable clustering on CPUs, as the command line does by default.
fn cluster_options() -> cluster::ClusteringOptions {
    let mut options =
        cluster::ClusteringOptions { session_level: Some(JitLevel::On), ..cluster::ClusteringOptions::default() };
    options.flags.cpu_global_jit = Some(true);
    options
}
