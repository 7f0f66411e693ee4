//! Hoisting of run-time checks out of loops and branches to the entry computation, where a call can fail.
//!
//! A run-time check (`BoundCheck`) is a value of the computation that makes it. A loop carries the maximum over all iterations in an
//! additional element of its state; a branch returns the value as an additional result, and the other branches return 0. The checks of a
//! computation are known only once it has been lowered, so that a computation with checks is lowered a second time, with the additional
//! elements.
use super::walker::Walker;
use crate::hlo::symbolic::{BoundCheck, Builder, CheckedQuantity, Shape};
use crate::ops::Value;
use crate::ops::spec::ValueSpec;
use crate::scalar::ScalarOp;
use crate::tensor::{DType, Tensor};

/// Specs of `count` values of run-time checks, as a loop or branch carries them: scalars, `s32[]`.
pub(super) fn check_value_specs(count: usize) -> Vec<ValueSpec> {
    vec![ValueSpec::Array(Shape::array(DType::S32, [])); count]
}

impl Walker<'_> {
    /// Runs `lower` in a computation that was just opened, and lets it add run-time checks to that computation, which the caller must
    /// hoist, if checks of the enclosing computation are hoisted too.
    pub fn with_hoistable_checks<T>(&mut self, lower: impl FnOnce(&mut Self) -> T) -> T {
        let depth = self.b.nesting_depth();
        let before = self.b.set_carried_depth(depth);
        if before + 1 != depth {
            // checks of the enclosing computation are not hoisted, so those of this one can't be either
            self.b.set_carried_depth(before);
        }
        let made = lower(self);
        self.b.set_carried_depth(before);
        made
    }

    /// Initial values of `count` run-time checks that a loop carries: zeros.
    pub fn initial_check_values(&mut self, count: usize) -> Vec<Value> {
        (0..count).map(|_| Value::Array(self.b.constant(Tensor::scalar(0i32)))).collect()
    }

    /// Emits, for each run-time check of the open computation, a loop's body, the maximum of its value and that of earlier iterations
    /// (`before`).
    pub fn accumulate_checks(&mut self, before: &[Value]) -> Vec<Value> {
        let own = self.b.bound_checks().to_vec();
        let mut most = Vec::with_capacity(own.len());
        for (bound_check, before) in own.iter().zip(before) {
            let Value::Array(before) = *before else { continue };
            most.push(Value::Array(self.b.binary(ScalarOp::Maximum, before, bound_check.value)));
        }
        most
    }

    /// Adds the run-time checks of a nested computation to the open one; `values` are the values that the nested computation returned for
    /// them.
    pub fn hoist_checks(&mut self, bound_checks: &[BoundCheck], values: &[Value]) {
        for (bound_check, value) in bound_checks.iter().zip(values) {
            if let Value::Array(value) = *value {
                self.b.add_bound_check(BoundCheck { value, ..bound_check.clone() });
            }
        }
    }
}

/// Merges equal run-time checks of one node. A loop's condition, for example, is checked in each iteration and once more after
/// the last.
pub(super) fn merge_duplicate_checks(b: &mut Builder) {
    let mut merged: Vec<BoundCheck> = Vec::new();
    for bound_check in b.take_bound_checks(0) {
        let is_same =
            |other: &&mut BoundCheck| other.node == bound_check.node && other.quantity == bound_check.quantity;
        match merged.iter_mut().find(is_same).filter(|_| matches!(bound_check.quantity, CheckedQuantity::Check(_))) {
            Some(first) => first.value = b.binary(ScalarOp::Maximum, first.value, bound_check.value),
            None => merged.push(bound_check),
        }
    }
    for bound_check in merged {
        b.add_bound_check(bound_check);
    }
}
