//! Resolution of tensor names to outputs of nodes, with suggestions for unknown names.
use crate::diag::{Code, Diagnostic};
use crate::graph::{Endpoint, NodeId, Program};
use crate::ops::output_count;
use foldhash::HashMap;

/// Upper bound on the names whose edit distance to an unknown name is computed.
const MAX_COMPARED: usize = 20_000;

/// Index of the nodes of a graph by name.
pub struct NodesByName<'a> {
    program: &'a Program,
    ids: HashMap<&'a str, NodeId>,
}

impl<'a> NodesByName<'a> {
    /// Index of the top-level graph.
    pub fn new(program: &'a Program) -> Self {
        NodesByName { program, ids: program.graph.nodes.iter().map(|(id, n)| (&*n.name, id)).collect() }
    }
    /// Node with this name.
    pub fn node(&self, name: &str) -> Option<NodeId> {
        self.ids.get(name).copied()
    }
    /// Output with the tensor name `node` or `node:index`; errors call it `what`. Errors: `UnknownTensor`.
    pub fn endpoint(&self, what: &str, tensor: &str) -> Result<Endpoint, Diagnostic> {
        let (name, port) = match tensor.rsplit_once(':') {
            Some((name, port)) => (name, port.parse::<u32>().ok()),
            None => (tensor, Some(0)),
        };
        let unknown = |why: String| Diagnostic::new(Code::UnknownTensor, format!("the {what} `{tensor}` {why}"));
        let Some(&node) = self.ids.get(name) else {
            let near = self.nearest(name);
            let diagnostic = unknown("is not in the graph".to_string());
            return Err(if near.is_empty() {
                diagnostic
            } else {
                diagnostic.help(format!("did you mean {}?", near.join(", ")))
            });
        };
        let Some(port) = port else { return Err(unknown("has no output number after `:`".to_string())) };
        match output_count(&self.program.graph.nodes[node], &self.program.functions) {
            Some(n) if port as usize >= n => Err(unknown(format!("does not exist: the node has {n} outputs"))),
            Some(_) | None => Ok(Endpoint { node, port }),
        }
    }
    /// Up to three names similar to `name`, the most similar first.
    fn nearest(&self, name: &str) -> Vec<String> {
        let last = |s: &str| s.rsplit('/').next().unwrap_or("").to_lowercase();
        let (wanted, tail) = (name.to_lowercase(), last(name));
        let mut compared = 0;
        let mut found: Vec<(usize, &str)> = Vec::new();
        for node in self.program.graph.nodes.values() {
            let (lower, limit) = (node.name.to_lowercase(), (wanted.len() / 3).min(8));
            if lower == wanted || last(&node.name) == tail {
                found.push((usize::from(lower != wanted), &node.name));
            } else if lower.len().abs_diff(wanted.len()) <= limit && compared < MAX_COMPARED && name.len() < 256 {
                compared += 1;
                let distance = edit_distance(lower.as_bytes(), wanted.as_bytes());
                if distance <= limit {
                    found.push((distance + 1, &node.name));
                }
            }
        }
        found.sort();
        found.truncate(3);
        found.into_iter().map(|(_, name)| format!("`{name}`")).collect()
    }
}

/// Levenshtein distance of two names.
fn edit_distance(a: &[u8], b: &[u8]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.iter().enumerate() {
            let changed = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}
