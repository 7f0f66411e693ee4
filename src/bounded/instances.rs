//! The sizes at which a function is looked at, and what it is there.
use super::degenerate::equal_at;
use super::extent::Points;
use super::instance::{Departure, Form, alike, forms};
use super::refusal;
use crate::diag::Result;
use crate::hlo::Module;
use crate::lower::{Exact, Lowered};
use crate::tensor::Size;

/// So many sizes below the bound are looked at one by one: extents that are rounded down are recognised up to this divisor.
const STEPS: u64 = 8;
/// At most so many bounds a function is compiled for.
const MOST_RUNGS: usize = 8;

/// A function at several sizes.
pub struct Instances {
    /// The sizes that the caller says, from the smallest on for which the function is sound.
    pub given: Vec<Size>,
    /// The sizes; the base first.
    pub points: Points,
    all: Vec<Lowered>,
    /// How many of the last points are smaller bounds that code is made for, largest first.
    rungs: usize,
    /// What seems to be another function for small sizes, and why.
    others: Vec<(Vec<u64>, Lowered, Departure)>,
}

impl Instances {
    /// Lowers a function at its bounds and below. Errors: those of lowering; `Code::OpenSize` where it is not one function.
    pub fn new(given: &[Size], exact: &Exact) -> Result<Instances> {
        let most: Vec<u64> = given.iter().map(|s| s.most).collect();
        let base = (exact.0)(&most)?;
        let given = &sound(given, exact)[..];
        let (beside, rungs) = (beside(given), rungs(given));
        let points = Points { all: vec![most] };
        let mut instances = Instances { given: given.to_vec(), points, all: vec![base], rungs: 0, others: Vec::new() };
        let steps = beside.len();
        for (i, point) in beside.into_iter().chain(rungs).enumerate() {
            let is_rung = i >= steps;
            let lowered = (exact.0)(&point)?;
            match alike(&instances.base().module, &lowered.module) {
                Ok(()) => {
                    instances.all.push(lowered);
                    instances.points.all.push(point);
                    instances.rungs += usize::from(is_rung);
                }
                Err(departure) if point.iter().zip(given).any(|(&n, s)| n == s.least && n <= 1) => {
                    instances.others.push((point, lowered, departure));
                }
                Err(departure) => return Err(refusal(&departure, given)),
            }
        }
        Ok(instances)
    }

    /// The function for exactly the bounds.
    pub fn base(&self) -> &Lowered {
        &self.all[0]
    }

    /// Smaller bounds, with the function for exactly them; largest first.
    pub fn rungs(&self) -> impl Iterator<Item = (Vec<u64>, &Lowered)> {
        let from = self.all.len() - self.rungs;
        self.points.all[from..].iter().cloned().zip(&self.all[from..])
    }

    /// The function for the smallest size alone, where it is another one there. Errors: `Code::OpenSize` where there are others too.
    pub fn apart(&self, forms: &[Form]) -> Result<Option<&Lowered>> {
        let mut apart = None;
        for (point, lowered, departure) in &self.others {
            if equal_at(&self.base().module, forms, point, &lowered.module) {
                continue;
            }
            if self.given.len() > 1 {
                return Err(refusal(departure, &self.given));
            }
            apart = Some(lowered);
        }
        Ok(apart)
    }

    /// What follows from the sizes, computation by computation.
    pub fn forms(&self) -> Result<Vec<Form>, Departure> {
        let modules: Vec<&Module> = self.all.iter().map(|l| &l.module).collect();
        forms(&modules, &self.points)
    }
}

/// The sizes from the smallest on, each alone, for which a function can be lowered: windows may not fit over fewer elements.
fn sound(given: &[Size], exact: &Exact) -> Vec<Size> {
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

/// Points that differ little from the bounds: in one size, and in two.
fn beside(given: &[Size]) -> Vec<Vec<u64>> {
    let most: Vec<u64> = given.iter().map(|s| s.most).collect();
    let less = |of: &[usize], by: u64| {
        let mut point = most.clone();
        of.iter().for_each(|&s| point[s] = most[s].saturating_sub(by));
        of.iter().all(|&s| point[s] >= given[s].least && most[s] >= by).then_some(point)
    };
    let mut out = Vec::new();
    for size in 0..given.len() {
        out.extend((1..=STEPS).filter_map(|by| less(&[size], by)));
        // each alone at its smallest, where code often is special
        if given.len() > 1 {
            out.extend(less(&[size], most[size] - given[size].least));
        }
        out.extend((size + 1..given.len()).filter_map(|other| less(&[size, other], 1)));
    }
    out.dedup();
    out
}

/// Bounds below the largest: halves, down to the smallest.
fn rungs(given: &[Size]) -> Vec<Vec<u64>> {
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
