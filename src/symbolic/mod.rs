//! Integer expressions over variables, such as the sizes of arrays that are not known until a function is called.
//!
//! An [`SizeExpr`] is kept in a normal form, so that expressions that are equal by the rules below compare equal: sums are of products with
//! integer coefficients, whole multiples are moved out of quotients, and common parts out of maxima. Remainders are written with
//! quotients, and minima with maxima. Arithmetic never overflows silently: an operation gives `None` where a coefficient leaves 64
//! bits or the expression gets too large.
mod dim;
mod interval;
mod maximum;
mod quotient;
pub mod trace;
#[cfg(test)]
mod tests;

pub use dim::{Dim, Negative, fixed, has_zero, known, product};
pub use interval::Interval;

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// No expression has more terms.
const MOST_TERMS: usize = 64;
/// No expression nests quotients and maxima deeper, so that recursion over it ends.
const MOST_DEPTH: u32 = 32;
/// An expression of more factors is written as one.
const MOST_FACTORS: u32 = 24;
/// No expression has more factors, those within others counted each time.
const MOST_WEIGHT: u32 = 1 << 12;

/// A factor of the products that an [`SizeExpr`] sums.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Factor<V: Ord> {
    /// A variable.
    Var(V),
    /// The first expression divided by the second, rounded down. A constant divisor is 2 or more.
    Quotient(Arc<SizeExpr<V>>, Arc<SizeExpr<V>>),
    /// The largest of two or more expressions, in ascending order.
    Max(Arc<[SizeExpr<V>]>),
    /// A long expression as one, so that what is computed from it stays short.
    Whole(Arc<Whole<V>>),
}

/// A long expression, and what it lies between.
#[derive(Clone, Debug)]
pub struct Whole<V: Ord> {
    expr: SizeExpr<V>,
    interval: Interval,
    /// How many factors it has, those within others counted each time.
    weight: u32,
}

impl<V: Ord> Whole<V> {
    /// The expression.
    pub fn expr(&self) -> &SizeExpr<V> {
        &self.expr
    }
}

impl<V: Ord> PartialEq for Whole<V> {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other) || self.weight == other.weight && self.expr == other.expr
    }
}

impl<V: Ord> Eq for Whole<V> {}

impl<V: Ord> PartialOrd for Whole<V> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<V: Ord> Ord for Whole<V> {
    fn cmp(&self, other: &Self) -> Ordering {
        if std::ptr::eq(self, other) {
            return Ordering::Equal;
        }
        self.weight.cmp(&other.weight).then_with(|| self.expr.cmp(&other.expr))
    }
}

impl<V: Ord + Hash> Hash for Whole<V> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.weight.hash(state);
        self.expr.terms.len().hash(state);
    }
}

/// An integer expression: a sum of products of [`Factor`]s.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SizeExpr<V: Ord> {
    /// Coefficients, none of them 0, by the sorted factors that they multiply; the constant multiplies no factor.
    terms: BTreeMap<Vec<Factor<V>>, i64>,
}

impl<V: Ord> Default for SizeExpr<V> {
    fn default() -> Self {
        SizeExpr { terms: BTreeMap::new() }
    }
}

impl<V: Ord + Clone> SizeExpr<V> {
    /// The constant `value`.
    pub fn constant(value: i64) -> Self {
        let terms = if value == 0 { BTreeMap::new() } else { BTreeMap::from([(Vec::new(), value)]) };
        SizeExpr { terms }
    }
    /// The variable `v`.
    pub fn var(v: V) -> Self {
        SizeExpr::factor(Factor::Var(v))
    }
    fn factor(factor: Factor<V>) -> Self {
        SizeExpr { terms: BTreeMap::from([(vec![factor], 1)]) }
    }

    /// The terms: the factors of each, sorted, and its coefficient.
    pub fn terms(&self) -> impl Iterator<Item = (&[Factor<V>], i64)> {
        self.terms.iter().map(|(factors, &n)| (&factors[..], n))
    }
    /// The value, if no variable is in it.
    pub fn known(&self) -> Option<i64> {
        match self.terms.len() {
            0 => Some(0),
            1 => self.terms.get(&Vec::new()).copied(),
            _ => None,
        }
    }
    /// The constant term.
    fn offset(&self) -> i64 {
        self.terms.get(&Vec::new()).copied().unwrap_or(0)
    }
    /// The variable that the whole expression is.
    pub fn as_var(&self) -> Option<&V> {
        match self.as_scaled_var() {
            Some((1, v)) => Some(v),
            _ => None,
        }
    }
    /// The coefficient and the variable of an expression that is one times the other.
    pub fn as_scaled_var(&self) -> Option<(i64, &V)> {
        let mut terms = self.terms();
        match (terms.next(), terms.next()) {
            (Some(([Factor::Var(v)], n)), None) => Some((n, v)),
            _ => None,
        }
    }
    /// The variables in it.
    pub fn vars(&self) -> BTreeSet<V> {
        let mut out = BTreeSet::new();
        self.visit(&mut |v| {
            out.insert(v.clone());
        });
        out
    }
    fn visit(&self, seen: &mut impl FnMut(&V)) {
        for factor in self.terms.keys().flatten() {
            match factor {
                Factor::Var(v) => seen(v),
                Factor::Quotient(a, b) => {
                    a.visit(seen);
                    b.visit(seen);
                }
                Factor::Max(all) => all.iter().for_each(|e| e.visit(seen)),
                Factor::Whole(whole) => whole.expr.visit(seen),
            }
        }
    }
    /// How many factors it has, those within quotients and maxima counted too.
    fn factors(&self, of_whole: &impl Fn(&Whole<V>) -> u32) -> u32 {
        let of = |f: &Factor<V>| match f {
            Factor::Var(_) => 1,
            Factor::Quotient(a, b) => 1 + a.factors(of_whole) + b.factors(of_whole),
            Factor::Max(all) => all.iter().fold(1u32, |sum, e| sum.saturating_add(e.factors(of_whole))),
            Factor::Whole(whole) => of_whole(whole),
        };
        self.terms.keys().flatten().fold(0, |sum: u32, f| sum.saturating_add(of(f)))
    }
    /// The expression as one factor, if it is long; `None` where it is too long altogether. Its variables lie within the intervals that `of` says.
    pub fn shortened(self, of: &impl Fn(&V) -> Interval) -> Option<Self> {
        let weight = self.factors(&|whole| whole.weight);
        match self.factors(&|_| 1) {
            _ if weight > MOST_WEIGHT => None,
            0..=MOST_FACTORS => Some(self),
            _ => {
                let interval = self.extremes(of)?;
                Some(SizeExpr::factor(Factor::Whole(Arc::new(Whole { expr: self, interval, weight }))))
            }
        }
    }
    fn depth(&self) -> u32 {
        let of = |f: &Factor<V>| match f {
            Factor::Var(_) => 0,
            Factor::Quotient(a, b) => 1 + a.depth().max(b.depth()),
            Factor::Max(all) => 1 + all.iter().map(SizeExpr::depth).max().unwrap_or(0),
            Factor::Whole(whole) => 1 + whole.expr.depth(),
        };
        self.terms.keys().flatten().map(of).max().unwrap_or(0)
    }

    /// The expression of these terms; `None` where it is too large.
    fn checked(terms: BTreeMap<Vec<Factor<V>>, i64>) -> Option<Self> {
        let out = SizeExpr { terms };
        (out.terms.len() <= MOST_TERMS && out.depth() <= MOST_DEPTH).then_some(out)
    }
    /// Adds terms whose factors are sorted.
    fn add_terms(&mut self, terms: impl IntoIterator<Item = (Vec<Factor<V>>, i64)>) -> Option<()> {
        for (factors, n) in terms {
            let sum = self.terms.get(&factors).copied().unwrap_or(0).checked_add(n)?;
            if sum == 0 {
                self.terms.remove(&factors)
            } else {
                self.terms.insert(factors, sum)
            };
        }
        (self.terms.len() <= MOST_TERMS).then_some(())
    }

    /// `self + factor * other`.
    pub fn plus(&self, factor: i64, other: &Self) -> Option<Self> {
        let mut out = self.clone();
        let scaled: Option<Vec<_>> =
            other.terms().map(|(factors, n)| Some((factors.to_vec(), n.checked_mul(factor)?))).collect();
        out.add_terms(scaled?.into_iter().filter(|(_, n)| *n != 0))?;
        Some(out)
    }
    /// `self + other`.
    pub fn add(&self, other: &Self) -> Option<Self> {
        self.plus(1, other)
    }
    /// `self - other`.
    pub fn sub(&self, other: &Self) -> Option<Self> {
        self.plus(-1, other)
    }
    /// `factor * self`.
    pub fn scale(&self, factor: i64) -> Option<Self> {
        SizeExpr::default().plus(factor, self)
    }
    /// `self + n`.
    pub fn offset_by(&self, n: i64) -> Option<Self> {
        self.add(&SizeExpr::constant(n))
    }
    /// `self * other`.
    pub fn mul(&self, other: &Self) -> Option<Self> {
        let mut out = SizeExpr::default();
        for (a, n) in self.terms() {
            for (b, m) in other.terms() {
                let mut factors = [a, b].concat();
                factors.sort_unstable();
                out.add_terms([(factors, n.checked_mul(m)?)])?;
            }
        }
        SizeExpr::checked(out.terms)
    }
    /// `self - divisor * floor(self / divisor)`: the remainder with the sign of the divisor.
    pub fn rem(&self, divisor: &Self) -> Option<Self> {
        self.sub(&divisor.mul(&self.floor_div(divisor)?)?)
    }
    /// `ceil(self / divisor)`.
    pub fn ceil_div(&self, divisor: &Self) -> Option<Self> {
        self.scale(-1)?.floor_div(divisor)?.scale(-1)
    }
    /// The smaller of two expressions.
    pub fn minimum(&self, other: &Self) -> Option<Self> {
        self.scale(-1)?.maximum(&other.scale(-1)?)?.scale(-1)
    }

    /// The expression with others in the place of its variables; `None` where one has none, or the result is too large.
    pub fn substituted<W: Ord + Clone>(&self, by: &impl Fn(&V) -> Option<SizeExpr<W>>) -> Option<SizeExpr<W>> {
        let mut sum = SizeExpr::default();
        for (factors, n) in self.terms() {
            let mut term = SizeExpr::constant(n);
            for factor in factors {
                let factor = match factor {
                    Factor::Var(v) => by(v)?,
                    Factor::Quotient(a, b) => a.substituted(by)?.floor_div(&b.substituted(by)?)?,
                    Factor::Max(all) => {
                        let all: Option<Vec<SizeExpr<W>>> = all.iter().map(|e| e.substituted(by)).collect();
                        let mut all = all?.into_iter();
                        let first = all.next()?;
                        all.try_fold(first, |most, e| most.maximum(&e))?
                    }
                    Factor::Whole(whole) => {
                        let Whole { expr, interval, weight } = &**whole;
                        let expr = expr.substituted(by)?;
                        match expr.known() {
                            Some(known) => SizeExpr::constant(known),
                            None => SizeExpr::factor(Factor::Whole(Arc::new(Whole {
                                expr,
                                interval: *interval,
                                weight: *weight,
                            }))),
                        }
                    }
                };
                term = term.mul(&factor)?;
            }
            sum = sum.add(&term)?;
        }
        Some(sum)
    }

    /// The expression in words, with names for its variables.
    pub fn spelled(&self, name: &impl Fn(&V) -> String) -> String {
        let factor = |f: &Factor<V>| match f {
            Factor::Var(v) => name(v),
            Factor::Quotient(a, b) => format!("floor(({}) / ({}))", a.spelled(name), b.spelled(name)),
            Factor::Max(all) => {
                format!("max({})", all.iter().map(|e| e.spelled(name)).collect::<Vec<_>>().join(", "))
            }
            Factor::Whole(whole) => format!("({})", whole.expr.spelled(name)),
        };
        let mut out = String::new();
        // the constant stands last
        for (factors, n) in
            self.terms().skip_while(|(f, _)| f.is_empty()).chain(self.terms().filter(|(f, _)| f.is_empty()))
        {
            let size = n.unsigned_abs();
            let sign = match (out.is_empty(), n < 0) {
                (true, true) => "-",
                (true, false) => "",
                (false, true) => " - ",
                (false, false) => " + ",
            };
            let mut parts: Vec<String> = factors.iter().map(factor).collect();
            if size != 1 || parts.is_empty() {
                parts.insert(0, size.to_string());
            }
            out += sign;
            out += &parts.join(" * ");
        }
        if out.is_empty() { "0".to_string() } else { out }
    }

    /// The value where each variable has the value that `value` gives; `None` where that leaves 64 bits, divides by 0, or a variable
    /// has no value.
    pub fn eval(&self, value: &impl Fn(&V) -> Option<i64>) -> Option<i64> {
        let of = |f: &Factor<V>| match f {
            Factor::Var(v) => value(v),
            Factor::Quotient(a, b) => interval::floor(a.eval(value)?, b.eval(value)?),
            Factor::Max(all) => all.iter().map(|e| e.eval(value)).try_fold(i64::MIN, |most, e| Some(most.max(e?))),
            Factor::Whole(whole) => whole.expr.eval(value),
        };
        self.terms().try_fold(0i64, |sum, (factors, n)| {
            sum.checked_add(factors.iter().try_fold(n, |product, f| product.checked_mul(of(f)?))?)
        })
    }
}
