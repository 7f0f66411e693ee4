//! Bounds on trip counts from values that reach a fixed point: a float that each iteration multiplies by a constant overflows or
//! underflows after a known number of iterations, and no longer changes. A condition that reads only such values does not change from then
//! on, so that a loop that terminates at all has terminated by then.
use crate::hlo::symbolic::{Builder, Dim, InstId, Op};
use crate::interp;
use crate::ops::range;
use crate::scalar::ScalarOp;
use crate::tensor::{DType, Tensor};
use std::collections::{BTreeSet, HashSet};

/// Number of iterations after which the search for a fixed point gives up.
const MAX_FOLLOWED_ROUNDS: u64 = 4096;

/// Elements of a loop's state that its condition, the open computation with this root, reads. `None` where the condition depends on
/// anything else, such as random numbers.
pub fn condition_dependencies(b: &Builder, root: InstId) -> Option<BTreeSet<usize>> {
    let insts = &b.current_computation().insts;
    let (mut todo, mut seen, mut parts) = (vec![root], HashSet::new(), BTreeSet::new());
    while let Some(id) = todo.pop() {
        if !seen.insert(id) {
            continue;
        }
        let inst = insts.get(id)?;
        match &inst.op {
            Op::GetTupleElement(part) if matches!(insts.get(*inst.operands.first()?)?.op, Op::Parameter(_)) => {
                parts.insert(*part);
            }
            Op::Parameter(_) | Op::Rng { .. } | Op::Foreign(_) => return None,
            _ => todo.extend(inst.operands.iter().copied()),
        }
    }
    Some(parts)
}

/// Number of iterations after which element `part` of a loop's state no longer changes. The open computation is the body, and `id` is the
/// new value of the element. `None` where no fixed point is known.
pub fn rounds_until_fixed_point(b: &Builder, id: InstId, part: usize) -> Option<Dim> {
    if range::parameter_element_index(b, id) == Some(part) {
        return Some(Dim::from(0));
    }
    let inst = b.current_computation().insts.get(id)?;
    let is_part = |id: InstId| range::parameter_element_index(b, id) == Some(part);
    let (divides, factor) = match (&inst.op, &inst.operands[..]) {
        (Op::Elementwise(ScalarOp::Multiply), &[x, y]) if is_part(x) => (false, y),
        (Op::Elementwise(ScalarOp::Multiply), &[x, y]) if is_part(y) => (false, x),
        (Op::Elementwise(ScalarOp::Divide), &[x, y]) if is_part(x) => (true, y),
        _ => return None,
    };
    let by = uniform_value(&interp::constant_value(b, factor)?)?;
    match b.dtype(id) {
        DType::F32 => {
            let by = by as f32;
            let step = |x: f64| f64::from(if divides { x as f32 / by } else { x as f32 * by });
            steps_to_fixed_point(step, f64::from(f32::MAX), f64::from(f32::from_bits(1)))
        }
        DType::F64 => steps_to_fixed_point(|x| if divides { x / by } else { x * by }, f64::MAX, f64::from_bits(1)),
        _ => None,
    }
}

/// The value that all elements of an array have; `None` where they differ.
fn uniform_value(t: &Tensor) -> Option<f64> {
    let first = t.get_f64(0)?;
    let width = t.dtype.bytes();
    t.bytes.chunks_exact(width).all(|x| x == &t.bytes[..width]).then_some(first)
}

/// Number of steps after which every float is at its fixed point, if `step` multiplies by a positive constant and rounds. A factor below
/// 1 takes longest from `largest`; a factor above 1 takes longest from the least float that changes at all.
fn steps_to_fixed_point(step: impl Fn(f64) -> f64, largest: f64, smallest: f64) -> Option<Dim> {
    let factor = step(1.0);
    if factor.is_nan() || factor <= 0.0 {
        return None;
    }
    let (from, before) = if factor > 1.0 {
        // denormals: an increase of less than half a unit in the last place is rounded away, and `units` such units are the least that change
        let units = (0.5 / (factor - 1.0)).floor() + 2.0;
        if units > MAX_FOLLOWED_ROUNDS as f64 {
            return None;
        }
        (units * smallest, Dim::from(units as u64))
    } else {
        (largest, Dim::from(0))
    };
    let mut at = from;
    for rounds in 0..MAX_FOLLOWED_ROUNDS {
        let next = step(at);
        if next == at {
            return Some(before + rounds);
        }
        at = next;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(by: f32) -> Option<Dim> {
        steps_to_fixed_point(|x| f64::from(x as f32 * by), f64::from(f32::MAX), f64::from(f32::from_bits(1)))
    }

    /// Floats of all magnitudes are at their fixed point after the predicted number of steps.
    #[test]
    fn no_value_moves_longer() {
        for by in [1.5f32, 2.0, 1.1, 10.0, 0.5, 0.75, 0.9, 0.01, 1.0] {
            let rounds = of(by).unwrap_or_else(|| panic!("{by}"));
            for bits in (0..0x7f80_0000u32).step_by(199_999).chain(0..3000) {
                let mut x = f32::from_bits(bits);
                for _ in 0..rounds.guarded_count() {
                    x *= by;
                }
                assert_eq!(x * by, x, "{by}: {bits:x}");
            }
        }
        assert!(of(1.5).is_some_and(|n| n < 500));
    }

    #[test]
    fn what_takes_too_long_or_has_no_rest_is_not_known() {
        for by in [1.000001f32, 0.9999, -2.0, 0.0, f32::NAN] {
            assert_eq!(of(by), None, "{by}");
        }
    }
}
