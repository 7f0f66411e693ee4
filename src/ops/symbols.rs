//! Unknown sizes, each with an id, with their arithmetic and their origins.
use crate::graph::NodeId;
use crate::symbolic::{Interval, SizeExpr};
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

impl InferredDim {
    /// Id of an unknown size.
    pub fn unknown_id(self) -> Option<DimId> {
        match self {
            InferredDim::Known(_) => None,
            InferredDim::Unknown(id) => Some(id),
        }
    }
}

/// Position of a node in the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeSite {
    /// Number of the graph: 0 is the top-level graph, `i + 1` the body of library function `i`.
    pub graph: u32,
    /// Id of the node in its graph.
    pub node: NodeId,
}

/// Reason why a size is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnknownReason {
    /// The dimension with this index of a fed node is open.
    Feed(usize),
    /// The rank of a fed node is open.
    FeedRank,
    /// The node computes the size from another unknown size.
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
    /// An attribute leaves the size open.
    Attribute,
}

/// Origin of an unknown size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownOrigin {
    /// Node that introduced the size.
    pub site: NodeSite,
    /// Reason why the size is not known.
    pub why: UnknownReason,
}

/// Expression over unknown sizes that are not computed from others.
type Expr = SizeExpr<DimId>;

/// All unknown sizes of one inference.
#[derive(Clone, Debug, Default)]
pub struct Symbols {
    sizes: Vec<UnknownSize>,
    /// Ids of the sizes that are computed from others, by their expressions.
    ids: HashMap<Expr, DimId>,
}

#[derive(Clone, Debug)]
struct UnknownSize {
    origin: UnknownOrigin,
    /// Expression of the size over other sizes; the size itself if it is not computed.
    expr: Expr,
}

impl Symbols {
    /// New unknown size that is not known to equal any other.
    pub fn fresh(&mut self, site: NodeSite, why: UnknownReason) -> DimId {
        let id = DimId(u32::try_from(self.sizes.len()).unwrap_or(u32::MAX));
        self.sizes.push(UnknownSize { origin: UnknownOrigin { site, why }, expr: Expr::var(id) });
        id
    }
    /// Origin of an unknown size.
    pub fn origin(&self, id: DimId) -> UnknownOrigin {
        self.sizes[id.0 as usize].origin
    }
    /// First unknown size of the chain from which `id` was computed.
    pub fn root_cause(&self, mut id: DimId) -> DimId {
        while let UnknownReason::From(before) = self.origin(id).why {
            id = before;
        }
        id
    }
    /// Number of unknown sizes.
    pub fn len(&self) -> usize {
        self.sizes.len()
    }
    /// Whether there are no unknown sizes.
    pub fn is_empty(&self) -> bool {
        self.sizes.is_empty()
    }

    /// Expression of a size; `None` for a known one beyond 63 bits.
    pub fn expr(&self, dim: InferredDim) -> Option<Expr> {
        match dim {
            InferredDim::Known(n) => Some(Expr::constant(i64::try_from(n).ok()?)),
            InferredDim::Unknown(id) => Some(self.sizes[id.0 as usize].expr.clone()),
        }
    }
    /// Size that equals an expression, computed from the unknown size `cause`. Without an expression, or for one that is too long, a new
    /// unknown size; for a negative constant an unknown size with the cause [`UnknownReason::Invalid`].
    pub fn size_of_expr(&mut self, site: NodeSite, expr: Option<Expr>, cause: Option<DimId>) -> InferredDim {
        let follows = cause.map_or(UnknownReason::Invalid, UnknownReason::From);
        let Some(expr) = expr.and_then(|e| e.share_if_long(&|_| ANY_SIZE)) else {
            return InferredDim::Unknown(self.fresh(site, follows));
        };
        if let Some(known) = expr.known() {
            let known = u64::try_from(known).map(InferredDim::Known);
            return known.unwrap_or_else(|_| InferredDim::Unknown(self.fresh(site, UnknownReason::Invalid)));
        }
        let known = expr.as_var().copied().or_else(|| self.ids.get(&expr).copied());
        InferredDim::Unknown(known.unwrap_or_else(|| {
            let id = self.fresh(site, follows);
            self.sizes[id.0 as usize].expr = expr.clone();
            self.ids.insert(expr, id);
            id
        }))
    }
    /// Result of an operation on two sizes.
    fn combined(
        &mut self,
        site: NodeSite,
        a: InferredDim,
        b: InferredDim,
        op: fn(&Expr, &Expr) -> Option<Expr>,
    ) -> InferredDim {
        let expr = self.expr(a).zip(self.expr(b)).and_then(|(a, b)| op(&a, &b));
        self.size_of_expr(site, expr, a.unknown_id().or(b.unknown_id()))
    }

    /// Sum of two sizes.
    pub fn add(&mut self, site: NodeSite, a: InferredDim, b: InferredDim) -> InferredDim {
        self.combined(site, a, b, Expr::add)
    }
    /// Difference of two sizes; unknown if negative.
    pub fn sub(&mut self, site: NodeSite, a: InferredDim, b: InferredDim) -> InferredDim {
        self.combined(site, a, b, Expr::sub)
    }
    /// Product of two sizes; 0 if either is 0, even if the other one is unknown.
    pub fn mul(&mut self, site: NodeSite, a: InferredDim, b: InferredDim) -> InferredDim {
        self.combined(site, a, b, Expr::mul)
    }
    /// Quotient of two sizes, rounded down; unknown for a divisor of 0.
    pub fn div_floor(&mut self, site: NodeSite, a: InferredDim, b: InferredDim) -> InferredDim {
        self.combined(site, a, b, Expr::floor_div)
    }
    /// Quotient of two sizes, rounded up; unknown for a divisor of 0.
    pub fn div_ceil(&mut self, site: NodeSite, a: InferredDim, b: InferredDim) -> InferredDim {
        self.combined(site, a, b, Expr::ceil_div)
    }
    /// Smaller of two sizes.
    pub fn min(&mut self, site: NodeSite, a: InferredDim, b: InferredDim) -> InferredDim {
        match a.min(b) {
            InferredDim::Known(0) => InferredDim::Known(0),
            _ => self.combined(site, a, b, Expr::minimum),
        }
    }
    /// Larger of two sizes.
    pub fn max(&mut self, site: NodeSite, a: InferredDim, b: InferredDim) -> InferredDim {
        match (a.min(b), a.max(b)) {
            (InferredDim::Known(0), other) => other,
            (a, b) => self.combined(site, a, b, Expr::maximum),
        }
    }
    /// Size to which two sizes are broadcast; `None` if they can't be.
    pub fn broadcast(&mut self, site: NodeSite, a: InferredDim, b: InferredDim) -> Option<InferredDim> {
        Some(match (a.min(b), a.max(b)) {
            (a, b) if a == b => a,
            (InferredDim::Known(1), other) => other,
            (other, InferredDim::Known(1)) => other,
            (InferredDim::Known(_), InferredDim::Known(_)) => return None,
            (known @ InferredDim::Known(_), InferredDim::Unknown(_)) => known,
            (a, b) => self.combined(site, a, b, broadcast),
        })
    }
    /// Values of all unknown sizes, indexed by id, given some of them in `told`; `None` for one that does not follow from these
    /// or is not a size.
    pub fn values(&self, told: &HashMap<DimId, u64>) -> Vec<Option<u64>> {
        let value = |id: &DimId| told.get(id).and_then(|&n| i64::try_from(n).ok());
        let each = self.sizes.iter().map(|size| u64::try_from(size.expr.eval(&value)?).ok());
        each.collect()
    }
}

/// Range of a size.
const ANY_SIZE: Interval = Interval { least: 0, most: i64::MAX as i128 };

/// Result of broadcasting two sizes that are equal or one of which is 1: the larger one, or 0 if the smaller one is 0.
fn broadcast(a: &Expr, b: &Expr) -> Option<Expr> {
    a.maximum(b)?.mul(&a.minimum(b)?.minimum(&Expr::constant(1))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SITE: NodeSite = NodeSite { graph: 0, node: NodeId(0) };

    #[test]
    fn equal_terms_are_one_size() {
        let mut s = Symbols::default();
        let n = InferredDim::Unknown(s.fresh(SITE, UnknownReason::Feed(0)));
        let three = InferredDim::Known(3);
        let (a, b) = (s.mul(SITE, n, three), s.mul(SITE, three, n));
        assert_eq!(a, b);
        assert_eq!(s.div_floor(SITE, a, three), n);
        assert_eq!(s.mul(SITE, a, InferredDim::Known(0)), InferredDim::Known(0));
        assert_eq!(s.sub(SITE, a, a), InferredDim::Known(0));
        let InferredDim::Unknown(id) = a else { panic!("{a:?}") };
        assert_eq!(InferredDim::Unknown(s.root_cause(id)), n);
    }

    #[test]
    fn sizes_follow_from_those_that_are_told() {
        let mut s = Symbols::default();
        let n = s.fresh(SITE, UnknownReason::Feed(0));
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
        let first = s.fresh(SITE, UnknownReason::Feed(0));
        // 2^62 paths lead back to the first
        let last = (0..62).fold(InferredDim::Unknown(first), |n, _| s.add(SITE, n, n));
        let InferredDim::Unknown(last) = last else { panic!("{last:?}") };
        assert_eq!(s.values(&HashMap::from([(first, 1)]))[last.0 as usize], Some(1 << 62));
    }

    #[test]
    fn broadcasts_follow_numpy() {
        let mut s = Symbols::default();
        let n = InferredDim::Unknown(s.fresh(SITE, UnknownReason::Feed(0)));
        let m = InferredDim::Unknown(s.fresh(SITE, UnknownReason::Feed(1)));
        assert_eq!(s.broadcast(SITE, n, InferredDim::Known(1)), Some(n));
        assert_eq!(s.broadcast(SITE, n, InferredDim::Known(8)), Some(InferredDim::Known(8)));
        assert_eq!(s.broadcast(SITE, n, n), Some(n));
        assert_eq!(s.broadcast(SITE, InferredDim::Known(2), InferredDim::Known(3)), None);
        assert!(!matches!(s.broadcast(SITE, n, m), Some(d) if d == n || d == m));
    }
}
