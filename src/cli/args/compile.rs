//! Arguments that select a graph and a target machine, and those of the verbs that compile a whole graph.
use crate::run::WeightSource;
use clap::Args;
use std::path::PathBuf;

/// The graph, and the part of it to compile.
#[derive(Args, Clone, Debug, Default)]
pub struct GraphArgs {
    /// A .pb or .pbtxt file, a SavedModel folder, a TF.js model.json, a module of HLO or StableHLO, what JAX exports; `-` is standard input.
    #[arg(value_name = "GRAPH")]
    pub graph: PathBuf,
    /// The format of GRAPH; detected by default.
    #[arg(long)]
    pub format: Option<String>,
    /// An input: `NAME`, or with its type `NAME=f32[1,224,224,3]`. With a value, `NAME=0.5` or `NAME={1,2}`, it becomes a constant and is
    /// no argument. Repeats; by default the placeholders.
    #[arg(long = "feed", value_name = "NAME[=TYPE[DIMS]|=VALUE]")]
    pub feeds: Vec<String>,
    /// An output. Repeats; by default the sinks.
    #[arg(long = "fetch", value_name = "NAME")]
    pub fetches: Vec<String>,
    /// Bind an unknown dimension, or bound it (1..64); without NAME, all of them. The name `?` is that of those which nothing else binds.
    #[arg(long = "dim", value_name = "[NAME=]N")]
    pub dims: Vec<String>,
    /// Capacity of data-dependent sizes that nothing in the graph bounds; with NODE, of that node alone. A call that needs more
    /// fails.
    #[arg(long = "bound", value_name = "[NODE=]N")]
    pub bounds: Vec<String>,
    /// Make calls fail where TensorFlow's kernels reject their values: indices and segment numbers out of range, assertions, `CheckNumerics`,
    /// integers divided by zero. The failure names the node. Without this flag such a call continues, as XLA's does.
    #[arg(long)]
    pub checked: bool,
    /// End a loop after N iterations at the latest, as TensorFlow's `maximum_iterations` does; LOOP is its name in messages. Repeats.
    #[arg(long, value_name = "LOOP=N")]
    pub rounds: Vec<String>,
    /// A signature of a SavedModel. Repeats, or `all` for each, where a verb takes several functions over one state.
    #[arg(long)]
    pub signature: Vec<String>,
    /// Variables to keep as state although no call changes them: a name, in which `*` stands for any letters, or `all`. Repeats;
    /// variables that a call changes are state anyway.
    #[arg(long, value_name = "NAME")]
    pub state: Vec<String>,
    /// A tf2xla.Config, text or binary: feeds and fetches with their names in C.
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath, conflicts_with_all = ["feeds", "fetches"])]
    pub config: Option<PathBuf>,
    /// Do not print assumptions.
    #[arg(long, short)]
    pub quiet: bool,
}

/// The machine to compile for.
#[derive(Args, Clone, Debug, Default)]
pub struct TargetArgs {
    /// LLVM's triple, such as aarch64-unknown-linux-gnu; by default this machine's. `tfaot targets` lists them.
    #[arg(long, value_name = "TRIPLE")]
    pub target: Option<String>,
    /// The processor, such as x86-64-v3, or `native`, this machine's: the default of what runs code here. With several, an object
    /// picks; those that are written are by default for x86-64-v3,x86-64-v4, or cortex-a76 on AArch64's Linux.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub cpu: Vec<String>,
    /// Instruction sets to use or to avoid: `+avx2,-fma`.
    #[arg(long, value_name = "LIST", allow_hyphen_values = true)]
    pub features: Option<String>,
    /// Store the weights of matrix products, convolutions and embedding tables in fewer bits; arithmetic stays f32.
    #[arg(long, value_enum, default_value_t)]
    pub weights: WeightsArg,
    /// The arithmetic of floats: multiply weights in fewer bits in matrix products and convolutions (sums stay f32), or give the same bits on
    /// every machine.
    #[arg(long, value_enum, default_value_t)]
    pub math: MathArg,
    /// How products of values that the graph quantises to 8 bits (FakeQuant and its like) are computed.
    #[arg(long, value_enum, default_value_t)]
    pub quantized: QuantizedArg,
    /// A file of `compile --tune` with the fastest loops of products; rows of other products and processors have no effect.
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub tuning: Option<PathBuf>,
    /// Compile by the plan in this file, as `compile --emit plan` wrote it, without searching for another. The kernels in the file must
    /// be those that follow from its choices.
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub plan: Option<PathBuf>,
}

/// The type that weights are stored in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum WeightsArg {
    /// The graph's own.
    #[default]
    F32,
    /// Rounded to bfloat16.
    Bf16,
    /// As bytes, with an f32 scale for each feature or row.
    Int8,
}

/// The type that weights are multiplied in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum MathArg {
    /// The graph's own.
    #[default]
    F32,
    /// Factors rounded to bfloat16; the processor must have AVX512-BF16.
    Bf16,
    /// The graph's own, and results with the same bits on every processor, in C, and with any number of threads.
    Portable,
    /// As `portable`, but without fused multiply-adds: for processors that have no instruction for them.
    PortableUnfused,
}

/// The arithmetic of products of quantised values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum QuantizedArg {
    /// Integers where the error is within that of sums of floats, and the processor has instructions for products of bytes.
    #[default]
    Exact,
    /// Integers as in `exact`, and each quantisation as one multiply-add of the sums, without the roundings in between: levels may be one off, and
    /// NaNs are not kept.
    Fast,
    /// Floats, as the graph says.
    Off,
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
    /// NAME.json: the contents of the header, for programs
    Metadata,
    /// NAME.hlo: the optimized module
    Hlo,
    /// NAME.c: the functions of the object as C99 source, for any compiler of C; its loops are made for the oldest processor of --cpu
    C,
    /// NAME.ll
    LlvmIr,
    /// NAME.s
    Asm,
    /// NAME.plan: the choices of the scheduler, and the parameters of each kernel; `--plan` reads it
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
    /// The folder to write to; it is created if it is missing.
    #[arg(short, long, value_name = "DIR")]
    pub out: PathBuf,
    /// The model's name: prefix of files and symbols. By default from the file's name.
    #[arg(long)]
    pub name: Option<String>,
    /// The files to write.
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
    /// Add `NAME_selftest` to the code: it calls the model where it runs, and compares the results with stored answers of the interpreter. The
    /// arguments are those of a file, IN.npz; or drawn, when this is a number, the seed; or those of calls in order, CALLS.jsonl.
    #[arg(long, value_name = "IN.npz|SEED|CALLS.jsonl", value_hint = clap::ValueHint::FilePath)]
    pub self_test: Option<String>,
    /// Results that the self-test must find for IN.npz, in the place of the interpreter's, which must be near them.
    #[arg(long, value_name = "OUT.npz", value_hint = clap::ValueHint::FilePath, requires = "self_test")]
    pub self_test_expect: Option<PathBuf>,
    /// Measure on this machine which loops are fastest for each product of the graph, add them to this file, and compile with
    /// them. This takes some ten times as long.
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
    /// The format of GRAPH; detected by default.
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
    /// Do not print assumptions.
    #[arg(long, short)]
    pub quiet: bool,
}

/// Where finished compilations are kept.
#[derive(Args, Clone, Debug, Default)]
pub struct CacheArgs {
    /// A cache of compiled files: a folder to keep them in, and to take them from when the same is compiled again; by default the
    /// folder that the environment variable TFAOT_CACHE names, if any.
    #[arg(long, value_name = "DIR")]
    pub cache: Option<PathBuf>,
    /// Compile without a cache, also where TFAOT_CACHE is set.
    #[arg(long, conflicts_with = "cache")]
    pub no_cache: bool,
    /// Largest size of the cache in MiB; the least recently used files are deleted first.
    #[arg(long, value_name = "MIB", default_value_t = 4096)]
    pub cache_limit: u64,
}

/// The engine that computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Engine {
    /// Compiled code.
    Native,
    /// The interpreter, on the module as it was lowered.
    Interpreter,
}

/// Where code that runs here has its constants.
#[derive(Args, Clone, Debug, Default)]
pub struct WeightsFileArgs {
    /// Run what `compile --weights-file` makes, which is handed its constants: those of GRAPH, or of a FILE that `compile` or
    /// `weights` wrote for the same graph and processor.
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, value_hint = clap::ValueHint::FilePath)]
    weights_file: Option<Option<PathBuf>>,
}

impl WeightsFileArgs {
    /// The source of the weights for compiled functions.
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
    /// Input arrays, with tensor names as keys; random arrays without it.
    #[arg(long, value_name = "IN.npz", value_hint = clap::ValueHint::FilePath)]
    pub inputs: Option<PathBuf>,
    /// A file for the results; they are printed without it.
    #[arg(long, value_name = "OUT.npz")]
    pub outputs: Option<PathBuf>,
    /// Calls in order, over one state, a JSON object a line: {"signature":"train","inputs":"in0.npz","outputs":"out0.npz"};
    /// paths are relative to the file.
    #[arg(long, value_name = "CALLS.jsonl", value_hint = clap::ValueHint::FilePath, conflicts_with_all = ["inputs", "outputs"])]
    pub calls: Option<PathBuf>,
    /// The value of a size that varies from call to call, where no array has it; by default the largest. Repeats.
    #[arg(long = "size", value_name = "[NAME=]N")]
    pub sizes: Vec<String>,
    /// The engine that computes.
    #[arg(long, value_enum, default_value = "native")]
    pub engine: Engine,
    /// Let the interpreter evaluate the optimized module.
    #[arg(long)]
    pub optimized: bool,
    /// Threads of compiled code.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: u16,
    #[command(flatten)]
    pub file: WeightsFileArgs,
    #[command(flatten)]
    pub target: TargetArgs,
}

#[derive(Args, Debug)]
pub struct VerifyArgs {
    #[command(flatten)]
    pub graph: GraphArgs,
    /// Input arrays, with tensor names as keys; random arrays without it.
    #[arg(long, value_name = "IN.npz", value_hint = clap::ValueHint::FilePath)]
    pub inputs: Option<PathBuf>,
    /// Expected results, with tensor names as keys.
    #[arg(long, value_name = "OUT.npz", value_hint = clap::ValueHint::FilePath)]
    pub expect: Option<PathBuf>,
    /// Calls in order, over one state, a JSON object a line: {"signature":"train","inputs":"in0.npz","expect":"out0.npz"};
    /// paths are relative to the file.
    #[arg(long, value_name = "CALLS.jsonl", value_hint = clap::ValueHint::FilePath, conflicts_with_all = ["inputs", "expect"])]
    pub calls: Option<PathBuf>,
    /// The value of a size that varies from call to call, where no array has it; by default the largest. Repeats.
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
    /// Print the SHA-256 of the type, sizes and bytes of each output of compiled code. With --math portable it is the same on every machine.
    #[arg(long)]
    pub hash: bool,
    /// Print `{"ok","comparisons":[{"output","hash","with","ok","bound","error","worst"}]}`, and with the ops `first` and
    /// `ops:[{"tensor","op","total","own"}]`.
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub file: WeightsFileArgs,
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
    /// List every blocker; without it those of one cause are one message.
    #[arg(long)]
    pub all: bool,
    #[command(flatten)]
    pub target: TargetArgs,
}

#[derive(Args, Debug)]
pub struct BenchArgs {
    #[command(flatten)]
    pub graph: Option<GraphArgs>,
    /// Input arrays, with tensor names as keys; random arrays without it.
    #[arg(long, value_name = "IN.npz", value_hint = clap::ValueHint::FilePath)]
    pub inputs: Option<PathBuf>,
    /// A file for the results of the last call.
    #[arg(long, value_name = "OUT.npz")]
    pub outputs: Option<PathBuf>,
    /// Threads of compiled code.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: u16,
    /// The value of a size that varies from call to call, where no array has it; by default the largest. Repeats.
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
    /// Compare the times with those in an earlier output of --json.
    #[arg(long, value_name = "OLD.json", value_hint = clap::ValueHint::FilePath, conflicts_with = "profile")]
    pub compare: Option<PathBuf>,
    /// Print where the time goes: a line for each kernel with its time, GFLOP/s, GB/s, share of this machine's peak and of
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
    pub file: WeightsFileArgs,
    #[command(flatten)]
    pub target: TargetArgs,
    /// Further graphs, with the same flags: all are timed in turns, and compared with the first.
    #[arg(value_name = "GRAPH", index = 2, conflicts_with_all = ["inputs", "outputs", "profile", "compare", "row", "machine"])]
    pub others: Vec<PathBuf>,
}

/// Dumps as XLA writes them.
#[derive(Args, Clone, Debug, Default)]
pub struct XlaArgs {
    /// Flags as in the environment variable XLA_FLAGS, which come after those: --xla_dump_to and its family.
    #[arg(long, value_name = "FLAGS", allow_hyphen_values = true)]
    pub xla_flags: Option<String>,
}
