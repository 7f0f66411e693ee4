//! PartiallyDecluster: nodes that TensorFlow takes out of clusters again after it named them.
//!
//! Three steps: a node whose result other nodes want in host memory is copied outside, a node whose value XLA must know and
//! that gets it from outside runs outside, and so does a Shape, Rank or Size at the edge of its cluster.
use super::constants::{self, ConstantArgs};
use super::devices::DeviceKind;
use super::flow::{CONTROL, Edge, Flow, OpClass};
use super::placement::NodeDevices;
use super::reason::ExclusionReason;
use super::signature;
use crate::opdef::{ArgDef, INT32, RESOURCE, STRING, type_bit};

/// The cluster of each node, or why it is in none; copies of nodes are added at the end.
pub type Marks = Vec<Result<u32, ExclusionReason>>;

/// Takes nodes out.
pub fn run(flow: &mut Flow, placed: &mut NodeDevices, args: &mut ConstantArgs, marks: &mut Marks) {
    copy_host_values(flow, placed, marks);
    free_constants(flow, placed, args, marks);
    free_shapes(flow, marks);
}

fn cluster(marks: &Marks, n: u32) -> Option<u32> {
    marks[n as usize].as_ref().ok().copied()
}

fn is_shape_op(op: &str) -> bool {
    matches!(op, "Shape" | "Rank" | "Size")
}

fn copy_host_values(flow: &mut Flow, placed: &mut NodeDevices, marks: &mut Marks) {
    let order = flow.post_order();
    let mut out = vec![false; flow.nodes.len()];
    for &n in &order {
        let Some(own) = cluster(marks, n) else { continue };
        if is_shape_op(flow.op(n)) || touches_resource(flow, n) {
            continue;
        }
        out[n as usize] = flow.outs(n).any(|e| {
            let leaves = cluster(marks, e.dst) != Some(own) || out[e.dst as usize];
            e.src_port != CONTROL && leaves && in_host_memory(flow, e)
        });
    }
    for n in order.into_iter().filter(|&n| out[n as usize]) {
        copy_outside(flow, placed, marks, n);
    }
}

fn copy_outside(flow: &mut Flow, placed: &mut NodeDevices, marks: &mut Marks, n: u32) {
    let own = cluster(marks, n);
    let (ins, outs) = (flow.nodes[n as usize].ins.clone(), flow.nodes[n as usize].outs.clone());
    let Some(node) = flow.nodes[n as usize].node else { return };
    let copy = flow.add(format!("{}/declustered", flow.name(n)).into(), node);
    marks.push(Err(ExclusionReason::HostValue));
    placed.of.push(placed.of[n as usize]);
    for id in ins {
        if let Some(e) = flow.edges[id as usize] {
            flow.connect(e.src, e.src_port, copy, e.dst_port);
        }
    }
    for id in outs {
        let Some(e) = flow.edges[id as usize] else { continue };
        if e.src_port != CONTROL && cluster(marks, e.dst) != own {
            flow.connect(copy, e.src_port, e.dst, e.dst_port);
            flow.disconnect(id);
        }
    }
    if flow.nodes[n as usize].outs.is_empty() {
        for id in flow.nodes[n as usize].ins.clone() {
            flow.disconnect(id);
        }
        marks[n as usize] = Err(ExclusionReason::HostValue);
    }
}

fn touches_resource(flow: &Flow, n: u32) -> bool {
    let (node, def) = (flow.nodes[n as usize].node, flow.kind_of_node(n).def);
    node.is_some_and(|node| signature::bits(flow.program, node, def) & type_bit(RESOURCE) != 0)
}

/// Whether the value of an edge is made in host memory and wanted there.
fn in_host_memory(flow: &Flow, edge: Edge) -> bool {
    is_host(flow, edge.src, edge.src_port, Side::Output) && is_host(flow, edge.dst, edge.dst_port, Side::Input)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Input,
    Output,
}

/// Whether a tensor at a node is in host memory: as the node's attributes or its CPU kernel say. Where there is no kernel, as at
/// calls, integers of 32 bits are; strings and handles always are.
fn is_host(flow: &Flow, n: u32, port: i32, side: Side) -> bool {
    let (Some(node), Ok(port)) = (flow.nodes[n as usize].node, usize::try_from(port)) else { return false };
    let kind = flow.kind_of_node(n);
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

fn free_constants(flow: &Flow, placed: &NodeDevices, args: &mut ConstantArgs, marks: &mut Marks) {
    let inside = |e: Edge| cluster(marks, e.src).is_some() && cluster(marks, e.src) == cluster(marks, e.dst);
    let wanted = constants::analyse(flow, args, &inside);
    for n in flow.post_order().into_iter().rev().filter(|&n| wanted[n as usize]) {
        let Some(own) = cluster(marks, n) else { continue };
        let at_edge = flow.ins(n).all(|e| cluster(marks, e.src) != Some(own));
        let must_compile = placed.device(n).kind == DeviceKind::Xla
            || flow.kind_of_node(n).def.is_none_or(|d| d.cpu_host_args.is_none());
        if !at_edge || must_compile {
            continue;
        }
        let from_elsewhere = || flow.ins(n).any(|e| e.src > 1 && placed.of[e.src as usize] != placed.of[n as usize]);
        if flow.class(n) != OpClass::Constant || from_elsewhere() {
            marks[n as usize] = Err(ExclusionReason::OutsideConstant);
        }
    }
}

fn free_shapes(flow: &Flow, marks: &mut Marks) {
    for n in flow.post_order().into_iter().rev().filter(|&n| is_shape_op(flow.op(n))) {
        let Some(own) = cluster(marks, n) else { continue };
        if flow.ins(n).all(|e| cluster(marks, e.src) != Some(own)) {
            marks[n as usize] = Err(ExclusionReason::OutsideShape);
        }
    }
}
