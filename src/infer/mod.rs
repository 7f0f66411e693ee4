//! Inference of each tensor's type, partial shape and value before anything runs, and of the reason where a size is not known.
//!
//! In: a program and what its feeds are. Out: [`Facts`], one an output of each node of the graph and of every function that is
//! called. The shapes are those of the rows in `ops/`, which stand beside the lowerings; where an op has no shape function,
//! its lowering tells, if the inputs are wholly known. Values of small constants are folded by lowering and interpreting.
//!
//! Nothing here fails: what contradicts itself is collected as a problem, and its outputs are unknown.
mod by_lowering;
mod call;
mod origin;
mod walk;
#[cfg(test)]
mod tests;

pub use origin::{Explained, Remedy};

use crate::diag::Diagnostic;
use crate::graph::{Endpoint, PartialShape, Program, TfType};
use crate::ops::fact::Fact;
use crate::ops::symbols::{DimId, Symbols};
use crate::tensor::Tensor;
use std::collections::HashMap;

/// A feed: facts about an output that the caller gives instead of what the graph computes.
#[derive(Clone, Debug)]
pub struct FeedFacts {
    /// The output.
    pub at: Endpoint,
    /// The element type, if it is given.
    pub dtype: Option<TfType>,
    /// The shape, as far as it is given.
    pub shape: PartialShape,
    /// For each of its dimensions the number of the size that an open one has; those with one number have one size. Dimensions
    /// without a number, and those behind the last entry, are told apart from all others.
    pub sizes: Vec<Option<usize>>,
    /// The value, if it is given.
    pub value: Option<Tensor>,
}

/// The facts of one graph: those of node `i` in order of its outputs.
pub type GraphFacts = Vec<Box<[Fact]>>;

/// Inferred facts about the tensors of a program.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// The top-level graph.
    pub graph: GraphFacts,
    /// The functions in the order of the library; empty for one that is not called. Where several calls differ, the last one.
    pub functions: Vec<GraphFacts>,
    /// The unknown sizes.
    pub symbols: Symbols,
    /// Symbols of the open sizes that [`FeedFacts::sizes`] numbers, by number.
    pub sizes: HashMap<usize, DimId>,
    /// Nodes whose inputs contradict each other.
    pub problems: Vec<Diagnostic>,
}

impl Facts {
    /// The fact about an output of the top-level graph.
    pub fn at(&self, at: Endpoint) -> Option<&Fact> {
        self.graph.get(at.node.0 as usize)?.get(at.port as usize)
    }
}

/// Infers the facts of a program.
pub fn infer(program: &Program, given: &[FeedFacts]) -> Facts {
    walk::Inference::new(program).run(given)
}
