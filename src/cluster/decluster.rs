//! PartiallyDecluster: removes nodes from named clusters as TensorFlow does before it compiles them.
//!
//! Three steps: a node whose result is needed in host memory by nodes outside is duplicated outside; a node that must be a compile-time
//! constant and whose inputs come from outside moves outside; so does a Shape, Rank or Size at the edge of its cluster.
use super::constants::{self, RequiredConstantArgs};
use super::devices::DeviceKind;
use super::flow::{CONTROL, Edge, FlowGraph, OpClass};
use super::placement::NodeDevices;
use super::reason::ExclusionReason;
use super::signature;
use crate::opdef::{ArgDef, INT32, RESOURCE, STRING, type_bit};

/// By node: its cluster, or the reason why it is in none. Entries for copied nodes follow at the end.
pub type ClusterAssignments = Vec<Result<u32, ExclusionReason>>;

/// Runs TensorFlow's PartiallyDecluster pass: takes nodes out of clusters whose values are needed outside in host memory or as shapes.
pub fn run(
    flow: &mut FlowGraph,
    placed: &mut NodeDevices,
    args: &mut RequiredConstantArgs,
    marks: &mut ClusterAssignments,
) {
    copy_host_values(flow, placed, marks);
    free_constants(flow, placed, args, marks);
    free_shapes(flow, marks);
}

fn cluster(marks: &ClusterAssignments, n: u32) -> Option<u32> {
    marks[n as usize].as_ref().ok().copied()
}

fn is_shape_op(op: &str) -> bool {
    matches!(op, "Shape" | "Rank" | "Size")
}

fn copy_host_values(flow: &mut FlowGraph, placed: &mut NodeDevices, marks: &mut ClusterAssignments) {
    let order = flow.post_order();
    let mut out = vec![false; flow.nodes.len()];
    for &n in &order {
        let Some(own) = cluster(marks, n) else { continue };
        if is_shape_op(flow.op(n)) || touches_resource(flow, n) {
            continue;
        }
        out[n as usize] = flow.out_edges(n).any(|e| {
            let leaves = cluster(marks, e.dst) != Some(own) || out[e.dst as usize];
            e.src_port != CONTROL && leaves && in_host_memory(flow, e)
        });
    }
    for n in order.into_iter().filter(|&n| out[n as usize]) {
        copy_outside(flow, placed, marks, n);
    }
}

fn copy_outside(flow: &mut FlowGraph, placed: &mut NodeDevices, marks: &mut ClusterAssignments, n: u32) {
    let own = cluster(marks, n);
    let (ins, outs) = (flow.nodes[n as usize].in_edges.clone(), flow.nodes[n as usize].out_edges.clone());
    let Some(node) = flow.nodes[n as usize].node else { return };
    let copy = flow.add_node(format!("{}/declustered", flow.name(n)).into(), node);
    marks.push(Err(ExclusionReason::HostValue));
    placed.by_node.push(placed.by_node[n as usize]);
    for id in ins {
        if let Some(e) = flow.edges[id as usize] {
            flow.add_edge(e.src, e.src_port, copy, e.dst_port);
        }
    }
    for id in outs {
        let Some(e) = flow.edges[id as usize] else { continue };
        if e.src_port != CONTROL && cluster(marks, e.dst) != own {
            flow.add_edge(copy, e.src_port, e.dst, e.dst_port);
            flow.remove_edge(id);
        }
    }
    if flow.nodes[n as usize].out_edges.is_empty() {
        for id in flow.nodes[n as usize].in_edges.clone() {
            flow.remove_edge(id);
        }
        marks[n as usize] = Err(ExclusionReason::HostValue);
    }
}

fn touches_resource(flow: &FlowGraph, n: u32) -> bool {
    let (node, def) = (flow.nodes[n as usize].node, flow.op_facts(n).def);
    node.is_some_and(|node| signature::all_type_bits(flow.program, node, def) & type_bit(RESOURCE) != 0)
}

/// Whether the tensor of an edge is produced in host memory and consumed there.
fn in_host_memory(flow: &FlowGraph, edge: Edge) -> bool {
    is_host(flow, edge.src, edge.src_port, Side::Output) && is_host(flow, edge.dst, edge.dst_port, Side::Input)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Input,
    Output,
}

/// Whether an input or output of a node is in host memory, by the node's attributes or its CPU kernel. Without a kernel, as for
/// calls, 32-bit integers are in host memory; strings and resource handles always are.
fn is_host(flow: &FlowGraph, n: u32, port: i32, side: Side) -> bool {
    let (Some(node), Ok(port)) = (flow.nodes[n as usize].node, usize::try_from(port)) else { return false };
    let kind = flow.op_facts(n);
    let def = kind.def;
    let (number, arg, forced): (_, Option<&ArgDef>, _) = match side {
        Side::Output => (
            signature::output_type(flow.program, node, def, port),
            def.and_then(|def| def.output_arg(node, port)),
            node.ints("_output_hostmem"),
        ),
        Side::Input => (
            signature::input_type(flow.program, node, def, port),
            def.and_then(|def| def.input_arg(node, port)),
            node.ints("_input_hostmem"),
        ),
    };
    if matches!(number, Some(STRING | RESOURCE)) || forced.is_some_and(|f| f.contains(&(port as i64))) {
        return true;
    }
    let host_args = def.and_then(|def| def.cpu_host_args.as_ref());
    match host_args.filter(|_| !matches!(kind.class, OpClass::Call | OpClass::While)) {
        Some(host) => arg.is_some_and(|a| host.contains(&a.name)),
        None => number == Some(INT32) && node.bool("_XlaMustCompile") != Some(true),
    }
}

fn free_constants(
    flow: &FlowGraph,
    placed: &NodeDevices,
    args: &mut RequiredConstantArgs,
    marks: &mut ClusterAssignments,
) {
    let inside = |e: Edge| cluster(marks, e.src).is_some() && cluster(marks, e.src) == cluster(marks, e.dst);
    let wanted = constants::find_required_constants(flow, args, &inside);
    for n in flow.post_order().into_iter().rev().filter(|&n| wanted[n as usize]) {
        let Some(own) = cluster(marks, n) else { continue };
        let at_edge = flow.in_edges(n).all(|e| cluster(marks, e.src) != Some(own));
        let must_compile =
            placed.device(n).kind == DeviceKind::Xla || flow.op_facts(n).def.is_none_or(|d| d.cpu_host_args.is_none());
        if !at_edge || must_compile {
            continue;
        }
        let from_elsewhere =
            || flow.in_edges(n).any(|e| e.src > 1 && placed.by_node[e.src as usize] != placed.by_node[n as usize]);
        if flow.class(n) != OpClass::Constant || from_elsewhere() {
            marks[n as usize] = Err(ExclusionReason::OutsideConstant);
        }
    }
}

fn free_shapes(flow: &FlowGraph, marks: &mut ClusterAssignments) {
    for n in flow.post_order().into_iter().rev().filter(|&n| is_shape_op(flow.op(n))) {
        let Some(own) = cluster(marks, n) else { continue };
        if flow.in_edges(n).all(|e| cluster(marks, e.src) != Some(own)) {
            marks[n as usize] = Err(ExclusionReason::OutsideShape);
        }
    }
}
