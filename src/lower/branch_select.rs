//! Branches that leave arrays of different sizes: what they leave is selected, as a `conditional` of HLO leaves fixed sizes.
//!
//! All branches are computed, in the open computation. A result is as long as that of the branch that counts, which is a size that values
//! say. Branches with loops are refused, as one that does not count might never end.
use super::walker::{Slot, Walker};
use crate::diag::{Code, Error, Result};
use crate::graph::FuncRef;
use crate::hlo::open::{Claim, Dim, InstId};
use crate::ops::Value;
use crate::scalar::{Direction, ScalarOp};
use crate::tensor::{DType, Tensor};
use std::collections::BTreeSet;

impl Walker<'_> {
    /// Results of the branch of number `index` (the first where `index` is true), selected among those of all branches; `None` where branches
    /// do more than compute arrays.
    pub(super) fn selected(
        &mut self,
        index: InstId,
        branches: &[&FuncRef],
        args: &[Value],
    ) -> Result<Option<Vec<Slot>>> {
        for branch in branches {
            if self.accesses.function(self.program, &branch.name).acts() {
                return Ok(None);
            }
        }
        let outer = std::mem::replace(&mut self.is_selecting, true);
        let made = self.select_all(index, branches, args);
        self.is_selecting = outer;
        made
    }

    fn select_all(&mut self, index: InstId, branches: &[&FuncRef], args: &[Value]) -> Result<Option<Vec<Slot>>> {
        let mark = self.mark();
        let mut apart = self.axes_apart(branches, args)?;
        self.return_to(&mark);
        let astray = self.astray(&mark, |w| w.axes_apart(branches, args));
        self.return_to(&mark);
        apart.extend(astray?);
        let mut left: Option<Vec<Value>> = None;
        // from the last on, which counts for all numbers out of range
        for (i, branch) in branches.iter().enumerate().rev() {
            let counts = self.is_branch(index, i, branches.len());
            let before = self.b.claims().len();
            let Some(values) = self.call_whole(branch, args.to_vec())? else { return Ok(None) };
            self.hold_claims(before, counts);
            left = match left {
                None => Some(values),
                Some(others) => self.select_each(counts, &values, &others, &apart)?,
            };
            if left.is_none() {
                return Ok(None);
            }
        }
        Ok(left.map(|values| values.into_iter().map(Some).collect()))
    }

    /// The axes of results, each with the number of the result, of which branches leave different sizes.
    fn axes_apart(&mut self, branches: &[&FuncRef], args: &[Value]) -> Result<BTreeSet<(usize, usize)>> {
        let mut apart = BTreeSet::new();
        let mut first: Option<Vec<Vec<Dim>>> = None;
        for branch in branches {
            let values = self.call_whole(branch, args.to_vec())?.unwrap_or_default();
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

    /// Whether branch `i` of `count` is the one of number `index`.
    fn is_branch(&mut self, index: InstId, i: usize, count: usize) -> InstId {
        if self.b.dtype(index) == DType::Pred {
            let first = self.b.constant(Tensor::preds(&[], &[i == 0]));
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

    /// Lets claims behind the first `before` ask for nothing where their branch does not count.
    fn hold_claims(&mut self, before: usize, counts: InstId) {
        for claim in self.b.take_claims(before) {
            let none = self.b.full_like(claim.value, 0.0);
            let value = self.b.select(counts, claim.value, none);
            self.b.claim(Claim { value, ..claim });
        }
    }

    fn select_each(
        &mut self,
        counts: InstId,
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
            let Some(one) = self.select_one(counts, *x, *y, &axes)? else { return Ok(None) };
            out.push(Value::Array(one));
        }
        Ok(Some(out))
    }

    /// One of two arrays, which may have different sizes along some axes.
    fn select_one(&mut self, counts: InstId, x: InstId, y: InstId, apart: &[usize]) -> Result<Option<InstId>> {
        if self.b.rank(x) != self.b.rank(y) || self.b.dtype(x) != self.b.dtype(y) {
            return Ok(None);
        }
        let (mut x, mut y) = (x, y);
        for &axis in apart {
            let (ours, theirs) = (self.b.dims(x)[axis], self.b.dims(y)[axis]);
            let (of_x, of_y) = (self.b.scalar(DType::S32, ours), self.b.scalar(DType::S32, theirs));
            let count = self.b.select(counts, of_x, of_y);
            let told = "how large what a branch leaves is depends on values at run time";
            let size =
                self.b.data_size(count, ours.max(theirs)).ok_or_else(|| Error::user(Code::DynamicShape, told))?;
            x = self.resized(x, axis, theirs, size);
            y = self.resized(y, axis, ours, size);
        }
        let dims = self.b.dims(x).to_vec();
        let counts = self.b.broadcast(counts, &dims, &[]);
        Ok(Some(self.b.select(counts, x, y)))
    }

    /// `x` with `size` elements along an axis, which are no more than it has and `more`.
    fn resized(&mut self, x: InstId, axis: usize, more: Dim, size: Dim) -> InstId {
        let roomy = self.b.pad_axis(x, axis, more);
        self.b.slice_axis(roomy, axis, Dim::from(0), size)
    }
}
