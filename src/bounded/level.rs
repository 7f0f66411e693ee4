//! Numbers that follow a formula up to a level, or down to one, and stay there: `min(n, 100)`, `max(n - 2, 0)`, and both at once; and
//! the lesser or the greater of two numbers.
use super::extent::Extent;
use super::fit::{Points, periodic, polynomial};
use std::cmp::Ordering;

/// That a number stays at a level is believed if it was seen at so many points where it does not, one of them beside one where it does.
const POINTS_BESIDE: usize = 3;

/// A number that is `of`, but no less than `at` or no more.
pub struct Level {
    /// What it follows away from the level.
    pub of: Extent,
    /// The level.
    pub at: i64,
    /// Whether it is the least that the number is, not the most.
    pub is_least: bool,
}

impl Level {
    /// The number.
    pub fn extent(&self) -> Option<Extent> {
        let at = Extent::constant(self.at);
        if self.is_least { self.of.maximum(&at) } else { self.of.minimum(&at) }
    }
    /// Whether the number is away from the level at these sizes; `None` where that is beyond 63 bits.
    pub fn is_off(&self, sizes: &[u64]) -> Option<bool> {
        self.of.at(sizes).map(|n| if self.is_least { n > self.at } else { n < self.at })
    }
}

/// The lesser or the greater of two of `bases`, if each of them was seen to be the lesser one often enough.
pub fn of_two(values: &[i64], bases: &[(Vec<i64>, Extent)]) -> Option<Extent> {
    for (i, (x, of_x)) in bases.iter().enumerate() {
        for (y, of_y) in &bases[i + 1..] {
            let seen = |order: Ordering| x.iter().zip(y).filter(|(x, y)| x.cmp(y) == order).count();
            if seen(Ordering::Less).min(seen(Ordering::Greater)) < POINTS_BESIDE {
                continue;
            }
            let is = |of: &dyn Fn(i64, i64) -> i64| x.iter().zip(y).zip(values).all(|((&x, &y), &v)| of(x, y) == v);
            if is(&|x, y| x.min(y)) {
                return of_x.minimum(of_y);
            }
            if is(&|x, y| x.max(y)) {
                return of_x.maximum(of_y);
            }
        }
    }
    None
}

/// What was seen of a number, and of those that it may follow from.
pub struct Seen<'a> {
    points: Points,
    values: Vec<i64>,
    bases: Vec<(Vec<i64>, &'a Extent)>,
}

impl<'a> Seen<'a> {
    /// The values of a number at the points, and those of `bases`.
    pub fn new(points: &Points, values: &[i64], bases: impl Iterator<Item = &'a (Vec<i64>, Extent)>) -> Seen<'a> {
        let bases = bases.map(|(x, of_x)| (x.clone(), of_x)).collect();
        Seen { points: Points { all: points.all.clone() }, values: values.to_vec(), bases }
    }

    /// The number, where it surely stays at a level, or at one on either side.
    pub fn surely(&self) -> Option<Extent> {
        let sure = |level: &Level| self.is_beside(level);
        let one = self.levels().find(&sure);
        let (least, most) = (self.values.iter().min()?, self.values.iter().max()?);
        let two = || {
            let inner = |&at: &i64| {
                let rest = self.off(at);
                let inner = rest.levels().find(|level| rest.is_beside(level))?;
                self.levels_of(at, inner.extent().into_iter()).find(&sure)
            };
            [least, most].into_iter().find_map(inner)
        };
        one.or_else(two).and_then(|level| level.extent())
    }

    /// The levels that the number may have; where it has one, it may have the other too.
    pub fn likely(&self) -> Vec<Level> {
        let ends = [self.values.iter().min(), self.values.iter().max()];
        let inner = ends.into_iter().flatten().flat_map(|&at| self.off(at).levels().collect::<Vec<_>>());
        self.levels().chain(inner).collect()
    }

    /// The levels, the least and the most, that what was seen does not speak against.
    fn levels(&self) -> impl Iterator<Item = Level> {
        let ends = [self.values.iter().min(), self.values.iter().max()];
        ends.into_iter().flatten().flat_map(|&at| {
            let formulas = self.off(at).formulas();
            self.levels_of(at, formulas.into_iter())
        })
    }

    /// Those at `at` of numbers that follow these formulas elsewhere, and would be beyond it somewhere.
    fn levels_of(&self, at: i64, formulas: impl Iterator<Item = Extent>) -> impl Iterator<Item = Level> {
        let is_least = self.values.iter().min() == Some(&at);
        let levels = formulas.map(move |of| Level { of, at, is_least });
        levels.filter(|level| {
            let holds = |e: &Extent| self.points.all.iter().zip(&self.values).all(|(p, &v)| e.at(p) == Some(v));
            level.extent().is_some_and(|e| holds(&e)) && !holds(&level.of)
        })
    }

    /// The points at which the number is not `at`.
    fn off(&self, at: i64) -> Seen<'a> {
        let kept: Vec<usize> = (0..self.values.len()).filter(|&i| self.values[i] != at).collect();
        let cut = |x: &[i64]| kept.iter().map(|&i| x[i]).collect::<Vec<i64>>();
        Seen {
            points: Points { all: kept.iter().map(|&i| self.points.all[i].clone()).collect() },
            values: cut(&self.values),
            bases: self.bases.iter().map(|(x, of_x)| (cut(x), *of_x)).collect(),
        }
    }

    fn formulas(&self) -> Vec<Extent> {
        if self.values.len() < 2 {
            let is_size = |(x, of_x): &&(Vec<i64>, &Extent)| of_x.size().is_some() && *x == self.values;
            return self.bases.iter().filter(is_size).map(|(_, of_x)| (*of_x).clone()).collect();
        }
        let of_bases = self.bases.iter().filter_map(|(x, of_x)| periodic(&self.points, (x, of_x), &self.values));
        polynomial(&self.points, &self.values).into_iter().chain(of_bases).collect()
    }

    /// Whether a point at which the number is at its level was seen beside one at which it is not, and enough of these: of a size that is
    /// cut off at 2 or 3 there are no more than one or two.
    fn is_beside(&self, level: &Level) -> bool {
        let (on, off): (Vec<_>, Vec<_>) = self.points.all.iter().zip(&self.values).partition(|(_, v)| **v == level.at);
        let apart = |p: &[u64], q: &[u64]| p.iter().zip(q).map(|(a, b)| a.abs_diff(*b)).max();
        let is_cut = level.of.size().is_some() && !level.is_least && level.at <= POINTS_BESIDE as i64;
        let enough = if is_cut { 1 } else { POINTS_BESIDE };
        off.len() >= enough && on.iter().any(|(p, _)| off.iter().any(|(q, _)| apart(p, q) == Some(1)))
    }
}
