//! Clustering of function bodies, which TensorFlow clusters when nodes outside of clusters instantiate the functions.
use super::candidates::jit_compile_function;
use super::{Clustering, ClusteringOptions, cluster_function};
use crate::diag::{Error, Result};
use crate::graph::{Graph, Node, Program};
use std::collections::HashSet;
use std::sync::Arc;

/// The clusters of one function's body.
#[derive(Clone, Debug)]
pub struct FunctionClustering {
    /// The name of the function.
    pub name: Arc<str>,
    /// Clusters of the body. Their numbers continue those of the graph and of earlier bodies, as in one process of TensorFlow.
    pub clustering: Clustering,
}

/// Clusters the bodies of the functions that nodes of `graph` outside of its clusters call, transitively; each function once.
///
/// # Errors
/// Errors of [`super::cluster`], placed at the function.
pub fn cluster_functions(
    program: &Program,
    graph: &Graph,
    found: &Clustering,
    options: &ClusteringOptions,
) -> Result<Vec<FunctionClustering>> {
    let mut next = found.clusters.len();
    let mut options = options.clone();
    let spend = |options: &mut ClusteringOptions, found: &Clustering| {
        options.flags.fuel = options.flags.fuel.saturating_sub_unsigned(found.candidates).max(0);
    };
    spend(&mut options, found);
    let mut open = calls_outside(program, graph, found);
    let mut seen = HashSet::new();
    let mut bodies = Vec::new();
    while let Some(name) = open.pop() {
        let Some(function) = program.functions.get(&name).filter(|_| seen.insert(name.clone())) else { continue };
        let mut found = cluster_function(program, function, &options).map_err(|e| in_function(e, &name))?;
        spend(&mut options, &found);
        open.extend(calls_outside(program, &function.graph, &found));
        for cluster in &mut found.clusters {
            cluster.name = format!("cluster_{next}");
            next += 1;
        }
        bodies.push(FunctionClustering { name, clustering: found });
    }
    Ok(bodies)
}

/// The functions that nodes outside of clusters call, in reverse order.
fn calls_outside(program: &Program, graph: &Graph, found: &Clustering) -> Vec<Arc<str>> {
    let outside: HashSet<&str> = found.nodes.iter().filter(|n| n.cluster.is_err()).map(|n| n.name.as_str()).collect();
    let nodes = graph.nodes.values().filter(|n| outside.contains(&*n.name));
    let mut calls: Vec<Arc<str>> = nodes.filter_map(|n| called_function(program, n)).collect();
    calls.reverse();
    calls
}

/// The function that TensorFlow would instantiate, and cluster, for a node: the callee, unless XLA compiles it as a whole.
pub fn called_function(program: &Program, node: &Node) -> Option<Arc<str>> {
    match &*node.op {
        "PartitionedCall" | "StatefulPartitionedCall" => {
            node.func("f").filter(|_| jit_compile_function(program, node).is_none()).map(|f| f.name.clone())
        }
        op => program.functions.get_key_value(op).map(|(name, _)| name.clone()),
    }
}

fn in_function(error: Error, name: &str) -> Error {
    error.map(|mut d| {
        d.place.function.get_or_insert_with(|| name.to_string());
        d
    })
}
