//! IncreaseDynamismForAutoJit: replaces a clustered Slice of constant size by nodes that need only the size at compile time, so that
//! the beginning of the slice may change from call to call.
//!
//! The new nodes are named `SLICE/static_shaped_slice/...` and made in TensorFlow's order. A size of -1 becomes the rest of the
//! input behind the beginning.
use super::devices::DeviceTable;
use super::flow::{CONTROL, Edge, FlowGraph, OpClass, SOURCE};
use super::placement::NodeDevices;
use super::reason::ExclusionReason;
use crate::diag::Result;
use crate::graph::{Attr, Node, TfType};
use crate::tensor::{DType, Tensor};
use std::sync::Arc;

/// Planned replacement of one Slice: the new nodes, in the order in which TensorFlow makes them, and their input edges.
pub struct SliceReplacement {
    slice: u32,
    nodes: Vec<Node>,
    edges: Vec<Wire>,
}

/// The producer of an input of a new node.
#[derive(Clone, Copy)]
enum InputSource {
    /// The producer of data input 0, 1 or 2 of the Slice.
    Slice(i32),
    /// Output 0 of a new node, by its index.
    New(usize),
}

struct Wire {
    from: InputSource,
    to: usize,
    port: i32,
}

/// Builds the replacement of each Slice for which `clustered` holds.
pub fn plan_slice_replacements(flow: &FlowGraph, clustered: &dyn Fn(u32) -> bool) -> Vec<SliceReplacement> {
    let slices = flow.op_nodes().filter(|&n| flow.op(n) == "Slice" && clustered(n));
    slices
        .filter_map(|n| {
            constant_sizes(flow, n).map(|constant_sizes| ReplacementBuilder::new(flow, n).build_nodes(&constant_sizes))
        })
        .collect()
}

/// The constant sizes of a Slice that qualifies for a replacement.
fn constant_sizes(flow: &FlowGraph, n: u32) -> Option<Vec<i64>> {
    let (begin, size) = (flow.input_edge(n, 1)?, flow.input_edge(n, 2)?);
    if flow.class(begin.src) == OpClass::Constant || flow.op(size.src) != "Const" {
        return None;
    }
    let Some(Attr::Tensor(value)) = flow.nodes[size.src as usize].node?.attr("value") else { return None };
    let all: Option<Vec<i64>> = (0..value.len()).map(|i| value.get_i64(i)).collect();
    all.filter(|all| value.dims.len() == 1 && all.iter().all(|&size| size >= -1))
}

struct ReplacementBuilder {
    made: SliceReplacement,
    slice: Node,
    index: TfType,
}

impl ReplacementBuilder {
    fn new(flow: &FlowGraph, n: u32) -> ReplacementBuilder {
        let mut slice = flow.nodes[n as usize].node.map_or_else(empty_node, Node::clone);
        slice.name = flow.name(n).into();
        let index = slice.tf_type("Index").unwrap_or(TfType::Data(DType::S32));
        ReplacementBuilder { made: SliceReplacement { slice: n, nodes: Vec::new(), edges: Vec::new() }, slice, index }
    }

    fn build_nodes(mut self, sizes: &[i64]) -> SliceReplacement {
        let begin = self.widen_to_s64("begin", 1);
        let size = self.widen_to_s64("size", 2);
        let size = if sizes.iter().all(|&s| s >= 0) { size } else { self.size_at_run_time(sizes, begin) };
        let attrs = vec![
            ("Index", Attr::Type(TfType::Data(DType::S64))),
            ("T", self.element_type_attr()),
            ("_XlaCompileTimeConstantInputs", Attr::Strs([bytes::Bytes::from_static(b"size")].into())),
        ];
        self.add("static_shaped_slice", "Slice", attrs, &[InputSource::Slice(0), begin, size]);
        self.made
    }

    /// An input of the Slice, cast to 64-bit integers if necessary.
    fn widen_to_s64(&mut self, name: &str, port: i32) -> InputSource {
        if self.index.dtype() == Some(DType::S64) {
            return InputSource::Slice(port);
        }
        let attrs = vec![
            ("DstT", Attr::Type(TfType::Data(DType::S64))),
            ("SrcT", Attr::Type(self.index)),
            ("Truncate", Attr::Bool(false)),
        ];
        self.add(&format!("{name}_s64"), "Cast", attrs, &[InputSource::Slice(port)])
    }

    fn size_at_run_time(&mut self, sizes: &[i64], begin: InputSource) -> InputSource {
        let s64 = || Attr::Type(TfType::Data(DType::S64));
        let shape = vec![("T", self.element_type_attr()), ("out_type", s64())];
        let shape = self.add("input_shape", "Shape", shape, &[InputSource::Slice(0)]);
        let mut parts = Vec::new();
        for (i, &size) in sizes.iter().enumerate() {
            if size >= 0 {
                parts.push(self.constant(size));
                continue;
            }
            let part = |maker: &mut ReplacementBuilder, name: String, of: InputSource| {
                let at = maker.constant(i as i64);
                let one = maker.constant(1);
                maker.add(&name, "Slice", vec![("Index", s64()), ("T", s64())], &[of, at, one])
            };
            let begin = part(self, format!("begin_{i}"), begin);
            let input = part(self, format!("input_shape_{i}"), shape);
            parts.push(self.add(&format!("slice_size_{i}"), "Sub", vec![("T", s64())], &[input, begin]));
        }
        if let [only] = parts[..] {
            return only;
        }
        let axis = self.add_constant("concat_axis", Tensor::scalar(0i32));
        let count = Attr::Int(parts.len() as i64);
        parts.push(axis);
        let attrs = vec![("N", count), ("T", s64()), ("Tidx", Attr::Type(TfType::Data(DType::S32)))];
        self.add("slice_size", "ConcatV2", attrs, &parts)
    }

    /// A one-element constant; equal values share a node.
    fn constant(&mut self, value: i64) -> InputSource {
        let name = format!("const_{value}");
        match self.made.nodes.iter().position(|n| *n.name == *self.full_name(&name)) {
            Some(at) => InputSource::New(at),
            None => self.add_constant(&name, Tensor::of(&[1], &[value])),
        }
    }

    fn add_constant(&mut self, name: &str, value: Tensor) -> InputSource {
        let of = Attr::Type(TfType::Data(value.dtype));
        self.add(name, "Const", vec![("dtype", of), ("value", Attr::Tensor(Box::new(value)))], &[])
    }

    fn element_type_attr(&self) -> Attr {
        Attr::Type(self.slice.declared_type("T").unwrap_or(TfType::Unknown(0)))
    }

    fn full_name(&self, name: &str) -> String {
        format!("{}/static_shaped_slice/{name}", self.slice.name)
    }

    fn add(&mut self, name: &str, op: &str, attrs: Vec<(&'static str, Attr)>, inputs: &[InputSource]) -> InputSource {
        let to = self.made.nodes.len();
        self.made.nodes.push(Node {
            name: self.full_name(name).into(),
            op: op.into(),
            device: self.slice.device.clone(),
            attrs: attrs.into_iter().map(|(key, value)| (Arc::from(key), value)).collect(),
            ..empty_node()
        });
        self.made.edges.extend(inputs.iter().enumerate().map(|(port, &from)| Wire { from, to, port: port as i32 }));
        InputSource::New(to)
    }
}

fn empty_node() -> Node {
    Node { name: "".into(), op: "".into(), device: "".into(), inputs: [].into(), controls: [].into(), attrs: [].into() }
}

/// Substitutes the planned nodes for each Slice. Errors: `BadGraph` for invalid device names.
pub fn apply_slice_replacements<'p>(
    flow: &mut FlowGraph<'p>,
    planned: &'p [SliceReplacement],
    placed: &mut NodeDevices,
    marks: &mut Vec<Result<u32, ExclusionReason>>,
) -> Result<()> {
    for made in planned {
        let n = made.slice;
        let (own, mark) = (placed.by_node[n as usize], marks[n as usize].clone());
        let host = placed.devices.intern(&DeviceTable::host_cpu(&placed.devices.all[own as usize]))?;
        let first = flow.nodes.len() as u32;
        let last = made.nodes.len() - 1;
        for (i, node) in made.nodes.iter().enumerate() {
            flow.add_node(node.name.to_string().into(), node);
            placed.by_node.push(if i == last { own } else { host });
            marks.push(mark.clone());
        }
        connect_replacement(flow, made, first);
        redirect_consumers(flow, n, first + last as u32);
        marks[n as usize] = Err(ExclusionReason::Remade);
    }
    if !planned.is_empty() {
        flow.fixup_source_and_sink_edges();
    }
    Ok(())
}

fn connect_replacement(flow: &mut FlowGraph, made: &SliceReplacement, first: u32) {
    let inputs: Vec<Option<Edge>> = (0..3).map(|port| flow.input_edge(made.slice, port)).collect();
    for wire in &made.edges {
        let to = first + wire.to as u32;
        match wire.from {
            InputSource::New(at) => {
                flow.add_edge(first + at as u32, 0, to, wire.port);
            }
            InputSource::Slice(port) => {
                if let Some(e) = inputs[port as usize] {
                    flow.add_edge(e.src, e.src_port, to, wire.port);
                }
            }
        }
    }
    // Control dependencies of the old size hold for the new constants too.
    let waits: Vec<Edge> =
        inputs[2].iter().flat_map(|e| flow.in_edges(e.src)).filter(|e| e.dst_port == CONTROL).collect();
    for (i, _) in made.nodes.iter().enumerate().filter(|(_, node)| &*node.op == "Const") {
        waits.iter().for_each(|e| {
            flow.add_edge(e.src, CONTROL, first + i as u32, CONTROL);
        });
    }
}

/// Redirects the consumers of `old` to `new`, moves control inputs, and removes `old`.
fn redirect_consumers(flow: &mut FlowGraph, old: u32, new: u32) {
    for id in flow.nodes[old as usize].out_edges.clone() {
        if let Some(e) = flow.edges[id as usize] {
            flow.remove_edge(id);
            flow.add_edge(new, e.src_port, e.dst, e.dst_port);
        }
    }
    for id in flow.nodes[old as usize].in_edges.clone() {
        if let Some(e) = flow.edges[id as usize] {
            let known = flow.in_edges(new).any(|other| other.src == e.src && other.dst_port == CONTROL);
            if e.dst_port == CONTROL && e.src != SOURCE && !known {
                flow.add_edge(e.src, CONTROL, new, CONTROL);
            }
            flow.remove_edge(id);
        }
    }
    flow.remove_node(old);
}
