//! A number that follows from the sizes of a call: `12·n`, `n·m + 3`, `⌊(⌊(n + 1) / 2⌋ + 1) / 2⌋·m`, `min(n, 100)`, `max(n - 2, 0)`.
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Mul;
use std::sync::Arc;

/// What the terms of an [`Extent`] are products of.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Factor {
    /// The size of this number.
    Size(usize),
    /// A number divided by another, 2 or more, and rounded down.
    Quotient(Arc<Extent>, i64),
    /// The lesser of a number and this one.
    Least(Arc<Extent>, i64),
    /// The greater of a number and this one.
    Greatest(Arc<Extent>, i64),
}

/// A sum of products of sizes, of numbers that are rounded down, and of numbers that stay at a level.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Extent {
    /// What is multiplied, in order, with how many times it counts, which is not 0. The constant is a product of nothing.
    terms: BTreeMap<Vec<Factor>, i64>,
}

impl Extent {
    /// The number that is always the same.
    pub fn constant(value: i64) -> Extent {
        Extent::of([(Vec::new(), value)])
    }
    /// The size of this number.
    pub fn of_size(size: usize) -> Extent {
        Extent::of([(vec![Factor::Size(size)], 1)])
    }
    /// Products of sizes, each with how many times it counts.
    pub fn of_sizes(terms: impl IntoIterator<Item = (i64, Vec<usize>)>) -> Extent {
        Extent::of(terms.into_iter().map(|(n, sizes)| (sizes.into_iter().map(Factor::Size).collect(), n)))
    }
    /// `⌊self / divisor⌋`; `divisor` is 2 or more.
    pub fn divided(self, divisor: i64) -> Extent {
        Extent::of([(vec![Factor::Quotient(Arc::new(self), divisor)], 1)])
    }
    /// `min(self, most)`.
    pub fn at_most(self, most: i64) -> Extent {
        Extent::of([(vec![Factor::Least(Arc::new(self), most)], 1)])
    }
    /// `max(self, least)`.
    pub fn at_least(self, least: i64) -> Extent {
        Extent::of([(vec![Factor::Greatest(Arc::new(self), least)], 1)])
    }
    fn of(terms: impl IntoIterator<Item = (Vec<Factor>, i64)>) -> Extent {
        let mut out = Extent::default();
        out.add(terms);
        out
    }
    fn add(&mut self, terms: impl IntoIterator<Item = (Vec<Factor>, i64)>) {
        for (mut of, n) in terms {
            of.sort_unstable();
            let count = self.terms.entry(of).or_default();
            *count = count.saturating_add(n);
        }
        self.terms.retain(|_, n| *n != 0);
    }
    /// `self + times · other`.
    pub fn plus(mut self, times: i64, other: &Extent) -> Extent {
        self.add(other.terms.iter().map(|(of, n)| (of.clone(), n.saturating_mul(times))));
        self
    }
    /// What is multiplied and how many times it counts, term by term.
    pub fn terms(&self) -> impl Iterator<Item = (&[Factor], i64)> {
        self.terms.iter().map(|(of, &n)| (&of[..], n))
    }
    /// Its value where it does not depend on any size.
    pub fn fixed(&self) -> Option<i64> {
        let mut terms = self.terms();
        match (terms.next(), terms.next()) {
            (None, _) => Some(0),
            (Some(([], value)), None) => Some(value),
            _ => None,
        }
    }
    /// Whether it depends on a size.
    pub fn varies(&self) -> bool {
        self.fixed().is_none()
    }
    /// Whether it is a sum of products of sizes alone.
    pub fn is_polynomial(&self) -> bool {
        self.terms.keys().flatten().all(|f| matches!(f, Factor::Size(_)))
    }
    /// The sizes that it follows from, by their numbers.
    pub fn sizes(&self) -> BTreeSet<usize> {
        let of = |f: &Factor| match f {
            Factor::Size(size) => BTreeSet::from([*size]),
            Factor::Quotient(of, _) | Factor::Least(of, _) | Factor::Greatest(of, _) => of.sizes(),
        };
        self.terms.keys().flatten().flat_map(of).collect()
    }
    /// The number of the size that it is.
    pub fn size(&self) -> Option<usize> {
        self.times_size().and_then(|(times, size)| (times == 1).then_some(size))
    }
    /// How many times a size it is; `None` where it is anything else.
    pub fn multiple(&self) -> Option<i64> {
        self.times_size().map(|(times, _)| times)
    }
    fn times_size(&self) -> Option<(i64, usize)> {
        let mut terms = self.terms();
        match (terms.next(), terms.next()) {
            (Some(([Factor::Size(size)], times)), None) => Some((times, *size)),
            _ => None,
        }
    }
    /// Its value for these sizes; `None` where it is beyond 63 bits.
    pub fn at(&self, sizes: &[u64]) -> Option<i64> {
        let factor = |f: &Factor| match f {
            Factor::Size(size) => i64::try_from(*sizes.get(*size)?).ok(),
            Factor::Quotient(of, divisor) => Some(of.at(sizes)?.div_euclid(*divisor)),
            Factor::Least(of, most) => Some(of.at(sizes)?.min(*most)),
            Factor::Greatest(of, least) => Some(of.at(sizes)?.max(*least)),
        };
        let term = |(of, n): (&[Factor], i64)| of.iter().try_fold(n, |p, f| p.checked_mul(factor(f)?));
        self.terms().try_fold(0i64, |sum, t| sum.checked_add(term(t)?))
    }
    /// After so many steps of the sizes its remainders are the same again: the product of the divisors that are nested deepest.
    pub fn period(&self) -> u64 {
        let of = |f: &Factor| match f {
            Factor::Size(_) => 1,
            Factor::Least(of, _) | Factor::Greatest(of, _) => of.period(),
            Factor::Quotient(of, divisor) => of.period().saturating_mul(divisor.unsigned_abs()),
        };
        self.terms.keys().flatten().map(of).max().unwrap_or(1)
    }
}

impl Mul for &Extent {
    type Output = Extent;

    fn mul(self, other: &Extent) -> Extent {
        let with = |(of, n): (&[Factor], i64)| {
            let of = of.to_vec();
            other.terms().map(move |(more, m)| ([&of[..], more].concat(), n.saturating_mul(m)))
        };
        Extent::of(self.terms().flat_map(with))
    }
}
