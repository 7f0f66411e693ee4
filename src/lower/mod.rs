//! Lowering of a TensorFlow graph to HLO: visits the nodes in topological order and calls the lowering function of each node's op.
mod access;
mod call_module;
mod check_hoisting;
mod value_packing;
mod functions;
mod captured_state;
mod loops;
mod c_identifiers;
mod order;
mod convergence;
mod trip_count;
mod branch_select;
mod state;
mod increments;
mod missing_variables;
mod walker;
mod unroll;
mod xla_computations;

use crate::diag::{Code, Diagnostic, Error, Result};
use crate::graph::{Endpoint, Function, Node, NodeId, Program, VariableRole, is_handle};
use crate::hlo::symbolic::{BoundCheck, Builder, DataDependentSize, InstId, Shape, SizeAssumptions};
use crate::hlo::{Module, SizeEquality, SizeRepr, symbolic};
use crate::ops::{self, Value};
use crate::symbolic::constant_dims;
use crate::symbolic::trace::{self, SizeComparison, SizeTrace, SizeVariable};
use crate::symbolic::{Dim, Interval, SizeExpr};
use crate::tensor::{Bounds, Sizes, Tensor, TensorInfo};
pub use access::{Access, AccessAnalysis};
pub use missing_variables::merge_missing_variables;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use walker::{GraphScope, Walker};

/// An argument of the compiled function, which replaces an output of a graph's node.
#[derive(Clone, Debug)]
pub struct Feed {
    /// The output of a node that the argument replaces.
    pub at: Endpoint,
    /// Name, type and fixed sizes of the argument.
    pub info: TensorInfo,
}

/// A variable that keeps its value between calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateVariable {
    /// TensorFlow's name, the name of its field in C, its type and fixed sizes.
    pub info: TensorInfo,
    /// Value before the first call; `None` where an initializer computes it.
    pub initial: Option<Tensor>,
    /// Whether a call writes the variable.
    pub changed: bool,
}

/// A graph lowered to HLO, with names and types of its arguments, results and state. The root of the entry computation is a tuple: one
/// array per fetch, then the new values of the variables that a call changes, in the order of `state`.
#[derive(Clone, Debug)]
pub struct Lowered {
    /// HLO of the function.
    pub module: Module,
    /// Arguments; `args[i]` describes parameter `i` of the entry computation.
    pub args: Vec<TensorInfo>,
    /// Results; `results[i]` describes element `i` of the root tuple.
    pub results: Vec<TensorInfo>,
    /// Variables: parameter `args.len() + i` is the value of `state[i]` before the call. All signatures of a file have the same variables.
    pub state: Vec<StateVariable>,
    /// Run-time checks of requested sizes against upper bounds. The requested sizes, `s32[]`, are elements of the root tuple behind the new
    /// values of variables; a call that requests more than the bound, or a negative size, fails.
    pub bound_checks: Vec<BoundCheck>,
    /// Assumed value and upper bound of each data-dependent size. The sizes of the entry computation are the last elements of the root
    /// tuple. A function with data-dependent sizes is right for the assumed values only: it is one instance of a function with dynamic
    /// sizes.
    pub data_sizes: Vec<(u64, u64)>,
    /// For each axis of each result, the parameter or result that holds the number of valid elements along it; `None` if all are valid.
    /// Empty unless the function is compiled for the upper bounds of dynamic sizes.
    pub result_counts: Vec<Vec<Option<ElementCountSource>>>,
    /// Variants of a function whose sizes vary from call to call; the other fields then describe the variant for the largest sizes.
    pub size_variants: Option<Arc<SizeVariants>>,
}

/// Parameter or result of a module, an `s32[]`, that holds the number of valid elements along an axis of a padded array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ElementCountSource {
    /// A parameter of the entry computation, by index.
    Parameter(usize),
    /// An element of the root tuple, by index.
    Part(usize),
}

/// Variants of a function with dynamic sizes. The module has more parameters and results than callers see: behind the arguments one
/// `s32[]` for each size that the caller passes, behind the results one `s32[]` for each size that the call computes, in the order of
/// `sizes.all`. Array elements beyond the actual sizes are unspecified, in arguments as in results.
#[derive(Clone, Debug)]
pub struct SizeVariants {
    /// Dynamic sizes, and the axes of arguments and results that have them.
    pub sizes: Sizes,
    /// Whether there is one dynamic size, the first axis of arguments and results, and row `i` of the results depends on row `i` of the
    /// arguments alone, so that a call may be split into several.
    pub by_rows: bool,
    /// Variants for smaller upper bounds of the caller's sizes, largest first.
    pub smaller: Vec<SizeBucket>,
    /// Lowers the function for exact sizes, without padding.
    pub exact: FixedSizeLowering,
}

/// Variant of a function with dynamic sizes for upper bounds below those that callers may pass.
#[derive(Clone, Debug)]
pub struct SizeBucket {
    /// Upper bound of each size that the caller passes.
    pub max_sizes: Vec<u64>,
    /// HLO of the variant, with the parameters and results that [`SizeVariants`] describes.
    pub module: Module,
    /// Dimensions of the results.
    pub results: Vec<Vec<u64>>,
    /// Whether the function lowers to different code at the sizes of this bucket, so that a variant for larger bounds gives wrong results
    /// for them.
    pub is_separate: bool,
}

/// Lowers a function for exact sizes, without padding, for the interpreter. The argument lists the caller's sizes, and behind them,
/// optionally, the assumed values of data-dependent sizes in the order of [`Lowered::data_sizes`].
#[derive(Clone)]
pub struct FixedSizeLowering(pub Arc<dyn Fn(&[u64]) -> crate::diag::Result<Lowered> + Send + Sync>);

/// A lowered function together with its module in symbolic sizes.
#[derive(Clone, Debug)]
pub struct SymbolicLowering {
    /// The function with the concrete values of all sizes.
    pub lowered: Lowered,
    /// The module with symbolic sizes; these carry expressions if lowering ran within `symbolic::trace::record`.
    pub module: symbolic::Module,
    /// Data-dependent sizes, in the order of [`Lowered::data_sizes`].
    pub sizes: Vec<DataDependentSize>,
}

/// Lowers a function for given sizes under equalities of data-dependent sizes, and records the expressions and comparisons that lowering
/// makes of these sizes.
#[derive(Clone)]
pub struct SizeRecordingLowering(pub Arc<SizeRecordingFn>);

/// Signature of the function in a [`SizeRecordingLowering`]: takes the caller's sizes and equalities of data-dependent sizes, returns the
/// lowered function and the record of how the sizes were used.
pub type SizeRecordingFn =
    dyn Fn(&[SteppedSize], &[SizeEquality]) -> Result<(SymbolicLowering, SizeTrace), SizeLoweringFailure> + Send + Sync;

/// Error of a [`SizeRecordingLowering`], with the size comparisons that may have caused it.
#[derive(Debug)]
pub struct SizeLoweringFailure {
    /// Diagnostics of every problem that was found.
    pub error: Error,
    /// Comparisons of sizes that the first failed node made, oldest first. Variables are the indices of the caller's sizes, followed by
    /// those of data-dependent sizes in the order of [`Builder::add_data_dependent_size`]. The variable of a size of the caller stands for
    /// its count, the size being `stride · count + offset`. Empty if the problem does not lie in sizes.
    pub comparisons: Vec<SizeComparison>,
}

/// Wraps an error that no comparison of sizes caused.
impl From<Error> for SizeLoweringFailure {
    fn from(error: Error) -> SizeLoweringFailure {
        SizeLoweringFailure { error, comparisons: Vec::new() }
    }
}

impl SizeRecordingLowering {
    /// Makes a recording lowering of `lower`, which takes the caller's sizes and must not create data-dependent ones, by running it in
    /// [`record_size_uses`].
    pub fn new(lower: impl Fn(&[Dim]) -> Result<SymbolicLowering> + Send + Sync + 'static) -> SizeRecordingLowering {
        SizeRecordingLowering(Arc::new(move |sizes, _| {
            let (made, record) = record_size_uses(sizes, |sizes, _| lower(sizes));
            match made {
                Ok(made) => Ok((made, record)),
                Err(error) => {
                    Err(SizeLoweringFailure { error, comparisons: record.comparisons_of_node(None).to_vec() })
                }
            }
        }))
    }
}

/// Runs `lower` with a symbolic size and its count for each of `sizes`, and returns the result of `lower` with the record of how it used
/// the sizes.
pub fn record_size_uses<R>(sizes: &[SteppedSize], lower: impl FnOnce(&[Dim], &[Dim]) -> R) -> (R, SizeTrace) {
    let variable = |s: &SteppedSize| SizeVariable { name: s.name.clone(), range: s.counts, at_hand: s.at_hand };
    let variables: Vec<SizeVariable> = sizes.iter().map(variable).collect();
    trace::trace_size_uses(&variables, |counts| {
        let dims: Vec<Dim> = sizes.iter().zip(counts).map(|(size, &count)| size.size_of_count(count)).collect();
        lower(&dims, counts)
    })
}

/// Dimensions of each argument, with dynamic sizes filled in: `size_values[s]` where `axes[argument][axis]` is `Some(s)`, else the fixed
/// size in `dims`.
pub fn bind_argument_dims<'a>(
    dims: impl Iterator<Item = &'a [u64]>,
    axes: &[Vec<Option<usize>>],
    size_values: &[Dim],
) -> Vec<Vec<Dim>> {
    let one = |(&n, axis): (&u64, &Option<usize>)| axis.map_or_else(|| Dim::from(n), |size| size_values[size]);
    dims.zip(axes).map(|(dims, axes)| dims.iter().zip(axes).map(one).collect()).collect()
}

/// Dynamic size of the form `stride · count + offset`, where only the count varies.
#[derive(Clone, Debug)]
pub struct SteppedSize {
    /// Name of the size in messages.
    pub name: String,
    /// Range of the step count, by which the size varies.
    pub counts: Interval,
    /// Concrete value of the count, for which the function is lowered.
    pub at_hand: i64,
    /// Difference between consecutive sizes, at least 1.
    pub stride: i64,
    /// Size modulo `stride`.
    pub offset: i64,
}

impl SteppedSize {
    /// Makes a size with stride 1 that takes every value within the bounds of `size`; lowering runs with the concrete value `at_hand`.
    pub fn from_size(size: &crate::tensor::Size, at_hand: u64) -> SteppedSize {
        let counts = Interval::new(size.least.into(), size.most.into());
        let at_hand = i64::try_from(at_hand).unwrap_or(i64::MAX);
        SteppedSize { name: size.name.clone(), counts, at_hand, stride: 1, offset: 0 }
    }
    /// The size for a count: `stride · count + offset`.
    pub fn size_of_count(&self, count: Dim) -> Dim {
        count * self.stride + self.offset
    }
}

impl std::fmt::Debug for FixedSizeLowering {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("FixedSizeLowering")
    }
}

/// Lowers the nodes of a graph that the fetches need. All of them must compile.
///
/// The variables of the program are its state. Of the nodes that no fetch needs through data edges only those are lowered that change
/// variables and that fetches or `roots` need through data or control edges.
///
/// # Errors
/// The first problem of each node whose inputs could be lowered, each once, with the node's place, in the order of the walk.
pub fn lower(
    program: &Program,
    feeds: &[Feed],
    fetches: &[(String, Endpoint)],
    roots: &[NodeId],
) -> Result<Lowered, Vec<Diagnostic>> {
    let assumed = SizeAssumptions {
        bounds: Bounds { most: Bounds::default_bound(&[]), ..Bounds::default() },
        ..SizeAssumptions::default()
    };
    lower_with_assumed_sizes(program, feeds, fetches, roots, assumed).map_err(|failure| failure.diagnostics)
}

/// Error of lowering a graph.
#[derive(Debug)]
pub struct LoweringFailure {
    /// Every problem that keeps the graph from being compiled.
    pub diagnostics: Vec<Diagnostic>,
    /// Data-dependent sizes that were created before lowering failed.
    pub data_sizes: Vec<DataDependentSize>,
}

impl LoweringFailure {
    /// Comparisons of sizes that the first failed node made, in the form of [`SizeLoweringFailure::comparisons`]; empty if a diagnostic is
    /// about anything else than shapes. `record` is the record of the failed lowering, which had `given` sizes of the caller.
    pub fn size_comparisons(&self, record: &SizeTrace, given: usize) -> Vec<SizeComparison> {
        if self.diagnostics.iter().any(|d| d.code != Code::ShapeMismatch) {
            return Vec::new();
        }
        let data_dependent =
            |(i, size): (usize, &DataDependentSize)| record.expr(size.assumed).as_var().map(|&v| (v, given + i));
        let own = (0..given).map(|i| Some((i, i)));
        let indices: HashMap<usize, usize> =
            own.chain(self.data_sizes.iter().enumerate().map(data_dependent)).flatten().collect();
        let renumber = |comparison: &SizeComparison| {
            let difference = comparison.difference.substitute(&|v| indices.get(v).copied().map(SizeExpr::var))?;
            Some(SizeComparison { difference, ..comparison.clone() })
        };
        let node = self.diagnostics.first().and_then(|d| d.place.node.as_deref());
        record.comparisons_of_node(node).iter().filter_map(renumber).collect()
    }
}

/// Lowers a graph as [`lower`] does, with assumed values of data-dependent sizes, in the order of [`Lowered::data_sizes`].
///
/// # Errors
/// The diagnostics of [`lower`], with the data-dependent sizes that were created until then.
pub fn lower_with_assumed_sizes(
    program: &Program,
    feeds: &[Feed],
    fetches: &[(String, Endpoint)],
    roots: &[NodeId],
    assumed: SizeAssumptions,
) -> Result<Lowered, LoweringFailure> {
    lower_symbolic(program, feeds, fetches, roots, assumed).map(|open| open.lowered)
}

/// Lowers a graph as [`lower_with_assumed_sizes`] does, and returns the module with symbolic sizes too.
///
/// # Errors
/// Errors of [`lower_with_assumed_sizes`].
pub fn lower_symbolic(
    program: &Program,
    feeds: &[Feed],
    fetches: &[(String, Endpoint)],
    roots: &[NodeId],
    assumed: SizeAssumptions,
) -> Result<SymbolicLowering, LoweringFailure> {
    let mut b = Builder::new("main");
    let told = assumed.feeds.clone();
    b.set_size_assumptions(assumed);
    let mut walker = Walker::new(program, b);
    let mut seeds = HashMap::new();
    for (i, feed) in feeds.iter().enumerate() {
        let dims = told.get(i).cloned().unwrap_or_else(|| constant_dims(&feed.info.dims));
        let id = walker.b.parameter(Shape::array(feed.info.dtype, dims));
        seeds.insert(feed.at, Some(Value::Array(id)));
    }
    let state = variable_parameters(&mut walker, program)
        .map_err(|diagnostics| LoweringFailure { diagnostics, data_sizes: Vec::new() })?;
    let scope = GraphScope { graph: &program.graph, function: None, attrs: &[], roots };
    let targets: Vec<Endpoint> = fetches.iter().map(|f| f.1).collect();
    let values = walker.lower_graph(&scope, seeds, &targets);
    let mut parts = Vec::with_capacity(fetches.len());
    for ((name, at), value) in fetches.iter().zip(values) {
        let Some(value) = value else { continue };
        match fetch_array(value) {
            Ok(id) => parts.push(id),
            Err(error) => {
                let node = &program.graph.nodes[at.node];
                let named = |d: Diagnostic| d.note(format!("it is the fetch `{name}`")).at_node(&node.name, &node.op);
                walker.errors.extend(error.map(named).into_diagnostics());
            }
        }
    }
    let data_sizes = walker.b.data_dependent_sizes().to_vec();
    build_lowered(walker, parts, state, feeds, fetches)
        .map_err(|diagnostics| LoweringFailure { diagnostics, data_sizes })
}

/// Adds a parameter for each variable. Errors: `DynamicShape` for variables without a known type or fixed sizes.
fn variable_parameters(
    walker: &mut Walker,
    program: &Program,
) -> Result<Vec<(StateVariable, InstId)>, Vec<Diagnostic>> {
    let fields =
        c_identifiers::unique_identifiers(program.variables.iter().map(|v| v.called.as_deref().unwrap_or(&v.name)));
    let (mut state, mut bad) = (Vec::new(), Vec::new());
    for (variable, field) in program.variables.iter().zip(fields) {
        let Some((dtype, dims)) = variable.array_type() else {
            let told = format!("the variable `{}` has no fixed sizes or is no array", variable.name);
            bad.push(Diagnostic::new(Code::DynamicShape, told));
            continue;
        };
        let id = walker.b.parameter(Shape::array(dtype, constant_dims(&dims.clone())));
        let number = walker.store.add(variable, dtype, &constant_dims(&dims), id);
        if variable.role == VariableRole::Random {
            walker.store.random = Some(number);
        }
        let info = TensorInfo { name: variable.name.clone(), called: variable.called.clone(), field, dtype, dims };
        state.push((StateVariable { info, initial: variable.value.clone(), changed: false }, id));
    }
    if bad.is_empty() { Ok(state) } else { Err(bad) }
}

/// Diagnostics of nodes that can't be compiled whatever their inputs are, as their op has no lowering and is no library function. Looks at
/// the nodes that the fetches need, and at the functions that these call; `feeds` are the outputs that arguments replace.
pub fn unsupported_nodes(program: &Program, feeds: &[Endpoint], fetches: &[Endpoint]) -> Vec<Diagnostic> {
    let mut out = Vec::new();
    let mut seen: HashSet<Arc<str>> = HashSet::new();
    let mut todo: Vec<Option<&Function>> = vec![None];
    while let Some(function) = todo.pop() {
        let graph = function.map_or(&program.graph, |f| &f.graph);
        let arguments = function.into_iter().flat_map(|f| &f.args).map(|&node| Endpoint { node, port: 0 });
        let seeds: HashSet<Endpoint> =
            if function.is_some() { arguments.collect() } else { feeds.iter().copied().collect() };
        let targets = function.map_or(fetches, |f| &f.rets);
        // Nodes on a cycle have no order; lowering reports them.
        for id in order::needed_nodes(graph, targets, |e| seeds.contains(e)).unwrap_or_default() {
            let node = &graph.nodes[id];
            out.extend(unsupported_reason(program, node).map(|mut d| {
                d.place.function = function.map(|f| f.name.to_string());
                d
            }));
            let called = node.called_functions().into_iter().filter(|name| seen.insert(name.clone()));
            todo.extend(called.filter_map(|name| program.functions.get(&name)).map(Some));
        }
    }
    out
}

/// Diagnostic of a node that can't be compiled whatever its inputs are; `None` for every other node.
fn unsupported_reason(program: &Program, node: &Node) -> Option<Diagnostic> {
    if ops::find_op(&node.op).is_some() || program.functions.contains_key(&node.op) {
        let lost = is_handle(node) && program.variables.is_empty();
        return lost.then(|| ops::missing_value_error(&[node.name.to_string()]).at_node(&node.name, &node.op));
    }
    let told = walker::missing_lowering_error(node).into_diagnostics().into_iter().next()?;
    Some(told.at_node(&node.name, &node.op))
}

/// The array of a fetched value. Errors: `UnsupportedType` for lists, handles, strings and other values that are no arrays.
fn fetch_array(value: Value) -> Result<InstId> {
    let what = match value {
        Value::Array(id) => return Ok(id),
        Value::List(_)
        | Value::UnshapedList { .. }
        | Value::Heterogeneous(_)
        | Value::Structured(_)
        | Value::RaggedList(_) => "a TensorList".to_string(),
        Value::Optional(_) => "an optional".to_string(),
        Value::Ragged(_) => "a RaggedTensor in a variant".to_string(),
        Value::Sparse(_) => "a CSR matrix in a variant".to_string(),
        Value::Variable(_) => "the handle of a variable".to_string(),
        Value::MutableList(_) => "a TensorArray or stack".to_string(),
        Value::Table(_) => "a lookup table".to_string(),
        Value::Text(_) | Value::Strings(_) => "a string".to_string(),
        Value::Unavailable(t) => t.to_string(),
    };
    Err(Error::user(Code::UnsupportedType, format!("the result is {what}; compiled code returns arrays")))
}

fn build_lowered(
    walker: Walker,
    mut parts: Vec<InstId>,
    state: Vec<(StateVariable, InstId)>,
    feeds: &[Feed],
    fetches: &[(String, Endpoint)],
) -> Result<SymbolicLowering, Vec<Diagnostic>> {
    let Walker { mut b, errors, program, store, .. } = walker;
    if !errors.is_empty() || parts.len() != fetches.len() {
        return Err(deduplicate_diagnostics(errors, program));
    }
    let fields = c_identifiers::unique_identifiers(fetches.iter().map(|f| f.0.as_str()));
    let info = |((name, field), &id): ((&String, String), &InstId)| TensorInfo {
        name: name.clone(),
        called: None,
        field,
        dtype: b.dtype(id),
        dims: b.dims(id).iter().map(|&d| SizeRepr::at_current_sizes(d)).collect(),
    };
    let results = fetches.iter().map(|f| &f.0).zip(fields).zip(&parts).map(info).collect();
    let mut variables = Vec::with_capacity(state.len());
    for (i, (mut variable, before)) in state.into_iter().enumerate() {
        let now = store.read(i).map_err(Error::into_diagnostics)?;
        variable.changed = now != before;
        parts.extend(Some(now).filter(|_| variable.changed));
        variables.push(variable);
    }
    check_hoisting::merge_duplicate_checks(&mut b);
    parts.extend(b.bound_checks().iter().map(|c| c.value));
    let bound_checks = b.bound_checks().to_vec();
    parts.extend(b.local_data_dependent_sizes().filter(|f| !f.is_fixed).map(|f| f.count));
    let sizes: Vec<DataDependentSize> = b.data_dependent_sizes().iter().filter(|f| !f.is_fixed).copied().collect();
    let data_sizes =
        sizes.iter().map(|f| [f.assumed, f.most].map(SizeRepr::at_current_sizes)).map(|[a, most]| (a, most)).collect();
    let root = b.tuple(&parts);
    let module = b.finish(root).map_err(Error::into_diagnostics)?;
    let lowered = Lowered {
        module: module.at_current_sizes(),
        args: feeds.iter().map(|f| f.info.clone()).collect(),
        results,
        state: variables,
        bound_checks,
        data_sizes,
        result_counts: Vec::new(),
        size_variants: None,
    };
    Ok(SymbolicLowering { lowered, module, sizes })
}

/// Removes repeated diagnostics (a function may be inlined often), and adds the name of the file to each.
fn deduplicate_diagnostics(errors: Vec<Diagnostic>, program: &Program) -> Vec<Diagnostic> {
    let mut seen = HashSet::new();
    let mut out = Vec::new();
    for mut d in errors {
        if d.place.file.is_none() && !program.source.is_empty() {
            d.place.file = Some(program.source.clone());
        }
        if seen.insert((d.code, d.message.clone(), format!("{:?}", d.place))) {
            out.push(d);
        }
    }
    let mut out = merge_missing_variables(out);
    if out.is_empty() {
        out = Error::internal("lower", "a fetch has no value and no diagnostic says why").into_diagnostics();
    }
    out
}
