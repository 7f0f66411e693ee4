//! `tfaot report`: writes a page about a graph, its clusters and its code.
use super::args::ReportArgs;
use super::clustering::analyze;
use super::progress::{self, Progress};
use super::{ExitStatus, dump, graph, out, report_models};
use crate::cluster::{Clustering, GraphOrigin};
use crate::codegen::{self, Launches};
use crate::compile;
use crate::diag::{Code, Diagnostic, Error, Result, io_error};
use crate::dump::DumpFlags;
use crate::graph::{NodeId, Program};
use crate::infer::Facts;
use crate::measure::profile::kernel_times;
use crate::model::Analysis;
use crate::package::files;
use crate::report::{self, CompileRefusal, Report, code, overview, page};
use crate::run::Session;
use crate::run::arguments;
use crate::target::CodeRequest;
use serde_json::Value;
use std::path::Path;

/// Writes the page, or its data as JSON.
pub fn run(args: &ReportArgs) -> Result<ExitStatus> {
    let flags = dump::dump_flags(&args.xla)?;
    let Analysis { mut program, found, facts, options, gone, assumed, .. } = analyze(&args.graph, &args.pass)?;
    let source = title(&args.graph.graph);
    let input = report::Input { program: &program, found: &found, facts: &facts, gone, assumed, source };
    let mut made = report::report(&input);
    report::evaluate_what_ifs(&mut made, &program, &found, &options).map_err(|e| graph::with_file(e, &args.graph))?;
    let old = args.baseline.as_deref().map(baseline).transpose()?;
    if !args.no_compile {
        let code = graph::code_request(&args.target)?;
        let _line = Progress::begin("compiling the model", args.graph.quiet);
        if options.origin == GraphOrigin::Saved {
            report_models::add_models(args, &code, &mut made)?;
            made.next = overview::suggest_next_steps(&made, &selection_flags(args));
        }
        let cluster = &made.columns.nodes.cluster;
        report::fold_known_inputs(&mut program, &facts, &|id| cluster.get(id.0 as usize).copied().flatten());
        compile_clusters(args, &flags, &program, &found, &facts, &code, &mut made)?;
    }
    if let Some((path, old)) = old {
        made.baseline = Some(report::compare(&old, &made).ok_or_else(|| no_report(path))?);
    }
    deliver(args, made)?;
    // The process ends here: freeing a million nodes would waste time.
    std::mem::forget((program, facts, found));
    Ok(ExitStatus::Yes)
}

/// The file's name on the page, with its folder if the file name is generic.
fn title(path: &Path) -> String {
    let name = compile::source_name(path);
    let folder = path.parent().and_then(Path::file_name).map(|f| f.to_string_lossy());
    match (folder, name.split('.').next()) {
        (Some(folder), Some("model" | "graph" | "frozen" | "saved_model" | "plain")) => format!("{folder}/{name}"),
        (_, _) => name,
    }
}

/// The file and the flags that select its parts and sizes, for commands shown on the page.
fn selection_flags(args: &ReportArgs) -> String {
    let graph = &args.graph;
    let name = graph.graph.file_name().map_or_else(|| "GRAPH".into(), |n| n.to_string_lossy());
    let flags = [
        ("signature", &graph.signature),
        ("feed", &graph.feeds),
        ("fetch", &graph.fetches),
        ("dim", &graph.dims),
        ("bound", &graph.bounds),
    ];
    let flags =
        flags.into_iter().flat_map(|(flag, values)| values.iter().map(move |v| format!(" --{flag} {}", quoted(v))));
    quoted(&name) + &flags.collect::<String>()
}

/// A word quoted for a shell.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_string()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

/// The document of an earlier report. Errors: `Code::Io`; `Code::BadEncoding` for other files.
fn baseline(path: &Path) -> Result<(&Path, Value)> {
    let text = std::fs::read_to_string(path).map_err(|e| io_error("read", path, &e))?;
    Ok((path, serde_json::from_str(&text).map_err(|_| no_report(path))?))
}

fn no_report(path: &Path) -> Error {
    Diagnostic::new(Code::BadEncoding, format!("`{}` is no output of `report --json`", path.display()))
        .help("write one with `tfaot report GRAPH --json > OLD.json`, or by the page's button JSON")
        .into()
}

/// Compiles each cluster separately, if its sizes are known.
fn compile_clusters(
    args: &ReportArgs,
    flags: &DumpFlags,
    program: &Program,
    found: &Clustering,
    facts: &Facts,
    code: &CodeRequest,
    made: &mut Report,
) -> Result<()> {
    for at in 0..found.clusters.len() {
        progress::set_step(format_args!("compiling cluster {} of {}", at + 1, found.clusters.len()));
        let cluster = &made.columns.nodes.cluster;
        let inside = |id: NodeId| cluster.get(id.0 as usize).copied().flatten() == Some(at as u32);
        match compile_cluster(args, flags, program, facts, &inside, &made.clusters[at].name, code) {
            Ok((report, left_out)) => {
                made.clusters[at].left_out = left_out;
                made.summary.profiled |= args.profile;
                made.clusters[at].code = Some(made.code.len() as u32);
                made.code.push(report);
            }
            Err(error) => {
                let all = error.into_diagnostics().into_iter();
                made.clusters[at].refused = all.map(|d| refusal(program, d)).collect();
            }
        }
    }
    Ok(())
}

fn compile_cluster(
    args: &ReportArgs,
    flags: &DumpFlags,
    program: &Program,
    facts: &Facts,
    inside: &dyn Fn(NodeId) -> bool,
    name: &str,
    request: &CodeRequest,
) -> Result<(report::CodeReport, usize)> {
    let target = &request.target;
    let part = report::cluster_border(program, facts, inside)?;
    let (mut lowered, _) = compile::lower_part(program, &part)?;
    if !args.profile && !flags.is_on() {
        let (module, loops) = compile::plan(lowered, name, name, request)?;
        let assembly = codegen::assembly(&loops, target)?;
        return Ok((code::describe_code(&module, &loops, target, &assembly, None), part.left_out));
    }
    let infos = lowered.args.clone();
    let launches = if args.profile { Launches::Observed } else { Launches::Direct };
    if flags.is_on() {
        lowered.module.name = name.to_string();
    }
    let mut dumped = dump::start(flags, &lowered.module);
    let built = compile::build(lowered, name, name, request, launches, &mut dumped).and_then(|b| {
        let each = [(b.program.clone(), target.clone())];
        dump::add_results(&mut dumped, &b.module, &each, &b.object.content).map(|()| b)
    });
    dump::write(flags, dumped)?;
    let built = built?;
    let assembly = codegen::assembly(&built.program, target)?;
    if !args.profile {
        return Ok((code::describe_code(&built.module, &built.program, target, &assembly, None), part.left_out));
    }
    let mut session = Session::load(&built, target, &arguments::load(None, &infos)?, 1)?;
    let (least, runs) = kernel_times(&built.program, &mut session, None, args.seconds)?;
    let ms = least.iter().map(|s| s.time.as_secs_f64() * 1e3).collect();
    let times = code::KernelTimes { ms, roofline: Vec::new(), runs };
    Ok((code::describe_code(&built.module, &built.program, target, &assembly, Some(&times)), part.left_out))
}

/// The diagnostic as a reason why a cluster has no code.
fn refusal(program: &Program, d: Diagnostic) -> CompileRefusal {
    let row = d.code.row();
    let outside = d.place.function.is_none();
    let node = d.place.node.as_ref().filter(|_| outside).and_then(|n| program.graph.find(n)).map(|id| id.0);
    CompileRefusal { code: d.code.id(), slug: row.slug, node, text: d.message, help: d.help }
}

fn deliver(args: &ReportArgs, made: Report) -> Result<()> {
    if args.json {
        let text = serde_json::to_string(&made).map_err(|e| Error::internal("report", e.to_string()))?;
        out::line(text)?;
    }
    let Some(path) = &args.out else {
        return if args.json {
            Ok(())
        } else {
            Err(Diagnostic::new(Code::BadOption, "a page needs a file to be written to")
                .help("-o FILE.html, or --json for the data alone")
                .into())
        };
    };
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let name = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let (s, clusters) = (made.summary.clone(), made.clusters.len());
    let compiled = made.clusters.iter().filter(|c| c.code.is_some()).count();
    let (models, whole) = (made.models.len(), made.models.iter().filter(|m| m.code.is_some()).count());
    files::write_all(folder, &[(name, page::render(made)?.into_bytes())])?;
    if args.json {
        return Ok(());
    }
    let of_whole = match (models, whole) {
        (0, _) => String::new(),
        (1, 1) => "compiles whole; ".to_string(),
        (1, _) => "does not compile whole; ".to_string(),
        _ => format!("{whole} of {models} signatures compile whole; "),
    };
    out::line(format_args!(
        "{}: {of_whole}{} of {} nodes in {clusters} clusters, {compiled} of them compiled",
        path.display(),
        s.clustered,
        s.nodes,
    ))
}
