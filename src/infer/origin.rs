//! Where an unknown size came from, in words.
use super::Facts;
use crate::graph::Program;
use crate::ops::symbols::{DimId, Site, Why};

/// What would make a size known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// Binding this dimension of this feed.
    Feed {
        /// The node that is fed.
        name: String,
        /// The dimension; `None` where not even the rank is known.
        dim: Option<usize>,
    },
    /// Nothing: it is only known when the program runs, or never here.
    None,
}

/// The origin of an unknown size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explained {
    /// The function that holds the node; `None` at the top level.
    pub function: Option<String>,
    /// The node that made it.
    pub node: String,
    /// The node's op.
    pub op: String,
    /// Why the node does not know it.
    pub reason: String,
    /// What would make it known.
    pub remedy: Remedy,
}

impl Facts {
    /// Where the unknown size was met first that `id` follows from.
    pub fn explain(&self, program: &Program, id: DimId) -> Explained {
        let origin = self.symbols.origin(self.symbols.root(id));
        let (function, node) = place(program, origin.site);
        let input = |i: usize| {
            node.inputs.get(i).map_or_else(
                || format!("input {i}"),
                |e| format!("input {i} (`{}`)", graph_of(program, origin.site.graph).nodes[e.node].name),
            )
        };
        let (reason, remedy) = match origin.why {
            Why::Feed(dim) => (
                format!("dimension {dim} of the feed is open"),
                Remedy::Feed { name: node.name.to_string(), dim: Some(dim) },
            ),
            Why::FeedRank => {
                ("the rank of the feed is open".to_string(), Remedy::Feed { name: node.name.to_string(), dim: None })
            }
            Why::From(_) => ("it follows from another unknown size".to_string(), Remedy::None),
            Why::Value(i) => (format!("it depends on the value of {}", input(i)), Remedy::None),
            Why::Data => ("how many elements there are depends on the data".to_string(), Remedy::None),
            Why::NoShapeFunction => (format!("{} has no shape function", node.op), Remedy::None),
            Why::Joined => ("branches or rounds of a loop differ".to_string(), Remedy::None),
            Why::Invalid => ("the node contradicts itself, or calls what is not there".to_string(), Remedy::None),
            Why::Attribute => ("an attribute of the node leaves it open".to_string(), Remedy::None),
        };
        Explained { function, node: node.name.to_string(), op: node.op.to_string(), reason, remedy }
    }
}

fn graph_of(program: &Program, number: u32) -> &crate::graph::Graph {
    let function = (number as usize).checked_sub(1).and_then(|i| program.functions.get_index(i));
    function.map_or(&program.graph, |(_, f)| &f.graph)
}

fn place(program: &Program, site: Site) -> (Option<String>, &crate::graph::Node) {
    let function = (site.graph as usize).checked_sub(1).and_then(|i| program.functions.get_index(i));
    (function.map(|(name, _)| name.to_string()), &graph_of(program, site.graph).nodes[site.node])
}
