//! Running the command on the original files, and what was packed from the unpacked archive.
use super::DUMPS;
use super::archive::{ArchiveMember, MemberContent};
use super::command::{Packed, quoted};
use super::graph::Packing;
use crate::diag::{Result, io_error};
use crate::package::temporary_files;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Output};

/// Variables that change what commands do.
const VARIABLES: [&str; 2] = ["TF_XLA_FLAGS", "XLA_FLAGS"];

/// How a command ended.
#[derive(Debug)]
pub struct Ending {
    pub status: ExitStatus,
    /// The text that the command wrote to standard error.
    pub stderr: String,
    /// The text that must be the same in a replay: the errors; of a failure without an error all of standard error.
    told: String,
}

impl PartialEq for Ending {
    fn eq(&self, other: &Ending) -> bool {
        self.status == other.status && self.told == other.told
    }
}

impl Ending {
    /// How a command in `folder`, whose graph is called `graph`, ended.
    fn classify(output: &Output, folder: &Path, graph: &str) -> Ending {
        let folder = folder.display().to_string();
        let neutral = |text: &str| text.replace(&format!("{folder}/"), "").replace(&folder, ".").replace(graph, "{}");
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        let told = errors(&stderr);
        let told = if told.is_empty() && !output.status.success() {
            format!("{}{stderr}", String::from_utf8_lossy(&output.stdout))
        } else {
            told
        };
        Ending { status: output.status, told: neutral(&told), stderr }
    }
}

/// The errors among what was said, with the lines that belong to them.
fn errors(stderr: &str) -> String {
    let mut among = false;
    let lines = stderr.lines().filter(|line| {
        among = line.starts_with("error") || among && line.starts_with(' ');
        among
    });
    lines.map(|line| format!("{line}\n")).collect()
}

/// A folder that is gone afterwards.
pub fn scratch() -> Result<temporary_files::Folder> {
    temporary_files::Folder::new().map_err(|e| io_error("made", Path::new("a scratch folder"), &e))
}

/// The packed command on the original files, which have the names of the packed ones.
pub fn original(packed: &Packed, whole: &Packing) -> Result<Ending> {
    let scratch = scratch()?;
    let folder = real(scratch.path())?;
    for entry in &whole.entries {
        // Graphs are large and only read.
        place(entry, &folder, |from, to| std::os::unix::fs::symlink(from, to))?;
    }
    for entry in &packed.entries {
        place(entry, &folder, |from, to| std::fs::copy(from, to).map(drop))?;
    }
    let mut command = Command::new(program()?);
    command.args(packed.words(&whole.word)).current_dir(&folder);
    Ok(Ending::classify(&output(command)?, &folder, &whole.word))
}

fn place(entry: &ArchiveMember, folder: &Path, by: impl Fn(&Path, &Path) -> std::io::Result<()>) -> Result<()> {
    let to = folder.join(&entry.name);
    let MemberContent::File(from) = &entry.content else { return Ok(()) };
    let made = std::fs::create_dir_all(to.parent().unwrap_or(folder)).and_then(|()| by(from, &to));
    made.map_err(|e| io_error("copied", from, &e))
}

/// Runs the script in the unpacked `folder`, with nothing else of this process's surroundings than this program.
pub fn from_script(folder: &Path, graph: &str) -> Result<Ending> {
    let folder = real(folder)?;
    let mut command = Command::new("sh");
    command.arg(folder.join(super::SCRIPT)).env("TFAOT", program()?);
    for name in VARIABLES {
        command.env_remove(name);
    }
    Ok(Ending::classify(&output(command)?, &folder, graph))
}

/// The script for a command that is spelled for a shell.
pub fn script(spelled: &str) -> String {
    let set = |name: &&str| match std::env::var(name) {
        Ok(value) => format!("export {name}={}\n", quoted(&value)),
        Err(_) => format!("unset {name}\n"),
    };
    let variables: String = VARIABLES.iter().map(set).collect();
    let words = spelled.strip_prefix("tfaot").unwrap_or(spelled);
    format!("#!/bin/sh\ncd \"$(dirname \"$0\")\" || exit\n{variables}exec \"${{TFAOT:-tfaot}}\"{words}\n")
}

/// The files that the packed command dumps in `folder`, where nothing but the packed files is, in order.
///
/// Objects are left out: they hold what weights there are, and the command makes them again.
pub fn dumps(folder: &Path, packed: &Packed, graph: &str) -> Result<Vec<(String, Vec<u8>)>> {
    let flags = |name: &str| std::env::var(name).unwrap_or_default();
    let mut command = Command::new(program()?);
    command.args(packed.words(graph)).current_dir(folder);
    // A name without the way to the folder, which would be in the dumps.
    command.env("XLA_FLAGS", format!("{} --xla_dump_to={DUMPS} --xla_dump_hlo_pass_re=.*", flags("XLA_FLAGS")));
    command.env("TF_XLA_FLAGS", format!("{} --tf_xla_clustering_debug", flags("TF_XLA_FLAGS")));
    command.env("TF_DUMP_GRAPH_PREFIX", DUMPS);
    output(command)?;
    let Ok(entries) = std::fs::read_dir(folder.join(DUMPS)) else { return Ok(Vec::new()) };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|e| e.path()).filter(|p| p.is_file()).collect();
    paths.retain(|p| p.extension().is_none_or(|end| end != "o"));
    paths.sort();
    let named = |path: PathBuf| {
        let name = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        std::fs::read(&path).map(|bytes| (name, bytes)).map_err(|e| io_error("read", &path, &e))
    };
    paths.into_iter().map(named).collect()
}

fn program() -> Result<PathBuf> {
    std::env::current_exe().map_err(|e| io_error("found", Path::new("tfaot"), &e))
}

fn output(mut command: Command) -> Result<Output> {
    command.output().map_err(|e| io_error("started", Path::new(command.get_program()), &e))
}

/// `path` without links, as processes in it see it.
fn real(path: &Path) -> Result<PathBuf> {
    std::fs::canonicalize(path).map_err(|e| io_error("read", path, &e))
}
