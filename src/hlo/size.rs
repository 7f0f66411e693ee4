//! Representation of sizes in a module: integers, or expressions while a function with open sizes is lowered.
use crate::symbolic::{Dim, product};
use crate::tensor::saturating_element_count;
use std::fmt::{Debug, Display};
use std::hash::Hash;

/// Number of elements along an axis: [`u64`], or [`Dim`] while a function is lowered.
///
/// Arithmetic returns `None` if a result exceeds 64 bits, as that of `u64` does.
pub trait SizeRepr: Copy + Ord + Hash + Debug + Display + From<u64> + Into<Dim> + 'static {
    /// Signed counterpart of the size type, for amounts such as padding that crops.
    type SignedSize: SignedSize;
    /// Sum; `None` on overflow.
    fn checked_add(self, other: Self) -> Option<Self>;
    /// Product; `None` on overflow.
    fn checked_mul(self, other: Self) -> Option<Self>;
    /// Quotient rounded down; `None` for a divisor of 0.
    fn checked_div(self, other: Self) -> Option<Self>;
    /// Quotient rounded up. The divisor must not be 0.
    fn div_ceil(self, other: Self) -> Self;
    /// Difference, 0 if negative.
    fn saturating_sub(self, other: Self) -> Self;
    /// Product, the largest number on overflow.
    fn saturating_mul(self, other: Self) -> Self;
    /// Whether the size is divisible by `other`.
    fn is_multiple_of(self, other: Self) -> bool;
    /// The size as a signed number.
    fn signed(self) -> Option<Self::SignedSize>;
    /// Size equal to a signed number; `None` if negative.
    fn of_signed(n: Self::SignedSize) -> Option<Self>;
    /// Size equal to a signed number, 0 if negative.
    fn not_negative(n: Self::SignedSize) -> Self;
    /// Product of all sizes, the largest number on overflow.
    fn product_of(all: &[Self]) -> Self;
    /// Value for the current sizes.
    fn at_current_sizes(self) -> u64;
    /// Whether the size is 1 in every call; records no guard.
    fn is_one(self) -> bool;
    /// Whether both sizes are equal in every call, as far as their expressions show; records no guard.
    fn always_equals(self, other: Self) -> bool;
}

/// Whether two lists of sizes are equal in every call, as far as their expressions show; records no guard.
pub fn all_always_equal<D: SizeRepr>(a: &[D], b: &[D]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(&a, &b)| a.always_equals(b))
}

/// Signed number of elements.
pub trait SignedSize: Copy + Ord + Hash + Debug + Display + From<i64> + Into<Dim> + 'static {
    /// Sum; `None` on overflow.
    fn checked_add(self, other: Self) -> Option<Self>;
    /// Difference; `None` on overflow.
    fn checked_sub(self, other: Self) -> Option<Self>;
    /// Value for the current sizes.
    fn at_current_sizes(self) -> i64;
}

impl SignedSize for i64 {
    fn checked_add(self, other: Self) -> Option<Self> {
        i64::checked_add(self, other)
    }
    fn checked_sub(self, other: Self) -> Option<Self> {
        i64::checked_sub(self, other)
    }
    fn at_current_sizes(self) -> i64 {
        self
    }
}

impl SizeRepr for u64 {
    type SignedSize = i64;
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
        saturating_element_count(all)
    }
    fn is_one(self) -> bool {
        self == 1
    }
    fn always_equals(self, other: u64) -> bool {
        self == other
    }
    fn at_current_sizes(self) -> u64 {
        self
    }
}

impl SignedSize for Dim {
    fn checked_add(self, other: Self) -> Option<Self> {
        Dim::checked_add(self, other)
    }
    fn checked_sub(self, other: Self) -> Option<Self> {
        Dim::signed_sub(self, other)
    }
    fn at_current_sizes(self) -> i64 {
        Dim::concrete_value(self)
    }
}

impl SizeRepr for Dim {
    type SignedSize = Dim;
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
        n.into_nonnegative()
    }
    fn not_negative(n: Dim) -> Self {
        n.max(Dim::from(0))
    }
    fn product_of(all: &[Self]) -> Self {
        product(all).unwrap_or_else(|| {
            // An empty product of open sizes holds for the current sizes alone.
            for d in all {
                d.guarded_value();
            }
            Dim::from(u64::MAX)
        })
    }
    fn is_one(self) -> bool {
        !self.varies() && self == 1
    }
    fn always_equals(self, other: Dim) -> bool {
        Dim::is_same(self, other)
    }
    fn at_current_sizes(self) -> u64 {
        u64::try_from(Dim::concrete_value(self)).unwrap_or(0)
    }
}
