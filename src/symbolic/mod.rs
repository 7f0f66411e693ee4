//! Integer expressions over variables, such as array sizes that are not known until a function is called.
//!
//! A [`SizeExpr`] is kept in a normal form, so that expressions that are equal by the rules below compare equal: sums of products with
//! integer coefficients, with whole multiples moved out of quotients, and common terms out of maxima. Remainders are written with
//! quotients, and minima with maxima. Arithmetic never overflows silently: an operation returns `None` where a coefficient overflows 64
//! bits or the expression gets too large.
mod dim;
mod interval;
mod maximum;
mod quotient;
pub mod trace;
#[cfg(test)]
mod tests;

pub use dim::{Dim, NegativeSize, constant_dims, guarded_counts, has_zero, product};
pub use interval::Interval;

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// Upper bound on the terms of an expression.
const MAX_TERMS: usize = 64;
/// Upper bound on the nesting of quotients and maxima, which bounds the depth of recursion.
const MAX_DEPTH: u32 = 32;
/// Number of factors above which an expression is replaced by one shared factor.
const MAX_FACTORS: u32 = 24;
/// Upper bound on the factors of an expression, nested and repeated ones included.
const MAX_WEIGHT: u32 = 1 << 12;

/// A factor of a product in a [`SizeExpr`].
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Factor<V: Ord> {
    /// A variable.
    Var(V),
    /// Quotient of the first expression by the second, rounded down. A constant divisor is at least 2.
    Quotient(Arc<SizeExpr<V>>, Arc<SizeExpr<V>>),
    /// Maximum of two or more expressions, which are in ascending order.
    Max(Arc<[SizeExpr<V>]>),
    /// A long expression as a single factor, so that expressions computed from it stay short.
    Shared(Arc<SharedExpr<V>>),
}

/// A long expression that stands as a single factor, with its range.
#[derive(Clone, Debug)]
pub struct SharedExpr<V: Ord> {
    expr: SizeExpr<V>,
    interval: Interval,
    /// Number of factors, nested and repeated ones included.
    weight: u32,
}

impl<V: Ord> SharedExpr<V> {
    /// The expression behind the factor.
    pub fn expr(&self) -> &SizeExpr<V> {
        &self.expr
    }
}

impl<V: Ord> PartialEq for SharedExpr<V> {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other) || self.weight == other.weight && self.expr == other.expr
    }
}

impl<V: Ord> Eq for SharedExpr<V> {}

impl<V: Ord> PartialOrd for SharedExpr<V> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<V: Ord> Ord for SharedExpr<V> {
    fn cmp(&self, other: &Self) -> Ordering {
        if std::ptr::eq(self, other) {
            return Ordering::Equal;
        }
        self.weight.cmp(&other.weight).then_with(|| self.expr.cmp(&other.expr))
    }
}

impl<V: Ord + Hash> Hash for SharedExpr<V> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.weight.hash(state);
        self.expr.terms.len().hash(state);
    }
}

/// An integer expression: a sum of products of [`Factor`]s.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SizeExpr<V: Ord> {
    /// Coefficient of each product, none of them 0, by the sorted factors of the product; the constant term has no factors.
    terms: BTreeMap<Vec<Factor<V>>, i64>,
}

impl<V: Ord> Default for SizeExpr<V> {
    fn default() -> Self {
        SizeExpr { terms: BTreeMap::new() }
    }
}

impl<V: Ord + Clone> SizeExpr<V> {
    /// Expression of the constant `value`.
    pub fn constant(value: i64) -> Self {
        let terms = if value == 0 { BTreeMap::new() } else { BTreeMap::from([(Vec::new(), value)]) };
        SizeExpr { terms }
    }
    /// Expression of the variable `v`.
    pub fn var(v: V) -> Self {
        SizeExpr::factor(Factor::Var(v))
    }
    fn factor(factor: Factor<V>) -> Self {
        SizeExpr { terms: BTreeMap::from([(vec![factor], 1)]) }
    }

    /// Terms of the sum: the sorted factors and the coefficient of each.
    pub fn terms(&self) -> impl Iterator<Item = (&[Factor<V>], i64)> {
        self.terms.iter().map(|(factors, &n)| (&factors[..], n))
    }
    /// Value of a constant expression; `None` for an expression with variables.
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
    /// The variable, if the whole expression is one.
    pub fn as_var(&self) -> Option<&V> {
        match self.as_scaled_var() {
            Some((1, v)) => Some(v),
            _ => None,
        }
    }
    /// Coefficient and variable, if the whole expression is a multiple of a variable.
    pub fn as_scaled_var(&self) -> Option<(i64, &V)> {
        let mut terms = self.terms();
        match (terms.next(), terms.next()) {
            (Some(([Factor::Var(v)], n)), None) => Some((n, v)),
            _ => None,
        }
    }
    /// Coefficient of the term that consists of the variable `v` alone; `None` if there is none.
    pub fn coefficient(&self, v: &V) -> Option<i64> {
        self.terms.get(&vec![Factor::Var(v.clone())]).copied()
    }
    /// Quotient by an integer that divides every coefficient; `None` for any other integer.
    pub fn div_exact(&self, by: i64) -> Option<Self> {
        let one = |(factors, n): (&Vec<Factor<V>>, &i64)| {
            let quotient = n.checked_div(by).filter(|q| q.checked_mul(by) == Some(*n))?;
            Some((factors.clone(), quotient))
        };
        Some(SizeExpr { terms: self.terms.iter().map(one).collect::<Option<_>>()? })
    }
    /// Variables that occur in the expression.
    pub fn vars(&self) -> BTreeSet<V> {
        let mut out = BTreeSet::new();
        self.for_each_var(&mut |v| {
            out.insert(v.clone());
        });
        out
    }
    fn for_each_var(&self, seen: &mut impl FnMut(&V)) {
        for factor in self.terms.keys().flatten() {
            match factor {
                Factor::Var(v) => seen(v),
                Factor::Quotient(a, b) => {
                    a.for_each_var(seen);
                    b.for_each_var(seen);
                }
                Factor::Max(all) => all.iter().for_each(|e| e.for_each_var(seen)),
                Factor::Shared(whole) => whole.expr.for_each_var(seen),
            }
        }
    }
    /// Number of factors, those within quotients and maxima included; `of_whole` counts those of a shared expression.
    fn factor_count(&self, of_whole: &impl Fn(&SharedExpr<V>) -> u32) -> u32 {
        let of = |f: &Factor<V>| match f {
            Factor::Var(_) => 1,
            Factor::Quotient(a, b) => 1 + a.factor_count(of_whole) + b.factor_count(of_whole),
            Factor::Max(all) => all.iter().fold(1u32, |sum, e| sum.saturating_add(e.factor_count(of_whole))),
            Factor::Shared(whole) => of_whole(whole),
        };
        self.terms.keys().flatten().fold(0, |sum: u32, f| sum.saturating_add(of(f)))
    }
    /// Replaces a long expression by one shared factor; `of` returns the range of each variable. `None` where the expression exceeds
    /// `MAX_WEIGHT` factors.
    pub fn share_if_long(self, of: &impl Fn(&V) -> Interval) -> Option<Self> {
        let weight = self.factor_count(&|whole| whole.weight);
        match self.factor_count(&|_| 1) {
            _ if weight > MAX_WEIGHT => None,
            0..=MAX_FACTORS => Some(self),
            _ => {
                let interval = self.extremes(of)?;
                Some(SizeExpr::factor(Factor::Shared(Arc::new(SharedExpr { expr: self, interval, weight }))))
            }
        }
    }
    fn depth(&self) -> u32 {
        let of = |f: &Factor<V>| match f {
            Factor::Var(_) => 0,
            Factor::Quotient(a, b) => 1 + a.depth().max(b.depth()),
            Factor::Max(all) => 1 + all.iter().map(SizeExpr::depth).max().unwrap_or(0),
            Factor::Shared(whole) => 1 + whole.expr.depth(),
        };
        self.terms.keys().flatten().map(of).max().unwrap_or(0)
    }

    /// Expression with these terms; `None` where it exceeds the limits on terms and nesting.
    fn within_limits(terms: BTreeMap<Vec<Factor<V>>, i64>) -> Option<Self> {
        let out = SizeExpr { terms };
        (out.terms.len() <= MAX_TERMS && out.depth() <= MAX_DEPTH).then_some(out)
    }
    /// Adds terms with sorted factors; `None` where a coefficient overflows or there are too many terms.
    fn add_terms(&mut self, terms: impl IntoIterator<Item = (Vec<Factor<V>>, i64)>) -> Option<()> {
        for (factors, n) in terms {
            let sum = self.terms.get(&factors).copied().unwrap_or(0).checked_add(n)?;
            if sum == 0 {
                self.terms.remove(&factors)
            } else {
                self.terms.insert(factors, sum)
            };
        }
        (self.terms.len() <= MAX_TERMS).then_some(())
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
        SizeExpr::within_limits(out.terms)
    }
    /// `self - divisor * floor(self / divisor)`: the remainder with the sign of the divisor.
    pub fn rem(&self, divisor: &Self) -> Option<Self> {
        self.sub(&divisor.mul(&self.floor_div(divisor)?)?)
    }
    /// `ceil(self / divisor)`.
    pub fn ceil_div(&self, divisor: &Self) -> Option<Self> {
        self.scale(-1)?.floor_div(divisor)?.scale(-1)
    }
    /// Minimum of two expressions.
    pub fn minimum(&self, other: &Self) -> Option<Self> {
        self.scale(-1)?.maximum(&other.scale(-1)?)?.scale(-1)
    }

    /// Replaces each variable by an expression; `None` where `by` has none for a variable, or the result is too large.
    pub fn substitute<W: Ord + Clone>(&self, by: &impl Fn(&V) -> Option<SizeExpr<W>>) -> Option<SizeExpr<W>> {
        let mut sum = SizeExpr::default();
        for (factors, n) in self.terms() {
            let mut term = SizeExpr::constant(n);
            for factor in factors {
                let factor = match factor {
                    Factor::Var(v) => by(v)?,
                    Factor::Quotient(a, b) => a.substitute(by)?.floor_div(&b.substitute(by)?)?,
                    Factor::Max(all) => {
                        let all: Option<Vec<SizeExpr<W>>> = all.iter().map(|e| e.substitute(by)).collect();
                        let mut all = all?.into_iter();
                        let first = all.next()?;
                        all.try_fold(first, |most, e| most.maximum(&e))?
                    }
                    Factor::Shared(whole) => {
                        let SharedExpr { expr, interval, weight } = &**whole;
                        let expr = expr.substitute(by)?;
                        match expr.known() {
                            Some(known) => SizeExpr::constant(known),
                            None => SizeExpr::factor(Factor::Shared(Arc::new(SharedExpr {
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

    /// Text of the expression for messages, with names for its variables.
    pub fn spelled(&self, name: &impl Fn(&V) -> String) -> String {
        let factor = |f: &Factor<V>| match f {
            Factor::Var(v) => name(v),
            Factor::Quotient(a, b) => format!("floor(({}) / ({}))", a.spelled(name), b.spelled(name)),
            Factor::Max(all) => {
                format!("max({})", all.iter().map(|e| e.spelled(name)).collect::<Vec<_>>().join(", "))
            }
            Factor::Shared(whole) => format!("({})", whole.expr.spelled(name)),
        };
        let mut out = String::new();
        // the constant term comes last
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

    /// Evaluates the expression with the values of variables that `value` returns; `None` on overflow of 64 bits, division by 0, or where a
    /// variable has no value.
    pub fn eval(&self, value: &impl Fn(&V) -> Option<i64>) -> Option<i64> {
        let of = |f: &Factor<V>| match f {
            Factor::Var(v) => value(v),
            Factor::Quotient(a, b) => interval::floor_div(a.eval(value)?, b.eval(value)?),
            Factor::Max(all) => all.iter().map(|e| e.eval(value)).try_fold(i64::MIN, |most, e| Some(most.max(e?))),
            Factor::Shared(whole) => whole.expr.eval(value),
        };
        self.terms().try_fold(0i64, |sum, (factors, n)| {
            sum.checked_add(factors.iter().try_fold(n, |product, f| product.checked_mul(of(f)?))?)
        })
    }
}
