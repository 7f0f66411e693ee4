//! The sizes at which a function is looked at, and what it is there.
use super::degenerate::equal_at;
use super::extent::Extent;
use super::fit::{Fit, Points};
use super::instance::{Departure, Form, alike, forms};
use super::refusal;
use crate::diag::{Error, Result};
use crate::hlo::Module;
use crate::lower::{Exact, Lowered};
use crate::tensor::Size;

/// So many sizes below the bound are looked at one by one: numbers that are rounded down once are recognised up to this divisor.
const STEPS: u64 = 8;
/// Where numbers are rounded down more than once, sizes are also looked at in steps of powers of 2 up to this one. An axis that a step
/// makes smaller by one or nothing is seen at `STEPS / 2` sizes or more, one by one.
const LONGEST_STEP: u64 = 64;
/// Distances from the bound that are in no such step, to prove formulas by.
const PROOFS: [u64; 5] = [13, 19, 29, 51, 83];
/// So many points have all sizes apart from one another,
const MIXED: u64 = 8;
/// which take such steps over what they may be.
const STRIDES: [u64; 6] = [5, 7, 11, 3, 13, 17];
/// So often more is looked at of numbers that stay at a level: what is seen around one may show where another is.
const ROUNDS: usize = 3;
/// At most so many bounds a function is compiled for.
const MOST_RUNGS: usize = 8;

/// A function at several sizes: those that the caller says, and behind them those that values say.
pub struct Instances {
    /// The sizes that the caller says, from the smallest on for which the function is sound.
    pub given: Vec<Size>,
    /// How many sizes values say.
    pub found: usize,
    /// Both kinds.
    sizes: Vec<Size>,
    /// The sizes that were looked at; the base first.
    pub points: Points,
    all: Vec<Lowered>,
    /// Bounds of the sizes that the caller says, largest first, with the function for exactly them and the most that values can say.
    pub bounds: Vec<(Vec<u64>, Lowered)>,
    /// What seems to be another function, and why.
    others: Vec<(Vec<u64>, Lowered, Departure)>,
}

impl Instances {
    /// Lowers a function at its bounds and below; `with_halves` also at halves of these, for which it is compiled too. Errors: those of
    /// lowering; `Code::OpenSize` where it is not one function.
    pub fn new(given: &[Size], exact: &Exact, with_halves: bool) -> Result<Instances> {
        let most: Vec<u64> = given.iter().map(|s| s.most).collect();
        let largest = (exact.0)(&most)?;
        let found = largest.found.len();
        let mut sizes = sound(given, exact);
        let given = sizes.clone();
        let size =
            |&(_, most): &(u64, u64)| Size { name: String::new(), least: 0, most, is_result: true, is_check: false };
        sizes.extend(largest.found.iter().map(size));
        // so that a size that values say may stay the same while others get smaller, if there is anything to do there
        let middle = |s: &Size| s.most.div_ceil(2).max(s.most.min(STEPS + 1));
        let base: Vec<u64> = sizes.iter().map(|s| if s.is_result { middle(s) } else { s.most }).collect();
        let is_sound = found == 0 || (exact.0)(&base).is_ok();
        let base = if is_sound { base } else { sizes.iter().map(|s| s.most).collect() };
        let base = spaced(base, given.len(), exact);
        let (points, given_count) = (Points { all: Vec::new() }, given.len());
        let mut instances =
            Instances { given, found, sizes, points, all: Vec::new(), bounds: Vec::new(), others: Vec::new() };
        let at = |sizes: &[u64]| if sizes == most { Ok(largest.clone()) } else { (exact.0)(sizes) };
        for point in std::iter::once(base.clone()).chain(beside(&instances.sizes, &base)) {
            let said = &point[..given_count];
            match at(&point) {
                Ok(lowered) => instances.add(said, lowered).map(|_| ())?,
                // more elements than there are, or of an empty array: TensorFlow takes no values that say so
                Err(_) if point[said.len()..] != base[said.len()..] => {}
                Err(error) => instances.add_with_room(said, exact, error)?,
            }
        }
        let halves = if with_halves { halves(&instances.given) } else { Vec::new() };
        for bound in std::iter::once(most.clone()).chain(halves) {
            // without sizes that values say some of the points are bounds
            if let Some(known) = instances.points.all.iter().position(|p| *p == bound) {
                let lowered = instances.all[known].clone();
                instances.bounds.push((bound, lowered));
            } else if !instances.others.iter().any(|(p, ..)| *p == bound) {
                let lowered = at(&bound)?;
                if instances.add(&bound, lowered.clone())? {
                    instances.bounds.push((bound, lowered));
                }
            }
        }
        if instances
            .bounds
            .first()
            .is_none_or(|(bound, _)| bound.iter().zip(&instances.given).any(|(&b, s)| b != s.most))
        {
            let what = "it is another function at the bound alone".to_string();
            return Err(refusal(&Departure { node: Default::default(), what }, &instances.given));
        }
        Ok(instances)
    }

    /// Adds an instance, and says whether it is the function.
    fn add(&mut self, given: &[u64], lowered: Lowered) -> Result<bool> {
        let point: Vec<u64> = given.iter().copied().chain(lowered.found.iter().map(|f| f.0)).collect();
        let like = match self.all.first() {
            Some(base) => alike(&base.module, &lowered.module),
            None => Ok(()),
        };
        match like {
            Ok(()) => {
                self.all.push(lowered);
                self.points.all.push(point);
                Ok(true)
            }
            Err(departure) => {
                self.others.push((point, lowered, departure));
                Ok(false)
            }
        }
    }

    /// Looks at sizes of the caller for which there is no function where values say what they do at the base: few rows may not hold as
    /// many elements as another size asks for, unless they are as long as they may be. Errors: `otherwise`, where there is none either.
    fn add_with_room(&mut self, given: &[u64], exact: &Exact, otherwise: Error) -> Result<()> {
        let Some(lowered) = Some((exact.0)(given)).filter(|_| self.found > 0).and_then(Result::ok) else {
            return Err(otherwise);
        };
        let point: Vec<u64> = given.iter().copied().chain(lowered.found.iter().map(|f| f.0)).collect();
        if self.is_known(&point) { Ok(()) } else { self.add(given, lowered).map(|_| ()) }
    }

    /// The smallest value of each size.
    pub fn least(&self) -> impl Iterator<Item = u64> {
        self.sizes.iter().map(|s| s.least)
    }

    /// The function at the first point.
    pub fn base(&self) -> &Lowered {
        &self.all[0]
    }

    /// The sizes that the caller says, by their numbers, at whose smallest value the function is another one. Errors: `Code::OpenSize`
    /// where it is another one at a size that values say.
    pub fn apart(&self, forms: &[Form]) -> Result<Vec<usize>> {
        let mut apart: Vec<usize> = Vec::new();
        let differs = |(point, lowered, _): &&(Vec<u64>, Lowered, Departure)| {
            !equal_at(&self.base().module, forms, point, &lowered.module)
        };
        let mut others: Vec<_> = self.others.iter().filter(differs).collect();
        let smallest = |point: &[u64]| {
            let is_least = |(i, s): (usize, &Size)| (point[i] == s.least && s.least < s.most).then_some(i);
            self.given.iter().enumerate().filter_map(is_least).collect::<Vec<usize>>()
        };
        // what differs at the smallest value of one size alone tells which one it is
        others.sort_by_key(|(point, ..)| smallest(point).len());
        // a list that values leave empty: nothing of its arrays counts, and results have the sizes that they have for others
        let given = self.given.len();
        let is_empty = |point: &[u64]| point[given..].contains(&0);
        let results = result_dims(self.base(), forms);
        others.retain(|(point, lowered, _)| !is_empty(point) || !has_dims(lowered, &results, point));
        for (point, _, departure) in others {
            let sizes = smallest(point);
            match sizes.first() {
                None => return Err(refusal(departure, &self.given)),
                Some(&first) if !sizes.iter().any(|s| apart.contains(s)) => apart.push(first),
                Some(_) => {}
            }
        }
        Ok(apart)
    }

    /// Refuses a function that chose a branch by a size that differs from instance to instance: the choice may be another one for a size
    /// that was not looked at. Errors: `Code::OpenSize` with the node that branches.
    pub fn check_decisions(&self) -> Result<()> {
        let base = &self.base().decisions;
        let first_difference = |other: &Lowered| {
            let there = &other.decisions;
            let at = (0..base.len().max(there.len())).find(|&i| base.get(i) != there.get(i))?;
            base.get(at).or(there.get(at)).cloned()
        };
        match self.all.iter().find_map(first_difference) {
            None => Ok(()),
            Some(decision) => {
                let what =
                    "which branch is taken depends on a size, and the branches can't both be compiled".to_string();
                let node = (decision.node, decision.op);
                Err(refusal(&Departure { node, what }, &self.given))
            }
        }
    }

    /// Each instance with its sizes.
    pub fn each(&self) -> impl Iterator<Item = (&Vec<u64>, &Lowered)> {
        self.points.all.iter().zip(&self.all)
    }

    /// What follows from the sizes, computation by computation. Where numbers are rounded down more than once, or stay at a level,
    /// more sizes are looked at.
    pub fn settled(&mut self, exact: &Exact) -> Result<Vec<Form>> {
        let mut first = self.seen_around_levels(exact);
        let is_told_apart = |forms: &Vec<Form>| forms.iter().all(Form::is_polynomial);
        if self.sizes.len() > 1 && !first.as_ref().is_ok_and(is_told_apart) && self.look_at_mixed(exact) {
            first = self.seen_around_levels(exact);
        }
        if first.as_ref().is_ok_and(|forms| forms.iter().all(|f| f.period() <= STEPS)) {
            return first.map_err(|d| refusal(&d, &self.given));
        }
        let base = self.points.all[0].clone();
        let steps = (1..=LONGEST_STEP.ilog2()).flat_map(|k| (STEPS / 2 + 1..=STEPS).map(move |i| i << k));
        for less in steps.chain(PROOFS) {
            let mut point = base.clone();
            for (n, size) in point.iter_mut().zip(&self.given) {
                *n = n.saturating_sub(less).max(size.least);
            }
            if !self.is_known(&point) {
                let lowered = (exact.0)(&point)?;
                self.add(&point[..self.given.len()], lowered)?;
            }
        }
        self.forms().map_err(|d| refusal(&d, &self.given))
    }

    fn seen_around_levels(&mut self, exact: &Exact) -> Result<Vec<Form>, Departure> {
        let mut forms = self.forms();
        for _ in 0..ROUNDS {
            if forms.is_ok() || !self.look_around_levels(exact) {
                break;
            }
            forms = self.forms();
        }
        forms
    }

    /// Looks at the function where all sizes differ from the base at once, and says whether there was anything to look at: a number that
    /// stays at a level as long as one size is that of the base may follow any other one that has the same bound.
    fn look_at_mixed(&mut self, exact: &Exact) -> bool {
        let before = self.points.all.len();
        for turn in 1..=MIXED {
            let one = |(i, size): (usize, &Size)| {
                let room = size.most - size.least;
                // neither end, where code often is special
                size.least + room.min(1) + turn * STRIDES[i % STRIDES.len()] % room.saturating_sub(1).max(1)
            };
            let point: Vec<u64> = self.sizes.iter().enumerate().map(one).collect();
            let said = &point[..self.given.len()];
            let Ok(lowered) = (exact.0)(&point).or_else(|_| (exact.0)(said)) else { continue };
            let found = lowered.found.iter().map(|f| f.0);
            if !self.is_known(&said.iter().copied().chain(found).collect::<Vec<u64>>()) {
                let _ = self.add(said, lowered);
            }
        }
        self.points.all.len() > before
    }

    /// Looks at the function where numbers that are not known yet may leave a level, and says whether there was anything to look at.
    fn look_around_levels(&mut self, exact: &Exact) -> bool {
        let mut fit = self.fit();
        let _ = self.forms_by(&mut fit);
        let sizes: Vec<(u64, u64)> = self.sizes.iter().map(|s| (s.least, s.most)).collect();
        let before = self.points.all.len();
        for point in fit.corners(&sizes) {
            if self.is_known(&point) {
                continue;
            }
            // TensorFlow takes no values that say so, or another node
            let Ok(lowered) = (exact.0)(&point) else { continue };
            let found = lowered.found.iter().map(|f| f.0);
            if !self.is_known(&point[..self.given.len()].iter().copied().chain(found).collect::<Vec<u64>>()) {
                let _ = self.add(&point[..self.given.len()], lowered);
            }
        }
        self.points.all.len() > before
    }

    fn is_known(&self, point: &[u64]) -> bool {
        self.points.all.iter().any(|p| p == point) || self.others.iter().any(|(p, ..)| p == point)
    }

    fn forms(&self) -> Result<Vec<Form>, Departure> {
        self.forms_by(&mut self.fit())
    }

    fn fit(&self) -> Fit<'_> {
        Fit::new(&self.points, self.others.iter().map(|(point, ..)| point.clone()).collect())
    }

    fn forms_by(&self, fit: &mut Fit) -> Result<Vec<Form>, Departure> {
        let modules: Vec<&Module> = self.all.iter().map(|l| &l.module).collect();
        forms(&modules, fit)
    }
}

/// The sizes of each result, as they follow from those of the function.
pub fn result_dims(base: &Lowered, forms: &[Form]) -> Vec<Vec<Extent>> {
    let dims = forms.last().and_then(|form| form.of_root(base.module.entry())).unwrap_or_default();
    dims.iter().take(base.results.len()).cloned().collect()
}

/// Whether the results of `lowered` have the sizes `dims` at `point`.
pub fn has_dims(lowered: &Lowered, dims: &[Vec<Extent>], point: &[u64]) -> bool {
    let at = |of: &[Extent]| {
        of.iter().map(|e| e.at(point).and_then(|n| u64::try_from(n).ok())).collect::<Option<Vec<u64>>>()
    };
    lowered.results.len() == dims.len()
        && lowered.results.iter().zip(dims).all(|(r, of)| at(of).as_ref() == Some(&r.dims))
}

/// The sizes from the smallest on, each alone, for which a function can be lowered: windows may not fit over fewer elements.
pub fn sound(given: &[Size], exact: &Exact) -> Vec<Size> {
    let mut sound = given.to_vec();
    for size in 0..given.len() {
        let mut point: Vec<u64> = given.iter().map(|s| s.most).collect();
        let mut holds = |n: u64| {
            point[size] = n;
            (exact.0)(&point).is_ok()
        };
        let (mut below, mut least) = (given[size].least, given[size].most);
        if holds(below) {
            continue;
        }
        while least - below > 1 {
            let middle = below + (least - below) / 2;
            if holds(middle) { least = middle } else { below = middle }
        }
        sound[size].least = least;
    }
    sound
}

/// A point near `base` at which each size that values say can get smaller alone: one that is never larger than another gets less than
/// that one.
fn spaced(mut base: Vec<u64>, given: usize, exact: &Exact) -> Vec<u64> {
    for _ in 0..STEPS {
        let mut next = base.clone();
        for size in (given..base.len()).filter(|&size| base[size] > 0) {
            let mut point = base.clone();
            point[size] -= 1;
            let Ok(lowered) = (exact.0)(&point) else { continue };
            let taken = lowered.found.iter().map(|f| f.0).zip(&point[given..]);
            let smaller = taken.enumerate().filter(|(_, (taken, wanted))| taken < *wanted).map(|(i, _)| given + i);
            smaller.for_each(|other| next[other] = next[other].min(base[other].saturating_sub(1)));
        }
        if next == base {
            break;
        }
        base = next;
    }
    base
}

/// Points that differ little from `base`: in one size, in two, and in all.
fn beside(sizes: &[Size], base: &[u64]) -> Vec<Vec<u64>> {
    let less = |of: &[usize], by: u64| {
        let mut point = base.to_vec();
        of.iter().for_each(|&s| point[s] = base[s].saturating_sub(by));
        of.iter().all(|&s| base[s] >= by && point[s] >= sizes[s].least).then_some(point)
    };
    let mut out = Vec::new();
    for size in 0..sizes.len() {
        out.extend((1..=STEPS).filter_map(|by| less(&[size], by)));
        // each alone at its smallest, where code often is special, and just above: what has a limit far below the base grows there
        let room = base[size] - sizes[size].least;
        out.extend([room, room.saturating_sub(1)].into_iter().filter_map(|by| less(&[size], by)));
        out.extend((size + 1..sizes.len()).filter_map(|other| less(&[size, other], 1)));
    }
    // all at once: what is the largest of some sizes stays as it is where fewer of them get smaller
    let all: Vec<usize> = (0..sizes.len()).collect();
    out.extend((1..=2).filter_map(|by| less(&all, by)));
    out.retain(|point| point[..] != *base);
    out.sort_unstable_by(|a, b| b.cmp(a));
    out.dedup();
    out
}

/// Bounds below the largest: halves, down to the smallest.
pub fn halves(given: &[Size]) -> Vec<Vec<u64>> {
    let mut out: Vec<Vec<u64>> = Vec::new();
    let mut last: Vec<u64> = given.iter().map(|s| s.most).collect();
    let least: Vec<u64> = given.iter().map(|s| s.least).collect();
    while last != least && out.len() + 1 < MOST_RUNGS {
        last = last.iter().zip(&least).map(|(n, &least)| n.div_ceil(2).max(least)).collect();
        out.push(last.clone());
    }
    if last != least && least.iter().all(|&n| n <= 1) {
        out.push(least);
    }
    out
}
