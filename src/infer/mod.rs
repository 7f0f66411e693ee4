//! Static inference of each tensor's type, partial shape and value, and of the reason why a size is unknown.
//!
//! The input is a program with facts about its feeds; the result is [`Facts`], with one fact for each output of each node, in the graph and
//! in every function that is called. Shapes come from the shape functions in `ops/`, which stand beside the lowerings. An op without a
//! shape function is lowered if the shapes of its inputs are known. Values of small constants are folded by lowering and interpretation.
//!
//! Inference does not fail: contradictions are collected as problems, and the outputs of such nodes are unknown.
mod lowering_facts;
mod call;
mod origin;
mod walk;
#[cfg(test)]
mod tests;

pub use origin::{Remedy, SizeOrigin};

use crate::diag::Diagnostic;
use crate::graph::{Endpoint, PartialShape, Program, TfType};
use crate::ops::fact::Fact;
use crate::ops::symbols::{DimId, Symbols};
use crate::tensor::Tensor;
use std::collections::HashMap;

/// Facts about a feed, an output whose value the caller passes instead of computing it.
#[derive(Clone, Debug)]
pub struct FeedFacts {
    /// The output that the feed replaces.
    pub at: Endpoint,
    /// Element type; `None` if not known.
    pub dtype: Option<TfType>,
    /// Shape, as far as it is known.
    pub shape: PartialShape,
    /// Index of the size of each unknown dimension; dimensions with the same index have the same size. Dimensions without an index, and those
    /// behind the last entry, are different from all others.
    pub sizes: Vec<Option<usize>>,
    /// Constant value; `None` for arguments.
    pub value: Option<Tensor>,
}

/// Facts of one graph, by node id and output port.
pub type GraphFacts = Vec<Box<[Fact]>>;

/// Inferred facts about the tensors of a program.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// Facts of the top-level graph.
    pub graph: GraphFacts,
    /// Facts of each library function at its last call; empty for functions that are not called.
    pub functions: Vec<GraphFacts>,
    /// Symbols of unknown sizes.
    pub symbols: Symbols,
    /// Symbol of each size in [`FeedFacts::sizes`], by index.
    pub sizes: HashMap<usize, DimId>,
    /// Nodes whose inputs contradict each other.
    pub problems: Vec<Diagnostic>,
}

impl Facts {
    /// Fact about an output of the top-level graph.
    pub fn at(&self, at: Endpoint) -> Option<&Fact> {
        self.graph.get(at.node.0 as usize)?.get(at.port as usize)
    }
}

/// Infers the facts of a program.
pub fn infer(program: &Program, given: &[FeedFacts]) -> Facts {
    walk::Inference::new(program).infer_program(given)
}
