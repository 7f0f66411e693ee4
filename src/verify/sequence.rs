//! Verification of a sequence of calls, by compiled code and by the interpreter, each with its own state.
use super::comparison::compare;
use super::{Comparison, Tolerance, VerifyOptions, expected_results};
use crate::compile::Functions;
use crate::diag::{Error, Result};
use crate::lower::Lowered;
use crate::run::calls::{self, FileCall};
use crate::run::{Instance, Interpreter, WeightSource, npz};
use crate::tensor::Tensor;
use std::path::Path;

/// Number of rounding errors that may add up where terms cancel.
const ROUNDINGS: f64 = 8.0;

/// A sequence of calls to be verified.
pub struct CallSequence<'a> {
    /// The file of the graph, for diagnostics.
    pub graph: &'a Path,
    /// The functions of the graph.
    pub functions: &'a Functions,
    /// The calls.
    pub calls: &'a [FileCall],
    /// Values by name for varying sizes that no array determines.
    pub sizes: &'a [(String, u64)],
    /// Weights with which the compiled code computes.
    pub weights: WeightSource<'a>,
    /// Options for compiling and comparing.
    pub conditions: VerifyOptions<'a>,
}

/// Compares the results of every call, and the variables after the last one. Outputs are named with the index of the call; `keys`
/// maps a function to the names of its results.
///
/// # Errors
/// Errors of compiling and running; `Code::BadInputs` for arrays of other names or types.
pub fn verify_calls(sequence: &CallSequence, keys: impl Fn(&Lowered) -> Vec<String>) -> Result<Vec<Comparison>> {
    let CallSequence { functions, conditions, .. } = *sequence;
    let in_graph = |e: Error| e.in_file(sequence.graph);
    let mut plain = Interpreter::new(functions).map_err(in_graph)?;
    let prepared = sequence.weights.mark_functions(functions.clone());
    let native =
        Instance::compile(prepared, conditions.name, conditions.code, conditions.threads, sequence.weights.file());
    let mut native = native.map_err(in_graph)?;
    let tolerance = conditions.tolerance(conditions.code.precision);
    let mut all = Vec::new();
    for (number, call) in sequence.calls.iter().enumerate() {
        let function = calls::find_function(functions, call.signature.as_deref())?;
        let (signature, lowered) = &functions.all[function];
        let keys = keys(lowered);
        let names: Vec<String> = keys.iter().map(|key| format!("call {number}, {signature}: {key}")).collect();
        let tolerances = vec![tolerance; names.len()];
        let values = calls::read_arguments(call, lowered, sequence.sizes)?;
        let got = native.call(function, &values).map_err(in_graph)?;
        let want = plain.call(function, values).map_err(in_graph)?;
        all.extend(compare(&names, "interpreter", &got, &want, &tolerances));
        if let Some(path) = &call.expect {
            let wanted = expected_results(&npz::read(path)?, path, &keys, lowered)?;
            all.extend(compare(&names, "expected", &got, &wanted, &tolerances));
        }
    }
    let state = functions.all.first().map_or(&[][..], |(_, lowered)| &lowered.state);
    let names: Vec<String> = state.iter().map(|v| format!("state: {}", v.info.name)).collect();
    let tolerance = Tolerance { floor: rounding_tolerance_of_state(&plain.state), ..tolerance };
    let tolerances = vec![tolerance; names.len()];
    all.extend(compare(&names, "interpreter", &native.variables(), &plain.state, &tolerances));
    Ok(all)
}

/// Difference caused by [`ROUNDINGS`] rounding errors, relative to the largest number of a state. A variable may hold nothing but such
/// errors: the moments of a gradient that is 0, such as that of a bias before a normalization.
pub(super) fn rounding_tolerance_of_state(state: &[Tensor]) -> f64 {
    let floats = state.iter().filter(|t| t.dtype.is_float());
    let numbers = floats.flat_map(|t| (0..t.len()).filter_map(|i| t.get_f64(i)));
    numbers.map(f64::abs).filter(|v| v.is_finite()).fold(0.0, f64::max) * ROUNDINGS * f64::from(f32::EPSILON)
}
