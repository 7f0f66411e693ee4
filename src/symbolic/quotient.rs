//! The normal form of quotients.
use super::{Factor, MOST_DEPTH, SizeExpr};
use std::sync::Arc;

impl<V: Ord + Clone> SizeExpr<V> {
    /// `floor(self / divisor)`; `None` for a divisor of 0. Two quotients are equal only for calls in which the divisor is not 0.
    ///
    /// With a constant divisor `d`, `floor((d*q + r) / d)` is `q + floor(r / d)`, `floor(-r / d)` is `-floor((r + d - 1) / d)`, a factor
    /// that `d` and all other coefficients share is dropped, and `floor(floor(a / b) / d)` is `floor(a / (b*d))`.
    pub fn floor_div(&self, divisor: &Self) -> Option<Self> {
        match divisor.known() {
            Some(0) => None,
            Some(d) if d < 0 => self.scale(-1)?.floor_div_by(d.checked_neg()?),
            Some(d) => self.floor_div_by(d),
            None => self.floor_div_expr(divisor),
        }
    }

    /// `floor(self / d)` for a positive `d`.
    pub fn floor_div_by(&self, d: i64) -> Option<Self> {
        let (mut whole, mut rest) = (SizeExpr::default(), SizeExpr::default());
        for (factors, n) in self.terms() {
            let up = !factors.is_empty() && n.rem_euclid(d) > d / 2;
            let quotient = n.div_euclid(d).checked_add(i64::from(up))?;
            let left = if up { n.rem_euclid(d) - d } else { n.rem_euclid(d) };
            whole.add_terms((quotient != 0).then(|| (factors.to_vec(), quotient)))?;
            rest.add_terms((left != 0).then(|| (factors.to_vec(), left)))?;
        }
        if rest.known().is_some() {
            return Some(whole);
        }
        if rest.terms().find(|(f, _)| !f.is_empty()).is_some_and(|(_, n)| n < 0) {
            return whole.sub(&rest.scale(-1)?.offset_by(d - 1)?.floor_div_by(d)?);
        }
        let shared = rest.terms().filter(|(f, _)| !f.is_empty()).fold(d, |g, (_, n)| gcd(g, n));
        if shared > 1 {
            let part = SizeExpr { terms: rest.terms.iter().map(|(f, n)| (f.clone(), n.div_euclid(shared))).collect() };
            let part = SizeExpr { terms: part.terms.into_iter().filter(|(_, n)| *n != 0).collect() };
            return whole.add(&part.floor_div_by(d / shared)?);
        }
        if let Some((numerator, inner)) = rest.offset_quotient()
            && let (Some(both), Some(numerator)) = (inner.checked_mul(d), numerator)
        {
            return whole.add(&numerator.floor_div_by(both)?);
        }
        if rest.depth() >= MOST_DEPTH {
            return None;
        }
        whole.add(&SizeExpr::factor(Factor::Quotient(Arc::new(rest), Arc::new(SizeExpr::constant(d)))))
    }

    /// For `floor(a / b) + c` with a constant `b`: `a + b*c`, or `None` where that overflows, and `b`.
    fn offset_quotient(&self) -> Option<(Option<Self>, i64)> {
        let mut others = self.terms().filter(|(f, _)| !f.is_empty());
        match (others.next(), others.next()) {
            (Some(([Factor::Quotient(a, b)], 1)), None) => {
                let b = b.known()?;
                let more = self.offset().checked_mul(b);
                Some((more.and_then(|more| a.offset_by(more)), b))
            }
            _ => None,
        }
    }

    /// `floor(self / divisor)` for a divisor with variables: terms that it divides are moved out.
    fn floor_div_expr(&self, divisor: &Self) -> Option<Self> {
        if self.known() == Some(0) {
            return Some(SizeExpr::default());
        }
        let (whole, rest) = match divisor.as_term() {
            Some((factors, n)) => self.split_by(factors, n),
            None if self == divisor => (SizeExpr::constant(1), SizeExpr::default()),
            None => (SizeExpr::default(), self.clone()),
        };
        if rest.known() == Some(0) {
            return Some(whole);
        }
        if rest.depth().max(divisor.depth()) >= MOST_DEPTH {
            return None;
        }
        whole.add(&SizeExpr::factor(Factor::Quotient(Arc::new(rest), Arc::new(divisor.clone()))))
    }

    /// The factors and the coefficient of an expression of one term.
    fn as_term(&self) -> Option<(&[Factor<V>], i64)> {
        let mut terms = self.terms();
        terms.next().filter(|_| self.terms.len() == 1)
    }

    /// The quotient of the terms that a term divides without remainder, and the other terms.
    fn split_by(&self, factors: &[Factor<V>], n: i64) -> (Self, Self) {
        let (mut whole, mut rest) = (SizeExpr::default(), SizeExpr::default());
        for (own, m) in self.terms() {
            match without(own, factors).filter(|_| m.checked_rem(n) == Some(0)) {
                Some(left) => whole.terms.insert(left, m / n),
                None => rest.terms.insert(own.to_vec(), m),
            };
        }
        (whole, rest)
    }
}

/// `all` without each of `some`; `None` where one of these is missing. Both are sorted.
fn without<V: Ord + Clone>(all: &[Factor<V>], some: &[Factor<V>]) -> Option<Vec<Factor<V>>> {
    let mut left = all.to_vec();
    for factor in some {
        left.remove(left.iter().position(|f| f == factor)?);
    }
    Some(left)
}

/// The greatest common divisor of a positive and another integer.
pub(super) fn gcd(a: i64, b: i64) -> i64 {
    let (mut a, mut b) = (a.unsigned_abs(), b.unsigned_abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    i64::try_from(a).unwrap_or(1)
}
