//! Options of a compilation as recorded in its metadata, from which `tfaot weights` reproduces it.
use super::args::CompileArgs;
use crate::target::{CodeRequest, QuantizedMath};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Options of a compilation, other than its targets.
#[derive(Deserialize, Serialize)]
pub struct RecordedOptions {
    pub feeds: Vec<String>,
    pub fetches: Vec<String>,
    pub dims: Vec<String>,
    #[serde(default)]
    pub bounds: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rounds: Vec<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub checked: bool,
    pub signatures: Vec<String>,
    pub state: Vec<String>,
    pub config: bool,
    pub weights: String,
    pub math: String,
    #[serde(default = "exact")]
    pub quantized: String,
    pub tuning: String,
    pub plan: Option<String>,
}

/// The arithmetic of quantised products in metadata that do not name it.
fn exact() -> String {
    QuantizedMath::Exact.name().to_string()
}

/// The JSON object that records the options of `args`.
pub fn record_request(args: &CompileArgs, requests: &[CodeRequest]) -> Value {
    let graph = &args.graph;
    let first = requests.first();
    let precision = first.map(|r| r.precision).unwrap_or_default();
    let asked = RecordedOptions {
        feeds: graph.feeds.clone(),
        fetches: graph.fetches.clone(),
        dims: graph.dims.clone(),
        bounds: graph.bounds.clone(),
        rounds: graph.rounds.clone(),
        checked: graph.checked,
        signatures: graph.signature.clone(),
        state: graph.state.clone(),
        config: graph.config.is_some(),
        weights: precision.weights.name().to_string(),
        math: precision.math.name().to_string(),
        quantized: precision.quantized.name().to_string(),
        tuning: first.map(|r| r.tuning.to_string()).unwrap_or_default(),
        plan: first.and_then(|r| r.plans.clone()),
    };
    // only strings and booleans
    serde_json::to_value(asked).unwrap_or_default()
}
