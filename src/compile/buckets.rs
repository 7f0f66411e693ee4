//! Size buckets: the upper bounds for which a function with dynamic sizes gets code of its own. A call runs the code of the smallest bucket
//! that its sizes fit into.
//!
//! Most loops end at the actual size of a call. Code for a smaller bound is faster where tiles fit few rows, where chunks for several
//! threads are finer than a row, and where loops do not end early. Where it is not faster, calls run the code of a larger bound.
use super::build::{function_at_bounds, with_size_parameters};
use crate::diag::Result;
use crate::kernel::Program;
use crate::lower::{Lowered, SizeBucket, SizeVariants};
use crate::target::CodeRequest;

/// Ratio of work up to which a larger bucket replaces a smaller one, on one thread and on two. On two threads an odd number of equal chunks
/// takes up to a third more.
const MAX_WORK_RATIO: [f64; 2] = [1.1, 1.4];

/// A size bucket that was chosen, with its programs.
pub struct Bucket {
    /// Upper bound of each size that the caller passes.
    pub most: Vec<u64>,
    /// Program for each target.
    pub programs: Vec<Program>,
}

/// A bound for which code of its own is considered.
struct Candidate<'a> {
    /// Smallest sizes that fit into no smaller bucket.
    least: Vec<u64>,
    most: Vec<u64>,
    /// Variant of the function for the bound; `None` for the largest bound, which the function's own module has.
    size_bucket: Option<&'a SizeBucket>,
    /// Program for each target; `None` until scheduled.
    programs: Option<Vec<Program>>,
}

/// Chooses the buckets of a function whose own module is already optimized, smaller bounds first. `schedule` returns the program of a
/// function of fixed sizes for each target; its string argument is the suffix of the programs' names.
///
/// The code of a larger bound wastes most at the smallest sizes. If it serves a smaller bucket well, it is assumed to serve all between them
/// too, and those are not scheduled. The largest bucket that it does not serve is found by bisection, and serves smaller ones in turn.
///
/// # Errors
/// An error of a pass over HLO or of `schedule`; internal if the limits of loops can't be evaluated.
pub fn choose_buckets(
    lowered: &Lowered,
    size_variants: &SizeVariants,
    requests: &[CodeRequest],
    schedule: &mut dyn FnMut(&Lowered, &str) -> Result<Vec<Program>>,
) -> Result<Vec<Bucket>> {
    let given = &size_variants.sizes.all[..size_variants.sizes.caller_size_count()];
    let mut search = BucketSearch { lowered, size_variants, requests, candidates: Vec::new(), schedule };
    let mut buckets = Vec::new();
    let mut below: Vec<u64> = given.iter().map(|s| s.least).collect();
    for (i, size_bucket) in size_variants.smaller.iter().enumerate().rev() {
        let most = size_bucket.max_sizes.clone();
        if size_bucket.is_separate {
            buckets.push(Bucket { most, programs: search.schedule_bound(Some(size_bucket), &format!("a{i}"))? });
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
        search.schedule_candidate(bound)?;
        kept.push(bound);
        server = search.largest_not_served(bound)?;
    }
    for bound in kept.into_iter().rev() {
        let Candidate { most, programs, .. } = &mut search.candidates[bound];
        buckets.push(Bucket { most: std::mem::take(most), programs: programs.take().unwrap_or_default() });
    }
    Ok(buckets)
}

/// Search over candidates, whose programs are scheduled on demand.
struct BucketSearch<'a> {
    lowered: &'a Lowered,
    size_variants: &'a SizeVariants,
    requests: &'a [CodeRequest],
    /// Candidates, smaller bounds first.
    candidates: Vec<Candidate<'a>>,
    schedule: &'a mut dyn FnMut(&Lowered, &str) -> Result<Vec<Program>>,
}

impl BucketSearch<'_> {
    /// Schedules a variant of the function for each target; `None` stands for the largest bound.
    fn schedule_bound(&mut self, size_bucket: Option<&SizeBucket>, name: &str) -> Result<Vec<Program>> {
        let own = match size_bucket {
            Some(size_bucket) => {
                let mut module = size_bucket.module.clone();
                super::optimize_for(&mut module, self.requests, &mut None)?;
                with_size_parameters(
                    self.lowered,
                    &self.size_variants.sizes,
                    &size_bucket.max_sizes,
                    &size_bucket.results,
                    module,
                )
            }
            None => function_at_bounds(self.lowered.clone()),
        };
        (self.schedule)(&own, name)
    }

    /// Schedules a candidate unless that is done already.
    fn schedule_candidate(&mut self, bound: usize) -> Result<()> {
        let Candidate { size_bucket, programs: None, .. } = self.candidates[bound] else { return Ok(()) };
        self.candidates[bound].programs = Some(self.schedule_bound(size_bucket, &format!("r{bound}"))?);
        Ok(())
    }

    /// Index of the largest candidate below `server`, itself a candidate, for whose sizes the code of `server` does too much work; `None` if
    /// there is none.
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

    /// Whether the code of candidate `server` does about as little work as that of the smaller candidate `bound`, in calls of the latter's sizes.
    fn serves(&mut self, server: usize, bound: usize) -> Result<bool> {
        self.schedule_candidate(bound)?;
        let (own, other) = (&self.candidates[bound], &self.candidates[server]);
        let programs = own.programs.iter().flatten().zip(other.programs.iter().flatten());
        let least: Vec<u64> = own.least.iter().zip(&own.most).map(|(&least, &most)| least.max(1).min(most)).collect();
        for (own_program, other_program) in programs {
            for sizes in [&least, &own.most] {
                let (work, with_other) =
                    (own_program.work_at_sizes(sizes, &own.most)?, other_program.work_at_sizes(sizes, &other.most)?);
                if (0..2).any(|i| with_other[i] as f64 > MAX_WORK_RATIO[i] * work[i] as f64) {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }
}
