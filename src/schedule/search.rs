//! Search over plans for less workspace memory. A program shows where most memory is needed; the search then tries another order of
//! branches, weights that Winograd's method transforms at compile time, bounds for its scratch memory, parts that are not written into
//! their concatenations, and intermediates in the memory of results. Each choice is kept where the workspace is smaller.
use super::emit::SearchFacts;
use super::memory::workspace;
use super::plan::Plan;
use super::plan::choices::{Choices, Key};
use crate::diag::Result;
use crate::hlo::InstId;
use crate::kernel::{BufId, Program};
use std::collections::{HashMap, HashSet};

/// The part of the workspace (one in so many) that another order, or intermediates in the memory of results, must spare at least: what is
/// near when it is read may change with it.
const LEAST_SPARED: u64 = 100;
/// How often what convolutions take for themselves is bounded anew, and weights are looked for.
const ROUNDS: usize = 3;
/// How many planes are looked at one by one.
const MOST_ALONE: usize = 4;
/// How many bytes of constants one of the workspace is worth while that is larger than dense arrays need.
const SCARCE: u64 = 2;

/// How many bytes of constants one byte of workspace is worth where constants are more than aimed at: one for so many.
const FEW: u64 = 8;

/// Constants may grow where the workspace is as small as aimed at then, or smaller by one in so many.
const FAR_SPARED: u64 = 8;

/// The targets of a search, in bytes.
pub struct Aims {
    /// A workspace that is no larger than dense arrays would need.
    pub workspace: u64,
    /// Constants that are at most so many.
    pub constants: u64,
}

/// A plan with the program that was emitted from it.
#[derive(Clone)]
pub struct Candidate<'p> {
    /// The plan that the program was emitted from.
    pub plan: Plan<'p>,
    /// The program of the plan.
    pub program: Program,
    /// The purpose of each buffer of the program.
    pub found: SearchFacts,
}

/// The choices whose program takes least memory of those that `schedule` makes of some, and what came of them; `order` is one of
/// the entry that may take less than post order.
pub fn least<'p>(
    aims: &Aims,
    order: Option<Vec<InstId>>,
    schedule: impl Fn(&Choices) -> Result<Candidate<'p>>,
) -> Result<(Choices, Candidate<'p>)> {
    let choices = Choices::default();
    let made = schedule(&choices)?;
    let mut search = Search { aims, schedule: &schedule, choices, made };
    if order.is_some() {
        search.take(Choices { order, ..Choices::default() }, spares_much)?;
    }
    search.known()?;
    // with weights that are transformed at compile time a convolution may be done otherwise, and be short of room again
    for _ in 0..ROUNDS {
        if !search.rooms()? || !search.known()? {
            break;
        }
    }
    search.apart()?;
    let is_above = |search: &Search<_>| search.made.program.workspace_bytes > aims.workspace;
    // the same from here on with windows at edges that read no margins, where there are any
    let has_edges = !search.made.found.in_parts.is_empty();
    let other = (has_edges && is_above(&search)).then(|| search.clone());
    search.copied()?;
    search.in_results()?;
    if let Some(mut other) = other.filter(|_| is_above(&search))
        && other.in_parts()?
    {
        other.copied()?;
        other.in_results()?;
        if is_worth_weights(&search.made.program, &other.made.program, aims.constants) {
            search = other;
        }
    }
    Ok((search.choices, search.made))
}

/// Whether the second program takes less memory, by more than what is near when it is read may be worth.
pub fn spares_much(now: &Program, then: &Program) -> bool {
    now.workspace_bytes.saturating_sub(then.workspace_bytes) * LEAST_SPARED > now.workspace_bytes
}

/// Whether the second program takes so much less memory that its constants may be larger, which are to be at most so many.
fn is_worth_weights(now: &Program, then: &Program, most: u64) -> bool {
    let grown = then.weights_bytes.saturating_sub(now.weights_bytes);
    let spared = now.workspace_bytes.saturating_sub(then.workspace_bytes);
    let worth = if then.weights_bytes <= most { spared * SCARCE } else { spared / FEW };
    spares_much(now, then) && worth > grown
}

struct Search<'a, 'p, S> {
    aims: &'a Aims,
    schedule: &'a S,
    choices: Choices,
    made: Candidate<'p>,
}

impl<S> Clone for Search<'_, '_, S> {
    fn clone(&self) -> Self {
        Search { choices: self.choices.clone(), made: self.made.clone(), ..*self }
    }
}

impl<'p, S: Fn(&Choices) -> Result<Candidate<'p>>> Search<'_, 'p, S> {
    /// Takes other choices where `better` says so of the programs without and with them.
    fn take(&mut self, choices: Choices, better: impl Fn(&Program, &Program) -> bool) -> Result<bool> {
        let made = (self.schedule)(&choices)?;
        let taken = better(&self.made.program, &made.program);
        if taken {
            (self.choices, self.made) = (choices, made);
        }
        Ok(taken)
    }

    /// Weights that stand at the peak are transformed at compile time where that takes more off the workspace than it adds to the
    /// constants, or half as much while the workspace is larger than aimed at. While it is, all that make it so are, whatever
    /// they add, as long as much is spared: one of several peaks alone would spare nothing. Whether any are.
    fn known(&mut self) -> Result<bool> {
        let before = self.choices.known.len();
        for _ in 0..ROUNDS {
            let Aims { workspace, constants } = *self.aims;
            if self.made.program.workspace_bytes > workspace {
                let better = |now: &Program, then: &Program| {
                    let spared = now.workspace_bytes.saturating_sub(then.workspace_bytes);
                    let enough = then.workspace_bytes <= workspace || spared * FAR_SPARED >= now.workspace_bytes;
                    then.weights_bytes <= constants && spared > 0 && enough
                };
                // convolutions may share weights, so that all of them add less than each for itself
                let (all, fitting) = (self.heaviest(u64::MAX), self.heaviest(constants));
                if self.take_known(&all, better)? || (fitting != all && self.take_known(&fitting, better)?) {
                    continue;
                }
            }
            let at_peak = workspace::at_peak(&self.made.program).into_iter();
            let all: HashSet<Key> = at_peak.filter_map(|b| self.made.found.transformed.get(&b).copied()).collect();
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

    /// The convolutions that need the largest workspaces with their transformed weights, as many as leave constants at most so
    /// many.
    fn heaviest(&self, most: u64) -> HashSet<Key> {
        let mut all = self.above(self.aims.workspace, &self.made.found.transformed);
        all.sort_by_key(|(key, own, others)| (std::cmp::Reverse(own + others), *key));
        let mut grown = self.made.program.weights_bytes;
        let fits = |(_, own, _): &(Key, u64, u64)| {
            // of a 3x3 window 9 of 36 numbers were constants before, and more of others
            grown += own - own / 4;
            grown <= most
        };
        all.into_iter().take_while(fits).map(|(key, ..)| key).collect()
    }

    /// Takes the weights of more convolutions as transformed at compile time where `better` says so.
    fn take_known(&mut self, more: &HashSet<Key>, better: impl Fn(&Program, &Program) -> bool) -> Result<bool> {
        let mut choices = self.choices.clone();
        choices.known.extend(more);
        if choices.known.len() == self.choices.known.len() {
            return Ok(false);
        }
        self.take(choices, better)
    }

    /// Bounds the scratch memory of convolutions by what dense arrays would need, and returns whether any got a bound. Winograd's method is
    /// faster than direct sums and needs memory between its transforms, which is no reason for a workspace that is larger than the arrays
    /// of the program: where it is, each convolution whose memory is above what the arrays leave at its launches gets that as a bound.
    fn rooms(&mut self) -> Result<bool> {
        let mut bounded = false;
        for _ in 0..ROUNDS {
            let rooms = self.short_of();
            if rooms.is_empty() {
                break;
            }
            let mut choices = self.choices.clone();
            choices.rooms.extend(rooms);
            if !self.take(choices, |now, then| then.workspace_bytes < now.workspace_bytes)? {
                break;
            }
            bounded = true;
        }
        Ok(bounded)
    }

    /// A part that is written where its concatenation lies holds all of that from then on. While the workspace is larger than aimed
    /// at, those at the peak are made as a whole when their last part is there.
    fn apart(&mut self) -> Result<()> {
        for _ in 0..ROUNDS {
            if self.made.program.workspace_bytes <= self.aims.workspace {
                break;
            }
            let at_peak = workspace::at_peak(&self.made.program).into_iter();
            let wholes: HashSet<InstId> = at_peak.filter_map(|b| self.made.found.wholes.get(&b).copied()).collect();
            if wholes.is_empty() {
                break;
            }
            let mut choices = self.choices.clone();
            choices.apart.extend(wholes);
            if !self.take(choices, spares_much)? {
                break;
            }
        }
        Ok(())
    }

    /// A plane with margins is larger than a dense one. While the workspace is larger than aimed at, those that make it so get
    /// their margins when what reads them comes.
    fn copied(&mut self) -> Result<()> {
        self.without_margins(|found| &found.margins, |choices| &mut choices.copied, spares_much)?;
        Ok(())
    }

    /// Lets windows at the edges leave out the taps that read margins, with weights of their own, while the workspace is larger than aimed
    /// at; returns whether any do. The memory of an argument has no margins, and a copy with margins is as large as the whole argument.
    fn in_parts(&mut self) -> Result<bool> {
        let most = self.aims.constants;
        let better = |now: &Program, then: &Program| is_worth_weights(now, then, most);
        self.without_margins(|found| &found.in_parts, |choices| &mut choices.in_parts, better)
    }

    /// Takes planes as chosen that make the workspace larger than aimed at with the margins they have: all of them, or else one, as
    /// a copy may stand at another peak. Whether any were.
    fn without_margins(
        &mut self,
        found: impl Fn(&SearchFacts) -> &HashMap<BufId, InstId>,
        chosen: impl Fn(&mut Choices) -> &mut HashSet<InstId>,
        better: impl Fn(&Program, &Program) -> bool,
    ) -> Result<bool> {
        let mut any = false;
        for _ in 0..ROUNDS {
            let mut planes = self.above(self.aims.workspace, found(&self.made.found));
            planes.sort_by_key(|(plane, own, _)| (std::cmp::Reverse(*own), *plane));
            let planes: Vec<InstId> = planes.into_iter().map(|(plane, ..)| plane).collect();
            let tries = std::iter::once(&planes[..]).chain(planes.chunks(1).take(MOST_ALONE));
            let mut taken = false;
            for planes in tries.filter(|planes| !planes.is_empty()) {
                let mut choices = self.choices.clone();
                chosen(&mut choices).extend(planes);
                taken = self.take(choices, &better)?;
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

    /// While the workspace is larger than aimed at, results hold other values until they are made. The caller's memory may not be
    /// aligned as the workspace is.
    fn in_results(&mut self) -> Result<()> {
        if self.made.program.workspace_bytes > self.aims.workspace {
            let choices = Choices { in_results: true, ..self.choices.clone() };
            self.take(choices, spares_much)?;
        }
        Ok(())
    }

    /// The convolutions that take more for themselves than leaves the workspace as large as aimed at, and how much would.
    fn short_of(&self) -> HashMap<Key, u64> {
        let most = self.aims.workspace;
        let all = self.above(most, &self.made.found.scratch).into_iter();
        all.map(|(key, _, others)| (key, most.saturating_sub(others))).collect()
    }

    /// The convolutions with whose memory of these buffers a workspace needs more than `most`: their own, and what all else takes
    /// then.
    fn above<T: Copy + Ord>(&self, most: u64, groups: &HashMap<BufId, T>) -> Vec<(T, u64, u64)> {
        let all = workspace::beside(&self.made.program, groups).into_iter();
        let above = all.filter(|(_, (own, others))| own + others > most);
        above.map(|(key, (own, others))| (key, own, others)).collect()
    }
}
