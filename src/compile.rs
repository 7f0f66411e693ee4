//! The straight line from a file to an object.
mod buckets;
mod build;
mod module;
mod open;
mod size_equalities;

use crate::codegen::{Launches, Object};
use crate::diag::{Code, Diagnostic, Error, Result};
use crate::dump::Dump;
use crate::graph::{Endpoint, NodeId, Program, Variable, VariableRole};
use crate::hlo::{self, Assumed, Claim, ClaimQuantity, Inst, InstId, Module, Op, Shape, SizeRepr};
use crate::import::Loaded;
use crate::kernel;
use crate::lower::{self, Feed, Lowered, LoweringFailure, SizeTracedLowering, SymbolicLowering, TracedSize};
use crate::package::names;
use crate::prepare::{self, Prepared, Request};
use crate::report::ClusterBorder;
use crate::symbolic::Dim;
use crate::symbolic::trace::Record;
use crate::target::{CodeRequest, Precision, Reduced};
use crate::tensor::TensorInfo;
use crate::{bounded, import, optimize, schedule, tensor};
pub use build::{Compiled, Functions, Outputs, at_bounds, build_all, build_outputs, in_file, initial, places, weights};
pub use module::{module_for, of_module, write_known_calls};
use size_equalities::Fixed;
use std::path::Path;
use std::sync::Arc;

/// A compiled graph.
#[derive(Debug)]
pub struct Built {
    /// The module after optimisation.
    pub module: Module,
    /// The loops.
    pub program: kernel::Program,
    /// The machine code.
    pub object: Object,
}

/// One function of a module.
#[derive(Debug)]
pub struct Entry {
    /// The signature's name; `run` where the file has none.
    pub name: String,
    /// The program with its arguments and results.
    pub lowered: Lowered,
}

/// A module as HLO, before any optimisation.
#[derive(Debug)]
pub struct Fronts {
    /// The signatures that were chosen, in that order; all of them have the same state.
    pub entries: Vec<Entry>,
    /// Function that initializes the variables without a value in the file: no arguments, and no results but the state.
    pub init: Option<Lowered>,
    /// Assumptions made where the caller gave no choice: feeds, fetches, sizes.
    pub assumptions: Vec<String>,
    /// Warnings about effects that the code leaves out: `EffectDropped`.
    pub warnings: Vec<Diagnostic>,
}

/// Files to HLO: graphs are lowered, with the variables that calls change as state; modules of HLO and StableHLO are taken as they
/// are.
///
/// # Errors
/// Those of the three steps; every blocker of the lowering of all entries.
pub fn fronts(path: &Path, format: Option<&str>, request: &Request) -> Result<Fronts> {
    let program = match import::load_any(path, format)? {
        Loaded::Graph(program) => *program,
        Loaded::Module(bytes) => {
            let entry = Entry { name: "run".to_string(), lowered: of_module(&bytes, request)? };
            return Ok(Fronts { entries: vec![entry], init: None, assumptions: Vec::new(), warnings: Vec::new() });
        }
    };
    let (prepare::Entries { mut entries, init }, mut all) = prepared_and_lowered(program, request)?;
    let draws = |l: &Lowered, p: &Prepared| {
        p.program.variables.iter().zip(&l.state).any(|(v, s)| v.role == VariableRole::Random && s.changed)
    };
    let random = entries.iter().any(|e| e.prepared.program.variables.iter().any(|v| v.role == VariableRole::Random));
    if random && init.is_none() && !all.iter().zip(&entries).any(|(l, e)| draws(l, &e.prepared)) {
        // what would have drawn was in branches that are never taken
        for entry in &mut entries {
            entry.prepared.program.variables.retain(|v| v.role != VariableRole::Random);
        }
        all = lowered_entries(&entries)?;
    }
    let init = init.map(|prepared| lowered(&prepared)).transpose()?;
    let mut fronts = Fronts { entries: Vec::new(), init, assumptions: Vec::new(), warnings: Vec::new() };
    for (entry, lowered) in entries.into_iter().zip(all) {
        let bounds = lowered.claims.iter().filter(|c| c.is_allowed).map(assumption);
        for bound in bounds {
            if !fronts.assumptions.contains(&bound) {
                fronts.assumptions.push(bound);
            }
        }
        fronts.entries.push(Entry { name: entry.name, lowered });
        let new: Vec<String> =
            entry.prepared.assumptions.into_iter().filter(|a| !fronts.assumptions.contains(a)).collect();
        fronts.assumptions.extend(new);
        fronts.warnings.extend(entry.prepared.warnings);
    }
    Ok(fronts)
}

/// The entries of a program, prepared and lowered. Variables whose declared shapes leave axes open have the sizes of their first values,
/// or, if that is not to be compiled, values of several sizes.
fn prepared_and_lowered(program: Program, request: &Request) -> Result<(prepare::Entries, Vec<Lowered>)> {
    let attempt = |program: Program, request: &Request| {
        let entries = prepare::entries(program, request)?;
        let lowered = lowered_entries(&entries.entries)?;
        Ok((entries, lowered))
    };
    if !prepare::may_grow(&program) {
        return attempt(program, request);
    }
    attempt(program.clone(), request).or_else(|error: Error| match error {
        Error::User(_) => attempt(program, &Request { variables_grow: true, ..request.clone() }),
        internal => Err(internal),
    })
}

/// Message for a bound that is assumed because it does not follow from the program.
fn assumption(Claim { node, quantity, most, .. }: &Claim) -> String {
    match quantity {
        ClaimQuantity::Size => {
            format!("the size that values say at `{node}` is assumed to be at most {most}; --bound changes that")
        }
        ClaimQuantity::Rounds => {
            format!("the loop `{node}`, whose lists grow, is assumed to end within {most} rounds; --bound changes that")
        }
        // never allowed by the caller
        ClaimQuantity::Check(_) => String::new(),
    }
}

fn lowered_entries(entries: &[prepare::PreparedEntry]) -> Result<Vec<Lowered>> {
    let (mut all, mut bad) = (Vec::new(), Vec::new());
    for entry in entries {
        match lowered(&entry.prepared) {
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

/// A prepared program as HLO, with the names that it has in C.
///
/// Where sizes vary it is of the largest, with what is there besides in `sized`; `Code::OpenSize` where it can't be one function.
///
/// # Errors
/// Every blocker.
pub fn lowered(prepared: &Prepared) -> Result<Lowered> {
    let most: Vec<u64> = prepared.sizes.iter().map(|s| s.most).collect();
    let try_at = |sizes: &[u64], found: &[u64], fixed: &[Fixed]| {
        let one = |(size, &n): (&tensor::Size, &u64)| TracedSize::from_size(size, n);
        let sizes: Vec<TracedSize> = prepared.sizes.iter().zip(sizes).map(one).collect();
        recorded_at(prepared, &sizes, found, fixed).map(|(open, _)| open.lowered)
    };
    let (lowered, fixed) =
        size_equalities::search(prepared, &most, &try_at).map_err(|all| open_blockers(all, &prepared.sizes))?;
    if prepared.sizes.is_empty() && lowered.data_sizes.is_empty() && lowered.claims.is_empty() {
        return Ok(lowered);
    }
    let own = prepared.clone();
    let traced = SizeTracedLowering(Arc::new(move |sizes| {
        recorded_at(&own, sizes, &[], &fixed).map_err(|failure| open_blockers(failure.diagnostics, &own.sizes))
    }));
    bounded::lower(&prepared.sizes, prepared.axes.clone(), &traced)
}

/// A prepared program for these sizes, with how they are used; those that values say are taken to be `found`, as far as it goes.
fn recorded_at(
    prepared: &Prepared,
    sizes: &[TracedSize],
    found: &[u64],
    fixed: &[Fixed],
) -> Result<(SymbolicLowering, Record), LoweringFailure> {
    lower::record_size_uses(sizes, |dims| {
        let at = prepared.at(&dims.iter().map(|d| SizeRepr::at_hand(*d)).collect::<Vec<u64>>());
        let feeds = lower::bind_argument_dims(at.feeds.iter().map(|f| &f.info.dims[..]), &prepared.axes, dims);
        open_at(&at, found, feeds, fixed)
    })
}

fn open_at(
    prepared: &Prepared,
    found: &[u64],
    feeds: Vec<Vec<Dim>>,
    fixed: &[Fixed],
) -> Result<SymbolicLowering, LoweringFailure> {
    let Prepared { program, feeds: cut_feeds, fetches, roots, .. } = prepared;
    let assumed = Assumed {
        sizes: found.to_vec(),
        bounds: prepared.bounds.clone(),
        fixed: fixed.iter().map(|f| (f.number, f.anchor(&feeds))).collect(),
        checks: prepared.checks,
        feeds,
    };
    let mut open = lowered_with(program, cut_feeds, fetches, roots, assumed)?;
    for (info, called) in open.lowered.results.iter_mut().zip(&prepared.called) {
        info.called.clone_from(called);
    }
    names::of_signature(&mut open.lowered.results);
    Ok(open)
}

/// A part of a program as HLO with the names that it has in C: a function of its feeds, and behind them of what the variables hold that
/// it takes; its results are its fetches, and behind them what the variables hold then that it changes.
///
/// The second value has those variables in their order, by the first nodes that give their handles.
///
/// # Errors
/// Every blocker.
pub fn lowered_part(program: &Program, part: &ClusterBorder) -> Result<(Lowered, Vec<PartVariable>)> {
    if part.variables.is_empty() {
        return Ok((lowered_alone(program, part)?, Vec::new()));
    }
    let mut own = Program { variables: Vec::new(), ..program.clone() };
    // what runs before the part is none of its work
    own.graph.nodes.values_mut().for_each(|node| node.controls = [].into());
    import::find_variables(&mut own)?;
    let nodes = &program.graph.nodes;
    let is_taken = |v: &Variable| part.variables.iter().any(|&id| v.handles.contains(&nodes[id].name));
    own.variables.retain(is_taken);
    let mut lowered = lowered_alone(&own, part)?;
    let mut taken = Vec::new();
    for (variable, state) in own.variables.iter().zip(std::mem::take(&mut lowered.state)) {
        let handle = nodes.iter().find(|(_, n)| variable.handles.first() == Some(&n.name)).map(|(id, _)| id);
        taken.extend(handle.map(|handle| PartVariable { handle, info: state.info.clone(), changed: state.changed }));
        lowered.results.extend(Some(state.info.clone()).filter(|_| state.changed));
        lowered.args.push(state.info);
    }
    names::settle(&mut lowered.args);
    names::settle(&mut lowered.results);
    Ok((lowered, taken))
}

/// A variable that a part of a program takes.
#[derive(Clone, Debug)]
pub struct PartVariable {
    /// The node that gives its handle.
    pub handle: NodeId,
    /// Name, type and sizes of the variable.
    pub info: TensorInfo,
    /// Whether the part changes it.
    pub changed: bool,
}

fn lowered_alone(program: &Program, part: &ClusterBorder) -> Result<Lowered> {
    let lowered = lowered_with(program, &part.feeds, &part.fetches, &part.roots, Assumed::default());
    let lowered = lowered.map_err(|failure| blockers(failure.diagnostics))?.lowered;
    if lowered.data_sizes.is_empty() && lowered.claims.is_empty() {
        return Ok(lowered);
    }
    let told = "how large a result is depends on values at run time, and a part of a graph has fixed sizes";
    Err(Error::user(Code::DynamicShape, told))
}

fn lowered_with(
    program: &Program,
    feeds: &[Feed],
    fetches: &[(String, Endpoint)],
    roots: &[NodeId],
    assumed: Assumed,
) -> Result<SymbolicLowering, LoweringFailure> {
    let mut open = lower::lower_symbolic(program, feeds, fetches, roots, assumed)?;
    // C names go into the object's metadata, so they are settled before anything is scheduled
    names::settle(&mut open.lowered.args);
    names::settle(&mut open.lowered.results);
    Ok(open)
}

/// HLO to better HLO and loops, for the largest sizes where they vary; `source` is what `NAME_info()->source` says.
///
/// # Errors
/// Those of every step from HLO to kernels.
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
    let mut lowered = at_bounds(lowered);
    let reduced = optimise(&mut lowered.module, request.precision, dump)?;
    let program = schedule::build(&lowered, name, source, request)?;
    Ok((lowered.module, kernel::Program { reduced, ..program }))
}

/// All passes, and what is rounded on request.
fn optimise(module: &mut Module, precision: Precision, dump: &mut Option<Dump>) -> Result<Reduced> {
    passes(module, dump)?;
    optimize::reduce(module, precision)
}

/// All passes; a dump sees the module before them and after each that changed it. Errors: those of the passes, `Code::TooLarge`.
fn passes(module: &mut Module, dump: &mut Option<Dump>) -> Result<()> {
    hlo::sizes::check(module)?;
    let Some(dump) = dump else {
        optimize::run(module)?;
        return optimize::expand(module);
    };
    dump.before(module)?;
    let mut seen = Ok(());
    optimize::run_with(module, &[], |pass, module, changed, _| {
        if changed == optimize::Changed::Yes && seen.is_ok() {
            seen = dump.after_pass(module, pass);
        }
    })?;
    seen?;
    optimize::expand(module)
}

/// HLO to machine code; `dump` takes what XLA's flags ask for.
///
/// # Errors
/// Those of every step from HLO to the object.
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
    build_all(functions, name, source, &requests, launches, std::slice::from_mut(dump))?.only()
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

/// A module that was read as text, with the form that the lowering gives: array parameters, and a root that is a flat tuple.
///
/// Arguments and results are named `0`, `1`, ... leaf by leaf.
///
/// # Errors
/// `Code::HloUnsupported` for parameters and results that hold no arrays, such as tokens.
pub fn wrap(mut module: Module) -> Result<Lowered> {
    let entry = module.entry;
    // It tells the shapes that are about to change.
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
            let (op, operands) = split(comp, &shape, &mut params)?;
            comp.insts[old].op = op;
            comp.insts[old].operands = operands;
        }
    }
    comp.params = params;
    let shape = comp.insts[comp.root].shape.clone();
    let results = leaves(&shape, "r", 0)?;
    let mut parts = Vec::new();
    flatten(comp, comp.root, &mut parts);
    let shapes = parts.iter().map(|&p| comp.insts[p].shape.clone()).collect();
    comp.root = push(comp, Op::Tuple, parts, Shape::Tuple(shapes));
    let (state, claims, found, used) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    Ok(Lowered { module, args, results, state, claims, data_sizes: found, result_counts: used, size_variants: None })
}

/// Names and types of the arrays in `shape`; numbers start at `from`.
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

/// The op and operands that make a tuple from a new parameter for each of its leaves.
fn split(comp: &mut crate::hlo::Computation, shape: &Shape, params: &mut Vec<InstId>) -> Result<(Op, Vec<InstId>)> {
    let parts = shape.as_tuple().ok_or_else(|| Error::internal("wrap", "a parameter that is no tuple"))?;
    let mut operands = Vec::new();
    for part in parts {
        let operand = if part.as_tuple().is_some() {
            let (op, operands) = split(comp, part, params)?;
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

/// The leaves of `id` in order, as instructions.
fn flatten(comp: &mut crate::hlo::Computation, id: InstId, out: &mut Vec<InstId>) {
    let Shape::Tuple(parts) = comp.insts[id].shape.clone() else { return out.push(id) };
    for (i, part) in parts.into_iter().enumerate() {
        let element = push(comp, Op::GetTupleElement(i), vec![id], part);
        flatten(comp, element, out);
    }
}

fn push(comp: &mut crate::hlo::Computation, op: Op, operands: Vec<InstId>, shape: Shape) -> InstId {
    let name = format!("{}.leaf.{}", op.name(), comp.insts.len());
    comp.insts.push(Inst { name, op, operands, shape, metadata: Default::default(), extra: Vec::new() })
}
