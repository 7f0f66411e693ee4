//! A number that follows from the sizes of a call: `12·n`, `n·m + 3`, `⌊(n + 1) / 2⌋`.

/// Divisors of rounded-down extents that are looked for, such as strides.
const DIVISORS: std::ops::RangeInclusive<i64> = 2..=8;

/// Factors with the numbers of the sizes that they go with; at most one has none, and that is the constant.
pub type Terms = Vec<(i64, Vec<usize>)>;

/// `factor · ⌊(sum of terms) / divisor⌋ + (sum of others)`, a term being a factor times a product of sizes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Extent {
    /// What is divided.
    pub terms: Terms,
    /// 1 or more.
    pub divisor: i64,
    /// How many times the quotient; 1 where nothing is divided.
    pub factor: i64,
    /// What is added to that; nothing where nothing is divided.
    pub others: Terms,
}

impl Extent {
    /// The number that is always the same.
    pub fn constant(value: i64) -> Extent {
        Extent::sum(vec![(value, Vec::new())])
    }
    /// A sum of terms.
    fn sum(terms: Terms) -> Extent {
        Extent { terms, divisor: 1, factor: 1, others: Vec::new() }
    }
    /// Its value where it does not depend on any size.
    pub fn fixed(&self) -> Option<i64> {
        if !self.others.is_empty() || self.factor != 1 {
            return None;
        }
        match &self.terms[..] {
            [] => Some(0),
            [(value, sizes)] if sizes.is_empty() => Some(value.div_euclid(self.divisor)),
            _ => None,
        }
    }
    /// Whether it depends on a size.
    pub fn varies(&self) -> bool {
        self.fixed().is_none()
    }
    /// The number of the size that it is.
    pub fn size(&self) -> Option<usize> {
        match &self.terms[..] {
            [(1, sizes)] if self.is_sum() && sizes.len() == 1 => Some(sizes[0]),
            _ => None,
        }
    }
    /// How many times a size it is; `None` where it is anything else.
    pub fn multiple(&self) -> Option<i64> {
        match &self.terms[..] {
            [(times, sizes)] if self.is_sum() && sizes.len() == 1 => Some(*times),
            _ => None,
        }
    }
    fn is_sum(&self) -> bool {
        self.divisor == 1 && self.factor == 1 && self.others.is_empty()
    }
    /// Its value for these sizes; `None` where it is beyond 63 bits.
    pub fn at(&self, sizes: &[u64]) -> Option<i64> {
        let sum = |terms: &Terms| {
            terms.iter().try_fold(0i64, |sum, (factor, of)| {
                let product =
                    of.iter().try_fold(*factor, |p, &s| p.checked_mul(i64::try_from(*sizes.get(s)?).ok()?))?;
                sum.checked_add(product)
            })
        };
        sum(&self.terms)?.div_euclid(self.divisor).checked_mul(self.factor)?.checked_add(sum(&self.others)?)
    }
}

/// Sizes at which a function was looked at. The first point is the base; behind it lie, for each size, points that differ from the
/// base in that size alone, and, for each pair, one that differs in both by one.
#[derive(Debug)]
pub struct Points {
    /// The sizes at each point.
    pub all: Vec<Vec<u64>>,
}

impl Points {
    /// The extent that has `values` at the points.
    pub fn fit(&self, values: &[i64]) -> Option<Extent> {
        let base = *values.first()?;
        if values.iter().all(|&v| v == base) {
            return Some(Extent::constant(base));
        }
        self.polynomial(values).or_else(|| self.rounded(values)).or_else(|| self.filled(values))
    }

    fn value(&self, values: &[i64], point: &[u64]) -> Option<i64> {
        self.all.iter().position(|p| p == point).map(|i| values[i])
    }

    fn holds(&self, extent: &Extent, values: &[i64]) -> bool {
        self.all.iter().zip(values).all(|(p, &v)| extent.at(p) == Some(v))
    }

    /// Sums of products of at most two sizes.
    fn polynomial(&self, values: &[i64]) -> Option<Extent> {
        let base = &self.all[0];
        let less = |of: &[usize]| {
            let mut point = base.clone();
            for &s in of {
                point[s] = point[s].checked_sub(1)?;
            }
            self.value(values, &point)
        };
        let n = base.len();
        let at_base = values[0];
        let mut terms = Vec::new();
        let mut slopes: Vec<i64> = Vec::with_capacity(n);
        for i in 0..n {
            slopes.push(at_base.checked_sub(less(&[i]).unwrap_or(at_base))?);
        }
        let (steps, mut constant) = (slopes.clone(), at_base);
        for i in 0..n {
            // twice the factor of the square is what slopes differ by
            let Some(twice) = less(&[i, i]) else { continue };
            let bend = twice.checked_sub(at_base)?.checked_add(steps[i].checked_mul(2)?)?;
            let (factor, at_i) = (bend / 2, i64::try_from(base[i]).ok()?);
            if factor == 0 || bend % 2 != 0 {
                continue;
            }
            slopes[i] = slopes[i].checked_sub(factor.checked_mul(at_i.checked_mul(2)?.checked_sub(1)?)?)?;
            constant = constant.checked_sub(factor.checked_mul(at_i.checked_mul(at_i)?)?)?;
            terms.push((factor, vec![i, i]));
        }
        for i in 0..n {
            for j in i + 1..n {
                let Some(both) = less(&[i, j]) else { continue };
                let factor = both.checked_sub(at_base)?.checked_add(steps[i])?.checked_add(steps[j])?;
                if factor == 0 {
                    continue;
                }
                let (at_i, at_j) = (i64::try_from(base[i]).ok()?, i64::try_from(base[j]).ok()?);
                slopes[i] = slopes[i].checked_sub(factor.checked_mul(at_j)?)?;
                slopes[j] = slopes[j].checked_sub(factor.checked_mul(at_i)?)?;
                constant = constant.checked_sub(factor.checked_mul(at_i)?.checked_mul(at_j)?)?;
                terms.push((factor, vec![i, j]));
            }
        }
        for (i, &slope) in slopes.iter().enumerate().filter(|(_, slope)| **slope != 0) {
            constant = constant.checked_sub(slope.checked_mul(i64::try_from(base[i]).ok()?)?)?;
            terms.push((slope, vec![i]));
        }
        if constant != 0 {
            terms.push((constant, Vec::new()));
        }
        let extent = Extent::sum(terms);
        self.holds(&extent, values).then_some(extent)
    }

    /// A line in one size, divided and rounded down.
    fn rounded(&self, values: &[i64]) -> Option<Extent> {
        let base = &self.all[0];
        for size in 0..base.len() {
            for divisor in DIVISORS {
                let mut point = base.clone();
                let Some(before) = point[size].checked_sub(divisor.unsigned_abs()) else { continue };
                point[size] = before;
                let Some(lower) = self.value(values, &point) else { continue };
                let slope = values[0].checked_sub(lower)?;
                let first = values[0].checked_mul(divisor)?.checked_sub(slope.checked_mul(base[size] as i64)?)?;
                for constant in first..first.checked_add(divisor)? {
                    let terms = vec![(slope, vec![size]), (constant, Vec::new())];
                    let extent = Extent { terms, divisor, factor: 1, others: Vec::new() };
                    if slope != 0 && self.holds(&extent, values) {
                        return Some(extent);
                    }
                }
            }
        }
        None
    }

    /// Multiples of a line in one size that is divided and rounded down, and the size itself: sizes filled up to whole blocks, and how
    /// much that takes.
    fn filled(&self, values: &[i64]) -> Option<Extent> {
        for size in 0..self.all[0].len() {
            for own in [0, 1, -1] {
                let rest = |(p, &v): (&Vec<u64>, &i64)| v.checked_sub(own * i64::try_from(p[size]).ok()?);
                let rest: Vec<i64> = self.all.iter().zip(values).map(rest).collect::<Option<_>>()?;
                for factor in DIVISORS.chain([1]) {
                    let more = rest[0].rem_euclid(factor);
                    if rest.iter().any(|v| v.rem_euclid(factor) != more) {
                        continue;
                    }
                    let parts: Vec<i64> = rest.iter().map(|v| v.div_euclid(factor)).collect();
                    let Some(line) = self.rounded(&parts) else { continue };
                    let others = [(own, vec![size]), (more, Vec::new())].into_iter().filter(|(n, _)| *n != 0).collect();
                    let extent = Extent { factor, others, ..line };
                    if self.holds(&extent, values) {
                        return Some(extent);
                    }
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_of_some_of_three_sizes_are_found() {
        let points = points(3);
        let values: Vec<i64> = points.all.iter().map(|p| (3 * p[0] * p[1] + p[2]) as i64).collect();
        let extent = points.fit(&values).expect("it is of a form that is known");
        assert_eq!(extent.at(&[4, 5, 6]), Some(66));
    }

    fn points(sizes: usize) -> Points {
        let base = vec![20; sizes];
        let mut all = vec![base.clone()];
        for s in 0..sizes {
            for less in 1..=9 {
                let mut p = base.clone();
                p[s] -= less;
                all.push(p);
            }
            for other in s + 1..sizes {
                let mut p = base.clone();
                p[s] -= 1;
                p[other] -= 1;
                all.push(p);
            }
        }
        all.push(vec![3; sizes]);
        Points { all }
    }

    #[test]
    fn numbers_are_found_again() {
        let points = points(2);
        let told = |f: &dyn Fn(i64, i64) -> i64| {
            let values: Vec<i64> = points.all.iter().map(|p| f(p[0] as i64, p[1] as i64)).collect();
            points.fit(&values)
        };
        for f in [
            &(|_: i64, _: i64| 7i64) as &dyn Fn(i64, i64) -> i64,
            &|n, _| n,
            &|n, m| 3 * n * m - 2 * m + 5,
            &|n, _| (n + 1) / 2,
            &|_, m| (3 * m + 2) / 4,
            &|n, _| (n + 3) / 4 * 4 - n,
            &|n, _| 2 * ((n - 1) / 2) + 1,
            &|n, m| n * (m + 1),
            &|n, m| 3 * n * n - 2 * n * m + m + 4,
        ] {
            let extent = told(f).expect("it is of a form that is known");
            for n in 1..40 {
                for m in 1..40 {
                    assert_eq!(extent.at(&[n, m]), Some(f(n as i64, m as i64)), "{extent:?} at {n}, {m}");
                }
            }
        }
        assert_eq!(told(&|n, _| n * n * n), None);
        assert_eq!(told(&|n, _| n.max(12)), None);
    }
}
