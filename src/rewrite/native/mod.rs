//! Clusters as compiled code: each becomes an op of one shared library that uses TensorFlow's C ABI only.
//!
//! Nodes that can't be compiled are excluded before clusters are formed, so that TensorFlow's rules hold for the rest: nodes that touch a
//! variable (which is read before the call and assigned after it), nodes of unknown shape, and, round by round, nodes that the lowering
//! refuses. `cluster` lowers and compiles one cluster, `branch` puts a call into the graph beside the cluster's original nodes, which
//! run where the call can't, `table` describes the clusters to the glue, and `glue/glue.c` registers and calls them.
mod branch;
mod cluster;
mod exclusion_reasons;
mod sizes;
mod table;
mod values;
mod variables;

pub use exclusion_reasons::{ExclusionCounts, note_on_assertions_and_prints};

use super::calls::{ClusterPorts, ExtractedCluster};
use crate::codegen;
use crate::diag::{Code, Diagnostic, Error, Result};
use crate::dump::{Dump, Dumps};
use crate::graph::{Endpoint, Graph, Node, NodeId, PartialShape, Program, TfType, Variable};
use crate::import::raw::{RawFunction, RawNode};
use crate::infer::{self, Facts, GraphFacts};
use crate::opdef;
use crate::ops;
use crate::ops::fact::Fact;
use crate::ops::symbols::{DimId, InferredDim};
use crate::package::{pool, shared_library};
use crate::prepare::{DimBound, Request};
use crate::target::CodeRequest;
use crate::tensor::{DType, Tensor};
use crate::util::pieces::Pieces;
use cluster::CompiledCluster;
use sizes::{GivenFeeds, UnknownSizeBounds};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use variables::ConstantVariables;

/// The name of the output list of `If`.
pub const OUTPUT: &str = "output";

/// Upper bound on the rounds of forming clusters and excluding the nodes that can't be compiled; clusters refused in the last round stay
/// in TensorFlow.
pub const ROUNDS: usize = 12;

/// Maximum number of reasons in the error when nothing could be compiled.
const MOST_TOLD: usize = 10;

/// Options for compiling clusters.
#[derive(Clone, Debug)]
pub struct NativeOptions {
    /// Prefix of the names of ops and symbols: a C identifier.
    pub name: String,
    /// Targets for which the clusters are compiled; never empty. With several, the library selects one at run time.
    pub requests: Vec<CodeRequest>,
    /// Threads of a call; 0: as many as the process may use.
    pub threads: u16,
    /// The given shapes of feeds, and the signature to which they apply.
    pub request: Request,
}

/// The shared library under construction.
pub struct Library<'a> {
    native: &'a NativeOptions,
    facts: Facts,
    bounds: UnknownSizeBounds,
    /// Facts inferred without the shapes and sizes that the user gave, so that they hold for every call.
    always: Facts,
    constants: ConstantVariables,
    /// Assumptions about sizes that no option gives, as sentences for the user.
    pub assumed: Vec<String>,
    /// Command-line flags by which the user could give the sizes that are unknown.
    flags: Vec<String>,
    /// Number of convolutions and matrix products in compiled clusters.
    contractions: u64,
    prefix: String,
    compiled: Vec<CompiledCluster>,
    dumps: Option<Dumps>,
    /// Dumps of the compiled modules: file name and content.
    pub dumped: Vec<(String, Vec<u8>)>,
}

/// The graph from which clusters are taken, with the inferred facts about its tensors.
pub struct GraphWithFacts<'a> {
    /// Copy of the program with the graph as its top level, without control edges.
    bare: Program,
    library: &'a Library<'a>,
    facts: &'a GraphFacts,
    always: &'a GraphFacts,
}

/// Nodes that stay in TensorFlow because a cluster with them can't be compiled, and the reasons.
#[derive(Debug, Default)]
pub struct RefusedNodes {
    /// Names of the nodes to exclude from clusters in the next round.
    pub nodes: HashSet<String>,
    /// Reasons, one sentence each.
    pub why: Vec<String>,
    /// Whether an unknown size is among the reasons.
    pub sizes: bool,
    /// Number of convolutions and matrix products that stay because of unknown sizes.
    pub contractions: u64,
}

/// A cluster that is lowered and ready to be compiled.
pub struct ClusterToCompile(cluster::LoweredCluster);

impl ClusterToCompile {
    /// Takes the notes about side effects that the compiled code omits, such as prints; later calls return none.
    pub fn take_omitted_effects(&mut self) -> Vec<String> {
        std::mem::take(&mut self.0.left_out)
    }
}

impl<'a> Library<'a> {
    /// An empty library for `program`, which was read from `file`. `variables` may become constants of the code if nothing changes them.
    ///
    /// `asked` is a text of all further options on which the clusters depend; it is hashed into the names of the ops, so that different
    /// libraries have ops of different names.
    /// Errors: `UnknownTensor` for unknown feeds, `BadOption` for a size with two bounds.
    pub fn new(
        native: &'a NativeOptions,
        program: &Program,
        file: &[u8],
        variables: &[Variable],
        asked: &str,
        dumps: Option<Dumps>,
    ) -> Result<Self> {
        let mut told = GivenFeeds::collect(program, &native.request)?;
        let assumed = told.assume_leading_sizes(program).into_iter().collect();
        let flags = told.suggested_flags(program);
        let facts = infer::infer(program, &told.given);
        let untold = Request { feeds: Vec::new(), dims: Vec::new(), ..native.request.clone() };
        let always = infer::infer(program, &GivenFeeds::collect(program, &untold)?.given);
        let constants = ConstantVariables::collect(program, variables)?;
        let said = format!("{native:?} {asked} {}", env!("CARGO_PKG_VERSION"));
        let known = constants.hash(hash(hash(BASIS, file), said.as_bytes()));
        let bounds = UnknownSizeBounds::from_inferred_facts(&facts, &told.sizes);
        let prefix = format!("{}_{known:016x}", native.name);
        let (compiled, dumped) = (Vec::new(), Vec::new());
        let contractions = 0;
        Ok(Library {
            native,
            facts,
            bounds,
            always,
            constants,
            assumed,
            flags,
            contractions,
            prefix,
            compiled,
            dumps,
            dumped,
        })
    }

    /// Pairs `graph`, the body of `function` or the top-level graph, with the facts inferred about its tensors.
    pub fn graph_with_facts(
        &self,
        program: &Program,
        graph: &Graph,
        function: Option<&Arc<str>>,
    ) -> GraphWithFacts<'_> {
        let at = function.map(|name| program.functions.get_index_of(name));
        let mut graph = graph.clone();
        graph.nodes.values_mut().for_each(|node| node.controls = [].into());
        let bare = Program { graph, ..program.clone() };
        GraphWithFacts { bare, library: self, facts: of_graph(&self.facts, at), always: of_graph(&self.always, at) }
    }

    /// The nodes among `members`, the clustered nodes, to exclude before anything is lowered: nodes of unknown shape and those that touch
    /// variables.
    pub fn initial_exclusions(
        &self,
        program: &Program,
        scene: &GraphWithFacts,
        members: &HashMap<String, u32>,
    ) -> RefusedNodes {
        let mut refused = RefusedNodes::default();
        let (mut shapeless, mut first) = (0u64, None);
        for (id, node) in scene.bare.graph.nodes.iter().filter(|(_, n)| members.contains_key(&*n.name)) {
            let taken = node.inputs.iter().filter_map(|e| scene.outputs(e.node).get(e.port as usize));
            if scene.touches_variable(program, node) {
                refused.nodes.insert(node.name.to_string());
            } else if let Some(fact) = scene.outputs(id).iter().chain(taken).find(|f| !scene.is_supported_output(f)) {
                refused.nodes.insert(node.name.to_string());
                shapeless += 1;
                refused.contractions += u64::from(contracts(node));
                first.get_or_insert((node, fact));
            }
        }
        if let Some((node, fact)) = first {
            let open = fact.dims.unknowns().find(|id| scene.bound(*id).is_none());
            let origin = open.map(|id| self.facts.size_origin(program, id));
            let because = origin.map_or(String::new(), |e| format!(": `{}` ({}): {}", e.node, e.op, e.reason));
            let told = format!("{shapeless} nodes of clusters stay in TensorFlow, for shapes of theirs are not known");
            refused.sizes = true;
            refused.why.push(format!("{told}; the first is `{}` ({}){because}", node.name, node.op));
        }
        refused
    }

    /// Adds the convolutions and matrix products among `nodes`, the nodes of compiled clusters, to the library's count.
    pub fn count_contractions<'n>(&mut self, nodes: impl Iterator<Item = &'n Node>) {
        self.contractions += nodes.filter(|node| contracts(node)).count() as u64;
    }

    /// Note for the user about `open` convolutions and matrix products that stay in TensorFlow because of unknown sizes. Errors:
    /// `UnsupportedCase` if none was compiled and flags would determine the sizes.
    pub fn unknown_size_note(&self, open: u64) -> Result<Option<String>> {
        let flags = match &self.flags[..] {
            [] => "values say them when the graph runs".to_string(),
            flags => format!("tell the sizes: {}", flags.join(" ")),
        };
        match (open, self.contractions) {
            (0, _) => Ok(None),
            (_, 0) if !self.flags.is_empty() => {
                let told =
                    format!("sizes that are not known keep all {open} convolutions and matrix products in TensorFlow");
                Err(Diagnostic::new(Code::UnsupportedCase, told).help(flags).into())
            }
            (_, compiled) => {
                let of = open + compiled;
                let told = format!("{open} of {of} convolutions and matrix products stay in TensorFlow");
                Ok(Some(format!("{told}, for sizes are not known; {flags}")))
            }
        }
    }

    /// Lowers a cluster. Errors: the reasons for a refusal, and the nodes to exclude in the next round.
    pub fn lower_cluster(
        &self,
        scene: &GraphWithFacts,
        ports: &ClusterPorts,
        members: &HashSet<&str>,
    ) -> Result<ClusterToCompile, RefusedNodes> {
        cluster::lower(scene, ports)
            .map(ClusterToCompile)
            .map_err(|error| refused_by_diagnostics(scene, error, members))
    }

    /// Compiles a cluster and adds it to the library. Returns the cluster's index there; dumps call it `cluster`.
    pub fn compile_cluster(&mut self, mut ready: ClusterToCompile, cluster: &str) -> Result<usize> {
        let number = self.compiled.len();
        let module = &mut ready.0.lowered.module;
        let mut dump = self.dumps.as_ref().and_then(|dumps| {
            module.name = cluster.to_string();
            Dump::new(&dumps.flags, module, number as u64, dumps.micros)
        });
        let name = format!("{}_{number}", self.prefix);
        let compiled = cluster::compile(ready.0, &name, &self.native.requests, &mut dump);
        // Dumps up to an error help to find its cause.
        self.dumped.extend(dump.map(|dump| dump.files).unwrap_or_default());
        self.compiled.push(compiled?);
        Ok(number)
    }

    /// The nodes that call the compiled cluster `number`, and the functions that the call needs beside the cluster's own.
    pub fn build_call_nodes(
        &self,
        number: usize,
        made: &mut ExtractedCluster,
        shapes: &[PartialShape],
    ) -> (Vec<RawNode>, [RawFunction; 2]) {
        let places: Vec<usize> = self.compiled[number].args.iter().map(|a| a.place).collect();
        branch::build_conditional_call(made, &op(&self.prefix, number), &places, shapes)
    }

    /// Links the library, whose file is to be called `file`; `None` if nothing was compiled. Errors: `NoLinker`.
    pub fn link(self, file: &str) -> Result<Option<Vec<u8>>> {
        let Some(request) = self.native.requests.first().filter(|_| !self.compiled.is_empty()) else { return Ok(None) };
        let target = &request.target;
        let told = table::op_kernel_definitions(&self.compiled, &self.prefix, self.native.threads, target);
        let mut objects = vec![Pieces::from(codegen::assemble(&told, target)?)];
        for text in [include_str!("glue/glue.ll"), pool::TEXT] {
            objects.push(codegen::assemble(text, target)?.into());
        }
        objects.extend(self.compiled.into_iter().map(|c| c.object.content));
        let objects: Vec<&Pieces> = objects.iter().collect();
        shared_library::link_shared_library(&objects, file, target).map(Some)
    }
}

impl GraphWithFacts<'_> {
    /// Shape of each result of a cluster, as far as it is the same in every call.
    pub fn result_shapes(&self, ports: &ClusterPorts) -> Vec<PartialShape> {
        let known = |at: &Endpoint| {
            self.always.get(at.node.0 as usize)?.get(at.port as usize).map(|f| f.dims.to_partial_shape())
        };
        ports.results.iter().map(|(at, _)| known(at).unwrap_or(PartialShape(None))).collect()
    }

    fn outputs(&self, node: NodeId) -> &[Fact] {
        self.facts.get(node.0 as usize).map_or(&[], |facts| facts)
    }

    fn fact(&self, at: Endpoint) -> Option<&Fact> {
        self.outputs(at.node).get(at.port as usize)
    }

    /// Type and dimensions of an output that compiled code can hold as an array; `None` if a dimension is neither known nor bounded.
    fn array(&self, fact: &Fact) -> Option<(DType, Vec<InferredDim>)> {
        let Some(TfType::Data(dtype)) = fact.dtype else { return None };
        let dims = fact.dims.as_ranked()?;
        let sound = |d: &InferredDim| match d {
            InferredDim::Known(_) => true,
            InferredDim::Unknown(id) => self.bound(*id).is_some(),
        };
        dims.iter().all(sound).then(|| (dtype, dims.to_vec()))
    }

    /// Whether compiled code can hold an output: an array of known or bounded dimensions, a variant (a list), or the handle of a variable
    /// whose value is a constant.
    fn is_supported_output(&self, fact: &Fact) -> bool {
        let variable = fact.element.as_ref().and_then(|element| element.variable.as_ref());
        match fact.dtype {
            Some(TfType::Variant) => true,
            Some(TfType::Resource) => variable.is_some_and(|v| self.library.constants.value(v).is_some()),
            _ => self.array(fact).is_some(),
        }
    }

    /// Bounds of an unknown size; `None` if it is unbounded.
    fn bound(&self, id: DimId) -> Option<&DimBound> {
        self.library.bounds.of_size(id)
    }

    /// Whether a node takes or returns the handle of a resource that may change.
    fn touches_variable(&self, program: &Program, node: &Node) -> bool {
        let constant = |e: &Endpoint| self.handle_of(*e).is_some();
        let (resource, number) = (opdef::RESOURCE, |of| opdef::type_number(of));
        if let Some(function) = program.functions.get(&node.op) {
            let types = function.args.iter().map(|&arg| function.graph.nodes[arg].declared_type("T").map(number));
            return types.zip(node.inputs.iter()).any(|(of, e)| of == Some(resource) && !constant(e));
        }
        let Some(def) = opdef::find_def(&node.op) else { return false };
        let takes = |i: usize| def.input_type(node, i) == Some(resource);
        let gives = |i: usize| def.output_type(node, i) == Some(resource);
        node.inputs.iter().enumerate().any(|(i, e)| takes(i) && !constant(e))
            || node.inputs.is_empty() && (0..def.output_count(node)).any(gives)
    }

    /// The value of the variable to which an output is a handle, if nothing changes the variable.
    fn handle_of(&self, at: Endpoint) -> Option<&Tensor> {
        self.library.constants.value(self.fact(at)?.element.as_ref()?.variable.as_ref()?)
    }

    /// The value of the variable to which an output is a handle, or which its node reads, if nothing changes the variable.
    fn variable(&self, at: Endpoint) -> Option<&Tensor> {
        if let Some(value) = self.handle_of(at) {
            return Some(value);
        }
        let node = &self.bare.graph.nodes[at.node];
        let value = self.handle_of(*node.inputs.first().filter(|_| &*node.op == "ReadVariableOp")?)?;
        let same = self.fact(at).is_none_or(|fact| fact.dims.known_sizes().is_none_or(|dims| dims == value.dims));
        Some(value).filter(|_| same)
    }
}

/// The facts about the body of a function, given its index, or about the top-level graph (`None`). `Some(None)`: an unknown function,
/// about which there are no facts.
fn of_graph(facts: &Facts, function: Option<Option<usize>>) -> &GraphFacts {
    match function {
        Some(at) => at.and_then(|at| facts.functions.get(at)).unwrap_or(const { &GraphFacts::new() }),
        None => &facts.graph,
    }
}

/// The name of the op of cluster `number`.
fn op(prefix: &str, number: usize) -> String {
    format!("Tfaot_{prefix}_{number}")
}

/// The name of the op that checks whether arguments fit the code of `op`.
fn fits(op: &str) -> String {
    format!("{op}_fits")
}

/// Whether a node is a convolution or a matrix product.
fn contracts(node: &Node) -> bool {
    ops::find_op(&node.op).is_some_and(|row| row.is_contraction())
}

/// Turns the diagnostics of lowering a cluster into refusals. Of `members`, the cluster's nodes, those are refused that a diagnostic names
/// or that call the function in which it lies.
fn refused_by_diagnostics(scene: &GraphWithFacts, error: Error, members: &HashSet<&str>) -> RefusedNodes {
    let mut refused = RefusedNodes::default();
    for d in error.into_diagnostics() {
        let found: Vec<String> = match (&d.place.function, &d.place.node) {
            (None, Some(node)) => members.get(node.as_str()).iter().map(|n| n.to_string()).collect(),
            (Some(function), _) => callers(&scene.bare, function, members),
            (None, None) => Vec::new(),
        };
        let place = match (&d.place.node, &d.place.op) {
            (Some(node), Some(op)) => format!("`{node}` ({op}) stays in TensorFlow: "),
            _ => "a cluster stays in TensorFlow: ".to_string(),
        };
        refused.nodes.extend(found);
        refused.sizes |= d.code == Code::UnknownDim;
        refused.why.push(format!("{place}{} [{}]", d.message, d.code.id()));
    }
    refused
}

/// Nodes among `members`, the nodes of a cluster, that call the function `name` directly or through other functions.
fn callers(program: &Program, name: &str, members: &HashSet<&str>) -> Vec<String> {
    let mut reaching: HashSet<&str> = HashSet::from([name]);
    loop {
        let before = reaching.len();
        for (caller, function) in &program.functions {
            if function.graph.nodes.values().any(|n| n.called_functions().iter().any(|c| reaching.contains(&**c))) {
                reaching.insert(caller);
            }
        }
        if reaching.len() == before {
            break;
        }
    }
    let nodes = program.graph.nodes.values().filter(|n| members.contains(&*n.name));
    let calls = nodes.filter(|n| n.called_functions().iter().any(|c| reaching.contains(&**c)));
    calls.map(|n| n.name.to_string()).collect()
}

/// Error for a graph of which nothing could be compiled: lists why clusters were refused (`why`), or why nodes are in no cluster
/// (`outside`).
///
/// `sizes` says whether an unknown size is among the reasons.
pub fn no_cluster_compiled_error(why: &[String], outside: &[String], sizes: bool) -> Error {
    let told = match why.is_empty() {
        true => "TensorFlow's rules form no cluster in the graph, so there is nothing to compile",
        false => "no cluster of the graph could be compiled",
    };
    let mut d = Diagnostic::new(Code::UnsupportedCase, told);
    for line in why.iter().chain(outside).take(MOST_TOLD) {
        d = d.note(line.clone());
    }
    let help = match (sizes, why.is_empty()) {
        (true, _) => "give the sizes that are not known: --dim N, or --feed NAME=f32[1,224,224,3]",
        (false, true) => {
            "`tfaot cluster` tells of each node why it is outside; `tfaot check` whether the graph compiles as a whole"
        }
        (false, false) => {
            "`tfaot explain CODE` says more about a reason; `tfaot check` whether the graph compiles as a whole"
        }
    };
    d.help(help).into()
}

/// Start value of a 64-bit FNV-1a hash (Fowler, Noll, Vo).
const BASIS: u64 = 0xcbf2_9ce4_8422_2325;

fn hash(start: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(start, |h, &b| (h ^ u64::from(b)).wrapping_mul(0x0000_0100_0000_01b3))
}
