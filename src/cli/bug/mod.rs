//! `tfaot bug`: packs a failing command so that somebody else can run it: the graph, other files that the command names, its error
//! output, versions, and dumps made on the way.
//!
//! The packed command is replayed from the unpacked archive before the archive is written. The graph is packed without its weights if
//! the command still ends in the same way, and completely otherwise.
mod archive;
mod command;
mod graph;
mod replay;

use super::args::BugArgs;
use super::{ExitStatus, out};
use crate::diag::{Code, Diagnostic, Result, io_error};
use crate::package::{files, temporary_files};
use crate::reduce::Seeded;
use crate::target::Target;
use archive::{ArchiveMember, MemberContent};
use command::PackedCommand;
use graph::PackedGraph;
use replay::CommandOutcome;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// The script that replays the command.
const SCRIPT: &str = "replay.sh";
/// The folder of dumps in the archive.
const DUMPS: &str = "dumps";
/// File name extension of archives.
const ENDING: &str = ".tar.gz";

/// Runs the command, packs it, replays the packed command and writes the archive. The exit status says whether both ended in the same way.
pub fn run(args: &BugArgs) -> Result<ExitStatus> {
    let (path, name) = archive_path(&args.out)?;
    let whole = graph::pack_whole_graph(&args.graph, args.format.as_deref())?;
    let packed = command::pack(&args.command, &whole.word);
    let original = replay::run_original(&packed, &whole)?;
    let mut forms: Vec<PackedGraph> =
        graph::pack_reduced_graph(&args.graph, args.format.as_deref()).into_iter().collect();
    forms.push(whole);
    let mut tried = None;
    for form in forms {
        let entries = entries(&name, &packed, &form, &original);
        let folder = unpacked(&name, &entries)?;
        let ending = replay::run_script(&folder.path().join(&name), &form.word)?;
        let same = ending == original;
        tried = Some(ReplayTrial { form, entries, ending, same });
        if same {
            break;
        }
    }
    let Some(mut tried) = tried else { return Ok(ExitStatus::No) };
    let fresh = unpacked(&name, &tried.entries)?;
    let dumps = replay::collect_dumps(&fresh.path().join(&name), &packed, &tried.form.word)?;
    tried
        .entries
        .extend(dumps.iter().map(|(file, bytes)| ArchiveMember::bytes(format!("{DUMPS}/{file}"), bytes.clone())));
    let about = about(&packed, &tried, &original)?;
    tried.entries.push(ArchiveMember::bytes("about.json", format!("{about:#}\n").into_bytes()));
    let mut temp = files::temporary_file_beside(&path)?;
    archive::write(temp.as_file_mut(), &name, &tried.entries).map_err(|e| io_error("written", &path, &e))?;
    files::rename_to_final(temp, &path)?;
    tell(&path, &packed, &tried, &original)?;
    Ok(if tried.same { ExitStatus::Yes } else { ExitStatus::No })
}

/// A packed form of the graph, and the result of its replay.
struct ReplayTrial {
    form: PackedGraph,
    entries: Vec<ArchiveMember>,
    ending: CommandOutcome,
    same: bool,
}

/// The path of the archive, and the name of the folder inside.
fn archive_path(given: &Path) -> Result<(PathBuf, String)> {
    let file = given.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let name = file.strip_suffix(ENDING).unwrap_or(&file).to_string();
    if name.is_empty() || name == ".." {
        let told = format!("`{}` is no name for an archive", given.display());
        return Err(Diagnostic::new(Code::BadOption, told).into());
    }
    let path = given.with_file_name(format!("{name}{ENDING}"));
    if path.exists() {
        let told = format!("`{}` exists, and a report is written to a new file", path.display());
        return Err(Diagnostic::new(Code::BadOption, told).into());
    }
    let above = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    std::fs::create_dir_all(above).map_err(|e| io_error("made", above, &e))?;
    Ok((path, name))
}

/// All files that a replay needs.
fn entries(name: &str, packed: &PackedCommand, form: &PackedGraph, original: &CommandOutcome) -> Vec<ArchiveMember> {
    let readme = format!(
        "{name}: a command of tfaot {} that goes wrong.\n\n`sh replay.sh` runs it with the tfaot on PATH, or with the one that the \
         variable TFAOT names by its absolute path.\nstderr.txt is what it said, about.json has the versions, the target and the \
         seeds that stand for weights, {DUMPS} what was dumped on the way, if anything.\n",
        env!("CARGO_PKG_VERSION")
    );
    let mut all = form.entries.clone();
    all.extend(packed.entries.iter().cloned());
    all.push(ArchiveMember::bytes("README", readme.into_bytes()));
    all.push(ArchiveMember::bytes(SCRIPT, replay::replay_script(&packed.shell_line(&form.word)).into_bytes()));
    all.push(ArchiveMember::bytes("stderr.txt", original.stderr.clone().into_bytes()));
    all
}

/// Packs and unpacks the entries; returns the folder that contains the unpacked one.
fn unpacked(name: &str, entries: &[ArchiveMember]) -> Result<temporary_files::TemporaryFolder> {
    let scratch = replay::temporary_folder()?;
    let path = scratch.path().join(format!("{name}{ENDING}"));
    let unwritten = |e: std::io::Error| io_error("written", &path, &e);
    archive::write(&mut std::fs::File::create(&path).map_err(unwritten)?, name, entries).map_err(unwritten)?;
    archive::unpack(&path, scratch.path()).map_err(|e| io_error("unpacked", &path, &e))?;
    Ok(scratch)
}

fn about(packed: &PackedCommand, tried: &ReplayTrial, original: &CommandOutcome) -> Result<Value> {
    let target = Target::resolve(None, None, None)?;
    let seeded = |w: &Seeded| json!({"node": w.node, "shape": w.shape, "seed": w.seed});
    let weights: Vec<Value> = tried.form.seeds.iter().map(seeded).collect();
    let variable = |name: &str| std::env::var(name).ok();
    Ok(json!({
        "command": packed.shell_line(&tried.form.word),
        "status": original.status.code(),
        "packed_status": tried.ending.status.code(),
        "reproduces": tried.same,
        "tfaot": env!("CARGO_PKG_VERSION"),
        "llvm": "22",
        "target": target.triple,
        "cpu": target.cpu,
        "features": target.features,
        "TF_XLA_FLAGS": variable("TF_XLA_FLAGS"),
        "XLA_FLAGS": variable("XLA_FLAGS"),
        "whole_graph": tried.form.is_whole,
        "weights": weights,
    }))
}

fn tell(path: &Path, packed: &PackedCommand, tried: &ReplayTrial, original: &CommandOutcome) -> Result<()> {
    let (form, holds) = (&tried.form, |name: &str| tried.entries.iter().any(|e| e.name.starts_with(name)));
    out::line(format_args!(
        "{}: README, replay.sh, about.json (versions), stderr.txt (what was said)",
        path.display()
    ))?;
    match form.is_whole {
        true => out::line(format_args!("{}: the graph, whole: its weights are in it", form.word))?,
        false => out::line(format_args!("{}: the graph, {} constants of it as seeds", form.word, form.seeds.len()))?,
    }
    if form.without_variables {
        out::line(format_args!("{}: its variables are left out", form.word))?;
    }
    for entry in &packed.entries {
        let MemberContent::File(source) = &entry.content else { continue };
        out::line(format_args!("{}: `{}`, as the command names it", entry.name, source.display()))?;
    }
    if holds(&format!("{DUMPS}/")) {
        out::line(format_args!("{DUMPS}: modules, graphs and code of the packed graph, without objects"))?;
    }
    let status =
        |ending: &CommandOutcome| ending.status.code().map_or_else(|| ending.status.to_string(), |c| c.to_string());
    if tried.same {
        let told = "the packed command, replayed, ends as the original does";
        let errors = if original.status.success() { "" } else { " and the same errors" };
        return out::line(format_args!(
            "{told}: status {}{errors}; names of nodes and small constants are in it",
            status(original)
        ));
    }
    out::line(format_args!(
        "the packed command does not end as the original does: status {} and {}; it said:\n{}",
        status(&tried.ending),
        status(original),
        tried.ending.stderr.trim_end()
    ))
}
