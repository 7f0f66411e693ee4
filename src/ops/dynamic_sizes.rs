//! Data-dependent sizes: sizes that a value of the call says, each with the largest that it can be and its run-time check.
use super::range;
use super::{LowerCtx, element};
use crate::diag::{Code, Error, Result};
use crate::hlo::symbolic::{BoundCheck, CheckedQuantity, DataDependentSize, Dim, InstId, Op};
use crate::interp;
use crate::ops::math::special::{add_scalar, compare_scalar};
use crate::scalar::{Direction, ScalarOp};
use crate::symbolic;
use crate::symbolic::trace::{self, Relation};
use crate::tensor::DType;
use std::collections::HashSet;

/// Largest derived bound of a data-dependent size for which memory is reserved as it is; beyond it the caller's bound
/// (`--bound`) applies.
const MOST_PROVEN: u64 = 1 << 16;

impl LowerCtx<'_> {
    /// Data-dependent size equal to the integer scalar `count` at run time and never larger than `most`, for use in array
    /// shapes; `bounded/` makes code for every such size from it. Equal counts share one size. `made` names the array in the
    /// error message.
    ///
    /// # Errors
    /// `DynamicShape` in a computation of scalars, where sizes are fixed.
    pub fn data_dependent_size(&mut self, count: InstId, most: Dim, made: &str) -> Result<Dim> {
        if most.is_zero() {
            return Ok(most);
        }
        let known = interp::symbolic_value(self.b, count);
        if let Some(&[size]) = known.as_ref().and_then(|known| known.sizes.as_deref()) {
            return Ok(size.max(Dim::from(0)).min(most));
        }
        let known = known.and_then(|known| known.value.get_i64(0));
        if let Some(known) =
            known.filter(|_| self.b.data_dependent_sizes().is_empty() || !self.is_from_empty_arrays(count))
        {
            return Ok(Dim::size(known).unwrap_or(Dim::from(0)).min(most));
        }
        let is_count = |f: &&DataDependentSize| f.most.is_same(most) && element::is_same_value(self.b, f.count, count);
        if let Some(known) = self.b.local_data_dependent_sizes().find(is_count) {
            return Ok(known.assumed);
        }
        let size = self.b.add_data_dependent_size(count, most).ok_or_else(|| {
            let told = format!(
                "how large {made} is depends on values at run time, and sizes of computations of scalars are fixed"
            );
            Error::user(Code::DynamicShape, told)
        })?;
        if self.b.data_dependent_sizes().last().is_some_and(|f| f.is_fixed) {
            self.claim_fixed(count, size, most);
        }
        Ok(size)
    }
    /// Adds a run-time check: a call fails if a size differs from the one that another shape requires.
    fn claim_fixed(&mut self, count: InstId, size: Dim, most: Dim) {
        let is_it = compare_scalar(self.b, Direction::Eq, count, size);
        let none = self.b.full_like(count, -1.0);
        let bound_check = self.b.select(is_it, count, none);
        self.add_bound_check(bound_check, if trace::depends_on_data(size) { most } else { size }, false);
    }
    /// The first `size` elements of the vector `x`.
    ///
    /// # Errors
    /// `ShapeMismatch` if `x` is known to have fewer elements.
    pub fn first_elements(&mut self, x: InstId, size: Dim) -> Result<InstId> {
        let n = self.b.dims(x).first().copied();
        let Some(n) = n.filter(|&n| self.b.require_less(size, n + 1)) else {
            let told = format!("{} has less than the {size} elements that are asked for", self.b.shape(x));
            return Err(self.shape_mismatch(told));
        };
        // A call with fewer elements fails by this check; memory for `size` elements is reserved all the same.
        let may_lack = trace::comparison_depends_on_data(size, Relation::Less, n + 1);
        let x = if may_lack { self.b.pad_axis(x, 0, size) } else { x };
        Ok(self.b.slice_axis(x, 0, Dim::from(0), size))
    }
    /// Size given by element `at` of an integer array. `made` names the sized array in error messages.
    ///
    /// # Errors
    /// `ShapeMismatch` for a known size that is negative; those of [`LowerCtx::size_from_scalar`].
    pub fn size_from_element(&mut self, array: InstId, at: Dim, made: &str) -> Result<Dim> {
        let flat = self.b.dims(array).iter().product();
        let line = self.b.reshape(array, &[flat]);
        let one = self.b.slice_axis(line, 0, at, at + 1);
        let one = self.b.reshape(one, &[]);
        let is_varying = !self.b.data_dependent_sizes().is_empty() && self.is_from_empty_arrays(one);
        match element::element_expr(self.b, array, at).as_size().filter(|_| !is_varying) {
            Some(n) => n.into_nonnegative().ok_or_else(|| self.shape_mismatch(format!("a size of {n}"))),
            None => self.size_from_scalar(one, made),
        }
    }
    /// Sizes given by the elements of input `i`. Known ones may be negative; others are bounded by what the caller allows.
    ///
    /// # Errors
    /// Errors of [`LowerCtx::size_from_scalar`].
    pub fn sizes_from_input(&mut self, i: usize) -> Result<Vec<Dim>> {
        if self.symbolic_value(i).is_some() {
            return self.constant_dims(i);
        }
        let (array, dims) = (self.arg(i)?, self.dims(i)?);
        let made = format!("what `{}` makes", self.node.name);
        let count = symbolic::product(&dims).map_or(0, Dim::guarded_count);
        (0..count).map(|at| self.size_from_element(array, Dim::from(at), &made)).collect()
    }
    /// Size given by input `i`, a single integer.
    ///
    /// # Errors
    /// `ShapeMismatch` if it is negative, `TooLarge` above 2^32; those of [`LowerCtx::size_from_scalar`].
    pub fn size_from_input(&mut self, i: usize) -> Result<Dim> {
        let (id, dims) = (self.arg(i)?, self.dims(i)?);
        if dims.iter().any(|&n| n != 1) {
            return Err(self.shape_mismatch(format!("input {i} must be one integer, not {dims:?}")));
        }
        let made = format!("what `{}` makes", self.node.name);
        match self.size_from_element(id, Dim::from(0), &made)? {
            n if n <= 1u64 << 32 => Ok(n),
            n => Err(Error::user(Code::TooLarge, format!("input {i} asks for {n} elements"))),
        }
    }
    /// Size given by an integer scalar. Unless range analysis finds a bound, the caller's bound applies. A call fails if the value is
    /// larger or negative.
    ///
    /// # Errors
    /// Errors of [`LowerCtx::data_dependent_size`].
    pub fn size_from_scalar(&mut self, count: InstId, made: &str) -> Result<Dim> {
        let range = self.ranges.scalar_range(self.b, count);
        let found = range.upper_bound().and_then(|most| Dim::size(most).ok()).filter(|&most| most <= MOST_PROVEN);
        match found {
            Some(most) if range.least >= 0 && !range.may_overflow => self.data_dependent_size(count, most, made),
            Some(most) => self.size_up_to(count, most, false, made),
            None => self.size_up_to(count, Dim::from(self.b.bound(&self.node.name)), true, made),
        }
    }
    /// Size given by an integer scalar that is at most `most` if the arguments are valid. Where `most` is too large to reserve
    /// memory for, the caller's bound applies instead. A call fails if the value exceeds the bound.
    ///
    /// # Errors
    /// Errors of [`LowerCtx::data_dependent_size`].
    pub fn bounded_size(&mut self, count: InstId, most: Dim, made: &str) -> Result<Dim> {
        let allowed = self.b.bound(&self.node.name);
        let is_proven = most <= MOST_PROVEN;
        self.size_up_to(count, if is_proven { most } else { Dim::from(allowed) }, !is_proven, made)
    }
    /// Size that is one more than the largest element of the integer vector `numbers`: the number of classes, segments or bins
    /// that they count.
    ///
    /// # Errors
    /// Errors of [`LowerCtx::data_dependent_size`].
    pub fn size_from_maximum(&mut self, numbers: InstId, made: &str) -> Result<Dim> {
        let range = self.ranges.element_range(self.b, numbers);
        let most = range.upper_bound().and_then(|most| Dim::size(most.checked_add(1)?).ok());
        let none = self.b.scalar(DType::S64, -1.0);
        let wide = self.b.convert(numbers, DType::S64);
        let last = self.b.reduce(wide, none, ScalarOp::Maximum, &[0]);
        let count = add_scalar(self.b, last, 1.0);
        match most.filter(|&most| most < 1u64 << 31) {
            Some(most) if range.may_overflow => self.size_up_to(count, most, false, made),
            Some(most) => {
                let count = self.b.convert(count, DType::S32);
                self.data_dependent_size(count, most, made)
            }
            None => self.size_from_scalar(count, made),
        }
    }
    fn size_up_to(&mut self, count: InstId, most: Dim, is_allowed: bool, made: &str) -> Result<Dim> {
        let (asked, taken) = self.clamped(count, most);
        let size = self.data_dependent_size(taken, most, made)?;
        self.add_bound_check(asked, most, is_allowed);
        Ok(size)
    }
    /// Clamps `count` to `0..=most` and records a run-time check: a call fails if the value lies outside.
    pub fn clamp_checked(&mut self, count: InstId, most: Dim) -> InstId {
        let (asked, taken) = self.clamped(count, most);
        self.add_bound_check(asked, most, false);
        taken
    }
    /// Records a run-time check: a call fails if `asked` exceeds `most`, the number of elements of state that the caller
    /// reserves for `owner`.
    ///
    /// # Errors
    /// `Code::UnsupportedCase` in computations that cannot pass the check up to the entry.
    pub fn check_state_size(&mut self, owner: &str, asked: InstId, most: u64) -> Result<()> {
        if !self.b.carries_checks() {
            return Err(self.unsupported_case(format!("`{owner}` grows in a function of scalars or in a condition")));
        }
        let value = self.b.convert(asked, DType::S32);
        self.b.add_bound_check(BoundCheck {
            node: owner.to_string(),
            quantity: CheckedQuantity::Size,
            value,
            most,
            is_allowed: true,
        });
        Ok(())
    }
    /// Number of elements for which a list reserves memory, clamped to the caller's bound, and that bound. A call fails if
    /// `count` is larger or negative. `None` inside a loop or branch.
    pub fn list_capacity(&mut self, count: InstId) -> Option<(InstId, Dim)> {
        if self.b.nesting_depth() > 1 {
            return None;
        }
        let most = self.b.bound(&self.node.name);
        let (asked, taken) = self.clamped(count, Dim::from(most));
        self.add_bound_check(asked, Dim::from(most), true);
        Some((taken, Dim::from(most)))
    }
    /// `count` clamped to `-1..=most + 1`, for the run-time check, and clamped to `0..=most`, for use.
    fn clamped(&mut self, count: InstId, most: Dim) -> (InstId, InstId) {
        let (low, high) = (self.b.full_like(count, -1.0), self.b.full_like(count, most + 1));
        let asked = self.b.elementwise(ScalarOp::Clamp, &[low, count, high]);
        let (none, room) = (self.b.full_like(count, 0.0), self.b.full_like(count, most));
        (asked, self.b.elementwise(ScalarOp::Clamp, &[none, asked, room]))
    }
    /// Records a run-time check: a call fails if `asked` is negative or exceeds `most`.
    fn add_bound_check(&mut self, asked: InstId, most: Dim, is_allowed: bool) {
        let value = self.b.convert(asked, DType::S32);
        let bound_checks = self.b.bound_checks();
        if !bound_checks.iter().any(|c| most.is_same(c.most.into()) && element::is_same_value(self.b, c.value, value)) {
            let node = self.node.name.to_string();
            self.b
                .check_at_most(most, BoundCheck { node, quantity: CheckedQuantity::Size, value, most: 0, is_allowed });
        }
    }
    /// Whether a value is computed from arrays without elements. Such a value may be known only
    /// because a data-dependent size is assumed to be 0 during lowering, and is then itself data-dependent.
    fn is_from_empty_arrays(&self, value: InstId) -> bool {
        let insts = &self.b.current_computation().insts;
        let (mut todo, mut seen) = (vec![value], HashSet::new());
        while let Some(id) = todo.pop() {
            let Some(inst) = insts.get(id).filter(|_| seen.insert(id)) else { continue };
            if inst.shape.as_array().is_some_and(|a| a.dims.iter().any(|d| d.is_zero())) {
                return true;
            }
            // Of a concatenation only the part that the slice reads counts.
            match (&inst.op, inst.operands.first()) {
                (Op::Slice(dims), Some(&from)) => {
                    todo.push(range::concatenated_operand(self.b, from, dims).unwrap_or(from))
                }
                _ => todo.extend(&inst.operands),
            }
        }
        false
    }
}
