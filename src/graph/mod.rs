//! TensorFlow graphs and their function library, as imported.
mod attr;
mod tables;
mod types;
mod variables;

pub use attr::{Attr, FuncRef};
pub use tables::{CONTENTS_UNKNOWN, KEYS, VALUES, is_table};
pub use types::{PartialShape, TfType};
pub use variables::{TABLE_PARTS, Variable, VariableRole, is_handle};

use crate::util::id_vec::IdVec;
use crate::util::order::sorted;
use indexmap::IndexMap;
use std::borrow::Cow;
use std::sync::Arc;

crate::ids! {
    /// A node of one graph.
    pub struct NodeId;
}

/// One output of one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Endpoint {
    /// The node that produces the tensor.
    pub node: NodeId,
    /// Index of the output, where each element of a list output counts.
    pub port: u32,
}

/// A node of a graph: one operation.
#[derive(Clone, Debug)]
pub struct Node {
    /// The node's name, unique in the graph.
    pub name: Box<str>,
    /// TensorFlow's op, or a function of the library.
    pub op: Arc<str>,
    /// The requested device, often empty.
    pub device: Arc<str>,
    /// Data inputs, in order.
    pub inputs: Box<[Endpoint]>,
    /// Control inputs.
    pub controls: Box<[NodeId]>,
    /// Attributes by name.
    pub attrs: Box<[(Arc<str>, Attr)]>,
}

/// A graph. Every edge ends at existing nodes, which the importer guarantees.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    /// The nodes in file order.
    pub nodes: IdVec<NodeId, Node>,
}

/// A function of the library: a graph with `_Arg` nodes and named results.
#[derive(Clone, Debug)]
pub struct Function {
    /// The function's name.
    pub name: Arc<str>,
    /// Argument `i` is the node `args[i]`, which has the op `_Arg`.
    pub args: Vec<NodeId>,
    /// Result `i` is the tensor `rets[i]`.
    pub rets: Vec<Endpoint>,
    /// Nodes that run whenever the function is called, even if no result needs them.
    pub control_rets: Vec<NodeId>,
    /// The names of the results in the signature.
    pub ret_names: Vec<Box<str>>,
    /// The attributes of the definition, such as `_XlaMustCompile` and `_noinline`.
    pub attrs: Box<[(Arc<str>, Attr)]>,
    /// Whether the results may depend on more than the arguments, according to the signature.
    pub stateful: bool,
    /// The function's body.
    pub graph: Graph,
}

/// A signature of a SavedModel: a named set of inputs and outputs.
#[derive(Clone, Debug, Default)]
pub struct Signature {
    /// The signature's name, such as `serving_default`.
    pub name: String,
    /// Inputs: `(argument name, tensor name)`.
    pub inputs: Vec<(String, String)>,
    /// Outputs: `(result name, tensor name)`.
    pub outputs: Vec<(String, String)>,
    /// The node that the signature runs, if it has no outputs.
    pub runs: Option<String>,
}

/// The content of a model file: graph, function library, signatures and variables.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// The path as the user gave it.
    pub source: String,
    /// The top-level graph.
    pub graph: Graph,
    /// The function library by name.
    pub functions: IndexMap<Arc<str>, Function>,
    /// The SavedModel's signatures, or the TF.js signature.
    pub signatures: Vec<Signature>,
    /// The GraphDef's producer version.
    pub producer: i32,
    /// The variables that were not made constants.
    pub variables: Vec<Variable>,
    /// By the function of a loop body: maximum number of iterations, if the user states one.
    pub rounds: IndexMap<Arc<str>, u64>,
}

impl Node {
    /// The node within a function called with these attributes: placeholders are replaced by their values.
    pub fn instantiate(&self, attrs: &[(Arc<str>, Attr)]) -> Cow<'_, Self> {
        if attrs.is_empty() || !self.attrs.iter().any(|a| matches!(a.1, Attr::Placeholder(_))) {
            return Cow::Borrowed(self);
        }
        let mut node = self.clone();
        for (_, value) in &mut node.attrs {
            if let Attr::Placeholder(name) = value
                && let Some(bound) = attrs.iter().find(|a| *a.0 == **name)
            {
                *value = bound.1.clone();
            }
        }
        Cow::Owned(node)
    }
    /// The functions that the node may call: those in attributes, nested ones included, and the op itself, which may be a function.
    pub fn called_functions(&self) -> Vec<Arc<str>> {
        let mut out = vec![self.op.clone()];
        let mut attrs: Vec<&Attr> = self.attrs.iter().map(|(_, a)| a).collect();
        let mut funcs: Vec<&FuncRef> = Vec::new();
        while let Some(attr) = attrs.pop() {
            match attr {
                Attr::Func(f) => funcs.push(f),
                Attr::Funcs(all) => funcs.extend(all.iter()),
                _ => {}
            }
            while let Some(f) = funcs.pop() {
                out.push(f.name.clone());
                attrs.extend(f.attrs.iter().map(|(_, a)| a));
            }
        }
        out
    }
    /// The name of the variable to which the node (`VarHandleOp` etc.) returns a handle.
    pub fn variable_name(&self) -> &str {
        self.str("shared_name").filter(|name| !name.is_empty()).unwrap_or(&self.name)
    }
    /// The attribute `name`.
    pub fn attr(&self, name: &str) -> Option<&Attr> {
        self.attrs.iter().find(|a| &*a.0 == name).map(|a| &a.1)
    }
    /// The integer attribute `name`.
    pub fn int(&self, name: &str) -> Option<i64> {
        if let Some(Attr::Int(v)) = self.attr(name) { Some(*v) } else { None }
    }
    /// The float attribute `name`.
    pub fn float(&self, name: &str) -> Option<f32> {
        if let Some(Attr::Float(v)) = self.attr(name) { Some(*v) } else { None }
    }
    /// The boolean attribute `name`.
    pub fn bool(&self, name: &str) -> Option<bool> {
        if let Some(Attr::Bool(v)) = self.attr(name) { Some(*v) } else { None }
    }
    /// The string attribute `name`, if it is UTF-8.
    pub fn str(&self, name: &str) -> Option<&str> {
        if let Some(Attr::Str(v)) = self.attr(name) { std::str::from_utf8(v).ok() } else { None }
    }
    /// The type attribute `name`; a quantized type is replaced by the integer type that stores it.
    pub fn tf_type(&self, name: &str) -> Option<TfType> {
        self.declared_type(name).map(TfType::storage_type)
    }
    /// The type attribute `name` as written.
    pub fn declared_type(&self, name: &str) -> Option<TfType> {
        if let Some(Attr::Type(v)) = self.attr(name) { Some(*v) } else { None }
    }
    /// The attribute `name`, a list of integers.
    pub fn ints(&self, name: &str) -> Option<&[i64]> {
        if let Some(Attr::Ints(v)) = self.attr(name) { Some(v) } else { None }
    }
    /// The attribute `name`, a list of floats.
    pub fn floats(&self, name: &str) -> Option<&[f32]> {
        if let Some(Attr::Floats(v)) = self.attr(name) { Some(v) } else { None }
    }
    /// The attribute `name`, a list of strings, if all are UTF-8; empty if the attribute is missing.
    pub fn strs(&self, name: &str) -> Option<Vec<&str>> {
        match self.attr(name) {
            Some(Attr::Strs(v)) => v.iter().map(|s| std::str::from_utf8(s).ok()).collect(),
            None | Some(Attr::EmptyList) => Some(Vec::new()),
            Some(_) => None,
        }
    }
    /// The function attribute `name`.
    pub fn func(&self, name: &str) -> Option<&FuncRef> {
        if let Some(Attr::Func(v)) = self.attr(name) { Some(v) } else { None }
    }
}

impl Function {
    /// The boolean attribute `name` of the definition.
    pub fn bool(&self, name: &str) -> Option<bool> {
        let found = self.attrs.iter().find(|a| &*a.0 == name);
        if let Some((_, Attr::Bool(v))) = found { Some(*v) } else { None }
    }
}

impl Graph {
    /// The node called `name`; takes time linear in the number of nodes.
    pub fn find(&self, name: &str) -> Option<NodeId> {
        self.nodes.iter().find(|(_, n)| &*n.name == name).map(|(id, _)| id)
    }
    /// The nodes in topological order of data and control edges.
    ///
    /// # Errors
    /// A node on a cycle, if there is one.
    pub fn topological_order(&self) -> Result<Vec<NodeId>, NodeId> {
        let mut edges = Vec::new();
        for (id, node) in self.nodes.iter() {
            let needed = node.inputs.iter().map(|e| e.node).chain(node.controls.iter().copied());
            edges.extend(needed.map(|from| (from, id)));
        }
        sorted(self.nodes.len(), &edges)
    }
}
