//! Tolerance of graphs that compute in f16 or bf16.
//!
//! A type of p bits of precision rounds by up to u = 2^-p of each result: 2^-11 for f16, 2^-8 for bf16, a thousand times the bound of f32
//! and more. Which of the two numbers beside an exact value a result becomes depends on what was kept in f32 before it and on the order of
//! sums; programs that are right differ there by a unit in the last place, 2u, of any such result. How much of it reaches an output,
//! after sums that average it and steps that amplify it, depends on the graph and its inputs. So it is measured: the interpreter evaluates
//! the graph again with each such result moved by one unit up, down or not at all, at random ([`crate::interp`]). The departures of
//! the output from the plain evaluation are what rounding alone explains. To first order an output's departure is a sum of independent
//! terms, one for each rounding, of the same size for any two right programs as for the moved evaluation or smaller (a move has a mean
//! square of 2/3 of a unit, a rounding that goes the other way of at most 1): an element's standard deviation is at most √(3/2) of that
//! of its sample. [`MARGIN`] times the largest departure of any element in [`SAMPLES`] evaluations is then beyond three standard
//! deviations of the element that varies most. Where nothing is rounded to 16 bits the bound is that of f32, unchanged.
use super::Tolerance;
use crate::compile::Functions;
use crate::diag::Result;
use crate::interp;
use crate::run::Interpreter;
use crate::tensor::{DType, Tensor};

/// Number of evaluations with random roundings.
const SAMPLES: u64 = 3;
/// Ratio of the tolerance to the largest difference of the samples.
const MARGIN: f64 = 3.0;

/// Tolerance of each result of the first function for these arguments: `usual`, plus the differences that rounding to 16 bits explains.
pub(super) fn rounding_tolerances(
    functions: &Functions,
    args: &[Tensor],
    plain: &[Tensor],
    usual: Tolerance,
) -> Result<Vec<Tolerance>> {
    if !interp::rounds_to_16_bits(&functions.all[0].1.module) {
        return Ok(vec![usual; plain.len()]);
    }
    let samples = random_roundings(functions)?.into_iter().map(|mut engine| engine.call(0, args.to_vec()));
    Ok(tolerances_from_samples(plain, &samples.collect::<Result<Vec<_>>>()?, usual))
}

/// Interpreters that round 16-bit results at random, one for each sample.
pub(super) fn random_roundings(functions: &Functions) -> Result<Vec<Interpreter<'_>>> {
    (1..=SAMPLES).map(|seed| Ok(Interpreter::new(functions)?.with_random_rounding(seed))).collect()
}

/// Tolerance of each array of `plain`, derived from `samples` with other roundings to 16 bits; `usual` without samples.
pub(super) fn tolerances_from_samples(plain: &[Tensor], samples: &[Vec<Tensor>], usual: Tolerance) -> Vec<Tolerance> {
    let mut all = vec![usual; plain.len()];
    if samples.is_empty() {
        return all;
    }
    // a unit in the last place of a result that itself has 16 bits
    for (tolerance, result) in all.iter_mut().zip(plain).filter(|(_, r)| r.dtype.is_float()) {
        tolerance.rounding = Some(0.0);
        tolerance.rtol = match result.dtype {
            DType::F16 => f64::powi(2.0, -10),
            DType::BF16 => f64::powi(2.0, -7),
            _ => tolerance.rtol,
        };
    }
    for moved in samples {
        for ((tolerance, m), p) in all.iter_mut().zip(moved).zip(plain) {
            let by = if m.dims == p.dims { largest_difference(m, p) } else { 0.0 };
            tolerance.rounding = tolerance.rounding.map(|most| most.max(MARGIN * by));
        }
    }
    all
}

/// Largest difference of two arrays over elements that are finite in both.
fn largest_difference(x: &Tensor, y: &Tensor) -> f64 {
    let (x, y) = (x.interleaved_parts(), y.interleaved_parts());
    let number = |t: &Tensor, i: usize| t.get_f64(i).unwrap_or(f64::NAN);
    let by = (0..x.len()).map(|i| (number(&x, i) - number(&y, i)).abs());
    by.filter(|by| by.is_finite()).fold(0.0, f64::max)
}
