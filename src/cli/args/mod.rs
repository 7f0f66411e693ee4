//! Definition of the command line for clap: verbs and their arguments.
mod cluster;
mod compile;
mod hlo;
mod quantize;
mod tfcompile;

pub use cluster::{ClusterArgs, ClusterPassArgs, ExplainArgs, ReportArgs, RewriteArgs, RewriteMode};
pub use compile::{
    BenchArgs, CacheArgs, CheckArgs, CompileArgs, Emit, Engine, GraphArgs, MathArg, QuantizedArg, RunArgs, TargetArgs,
    VerifyArgs, WeightsArg, WeightsArgs, XlaArgs,
};
pub use hlo::{HloCall, HloCompile, HloFiles, HloFormat, HloOpt, HloRun, HloVerb, HloVerify};

pub use quantize::QuantizeArgs;
pub use tfcompile::{TfcompileArgs, expand_xla_flags};

use super::out::ErrorFormat;
use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;

/// Compiles TensorFlow graphs ahead of time into native objects with a C99 header.
#[derive(Parser, Debug)]
#[command(name = "tfaot", version, propagate_version = true)]
pub struct Cli {
    /// How diagnostics are written to standard error.
    #[arg(long, global = true, value_enum, default_value_t, value_name = "FORMAT")]
    pub error_format: ErrorFormat,
    #[command(subcommand)]
    pub verb: Verb,
}

#[derive(Subcommand, Debug)]
pub enum Verb {
    /// Compile a whole graph into an object and a header.
    Compile(CompileArgs),
    /// Make the file of weights for a compiled object from a graph that has the same structure.
    Weights(WeightsArgs),
    /// The same as `compile` with the flags of TensorFlow's tfcompile.
    #[command(mut_args(tfcompile::absl_switch))]
    Tfcompile(TfcompileArgs),
    /// Compile a graph and run it here.
    Run(RunArgs),
    /// Compare compiled code with the interpreter, and with expected outputs.
    Verify(VerifyArgs),
    /// Check whether a whole graph can be compiled, and list everything that blocks it.
    Check(CheckArgs),
    /// Describe a graph: inputs, outputs, ops, parameters, functions.
    Inspect(InspectArgs),
    /// Find TensorFlow's auto-clusters, and the reason for every node outside.
    Cluster(ClusterArgs),
    /// Write the graph with its clusters marked, or as functions that TensorFlow compiles.
    Rewrite(RewriteArgs),
    /// Write a frozen graph with fake quantisation before its products, by the ranges of example inputs.
    Quantize(QuantizeArgs),
    /// Write one page about a graph: its clusters, what keeps nodes outside, and the code of each cluster.
    Report(ReportArgs),
    /// Pack a command that goes wrong with its files, without weights where they don't matter, so that somebody else can run it.
    Bug(BugArgs),
    /// Make a failing graph or HLO module small under a command of yours.
    Reduce(ReduceArgs),
    /// Measure the time of a call, or what this machine can do at most.
    #[command(mut_arg("graph", |a| a.index(1).required(false).required_unless_present("machine")))]
    Bench(BenchArgs),
    /// Read, check, optimize, evaluate, compile HLO modules.
    #[command(subcommand)]
    Hlo(HloVerb),
    /// List the TensorFlow ops that have a lowering.
    Ops(OpsArgs),
    /// List the targets and processors.
    Targets(TargetsArgs),
    /// Explain a diagnostic code, or why a node is in its cluster or in none.
    Explain(ExplainArgs),
    /// Print a completion script.
    Completions(CompletionsArgs),
    /// Print the manual page, or write all pages to a folder.
    Man(ManArgs),
}

#[derive(Args, Debug)]
pub struct BugArgs {
    /// A graph of any kind, or HLO text; weights of GraphDefs, MetaGraphDefs and SavedModels are left out where the command
    /// ends as it does with them.
    #[arg(value_name = "GRAPH")]
    pub graph: PathBuf,
    /// Skip detection: the format of GRAPH.
    #[arg(long)]
    pub format: Option<String>,
    /// The archive to write, which must not exist; `.tar.gz` is added where it is missing.
    #[arg(short, long, value_name = "NAME.tar.gz")]
    pub out: PathBuf,
    /// The verb that goes wrong and its flags, with `{}` for the graph.
    #[arg(last = true, required = true, value_name = "VERB FLAGS")]
    pub command: Vec<String>,
}

#[derive(Args, Debug)]
pub struct ReduceArgs {
    /// A GraphDef, or a module of HLO or StableHLO.
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Skip detection: the format of FILE.
    #[arg(long)]
    pub format: Option<String>,
    /// Where the small one goes; a GraphDef is text where the name ends in .pbtxt.
    #[arg(short, long, value_name = "OUT")]
    pub out: PathBuf,
    /// Runs of the command at most.
    #[arg(long, value_name = "N", default_value_t = 2000)]
    pub max_runs: u64,
    /// Seconds that a run may take; one that takes more has not failed.
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    pub timeout: u64,
    /// The exit status that stands for the failure; by default the one that the command has on FILE.
    #[arg(long, value_name = "N")]
    pub status: Option<i32>,
    /// Do not say what counts as failure.
    #[arg(long, short)]
    pub quiet: bool,
    /// The command, with `{}` for the file; it is no shell line.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub command: Vec<String>,
}

#[derive(Args, Debug)]
pub struct InspectArgs {
    #[command(flatten)]
    pub graph: GraphArgs,
    /// List every tensor with its type, and where what is not known of it comes from.
    #[arg(long)]
    pub shapes: bool,
    /// Print one JSON document.
    #[arg(long)]
    pub json: bool,
}

#[derive(Args, Debug)]
pub struct TargetsArgs {
    /// Print one JSON document.
    #[arg(long)]
    pub json: bool,
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
