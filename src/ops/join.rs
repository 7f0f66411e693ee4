//! Join of facts about a value that may come from one place or another: branches, and iterations of a loop.
use super::fact::{Dims, ElementSpec, Fact, Int};
use super::symbols::{DimId, InferredDim, Site, Symbols, Why};
use std::collections::HashSet;
use std::sync::Arc;

/// A meeting of values at one node. Sizes that it made stay as they are when the values meet there again, so that a loop's
/// facts settle.
pub struct Join<'a> {
    /// The unknown sizes.
    pub symbols: &'a mut Symbols,
    /// Where the values meet.
    pub site: Site,
    /// The sizes that were made here.
    pub made: &'a mut HashSet<DimId>,
}

impl Join<'_> {
    /// Join of two facts: what both of them state.
    pub fn facts(&mut self, a: &Fact, b: &Fact) -> Fact {
        let element = match (&a.element, &b.element) {
            (Some(x), Some(y)) => Some(self.elements(x, y)),
            _ => None,
        };
        Fact {
            dtype: a.dtype.filter(|_| a.dtype == b.dtype),
            dims: self.dims(&a.dims, &b.dims),
            value: a.value.clone().filter(|_| a.value == b.value),
            element,
            dead: a.dead && b.dead,
        }
    }

    /// A list of open shape has that of one that is settled.
    fn elements(&mut self, a: &Arc<ElementSpec>, b: &Arc<ElementSpec>) -> Arc<ElementSpec> {
        if a == b {
            return a.clone();
        }
        let dims = match (a.open, b.open) {
            (true, false) => b.dims.clone(),
            (false, true) => a.dims.clone(),
            _ => self.dims(&a.dims, &b.dims),
        };
        Arc::new(ElementSpec {
            dtype: a.dtype.filter(|_| a.dtype == b.dtype),
            dims,
            length: if a.length == b.length { a.length } else { Int::Unknown },
            open: a.open && b.open,
            variable: a.variable.clone().filter(|_| a.variable == b.variable),
        })
    }

    /// The shape that covers both.
    pub fn dims(&mut self, a: &Dims, b: &Dims) -> Dims {
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
        let id = self.symbols.fresh(self.site, Why::Joined);
        self.made.insert(id);
        id
    }
}
