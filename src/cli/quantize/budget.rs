//! Choice of the products that are quantised, so that no output departs by more than a budget from that of the graph in f32.
//!
//! Each product is first quantised alone; what that costs orders the products. Then the longest end of that order is searched by bisection
//! whose graph is within the budget. Errors of several products do not add up exactly, so that a bisection may miss a longer end; the graph
//! that it chooses was measured, and is within the budget on the examples.
use super::Engine;
use crate::cli::args::{GraphArgs, QuantizeArgs};
use crate::cli::{graph, progress};
use crate::diag::{Code, Diagnostic, Error, Result, io_error};
use crate::import::raw::RawGraph;
use crate::package::files;
use crate::rewrite::fake_quantization::{QuantizableProduct, TensorBounds, insert_fake_quantization};
use crate::tensor::Tensor;
use crate::verify::comparison::{RelativeError, relative_error};
use std::collections::HashMap;
use tempfile::TempDir;

/// Name of the files in which trials are compiled.
const TRIAL: &str = "trial.pb";

/// A graph with some products quantised, and what that costs.
pub(super) struct Trial {
    /// The graph as a binary GraphDef.
    pub graph: Vec<u8>,
    /// The largest errors of each output on the examples.
    pub errors: Vec<RelativeError>,
}

impl Trial {
    /// The largest error of any output.
    fn worst(&self) -> f64 {
        self.errors.iter().fold(0.0, |worst, error| error.largest.max(worst))
    }
}

/// Compiles graphs with some products quantised, and compares them with the graph in f32 on the examples.
pub(super) struct Trials<'a> {
    args: &'a QuantizeArgs,
    graph: &'a RawGraph,
    bounds: &'a HashMap<String, TensorBounds>,
    plain: Engine,
    folder: TempDir,
}

impl<'a> Trials<'a> {
    pub fn new(
        args: &'a QuantizeArgs,
        graph: &'a RawGraph,
        bounds: &'a HashMap<String, TensorBounds>,
    ) -> Result<Trials<'a>> {
        let plain = Engine::compile(&GraphArgs { quiet: true, ..args.graph.clone() })?;
        let folder = tempfile::tempdir().map_err(|e| io_error("used for trials", &std::env::temp_dir(), &e))?;
        Ok(Trials { args, graph, bounds, plain, folder })
    }

    /// Quantises `products` and no others.
    fn run(&mut self, products: &[QuantizableProduct]) -> Result<Trial> {
        let mut graph = self.graph.clone();
        insert_fake_quantization(&mut graph, products, self.bounds);
        let graph = graph.write();
        files::write_all(self.folder.path(), &[(TRIAL.to_string(), graph.clone())])?;
        let results = &self.plain.functions.all[0].1.results;
        let fetches = results.iter().map(|result| result.name.clone()).collect();
        let path = self.folder.path().join(TRIAL);
        let own = GraphArgs { graph: path, format: None, fetches, quiet: true, ..self.args.graph.clone() };
        let mut errors = vec![RelativeError { largest: 0.0, rms: 0.0 }; results.len()];
        let mut quantized = Engine::compile(&own)?;
        for example in &self.args.calibrate {
            let (want, got) = (self.plain.call(example)?, quantized.call(example)?);
            for ((got, want), worst) in got.iter().zip(&want).zip(&mut errors) {
                let error = error(got, want);
                worst.largest = worst.largest.max(error.largest);
                worst.rms = worst.rms.max(error.rms);
            }
        }
        Ok(Trial { graph, errors })
    }

    /// A line for each output with its error.
    pub fn describe(&self, errors: &[RelativeError]) -> Vec<String> {
        let keys = graph::npz_result_keys(&self.args.graph, &self.plain.functions.all[0].1);
        let line = |(key, error): (&String, &RelativeError)| {
            format!("{key}: error {:.2e} of the largest element, {:.2e} in the mean", error.largest, error.rms)
        };
        keys.iter().zip(errors).map(line).collect()
    }
}

/// Errors of `got`, infinite where one of the two has a number and the other has none.
fn error(got: &Tensor, want: &Tensor) -> RelativeError {
    let is_number = |tensor: &Tensor, i: usize| tensor.get_f64(i).is_some_and(f64::is_finite);
    let (parts, of_want) = (got.interleaved_parts(), want.interleaved_parts());
    if (0..of_want.len()).any(|i| is_number(&parts, i) != is_number(&of_want, i)) {
        return RelativeError { largest: f64::INFINITY, rms: f64::INFINITY };
    }
    relative_error(got, want)
}

/// The products to quantise.
pub(super) struct Choice {
    /// The graph in which they are quantised.
    pub trial: Trial,
    /// Names of the products that stay in f32 because of the budget, each with a clause whose subject is the product.
    pub kept: Vec<(String, String)>,
}

/// Chooses among `products`, all of them if there is no budget.
///
/// # Errors
/// `BadOption` if not one of them can be quantised within the budget.
pub(super) fn choose_products(
    trials: &mut Trials,
    mut products: Vec<QuantizableProduct>,
    budget: Option<f64>,
) -> Result<Choice> {
    let trial = trials.run(&products)?;
    let Some(budget) = budget.filter(|budget| trial.worst() > *budget) else {
        return Ok(Choice { trial, kept: Vec::new() });
    };
    let costs = order_by_cost(trials, &mut products)?;
    // the first `too_few` products kept are not enough, the first `enough` are
    let (mut too_few, mut enough, mut found) = (0, products.len(), None);
    while enough - too_few > 1 {
        let middle = too_few + (enough - too_few) / 2;
        progress::set_step(format_args!("trying {middle} products in f32"));
        let trial = trials.run(&products[middle..])?;
        if trial.worst() <= budget {
            (enough, found) = (middle, Some(trial));
        } else {
            too_few = middle;
        }
    }
    let Some(trial) = found else {
        let least = costs.last().copied().unwrap_or(f64::INFINITY);
        let told =
            format!("no product can be quantised within --budget {budget}: the cheapest alone costs {least:.2e}");
        return Err(Error::from(Diagnostic::new(Code::BadOption, told).help("a larger --budget, or more examples")));
    };
    let kept = products.iter().zip(&costs).take(enough);
    let kept = kept.map(|(product, cost)| (product.name.clone(), format!("quantised alone it costs {cost:.2e}")));
    Ok(Choice { trial, kept: kept.collect() })
}

/// Orders products by the largest error of an output when each is quantised alone, the most costly first. Returns these errors.
fn order_by_cost(trials: &mut Trials, products: &mut Vec<QuantizableProduct>) -> Result<Vec<f64>> {
    let mut costs = Vec::with_capacity(products.len());
    for (i, product) in products.iter().enumerate() {
        progress::set_step(format_args!("quantising product {} of {} alone", i + 1, products.len()));
        costs.push(trials.run(std::slice::from_ref(product))?.worst());
    }
    let mut ordered: Vec<(f64, QuantizableProduct)> = costs.into_iter().zip(products.drain(..)).collect();
    ordered.sort_by(|a, b| b.0.total_cmp(&a.0));
    let (costs, sorted) = ordered.into_iter().unzip();
    *products = sorted;
    Ok(costs)
}
