//! The type of the sizes in a module: integers, or expressions while a function is lowered whose sizes vary from call to call.
use crate::symbolic::{Dim, product};
use crate::tensor::elements_of;
use std::fmt::{Debug, Display};
use std::hash::Hash;

/// A number of elements along an axis: [`u64`], or [`Dim`] while a function is lowered.
///
/// Arithmetic gives `None` where a result leaves 64 bits, as that of `u64` does.
pub trait SizeRepr: Copy + Ord + Hash + Debug + Display + From<u64> + Into<Dim> + 'static {
    /// A number of elements that may be negative, such as padding that crops.
    type Signed: Signed;
    /// The sum.
    fn checked_add(self, other: Self) -> Option<Self>;
    /// The product.
    fn checked_mul(self, other: Self) -> Option<Self>;
    /// The quotient rounded down; `None` by 0.
    fn checked_div(self, other: Self) -> Option<Self>;
    /// The quotient rounded up. The divisor is not 0.
    fn div_ceil(self, other: Self) -> Self;
    /// The difference, 0 where it is negative.
    fn saturating_sub(self, other: Self) -> Self;
    /// The product, the largest number where it is too large.
    fn saturating_mul(self, other: Self) -> Self;
    /// Whether nothing is left over when it is divided by `other`.
    fn is_multiple_of(self, other: Self) -> bool;
    /// The number as the type that may be negative.
    fn signed(self) -> Option<Self::Signed>;
    /// The number `n`; `None` where it is negative.
    fn of_signed(n: Self::Signed) -> Option<Self>;
    /// The number `n`, and 0 where it is negative.
    fn not_negative(n: Self::Signed) -> Self;
    /// The product of all, the largest number where it is too large.
    fn product_of(all: &[Self]) -> Self;
    /// The number for the sizes at hand.
    fn at_hand(self) -> u64;
    /// Whether it is 1 in every call; nothing is recorded.
    fn is_one(self) -> bool;
    /// Whether both are one number in every call, as far as their expressions tell; nothing is recorded.
    fn is_same(self, other: Self) -> bool;
}

/// Whether two lists of sizes are equal in every call, as far as their expressions tell; no comparison is recorded.
pub fn are_same<D: SizeRepr>(a: &[D], b: &[D]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(&a, &b)| a.is_same(b))
}

/// A number of elements that may be negative.
pub trait Signed: Copy + Ord + Hash + Debug + Display + From<i64> + Into<Dim> + 'static {
    /// The sum.
    fn checked_add(self, other: Self) -> Option<Self>;
    /// The difference.
    fn checked_sub(self, other: Self) -> Option<Self>;
    /// The number for the sizes at hand.
    fn at_hand(self) -> i64;
}

impl Signed for i64 {
    fn checked_add(self, other: Self) -> Option<Self> {
        i64::checked_add(self, other)
    }
    fn checked_sub(self, other: Self) -> Option<Self> {
        i64::checked_sub(self, other)
    }
    fn at_hand(self) -> i64 {
        self
    }
}

impl SizeRepr for u64 {
    type Signed = i64;
    fn checked_add(self, other: Self) -> Option<Self> {
        u64::checked_add(self, other)
    }
    fn checked_mul(self, other: Self) -> Option<Self> {
        u64::checked_mul(self, other)
    }
    fn checked_div(self, other: Self) -> Option<Self> {
        u64::checked_div(self, other)
    }
    fn div_ceil(self, other: Self) -> Self {
        u64::div_ceil(self, other)
    }
    fn saturating_sub(self, other: Self) -> Self {
        u64::saturating_sub(self, other)
    }
    fn saturating_mul(self, other: Self) -> Self {
        u64::saturating_mul(self, other)
    }
    fn is_multiple_of(self, other: Self) -> bool {
        u64::is_multiple_of(self, other)
    }
    fn signed(self) -> Option<i64> {
        i64::try_from(self).ok()
    }
    fn of_signed(n: i64) -> Option<Self> {
        u64::try_from(n).ok()
    }
    fn not_negative(n: i64) -> Self {
        u64::try_from(n).unwrap_or(0)
    }
    fn product_of(all: &[Self]) -> Self {
        elements_of(all)
    }
    fn is_one(self) -> bool {
        self == 1
    }
    fn is_same(self, other: u64) -> bool {
        self == other
    }
    fn at_hand(self) -> u64 {
        self
    }
}

impl Signed for Dim {
    fn checked_add(self, other: Self) -> Option<Self> {
        Dim::checked_add(self, other)
    }
    fn checked_sub(self, other: Self) -> Option<Self> {
        Dim::signed_sub(self, other)
    }
    fn at_hand(self) -> i64 {
        Dim::at_hand(self)
    }
}

impl SizeRepr for Dim {
    type Signed = Dim;
    fn checked_add(self, other: Self) -> Option<Self> {
        Dim::checked_add(self, other)
    }
    fn checked_mul(self, other: Self) -> Option<Self> {
        Dim::checked_mul(self, other)
    }
    fn checked_div(self, other: Self) -> Option<Self> {
        Dim::checked_div(self, other)
    }
    fn div_ceil(self, other: Self) -> Self {
        Dim::div_ceil(self, other)
    }
    fn saturating_sub(self, other: Self) -> Self {
        Dim::saturating_sub(self, other)
    }
    fn saturating_mul(self, other: Self) -> Self {
        Dim::saturating_mul(self, other)
    }
    fn is_multiple_of(self, other: Self) -> bool {
        Dim::is_multiple_of(self, other)
    }
    fn signed(self) -> Option<Dim> {
        Some(self)
    }
    fn of_signed(n: Dim) -> Option<Self> {
        n.at_least_zero()
    }
    fn not_negative(n: Dim) -> Self {
        n.max(Dim::from(0))
    }
    fn product_of(all: &[Self]) -> Self {
        product(all).unwrap_or_else(|| {
            // so it is for these sizes alone
            for d in all {
                d.pinned();
            }
            Dim::from(u64::MAX)
        })
    }
    fn is_one(self) -> bool {
        !self.varies() && self == 1
    }
    fn is_same(self, other: Dim) -> bool {
        Dim::is_same(self, other)
    }
    fn at_hand(self) -> u64 {
        u64::try_from(Dim::at_hand(self)).unwrap_or(0)
    }
}
