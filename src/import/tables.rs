//! Initial contents of lookup tables, found in the part of the graph that initializes them before the first call.
//!
//! A SavedModel fills its tables in an initializer (`InitializeTableV2`, `LookupTableImportV2`) with constants, which may be passed as
//! arguments of functions, and mutable tables where it restores them, with tensors of the checkpoint. The contents are stored as
//! attributes of the node that creates the table's handle (`graph/tables.rs`); tables with strings are left alone.
use super::checkpoint::Checkpoint;
use super::variables::{restored_checkpoint_key, trace_origin};
use crate::diag::Result;
use crate::graph::{Attr, CONTENTS_UNKNOWN, Endpoint, Graph, KEYS, Node, NodeId, Program, VALUES, is_table};
use crate::tensor::Tensor;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Maximum depth of nested calls that are searched.
const MOST_CALLS: usize = 8;

/// Keys and values of a table, or the reason why they are unknown.
type Contents = Result<(Tensor, Tensor), String>;

/// An argument of a function that initializes tables.
enum Argument {
    /// The handle of the table with this name.
    Table(String),
    /// The value of a constant.
    Value(Tensor),
}

/// Stores the contents of the tables of `program` in the nodes that create their handles. Errors: those of reading a tensor.
pub fn fill_tables(program: &mut Program, checkpoint: Option<&Checkpoint>) -> Result<()> {
    if !program.graph.nodes.values().any(holds_numbers) {
        return Ok(());
    }
    let mut found = Filled { program, checkpoint, contents: BTreeMap::new() };
    found.graph(&program.graph, &HashMap::new(), 0)?;
    let contents = found.contents;
    for node in program.graph.nodes.values_mut().filter(|n| holds_numbers(n)) {
        if let Some(contents) = contents.get(node.variable_name()) {
            write(node, contents);
        }
    }
    let bodies = program.functions.values_mut().flat_map(|f| f.graph.nodes.values_mut());
    for node in bodies.filter(|n| holds_numbers(n)) {
        if let Some(contents) = node.str("shared_name").and_then(|name| contents.get(name)) {
            write(node, contents);
        }
    }
    Ok(())
}

/// Whether a node creates the handle of a table without strings.
fn holds_numbers(node: &Node) -> bool {
    let number = |name: &str| node.tf_type(name).is_some_and(|t| t.dtype().is_some());
    is_table(node) && number("key_dtype") && number("value_dtype")
}

fn write(node: &mut Node, contents: &Contents) {
    let more = match contents {
        Ok((keys, values)) => {
            let tensor = |t: &Tensor| Attr::Tensor(Box::new(t.clone()));
            vec![(Arc::from(KEYS), tensor(keys)), (Arc::from(VALUES), tensor(values))]
        }
        Err(why) => vec![(Arc::from(CONTENTS_UNKNOWN), Attr::Str(why.clone().into()))],
    };
    node.attrs = node.attrs.iter().cloned().chain(more).collect();
}

struct Filled<'a> {
    program: &'a Program,
    checkpoint: Option<&'a Checkpoint>,
    /// By the name of the table.
    contents: BTreeMap<String, Contents>,
}

impl Filled<'_> {
    /// Searches a graph with these arguments for ops that fill tables.
    fn graph(&mut self, graph: &Graph, args: &HashMap<NodeId, Argument>, depth: usize) -> Result<()> {
        for node in graph.nodes.values() {
            match &*node.op {
                "InitializeTableV2" | "LookupTableImportV2" => {
                    let Some(table) = self.table(graph, args, node.inputs.first()) else { continue };
                    let keys = self.value(graph, args, node.inputs.get(1))?;
                    let values = self.value(graph, args, node.inputs.get(2))?;
                    let contents = match (keys, values) {
                        (Some(keys), Some(values)) => Ok((keys, values)),
                        _ => Err(format!("`{}` fills it with what is no constant", node.name)),
                    };
                    self.add(table, contents);
                }
                "InitializeTableFromTextFileV2" | "InitializeTableFromDataset" => {
                    if let Some(table) = self.table(graph, args, node.inputs.first()) {
                        self.add(table, Err(format!("`{}` ({}) fills it", node.name, node.op)));
                    }
                }
                _ if depth < MOST_CALLS => self.call(graph, args, node, depth)?,
                _ => {}
            }
        }
        Ok(())
    }

    /// Searches the function that a node calls with a table as an argument for nodes that fill the table.
    fn call(&mut self, graph: &Graph, args: &HashMap<NodeId, Argument>, node: &Node, depth: usize) -> Result<()> {
        let name = node.func("f").map_or(&node.op, |f| &f.name);
        let program = self.program;
        let Some(function) = program.functions.get(name).filter(|f| f.args.len() == node.inputs.len()) else {
            return Ok(());
        };
        if !fills(&function.graph) || !node.inputs.iter().any(|e| self.table(graph, args, Some(e)).is_some()) {
            return Ok(());
        }
        let mut inner = HashMap::new();
        for (&arg, e) in function.args.iter().zip(&node.inputs) {
            if let Some(table) = self.table(graph, args, Some(e)) {
                inner.insert(arg, Argument::Table(table));
            } else if let Some(value) = self.value(graph, args, Some(e))? {
                inner.insert(arg, Argument::Value(value));
            }
        }
        self.graph(&function.graph, &inner, depth + 1)
    }

    fn add(&mut self, table: String, contents: Contents) {
        let differs = |before: &Contents| *before != contents;
        let contents = match self.contents.get(&table) {
            Some(before) if differs(before) => Err("it is filled more than once, and not with the same".to_string()),
            _ => contents,
        };
        self.contents.insert(table, contents);
    }

    /// The name of the table whose handle `e` is; `None` for tables with strings and for other tensors.
    fn table(&self, graph: &Graph, args: &HashMap<NodeId, Argument>, e: Option<&Endpoint>) -> Option<String> {
        let at = trace_origin(graph, *e?).node;
        match args.get(&at) {
            Some(Argument::Table(name)) => Some(name.clone()),
            Some(Argument::Value(_)) => None,
            None => Some(&graph.nodes[at]).filter(|n| holds_numbers(n)).map(|n| n.variable_name().to_string()),
        }
    }

    /// Constant value of the graph edge `e`, if the file holds it.
    fn value(&self, graph: &Graph, args: &HashMap<NodeId, Argument>, e: Option<&Endpoint>) -> Result<Option<Tensor>> {
        let Some(e) = e else { return Ok(None) };
        let mut at = *e;
        for _ in 0..graph.nodes.len() {
            let node = &graph.nodes[at.node];
            match (&*node.op, node.inputs.first()) {
                ("Identity", Some(&next)) => at = next,
                _ => break,
            }
        }
        if let (Some(Attr::Tensor(value)), "Const") = (graph.nodes[at.node].attr("value"), &*graph.nodes[at.node].op) {
            return Ok(Some((**value).clone()));
        }
        if let Some(Argument::Value(value)) = args.get(&at.node) {
            return Ok(Some(value.clone()));
        }
        match (restored_checkpoint_key(graph, at), self.checkpoint) {
            (Some(name), Some(checkpoint)) => checkpoint.tensor(&name),
            _ => Ok(None),
        }
    }
}

/// Whether a graph may fill a table, directly or in a function that it calls.
fn fills(graph: &Graph) -> bool {
    let fills = |op: &str| op.starts_with("InitializeTable") || op == "LookupTableImportV2";
    graph.nodes.values().any(|n| fills(&n.op) || n.op.ends_with("PartitionedCall"))
}
