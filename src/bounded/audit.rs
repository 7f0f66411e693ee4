//! Whether what lowering chose by comparing sizes holds for every size.
//!
//! A function is lowered once with sizes that record how they are compared (`symbolic::Dim`). What was lowered is right for sizes that
//! answer every comparison alike. Where other sizes answer otherwise they are few, and the function is looked at for each of them; or the
//! function is refused.
//!
//! That is a proof where lowering computes with sizes and compares them. Where it reads one as a number instead, what follows from that
//! number is not recorded, and the sizes at which the function is looked at have to show how it follows.
use super::degenerate::equal_at;
use super::instance::{Departure, Form};
use super::instances::Instances;
use super::refusal;
use crate::diag::Result;
use crate::hlo::Module;
use crate::lower::{Exact, Lowered};
use crate::symbolic::trace::{Guard, Record, Relation, SizeNumber};
use crate::tensor::Size;
use std::collections::BTreeMap;

/// A comparison is answered for so many combinations of sizes at most.
const MOST_POINTS: u64 = 1 << 17;
/// Sizes that answer a comparison otherwise are looked at one by one where they are no more than these.
const MOST_OTHERS: usize = 32;

/// Sizes for which a function is used: those that the caller may say, in steps, without the smallest of those in `apart`.
pub struct Domain<'a> {
    /// The sizes that the caller says, counted in steps.
    pub counted: &'a [Size],
    /// The numbers of the sizes at whose smallest value another function is used.
    pub apart: &'a [usize],
}

impl Domain<'_> {
    /// The values of a size.
    fn values(&self, size: usize) -> impl Iterator<Item = i64> + Clone {
        let own = &self.counted[size];
        let least = own.least + u64::from(self.apart.contains(&size) && own.least < own.most);
        (least..=own.most).map(|n| i64::try_from(n).unwrap_or(i64::MAX))
    }
    fn count(&self, size: usize) -> u64 {
        (self.counted[size].most - self.counted[size].least).saturating_add(1)
    }

    /// The sizes, by their numbers, for which a comparison has another answer than it was taken to have; `None` where there are too many
    /// combinations of sizes to tell.
    fn others(&self, guard: &Guard) -> Option<Vec<BTreeMap<SizeNumber, i64>>> {
        let vars: Vec<SizeNumber> = guard.difference.vars().into_iter().collect();
        let points = vars.iter().map(|&v| self.count(v)).fold(1u64, u64::saturating_mul);
        if points > MOST_POINTS {
            return None;
        }
        let mut all: Vec<BTreeMap<SizeNumber, i64>> = vec![BTreeMap::new()];
        for &v in &vars {
            let with = |point: BTreeMap<SizeNumber, i64>| {
                self.values(v).map(move |n| {
                    let mut point = point.clone();
                    point.insert(v, n);
                    point
                })
            };
            all = all.into_iter().flat_map(with).collect();
        }
        all.retain(|point| guard.is_met(&|v| point.get(v).copied()) != Some(true));
        Some(all)
    }
}

/// Checks the answers that lowering took, of which `record` tells, where it read no size as a number.
///
/// # Errors
/// `Code::OpenSize` at the node that compared, where sizes answer otherwise and the function is another one for them, or they are many.
pub fn check(record: &Record, domain: &Domain, (instances, forms): (&Instances, &[Form]), exact: &Exact) -> Result<()> {
    let base: &Lowered = instances.base();
    if record.guards().iter().any(|guard| guard.is_pin) {
        return Ok(());
    }
    let given = domain.counted.len();
    for guard in record.guards().iter().filter(|guard| guard.difference.vars().iter().all(|&v| v < given)) {
        let others = domain.others(guard).filter(|others| others.len() <= MOST_OTHERS);
        let is_alike = others.is_some_and(|others| {
            others.iter().all(|other| is_alike(&base.module, forms, &instances.points.all[0], other, domain, exact))
        });
        if !is_alike {
            return Err(refusal(&departure(guard, &instances.given), &instances.given));
        }
    }
    Ok(())
}

/// Whether the function is the one of `forms` where some sizes have these values, and the others are those of `base`.
fn is_alike(
    module: &Module,
    forms: &[Form],
    base: &[u64],
    other: &BTreeMap<SizeNumber, i64>,
    domain: &Domain,
    exact: &Exact,
) -> bool {
    let given = domain.counted.len();
    let mut point = base[..given.min(base.len())].to_vec();
    for (&v, &n) in other {
        let Ok(n) = u64::try_from(n) else { return false };
        point[v] = n;
    }
    let Ok(lowered) = (exact.0)(&point) else { return false };
    point.extend(lowered.found.iter().map(|f| f.0));
    equal_at(module, forms, &point, &lowered.module)
}

/// What was compared, in words.
fn departure(guard: &Guard, given: &[Size]) -> Departure {
    let name = |v: &SizeNumber| given.get(*v).map_or_else(String::new, |s| s.name.clone());
    let asked = match guard.relation {
        Relation::Equal => "is 0",
        Relation::Less => "is below 0",
    };
    let what = format!(
        "what is computed depends on whether `{}` {asked}, which is not the same for every size",
        guard.difference.spelled(&name)
    );
    Departure { node: guard.node.clone(), what }
}
