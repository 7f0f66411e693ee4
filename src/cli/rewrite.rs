//! `tfaot rewrite`: rewrites a saved graph with its clusters.
use super::args::{RewriteArgs, RewriteMode};
use super::progress::Progress;
use super::{ExitStatus, clustering, dump, graph, graph_dump, out};
use crate::cluster::{CheckAndPrintPolicy, Clustering, ClusteringOptions, FunctionClustering, with_full_devices};
use crate::diag::{Code, Diagnostic, Error, Result, io_error};
use crate::graph::Program;
use crate::package::{files, temporary_files};
use crate::rewrite::{self, Mode, NativeOptions, RewriteOptions, Rewritten};
use crate::{import, prepare};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Rewrites a file, or a SavedModel's folder with all its files.
pub fn run(args: &RewriteArgs) -> Result<ExitStatus> {
    let mut options = clustering::clustering_options(&args.pass, args.quiet)?;
    graph_dump::request_snapshot(&mut options);
    if args.beyond_xla && args.mode != RewriteMode::Native {
        return Err(Diagnostic::new(
            Code::BadOption,
            "`--beyond-xla` is for `--mode native`: XLA compiles the clusters of the others",
        )
        .into());
    }
    options.beyond_xla = args.beyond_xla;
    options.checks = if args.drop_assertions { CheckAndPrintPolicy::Dropped } else { CheckAndPrintPolicy::Kept };
    let flags = dump::dump_flags(&args.xla)?;
    let in_file = |e: Error| e.in_file(&args.graph);
    let shapes = graph::request_from_flags(&args.feeds, &args.dims)?;
    let (format, bytes) = import::load_bytes(&args.graph, args.format.as_deref())?;
    let program = import::load_as_saved(&args.graph, args.format.as_deref())?;
    let feeds = shapes.feeds.iter().map(|f| f.name.clone()).collect();
    let variables = match (args.mode, args.keep_variables) {
        // a single file has no values of variables
        (RewriteMode::Native, false) if args.graph.is_dir() => {
            import::load_with_variables(&args.graph, args.format.as_deref())?.variables
        }
        _ => Vec::new(),
    };
    let native = match args.mode {
        RewriteMode::Native => Some(native(args, shapes)?),
        RewriteMode::Annotate | RewriteMode::Xla => None,
    };
    let library = library_path(args);
    let mode = match (args.mode, &native) {
        (RewriteMode::Native, Some(native)) => Mode::Native(native),
        (RewriteMode::Xla, _) => Mode::Xla,
        (RewriteMode::Annotate | RewriteMode::Native, _) => Mode::Annotate,
    };
    let request = RewriteOptions {
        options: &options,
        mode,
        fetches: args.fetches.clone(),
        signature: args.signature.clone(),
        feeds,
        variables,
        library: &library.file_name().unwrap_or_default().to_string_lossy(),
        dumps: dump::shared_dumps(&flags),
    };
    let _progress = Progress::begin("compiling clusters", args.quiet);
    let mut made = rewrite::rewrite(&bytes, format, &program, &request).map_err(in_file)?;
    tell(args, &program, &options, std::mem::take(&mut made.formed))?;
    dump::write_files(&flags, std::mem::take(&mut made.dumped))?;
    if !args.quiet {
        made.assumed.iter().for_each(|told| out::note(format_args!("assumed: {told}")));
        made.notes.iter().for_each(|note| out::note(format_args!("note: {note}")));
    }
    let told = format!("{} clusters of {} nodes", made.clusters, made.nodes);
    let compiled = made.library.is_some();
    let path = if args.graph.is_dir() {
        write_folder(&args.graph, &args.out, &library, made)?
    } else {
        write_file(&args.out, &library, made)?
    };
    out::line(format_args!("{}: {told}", path.display()))?;
    if compiled {
        out::line(format_args!("{}: load it with tf.load_op_library first", library.display()))?;
    }
    Ok(ExitStatus::Yes)
}

/// Logs and dumps the clusters that were formed.
fn tell(args: &RewriteArgs, program: &Program, options: &ClusteringOptions, formed: Vec<Formed>) -> Result<()> {
    let mut formed = formed.into_iter();
    let Some((None, mut found)) = formed.next() else { return Ok(()) };
    let body = |(name, found): Formed| name.map(|name| FunctionClustering { name, clustering: found });
    let mut bodies: Vec<FunctionClustering> = formed.filter_map(body).collect();
    // The pass received the graph with a device for every node.
    let placed = Program { graph: with_full_devices(&program.graph)?, ..program.clone() };
    let told =
        graph_dump::DumpedProgram { path: &args.graph, format: args.format.as_deref(), program: &placed, options };
    told.log_and_dump(&mut found, &mut bodies)
}

/// The clusters of a graph, with the name of the function if the graph is a function's body.
type Formed = (Option<Arc<str>>, Clustering);

/// Options for compiling clusters. Errors: `BadOption`, `UnknownTarget`.
fn native(args: &RewriteArgs, shapes: prepare::Request) -> Result<NativeOptions> {
    Ok(NativeOptions {
        name: graph::model_name(args.name.as_deref(), &args.graph)?,
        requests: graph::code_requests(&args.target)?,
        threads: args.threads.unwrap_or(0),
        request: prepare::Request { signatures: args.signature.iter().cloned().collect(), ..shapes },
    })
}

/// The path of the shared library: beside the output file, or in the SavedModel's folder for additional assets.
fn library_path(args: &RewriteArgs) -> PathBuf {
    if args.graph.is_dir() { args.out.join(EXTRA).join("libtfaot.so") } else { args.out.with_extension("so") }
}

/// The folder of a SavedModel for files that TensorFlow ignores.
const EXTRA: &str = "assets.extra";

fn write_file(path: &Path, library: &Path, made: Rewritten) -> Result<PathBuf> {
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let name = |path: &Path| path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let mut all = vec![(name(path), made.bytes)];
    all.extend(made.library.map(|bytes| (name(library), bytes)));
    files::write_all(folder, &all)?;
    Ok(path.to_path_buf())
}

/// Copies a SavedModel, with the rewritten graph in place of its own, atomically.
fn write_folder(from: &Path, to: &Path, library: &Path, made: Rewritten) -> Result<PathBuf> {
    if to.exists() {
        let told = format!("`{}` exists, and a SavedModel is written to a new folder", to.display());
        return Err(Diagnostic::new(Code::BadOption, told).into());
    }
    let above = to.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    std::fs::create_dir_all(above).map_err(|e| io_error("made", above, &e))?;
    let unfinished = temporary_files::TemporaryFolder::new_in(above).map_err(|e| io_error("written", to, &e))?;
    copy_folder(from, unfinished.path())?;
    files::write_all(unfinished.path(), &[("saved_model.pb".to_string(), made.bytes)])?;
    if let Some(bytes) = made.library {
        let name = library.file_name().unwrap_or_default().to_string_lossy().into_owned();
        files::write_all(&unfinished.path().join(EXTRA), &[(name, bytes)])?;
    }
    std::fs::rename(unfinished.path(), to).map_err(|e| io_error("written", to, &e))?;
    Ok(to.to_path_buf())
}

/// Copies a folder recursively. Follows links, and skips the graph and its fingerprint.
fn copy_folder(from: &Path, to: &Path) -> Result<()> {
    let mut open = vec![(from.to_path_buf(), to.to_path_buf())];
    while let Some((from, to)) = open.pop() {
        std::fs::create_dir_all(&to).map_err(|e| io_error("made", &to, &e))?;
        let entries = std::fs::read_dir(&from).map_err(|e| io_error("read", &from, &e))?;
        for entry in entries {
            let entry = entry.map_err(|e| io_error("read", &from, &e))?;
            let (path, name) = (entry.path(), entry.file_name());
            if matches!(&*name.to_string_lossy(), "saved_model.pb" | "saved_model.pbtxt" | "fingerprint.pb") {
                continue;
            }
            if path.is_dir() {
                open.push((path, to.join(name)));
            } else {
                std::fs::copy(&path, to.join(name)).map_err(|e| io_error("copied", &path, &e))?;
            }
        }
    }
    Ok(())
}
