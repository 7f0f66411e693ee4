//! Reduction of a failing graph or module: changes are kept as long as a user-supplied test still fails in the same way.
//!
//! Delta debugging: a list of changes is applied as a whole, then by halves, down to single ones. Rounds continue until one changes
//! nothing or the trials are spent. `graph` has the changes of GraphDefs, `module` those of HLO modules. The order of trials is a
//! function of the input.
//!
//! Source: Zeller, Hildebrandt: "Simplifying and isolating failure-inducing input" (2002).
mod graph;
mod module;
mod weights;

pub use graph::reduce_graph;
pub use module::{print as print_module, reduce_module};
pub use weights::{Seeded, seed_weights};

use crate::diag::Result;
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Test that tells for the bytes of a candidate whether it still fails in the same way.
pub type FailureTest<'a> = dyn FnMut(&[u8]) -> Result<bool> + 'a;

/// Statistics of a reduction.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReductionStats {
    /// Number of candidates that were tested.
    pub trials: u64,
    /// Number of changes that were kept.
    pub kept: u64,
    /// Whether the trials were spent while there were still changes to try.
    pub cut_short: bool,
}

/// State of a reduction.
struct Search<'a, 'v> {
    verdict: &'a mut FailureTest<'v>,
    most: u64,
    told: ReductionStats,
    seen: HashSet<u64>,
}

impl<'a, 'v> Search<'a, 'v> {
    fn new(verdict: &'a mut FailureTest<'v>, most: u64) -> Self {
        Search { verdict, most, told: ReductionStats::default(), seen: HashSet::new() }
    }

    /// Whether a candidate still fails. A repeated candidate, or one after the trials are spent, counts as not failing.
    fn fails(&mut self, candidate: &[u8]) -> Result<bool> {
        let mut hasher = DefaultHasher::new();
        candidate.hash(&mut hasher);
        if !self.seen.insert(hasher.finish()) {
            return Ok(false);
        }
        if self.told.trials >= self.most {
            self.told.cut_short = true;
            return Ok(false);
        }
        self.told.trials += 1;
        (self.verdict)(candidate)
    }

    /// Applies as many of `changes` to `state` as possible so that it still fails: all at once, else by halves. `apply` returns the changed
    /// state and its bytes, or `None` if the changes have no effect.
    fn apply_all<S, C>(
        &mut self,
        state: &mut S,
        changes: &[C],
        apply: &dyn Fn(&S, &[C]) -> Result<Option<(S, Vec<u8>)>>,
    ) -> Result<()> {
        let mut size = changes.len();
        let mut open: Vec<&[C]> = vec![changes];
        while size > 0 && !open.is_empty() {
            let mut failed = Vec::new();
            for chunk in open {
                let Some((next, bytes)) = apply(state, chunk)? else { continue };
                if self.fails(&bytes)? {
                    *state = next;
                    self.told.kept += 1;
                } else if chunk.len() > 1 {
                    let (front, back) = chunk.split_at(chunk.len() / 2);
                    failed.extend([front, back]);
                }
                if self.told.cut_short {
                    return Ok(());
                }
            }
            open = failed;
            size /= 2;
        }
        Ok(())
    }
}
