//! Verbs and flags, as clap reads them.
use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;

/// Compiles TensorFlow graphs ahead of time into native objects with a C99 header.
#[derive(Parser, Debug)]
#[command(name = "tfaot", version, propagate_version = true)]
pub struct Cli {
    #[command(subcommand)]
    pub verb: Verb,
}

#[derive(Subcommand, Debug)]
pub enum Verb {
    /// Read, check, optimise, evaluate, compile HLO modules.
    #[command(subcommand)]
    Hlo(HloVerb),
    /// List the TensorFlow ops that have a lowering.
    Ops(OpsArgs),
    /// Say what a diagnostic code means.
    Explain(ExplainArgs),
    /// Print a completion script.
    Completions(CompletionsArgs),
    /// Print the manual page, or write all pages to a folder.
    Man(ManArgs),
}

#[derive(Subcommand, Debug)]
pub enum HloVerb {
    /// Read modules and print them in canonical form.
    Print(HloFiles),
    /// Say of each file whether it is a valid module.
    Verify(HloVerify),
    /// Optimise modules and print them.
    Opt(HloFiles),
    /// Evaluate a module with the interpreter.
    Eval(HloCall),
    /// Compile a module and run it here.
    Run(HloCall),
}

#[derive(Args, Debug)]
pub struct HloFiles {
    /// HLO text; `-` is standard input.
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<String>,
}

#[derive(Args, Debug)]
pub struct HloVerify {
    #[command(flatten)]
    pub files: HloFiles,
    /// Print a line `{"file","ok","error"}` for each file.
    #[arg(long)]
    pub json: bool,
}

#[derive(Args, Debug)]
pub struct HloCall {
    /// HLO text; `-` is standard input.
    #[arg(value_name = "FILE")]
    pub file: String,
    /// Arrays with keys 0, 1, ...: the parameters, tuples leaf by leaf. Without it they are random.
    #[arg(long, value_name = "IN.npz")]
    pub inputs: Option<PathBuf>,
    /// Where the results go, with keys 0, 1, ...: the leaves of the root. Without it they are printed.
    #[arg(long, value_name = "OUT.npz")]
    pub outputs: Option<PathBuf>,
    /// Threads of a compiled module.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: u16,
}

#[derive(Args, Debug)]
pub struct OpsArgs {
    /// Only ops whose name contains this.
    pub filter: Option<String>,
    /// Print a list of objects with `op`, `family`, `signature`, `constants` and `dtypes`.
    #[arg(long)]
    pub json: bool,
}

#[derive(Args, Debug)]
pub struct ExplainArgs {
    /// A code such as TFA0101, its number or its slug; without it, all codes are listed.
    pub code: Option<String>,
}

#[derive(Args, Debug)]
pub struct CompletionsArgs {
    /// The shell.
    #[arg(value_enum)]
    pub shell: clap_complete::Shell,
}

#[derive(Args, Debug)]
pub struct ManArgs {
    /// Write a page for each verb here.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}
