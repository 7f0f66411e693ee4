//! Ranges of the elements of arrays, whether these are whole numbers, and which of them may be NaN.
//!
//! Bounds of floats are computed in f64 and widened by more than what f32 arithmetic rounds, so that they hold for fused multiply-adds too.
use crate::hlo::attrs::{ConvDims, DotDims, WindowDim};
use crate::hlo::{Fold, InstId, Op};
use crate::optimize::constant::splat_of;
use crate::optimize::rewrite::Editor;
use crate::optimize::simplify::fold_of_computation;
use crate::scalar::ScalarOp;
use crate::tensor::{DType, DTypeClass, Tensor};
use std::collections::HashMap;

/// Relative amount by which bounds of rounded results are widened: some units in the last place of f32.
const WIDENING: f64 = 1e-6;
/// Magnitude from which a bound of an f32 counts as infinite.
const LARGE: f64 = 3e38;
/// Largest magnitude up to which every whole number is an f32.
const LARGEST_WHOLE: f64 = 16_777_216.0;
/// Largest depth of recursion into operands whose ranges are not known yet.
const DEPTH: usize = 64;

/// Elements of an array that may be NaN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nans {
    /// No element.
    Never,
    /// Elements that are computed from a NaN of an operand, and no others: a NaN of an operand makes NaN of every element that is computed from
    /// it, if any is.
    FromOperands,
    /// Any element.
    Anywhere,
}

/// Facts about the elements of an array.
#[derive(Clone, Debug, PartialEq)]
pub struct ValueRange {
    /// Lower bound of all elements but NaNs.
    pub least: f64,
    /// Upper bound of all elements but NaNs.
    pub most: f64,
    /// Whether all elements but NaNs are whole numbers.
    pub is_whole: bool,
    /// Elements that may be NaN.
    pub nans: Nans,
}

impl ValueRange {
    /// The range of an array about which nothing is known.
    fn unknown() -> ValueRange {
        ValueRange { least: f64::NEG_INFINITY, most: f64::INFINITY, is_whole: false, nans: Nans::Anywhere }
    }

    /// Whole numbers between two bounds.
    fn of_whole_numbers(least: f64, most: f64) -> ValueRange {
        ValueRange { least, most, is_whole: true, nans: Nans::Never }
    }

    /// Whether no element is infinite.
    pub fn is_finite(&self) -> bool {
        self.least.is_finite() && self.most.is_finite()
    }

    /// Whether some element may be NaN.
    pub fn may_be_nan(&self) -> bool {
        self.nans != Nans::Never
    }

    /// The largest magnitude.
    fn magnitude(&self) -> f64 {
        self.least.abs().max(self.most.abs())
    }

    /// The range of elements that NaNs of `operand` make NaN.
    fn with_nans_of(self, operand: &ValueRange) -> ValueRange {
        if operand.may_be_nan() { ValueRange { nans: Nans::FromOperands, ..self } } else { self }
    }

    /// The range of an array that consists of elements of an operand with this range.
    fn inherit_nans(self) -> ValueRange {
        ValueRange { nans: Nans::Never, ..self.clone() }.with_nans_of(&self)
    }

    /// The range of elements that are those of one array or of another.
    fn union(&self, other: &ValueRange) -> ValueRange {
        ValueRange {
            least: self.least.min(other.least),
            most: self.most.max(other.most),
            is_whole: self.is_whole && other.is_whole,
            nans: Nans::Never,
        }
        .with_nans_of(self)
        .with_nans_of(other)
    }
}

/// Ranges of the instructions of one computation, computed on demand.
#[derive(Default)]
pub struct ValueRanges {
    known: HashMap<InstId, ValueRange>,
}

impl ValueRanges {
    /// The range of an instruction that is an array.
    pub fn range(&mut self, editor: &Editor, id: InstId) -> ValueRange {
        self.range_within(editor, id, DEPTH)
    }

    fn range_within(&mut self, editor: &Editor, id: InstId, depth: usize) -> ValueRange {
        if let Some(known) = self.known.get(&id) {
            return known.clone();
        }
        let computed = match depth {
            0 => None,
            _ => self.compute(editor, id, depth - 1),
        };
        let range = computed.unwrap_or_else(|| range_of_type(editor, id));
        self.known.insert(id, range.clone());
        range
    }

    /// The range by the instruction's op; `None` where it says nothing more than the type.
    fn compute(&mut self, editor: &Editor, id: InstId, depth: usize) -> Option<ValueRange> {
        let dtype = editor.dtype(id)?;
        if dtype != DType::F32 && !is_integer(dtype) {
            return None;
        }
        let operands = editor.operands(id).to_vec();
        let mut operand = |i: usize| self.range_within(editor, operands[i], depth);
        match editor.op(id) {
            Op::Constant(_) => Some(range_of_constant(editor.constant(id)?)),
            Op::Broadcast(_) | Op::Reshape | Op::Transpose(_) | Op::Slice(_) | Op::Reverse(_) | Op::Copy => {
                Some(operand(0).inherit_nans())
            }
            Op::Pad(_) => Some(operand(0).union(&operand(1))),
            Op::Concatenate(_) => {
                let mut all = operand(0);
                for i in 1..operands.len() {
                    all = all.union(&operand(i));
                }
                Some(all.inherit_nans())
            }
            &Op::Elementwise(ScalarOp::Select) => {
                let range = operand(2);
                Some(match mask_of_nan_select(editor, id) {
                    Some(_) => ValueRange { nans: Nans::FromOperands, ..range },
                    None => {
                        let range = range.union(&operand(1));
                        // a NaN that is not selected is no element
                        let nans = if range.may_be_nan() { Nans::Anywhere } else { Nans::Never };
                        ValueRange { nans, ..range }
                    }
                })
            }
            &Op::Elementwise(op) => {
                let ranges: Vec<ValueRange> = (0..operands.len()).map(operand).collect();
                let from = operands.first().and_then(|&o| editor.dtype(o))?;
                elementwise(op, dtype, from, &ranges)
            }
            Op::Reduce { comp, dims } if operands.len() == 2 && dtype == DType::F32 => {
                let count = dims.iter().map(|&d| editor.dims(operands[0])[d]).product();
                let fold =
                    Folding { fold: fold_of_computation(editor.module(), *comp)?, count, has_elements: count > 0 };
                folding(fold, &operand(0), &operand(1))
            }
            Op::ReduceWindow { comp, window } if operands.len() == 2 && dtype == DType::F32 => {
                let count = window.iter().map(|w| w.size).product();
                let has_elements = window.iter().all(covers_an_element);
                let fold = Folding { fold: fold_of_computation(editor.module(), *comp)?, count, has_elements };
                folding(fold, &operand(0), &operand(1))
            }
            Op::Dot(d) if dtype == DType::F32 => {
                Some(products(dot_term_count(editor, id, d), &operand(0), &operand(1)))
            }
            Op::Convolution(d) if dtype == DType::F32 => {
                Some(products(convolution_term_count(editor, id, d), &operand(0), &operand(1)))
            }
            _ => None,
        }
    }
}

/// Number of products in an element of a `dot`.
pub fn dot_term_count(editor: &Editor, id: InstId, d: &DotDims) -> u64 {
    let left = editor.dims(editor.operand(id, 0));
    d.lhs_contracting.iter().map(|&axis| left[axis]).product()
}

/// Number of products in an element of a convolution.
pub fn convolution_term_count(editor: &Editor, id: InstId, d: &ConvDims) -> u64 {
    let window: u64 = d.window.iter().map(|w| w.size).product();
    window.saturating_mul(editor.dims(editor.operand(id, 1))[d.kernel_input_feature])
}

/// The array of `pred` of `select(pred, NaN, x)`.
pub fn mask_of_nan_select(editor: &Editor, id: InstId) -> Option<InstId> {
    let [mask, nan, _] = editor.operands(id)[..] else { return None };
    let is_select = matches!(editor.op(id), Op::Elementwise(ScalarOp::Select));
    (is_select && splat_of(editor, nan)?.get_f64(0)?.is_nan()).then_some(mask)
}

fn is_integer(dtype: DType) -> bool {
    matches!(dtype.class(), DTypeClass::Signed | DTypeClass::Unsigned)
}

/// The range of an integer type; everything for others.
fn range_of_type(editor: &Editor, id: InstId) -> ValueRange {
    match editor.dtype(id) {
        Some(DType::Pred) => ValueRange::of_whole_numbers(0.0, 1.0),
        dtype => dtype
            .and_then(DType::integer_bounds)
            .map_or_else(ValueRange::unknown, |(least, most)| ValueRange::of_whole_numbers(least, most)),
    }
}

fn range_of_constant(t: &Tensor) -> ValueRange {
    let mut range = ValueRange::of_whole_numbers(f64::INFINITY, f64::NEG_INFINITY);
    let mut add = |v: f64| {
        if v.is_nan() {
            range.nans = Nans::Anywhere;
        } else {
            range.least = range.least.min(v);
            range.most = range.most.max(v);
            range.is_whole &= v == v.trunc();
        }
    };
    match t.dtype {
        DType::F32 => t.view::<f32>().iter().for_each(|&v| add(f64::from(v))),
        _ => (0..t.len()).filter_map(|i| t.get_f64(i)).for_each(add),
    }
    if range.least > range.most {
        return ValueRange { nans: range.nans, ..ValueRange::of_whole_numbers(0.0, 0.0) };
    }
    range
}

/// A range of f32 results, widened by what rounding may have added, with the NaNs of all operands.
///
/// Whole numbers that f32 represents are not rounded.
fn rounded(least: f64, most: f64, is_whole: bool, operands: &[ValueRange]) -> ValueRange {
    let is_exact = is_whole && least.abs().max(most.abs()) <= LARGEST_WHOLE;
    let widen = |bound: f64, by: f64| {
        let wide = if is_exact { bound } else { bound + by * (bound.abs() * WIDENING + f64::from(f32::MIN_POSITIVE)) };
        if wide.abs() > LARGE { wide.signum() * f64::INFINITY } else { wide }
    };
    let range = ValueRange { least: widen(least, -1.0), most: widen(most, 1.0), is_whole: is_exact, nans: Nans::Never };
    operands.iter().fold(range, ValueRange::with_nans_of)
}

/// The range of a pointwise op; `None` for ops of which only the type is known.
fn elementwise(op: ScalarOp, dtype: DType, from: DType, of: &[ValueRange]) -> Option<ValueRange> {
    if let ScalarOp::Convert(_) = op {
        return converted(dtype, from, &of[0]);
    }
    let (least, most, is_whole) = match op {
        ScalarOp::Floor => (of[0].least.floor(), of[0].most.floor(), true),
        ScalarOp::Ceil => (of[0].least.ceil(), of[0].most.ceil(), true),
        ScalarOp::RoundNearestAfz => (of[0].least.round(), of[0].most.round(), true),
        ScalarOp::RoundNearestEven => (of[0].least.round_ties_even(), of[0].most.round_ties_even(), true),
        ScalarOp::Negate => (-of[0].most, -of[0].least, of[0].is_whole),
        ScalarOp::Maximum => {
            (of[0].least.max(of[1].least), of[0].most.max(of[1].most), of[0].is_whole && of[1].is_whole)
        }
        ScalarOp::Minimum => {
            (of[0].least.min(of[1].least), of[0].most.min(of[1].most), of[0].is_whole && of[1].is_whole)
        }
        ScalarOp::Clamp => {
            let (low, x, high) = (&of[0], &of[1], &of[2]);
            let least = x.least.max(low.least).min(high.least);
            let most = x.most.max(low.most).min(high.most);
            (least, most, low.is_whole && x.is_whole && high.is_whole)
        }
        ScalarOp::Logistic if dtype == DType::F32 => (0.0, 1.0, false),
        ScalarOp::Tanh if dtype == DType::F32 => (-1.0, 1.0, false),
        ScalarOp::Add | ScalarOp::Subtract | ScalarOp::Multiply | ScalarOp::Divide => arithmetic(op, of)?,
        _ => return None,
    };
    if let Some((first, last)) = dtype.integer_bounds() {
        // integers wrap around
        let fits = op != ScalarOp::Divide && least >= first && most <= last;
        return fits.then(|| ValueRange::of_whole_numbers(least, most));
    }
    if least.is_nan() || most.is_nan() {
        return Some(ValueRange::unknown());
    }
    Some(match op {
        ScalarOp::Logistic
        | ScalarOp::Tanh
        | ScalarOp::Add
        | ScalarOp::Subtract
        | ScalarOp::Multiply
        | ScalarOp::Divide => rounded(least, most, is_whole, of),
        // every other op gives one of its operands, or a whole number near it
        _ => {
            let range = ValueRange { least, most, is_whole, nans: Nans::Never };
            of.iter().fold(range, ValueRange::with_nans_of)
        }
    })
}

/// Bounds of a sum, difference, product or quotient, and whether it is whole; `None` where an infinity could make a NaN.
fn arithmetic(op: ScalarOp, of: &[ValueRange]) -> Option<(f64, f64, bool)> {
    let [a, b] = of else { return None };
    if !a.is_finite() || !b.is_finite() {
        return None;
    }
    let is_whole = a.is_whole && b.is_whole;
    Some(match op {
        ScalarOp::Add => (a.least + b.least, a.most + b.most, is_whole),
        ScalarOp::Subtract => (a.least - b.most, a.most - b.least, is_whole),
        ScalarOp::Multiply => {
            let all = [a.least * b.least, a.least * b.most, a.most * b.least, a.most * b.most];
            (all.into_iter().fold(f64::INFINITY, f64::min), all.into_iter().fold(f64::NEG_INFINITY, f64::max), is_whole)
        }
        _ if b.least > 0.0 || b.most < 0.0 => {
            let all = [a.least / b.least, a.least / b.most, a.most / b.least, a.most / b.most];
            (all.into_iter().fold(f64::INFINITY, f64::min), all.into_iter().fold(f64::NEG_INFINITY, f64::max), false)
        }
        _ => return None,
    })
}

/// The range of a conversion: floats become integers by truncation, saturate, and NaN becomes 0.
fn converted(dtype: DType, from: DType, x: &ValueRange) -> Option<ValueRange> {
    let is_from_integer = is_integer(from) || from == DType::Pred;
    if dtype == DType::F32 {
        return match from {
            DType::F32 => Some(x.clone().inherit_nans()),
            _ if is_from_integer => {
                let is_whole = x.least.abs().max(x.most.abs()) <= LARGEST_WHOLE;
                let range = rounded(x.least, x.most, is_whole, &[]);
                // whole numbers stay whole when they are rounded to f32
                Some(ValueRange { is_whole: true, ..range })
            }
            _ => None,
        };
    }
    let (first, last) = dtype.integer_bounds()?;
    match from {
        DType::F32 => {
            let (least, most) = (x.least.trunc().clamp(first, last), x.most.trunc().clamp(first, last));
            let zero = |bound: f64, pick: fn(f64, f64) -> f64| if x.may_be_nan() { pick(bound, 0.0) } else { bound };
            Some(ValueRange::of_whole_numbers(zero(least, f64::min), zero(most, f64::max)))
        }
        _ if is_from_integer && x.least >= first && x.most <= last => {
            Some(ValueRange::of_whole_numbers(x.least, x.most))
        }
        _ => None,
    }
}

/// A fold of elements into an initial value.
struct Folding {
    fold: Fold,
    /// Largest number of elements.
    count: u64,
    /// Whether there is at least one element.
    has_elements: bool,
}

/// Whether no position of a window lies on the padding alone.
pub fn covers_an_element(w: &WindowDim) -> bool {
    let size = w.size as i64;
    let is_dense = w.lhs_dilate == 1 && w.rhs_dilate == 1;
    is_dense && (0..size).contains(&w.pad_low) && (0..size).contains(&w.pad_high)
}

/// The range of the results of a fold.
fn folding(of: Folding, x: &ValueRange, init: &ValueRange) -> Option<ValueRange> {
    let all = || x.clone().inherit_nans().with_nans_of(init);
    match of.fold {
        Fold::By(ScalarOp::Add) => {
            let count = of.count as f64;
            let bound = count * x.magnitude() * (1.0 + count * WIDENING) + init.magnitude();
            let least = if x.least >= 0.0 && init.least >= 0.0 { 0.0 } else { -bound };
            let most = if x.most <= 0.0 && init.most <= 0.0 { 0.0 } else { bound };
            Some(match bound < LARGE {
                true => rounded(least, most, x.is_whole && init.is_whole, &[x.clone(), init.clone()]),
                false => ValueRange::unknown(),
            })
        }
        // a NaN never compares larger, so that a window of NaNs leaves the initial value
        Fold::Larger if init.may_be_nan() => None,
        Fold::Larger if !of.has_elements || x.may_be_nan() => Some(ValueRange { nans: Nans::Never, ..x.union(init) }),
        Fold::Larger => Some(ValueRange { least: x.least.max(init.least), most: x.most.max(init.most), ..x.clone() }),
        Fold::By(ScalarOp::Maximum) if of.has_elements => {
            Some(ValueRange { least: x.least.max(init.least), most: x.most.max(init.most), ..all() })
        }
        Fold::By(ScalarOp::Minimum) if of.has_elements => {
            Some(ValueRange { least: x.least.min(init.least), most: x.most.min(init.most), ..all() })
        }
        Fold::By(ScalarOp::Maximum | ScalarOp::Minimum) => Some(x.union(init)),
        Fold::By(_) => None,
    }
}

/// The range of sums of `count` products.
fn products(count: u64, x: &ValueRange, y: &ValueRange) -> ValueRange {
    let bound = count as f64 * x.magnitude() * y.magnitude() * (1.0 + count as f64 * WIDENING);
    match bound < LARGE {
        true => rounded(-bound, bound, false, &[x.clone(), y.clone()]),
        false => ValueRange::unknown(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_that_wrap_around_have_the_range_of_their_type() {
        let x = ValueRange::of_whole_numbers(5.0, 7.0);
        let sum = |dtype| elementwise(ScalarOp::Add, dtype, dtype, &[x.clone(), x.clone()]);
        assert_eq!(sum(DType::S4), None);
        assert_eq!(sum(DType::S8), Some(ValueRange::of_whole_numbers(10.0, 14.0)));
    }
}
