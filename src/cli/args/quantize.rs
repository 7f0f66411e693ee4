//! Arguments of `quantize`.
use super::GraphArgs;
use clap::Args;
use std::path::PathBuf;

#[derive(Args, Debug)]
pub struct QuantizeArgs {
    #[command(flatten)]
    pub graph: GraphArgs,
    /// Example inputs, with tensor names as keys: files of one call each. The ranges of activations are those of all calls.
    #[arg(long, value_name = "IN.npz", required = true, num_args = 1.., value_hint = clap::ValueHint::FilePath)]
    pub calibrate: Vec<PathBuf>,
    /// The binary GraphDef to write.
    #[arg(short, long, value_name = "OUT.pb")]
    pub out: PathBuf,
    /// Percentage of an activation's values that its range holds in each call: below 100, the farthest values on either side are clamped.
    #[arg(long, value_name = "P", default_value_t = 100.0)]
    pub percentile: f64,
    /// Largest error of an output on the examples, as a part of its largest element: the products that cost most stay in f32 until all outputs are
    /// within it.
    #[arg(long, value_name = "ERROR")]
    pub budget: Option<f64>,
    /// A product to leave in f32, by its node. Repeats.
    #[arg(long, value_name = "NODE")]
    pub keep: Vec<String>,
}
