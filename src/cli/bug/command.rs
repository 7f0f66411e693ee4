//! The command behind `--`: finds the files that it names, and translates it to the archive's folder.
use super::super::args::{Cli, expand_xla_flags as words_of};

use super::archive::ArchiveMember;
use clap::{ArgMatches, CommandFactory, ValueHint};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// File names that the archive itself uses.
const TAKEN: [&str; 5] = ["README", "about.json", super::SCRIPT, "stderr.txt", super::DUMPS];

/// A command whose files are packed into the archive.
#[derive(Debug)]
pub struct PackedCommand {
    /// The command's words, with the names of packed files; `{}` stands for the graph.
    words: Vec<String>,
    /// The files that the command reads besides the graph.
    pub entries: Vec<ArchiveMember>,
}

impl PackedCommand {
    /// The words with `{}` replaced by `graph`.
    pub fn words(&self, graph: &str) -> impl Iterator<Item = String> {
        self.words.iter().map(move |word| word.replace("{}", graph))
    }
    /// The command line for a shell in the archive's folder.
    pub fn shell_line(&self, graph: &str) -> String {
        self.words(graph).fold("tfaot".to_string(), |line, word| format!("{line} {}", shell_quote(&word)))
    }
}

/// A word quoted for a shell.
pub fn shell_quote(word: &str) -> String {
    let plain = word.chars().all(|c| c.is_alphanumeric() || "-_./=,:@+".contains(c)) && !word.is_empty();
    if plain { word.to_string() } else { format!("'{}'", word.replace('\'', "'\\''")) }
}

/// Finds the files that `command` reads besides the graph, whose packed name is `graph`. Names of missing files are kept, because a
/// missing file may be the bug.
pub fn pack(command: &[String], graph: &str) -> PackedCommand {
    let mut packed = PackedCommand { words: command.to_vec(), entries: Vec::new() };
    let first = |path: &str| path.split('/').next().unwrap_or_default().to_string();
    let mut taken: BTreeSet<String> = TAKEN.iter().map(|n| n.to_string()).chain([first(graph)]).collect();
    // The binary form of the graph's name is reserved as well.
    taken.extend(Path::new(&first(graph)).file_stem().map(|stem| format!("{}.pb", stem.to_string_lossy())));
    let mut known: Vec<(PathBuf, String)> = Vec::new();
    for (flag, value) in named(command) {
        let Ok(source) = std::fs::canonicalize(&value) else { continue };
        let Some(own) = Path::new(&value).file_name().filter(|_| source.is_file() && !value.contains("{}")) else {
            continue;
        };
        let own = own.to_string_lossy().into_owned();
        let name = known.iter().find(|(path, _)| *path == source).map(|(_, name)| name.clone());
        let name = name.unwrap_or_else(|| {
            let name = free(&own, &mut taken);
            packed.entries.push(ArchiveMember::file(name.clone(), source.clone()));
            known.push((source, name.clone()));
            name
        });
        rename(&mut packed.words, command, flag.as_deref(), &value, &name);
    }
    packed
}

/// `own` as an unused name, or `own` in a numbered folder if it is in use.
fn free(own: &str, taken: &mut BTreeSet<String>) -> String {
    let numbered = (2..).map(|n: usize| format!("{n}/{own}"));
    let name = std::iter::once(own.to_string()).chain(numbered).find(|name| !taken.contains(name));
    let name = name.unwrap_or_default();
    taken.insert(name.clone());
    name
}

/// Replaces `value` by `name` where it is the value of `flag` in `command`, or a word of its own if there is no flag.
fn rename(words: &mut [String], command: &[String], flag: Option<&str>, value: &str, name: &str) {
    for (i, word) in command.iter().enumerate() {
        match flag.map(|flag| format!("--{flag}")) {
            Some(flag) if *word == format!("{flag}={value}") => words[i] = format!("{flag}={name}"),
            Some(flag) if word == value && i > 0 && command[i - 1] == flag => words[i] = name.to_string(),
            None if word == value => words[i] = name.to_string(),
            Some(_) | None => {}
        }
    }
}

/// Values of arguments that are input files, each with its flag; empty if the command is invalid.
fn named(command: &[String]) -> Vec<(Option<String>, String)> {
    let words = std::iter::once("tfaot").chain(command.iter().map(String::as_str)).map(OsString::from);
    let cli = Cli::command();
    let mut found = Vec::new();
    if let Ok(matches) = cli.clone().try_get_matches_from(words_of(words)) {
        below(&cli, &matches, &mut found);
    }
    found
}

fn below(command: &clap::Command, matches: &ArgMatches, found: &mut Vec<(Option<String>, String)>) {
    for arg in command.get_arguments().filter(|arg| arg.get_value_hint() == ValueHint::FilePath) {
        let flag = arg.get_long().map(str::to_string);
        let values = matches.get_raw(arg.get_id().as_str()).into_iter().flatten();
        found.extend(values.map(|v| (flag.clone(), v.to_string_lossy().into_owned())));
    }
    if let Some((name, matches)) = matches.subcommand()
        && let Some(command) = command.find_subcommand(name)
    {
        below(command, matches, found);
    }
}
