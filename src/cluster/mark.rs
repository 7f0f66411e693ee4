//! MarkForCompilation from end to end: finds candidates, forms clusters, drops small ones, names the rest, declusters.
use super::candidates::{self, Candidates};
use super::compilable::CompilabilityChecker;
use super::constants::RequiredConstantArgs;
use super::contract::{self, ClusterMergeFacts, Clusters, dims_of_constant};
use super::devices::DeviceKind;
use super::flow::FlowGraph;
use super::frames::Frames;
use super::placement::NodeDevices;
use super::reason::ExclusionReason;
use super::resources::{self, UnsafePairs};
use super::snapshot::GraphSnapshot;
use super::{
    Cluster, Clustering, ClusteringOptions, GraphOrigin, NodeVerdict, RefusedEdge, StopAfterPass, clone_constants,
    deadness, decluster, dynamism, scoping,
};
use crate::diag::Result;
use crate::graph::{Graph, Program};
use std::collections::HashMap;
use std::sync::Arc;

/// Constants with more elements stay outside of a cluster if nodes of other clusters use them.
const MOST_ELEMENTS: u64 = 16384;

/// Clusters `graph`.
pub fn run(program: &Program, graph: &Graph, options: &ClusteringOptions) -> Result<Clustering> {
    let mut flow = FlowGraph::import(program, graph)?;
    let mut scopes = HashMap::new();
    let mut copies = Vec::new();
    if options.origin == GraphOrigin::Saved && NodeDevices::resolve(&flow, options)?.level_is_on {
        flow.fixup_source_and_sink_edges();
        copies = clone_constants::run(&mut flow)?;
        scopes = scoping::run(&flow);
    }
    flow.fixup_source_and_sink_edges();
    let mut snapshot = options.snapshot.then(|| GraphSnapshot::capture(&flow, graph));
    let mut clustering = run_pass(program, graph, options, flow, scopes, &mut snapshot)?;
    clustering.copies = copies;
    clustering.snapshot = snapshot;
    Ok(clustering)
}

/// Runs MarkForCompilation on the imported graph, and then the later passes that `options` request.
fn run_pass(
    program: &Program,
    graph: &Graph,
    options: &ClusteringOptions,
    flow: FlowGraph,
    scopes: HashMap<u32, String>,
    snapshot: &mut Option<GraphSnapshot>,
) -> Result<Clustering> {
    if let Some(by) = pass_stopper(&flow) {
        return Ok(clustering_with_verdicts(
            graph,
            &flow,
            |_| Err(ExclusionReason::PassStopped(by.clone())),
            Vec::new(),
        ));
    }
    let placed = NodeDevices::resolve(&flow, options)?;
    let mut args = RequiredConstantArgs::default();
    let order = flow.session_order(graph);
    let mut compilable = CompilabilityChecker::new(program);
    let candidates = candidates::find_candidates(&flow, &order, &placed, options, &mut args, &mut compilable)?;
    let taken = flow.op_nodes().filter(|&n| candidates.exclusions[n as usize].is_none()).count() as u64;
    let frames = Frames::build(&flow)?;
    let left = |n: u32| candidates.exclusions[n as usize].clone().map_or(Err(ExclusionReason::LoopsCross), Err);
    if taken == 0 {
        return Ok(clustering_with_verdicts(graph, &flow, left, Vec::new()));
    }
    let Some(cycles) = contract::cycle_graph(&flow, &frames)? else {
        return Ok(Clustering { candidates: taken, ..clustering_with_verdicts(graph, &flow, left, Vec::new()) });
    };
    if let Some(snapshot) = snapshot {
        snapshot.marked = true;
    }
    let deadness = if options.flags.ignore_deadness { None } else { Some(deadness::analyse(&flow, &frames)?) };
    let unsafe_pairs = if options.flags.ignore_resources {
        UnsafePairs::none()
    } else {
        resources::find_unsafe_pairs(&flow, &|n| placed.device(n).kind != DeviceKind::Unknown)
    };
    let facts =
        ClusterMergeFacts { flow: &flow, frames: &frames, placed: &placed, options, deadness, unsafe_pairs, scopes };
    let mut clusters = Clusters::new(facts, cycles, &candidates);
    clusters.grow();
    let refused = if options.refused_edges { refused_edges(&flow, &mut clusters) } else { Vec::new() };
    let (mut marks, all) = name_clusters(&flow, &placed, options, &candidates, &mut clusters);
    drop(clusters);
    *snapshot = snapshot.take().map(|snapshot| snapshot.with_clusters(&marks));
    let named = |flow: &FlowGraph, marks: &[Result<u32, ExclusionReason>]| {
        clustering_with_verdicts(graph, flow, |n| marks[n as usize].clone(), all.clone())
    };
    let mut clustering = named(&flow, &marks);
    if options.last_pass == StopAfterPass::Declustering || snapshot.is_some() {
        // The nodes made from here on borrow from `planned`.
        let planned = dynamism::plan_slice_replacements(&flow, &|n| marks[n as usize].is_ok());
        let (mut flow, mut placed) = (flow, placed);
        dynamism::apply_slice_replacements(&mut flow, &planned, &mut placed, &mut marks)?;
        if snapshot.is_some() && !planned.is_empty() {
            clustering.snapshot_after_slices =
                Some(GraphSnapshot::capture(&flow, graph).with_clusters(&marks).without_removed_nodes(&flow));
        }
        if options.last_pass == StopAfterPass::Declustering {
            decluster::run(&mut flow, &mut placed, &mut RequiredConstantArgs::default(), &mut marks);
            let mut all = all.clone();
            all.iter_mut().for_each(|c| c.nodes = 0);
            marks.iter().flatten().for_each(|&c| all[c as usize].nodes += 1);
            clustering = Clustering {
                clusters: all,
                snapshot_after_slices: clustering.snapshot_after_slices,
                ..named(&flow, &marks)
            };
        }
    }
    clustering.refused = refused;
    clustering.candidates = taken;
    Ok(clustering)
}

/// The node whose presence makes the pass leave the whole graph alone.
fn pass_stopper(flow: &FlowGraph) -> Option<Arc<str>> {
    let stops = |n: &u32| {
        matches!(flow.op(*n), "TPUExecute" | "TPUExecuteAndUpdateVariables")
            || flow.nodes[*n as usize].node.is_some_and(|node| node.attr("_XlaAlreadyClustered").is_some())
    };
    flow.op_nodes().find(stops).map(|n| flow.name(n).into())
}

fn clustering_with_verdicts(
    graph: &Graph,
    flow: &FlowGraph,
    verdict: impl Fn(u32) -> Result<u32, ExclusionReason>,
    clusters: Vec<Cluster>,
) -> Clustering {
    let copies = flow.op_nodes().skip(flow.numbers.len());
    let numbers = graph.nodes.ids().map(|id| flow.numbers[id.0 as usize]).chain(copies);
    let nodes = numbers.map(|n| NodeVerdict {
        name: flow.name(n).to_string(),
        op: flow.op(n).to_string(),
        cluster: verdict(n),
    });
    Clustering { nodes: nodes.collect(), clusters, ..Clustering::default() }
}

fn refused_edges(flow: &FlowGraph, clusters: &mut Clusters) -> Vec<RefusedEdge> {
    let name = |n: u32| flow.name(n).to_string();
    let all = clusters.refused_edges().into_iter();
    all.map(|(from, to, why)| RefusedEdge { from: name(from), to: name(to), why }).collect()
}

/// The verdict on each node, and the clusters that are kept, named.
fn name_clusters(
    flow: &FlowGraph,
    placed: &NodeDevices,
    options: &ClusteringOptions,
    candidates: &Candidates,
    clusters: &mut Clusters,
) -> (Vec<Result<u32, ExclusionReason>>, Vec<Cluster>) {
    let mut marks: Vec<Result<u32, ExclusionReason>> = vec![Err(ExclusionReason::GraphArgument); flow.nodes.len()];
    let mut kept: Vec<Cluster> = Vec::new();
    let mut number: HashMap<u32, Result<u32, ExclusionReason>> = HashMap::new();
    for n in flow.op_nodes() {
        marks[n as usize] = match &candidates.exclusions[n as usize] {
            Some(left) => Err(left.clone()),
            None => match reason_to_drop_node(flow, clusters, n) {
                Some(left) => Err(left),
                None => {
                    let Some(cluster) = clusters.cluster_of(n) else { continue };
                    let known = number.entry(cluster.first);
                    known.or_insert_with(|| keep_cluster(cluster, placed, options, &mut kept)).clone()
                }
            },
        };
        if let Ok(of) = marks[n as usize] {
            kept[of as usize].nodes += 1;
        }
    }
    (marks, kept)
}

/// Assigns a number to a cluster, or says why it is dropped.
fn keep_cluster(
    cluster: &contract::GrowingCluster,
    placed: &NodeDevices,
    options: &ClusteringOptions,
    kept: &mut Vec<Cluster>,
) -> Result<u32, ExclusionReason> {
    let device = placed.devices.choose_cluster_device(&cluster.devices).map(|d| &placed.devices.all[d as usize]);
    let kind = device.map_or(DeviceKind::Unknown, |d| d.kind);
    if !placed.should_compile(options, cluster.requested, kind) {
        return Err(ExclusionReason::ClusterOff);
    }
    let least = options.flags.min_cluster_size;
    if cluster.effective < least && !cluster.functional && !cluster.requested {
        return Err(ExclusionReason::TooSmall { size: cluster.effective, least });
    }
    kept.push(Cluster {
        name: format!("cluster_{}", kept.len()),
        nodes: 0,
        effective: cluster.effective,
        device: device.map_or(String::new(), |d| d.name.clone()),
    });
    Ok(kept.len() as u32 - 1)
}

/// The reason to exclude a candidate from its cluster: a large constant with users elsewhere, or a Fill with no user in the cluster.
fn reason_to_drop_node(flow: &FlowGraph, clusters: &mut Clusters, n: u32) -> Option<ExclusionReason> {
    let large = flow.op(n) == "Const" && {
        let dims = flow.nodes[n as usize].node.and_then(dims_of_constant).unwrap_or_default();
        dims.iter().fold(1u64, |all, &d| all.saturating_mul(d)) > MOST_ELEMENTS
    };
    let fill = flow.op(n) == "Fill" && flow.out_edges(n).next().is_some();
    if !large && !fill {
        return None;
    }
    let own = clusters.cluster_of(n).map(|c| c.first);
    let mut outside = flow.out_edges(n).map(|e| clusters.cluster_of(e.dst).map(|c| c.first) != own);
    if large {
        return outside.any(|out| out).then_some(ExclusionReason::LargeConstant);
    }
    outside.all(|out| out).then_some(ExclusionReason::OutsideFill)
}
