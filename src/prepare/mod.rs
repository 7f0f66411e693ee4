//! Preparation of a program for lowering: cuts the graph to what the fetches need, with feeds of known type and shape.
//!
//! Every feed becomes a `Placeholder` with a fixed shape: a fed Placeholder is completed, and a fed output of any other node is replaced by
//! a new one. Nodes that only feeds depend on are dropped.
mod binding;
mod defaults;
mod effects;
mod entries;
mod feed_spec;
mod fields;
mod functional;
mod resizable_variables;
mod implementations;
mod names;
mod prune;
mod reachability;
mod shape;
mod signature;
mod tables;

pub use binding::{Binding, DimBound, VaryingSizes, is_default_binding, sanitize_size_name};
pub use entries::{PreparedEntry, PreparedFunctions, prepare_entries};
pub use feed_spec::{FeedSpec, parse_dtype};
pub use fields::{c_field_names, is_reserved};
pub use functional::is_control_flow;
pub use reachability::{ReachableParts, reachable_from_signatures};
pub use resizable_variables::has_resizable_variables;

use crate::diag::{Code, Diagnostic, Error, Result};
use crate::graph::{Attr, Endpoint, Node, NodeId, PartialShape, Program, Signature, TfType};
use crate::hlo::RuntimeChecks;
use crate::infer::FeedFacts;
use crate::lower::Feed;
use crate::ops;
use crate::tensor::{Bounds, DType, Size, Sizes};
use names::NodesByName;
use prune::NeededNodes;

/// Choice of feeds, fetches, signatures and sizes of a model; the default takes them from the file.
///
/// ```
/// use tfaot::{ModelFile, Request};
///
/// let request = Request { fetches: vec!["no_such_node".to_string()], ..Request::default() };
/// let error = ModelFile::open("testdata/graphs/attention/graph.pb").lower(&request).expect_err("there is no such node");
/// assert!(error.has(tfaot::Code::UnknownTensor));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// Tensors to feed; if empty, the signature's inputs or the Placeholders.
    pub feeds: Vec<FeedSpec>,
    /// Tensors to fetch; if empty, the signature's outputs or the outputs that no node uses.
    pub fetches: Vec<String>,
    /// Sizes or bounds of unknown dimensions, by name: `batch` (every unknown leading dimension), `NAME` (every unknown dimension of a feed),
    /// `NAME[1]`, the empty name (every unknown dimension), or `?` and `?[1]` (every dimension that no other entry binds, or those at one
    /// position; these may match nothing).
    pub dims: Vec<(String, Binding)>,
    /// Upper bounds of data-dependent sizes that nothing in the program bounds, by node name; the empty name stands for all other nodes.
    pub bounds: Vec<(String, u64)>,
    /// Whether calls fail where TensorFlow's kernels or assertions would refuse the values.
    pub is_checked: bool,
    /// Signatures to take feeds and fetches from; if empty, the model's default one. Several are allowed only in [`prepare_entries`],
    /// where `all` stands for every signature.
    pub signatures: Vec<String>,
    /// Names of variables that keep their values between calls although no entry writes them; `*` matches any letters, and `all` every
    /// variable.
    pub state: Vec<String>,
    /// Whether variables whose declared shape has unknown axes may change their size.
    pub variables_grow: bool,
    /// Variables that are state even if no entry writes them, with types and sizes that the graph need not have.
    pub declared: Vec<DeclaredVariable>,
    /// Upper bounds on the trip counts of loops, by the name of the loop's body.
    pub rounds: Vec<(String, u64)>,
}

/// A variable in a `tf2xla.Config`.
#[derive(Clone, Debug, Default)]
pub struct DeclaredVariable {
    /// Node that creates the handle.
    pub node: String,
    /// Name of the variable in C.
    pub called: Option<String>,
    /// Element type, if given.
    pub dtype: Option<DType>,
    /// Dimensions, if given.
    pub dims: Option<Vec<Option<u64>>>,
}

impl Request {
    /// Whether the request chooses no feeds, fetches, sizes and signatures.
    pub fn is_empty(&self) -> bool {
        self.feeds.is_empty() && self.fetches.is_empty() && self.dims.is_empty() && self.signatures.is_empty()
    }
}

/// A program that is ready to be lowered.
#[derive(Clone, Debug)]
pub struct PreparedProgram {
    /// Nodes that the fetches need, and the functions that these call.
    pub program: Program,
    /// Arguments, in order; each is output 0 of a `Placeholder`, and has the upper bounds of dynamic sizes.
    pub feeds: Vec<Feed>,
    /// Dynamic sizes of the arguments.
    pub sizes: Vec<Size>,
    /// Index into `sizes` of each axis of each argument; `None` for fixed axes.
    pub axes: Vec<Vec<Option<usize>>>,
    /// Upper bounds of data-dependent sizes that nothing in the program bounds.
    pub bounds: Bounds,
    /// Run-time checks that are compiled in.
    pub checks: RuntimeChecks,
    /// Fetches: names as `node:index`, and the outputs in `program`.
    pub fetches: Vec<(String, Endpoint)>,
    /// Name of each fetch in the signature.
    pub called: Vec<Option<String>>,
    /// Nodes that run for their side effects, although no fetch needs them.
    pub roots: Vec<NodeId>,
    /// Assumptions made where the user gave no choice, one sentence each.
    pub assumptions: Vec<String>,
    /// Warnings about effects that compiled code leaves out: `EffectDropped`.
    pub warnings: Vec<Diagnostic>,
}

impl PreparedProgram {
    /// Copy of the program with the fixed sizes `sizes` in place of its dynamic ones.
    pub fn with_fixed_sizes(&self, sizes: &[u64]) -> PreparedProgram {
        let mut fixed = PreparedProgram { sizes: Vec::new(), ..self.clone() };
        if self.sizes.is_empty() {
            return fixed;
        }
        for (feed, axes) in fixed.feeds.iter_mut().zip(&mut fixed.axes) {
            feed.info.dims = Sizes::actual_dims(axes, &feed.info.dims, sizes);
            axes.fill(None);
            let shape = PartialShape(Some(feed.info.dims.iter().copied().map(Some).collect()));
            let attrs = &mut fixed.program.graph.nodes[feed.at.node].attrs;
            attrs.iter_mut().filter(|a| &*a.0 == "shape").for_each(|a| a.1 = Attr::Shape(shape.clone()));
        }
        fixed
    }
}

/// Cuts `program` to what the fetches of `request` need.
///
/// Placeholders that the fetches need and the user did not name become feeds too.
///
/// # Errors
/// `UnknownTensor` (with the nearest names), `UnknownDim`, `BadOption`, `UnsupportedType`, `TooLarge`, `BadGraph` for
/// cycles, `ControlFlowV1` for loops of TensorFlow 1.
pub fn prepare(program: Program, request: &Request) -> Result<PreparedProgram> {
    let source = program.source.clone();
    let in_file = |error: Error| {
        error.map(|mut d| {
            d.place.file.get_or_insert_with(|| source.clone());
            d
        })
    };
    let mut used = UsedBindings::new(request);
    let prepared = prepare_with_bindings(program, request, &mut used).map_err(in_file)?;
    used.check_all_used(request).map_err(in_file)?;
    refuse_assignments(&prepared.program).map_err(in_file)?;
    Ok(prepared)
}

/// Flags for the `--dim`, `--bound` and `--rounds` options that matched something; the others are refused.
struct UsedBindings {
    dims: Vec<bool>,
    bounds: Vec<bool>,
    rounds: Vec<bool>,
}

impl UsedBindings {
    fn new(request: &Request) -> UsedBindings {
        let none = |count: usize| vec![false; count];
        UsedBindings {
            dims: none(request.dims.len()),
            bounds: none(request.bounds.len()),
            rounds: none(request.rounds.len()),
        }
    }

    /// Checks that every option matched something. Errors: `BadOption`.
    fn check_all_used(&self, request: &Request) -> Result<()> {
        shape::check_bindings_used(&request.dims, &self.dims)?;
        let mut bad = Vec::new();
        for ((name, n), _) in request.bounds.iter().zip(&self.bounds).filter(|(_, used)| !**used) {
            let told = format!("`--bound {name}={n}` names no node that is compiled");
            bad.push(Diagnostic::new(Code::BadOption, told).help("NODE is its name in the graph or in a function"));
        }
        for ((name, n), _) in request.rounds.iter().zip(&self.rounds).filter(|(_, used)| !**used) {
            let told = format!("`--rounds {name}={n}` names no loop that is compiled");
            let help = "NAME is what messages call the loop: the function of its body";
            bad.push(Diagnostic::new(Code::BadOption, told).help(help));
        }
        if bad.is_empty() { Ok(()) } else { Err(Error::User(bad)) }
    }
}

/// Prepares a program whose variables may keep values between calls; `used` collects the options that matched something.
fn prepare_with_bindings(program: Program, request: &Request, used: &mut UsedBindings) -> Result<PreparedProgram> {
    let program = if request.is_checked { effects::strip_assertion_data(program) } else { program };
    let names = NodesByName::new(&program);
    let mut assumptions = Vec::new();
    let signature = signature::choose_signature(&program, &names, request)?;
    let request = &signature::to_tensor_names(request, signature);
    let fetches = defaults::resolve_fetches(&program, &names, request, signature, &mut assumptions)?;
    let asked = defaults::resolve_feeds(&program, &names, request, signature, &mut assumptions)?;
    let fetched = fetches.len();
    let ends = [fetches, defaults::node_to_run_for_signature(&names, signature)].concat();
    let needed = prune::needed_nodes(&program.graph, &asked, &ends, request.is_checked);
    let asked =
        defaults::add_unfed_placeholders(&program, &names, asked, &needed, request, signature, &mut assumptions);
    let shape::ResolvedShapes { feeds: infos, sizes, axes, values } =
        shape::resolve_shapes(&program, &asked, &request.dims, &mut used.dims, &mut assumptions)?;
    let called = self::fetch_names(signature, &names, &ends[..fetched]);
    drop(names);
    let skipped: Vec<Node> = needed.skipped.iter().map(|&id| program.graph.nodes[id].clone()).collect();
    let settled: Vec<FeedFacts> =
        infos.iter().zip(&axes).map(|(feed, axes)| feed_facts(feed, axes)).chain(values).collect();
    let prune::PrunedProgram { mut program, mut fetches } = prune::prune(program, &needed, &settled, ends);
    let mut roots = fetches.split_off(fetched).into_iter().map(|(_, at)| at.node).collect();
    let settled: Vec<FeedFacts> =
        settled.into_iter().enumerate().map(|(i, g)| FeedFacts { at: feed_endpoint(i), ..g }).collect();
    functional::functionalize(&mut program, &settled, &mut fetches, &mut roots)?;
    for ((name, _), used) in request.bounds.iter().zip(&mut used.bounds) {
        let mut graphs = std::iter::once(&program.graph).chain(program.functions.values().map(|f| &f.graph));
        *used |= name.is_empty() || graphs.any(|g| g.nodes.values().any(|node| *node.name == **name));
    }
    for ((name, rounds), used) in request.rounds.iter().zip(&mut used.rounds) {
        let Some((body, _)) = program.functions.get_key_value(name.as_str()) else { continue };
        program.rounds.insert(body.clone(), *rounds);
        *used = true;
    }
    let feeds: Vec<Feed> =
        infos.into_iter().enumerate().map(|(i, feed)| Feed { at: feed_endpoint(i), ..feed }).collect();
    let warnings = effects::dropped_effect_warnings(&skipped, &program, request.is_checked);
    let bounds = bounds(request, &feeds);
    let checks = match (request.is_checked, sizes.is_empty()) {
        (false, _) => RuntimeChecks::Off,
        (true, true) => RuntimeChecks::Unproven,
        (true, false) => RuntimeChecks::On,
    };
    Ok(PreparedProgram { program, feeds, sizes, axes, bounds, checks, fetches, called, roots, assumptions, warnings })
}

fn bounds(request: &Request, feeds: &[Feed]) -> Bounds {
    let (of_all, of_nodes): (Vec<_>, Vec<_>) = request.bounds.iter().cloned().partition(|(name, _)| name.is_empty());
    let assumed = || Bounds::default_bound(feeds.iter().map(|f| &f.info));
    Bounds { most: of_all.last().map_or_else(assumed, |(_, most)| *most), of_nodes }
}

/// Type, shape and dynamic sizes of a feed, in the form that inference takes.
fn feed_facts(feed: &Feed, axes: &[Option<usize>]) -> FeedFacts {
    let fixed = |(&d, axis): (&u64, &Option<usize>)| Some(d).filter(|_| axis.is_none());
    let shape = PartialShape(Some(feed.info.dims.iter().zip(axes).map(fixed).collect()));
    FeedFacts { at: feed.at, dtype: Some(TfType::Data(feed.info.dtype)), shape, sizes: axes.to_vec(), value: None }
}

/// Output that stands for feed `i` in a pruned program: output 0 of node `i`.
fn feed_endpoint(i: usize) -> Endpoint {
    Endpoint { node: NodeId(i as u32), port: 0 }
}

/// Feeds and fetches of a request, with unknown sizes left unknown.
#[derive(Clone, Debug)]
pub struct ResolvedRequest {
    /// Feeds, with the sizes that are known.
    pub feeds: Vec<FeedFacts>,
    /// Sizes with bounds, in the order of their indices in `feeds`.
    pub sizes: Vec<Size>,
    /// Fetches: names as `node:index`, and the outputs.
    pub fetches: Vec<(String, Endpoint)>,
    /// Names of the feeds and fetches in the signature.
    pub called: SignatureNames,
    needed: NeededNodes,
}

/// Cuts a program to the part that a request needs, without savers, initializers and other signatures.
///
/// Unlike [`prepare`], makes no assumptions about sizes, and refuses no node.
///
/// # Errors
/// Errors of [`resolve_request`].
pub fn cut_to_request(program: Program, request: &Request) -> Result<ReachableProgram> {
    let ResolvedRequest { feeds, fetches, called, needed, .. } = resolve_request(&program, request)?;
    let prune::PrunedProgram { program, fetches } = prune::prune(program, &needed, &feeds, fetches);
    let feeds = feeds.into_iter().enumerate().map(|(i, feed)| FeedFacts { at: feed_endpoint(i), ..feed }).collect();
    Ok(ReachableProgram { program, feeds, fetches, called })
}

/// Converts the control flow of TensorFlow 1 to functions, as [`prepare`] does.
///
/// # Errors
/// `ControlFlowV1`, `BadGraph`.
pub fn functionalize(reached: &mut ReachableProgram) -> Result<()> {
    let ReachableProgram { program, feeds, fetches, .. } = reached;
    functional::functionalize(program, feeds, fetches, &mut Vec::new())
}

/// A program cut to the part that a request needs.
#[derive(Clone, Debug)]
pub struct ReachableProgram {
    /// Nodes that the fetches need, a Placeholder for each feed, and the functions that these nodes call.
    pub program: Program,
    /// Feeds, with the sizes that are known.
    pub feeds: Vec<FeedFacts>,
    /// Fetches: names as `node:index`, and the outputs in `program`.
    pub fetches: Vec<(String, Endpoint)>,
    /// Names of the feeds and fetches in the signature.
    pub called: SignatureNames,
}

/// Names of feeds and fetches in a signature; the lists may be shorter than those of feeds and fetches.
#[derive(Clone, Debug, Default)]
pub struct SignatureNames {
    /// Names of the feeds.
    pub feeds: Vec<Option<String>>,
    /// Names of the fetches.
    pub fetches: Vec<Option<String>>,
}

/// Feeds and fetches that [`prepare`] would take for a request.
///
/// # Errors
/// Errors of [`prepare`] except for unknown sizes.
pub fn resolve_request(program: &Program, request: &Request) -> Result<ResolvedRequest> {
    let names = NodesByName::new(program);
    let mut told = Vec::new();
    let signature = signature::choose_signature(program, &names, request)?;
    let request = &signature::to_tensor_names(request, signature);
    let fetches = defaults::resolve_fetches(program, &names, request, signature, &mut told)?;
    let asked = defaults::resolve_feeds(program, &names, request, signature, &mut told)?;
    let ends = [fetches.clone(), defaults::node_to_run_for_signature(&names, signature)].concat();
    let needed = prune::needed_nodes(&program.graph, &asked, &ends, false);
    let asked = defaults::add_unfed_placeholders(program, &names, asked, &needed, request, signature, &mut told);
    let (feeds, sizes) = shape::partial_shapes(program, &asked, &request.dims)?;
    let called = fetch_names(signature, &names, &fetches);
    let called = SignatureNames { feeds: asked.into_iter().map(|a| a.called).collect(), fetches: called };
    Ok(ResolvedRequest { feeds, sizes, fetches, called, needed })
}

/// Name of each fetch in the signature. Two outputs of a signature may be the same tensor; each keeps its name if both are fetched.
fn fetch_names(
    signature: Option<&Signature>,
    names: &NodesByName,
    fetches: &[(String, Endpoint)],
) -> Vec<Option<String>> {
    let Some(signature) = signature else { return Vec::new() };
    let mut free: Vec<(String, String)> = signature.outputs.clone();
    let mut one = |(_, at): &(String, Endpoint)| {
        let called = signature::name_in_signature(&free, names, *at)?;
        free.retain(|(key, _)| *key != called);
        Some(called)
    };
    fetches.iter().map(&mut one).collect()
}

/// Replaces the signature's names in a request by TensorFlow's tensor names; unchanged if the request takes no signature.
pub fn request_with_tensor_names(program: &Program, request: &Request) -> Request {
    let names = NodesByName::new(program);
    let signature = signature::choose_signature(program, &names, request).unwrap_or_default();
    signature::to_tensor_names(request, signature)
}

/// Extends a request that names no signature, of a model without a default one, to the feeds and fetches of all signatures.
pub fn merge_all_signatures(program: &Program, request: &Request) -> Request {
    let names = NodesByName::new(program);
    let mut request = request.clone();
    if signature::choose_signature(program, &names, &request).is_ok() || !request.signatures.is_empty() {
        return request;
    }
    for s in signature::usable_signatures(program, &names) {
        let new = |tensor: &String| !request.feeds.iter().any(|f| f.name == *tensor);
        let inputs: Vec<String> = s.inputs.iter().map(|(_, tensor)| tensor.clone()).filter(new).collect();
        request.feeds.extend(inputs.into_iter().map(|name| FeedSpec { name, ..FeedSpec::default() }));
        request.fetches.extend(s.outputs.iter().map(|(_, tensor)| tensor.clone()));
    }
    request
}

/// Whether the program has a signature all of whose tensors exist.
pub fn has_signature(program: &Program) -> bool {
    signature::usable_signatures(program, &NodesByName::new(program)).next().is_some()
}

/// Refuses nodes that assign to variables, which are constants here. Errors: `VariableAssigned`.
fn refuse_assignments(program: &Program) -> Result<()> {
    let functions = program.functions.values().map(|f| (Some(&f.name), &f.graph));
    let mut found = Vec::new();
    for (function, graph) in std::iter::once((None, &program.graph)).chain(functions) {
        for node in graph.nodes.values().filter(|n| assigns_variable(&n.op)) {
            let told = format!("{} changes a variable, and compiled code has no state", node.op);
            let mut d = Diagnostic::new(Code::VariableAssigned, told)
                .help("fetch what does not need it, or make the state a feed and a fetch")
                .at_node(&node.name, &node.op);
            d.place.function = function.map(|f| f.to_string());
            found.push(d);
        }
    }
    if found.is_empty() { Ok(()) } else { Err(Error::User(found)) }
}

/// Whether an op writes a variable.
pub fn assigns_variable(op: &str) -> bool {
    op == "StridedSliceAssign" || ops::find_op(op).is_some_and(|row| !row.writes.is_empty())
}

#[cfg(test)]
mod tests;
