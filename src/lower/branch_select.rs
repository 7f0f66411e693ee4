//! Conditionals whose branches return arrays of different sizes, which HLO's `conditional` can't express: all branches are computed, and
//! the results of the taken one are selected.
//!
//! The size of a selected result is data-dependent, as it follows from the branch index. Branches with loops are refused, since a loop in
//! a branch that is not taken might never end.
use super::walker::{ValueSlot, Walker};
use crate::diag::{Code, Error, Result};
use crate::graph::FuncRef;
use crate::hlo::symbolic::{BoundCheck, Dim, InstId};
use crate::ops::Value;
use crate::scalar::{Direction, ScalarOp};
use crate::tensor::{DType, Tensor};
use std::collections::BTreeSet;

impl Walker<'_> {
    /// Computes all branches, and selects the results of branch `index` (of the first one where `index` is the truth value true). `None`
    /// where a branch has side effects or returns values other than arrays.
    pub(super) fn lower_branches_by_select(
        &mut self,
        index: InstId,
        branches: &[&FuncRef],
        args: &[Value],
    ) -> Result<Option<Vec<ValueSlot>>> {
        for branch in branches {
            if self.accesses.function_effects(self.program, &branch.name).has_side_effects() {
                return Ok(None);
            }
        }
        let outer = std::mem::replace(&mut self.is_selecting_branches, true);
        let made = self.compute_and_select(index, branches, args);
        self.is_selecting_branches = outer;
        made
    }

    fn compute_and_select(
        &mut self,
        index: InstId,
        branches: &[&FuncRef],
        args: &[Value],
    ) -> Result<Option<Vec<ValueSlot>>> {
        let mark = self.checkpoint();
        let mut apart = self.differing_axes(branches, args)?;
        self.roll_back(&mark);
        let astray = self.lower_with_perturbed_sizes(&mark, |w| w.differing_axes(branches, args));
        self.roll_back(&mark);
        apart.extend(astray?);
        let mut left: Option<Vec<Value>> = None;
        // beginning with the last branch, which is taken for every index out of range
        for (i, branch) in branches.iter().enumerate().rev() {
            let is_taken = self.branch_predicate(index, i, branches.len());
            let before = self.b.bound_checks().len();
            let Some(values) = self.inline_requiring_all_results(branch, args.to_vec())? else { return Ok(None) };
            self.mask_checks(before, is_taken);
            left = match left {
                None => Some(values),
                Some(others) => self.select_results(is_taken, &values, &others, &apart)?,
            };
            if left.is_none() {
                return Ok(None);
            }
        }
        Ok(left.map(|values| values.into_iter().map(Some).collect()))
    }

    /// Pairs (index of a result, axis) for which the branches return different sizes.
    fn differing_axes(&mut self, branches: &[&FuncRef], args: &[Value]) -> Result<BTreeSet<(usize, usize)>> {
        let mut apart = BTreeSet::new();
        let mut first: Option<Vec<Vec<Dim>>> = None;
        for branch in branches {
            let values = self.inline_requiring_all_results(branch, args.to_vec())?.unwrap_or_default();
            let dims = values.iter().map(|value| match value {
                Value::Array(id) => self.b.dims(*id).to_vec(),
                _ => Vec::new(),
            });
            let dims: Vec<Vec<Dim>> = dims.collect();
            for (result, (a, b)) in first.iter().flatten().zip(&dims).enumerate() {
                let axes = a.iter().zip(b).enumerate().filter(|(_, (a, b))| !a.is_same(**b));
                apart.extend(axes.map(|(axis, _)| (result, axis)));
            }
            first.get_or_insert(dims);
        }
        Ok(apart)
    }

    /// Emits the predicate (a scalar of type pred) that is true if `index` selects branch `i` of `count`; an index out of range selects the
    /// last.
    fn branch_predicate(&mut self, index: InstId, i: usize, count: usize) -> InstId {
        if self.b.dtype(index) == DType::Pred {
            let first = self.b.constant(Tensor::from_bools(&[], &[i == 0]));
            return self.b.compare(Direction::Eq, index, first);
        }
        let number = self.b.full_like(index, i as f64);
        if i + 1 < count {
            return self.b.compare(Direction::Eq, index, number);
        }
        let none = self.b.full_like(index, 0.0);
        let (behind, before) =
            (self.b.compare(Direction::Ge, index, number), self.b.compare(Direction::Lt, index, none));
        self.b.binary(ScalarOp::Or, behind, before)
    }

    /// Replaces the values of the run-time checks from index `before` on by 0, so that they pass, if their branch is not taken.
    fn mask_checks(&mut self, before: usize, is_taken: InstId) {
        for bound_check in self.b.take_bound_checks(before) {
            let none = self.b.full_like(bound_check.value, 0.0);
            let value = self.b.select(is_taken, bound_check.value, none);
            self.b.add_bound_check(BoundCheck { value, ..bound_check });
        }
    }

    fn select_results(
        &mut self,
        is_taken: InstId,
        ours: &[Value],
        others: &[Value],
        apart: &BTreeSet<(usize, usize)>,
    ) -> Result<Option<Vec<Value>>> {
        if ours.len() != others.len() {
            return Err(Error::user(Code::BadFunction, "the branches have different numbers of results"));
        }
        let mut out = Vec::with_capacity(ours.len());
        for (i, pair) in ours.iter().zip(others).enumerate() {
            let (Value::Array(x), Value::Array(y)) = pair else { return Ok(None) };
            let axes: Vec<usize> = apart.iter().filter(|(result, _)| *result == i).map(|a| a.1).collect();
            let Some(one) = self.select_array(is_taken, *x, *y, &axes)? else { return Ok(None) };
            out.push(Value::Array(one));
        }
        Ok(Some(out))
    }

    /// Selects the array `x` if the scalar `is_taken` is true, else `y`. Sizes may differ along the axes in `apart`; the size of the result
    /// is then data-dependent.
    fn select_array(&mut self, is_taken: InstId, x: InstId, y: InstId, apart: &[usize]) -> Result<Option<InstId>> {
        if self.b.rank(x) != self.b.rank(y) || self.b.dtype(x) != self.b.dtype(y) {
            return Ok(None);
        }
        let (mut x, mut y) = (x, y);
        for &axis in apart {
            let (ours, theirs) = (self.b.dims(x)[axis], self.b.dims(y)[axis]);
            let (of_x, of_y) = (self.b.scalar(DType::S32, ours), self.b.scalar(DType::S32, theirs));
            let count = self.b.select(is_taken, of_x, of_y);
            let told = "how large what a branch leaves is depends on values at run time";
            let size = self
                .b
                .add_data_dependent_size(count, ours.max(theirs))
                .ok_or_else(|| Error::user(Code::DynamicShape, told))?;
            x = self.resize_axis(x, axis, theirs, size);
            y = self.resize_axis(y, axis, ours, size);
        }
        let dims = self.b.dims(x).to_vec();
        let is_taken = self.b.broadcast(is_taken, &dims, &[]);
        Ok(Some(self.b.select(is_taken, x, y)))
    }

    /// Pads `x` by `more` elements along an axis, and truncates the axis to `size` elements.
    fn resize_axis(&mut self, x: InstId, axis: usize, more: Dim, size: Dim) -> InstId {
        let roomy = self.b.pad_axis(x, axis, more);
        self.b.slice_axis(roomy, axis, Dim::from(0), size)
    }
}
