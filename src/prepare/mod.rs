//! A program cut to what its fetches need, with feeds of known type and shape.
//!
//! Every feed becomes a `Placeholder` with a fixed shape: a fed Placeholder is completed, a fed output of any other node is
//! replaced. Nothing before a feed is kept.
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

pub use binding::{Binding, DimBound, VaryingSizes, is_default, size_name};
pub use entries::{Entries, PreparedEntry, entries};
pub use feed_spec::{FeedSpec, parse_dtype};
pub use fields::{field_names, is_reserved};
pub use functional::is_control_flow;
pub use reachability::{ReachableParts, served};
pub use resizable_variables::may_grow;

use crate::diag::{Code, Diagnostic, Error, Result};
use crate::graph::{Attr, Endpoint, Node, NodeId, PartialShape, Program, Signature, TfType};
use crate::hlo::RuntimeChecks;
use crate::infer::FeedFacts;
use crate::lower::Feed;
use crate::ops;
use crate::tensor::{Bounds, DType, Size, Sizes};
use names::NodesByName;
use prune::Needed;

/// Feeds, fetches, signatures and sizes of a model, where its file leaves them open; the default is what the file says.
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
    /// The tensors to feed; none: the signature's inputs or the Placeholders.
    pub feeds: Vec<FeedSpec>,
    /// The tensors to fetch; none: the signature's outputs or the sinks.
    pub fetches: Vec<String>,
    /// Sizes or bounds of unknown dimensions: `batch` (every unknown leading one), `NAME` (every unknown one of a feed), `NAME[1]`,
    /// an empty name (every unknown one), or `?` and `?[1]` (every one that nothing else binds, and those at one place; there may be none).
    pub dims: Vec<(String, Binding)>,
    /// The largest sizes that values at run time may say at nodes, by their names, where nothing in the program bounds them; an empty
    /// name stands for all others.
    pub bounds: Vec<(String, u64)>,
    /// Whether calls fail where TensorFlow's kernels refuse their values.
    pub is_checked: bool,
    /// The signatures to take feeds and fetches from; none: the model's default one. More than one only where a module of
    /// several entries is asked for ([`entries()`]), and there `all` stands for every one.
    pub signatures: Vec<String>,
    /// Names of variables that keep their values between calls though no entry changes them: `*` in them stands for any letters,
    /// and `all` for all of them.
    pub state: Vec<String>,
    /// Whether variables whose declared shape leaves axes open may have values of several sizes.
    pub variables_grow: bool,
    /// Variables that are state whatever is done to them, with what the graph may leave open.
    pub declared: Vec<Declared>,
    /// After how many rounds loops end at the latest, by the names of their bodies.
    pub rounds: Vec<(String, u64)>,
}

/// A variable as `tf2xla.Config` has it.
#[derive(Clone, Debug, Default)]
pub struct Declared {
    /// The node that gives its handle.
    pub node: String,
    /// The variable's name in C.
    pub called: Option<String>,
    /// The element type, if it is told.
    pub dtype: Option<DType>,
    /// The sizes, if they are told.
    pub dims: Option<Vec<Option<u64>>>,
}

impl Request {
    /// Whether nothing is asked for: the file's own feeds, fetches and sizes.
    pub fn is_empty(&self) -> bool {
        self.feeds.is_empty() && self.fetches.is_empty() && self.dims.is_empty() && self.signatures.is_empty()
    }
}

/// A program that is ready to be lowered.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// The nodes that the fetches need and the functions that these call.
    pub program: Program,
    /// The arguments, in order. Each replaces output 0 of a `Placeholder`.
    pub feeds: Vec<Feed>,
    /// The sizes of the arguments that vary; they have their bounds in `feeds`.
    pub sizes: Vec<Size>,
    /// For each argument the size of each axis by its number in `sizes`; `None`: it is fixed.
    pub axes: Vec<Vec<Option<usize>>>,
    /// The largest sizes that values at run time may say where nothing bounds them.
    pub bounds: Bounds,
    /// Run-time checks that are compiled in.
    pub checks: RuntimeChecks,
    /// Names as `node:index`, and where they are in `program`.
    pub fetches: Vec<(String, Endpoint)>,
    /// The name of each fetch in the signature.
    pub called: Vec<Option<String>>,
    /// Nodes that run although no fetch needs them.
    pub roots: Vec<NodeId>,
    /// Assumptions made where the user did not say, a sentence each.
    pub assumptions: Vec<String>,
    /// Warnings about effects that compiled code leaves out: `EffectDropped`.
    pub warnings: Vec<Diagnostic>,
}

impl Prepared {
    /// The function for exactly these sizes.
    pub fn at(&self, sizes: &[u64]) -> Prepared {
        let mut fixed = Prepared { sizes: Vec::new(), ..self.clone() };
        if self.sizes.is_empty() {
            return fixed;
        }
        for (feed, axes) in fixed.feeds.iter_mut().zip(&mut fixed.axes) {
            feed.info.dims = Sizes::actual(axes, &feed.info.dims, sizes);
            axes.fill(None);
            let shape = PartialShape(Some(feed.info.dims.iter().copied().map(Some).collect()));
            let attrs = &mut fixed.program.graph.nodes[feed.at.node].attrs;
            attrs.iter_mut().filter(|a| &*a.0 == "shape").for_each(|a| a.1 = Attr::Shape(shape.clone()));
        }
        fixed
    }
}

/// Cuts `program` to what `request` asks for.
///
/// Feeds that the user did not name but that the fetches need are added.
///
/// # Errors
/// `UnknownTensor` (with the nearest names), `UnknownDim`, `BadOption`, `UnsupportedType`, `TooLarge`, `BadGraph` for
/// cycles, `ControlFlowV1` for loops of TensorFlow 1.
pub fn prepare(program: Program, request: &Request) -> Result<Prepared> {
    let source = program.source.clone();
    let in_file = |error: Error| {
        error.map(|mut d| {
            d.place.file.get_or_insert_with(|| source.clone());
            d
        })
    };
    let mut used = UsedBindings::none(request);
    let prepared = run(program, request, &mut used).map_err(in_file)?;
    used.all(request).map_err(in_file)?;
    refuse_assignments(&prepared.program).map_err(in_file)?;
    Ok(prepared)
}

/// Flags for the bindings of a request that bound something; the others are refused.
struct UsedBindings {
    dims: Vec<bool>,
    bounds: Vec<bool>,
    rounds: Vec<bool>,
}

impl UsedBindings {
    fn none(request: &Request) -> UsedBindings {
        let none = |count: usize| vec![false; count];
        UsedBindings {
            dims: none(request.dims.len()),
            bounds: none(request.bounds.len()),
            rounds: none(request.rounds.len()),
        }
    }

    /// Errors: `BadOption` for those that did not.
    fn all(&self, request: &Request) -> Result<()> {
        shape::all_bound(&request.dims, &self.dims)?;
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

/// Prepares a program with variables; `used` collects the bindings that bound something.
fn run(program: Program, request: &Request, used: &mut UsedBindings) -> Result<Prepared> {
    let program = if request.is_checked { effects::with_conditions_alone(program) } else { program };
    let names = NodesByName::new(&program);
    let mut assumptions = Vec::new();
    let signature = signature::choose(&program, &names, request)?;
    let request = &signature::in_tensor_names(request, signature);
    let fetches = defaults::fetches(&program, &names, request, signature, &mut assumptions)?;
    let asked = defaults::feeds(&program, &names, request, signature, &mut assumptions)?;
    let fetched = fetches.len();
    let ends = [fetches, defaults::run_by(&names, signature)].concat();
    let needed = prune::needed(&program.graph, &asked, &ends, request.is_checked);
    let asked = defaults::add_placeholders(&program, &names, asked, &needed, request, signature, &mut assumptions);
    let shape::Shaped { feeds: infos, sizes, axes, values } =
        shape::infos(&program, &asked, &request.dims, &mut used.dims, &mut assumptions)?;
    let called = self::fetched(signature, &names, &ends[..fetched]);
    drop(names);
    let skipped: Vec<Node> = needed.skipped.iter().map(|&id| program.graph.nodes[id].clone()).collect();
    let settled: Vec<FeedFacts> = infos.iter().zip(&axes).map(|(feed, axes)| given(feed, axes)).chain(values).collect();
    let prune::PrunedProgram { mut program, mut fetches } = prune::cut(program, &needed, &settled, ends);
    let mut roots = fetches.split_off(fetched).into_iter().map(|(_, at)| at.node).collect();
    let settled: Vec<FeedFacts> = settled.into_iter().enumerate().map(|(i, g)| FeedFacts { at: fed(i), ..g }).collect();
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
    let feeds: Vec<Feed> = infos.into_iter().enumerate().map(|(i, feed)| Feed { at: fed(i), ..feed }).collect();
    let warnings = effects::left_out(&skipped, &program, request.is_checked);
    let bounds = bounds(request, &feeds);
    let checks = match (request.is_checked, sizes.is_empty()) {
        (false, _) => RuntimeChecks::Off,
        (true, true) => RuntimeChecks::Unproven,
        (true, false) => RuntimeChecks::On,
    };
    Ok(Prepared { program, feeds, sizes, axes, bounds, checks, fetches, called, roots, assumptions, warnings })
}

fn bounds(request: &Request, feeds: &[Feed]) -> Bounds {
    let (of_all, of_nodes): (Vec<_>, Vec<_>) = request.bounds.iter().cloned().partition(|(name, _)| name.is_empty());
    let assumed = || Bounds::assumed(feeds.iter().map(|f| &f.info));
    Bounds { most: of_all.last().map_or_else(assumed, |(_, most)| *most), of_nodes }
}

/// A feed's type, shape and sizes in the form that inference takes.
fn given(feed: &Feed, axes: &[Option<usize>]) -> FeedFacts {
    let fixed = |(&d, axis): (&u64, &Option<usize>)| Some(d).filter(|_| axis.is_none());
    let shape = PartialShape(Some(feed.info.dims.iter().zip(axes).map(fixed).collect()));
    FeedFacts { at: feed.at, dtype: Some(TfType::Data(feed.info.dtype)), shape, sizes: axes.to_vec(), value: None }
}

/// Where feed `i` of a program that was cut is.
fn fed(i: usize) -> Endpoint {
    Endpoint { node: NodeId(i as u32), port: 0 }
}

/// The feeds and fetches of a request, with sizes that are not told left open.
#[derive(Clone, Debug)]
pub struct ResolvedRequest {
    /// The feeds, with the sizes that are told.
    pub feeds: Vec<FeedFacts>,
    /// The sizes of the feeds that have bounds, by their numbers in `feeds`.
    pub sizes: Vec<Size>,
    /// Names as `node:index`, and where they are.
    pub fetches: Vec<(String, Endpoint)>,
    /// Names of the feeds and fetches in the signature.
    pub called: SignatureNames,
    needed: Needed,
}

/// The part of a program that a request reaches: the rest (savers, initialisers, other signatures) is as if it were not there.
///
/// The program is cut as [`prepare`] cuts it, but nothing is assumed of sizes and nothing is refused for what it does.
///
/// # Errors
/// Those of [`open`].
pub fn reach(program: Program, request: &Request) -> Result<ReachableProgram> {
    let ResolvedRequest { feeds, fetches, called, needed, .. } = open(&program, request)?;
    let prune::PrunedProgram { program, fetches } = prune::cut(program, &needed, &feeds, fetches);
    let feeds = feeds.into_iter().enumerate().map(|(i, feed)| FeedFacts { at: fed(i), ..feed }).collect();
    Ok(ReachableProgram { program, feeds, fetches, called })
}

/// Makes functions of control flow of TensorFlow 1, as [`prepare`] does.
///
/// # Errors
/// `ControlFlowV1`, `BadGraph`.
pub fn functionalize(reached: &mut ReachableProgram) -> Result<()> {
    let ReachableProgram { program, feeds, fetches, .. } = reached;
    functional::functionalize(program, feeds, fetches, &mut Vec::new())
}

/// A program with nothing in it that a request does not reach.
#[derive(Clone, Debug)]
pub struct ReachableProgram {
    /// The nodes that the fetches need, a Placeholder for each feed, and the functions that these call.
    pub program: Program,
    /// The feeds, with the sizes that are told.
    pub feeds: Vec<FeedFacts>,
    /// Names as `node:index`, and where they are in `program`.
    pub fetches: Vec<(String, Endpoint)>,
    /// Names of the feeds and fetches in the signature.
    pub called: SignatureNames,
}

/// Names of feeds and fetches in a signature; shorter where it has no names.
#[derive(Clone, Debug, Default)]
pub struct SignatureNames {
    /// The feeds.
    pub feeds: Vec<Option<String>>,
    /// The fetches.
    pub fetches: Vec<Option<String>>,
}

/// The feeds and fetches that [`prepare`] would take.
///
/// # Errors
/// As there, but for sizes.
pub fn open(program: &Program, request: &Request) -> Result<ResolvedRequest> {
    let names = NodesByName::new(program);
    let mut told = Vec::new();
    let signature = signature::choose(program, &names, request)?;
    let request = &signature::in_tensor_names(request, signature);
    let fetches = defaults::fetches(program, &names, request, signature, &mut told)?;
    let asked = defaults::feeds(program, &names, request, signature, &mut told)?;
    let ends = [fetches.clone(), defaults::run_by(&names, signature)].concat();
    let needed = prune::needed(&program.graph, &asked, &ends, false);
    let asked = defaults::add_placeholders(program, &names, asked, &needed, request, signature, &mut told);
    let (feeds, sizes) = shape::open(program, &asked, &request.dims)?;
    let called = fetched(signature, &names, &fetches);
    let called = SignatureNames { feeds: asked.into_iter().map(|a| a.called).collect(), fetches: called };
    Ok(ResolvedRequest { feeds, sizes, fetches, called, needed })
}

/// The name of each fetch in the signature. Two outputs of a signature may be one tensor: they keep their own names where both are fetched.
fn fetched(signature: Option<&Signature>, names: &NodesByName, fetches: &[(String, Endpoint)]) -> Vec<Option<String>> {
    let Some(signature) = signature else { return Vec::new() };
    let mut free: Vec<(String, String)> = signature.outputs.clone();
    let mut one = |(_, at): &(String, Endpoint)| {
        let called = signature::called(&free, names, *at)?;
        free.retain(|(key, _)| *key != called);
        Some(called)
    };
    fetches.iter().map(&mut one).collect()
}

/// The request with the names of the signature that it takes, if it takes one, replaced by TensorFlow's: for those who look at
/// whole graphs.
pub fn in_tensor_names(program: &Program, request: &Request) -> Request {
    let names = NodesByName::new(program);
    let signature = signature::choose(program, &names, request).unwrap_or_default();
    signature::in_tensor_names(request, signature)
}

/// The request, or where it leaves open which signature is meant, one for all of them together.
pub fn of_all_signatures(program: &Program, request: &Request) -> Request {
    let names = NodesByName::new(program);
    let mut request = request.clone();
    if signature::choose(program, &names, &request).is_ok() || !request.signatures.is_empty() {
        return request;
    }
    for s in signature::usable(program, &names) {
        let new = |tensor: &String| !request.feeds.iter().any(|f| f.name == *tensor);
        let inputs: Vec<String> = s.inputs.iter().map(|(_, tensor)| tensor.clone()).filter(new).collect();
        request.feeds.extend(inputs.into_iter().map(|name| FeedSpec { name, ..FeedSpec::default() }));
        request.fetches.extend(s.outputs.iter().map(|(_, tensor)| tensor.clone()));
    }
    request
}

/// Whether the program has a signature that could be taken: one of which all tensors are there.
pub fn has_signature(program: &Program) -> bool {
    signature::usable(program, &NodesByName::new(program)).next().is_some()
}

/// Variables are constants, so that what assigns to them would be lost.
fn refuse_assignments(program: &Program) -> Result<()> {
    let functions = program.functions.values().map(|f| (Some(&f.name), &f.graph));
    let mut found = Vec::new();
    for (function, graph) in std::iter::once((None, &program.graph)).chain(functions) {
        for node in graph.nodes.values().filter(|n| assigns(&n.op)) {
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

/// Whether an op changes a variable.
pub fn assigns(op: &str) -> bool {
    op == "StridedSliceAssign" || ops::find(op).is_some_and(|row| !row.writes.is_empty())
}

#[cfg(test)]
mod tests;
