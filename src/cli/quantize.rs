//! `tfaot quantize`: measures the ranges of activations on examples, and writes the graph with fake quantisation.
use super::args::{GraphArgs, QuantizeArgs};
use super::progress::{self, Progress};
use super::{ExitStatus, graph, out};
use crate::compile::Functions;
use crate::diag::{Code, Diagnostic, Error, Result};
use crate::import::raw::RawGraph;
use crate::import::{self, FileFormat};
use crate::package::files;
use crate::rewrite::fake_quantization::{QuantizableProduct, TensorBounds, find_products, insert_fake_quantization};
use crate::run::{Instance, arguments};
use crate::target::{CodeRequest, Target};
use crate::tensor::Tensor;
use crate::verify::comparison::relative_error;
use std::collections::HashMap;
use std::path::Path;

/// Writes the graph with fake quantisation, and prints what it costs on the examples.
pub fn run(args: &QuantizeArgs) -> Result<ExitStatus> {
    if !(args.percentile > 50.0 && args.percentile <= 100.0) {
        return Err(Error::user(Code::BadOption, "--percentile is above 50 and at most 100"));
    }
    let path = &args.graph.graph;
    let (format, bytes) = import::load_bytes(path, args.graph.format.as_deref())?;
    if format != FileFormat::GraphDef {
        let told = format!("quantize takes a frozen GraphDef, and this is a file of the format `{}`", format.name());
        let problem = Diagnostic::new(Code::UnknownFormat, told);
        return Err(Error::from(problem.help("convert_variables_to_constants_v2 freezes a function")).in_file(path));
    }
    let mut raw = RawGraph::parse(&bytes).map_err(|e| e.in_file(path))?;
    let mut search = find_products(&raw);
    if let Some(unknown) = args.keep.iter().find(|name| !search.products.iter().any(|p| p.name == **name)) {
        let told = format!("--keep `{unknown}` is no product that could be quantised");
        return Err(Error::user(Code::BadOption, told).in_file(path));
    }
    search.products.retain(|product| !args.keep.contains(&product.name));
    search.kept.extend(args.keep.iter().map(|name| (name.clone(), "--keep names it")));
    if search.products.is_empty() {
        let problem = Diagnostic::new(Code::BadOption, "the graph has no product of an activation by constants in f32");
        return Err(Error::from(problem).in_file(path));
    }
    let _progress = Progress::begin("measuring ranges", args.graph.quiet);
    let bounds = measure_bounds(args, &search.products)?;
    // a range of nothing but zero would make every other input zero
    let is_zero = |product: &QuantizableProduct| {
        bounds.get(&product.activation).is_none_or(|range| range.low == [0.0] && range.high == [0.0])
    };
    let zeros: Vec<String> = search.products.extract_if(.., |product| is_zero(product)).map(|p| p.name).collect();
    search.kept.extend(zeros.into_iter().map(|name| (name, "its activation is zero on all examples")));
    insert_fake_quantization(&mut raw, &search.products, &bounds);
    write(&args.out, raw.write())?;
    progress::set_step("comparing");
    let costs = costs(args)?;
    for (name, reason) in &search.kept {
        out::line(format_args!("  f32  {name}: {reason}"))?;
    }
    let all = search.products.len() + search.kept.len();
    out::line(format_args!("{}: {} of {all} products are quantised", args.out.display(), search.products.len()))?;
    costs.iter().try_for_each(out::line)?;
    Ok(ExitStatus::Yes)
}

fn write(path: &Path, content: Vec<u8>) -> Result<()> {
    let (folder, file) = (path.parent().unwrap_or(Path::new("")), path.file_name());
    let file = file.ok_or_else(|| Error::user(Code::BadOption, "-o is the name of a file"))?;
    files::write_all(folder, &[(file.to_string_lossy().into_owned(), content)])?;
    Ok(())
}

/// A graph compiled for this machine.
struct Engine {
    functions: Functions,
    instance: Instance,
}

impl Engine {
    fn compile(args: &GraphArgs) -> Result<Engine> {
        let functions = graph::lower_only_function(args)?;
        let name = graph::model_name(None, &args.graph)?;
        let code = CodeRequest::from(Target::resolve(None, None, None)?);
        let instance = Instance::compile(functions.clone(), &name, &code, 1, None);
        Ok(Engine { functions, instance: instance.map_err(|e| graph::with_file(e, args))? })
    }

    /// The results of a call on the arrays of a file.
    fn call(&mut self, inputs: &Path) -> Result<Vec<Tensor>> {
        let values = arguments::for_function(Some(inputs), &self.functions.all[0].1, &[])?;
        self.instance.call(0, &values)
    }
}

/// The bounds of all operands of the products: of activations on the examples, of weights for each output feature where they can be.
fn measure_bounds(args: &QuantizeArgs, products: &[QuantizableProduct]) -> Result<HashMap<String, TensorBounds>> {
    let mut tensors: Vec<(&str, Operand)> = Vec::new();
    for product in products {
        let of_weights = Operand::Weights { has_features_last: product.has_features_last };
        for operand in [(product.activation.as_str(), Operand::Activation), (product.weights.as_str(), of_weights)] {
            if !tensors.contains(&operand) {
                tensors.push(operand);
            }
        }
    }
    let fetches = tensors.iter().map(|(name, _)| (*name).to_string()).collect();
    let mut engine = Engine::compile(&GraphArgs { fetches, quiet: true, ..args.graph.clone() })?;
    let mut bounds: HashMap<String, TensorBounds> = HashMap::new();
    for example in &args.calibrate {
        for ((name, operand), value) in tensors.iter().zip(engine.call(example)?) {
            let own = match *operand {
                Operand::Activation => activation_bounds(&value.to_vec(), args.percentile),
                Operand::Weights { has_features_last } => weight_bounds(&value, has_features_last),
            };
            let own = own.ok_or_else(|| {
                Error::user(Code::BadInputs, format!("`{name}` has infinities or NaNs for these inputs"))
                    .in_file(example)
            })?;
            let all = bounds.entry((*name).to_string()).or_insert_with(|| own.clone());
            all.low.iter_mut().zip(&own.low).for_each(|(all, own)| *all = all.min(*own));
            all.high.iter_mut().zip(&own.high).for_each(|(all, own)| *all = all.max(*own));
        }
    }
    Ok(bounds)
}

/// The role of a tensor in a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operand {
    Activation,
    Weights { has_features_last: bool },
}

/// Bounds of an activation that hold `percentile` percent of its values, and zero; `None` where one is not finite.
fn activation_bounds(values: &[f32], percentile: f64) -> Option<TensorBounds> {
    if !values.iter().all(|v| v.is_finite()) {
        return None;
    }
    let mut sorted = values.to_vec();
    let beyond = (values.len() as f64 * (100.0 - percentile) / 200.0) as usize;
    if sorted.is_empty() {
        return Some(TensorBounds { low: vec![0.0], high: vec![0.0] });
    }
    let last = sorted.len() - 1;
    let beyond = beyond.min(last / 2);
    let low = *sorted.select_nth_unstable_by(beyond, f32::total_cmp).1;
    let high = *sorted.select_nth_unstable_by(last - beyond, f32::total_cmp).1;
    Some(TensorBounds { low: vec![low.min(0.0)], high: vec![high.max(0.0)] })
}

/// Symmetric bounds of weights, for each index of the last axis or for all of them; `None` where a weight is not finite.
fn weight_bounds(value: &Tensor, has_features_last: bool) -> Option<TensorBounds> {
    let features = value.dims.last().copied().filter(|_| has_features_last).unwrap_or(1).max(1) as usize;
    let mut largest = vec![0f32; features];
    for (i, v) in value.view::<f32>().iter().enumerate() {
        if !v.is_finite() {
            return None;
        }
        largest[i % features] = largest[i % features].max(v.abs());
    }
    Some(TensorBounds { low: largest.iter().map(|v| -v).collect(), high: largest })
}

/// A line for each output with its error by quantisation on the examples.
fn costs(args: &QuantizeArgs) -> Result<Vec<String>> {
    let mut plain = Engine::compile(&GraphArgs { quiet: true, ..args.graph.clone() })?;
    let keys = graph::npz_result_keys(&args.graph, &plain.functions.all[0].1);
    let fetches = plain.functions.all[0].1.results.iter().map(|result| result.name.clone()).collect();
    let quantized = GraphArgs { graph: args.out.clone(), format: None, fetches, quiet: true, ..args.graph.clone() };
    let mut quantized = Engine::compile(&quantized)?;
    let mut worst = vec![(0f64, 0f64); keys.len()];
    for example in &args.calibrate {
        let (want, got) = (plain.call(example)?, quantized.call(example)?);
        for ((got, want), worst) in got.iter().zip(&want).zip(&mut worst) {
            let error = relative_error(got, want);
            *worst = (worst.0.max(error.largest), worst.1.max(error.rms));
        }
    }
    let line = |(key, (largest, rms)): (&String, &(f64, f64))| {
        format!("{key}: error {largest:.2e} of the largest element, {rms:.2e} in the mean")
    };
    Ok(keys.iter().zip(&worst).map(line).collect())
}
