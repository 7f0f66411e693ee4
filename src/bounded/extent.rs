//! Numbers that follow from the sizes of a call: `12·n`, `n·m + 3`, `⌊(n + 1) / 2⌋·m`, `min(n, 100)`, `max(n - 2, 0)`.
use crate::symbolic::SizeExpr;

/// A number that follows from the sizes of a call; its variables are the numbers of these sizes.
pub type Extent = SizeExpr<usize>;

impl SizeExpr<usize> {
    /// Whether it depends on a size.
    pub fn varies(&self) -> bool {
        self.known().is_none()
    }
    /// The number of the size that it is.
    pub fn size(&self) -> Option<usize> {
        self.as_var().copied()
    }
    /// The value for these sizes; `None` where it leaves 64 bits.
    pub fn at(&self, sizes: &[u64]) -> Option<i64> {
        self.eval(&|&size| i64::try_from(*sizes.get(size)?).ok())
    }
}
