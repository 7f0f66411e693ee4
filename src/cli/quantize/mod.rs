//! `tfaot quantize`: measures the ranges of activations on examples, and writes the graph with fake quantisation.
mod bounds;
mod budget;

use super::args::{GraphArgs, QuantizeArgs};
use super::progress::{self, Progress};
use super::{ExitStatus, graph, out};
use crate::compile::Functions;
use crate::diag::{Code, Diagnostic, Error, Result};
use crate::import::raw::RawGraph;
use crate::import::{self, FileFormat};
use crate::package::files;
use crate::rewrite::fake_quantization::{QuantizableProduct, TensorBounds, find_products};
use crate::run::{Instance, arguments};
use crate::target::{CodeRequest, Target};
use crate::tensor::Tensor;
use bounds::measure_bounds;
use budget::{Trials, choose_products};
use std::collections::HashMap;
use std::path::Path;

/// Writes the graph with fake quantisation, and prints what it costs on the examples.
pub fn run(args: &QuantizeArgs) -> Result<ExitStatus> {
    check_options(args)?;
    let raw = load(&args.graph)?;
    let search = find_products(&raw);
    let all = search.products.len() + search.kept.len();
    let mut kept: Vec<(String, String)> =
        search.kept.into_iter().map(|(name, reason)| (name, reason.to_string())).collect();
    let mut products = search.products;
    if let Some(unknown) = args.keep.iter().find(|name| !products.iter().any(|p| p.name == **name)) {
        let told = format!("--keep `{unknown}` is no product that could be quantised");
        return Err(Error::user(Code::BadOption, told).in_file(&args.graph.graph));
    }
    products.retain(|product| !args.keep.contains(&product.name));
    kept.extend(args.keep.iter().map(|name| (name.clone(), "--keep names it".to_string())));
    if products.is_empty() {
        let problem = Diagnostic::new(Code::BadOption, "the graph has no product of an activation by constants in f32");
        return Err(Error::from(problem).in_file(&args.graph.graph));
    }
    let _progress = Progress::begin("measuring ranges", args.graph.quiet);
    let bounds = measure_bounds(args, &products)?;
    let zeros = products.extract_if(.., |product| is_zero(product, &bounds));
    kept.extend(zeros.map(|product| (product.name, "its activation is zero on all examples".to_string())));
    progress::set_step("comparing");
    let mut trials = Trials::new(args, &raw, &bounds)?;
    let choice = choose_products(&mut trials, products, args.budget)?;
    kept.extend(choice.kept);
    write(&args.out, choice.trial.graph)?;
    for (name, reason) in &kept {
        out::line(format_args!("  f32  {name}: {reason}"))?;
    }
    out::line(format_args!("{}: {} of {all} products are quantised", args.out.display(), all - kept.len()))?;
    trials.describe(&choice.trial.errors).iter().try_for_each(out::line)?;
    Ok(ExitStatus::Yes)
}

fn check_options(args: &QuantizeArgs) -> Result<()> {
    if !(args.percentile > 50.0 && args.percentile <= 100.0) {
        return Err(Error::user(Code::BadOption, "--percentile is above 50 and at most 100"));
    }
    if args.budget.is_some_and(|budget| !(budget > 0.0 && budget.is_finite())) {
        return Err(Error::user(Code::BadOption, "--budget is a positive number, such as 0.01"));
    }
    Ok(())
}

/// The frozen graph of a file.
fn load(args: &GraphArgs) -> Result<RawGraph> {
    let (format, bytes) = import::load_bytes(&args.graph, args.format.as_deref())?;
    if format != FileFormat::GraphDef {
        let told = format!("quantize takes a frozen GraphDef, and this is a file of the format `{}`", format.name());
        let problem = Diagnostic::new(Code::UnknownFormat, told);
        let problem = problem.help("convert_variables_to_constants_v2 freezes a function");
        return Err(Error::from(problem).in_file(&args.graph));
    }
    RawGraph::parse(&bytes).map_err(|e| e.in_file(&args.graph))
}

/// Whether the activation of a product is zero on all examples. A range of zero alone would make every other input zero.
fn is_zero(product: &QuantizableProduct, bounds: &HashMap<String, TensorBounds>) -> bool {
    bounds.get(&product.activation).is_none_or(|range| range.low == [0.0] && range.high == [0.0])
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
