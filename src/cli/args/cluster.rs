//! Arguments of the verbs that form clusters.
use super::compile::{Emit, GraphArgs, TargetArgs, XlaArgs};
use clap::Args;
use std::path::PathBuf;

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
    /// Compare the clusters with those in an earlier output of --json; exit status 1 where a node left its cluster.
    #[arg(long, value_name = "OLD.json", value_hint = clap::ValueHint::FilePath)]
    pub baseline: Option<PathBuf>,
    /// The smallest share of nodes in clusters; exit status 1 where it is smaller.
    #[arg(long, value_name = "PART")]
    pub min_clustered: Option<f64>,
    /// Print how the clusters would change if XLA compiled this op. Repeats.
    #[arg(long = "what-if", value_name = "op=NAME")]
    pub what_if: Vec<String>,
    #[command(flatten)]
    pub files: ClusterFilesArgs,
}

/// Options for writing clusters to files.
#[derive(Args, Debug)]
#[group(id = "cluster_files", conflicts_with_all = ["json", "tsv", "summary", "baseline", "min_clustered", "what_if"])]
pub struct ClusterFilesArgs {
    /// Compile each cluster by itself, and write these files; `hlo` is the module that XLA would be given, as text and as HloProto.
    /// Also written are clusters.json with the connections between clusters, and with headers main.c, which runs them in order.
    #[arg(long, value_enum, value_delimiter = ',', requires = "out")]
    pub emit: Vec<Emit>,
    /// The folder to write to; it is created if it is missing.
    #[arg(short, long, value_name = "DIR", requires = "emit")]
    pub out: Option<PathBuf>,
    /// Only this cluster. Repeats.
    #[arg(long, value_name = "CLUSTER", requires = "emit")]
    pub only: Vec<String>,
    /// Prefix of the symbols and files of clusters, before `_` and the cluster's name; none by default.
    #[arg(long, value_name = "PREFIX", requires = "emit")]
    pub name: Option<String>,
    #[command(flatten)]
    pub xla: XlaArgs,
    #[command(flatten)]
    pub target: TargetArgs,
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
    /// Do not compile the model and its clusters.
    #[arg(long)]
    pub no_compile: bool,
    /// Measure the kernels of the model and of each cluster on random inputs.
    #[arg(long, conflicts_with = "no_compile")]
    pub profile: bool,
    /// Time to measure each cluster for.
    #[arg(long, default_value_t = 0.5)]
    pub seconds: f64,
    /// An earlier output of `report --json` to compare with.
    #[arg(long, value_name = "OLD.json")]
    pub baseline: Option<PathBuf>,
    /// Print the data of the page as one JSON document.
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub xla: XlaArgs,
    #[command(flatten)]
    pub target: TargetArgs,
}

/// The form of clusters in a rewritten graph.
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
    /// The format of GRAPH; detected by default.
    #[arg(long)]
    pub format: Option<String>,
    /// A tensor that must keep its name. Repeats; outputs of signatures and what no node uses keep theirs anyway.
    #[arg(long = "fetch", value_name = "NAME")]
    pub fetches: Vec<String>,
    /// A tensor that is fed, `NAME` or for `native` also `NAME=f32[1,224,224,3]`: it stays outside of clusters. `NAME=0.5` or
    /// `NAME={1,2}` is what code is made for; TensorFlow runs the nodes where it is fed another value. Repeats.
    #[arg(long = "feed", value_name = "NAME[=TYPE[DIMS]|=VALUE]")]
    pub feeds: Vec<String>,
    /// For `native`: the size of an unknown dimension, or its bounds such as 1..64; N alone is that of all. Leading dimensions without
    /// a size are taken as 1..64.
    #[arg(long = "dim", value_name = "[NAME=]N")]
    pub dims: Vec<String>,
    /// For `native`: also take what tfaot compiles and XLA's clustering leaves out, such as loops and ops without a kernel of XLA's.
    #[arg(long)]
    pub beyond_xla: bool,
    /// With `--beyond-xla`: compile loops and conditions without the nodes in them that check values or print, as `compile` does.
    #[arg(long, requires = "beyond_xla")]
    pub drop_assertions: bool,
    /// For `native`: read variables when the model runs, also those that no signature changes and that are constants of the code
    /// otherwise.
    #[arg(long)]
    pub keep_variables: bool,
    /// The signature of a SavedModel that is rewritten, and for `native` the one that the sizes are for; by default all. What they do
    /// not reach (savers, initializers) stays as it is.
    #[arg(long)]
    pub signature: Option<String>,
    /// The file to write, or the folder of a SavedModel, which must not exist. The library of `native` is OUT with the ending
    /// .so, or in the folder assets.extra of the SavedModel.
    #[arg(short, long, value_name = "OUT")]
    pub out: PathBuf,
    /// The form of the clusters.
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
    pub xla: XlaArgs,
    #[command(flatten)]
    pub pass: ClusterPassArgs,
    /// Do not print assumptions.
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
pub struct ExplainArgs {
    /// A code such as TFA0101, its number or its slug, or with GRAPH the name of a node; without it, all codes are listed.
    #[arg(value_name = "CODE|NODE")]
    pub subject: Option<String>,
    /// The graph whose clustering puts the node where it is.
    pub graph: Option<PathBuf>,
    /// The format of GRAPH; detected by default.
    #[arg(long)]
    pub format: Option<String>,
    #[command(flatten)]
    pub pass: ClusterPassArgs,
    /// Do not print assumptions.
    #[arg(long, short)]
    pub quiet: bool,
}
