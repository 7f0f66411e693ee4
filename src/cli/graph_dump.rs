//! Dumps requested by `TF_DUMP_GRAPH_PREFIX`, `TF_DUMP_GRAPH_FMT` and `TF_CPP_VMODULE`, and the summary of a clustering as a file.
use super::out;
use crate::cluster::{Clustering, ClusteringOptions, FunctionClustering, function_graph};
use crate::diag::{Code, Error, Result};
use crate::dump::graphs::{self, ClusteredGraph, GraphDumps, GraphFormat};
use crate::graph::Program;
use crate::import;
use crate::import::raw::RawGraph;
use crate::package::files;
use crate::rewrite;
use std::path::{Path, PathBuf};

/// The source file whose verbosity governs TensorFlow's summary in the log.
const LOGGED_BY: &str = "mark_for_compilation_pass";

/// Requests from the pass what dumps and logs need.
pub fn request_snapshot(options: &mut ClusteringOptions) {
    options.snapshot = options.flags.debug || options.flags.deterministic_names || verbosity() >= 4;
}

/// The pass's verbosity in the environment: `TF_CPP_VMODULE`, or else `TF_CPP_MAX_VLOG_LEVEL`.
fn verbosity() -> u32 {
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    let modules = variable("TF_CPP_VMODULE");
    let of_file = modules.split(',').filter_map(|part| part.split_once('=')).find(|part| part.0 == LOGGED_BY);
    let text = of_file.map_or_else(|| variable("TF_CPP_MAX_VLOG_LEVEL"), |part| part.1.to_string());
    text.trim().parse().unwrap_or(0)
}

/// A clustered program and its file.
pub struct DumpedProgram<'a> {
    /// The file.
    pub path: &'a Path,
    /// The file's format, if the user states it.
    pub format: Option<&'a str>,
    /// The program read from the file.
    pub program: &'a Program,
    /// Options of the clustering pass.
    pub options: &'a ClusteringOptions,
}

impl DumpedProgram<'_> {
    /// Names clusters as the flags require, logs them and dumps graphs, for the program's graph and for `bodies`.
    ///
    /// Errors: `Code::BadOption` for an unknown dump format, `Code::Io`.
    pub fn log_and_dump(&self, found: &mut Clustering, bodies: &mut [FunctionClustering]) -> Result<()> {
        let flags = &self.options.flags;
        if flags.debug || flags.deterministic_names {
            let file = written(self.path, self.format)?;
            if flags.deterministic_names {
                self.each(&file, found, bodies, |source, found| {
                    if let Some(number) = graphs::fingerprint(source, found)? {
                        let named = found.clusters.iter_mut().enumerate();
                        named.for_each(|(i, cluster)| cluster.name = format!("cluster_{number}_{i}"));
                    }
                    Ok(())
                })?;
            }
            if flags.debug {
                self.dump(&file, found, bodies)?;
            }
        }
        let all = std::iter::once(&*found).chain(bodies.iter().map(|b| &b.clustering));
        let logged: String = all.map(|found| graphs::log(found, verbosity())).collect();
        if !logged.is_empty() {
            out::note(logged.trim_end());
        }
        Ok(())
    }

    fn dump(&self, file: &RawGraph, found: &mut Clustering, bodies: &mut [FunctionClustering]) -> Result<()> {
        let Some(place) = DumpDestination::of_environment() else {
            out::note("warning: graphs are not dumped: TF_DUMP_GRAPH_PREFIX names no folder");
            return Ok(());
        };
        let name = std::env::var("TF_DUMP_GRAPH_FMT").unwrap_or_default();
        let told = || Error::user(Code::BadOption, format!("TF_DUMP_GRAPH_FMT is TXT or BIN, not `{name}`"));
        let mut dumps = GraphDumps::new(GraphFormat::parse(&name).ok_or_else(told)?);
        self.each(file, found, bodies, |source, found| dumps.add_clustering(source, found))?;
        place.write(dumps.files)
    }

    /// Calls `tell` with each graph and its clusters.
    fn each(
        &self,
        file: &RawGraph,
        found: &mut Clustering,
        bodies: &mut [FunctionClustering],
        mut tell: impl FnMut(&ClusteredGraph, &mut Clustering) -> Result<()>,
    ) -> Result<()> {
        tell(&ClusteredGraph { graph: &self.program.graph, written: &file.nodes, file }, found)?;
        for body in bodies {
            let Some(function) = self.program.functions.get(&body.name) else { continue };
            let written = file.functions.iter().find(|f| *f.name == *body.name).map_or(&[][..], |f| &f.nodes);
            tell(&ClusteredGraph { graph: &function_graph(function)?, written, file }, &mut body.clustering)?;
        }
        Ok(())
    }
}

/// The file's GraphDef as written; empty if the file has none in protobuf's binary form.
fn written(path: &Path, format: Option<&str>) -> Result<RawGraph> {
    let (format, bytes) = import::load_bytes(path, format)?;
    Ok(rewrite::graph_of_file(&bytes, format)?.unwrap_or_default())
}

/// The destination of graph dumps.
enum DumpDestination {
    Folder(PathBuf),
    StandardError,
}

impl DumpDestination {
    /// Parses `TF_DUMP_GRAPH_PREFIX` like TensorFlow; `None` if it is empty.
    fn of_environment() -> Option<DumpDestination> {
        let prefix = std::env::var("TF_DUMP_GRAPH_PREFIX").unwrap_or_default();
        match prefix.to_ascii_lowercase().as_str() {
            "" => None,
            "-" => Some(DumpDestination::StandardError),
            "sponge" | "test_undeclared_outputs_dir" => Some(
                std::env::var_os("TEST_UNDECLARED_OUTPUTS_DIR")
                    .map_or(DumpDestination::StandardError, |folder| DumpDestination::Folder(folder.into())),
            ),
            _ => Some(DumpDestination::Folder(prefix.into())),
        }
    }

    fn write(&self, dumps: Vec<(String, Vec<u8>)>) -> Result<()> {
        match self {
            DumpDestination::Folder(folder) => {
                let paths = files::write_all(folder, &dumps)?;
                paths.iter().for_each(|path| out::note(format_args!("Dumped Graph to {}", path.display())));
            }
            DumpDestination::StandardError => {
                dumps.iter().for_each(|(_, bytes)| out::note(String::from_utf8_lossy(bytes)))
            }
        }
        Ok(())
    }
}

/// Writes the summary of a clustering to `path`, as text if the name has a text extension.
///
/// Errors: `Code::Io`.
pub fn write_summary(path: &Path, found: &Clustering) -> Result<()> {
    let name = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let bytes = graphs::summary_file(&graphs::summary(found), &name)?;
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    files::write_all(folder, &[(name, bytes)]).map(drop)
}
