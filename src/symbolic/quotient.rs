//! Normal form of quotients.
use super::{Factor, MAX_DEPTH, SizeExpr};
use std::sync::Arc;

impl<V: Ord + Clone> SizeExpr<V> {
    /// `floor(self / divisor)`; `None` for a divisor of 0, or where the result is too large. The rules hold where the divisor is not 0.
    ///
    /// With a constant divisor `d`, `floor((d*q + r) / d)` becomes `q + floor(r / d)`, `floor(-r / d)` becomes `-floor((r + d - 1) / d)`, a
    /// common divisor of `d` and all coefficients is cancelled, and `floor(floor(a / b) / d)` becomes `floor(a / (b*d))`.
    pub fn floor_div(&self, divisor: &Self) -> Option<Self> {
        match divisor.known() {
            Some(0) => None,
            Some(d) if d < 0 => self.scale(-1)?.floor_div_constant(d.checked_neg()?),
            Some(d) => self.floor_div_constant(d),
            None => self.floor_div_expr(divisor),
        }
    }

    /// `floor(self / d)` for a positive `d`.
    pub fn floor_div_constant(&self, d: i64) -> Option<Self> {
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
            return whole.sub(&rest.scale(-1)?.offset_by(d - 1)?.floor_div_constant(d)?);
        }
        let shared = rest.terms().filter(|(f, _)| !f.is_empty()).fold(d, |g, (_, n)| gcd(g, n));
        if shared > 1 {
            let part = SizeExpr { terms: rest.terms.iter().map(|(f, n)| (f.clone(), n.div_euclid(shared))).collect() };
            let part = SizeExpr { terms: part.terms.into_iter().filter(|(_, n)| *n != 0).collect() };
            return whole.add(&part.floor_div_constant(d / shared)?);
        }
        if let Some((numerator, inner)) = rest.offset_quotient()
            && let (Some(both), Some(numerator)) = (inner.checked_mul(d), numerator)
        {
            return whole.add(&numerator.floor_div_constant(both)?);
        }
        if rest.depth() >= MAX_DEPTH {
            return None;
        }
        whole.add(&SizeExpr::factor(Factor::Quotient(Arc::new(rest), Arc::new(SizeExpr::constant(d)))))
    }

    /// Recognizes an expression `floor(a / b) + c` with a constant `b`. Returns `a + b*c`, or `None` where that overflows, and `b`.
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

    /// `floor(self / divisor)` for a divisor with variables: multiples of the divisor are moved out.
    fn floor_div_expr(&self, divisor: &Self) -> Option<Self> {
        if self.known() == Some(0) {
            return Some(SizeExpr::default());
        }
        let (whole, rest) = match divisor.as_term() {
            Some((factors, n)) => self.split_by_term(factors, n),
            None if self == divisor => (SizeExpr::constant(1), SizeExpr::default()),
            None => (SizeExpr::default(), self.clone()),
        };
        if rest.known() == Some(0) {
            return Some(whole);
        }
        if rest.depth().max(divisor.depth()) >= MAX_DEPTH {
            return None;
        }
        whole.add(&SizeExpr::factor(Factor::Quotient(Arc::new(rest), Arc::new(divisor.clone()))))
    }

    /// Factors and coefficient of an expression of one term; `None` for other expressions.
    fn as_term(&self) -> Option<(&[Factor<V>], i64)> {
        let mut terms = self.terms();
        terms.next().filter(|_| self.terms.len() == 1)
    }

    /// Divides by the term `n * factors`: the quotients of the terms that are multiples of it, and the other terms.
    fn split_by_term(&self, factors: &[Factor<V>], n: i64) -> (Self, Self) {
        let (mut whole, mut rest) = (SizeExpr::default(), SizeExpr::default());
        for (own, m) in self.terms() {
            match remove_factors(own, factors).filter(|_| m.checked_rem(n) == Some(0)) {
                Some(left) => whole.terms.insert(left, m / n),
                None => rest.terms.insert(own.to_vec(), m),
            };
        }
        (whole, rest)
    }
}

/// Removes each of `some` from `all`, both sorted; `None` where one of them is missing.
fn remove_factors<V: Ord + Clone>(all: &[Factor<V>], some: &[Factor<V>]) -> Option<Vec<Factor<V>>> {
    let mut left = all.to_vec();
    for factor in some {
        left.remove(left.iter().position(|f| f == factor)?);
    }
    Some(left)
}

/// Greatest common divisor of a positive integer and any other.
pub(super) fn gcd(a: i64, b: i64) -> i64 {
    let (mut a, mut b) = (a.unsigned_abs(), b.unsigned_abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    i64::try_from(a).unwrap_or(1)
}
