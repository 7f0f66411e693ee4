//! Candidates for clusters: TensorFlow's rules in TensorFlow's order, of which the first that fails is the reason.
use super::beyond_xla::Beyond;
use super::compilable::Compilable;
use super::constants::{self, ConstantArgs};
use super::devices::DeviceKind;
use super::flow::{CONTROL, Flow, OpClass};
use super::reason::ExclusionReason;
use super::table;
use super::{Options, placement::NodeDevices};
use crate::diag::{Code, Error, Result};
use crate::graph::{Node, Program};
use std::collections::HashSet;
use std::sync::Arc;

/// The candidates of a graph.
pub struct Candidates {
    /// Why a node is none; `None`: it is one.
    pub left: Vec<Option<ExclusionReason>>,
    /// Whether the node asks to be compiled.
    pub asks: Vec<bool>,
}

/// Sorts the nodes of `flow`, which are asked in the given order as long as there is fuel.
///
/// Errors: `BadOption` for names in the allow list or the exclude list that XLA does not have.
pub fn find<'p>(
    flow: &Flow<'p>,
    order: &[u32],
    placed: &NodeDevices,
    options: &Options,
    args: &mut ConstantArgs,
    compilable: &mut Compilable<'p>,
) -> Result<Candidates> {
    let allowed = allow_list(&options.flags.ops_to_cluster)?;
    compilable.exclude_where = excludes_where(&options.flags.exclude_ops)?;
    let marks = constants::analyse(flow, args, &|_| true);
    let mut found = Candidates { left: vec![None; flow.nodes.len()], asks: vec![false; flow.nodes.len()] };
    let mut beyond = options.beyond_xla.then(|| Beyond::new(flow.program, options.checks));
    let mut fuel = options.flags.fuel;
    for &n in order {
        let at = n as usize;
        if fuel <= 0 {
            found.left[at] = Some(ExclusionReason::Fuel);
            continue;
        }
        found.asks[at] = asks(flow, n, placed.level_is_on);
        let verdict = judge(flow, n, placed, options, found.asks[at], compilable, beyond.as_mut())
            .and_then(|()| listed(flow, n, allowed.as_ref()))
            .and_then(|()| stateful_constant(flow, n, marks[at]))
            .and_then(|()| if drives_loop_constants(flow, n) { Err(ExclusionReason::LoopConstant) } else { Ok(()) });
        match verdict {
            Ok(()) => fuel -= 1,
            Err(left) => found.left[at] = Some(marked(flow, n, left)),
        }
    }
    Ok(found)
}

/// Why a call that was marked with `jit_compile=True` is in no cluster of the pass, where `left` says that its function can't be
/// in one: TensorFlow compiles the function by itself, and by other rules.
fn marked(flow: &Flow, n: u32, left: ExclusionReason) -> ExclusionReason {
    let called = flow.nodes[n as usize].node.and_then(|node| marked_function(flow.program, node));
    let (Some(function), ExclusionReason::InFunction { .. }) = (called, &left) else { return left };
    match Compilable::for_marked_functions(flow.program).node(flow, n) {
        Ok(()) => ExclusionReason::OwnCluster(function),
        Err(why) => ExclusionReason::MarkedInVain(Box::new(why)),
    }
}

/// The function that a node calls, if the user marked the node or the function as one to be compiled whole.
pub fn marked_function(program: &Program, node: &Node) -> Option<Arc<str>> {
    let name = match &*node.op {
        "PartitionedCall" | "StatefulPartitionedCall" => node.func("f")?.name.clone(),
        op => program.functions.get_key_value(op)?.0.clone(),
    };
    let of_function = program.functions.get(&name).and_then(|f| f.bool(MUST));
    node.bool(MUST).or(of_function).filter(|&must| must).map(|_| name)
}

/// The attribute that `jit_compile=True` becomes in a graph.
pub const MUST: &str = "_XlaMustCompile";

/// A truth attribute of the node, else of the function that is its op.
fn flag(flow: &Flow, n: u32, name: &str) -> Option<bool> {
    let node = flow.nodes[n as usize].node?;
    node.bool(name).or_else(|| flow.program.functions.get(&node.op)?.bool(name))
}

/// Whether a node asks to be compiled, or the function that is its op.
pub fn asks(flow: &Flow, n: u32, level_is_on: bool) -> bool {
    let Some(node) = flow.nodes[n as usize].node else { return false };
    let function = flow.program.functions.get(&node.op);
    let says = |name: &str| node.bool(name) == Some(true) || function.and_then(|f| f.bool(name)) == Some(true);
    says("_XlaCompile") || (level_is_on && says(MUST))
}

fn judge<'p>(
    flow: &Flow<'p>,
    n: u32,
    placed: &NodeDevices,
    options: &Options,
    asks: bool,
    compilable: &mut Compilable<'p>,
    beyond: Option<&mut Beyond<'p>>,
) -> Result<(), ExclusionReason> {
    if flag(flow, n, "_XlaCompile") == Some(false) {
        return Err(ExclusionReason::Refused);
    }
    if options.left_out.contains(flow.name(n)) {
        return Err(ExclusionReason::UnsupportedOps);
    }
    let device = placed.device(n);
    if device.kind == DeviceKind::Unknown {
        return Err(ExclusionReason::NoDevice(device.name.clone()));
    }
    if !placed.should_compile(options, asks, device.kind) {
        return Err(ExclusionReason::Off);
    }
    if options.what_if.iter().any(|op| op == flow.op(n)) {
        return Ok(());
    }
    compilable.lenient = device.kind == DeviceKind::Xla;
    compilable.node(flow, n).or_else(|left| match flow.nodes[n as usize].node.zip(beyond) {
        Some((node, beyond)) => beyond.takes(node).map_err(|why| why.unwrap_or(left)),
        None => Err(left),
    })
}

fn listed(flow: &Flow, n: u32, allowed: Option<&HashSet<&str>>) -> Result<(), ExclusionReason> {
    match allowed {
        Some(list) if !list.contains(flow.op(n)) => Err(ExclusionReason::NotListed),
        Some(_) | None => Ok(()),
    }
}

/// A stateful op whose value must be known at compile time stays outside, but for stacks and TensorArrays.
fn stateful_constant(flow: &Flow, n: u32, marked: bool) -> Result<(), ExclusionReason> {
    if !marked {
        return Ok(());
    }
    let kind = flow.kind_of_node(n);
    let of_function = flow.program.functions.get(kind.op).map(|f| f.stateful);
    let stateful = of_function.unwrap_or(kind.def.is_some_and(|d| d.stateful));
    let kept = kind.row.and_then(|r| r.resource);
    let kept = matches!(kept, Some((_, table::Resource::Stack | table::Resource::TensorArray)));
    if stateful && !kept { Err(ExclusionReason::StatefulConstant) } else { Ok(()) }
}

/// An identity behind the body side of a loop's Switch that constants wait for.
fn drives_loop_constants(flow: &Flow, n: u32) -> bool {
    if flow.class(n) != OpClass::Identity {
        return false;
    }
    let Some(from) = flow.ins(n).find(|e| flow.class(e.src) == OpClass::Switch && e.src_port == 1) else {
        return false;
    };
    let by_loop = flow.input(from.src, 1).is_some_and(|e| flow.op(e.src) == "LoopCond");
    by_loop && flow.outs(n).any(|e| e.src_port == CONTROL && flow.class(e.dst) == OpClass::Constant)
}

/// The ops of `--tf_xla_ops_to_cluster`; `None`: all.
fn allow_list(text: &str) -> Result<Option<HashSet<&'static str>>> {
    let mut list = HashSet::new();
    for name in text.split(',').map(str::trim).filter(|n| !n.is_empty()) {
        let before = list.len();
        list.extend(table::group(name));
        if list.len() == before && table::group(name).next().is_none() {
            let known = table::names().iter().find(|op| **op == name);
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
