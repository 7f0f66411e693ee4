//! Functions with `jit_compile=True` in graphs whose clusters tfaot compiles.
//!
//! TensorFlow compiles such a function as a whole with XLA, which has no kernels for the ops of tfaot's library. Functions with
//! compiled clusters therefore lose the mark: their own nodes run in TensorFlow around these ops; variables are read before them and
//! assigned after them. A function that is also called by one that keeps the mark is left unchanged.
use crate::cluster;
use crate::graph::{Attr, Graph, Program};
use crate::import::raw::{RawGraph, RawNode, RawValue, parse_map_entry};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

/// Functions marked with `jit_compile=True`, and the functions that they call.
#[derive(Debug, Default)]
pub struct JitFunctions {
    /// By function: the marked functions that call it, directly or through others, itself included.
    over: HashMap<Arc<str>, HashSet<Arc<str>>>,
    /// Functions whose mark was removed.
    taken: HashSet<Arc<str>>,
}

impl JitFunctions {
    /// Collects the marked functions of a program.
    pub fn collect(program: &Program) -> JitFunctions {
        let mut marked = JitFunctions::default();
        let graphs = std::iter::once(&program.graph).chain(program.functions.values().map(|f| &f.graph));
        let called = graphs.flat_map(|g| g.nodes.values()).filter_map(|n| cluster::jit_compile_function(program, n));
        for name in called.collect::<BTreeSet<_>>() {
            let mut open = vec![name.clone()];
            while let Some(next) = open.pop() {
                if marked.over.entry(next.clone()).or_default().insert(name.clone()) {
                    open.extend(program.functions.get(&next).map(|f| named(program, &f.graph)).unwrap_or_default());
                }
            }
        }
        marked
    }

    /// Whether XLA does not see the body of a function unless the function itself is marked, given the marks removed so far.
    pub fn is_outside_jit_compile(&self, name: &Arc<str>) -> bool {
        self.over.get(name).is_none_or(|over| over.iter().all(|m| m == name || self.taken.contains(m)))
    }

    /// Whether a function still has its mark.
    pub fn is_marked(&self, name: &Arc<str>) -> bool {
        self.over.get(name).is_some_and(|over| over.contains(name)) && !self.taken.contains(name)
    }

    /// Removes the attribute that marks a function for compilation by XLA.
    pub fn remove_mark(&mut self, name: &Arc<str>) {
        self.taken.insert(name.clone());
    }

    /// Deletes the removed marks from the nodes and functions of a file.
    pub fn delete_marks(&self, raw: &mut RawGraph) {
        if self.taken.is_empty() {
            return;
        }
        for function in raw.functions.iter_mut().filter(|f| self.taken.contains(&*f.name)) {
            let is_mark = |raw: &RawValue| matches!(raw, RawValue::Bytes(b) if parse_map_entry(b).is_ok_and(|(key, _)| key == cluster::MUST_COMPILE_ATTR));
            function.rest.fields.retain(|(number, raw)| *number != FUNCTION_ATTR || !is_mark(raw));
        }
        let bodies = raw.functions.iter_mut().flat_map(|f| &mut f.nodes);
        for node in raw.nodes.iter_mut().chain(bodies).filter(|node| self.calls_taken(node)) {
            node.attrs.retain(|(key, _)| key != cluster::MUST_COMPILE_ATTR);
        }
    }

    fn calls_taken(&self, node: &RawNode) -> bool {
        let name = node.attrs.iter().find(|(key, _)| key == "f").and_then(|(_, value)| called(value));
        self.taken.contains(&*node.op) || name.is_some_and(|name| self.taken.contains(&*name))
    }
}

/// Field number of `FunctionDef.attr`.
const FUNCTION_ATTR: u32 = 5;

/// The function that an AttrValue names, if its kind is `func`.
fn called(value: &bytes::Bytes) -> Option<String> {
    use crate::import::raw::RawMessage;
    let mut value = RawMessage::parse(value, "AttrValue").ok()?;
    let function = value.bytes_mut(10).next()?.clone();
    let name = RawMessage::parse(&function, "NameAttrList").ok()?.bytes_mut(1).next()?.clone();
    Some(String::from_utf8_lossy(&name).into_owned())
}

/// The functions that the nodes of a graph name, as an op or in an attribute.
fn named(program: &Program, graph: &Graph) -> Vec<Arc<str>> {
    let mut all = Vec::new();
    for node in graph.nodes.values() {
        all.extend(program.functions.get_key_value(&node.op).map(|(name, _)| name.clone()));
        for (_, attr) in &node.attrs {
            match attr {
                Attr::Func(f) => all.push(f.name.clone()),
                Attr::Funcs(many) => all.extend(many.iter().map(|f| f.name.clone())),
                _ => {}
            }
        }
    }
    all
}
