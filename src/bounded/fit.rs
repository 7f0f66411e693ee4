//! The formula that a number follows, of its values at some sizes.
use super::extent::Extent;
use super::level::{Level, Seen, of_two};
use indexmap::IndexSet;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Divisors of rounded-down numbers that are looked for, such as strides; quotients of quotients have larger ones.
const DIVISORS: std::ops::RangeInclusive<i64> = 1..=8;

/// At most so many limits are looked for at once in all numbers that are known: each takes up to six points for each of them and each size.
const MOST_LIMITS: usize = 4;
/// At most so many points are looked at for all levels, as the function is lowered at each.
const MOST_CORNERS: usize = 128;

/// Sizes at which a function was looked at. The first point is the base; behind it lie, for each size, points that differ from the
/// base in that size alone, and, for each pair, one that differs in both by one.
#[derive(Debug)]
pub struct Points {
    /// The sizes at each point.
    pub all: Vec<Vec<u64>>,
}

impl Points {
    fn value(&self, values: &[i64], point: &[u64]) -> Option<i64> {
        self.all.iter().position(|p| p == point).map(|i| values[i])
    }
    /// The values of `extent` at the points.
    pub fn values(&self, extent: &Extent) -> Option<Vec<i64>> {
        self.all.iter().map(|p| extent.at(p)).collect()
    }
}

/// Finds formulas of numbers, one after another: those found before are what later ones are looked for in.
pub struct Fit<'a> {
    /// The sizes at which values are looked at.
    pub points: &'a Points,
    /// Others, at which there is a function of which it is not known how it looks there.
    others: Vec<Vec<u64>>,
    /// Formulas of values at the points; `None`: it was looked for and not found.
    known: HashMap<Vec<i64>, Option<Extent>>,
    /// The sizes, and what was found and is no sum of products of them.
    bases: Vec<(Vec<i64>, Extent)>,
    /// By how much the sizes differ, pair by pair.
    differences: Vec<(Vec<i64>, Extent)>,
    /// How many of them were known when [`Fit::again`] was asked last.
    before: usize,
}

impl<'a> Fit<'a> {
    /// Knows the sizes alone; the function is there at `others` too.
    pub fn new(points: &'a Points, others: Vec<Vec<u64>>) -> Fit<'a> {
        let count = points.all.first().map_or(0, Vec::len);
        let seen = |e: Extent| Some((points.values(&e)?, e));
        let bases: Vec<_> = (0..count).map(Extent::var).filter_map(seen).collect();
        let pairs = (0..count).flat_map(|i| (i + 1..count).map(move |j| (i, j)));
        let difference = |(i, j)| Extent::var(i).sub(&Extent::var(j));
        let differences = pairs.filter_map(difference).filter_map(seen).collect();
        Fit { points, others, known: HashMap::new(), before: bases.len(), bases, differences }
    }

    /// The number that has `values` at the points. It is looked for in the sizes of `arrays` first, which are the operands' of the
    /// instruction that has the number.
    pub fn fit(&mut self, values: Vec<i64>, arrays: &[&[Extent]]) -> Option<Extent> {
        let base = *values.first()?;
        if values.iter().all(|&v| v == base) {
            return Some(Extent::constant(base));
        }
        if let Some(known) = self.known.get(&values) {
            return known.clone();
        }
        let found = polynomial(self.points, &values)
            .or_else(|| self.of_arrays(&values, arrays))
            .or_else(|| self.followed().find_map(|(x, of_x)| periodic(self.points, (x, of_x), &values)))
            .or_else(|| self.product(&values))
            .or_else(|| self.levelled(&values))
            .or_else(|| of_two(&values, &self.bases));
        if let Some(extent) = found.as_ref().filter(|e| !e.is_polynomial()) {
            self.bases.push((values.clone(), extent.clone()));
        }
        self.known.insert(values, found.clone());
        found
    }

    /// The size of an array that has `values` at the points. It is never negative.
    pub fn fit_size(&mut self, values: Vec<i64>, arrays: &[&[Extent]]) -> Option<Extent> {
        let found = self.fit(values, arrays)?;
        let is_negative = |point: &Vec<u64>| found.at(point).is_some_and(|n| n < 0);
        if self.others.iter().any(is_negative) { found.maximum(&Extent::constant(0)) } else { Some(found) }
    }

    /// Looks again for what was not found before, if more is known than when it was looked for.
    pub fn again(&mut self) -> bool {
        let more = self.bases.len() > self.before;
        self.before = self.bases.len();
        if more {
            self.known.retain(|_, found| found.is_some());
        }
        more
    }

    /// A number that stays at a level, if enough points lie around where it leaves it.
    fn levelled(&self, values: &[i64]) -> Option<Extent> {
        self.seen(values).surely()
    }

    fn seen<'s>(&'s self, values: &[i64]) -> Seen<'s> {
        Seen::new(self.points, values, self.followed())
    }

    /// What numbers are looked for in.
    fn followed(&self) -> impl Iterator<Item = &(Vec<i64>, Extent)> {
        self.bases.iter().chain(&self.differences)
    }

    /// Points at which more is seen of numbers that were looked for in vain and may stay at a level: around where they leave it, in one
    /// of the `sizes`, whose smallest and largest values are given. What they follow elsewhere may not have been seen; then that may be
    /// any number that is known.
    pub fn corners(&self, sizes: &[(u64, u64)]) -> Vec<Vec<u64>> {
        let missing: BTreeSet<&Vec<i64>> =
            self.known.iter().filter(|(_, found)| found.is_none()).map(|(values, _)| values).collect();
        let seen = missing.iter().flat_map(|values| self.seen(values).likely());
        let limits: BTreeSet<i64> = missing.iter().filter_map(|values| values.iter().max().copied()).collect();
        let limits = limits.into_iter().take(MOST_LIMITS);
        let any =
            limits.flat_map(|at| self.bases.iter().map(move |(_, of)| Level { of: of.clone(), at, is_least: false }));
        let corners = seen.chain(any).flat_map(|level| self.around(&level, sizes));
        corners.collect::<IndexSet<_>>().into_iter().take(MOST_CORNERS).collect()
    }

    /// Points around those at which a number reaches a level, in one of the sizes.
    fn around(&self, level: &Level, sizes: &[(u64, u64)]) -> Vec<Vec<u64>> {
        let base = &self.points.all[0];
        let mut out = Vec::new();
        for (i, &(least, most)) in sizes.iter().enumerate() {
            let with = |n: u64| [&base[..i], &[n], &base[i + 1..]].concat();
            let Some(at) = first_other(|n| level.is_off(&with(n)), least, most) else { continue };
            let around = [at - 1, at, at + 1, at.saturating_sub(2), at + 2, (at - 1) / 2];
            out.extend(around.into_iter().filter(|n| (least..=most).contains(n)).map(with));
        }
        out
    }

    fn holds(&self, extent: &Extent, values: &[i64]) -> bool {
        self.points.all.iter().zip(values).all(|(p, &v)| extent.at(p) == Some(v))
    }

    /// Products of neighbouring axes, sums of the arrays along an axis, and what follows from an axis.
    fn of_arrays(&self, values: &[i64], arrays: &[&[Extent]]) -> Option<Extent> {
        let runs = arrays.iter().flat_map(|dims| (0..dims.len()).map(|first| &dims[first..]));
        let products = runs.flat_map(|dims| {
            dims.iter().scan(Extent::constant(1), |product, e| {
                *product = product.mul(e)?;
                Some(product.clone())
            })
        });
        let rank = arrays.iter().map(|dims| dims.len()).max().unwrap_or(0);
        let sums = (0..rank).map(|axis| {
            let along = arrays.iter().filter_map(|dims| dims.get(axis));
            along.fold(Extent::constant(0), |sum, e| sum.add(e).unwrap_or(sum))
        });
        products.chain(sums).find(|e| self.holds(e, values)).or_else(|| {
            let axes = arrays.iter().flat_map(|dims| dims.iter()).filter(|e| e.varies());
            axes.filter_map(|e| Some((self.points.values(e)?, e.clone())))
                .find_map(|(x, of_x)| periodic(self.points, (&x, &of_x), values))
        })
    }

    /// Some times the product of two numbers that are known, and of a size.
    fn product(&self, values: &[i64]) -> Option<Extent> {
        let sizes = self.points.all[0].len();
        let one = (vec![1; values.len()], Extent::constant(1));
        for (i, (x, of_x)) in self.bases.iter().enumerate() {
            for (y, of_y) in &self.bases[i..] {
                for (z, of_z) in std::iter::once(&one).chain(&self.bases[..sizes.min(self.bases.len())]) {
                    let at = |i: usize| x[i].checked_mul(y[i])?.checked_mul(z[i]);
                    let times = at(0).filter(|&all| all != 0 && values[0] % all == 0).map(|all| values[0] / all);
                    let Some(times) = times.filter(|&t| t != 0) else { continue };
                    if (0..values.len()).all(|i| at(i).and_then(|v| v.checked_mul(times)) == Some(values[i])) {
                        return of_x.mul(of_y)?.mul(of_z)?.scale(times);
                    }
                }
            }
        }
        None
    }
}

/// The first number beyond `least` of which something else holds than of `least`, and holds of all up to `most`; `None` where the same
/// holds of both ends.
fn first_other(holds: impl Fn(u64) -> Option<bool>, least: u64, most: u64) -> Option<u64> {
    let first = holds(least)?;
    if holds(most)? == first {
        return None;
    }
    let (mut low, mut high) = (least, most);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        *if holds(middle)? == first { &mut low } else { &mut high } = middle;
    }
    Some(high)
}

/// Sums of products of at most two sizes.
pub fn polynomial(points: &Points, values: &[i64]) -> Option<Extent> {
    let base = &points.all[0];
    let less = |of: &[usize]| {
        let mut point = base.clone();
        for &s in of {
            point[s] = point[s].checked_sub(1)?;
        }
        points.value(values, &point)
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
    for (i, &slope) in slopes.iter().enumerate() {
        constant = constant.checked_sub(slope.checked_mul(i64::try_from(base[i]).ok()?)?)?;
        terms.push((slope, vec![i]));
    }
    terms.push((constant, Vec::new()));
    let product = |sizes: &[usize]| sizes.iter().try_fold(Extent::constant(1), |all, &s| all.mul(&Extent::var(s)));
    let extent = terms.iter().try_fold(Extent::default(), |sum, (n, sizes)| sum.plus(*n, &product(sizes)?))?;
    (points.values(&extent)? == values).then_some(extent)
}

/// A number that grows as another does, step by step in turns of a few: `3·x + 1`, `⌊(x + 1) / 2⌋`, `4·⌊(x + 3) / 4⌋ - x`.
pub fn periodic(points: &Points, (x, of_x): (&[i64], &Extent), values: &[i64]) -> Option<Extent> {
    let mut at: BTreeMap<i64, i64> = BTreeMap::new();
    for (&x, &value) in x.iter().zip(values) {
        if *at.entry(x).or_insert(value) != value {
            return None;
        }
    }
    DIVISORS.filter_map(|turn| in_turns(&at, of_x, turn)).find(|e| points.values(e).is_some_and(|v| v == values))
}

/// The number that is `at[x]` for each `x`, if it grows by as much at each `x` of the same remainder by `turn`.
fn in_turns(at: &BTreeMap<i64, i64>, of_x: &Extent, turn: i64) -> Option<Extent> {
    let mut steps: BTreeMap<i64, i64> = BTreeMap::new();
    for ((x, value), (next, more)) in at.iter().zip(at.iter().skip(1)) {
        let step = more.checked_sub(*value)?;
        if *next == x + 1 && *steps.entry(x.rem_euclid(turn)).or_insert(step) != step {
            return None;
        }
    }
    if steps.len() as i64 != turn {
        return None;
    }
    let count = |step: i64| steps.values().filter(|s| **s == step).count();
    let usual = steps.values().copied().max_by_key(|&s| (count(s), -s.saturating_abs(), s))?;
    let (&x, &value) = at.first_key_value()?;
    let mut extent = of_x.scale(usual)?;
    let mut there = usual.checked_mul(x)?;
    for (remainder, step) in steps {
        let (more, times) = (turn - 1 - remainder, step.checked_sub(usual)?);
        if times != 0 {
            let part = of_x.offset_by(more)?.floor_div_by(turn)?;
            extent = extent.plus(times, &part)?;
            there = there.checked_add(x.checked_add(more)?.div_euclid(turn).checked_mul(times)?)?;
        }
    }
    extent.offset_by(value.checked_sub(there)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_of_some_of_three_sizes_are_found() {
        let points = points(3);
        let values: Vec<i64> = points.all.iter().map(|p| (3 * p[0] * p[1] + p[2]) as i64).collect();
        let extent = Fit::new(&points, Vec::new()).fit(values, &[]).expect("it is of a form that is known");
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

    type Formula = dyn Fn(i64, i64) -> i64;

    fn is_found(fit: &mut Fit, formula: &Formula, arrays: &[&[Extent]]) -> Extent {
        let values = fit.points.all.iter().map(|p| formula(p[0] as i64, p[1] as i64)).collect();
        let extent = fit.fit(values, arrays).expect("it is of a form that is known");
        for n in 1..40 {
            for m in 1..40 {
                assert_eq!(extent.at(&[n, m]), Some(formula(n as i64, m as i64)), "{extent:?} at {n}, {m}");
            }
        }
        extent
    }

    #[test]
    fn numbers_are_found_again() {
        let points = points(2);
        for formula in [
            &(|_: i64, _: i64| 7i64) as &Formula,
            &|n, _| n,
            &|n, m| 3 * n * m - 2 * m + 5,
            &|n, _| (n + 1) / 2,
            &|_, m| (3 * m + 2) / 4,
            &|n, _| (n + 3) / 4 * 4 - n,
            &|n, _| 2 * ((n - 1) / 2) + 1,
            &|n, _| n % 3,
            &|n, m| n * (m + 1),
            &|n, m| 3 * n * n - 2 * n * m + m + 4,
            &|n, m| (n - m).div_euclid(2) + 3,
        ] {
            is_found(&mut Fit::new(&points, Vec::new()), formula, &[]);
        }
        let values = |f: &Formula| points.all.iter().map(|p| f(p[0] as i64, p[1] as i64)).collect();
        assert_eq!(Fit::new(&points, Vec::new()).fit(values(&|n, m| 1 << (n - m).abs()), &[]), None);
    }

    #[test]
    fn numbers_up_to_a_limit_are_found_where_points_lie_around_it() {
        let mut points = points(2);
        let limited = |points: &Points| points.all.iter().map(|p| 2 * p[0].min(7) as i64).collect::<Vec<i64>>();
        let lesser = |points: &Points| points.all.iter().map(|p| p[0].min(7) as i64).collect::<Vec<i64>>();
        let mut fit = Fit::new(&points, Vec::new());
        assert_eq!(fit.fit(lesser(&points), &[]), None);
        let corners = fit.corners(&[(0, 20), (0, 20)]);
        assert!(corners.contains(&vec![6, 20]) && corners.contains(&vec![8, 20]), "{corners:?}");
        points.all.extend(corners);
        let mut fit = Fit::new(&points, Vec::new());
        assert_eq!(fit.fit(lesser(&points), &[]), Extent::var(0).minimum(&Extent::constant(7)));
        let twice = fit.fit(limited(&points), &[]).expect("it follows from the other");
        assert_eq!([3, 7, 20].map(|n| twice.at(&[n, 1])), [Some(6), Some(14), Some(14)]);
    }

    #[test]
    fn the_lesser_of_two_numbers_is_found() {
        let points = points(2);
        for formula in [&(|n: i64, m: i64| n.min(m)) as &Formula, &|n, m| n.max(m), &|n, m| (n - m).max(0) / 2] {
            is_found(&mut Fit::new(&points, Vec::new()), formula, &[]);
        }
    }

    #[test]
    fn a_size_that_is_cut_off_early_is_found() {
        for formula in [&(|n: i64, _: i64| n.min(2)) as &Formula, &|n, _| n.min(3)] {
            let mut points = points(2);
            points.all.extend([1, 2, 3, 4].map(|n| vec![n, 20]));
            is_found(&mut Fit::new(&points, Vec::new()), formula, &[]);
        }
    }

    #[test]
    fn numbers_that_stay_at_a_level_are_found_as_more_is_seen_around_it() {
        let formulas: [&Formula; 5] = [
            &|n, _| (n - 2).max(0),
            &|n, _| (3 * n - 7).max(0),
            &|n, _| (8 - n).max(0),
            &|n, m| (n - m).max(-12),
            &|n, _| (n - 2).clamp(0, 7),
        ];
        for formula in formulas {
            let mut points = points(2);
            points.all.extend([vec![1, 20], vec![2, 20], vec![20, 1], vec![20, 2]]);
            let values = |points: &Points| points.all.iter().map(|p| formula(p[0] as i64, p[1] as i64)).collect();
            for _ in 0..3 {
                let mut fit = Fit::new(&points, Vec::new());
                if fit.fit(values(&points), &[]).is_some() {
                    break;
                }
                let corners: Vec<_> = fit.corners(&[(1, 40), (1, 40)]);
                points.all.extend(corners);
            }
            is_found(&mut Fit::new(&points, Vec::new()), formula, &[]);
        }
    }

    #[test]
    fn sizes_are_not_negative_where_the_function_is_there() {
        let points = points(1);
        let values: Vec<i64> = points.all.iter().map(|p| (p[0] as i64 - 2) / 2).collect();
        let of =
            |others| Fit::new(&points, others).fit_size(values.clone(), &[]).expect("it is of a form that is known");
        assert_eq!(
            [of(vec![]).at(&[1]), of(vec![vec![1]]).at(&[1]), of(vec![vec![1]]).at(&[9])],
            [Some(-1), Some(0), Some(3)]
        );
    }

    #[test]
    fn numbers_are_found_in_numbers_that_were_found() {
        let points = points(2);
        let mut fit = Fit::new(&points, Vec::new());
        let half = is_found(&mut fit, &|n, _| (n + 1) / 2, &[]);
        let quarter = is_found(&mut fit, &|n, _| ((n + 1) / 2 + 1) / 2, &[&[half]]);
        assert_eq!(quarter.period(), 4);
        is_found(&mut fit, &|_, m| (m + 5) / 3, &[]);
        is_found(&mut fit, &|n, m| ((n + 1) / 2 + 1) / 2 * ((m + 5) / 3) * 5, &[]);
        is_found(&mut fit, &|n, m| n * ((n + 1) / 2) * ((m + 5) / 3), &[]);
    }
}
