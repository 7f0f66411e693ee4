//! Ranges of expressions.
use super::{Factor, SizeExpr};

/// Maxima that a sum is moved into, and remainders that are recognised, one within the other.
const MOST_SPLITS: u32 = 3;
/// Expressions are evaluated at every value of their variables where there are no more combinations of these.
const MOST_POINTS: u64 = 1 << 13;

/// The integers from `least` to `most`, both included. Ends beyond 64 bits are held at [`Interval::FAR`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// No value is less.
    pub least: i128,
    /// No value is greater.
    pub most: i128,
}

impl Interval {
    /// Beyond every integer of 64 bits, and far from the ends of 128.
    pub const FAR: i128 = 1 << 100;
    /// Every integer.
    pub const ALL: Interval = Interval { least: -Interval::FAR, most: Interval::FAR };

    /// The integers between two ends.
    pub fn new(least: i128, most: i128) -> Interval {
        let held = |end: i128| end.clamp(-Interval::FAR, Interval::FAR);
        Interval { least: held(least), most: held(most) }
    }
    /// The range of each of several numbered variables; every integer where that is not said.
    pub fn of_each(ranges: &[Interval]) -> impl Fn(&usize) -> Interval {
        |&number| ranges.get(number).copied().unwrap_or(Interval::ALL)
    }
    /// One integer.
    pub fn one(value: i128) -> Interval {
        Interval::new(value, value)
    }
    /// The integers that are in both.
    fn and(self, other: Interval) -> Interval {
        Interval { least: self.least.max(other.least), most: self.most.min(other.most) }
    }
    fn plus(self, other: Interval) -> Interval {
        Interval::new(self.least + other.least, self.most + other.most)
    }
    fn times(self, other: Interval) -> Interval {
        let ends = |x: Interval| [x.least, x.most];
        let products = ends(self).into_iter().flat_map(|a| ends(other).map(|b| product(a, b)));
        Interval::hull(products)
    }
    /// The quotients rounded down; all integers where the divisor may be 0 or less.
    fn over(self, divisor: Interval) -> Interval {
        if divisor.least < 1 {
            return Interval::ALL;
        }
        let of =
            |a: i128| [divisor.least, divisor.most].map(|b| if a.abs() >= Interval::FAR { a } else { a.div_euclid(b) });
        Interval::hull([self.least, self.most].into_iter().flat_map(of))
    }
    fn hull(all: impl Iterator<Item = i128> + Clone) -> Interval {
        Interval::new(all.clone().min().unwrap_or(0), all.max().unwrap_or(0))
    }
}

/// The product of two ends.
fn product(a: i128, b: i128) -> i128 {
    if a == 0 || b == 0 {
        return 0;
    }
    let limit = if (a < 0) == (b < 0) { Interval::FAR } else { -Interval::FAR };
    a.checked_mul(b).unwrap_or(limit)
}

/// `floor(a / b)`; `None` for a divisor of 0 and beyond 64 bits.
pub(super) fn floor(a: i64, b: i64) -> Option<i64> {
    let quotient = a.checked_div(b)?;
    if a % b != 0 && (a < 0) != (b < 0) { quotient.checked_sub(1) } else { Some(quotient) }
}

impl<V: Ord + Clone> SizeExpr<V> {
    /// An interval that holds all values of the expression, where `of` says what each variable lies between.
    pub fn interval(&self, of: &impl Fn(&V) -> Interval) -> Interval {
        self.split_interval(of, MOST_SPLITS)
    }

    fn split_interval(&self, of: &impl Fn(&V) -> Interval, splits: u32) -> Interval {
        let mut out = self.plain_interval(of, splits);
        let Some(splits) = splits.checked_sub(1) else { return out };
        for (factors, n) in self.terms() {
            let better = match factors {
                [Factor::Max(all)] => self.over_maximum(factors, n, all).map(|each| {
                    let each = each.iter().map(|e| e.split_interval(of, splits));
                    let (least, most) = (each.clone().map(|i| i.least), each.map(|i| i.most));
                    match n > 0 {
                        true => Interval::new(least.max().unwrap_or(0), most.max().unwrap_or(0)),
                        false => Interval::new(least.min().unwrap_or(0), most.min().unwrap_or(0)),
                    }
                }),
                [Factor::Quotient(a, b)] => self.without_remainder((a, b), n).map(|(rest, times, b)| {
                    rest.split_interval(of, splits).plus(Interval::one(times).times(Interval::new(0, b - 1)))
                }),
                _ => None,
            };
            out = better.map_or(out, |better| out.and(better));
        }
        out
    }

    /// The sum of the intervals of the terms.
    fn plain_interval(&self, of: &impl Fn(&V) -> Interval, splits: u32) -> Interval {
        let factor = |f: &Factor<V>| match f {
            Factor::Var(v) => of(v),
            Factor::Quotient(a, b) => a.split_interval(of, splits).over(b.split_interval(of, splits)),
            Factor::Max(all) => {
                let each = all.iter().map(|e| e.split_interval(of, splits));
                let (least, most) = (each.clone().map(|i| i.least), each.map(|i| i.most));
                Interval::new(least.max().unwrap_or(0), most.max().unwrap_or(0))
            }
            Factor::Whole(whole) => whole.interval,
        };
        let term = |(factors, n): (&[Factor<V>], i64)| {
            factors.iter().fold(Interval::one(n.into()), |product, f| product.times(factor(f)))
        };
        self.terms().map(term).fold(Interval::one(0), Interval::plus)
    }

    /// The expression with each operand in the place of a maximum that it has `n` times.
    fn over_maximum(&self, factors: &[Factor<V>], n: i64, all: &[SizeExpr<V>]) -> Option<Vec<Self>> {
        let mut rest = self.clone();
        rest.terms.remove(factors);
        all.iter().map(|e| rest.plus(n, e)).collect()
    }

    /// For `rest + times * (a - b * floor(a / b))`, a remainder: `rest`, `times` and `b`, a positive constant.
    fn without_remainder(&self, (a, b): (&Self, &Self), n: i64) -> Option<(Self, i128, i128)> {
        let b = b.known().filter(|b| *b > 0)?;
        let times = (n % b == 0).then(|| n / b)?.checked_neg()?;
        let mut rest = self.clone();
        rest.terms.remove(&vec![Factor::Quotient(a.clone().into(), SizeExpr::constant(b).into())]);
        let rest = rest.plus(times.checked_neg()?, a)?;
        Some((rest, times.into(), b.into()))
    }

    /// The least and the greatest value: of an expression with few combinations of values exact, of others those of
    /// [`SizeExpr::interval`]. `None` where a value is not defined.
    pub fn extremes(&self, of: &impl Fn(&V) -> Interval) -> Option<Interval> {
        let vars: Vec<V> = self.vars().into_iter().collect();
        let count = |v: &V| u64::try_from(of(v).most - of(v).least + 1).ok();
        let points = vars.iter().try_fold(1u64, |n, v| n.checked_mul(count(v)?)).filter(|&n| n <= MOST_POINTS);
        let Some(points) = points else { return Some(self.interval(of)) };
        let mut out: Option<Interval> = None;
        for point in 0..points {
            let mut left = i128::from(point);
            let mut values = Vec::with_capacity(vars.len());
            for v in &vars {
                let range = of(v);
                let size = range.most - range.least + 1;
                values.push(i64::try_from(range.least + left % size).ok()?);
                left /= size;
            }
            let value = |v: &V| vars.binary_search(v).ok().map(|i| values[i]);
            let value = i128::from(self.eval(&value)?);
            out =
                Some(out.map_or(Interval::one(value), |all| Interval::hull([all.least, all.most, value].into_iter())));
        }
        out
    }

    /// Whether it is never less than `other`: `Some(true)` always, `Some(false)` never, `None` where that depends on the variables or
    /// is not known.
    pub fn is_at_least(&self, other: &Self, of: &impl Fn(&V) -> Interval) -> Option<bool> {
        let difference = self.sub(other)?.extremes(of)?;
        match (difference.least >= 0, difference.most < 0) {
            (true, _) => Some(true),
            (_, true) => Some(false),
            _ => None,
        }
    }
}
