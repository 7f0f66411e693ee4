//! Numbers that follow from the sizes of a call: `12·n`, `n·m + 3`, `⌊(n + 1) / 2⌋·m`, `min(n, 100)`, `max(n - 2, 0)`.
use crate::symbolic::{Expr, Factor};

/// A number that follows from the sizes of a call; its variables are the numbers of these sizes.
pub type Extent = Expr<usize>;

impl Expr<usize> {
    /// Whether it depends on a size.
    pub fn varies(&self) -> bool {
        self.known().is_none()
    }
    /// The number of the size that it is.
    pub fn size(&self) -> Option<usize> {
        self.as_var().copied()
    }
    /// Its value for these sizes; `None` where it leaves 64 bits.
    pub fn at(&self, sizes: &[u64]) -> Option<i64> {
        self.eval(&|&size| i64::try_from(*sizes.get(size)?).ok())
    }
    /// After so many steps of the sizes its remainders are the same again: the product of the divisors that are nested deepest.
    pub fn period(&self) -> u64 {
        let of = |f: &Factor<usize>| match f {
            Factor::Var(_) => 1,
            Factor::Whole(whole) => whole.expr().period(),
            Factor::Max(all) => all.iter().map(Extent::period).max().unwrap_or(1),
            Factor::Quotient(of, by) => of.period().saturating_mul(by.known().map_or(1, i64::unsigned_abs)),
        };
        self.terms().flat_map(|(factors, _)| factors).map(of).max().unwrap_or(1)
    }
}
