//! Comparison and arithmetic operators between [`Dim`]s, and between a [`Dim`] and an integer.
use super::{Dim, saturate};
use crate::symbolic::trace::{self, Relation};
use std::cmp::Ordering;

/// Outcome of a comparison for the concrete sizes, recorded as a guard if an operand varies.
fn record_comparison(a: Dim, relation: Relation, b: Dim) -> bool {
    let holds = relation.holds(a.value, b.value);
    if a.expr.is_some() || b.expr.is_some() {
        trace::record_guard(a.operand(), relation, b.operand(), holds);
    }
    holds
}

impl PartialEq for Dim {
    fn eq(&self, other: &Dim) -> bool {
        record_comparison(*self, Relation::Equal, *other)
    }
}

impl Eq for Dim {}

impl std::hash::Hash for Dim {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.value.hash(state);
    }
}

impl Ord for Dim {
    fn cmp(&self, other: &Dim) -> Ordering {
        if self < other {
            Ordering::Less
        } else if self == other {
            Ordering::Equal
        } else {
            Ordering::Greater
        }
    }
}

impl PartialOrd for Dim {
    fn partial_cmp(&self, other: &Dim) -> Option<Ordering> {
        Some(self.cmp(other))
    }
    fn lt(&self, other: &Dim) -> bool {
        record_comparison(*self, Relation::Less, *other)
    }
    fn ge(&self, other: &Dim) -> bool {
        !record_comparison(*self, Relation::Less, *other)
    }
    fn gt(&self, other: &Dim) -> bool {
        record_comparison(*other, Relation::Less, *self)
    }
    fn le(&self, other: &Dim) -> bool {
        !record_comparison(*other, Relation::Less, *self)
    }
}

macro_rules! compares_with {
    ($($number:ty),*) => { $(
        impl PartialEq<$number> for Dim {
            fn eq(&self, other: &$number) -> bool {
                *self == Dim::from(*other)
            }
        }
        impl PartialEq<Dim> for $number {
            fn eq(&self, other: &Dim) -> bool {
                Dim::from(*self) == *other
            }
        }
        impl PartialOrd<$number> for Dim {
            fn partial_cmp(&self, other: &$number) -> Option<Ordering> {
                self.partial_cmp(&Dim::from(*other))
            }
            fn lt(&self, other: &$number) -> bool {
                *self < Dim::from(*other)
            }
            fn le(&self, other: &$number) -> bool {
                *self <= Dim::from(*other)
            }
            fn gt(&self, other: &$number) -> bool {
                *self > Dim::from(*other)
            }
            fn ge(&self, other: &$number) -> bool {
                *self >= Dim::from(*other)
            }
        }
        impl PartialOrd<Dim> for $number {
            fn partial_cmp(&self, other: &Dim) -> Option<Ordering> {
                Dim::from(*self).partial_cmp(other)
            }
            fn lt(&self, other: &Dim) -> bool {
                Dim::from(*self) < *other
            }
            fn le(&self, other: &Dim) -> bool {
                Dim::from(*self) <= *other
            }
            fn gt(&self, other: &Dim) -> bool {
                Dim::from(*self) > *other
            }
            fn ge(&self, other: &Dim) -> bool {
                Dim::from(*self) >= *other
            }
        }
    )* };
}
compares_with!(u64, i64, i32);

macro_rules! operator {
    ($($op:ident $method:ident $assign:ident $assigned:ident ($a:ident, $b:ident) $result:expr;)*) => { $(
        impl<T: Into<Dim>> std::ops::$op<T> for Dim {
            type Output = Dim;
            fn $method(self, other: T) -> Dim {
                let ($a, $b): (Dim, Dim) = (self, other.into());
                $result
            }
        }
        impl<T: Into<Dim>> std::ops::$op<T> for &Dim {
            type Output = Dim;
            fn $method(self, other: T) -> Dim {
                std::ops::$op::$method(*self, other)
            }
        }
        impl<T: Into<Dim>> std::ops::$assign<T> for Dim {
            fn $assigned(&mut self, other: T) {
                *self = std::ops::$op::$method(*self, other);
            }
        }
        operator!(@of $op $method u64);
        operator!(@of $op $method i64);
        operator!(@of $op $method i32);
    )* };
    (@of $op:ident $method:ident $number:ty) => {
        impl std::ops::$op<Dim> for $number {
            type Output = Dim;
            fn $method(self, other: Dim) -> Dim {
                std::ops::$op::$method(Dim::from(self), other)
            }
        }
        impl std::ops::$op<&Dim> for $number {
            type Output = Dim;
            fn $method(self, other: &Dim) -> Dim {
                std::ops::$op::$method(Dim::from(self), *other)
            }
        }
    };
}
operator! {
    Add add AddAssign add_assign (a, b) a.checked_add(b).unwrap_or_else(|| ends(a, b, i128::from(a.value) + i128::from(b.value)));
    Sub sub SubAssign sub_assign (a, b) a.signed_sub(b).unwrap_or_else(|| ends(a, b, i128::from(a.value) - i128::from(b.value)));
    Mul mul MulAssign mul_assign (a, b) a.checked_mul(b).unwrap_or_else(|| ends(a, b, i128::from(a.value) * i128::from(b.value)));
    Div div DivAssign div_assign (a, b) a.checked_div(b).unwrap_or_default();
    Rem rem RemAssign rem_assign (a, b) a.checked_rem(b).unwrap_or_default();
}

/// Saturated result of an operation that overflows 64 bits; both operands are pinned to their concrete values.
fn ends(a: Dim, b: Dim, exact: i128) -> Dim {
    a.guarded_value();
    b.guarded_value();
    Dim::constant(saturate(exact))
}

impl std::ops::Neg for Dim {
    type Output = Dim;
    fn neg(self) -> Dim {
        Dim::constant(0) - self
    }
}

impl std::iter::Sum for Dim {
    fn sum<I: Iterator<Item = Dim>>(all: I) -> Dim {
        all.fold(Dim::constant(0), |sum, d| sum + d)
    }
}

impl<'a> std::iter::Sum<&'a Dim> for Dim {
    fn sum<I: Iterator<Item = &'a Dim>>(all: I) -> Dim {
        all.copied().sum()
    }
}

impl std::iter::Product for Dim {
    fn product<I: Iterator<Item = Dim>>(all: I) -> Dim {
        all.fold(Dim::constant(1), |product, d| product * d)
    }
}

impl<'a> std::iter::Product<&'a Dim> for Dim {
    fn product<I: Iterator<Item = &'a Dim>>(all: I) -> Dim {
        all.copied().product()
    }
}
