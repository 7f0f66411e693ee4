//! Cluster formation: merges candidates along edges, in TensorFlow's order, until no edge can be contracted.
//!
//! Each candidate begins as a cluster of one. A sweep visits the clusters in post order and tries each edge to a successor. The first
//! sweep tries only edges to Shape, Rank and Size; the second skips nodes that only wait for others, and increments of counters;
//! the third tries every edge.
use super::ClusteringOptions;
use super::candidates::Candidates;
use super::cycles::AcyclicGraph;
use super::deadness::Deadness;
use super::flow::{CONTROL, FlowGraph, OpClass, SINK};
use super::frames::Frames;
use super::placement::NodeDevices;
use super::predicate::PredicateId;
use super::reason;
use super::resources::{self, UnsafePairs};
use super::signature;
use crate::diag::{Code, Error, Result};
use crate::graph::Attr;
use crate::opdef::{RESOURCE, type_bit};
use std::collections::HashMap;

/// Index that stands for no cluster.
const NONE: u32 = u32::MAX;

/// A cluster during its formation.
#[derive(Clone, Debug)]
pub struct GrowingCluster {
    /// The cluster's node in the cycle-detection graph.
    cycle: u32,
    /// The candidate from which the cluster grew.
    pub first: u32,
    /// Number of nodes.
    pub size: i64,
    /// Number of nodes other than constants and identities.
    pub effective: i64,
    /// Whether the cluster holds a functional loop or condition.
    pub functional: bool,
    /// Whether a node of the cluster requests compilation.
    pub requested: bool,
    /// Predicate under which the cluster's nodes are alive; `None` if deadness is not analysed.
    pred: Option<PredicateId>,
    /// Ids of the devices of the cluster's nodes, sorted.
    pub devices: Vec<u16>,
    /// The device of the variables that the cluster uses.
    resource_device: Option<u16>,
    /// Id of the scope (`_XlaScope`, `_XlaInternalScope`) of the cluster's nodes.
    scope: Option<u32>,
    /// Id of the session runs that execute the cluster, if [`ClusteringOptions::step_sets`] distinguishes them.
    step_set: Option<u32>,
    /// Nodes of the cluster that access resources or may call functions.
    resources: Vec<u32>,
}

/// Read-only facts that decide whether two clusters may merge.
pub struct ClusterMergeFacts<'a, 'p> {
    /// The graph.
    pub flow: &'a FlowGraph<'p>,
    /// Loop frames of the graph.
    pub frames: &'a Frames,
    /// Device assignments of the nodes.
    pub placed: &'a NodeDevices,
    /// Options of the clustering pass.
    pub options: &'a ClusteringOptions,
    /// Predicates under which nodes are alive; `None` if deadness is ignored.
    pub deadness: Option<Deadness>,
    /// Pairs of resource operations that must not share a cluster.
    pub unsafe_pairs: UnsafePairs,
    /// By node: the scope that [`super::scoping`] assigned.
    pub scopes: HashMap<u32, String>,
}

/// The clusters of a graph during their formation.
pub struct Clusters<'a, 'p> {
    /// Facts that decide whether clusters may merge.
    pub facts: ClusterMergeFacts<'a, 'p>,
    cycles: AcyclicGraph,
    /// Union-find parents: by node of the cycle-detection graph, the node into which it was contracted.
    parent: Vec<u32>,
    /// By representative node of the cycle-detection graph: its cluster.
    slot: Vec<u32>,
    clusters: Vec<GrowingCluster>,
    scopes: Vec<String>,
    /// Whether the nodes of the graph are on more than one device.
    mixed: bool,
}

/// Builds the cycle-detection graph of `flow`; `None` if frames of loops cross, in which case TensorFlow clusters nothing.
///
/// Edges into and out of a loop body go to a node that stands for the loop's frame. Errors: `BadGraph` for a cycle without
/// NextIteration.
pub fn cycle_graph(flow: &FlowGraph, frames: &Frames) -> Result<Option<AcyclicGraph>> {
    let mut cycles = AcyclicGraph::default();
    flow.nodes.iter().for_each(|_| {
        cycles.add_node();
    });
    let mut of_frame: HashMap<u32, u32> = HashMap::new();
    for edge in flow.edges.iter().flatten() {
        let (from, to) = (flow.class(edge.src), flow.class(edge.dst));
        let (enters, leaves) = (to == OpClass::Enter, from == OpClass::Exit);
        if enters || leaves {
            let mut frame = |n: u32| {
                let name = frames.by_node[n as usize].name;
                *of_frame.entry(name).or_insert_with(|| cycles.add_node())
            };
            let dst = if enters { frame(edge.dst) } else { edge.dst };
            let src = if leaves { frame(edge.src) } else { edge.src };
            if !cycles.insert_edge(src, dst) {
                return Ok(None);
            }
        } else if from != OpClass::NextIteration && !cycles.insert_edge(edge.src, edge.dst) {
            let told = format!("`{}` and `{}` are on a cycle", flow.name(edge.src), flow.name(edge.dst));
            return Err(Error::user(Code::BadGraph, told));
        }
    }
    Ok(Some(cycles))
}

impl<'a, 'p> Clusters<'a, 'p> {
    /// Makes a cluster of each candidate.
    pub fn new(facts: ClusterMergeFacts<'a, 'p>, cycles: AcyclicGraph, candidates: &Candidates) -> Self {
        let n = cycles.node_count();
        let mut all = Clusters {
            mixed: facts.placed.devices.all.len() > 1,
            facts,
            cycles,
            parent: (0..n as u32).collect(),
            slot: vec![NONE; n],
            clusters: Vec::new(),
            scopes: Vec::new(),
        };
        let mut scopes = HashMap::new();
        for n in all.facts.flow.op_nodes().filter(|&n| candidates.exclusions[n as usize].is_none()) {
            let cluster = all.single_node_cluster(n, candidates.requested[n as usize], &mut scopes);
            all.slot[n as usize] = all.clusters.len() as u32;
            all.clusters.push(cluster);
        }
        all
    }

    fn single_node_cluster(&mut self, n: u32, requested: bool, scopes: &mut HashMap<String, u32>) -> GrowingCluster {
        let ClusterMergeFacts { flow, placed, .. } = &self.facts;
        let kind = flow.op_facts(n);
        let node = flow.nodes[n as usize].node;
        let bits = node.map_or(0, |node| signature::all_type_bits(flow.program, node, kind.def));
        let has_resource = bits & type_bit(RESOURCE) != 0;
        let attr = if placed.level_is_on { "_XlaInternalScope" } else { "_XlaScope" };
        let given = self.facts.scopes.get(&n).filter(|_| placed.level_is_on).cloned();
        let scope = given.or_else(|| match node.and_then(|node| node.attr(attr)) {
            Some(Attr::Str(text)) if !text.is_empty() => Some(String::from_utf8_lossy(text).into_owned()),
            _ => None,
        });
        let scope = scope.map(|text| {
            *scopes.entry(text.clone()).or_insert_with(|| {
                self.scopes.push(text);
                self.scopes.len() as u32 - 1
            })
        });
        GrowingCluster {
            cycle: n,
            first: n,
            size: 1,
            effective: i64::from(!matches!(kind.class, OpClass::Identity | OpClass::Constant)),
            functional: matches!(kind.class, OpClass::While | OpClass::If),
            requested,
            pred: self.facts.deadness.as_ref().and_then(|d| d.node_predicate(n)),
            devices: vec![placed.by_node[n as usize]],
            resource_device: has_resource.then_some(placed.by_node[n as usize]),
            scope,
            step_set: self.facts.options.step_sets.get(flow.name(n)).copied(),
            resources: if has_resource || resources::may_call_function(flow, n) { vec![n] } else { Vec::new() },
        }
    }

    /// Contracts edges in all phases, until no edge can be contracted.
    pub fn grow(&mut self) {
        self.sweep(Self::contract_into_shape_op);
        self.sweep(Self::contract_unless_sink_or_counter);
        self.sweep(Self::contract);
    }

    fn sweep(&mut self, mut step: impl FnMut(&mut Self, u32, u32)) {
        for n in self.cycles.post_order() {
            let Some(from) = self.cluster_at(n) else { continue };
            let successors = self.cycles.successors(self.clusters[from as usize].cycle).to_vec();
            for to in successors {
                if let Some(to) = self.cluster_at(to).filter(|&to| to != from) {
                    step(self, from, to);
                }
            }
        }
    }

    /// The index of the cluster that owns a node of the cycle-detection graph.
    fn cluster_at(&mut self, n: u32) -> Option<u32> {
        let mut root = n;
        while self.parent[root as usize] != root {
            let above = self.parent[self.parent[root as usize] as usize];
            self.parent[root as usize] = above;
            root = above;
        }
        Some(self.slot[root as usize]).filter(|&c| c != NONE)
    }

    /// The cluster that holds node `n`.
    pub fn cluster_of(&mut self, n: u32) -> Option<&GrowingCluster> {
        self.cluster_at(n).map(|c| &self.clusters[c as usize])
    }

    /// The only node of a cluster of one node; `None` for larger clusters.
    fn single_node(&self, cluster: u32) -> Option<u32> {
        let cluster = &self.clusters[cluster as usize];
        (cluster.size == 1).then_some(cluster.first)
    }

    fn contract_into_shape_op(&mut self, from: u32, to: u32) {
        if self.single_node(to).is_some_and(|n| matches!(self.facts.flow.op(n), "Shape" | "Rank" | "Size")) {
            self.contract(from, to);
        }
    }

    fn contract_unless_sink_or_counter(&mut self, from: u32, to: u32) {
        let flow = self.facts.flow;
        let sink_like = |n: u32| {
            let mut outs = flow.out_edges(n);
            flow.op(n) == "NoOp" && outs.next().is_some_and(|e| e.dst == SINK) && outs.next().is_none()
        };
        if !self.single_node(to).is_some_and(sink_like) && !self.single_node(from).is_some_and(|n| counts_up(flow, n)) {
            self.contract(from, to);
        }
    }

    fn contract(&mut self, from: u32, to: u32) {
        if self.refusal(from, to).is_some() {
            return;
        }
        let (a, b) = (self.clusters[from as usize].cycle, self.clusters[to as usize].cycle);
        let Some(stays) = self.cycles.contract_edge(a, b) else { return };
        let gone = std::mem::replace(&mut self.clusters[to as usize], EMPTY);
        let into = &mut self.clusters[from as usize];
        into.cycle = stays;
        into.size += gone.size;
        into.effective += gone.effective;
        into.functional |= gone.functional;
        into.requested |= gone.requested;
        into.resource_device = into.resource_device.or(gone.resource_device);
        into.scope = into.scope.or(gone.scope);
        into.step_set = into.step_set.or(gone.step_set);
        into.resources.extend(gone.resources);
        for device in gone.devices {
            if let Err(at) = into.devices.binary_search(&device) {
                into.devices.insert(at, device);
            }
        }
        let goes = if stays == a { b } else { a };
        self.parent[goes as usize] = stays;
        self.slot[goes as usize] = NONE;
        self.slot[stays as usize] = from;
    }

    /// The reason, other than a cycle, why two clusters may not merge.
    fn refusal(&self, from: u32, to: u32) -> Option<Refusal> {
        let (a, b) = (&self.clusters[from as usize], &self.clusters[to as usize]);
        if a.pred != b.pred {
            return Some(Refusal::Deadness);
        }
        if self.mixed && !self.devices_fit(a, b) {
            return Some(Refusal::Devices);
        }
        if a.scope.is_some() && b.scope.is_some() && a.scope != b.scope {
            return Some(Refusal::Scopes);
        }
        if a.step_set.is_some() && b.step_set.is_some() && a.step_set != b.step_set {
            return Some(Refusal::Steps);
        }
        if a.size + b.size > self.facts.options.flags.max_cluster_size {
            return Some(Refusal::TooLarge);
        }
        if self.mixed && self.crosses_devices(a, b) {
            return Some(Refusal::CrossDevice);
        }
        self.unsafe_pair(a, b).map(|(x, y)| Refusal::Resources(x, y))
    }

    fn devices_fit(&self, a: &GrowingCluster, b: &GrowingCluster) -> bool {
        let mut all = [&a.devices[..], &b.devices[..]].concat();
        all.sort_unstable();
        all.dedup();
        let Some(chosen) = self.facts.placed.devices.choose_cluster_device(&all) else { return false };
        [a, b].iter().all(|c| c.resource_device.is_none_or(|d| d == chosen))
    }

    /// Whether a predecessor of `b` runs on a device that is incompatible with `a` or `b`.
    fn crosses_devices(&self, a: &GrowingCluster, b: &GrowingCluster) -> bool {
        self.cycles.predecessors(b.cycle).iter().any(|&p| {
            let before = self.slot[p as usize];
            before != NONE && {
                let before = &self.clusters[before as usize];
                !(self.devices_fit(before, b) && self.devices_fit(before, a))
            }
        })
    }

    /// A pair of resource operations, one of each cluster, that must not share a cluster.
    fn unsafe_pair(&self, a: &GrowingCluster, b: &GrowingCluster) -> Option<(u32, u32)> {
        if a.resources.is_empty() || b.resources.is_empty() {
            return None;
        }
        let unsafe_pairs = &self.facts.unsafe_pairs;
        a.resources.iter().find_map(|&x| b.resources.iter().find(|&&y| unsafe_pairs.forbids(x, y)).map(|&y| (x, y)))
    }

    /// Edges of the cycle-detection graph between two clusters that were not merged, each with the reason. Call after [`Self::grow`].
    ///
    /// An end is given by the first node of its cluster.
    pub fn refused_edges(&mut self) -> Vec<(u32, u32, reason::UnmergedEdgeReason)> {
        let mut found = Vec::new();
        for n in self.cycles.post_order().into_iter().rev() {
            let Some(from) = self.cluster_at(n) else { continue };
            for to in self.cycles.successors(n).to_vec() {
                let Some(to) = self.cluster_at(to) else { continue };
                let why = self.reason(from, to);
                found.push((self.clusters[from as usize].first, self.clusters[to as usize].first, why));
            }
        }
        found
    }

    fn reason(&mut self, from: u32, to: u32) -> reason::UnmergedEdgeReason {
        let (a, b) = (self.clusters[from as usize].clone(), self.clusters[to as usize].clone());
        let ClusterMergeFacts { flow, frames, options, deadness, .. } = &self.facts;
        match self.refusal(from, to) {
            Some(Refusal::Deadness) => {
                let text = |pred: Option<PredicateId>| match (deadness, pred) {
                    (Some(d), Some(pred)) => d.predicate_text(pred, flow, frames),
                    _ => String::new(),
                };
                reason::UnmergedEdgeReason::Deadness { from: text(a.pred), to: text(b.pred) }
            }
            Some(Refusal::Devices) => reason::UnmergedEdgeReason::Devices,
            Some(Refusal::Scopes) => {
                let text = |scope: Option<u32>| scope.map_or(String::new(), |s| self.scopes[s as usize].clone());
                reason::UnmergedEdgeReason::Scopes { from: text(a.scope), to: text(b.scope) }
            }
            Some(Refusal::Steps) => {
                let text = |steps: Option<u32>| steps.map_or(String::new(), |s| format!("steps {s}"));
                reason::UnmergedEdgeReason::Scopes { from: text(a.step_set), to: text(b.step_set) }
            }
            Some(Refusal::TooLarge) => {
                reason::UnmergedEdgeReason::TooLarge { size: a.size + b.size, most: options.flags.max_cluster_size }
            }
            Some(Refusal::CrossDevice) => reason::UnmergedEdgeReason::CrossDevice,
            Some(Refusal::Resources(x, y)) => reason::UnmergedEdgeReason::Resources {
                before: flow.name(x).to_string(),
                after: flow.name(y).to_string(),
            },
            None => {
                let way = self.cycles.alternative_path(a.cycle, b.cycle).unwrap_or_default();
                reason::UnmergedEdgeReason::Cycle { path: way.into_iter().map(|n| self.describe_node(n)).collect() }
            }
        }
    }

    /// Name of a node of the cycle-detection graph: of a graph node, of a cluster's first node, or `a loop` for a frame.
    fn describe_node(&mut self, n: u32) -> String {
        let first = self.cluster_of(n).map(|c| c.first);
        match first.unwrap_or(n) {
            n if (n as usize) < self.facts.flow.nodes.len() => self.facts.flow.name(n).to_string(),
            _ => "a loop".to_string(),
        }
    }
}

enum Refusal {
    Deadness,
    Devices,
    Scopes,
    Steps,
    TooLarge,
    CrossDevice,
    Resources(u32, u32),
}

/// Placeholder for a cluster that was merged into another.
const EMPTY: GrowingCluster = GrowingCluster {
    cycle: 0,
    first: 0,
    size: 0,
    effective: 0,
    functional: false,
    requested: false,
    pred: None,
    devices: Vec::new(),
    resource_device: None,
    scope: None,
    step_set: None,
    resources: Vec::new(),
};

/// Whether node `n` increments a counter: adds a constant scalar to an integer variable.
fn counts_up(flow: &FlowGraph, n: u32) -> bool {
    if !matches!(flow.op(n), "AssignAddVariableOp" | "AssignSubVariableOp") {
        return false;
    }
    let Some(node) = flow.nodes[n as usize].node else { return false };
    let integer = node.tf_type("dtype").and_then(|t| t.dtype()).is_some_and(|t| t.is_integer());
    let mut constants = flow.in_edges(n).filter(|e| e.dst_port != CONTROL && flow.class(e.src) == OpClass::Constant);
    let first = constants.next().and_then(|e| flow.nodes[e.src as usize].node);
    integer && first.and_then(dims_of_constant).is_some_and(|dims| dims.is_empty())
}

/// The dimensions of a constant's value.
pub fn dims_of_constant(node: &crate::graph::Node) -> Option<Vec<u64>> {
    match node.attr("value") {
        Some(Attr::Tensor(value)) => Some(value.dims.clone()),
        Some(Attr::Strings(dims, _)) => Some(dims.to_vec()),
        _ => None,
    }
}
