//! Arguments of the verbs on HLO modules.
use super::compile::{Emit, Engine, TargetArgs, XlaArgs};
use clap::{Args, Subcommand};
use std::path::PathBuf;

#[derive(Subcommand, Debug)]
pub enum HloVerb {
    /// Read modules and print them in canonical form.
    Print(HloPrint),
    /// Check whether each file is a valid module.
    Verify(HloVerify),
    /// Optimize modules and print them.
    Opt(HloOpt),
    /// Evaluate a module with the interpreter.
    Eval(HloEval),
    /// Compile a module and run it here.
    Run(HloRun),
    /// Compile modules, each into an object and a header.
    Compile(HloCompile),
}

#[derive(Args, Debug)]
pub struct HloFiles {
    /// HLO text, an HloProto, StableHLO's text or bytecode, what JAX exports; `-` is standard input.
    #[arg(required = true, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub files: Vec<String>,
    /// The size of axes that a module leaves open, all of them or those of NAME: a variable of JAX, an argument, or `ARGUMENT[AXIS]`.
    #[arg(long = "dim", value_name = "[NAME=]N")]
    pub dims: Vec<String>,
}

/// The format that a module is printed in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum HloFormat {
    /// XLA's text.
    Text,
    /// An HloProto.
    Proto,
    /// StableHLO's text.
    Stablehlo,
}

#[derive(Args, Debug)]
pub struct HloPrint {
    #[command(flatten)]
    pub files: HloFiles,
    /// The format of the output.
    #[arg(long, value_enum, default_value = "text")]
    pub format: HloFormat,
}

#[derive(Args, Debug)]
pub struct HloOpt {
    #[command(flatten)]
    pub files: HloFiles,
    /// The format of the output.
    #[arg(long, value_enum, default_value = "text")]
    pub format: HloFormat,
    /// Run these passes once, in this order; without it all run until nothing changes.
    #[arg(long, value_name = "NAME,..", value_delimiter = ',')]
    pub passes: Vec<String>,
    /// Print the module to standard error after each run of this pass that changed it; `all` is any pass.
    #[arg(long, value_name = "NAME")]
    pub print_after: Option<String>,
    /// Print statistics of each pass to standard error: runs that changed something, instructions left, time.
    #[arg(long)]
    pub stats: bool,
    #[command(flatten)]
    pub xla: XlaArgs,
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
    /// HLO text, an HloProto, StableHLO's text or bytecode, what JAX exports; `-` is standard input.
    #[arg(value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub file: String,
    /// The size of axes that a module leaves open, all of them or those of NAME: a variable of JAX, an argument, or `ARGUMENT[AXIS]`.
    #[arg(long = "dim", value_name = "[NAME=]N")]
    pub dims: Vec<String>,
    /// Arrays with keys 0, 1, ...: the parameters, tuples leaf by leaf. Random arrays without it.
    #[arg(long, value_name = "IN.npz", value_hint = clap::ValueHint::FilePath)]
    pub inputs: Option<PathBuf>,
    /// A file for the results, with keys 0, 1, ...: the leaves of the root. They are printed without it.
    #[arg(long, value_name = "OUT.npz")]
    pub outputs: Option<PathBuf>,
    /// Threads of a compiled module.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: u16,
    #[command(flatten)]
    pub xla: XlaArgs,
}

#[derive(Args, Debug)]
pub struct HloRun {
    #[command(flatten)]
    pub call: HloCall,
    /// Make the parameters up, the same every time, as is done where no file has them.
    #[arg(long, conflicts_with = "inputs")]
    pub random: bool,
    /// Who computes. Both are compared, and a departure is the command's failure.
    #[arg(long, value_enum, value_delimiter = ',', default_value = "native")]
    pub engine: Vec<Engine>,
    /// Where the engines `native,interpreter` differ, find the instructions whose own results do: each is also compiled alone and given
    /// what the interpreter has for its operands.
    #[arg(long, conflicts_with = "replicas")]
    pub bisect: bool,
    /// Run as many copies at once, a thread each, which exchange what collectives say. Arrays of files are `K@R`: argument or
    /// result K of rank R; an argument `K` is that of every rank that has none of its own.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1024))]
    pub replicas: Option<u64>,
    #[command(flatten)]
    pub target: TargetArgs,
}

#[derive(Args, Debug)]
pub struct HloEval {
    #[command(flatten)]
    pub call: HloCall,
    /// Instructions that loops may run, so that one without an end is stopped.
    #[arg(long, value_name = "N", default_value_t = crate::interp::MAX_STEPS)]
    pub max_steps: u64,
}

#[derive(Args, Debug)]
pub struct HloCompile {
    #[command(flatten)]
    pub files: HloFiles,
    /// The folder to write to; it is made if it is missing.
    #[arg(short, long, value_name = "DIR")]
    pub out: PathBuf,
    /// The files to write; their names come from the names of the modules' files.
    #[arg(long, value_enum, value_delimiter = ',', default_value = "obj,header")]
    pub emit: Vec<Emit>,
    #[command(flatten)]
    pub target: TargetArgs,
}
