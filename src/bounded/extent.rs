//! Integer expressions over the dynamic sizes of a call: `12·n`, `n·m + 3`, `⌊(n + 1) / 2⌋·m`, `min(n, 100)`, `max(n - 2, 0)`.
use crate::symbolic::SizeExpr;

/// Expression over the dynamic sizes of a call, whose variables are the indices of these sizes.
pub type Extent = SizeExpr<usize>;

impl SizeExpr<usize> {
    /// Whether the expression depends on a size.
    pub fn varies(&self) -> bool {
        self.known().is_none()
    }
    /// Value of the expression for these sizes; `None` on overflow of 64 bits.
    pub fn value_at(&self, sizes: &[u64]) -> Option<i64> {
        self.eval(&|&size| i64::try_from(*sizes.get(size)?).ok())
    }
}
