//! Join of facts about a value that may come from several places: the branches of a condition, or the iterations of a loop.
use super::fact::{Dims, ElementSpec, Fact, InferredInt};
use super::symbols::{DimId, InferredDim, NodeSite, Symbols, UnknownReason};
use std::collections::HashSet;
use std::sync::Arc;

/// Join of facts at one node. Unknown sizes that an earlier join introduced here are reused, so that the facts of a loop reach
/// a fixed point.
pub struct Join<'a> {
    /// All unknown sizes of the inference.
    pub symbols: &'a mut Symbols,
    /// The node at which control flow joins the values.
    pub site: NodeSite,
    /// Unknown sizes that joins at this node introduced.
    pub made: &'a mut HashSet<DimId>,
}

impl Join<'_> {
    /// Join of two facts: the most specific fact that both imply.
    pub fn join_facts(&mut self, a: &Fact, b: &Fact) -> Fact {
        let element = match (&a.element, &b.element) {
            (Some(x), Some(y)) => Some(self.elements(x, y)),
            _ => None,
        };
        Fact {
            dtype: a.dtype.filter(|_| a.dtype == b.dtype),
            dims: self.join_shapes(&a.dims, &b.dims),
            value: a.value.clone().filter(|_| a.value == b.value),
            element,
            dead: a.dead && b.dead,
        }
    }

    /// Join of two element specs. A list of open shape takes the shape of the other one.
    fn elements(&mut self, a: &Arc<ElementSpec>, b: &Arc<ElementSpec>) -> Arc<ElementSpec> {
        if a == b {
            return a.clone();
        }
        let dims = match (a.open, b.open) {
            (true, false) => b.dims.clone(),
            (false, true) => a.dims.clone(),
            _ => self.join_shapes(&a.dims, &b.dims),
        };
        Arc::new(ElementSpec {
            dtype: a.dtype.filter(|_| a.dtype == b.dtype),
            dims,
            length: if a.length == b.length { a.length } else { InferredInt::Unknown },
            open: a.open && b.open,
            variable: a.variable.clone().filter(|_| a.variable == b.variable),
        })
    }

    /// Most specific shape that includes both shapes.
    pub fn join_shapes(&mut self, a: &Dims, b: &Dims) -> Dims {
        match (a, b) {
            (a, b) if a == b => a.clone(),
            (Dims::Unranked(id), _) if self.made.contains(id) => a.clone(),
            (Dims::Ranked(x), Dims::Ranked(y)) if x.len() == y.len() => {
                x.iter().zip(y.iter()).map(|(&x, &y)| self.dim(x, y)).collect::<Vec<_>>().into()
            }
            _ => Dims::Unranked(self.make()),
        }
    }

    fn dim(&mut self, a: InferredDim, b: InferredDim) -> InferredDim {
        match (a, b) {
            (a, b) if a == b => a,
            (InferredDim::Unknown(id), _) if self.made.contains(&id) => a,
            _ => InferredDim::Unknown(self.make()),
        }
    }

    fn make(&mut self) -> DimId {
        let id = self.symbols.fresh(self.site, UnknownReason::Joined);
        self.made.insert(id);
        id
    }
}
