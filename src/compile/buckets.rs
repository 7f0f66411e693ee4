//! Size buckets: the bounds for which a function of open sizes gets code of its own. A call runs the code of the smallest bound that it fits.
//!
//! Loops end where the size of a call says so. A smaller bound gains where tiles fit few rows, where chunks are finer than a row for
//! several threads, and where loops do not end early. Where it gains nothing, a call runs the code of a larger bound.
use super::build::with_numbers;
use crate::diag::Result;
use crate::kernel::Program;
use crate::lower::{Lowered, Sized};
use crate::optimize;
use crate::target::Precision;

/// A bound is left out if the next larger one takes no more than so many times its work, on one thread and on two. On two an odd number of
/// equal chunks takes up to a third more.
const MOST_WORK: [f64; 2] = [1.1, 1.4];

/// A bound with the programs of its function.
pub struct Bucket {
    /// The largest sizes that the caller may say.
    pub most: Vec<u64>,
    /// One program a target.
    pub programs: Vec<Program>,
}

/// A bound of a function, which may get code of its own.
struct Candidate {
    /// The smallest sizes for which no smaller bound serves.
    least: Vec<u64>,
    most: Vec<u64>,
    /// The function as programs have it, with the sizes behind its arguments and results.
    lowered: Lowered,
    /// One program a target, once it was asked for.
    programs: Option<Vec<Program>>,
}

/// The buckets of a function whose own module is already optimized, those of smaller bounds first. `schedule` makes the program of a
/// function of fixed sizes for each target; the string is the end of its name.
///
/// A larger bound costs most at the smallest sizes. So where it serves a bound, it is taken to serve all between them too, and those are not
/// scheduled. The largest bound that it does not serve is found by bisection and serves smaller ones in turn.
///
/// # Errors
/// Those of passes over HLO and of `schedule`; internal, where limits can't be evaluated.
pub fn of(
    lowered: &Lowered,
    sized: &Sized,
    precision: Precision,
    schedule: &mut dyn FnMut(&Lowered, &str) -> Result<Vec<Program>>,
) -> Result<Vec<Bucket>> {
    let given = sized.sizes.given();
    let mut buckets = Vec::new();
    let mut candidates: Vec<Candidate> = Vec::new();
    let mut below: Vec<u64> = sized.sizes.all[..given].iter().map(|s| s.least).collect();
    for (i, rung) in sized.smaller.iter().enumerate().rev() {
        let mut module = rung.module.clone();
        super::passes(&mut module, &mut None)?;
        optimize::reduce(&mut module, precision)?;
        let own = with_numbers(lowered, &sized.sizes, &rung.most, &rung.results, module);
        if rung.is_apart {
            buckets.push(Bucket { most: rung.most.clone(), programs: schedule(&own, &format!("a{i}"))? });
            continue;
        }
        candidates.push(Candidate { least: below, most: rung.most.clone(), lowered: own, programs: None });
        below = rung.most.iter().map(|n| n + 1).collect();
    }
    let most: Vec<u64> = sized.sizes.all[..given].iter().map(|s| s.most).collect();
    candidates.push(Candidate {
        least: below,
        most,
        lowered: super::build::at_bounds(lowered.clone()),
        programs: None,
    });
    let mut search = Search { candidates, schedule };
    let mut kept = Vec::new();
    let mut server = Some(search.candidates.len() - 1);
    while let Some(bound) = server {
        search.programs(bound)?;
        kept.push(bound);
        server = search.largest_not_served(bound)?;
    }
    for bound in kept.into_iter().rev() {
        let Candidate { most, programs, .. } = &mut search.candidates[bound];
        buckets.push(Bucket { most: std::mem::take(most), programs: programs.take().unwrap_or_default() });
    }
    Ok(buckets)
}

/// The choice among bounds, whose programs are made when they are asked for.
struct Search<'a> {
    /// Smaller bounds first.
    candidates: Vec<Candidate>,
    schedule: &'a mut dyn FnMut(&Lowered, &str) -> Result<Vec<Program>>,
}

impl Search<'_> {
    /// The programs of a bound.
    fn programs(&mut self, bound: usize) -> Result<&[Program]> {
        let Candidate { lowered, programs, .. } = &mut self.candidates[bound];
        match programs {
            Some(programs) => Ok(programs),
            none => Ok(none.insert((self.schedule)(lowered, &format!("r{bound}"))?)),
        }
    }

    /// The largest bound below `server` for which the code of `server` takes too much work.
    fn largest_not_served(&mut self, server: usize) -> Result<Option<usize>> {
        // bounds below `low` are not served, those from `high` on are
        let (mut low, mut high) = (0, server);
        if high == 0 || self.serves(server, 0)? {
            return Ok(None);
        }
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if self.serves(server, middle)? { high = middle } else { low = middle }
        }
        Ok(Some(low))
    }

    /// Whether the code of one bound takes about the work of that of a smaller one in calls that the smaller one is for.
    fn serves(&mut self, server: usize, bound: usize) -> Result<bool> {
        self.programs(bound)?;
        let (own, other) = (&self.candidates[bound], &self.candidates[server]);
        let programs = own.programs.iter().flatten().zip(other.programs.iter().flatten());
        let least: Vec<u64> = own.least.iter().zip(&own.most).map(|(&least, &most)| least.max(1).min(most)).collect();
        for (own_program, other_program) in programs {
            for sizes in [&least, &own.most] {
                let (work, with_other) =
                    (own_program.work_for(sizes, &own.most)?, other_program.work_for(sizes, &other.most)?);
                if (0..2).any(|i| with_other[i] as f64 > MOST_WORK[i] * work[i] as f64) {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }
}
