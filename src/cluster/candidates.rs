//! Candidates for clusters: nodes that pass all of TensorFlow's rules. The rules are tried in TensorFlow's order; the first to fail is
//! the reason for an exclusion.
use super::beyond_xla::BeyondXlaChecker;
use super::compilable::CompilabilityChecker;
use super::constants::{self, RequiredConstantArgs};
use super::devices::DeviceKind;
use super::flow::{CONTROL, FlowGraph, OpClass};
use super::reason::ExclusionReason;
use super::registrations;
use super::{ClusteringOptions, placement::NodeDevices};
use crate::diag::{Code, Error, Result};
use crate::graph::{Node, Program};
use std::collections::HashSet;
use std::sync::Arc;

/// Decision for each node of a graph whether it may be in a cluster.
pub struct Candidates {
    /// By node: the reason for its exclusion; `None` for a candidate.
    pub exclusions: Vec<Option<ExclusionReason>>,
    /// By node: whether an attribute such as `_XlaCompile` requests compilation.
    pub requested: Vec<bool>,
}

/// Finds the nodes of `flow` that clusters may contain, in `order`, until the fuel of `--tf_xla_clustering_fuel` is spent.
///
/// Errors: `BadOption` for names in the allow list or the exclude list that XLA does not have.
pub fn find_candidates<'p>(
    flow: &FlowGraph<'p>,
    order: &[u32],
    placed: &NodeDevices,
    options: &ClusteringOptions,
    args: &mut RequiredConstantArgs,
    compilable: &mut CompilabilityChecker<'p>,
) -> Result<Candidates> {
    let allowed = allow_list(&options.flags.ops_to_cluster)?;
    compilable.exclude_where = excludes_where(&options.flags.exclude_ops)?;
    let marks = constants::find_required_constants(flow, args, &|_| true);
    let mut found = Candidates { exclusions: vec![None; flow.nodes.len()], requested: vec![false; flow.nodes.len()] };
    let mut beyond = options.beyond_xla.then(|| BeyondXlaChecker::new(flow.program, options.checks));
    let mut fuel = options.flags.fuel;
    for &n in order {
        let at = n as usize;
        if fuel <= 0 {
            found.exclusions[at] = Some(ExclusionReason::Fuel);
            continue;
        }
        found.requested[at] = requests_compilation(flow, n, placed.level_is_on);
        let verdict = check_compilable(flow, n, placed, options, found.requested[at], compilable, beyond.as_mut())
            .and_then(|()| check_allow_list(flow, n, allowed.as_ref()))
            .and_then(|()| check_stateful_constant(flow, n, marks[at]))
            .and_then(|()| if drives_loop_constants(flow, n) { Err(ExclusionReason::LoopConstant) } else { Ok(()) });
        match verdict {
            Ok(()) => fuel -= 1,
            Err(left) => found.exclusions[at] = Some(marked_call_reason(flow, n, left)),
        }
    }
    Ok(found)
}

/// Refines the exclusion reason `left` of a call marked with `jit_compile=True`, if `left` blames the called function; returns any other
/// reason unchanged. TensorFlow compiles such a function separately and by other rules, so the new reason says whether that succeeds.
fn marked_call_reason(flow: &FlowGraph, n: u32, left: ExclusionReason) -> ExclusionReason {
    let called = flow.nodes[n as usize].node.and_then(|node| jit_compile_function(flow.program, node));
    let (Some(function), ExclusionReason::InFunction { .. }) = (called, &left) else { return left };
    match CompilabilityChecker::for_jit_compile(flow.program).check_node(flow, n) {
        Ok(()) => ExclusionReason::OwnCluster(function),
        Err(why) => ExclusionReason::MarkedInVain(Box::new(why)),
    }
}

/// The function that a node calls, if the user marked the node or the function with `jit_compile=True`.
pub fn jit_compile_function(program: &Program, node: &Node) -> Option<Arc<str>> {
    let name = match &*node.op {
        "PartitionedCall" | "StatefulPartitionedCall" => node.func("f")?.name.clone(),
        op => program.functions.get_key_value(op)?.0.clone(),
    };
    let of_function = program.functions.get(&name).and_then(|f| f.bool(MUST_COMPILE_ATTR));
    node.bool(MUST_COMPILE_ATTR).or(of_function).filter(|&must| must).map(|_| name)
}

/// The attribute that `jit_compile=True` becomes in a graph.
pub const MUST_COMPILE_ATTR: &str = "_XlaMustCompile";

/// A boolean attribute of the node, or else of the function that is the node's op.
fn bool_attr(flow: &FlowGraph, n: u32, name: &str) -> Option<bool> {
    let node = flow.nodes[n as usize].node?;
    node.bool(name).or_else(|| flow.program.functions.get(&node.op)?.bool(name))
}

/// Whether the node, or the function that is its op, requests compilation by an attribute.
pub fn requests_compilation(flow: &FlowGraph, n: u32, level_is_on: bool) -> bool {
    let Some(node) = flow.nodes[n as usize].node else { return false };
    let function = flow.program.functions.get(&node.op);
    let says = |name: &str| node.bool(name) == Some(true) || function.and_then(|f| f.bool(name)) == Some(true);
    says("_XlaCompile") || (level_is_on && says(MUST_COMPILE_ATTR))
}

fn check_compilable<'p>(
    flow: &FlowGraph<'p>,
    n: u32,
    placed: &NodeDevices,
    options: &ClusteringOptions,
    requested: bool,
    compilable: &mut CompilabilityChecker<'p>,
    beyond: Option<&mut BeyondXlaChecker<'p>>,
) -> Result<(), ExclusionReason> {
    if bool_attr(flow, n, "_XlaCompile") == Some(false) {
        return Err(ExclusionReason::Refused);
    }
    if options.excluded_nodes.contains(flow.name(n)) {
        return Err(ExclusionReason::LeftOut);
    }
    let device = placed.device(n);
    if device.kind == DeviceKind::Unknown {
        return Err(ExclusionReason::NoDevice(device.name.clone()));
    }
    if !placed.should_compile(options, requested, device.kind) {
        return Err(ExclusionReason::Off);
    }
    if options.what_if.iter().any(|op| op == flow.op(n)) {
        return Ok(());
    }
    compilable.lenient = device.kind == DeviceKind::Xla;
    compilable.check_node(flow, n).or_else(|left| match flow.nodes[n as usize].node.zip(beyond) {
        Some((node, beyond)) => beyond.check_node(node).map_err(|why| why.unwrap_or(left)),
        None => Err(left),
    })
}

fn check_allow_list(flow: &FlowGraph, n: u32, allowed: Option<&HashSet<&str>>) -> Result<(), ExclusionReason> {
    match allowed {
        Some(list) if !list.contains(flow.op(n)) => Err(ExclusionReason::NotListed),
        Some(_) | None => Ok(()),
    }
}

/// Refuses stateful ops whose value must be a compile-time constant, except stacks and TensorArrays.
fn check_stateful_constant(flow: &FlowGraph, n: u32, marked: bool) -> Result<(), ExclusionReason> {
    if !marked {
        return Ok(());
    }
    let kind = flow.op_facts(n);
    let of_function = flow.program.functions.get(kind.op).map(|f| f.stateful);
    let stateful = of_function.unwrap_or(kind.def.is_some_and(|d| d.stateful));
    let kept = kind.registration.and_then(|r| r.resource);
    let kept = matches!(kept, Some((_, registrations::ResourceKind::Stack | registrations::ResourceKind::TensorArray)));
    if stateful && !kept { Err(ExclusionReason::StatefulConstant) } else { Ok(()) }
}

/// Whether node `n` is an identity on the body side of a loop's Switch on which constants have a control dependency.
fn drives_loop_constants(flow: &FlowGraph, n: u32) -> bool {
    if flow.class(n) != OpClass::Identity {
        return false;
    }
    let Some(from) = flow.in_edges(n).find(|e| flow.class(e.src) == OpClass::Switch && e.src_port == 1) else {
        return false;
    };
    let by_loop = flow.input_edge(from.src, 1).is_some_and(|e| flow.op(e.src) == "LoopCond");
    by_loop && flow.out_edges(n).any(|e| e.src_port == CONTROL && flow.class(e.dst) == OpClass::Constant)
}

/// The ops that `--tf_xla_ops_to_cluster` allows; `None`: all.
fn allow_list(text: &str) -> Result<Option<HashSet<&'static str>>> {
    let mut list = HashSet::new();
    for name in text.split(',').map(str::trim).filter(|n| !n.is_empty()) {
        let before = list.len();
        list.extend(registrations::ops_in_group(name));
        if list.len() == before && registrations::ops_in_group(name).next().is_none() {
            let known = registrations::op_names().iter().find(|op| **op == name);
            list.insert(*known.ok_or_else(|| unsupported(name, "tf_xla_ops_to_cluster"))?);
        }
    }
    Ok(Some(list).filter(|l| !l.is_empty()))
}

fn excludes_where(text: &str) -> Result<bool> {
    let mut excluded = false;
    for name in text.split(',').map(str::trim).filter(|n| !n.is_empty()) {
        if name != "Where" {
            return Err(unsupported(name, "tf_xla_cluster_exclude_ops"));
        }
        excluded = true;
    }
    Ok(excluded)
}

fn unsupported(name: &str, flag: &str) -> Error {
    Error::user(Code::BadOption, format!("The operation '{name}' passed to --{flag} is not supported by XLA."))
}
