//! The nodes of a graph in columns; strings that many nodes share are stored once.
use super::model::EdgeReport;
use crate::cluster::{Clustering, UnmergedEdgeReason};
use crate::graph::{Attr, Endpoint, Node, NodeId, Program};
use crate::infer::Facts;
use indexmap::{IndexMap, IndexSet};
use serde::Serialize;
use std::collections::HashMap;

/// Maximum length of an attribute's text.
const LONGEST_ATTR: usize = 120;

/// The graph of a report, column by column.
#[derive(Clone, Debug, Default, Serialize)]
pub struct GraphColumns {
    /// Distinct ops.
    pub ops: Vec<String>,
    /// Distinct types of tensors, with their shapes.
    pub types: Vec<String>,
    /// Distinct names of devices.
    pub devices: Vec<String>,
    /// Distinct attribute texts of nodes, as lines of `name=value`.
    pub attrs: Vec<String>,
    /// Distinct reasons for exclusion from clusters.
    pub reasons: Vec<NodeReason>,
    /// The nodes, a list for each property.
    pub nodes: NodeColumns,
    /// Edges whose clusters were not merged.
    pub edges: Vec<EdgeReport>,
}

/// The properties of all nodes, a list each.
#[derive(Clone, Debug, Default, Serialize)]
pub struct NodeColumns {
    /// Names of the nodes.
    pub name: Vec<String>,
    /// Indices into `ops`.
    pub op: Vec<u32>,
    /// Indices into `devices`.
    pub device: Vec<u32>,
    /// Indices into `attrs`.
    pub attr: Vec<u32>,
    /// Index of the cluster of each node.
    pub cluster: Vec<Option<u32>>,
    /// Indices into `reasons`, for nodes outside of clusters.
    pub reason: Vec<Option<u32>>,
    /// Floating-point operations; null if unknown.
    pub flops: Vec<Option<u64>>,
    /// Indices into `types`, one for each output.
    pub outputs: Vec<Vec<u32>>,
    /// Data inputs as pairs: node, output, node, output, ...
    pub inputs: Vec<Vec<u32>>,
    /// Indices of nodes with control edges to the node.
    pub controls: Vec<Vec<u32>>,
}

/// Why a node is in no cluster.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct NodeReason {
    /// The diagnostic code, such as `TFA0508`.
    pub code: String,
    /// The diagnostic code's name in words.
    pub slug: &'static str,
    /// The reason as a sentence.
    pub text: String,
    /// The meaning of the code.
    pub about: &'static str,
    /// The usual remedy.
    pub cure: &'static str,
}

/// Adds the copies of constants that clustering made to the program's graph, as inputs of their users.
pub fn add_constant_copies(program: &mut Program, found: &Clustering) {
    if found.copies.is_empty() {
        return;
    }
    let known: HashMap<String, NodeId> = program.graph.nodes.iter().map(|(id, n)| (n.name.to_string(), id)).collect();
    for copy in &found.copies {
        let (Some(&of), Some(&user)) = (known.get(&copy.constant), known.get(&copy.user)) else { continue };
        let made = Node { name: copy.name.as_str().into(), ..program.graph.nodes[of].clone() };
        let id = program.graph.nodes.push(made);
        let user = &mut program.graph.nodes[user];
        match copy.input {
            Some(at) => {
                if let Some(input) = user.inputs.get_mut(at) {
                    *input = Endpoint { node: id, port: input.port };
                }
            }
            None => user.controls = user.controls.iter().copied().chain([id]).collect(),
        }
    }
}

impl GraphColumns {
    /// The columns of the top-level graph; `flops` has one entry per node.
    pub fn new(program: &Program, found: &Clustering, facts: &Facts, flops: &[Option<u64>]) -> GraphColumns {
        let verdicts: HashMap<&str, _> = found.nodes.iter().map(|v| (v.name.as_str(), v)).collect();
        let (mut ops, mut types, mut devices, mut attrs) =
            (Interned::default(), Interned::default(), Interned::default(), Interned::default());
        let mut reasons: IndexSet<NodeReason> = IndexSet::new();
        let mut nodes = NodeColumns::default();
        for (i, node) in program.graph.nodes.values().enumerate() {
            let verdict = verdicts.get(&*node.name).map(|v| &v.cluster);
            let reason = verdict.and_then(|v| v.as_ref().err()).map(|left| {
                let row = left.code().row();
                let text = left.text(&node.op);
                let reason = NodeReason { code: row.code.id(), slug: row.slug, text, about: row.about, cure: row.cure };
                reasons.insert_full(reason).0 as u32
            });
            nodes.name.push(node.name.to_string());
            nodes.op.push(ops.string_index(&node.op));
            nodes.device.push(devices.string_index(&node.device));
            nodes.attr.push(attrs.string_index(&node_description(node)));
            nodes.cluster.push(verdict.and_then(|v| v.as_ref().ok()).copied());
            nodes.reason.push(reason);
            nodes.flops.push(flops.get(i).copied().flatten());
            let outputs = facts.graph.get(i).map_or(&[][..], |f| f);
            nodes.outputs.push(
                outputs
                    .iter()
                    .map(|fact| {
                        let dtype = fact.dtype.map_or("?".to_string(), |t| t.to_string());
                        types.string_index(&format!("{dtype}{}", fact.dims))
                    })
                    .collect(),
            );
            nodes.inputs.push(node.inputs.iter().flat_map(|e| [e.node.0, e.port]).collect());
            nodes.controls.push(node.controls.iter().map(|c| c.0).collect());
        }
        let edges = edges(&nodes, found);
        GraphColumns {
            ops: ops.list(),
            types: types.list(),
            devices: devices.list(),
            attrs: attrs.list(),
            reasons: reasons.into_iter().collect(),
            nodes,
            edges,
        }
    }
}

fn edges(nodes: &NodeColumns, found: &Clustering) -> Vec<EdgeReport> {
    if found.refused.is_empty() {
        return Vec::new();
    }
    let numbers: HashMap<&str, u32> = nodes.name.iter().enumerate().map(|(i, n)| (n.as_str(), i as u32)).collect();
    let number = |name: &String| numbers.get(name.as_str()).copied();
    let edge = |e: &crate::cluster::RefusedEdge| EdgeReport {
        from: number(&e.from),
        to: number(&e.to),
        code: e.why.code().id(),
        reason: e.why.text(),
        path: match &e.why {
            UnmergedEdgeReason::Cycle { path } => path.iter().filter_map(number).collect(),
            UnmergedEdgeReason::Deadness { .. }
            | UnmergedEdgeReason::Devices
            | UnmergedEdgeReason::Scopes { .. }
            | UnmergedEdgeReason::TooLarge { .. }
            | UnmergedEdgeReason::CrossDevice
            | UnmergedEdgeReason::Resources { .. } => Vec::new(),
        },
    };
    found.refused.iter().map(edge).collect()
}

/// Distinct strings, numbered in the order of first occurrence.
#[derive(Default)]
struct Interned(IndexMap<String, ()>);

impl Interned {
    fn string_index(&mut self, text: &str) -> u32 {
        let at = match self.0.get_index_of(text) {
            Some(at) => at,
            None => self.0.insert_full(text.to_string(), ()).0,
        };
        at as u32
    }
    fn list(self) -> Vec<String> {
        self.0.into_keys().collect()
    }
}

/// The attributes of a node, except for those that its types and shapes imply.
fn node_description(node: &Node) -> String {
    const KNOWN: &[&str] = &["T", "dtype", "Tidx", "Tshape", "Index", "Tpaddings", "_output_shapes", "_class"];
    let said = node.attrs.iter().filter(|(name, _)| !KNOWN.contains(&&**name));
    let parts: Vec<String> = said.filter_map(|(name, value)| Some(format!("{name}={}", spelled(value)?))).collect();
    parts.join("\n")
}

/// The text of an attribute's value, abbreviated; `None` for an empty string.
fn spelled(value: &Attr) -> Option<String> {
    let text = match value {
        Attr::Str(v) if v.is_empty() => return None,
        Attr::Str(v) => format!("\"{}\"", String::from_utf8_lossy(v)),
        Attr::Int(v) => v.to_string(),
        Attr::Float(v) => v.to_string(),
        Attr::Bool(v) => v.to_string(),
        Attr::Type(v) => v.to_string(),
        Attr::Shape(v) => v.to_string(),
        Attr::Tensor(v) => format!("{v:?}"),
        Attr::Strings(dims, _) => format!("string{dims:?}"),
        Attr::OpaqueTensor(v) => v.to_string(),
        Attr::Func(f) => f.name.to_string(),
        Attr::Placeholder(v) => format!("${v}"),
        Attr::Strs(v) => list(v, |s| format!("\"{}\"", String::from_utf8_lossy(s))),
        Attr::Ints(v) => list(v, i64::to_string),
        Attr::Floats(v) => list(v, f32::to_string),
        Attr::Bools(v) => list(v, bool::to_string),
        Attr::Types(v) => list(v, ToString::to_string),
        Attr::Shapes(v) => list(v, ToString::to_string),
        Attr::Funcs(v) => list(v, |f| f.name.to_string()),
        Attr::EmptyList => return None,
    };
    let short: String = text.chars().take(LONGEST_ATTR).collect();
    Some(if short.len() < text.len() { short + "…" } else { short })
}

/// The first thirty-two elements of a list as text.
fn list<T>(all: &[T], spell: impl Fn(&T) -> String) -> String {
    let shown: Vec<String> = all.iter().take(32).map(spell).collect();
    format!("[{}{}]", shown.join(","), if all.len() > 32 { ",…" } else { "" })
}
