//! Verification of compiled code against the interpreter and expected results; where results differ, the op that departs first.
//!
//! [`verify`] compares one call of a graph's function, [`sequence::verify_calls`] a sequence of calls over one state, and
//! [`compare_engines`] results that the caller has computed.
mod blame;
pub mod comparison;
mod instructions;
mod rounding;
mod self_test;
pub mod sequence;

pub use blame::{Blame, OpComparison};
pub use comparison::{Comparison, Tolerance};
pub use self_test::{SelfTestSource, self_test};

use crate::codegen::Launches;
use crate::compile::{self, Compiled, Functions};
use crate::diag::{Code, Error, Result};
use crate::lower::Lowered;
use crate::prepare::Request;
use crate::run::npz::{self, Arrays};
use crate::run::{self, Instance, Interpreter, WeightSource, arguments};
use crate::target::{CodeRequest, MathType, Precision};
use crate::tensor::{Tensor, TensorInfo};
use comparison::{compare, relative_error, worst_element};
use std::path::Path;

/// Options for compiling and comparing functions.
#[derive(Clone, Copy)]
pub struct VerifyOptions<'a> {
    /// Prefix of C names.
    pub name: &'a str,
    /// The code to compile, for this machine.
    pub code: &'a CodeRequest,
    /// Number of threads of a call.
    pub threads: usize,
    /// Relative tolerance that replaces the default.
    pub rtol: Option<f64>,
    /// Tolerance relative to the largest element of an output that replaces the default.
    pub atol: Option<f64>,
}

impl VerifyOptions<'_> {
    /// Tolerance for code of a precision.
    fn tolerance(&self, precision: Precision) -> Tolerance {
        Tolerance::for_precision(precision).with_overrides(self.rtol, self.atol)
    }

    /// Compiles a function and calls it.
    fn call(&self, lowered: Lowered, args: &[Tensor]) -> Result<Vec<Tensor>> {
        run::compile_and_call(lowered, self.name, self.code, args, self.threads)
    }

    /// Ratio of the largest difference of two arrays to the tolerance for the code's precision.
    fn excess(&self, got: &Tensor, want: &Tensor) -> f64 {
        worst_element(got, want, self.tolerance(self.code.precision)).map_or(0.0, |w| w.excess)
    }
}

/// A call of a graph's function to be verified.
pub struct VerifyCase<'a> {
    /// The file of the graph.
    pub graph: &'a Path,
    /// The file's format, unless it is to be detected.
    pub format: Option<&'a str>,
    /// The request for which the function was lowered.
    pub request: &'a Request,
    /// The lowered functions; the first one is verified.
    pub functions: &'a Functions,
    /// Names of the function's results.
    pub keys: &'a [String],
    /// Arguments of the call.
    pub args: &'a [Tensor],
    /// An npz file of expected results; it may contain intermediate results too.
    pub expect: Option<&'a Path>,
    /// Weights with which the compiled code computes.
    pub weights: WeightSource<'a>,
    /// Whether every intermediate result is compared even if the results agree.
    pub all_ops: bool,
    /// Options for compiling and comparing.
    pub conditions: VerifyOptions<'a>,
}

/// The outcome of a verification.
///
/// ```
/// use tfaot::verify::compare_engines;
///
/// let double = [tfaot::Tensor::of(&[4], &[2f32, 4., 6., 8.])];
/// let outcome = compare_engines(&["y".to_string()], &double, &double, None)?;
/// assert!(outcome.comparisons.iter().all(|c| !c.departs()) && outcome.blame.is_none());
/// # Ok::<(), tfaot::Error>(())
/// ```
pub struct Verification {
    /// A comparison for each result and reference.
    pub comparisons: Vec<Comparison>,
    /// Comparison op by op, if results differ or it was requested.
    pub blame: Option<Blame>,
}

/// Compares a call of compiled code with the interpreter and with expected results. `progress` receives the name of each step.
///
/// Code with rounded weights is compared twice: with the interpreter on the rounded weights, with the tolerance of f32, which detects
/// wrong code; and with the interpreter on the original weights, with a tolerance documented for the precision.
///
/// # Errors
/// Errors of compiling and running; `Code::BadInputs` for expected arrays of other names or types.
pub fn verify(case: &VerifyCase, progress: &dyn Fn(&'static str)) -> Result<Verification> {
    let VerifyCase { functions, keys, args, conditions, .. } = *case;
    let precision = conditions.code.precision;
    let lowered = &functions.all[0].1;
    let reference = case.expect.map(npz::read).transpose()?.unwrap_or_default();
    let wanted = case.expect.map(|path| expected_results(&reference, path, keys, lowered)).transpose()?;
    let in_graph = |e: Error| e.in_file(case.graph);
    progress("interpreting");
    let plain = Interpreter::new(functions).and_then(|mut i| i.call(0, args.to_vec())).map_err(in_graph)?;
    progress("compiling");
    let (compiled, native) = compile_and_call(case, conditions.code).map_err(in_graph)?;
    let tolerance = conditions.tolerance(precision);
    let is_stated = conditions.rtol.is_some() || conditions.atol.is_some() || precision.is_reduced();
    let tolerances = match is_stated {
        true => vec![tolerance; keys.len()],
        false => rounding::rounding_tolerances(functions, args, &plain, tolerance).map_err(in_graph)?,
    };
    let mut all = compare(keys, "interpreter", &native, &plain, &tolerances);
    if let Some(wanted) = &wanted {
        all.extend(compare(keys, "expected", &native, wanted, &tolerances));
    }
    if precision.is_reduced() {
        let references: Vec<&Tensor> = [&plain].into_iter().chain(&wanted).flatten().collect();
        add_unrounded_errors(case, &mut all, &references).map_err(in_graph)?;
        all.extend(compare_rounded(case, compiled, &native).map_err(in_graph)?);
    }
    let blame = blame_ops(case, reference, wanted, &mut all, progress)?;
    Ok(Verification { comparisons: all, blame })
}

fn compile_and_call(case: &VerifyCase, code: &CodeRequest) -> Result<(Compiled, Vec<Tensor>)> {
    let VerifyOptions { name, threads, .. } = case.conditions;
    let functions = case.weights.mark_functions(case.functions.clone());
    let requests = std::slice::from_ref(code);
    let compiled = compile::build_functions(functions, name, name, requests, Launches::Direct, &mut [])?;
    let results = Instance::load(&compiled, &code.target, threads, case.weights.file())?.call(0, case.args)?;
    Ok((compiled, results))
}

/// Adds the errors of code without reduced precision to the comparisons with `references`.
fn add_unrounded_errors(case: &VerifyCase, all: &mut [Comparison], references: &[&Tensor]) -> Result<()> {
    let exact = CodeRequest { precision: Precision::default(), ..case.conditions.code.clone() };
    let (_, unrounded) = compile_and_call(case, &exact)?;
    for (i, (comparison, want)) in all.iter_mut().zip(references).enumerate() {
        comparison.unrounded = Some(relative_error(&unrounded[i % case.keys.len().max(1)], want));
    }
    Ok(())
}

/// Compares code with rounded weights with the interpreter on the rounded weights.
fn compare_rounded(case: &VerifyCase, compiled: Compiled, native: &[Tensor]) -> Result<Vec<Comparison>> {
    let precision = case.conditions.code.precision;
    let mut rounded = case.functions.clone();
    rounded.all.iter_mut().zip(compiled.modules).for_each(|((_, lowered), module)| lowered.module = module);
    let want = Interpreter::new(&rounded)?.with_padding().call(0, case.args.to_vec())?;
    // if factors are rounded when they are loaded, a difference of one f32 bit can become one of a bf16 bit
    let rounds_weights_alone = precision.math != MathType::Bf16;
    let tolerance = case.conditions.tolerance(if rounds_weights_alone { Precision::default() } else { precision });
    let tolerances = vec![tolerance; case.keys.len()];
    Ok(compare(case.keys, "interpreter, rounded", native, &want, &tolerances))
}

/// Compares op by op if requested or if results differ, and adds comparisons with expected arrays that are not results.
fn blame_ops(
    case: &VerifyCase,
    mut reference: Arrays,
    wanted: Option<Vec<Tensor>>,
    all: &mut Vec<Comparison>,
    progress: &dyn Fn(&'static str),
) -> Result<Option<Blame>> {
    let lowered = &case.functions.all[0].1;
    let is_plain = lowered.state.is_empty() && lowered.size_variants.is_none();
    let in_expected = |e: Error| case.expect.into_iter().fold(e, |e, path| e.in_file(path));
    let others = unmatched_keys(&reference, case.keys, &lowered.results);
    if let (false, Some(other)) = (is_plain, others.first()) {
        let told = format!(
            "`{other}` is no result: inside of functions with variables or sizes that vary nothing is looked at"
        );
        return Err(in_expected(Error::user(Code::BadInputs, told)));
    }
    // Ops are identified by TensorFlow's names, whatever the signature calls the results.
    let by_name = lowered.results.iter().map(|r| r.name.clone()).zip(wanted.into_iter().flatten());
    reference.extend(by_name);
    progress("looking for the op that departs");
    if !is_plain || !(case.all_ops || !others.is_empty() || all.iter().any(Comparison::departs)) {
        return Ok(None);
    }
    let mut blame = blame::compare_ops(case, &reference, &others).map_err(in_expected)?;
    all.append(&mut blame.others);
    Ok(Some(blame).filter(|_| case.all_ops || all.iter().any(Comparison::departs)))
}

/// Selects the expected results from the arrays of a file, which may contain intermediate results too.
///
/// Varying sizes may have any value up to their bounds; whether they are those of the call is compared later.
fn expected_results(reference: &Arrays, path: &Path, keys: &[String], lowered: &Lowered) -> Result<Vec<Tensor>> {
    let infos = &lowered.results;
    let in_file = |e: Error| e.in_file(path);
    let one = |(i, (key, info)): (usize, (&String, &TensorInfo))| {
        let found = reference.get(key).or_else(|| arguments::find(reference, info, infos));
        let found = found.ok_or_else(|| Error::user(Code::BadInputs, format!("there is no array `{key}`")));
        let found = found.map_err(in_file)?;
        let mut wanted = TensorInfo { called: Some(key.clone()), ..info.clone() };
        let axes = lowered.size_variants.as_ref().and_then(|s| s.sizes.results.get(i));
        for ((most, &n), axis) in wanted.dims.iter_mut().zip(&found.dims).zip(axes.into_iter().flatten()) {
            if axis.is_some() && n <= *most {
                *most = n;
            }
        }
        arguments::convert_to_argument(found, &wanted).map_err(in_file)
    };
    keys.iter().zip(infos).enumerate().map(one).collect()
}

/// Keys of the expectation that are neither keys nor names of results.
fn unmatched_keys(reference: &Arrays, keys: &[String], results: &[TensorInfo]) -> Vec<String> {
    let bare = |name: &str| name.strip_suffix(":0").unwrap_or(name).to_string();
    let names = results.iter().flat_map(|r| [Some(&r.name), r.called.as_ref()].into_iter().flatten());
    let outputs: Vec<String> = keys.iter().chain(names).map(|name| bare(name)).collect();
    reference.keys().filter(|key| !outputs.contains(&bare(key))).cloned().collect()
}

/// A call of a module in which the first departing instruction is to be found.
pub struct FirstDepartingOp<'a> {
    /// The module.
    pub lowered: &'a Lowered,
    /// Arguments of the call.
    pub args: &'a [Tensor],
    /// Options for compiling and comparing.
    pub conditions: VerifyOptions<'a>,
}

/// Compares results of compiled code, named `keys`, with those of the interpreter. If they differ, `bisection` is compared instruction by
/// instruction.
///
/// # Errors
/// Errors of compiling and running a bisection.
pub fn compare_engines(
    keys: &[String],
    native: &[Tensor],
    plain: &[Tensor],
    bisection: Option<FirstDepartingOp>,
) -> Result<Verification> {
    let comparisons = compare(keys, "interpreter", native, plain, &vec![Tolerance::EXACT; keys.len()]);
    let bisection = bisection.filter(|_| comparisons.iter().any(Comparison::departs));
    let blame = bisection.map(|b| instructions::compare_instructions(b.lowered, b.args, &b.conditions)).transpose()?;
    Ok(Verification { comparisons, blame })
}
