//! Loops that are run ahead of several branches that use what they give.
//!
//! What is there on one side of a test only is computed anew in each branch that uses it. A loop that changes something, as one does whose
//! gradients are taken, must run once. So where several branches use it, it runs before them, in the region around: what it takes is
//! computed as if the tests had that outcome, and its condition also asks for them, so that it has no round if they have another.
use super::Flow;
use super::draft::{Draft, plain};
use super::emit::truth;
use super::region::{NodeOrLoop, Region, RegionStep};
use crate::diag::Result;
use crate::graph::{Endpoint, Node};
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// The ordered steps of a region.
pub struct RegionSteps {
    /// The steps, producers first.
    pub steps: Vec<RegionStep>,
    /// Loops among them that are not always there.
    pub ahead: BTreeSet<usize>,
}

impl Flow<'_> {
    /// The steps of a region. Errors: `BadGraph` for units that wait for each other.
    pub fn steps(&mut self, region: &Region) -> Result<RegionSteps> {
        let waits = self.all_waits(region);
        let mut ahead = BTreeSet::new();
        loop {
            let steps = self.steps_of(region, &waits, &ahead)?;
            let more = self.used_by_several(region, &waits, &steps, &ahead);
            if more.is_subset(&ahead) {
                return Ok(RegionSteps { steps, ahead });
            }
            ahead.extend(more);
        }
    }

    /// The loops that change something and that several branches of a region would run, or one that is run ahead.
    fn used_by_several(
        &mut self,
        region: &Region,
        waits: &BTreeMap<NodeOrLoop, Vec<NodeOrLoop>>,
        steps: &[RegionStep],
        ahead: &BTreeSet<usize>,
    ) -> BTreeSet<usize> {
        let branches: Vec<&[NodeOrLoop]> = steps.iter().filter_map(RegionStep::decided).collect();
        let decided: HashSet<NodeOrLoop> = branches.iter().flat_map(|units| units.iter().copied()).collect();
        let mut several = BTreeSet::new();
        for &frame in ahead {
            several.extend(self.runs(region, waits, &[NodeOrLoop::Loop(frame)], &decided));
        }
        let mut once = BTreeSet::new();
        for units in branches {
            let runs = self.runs(region, waits, units, &decided);
            several.extend(runs.iter().filter(|frame| !once.insert(**frame)));
        }
        several
    }

    /// The loops that change something among these units and what they wait for inside of their branch.
    fn runs(
        &mut self,
        region: &Region,
        waits: &BTreeMap<NodeOrLoop, Vec<NodeOrLoop>>,
        units: &[NodeOrLoop],
        decided: &HashSet<NodeOrLoop>,
    ) -> BTreeSet<usize> {
        let (mut todo, mut seen, mut loops) = (units.to_vec(), HashSet::new(), BTreeSet::new());
        while let Some(unit) = todo.pop() {
            if !seen.insert(unit) {
                continue;
            }
            if let NodeOrLoop::Loop(frame) = unit
                && !self.effects[frame].is_empty()
            {
                loops.insert(frame);
            }
            for &from in waits.get(&unit).into_iter().flatten() {
                let f = self.unit_live(from);
                if !decided.contains(&from) && !self.always(f, &region.path) {
                    todo.push(from);
                }
            }
        }
        loops
    }

    /// Runs a loop in a region where it is not always there.
    pub fn emit_ahead(
        &mut self,
        region: &Region,
        draft: &mut Draft,
        frame: usize,
        ahead: &BTreeSet<usize>,
        depth: usize,
    ) -> Result<()> {
        let unit = NodeOrLoop::Loop(frame);
        let f = self.unit_live(unit);
        let f = self.live.formulas.under(f, &region.path);
        let way = self.live.formulas.only_way(f).ok_or_else(|| self.shared(region, unit))?;
        let inside = Region {
            frame: region.frame,
            path: [&region.path[..], &way].concat(),
            around: Some(region.path.clone()),
            targets: way.iter().filter_map(|&(test, _)| Some(self.test(test)?.at)).collect(),
            effects: vec![unit],
            ahead: region.ahead.iter().chain(ahead).copied().filter(|&other| other != frame).collect(),
            guard: [&region.guard[..], &way].concat(),
            into: Some(Box::new(region.clone())),
            ..Region::default()
        };
        // What it computes holds under these outcomes only.
        let (kept, values) = (draft.kept.clone(), draft.values.clone());
        self.emit_steps(&inside, draft, depth + 1)?;
        let exits = self.frames.all[frame].exits.iter().map(|&node| Endpoint { node, port: 0 });
        let given: Vec<_> = exits.filter_map(|e| Some((e, *draft.values.get(&e)?))).collect();
        draft.kept = kept;
        draft.values = values;
        draft.values.extend(given);
        draft.keep_arguments();
        Ok(())
    }

    /// Has the condition of a loop ask for what must hold besides in a region.
    pub fn guard(&mut self, region: &Region, cond: &mut Draft) {
        for &(number, value) in &region.guard {
            let Some(test) = self.test(number) else { continue };
            let at = cond.argument(test.at, self.type_of(test.at));
            let mut holds = truth(cond, test, at);
            if !value {
                let not = Node { inputs: [holds].into(), ..plain("not", "LogicalNot") };
                holds = Endpoint { node: cond.push(not), port: 0 };
            }
            let Some(goes_on) = cond.rets.first().copied() else { continue };
            let and = Node { inputs: [goes_on, holds].into(), ..plain("guarded", "LogicalAnd") };
            cond.rets = vec![Endpoint { node: cond.push(and), port: 0 }];
        }
    }
}
