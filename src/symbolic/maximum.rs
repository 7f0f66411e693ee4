//! Normal form of maxima.
use super::quotient::gcd;
use super::{Factor, MAX_DEPTH, SizeExpr};
use std::collections::BTreeMap;

/// Upper bound on the operands of a maximum.
const MAX_OPERANDS: usize = 16;

impl<V: Ord + Clone> SizeExpr<V> {
    /// Maximum of two expressions; `None` where the result is too large.
    ///
    /// A maximum plus other terms is written as the maximum of sums, so that nested maxima become one. Terms common to all operands, the
    /// smallest constant, and the greatest common divisor of all coefficients are moved out. Of operands that differ by a constant only the
    /// largest is kept. For two operands, `max(-a, -b)` is written as `-min(a, b)`, that is `max(a, b) - a - b`.
    pub fn maximum(&self, other: &Self) -> Option<Self> {
        let mut all: BTreeMap<SizeExpr<V>, i64> = BTreeMap::new();
        for operand in self.operands_of_max()?.into_iter().chain(other.operands_of_max()?) {
            let offset = operand.offset();
            let most = all.entry(operand.offset_by(offset.checked_neg()?)?).or_insert(offset);
            *most = offset.max(*most);
        }
        let all: Option<Vec<SizeExpr<V>>> = all.into_iter().map(|(base, offset)| base.offset_by(offset)).collect();
        let all = all?;
        match &all[..] {
            [one] => Some(one.clone()),
            [a, b] if has_negative_leading_term(a, b) => {
                SizeExpr::maximum_of_distinct(vec![a.scale(-1)?, b.scale(-1)?])?.add(a)?.add(b)
            }
            _ => SizeExpr::maximum_of_distinct(all),
        }
    }

    /// Maximum of two or more expressions, no two of which differ by a constant.
    fn maximum_of_distinct(mut all: Vec<Self>) -> Option<Self> {
        let common = common_terms(&all);
        for operand in &mut all {
            *operand = operand.sub(&common)?;
        }
        let least = all.iter().map(SizeExpr::offset).min().unwrap_or(0);
        for operand in &mut all {
            *operand = operand.offset_by(least.checked_neg()?)?;
        }
        let shared = all.iter().flat_map(|e| e.terms.values()).fold(0, |g, &n| gcd(g, n)).max(1);
        for operand in &mut all {
            operand.terms.values_mut().for_each(|n| *n /= shared);
        }
        all.sort_unstable();
        if all.len() > MAX_OPERANDS || all.iter().any(|e| e.depth() >= MAX_DEPTH) {
            return None;
        }
        SizeExpr::factor(Factor::Max(all.into())).scale(shared)?.add(&common)?.offset_by(least)
    }

    /// Operands of an expression that is a maximum: those of the only maximum in the expression, each with the other terms added; the expression
    /// itself if it contains no such maximum.
    fn operands_of_max(&self) -> Option<Vec<Self>> {
        let mut maxima = self.terms().filter(|(f, _)| f.iter().any(|f| matches!(f, Factor::Max(_))));
        match (maxima.next(), maxima.next()) {
            (Some(([Factor::Max(all)], 1)), None) => {
                let mut rest = self.clone();
                rest.terms.remove(&vec![Factor::Max(all.clone())]);
                all.iter().map(|e| rest.add(e)).collect()
            }
            _ => Some(vec![self.clone()]),
        }
    }
}

/// Whether the two operands of a maximum have the sign that the normal form negates: in the first product of variables in which they differ, the
/// sum of their coefficients is negative.
fn has_negative_leading_term<V: Ord + Clone>(a: &SizeExpr<V>, b: &SizeExpr<V>) -> bool {
    let in_both = |factors: &Vec<Factor<V>>| {
        let of = |e: &SizeExpr<V>| e.terms.get(factors).copied().unwrap_or(0);
        (of(a) != of(b)).then(|| i128::from(of(a)) + i128::from(of(b)))
    };
    let first = a.terms.keys().chain(b.terms.keys()).filter(|f| !f.is_empty() && in_both(f).is_some()).min();
    first.and_then(in_both).is_some_and(|sum| sum < 0)
}

/// Terms with variables that all of the expressions have with the same coefficient.
fn common_terms<V: Ord + Clone>(all: &[SizeExpr<V>]) -> SizeExpr<V> {
    let Some((first, rest)) = all.split_first() else { return SizeExpr::default() };
    let has = |e: &SizeExpr<V>, factors: &Vec<Factor<V>>, n: &i64| e.terms.get(factors) == Some(n);
    let shared = first.terms.iter().filter(|(f, n)| !f.is_empty() && rest.iter().all(|e| has(e, f, n)));
    SizeExpr { terms: shared.map(|(f, &n)| (f.clone(), n)).collect() }
}
