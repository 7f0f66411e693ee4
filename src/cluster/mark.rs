//! The pass from end to end: candidates, contraction, what is taken out again, names.
use super::candidates::{self, Candidates};
use super::compilable::Compilable;
use super::constants::ConstantArgs;
use super::contract::{self, Clusters, MergeFacts, constant_dims};
use super::devices::DeviceKind;
use super::flow::Flow;
use super::frames::Frames;
use super::placement::NodeDevices;
use super::reason::ExclusionReason;
use super::resources::{self, Unsafe};
use super::snapshot::GraphSnapshot;
use super::{
    Cluster, Clustering, Entrance, Options, RefusedEdge, Until, Verdict, clone_constants, deadness, decluster,
    dynamism, scoping,
};
use crate::diag::Result;
use crate::graph::{Graph, Program};
use std::collections::HashMap;
use std::sync::Arc;

/// A constant of more elements stays outside where others use it.
const MOST_ELEMENTS: u64 = 16384;

/// Marks the nodes of `graph`.
pub fn run(program: &Program, graph: &Graph, options: &Options) -> Result<Clustering> {
    let mut flow = Flow::import(program, graph)?;
    let mut scopes = HashMap::new();
    let mut copies = Vec::new();
    if options.entrance == Entrance::Saved && NodeDevices::resolve(&flow, options)?.level_is_on {
        flow.fix_ends();
        copies = clone_constants::run(&mut flow)?;
        scopes = scoping::run(&flow);
    }
    flow.fix_ends();
    let mut seen = options.seen.then(|| GraphSnapshot::capture(&flow, graph));
    let mut clustering = marked(program, graph, options, flow, scopes, &mut seen)?;
    clustering.copies = copies;
    clustering.seen = seen;
    Ok(clustering)
}

/// The pass itself.
fn marked(
    program: &Program,
    graph: &Graph,
    options: &Options,
    flow: Flow,
    scopes: HashMap<u32, String>,
    seen: &mut Option<GraphSnapshot>,
) -> Result<Clustering> {
    if let Some(by) = stops_pass(&flow) {
        return Ok(answer(graph, &flow, |_| Err(ExclusionReason::PassStopped(by.clone())), Vec::new()));
    }
    let placed = NodeDevices::resolve(&flow, options)?;
    let mut args = ConstantArgs::default();
    let order = flow.session_order(graph);
    let candidates = candidates::find(&flow, &order, &placed, options, &mut args, &mut Compilable::new(program))?;
    let taken = flow.op_nodes().filter(|&n| candidates.left[n as usize].is_none()).count() as u64;
    let frames = Frames::find(&flow)?;
    let left = |n: u32| candidates.left[n as usize].clone().map_or(Err(ExclusionReason::LoopsCross), Err);
    if taken == 0 {
        return Ok(answer(graph, &flow, left, Vec::new()));
    }
    let Some(cycles) = contract::cycle_graph(&flow, &frames)? else {
        return Ok(Clustering { candidates: taken, ..answer(graph, &flow, left, Vec::new()) });
    };
    if let Some(seen) = seen {
        seen.marked = true;
    }
    let deadness = if options.flags.ignore_deadness { None } else { Some(deadness::analyse(&flow, &frames)?) };
    let apart = if options.flags.ignore_resources {
        Unsafe::none()
    } else {
        resources::analyse(&flow, &|n| placed.device(n).kind != DeviceKind::Unknown)
    };
    let facts = MergeFacts { flow: &flow, frames: &frames, placed: &placed, options, deadness, apart, scopes };
    let mut clusters = Clusters::new(facts, cycles, &candidates);
    clusters.grow();
    let refused = if options.refused_edges { refused(&flow, &mut clusters) } else { Vec::new() };
    let (mut marks, all) = name(&flow, &placed, options, &candidates, &mut clusters);
    drop(clusters);
    *seen = seen.take().map(|seen| seen.marked(&marks));
    let named = |flow: &Flow, marks: &[Result<u32, ExclusionReason>]| {
        answer(graph, flow, |n| marks[n as usize].clone(), all.clone())
    };
    let mut clustering = named(&flow, &marks);
    if options.until == Until::Declustered || seen.is_some() {
        // What follows makes nodes that live no longer than the plan.
        let planned = dynamism::plan(&flow, &|n| marks[n as usize].is_ok());
        let (mut flow, mut placed) = (flow, placed);
        dynamism::apply(&mut flow, &planned, &mut placed, &mut marks)?;
        if seen.is_some() && !planned.is_empty() {
            clustering.remade = Some(GraphSnapshot::capture(&flow, graph).marked(&marks).without_gone(&flow));
        }
        if options.until == Until::Declustered {
            decluster::run(&mut flow, &mut placed, &mut ConstantArgs::default(), &mut marks);
            let mut all = all.clone();
            all.iter_mut().for_each(|c| c.nodes = 0);
            marks.iter().flatten().for_each(|&c| all[c as usize].nodes += 1);
            clustering = Clustering { clusters: all, remade: clustering.remade, ..named(&flow, &marks) };
        }
    }
    clustering.refused = refused;
    clustering.candidates = taken;
    Ok(clustering)
}

/// The node that makes the pass leave the graph alone.
fn stops_pass(flow: &Flow) -> Option<Arc<str>> {
    let stops = |n: &u32| {
        matches!(flow.op(*n), "TPUExecute" | "TPUExecuteAndUpdateVariables")
            || flow.nodes[*n as usize].node.is_some_and(|node| node.attr("_XlaAlreadyClustered").is_some())
    };
    flow.op_nodes().find(stops).map(|n| flow.name(n).into())
}

fn answer(
    graph: &Graph,
    flow: &Flow,
    verdict: impl Fn(u32) -> Result<u32, ExclusionReason>,
    clusters: Vec<Cluster>,
) -> Clustering {
    let copies = flow.op_nodes().skip(flow.numbers.len());
    let numbers = graph.nodes.ids().map(|id| flow.numbers[id.0 as usize]).chain(copies);
    let nodes =
        numbers.map(|n| Verdict { name: flow.name(n).to_string(), op: flow.op(n).to_string(), cluster: verdict(n) });
    Clustering { nodes: nodes.collect(), clusters, ..Clustering::default() }
}

fn refused(flow: &Flow, clusters: &mut Clusters) -> Vec<RefusedEdge> {
    let name = |n: u32| flow.name(n).to_string();
    let all = clusters.refused().into_iter();
    all.map(|(from, to, why)| RefusedEdge { from: name(from), to: name(to), why }).collect()
}

/// The verdict of each node, and the clusters that are kept.
fn name(
    flow: &Flow,
    placed: &NodeDevices,
    options: &Options,
    candidates: &Candidates,
    clusters: &mut Clusters,
) -> (Vec<Result<u32, ExclusionReason>>, Vec<Cluster>) {
    let mut marks: Vec<Result<u32, ExclusionReason>> = vec![Err(ExclusionReason::GraphArgument); flow.nodes.len()];
    let mut kept: Vec<Cluster> = Vec::new();
    let mut number: HashMap<u32, Result<u32, ExclusionReason>> = HashMap::new();
    for n in flow.op_nodes() {
        marks[n as usize] = match &candidates.left[n as usize] {
            Some(left) => Err(left.clone()),
            None => match taken_out(flow, clusters, n) {
                Some(left) => Err(left),
                None => {
                    let Some(cluster) = clusters.cluster_of(n) else { continue };
                    let known = number.entry(cluster.first);
                    known.or_insert_with(|| keep(cluster, placed, options, &mut kept)).clone()
                }
            },
        };
        if let Ok(of) = marks[n as usize] {
            kept[of as usize].nodes += 1;
        }
    }
    (marks, kept)
}

/// The number of a cluster, or why it is dropped.
fn keep(
    cluster: &contract::GrowingCluster,
    placed: &NodeDevices,
    options: &Options,
    kept: &mut Vec<Cluster>,
) -> Result<u32, ExclusionReason> {
    let device = placed.devices.choose(&cluster.devices).map(|d| &placed.devices.all[d as usize]);
    let kind = device.map_or(DeviceKind::Unknown, |d| d.kind);
    if !placed.should_compile(options, cluster.asks, kind) {
        return Err(ExclusionReason::ClusterOff);
    }
    let least = options.flags.min_cluster_size;
    if cluster.effective < least && !cluster.functional && !cluster.asks {
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

/// Large constants that others use, and Fills that only others use.
fn taken_out(flow: &Flow, clusters: &mut Clusters, n: u32) -> Option<ExclusionReason> {
    let large = flow.op(n) == "Const" && {
        let dims = flow.nodes[n as usize].node.and_then(constant_dims).unwrap_or_default();
        dims.iter().fold(1u64, |all, &d| all.saturating_mul(d)) > MOST_ELEMENTS
    };
    let fill = flow.op(n) == "Fill" && flow.outs(n).next().is_some();
    if !large && !fill {
        return None;
    }
    let own = clusters.cluster_of(n).map(|c| c.first);
    let mut outside = flow.outs(n).map(|e| clusters.cluster_of(e.dst).map(|c| c.first) != own);
    if large {
        return outside.any(|out| out).then_some(ExclusionReason::LargeConstant);
    }
    outside.all(|out| out).then_some(ExclusionReason::OutsideFill)
}
