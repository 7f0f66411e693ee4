//! Interpretation of a function at exactly the sizes of a call, without padding.
use crate::bounded;
use crate::diag::{Code, Diagnostic, Error, Result};
use crate::hlo::{BoundCheck, CheckedQuantity, Literal, Module};
use crate::interp;
use crate::lower::{FixedSizeLowering, Lowered};
use crate::tensor::Tensor;
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

/// Evaluates a function at the caller's sizes `given`, and returns its lowering with the elements of its root tuple: results, then changed
/// variables. `args` holds arguments of these sizes, then the variables.
///
/// Data-dependent sizes of the entry computation are found one after another, since each depends only on earlier ones. Those of a loop's
/// body or a branch are found whenever it runs.
///
/// # Errors
/// Errors of lowering and of the interpreter; `Code::BadInputs` where a data-dependent size exceeds its bound, `Code::CheckFailed` where a
/// check fails.
pub fn evaluate_at_sizes(exact: &FixedSizeLowering, given: &[u64], args: &[Tensor]) -> Result<(Lowered, Vec<Tensor>)> {
    let literals: Vec<Literal> = args.iter().cloned().map(Literal::Array).collect();
    let within = ExactModules { exact, given, known: RefCell::default() };
    let mut sizes = given.to_vec();
    let mut right = 0;
    loop {
        let lowered = (exact.0)(&sizes)?;
        let found: Vec<u64> = lowered.data_sizes.iter().map(|f| f.0).collect();
        let lower = |found: &[u64]| within.module(found);
        let root = interp::evaluate_sized(&lowered.module, &literals, found.clone(), &lower)?;
        let mut parts: Vec<Tensor> = root.leaves().into_iter().cloned().collect();
        let of_entry = &lowered.module.entry().sizes;
        let counts = parts.split_off(parts.len().saturating_sub(of_entry.len()));
        let count = |t: &Tensor| t.to_i64s().and_then(|v| v.first().copied()).and_then(|n| u64::try_from(n).ok());
        let wrong = of_entry.iter().zip(&counts).position(|(size, t)| count(t) != found.get(size.0).copied());
        let Some(wrong) = wrong else {
            let values = parts.split_off(parts.len().saturating_sub(lowered.bound_checks.len()));
            return verify_bound_checks(&lowered.bound_checks, &values).map(|()| (lowered, parts));
        };
        let size = count(&counts[wrong]).filter(|_| wrong >= right);
        let size = size.ok_or_else(|| Error::internal("interpreter", "a size depends on itself"))?;
        right = wrong + 1;
        sizes = [given, &found].concat();
        sizes[given.len() + of_entry[wrong].0] = size;
    }
}

/// Cache of the modules of a function for one call, keyed by the values of the data-dependent sizes.
struct ExactModules<'a> {
    exact: &'a FixedSizeLowering,
    given: &'a [u64],
    known: RefCell<HashMap<Vec<u64>, (Rc<Module>, Vec<u64>)>>,
}

impl ExactModules<'_> {
    fn module(&self, found: &[u64]) -> Result<(Rc<Module>, Vec<u64>)> {
        if let Some(known) = self.known.borrow().get(found) {
            return Ok(known.clone());
        }
        let lowered = (self.exact.0)(&[self.given, found].concat())?;
        let made = (Rc::new(lowered.module), lowered.data_sizes.iter().map(|f| f.0).collect());
        self.known.borrow_mut().insert(found.to_vec(), made.clone());
        Ok(made)
    }
}

/// Error of a call in which the check `name` fails; `name` is the check's name in C.
pub fn failed_check_error(name: &str) -> Error {
    Diagnostic::new(Code::CheckFailed, name.to_string())
        .help("TensorFlow fails there as well; without --checked the call goes on, as XLA's does")
        .into()
}

/// Verifies the run-time checks of a call: `values` holds the number that the call computed for each check, which must not exceed the
/// check's limit. Errors: `BadInputs` for a size beyond its capacity, `CheckFailed`.
fn verify_bound_checks(bound_checks: &[BoundCheck], values: &[Tensor]) -> Result<()> {
    let number = |t: &Tensor| t.get_i64(0).and_then(|n| u64::try_from(n).ok());
    let is_beyond = |(bound_check, value): &(&BoundCheck, &Tensor)| number(value).is_none_or(|n| n > bound_check.most);
    let is_check =
        |(bound_check, _): &(&BoundCheck, &Tensor)| matches!(bound_check.quantity, CheckedQuantity::Check(_));
    let all = || bound_checks.iter().zip(values).filter(is_beyond);
    // a failed check comes first, as it may be the cause of sizes beyond their bounds
    let beyond = all().find(is_check).or_else(|| all().next());
    let Some((BoundCheck { node, quantity, most, is_allowed, .. }, _)) = beyond else { return Ok(()) };
    let room = format!("give it more room: --bound '{node}=N'");
    Err(match (quantity, is_allowed) {
        (CheckedQuantity::Check(check), _) => return Err(failed_check_error(&bounded::name_of_check(node, *check))),
        (CheckedQuantity::Rounds, _) => {
            let told = format!("the loop `{node}` takes more rounds than the {most} that its lists have room for");
            Diagnostic::new(Code::BadInputs, told).help(room)
        }
        (CheckedQuantity::Size, true) => {
            let told = format!("the data ask for a size at `{node}` that is negative or above {most}, for which there is room");
            Diagnostic::new(Code::BadInputs, told).help(room)
        }
        (CheckedQuantity::Size, false) => {
            let told = format!(
                "the data ask for a size at `{node}` that is not within 0 to {most}, or not the size of the array that it is combined with"
            );
            Diagnostic::new(Code::BadInputs, told)
                .note("arrays whose sizes only values tell were taken to be of one size, as an op combines them; --bound does not change that")
                .help("take both sizes from one array: `tf.range(tf.size(x))` beside `x`, not a range up to a sum that is as large")
        }
    }
    .into())
}
