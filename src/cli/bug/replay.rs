//! Execution of the command on the original files, and of the packed command in the unpacked archive.
use super::DUMPS;
use super::archive::{ArchiveMember, MemberContent};
use super::command::{PackedCommand, shell_quote};
use super::graph::PackedGraph;
use crate::diag::{Result, io_error};
use crate::package::temporary_files;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Output};

/// Environment variables that affect commands.
const VARIABLES: [&str; 2] = ["TF_XLA_FLAGS", "XLA_FLAGS"];

/// Result of running a command.
#[derive(Debug)]
pub struct CommandOutcome {
    pub status: ExitStatus,
    /// The text that the command wrote to standard error.
    pub stderr: String,
    /// The part of `stderr` that must be equal in a replay: the errors; for a failure without an error, all of it.
    told: String,
}

impl PartialEq for CommandOutcome {
    fn eq(&self, other: &CommandOutcome) -> bool {
        self.status == other.status && self.told == other.told
    }
}

impl CommandOutcome {
    /// Classifies the output of a command that ran in `folder` with the graph called `graph`.
    fn classify(output: &Output, folder: &Path, graph: &str) -> CommandOutcome {
        let folder = folder.display().to_string();
        let neutral = |text: &str| text.replace(&format!("{folder}/"), "").replace(&folder, ".").replace(graph, "{}");
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        let told = errors(&stderr);
        let told = if told.is_empty() && !output.status.success() {
            format!("{}{stderr}", String::from_utf8_lossy(&output.stdout))
        } else {
            told
        };
        CommandOutcome { status: output.status, told: neutral(&told), stderr }
    }
}

/// The error messages in `stderr`, with their continuation lines.
fn errors(stderr: &str) -> String {
    let mut among = false;
    let lines = stderr.lines().filter(|line| {
        among = line.starts_with("error") || among && line.starts_with(' ');
        among
    });
    lines.map(|line| format!("{line}\n")).collect()
}

/// A temporary folder.
pub fn temporary_folder() -> Result<temporary_files::TemporaryFolder> {
    temporary_files::TemporaryFolder::new().map_err(|e| io_error("made", Path::new("a scratch folder"), &e))
}

/// Runs the packed command on the original files, under the names of the packed ones.
pub fn run_original(packed: &PackedCommand, whole: &PackedGraph) -> Result<CommandOutcome> {
    let scratch = temporary_folder()?;
    let folder = real(scratch.path())?;
    for entry in &whole.entries {
        // Graphs are large and only read, so they are linked.
        place(entry, &folder, |from, to| std::os::unix::fs::symlink(from, to))?;
    }
    for entry in &packed.entries {
        place(entry, &folder, |from, to| std::fs::copy(from, to).map(drop))?;
    }
    let mut command = Command::new(program()?);
    command.args(packed.words(&whole.word)).current_dir(&folder);
    Ok(CommandOutcome::classify(&output(command)?, &folder, &whole.word))
}

fn place(entry: &ArchiveMember, folder: &Path, by: impl Fn(&Path, &Path) -> std::io::Result<()>) -> Result<()> {
    let to = folder.join(&entry.name);
    let MemberContent::File(from) = &entry.content else { return Ok(()) };
    let made = std::fs::create_dir_all(to.parent().unwrap_or(folder)).and_then(|()| by(from, &to));
    made.map_err(|e| io_error("copied", from, &e))
}

/// Runs the script in the unpacked `folder`, with this executable and otherwise a clean environment.
pub fn run_script(folder: &Path, graph: &str) -> Result<CommandOutcome> {
    let folder = real(folder)?;
    let mut command = Command::new("sh");
    command.arg(folder.join(super::SCRIPT)).env("TFAOT", program()?);
    for name in VARIABLES {
        command.env_remove(name);
    }
    Ok(CommandOutcome::classify(&output(command)?, &folder, graph))
}

/// The replay script for a command line.
pub fn replay_script(spelled: &str) -> String {
    let set = |name: &&str| match std::env::var(name) {
        Ok(value) => format!("export {name}={}\n", shell_quote(&value)),
        Err(_) => format!("unset {name}\n"),
    };
    let variables: String = VARIABLES.iter().map(set).collect();
    let words = spelled.strip_prefix("tfaot").unwrap_or(spelled);
    format!("#!/bin/sh\ncd \"$(dirname \"$0\")\" || exit\n{variables}exec \"${{TFAOT:-tfaot}}\"{words}\n")
}

/// The dump files that the packed command writes when it runs in `folder`, which contains only the packed files; in order.
///
/// Objects are omitted: they contain weights, and the command can generate them again.
pub fn collect_dumps(folder: &Path, packed: &PackedCommand, graph: &str) -> Result<Vec<(String, Vec<u8>)>> {
    let flags = |name: &str| std::env::var(name).unwrap_or_default();
    let mut command = Command::new(program()?);
    command.args(packed.words(graph)).current_dir(folder);
    // A relative name, because the path of the folder would appear in the dumps.
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

/// `path` with links resolved, as processes in it see it.
fn real(path: &Path) -> Result<PathBuf> {
    std::fs::canonicalize(path).map_err(|e| io_error("read", path, &e))
}
