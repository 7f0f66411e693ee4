//! What says which graph, and for which machine; and the verbs that compile it whole.
use crate::run::WeightSource;
use clap::Args;
use std::path::PathBuf;

/// Which graph, and which part of it.
#[derive(Args, Clone, Debug, Default)]
pub struct GraphArgs {
    /// A .pb or .pbtxt file, a SavedModel folder, a TF.js model.json, a module of HLO or StableHLO, what JAX exports; `-` is standard input.
    #[arg(value_name = "GRAPH")]
    pub graph: PathBuf,
    /// Skip detection: the format of GRAPH.
    #[arg(long)]
    pub format: Option<String>,
    /// An input: `NAME`, or with a fixed type `NAME=f32[1,224,224,3]`; or what it always holds and is no argument then, `NAME=0.5` or
    /// `NAME={1,2}`. Repeats; by default the Placeholders.
    #[arg(long = "feed", value_name = "NAME[=TYPE[DIMS]|=VALUE]")]
    pub feeds: Vec<String>,
    /// An output. Repeats; by default the sinks.
    #[arg(long = "fetch", value_name = "NAME")]
    pub fetches: Vec<String>,
    /// Bind an unknown dimension, or bound it (1..64); without NAME, all of them.
    #[arg(long = "dim", value_name = "[NAME=]N")]
    pub dims: Vec<String>,
    /// The largest size that values at run time may say where nothing in the graph bounds it; with NODE, at that node alone. A call that
    /// asks for more fails.
    #[arg(long = "bound", value_name = "[NODE=]N")]
    pub bounds: Vec<String>,
    /// Let calls fail where TensorFlow's kernels refuse their values: indices and segment numbers out of range, assertions, `CheckNumerics`,
    /// integers divided by zero. The failure names the node. Without it such a call goes on, as XLA's does.
    #[arg(long)]
    pub checked: bool,
    /// End a loop after N rounds at the latest, as TensorFlow's `maximum_iterations` does; LOOP is what messages call it. Repeats.
    #[arg(long, value_name = "LOOP=N")]
    pub rounds: Vec<String>,
    /// A signature of a SavedModel. Repeats, or `all` for each, where a verb takes several functions over one state.
    #[arg(long)]
    pub signature: Vec<String>,
    /// Variables that keep their values between calls though nothing changes them: a name, which may have `*` for any letters,
    /// or `all`. Repeats; variables that a call changes do so anyway.
    #[arg(long, value_name = "NAME")]
    pub state: Vec<String>,
    /// A tf2xla.Config, text or binary: feeds and fetches with their names in C.
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath, conflicts_with_all = ["feeds", "fetches"])]
    pub config: Option<PathBuf>,
    /// Do not say what was assumed.
    #[arg(long, short)]
    pub quiet: bool,
}

/// The machine that code is made for.
#[derive(Args, Clone, Debug, Default)]
pub struct TargetArgs {
    /// LLVM's triple, such as aarch64-unknown-linux-gnu; by default this machine's. `tfaot targets` lists them.
    #[arg(long, value_name = "TRIPLE")]
    pub target: Option<String>,
    /// The processor, such as x86-64-v3, or `native`, this machine's: the default of what runs code here. With several, an object
    /// picks; those that are written are by default for x86-64-v3,x86-64-v4, or cortex-a76 on AArch64's Linux.
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
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub tuning: Option<PathBuf>,
    /// Make kernels by the plan in this file, as `compile --emit plan` wrote it, and search for no other. What the plan says of
    /// kernels must be what comes of its choices.
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub plan: Option<PathBuf>,
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
    /// NAME.plan: what was chosen, and how each kernel is made; `--plan` reads it
    Plan,
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
    /// libtfaot_pool.so: that pool, for languages that load it
    PoolShared,
    /// tfaot_threads.h: threads of one process as the ranks of a model with collectives
    Threads,
    /// tfaot_mpi.h: processes of MPI as the ranks of a model with collectives
    Mpi,
    /// NAME.f90: a Fortran module, over NAME.o or libNAME.a
    Fortran,
    /// NAME.rs: safe Rust, over libNAME.a
    Rust,
    /// NAME.d: the files that the others were made of, for make, Ninja and CMake
    Depfile,
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
    /// Write the constants to NAME.weights, not into the object; functions take them as one more argument. `tfaot weights` makes the
    /// file for other numbers, by what `--emit metadata` wrote.
    #[arg(long)]
    pub weights_file: bool,
    /// Measure on this machine which loops are best for each product of the graph, add them to this file, and compile with
    /// them. Takes some ten times as long.
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath, conflicts_with_all = ["tuning", "plan"])]
    pub tune: Option<PathBuf>,
    #[command(flatten)]
    pub xla: XlaArgs,
    #[command(flatten)]
    pub cache: CacheArgs,
}

#[derive(Args, Clone, Debug)]
pub struct WeightsArgs {
    /// The graph with other numbers.
    #[arg(value_name = "GRAPH")]
    pub graph: PathBuf,
    /// Skip detection: the format of GRAPH.
    #[arg(long)]
    pub format: Option<String>,
    /// The metadata of the object: NAME.json of `compile --weights-file --emit metadata`.
    #[arg(long = "for", value_name = "NAME.json", value_hint = clap::ValueHint::FilePath)]
    pub object: PathBuf,
    /// The file to write.
    #[arg(short, long, value_name = "FILE")]
    pub out: PathBuf,
    /// The tf2xla.Config with which the object was compiled, if it was with one.
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub config: Option<PathBuf>,
    /// Do not say what was assumed.
    #[arg(long, short)]
    pub quiet: bool,
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

/// Where code that runs here has its constants.
#[derive(Args, Clone, Debug, Default)]
pub struct FileArgs {
    /// Run what `compile --weights-file` makes, which is handed its constants: those of GRAPH, or of a FILE that `compile` or
    /// `weights` wrote for the same graph and processor.
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, value_hint = clap::ValueHint::FilePath)]
    weights_file: Option<Option<PathBuf>>,
}

impl FileArgs {
    /// Where the weights of compiled functions come from.
    pub fn source(&self) -> WeightSource<'_> {
        match &self.weights_file {
            None => WeightSource::Object,
            Some(None) => WeightSource::Graph,
            Some(Some(path)) => WeightSource::File(path),
        }
    }
}

#[derive(Args, Debug)]
pub struct RunArgs {
    #[command(flatten)]
    pub graph: GraphArgs,
    /// Arrays with tensor names as keys; without it they are random.
    #[arg(long, value_name = "IN.npz", value_hint = clap::ValueHint::FilePath)]
    pub inputs: Option<PathBuf>,
    /// Where the results go; without it they are printed.
    #[arg(long, value_name = "OUT.npz")]
    pub outputs: Option<PathBuf>,
    /// Calls in order, over one state, a JSON object a line: {"signature":"train","inputs":"in0.npz","outputs":"out0.npz"};
    /// paths are relative to the file.
    #[arg(long, value_name = "CALLS.jsonl", value_hint = clap::ValueHint::FilePath, conflicts_with_all = ["inputs", "outputs"])]
    pub calls: Option<PathBuf>,
    /// A size that varies from call to call, where no array tells it: by default the largest. Repeats.
    #[arg(long = "size", value_name = "[NAME=]N")]
    pub sizes: Vec<String>,
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
    pub file: FileArgs,
    #[command(flatten)]
    pub target: TargetArgs,
}

#[derive(Args, Debug)]
pub struct VerifyArgs {
    #[command(flatten)]
    pub graph: GraphArgs,
    /// Arrays with tensor names as keys; without it they are random.
    #[arg(long, value_name = "IN.npz", value_hint = clap::ValueHint::FilePath)]
    pub inputs: Option<PathBuf>,
    /// The right results, with tensor names as keys.
    #[arg(long, value_name = "OUT.npz", value_hint = clap::ValueHint::FilePath)]
    pub expect: Option<PathBuf>,
    /// Calls in order, over one state, a JSON object a line: {"signature":"train","inputs":"in0.npz","expect":"out0.npz"};
    /// paths are relative to the file.
    #[arg(long, value_name = "CALLS.jsonl", value_hint = clap::ValueHint::FilePath, conflicts_with_all = ["inputs", "expect"])]
    pub calls: Option<PathBuf>,
    /// A size that varies from call to call, where no array tells it: by default the largest. Repeats.
    #[arg(long = "size", value_name = "[NAME=]N")]
    pub sizes: Vec<String>,
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
    pub file: FileArgs,
    #[command(flatten)]
    pub target: TargetArgs,
}

#[derive(Args, Debug)]
pub struct CheckArgs {
    #[command(flatten)]
    pub graph: GraphArgs,
    /// Print `{"compilable","blockers":[{"node","op","code","reason"}],"groups":[{"code","reason","nodes","first","help"}]}`.
    #[arg(long)]
    pub json: bool,
    /// List every blocker; without it those of one cause are told together.
    #[arg(long)]
    pub all: bool,
    #[command(flatten)]
    pub target: TargetArgs,
}

#[derive(Args, Debug)]
pub struct BenchArgs {
    #[command(flatten)]
    pub graph: Option<GraphArgs>,
    /// Arrays with tensor names as keys; without it they are random.
    #[arg(long, value_name = "IN.npz", value_hint = clap::ValueHint::FilePath)]
    pub inputs: Option<PathBuf>,
    /// Where the results of the last call go.
    #[arg(long, value_name = "OUT.npz")]
    pub outputs: Option<PathBuf>,
    /// Threads of compiled code.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: u16,
    /// A size that varies from call to call, where no array tells it: by default the largest. Repeats.
    #[arg(long = "size", value_name = "[NAME=]N")]
    pub sizes: Vec<String>,
    /// Measure calls of several sizes, a line each: 1,2,4,8, or of one among several sizes n=1,2,4,8.
    #[arg(long = "sizes", value_name = "[NAME=]N,...", conflicts_with_all = ["inputs", "outputs", "profile", "compare"])]
    pub row: Option<String>,
    /// Calls to measure; by default as many as fit into the seconds.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    pub runs: Option<u64>,
    /// Time to measure for.
    #[arg(long, default_value_t = 2.0)]
    pub seconds: f64,
    /// Calls before those that are measured; by default three, or fewer where they take a quarter of the time.
    #[arg(long, value_name = "CALLS")]
    pub warmup: Option<u64>,
    /// Say how the times differ from those in an earlier output of --json.
    #[arg(long, value_name = "OLD.json", value_hint = clap::ValueHint::FilePath, conflicts_with = "profile")]
    pub compare: Option<PathBuf>,
    /// Say where the time goes: a line a kernel with its time, GFLOP/s, GB/s, share of this machine's peak and of
    /// its roofline.
    #[arg(long)]
    pub profile: bool,
    /// Instead of a graph, measure this machine: f32 multiply-adds at each width of vectors, GB/s of caches and memory.
    #[arg(long, conflicts_with_all = ["graph", "inputs", "outputs", "profile", "runs", "warmup", "compare", "sizes", "row", "weights_file"])]
    pub machine: bool,
    /// Print one JSON document.
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub file: FileArgs,
    #[command(flatten)]
    pub target: TargetArgs,
    /// Further graphs, with the same flags: all are timed in turns, and told beside the first.
    #[arg(value_name = "GRAPH", index = 2, conflicts_with_all = ["inputs", "outputs", "profile", "compare", "row", "machine"])]
    pub others: Vec<PathBuf>,
}

/// What XLA would dump.
#[derive(Args, Clone, Debug, Default)]
pub struct XlaArgs {
    /// Flags as in the environment variable XLA_FLAGS, which come after those: --xla_dump_to and its family.
    #[arg(long, value_name = "FLAGS", allow_hyphen_values = true)]
    pub xla_flags: Option<String>,
}
