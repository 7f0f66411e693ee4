//! A size as lowering computes with it: a number together with the expression that it is the value of.
//!
//! A function whose sizes vary from call to call is lowered once, for one set of sizes. A [`Dim`] is a plain integer for code that adds,
//! multiplies and compares, and carries how it follows from the sizes. What lowering does can depend on a size in two ways alone: through
//! arithmetic, which the expression records, and through comparisons, each of which is recorded as a [`trace::Guard`] unless the ranges of the
//! sizes decide it. So what was lowered holds for exactly those sizes for which every guard holds, and no sample has to say so.
mod operators;

use super::trace::{self, TraceId};

/// An integer that may follow from sizes which vary from call to call.
///
/// Comparisons (`==`, `<`, `cmp`) give the answer for the sizes at hand and record it. Arithmetic is exact: results that leave 64 bits
/// are `None` of the checked methods, and held at the ends by the operators.
#[derive(Clone, Copy)]
pub struct Dim {
    /// The value for the sizes at hand.
    value: i64,
    /// The expression, where it is no constant.
    expr: Option<TraceId>,
}

impl Dim {
    /// A constant.
    pub const fn constant(value: i64) -> Dim {
        Dim { value, expr: None }
    }
    /// The value of an expression for the sizes at hand.
    pub(super) const fn traced(value: i64, expr: TraceId) -> Dim {
        Dim { value, expr: Some(expr) }
    }
    /// The value for the sizes at hand, for messages and for choices that hold whatever it is.
    pub fn at_hand(self) -> i64 {
        self.value
    }
    /// The expression, where it is no constant.
    pub fn expr(self) -> Option<TraceId> {
        self.expr
    }
    /// Whether both are one expression; nothing is recorded.
    pub fn is_same(self, other: Dim) -> bool {
        self.expr == other.expr && self.value == other.value
    }
    /// Whether it may be another number in another call.
    pub fn varies(self) -> bool {
        self.expr.is_some()
    }
    /// The number, which it must be in every call: recorded as a guard.
    pub fn pinned(self) -> i64 {
        if let Some(expr) = self.expr {
            trace::pin(expr, self.value);
        }
        self.value
    }
    /// The number as one of elements, which it must be in every call; 0 for a negative one.
    pub fn known(self) -> u64 {
        u64::try_from(self.pinned()).unwrap_or(0)
    }
    /// The number as an index, which it must be in every call.
    pub fn index(self) -> usize {
        usize::try_from(self.pinned()).unwrap_or(if self.value < 0 { 0 } else { usize::MAX })
    }
    /// The number as a floating-point one, which it must be in every call.
    pub fn as_f64(self) -> f64 {
        self.pinned() as f64
    }
    /// Whether it is the constant 0; a size that varies is not, and nothing is recorded.
    pub fn is_zero(self) -> bool {
        self.expr.is_none() && self.value == 0
    }
    /// The number `n` as a size.
    ///
    /// # Errors
    /// [`Negative`] where it is below 0.
    pub fn size(n: impl Into<Dim>) -> Result<Dim, Negative> {
        n.into().at_least_zero().ok_or(Negative)
    }
    /// The same number; `None` where it is negative.
    pub fn at_least_zero(self) -> Option<Dim> {
        (self >= 0).then_some(self)
    }

    fn side(self) -> trace::Side {
        self.expr.map_or(trace::Side::Constant(self.value), trace::Side::Expr)
    }
    /// The result of an operation: where no expression of it is known it stands for these sizes alone. `None` where it leaves
    /// 64 bits or divides by 0.
    fn combined(self, other: Dim, op: trace::Binary) -> Option<Dim> {
        self.computed(op, other).or_else(|| {
            let value = op.of(self.value, other.value)?;
            self.pinned();
            other.pinned();
            Some(Dim::constant(value))
        })
    }
    /// The result of an operation; `None` where no expression of it is known. Nothing is recorded.
    pub fn computed(self, op: trace::Binary, other: Dim) -> Option<Dim> {
        let value = op.of(self.value, other.value)?;
        if !self.varies() && !other.varies() {
            return Some(Dim::constant(value));
        }
        match trace::combined(self.side(), op, other.side()).ok()? {
            trace::Side::Constant(known) => Some(Dim::constant(known)),
            trace::Side::Expr(expr) => Some(Dim::traced(value, expr)),
        }
    }
    /// 1 where it is less than `other`, else 0: as a number, so that nothing is recorded where an expression of it is known.
    pub fn is_less(self, other: impl Into<Dim>) -> Dim {
        let other: Dim = other.into();
        let apart = other.computed(trace::Binary::Subtract, self);
        let truth = apart.and_then(|apart| apart.computed(trace::Binary::Maximum, Dim::constant(0)));
        let truth = truth.and_then(|apart| apart.computed(trace::Binary::Minimum, Dim::constant(1)));
        truth.unwrap_or_else(|| Dim::from(i64::from(self < other)))
    }
    /// `yes` where it is 1, `no` where it is 0.
    pub fn select(self, yes: impl Into<Dim>, no: impl Into<Dim>) -> Dim {
        let (yes, no): (Dim, Dim) = (yes.into(), no.into());
        match self.varies() {
            true => no + self * (yes - no),
            false if self.value != 0 => yes,
            false => no,
        }
    }
    /// The nearest number from `least` to `most`.
    pub fn clamp(self, least: impl Into<Dim>, most: impl Into<Dim>) -> Dim {
        self.max(least).min(most)
    }
    /// The sum.
    pub fn checked_add(self, other: impl Into<Dim>) -> Option<Dim> {
        let other = other.into();
        self.combined(other, trace::Binary::Add)
    }
    /// The difference, which may be negative.
    pub fn signed_sub(self, other: impl Into<Dim>) -> Option<Dim> {
        let other = other.into();
        self.combined(other, trace::Binary::Subtract)
    }
    /// The difference; `None` where it is negative.
    pub fn checked_sub(self, other: impl Into<Dim>) -> Option<Dim> {
        self.signed_sub(other)?.at_least_zero()
    }
    /// The product.
    pub fn checked_mul(self, other: impl Into<Dim>) -> Option<Dim> {
        let other = other.into();
        self.combined(other, trace::Binary::Multiply)
    }
    /// The quotient, rounded towards zero; `None` by 0.
    pub fn checked_div(self, other: impl Into<Dim>) -> Option<Dim> {
        let other = other.into();
        if other == 0 {
            return None;
        }
        self.combined(other, trace::Binary::Divide)
    }
    /// The remainder with the sign of the dividend; `None` by 0.
    pub fn checked_rem(self, other: impl Into<Dim>) -> Option<Dim> {
        let other = other.into();
        if other == 0 {
            return None;
        }
        self.combined(other, trace::Binary::Remainder)
    }
    /// The quotient of sizes rounded up, 0 by 0.
    pub fn div_ceil(self, other: impl Into<Dim>) -> Dim {
        let other = other.into();
        let above: Dim = self + (other - Dim::constant(1));
        above.checked_div(other).unwrap_or(Dim::constant(0))
    }
    /// The difference, 0 where it is negative.
    pub fn saturating_sub(self, other: impl Into<Dim>) -> Dim {
        let other: Dim = other.into();
        (self - other).max(0)
    }
    /// The sum, held at the ends of 64 bits.
    pub fn saturating_add(self, other: impl Into<Dim>) -> Dim {
        let other: Dim = other.into();
        self + other
    }
    /// The product, held at the ends of 64 bits.
    pub fn saturating_mul(self, other: impl Into<Dim>) -> Dim {
        let other: Dim = other.into();
        self * other
    }
    /// The larger of two; nothing is recorded.
    pub fn max(self, other: impl Into<Dim>) -> Dim {
        let other = other.into();
        self.combined(other, trace::Binary::Maximum).unwrap_or(self)
    }
    /// The smaller of two; nothing is recorded.
    pub fn min(self, other: impl Into<Dim>) -> Dim {
        let other = other.into();
        self.combined(other, trace::Binary::Minimum).unwrap_or(self)
    }
    /// Whether nothing is left over when it is divided by `other`.
    pub fn is_multiple_of(self, other: impl Into<Dim>) -> bool {
        let other = other.into();
        if other == 0 { self == 0 } else { self.checked_rem(other).is_some_and(|rest| rest == 0) }
    }
    /// The magnitude of the difference.
    pub fn abs_diff(self, other: impl Into<Dim>) -> Dim {
        let other = other.into();
        self.max(other) - self.min(other)
    }
}

/// Of a number that is no size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Negative;

impl Default for Dim {
    fn default() -> Self {
        Dim::constant(0)
    }
}

/// The largest or smallest number, where one leaves 64 bits.
fn held(exact: i128) -> i64 {
    i64::try_from(exact).unwrap_or(if exact < 0 { i64::MIN } else { i64::MAX })
}

impl From<u64> for Dim {
    fn from(value: u64) -> Self {
        Dim::constant(held(value.into()))
    }
}

impl From<usize> for Dim {
    fn from(value: usize) -> Self {
        Dim::from(value as u64)
    }
}

impl From<u32> for Dim {
    fn from(value: u32) -> Self {
        Dim::constant(value.into())
    }
}

impl From<i64> for Dim {
    fn from(value: i64) -> Self {
        Dim::constant(value)
    }
}

impl From<i32> for Dim {
    fn from(value: i32) -> Self {
        Dim::constant(value.into())
    }
}

impl From<&Dim> for Dim {
    fn from(value: &Dim) -> Self {
        *value
    }
}

impl std::fmt::Display for Dim {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.expr {
            None => self.value.fmt(f),
            Some(expr) => trace::spelled(expr).fmt(f),
        }
    }
}

impl std::fmt::Debug for Dim {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}

/// An array of sizes from numbers and sizes: `dims![1, n, 3]`.
#[macro_export]
macro_rules! dims {
    ($($d:expr),* $(,)?) => { [$($crate::symbolic::Dim::from($d)),*] };
}

/// The number of elements of an array of these sizes; `None` where it leaves 64 bits.
pub fn product(sizes: &[Dim]) -> Option<Dim> {
    // a size of 0 makes any product 0, also one with sizes that are too large together
    if sizes.iter().any(|d| d.is_zero()) {
        return Some(Dim::constant(0));
    }
    sizes.iter().try_fold(Dim::constant(1), |product, &d| product.checked_mul(d))
}

/// Whether an array of these sizes has no elements in any call. A size that varies is not taken for 0, and nothing is recorded.
pub fn has_zero(sizes: &[Dim]) -> bool {
    sizes.iter().any(|d| d.is_zero())
}

/// The sizes as numbers, which they must be in every call.
pub fn known(dims: &[Dim]) -> Vec<u64> {
    dims.iter().map(|d| d.known()).collect()
}

/// Numbers as sizes that do not vary.
pub fn fixed(dims: &[u64]) -> Vec<Dim> {
    dims.iter().map(|&d| Dim::from(d)).collect()
}

macro_rules! pins_to {
    ($($number:ty),*) => { $(
        /// The number, which it must be in every call.
        impl TryFrom<Dim> for $number {
            type Error = std::num::TryFromIntError;
            fn try_from(dim: Dim) -> Result<$number, Self::Error> {
                <$number>::try_from(dim.pinned())
            }
        }
    )* };
}
pins_to!(u64, usize, u32, i32);

/// The number, which it must be in every call.
impl From<Dim> for i64 {
    fn from(dim: Dim) -> i64 {
        dim.pinned()
    }
}

/// The number, which it must be in every call.
impl From<Dim> for i128 {
    fn from(dim: Dim) -> i128 {
        dim.pinned().into()
    }
}

#[cfg(test)]
mod tests {
    use super::super::trace::SizeVariable;
    use super::super::{Interval, trace};
    use super::*;

    fn variable(least: i64, most: i64, at_hand: i64) -> SizeVariable {
        SizeVariable { name: String::new(), range: Interval::new(least.into(), most.into()), at_hand }
    }

    #[test]
    fn a_comparison_is_recorded_unless_the_range_decides_it() {
        let (answers, record) = trace::record(&[variable(1, 64, 10)], |sizes| {
            let n = sizes[0];
            [n == 10, n > 0, n * 2 < 200, n.max(3) >= 3]
        });
        assert_eq!(answers, [true; 4]);
        let guards = record.guards();
        assert_eq!(guards.len(), 1, "{guards:?}");
        assert_eq!([9, 10].map(|n| guards[0].is_met(&|_| Some(n))), [Some(false), Some(true)]);
    }

    #[test]
    fn arithmetic_follows_the_sizes() {
        let (made, record) = trace::record(&[variable(1, 64, 10), variable(2, 9, 3)], |sizes| {
            let (n, m) = (sizes[0], sizes[1]);
            (n * m + 15) / 16 - n % 3 + n.saturating_sub(12) + n.min(5)
        });
        let expr = record.expr(made);
        for n in 1..=64i64 {
            for m in 2..=9 {
                let exact = (n * m + 15) / 16 - n % 3 + (n - 12).max(0) + n.min(5);
                assert_eq!(expr.eval(&|&v| Some([n, m][v])), Some(exact), "{n} {m}");
            }
        }
        assert_eq!(record.guards(), []);
    }

    #[test]
    fn what_is_read_as_a_number_is_pinned() {
        let (_, record) = trace::record(&[variable(1, 64, 10)], |sizes| (sizes[0] + 1).known());
        assert!(matches!(record.guards(), [guard] if guard.is_pin && guard.is_met(&|_| Some(11)) == Some(false)));
    }

    #[test]
    fn constants_record_nothing_and_compute_as_integers_do() {
        let d = Dim::from(7u64);
        assert_eq!([d / 2, d % 2, d - 9, Dim::from(-7) / 2].map(Dim::at_hand), [3, 1, -2, -3]);
        assert_eq!([d.checked_sub(9), d.checked_sub(7)], [None, Some(Dim::from(0))]);
        assert_eq!([Dim::size(-1), Dim::size(1)], [Err(Negative), Ok(Dim::from(1))]);
        assert_eq!([d.div_ceil(2), d.saturating_sub(9)].map(Dim::at_hand), [4, 0]);
        assert_eq!((Dim::from(i64::MAX) + 1).at_hand(), i64::MAX);
        assert!(!d.varies());
    }
}
