//! Hoisting of loops with side effects out of several branches that use their results.
//!
//! A value that is live on one side of a test only is computed in each branch that uses it. A loop with side effects, such as one whose
//! gradient is taken, must run once. If several branches use it, the loop runs before them, in the surrounding region: its inputs are
//! computed as if the tests had the outcome of that side, and the tests are added to its condition, so that it has no iteration if they
//! have another outcome.
use super::Functionalizer;
use super::emit::predicate_of_test;
use super::function_draft::{FunctionDraft, new_node};
use super::region::{NodeOrLoop, Region, RegionStep};
use crate::diag::Result;
use crate::graph::{Endpoint, Node};
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// Ordered steps of a region.
pub struct RegionSteps {
    /// Steps, producers first.
    pub steps: Vec<RegionStep>,
    /// Loops among the steps that are hoisted out of branches.
    pub hoisted: BTreeSet<usize>,
}

impl Functionalizer<'_> {
    /// Orders the steps of a region, with loops hoisted as needed. Errors: internal, for units that depend on each other.
    pub fn order_steps_with_hoisting(&mut self, region: &Region) -> Result<RegionSteps> {
        let waits = self.all_dependencies(region);
        let mut hoisted = BTreeSet::new();
        loop {
            let steps = self.order_steps(region, &waits, &hoisted)?;
            let more = self.loops_used_by_several(region, &waits, &steps, &hoisted);
            if more.is_subset(&hoisted) {
                return Ok(RegionSteps { steps, hoisted });
            }
            hoisted.extend(more);
        }
    }

    /// Loops with side effects that several branches of a region, or a hoisted loop, would run.
    fn loops_used_by_several(
        &mut self,
        region: &Region,
        waits: &BTreeMap<NodeOrLoop, Vec<NodeOrLoop>>,
        steps: &[RegionStep],
        hoisted: &BTreeSet<usize>,
    ) -> BTreeSet<usize> {
        let branches: Vec<&[NodeOrLoop]> = steps.iter().filter_map(RegionStep::branch_units).collect();
        let decided: HashSet<NodeOrLoop> = branches.iter().flat_map(|units| units.iter().copied()).collect();
        let mut several = BTreeSet::new();
        for &frame in hoisted {
            several.extend(self.loops_with_effects(region, waits, &[NodeOrLoop::Loop(frame)], &decided));
        }
        let mut once = BTreeSet::new();
        for units in branches {
            let runs = self.loops_with_effects(region, waits, units, &decided);
            several.extend(runs.iter().filter(|frame| !once.insert(**frame)));
        }
        several
    }

    /// Loops with side effects that run if `units` run in a branch: those among `units`, and among their dependencies within the branch.
    fn loops_with_effects(
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
                let f = self.run_condition(from);
                if !decided.contains(&from) && !self.is_always_live(f, &region.path) {
                    todo.push(from);
                }
            }
        }
        loops
    }

    /// Emits a hoisted loop in a region where it is not always live.
    pub fn emit_hoisted_loop(
        &mut self,
        region: &Region,
        draft: &mut FunctionDraft,
        frame: usize,
        hoisted: &BTreeSet<usize>,
        depth: usize,
    ) -> Result<()> {
        let unit = NodeOrLoop::Loop(frame);
        let f = self.run_condition(unit);
        let f = self.live.formulas.restrict(f, &region.path);
        let way = self.live.formulas.as_cube(f).ok_or_else(|| self.shared_effect_error(region, unit))?;
        let inside = Region {
            frame: region.frame,
            path: [&region.path[..], &way].concat(),
            around: Some(region.path.clone()),
            targets: way.iter().filter_map(|&(test, _)| Some(self.branch_test(test)?.at)).collect(),
            effects: vec![unit],
            hoisted: region.hoisted.iter().chain(hoisted).copied().filter(|&other| other != frame).collect(),
            guard: [&region.guard[..], &way].concat(),
            into: Some(Box::new(region.clone())),
            ..Region::default()
        };
        // values computed there are valid under these outcomes only
        let (kept, values) = (draft.kept.clone(), draft.values.clone());
        self.emit_steps(&inside, draft, depth + 1)?;
        let exits = self.frames.all[frame].exits.iter().map(|&node| Endpoint { node, port: 0 });
        let given: Vec<_> = exits.filter_map(|e| Some((e, *draft.values.get(&e)?))).collect();
        draft.kept = kept;
        draft.values = values;
        draft.values.extend(given);
        draft.restore_argument_order();
        Ok(())
    }

    /// Adds the guard of a region to the condition of a loop.
    pub fn add_guard_to_condition(&mut self, region: &Region, cond: &mut FunctionDraft) {
        for &(number, value) in &region.guard {
            let Some(test) = self.branch_test(number) else { continue };
            let at = cond.capture(test.at, self.type_of(test.at));
            let mut holds = predicate_of_test(cond, test, at);
            if !value {
                let not = Node { inputs: [holds].into(), ..new_node("not", "LogicalNot") };
                holds = Endpoint { node: cond.push(not), port: 0 };
            }
            let Some(goes_on) = cond.rets.first().copied() else { continue };
            let and = Node { inputs: [goes_on, holds].into(), ..new_node("guarded", "LogicalAnd") };
            cond.rets = vec![Endpoint { node: cond.push(and), port: 0 }];
        }
    }
}
