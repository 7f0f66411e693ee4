//! `tfaot bug`: a command that goes wrong, packed so that somebody else can run it: the graph without its weights, the command,
//! what it said, the versions, and the dumps that were made on the way.
use super::args::BugArgs;
use super::{Verdict, out};
use crate::diag::{Code, Diagnostic, Error, Result};
use crate::import;
use crate::package::unfinished;
use crate::reduce::{Seeded, seed_weights};
use crate::rewrite;
use crate::target::Target;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The name of the packed graph, and of the folder of dumps.
const GRAPH: &str = "graph.pb";
const DUMPS: &str = "dumps";

/// Runs the command on the graph and on the packed one, and writes the folder.
pub fn run(args: &BugArgs) -> Result<Verdict> {
    if args.out.exists() {
        let told = format!("`{}` exists, and a report is written to a new folder", args.out.display());
        return Err(Diagnostic::new(Code::BadOption, told).into());
    }
    let (format, bytes) = import::load_bytes(&args.graph, args.format.as_deref())?;
    let graph = rewrite::graph_in(&bytes, format)?;
    let mut graph = graph.ok_or_else(|| {
        let told = format!("a file of the format `{}` is not packed", format.name());
        Error::from(
            Diagnostic::new(Code::UnknownFormat, told).help("bug takes GraphDefs, MetaGraphDefs and SavedModels"),
        )
    })?;
    let weights = seed_weights(&mut graph).map_err(|e| out::in_file(e, &args.graph.display().to_string()))?;
    let above = args.out.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    std::fs::create_dir_all(above).map_err(|e| out::io_error("made", above, &e))?;
    let made = unfinished::Folder::new_in(above);
    let made = made.map_err(|e| out::io_error("written", &args.out, &e))?;
    let folder = made.path();
    write(folder, GRAPH, &graph.write())?;
    let whole = std::fs::canonicalize(&args.graph).map_err(|e| out::io_error("read", &args.graph, &e))?;
    let original = call(args, &whole.display().to_string(), None)?;
    let packed = call(args, &folder.join(GRAPH).display().to_string(), Some(&folder.join(DUMPS)))?;
    drop_code(&folder.join(DUMPS))?;
    let about = about(args, &weights, &original, &packed)?;
    write(folder, "about.json", format!("{about:#}\n").as_bytes())?;
    write(folder, "stderr.txt", &original.stderr)?;
    write(folder, "replay.sh", format!("#!/bin/sh\ncd \"$(dirname \"$0\")\" && {}\n", spelled(args)).as_bytes())?;
    std::fs::rename(folder, &args.out).map_err(|e| out::io_error("written", &args.out, &e))?;
    tell(args, &weights, &about)?;
    Ok(if original.status.code() == packed.status.code() { Verdict::Yes } else { Verdict::No })
}

fn write(folder: &Path, name: &str, bytes: &[u8]) -> Result<()> {
    let path = folder.join(name);
    std::fs::write(&path, bytes).map_err(|e| out::io_error("written", &path, &e))
}

/// Runs this program on `graph` in a folder of its own, with dumps where they are wanted.
fn call(args: &BugArgs, graph: &str, dumps: Option<&Path>) -> Result<Output> {
    let program = std::env::current_exe().map_err(|e| out::io_error("found", Path::new("tfaot"), &e))?;
    let scratch = unfinished::Folder::new().map_err(|e| out::io_error("made", Path::new("a scratch folder"), &e))?;
    let words = args.command.iter().map(|word| word.replace("{}", graph));
    let mut command = Command::new(program);
    command.args(words).current_dir(scratch.path());
    if let Some(dumps) = dumps {
        let flags = std::env::var("TF_XLA_FLAGS").unwrap_or_default();
        command.env("XLA_FLAGS", format!("--xla_dump_to={} --xla_dump_hlo_pass_re=.*", dumps.display()));
        command.env("TF_XLA_FLAGS", format!("{flags} --tf_xla_clustering_debug"));
        command.env("TF_DUMP_GRAPH_PREFIX", dumps);
    }
    command.output().map_err(|e| out::io_error("started", Path::new("tfaot"), &e))
}

/// Objects hold what weights there are and are made by the command again.
fn drop_code(dumps: &Path) -> Result<()> {
    let Ok(entries) = std::fs::read_dir(dumps) else { return Ok(()) };
    let objects = entries.flatten().map(|e| e.path()).filter(|p| p.extension().is_some_and(|end| end == "o"));
    for path in objects.collect::<Vec<PathBuf>>() {
        std::fs::remove_file(&path).map_err(|e| out::io_error("removed", &path, &e))?;
    }
    Ok(())
}

/// The command for a shell, in the folder.
fn spelled(args: &BugArgs) -> String {
    let quoted = |word: &String| {
        let word = word.replace("{}", GRAPH);
        let plain = word.chars().all(|c| c.is_alphanumeric() || "-_./=,:@+".contains(c)) && !word.is_empty();
        if plain { word } else { format!("'{}'", word.replace('\'', "'\\''")) }
    };
    let words: Vec<String> = args.command.iter().map(quoted).collect();
    format!("tfaot {}", words.join(" "))
}

fn about(args: &BugArgs, weights: &[Seeded], original: &Output, packed: &Output) -> Result<Value> {
    let target = Target::resolve(None, None, None)?;
    let weights: Vec<Value> =
        weights.iter().map(|w| json!({"node": w.node, "shape": w.shape, "seed": w.seed})).collect();
    let variable = |name: &str| std::env::var(name).ok();
    Ok(json!({
        "command": spelled(args),
        "status": original.status.code(),
        "packed_status": packed.status.code(),
        "tfaot": env!("CARGO_PKG_VERSION"),
        "llvm": "22",
        "target": target.triple,
        "cpu": target.cpu,
        "features": target.features,
        "TF_XLA_FLAGS": variable("TF_XLA_FLAGS"),
        "XLA_FLAGS": variable("XLA_FLAGS"),
        "weights": weights,
    }))
}

fn tell(args: &BugArgs, weights: &[Seeded], about: &Value) -> Result<()> {
    let folder = args.out.display();
    out::line(format_args!("{folder}/{GRAPH}: the graph, {} constants of it as seeds", weights.len()))?;
    out::line(format_args!("{folder}/about.json, stderr.txt, replay.sh: the command, what it said, the versions"))?;
    out::line(format_args!("{folder}/{DUMPS}: modules, graphs and code of the packed graph, without objects"))?;
    let same = about["status"] == about["packed_status"];
    let how = if same { "ends as" } else { "does not end as" };
    out::line(format_args!(
        "the packed graph {how} the whole one does: {} and {}; names of nodes and small constants are in it",
        about["packed_status"], about["status"]
    ))
}
