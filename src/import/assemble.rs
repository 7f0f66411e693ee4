//! Assembly of a graph from parsed nodes: resolves names to ids and refuses what no graph may have.
use super::node_def::FileNode;
use crate::diag::{Code, Diagnostic, Error, Result};
use crate::graph::{Endpoint, Graph, Node, NodeId};
use crate::util::id_vec::IdVec;
use foldhash::{HashMap, HashMapExt};

/// Exclusive upper limit of output numbers.
const MOST_PORTS: u32 = 1 << 16;

/// Maximum number of nodes for which memory is reserved in advance, as the count in a file may be forged.
const MOST_ROOM: usize = 1 << 21;

/// A graph under construction. Inputs are resolved at the end, because a file may name a node before it defines the node.
#[derive(Default)]
pub struct Assembler<'a> {
    nodes: IdVec<NodeId, Node>,
    names: HashMap<&'a str, NodeId>,
    inputs: Vec<&'a str>,
    ends: Vec<usize>,
}

/// A parsed input of a node: a control input, or a data input with the text behind the node's name.
enum Input<'a> {
    Control(&'a str),
    Data(&'a str, &'a str),
}

impl<'a> Assembler<'a> {
    /// An empty graph with memory reserved for `nodes` nodes, up to a limit.
    pub fn with_capacity(nodes: usize) -> Self {
        let nodes = nodes.min(MOST_ROOM);
        Assembler {
            nodes: IdVec::with_capacity(nodes),
            names: HashMap::with_capacity(nodes),
            inputs: Vec::with_capacity(nodes),
            ends: Vec::with_capacity(nodes),
        }
    }
    /// Adds a node. Errors: `BadGraph` for an empty name, an empty op, or a name in use.
    pub fn add(&mut self, raw: FileNode<'a>) -> Result<NodeId> {
        let id = NodeId(
            u32::try_from(self.nodes.len())
                .map_err(|_| Error::user(Code::TooLarge, "a graph has more than 2^32 nodes"))?,
        );
        let bad = |what: &str| Diagnostic::new(Code::BadGraph, what).at_node(raw.name, &raw.op);
        if raw.name.is_empty() {
            return Err(bad("a node has no name").into());
        }
        if raw.op.is_empty() {
            return Err(bad("a node has no op").into());
        }
        if self.names.insert(raw.name, id).is_some() {
            return Err(bad(&format!("two nodes are called `{}`", raw.name)).into());
        }
        self.inputs.extend_from_slice(&raw.inputs);
        self.ends.push(self.inputs.len());
        let FileNode { name, op, device, attrs, .. } = raw;
        Ok(self.nodes.push(Node {
            name: name.into(),
            op,
            device,
            inputs: [].into(),
            controls: [].into(),
            attrs: attrs.into(),
        }))
    }
    /// The node called `name`.
    pub fn find_node(&self, name: &str) -> Option<NodeId> {
        self.names.get(name).copied()
    }
    /// Resolves all inputs and returns the graph. `port` maps the text behind a node's name to the number of an output.
    pub fn finish(mut self, port: impl Fn(&Node, &str) -> Option<u32>) -> Result<Graph> {
        let mut start = 0;
        let (mut data, mut controls) = (Vec::new(), Vec::new());
        for (i, &end) in self.ends.iter().enumerate() {
            let id = NodeId(i as u32);
            for &input in &self.inputs[start..end] {
                let at = |e: Error| e.map(|d| d.at_node(&self.nodes[id].name, &self.nodes[id].op));
                match split_input(input) {
                    Input::Control(name) => controls.push(self.require_node(name).map_err(at)?),
                    Input::Data(name, rest) => data.push(self.endpoint(input, name, rest, &port).map_err(at)?),
                }
            }
            start = end;
            self.nodes[id].inputs = data.as_slice().into();
            self.nodes[id].controls = controls.as_slice().into();
            data.clear();
            controls.clear();
        }
        Ok(Graph { nodes: self.nodes })
    }
    /// The output that a data input denotes.
    pub fn endpoint_of(&self, input: &str, port: impl Fn(&Node, &str) -> Option<u32>) -> Result<Endpoint> {
        match split_input(input) {
            Input::Data(name, rest) => self.endpoint(input, name, rest, &port),
            Input::Control(name) => Err(Error::user(Code::BadGraph, format!("`^{name}` is no tensor"))),
        }
    }
    fn endpoint(
        &self,
        input: &str,
        name: &str,
        rest: &str,
        port: &impl Fn(&Node, &str) -> Option<u32>,
    ) -> Result<Endpoint> {
        let node = self.require_node(name)?;
        let port = if rest.is_empty() { Some(0) } else { port(&self.nodes[node], rest) };
        let port = port.filter(|&p| p < MOST_PORTS);
        let port = port.ok_or_else(|| Error::user(Code::BadGraph, format!("the input `{input}` names no output")))?;
        Ok(Endpoint { node, port })
    }
    /// The node called `name`. Errors: `BadGraph` if there is none.
    pub fn require_node(&self, name: &str) -> Result<NodeId> {
        self.find_node(name)
            .ok_or_else(|| Error::user(Code::BadGraph, format!("the input `{name}` is not in the graph")))
    }
}

fn split_input(input: &str) -> Input<'_> {
    match input.strip_prefix('^') {
        Some(name) => Input::Control(name),
        None => {
            let (name, rest) = input.split_once(':').unwrap_or((input, ""));
            Input::Data(name, rest)
        }
    }
}

/// The output number in inputs of a GraphDef, such as `a:1`.
pub fn parse_port_number(_: &Node, rest: &str) -> Option<u32> {
    rest.parse().ok()
}
