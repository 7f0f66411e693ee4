//! Origins of unknown sizes, with explanations for users.
use super::Facts;
use crate::graph::Program;
use crate::ops::symbols::{DimId, NodeSite, UnknownReason};
use indexmap::IndexMap;
use std::collections::BTreeMap;

/// Action by which a user could make a size known.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Remedy {
    /// Binding a dimension of a feed to a number.
    Feed {
        /// Name of the fed node.
        name: String,
        /// Index of the dimension; `None` if not even the rank is known.
        dim: Option<usize>,
    },
    /// No action: the size is known at run time only.
    None,
}

impl std::fmt::Display for Remedy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Remedy::None => Ok(()),
            Remedy::Feed { name, dim: Some(dim) } => write!(f, "bind it with --dim {name}[{dim}]=N"),
            Remedy::Feed { name, dim: None } => write!(f, "give its shape: --feed {name}=f32[1,224,224,3]"),
        }
    }
}

impl std::fmt::Display for SizeOrigin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "node `{}` ({})", self.node, self.op)?;
        if let Some(function) = &self.function {
            write!(f, " of function `{function}`")?;
        }
        write!(f, ": {}", self.reason)
    }
}

/// Origin of an unknown size: the node that introduced the size, and why.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SizeOrigin {
    /// Function that contains the node; `None` at the top level.
    pub function: Option<String>,
    /// Node that introduced the size.
    pub node: String,
    /// Op of the node.
    pub op: String,
    /// Reason why the size is unknown there.
    pub reason: String,
    /// Action that would make the size known.
    pub remedy: Remedy,
}

/// Upper bound on the unknown sizes whose origins are listed.
const MAX_ORIGINS: usize = 1000;

impl Facts {
    /// Origins of unknown sizes, each with the number of tensors that have a size of this origin, in descending order. Several sizes may have the
    /// same origin.
    pub fn size_origins(&self, program: &Program) -> Vec<(SizeOrigin, u64)> {
        let mut counts: BTreeMap<DimId, u64> = BTreeMap::new();
        for graph in std::iter::once(&self.graph).chain(&self.functions) {
            for fact in graph.iter().flat_map(|outputs| outputs.iter()) {
                let mut roots: Vec<DimId> = fact.dims.unknowns().map(|id| self.symbols.root_cause(id)).collect();
                roots.sort_unstable();
                roots.dedup();
                for root in roots {
                    *counts.entry(root).or_default() += 1;
                }
            }
        }
        let mut sorted: Vec<_> = counts.into_iter().collect();
        sorted.sort_by_key(|&(id, n)| (std::cmp::Reverse(n), id));
        let mut causes: IndexMap<SizeOrigin, u64> = IndexMap::new();
        for (id, n) in sorted.into_iter().take(MAX_ORIGINS) {
            *causes.entry(self.size_origin(program, id)).or_default() += n;
        }
        let mut rows: Vec<_> = causes.into_iter().collect();
        rows.sort_by(|a, b| (b.1, &a.0).cmp(&(a.1, &b.0)));
        rows
    }
    /// Origin of the unknown size `id`, or of the size that it was unified with.
    pub fn size_origin(&self, program: &Program, id: DimId) -> SizeOrigin {
        let origin = self.symbols.origin(self.symbols.root_cause(id));
        let (function, node) = node_at(program, origin.site);
        let input = |i: usize| {
            node.inputs.get(i).map_or_else(
                || format!("input {i}"),
                |e| format!("input {i} (`{}`)", graph_of(program, origin.site.graph).nodes[e.node].name),
            )
        };
        let (reason, remedy) = match origin.why {
            UnknownReason::Feed(dim) => (
                format!("dimension {dim} of the feed is open"),
                Remedy::Feed { name: node.name.to_string(), dim: Some(dim) },
            ),
            UnknownReason::FeedRank => {
                ("the rank of the feed is open".to_string(), Remedy::Feed { name: node.name.to_string(), dim: None })
            }
            UnknownReason::From(_) => ("it follows from another unknown size".to_string(), Remedy::None),
            UnknownReason::Value(i) => (format!("it depends on the value of {}", input(i)), Remedy::None),
            UnknownReason::Data => ("how many elements there are depends on the data".to_string(), Remedy::None),
            UnknownReason::NoShapeFunction => (format!("{} has no shape function", node.op), Remedy::None),
            UnknownReason::Joined => ("branches or rounds of a loop differ".to_string(), Remedy::None),
            UnknownReason::Invalid => {
                ("the node contradicts itself, or calls what is not there".to_string(), Remedy::None)
            }
            UnknownReason::Attribute => ("an attribute of the node leaves it open".to_string(), Remedy::None),
        };
        SizeOrigin { function, node: node.name.to_string(), op: node.op.to_string(), reason, remedy }
    }
}

fn graph_of(program: &Program, number: u32) -> &crate::graph::Graph {
    let function = (number as usize).checked_sub(1).and_then(|i| program.functions.get_index(i));
    function.map_or(&program.graph, |(_, f)| &f.graph)
}

fn node_at(program: &Program, site: NodeSite) -> (Option<String>, &crate::graph::Node) {
    let function = (site.graph as usize).checked_sub(1).and_then(|i| program.functions.get_index(i));
    (function.map(|(name, _)| name.to_string()), &graph_of(program, site.graph).nodes[site.node])
}
