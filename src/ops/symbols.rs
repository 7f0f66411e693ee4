//! Unknown sizes, each with an id, with their arithmetic and their origins.
use crate::graph::NodeId;
use std::collections::HashMap;

/// Id of an unknown size. Dimensions with the same id have the same size, whatever it turns out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DimId(pub u32);

/// A size of a dimension, known or unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum InferredDim {
    /// A size known at compile time.
    Known(u64),
    /// An unknown size; equal ids mean equal sizes.
    Unknown(DimId),
}

/// Position of a node in the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Site {
    /// Number of the graph: 0 is the top-level graph, `i + 1` the body of library function `i`.
    pub graph: u32,
    /// Id of the node in its graph.
    pub node: NodeId,
}

/// Reason why a size is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// The dimension of this number of a fed node is open.
    Feed(usize),
    /// The rank of a fed node is open.
    FeedRank,
    /// The node computes it from another unknown size.
    From(DimId),
    /// The size depends on the value of this input, which is not known at compile time.
    Value(usize),
    /// The size depends on the data, such as a count of nonzero elements.
    Data,
    /// The op has no shape function.
    NoShapeFunction,
    /// Branches, or iterations of a loop, have different sizes.
    Joined,
    /// The inputs contradict each other, or a size overflows.
    Invalid,
    /// An attribute leaves it open.
    Attribute,
}

/// Origin of an unknown size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Node that introduced it.
    pub site: Site,
    /// Why it is not known.
    pub why: Why,
}

/// Arithmetic term that defines an unknown size; equal terms share an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Term {
    Add(InferredDim, InferredDim),
    Sub(InferredDim, InferredDim),
    Mul(InferredDim, InferredDim),
    DivFloor(InferredDim, InferredDim),
    DivCeil(InferredDim, InferredDim),
    Min(InferredDim, InferredDim),
    Max(InferredDim, InferredDim),
    Broadcast(InferredDim, InferredDim),
}

impl Term {
    /// Value of the term, with `value` for its operands; `None` if one is unknown, or the result is not a size.
    fn at(self, value: impl Fn(InferredDim) -> Option<u64>) -> Option<u64> {
        let of = |a, b| Some((value(a)?, value(b)?));
        match self {
            Term::Add(a, b) => of(a, b).and_then(|(a, b)| a.checked_add(b)),
            Term::Sub(a, b) => of(a, b).and_then(|(a, b)| a.checked_sub(b)),
            Term::Mul(a, b) => of(a, b).and_then(|(a, b)| a.checked_mul(b)),
            Term::DivFloor(a, b) => of(a, b).and_then(|(a, b)| a.checked_div(b)),
            Term::DivCeil(a, b) => of(a, b).and_then(|(a, b)| (b != 0).then(|| a.div_ceil(b))),
            Term::Min(a, b) => of(a, b).map(|(a, b)| a.min(b)),
            Term::Max(a, b) => of(a, b).map(|(a, b)| a.max(b)),
            Term::Broadcast(a, b) => of(a, b).and_then(|(a, b)| match (a, b) {
                (1, other) | (other, 1) => Some(other),
                (a, b) => (a == b).then_some(a),
            }),
        }
    }
}

/// All unknown sizes of one inference.
#[derive(Clone, Debug, Default)]
pub struct Symbols {
    origins: Vec<Origin>,
    terms: HashMap<Term, DimId>,
    by_id: HashMap<DimId, Term>,
}

impl Symbols {
    /// New unknown size that is not known to equal any other.
    pub fn fresh(&mut self, site: Site, why: Why) -> DimId {
        let id = DimId(u32::try_from(self.origins.len()).unwrap_or(u32::MAX));
        self.origins.push(Origin { site, why });
        id
    }
    /// Origin of an unknown size.
    pub fn origin(&self, id: DimId) -> Origin {
        self.origins[id.0 as usize]
    }
    /// First unknown size of the chain from which `id` was computed.
    pub fn root(&self, mut id: DimId) -> DimId {
        while let Why::From(before) = self.origin(id).why {
            id = before;
        }
        id
    }
    /// Number of unknown sizes.
    pub fn len(&self) -> usize {
        self.origins.len()
    }
    /// Whether there are no unknown sizes.
    pub fn is_empty(&self) -> bool {
        self.origins.is_empty()
    }

    fn term(&mut self, site: Site, term: Term, from: &[InferredDim]) -> InferredDim {
        if let Some(&id) = self.terms.get(&term) {
            return InferredDim::Unknown(id);
        }
        let cause = from.iter().find_map(|d| if let InferredDim::Unknown(id) = d { Some(*id) } else { None });
        let id = self.fresh(site, cause.map_or(Why::Invalid, Why::From));
        self.terms.insert(term, id);
        self.by_id.insert(id, term);
        InferredDim::Unknown(id)
    }
    fn known(&mut self, site: Site, value: Option<u64>) -> InferredDim {
        value.map_or_else(|| InferredDim::Unknown(self.fresh(site, Why::Invalid)), InferredDim::Known)
    }

    /// Sum.
    pub fn add(&mut self, site: Site, a: InferredDim, b: InferredDim) -> InferredDim {
        match (a.min(b), a.max(b)) {
            (InferredDim::Known(a), InferredDim::Known(b)) => self.known(site, a.checked_add(b)),
            (InferredDim::Known(0), other) => other,
            (a, b) => self.term(site, Term::Add(a, b), &[a, b]),
        }
    }
    /// Difference; unknown if negative.
    pub fn sub(&mut self, site: Site, a: InferredDim, b: InferredDim) -> InferredDim {
        match (a, b) {
            (InferredDim::Known(a), InferredDim::Known(b)) => self.known(site, a.checked_sub(b)),
            (a, InferredDim::Known(0)) => a,
            (a, b) if a == b => InferredDim::Known(0),
            (a, b) => match self.parts(a) {
                Some(Term::Add(x, y)) if x == b => y,
                Some(Term::Add(x, y)) if y == b => x,
                _ => self.term(site, Term::Sub(a, b), &[a, b]),
            },
        }
    }
    /// Product; 0 if either is 0, even if the other one is unknown.
    pub fn mul(&mut self, site: Site, a: InferredDim, b: InferredDim) -> InferredDim {
        match (a.min(b), a.max(b)) {
            (InferredDim::Known(a), InferredDim::Known(b)) => self.known(site, a.checked_mul(b)),
            (InferredDim::Known(0), _) => InferredDim::Known(0),
            (InferredDim::Known(1), other) => other,
            (a, b) => self.term(site, Term::Mul(a, b), &[a, b]),
        }
    }
    /// Quotient, rounded down; unknown for a divisor of 0.
    pub fn div_floor(&mut self, site: Site, a: InferredDim, b: InferredDim) -> InferredDim {
        match (a, b) {
            (InferredDim::Known(a), InferredDim::Known(b)) => self.known(site, a.checked_div(b)),
            (a, b) => self.quotient(a, b).unwrap_or_else(|| self.term(site, Term::DivFloor(a, b), &[a, b])),
        }
    }
    /// Quotient, rounded up; unknown for a divisor of 0.
    pub fn div_ceil(&mut self, site: Site, a: InferredDim, b: InferredDim) -> InferredDim {
        match (a, b) {
            (InferredDim::Known(a), InferredDim::Known(b)) => self.known(site, (b != 0).then(|| a.div_ceil(b))),
            (a, b) => self.quotient(a, b).unwrap_or_else(|| self.term(site, Term::DivCeil(a, b), &[a, b])),
        }
    }
    /// Exact quotient, if the divisor is a syntactic factor of the dividend.
    fn quotient(&self, a: InferredDim, b: InferredDim) -> Option<InferredDim> {
        if b == InferredDim::Known(1) {
            return Some(a);
        }
        match self.parts(a) {
            Some(Term::Mul(x, y)) if x == b => Some(y),
            Some(Term::Mul(x, y)) if y == b => Some(x),
            _ => None,
        }
    }
    /// Minimum.
    pub fn least(&mut self, site: Site, a: InferredDim, b: InferredDim) -> InferredDim {
        match (a.min(b), a.max(b)) {
            (InferredDim::Known(a), InferredDim::Known(b)) => InferredDim::Known(a.min(b)),
            (InferredDim::Known(0), _) => InferredDim::Known(0),
            (a, b) if a == b => a,
            (a, b) => self.term(site, Term::Min(a, b), &[a, b]),
        }
    }
    /// Maximum.
    pub fn most(&mut self, site: Site, a: InferredDim, b: InferredDim) -> InferredDim {
        match (a.min(b), a.max(b)) {
            (InferredDim::Known(a), InferredDim::Known(b)) => InferredDim::Known(a.max(b)),
            (InferredDim::Known(0), other) => other,
            (a, b) if a == b => a,
            (a, b) => self.term(site, Term::Max(a, b), &[a, b]),
        }
    }
    /// Size to which two sizes are broadcast; `None` if they can't be.
    pub fn broadcast(&mut self, site: Site, a: InferredDim, b: InferredDim) -> Option<InferredDim> {
        Some(match (a.min(b), a.max(b)) {
            (a, b) if a == b => a,
            (InferredDim::Known(1), other) => other,
            (other, InferredDim::Known(1)) => other,
            (InferredDim::Known(_), InferredDim::Known(_)) => return None,
            (known @ InferredDim::Known(_), InferredDim::Unknown(_)) => known,
            (a, b) => self.term(site, Term::Broadcast(a, b), &[a, b]),
        })
    }
    /// Values of all unknown sizes, indexed by id, given some of them in `told`; `None` for one that does not follow from these
    /// or is not a size.
    pub fn values(&self, told: &HashMap<DimId, u64>) -> Vec<Option<u64>> {
        let mut values: Vec<Option<u64>> = Vec::with_capacity(self.len());
        for id in (0..self.origins.len() as u32).map(DimId) {
            // Operands of a term have smaller ids.
            let value = |dim: InferredDim| match dim {
                InferredDim::Known(n) => Some(n),
                InferredDim::Unknown(before) => *values.get(before.0 as usize)?,
            };
            let own = || self.by_id.get(&id)?.at(value);
            values.push(told.get(&id).copied().or_else(own));
        }
        values
    }
    fn parts(&self, dim: InferredDim) -> Option<Term> {
        let InferredDim::Unknown(id) = dim else { return None };
        self.by_id.get(&id).copied()
    }
    /// Known factor of a product of sizes, and its unknown factors, sorted; `None` if the known factor overflows.
    pub fn factors(&self, dims: &[InferredDim]) -> Option<(u64, Vec<DimId>)> {
        let (mut known, mut unknown, mut todo) = (1u64, Vec::new(), dims.to_vec());
        while let Some(dim) = todo.pop() {
            match (dim, self.parts(dim)) {
                (_, Some(Term::Mul(a, b))) => todo.extend([a, b]),
                (InferredDim::Known(n), _) => known = known.checked_mul(n)?,
                (InferredDim::Unknown(id), _) => unknown.push(id),
            }
        }
        unknown.sort_unstable();
        Some((known, unknown))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SITE: Site = Site { graph: 0, node: NodeId(0) };

    #[test]
    fn equal_terms_are_one_size() {
        let mut s = Symbols::default();
        let n = InferredDim::Unknown(s.fresh(SITE, Why::Feed(0)));
        let three = InferredDim::Known(3);
        let (a, b) = (s.mul(SITE, n, three), s.mul(SITE, three, n));
        assert_eq!(a, b);
        assert_eq!(s.div_floor(SITE, a, three), n);
        assert_eq!(s.mul(SITE, a, InferredDim::Known(0)), InferredDim::Known(0));
        assert_eq!(s.sub(SITE, a, a), InferredDim::Known(0));
        let InferredDim::Unknown(id) = a else { panic!("{a:?}") };
        assert_eq!(InferredDim::Unknown(s.root(id)), n);
    }

    #[test]
    fn sizes_follow_from_those_that_are_told() {
        let mut s = Symbols::default();
        let n = s.fresh(SITE, Why::Feed(0));
        let twelve = s.mul(SITE, n.into(), InferredDim::Known(12));
        let half = s.add(SITE, twelve, InferredDim::Known(1));
        let half = s.div_floor(SITE, half, InferredDim::Known(2));
        let InferredDim::Unknown(half) = half else { panic!("{half:?}") };
        let at = |told: HashMap<DimId, u64>| s.values(&told)[half.0 as usize];
        assert_eq!(at(HashMap::from([(n, 3)])), Some(18));
        assert_eq!(at(HashMap::new()), None);
    }

    #[test]
    fn sizes_that_are_used_twice_are_computed_once() {
        let mut s = Symbols::default();
        let first = s.fresh(SITE, Why::Feed(0));
        // 2^62 paths lead back to the first
        let last = (0..62).fold(InferredDim::Unknown(first), |n, _| s.add(SITE, n, n));
        let InferredDim::Unknown(last) = last else { panic!("{last:?}") };
        assert_eq!(s.values(&HashMap::from([(first, 1)]))[last.0 as usize], Some(1 << 62));
    }

    #[test]
    fn broadcasts_follow_numpy() {
        let mut s = Symbols::default();
        let n = InferredDim::Unknown(s.fresh(SITE, Why::Feed(0)));
        let m = InferredDim::Unknown(s.fresh(SITE, Why::Feed(1)));
        assert_eq!(s.broadcast(SITE, n, InferredDim::Known(1)), Some(n));
        assert_eq!(s.broadcast(SITE, n, InferredDim::Known(8)), Some(InferredDim::Known(8)));
        assert_eq!(s.broadcast(SITE, n, n), Some(n));
        assert_eq!(s.broadcast(SITE, InferredDim::Known(2), InferredDim::Known(3)), None);
        assert!(!matches!(s.broadcast(SITE, n, m), Some(d) if d == n || d == m));
    }
}
