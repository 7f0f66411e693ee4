//! `verify --calls`: calls in order, by both engines, each with a state of its own.
use super::{Bound, Comparison, compare, expected};
use crate::cli::args::VerifyArgs;
use crate::cli::{graph, sizes};
use crate::diag::Result;
use crate::run::Instance;
use crate::run::npz;
use crate::run::{Interpreter, calls};
use crate::tensor::Tensor;
use std::path::Path;

/// So many roundings may meet where terms cancel.
const ROUNDINGS: f64 = 8.0;

/// The results of every call, and the variables in the end, compared; outputs are told with the number of the call.
pub fn compared(args: &VerifyArgs, path: &Path) -> Result<Vec<Comparison>> {
    let calls = calls::read(path)?;
    let graph = graph::with_signatures(&args.graph, &calls);
    let target = graph::target(&args.target)?;
    let name = graph::model_name(None, &graph.graph)?;
    let (functions, _) = graph::functions(&graph)?;
    let in_file = |e| graph::in_file(e, &graph);
    let mut plain = Interpreter::new(&functions).map_err(in_file)?;
    let native = args.file.of(functions.clone());
    let mut native =
        Instance::compile(native, &name, &target, args.threads.into(), args.file.path()).map_err(in_file)?;
    let told_sizes = sizes::parse(&args.sizes)?;
    let bound = Bound::of(args, target.precision);
    let mut all = Vec::new();
    for (number, call) in calls.iter().enumerate() {
        let function = calls::find_function(&functions, call.signature.as_deref())?;
        let (signature, lowered) = &functions.all[function];
        let keys = graph::result_keys(&graph, lowered);
        let told: Vec<String> = keys.iter().map(|key| format!("call {number}, {signature}: {key}")).collect();
        let values = calls::read_arguments(call, lowered, &told_sizes)?;
        let got = native.call(function, &values).map_err(in_file)?;
        let want = plain.call(function, values).map_err(in_file)?;
        all.extend(compare(&told, "interpreter", &got, &want, &vec![bound; told.len()]));
        if let Some(path) = &call.expect {
            let wanted = expected(&npz::read(path)?, path, &keys, lowered)?;
            all.extend(compare(&told, "expected", &got, &wanted, &vec![bound; told.len()]));
        }
    }
    let state = functions.all.first().map_or(&[][..], |(_, lowered)| &lowered.state);
    let told: Vec<String> = state.iter().map(|v| format!("state: {}", v.info.name)).collect();
    let bound = Bound { floor: rounding(&plain.state), ..bound };
    all.extend(compare(&told, "interpreter", &native.variables(), &plain.state, &vec![bound; told.len()]));
    Ok(all)
}

/// What a few roundings leave of the largest number of a state. A variable may hold nothing else: the moments of a gradient that is 0,
/// such as that of a bias before a normalisation.
fn rounding(state: &[Tensor]) -> f64 {
    let floats = state.iter().filter(|t| t.dtype.is_float());
    let numbers = floats.flat_map(|t| (0..t.len()).filter_map(|i| t.get_f64(i)));
    numbers.map(f64::abs).filter(|v| v.is_finite()).fold(0.0, f64::max) * ROUNDINGS * f64::from(f32::EPSILON)
}
