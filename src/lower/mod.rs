//! TensorFlow graph to HLO: walks the nodes in topological order and calls the row of each.
mod access;
mod call_module;
mod check_hoisting;
mod flat;
mod functions;
mod holders;
mod loops;
mod names;
mod order;
mod convergence;
mod rounds;
mod branch_select;
mod state;
mod steps;
mod variables;
mod walker;
mod unroll;
mod xla;

use crate::diag::{Code, Diagnostic, Error, Result};
use crate::graph::{Endpoint, Function, Node, NodeId, Program, VariableRole, is_handle};
use crate::hlo::open::{Assumed, Builder, Claim, DataSize, InstId, Shape};
use crate::hlo::{Module, SizeRepr, open};
use crate::ops::{self, Value};
use crate::symbolic::fixed;
use crate::symbolic::trace::{self, Record, SizeVariable};
use crate::symbolic::{Dim, Interval};
use crate::tensor::{Bounds, Sizes, Tensor, TensorInfo};
pub use access::{Access, Accesses};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
pub use variables::grouped;
use walker::{Scope, Walker};

/// One argument of the compiled function.
#[derive(Clone, Debug)]
pub struct Feed {
    /// The output that it replaces.
    pub at: Endpoint,
    /// Name, type and fixed sizes of the argument.
    pub info: TensorInfo,
}

/// A variable that keeps its value between calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateVariable {
    /// TensorFlow's name, the name of its field in C, its type and fixed sizes.
    pub info: TensorInfo,
    /// Initial value, before the first call; `None` where an initializer computes it.
    pub initial: Option<Tensor>,
    /// Whether a call gives it a new value.
    pub changed: bool,
}

/// A lowered graph: the root of the entry is a tuple with one array a fetch, and behind them the new values of the variables
/// that a call changes, in the order of `state`.
#[derive(Clone, Debug)]
pub struct Lowered {
    /// The program.
    pub module: Module,
    /// Parameter `i` is `args[i]`.
    pub args: Vec<TensorInfo>,
    /// Part `i` of the root is `results[i]`.
    pub results: Vec<TensorInfo>,
    /// Parameter `args.len() + i` is the value of `state[i]` before the call; all signatures of a file have the same variables.
    pub state: Vec<StateVariable>,
    /// Run-time checks of requested sizes against upper bounds. The requested sizes, `s32[]`, are parts of the root behind the new values of
    /// variables; a call that asks for more than the bound, or for less than nothing, fails.
    pub claims: Vec<Claim>,
    /// Assumed value and upper bound of each data-dependent size, by its number; the sizes of the entry are the last parts of the root. Such
    /// a function is no more than an instance of one whose sizes vary.
    pub found: Vec<(u64, u64)>,
    /// Of a function for the largest of sizes that vary: for each result what says how many elements along each axis callers read.
    /// Empty for any other.
    pub used: Vec<Vec<Option<Count>>>,
    /// Variants and sizes of a function whose sizes vary from call to call; the other fields are then of the largest sizes.
    pub sized: Option<Arc<Sized>>,
}

/// Where a module has a number of elements, an `s32[]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    /// A parameter of the entry.
    Parameter(usize),
    /// A part of the root.
    Part(usize),
}

/// A function whose sizes vary. Its module has more parameters and results than callers see: behind the arguments one `s32[]` for
/// each size that the caller says, behind the results one `s32[]` for each size that the call says, in the order of `sizes.all`.
/// Elements of arrays beyond the actual sizes are anything on the way in and on the way out.
#[derive(Clone, Debug)]
pub struct Sized {
    /// The sizes and the axes that have them.
    pub sizes: Sizes,
    /// Whether there is one size, the first axis of arguments and results, and each row of the results follows from the same row of
    /// the arguments: a call may be done in pieces.
    pub by_rows: bool,
    /// The same function for smaller bounds of the sizes that the caller says, largest first.
    pub smaller: Vec<Rung>,
    /// The function for exactly some sizes.
    pub exact: Exact,
}

/// A function for sizes up to some bounds that are below those of its face.
#[derive(Clone, Debug)]
pub struct Rung {
    /// The largest value of each size that the caller says.
    pub most: Vec<u64>,
    /// The module, with parameters and results as [`Sized`] has them.
    pub module: Module,
    /// The sizes of its results.
    pub results: Vec<Vec<u64>>,
    /// Whether it is another function than those of larger bounds, which do not serve its sizes.
    pub is_apart: bool,
}

/// Gives a function for exactly the sizes that the caller says, without bounds and padding, for the interpreter. Behind them
/// may stand what data-dependent sizes are taken to be, in the order of [`Lowered::found`].
#[derive(Clone)]
pub struct Exact(pub Arc<dyn Fn(&[u64]) -> crate::diag::Result<Lowered> + Send + Sync>);

/// A function with its sizes as lowering computed them.
#[derive(Clone, Debug)]
pub struct OpenLowered {
    /// The function for the sizes at hand.
    pub lowered: Lowered,
    /// The function's module with symbolic sizes, which carry expressions where these are recorded.
    pub module: open::Module,
    /// The data-dependent sizes, in the order of [`Lowered::found`].
    pub sizes: Vec<DataSize>,
}

/// Lowers a function for these sizes, and records how they are used.
#[derive(Clone)]
pub struct Traced(pub Arc<dyn Fn(&[TracedSize]) -> crate::diag::Result<(OpenLowered, Record)> + Send + Sync>);

impl Traced {
    /// Wraps `lower` so that it runs with symbolic sizes and their uses are recorded.
    pub fn of(lower: impl Fn(&[Dim]) -> crate::diag::Result<OpenLowered> + Send + Sync + 'static) -> Traced {
        Traced(Arc::new(move |sizes| recorded(sizes, &lower)))
    }
}

/// Runs `lower` with these sizes as expressions, and gives back what was recorded.
///
/// # Errors
/// An error of `lower`, as it is.
pub fn recorded<R, E>(sizes: &[TracedSize], lower: impl FnOnce(&[Dim]) -> Result<R, E>) -> Result<(R, Record), E> {
    let variable = |s: &TracedSize| SizeVariable { name: s.name.clone(), range: s.counts, at_hand: s.at_hand };
    let variables: Vec<SizeVariable> = sizes.iter().map(variable).collect();
    let (made, record) = trace::record(&variables, |counts| {
        lower(&sizes.iter().zip(counts).map(|(size, &count)| size.dim(count)).collect::<Vec<Dim>>())
    });
    made.map(|made| (made, record))
}

/// The sizes of each argument, some of which are those of `said` by the numbers in `axes`.
pub fn said_dims<'a>(
    dims: impl Iterator<Item = &'a [u64]>,
    axes: &[Vec<Option<usize>>],
    said: &[Dim],
) -> Vec<Vec<Dim>> {
    let one = |(&n, axis): (&u64, &Option<usize>)| axis.map_or_else(|| Dim::from(n), |size| said[size]);
    dims.zip(axes).map(|(dims, axes)| dims.iter().zip(axes).map(one).collect()).collect()
}

/// A size that the caller says, counted in steps: it is `by` times the count, and `rest`.
#[derive(Clone, Debug)]
pub struct TracedSize {
    /// Name of the count in messages.
    pub name: String,
    /// Range of the count.
    pub counts: Interval,
    /// The count for which the function is lowered.
    pub at_hand: i64,
    /// 1 or more.
    pub by: i64,
    /// Less than `by`.
    pub rest: i64,
}

impl TracedSize {
    /// Any size within its bounds, `at_hand` at hand.
    pub fn single(size: &crate::tensor::Size, at_hand: u64) -> TracedSize {
        let counts = Interval::new(size.least.into(), size.most.into());
        let at_hand = i64::try_from(at_hand).unwrap_or(i64::MAX);
        TracedSize { name: size.name.clone(), counts, at_hand, by: 1, rest: 0 }
    }
    /// The size of this count.
    pub fn dim(&self, count: Dim) -> Dim {
        count * self.by + self.rest
    }
}

impl std::fmt::Debug for Exact {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Exact")
    }
}

/// Lowers the whole graph (must-compile), or says everything that blocks it: the first problem of each node whose inputs are sound.
///
/// The variables of the program are its state. Nodes that no fetch needs through data edges are not looked at, but for those
/// that change variables and that fetches or `roots` need through any edges. Diagnostics come in the order in which nodes are
/// reached, each once, with the node's place.
///
/// # Errors
/// Every blocker.
pub fn lower(
    program: &Program,
    feeds: &[Feed],
    fetches: &[(String, Endpoint)],
    roots: &[NodeId],
) -> Result<Lowered, Vec<Diagnostic>> {
    let assumed = Assumed { bounds: Bounds { most: Bounds::assumed(&[]), ..Bounds::default() }, ..Assumed::default() };
    lower_assuming(program, feeds, fetches, roots, assumed).map_err(|failure| failure.told)
}

/// Why a graph can't be lowered.
#[derive(Debug)]
pub struct Failure {
    /// Every blocker.
    pub told: Vec<Diagnostic>,
    /// The data-dependent sizes, as far as they were met.
    pub found: Vec<DataSize>,
}

/// The same, with something taken for granted of data-dependent sizes, in the order of [`Lowered::found`].
///
/// # Errors
/// The blockers, and which of those sizes were met.
pub fn lower_assuming(
    program: &Program,
    feeds: &[Feed],
    fetches: &[(String, Endpoint)],
    roots: &[NodeId],
    assumed: Assumed,
) -> Result<Lowered, Failure> {
    lower_open(program, feeds, fetches, roots, assumed).map(|open| open.lowered)
}

/// The same with the sizes as lowering computed them, which carry expressions where it is recorded.
///
/// # Errors
/// Those of [`lower_assuming`].
pub fn lower_open(
    program: &Program,
    feeds: &[Feed],
    fetches: &[(String, Endpoint)],
    roots: &[NodeId],
    assumed: Assumed,
) -> Result<OpenLowered, Failure> {
    let mut b = Builder::new("main");
    let told = assumed.feeds.clone();
    b.assume(assumed);
    let mut walker = Walker::new(program, b);
    let mut seeds = HashMap::new();
    for (i, feed) in feeds.iter().enumerate() {
        let dims = told.get(i).cloned().unwrap_or_else(|| fixed(&feed.info.dims));
        let id = walker.b.parameter(Shape::array(feed.info.dtype, dims));
        seeds.insert(feed.at, Some(Value::Array(id)));
    }
    let state = parameters(&mut walker, program).map_err(|told| Failure { told, found: Vec::new() })?;
    let scope = Scope { graph: &program.graph, function: None, attrs: &[], roots };
    let targets: Vec<Endpoint> = fetches.iter().map(|f| f.1).collect();
    let values = walker.walk(&scope, seeds, &targets);
    let mut parts = Vec::with_capacity(fetches.len());
    for ((name, at), value) in fetches.iter().zip(values) {
        let Some(value) = value else { continue };
        match array(value) {
            Ok(id) => parts.push(id),
            Err(error) => {
                let node = &program.graph.nodes[at.node];
                let named = |d: Diagnostic| d.note(format!("it is the fetch `{name}`")).at_node(&node.name, &node.op);
                walker.errors.extend(error.map(named).into_diagnostics());
            }
        }
    }
    let found = walker.b.data_sizes().to_vec();
    finish(walker, parts, state, feeds, fetches).map_err(|told| Failure { told, found })
}

/// A parameter for each variable. Errors: `DynamicShape` for variables whose type or sizes are not settled.
fn parameters(walker: &mut Walker, program: &Program) -> Result<Vec<(StateVariable, InstId)>, Vec<Diagnostic>> {
    let fields = names::fields(program.variables.iter().map(|v| v.called.as_deref().unwrap_or(&v.name)));
    let (mut state, mut bad) = (Vec::new(), Vec::new());
    for (variable, field) in program.variables.iter().zip(fields) {
        let Some((dtype, dims)) = variable.array() else {
            let told = format!("the variable `{}` has no fixed sizes or is no array", variable.name);
            bad.push(Diagnostic::new(Code::DynamicShape, told));
            continue;
        };
        let id = walker.b.parameter(Shape::array(dtype, fixed(&dims.clone())));
        let number = walker.store.add(variable, dtype, &fixed(&dims), id);
        if variable.role == VariableRole::Random {
            walker.store.random = Some(number);
        }
        let info = TensorInfo { name: variable.name.clone(), called: variable.called.clone(), field, dtype, dims };
        state.push((StateVariable { info, initial: variable.value.clone(), changed: false }, id));
    }
    if bad.is_empty() { Ok(state) } else { Err(bad) }
}

/// Diagnostics of nodes that can't be compiled whatever the inputs are: nodes that the fetches need, also in functions that these call, whose
/// op has no lowering and is no function. Feed `i` is given at `feeds[i]`; a fed Placeholder is no such node.
pub fn refusals(program: &Program, feeds: &[Endpoint], fetches: &[Endpoint]) -> Vec<Diagnostic> {
    let mut out = Vec::new();
    let mut seen: HashSet<Arc<str>> = HashSet::new();
    let mut todo: Vec<Option<&Function>> = vec![None];
    while let Some(function) = todo.pop() {
        let graph = function.map_or(&program.graph, |f| &f.graph);
        let arguments = function.into_iter().flat_map(|f| &f.args).map(|&node| Endpoint { node, port: 0 });
        let seeds: HashSet<Endpoint> =
            if function.is_some() { arguments.collect() } else { feeds.iter().copied().collect() };
        let targets = function.map_or(fetches, |f| &f.rets);
        // What is on a cycle has no order; the lowering says so.
        for id in order::needed(graph, targets, |e| seeds.contains(e)).unwrap_or_default() {
            let node = &graph.nodes[id];
            out.extend(refusal(program, node).map(|mut d| {
                d.place.function = function.map(|f| f.name.to_string());
                d
            }));
            let called = node.called().into_iter().filter(|name| seen.insert(name.clone()));
            todo.extend(called.filter_map(|name| program.functions.get(&name)).map(Some));
        }
    }
    out
}

/// Why a node can't be compiled whatever it is fed, if so.
fn refusal(program: &Program, node: &Node) -> Option<Diagnostic> {
    if ops::find(&node.op).is_some() || program.functions.contains_key(&node.op) {
        let lost = is_handle(node) && program.variables.is_empty();
        return lost.then(|| ops::valueless(&[node.name.to_string()]).at_node(&node.name, &node.op));
    }
    let told = walker::unknown_op(node).into_diagnostics().into_iter().next()?;
    Some(told.at_node(&node.name, &node.op))
}

/// The array that a fetch must be.
fn array(value: Value) -> Result<InstId> {
    let what = match value {
        Value::Array(id) => return Ok(id),
        Value::List(_) | Value::UnshapedList { .. } | Value::Unlike(_) | Value::Structured(_) | Value::Jagged(_) => {
            "a TensorList".to_string()
        }
        Value::Optional(_) => "an optional".to_string(),
        Value::Ragged(_) => "a RaggedTensor in a variant".to_string(),
        Value::Sparse(_) => "a CSR matrix in a variant".to_string(),
        Value::Variable(_) => "the handle of a variable".to_string(),
        Value::Holder(_) => "a TensorArray or stack".to_string(),
        Value::Table(_) => "a lookup table".to_string(),
        Value::Text(_) | Value::Strings(_) => "a string".to_string(),
        Value::Unavailable(t) => t.to_string(),
    };
    Err(Error::user(Code::UnsupportedType, format!("the result is {what}; compiled code returns arrays")))
}

fn finish(
    walker: Walker,
    mut parts: Vec<InstId>,
    state: Vec<(StateVariable, InstId)>,
    feeds: &[Feed],
    fetches: &[(String, Endpoint)],
) -> Result<OpenLowered, Vec<Diagnostic>> {
    let Walker { mut b, errors, program, store, .. } = walker;
    if !errors.is_empty() || parts.len() != fetches.len() {
        return Err(tidy(errors, program));
    }
    let fields = names::fields(fetches.iter().map(|f| f.0.as_str()));
    let info = |((name, field), &id): ((&String, String), &InstId)| TensorInfo {
        name: name.clone(),
        called: None,
        field,
        dtype: b.dtype(id),
        dims: b.dims(id).iter().map(|&d| SizeRepr::at_hand(d)).collect(),
    };
    let results = fetches.iter().map(|f| &f.0).zip(fields).zip(&parts).map(info).collect();
    let mut variables = Vec::with_capacity(state.len());
    for (i, (mut variable, before)) in state.into_iter().enumerate() {
        let now = store.read(i).map_err(Error::into_diagnostics)?;
        variable.changed = now != before;
        parts.extend(Some(now).filter(|_| variable.changed));
        variables.push(variable);
    }
    check_hoisting::merge_checks(&mut b);
    parts.extend(b.claims().iter().map(|c| c.value));
    let claims = b.claims().to_vec();
    parts.extend(b.found_here().filter(|f| !f.is_fixed).map(|f| f.count));
    let sizes: Vec<DataSize> = b.data_sizes().iter().filter(|f| !f.is_fixed).copied().collect();
    let found = sizes.iter().map(|f| [f.assumed, f.most].map(SizeRepr::at_hand)).map(|[a, most]| (a, most)).collect();
    let root = b.tuple(&parts);
    let module = b.finish(root).map_err(Error::into_diagnostics)?;
    let lowered = Lowered {
        module: module.at_hand(),
        args: feeds.iter().map(|f| f.info.clone()).collect(),
        results,
        state: variables,
        claims,
        found,
        used: Vec::new(),
        sized: None,
    };
    Ok(OpenLowered { lowered, module, sizes })
}

/// Each diagnostic once (a function may be called often), with the file.
fn tidy(errors: Vec<Diagnostic>, program: &Program) -> Vec<Diagnostic> {
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
    let mut out = grouped(out);
    if out.is_empty() {
        out = Error::internal("lower", "a fetch has no value and no diagnostic says why").into_diagnostics();
    }
    out
}
