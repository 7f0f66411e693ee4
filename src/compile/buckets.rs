//! Size buckets: the bounds for which a function of open sizes gets code of its own. A call runs the code of the smallest bound that it fits.
//!
//! Loops end where the size of a call says so. A smaller bound gains where tiles fit few rows, where chunks are finer than a row for
//! several threads, and where loops do not end early. Where it gains nothing, a call runs the code of a larger bound.
use super::build::{at_bounds, with_numbers};
use crate::diag::Result;
use crate::kernel::Program;
use crate::lower::{Lowered, SizeBucket, SizeVariants};
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
struct Candidate<'a> {
    /// The smallest sizes for which no smaller bound serves.
    least: Vec<u64>,
    most: Vec<u64>,
    /// The function for the bound; `None`: the largest, which the function's own module is for.
    size_bucket: Option<&'a SizeBucket>,
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
/// An error of a pass over HLO or of `schedule`; internal, where limits can't be evaluated.
pub fn of(
    lowered: &Lowered,
    size_variants: &SizeVariants,
    precision: Precision,
    schedule: &mut dyn FnMut(&Lowered, &str) -> Result<Vec<Program>>,
) -> Result<Vec<Bucket>> {
    let given = &size_variants.sizes.all[..size_variants.sizes.count_from_caller()];
    let mut search = Search { lowered, size_variants, precision, candidates: Vec::new(), schedule };
    let mut buckets = Vec::new();
    let mut below: Vec<u64> = given.iter().map(|s| s.least).collect();
    for (i, size_bucket) in size_variants.smaller.iter().enumerate().rev() {
        let most = size_bucket.max_sizes.clone();
        if size_bucket.is_separate {
            buckets.push(Bucket { most, programs: search.scheduled(Some(size_bucket), &format!("a{i}"))? });
            continue;
        }
        let next = most.iter().map(|n| n + 1).collect();
        let least = std::mem::replace(&mut below, next);
        search.candidates.push(Candidate { least, most, size_bucket: Some(size_bucket), programs: None });
    }
    let most = given.iter().map(|s| s.most).collect();
    search.candidates.push(Candidate { least: below, most, size_bucket: None, programs: None });
    let mut kept = Vec::new();
    let mut server = Some(search.candidates.len() - 1);
    while let Some(bound) = server {
        search.make(bound)?;
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
    lowered: &'a Lowered,
    size_variants: &'a SizeVariants,
    precision: Precision,
    /// Smaller bounds first.
    candidates: Vec<Candidate<'a>>,
    schedule: &'a mut dyn FnMut(&Lowered, &str) -> Result<Vec<Program>>,
}

impl Search<'_> {
    /// The programs of the function for a bound, the largest without a size_bucket.
    fn scheduled(&mut self, size_bucket: Option<&SizeBucket>, name: &str) -> Result<Vec<Program>> {
        let own = match size_bucket {
            Some(size_bucket) => {
                let mut module = size_bucket.module.clone();
                super::passes(&mut module, &mut None)?;
                optimize::reduce(&mut module, self.precision)?;
                with_numbers(
                    self.lowered,
                    &self.size_variants.sizes,
                    &size_bucket.max_sizes,
                    &size_bucket.results,
                    module,
                )
            }
            None => at_bounds(self.lowered.clone()),
        };
        (self.schedule)(&own, name)
    }

    /// Makes the programs of a bound, once.
    fn make(&mut self, bound: usize) -> Result<()> {
        let Candidate { size_bucket, programs: None, .. } = self.candidates[bound] else { return Ok(()) };
        self.candidates[bound].programs = Some(self.scheduled(size_bucket, &format!("r{bound}"))?);
        Ok(())
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
        self.make(bound)?;
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
