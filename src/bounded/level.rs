//! Numbers that follow a formula up to a level, or down to one, and stay there: `min(n, 100)`, `max(n - 2, 0)`, and both at once.
use super::extent::Extent;
use super::fit::{Points, periodic, polynomial};

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
    pub fn extent(&self) -> Extent {
        let of = self.of.clone();
        if self.is_least { of.at_least(self.at) } else { of.at_most(self.at) }
    }
    /// Whether the number is away from the level at these sizes; `None` where that is beyond 63 bits.
    pub fn is_off(&self, sizes: &[u64]) -> Option<bool> {
        self.of.at(sizes).map(|n| if self.is_least { n > self.at } else { n < self.at })
    }
}

/// What was seen of a number, and of those that it may follow from.
pub struct Seen<'a> {
    points: Points,
    values: Vec<i64>,
    bases: Vec<(Vec<i64>, &'a Extent)>,
}

impl<'a> Seen<'a> {
    /// The values of a number at the points, and those of `bases`.
    pub fn new(points: &Points, values: &[i64], bases: &'a [(Vec<i64>, Extent)]) -> Seen<'a> {
        let bases = bases.iter().map(|(x, of_x)| (x.clone(), of_x)).collect();
        Seen { points: Points { all: points.all.clone() }, values: values.to_vec(), bases }
    }

    /// The number, where it surely stays at a level, or at one on either side.
    pub fn surely(&self) -> Option<Extent> {
        let sure = |level: &Level| self.is_beside(level.at);
        let one = self.levels().find(&sure);
        let (least, most) = (self.values.iter().min()?, self.values.iter().max()?);
        let two = || {
            let inner = |&at: &i64| {
                let rest = self.off(at);
                let inner = rest.levels().find(|level| rest.is_beside(level.at))?;
                self.levels_of(at, [inner.extent()].into_iter()).find(&sure)
            };
            [least, most].into_iter().find_map(inner)
        };
        one.or_else(two).map(|level| level.extent())
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
            let extent = level.extent();
            let holds = |e: &Extent| self.points.all.iter().zip(&self.values).all(|(p, &v)| e.at(p) == Some(v));
            holds(&extent) && !holds(&level.of)
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
            return Vec::new();
        }
        let of_bases = self.bases.iter().filter_map(|(x, of_x)| periodic(&self.points, (x, of_x), &self.values));
        polynomial(&self.points, &self.values).into_iter().chain(of_bases).collect()
    }

    /// Whether a point at which the number is `at` was seen beside one at which it is not, and enough of these.
    fn is_beside(&self, at: i64) -> bool {
        let (on, off): (Vec<_>, Vec<_>) = self.points.all.iter().zip(&self.values).partition(|(_, v)| **v == at);
        let apart = |p: &[u64], q: &[u64]| p.iter().zip(q).map(|(a, b)| a.abs_diff(*b)).max();
        off.len() >= POINTS_BESIDE && on.iter().any(|(p, _)| off.iter().any(|(q, _)| apart(p, q) == Some(1)))
    }
}
