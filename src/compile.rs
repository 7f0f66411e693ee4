//! Compilation from a file to an object: calls the steps of the pipeline in order.
mod buckets;
mod build;
mod module;
mod dynamic_module;

use crate::codegen::{Launches, Object};
use crate::diag::{Code, Diagnostic, Error, Result};
use crate::dump::Dump;
use crate::graph::{Endpoint, NodeId, Program, Variable, VariableRole};
use crate::hlo::{
    self, AssumedSizes, BoundCheck, CheckedQuantity, Inst, InstId, Module, Op, Shape, SizeAssumptions, SizeEquality,
    SizeRepr,
};
use crate::import::Loaded;
use crate::kernel;
use crate::lower::{
    self, Feed, Lowered, LoweringFailure, SizeLoweringFailure, SizeRecordingLowering, SteppedSize, SymbolicLowering,
};
use crate::package::names;
use crate::prepare::{self, PreparedProgram, Request};
use crate::report::ClusterBorder;
use crate::symbolic::Dim;
use crate::symbolic::trace::SizeTrace;
use crate::target::{CodeRequest, QuantizedProducts, RoundingCounts};
use crate::tensor::TensorInfo;
use crate::{bounded, import, optimize, schedule, tensor};
pub use build::{
    BuildOutputs, Compiled, Functions, build_functions, build_outputs, function_at_bounds, initial_values,
    make_weights_replaceable, plan_weights, variable_slots,
};
pub use module::{expand_library_calls, lower_hosted_module, lower_module_file, specialize_module};
use std::path::Path;
use std::sync::Arc;

/// A compiled graph.
#[derive(Debug)]
pub struct Built {
    /// Optimized HLO.
    pub module: Module,
    /// Scheduled kernels.
    pub program: kernel::Program,
    /// Machine code.
    pub object: Object,
}

/// A lowered signature of a model.
#[derive(Debug)]
pub struct Entry {
    /// Name of the signature; `run` if the file has none.
    pub name: String,
    /// HLO with arguments, results and state.
    pub lowered: Lowered,
}

/// All functions of a file as HLO, before any optimization.
#[derive(Debug)]
pub struct LoweredModel {
    /// Chosen signatures, in the order of the request; all have the same state.
    pub entries: Vec<Entry>,
    /// Function that initializes the variables without a value in the file; takes no arguments, and returns only the state.
    pub init: Option<Lowered>,
    /// Assumptions made where the caller gave no choice: feeds, fetches, sizes.
    pub assumptions: Vec<String>,
    /// Warnings about effects that the code leaves out: `EffectDropped`.
    pub warnings: Vec<Diagnostic>,
}

/// Reads a file, and lowers its functions to HLO. Graphs are imported, prepared and lowered, with the variables that calls change as
/// state; modules of HLO and StableHLO are read as they are.
///
/// # Errors
/// Errors of import, preparation and lowering; all diagnostics of the lowering of all entries.
pub fn load_and_lower(path: &Path, format: Option<&str>, request: &Request) -> Result<LoweredModel> {
    let program = match import::load_any(path, format)? {
        Loaded::Graph(program) => *program,
        Loaded::Module(bytes) => {
            let entry = Entry { name: "run".to_string(), lowered: lower_module_file(&bytes, request)? };
            return Ok(LoweredModel {
                entries: vec![entry],
                init: None,
                assumptions: Vec::new(),
                warnings: Vec::new(),
            });
        }
    };
    let (prepare::PreparedFunctions { mut entries, init }, mut all) = prepare_and_lower_entries(program, request)?;
    let draws = |l: &Lowered, p: &PreparedProgram| {
        p.program.variables.iter().zip(&l.state).any(|(v, s)| v.role == VariableRole::Random && s.changed)
    };
    let random = entries.iter().any(|e| e.prepared.program.variables.iter().any(|v| v.role == VariableRole::Random));
    if random && init.is_none() && !all.iter().zip(&entries).any(|(l, e)| draws(l, &e.prepared)) {
        // only branches that are never taken draw random numbers
        for entry in &mut entries {
            entry.prepared.program.variables.retain(|v| v.role != VariableRole::Random);
        }
        all = lower_entries(&entries)?;
    }
    let init = init.map(|prepared| lower_prepared(&prepared)).transpose()?;
    let mut load_and_lower = LoweredModel { entries: Vec::new(), init, assumptions: Vec::new(), warnings: Vec::new() };
    for (entry, lowered) in entries.into_iter().zip(all) {
        let bounds = lowered.bound_checks.iter().filter(|c| c.is_allowed).map(assumption);
        for bound in bounds {
            if !load_and_lower.assumptions.contains(&bound) {
                load_and_lower.assumptions.push(bound);
            }
        }
        load_and_lower.entries.push(Entry { name: entry.name, lowered });
        let new: Vec<String> =
            entry.prepared.assumptions.into_iter().filter(|a| !load_and_lower.assumptions.contains(a)).collect();
        load_and_lower.assumptions.extend(new);
        load_and_lower.warnings.extend(entry.prepared.warnings);
    }
    Ok(load_and_lower)
}

/// Prepares and lowers the entries of a program. Variables whose declared shapes have unknown axes keep the sizes of their initial values;
/// if that can't be compiled, they become resizable.
fn prepare_and_lower_entries(
    program: Program,
    request: &Request,
) -> Result<(prepare::PreparedFunctions, Vec<Lowered>)> {
    let attempt = |program: Program, request: &Request| {
        let entries = prepare::prepare_entries(program, request)?;
        let lowered = lower_entries(&entries.entries)?;
        Ok((entries, lowered))
    };
    if !prepare::has_resizable_variables(&program) {
        return attempt(program, request);
    }
    attempt(program.clone(), request).or_else(|error: Error| match error {
        Error::User(_) => attempt(program, &Request { variables_grow: true, ..request.clone() }),
        internal => Err(internal),
    })
}

/// Message for a bound that is assumed because it does not follow from the program.
fn assumption(BoundCheck { node, quantity, most, .. }: &BoundCheck) -> String {
    match quantity {
        CheckedQuantity::Size => {
            format!("the size that values say at `{node}` is assumed to be at most {most}; --bound changes that")
        }
        CheckedQuantity::Rounds => {
            format!("the loop `{node}`, whose lists grow, is assumed to end within {most} rounds; --bound changes that")
        }
        // never allowed by the caller
        CheckedQuantity::Check(_) => String::new(),
    }
}

fn lower_entries(entries: &[prepare::PreparedEntry]) -> Result<Vec<Lowered>> {
    let (mut all, mut bad) = (Vec::new(), Vec::new());
    for entry in entries {
        match lower_prepared(&entry.prepared) {
            Ok(lowered) => all.push(lowered),
            Err(Error::User(mut more)) => {
                more.retain(|d| !bad.contains(d));
                bad.extend(more);
            }
            Err(other) => return Err(other),
        }
    }
    if bad.is_empty() { Ok(all) } else { Err(Error::User(bad)) }
}

/// Lowers a prepared program to HLO with names in C. With dynamic sizes the module is that of the largest sizes, and `size_variants` holds
/// the others.
///
/// # Errors
/// All diagnostics of lowering; `Code::OpenSize` where no single module serves every size.
pub fn lower_prepared(prepared: &PreparedProgram) -> Result<Lowered> {
    let own = prepared.clone();
    let traced = SizeRecordingLowering(Arc::new(move |sizes, equalities| lower_traced(&own, sizes, equalities)));
    if prepared.sizes.is_empty() {
        // a single lowering is enough if no size varies
        match (traced.0)(&[], &[]) {
            Ok((open, _)) if open.lowered.data_sizes.is_empty() && open.lowered.bound_checks.is_empty() => {
                return Ok(open.lowered);
            }
            Err(failure) if failure.comparisons.is_empty() => return Err(failure.error),
            Ok(_) | Err(_) => {}
        }
    }
    bounded::lower(&prepared.sizes, prepared.axes.clone(), &traced)
}

/// Lowers a prepared program with symbolic sizes under equalities of data-dependent ones, and returns the record of their uses.
fn lower_traced(
    prepared: &PreparedProgram,
    sizes: &[SteppedSize],
    equalities: &[SizeEquality],
) -> Result<(SymbolicLowering, SizeTrace), SizeLoweringFailure> {
    let (made, record) = lower::record_size_uses(sizes, |dims, counts| {
        let at = prepared.with_fixed_sizes(&dims.iter().map(|d| SizeRepr::at_current_sizes(*d)).collect::<Vec<u64>>());
        let feeds = lower::bind_argument_dims(at.feeds.iter().map(|f| &f.info.dims[..]), &prepared.axes, dims);
        lower_symbolic_at(&at, feeds, counts, equalities)
    });
    match made {
        Ok(made) => Ok((made, record)),
        Err(failure) => {
            let comparisons = failure.size_comparisons(&record, sizes.len());
            Err(SizeLoweringFailure { error: open_blockers(failure.diagnostics, &prepared.sizes), comparisons })
        }
    }
}

fn lower_symbolic_at(
    prepared: &PreparedProgram,
    feeds: Vec<Vec<Dim>>,
    counts: &[Dim],
    equalities: &[SizeEquality],
) -> Result<SymbolicLowering, LoweringFailure> {
    let PreparedProgram { program, feeds: cut_feeds, fetches, roots, .. } = prepared;
    let assumed = SizeAssumptions {
        sizes: AssumedSizes::Distinct,
        bounds: prepared.bounds.clone(),
        equalities: equalities.to_vec(),
        counts: counts.to_vec(),
        checks: prepared.checks,
        feeds,
    };
    let mut open = lower_program(program, cut_feeds, fetches, roots, assumed)?;
    for (info, called) in open.lowered.results.iter_mut().zip(&prepared.called) {
        info.called.clone_from(called);
    }
    names::name_after_signature(&mut open.lowered.results);
    Ok(open)
}

/// Lowers a part of a program (a cluster) to HLO with names in C. Arguments are the feeds of the part, then the values of the variables
/// that it uses; results are its fetches, then the new values of the variables that it changes.
///
/// The second value lists those variables in the order of the arguments.
///
/// # Errors
/// All diagnostics of lowering.
pub fn lower_part(program: &Program, part: &ClusterBorder) -> Result<(Lowered, Vec<PartVariable>)> {
    if part.variables.is_empty() {
        return Ok((lower_part_graph(program, part)?, Vec::new()));
    }
    let mut own = Program { variables: Vec::new(), ..program.clone() };
    // control edges from outside of the part are dropped
    own.graph.nodes.values_mut().for_each(|node| node.controls = [].into());
    import::find_variables(&mut own)?;
    let nodes = &program.graph.nodes;
    let is_taken = |v: &Variable| part.variables.iter().any(|&id| v.handles.contains(&nodes[id].name));
    own.variables.retain(is_taken);
    let mut lowered = lower_part_graph(&own, part)?;
    let mut taken = Vec::new();
    for (variable, state) in own.variables.iter().zip(std::mem::take(&mut lowered.state)) {
        let handle = nodes.iter().find(|(_, n)| variable.handles.first() == Some(&n.name)).map(|(id, _)| id);
        taken.extend(handle.map(|handle| PartVariable { handle, info: state.info.clone(), changed: state.changed }));
        lowered.results.extend(Some(state.info.clone()).filter(|_| state.changed));
        lowered.args.push(state.info);
    }
    names::make_names_unique(&mut lowered.args);
    names::make_names_unique(&mut lowered.results);
    Ok((lowered, taken))
}

/// A variable that a part of a program uses.
#[derive(Clone, Debug)]
pub struct PartVariable {
    /// Node that creates the handle.
    pub handle: NodeId,
    /// Name, type and sizes of the variable.
    pub info: TensorInfo,
    /// Whether the part writes the variable.
    pub changed: bool,
}

fn lower_part_graph(program: &Program, part: &ClusterBorder) -> Result<Lowered> {
    let lowered = lower_program(program, &part.feeds, &part.fetches, &part.roots, SizeAssumptions::default());
    let lowered = lowered.map_err(|failure| blockers(failure.diagnostics))?.lowered;
    if lowered.data_sizes.is_empty() && lowered.bound_checks.is_empty() {
        return Ok(lowered);
    }
    let told = "how large a result is depends on values at run time, and a part of a graph has fixed sizes";
    Err(Error::user(Code::DynamicShape, told))
}

fn lower_program(
    program: &Program,
    feeds: &[Feed],
    fetches: &[(String, Endpoint)],
    roots: &[NodeId],
    assumed: SizeAssumptions,
) -> Result<SymbolicLowering, LoweringFailure> {
    let mut open = lower::lower_symbolic(program, feeds, fetches, roots, assumed)?;
    // C names go into the object's metadata, so they are settled before anything is scheduled
    names::make_names_unique(&mut open.lowered.args);
    names::make_names_unique(&mut open.lowered.results);
    Ok(open)
}

/// Optimizes and schedules a function, for its largest sizes if they vary. `source` becomes `NAME_info()->source`.
///
/// # Errors
/// Errors of every step from HLO to kernels.
pub fn plan(
    lowered: Lowered,
    name: &str,
    source: &str,
    request: impl Into<CodeRequest>,
) -> Result<(Module, kernel::Program)> {
    plan_and_dump(lowered, name, source, &request.into(), &mut None)
}

fn plan_and_dump(
    lowered: Lowered,
    name: &str,
    source: &str,
    request: &CodeRequest,
    dump: &mut Option<Dump>,
) -> Result<(Module, kernel::Program)> {
    let mut lowered = function_at_bounds(lowered);
    let (reduced, quantized) = optimize_for(&mut lowered.module, std::slice::from_ref(request), dump)?;
    let program = schedule::build(&lowered, name, source, request)?;
    Ok((lowered.module, kernel::Program { reduced, quantized: quantized.into(), ..program }))
}

/// Runs all passes over HLO, computes products of quantised values on integers where all processors have instructions for that, and stores
/// weights in reduced precision on request.
fn optimize_for(
    module: &mut Module,
    requests: &[CodeRequest],
    dump: &mut Option<Dump>,
) -> Result<(RoundingCounts, QuantizedProducts)> {
    run_passes(module, dump)?;
    let obstacle = requests.iter().find_map(CodeRequest::obstacle_to_integers);
    let precision = requests.first().map(|r| r.precision).unwrap_or_default();
    let quantized = optimize::multiply_quantized_values_as_integers(module, precision.quantized, obstacle)?;
    Ok((optimize::reduce_precision(module, precision)?, quantized))
}

/// Runs all passes over HLO. A dump gets the module before them and after each that changed it. Errors: those of the passes,
/// `Code::TooLarge`.
fn run_passes(module: &mut Module, dump: &mut Option<Dump>) -> Result<()> {
    hlo::sizes::check(module)?;
    let Some(dump) = dump else {
        optimize::run(module)?;
        return optimize::expand(module);
    };
    dump.before_optimization(module)?;
    let mut seen = Ok(());
    optimize::run_passes(module, &[], |pass, module, changed, _| {
        if changed == optimize::Changed::Yes && seen.is_ok() {
            seen = dump.after_pass(module, pass);
        }
    })?;
    seen?;
    optimize::expand(module)
}

/// Compiles a function to machine code; `dump` writes the dumps that XLA's flags request.
///
/// # Errors
/// Errors of every step from HLO to the object.
pub fn build(
    lowered: Lowered,
    name: &str,
    source: &str,
    request: impl Into<CodeRequest>,
    launches: Launches,
    dump: &mut Option<Dump>,
) -> Result<Built> {
    let functions = Functions { all: vec![(name.to_string(), lowered)], init: None };
    let requests = [request.into()];
    build_functions(functions, name, source, &requests, launches, std::slice::from_mut(dump))?.into_only_program()
}

fn blockers(all: Vec<Diagnostic>) -> Error {
    if all.is_empty() { Error::internal("lower", "a refusal without a reason") } else { Error::User(all) }
}

/// The blockers of a function whose sizes vary; those that shapes are in the way of say which sizes these are.
fn open_blockers(all: Vec<Diagnostic>, sizes: &[tensor::Size]) -> Error {
    let told =
        sizes.iter().map(|s| format!("`{}` from {} to {}", s.name, s.least, s.most)).collect::<Vec<_>>().join(", ");
    let one = |d: Diagnostic| match d.code {
        Code::ShapeMismatch if !sizes.is_empty() => d.note(format!("it must hold for every size: {told}")),
        _ => d,
    };
    blockers(all.into_iter().map(one).collect())
}

/// Name of the source that an object records: the file's name without its folders, so that its bytes don't depend on them.
pub fn source_name(path: &Path) -> String {
    path.file_name().map_or_else(|| "-".to_string(), |n| n.to_string_lossy().into_owned())
}

/// Converts a module that was read from a file to the form of lowered graphs: parameters are arrays, and the root is a flat tuple.
///
/// Arguments and results are named `0`, `1`, ... array by array.
///
/// # Errors
/// `Code::HloUnsupported` for parameters and results that hold no arrays, such as tokens.
pub fn wrap_module(mut module: Module) -> Result<Lowered> {
    let entry = module.entry;
    // the layout repeats shapes that change here
    module.extra.retain(|(name, _)| name != "entry_computation_layout");
    let comp = &mut module.comps[entry];
    let mut args = Vec::new();
    let mut params = Vec::new();
    for old in std::mem::take(&mut comp.params) {
        let shape = comp.insts[old].shape.clone();
        args.extend(leaves(&shape, "p", args.len())?);
        if let Shape::Array(_) = &shape {
            comp.insts[old].op = Op::Parameter(params.len());
            params.push(old);
        } else {
            let (op, operands) = tuple_of_parameters(comp, &shape, &mut params)?;
            comp.insts[old].op = op;
            comp.insts[old].operands = operands;
        }
    }
    comp.params = params;
    let shape = comp.insts[comp.root].shape.clone();
    let results = leaves(&shape, "r", 0)?;
    let mut parts = Vec::new();
    flatten_leaves(comp, comp.root, &mut parts);
    let shapes = parts.iter().map(|&p| comp.insts[p].shape.clone()).collect();
    comp.root = push(comp, Op::Tuple, parts, Shape::Tuple(shapes));
    let (state, bound_checks, found, used) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    Ok(Lowered {
        module,
        args,
        results,
        state,
        bound_checks,
        data_sizes: found,
        result_counts: used,
        size_variants: None,
    })
}

/// Names and types of the arrays in `shape`, numbered from `from` on.
fn leaves(shape: &Shape, prefix: &str, from: usize) -> Result<Vec<TensorInfo>> {
    match shape {
        Shape::Array(a) => Ok(vec![TensorInfo {
            name: from.to_string(),
            called: None,
            field: format!("{prefix}{from}"),
            dtype: a.dtype,
            dims: a.dims.clone(),
        }]),
        Shape::Tuple(parts) => {
            let mut all = Vec::new();
            for part in parts {
                all.extend(leaves(part, prefix, from + all.len())?);
            }
            Ok(all)
        }
        Shape::Token | Shape::Opaque | Shape::Buffer(_) => Err(Error::user(
            Code::HloUnsupported,
            format!("compiled code can't take or give a value of shape `{shape}`"),
        )),
    }
}

/// Adds a parameter for each array in `shape`, a tuple; returns op and operands that build the tuple from these.
fn tuple_of_parameters(
    comp: &mut crate::hlo::Computation,
    shape: &Shape,
    params: &mut Vec<InstId>,
) -> Result<(Op, Vec<InstId>)> {
    let parts = shape.as_tuple().ok_or_else(|| Error::internal("wrap", "a parameter that is no tuple"))?;
    let mut operands = Vec::new();
    for part in parts {
        let operand = if part.as_tuple().is_some() {
            let (op, operands) = tuple_of_parameters(comp, part, params)?;
            push(comp, op, operands, part.clone())
        } else {
            let id = push(comp, Op::Parameter(params.len()), vec![], part.clone());
            params.push(id);
            id
        };
        operands.push(operand);
    }
    Ok((Op::Tuple, operands))
}

/// Appends the arrays in the value of `id`, in order, to `out`.
fn flatten_leaves(comp: &mut crate::hlo::Computation, id: InstId, out: &mut Vec<InstId>) {
    let Shape::Tuple(parts) = comp.insts[id].shape.clone() else { return out.push(id) };
    for (i, part) in parts.into_iter().enumerate() {
        let element = push(comp, Op::GetTupleElement(i), vec![id], part);
        flatten_leaves(comp, element, out);
    }
}

fn push(comp: &mut crate::hlo::Computation, op: Op, operands: Vec<InstId>, shape: Shape) -> InstId {
    let name = format!("{}.leaf.{}", op.name(), comp.insts.len());
    comp.insts.push(Inst { name, op, operands, shape, metadata: Default::default(), extra: Vec::new() })
}
