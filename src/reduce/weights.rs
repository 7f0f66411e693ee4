//! Replacement of a graph's weights by seeds, from which the importer generates numbers again.
use crate::diag::Result;
use crate::dump::graphs::attr;
use crate::graph::{Attr, Graph, TfType};
use crate::import::raw::{RawGraph, RawNode};
use crate::import::{self, raw_attr, seeds::SEED};
use crate::tensor::{DTypeClass, Tensor};
use std::collections::HashMap;

/// Minimum number of elements of replaced constants; smaller ones may be sizes, axes or scales.
const LEAST: usize = 64;

/// A constant that was replaced by a seed.
#[derive(Clone, Debug)]
pub struct Seeded {
    /// The node's name, preceded by that of its function.
    pub node: String,
    /// Type and shape of the replaced constant.
    pub shape: String,
    /// The seed that replaces its values.
    pub seed: i64,
}

/// Replaces the weights of `graph` by seeds; returns the replaced constants.
///
/// # Errors
/// Errors of reading a GraphDef.
pub fn seed_weights(graph: &mut RawGraph) -> Result<Vec<Seeded>> {
    let program = import::read_graph_def(&graph.write().into())?;
    let mut done = Vec::new();
    replace(&mut graph.nodes, &program.graph, "", &mut done);
    for function in &mut graph.functions {
        if let Some(known) = program.functions.get(function.name.as_str()) {
            let before = format!("{}:", function.name);
            replace(&mut function.nodes, &known.graph, &before, &mut done);
        }
    }
    Ok(done)
}

fn replace(nodes: &mut [RawNode], graph: &Graph, before: &str, done: &mut Vec<Seeded>) {
    let constants = graph.nodes.values().filter(|n| &*n.op == "Const");
    let values: HashMap<&str, &Tensor> = constants
        .filter_map(|n| match n.attr("value") {
            Some(Attr::Tensor(value)) if value.dtype.class() == DTypeClass::Float && value.len() >= LEAST => {
                Some((&*n.name, &**value))
            }
            _ => None,
        })
        .collect();
    for node in nodes {
        let Some(value) = values.get(node.name.as_str()) else { continue };
        let seed = done.len() as i64 + 1;
        node.set_attr("value", attr::zeros(TfType::Data(value.dtype), &value.dims));
        node.set_attr(SEED, raw_attr::int(seed));
        let shape = format!("{}{:?}", value.dtype, value.dims).replace(' ', "");
        done.push(Seeded { node: format!("{before}{}", node.name), shape, seed });
    }
}
