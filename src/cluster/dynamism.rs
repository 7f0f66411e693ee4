//! IncreaseDynamismForAutoJit: a Slice in a cluster whose size is a constant is made anew so that only its size must be known
//! when XLA compiles; where it begins may then change from call to call.
//!
//! The new nodes stand below `SLICE/static_shaped_slice/`, in the order in which TensorFlow makes them. Sizes of -1 become what is
//! left of the input behind the beginning.
use super::devices::DeviceTable;
use super::flow::{CONTROL, Edge, Flow, OpClass, SOURCE};
use super::placement::NodeDevices;
use super::reason::ExclusionReason;
use crate::diag::Result;
use crate::graph::{Attr, Node, TfType};
use crate::tensor::{DType, Tensor};
use std::sync::Arc;

/// Nodes that replace a Slice, without edges, in the order in which they are made.
pub struct ReplacementNodes {
    slice: u32,
    nodes: Vec<Node>,
    edges: Vec<Wire>,
}

/// Where an input of a new node comes from.
#[derive(Clone, Copy)]
enum From {
    /// Data input 0, 1 or 2 of the Slice.
    Slice(i32),
    /// A new node.
    New(usize),
}

struct Wire {
    from: From,
    to: usize,
    port: i32,
}

/// The nodes that the Slices of clusters become. `clustered`: whether a node is in a cluster.
pub fn plan(flow: &Flow, clustered: &dyn Fn(u32) -> bool) -> Vec<ReplacementNodes> {
    let slices = flow.op_nodes().filter(|&n| flow.op(n) == "Slice" && clustered(n));
    slices.filter_map(|n| sizes(flow, n).map(|sizes| Maker::new(flow, n).build_nodes(&sizes))).collect()
}

/// The constant sizes of a Slice that is made anew.
fn sizes(flow: &Flow, n: u32) -> Option<Vec<i64>> {
    let (begin, size) = (flow.input(n, 1)?, flow.input(n, 2)?);
    if flow.class(begin.src) == OpClass::Constant || flow.op(size.src) != "Const" {
        return None;
    }
    let Some(Attr::Tensor(value)) = flow.nodes[size.src as usize].node?.attr("value") else { return None };
    let all: Option<Vec<i64>> = (0..value.len()).map(|i| value.get_i64(i)).collect();
    all.filter(|all| value.dims.len() == 1 && all.iter().all(|&size| size >= -1))
}

struct Maker {
    made: ReplacementNodes,
    slice: Node,
    index: TfType,
}

impl Maker {
    fn new(flow: &Flow, n: u32) -> Maker {
        let mut slice = flow.nodes[n as usize].node.map_or_else(blank, Node::clone);
        slice.name = flow.name(n).into();
        let index = slice.tf_type("Index").unwrap_or(TfType::Data(DType::S32));
        Maker { made: ReplacementNodes { slice: n, nodes: Vec::new(), edges: Vec::new() }, slice, index }
    }

    fn build_nodes(mut self, sizes: &[i64]) -> ReplacementNodes {
        let begin = self.wide("begin", 1);
        let size = self.wide("size", 2);
        let size = if sizes.iter().all(|&s| s >= 0) { size } else { self.size_at_run_time(sizes, begin) };
        let attrs = vec![
            ("Index", Attr::Type(TfType::Data(DType::S64))),
            ("T", self.element()),
            ("_XlaCompileTimeConstantInputs", Attr::Strs([bytes::Bytes::from_static(b"size")].into())),
        ];
        self.add("static_shaped_slice", "Slice", attrs, &[From::Slice(0), begin, size]);
        self.made
    }

    /// An input of the Slice as 64-bit integers.
    fn wide(&mut self, name: &str, port: i32) -> From {
        if self.index.dtype() == Some(DType::S64) {
            return From::Slice(port);
        }
        let attrs = vec![
            ("DstT", Attr::Type(TfType::Data(DType::S64))),
            ("SrcT", Attr::Type(self.index)),
            ("Truncate", Attr::Bool(false)),
        ];
        self.add(&format!("{name}_s64"), "Cast", attrs, &[From::Slice(port)])
    }

    fn size_at_run_time(&mut self, sizes: &[i64], begin: From) -> From {
        let s64 = || Attr::Type(TfType::Data(DType::S64));
        let shape = vec![("T", self.element()), ("out_type", s64())];
        let shape = self.add("input_shape", "Shape", shape, &[From::Slice(0)]);
        let mut parts = Vec::new();
        for (i, &size) in sizes.iter().enumerate() {
            if size >= 0 {
                parts.push(self.constant(size));
                continue;
            }
            let part = |maker: &mut Maker, name: String, of: From| {
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

    /// A constant of one element; one for each value.
    fn constant(&mut self, value: i64) -> From {
        let name = format!("const_{value}");
        match self.made.nodes.iter().position(|n| *n.name == *self.full(&name)) {
            Some(at) => From::New(at),
            None => self.add_constant(&name, Tensor::of(&[1], &[value])),
        }
    }

    fn add_constant(&mut self, name: &str, value: Tensor) -> From {
        let of = Attr::Type(TfType::Data(value.dtype));
        self.add(name, "Const", vec![("dtype", of), ("value", Attr::Tensor(Box::new(value)))], &[])
    }

    fn element(&self) -> Attr {
        Attr::Type(self.slice.declared_type("T").unwrap_or(TfType::Unknown(0)))
    }

    fn full(&self, name: &str) -> String {
        format!("{}/static_shaped_slice/{name}", self.slice.name)
    }

    fn add(&mut self, name: &str, op: &str, attrs: Vec<(&'static str, Attr)>, inputs: &[From]) -> From {
        let to = self.made.nodes.len();
        self.made.nodes.push(Node {
            name: self.full(name).into(),
            op: op.into(),
            device: self.slice.device.clone(),
            attrs: attrs.into_iter().map(|(key, value)| (Arc::from(key), value)).collect(),
            ..blank()
        });
        self.made.edges.extend(inputs.iter().enumerate().map(|(port, &from)| Wire { from, to, port: port as i32 }));
        From::New(to)
    }
}

fn blank() -> Node {
    Node { name: "".into(), op: "".into(), device: "".into(), inputs: [].into(), controls: [].into(), attrs: [].into() }
}

/// Puts what was planned in the place of each Slice. Errors: `BadGraph` for devices that are no names of devices.
pub fn apply<'p>(
    flow: &mut Flow<'p>,
    planned: &'p [ReplacementNodes],
    placed: &mut NodeDevices,
    marks: &mut Vec<Result<u32, ExclusionReason>>,
) -> Result<()> {
    for made in planned {
        let n = made.slice;
        let (own, mark) = (placed.of[n as usize], marks[n as usize].clone());
        let host = placed.devices.number(&DeviceTable::host(&placed.devices.all[own as usize]))?;
        let first = flow.nodes.len() as u32;
        let last = made.nodes.len() - 1;
        for (i, node) in made.nodes.iter().enumerate() {
            flow.add(node.name.to_string().into(), node);
            placed.of.push(if i == last { own } else { host });
            marks.push(mark.clone());
        }
        connect(flow, made, first);
        replace(flow, n, first + last as u32);
        marks[n as usize] = Err(ExclusionReason::Remade);
    }
    if !planned.is_empty() {
        flow.fix_ends();
    }
    Ok(())
}

fn connect(flow: &mut Flow, made: &ReplacementNodes, first: u32) {
    let inputs: Vec<Option<Edge>> = (0..3).map(|port| flow.input(made.slice, port)).collect();
    for wire in &made.edges {
        let to = first + wire.to as u32;
        match wire.from {
            From::New(at) => {
                flow.connect(first + at as u32, 0, to, wire.port);
            }
            From::Slice(port) => {
                if let Some(e) = inputs[port as usize] {
                    flow.connect(e.src, e.src_port, to, wire.port);
                }
            }
        }
    }
    // What the old size waits for, new constants wait for too.
    let waits: Vec<Edge> = inputs[2].iter().flat_map(|e| flow.ins(e.src)).filter(|e| e.dst_port == CONTROL).collect();
    for (i, _) in made.nodes.iter().enumerate().filter(|(_, node)| &*node.op == "Const") {
        waits.iter().for_each(|e| {
            flow.connect(e.src, CONTROL, first + i as u32, CONTROL);
        });
    }
}

/// Lets what used `old` use `new`, and takes `old` out of the graph.
fn replace(flow: &mut Flow, old: u32, new: u32) {
    for id in flow.nodes[old as usize].outs.clone() {
        if let Some(e) = flow.edges[id as usize] {
            flow.disconnect(id);
            flow.connect(new, e.src_port, e.dst, e.dst_port);
        }
    }
    for id in flow.nodes[old as usize].ins.clone() {
        if let Some(e) = flow.edges[id as usize] {
            let known = flow.ins(new).any(|other| other.src == e.src && other.dst_port == CONTROL);
            if e.dst_port == CONTROL && e.src != SOURCE && !known {
                flow.connect(e.src, CONTROL, new, CONTROL);
            }
            flow.disconnect(id);
        }
    }
    flow.remove(old);
}
