//! Search over plans for less workspace memory. A program shows where most memory is needed; the search then tries another order of
//! branches, weights that Winograd's method transforms at compile time, bounds for its scratch memory, parts that are not written into
//! their concatenations, and intermediates in the memory of results. Each choice is kept where the workspace is smaller.
use super::emit::SearchFacts;
use super::memory::workspace;
use super::plan::Plan;
use super::plan::choices::{InstKey, PlanChoices};
use crate::diag::Result;
use crate::hlo::InstId;
use crate::kernel::{BufId, Program};
use std::collections::{HashMap, HashSet};

/// Divisor of the workspace size that gives the least saving, in bytes, for which the search takes another order or puts intermediates into
/// the memory of results: both may make caches miss more often.
const LEAST_SPARED: u64 = 100;
/// Number of times that the search bounds the scratch memory of convolutions and chooses weights to transform.
const ROUNDS: usize = 3;
/// Number of planes whose margins the search tries to change one at a time.
const MOST_ALONE: usize = 4;
/// Bytes by which constants may grow for each byte of workspace saved, while the workspace is larger than dense arrays would need.
const SCARCE: u64 = 2;

/// Bytes of workspace that must be saved for each byte of larger constants while constants exceed their target.
const FEW: u64 = 8;

/// Divisor of the workspace size that gives the least saving, in bytes, for which constants may grow although the workspace stays above its
/// target.
const FAR_SPARED: u64 = 8;

/// Target sizes of the search, in bytes.
pub struct MemoryTargets {
    /// Target size of the workspace: what dense arrays would need.
    pub workspace: u64,
    /// Target size of the constants.
    pub constants: u64,
}

/// A plan with the program that was emitted from it.
#[derive(Clone)]
pub struct Candidate<'p> {
    /// The plan that the program was emitted from.
    pub plan: Plan<'p>,
    /// The program of the plan.
    pub program: Program,
    /// Purpose of each buffer of the program, for the next step of the search.
    pub found: SearchFacts,
}

/// Searches the choices whose program takes the least memory, and returns them with that program; `order` is an execution order of the
/// entry that may need less memory than post order.
pub fn minimize_memory<'p>(
    aims: &MemoryTargets,
    order: Option<Vec<InstId>>,
    schedule: impl Fn(&PlanChoices) -> Result<Candidate<'p>>,
) -> Result<(PlanChoices, Candidate<'p>)> {
    let choices = PlanChoices::default();
    let made = schedule(&choices)?;
    let mut search = MemorySearch { aims, schedule: &schedule, choices, made };
    if order.is_some() {
        search.accept_if(PlanChoices { order, ..PlanChoices::default() }, saves_much_memory)?;
    }
    search.choose_transformed_weights()?;
    // with weights that are transformed at compile time a convolution may be done otherwise, and be short of room again
    for _ in 0..ROUNDS {
        if !search.bound_scratch_memory()? || !search.choose_transformed_weights()? {
            break;
        }
    }
    search.separate_concatenation_parts()?;
    let is_above = |search: &MemorySearch<_>| search.made.program.workspace_bytes > aims.workspace;
    // the same from here on with windows at edges that read no margins, where there are any
    let has_edges = !search.made.found.in_parts.is_empty();
    let other = (has_edges && is_above(&search)).then(|| search.clone());
    search.copy_margins()?;
    search.in_results()?;
    if let Some(mut other) = other.filter(|_| is_above(&search))
        && other.in_parts()?
    {
        other.copy_margins()?;
        other.in_results()?;
        if is_worth_weights(&search.made.program, &other.made.program, aims.constants) {
            search = other;
        }
    }
    Ok((search.choices, search.made))
}

/// Whether the second program takes so much less memory that possible cache misses are worth it.
pub fn saves_much_memory(now: &Program, then: &Program) -> bool {
    now.workspace_bytes.saturating_sub(then.workspace_bytes) * LEAST_SPARED > now.workspace_bytes
}

/// Whether the second program saves enough workspace to justify its larger constants, which should stay below `most` bytes.
fn is_worth_weights(now: &Program, then: &Program, most: u64) -> bool {
    let grown = then.weights_bytes.saturating_sub(now.weights_bytes);
    let spared = now.workspace_bytes.saturating_sub(then.workspace_bytes);
    let worth = if then.weights_bytes <= most { spared * SCARCE } else { spared / FEW };
    saves_much_memory(now, then) && worth > grown
}

struct MemorySearch<'a, 'p, S> {
    aims: &'a MemoryTargets,
    schedule: &'a S,
    choices: PlanChoices,
    made: Candidate<'p>,
}

impl<S> Clone for MemorySearch<'_, '_, S> {
    fn clone(&self) -> Self {
        MemorySearch { choices: self.choices.clone(), made: self.made.clone(), ..*self }
    }
}

impl<'p, S: Fn(&PlanChoices) -> Result<Candidate<'p>>> MemorySearch<'_, 'p, S> {
    /// Emits the program of `choices` and keeps both if `better` prefers it to the current one; returns whether it did.
    fn accept_if(&mut self, choices: PlanChoices, better: impl Fn(&Program, &Program) -> bool) -> Result<bool> {
        let made = (self.schedule)(&choices)?;
        let taken = better(&self.made.program, &made.program);
        if taken {
            (self.choices, self.made) = (choices, made);
        }
        Ok(taken)
    }

    /// Chooses weights of Winograd convolutions at the peak to transform at compile time, if the workspace shrinks by more than constants
    /// grow (or by half as much while the workspace exceeds its target). While it exceeds the target all such weights at all peaks are
    /// tried together, as one of several equal peaks alone would save nothing. Returns whether any were chosen.
    fn choose_transformed_weights(&mut self) -> Result<bool> {
        let before = self.choices.known.len();
        for _ in 0..ROUNDS {
            let MemoryTargets { workspace, constants } = *self.aims;
            if self.made.program.workspace_bytes > workspace {
                let better = |now: &Program, then: &Program| {
                    let spared = now.workspace_bytes.saturating_sub(then.workspace_bytes);
                    let enough = then.workspace_bytes <= workspace || spared * FAR_SPARED >= now.workspace_bytes;
                    then.weights_bytes <= constants && spared > 0 && enough
                };
                // convolutions may share weights, so that all of them add less than each for itself
                let (all, fitting) = (self.heaviest_convolutions(u64::MAX), self.heaviest_convolutions(constants));
                if self.take_known(&all, better)? || (fitting != all && self.take_known(&fitting, better)?) {
                    continue;
                }
            }
            let at_peak = workspace::buffers_at_peak(&self.made.program).into_iter();
            let all: HashSet<InstKey> = at_peak.filter_map(|b| self.made.found.transformed.get(&b).copied()).collect();
            let better = |now: &Program, then: &Program| {
                let grown = then.weights_bytes.saturating_sub(now.weights_bytes);
                let spared = now.workspace_bytes.saturating_sub(then.workspace_bytes);
                let worth = if now.workspace_bytes > workspace { SCARCE } else { 1 };
                then.weights_bytes <= constants && spared * worth > grown
            };
            if !self.take_known(&all, better)? {
                break;
            }
        }
        Ok(self.choices.known.len() > before)
    }

    /// The convolutions with the largest scratch memory for transformed weights, as many as keep constants below `most` bytes.
    fn heaviest_convolutions(&self, most: u64) -> HashSet<InstKey> {
        let mut all = self.groups_above(self.aims.workspace, &self.made.found.transformed);
        all.sort_by_key(|(key, own, others)| (std::cmp::Reverse(own + others), *key));
        let mut grown = self.made.program.weights_bytes;
        let fits = |(_, own, _): &(InstKey, u64, u64)| {
            // of a 3x3 window 9 of 36 numbers were constants before, and more of others
            grown += own - own / 4;
            grown <= most
        };
        all.into_iter().take_while(fits).map(|(key, ..)| key).collect()
    }

    /// Adds convolutions whose weights are transformed at compile time, if `better` prefers the resulting program.
    fn take_known(&mut self, more: &HashSet<InstKey>, better: impl Fn(&Program, &Program) -> bool) -> Result<bool> {
        let mut choices = self.choices.clone();
        choices.known.extend(more);
        if choices.known.len() == self.choices.known.len() {
            return Ok(false);
        }
        self.accept_if(choices, better)
    }

    /// Bounds the scratch memory of convolutions by what dense arrays would need, and returns whether any got a bound. Winograd's method
    /// needs memory between its transforms, which must not make the workspace larger than the arrays of the program alone: otherwise each
    /// convolution that takes more than the arrays leave at its launches gets what they leave as its bound.
    fn bound_scratch_memory(&mut self) -> Result<bool> {
        let mut bounded = false;
        for _ in 0..ROUNDS {
            let rooms = self.short_of();
            if rooms.is_empty() {
                break;
            }
            let mut choices = self.choices.clone();
            choices.rooms.extend(rooms);
            if !self.accept_if(choices, |now, then| then.workspace_bytes < now.workspace_bytes)? {
                break;
            }
            bounded = true;
        }
        Ok(bounded)
    }

    /// While the workspace exceeds its target, gives the parts of concatenations at the peak memory of their own: a part that is written
    /// directly into its concatenation keeps the whole concatenation alive from then on.
    fn separate_concatenation_parts(&mut self) -> Result<()> {
        for _ in 0..ROUNDS {
            if self.made.program.workspace_bytes <= self.aims.workspace {
                break;
            }
            let at_peak = workspace::buffers_at_peak(&self.made.program).into_iter();
            let wholes: HashSet<InstId> = at_peak.filter_map(|b| self.made.found.wholes.get(&b).copied()).collect();
            if wholes.is_empty() {
                break;
            }
            let mut choices = self.choices.clone();
            choices.apart.extend(wholes);
            if !self.accept_if(choices, saves_much_memory)? {
                break;
            }
        }
        Ok(())
    }

    /// While the workspace exceeds its target, makes planes without margins and copies them with margins right before the window that
    /// needs them: a plane with margins is larger.
    fn copy_margins(&mut self) -> Result<()> {
        self.without_margins(|found| &found.margins, |choices| &mut choices.copied, saves_much_memory)?;
        Ok(())
    }

    /// Lets windows at the edges leave out the taps that read margins, with weights of their own, while the workspace is larger than aimed
    /// at; returns whether any do. The memory of an argument has no margins, and a copy with margins is as large as the whole argument.
    fn in_parts(&mut self) -> Result<bool> {
        let most = self.aims.constants;
        let better = |now: &Program, then: &Program| is_worth_weights(now, then, most);
        self.without_margins(|found| &found.in_parts, |choices| &mut choices.in_parts, better)
    }

    /// Tries to make the given planes without margins if they raise the workspace above its target: all of them together, or else one at
    /// a time, as a copy may stand at another peak. Returns whether any was changed.
    fn without_margins(
        &mut self,
        found: impl Fn(&SearchFacts) -> &HashMap<BufId, InstId>,
        chosen: impl Fn(&mut PlanChoices) -> &mut HashSet<InstId>,
        better: impl Fn(&Program, &Program) -> bool,
    ) -> Result<bool> {
        let mut any = false;
        for _ in 0..ROUNDS {
            let mut planes = self.groups_above(self.aims.workspace, found(&self.made.found));
            planes.sort_by_key(|(plane, own, _)| (std::cmp::Reverse(*own), *plane));
            let planes: Vec<InstId> = planes.into_iter().map(|(plane, ..)| plane).collect();
            let tries = std::iter::once(&planes[..]).chain(planes.chunks(1).take(MOST_ALONE));
            let mut taken = false;
            for planes in tries.filter(|planes| !planes.is_empty()) {
                let mut choices = self.choices.clone();
                chosen(&mut choices).extend(planes);
                taken = self.accept_if(choices, &better)?;
                if taken {
                    break;
                }
            }
            if !taken {
                break;
            }
            any = true;
        }
        Ok(any)
    }

    /// While the workspace exceeds its target, lets intermediates use the memory of results that are not computed yet. The caller's
    /// memory may be less aligned than the workspace.
    fn in_results(&mut self) -> Result<()> {
        if self.made.program.workspace_bytes > self.aims.workspace {
            let choices = PlanChoices { in_results: true, ..self.choices.clone() };
            self.accept_if(choices, saves_much_memory)?;
        }
        Ok(())
    }

    /// The convolutions whose scratch memory raises the workspace above its target, each with the bytes that would stay within it.
    fn short_of(&self) -> HashMap<InstKey, u64> {
        let most = self.aims.workspace;
        let all = self.groups_above(most, &self.made.found.scratch).into_iter();
        all.map(|(key, _, others)| (key, most.saturating_sub(others))).collect()
    }

    /// The convolutions during which the workspace needs more than `most` bytes: each with its own bytes in the buffers of `groups`, and
    /// the bytes of all other buffers at that time.
    fn groups_above<T: Copy + Ord>(&self, most: u64, groups: &HashMap<BufId, T>) -> Vec<(T, u64, u64)> {
        let all = workspace::group_peak_bytes(&self.made.program, groups).into_iter();
        let above = all.filter(|(_, (own, others))| own + others > most);
        above.map(|(key, (own, others))| (key, own, others)).collect()
    }
}
