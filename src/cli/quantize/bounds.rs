//! Bounds of the operands of products: of activations on examples, of weights by their own values.
use super::Engine;
use crate::cli::args::{GraphArgs, QuantizeArgs};
use crate::diag::{Code, Error, Result};
use crate::rewrite::fake_quantization::{QuantizableProduct, TensorBounds};
use crate::tensor::Tensor;
use std::collections::HashMap;

/// The bounds of all operands of the products: of activations on the examples, of weights for each output feature where they can be.
pub(super) fn measure_bounds(
    args: &QuantizeArgs,
    products: &[QuantizableProduct],
) -> Result<HashMap<String, TensorBounds>> {
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
