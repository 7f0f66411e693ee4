//! Names of nodes, tensors and functions that a MetaGraphDef uses outside of its graph: in signatures, collections, savers and the
//! object graph, and in the operations that a session runs on its own.
//!
//! Sources: `meta_graph.proto`, `saved_object_graph.proto`, `control_flow.proto`, `variable.proto`, `saver.proto`.
use crate::diag::Result;
use crate::graph::{Endpoint, Graph, NodeId, Program};
use crate::import::raw::{RawMessage, RawValue, parse_map_entry};
use bytes::Bytes;
use std::collections::{HashMap, HashSet};

/// Field numbers of `MetaGraphDef`.
const SAVER: u32 = 3;
const COLLECTIONS: u32 = 4;
const SIGNATURES: u32 = 5;
const ASSETS: u32 = 6;
const OBJECTS: u32 = 7;

/// Depth of nested messages that are searched for names.
const MAX_DEPTH: usize = 12;

/// Collections whose operations a session runs on their own, without feeds.
const RUN_ALONE: &[&str] =
    &["saved_model_main_op", "saved_model_train_op", "legacy_init_op", "init_op", "local_init_op", "table_initializer"];

/// Collections of serialized `VariableDef`s.
const VARIABLES: &[&str] = &[
    "variables",
    "trainable_variables",
    "local_variables",
    "model_variables",
    "metric_variables",
    "moving_average_variables",
    "global_step",
];

/// One session run: its feeds, and its fetches and target operations.
#[derive(Debug, Default)]
struct Step {
    feeds: Vec<String>,
    targets: Vec<String>,
}

/// Nodes, tensors and functions that a MetaGraphDef names outside of its graph.
#[derive(Debug, Default)]
pub struct ExternalNames {
    /// Tensors and nodes that callers look up by name.
    pub tensors: Vec<String>,
    /// Nodes of the graph that are fed, or whose attributes are read when the file is loaded.
    pub nodes: HashSet<String>,
    /// Functions of the object graph, which callers run without the top-level graph.
    pub functions: HashSet<String>,
    /// For each function of the object graph, the nodes of its body that the object graph names.
    pub captured: HashMap<String, HashSet<String>>,
    steps: Vec<Step>,
}

impl ExternalNames {
    /// Collects the nodes that `meta`, the MetaGraphDef of `program`, refers to by name, so that a rewritten graph must keep them.
    ///
    /// # Errors
    /// `BadEncoding`.
    pub fn collect(meta: &RawMessage, program: &Program) -> Result<ExternalNames> {
        let names: HashSet<&str> = program.graph.nodes.values().map(|n| &*n.name).collect();
        let mut named = ExternalNames::default();
        for (number, raw) in &meta.fields {
            let RawValue::Bytes(bytes) = raw else { continue };
            match *number {
                SAVER => named.saver(bytes, &names)?,
                COLLECTIONS => named.collection(bytes, &names)?,
                SIGNATURES => named.signature(bytes, &names)?,
                ASSETS => {
                    named.nodes.extend(mentioned(bytes, &names).iter().map(|name| node_of_tensor(name).to_string()))
                }
                OBJECTS => named.objects(bytes)?,
                _ => {}
            }
        }
        for signature in &program.signatures {
            let Some(run) = &signature.runs else { continue };
            let feeds = signature.inputs.iter().map(|(_, tensor)| tensor.clone()).collect();
            named.steps.push(Step { feeds, targets: vec![run.clone()] });
        }
        Ok(named)
    }

    /// For each node of `graph`, the id of the set of session runs that execute the node; empty if no session run is known.
    pub fn ids_of_sets_of_session_runs(&self, graph: &Graph) -> HashMap<String, u32> {
        let ids: HashMap<&str, NodeId> = graph.nodes.iter().map(|(id, n)| (&*n.name, id)).collect();
        if self.steps.is_empty() {
            return HashMap::new();
        }
        let mut sets: HashMap<&str, u32> = ids.keys().map(|name| (*name, 0)).collect();
        let mut count = 0;
        for step in &self.steps {
            // Each run splits every set into the nodes that it executes and the others.
            let mut divided: HashMap<u32, u32> = HashMap::new();
            for name in step.nodes(graph, &ids) {
                let set = sets.entry(name).or_default();
                *set = *divided.entry(*set).or_insert_with(|| {
                    count += 1;
                    count
                });
            }
        }
        sets.into_iter().map(|(name, set)| (name.to_string(), set)).collect()
    }

    fn saver(&mut self, bytes: &Bytes, names: &HashSet<&str>) -> Result<()> {
        let mut saver = RawMessage::parse(bytes, "SaverDef")?;
        let feeds: Vec<String> = saver.bytes_mut(1).map(|bytes| text(bytes)).collect();
        for field in [2, 3] {
            let targets = saver.bytes_mut(field).map(|bytes| text(bytes)).collect();
            self.steps.push(Step { feeds: feeds.clone(), targets });
        }
        self.tensors.extend(mentioned(bytes, names));
        Ok(())
    }

    fn signature(&mut self, bytes: &Bytes, names: &HashSet<&str>) -> Result<()> {
        let (_, value) = parse_map_entry(bytes)?;
        let mut step = Step::default();
        for (number, raw) in RawMessage::parse(&value, "SignatureDef")?.fields {
            let (1 | 2, RawValue::Bytes(pair)) = (number, raw) else { continue };
            let tensors = mentioned(&parse_map_entry(&pair)?.1, names);
            if number == 1 {
                self.nodes.extend(tensors.iter().map(|name| node_of_tensor(name).to_string()));
                step.feeds.extend(tensors);
            } else {
                self.tensors.extend(tensors.iter().cloned());
                step.targets.extend(tensors);
            }
        }
        self.steps.push(step);
        Ok(())
    }

    fn collection(&mut self, bytes: &Bytes, names: &HashSet<&str>) -> Result<()> {
        let (key, mut value) = parse_map_entry(bytes)?;
        if let Some(kind) = Context::of_collection(&key) {
            for context in contexts(&mut value)? {
                kind.names(&context, names, &mut self.tensors)?;
            }
            return Ok(());
        }
        let tensors = mentioned(&value, names);
        if RUN_ALONE.contains(&&*key) {
            self.steps.push(Step { feeds: Vec::new(), targets: tensors.clone() });
        }
        if VARIABLES.contains(&&*key) {
            let mut targets = Vec::new();
            for variable in contexts(&mut value)? {
                // Collections of numbers and names do not parse as variables with an initializer.
                let Ok(mut variable) = RawMessage::parse(&variable, "VariableDef") else { continue };
                targets.extend(variable.bytes_mut(2).map(|bytes| text(bytes)));
            }
            self.steps.push(Step { feeds: Vec::new(), targets });
        }
        self.tensors.extend(tensors);
        Ok(())
    }

    fn objects(&mut self, bytes: &Bytes) -> Result<()> {
        for (number, raw) in RawMessage::parse(bytes, "SavedObjectGraph")?.fields {
            match (number, raw) {
                (1, RawValue::Bytes(object)) => self.object(&object)?,
                (2, RawValue::Bytes(pair)) => {
                    self.functions.insert(parse_map_entry(&pair)?.0);
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn object(&mut self, bytes: &Bytes) -> Result<()> {
        let mut object = RawMessage::parse(bytes, "SavedObject")?;
        for constant in object.bytes_mut(9) {
            self.nodes.extend(RawMessage::parse(constant, "SavedConstant")?.bytes_mut(1).map(|bytes| text(bytes)));
        }
        for captured in object.bytes_mut(12) {
            let mut captured = RawMessage::parse(captured, "CapturedTensor")?;
            let tensors: Vec<String> = captured.bytes_mut(1).map(|bytes| text(bytes)).collect();
            for function in captured.bytes_mut(2).map(|bytes| text(bytes)) {
                self.captured
                    .entry(function)
                    .or_default()
                    .extend(tensors.iter().map(|name| node_of_tensor(name).to_string()));
            }
        }
        Ok(())
    }
}

impl Step {
    /// The nodes that the session run executes.
    fn nodes<'g>(&self, graph: &'g Graph, ids: &HashMap<&str, NodeId>) -> Vec<&'g str> {
        let endpoint = |name: &String| {
            let port = name.split_once(':').map_or(Some(0), |(_, port)| port.parse().ok())?;
            Some(Endpoint { node: *ids.get(node_of_tensor(name))?, port })
        };
        let fed: HashSet<Endpoint> = self.feeds.iter().filter_map(endpoint).collect();
        let is_run = |at: &Endpoint| !fed.contains(at);
        let mut open: Vec<NodeId> = self.targets.iter().filter_map(endpoint).filter(is_run).map(|at| at.node).collect();
        let mut seen = HashSet::new();
        while let Some(id) = open.pop() {
            if seen.insert(id) {
                let node = &graph.nodes[id];
                let inputs = node.inputs.iter().filter(|at| is_run(at)).map(|at| at.node);
                open.extend(inputs.chain(node.controls.iter().copied()));
            }
        }
        seen.into_iter().map(|id| &*graph.nodes[id].name).collect()
    }
}

/// Kinds of control flow contexts that TensorFlow 1 keeps for gradients.
#[derive(Clone, Copy)]
enum Context {
    Cond,
    While,
}

impl Context {
    fn of_collection(key: &str) -> Option<Context> {
        match key {
            "cond_context" => Some(Context::Cond),
            "while_context" => Some(Context::While),
            _ => None,
        }
    }

    /// Field numbers of the list of the nodes in a control flow context, and of the contexts nested in it.
    fn fields(self) -> (u32, u32) {
        match self {
            Context::Cond => (5, 6),
            Context::While => (9, 12),
        }
    }

    /// Adds the tensors that a serialized control flow context names, such as its predicate, to `tensors`. The list of all nodes inside the
    /// context is not searched. `names` are the nodes of the graph.
    fn names(self, bytes: &Bytes, names: &HashSet<&str>, tensors: &mut Vec<String>) -> Result<()> {
        let (values, nested) = self.fields();
        for (number, raw) in RawMessage::parse(bytes, "ControlFlowContextDef")?.fields {
            let RawValue::Bytes(field) = raw else { continue };
            if number == nested {
                for (kind, inner) in inner(&field)? {
                    kind.names(&inner, names, tensors)?;
                }
            } else if number != values {
                tensors.extend(mentioned_within(&field, names, MAX_DEPTH));
            }
        }
        Ok(())
    }

    /// The serialized control flow context without the nodes for which `is_there` is false.
    fn remove_missing_nodes(self, bytes: &Bytes, is_there: &dyn Fn(&str) -> bool) -> Result<Vec<u8>> {
        let (values, nested) = self.fields();
        let mut context = RawMessage::parse(bytes, "ControlFlowContextDef")?;
        for field in context.bytes_mut(values) {
            let mut list = RawMessage::parse(field, "ValuesDef")?;
            list.fields.retain(|(number, raw)| match (number, raw) {
                (1, RawValue::Bytes(name)) => is_there(&text(name)),
                (2, RawValue::Bytes(pair)) => {
                    parse_map_entry(pair).is_ok_and(|(from, to)| is_there(&from) && is_there(&text(&to)))
                }
                _ => true,
            });
            *field = list.write().into();
        }
        for field in context.bytes_mut(nested) {
            let mut made = RawMessage::parse(field, "ControlFlowContextDef")?;
            for (kind, inner) in [(Context::Cond, 1), (Context::While, 2)] {
                for context in made.bytes_mut(inner) {
                    *context = kind.remove_missing_nodes(context, is_there)?.into();
                }
            }
            *field = made.write().into();
        }
        Ok(context.write())
    }
}

/// The nested contexts in a `ControlFlowContextDef`.
fn inner(bytes: &Bytes) -> Result<Vec<(Context, Bytes)>> {
    let mut message = RawMessage::parse(bytes, "ControlFlowContextDef")?;
    let mut all = Vec::new();
    for (kind, number) in [(Context::Cond, 1), (Context::While, 2)] {
        all.extend(message.bytes_mut(number).map(|context| (kind, context.clone())));
    }
    Ok(all)
}

/// The entries of the bytes list in a `CollectionDef`.
fn contexts(collection: &mut Bytes) -> Result<Vec<Bytes>> {
    let mut all = Vec::new();
    for list in RawMessage::parse(collection, "CollectionDef")?.bytes_mut(2) {
        all.extend(RawMessage::parse(list, "BytesList")?.bytes_mut(1).map(|context| context.clone()));
    }
    Ok(all)
}

/// Removes the nodes for which `is_there` is false from the control flow contexts of `meta`.
///
/// # Errors
/// `BadEncoding`.
pub fn remove_missing_nodes(meta: &mut RawMessage, is_there: &dyn Fn(&str) -> bool) -> Result<()> {
    for collection in meta.bytes_mut(COLLECTIONS) {
        let mut pair = RawMessage::parse(collection, "CollectionDefEntry")?;
        let key = pair.bytes_mut(1).next().map(|key| text(key)).unwrap_or_default();
        let Some(kind) = Context::of_collection(&key) else { continue };
        for value in pair.bytes_mut(2) {
            let mut def = RawMessage::parse(value, "CollectionDef")?;
            for list in def.bytes_mut(2) {
                let mut all = RawMessage::parse(list, "BytesList")?;
                for context in all.bytes_mut(1) {
                    *context = kind.remove_missing_nodes(context, is_there)?.into();
                }
                *list = all.write().into();
            }
            *value = def.write().into();
        }
        *collection = pair.write().into();
    }
    Ok(())
}

/// All strings in a message, at any depth, that name nodes or tensors.
fn mentioned(message: &Bytes, names: &HashSet<&str>) -> Vec<String> {
    mentioned_within(message, names, 0)
}

fn mentioned_within(bytes: &Bytes, names: &HashSet<&str>, depth: usize) -> Vec<String> {
    let mut found = Vec::new();
    let mut open = vec![(bytes.clone(), depth)];
    while let Some((bytes, depth)) = open.pop() {
        if let Ok(name) = std::str::from_utf8(&bytes)
            && names.contains(node_of_tensor(name))
        {
            found.push(name.trim_start_matches('^').to_string());
        } else if depth < MAX_DEPTH
            && let Ok(message) = RawMessage::parse(&bytes, "message")
        {
            open.extend(message.fields.into_iter().filter_map(|(_, raw)| match raw {
                RawValue::Bytes(field) => Some((field, depth + 1)),
                RawValue::Varint(_) | RawValue::Fixed64(_) | RawValue::Fixed32(_) => None,
            }));
        }
    }
    found
}

/// The node of a tensor name or a control input.
pub fn node_of_tensor(tensor: &str) -> &str {
    let name = tensor.trim_start_matches('^');
    name.split(':').next().unwrap_or(name)
}

fn text(bytes: &Bytes) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
