//! The flags of TensorFlow's tfcompile.
use super::{MathArg, WeightsArg};
use clap::builder::BoolishValueParser;
use clap::{Arg, ArgAction};
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

/// tfcompile's flags.
#[derive(clap::Args, Debug)]
pub struct TfcompileArgs {
    /// The GraphDef; a name that ends in .pbtxt is text.
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub graph: Option<PathBuf>,
    /// The tf2xla.Config with feeds and fetches.
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub config: Option<PathBuf>,
    /// Print the nodes of the fetches, and stop.
    #[arg(long = "dump_fetch_nodes")]
    pub dump_fetch_nodes: bool,
    /// LLVM's triple.
    #[arg(long = "target_triple", default_value = "x86_64-pc-linux")]
    pub target_triple: String,
    /// The processor; without one, the oldest of the triple. With several, the object picks.
    #[arg(long = "target_cpu", value_delimiter = ',')]
    pub target_cpu: Vec<String>,
    /// Instruction sets on and off: `+avx2,-fma`.
    #[arg(long = "target_features", default_value = "", allow_hyphen_values = true)]
    pub target_features: String,
    /// The prefix of the C names; without one it is made of the class.
    #[arg(long = "entry_point", default_value = "")]
    pub entry_point: String,
    /// The class, such as `vision::Detector`.
    #[arg(long = "cpp_class", value_name = "NS::CLASS", default_value = "")]
    pub cpp_class: String,
    /// The object with code and weights.
    #[arg(long = "out_function_object", value_name = "FILE", default_value = "out_model.o")]
    pub out_function_object: PathBuf,
    /// An object without content, for rules that link one.
    #[arg(long = "out_metadata_object", value_name = "FILE", default_value = "out_helper.o")]
    pub out_metadata_object: PathBuf,
    /// The C++17 header.
    #[arg(long = "out_header", value_name = "FILE", default_value = "out.h")]
    pub out_header: PathBuf,
    /// An object without content, for rules that link one.
    #[arg(long = "out_constant_buffers_object", value_name = "FILE")]
    pub out_constant_buffers_object: Option<PathBuf>,
    /// An HloSnapshot of the module before its optimisation.
    #[arg(long = "out_session_module", value_name = "FILE")]
    pub out_session_module: Option<PathBuf>,
    /// Names are in the header always.
    #[arg(long = "gen_name_to_index")]
    pub gen_name_to_index: bool,
    /// Refused: a ProgramShape is a message of protobuf's runtime.
    #[arg(long = "gen_program_shape")]
    pub gen_program_shape: bool,
    /// Without effect: there is no runtime.
    #[arg(long = "use_xla_nanort_runtime")]
    pub use_xla_nanort_runtime: bool,
    /// Refused: nothing rewrites graphs to integers.
    #[arg(long = "experimental_quantize")]
    pub experimental_quantize: bool,
    /// Refused: the code is made without DataFlowSanitizer.
    #[arg(long = "sanitize_dataflow")]
    pub sanitize_dataflow: bool,
    /// Lists for `--sanitize_dataflow`.
    #[arg(long = "sanitize_abilists_dataflow", value_name = "FILES", default_value = "")]
    pub sanitize_abilists_dataflow: String,
    /// Without effect: there is one way from graphs to HLO.
    #[arg(long = "mlir_components", default_value = "", value_parser = ["", "None", "Bridge"])]
    pub mlir_components: String,
    /// Without effect: diagnostics name nodes.
    #[arg(long = "debug_info", value_name = "FILE", default_value = "")]
    pub debug_info: String,
    /// Without effect.
    #[arg(long = "debug_info_path_begin_marker", default_value = "")]
    pub debug_info_path_begin_marker: String,
    /// Store constants of contractions and tables of gathers in fewer bits; tfcompile has no such flag.
    #[arg(long, value_enum, default_value_t)]
    pub weights: WeightsArg,
    /// Compute products of contractions with constants from factors in fewer bits; tfcompile has no such flag.
    #[arg(long, value_enum, default_value_t)]
    pub math: MathArg,
    /// A flag of XLA, as in XLA_FLAGS; `--xla_NAME=VALUE` is the same as `--xla=--xla_NAME=VALUE`.
    #[arg(long, value_name = "FLAG", allow_hyphen_values = true)]
    pub xla: Vec<String>,
}

/// Gives a switch the syntax of TensorFlow's flags: `--name`, `--name=true`, `--name=false`. Returns other arguments unchanged.
pub fn absl_switch(arg: Arg) -> Arg {
    if !matches!(arg.get_action(), ArgAction::SetTrue) {
        return arg;
    }
    let arg = arg.action(ArgAction::Set).value_parser(BoolishValueParser::new());
    arg.num_args(0..=1).require_equals(true).default_value("false").default_missing_value("true")
}

/// The command line with XLA's flags, whose names are not fixed, turned into values of `--xla`.
pub fn expand_xla_flags(all: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut all: Vec<OsString> = all.collect();
    if all.get(1).is_some_and(|verb| verb == "tfcompile") {
        for word in all.iter_mut().filter(|w| w.to_string_lossy().starts_with("--xla_")) {
            *word = [OsStr::new("--xla="), word].into_iter().collect();
        }
    }
    all
}
