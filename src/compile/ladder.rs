//! Selection of the size buckets of a function that get code of their own.
//!
//! Loops end where the size of a call says so. A smaller bound gains where tiles fit few rows, where chunks are finer than a row for
//! several threads, and where loops do not end early. Where it gains nothing, a call runs the code of a larger bound.
use super::build::Rungs;
use crate::diag::Result;
use crate::kernel::Program;
use crate::tensor::Sizes;

/// A bound is left out if the next larger one takes no more than so many times its work, on one thread and on two. On two an odd number of
/// equal chunks takes up to a third more.
const MOST_WORK: [f64; 2] = [1.03, 1.35];

/// Flags of the size buckets that are needed; `programs` holds those of each bucket for each target, the smallest bound first.
///
/// All are where rows of what varies do not lie one behind the other: there a larger bound has them further apart.
///
/// # Errors
/// Internal, where limits can't be evaluated.
pub fn needed(rungs: &Rungs, sizes: &Sizes, programs: &[&[Program]]) -> Result<Vec<bool>> {
    let mut needed = vec![true; rungs.all.len()];
    let leads = |axes: &Vec<Option<usize>>| axes.iter().skip(1).all(Option::is_none);
    if sizes.given() != 1 || !sizes.args.iter().all(leads) {
        return Ok(needed);
    }
    let most = |r: usize| rungs.all[r].most.first().copied().unwrap_or(0);
    let mut larger = rungs.all.len() - 1;
    for r in (0..larger).rev().filter(|&r| !rungs.all[r].is_apart) {
        let least = r.checked_sub(1).map_or(sizes.all[0].least, |below| most(below) + 1).min(most(r));
        needed[r] = false;
        for program in programs {
            for n in [least.max(1), most(r)] {
                let (own, other) = (program[r].work_for(&[n])?, program[larger].work_for(&[n])?);
                needed[r] |= (0..2).any(|i| other[i] as f64 > MOST_WORK[i] * own[i] as f64);
            }
        }
        if needed[r] {
            larger = r;
        }
    }
    Ok(needed)
}
