//! The graphs of a file that TensorFlow would cluster: the top level, and each function that is called from outside of clusters.
use super::calls::{ClusterCalls, ExtractedCluster};
use super::jit_functions::JitFunctions;
use super::meta_graph::ExternalNames;
use super::native::{self, ClusterToCompile, ExclusionCounts, Library, RefusedNodes};
use super::{Mode, Rewritten, annotate, launch};
use crate::cluster::{self, Clustering, ClusteringOptions, GraphOrigin};
use crate::diag::{Error, Result};
use crate::graph::{Attr, Function, Graph, Node, NodeId, Program};
use crate::import::raw::{RawFunction, RawGraph, RawNode};
use crate::opdef;
use crate::prepare;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// One graph with its clusters, ready for extraction.
pub struct GraphWithClusters<'p> {
    /// The program whose functions the graph calls.
    pub program: &'p Program,
    /// Index of the cluster of each clustered node, by the node's name.
    pub members: HashMap<String, u32>,
    /// Names of the clusters, unique in the program.
    pub names: Vec<String>,
    /// Nodes by name, including copies of constants.
    pub nodes: HashMap<String, &'p Node>,
    /// Ids of the nodes in their graph; a copy has the id of its original.
    pub ids: HashMap<String, NodeId>,
}

/// State of rewriting all graphs of one program.
pub struct Rewriter<'a, 'p> {
    /// The program that is rewritten.
    pub program: &'p Program,
    /// Options for forming clusters.
    pub options: ClusteringOptions,
    /// The form in which clusters are written.
    pub mode: Mode<'a>,
    /// Tensors that must keep their names.
    pub fetches: &'a [String],
    /// The library of compiled clusters, in the mode [`Mode::Native`].
    pub library: Option<Library<'a>>,
    /// Result so far: counts, notes and clusters of the graphs that are rewritten; its file content is set at the end.
    pub told: Rewritten,
    /// Nodes that stay in TensorFlow, in the mode [`Mode::Native`].
    pub uncompiled: UncompiledNodes,
    /// Functions to rewrite; `None`: all.
    pub functions: Option<HashSet<Arc<str>>>,
    /// Nodes of the top-level graph that no signature reaches. Nodes in functions may have the same names.
    pub unserved: HashSet<String>,
    /// Names that the file uses outside of the graph.
    pub named: ExternalNames,
    /// For each node of the top-level graph, the id of the set of session runs that execute the node.
    pub steps: HashMap<String, u32>,
    /// Functions that TensorFlow would compile with XLA as a whole.
    marked: JitFunctions,
    /// Names that are already in use.
    taken: HashSet<String>,
    /// Functions of clusters, to be added to the file.
    added: Vec<RawFunction>,
}

/// Summary of the nodes that stay in TensorFlow in the mode [`Mode::Native`].
#[derive(Debug, Default)]
pub struct UncompiledNodes {
    /// Counts of the nodes that TensorFlow's clustering rules leave outside, by reason.
    pub outside: ExclusionCounts,
    /// Whether nodes stay in TensorFlow because of unknown sizes.
    pub sizes: bool,
    /// Number of convolutions and matrix products that stay in TensorFlow because of unknown sizes.
    pub contractions: u64,
}

/// A graph of the program under rewriting.
struct GraphInRewrite<'r, 'p> {
    graph: &'p Graph,
    /// The function whose body the graph is; `None` at the top level.
    function: Option<(&'p Function, &'r mut RawFunction)>,
}

impl GraphInRewrite<'_, '_> {
    fn name(&self) -> Option<&Arc<str>> {
        self.function.as_ref().map(|(function, _)| &function.name)
    }
}

impl<'a, 'p> Rewriter<'a, 'p> {
    /// Creates a rewriter for the graphs of `program`; nothing is rewritten yet.
    pub fn new(
        program: &'p Program,
        options: &ClusteringOptions,
        mode: Mode<'a>,
        fetches: &'a [String],
        library: Option<Library<'a>>,
    ) -> Self {
        Rewriter {
            program,
            options: options.clone(),
            mode,
            fetches,
            library,
            told: Rewritten::default(),
            uncompiled: UncompiledNodes::default(),
            functions: None,
            unserved: HashSet::new(),
            named: ExternalNames::default(),
            steps: HashMap::new(),
            marked: JitFunctions::collect(program),
            taken: HashSet::new(),
            added: Vec::new(),
        }
    }

    /// Rewrites every graph of `raw`.
    pub fn run(&mut self, raw: &mut RawGraph) -> Result<()> {
        self.taken.extend(raw.functions.iter().map(|f| f.name.clone()));
        self.taken.extend(raw.nodes.iter().map(|n| n.name.clone()));
        let dump = cluster::is_dump(&self.program.graph);
        self.options.origin = if dump { GraphOrigin::Dump } else { GraphOrigin::Saved };
        let mut nodes = std::mem::take(&mut raw.nodes);
        let mut open = self.graph(GraphInRewrite { graph: &self.program.graph, function: None }, &mut nodes)?;
        raw.nodes = nodes;
        let sites = call_sites(self.program);
        let mut seen: HashSet<Arc<str>> = HashSet::new();
        self.options.origin = GraphOrigin::Saved;
        while let Some(name) = open.pop() {
            let is_asked = self.functions.as_ref().is_none_or(|all| all.contains(&name));
            let function = self.program.functions.get(&name).filter(|_| is_asked && seen.insert(name.clone()));
            let Some(function) = function else { continue };
            if matches!(self.mode, Mode::Native(_)) && !self.marked.has_no_jit_caller(&name) {
                self.told.notes.push(format!(
                    "`{name}` stays as it is: functions with jit_compile=True call it, which XLA compiles whole"
                ));
                continue;
            }
            if matches!(self.mode, Mode::Annotate) && sites.get(&name).is_some_and(|&n| n > 1) {
                self.told.notes.push(format!(
                    "`{name}` is called from several places and is not marked: inlined, its marks would meet"
                ));
                continue;
            }
            let Some(at) = raw.functions.iter().position(|f| *f.name == *name) else { continue };
            let mut body = std::mem::take(&mut raw.functions[at].nodes);
            let place = GraphInRewrite { graph: &function.graph, function: Some((function, &mut raw.functions[at])) };
            open.extend(self.graph(place, &mut body).map_err(|e| in_function(e, &name))?);
            raw.functions[at].nodes = body;
        }
        self.marked.delete_marks(raw);
        raw.functions.append(&mut self.added);
        Ok(())
    }

    /// Rewrites one graph and returns the functions that its nodes outside of clusters call.
    fn graph(&mut self, mut place: GraphInRewrite<'_, 'p>, nodes: &mut Vec<RawNode>) -> Result<Vec<Arc<str>>> {
        if let Mode::Native(_) = self.mode {
            return self.native(place, nodes);
        }
        let asked = self.options.excluded_nodes.clone();
        if let Mode::Annotate = self.mode {
            self.options.excluded_nodes.extend(expanded(self.program, place.graph));
        }
        let found = self.clusters(&place)?;
        self.options.excluded_nodes = asked;
        let formed = found.snapshot.is_some().then(|| found.clone());
        let unit = self.unit(place.graph, found, nodes);
        self.keep_formed(&place, formed, &unit);
        match self.mode {
            Mode::Annotate => annotate::set_cluster_attrs(&unit, nodes)?,
            Mode::Xla | Mode::Native(_) => {
                let calls = self.calls(&unit, &place, nodes, launch::OUTPUT)?;
                let mut made = calls.remove_clusters(nodes, place.function.as_mut().map(|f| &mut *f.1))?;
                made.iter_mut().for_each(ExtractedCluster::forbid_inlining);
                nodes.extend(made.iter().map(launch::call_node));
                self.added.extend(made.into_iter().map(|made| made.function));
            }
        }
        self.count(&unit);
        Ok(outside_calls(self.program, place.graph, &unit))
    }

    fn clusters(&self, place: &GraphInRewrite) -> Result<Clustering> {
        let mut options = self.options.clone();
        if let Some((function, _)) = &place.function {
            options.excluded_nodes.extend(self.named.captured.get(&*function.name).into_iter().flatten().cloned());
            return cluster::cluster_function(self.program, function, &options);
        }
        options.excluded_nodes.extend(self.unserved.iter().chain(&self.named.nodes).cloned());
        options.excluded_nodes.extend(targets(place.graph, self.fetches));
        // Callers of the object graph run these functions instead of the graph, so clusters must be formed in their bodies.
        let runs = |n: &&Node| n.called_functions().iter().any(|function| self.named.functions.contains(&**function));
        options.excluded_nodes.extend(place.graph.nodes.values().filter(runs).map(|n| n.name.to_string()));
        options.step_sets.clone_from(&self.steps);
        if let Mode::Xla = self.mode {
            // a session runs only what a fetch needs; fetching a result of a cluster would run all its assignments
            let assigning = place.graph.nodes.values().filter(|n| prepare::assigns_variable(&n.op));
            options.excluded_nodes.extend(assigning.map(|n| n.name.to_string()));
        }
        cluster::cluster(self.program, &cluster::with_full_devices(place.graph)?, &options)
    }

    fn calls<'u>(
        &self,
        unit: &'u GraphWithClusters<'p>,
        place: &GraphInRewrite,
        nodes: &[RawNode],
        output: &'static str,
    ) -> Result<ClusterCalls<'u, 'p>> {
        match &place.function {
            Some((_, function)) => ClusterCalls::of_function_body(unit, nodes, function, output),
            None => ClusterCalls::of_graph(unit, nodes, self.fetches, output),
        }
    }

    /// Compiles the clusters of one graph. After a refusal, clusters are formed again without the offending nodes.
    fn native(&mut self, mut place: GraphInRewrite<'_, 'p>, nodes: &mut Vec<RawNode>) -> Result<Vec<Arc<str>>> {
        let asked = self.options.excluded_nodes.clone();
        let (mut unit, ready) = self.rounds(&place, nodes)?;
        self.options.excluded_nodes = asked;
        let Some(library) = &mut self.library else { return Ok(Vec::new()) };
        let mut numbers = Vec::new();
        for (name, mut ready) in unit.names.iter().zip(ready) {
            self.told.notes.extend(ready.as_mut().map(ClusterToCompile::take_omitted_effects).unwrap_or_default());
            let number = ready.map(|ready| library.compile_cluster(ready, name)).transpose();
            numbers.push(match number {
                Ok(number) => number,
                Err(Error::User(all)) => {
                    self.told.notes.extend(all.iter().map(|d| format!("`{name}` stays in TensorFlow: {}", d.message)));
                    None
                }
                Err(internal) => return Err(internal),
            });
        }
        unit.members.retain(|_, cluster| numbers[*cluster as usize].is_some());
        library.count_contractions(unit.members.keys().filter_map(|name| unit.nodes.get(name).copied()));
        let calls = self.calls(&unit, &place, nodes, native::OUTPUT)?;
        let Some(library) = &self.library else { return Ok(Vec::new()) };
        let scene = library.graph_with_facts(self.program, place.graph, place.name());
        let kept = numbers.iter().enumerate().filter_map(|(cluster, number)| Some((cluster, (*number)?)));
        let kept = kept.map(|(cluster, number)| Ok((number, scene.result_shapes(&calls.cluster_ports(cluster)?))));
        let kept = kept.collect::<Result<Vec<_>>>()?;
        let made = calls.remove_clusters(nodes, place.function.as_mut().map(|f| &mut *f.1))?;
        if let Some(name) = place.name().filter(|name| self.marked.is_marked(name)) {
            if made.is_empty() {
                return Ok(Vec::new());
            }
            self.marked.remove_mark(name);
        }
        for ((number, shapes), mut made) in kept.into_iter().zip(made) {
            let (calls, branches) = library.build_call_nodes(number, &mut made, &shapes);
            nodes.extend(calls);
            self.added.extend(branches);
            self.added.push(made.function);
        }
        self.count(&unit);
        let mut open = outside_calls(self.program, place.graph, &unit);
        let outside = place.graph.nodes.values().filter(|n| !unit.members.contains_key(&*n.name));
        for node in outside {
            open.extend(cluster::jit_compile_function(self.program, node));
            if is_control_flow(node) {
                open.extend(
                    node.called_functions().into_iter().filter(|name| self.program.functions.contains_key(name)),
                );
            }
        }
        Ok(open)
    }

    /// Forms clusters, and lowers them, until none is refused, for at most [`native::ROUNDS`] rounds. The copies of constants that the last
    /// round's clusters need are added to `nodes`.
    fn rounds(
        &mut self,
        place: &GraphInRewrite<'_, 'p>,
        nodes: &mut Vec<RawNode>,
    ) -> Result<(GraphWithClusters<'p>, Vec<Option<ClusterToCompile>>)> {
        let scene =
            self.library.as_ref().map(|library| library.graph_with_facts(self.program, place.graph, place.name()));
        let mut refused = RefusedNodes::default();
        if let (Some(library), Some(scene)) = (&self.library, &scene) {
            let found = self.clusters(place)?;
            self.uncompiled.outside.add(&found);
            if self.options.beyond_xla {
                self.told.notes.extend(found.nodes.iter().filter_map(native::note_on_assertions_and_prints));
            }
            let members = found.nodes.into_iter().filter_map(|n| Some((n.name, n.cluster.ok()?))).collect();
            refused = library.initial_exclusions(self.program, scene, &members);
        }
        let taken = self.taken.clone();
        for round in 1.. {
            self.options.excluded_nodes.extend(refused.nodes.drain());
            let found = self.clusters(place)?;
            let formed = found.snapshot.is_some().then(|| found.clone());
            let mut trial = nodes.clone();
            self.taken.clone_from(&taken);
            let mut unit = self.unit(place.graph, found, &mut trial);
            keep_constants_outside(&mut unit, &trial);
            let (ready, more) = self.ready(&unit, place, &trial)?;
            // each node reported here is new in its round, as it was in a cluster
            refused.why.extend(more.why);
            refused.sizes |= more.sizes;
            refused.nodes = more.nodes;
            if refused.nodes.is_empty() || round == native::ROUNDS {
                *nodes = trial;
                self.keep_formed(place, formed, &unit);
                self.told.notes.append(&mut refused.why);
                self.uncompiled.sizes |= refused.sizes;
                self.uncompiled.contractions += refused.contractions;
                return Ok((unit, ready));
            }
        }
        Err(Error::internal("rewrite", "rounds without an end"))
    }

    /// Lowers each cluster (`None` for one that is empty or refused), and collects the refused nodes.
    fn ready(
        &self,
        unit: &GraphWithClusters<'p>,
        place: &GraphInRewrite,
        nodes: &[RawNode],
    ) -> Result<(Vec<Option<ClusterToCompile>>, RefusedNodes)> {
        let (mut all, mut refused) = (Vec::new(), RefusedNodes::default());
        let Some(library) = &self.library else { return Ok((all, refused)) };
        let scene = library.graph_with_facts(self.program, place.graph, place.name());
        let calls = self.calls(unit, place, nodes, native::OUTPUT)?;
        for cluster in 0..unit.names.len() {
            let inside = unit.members.iter().filter(|(_, at)| **at as usize == cluster);
            let members: HashSet<&str> = inside.map(|(name, _)| name.as_str()).collect();
            if members.is_empty() {
                all.push(None);
                continue;
            }
            all.push(match library.lower_cluster(&scene, &calls.cluster_ports(cluster)?, &members) {
                Ok(ready) => Some(ready),
                Err(more) => {
                    refused.nodes.extend(more.nodes);
                    refused.sizes |= more.sizes;
                    refused.why.extend(more.why);
                    None
                }
            });
        }
        Ok((all, refused))
    }

    /// Records the clusters of a graph in [`Rewritten::formed`], if there is a snapshot (`formed`), with the names that `unit` gives them.
    fn keep_formed(&mut self, place: &GraphInRewrite, formed: Option<Clustering>, unit: &GraphWithClusters) {
        let Some(mut formed) = formed else { return };
        formed.clusters.iter_mut().zip(&unit.names).for_each(|(cluster, name)| cluster.name.clone_from(name));
        self.told.formed.push((place.name().cloned(), formed));
    }

    fn count(&mut self, unit: &GraphWithClusters) {
        let used: HashSet<u32> = unit.members.values().copied().collect();
        self.told.clusters += used.len();
        self.told.nodes += unit.members.len() as u64;
    }

    /// Builds the [`GraphWithClusters`] for a clustering of `graph`: gives the clusters unique names, and adds the copies of constants that
    /// clustering made to `nodes`.
    fn unit(&mut self, graph: &'p Graph, found: Clustering, nodes: &mut Vec<RawNode>) -> GraphWithClusters<'p> {
        let mut unit = GraphWithClusters {
            program: self.program,
            members: HashMap::new(),
            names: Vec::new(),
            nodes: graph.nodes.values().map(|n| (n.name.to_string(), n)).collect(),
            ids: graph.nodes.iter().map(|(id, n)| (n.name.to_string(), id)).collect(),
        };
        copy_constants(&found, nodes, &mut unit);
        for number in 0..found.clusters.len() {
            let mut name = format!("cluster_{}", self.told.clusters + number);
            while !self.taken.insert(name.clone()) {
                name.push_str("_1");
            }
            unit.names.push(name);
        }
        unit.members = found.nodes.into_iter().filter_map(|n| Some((n.name, n.cluster.ok()?))).collect();
        keep_feeds_outside(&mut unit, nodes);
        unit
    }
}

fn in_function(error: Error, name: &str) -> Error {
    error.map(|mut d| {
        d.place.function.get_or_insert_with(|| name.to_string());
        d
    })
}

/// Adds the constants that clustering duplicated to `nodes` and `unit`, and makes their users read the duplicates.
fn copy_constants(found: &Clustering, nodes: &mut Vec<RawNode>, unit: &mut GraphWithClusters) {
    if found.copies.is_empty() {
        return;
    }
    let places: HashMap<String, usize> = nodes.iter().enumerate().map(|(i, n)| (n.name.clone(), i)).collect();
    for copy in &found.copies {
        let of = unit.nodes.get(&copy.constant).copied().zip(unit.ids.get(&copy.constant).copied());
        let (Some(&from), Some((of, id))) = (places.get(&copy.constant), of) else { continue };
        let made = RawNode { name: copy.name.clone(), ..nodes[from].clone() };
        nodes.push(made);
        unit.nodes.insert(copy.name.clone(), of);
        unit.ids.insert(copy.name.clone(), id);
        let Some(&user) = places.get(&copy.user) else { continue };
        let inputs = &mut nodes[user].inputs;
        match copy.input {
            None => inputs.push(format!("^{}", copy.name)),
            Some(port) => {
                if let Some(input) = inputs.iter_mut().filter(|i| !i.starts_with('^')).nth(port) {
                    let rest = input.find(':').map_or("", |at| &input[at..]);
                    *input = format!("{}{rest}", copy.name);
                }
            }
        }
    }
}

/// Moves each PlaceholderWithDefault, which may be fed, out of its cluster, together with its constant default.
fn keep_feeds_outside(unit: &mut GraphWithClusters, nodes: &[RawNode]) {
    for node in nodes.iter().filter(|n| n.op == "PlaceholderWithDefault") {
        unit.members.remove(&node.name);
        for input in node.inputs.iter().filter(|i| !i.starts_with('^')) {
            let from = input.split(':').next().unwrap_or(input);
            if unit.nodes.get(from).is_some_and(|n| &*n.op == "Const") {
                unit.members.remove(from);
            }
        }
    }
}

/// Moves constants with users outside of their cluster out of it; the code of the cluster contains their values anyway.
fn keep_constants_outside(unit: &mut GraphWithClusters, nodes: &[RawNode]) {
    let is_free = |name: &str| unit.nodes.get(name).is_some_and(|n| &*n.op == "Const" && n.controls.is_empty());
    let mut outside = HashSet::new();
    for node in nodes {
        let own = unit.members.get(&node.name);
        for input in &node.inputs {
            let from = input.trim_start_matches('^').split(':').next().unwrap_or(input);
            if unit.members.get(from) != own && is_free(from) {
                outside.insert(from.to_string());
            }
        }
    }
    unit.members.retain(|name, _| !outside.contains(name));
}

/// The functions that nodes outside of clusters call.
fn outside_calls(program: &Program, graph: &Graph, unit: &GraphWithClusters) -> Vec<Arc<str>> {
    let nodes = graph.nodes.values().filter(|n| !unit.members.contains_key(&*n.name));
    let mut calls: Vec<Arc<str>> = nodes.filter_map(|n| cluster::called_function(program, n)).collect();
    calls.reverse();
    calls
}

/// Whether a node is a loop or a conditional, so that the values of tensors decide whether and how often its functions run.
fn is_control_flow(node: &Node) -> bool {
    matches!(&*node.op, "While" | "StatelessWhile" | "If" | "StatelessIf" | "Case" | "StatelessCase")
}

/// Nodes that a session runs by name: those without outputs that are fetched or that no control edge leaves.
fn targets(graph: &Graph, fetches: &[String]) -> Vec<String> {
    let waited: HashSet<NodeId> = graph.nodes.values().flat_map(|n| n.controls.iter().copied()).collect();
    let nothing = |n: &Node| opdef::find_def(&n.op).is_some_and(|d| d.output_count(n) == 0);
    let fetched: HashSet<&str> = fetches.iter().map(String::as_str).collect();
    let run = |id: NodeId, n: &Node| !waited.contains(&id) || fetched.contains(&*n.name);
    let alone = graph.nodes.iter().filter(|(id, n)| nothing(n) && run(*id, n));
    alone.map(|(_, n)| n.name.to_string()).collect()
}

/// Nodes that TensorFlow replaces before it looks at cluster marks: calls that it inlines, and control flow that is marked for lowering.
/// If they were marked, their replacements would form cycles with their neighbours.
fn expanded(program: &Program, graph: &Graph) -> Vec<String> {
    let inlined = |n: &Node| {
        let function = cluster::called_function(program, n).and_then(|name| program.functions.get(&name));
        function.is_some_and(|f| f.bool("_noinline") != Some(true))
    };
    let lowered = |n: &Node| n.bool("_lower_using_switch_merge") == Some(true);
    graph.nodes.values().filter(|n| lowered(n) || inlined(n)).map(|n| n.name.to_string()).collect()
}

/// Number of nodes and attributes in the program that name each function, by function.
fn call_sites(program: &Program) -> HashMap<Arc<str>, usize> {
    let mut sites: HashMap<Arc<str>, usize> = HashMap::new();
    let graphs = std::iter::once(&program.graph).chain(program.functions.values().map(|f| &f.graph));
    for node in graphs.flat_map(|g| g.nodes.values()) {
        if program.functions.contains_key(&node.op) {
            *sites.entry(node.op.clone()).or_default() += 1;
        }
        for (_, attr) in &node.attrs {
            match attr {
                Attr::Func(f) => *sites.entry(f.name.clone()).or_default() += 1,
                Attr::Funcs(all) => all.iter().for_each(|f| *sites.entry(f.name.clone()).or_default() += 1),
                _ => {}
            }
        }
    }
    sites
}
