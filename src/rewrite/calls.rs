//! Extraction of clusters from a graph: the inputs and outputs of each, the function that holds its nodes, and the graph that calls it.
//!
//! Control edges into a cluster become control inputs of its call, and those out of it start at the call. The op of the call is
//! chosen by the caller of this module.
use super::units::GraphWithClusters;
use crate::diag::{Code, Diagnostic, Error, Result};
use crate::graph::{Endpoint, Function, Node};
use crate::import::raw::{RawFunction, RawMessage, RawNode, RawValue, serialize_map_entry};
use crate::import::raw_attr as proto;
use crate::opdef;
use indexmap::{IndexMap, IndexSet};
use std::collections::HashMap;

/// Syntax of tensor names in the graph from which clusters are extracted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Spelling {
    /// `node:1`, as in the top-level graph.
    Graph,
    /// `node:output:1`, as in the body of a function.
    Function,
}

/// A cluster that was extracted from its graph.
pub struct ExtractedCluster {
    /// The function that holds the cluster's nodes.
    pub function: RawFunction,
    /// The node that calls the function, with its inputs and its device; op and attributes are left to the caller.
    pub call: RawNode,
    /// The arguments of the function: names and `DataType` numbers.
    pub args: Vec<(String, i32)>,
    /// The results of the function: names and `DataType` numbers.
    pub results: Vec<(String, i32)>,
    /// The names of the function's control results.
    pub controls: Vec<String>,
    /// Whether a node of the cluster is stateful.
    pub stateful: bool,
    /// Whether the cluster was extracted from the body of a function, where names of tensors have the form `node:output:1`.
    pub in_function: bool,
}

impl ExtractedCluster {
    /// Rewrites the function's signature from `args`, `results` and `controls`.
    pub fn rebuild_function_signature(&mut self) {
        let signature =
            proto::function_signature(&self.function.name, &self.args, &self.results, &self.controls, self.stateful);
        self.function.rest = RawMessage { fields: vec![(1, RawValue::Bytes(signature.into()))] };
    }

    /// Keeps TensorFlow from inlining the function, and Grappler from rewriting it by declaring it a tf.data function.
    pub fn forbid_inlining(&mut self) {
        for attr in ["_noinline", "_tf_data_function"] {
            let kept = serialize_map_entry(attr, &proto::boolean(true));
            self.function.rest.fields.push((5, RawValue::Bytes(kept.into())));
        }
    }
}

/// Inputs and outputs of a cluster, as endpoints of its graph with their `DataType` numbers.
#[derive(Clone, Debug, Default)]
pub struct ClusterPorts {
    /// Tensors that enter the cluster.
    pub args: Vec<(Endpoint, i32)>,
    /// Tensors that leave the cluster.
    pub results: Vec<(Endpoint, i32)>,
}

/// A cluster under extraction: inputs, outputs and nodes collected so far.
#[derive(Default)]
struct Call {
    /// `DataType` number of each tensor that enters the cluster, by the tensor's name.
    args: IndexMap<String, i32>,
    /// `DataType` number of each tensor that leaves the cluster, by the tensor's name.
    results: IndexMap<String, i32>,
    /// Nodes of the cluster that are stateful or have control edges to nodes outside: the function's control results.
    controls: IndexSet<String>,
    /// Nodes outside that have control edges to nodes of the cluster: the call's control inputs.
    waits: IndexSet<String>,
    device: String,
    stateful: bool,
    body: Vec<RawNode>,
}

/// Extraction of all clusters of one graph.
pub struct ClusterCalls<'u, 'p> {
    unit: &'u GraphWithClusters<'p>,
    spelling: Spelling,
    /// The name of the output list in the op definition of the calls.
    output: &'static str,
    calls: Vec<Call>,
    /// Clustered nodes whose names stay visible in the graph, with the last output of each.
    visible: IndexMap<String, usize>,
}

fn spelled(name: &str, port: usize) -> String {
    if port == 0 { name.to_string() } else { format!("{name}:{port}") }
}

/// Splits a data input into the node's name and what follows the colon.
fn split(input: &str) -> (&str, &str) {
    input.split_once(':').unwrap_or((input, "0"))
}

/// Clustered nodes that are fetched or unused, with the last output of each that must keep its name.
fn visible(unit: &GraphWithClusters, nodes: &[RawNode], fetches: &[String]) -> IndexMap<String, usize> {
    let mut used: HashMap<&str, ()> = HashMap::new();
    for input in nodes.iter().flat_map(|n| &n.inputs) {
        used.insert(split(input.trim_start_matches('^')).0, ());
    }
    let mut visible: IndexMap<String, usize> = IndexMap::new();
    for fetch in fetches {
        let (name, port) = split(fetch);
        if unit.members.contains_key(name) {
            let last = visible.entry(name.to_string()).or_default();
            *last = (*last).max(port.parse().unwrap_or(0));
        }
    }
    for node in nodes.iter().filter(|n| unit.members.contains_key(&n.name) && !used.contains_key(n.name.as_str())) {
        let outputs = unit.nodes.get(&node.name).and_then(|n| opdef::find_def(&n.op).map(|d| d.output_count(n)));
        if let Some(last) = outputs.and_then(|n| n.checked_sub(1)) {
            let known = visible.entry(node.name.clone()).or_default();
            *known = (*known).max(last);
        }
    }
    visible
}

impl<'u, 'p> ClusterCalls<'u, 'p> {
    /// Collects the clusters of the top-level graph. Fetches and outputs that no node uses keep their names.
    pub fn of_graph(
        unit: &'u GraphWithClusters<'p>,
        nodes: &[RawNode],
        fetches: &[String],
        output: &'static str,
    ) -> Result<Self> {
        let mut calls = ClusterCalls::collect(unit, Spelling::Graph, nodes, output)?;
        let visible = visible(unit, nodes, fetches);
        for (name, ports) in &visible {
            (0..=*ports).try_for_each(|port| calls.result(&spelled(name, port)))?;
        }
        calls.visible = visible;
        Ok(calls)
    }

    /// Collects the clusters of a function's body.
    pub fn of_function_body(
        unit: &'u GraphWithClusters<'p>,
        nodes: &[RawNode],
        function: &RawFunction,
        output: &'static str,
    ) -> Result<Self> {
        let mut calls = ClusterCalls::collect(unit, Spelling::Function, nodes, output)?;
        for (_, value) in &function.rets {
            calls.result(value)?;
        }
        for (_, node) in &function.control_rets {
            calls.control(node);
        }
        Ok(calls)
    }

    /// The inputs and outputs of a cluster.
    pub fn cluster_ports(&self, cluster: usize) -> Result<ClusterPorts> {
        let ends = |all: &IndexMap<String, i32>| -> Result<Vec<(Endpoint, i32)>> {
            all.iter().map(|(at, of)| Ok((self.endpoint(at)?, *of))).collect()
        };
        let call = &self.calls[cluster];
        Ok(ClusterPorts { args: ends(&call.args)?, results: ends(&call.results)? })
    }

    fn endpoint(&self, input: &str) -> Result<Endpoint> {
        let (name, rest) = split(input);
        let found = || {
            let node = *self.unit.ids.get(name)?;
            Some(Endpoint { node, port: self.port(self.unit.nodes.get(name)?, rest)? as u32 })
        };
        found().ok_or_else(|| Error::internal("rewrite", format!("`{input}` is no output of the graph")))
    }

    /// Removes the clusters from `nodes` and returns them; adding their calls is left to the caller.
    pub fn remove_clusters(
        mut self,
        nodes: &mut Vec<RawNode>,
        function: Option<&mut RawFunction>,
    ) -> Result<Vec<ExtractedCluster>> {
        self.move_out(nodes);
        for (name, last) in &self.visible {
            nodes.push(self.alias(name, *last)?);
        }
        if let Some(function) = function {
            for (_, value) in &mut function.rets {
                *value = self.outside(value);
            }
            // control results of a function must be distinct nodes
            for (_, node) in function.control_rets.iter().filter(|(_, node)| self.waited(node) != *node) {
                let inputs = vec![format!("^{}", self.waited(node))];
                nodes.push(RawNode { name: node.clone(), op: "NoOp".to_string(), inputs, ..RawNode::default() });
            }
        }
        Ok(self.functions())
    }

    /// Collects the inputs and outputs of each cluster.
    fn collect(
        unit: &'u GraphWithClusters<'p>,
        spelling: Spelling,
        nodes: &[RawNode],
        output: &'static str,
    ) -> Result<Self> {
        let calls = unit.names.iter().map(|_| Call::default()).collect();
        let mut calls = ClusterCalls { unit, spelling, output, calls, visible: IndexMap::new() };
        for node in nodes {
            let own = unit.members.get(&node.name).copied();
            if let Some(own) = own {
                calls.enter(own, node);
            }
            for (port, input) in (0..).zip(&node.inputs) {
                let Some(from) = input.strip_prefix('^') else {
                    calls.data(own, node, input, port)?;
                    continue;
                };
                let there = unit.members.get(from).copied();
                if there != own {
                    calls.control(from);
                    if let Some(own) = own {
                        calls.calls[own as usize].waits.insert(from.to_string());
                    }
                }
            }
        }
        Ok(calls)
    }

    fn enter(&mut self, cluster: u32, node: &RawNode) {
        let stateful = opdef::find_def(&node.op).is_none_or(|d| d.stateful);
        let call = &mut self.calls[cluster as usize];
        if call.body.is_empty() && call.device.is_empty() {
            call.device.clone_from(&node.device);
        }
        call.stateful |= stateful;
        if stateful {
            call.controls.insert(node.name.clone());
        }
    }

    fn data(&mut self, own: Option<u32>, node: &RawNode, input: &str, port: usize) -> Result<()> {
        if self.unit.members.get(split(input).0).copied() == own {
            return Ok(());
        }
        self.result(input)?;
        let Some(own) = own else { return Ok(()) };
        if self.calls[own as usize].args.contains_key(input) {
            return Ok(());
        }
        let of = self.input_type(node, port).or_else(|| self.output_type(input)).ok_or_else(|| unknown(node, input))?;
        self.calls[own as usize].args.insert(input.to_string(), of);
        Ok(())
    }

    /// Adds the tensor to the results of its cluster, if its node is in one.
    fn result(&mut self, input: &str) -> Result<()> {
        let Some(&cluster) = self.unit.members.get(split(input).0) else { return Ok(()) };
        let key = self.key(input);
        if !self.calls[cluster as usize].results.contains_key(&key) {
            let of = self.output_type(input).ok_or_else(|| {
                Error::user(
                    Code::UnsupportedCase,
                    format!("TensorFlow's definitions do not tell the type of `{input}`"),
                )
            })?;
            self.calls[cluster as usize].results.insert(key, of);
        }
        Ok(())
    }

    fn control(&mut self, node: &str) {
        if let Some(&cluster) = self.unit.members.get(node) {
            self.calls[cluster as usize].controls.insert(node.to_string());
        }
    }

    /// The canonical name of a tensor.
    fn key(&self, input: &str) -> String {
        match self.spelling {
            Spelling::Graph => input.strip_suffix(":0").unwrap_or(input).to_string(),
            Spelling::Function => input.to_string(),
        }
    }

    fn function(&self, op: &str) -> Option<&'p Function> {
        self.unit.program.functions.get(op)
    }

    fn input_type(&self, node: &RawNode, port: usize) -> Option<i32> {
        let known = self.unit.nodes.get(&node.name)?;
        if let Some(function) = self.function(&known.op) {
            let arg = &function.graph.nodes[*function.args.get(port)?];
            return arg.declared_type("T").map(opdef::type_number);
        }
        opdef::find_def(&known.op)?.input_type(known, port)
    }

    fn output_type(&self, input: &str) -> Option<i32> {
        let (name, rest) = split(input);
        let node = *self.unit.nodes.get(name)?;
        let port = self.port(node, rest)?;
        if let Some(function) = self.function(&node.op) {
            let ret = function.rets.get(port)?;
            let from = &function.graph.nodes[ret.node];
            return opdef::find_def(&from.op)?.output_type(from, ret.port as usize);
        }
        opdef::find_def(&node.op)?.output_type(node, port)
    }

    /// The index of the output that `rest`, the part of an input behind the node's name, denotes.
    fn port(&self, node: &Node, rest: &str) -> Option<usize> {
        let Some((output, index)) = rest.split_once(':') else { return rest.parse().ok() };
        let index: usize = index.parse().ok()?;
        if let Some(function) = self.function(&node.op) {
            return function.ret_names.iter().position(|n| **n == *output);
        }
        Some(opdef::find_def(&node.op)?.output_range(node, output)?.start + index)
    }

    /// The name of a cluster's tensor within the cluster's function.
    fn inside(&self, input: &str) -> String {
        if self.spelling == Spelling::Function {
            return input.to_string();
        }
        let (name, rest) = split(input);
        let spelled = || {
            let node = *self.unit.nodes.get(name)?;
            let port: usize = rest.parse().ok()?;
            if let Some(function) = self.function(&node.op) {
                return Some(format!("{name}:{}:0", function.ret_names.get(port)?));
            }
            let def = opdef::find_def(&node.op)?;
            let arg = def.output_arg(node, port)?;
            Some(format!("{name}:{}:{}", arg.name, port - def.output_range(node, arg.name)?.start))
        };
        spelled().unwrap_or_else(|| input.to_string())
    }

    /// The name of a tensor outside of clusters: an output of the call if its node is in a cluster.
    fn outside(&self, input: &str) -> String {
        let Some(&cluster) = self.unit.members.get(split(input).0) else { return input.to_string() };
        let name = &self.unit.names[cluster as usize];
        let at = self.calls[cluster as usize].results.get_index_of(&self.key(input)).unwrap_or(0);
        match self.spelling {
            Spelling::Graph => spelled(name, at),
            Spelling::Function => format!("{name}:{}:{at}", self.output),
        }
    }

    /// The node that replaces `node` as the source of control edges: the call of the cluster for a clustered node, else `node` itself.
    fn waited(&self, node: &str) -> String {
        match self.unit.members.get(node) {
            Some(&cluster) => self.unit.names[cluster as usize].clone(),
            None => node.to_string(),
        }
    }

    /// Moves the nodes of clusters into the calls, and rewires the other nodes to the calls.
    fn move_out(&mut self, nodes: &mut Vec<RawNode>) {
        for mut node in std::mem::take(nodes) {
            node.attrs.retain(|(name, _)| name != "_class");
            let Some(&cluster) = self.unit.members.get(&node.name) else {
                node.inputs = self.rewired(&node.inputs);
                nodes.push(node);
                continue;
            };
            let inputs = std::mem::take(&mut node.inputs);
            node.inputs = inputs.iter().filter_map(|i| self.inner(cluster, i)).collect();
            self.calls[cluster as usize].body.push(node);
        }
    }

    fn rewired(&self, inputs: &[String]) -> Vec<String> {
        let mut out: IndexSet<String> = IndexSet::new();
        let mut data = Vec::new();
        for input in inputs {
            match input.strip_prefix('^') {
                Some(node) => {
                    out.insert(format!("^{}", self.waited(node)));
                }
                None => data.push(self.outside(input)),
            }
        }
        data.extend(out);
        data
    }

    /// Name within the function of `cluster` for the input `input` of one of its nodes. `None` for a control input from outside, which the
    /// call takes over.
    fn inner(&self, cluster: u32, input: &str) -> Option<String> {
        if let Some(node) = input.strip_prefix('^') {
            return (self.unit.members.get(node) == Some(&cluster)).then(|| input.to_string());
        }
        Some(match self.calls[cluster as usize].args.get_index_of(input) {
            Some(at) => format!("tfaot_arg_{at}"),
            None => self.inside(input),
        })
    }

    fn node(&self, call: &Call, name: &str) -> RawNode {
        let mut node = RawNode { name: name.to_string(), device: call.device.clone(), ..RawNode::default() };
        node.inputs.extend(call.args.keys().map(|input| self.outside(input)));
        let waits: IndexSet<String> = call.waits.iter().map(|n| format!("^{}", self.waited(n))).collect();
        node.inputs.extend(waits.into_iter().filter(|w| w[1..] != *name));
        node
    }

    /// An Identity or IdentityN node that has the name of an extracted node and forwards its outputs 0 to `last`, so that they can still be
    /// fetched by name.
    fn alias(&self, name: &str, last: usize) -> Result<RawNode> {
        let inputs: Vec<String> = (0..=last).map(|port| spelled(name, port)).collect();
        let types: Option<Vec<i32>> = inputs.iter().map(|i| self.output_type(i)).collect();
        let types = types.ok_or_else(|| {
            Error::user(Code::UnsupportedCase, format!("TensorFlow's definitions do not tell the types of `{name}`"))
        })?;
        let mut node = RawNode {
            name: name.to_string(),
            op: if last == 0 { "Identity" } else { "IdentityN" }.to_string(),
            inputs: inputs.iter().map(|i| self.outside(i)).collect(),
            ..RawNode::default()
        };
        let value = if let ([of], 0) = (&types[..], last) { proto::dtype(*of) } else { proto::types(&types) };
        node.set_attr("T", value);
        Ok(node)
    }

    /// Builds the function and the call of each cluster that has nodes.
    fn functions(self) -> Vec<ExtractedCluster> {
        let mut made = Vec::new();
        for (call, name) in self.calls.iter().zip(&self.unit.names).filter(|(call, _)| !call.body.is_empty()) {
            let named = |prefix: &str, all: &IndexMap<String, i32>| -> Vec<(String, i32)> {
                all.values().enumerate().map(|(i, &t)| (format!("tfaot_{prefix}_{i}"), t)).collect()
            };
            let (args, results) = (named("arg", &call.args), named("result", &call.results));
            let controls: Vec<String> = (0..call.controls.len()).map(|i| format!("tfaot_control_{i}")).collect();
            let rets = results.iter().zip(call.results.keys()).map(|((r, _), from)| (r.clone(), self.inside(from)));
            let function = RawFunction {
                name: name.clone(),
                nodes: call.body.clone(),
                rets: rets.collect(),
                control_rets: controls.iter().cloned().zip(call.controls.iter().cloned()).collect(),
                rest: RawMessage::default(),
            };
            let stateful = call.stateful;
            let in_function = self.spelling == Spelling::Function;
            let call = self.node(call, name);
            let mut one = ExtractedCluster { function, call, args, results, controls, stateful, in_function };
            one.rebuild_function_signature();
            made.push(one);
        }
        made
    }
}

fn unknown(node: &RawNode, input: &str) -> Error {
    Diagnostic::new(
        Code::UnsupportedCase,
        format!("TensorFlow's definitions do not tell the type of its input `{input}`"),
    )
    .at_node(&node.name, &node.op)
    .into()
}
