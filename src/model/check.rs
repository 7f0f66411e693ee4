//! Search for everything that prevents a model from being compiled.
use super::ModelFile;
use crate::diag::{Code, Diagnostic, Error, Result};
use crate::graph::Endpoint;
use crate::import::{self, Loaded};
use crate::prepare::{self, Request};
use crate::target::{CodeRequest, QuantizedProducts};
use crate::{compile, infer, lower};

/// Result of checking whether a model can be compiled.
#[derive(Clone, Debug, Default)]
pub struct Check {
    /// Everything that prevents the model from being compiled; empty if it can be.
    pub blockers: Vec<Diagnostic>,
    /// Effects of ops that compiled code omits.
    pub warnings: Vec<Diagnostic>,
    /// The products of quantised activations, if the model can be compiled.
    pub quantized: QuantizedProducts,
}

/// Lowers and schedules a model, and looks for further blockers behind the first one. An internal error counts as a blocker.
///
/// # Errors
/// `Code::Io` if there is no such file.
pub fn check(model: &ModelFile, request: &Request, name: &str, code: &CodeRequest) -> Result<Check> {
    let fronts = compile::load_and_lower(&model.path, model.format.as_deref(), request);
    let warnings = fronts.as_ref().map_or(Vec::new(), |fronts| fronts.warnings.clone());
    let mut quantized = QuantizedProducts::default();
    let mut plan = |lowered| -> Result<()> {
        let (_, program) = compile::plan(lowered, name, "", code)?;
        quantized.add(QuantizedProducts::clone(&program.quantized));
        Ok(())
    };
    let problem = match fronts {
        Ok(fronts) => fronts.entries.into_iter().find_map(|e| plan(e.lowered).err()),
        Err(e) => Some(e),
    };
    let mut all = problem.map(|e| e.in_file(&model.path).into_diagnostics()).unwrap_or_default();
    if let [only] = &all[..]
        && only.code == Code::Io
    {
        return Err(Error::User(all));
    }
    if !all.is_empty() {
        // a file that can't be read to its end was reported already
        let more = hidden(model, request).unwrap_or_default();
        for d in Error::User(more).in_file(&model.path).into_diagnostics() {
            let is_known = |a: &Diagnostic| a.code == d.code && a.place == d.place;
            if !all.iter().any(is_known) {
                all.push(d);
            }
        }
        all = lower::merge_missing_variables(all);
    }
    Ok(Check { blockers: all, warnings, quantized })
}

/// Finds blockers that others hide: ops without a lowering behind open feeds or behind one another, and shapes that contradict each
/// other for any open sizes.
fn hidden(model: &ModelFile, request: &Request) -> Result<Vec<Diagnostic>> {
    let Loaded::Graph(mut program) = import::load_any(&model.path, model.format.as_deref())? else {
        return Ok(Vec::new());
    };
    program.freeze_variables(|_| false);
    let mut reached = prepare::cut_to_request(*program, request)?;
    if let Err(error) = prepare::functionalize(&mut reached) {
        return Ok(error.into_diagnostics());
    }
    let feeds: Vec<Endpoint> = reached.feeds.iter().map(|f| f.at).collect();
    let fetches: Vec<Endpoint> = reached.fetches.iter().map(|f| f.1).collect();
    let mut all = lower::unsupported_nodes(&reached.program, &feeds, &fetches);
    all.extend(infer::infer(&reached.program, &reached.feeds).problems);
    Ok(all)
}
