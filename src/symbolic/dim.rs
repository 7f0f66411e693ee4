//! Symbolic sizes that lowering computes with: a concrete number together with the expression that has this value.
//!
//! A function with dynamic sizes is lowered once, for one set of concrete sizes. A [`Dim`] behaves as an integer in arithmetic and
//! comparisons, and carries its expression over the dynamic sizes. Lowering can depend on a size in two ways only: through arithmetic, which
//! the expression records, and through comparisons, each of which is recorded as a [`trace::Guard`] unless the ranges of the sizes decide
//! it. The lowered module is therefore valid for exactly those sizes for which every guard holds.
mod operators;

use super::trace::{self, TraceId};

/// An integer that may depend on dynamic sizes.
///
/// Comparisons (`==`, `<`, `cmp`) return the outcome for the concrete sizes and record it. Arithmetic is exact: on overflow of 64 bits the
/// checked methods return `None`, and the operators saturate.
#[derive(Clone, Copy)]
pub struct Dim {
    /// Value for the concrete sizes.
    value: i64,
    /// Expression over the dynamic sizes; `None` for a constant.
    expr: Option<TraceId>,
}

impl Dim {
    /// Size that does not depend on dynamic sizes.
    pub const fn constant(value: i64) -> Dim {
        Dim { value, expr: None }
    }
    /// Size with an expression; `value` is its value for the concrete sizes.
    pub(super) const fn traced(value: i64, expr: TraceId) -> Dim {
        Dim { value, expr: Some(expr) }
    }
    /// Value for the concrete sizes of this lowering, without a guard: for messages, and for choices that are right for every value.
    pub fn concrete_value(self) -> i64 {
        self.value
    }
    /// Expression over the dynamic sizes; `None` for a constant.
    pub fn expr(self) -> Option<TraceId> {
        self.expr
    }
    /// Whether both have the same expression; records no guard.
    pub fn is_same(self, other: Dim) -> bool {
        self.expr == other.expr && self.value == other.value
    }
    /// Whether the value depends on dynamic sizes.
    pub fn varies(self) -> bool {
        self.expr.is_some()
    }
    /// Value for the concrete sizes; records a guard that it is the same in every call.
    pub fn guarded_value(self) -> i64 {
        if let Some(expr) = self.expr {
            trace::record_pinned_value(expr, self.value);
        }
        self.value
    }
    /// Value as a number of elements, 0 for a negative one; records a guard that it is the same in every call.
    pub fn guarded_count(self) -> u64 {
        u64::try_from(self.guarded_value()).unwrap_or(0)
    }
    /// Value as an index; records a guard that it is the same in every call.
    pub fn guarded_index(self) -> usize {
        usize::try_from(self.guarded_value()).unwrap_or(if self.value < 0 { 0 } else { usize::MAX })
    }
    /// Value as a float; records a guard that it is the same in every call.
    pub fn as_f64(self) -> f64 {
        self.guarded_value() as f64
    }
    /// Whether the size is the constant 0; false for sizes that vary. Records no guard.
    pub fn is_zero(self) -> bool {
        self.expr.is_none() && self.value == 0
    }
    /// Converts `n` to a size.
    ///
    /// # Errors
    /// [`NegativeSize`] if `n` is negative.
    pub fn size(n: impl Into<Dim>) -> Result<Dim, NegativeSize> {
        n.into().into_nonnegative().ok_or(NegativeSize)
    }
    /// The size itself; `None` if it is negative.
    pub fn into_nonnegative(self) -> Option<Dim> {
        (self >= 0).then_some(self)
    }

    fn operand(self) -> trace::SizeOperand {
        self.expr.map_or(trace::SizeOperand::Constant(self.value), trace::SizeOperand::Expr)
    }
    /// Result of an operation. If the result has no expression, both operands are pinned to their concrete values. `None` on overflow of 64 bits
    /// and for division by 0.
    fn combine(self, other: Dim, op: trace::SizeOp) -> Option<Dim> {
        self.apply_op(op, other).or_else(|| {
            let value = op.apply(self.value, other.value)?;
            self.guarded_value();
            other.guarded_value();
            Some(Dim::constant(value))
        })
    }
    /// Result of an operation; `None` where it has no expression. Records no guard.
    pub fn apply_op(self, op: trace::SizeOp, other: Dim) -> Option<Dim> {
        let value = op.apply(self.value, other.value)?;
        if !self.varies() && !other.varies() {
            return Some(Dim::constant(value));
        }
        match trace::apply_op_to_operands(self.operand(), op, other.operand()).ok()? {
            trace::SizeOperand::Constant(known) => Some(Dim::constant(known)),
            trace::SizeOperand::Expr(expr) => Some(Dim::traced(value, expr)),
        }
    }
    /// 1 if the size is less than `other`, else 0. The result is an expression, so that no guard is recorded unless it has none.
    pub fn is_less(self, other: impl Into<Dim>) -> Dim {
        let other: Dim = other.into();
        let apart = other.apply_op(trace::SizeOp::Subtract, self);
        let truth = apart.and_then(|apart| apart.apply_op(trace::SizeOp::Maximum, Dim::constant(0)));
        let truth = truth.and_then(|apart| apart.apply_op(trace::SizeOp::Minimum, Dim::constant(1)));
        truth.unwrap_or_else(|| Dim::from(i64::from(self < other)))
    }
    /// `yes` if the size is 1, `no` if it is 0.
    pub fn select(self, yes: impl Into<Dim>, no: impl Into<Dim>) -> Dim {
        let (yes, no): (Dim, Dim) = (yes.into(), no.into());
        match self.varies() {
            true => no + self * (yes - no),
            false if self.value != 0 => yes,
            false => no,
        }
    }
    /// Nearest number in the range from `least` to `most`.
    pub fn clamp(self, least: impl Into<Dim>, most: impl Into<Dim>) -> Dim {
        self.max(least).min(most)
    }
    /// Sum; `None` on overflow.
    pub fn checked_add(self, other: impl Into<Dim>) -> Option<Dim> {
        let other = other.into();
        self.combine(other, trace::SizeOp::Add)
    }
    /// Difference, which may be negative; `None` on overflow.
    pub fn signed_sub(self, other: impl Into<Dim>) -> Option<Dim> {
        let other = other.into();
        self.combine(other, trace::SizeOp::Subtract)
    }
    /// Difference; `None` if it is negative.
    pub fn checked_sub(self, other: impl Into<Dim>) -> Option<Dim> {
        self.signed_sub(other)?.into_nonnegative()
    }
    /// Product; `None` on overflow.
    pub fn checked_mul(self, other: impl Into<Dim>) -> Option<Dim> {
        let other = other.into();
        self.combine(other, trace::SizeOp::Multiply)
    }
    /// Quotient, rounded towards zero; `None` for division by 0.
    pub fn checked_div(self, other: impl Into<Dim>) -> Option<Dim> {
        let other = other.into();
        if other == 0 {
            return None;
        }
        self.combine(other, trace::SizeOp::Divide)
    }
    /// Remainder with the sign of the dividend; `None` for division by 0.
    pub fn checked_rem(self, other: impl Into<Dim>) -> Option<Dim> {
        let other = other.into();
        if other == 0 {
            return None;
        }
        self.combine(other, trace::SizeOp::Remainder)
    }
    /// Quotient of sizes rounded up; 0 for division by 0.
    pub fn div_ceil(self, other: impl Into<Dim>) -> Dim {
        let other = other.into();
        let above: Dim = self + (other - Dim::constant(1));
        above.checked_div(other).unwrap_or(Dim::constant(0))
    }
    /// Difference, or 0 if it is negative.
    pub fn saturating_sub(self, other: impl Into<Dim>) -> Dim {
        let other: Dim = other.into();
        (self - other).max(0)
    }
    /// Sum, saturated to 64 bits.
    pub fn saturating_add(self, other: impl Into<Dim>) -> Dim {
        let other: Dim = other.into();
        self + other
    }
    /// Product, saturated to 64 bits.
    pub fn saturating_mul(self, other: impl Into<Dim>) -> Dim {
        let other: Dim = other.into();
        self * other
    }
    /// Maximum of two sizes, as an expression.
    pub fn max(self, other: impl Into<Dim>) -> Dim {
        let other = other.into();
        self.combine(other, trace::SizeOp::Maximum).unwrap_or(self)
    }
    /// Minimum of two sizes, as an expression.
    pub fn min(self, other: impl Into<Dim>) -> Dim {
        let other = other.into();
        self.combine(other, trace::SizeOp::Minimum).unwrap_or(self)
    }
    /// Whether the size is a multiple of `other`.
    pub fn is_multiple_of(self, other: impl Into<Dim>) -> bool {
        let other = other.into();
        if other == 0 { self == 0 } else { self.checked_rem(other).is_some_and(|rest| rest == 0) }
    }
    /// Absolute value of the difference.
    pub fn abs_diff(self, other: impl Into<Dim>) -> Dim {
        let other = other.into();
        self.max(other) - self.min(other)
    }
}

/// Error for a negative number where a size is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NegativeSize;

impl Default for Dim {
    fn default() -> Self {
        Dim::constant(0)
    }
}

/// Saturates a number to 64 bits.
fn saturate(exact: i128) -> i64 {
    i64::try_from(exact).unwrap_or(if exact < 0 { i64::MIN } else { i64::MAX })
}

impl From<u64> for Dim {
    fn from(value: u64) -> Self {
        Dim::constant(saturate(value.into()))
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
            Some(expr) => trace::expr_text(expr).fmt(f),
        }
    }
}

impl std::fmt::Debug for Dim {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}

/// Array of `Dim`s made of integers and sizes: `dims![1, n, 3]`.
#[macro_export]
macro_rules! dims {
    ($($d:expr),* $(,)?) => { [$($crate::symbolic::Dim::from($d)),*] };
}

/// Number of elements of an array with these dimensions; `None` on overflow of 64 bits.
pub fn product(sizes: &[Dim]) -> Option<Dim> {
    // a size of 0 makes any product 0, also one with sizes that are too large together
    if sizes.iter().any(|d| d.is_zero()) {
        return Some(Dim::constant(0));
    }
    sizes.iter().try_fold(Dim::constant(1), |product, &d| product.checked_mul(d))
}

/// Whether a dimension is the constant 0, so that the array has no elements in any call. Records no guard.
pub fn has_zero(sizes: &[Dim]) -> bool {
    sizes.iter().any(|d| d.is_zero())
}

/// Values of the sizes; records guards that they are the same in every call.
pub fn guarded_counts(dims: &[Dim]) -> Vec<u64> {
    dims.iter().map(|d| d.guarded_count()).collect()
}

/// Converts numbers to sizes that do not vary.
pub fn constant_dims(dims: &[u64]) -> Vec<Dim> {
    dims.iter().map(|&d| Dim::from(d)).collect()
}

macro_rules! pins_to {
    ($($number:ty),*) => { $(
        /// Converts a size to its value; records a guard that it is the same in every call.
        impl TryFrom<Dim> for $number {
            type Error = std::num::TryFromIntError;
            fn try_from(dim: Dim) -> Result<$number, Self::Error> {
                <$number>::try_from(dim.guarded_value())
            }
        }
    )* };
}
pins_to!(u64, usize, u32, i32);

/// Converts a size to its value; records a guard that it is the same in every call.
impl From<Dim> for i64 {
    fn from(dim: Dim) -> i64 {
        dim.guarded_value()
    }
}

/// Converts a size to its value; records a guard that it is the same in every call.
impl From<Dim> for i128 {
    fn from(dim: Dim) -> i128 {
        dim.guarded_value().into()
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
        let (answers, record) = trace::trace_size_uses(&[variable(1, 64, 10)], |sizes| {
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
        let (made, record) = trace::trace_size_uses(&[variable(1, 64, 10), variable(2, 9, 3)], |sizes| {
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
        let (_, record) = trace::trace_size_uses(&[variable(1, 64, 10)], |sizes| (sizes[0] + 1).guarded_count());
        assert!(matches!(record.guards(), [guard] if guard.is_pin && guard.is_met(&|_| Some(11)) == Some(false)));
    }

    #[test]
    fn constants_record_nothing_and_compute_as_integers_do() {
        let d = Dim::from(7u64);
        assert_eq!([d / 2, d % 2, d - 9, Dim::from(-7) / 2].map(Dim::concrete_value), [3, 1, -2, -3]);
        assert_eq!([d.checked_sub(9), d.checked_sub(7)], [None, Some(Dim::from(0))]);
        assert_eq!([Dim::size(-1), Dim::size(1)], [Err(NegativeSize), Ok(Dim::from(1))]);
        assert_eq!([d.div_ceil(2), d.saturating_sub(9)].map(Dim::concrete_value), [4, 0]);
        assert_eq!((Dim::from(i64::MAX) + 1).concrete_value(), i64::MAX);
        assert!(!d.varies());
    }
}
