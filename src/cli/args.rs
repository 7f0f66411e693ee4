//! Verbs and flags, as clap reads them.
use super::tfcompile::TfcompileArgs;
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
    /// Compile a whole graph into an object and a header.
    Compile(CompileArgs),
    /// The same with the flags of TensorFlow's tfcompile.
    Tfcompile(TfcompileArgs),
    /// Compile a graph and run it here.
    Run(RunArgs),
    /// Compare compiled code with the interpreter, and with expected outputs.
    Verify(VerifyArgs),
    /// Say whether a whole graph can be compiled, and everything that blocks it.
    Check(CheckArgs),
    /// Describe a graph: inputs, outputs, ops, parameters, functions.
    Inspect(InspectArgs),
    /// Find TensorFlow's auto-clusters, and the reason for every node outside.
    Cluster(ClusterArgs),
    /// Write the graph with its clusters marked, or as functions that TensorFlow compiles.
    Rewrite(RewriteArgs),
    /// Write one page about a graph: its clusters, what keeps nodes outside, and the code of each cluster.
    Report(ReportArgs),
    /// Pack a command that goes wrong with its graph, without weights, so that somebody else can run it.
    Bug(BugArgs),
    /// Make a failing graph or HLO module small under a command of yours.
    Reduce(ReduceArgs),
    /// Measure the time of a call, or what this machine can do at most.
    #[command(mut_arg("graph", |a| a.required(false).required_unless_present("machine")))]
    Bench(BenchArgs),
    /// Read, check, optimise, evaluate, compile HLO modules.
    #[command(subcommand)]
    Hlo(HloVerb),
    /// List the TensorFlow ops that have a lowering.
    Ops(OpsArgs),
    /// List the targets and processors.
    Targets(TargetsArgs),
    /// Say what a diagnostic code means, or why a node is in its cluster or in none.
    Explain(ExplainArgs),
    /// Print a completion script.
    Completions(CompletionsArgs),
    /// Print the manual page, or write all pages to a folder.
    Man(ManArgs),
}

#[derive(Subcommand, Debug)]
pub enum HloVerb {
    /// Read modules and print them in canonical form.
    Print(HloPrint),
    /// Say of each file whether it is a valid module.
    Verify(HloVerify),
    /// Optimise modules and print them.
    Opt(HloOpt),
    /// Evaluate a module with the interpreter.
    Eval(HloEval),
    /// Compile a module and run it here.
    Run(HloRun),
}

/// Which graph, and which part of it.
#[derive(Args, Clone, Debug, Default)]
pub struct GraphArgs {
    /// A .pb or .pbtxt file, a SavedModel folder, a TF.js model.json; `-` is standard input.
    #[arg(value_name = "GRAPH")]
    pub graph: PathBuf,
    /// Skip detection: the format of GRAPH.
    #[arg(long)]
    pub format: Option<String>,
    /// An input: `NAME`, or with a fixed type `NAME=f32[1,224,224,3]`. Repeats; by default the Placeholders.
    #[arg(long = "feed", value_name = "NAME[=TYPE[DIMS]]")]
    pub feeds: Vec<String>,
    /// An output. Repeats; by default the sinks.
    #[arg(long = "fetch", value_name = "NAME")]
    pub fetches: Vec<String>,
    /// Bind an unknown dimension; N alone binds all of them.
    #[arg(long = "dim", value_name = "[NAME=]N")]
    pub dims: Vec<String>,
    /// The signature of a SavedModel.
    #[arg(long)]
    pub signature: Option<String>,
    /// A tf2xla.Config, text or binary: feeds and fetches with their names in C.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["feeds", "fetches"])]
    pub config: Option<PathBuf>,
    /// Do not say what was assumed.
    #[arg(long, short)]
    pub quiet: bool,
}

/// The machine that code is made for.
#[derive(Args, Clone, Debug, Default)]
pub struct TargetArgs {
    /// LLVM's triple, such as aarch64-unknown-linux-gnu; by default this machine's.
    #[arg(long, value_name = "TRIPLE")]
    pub target: Option<String>,
    /// The processor, such as x86-64-v3; by default this machine's. With several, `compile` makes one object that picks.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub cpu: Vec<String>,
    /// Instruction sets on and off: `+avx2,-fma`.
    #[arg(long, value_name = "LIST", allow_hyphen_values = true)]
    pub features: Option<String>,
    /// Store constants of contractions and tables of gathers in fewer bits; arithmetic stays f32.
    #[arg(long, value_enum, default_value_t)]
    pub weights: WeightsArg,
    /// Compute products of contractions with constants from factors in fewer bits; sums stay f32.
    #[arg(long, value_enum, default_value_t)]
    pub math: MathArg,
    /// Choices for products that `compile --tune` measured; those of other products and processors do nothing.
    #[arg(long, value_name = "FILE")]
    pub tuning: Option<PathBuf>,
}

/// How constants are stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum WeightsArg {
    /// As the graph has them.
    #[default]
    F32,
    /// Rounded to bfloat16.
    Bf16,
    /// As bytes, with an f32 scale for each feature or row.
    Int8,
}

/// What products are computed of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum MathArg {
    /// Factors as the graph has them.
    #[default]
    F32,
    /// Factors rounded to bfloat16; the processor must have AVX512-BF16.
    Bf16,
}

/// A file that a compile can write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub enum Emit {
    /// NAME.o
    Obj,
    /// NAME.h
    Header,
    /// libNAME.a
    Archive,
    /// libNAME.so
    Shared,
    /// NAME.json: what the header says, for programs
    Metadata,
    /// NAME.hlo: the optimised module
    Hlo,
    /// NAME.ll
    LlvmIr,
    /// NAME.s
    Asm,
    /// NAME.kernels: the loops
    Kernels,
    /// NAME.hpp: a C++17 class with tfcompile's names, over the C header
    Cpp,
    /// NAME-config.cmake, for find_package; links libNAME.a
    Cmake,
    /// NAME.pc, for pkg-config; links libNAME.a
    Pkgconfig,
    /// tfaot_pool.h: a small pool of threads to run models on
    Pool,
}

#[derive(Args, Clone, Debug)]
pub struct CompileArgs {
    #[command(flatten)]
    pub graph: GraphArgs,
    /// The folder to write to; it is made if it is missing.
    #[arg(short, long, value_name = "DIR")]
    pub out: PathBuf,
    /// The model's name: prefix of files and symbols. By default from the file's name.
    #[arg(long)]
    pub name: Option<String>,
    /// What to write.
    #[arg(long, value_enum, value_delimiter = ',', default_value = "obj,header")]
    pub emit: Vec<Emit>,
    /// The class of `--emit cpp`, such as `vision::Detector`. By default from the model's name.
    #[arg(long, value_name = "NS::CLASS")]
    pub cpp_class: Option<String>,
    #[command(flatten)]
    pub target: TargetArgs,
    /// Measure on this machine which loops are best for each product of the graph, add them to this file, and compile with
    /// them. Takes some ten times as long.
    #[arg(long, value_name = "FILE", conflicts_with = "tuning")]
    pub tune: Option<PathBuf>,
    #[command(flatten)]
    pub xla: XlaArgs,
    #[command(flatten)]
    pub cache: CacheArgs,
}

/// Where finished compilations are kept.
#[derive(Args, Clone, Debug, Default)]
pub struct CacheArgs {
    /// Keep what is written in this folder too, and take it from there when the same is compiled again; by default the
    /// folder that the environment variable TFAOT_CACHE names, if any.
    #[arg(long, value_name = "DIR")]
    pub cache: Option<PathBuf>,
    /// Compile, whatever TFAOT_CACHE says.
    #[arg(long, conflicts_with = "cache")]
    pub no_cache: bool,
    /// MiB that the folder may hold; what was not used for longest goes first.
    #[arg(long, value_name = "MIB", default_value_t = 4096)]
    pub cache_limit: u64,
}

/// Who computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Engine {
    /// Compiled code.
    Native,
    /// The interpreter, on the module as it was lowered.
    Interpreter,
}

#[derive(Args, Debug)]
pub struct RunArgs {
    #[command(flatten)]
    pub graph: GraphArgs,
    /// Arrays with tensor names as keys; without it they are random.
    #[arg(long, value_name = "IN.npz")]
    pub inputs: Option<PathBuf>,
    /// Where the results go; without it they are printed.
    #[arg(long, value_name = "OUT.npz")]
    pub outputs: Option<PathBuf>,
    /// Who computes.
    #[arg(long, value_enum, default_value = "native")]
    pub engine: Engine,
    /// Let the interpreter have the optimised module.
    #[arg(long)]
    pub optimized: bool,
    /// Threads of compiled code.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: u16,
    #[command(flatten)]
    pub target: TargetArgs,
}

#[derive(Args, Debug)]
pub struct VerifyArgs {
    #[command(flatten)]
    pub graph: GraphArgs,
    /// Arrays with tensor names as keys; without it they are random.
    #[arg(long, value_name = "IN.npz")]
    pub inputs: Option<PathBuf>,
    /// The right results, with tensor names as keys.
    #[arg(long, value_name = "OUT.npz")]
    pub expect: Option<PathBuf>,
    /// Allowed difference, relative to the element: by default 1e-4, and 0 with --weights or --math.
    #[arg(long)]
    pub rtol: Option<f64>,
    /// Allowed difference, relative to the largest element of the output: by default 1e-5, with --weights bf16 or --math
    /// bf16 0.05, with --weights int8 0.1.
    #[arg(long)]
    pub atol: Option<f64>,
    /// Threads of compiled code.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: u16,
    /// Compare every intermediate result, also where the results agree; where they differ, the first op is found anyway.
    #[arg(long)]
    pub ops: bool,
    /// Print `{"ok","comparisons":[{"output","with","ok","bound","error","worst"}]}`, and with the ops `first` and
    /// `ops:[{"tensor","op","total","own"}]`.
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub target: TargetArgs,
}

#[derive(Args, Debug)]
pub struct CheckArgs {
    #[command(flatten)]
    pub graph: GraphArgs,
    /// Print `{"compilable","blockers":[{"node","op","code","reason"}]}`.
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub target: TargetArgs,
}

#[derive(Args, Debug)]
pub struct ClusterArgs {
    #[command(flatten)]
    pub graph: GraphArgs,
    #[command(flatten)]
    pub pass: ClusterPassArgs,
    /// Write a line `node<TAB>cluster` for every node; the cluster is empty where there is none.
    #[arg(long, value_name = "FILE")]
    pub tsv: Option<PathBuf>,
    /// Write TensorFlow's XlaAutoClusteringSummary: as text where the name ends in .pbtxt or .txt, else as protobuf.
    #[arg(long, value_name = "FILE")]
    pub summary: Option<PathBuf>,
    /// Print one JSON document.
    #[arg(long)]
    pub json: bool,
    /// Say how the clusters differ from those in an earlier output of --json; exit status 1 where a node left its cluster.
    #[arg(long, value_name = "OLD.json")]
    pub baseline: Option<PathBuf>,
    /// Exit status 1 where a smaller part of the nodes than this is in clusters.
    #[arg(long, value_name = "PART")]
    pub min_clustered: Option<f64>,
    /// Say how the clusters would change if XLA compiled this op. Repeats.
    #[arg(long = "what-if", value_name = "op=NAME")]
    pub what_if: Vec<String>,
}

#[derive(Args, Debug)]
pub struct ReportArgs {
    #[command(flatten)]
    pub graph: GraphArgs,
    /// The page to write.
    #[arg(short, long, value_name = "FILE.html")]
    pub out: Option<PathBuf>,
    #[command(flatten)]
    pub pass: ClusterPassArgs,
    /// Do not compile the clusters.
    #[arg(long)]
    pub no_compile: bool,
    /// Measure the kernels of each cluster on random inputs.
    #[arg(long, conflicts_with = "no_compile")]
    pub profile: bool,
    /// Time to measure each cluster for.
    #[arg(long, default_value_t = 0.5)]
    pub seconds: f64,
    /// Print the data of the page as one JSON document.
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub target: TargetArgs,
}

/// What a rewritten graph is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum RewriteMode {
    /// Nodes carry _XlaCluster.
    Annotate,
    /// Clusters are functions, called by nodes that TensorFlow compiles with XLA.
    Xla,
    /// Clusters are compiled here, into ops of a shared library that tf.load_op_library loads.
    Native,
}

#[derive(Args, Debug)]
pub struct RewriteArgs {
    /// A .pb or .pbtxt file, or a SavedModel folder.
    #[arg(value_name = "GRAPH")]
    pub graph: PathBuf,
    /// Skip detection: the format of GRAPH.
    #[arg(long)]
    pub format: Option<String>,
    /// A tensor that must keep its name. Repeats; outputs of signatures and what no node uses keep theirs anyway.
    #[arg(long = "fetch", value_name = "NAME")]
    pub fetches: Vec<String>,
    /// A tensor that is fed, `NAME` or for `native` also `NAME=f32[1,224,224,3]`: it stays outside of clusters. Repeats.
    #[arg(long = "feed", value_name = "NAME[=TYPE[DIMS]]")]
    pub feeds: Vec<String>,
    /// For `native`: the size of an unknown dimension; N alone is that of all.
    #[arg(long = "dim", value_name = "[NAME=]N")]
    pub dims: Vec<String>,
    /// For `native`: the signature of a SavedModel that the sizes are for; by default all.
    #[arg(long)]
    pub signature: Option<String>,
    /// The file to write, or the folder of a SavedModel, which must not exist. The library of `native` is OUT with the ending
    /// .so, or in the folder assets.extra of the SavedModel.
    #[arg(short, long, value_name = "OUT")]
    pub out: PathBuf,
    /// What to make of the clusters.
    #[arg(long, value_enum)]
    pub mode: RewriteMode,
    /// For `native`: the first part of the names of the library's ops; by default from the file's name.
    #[arg(long)]
    pub name: Option<String>,
    /// For `native`: threads of a call of compiled code; by default as many as the process may use.
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
    #[command(flatten)]
    pub target: TargetArgs,
    #[command(flatten)]
    pub pass: ClusterPassArgs,
    /// Do not say what was assumed.
    #[arg(long, short)]
    pub quiet: bool,
}

/// How clusters are formed.
#[derive(Args, Debug)]
pub struct ClusterPassArgs {
    /// Flags as in the environment variable TF_XLA_FLAGS, which come after those.
    #[arg(long = "tf-xla-flags", value_name = "FLAGS", allow_hyphen_values = true)]
    pub tf_xla_flags: Option<String>,
    /// Take nodes out again that TensorFlow takes out after it named the clusters.
    #[arg(long)]
    pub declustered: bool,
}

#[derive(Args, Debug)]
pub struct BugArgs {
    /// A GraphDef, a MetaGraphDef or a SavedModel.
    #[arg(value_name = "GRAPH")]
    pub graph: PathBuf,
    /// Skip detection: the format of GRAPH.
    #[arg(long)]
    pub format: Option<String>,
    /// The folder to write, which must not exist.
    #[arg(short, long, value_name = "DIR")]
    pub out: PathBuf,
    /// The verb that goes wrong and its flags, with `{}` for the graph.
    #[arg(last = true, required = true, value_name = "VERB FLAGS")]
    pub command: Vec<String>,
}

#[derive(Args, Debug)]
pub struct ReduceArgs {
    /// A GraphDef, or HLO text.
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
pub struct BenchArgs {
    #[command(flatten)]
    pub graph: Option<GraphArgs>,
    /// Arrays with tensor names as keys; without it they are random.
    #[arg(long, value_name = "IN.npz")]
    pub inputs: Option<PathBuf>,
    /// Where the results of the last call go.
    #[arg(long, value_name = "OUT.npz")]
    pub outputs: Option<PathBuf>,
    /// Threads of compiled code.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: u16,
    /// Calls to measure; by default as many as fit into the seconds.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    pub runs: Option<u64>,
    /// Time to measure for.
    #[arg(long, default_value_t = 2.0)]
    pub seconds: f64,
    /// Say where the time goes: a line a kernel with its time, GFLOP/s, GB/s, share of this machine's peak and of
    /// its roofline.
    #[arg(long)]
    pub profile: bool,
    /// Instead of a graph, measure this machine: f32 multiply-adds at each width of vectors, GB/s of caches and memory.
    #[arg(long, conflicts_with_all = ["graph", "inputs", "outputs", "profile", "runs"])]
    pub machine: bool,
    /// Print one JSON document.
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub target: TargetArgs,
}

#[derive(Args, Debug)]
pub struct TargetsArgs {
    /// Print one JSON document.
    #[arg(long)]
    pub json: bool,
}

#[derive(Args, Debug)]
pub struct HloFiles {
    /// HLO text, an HloProto or StableHLO's text; `-` is standard input.
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<String>,
}

/// What XLA would dump.
#[derive(Args, Clone, Debug, Default)]
pub struct XlaArgs {
    /// Flags as in the environment variable XLA_FLAGS, which come after those: --xla_dump_to and its family.
    #[arg(long, value_name = "FLAGS", allow_hyphen_values = true)]
    pub xla_flags: Option<String>,
}

/// How a module is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum HloFormat {
    /// XLA's text.
    Text,
    /// An HloProto.
    Proto,
}

#[derive(Args, Debug)]
pub struct HloPrint {
    #[command(flatten)]
    pub files: HloFiles,
    /// How modules are written.
    #[arg(long, value_enum, default_value = "text")]
    pub format: HloFormat,
}

#[derive(Args, Debug)]
pub struct HloOpt {
    #[command(flatten)]
    pub files: HloFiles,
    /// How modules are written.
    #[arg(long, value_enum, default_value = "text")]
    pub format: HloFormat,
    /// Run these passes once, in this order; without it all run until nothing changes.
    #[arg(long, value_name = "NAME,..", value_delimiter = ',')]
    pub passes: Vec<String>,
    /// Print the module to standard error after each run of this pass that changed it; `all` is any pass.
    #[arg(long, value_name = "NAME")]
    pub print_after: Option<String>,
    /// Say on standard error what each pass did: runs that changed something, instructions left, time.
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
    /// HLO text, an HloProto or StableHLO's text; `-` is standard input.
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
    #[command(flatten)]
    pub xla: XlaArgs,
}

#[derive(Args, Debug)]
pub struct HloRun {
    #[command(flatten)]
    pub call: HloCall,
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
pub struct OpsArgs {
    /// Only ops whose name contains this.
    pub filter: Option<String>,
    /// Print a list of objects with `op`, `family`, `signature`, `constants` and `dtypes`.
    #[arg(long)]
    pub json: bool,
}

#[derive(Args, Debug)]
pub struct ExplainArgs {
    /// A code such as TFA0101, its number or its slug, or with GRAPH the name of a node; without it, all codes are listed.
    #[arg(value_name = "CODE|NODE")]
    pub subject: Option<String>,
    /// The graph whose clustering puts the node where it is.
    pub graph: Option<PathBuf>,
    /// Skip detection: the format of GRAPH.
    #[arg(long)]
    pub format: Option<String>,
    #[command(flatten)]
    pub pass: ClusterPassArgs,
    /// Do not say what was assumed.
    #[arg(long, short)]
    pub quiet: bool,
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
