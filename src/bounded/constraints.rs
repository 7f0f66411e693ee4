//! Constraints on dynamic sizes without which a node can't be lowered.
//!
//! A height that is halved three times and concatenated with its halves upsampled again must be a multiple of 8. The rows that a mask
//! selects can be added to other rows only if there are as many. At sizes that do not meet such a constraint lowering fails at a node, and
//! the last comparison of sizes that the node made says which constraint it is. The function is then lowered again under the constraint: a
//! size of the caller is counted in steps, and a data-dependent size is replaced by the expression that it equals. Calls with other sizes
//! fail at a run-time check.
use super::extent::Extent;
use super::steps::{Progression, SizeSteps};
use crate::hlo::SizeEquality;
use crate::lower::SizeLoweringFailure;
use crate::symbolic::trace::{Relation, SizeComparison};
use crate::tensor::Size;

/// Upper bound on the constraints of one function.
const MAX_CONSTRAINTS: usize = 16;
/// Largest number of values of a size at which a comparison is evaluated.
const MAX_VALUES: u64 = 1 << 17;

/// A constraint on one size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SizeConstraint {
    /// The step count of one of the caller's sizes lies in an arithmetic progression.
    Progression {
        /// Index of the caller's size.
        size: usize,
        /// Progression of the allowed step counts.
        counts: Progression,
    },
    /// A data-dependent size equals an expression of other sizes.
    Equality(SizeEquality),
}

/// Constraints on the sizes of a function.
#[derive(Clone, Debug)]
pub struct SizeConstraints {
    /// Stride and offset of each of the caller's sizes.
    pub steps: SizeSteps,
    /// Equalities of data-dependent sizes.
    pub equalities: Vec<SizeEquality>,
    /// Number of constraints added so far.
    count: usize,
}

impl SizeConstraints {
    /// The empty set of constraints, for a function to which the caller passes `given` sizes.
    pub fn none(given: usize) -> SizeConstraints {
        SizeConstraints { steps: SizeSteps::unit(given), equalities: Vec::new(), count: 0 }
    }

    /// Adds the constraint that a failed lowering needs; `None` if there is no such constraint, or if it is there already.
    pub fn add(&mut self, failure: &SizeLoweringFailure, given: &[Size]) -> Option<()> {
        let constraint = SizeConstraint::from_failure(failure, &self.steps.step_count_ranges(given))?;
        self.count += 1;
        if self.count > MAX_CONSTRAINTS {
            return None;
        }
        match constraint {
            SizeConstraint::Progression { size, counts } => {
                self.steps.all[size] = self.steps.all[size].compose(counts)?;
                let new_count = |&v: &usize| match v == size {
                    true => counts.size_expr_of_count(&Extent::var(v)),
                    false => Some(Extent::var(v)),
                };
                for equality in &mut self.equalities {
                    equality.equal_to = equality.equal_to.substitute(&new_count)?;
                }
            }
            SizeConstraint::Equality(equality) => {
                if self.equalities.iter().any(|known| known.number == equality.number) {
                    return None;
                }
                self.equalities.push(equality);
            }
        }
        Some(())
    }
}

impl SizeConstraint {
    /// Constraint under which the node whose lowering failed can be lowered; `None` if no comparison of sizes before the failure yields
    /// one. `counted` holds the ranges of the caller's step counts. The node fails after a run of unequal sizes: one pair is to be equal,
    /// or one of the two is to be 1, as for broadcasting.
    pub fn from_failure(failure: &SizeLoweringFailure, counted: &[Size]) -> Option<SizeConstraint> {
        let is_unequal = |c: &&SizeComparison| c.relation == Relation::Equal && !c.holds;
        failure.comparisons.iter().rev().take_while(is_unequal).find_map(|comparison| {
            let constraint = SizeConstraint::from_equality(&comparison.difference, counted)?;
            // A data-dependent size is checked within the branch, a size of the caller at the start of every call.
            let is_checked_in_place = !comparison.is_in_branch || matches!(constraint, SizeConstraint::Equality(_));
            is_checked_in_place.then_some(constraint)
        })
    }

    /// Constraint under which `difference` is 0: a data-dependent size equals an expression, or the count of one of the caller's sizes
    /// lies in a progression. `None` if neither form expresses it, or if only one count would be allowed.
    fn from_equality(difference: &Extent, counted: &[Size]) -> Option<SizeConstraint> {
        let vars = difference.vars();
        let last = *vars.last()?;
        if let Some(number) = last.checked_sub(counted.len()) {
            return Some(SizeConstraint::Equality(SizeEquality { number, equal_to: difference.solve_for(last)? }));
        }
        let Size { least, most, .. } = counted[last];
        if vars.len() > 1 || most - least >= MAX_VALUES {
            return None;
        }
        let mut values = vec![0; counted.len()];
        let allowed = (least..=most).filter(|&n| {
            values[last] = n;
            difference.value_at(&values) == Some(0)
        });
        let counts = Progression::from_sorted(&allowed.collect::<Vec<u64>>())?;
        Some(SizeConstraint::Progression { size: last, counts })
    }
}

impl Extent {
    /// Solves `self = 0` for the variable `v`. `None` if the expression is not linear in `v`, or if the solution is no integer expression
    /// or a constant below 2: ops that broadcast compare all sizes with 1.
    fn solve_for(&self, v: usize) -> Option<Extent> {
        let coefficient = self.coefficient(&v)?;
        let rest = self.sub(&Extent::var(v).scale(coefficient)?)?;
        if rest.vars().contains(&v) {
            return None;
        }
        let solution = rest.scale(-1)?.div_exact(coefficient)?;
        solution.known().is_none_or(|n| n > 1).then_some(solution)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(most: &[u64]) -> Vec<Size> {
        let one = |(i, &most): (usize, &u64)| Size {
            name: format!("n{i}"),
            least: 1,
            most,
            is_result: false,
            is_check: false,
        };
        most.iter().enumerate().map(one).collect()
    }

    #[test]
    fn a_multiple_is_counted_in_steps() {
        let n = Extent::var(0);
        let difference = n.rem(&Extent::constant(16)).expect("it is short");
        let counts = Progression { stride: 16, offset: 0 };
        assert_eq!(
            SizeConstraint::from_equality(&difference, &sizes(&[400])),
            Some(SizeConstraint::Progression { size: 0, counts })
        );
        assert_eq!(SizeConstraint::from_equality(&difference, &sizes(&[20])), None, "one value alone");
    }

    #[test]
    fn a_data_dependent_size_is_an_expression_of_others() {
        let (n, s) = (Extent::var(0), Extent::var(1));
        let twice = n.scale(2).and_then(|n| n.offset_by(2)).expect("it is short");
        let difference = s.scale(2).and_then(|s| twice.sub(&s)).expect("it is short");
        let equal_to = n.offset_by(1).expect("it is short");
        let equality = SizeEquality { number: 0, equal_to };
        assert_eq!(SizeConstraint::from_equality(&difference, &sizes(&[9])), Some(SizeConstraint::Equality(equality)));
        let one = s.offset_by(-1).expect("it is short");
        assert_eq!(SizeConstraint::from_equality(&one, &sizes(&[9])), None, "a size of 1 is broadcast");
        let square = s.mul(&s).and_then(|s| s.sub(&n)).expect("it is short");
        assert_eq!(SizeConstraint::from_equality(&square, &sizes(&[9])), None);
    }
}
