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
    /// For each function, the functions with `jit_compile=True` that call it, directly or through others, and the function itself if it is
    /// marked.
    jit_callers: HashMap<Arc<str>, HashSet<Arc<str>>>,
    /// Functions that [`JitFunctions::remove_mark`] was called for.
    unmarked: HashSet<Arc<str>>,
}

impl JitFunctions {
    /// Collects the functions of a program that are marked with `jit_compile=True`.
    pub fn collect(program: &Program) -> JitFunctions {
        let mut marked = JitFunctions::default();
        let graphs = std::iter::once(&program.graph).chain(program.functions.values().map(|f| &f.graph));
        let called = graphs.flat_map(|g| g.nodes.values()).filter_map(|n| cluster::jit_compile_function(program, n));
        for name in called.collect::<BTreeSet<_>>() {
            let mut open = vec![name.clone()];
            while let Some(next) = open.pop() {
                if marked.jit_callers.entry(next.clone()).or_default().insert(name.clone()) {
                    open.extend(program.functions.get(&next).map(|f| named(program, &f.graph)).unwrap_or_default());
                }
            }
        }
        marked
    }

    /// Whether no other function that is still marked with `jit_compile=True` calls `name`, directly or through others, so that XLA does
    /// not compile its body as a part of another function.
    pub fn has_no_jit_caller(&self, name: &Arc<str>) -> bool {
        self.jit_callers
            .get(name)
            .is_none_or(|jit_callers| jit_callers.iter().all(|m| m == name || self.unmarked.contains(m)))
    }

    /// Whether a function is marked with `jit_compile=True` and the mark has not been removed.
    pub fn is_marked(&self, name: &Arc<str>) -> bool {
        self.jit_callers.get(name).is_some_and(|jit_callers| jit_callers.contains(name))
            && !self.unmarked.contains(name)
    }

    /// Drops the mark `jit_compile=True` of a function; [`JitFunctions::delete_marks`] then deletes the attribute from the file.
    pub fn remove_mark(&mut self, name: &Arc<str>) {
        self.unmarked.insert(name.clone());
    }

    /// Deletes the `jit_compile` marks that this pass removed from the nodes and functions of a file.
    pub fn delete_marks(&self, raw: &mut RawGraph) {
        if self.unmarked.is_empty() {
            return;
        }
        for function in raw.functions.iter_mut().filter(|f| self.unmarked.contains(&*f.name)) {
            let is_mark = |raw: &RawValue| matches!(raw, RawValue::Bytes(b) if parse_map_entry(b).is_ok_and(|(key, _)| key == cluster::MUST_COMPILE_ATTR));
            function.rest.fields.retain(|(number, raw)| *number != FUNCTION_ATTR || !is_mark(raw));
        }
        let bodies = raw.functions.iter_mut().flat_map(|f| &mut f.nodes);
        for node in raw.nodes.iter_mut().chain(bodies).filter(|node| self.calls_unmarked(node)) {
            node.attrs.retain(|(key, _)| key != cluster::MUST_COMPILE_ATTR);
        }
    }

    fn calls_unmarked(&self, node: &RawNode) -> bool {
        let name = node.attrs.iter().find(|(key, _)| key == "f").and_then(|(_, value)| called(value));
        self.unmarked.contains(&*node.op) || name.is_some_and(|name| self.unmarked.contains(&*name))
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
