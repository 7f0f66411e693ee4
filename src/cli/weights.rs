//! `tfaot weights`: writes the weights file for an existing object from a graph that differs only in its weights.
//!
//! The graph is compiled up to its kernels as the object was. The result must match the object's code, of which the metadata contain a
//! hash, and its arrays are placed where the object expects them.
use super::args::{GraphArgs, WeightsArgs};
use super::progress::{self, Progress};
use super::recorded_options::RecordedOptions;
use super::{ExitStatus, compile as compiling, graph};
use crate::compile;
use crate::diag::{Code, Diagnostic, Error, Result, io_error};
use crate::kernel::WeightsLayout;
use crate::package::files;
use crate::target::{CodeRequest, MathType, Precision, QuantizedMath, Target, Tuning, WeightType};
use serde::Deserialize;
use std::path::Path;

/// The relevant parts of an object's metadata.
#[derive(Deserialize)]
struct Object {
    name: String,
    targets: Vec<Machine>,
    weights_file: File,
}

#[derive(Deserialize)]
struct Machine {
    triple: String,
    cpu: String,
    features: String,
}

#[derive(Deserialize)]
struct File {
    key: String,
    request: RecordedOptions,
    places: Offsets,
}

/// [`WeightsLayout`] as stored in the metadata.
#[derive(Deserialize)]
struct Offsets {
    bytes: u64,
    programs: Vec<Vec<u64>>,
    starts: Vec<u64>,
}

/// Writes the weights file, or reports why the graph does not fit the object.
pub fn run(args: &WeightsArgs) -> Result<ExitStatus> {
    let object = read(&args.object)?;
    let File { key, request, places } = object.weights_file;
    if request.config && args.config.is_none() {
        let told = "the object was compiled with a tf2xla.Config, which says what is fed and fetched";
        return Err(Diagnostic::new(Code::BadOption, told).help("--config FILE").into());
    }
    let precision = Precision {
        weights: named(&request.weights, &[WeightType::F32, WeightType::Bf16, WeightType::Int8], |t| t.name())?,
        math: named(&request.math, &MathType::ALL, |t| t.name())?,
        quantized: named(&request.quantized, &QuantizedMath::ALL, |t| t.name())?,
    };
    let tuning = Tuning::parse(&request.tuning)?;
    let machine = |m: &Machine| {
        let target = Target::resolve(Some(&m.triple), Some(&m.cpu), Some(&m.features))?;
        let code = CodeRequest::new(target, precision)?;
        Ok(CodeRequest { tuning: tuning.clone(), plans: request.plan.clone(), ..code })
    };
    let targets = object.targets.iter().map(machine).collect::<Result<Vec<_>>>()?;
    let graph_args = GraphArgs {
        graph: args.graph.clone(),
        format: args.format.clone(),
        feeds: request.feeds,
        fetches: request.fetches,
        dims: request.dims,
        bounds: request.bounds,
        checked: request.checked,
        rounds: request.rounds,
        signature: request.signatures,
        state: request.state,
        config: args.config.clone(),
        quiet: args.quiet,
    };
    let _progress = Progress::begin("reading the graph", args.quiet);
    let (mut functions, _) = graph::lower_functions(&graph_args)?;
    compile::make_weights_replaceable(&mut functions);
    progress::set_step("laying out");
    let places = WeightsLayout { programs: places.programs, starts: places.starts, bytes: places.bytes };
    let bundle = compile::plan_weights(functions, &object.name, &targets, &places);
    let bundle = bundle.map_err(|e| graph::with_file(e, &graph_args))?;
    if bundle.face.file.as_ref().map(|file| file.key_hex()) != Some(key) {
        let told = "the code of this graph is not the object's: operations, types, sizes, or numbers that stand in the code differ";
        let problem = Diagnostic::new(Code::OtherWeights, told)
            .note("scalars stand in the code, arrays in the file")
            .help("compile this graph with --weights-file");
        return Err(graph::with_file(problem.into(), &graph_args));
    }
    let content = bundle.weights_file_content().ok_or_else(|| Error::internal("weights", "there is no file"))?;
    let (folder, file) = (args.out.parent().unwrap_or(Path::new("")), args.out.file_name());
    let file = file.ok_or_else(|| Error::user(Code::BadOption, "-o is the name of a file"))?;
    let written = files::write_all(folder, &[(file.to_string_lossy().into_owned(), content)])?;
    compiling::report_written_files(&written, &[])
}

/// Reads the metadata of an object. Errors: `Code::Io`; `Code::OtherWeights` if the object does not take weights from a file.
fn read(path: &Path) -> Result<Object> {
    let text = std::fs::read_to_string(path).map_err(|e| io_error("read", path, &e))?;
    serde_json::from_str(&text).map_err(|e| {
        let told = format!("these are no metadata of an object whose weights are in a file: {e}");
        let problem =
            Diagnostic::new(Code::OtherWeights, told).help("compile --weights-file --emit metadata writes them");
        Error::from(problem).in_file(path)
    })
}

/// The element of `all` whose name is `text`. Errors: `Code::OtherWeights`.
fn named<T: Copy>(text: &str, all: &[T], name: impl Fn(T) -> &'static str) -> Result<T> {
    let found = all.iter().copied().find(|&t| name(t) == text);
    found.ok_or_else(|| Error::user(Code::OtherWeights, format!("the metadata name a type `{text}` that is not known")))
}
