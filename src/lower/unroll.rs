//! Unrolling of loops, and data-dependent sizes within loops and branches.
//!
//! The results of a loop or branch in HLO have fixed sizes, while arrays within may have data-dependent ones (`Where`, non-maximum
//! suppression). A loop whose results have data-dependent sizes is unrolled into the entry computation, if its condition is a constant
//! before each iteration.
use super::walker::{ValueSlot, Walker};
use crate::diag::{Code, Error, Result};
use crate::graph::FuncRef;
use crate::hlo;
use crate::ops::mutable_list::MutableLists;
use crate::ops::range::RangeAnalysis;
use crate::ops::spec::ValueSpec;
use crate::ops::{Value, VariableStore};
use crate::symbolic::Dim;

/// Upper bound on the unrolled iterations of a program, those of nested loops counted each time: data-dependent sizes are compared with
/// one another, so that compile time grows faster than their number.
const MAX_UNROLLED_ITERATIONS: usize = 64;

/// Snapshot of the walker and the builder, to undo lowering from there on.
pub(super) struct LoweringCheckpoint {
    store: VariableStore,
    mutable_lists: MutableLists,
    ranges: RangeAnalysis,
    pub errors: usize,
    pub module: hlo::BuilderCheckpoint,
}

/// Replaces each result by `None`, for use where lowering failed and diagnostics have been reported; errors are passed on.
pub(super) fn discard_values_of_attempt(made: Result<Vec<ValueSlot>>) -> Result<Vec<ValueSlot>> {
    made.map(|values| vec![None; values.len()])
}

impl Walker<'_> {
    /// Lowers a loop, and returns the final values of its variables. Tries an HLO loop first, then unrolling, then an HLO loop whose lists
    /// have capacity for as many iterations as the caller allows.
    pub(super) fn lower_while_loop(
        &mut self,
        cond: &FuncRef,
        body: &FuncRef,
        args: Vec<Value>,
    ) -> Result<Vec<ValueSlot>> {
        if self.is_selecting_branches {
            let told = "a loop in a branch that leaves arrays of another size than other branches";
            return Err(Error::user(Code::DynamicShape, told));
        }
        let (is_entry, may_be_allowed) =
            (self.b.nesting_depth() == 1, self.has_resizing_lists && self.user_trip_limit(body).is_none());
        if !(is_entry || may_be_allowed && self.b.carries_checks()) {
            return self.lower_while_as_hlo(cond, body, args, None);
        }
        let mark = self.checkpoint();
        let looped = self.lower_with_fixed_result_shapes(|w| w.lower_while_as_hlo(cond, body, args.clone(), None));
        if !self.failed_with_code(&looped, &mark, |code| code == Code::DynamicShape) {
            return looped;
        }
        let told = self.errors.split_off(mark.errors);
        self.roll_back(&mark);
        if is_entry && let Some(values) = self.unroll_loop(cond, body, args.clone())? {
            return Ok(values);
        }
        self.roll_back(&mark);
        if may_be_allowed {
            let allowed = self.b.bound(&self.b.metadata.op_name);
            let bounded = self.lower_while_as_hlo(cond, body, args, Some(Dim::from(allowed)));
            if !self.failed_with_code(&bounded, &mark, |_| true) {
                return bounded;
            }
            self.roll_back(&mark);
        }
        self.errors.extend(told);
        discard_values_of_attempt(looped)
    }

    /// Lowers a loop or conditional by `lower`, and checks that the shapes of its results do not depend on data-dependent sizes created
    /// within. Errors: `DynamicShape` if lowering again with other assumed sizes gives other shapes.
    pub(super) fn lower_with_fixed_result_shapes(
        &mut self,
        lower: impl Fn(&mut Self) -> Result<Vec<ValueSlot>>,
    ) -> Result<Vec<ValueSlot>> {
        let mark = self.checkpoint();
        let made = lower(self);
        let has_own = self.b.data_dependent_sizes().len() > mark.module.found;
        if mark.module.depth > 1 || !has_own || self.failed_with_code(&made, &mark, |_| true) {
            return made;
        }
        let specs = self.slot_specs(made?);
        self.roll_back(&mark);
        let other = self.lower_with_perturbed_sizes(&mark, &lower);
        let is_same = !self.failed_with_code(&other, &mark, |_| true) && self.slot_specs(other?) == specs;
        self.roll_back(&mark);
        if is_same {
            return lower(self);
        }
        let told = "how large what a loop or a branch leaves is depends on values within, and it has fixed sizes";
        Err(Error::user(Code::DynamicShape, told))
    }

    /// Runs `lower` with changed assumed values of the data-dependent sizes created after `from`, so that the caller can see which results
    /// depend on these sizes.
    pub(super) fn lower_with_perturbed_sizes<T>(
        &mut self,
        from: &LoweringCheckpoint,
        lower: impl Fn(&mut Self) -> T,
    ) -> T {
        let before = self.b.perturb_sizes_from(None);
        let first = before.map_or(from.module.found, |first| first.min(from.module.found));
        self.b.perturb_sizes_from(Some(first));
        let made = lower(self);
        self.b.perturb_sizes_from(before);
        made
    }

    fn slot_specs(&self, values: Vec<ValueSlot>) -> Vec<Option<ValueSpec>> {
        values.iter().map(|value| value.as_ref().map(|value| self.value_spec(value))).collect()
    }

    pub(super) fn checkpoint(&self) -> LoweringCheckpoint {
        let (store, mutable_lists, ranges) = (self.store.clone(), self.mutable_lists.clone(), self.ranges.clone());
        LoweringCheckpoint { store, mutable_lists, ranges, errors: self.errors.len(), module: self.b.checkpoint() }
    }

    /// Restores a snapshot, which discards everything lowered since.
    pub(super) fn roll_back(&mut self, mark: &LoweringCheckpoint) {
        (self.store, self.mutable_lists) = (mark.store.clone(), mark.mutable_lists.clone());
        self.ranges = mark.ranges.clone();
        self.errors.truncate(mark.errors);
        self.b.roll_back_to(&mark.module);
    }

    /// Whether lowering since the snapshot failed with a diagnostic whose code satisfies `of_kind`.
    pub(super) fn failed_with_code(
        &self,
        made: &Result<Vec<ValueSlot>>,
        mark: &LoweringCheckpoint,
        of_kind: impl Fn(Code) -> bool,
    ) -> bool {
        match made {
            Err(Error::User(all)) => all.iter().any(|d| of_kind(d.code)),
            Err(_) => false,
            Ok(_) => self.errors[mark.errors..].iter().any(|d| of_kind(d.code)),
        }
    }

    /// Unrolls a loop, and returns the final values of its variables. `None` where the condition is no constant before an iteration, or
    /// where there are more than [`MAX_UNROLLED_ITERATIONS`] iterations.
    fn unroll_loop(&mut self, cond: &FuncRef, body: &FuncRef, args: Vec<Value>) -> Result<Option<Vec<ValueSlot>>> {
        let (mut values, mut left) = (args, self.user_trip_limit(body).unwrap_or(Dim::from(u64::MAX)));
        loop {
            let test = self.inline_requiring_all_results(cond, values.clone())?;
            let Some(test) = test.as_ref().and_then(|results| results.first()) else { return Ok(None) };
            let test = self.scalar_predicate(test)?;
            let Some(goes_on) = self.constant_value(&Value::Array(test)).and_then(|t| t.get_i64(0)) else {
                return Ok(None);
            };
            if goes_on == 0 || left == 0 {
                return Ok(Some(values.into_iter().map(Some).collect()));
            }
            if self.unrolled_iterations == MAX_UNROLLED_ITERATIONS {
                return Ok(None);
            }
            (self.unrolled_iterations, left) = (self.unrolled_iterations + 1, left - 1);
            let count = values.len();
            match self.inline_requiring_all_results(body, values)? {
                Some(next) => values = next,
                None => return Ok(Some(vec![None; count])),
            }
        }
    }
}
