//! Ranges of expressions, by interval arithmetic and by evaluation at all points.
use super::{Factor, SizeExpr};

/// Upper bound on nested case distinctions over the operands of maxima, and on nested remainders, in the analysis of a range.
const MAX_SPLITS: u32 = 3;
/// Upper bound on the combinations of values for which an expression is evaluated to find its exact range.
const MAX_POINTS: u64 = 1 << 13;

/// Range of integers from `least` to `most`, both included. Ends are clamped to ±[`Interval::FAR`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// Lower end, included.
    pub least: i128,
    /// Upper end, included.
    pub most: i128,
}

impl Interval {
    /// Stands for infinity: beyond every 64-bit integer, and far from overflow in 128 bits.
    pub const FAR: i128 = 1 << 100;
    /// Every integer.
    pub const ALL: Interval = Interval { least: -Interval::FAR, most: Interval::FAR };

    /// Range from `least` to `most`, both included.
    pub fn new(least: i128, most: i128) -> Interval {
        let held = |end: i128| end.clamp(-Interval::FAR, Interval::FAR);
        Interval { least: held(least), most: held(most) }
    }
    /// Function from the index of a variable to its range; every integer for variables that `ranges` does not list.
    pub fn lookup_by_index(ranges: &[Interval]) -> impl Fn(&usize) -> Interval {
        |&number| ranges.get(number).copied().unwrap_or(Interval::ALL)
    }
    /// Range of a single integer.
    pub fn single(value: i128) -> Interval {
        Interval::new(value, value)
    }
    /// Intersection of two ranges.
    fn intersection(self, other: Interval) -> Interval {
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
    /// Range of quotients rounded down; every integer if the divisor may be 0 or negative.
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

/// Product of two ends of ranges, clamped to ±[`Interval::FAR`].
fn product(a: i128, b: i128) -> i128 {
    if a == 0 || b == 0 {
        return 0;
    }
    let limit = if (a < 0) == (b < 0) { Interval::FAR } else { -Interval::FAR };
    a.checked_mul(b).unwrap_or(limit)
}

/// `floor(a / b)`; `None` for a divisor of 0 and on overflow of 64 bits.
pub(super) fn floor_div(a: i64, b: i64) -> Option<i64> {
    let quotient = a.checked_div(b)?;
    if a % b != 0 && (a < 0) != (b < 0) { quotient.checked_sub(1) } else { Some(quotient) }
}

impl<V: Ord + Clone> SizeExpr<V> {
    /// Range that includes all values of the expression, by interval arithmetic; `of` returns the range of each variable.
    pub fn interval(&self, of: &impl Fn(&V) -> Interval) -> Interval {
        self.interval_with_splits(of, MAX_SPLITS)
    }

    fn interval_with_splits(&self, of: &impl Fn(&V) -> Interval, splits: u32) -> Interval {
        let mut out = self.sum_of_term_intervals(of, splits);
        let Some(splits) = splits.checked_sub(1) else { return out };
        for (factors, n) in self.terms() {
            let better = match factors {
                [Factor::Max(all)] => self.maximum_alternatives(factors, n, all).map(|each| {
                    let each = each.iter().map(|e| e.interval_with_splits(of, splits));
                    let (least, most) = (each.clone().map(|i| i.least), each.map(|i| i.most));
                    match n > 0 {
                        true => Interval::new(least.max().unwrap_or(0), most.max().unwrap_or(0)),
                        false => Interval::new(least.min().unwrap_or(0), most.min().unwrap_or(0)),
                    }
                }),
                [Factor::Quotient(a, b)] => self.split_remainder((a, b), n).map(|(rest, times, b)| {
                    rest.interval_with_splits(of, splits).plus(Interval::single(times).times(Interval::new(0, b - 1)))
                }),
                _ => None,
            };
            out = better.map_or(out, |better| out.intersection(better));
        }
        out
    }

    /// Sum of the ranges of the terms.
    fn sum_of_term_intervals(&self, of: &impl Fn(&V) -> Interval, splits: u32) -> Interval {
        let factor = |f: &Factor<V>| match f {
            Factor::Var(v) => of(v),
            Factor::Quotient(a, b) => a.interval_with_splits(of, splits).over(b.interval_with_splits(of, splits)),
            Factor::Max(all) => {
                let each = all.iter().map(|e| e.interval_with_splits(of, splits));
                let (least, most) = (each.clone().map(|i| i.least), each.map(|i| i.most));
                Interval::new(least.max().unwrap_or(0), most.max().unwrap_or(0))
            }
            Factor::Shared(whole) => whole.interval,
        };
        let term = |(factors, n): (&[Factor<V>], i64)| {
            factors.iter().fold(Interval::single(n.into()), |product, f| product.times(factor(f)))
        };
        self.terms().map(term).fold(Interval::single(0), Interval::plus)
    }

    /// Alternatives of an expression with `n` times the maximum of `all`: one for each operand in place of the maximum.
    fn maximum_alternatives(&self, factors: &[Factor<V>], n: i64, all: &[SizeExpr<V>]) -> Option<Vec<Self>> {
        let mut rest = self.clone();
        rest.terms.remove(factors);
        all.iter().map(|e| rest.plus(n, e)).collect()
    }

    /// Recognizes an expression `rest + times * (a - b * floor(a / b))`, that is with the remainder of `a` by a positive constant `b`. Returns
    /// `rest`, `times` and `b`.
    fn split_remainder(&self, (a, b): (&Self, &Self), n: i64) -> Option<(Self, i128, i128)> {
        let b = b.known().filter(|b| *b > 0)?;
        let times = (n % b == 0).then(|| n / b)?.checked_neg()?;
        let mut rest = self.clone();
        rest.terms.remove(&vec![Factor::Quotient(a.clone().into(), SizeExpr::constant(b).into())]);
        let rest = rest.plus(times.checked_neg()?, a)?;
        Some((rest, times.into(), b.into()))
    }

    /// Range of the expression: exact if its variables have few combinations of values, else that of [`SizeExpr::interval`]. `None` where the
    /// expression has no value at some point.
    pub fn extremes(&self, of: &impl Fn(&V) -> Interval) -> Option<Interval> {
        let vars: Vec<V> = self.vars().into_iter().collect();
        let count = |v: &V| u64::try_from(of(v).most - of(v).least + 1).ok();
        let points = vars.iter().try_fold(1u64, |n, v| n.checked_mul(count(v)?)).filter(|&n| n <= MAX_POINTS);
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
            out = Some(
                out.map_or(Interval::single(value), |all| Interval::hull([all.least, all.most, value].into_iter())),
            );
        }
        out
    }

    /// Whether the expression is at least `other`: `Some(true)` always, `Some(false)` never, `None` where that depends on the variables or is not
    /// known.
    pub fn is_at_least(&self, other: &Self, of: &impl Fn(&V) -> Interval) -> Option<bool> {
        let difference = self.sub(other)?.extremes(of)?;
        match (difference.least >= 0, difference.most < 0) {
            (true, _) => Some(true),
            (_, true) => Some(false),
            _ => None,
        }
    }
}
