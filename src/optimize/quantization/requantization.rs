//! Requantisation by multiply-adds: levels computed from integer sums with one multiply-add, one rounding and one pair of bounds (`--quantized fast`).
//!
//! Between the sums of a product and the next quantisation a graph scales, adds constants and clamps: the scale of the product, the offset of its
//! bytes, a bias, an activation such as ReLU6, and the division, offset and bounds of the quantisation itself. All of these together are one
//! function `clamp(a*x + b)`, whose numbers are combined in f64, one for each feature:
//!
//! | before | after |
//! |---|---|
//! | `floor((min(max(s*x + c, 0), 6) - z) / t + 0.5)` | `clamp(floor(x * (s/t) + ((c - z)/t + 0.5)), 0, 255)` |
//! | the same as bytes | `convert_u8(x * (s/t) + ((c - z)/t + 0.5))`: the conversion truncates and saturates |
//! | `floor((s*x + t*y) / u + 0.5)`, an addition of two activations | `floor(x * (s/u) + (y * (t/u) + 0.5))` |
//!
//! # Departures from the graph
//! Rounding of f32 between these steps is left out, so that a value that near to the border between two levels may get the other one; values
//! exactly on a border are rounded up. Rounding is monotonic, so that bounds before it become bounds of levels. A NaN becomes some level.
use super::feature_numbers::FeatureNumbers;
use super::value_range::{convolution_term_count, dot_term_count, mask_of_nan_select};
use crate::diag::Result;
use crate::hlo::{InstId, Op, Shape};
use crate::optimize::constant::splat_of;
use crate::optimize::rewrite::Editor;
use crate::scalar::ScalarOp;
use crate::tensor::{DType, Tensor};

/// Upper limit of instructions between levels and what they are computed from.
const DEPTH: usize = 24;
/// Largest number of arrays that are added before a quantisation.
const MOST_TERMS: usize = 3;
/// Largest unsigned byte.
const LARGEST_BYTE: f64 = 255.0;
/// Largest magnitude of a level.
const LARGEST_LEVEL: f64 = 65536.0;

/// An array times a factor.
struct Term {
    /// An array of f32, or of integers that are converted to f32.
    source: InstId,
    factor: FeatureNumbers,
}

/// An array computed as `clamp(sum of factor * source + offset)`, or as the largest whole number below that.
pub struct LinearForm {
    terms: Vec<Term>,
    offset: FeatureNumbers,
    /// Bounds, which are applied last.
    least: f64,
    most: f64,
    /// Whether values are rounded down to whole numbers.
    is_whole: bool,
}

/// Treatment of bounds that are met while an expression is followed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Bounds {
    /// Bounds become those of the form.
    Merge,
    /// An array with bounds is a source, as something is added to it.
    Stop,
}

impl LinearForm {
    /// The form of levels: whole numbers between finite bounds.
    pub fn of_levels(editor: &Editor, id: InstId) -> Option<LinearForm> {
        let form = Self::follow(editor, id, Bounds::Merge, DEPTH)?;
        let is_level = form.least.abs() <= LARGEST_LEVEL && form.most.abs() <= LARGEST_LEVEL && form.least <= form.most;
        (form.is_whole && is_level).then_some(form)
    }

    fn of_source(source: InstId) -> LinearForm {
        let terms = vec![Term { source, factor: FeatureNumbers::splat(1.0) }];
        LinearForm {
            terms,
            offset: FeatureNumbers::splat(0.0),
            least: f64::NEG_INFINITY,
            most: f64::INFINITY,
            is_whole: false,
        }
    }

    /// The form of an f32 array; a source of its own where its op is none that forms have.
    fn follow_or_stop(editor: &Editor, id: InstId, bounds: Bounds, depth: usize) -> LinearForm {
        let id = editor.resolve(id);
        Self::follow(editor, id, bounds, depth).unwrap_or_else(|| Self::of_source(id))
    }

    /// The form of an f32 array; `None` if its op is none that forms have.
    fn follow(editor: &Editor, id: InstId, bounds: Bounds, depth: usize) -> Option<LinearForm> {
        let id = editor.resolve(id);
        let depth = depth.checked_sub(1)?;
        let &Op::Elementwise(op) = editor.op(id) else { return None };
        if editor.dtype(id) != Some(DType::F32) {
            return None;
        }
        let operands: Vec<InstId> = editor.operands(id).iter().map(|&o| editor.resolve(o)).collect();
        let of = |i: usize, bounds| Self::follow_or_stop(editor, operands[i], bounds, depth);
        let number = |i: usize| FeatureNumbers::of_constant(editor, operands[i]);
        let splat = |i: usize| splat_of(editor, operands[i])?.get_f64(0).filter(|v| !v.is_nan());
        match op {
            ScalarOp::Select if mask_of_nan_select(editor, id).is_some() => Some(of(2, bounds)),
            ScalarOp::Convert(_) => Self::of_converted(editor, operands[0]),
            ScalarOp::Multiply => match (number(0), number(1)) {
                (None, Some(factor)) => of(0, bounds).scale(&factor),
                (Some(factor), None) => of(1, bounds).scale(&factor),
                _ => None,
            },
            ScalarOp::Divide => of(0, bounds).scale(&number(1)?.map(|v| 1.0 / v)?),
            ScalarOp::Add => match (number(0), number(1)) {
                (None, Some(by)) => of(0, bounds).shift(&by),
                (Some(by), None) => of(1, bounds).shift(&by),
                _ => of(0, Bounds::Stop).add(of(1, Bounds::Stop)),
            },
            ScalarOp::Subtract => match number(1) {
                Some(by) => of(0, bounds).shift(&by.map(|v| -v)?),
                None => of(0, Bounds::Stop).add(of(1, Bounds::Stop).scale(&FeatureNumbers::splat(-1.0))?),
            },
            _ if bounds == Bounds::Stop => None,
            ScalarOp::Maximum => match (splat(0), splat(1)) {
                (_, Some(least)) => Some(of(0, bounds).hold(least, f64::INFINITY)),
                (Some(least), None) => Some(of(1, bounds).hold(least, f64::INFINITY)),
                _ => None,
            },
            ScalarOp::Minimum => match (splat(0), splat(1)) {
                (_, Some(most)) => Some(of(0, bounds).hold(f64::NEG_INFINITY, most)),
                (Some(most), None) => Some(of(1, bounds).hold(f64::NEG_INFINITY, most)),
                _ => None,
            },
            ScalarOp::Clamp => Some(of(1, bounds).hold(splat(0)?, splat(2)?)),
            ScalarOp::Floor => Some(of(0, bounds).round_down()),
            ScalarOp::RoundNearestEven | ScalarOp::RoundNearestAfz => {
                let form = of(0, bounds);
                // what is whole already stays as it is
                Some(if form.is_whole { form } else { form.shift(&FeatureNumbers::splat(0.5))?.round_down() })
            }
            _ => None,
        }
    }

    /// The form of an integer array as f32.
    fn of_converted(editor: &Editor, integers: InstId) -> Option<LinearForm> {
        if !editor.dtype(integers)?.is_integer() {
            return None;
        }
        if let Op::Elementwise(ScalarOp::Add) = editor.op(integers)
            && editor.dtype(integers) == Some(DType::S32)
            && let Some(by) = FeatureNumbers::of_constant(editor, editor.resolve(editor.operand(integers, 1)))
        {
            let sums = editor.resolve(editor.operand(integers, 0));
            if is_within_32_bits(editor, sums, &by) {
                return Self::of_source(sums).shift(&by);
            }
        }
        Some(Self::of_source(integers))
    }

    fn scale(mut self, by: &FeatureNumbers) -> Option<LinearForm> {
        if self.is_whole {
            return None;
        }
        if self.has_bounds() {
            let factor = by.as_splat().filter(|&factor| factor > 0.0)?;
            (self.least, self.most) = (self.least * factor, self.most * factor);
        }
        for term in &mut self.terms {
            term.factor = term.factor.combine(by, |a, b| a * b)?;
        }
        self.offset = self.offset.combine(by, |a, b| a * b)?;
        Some(self)
    }

    fn shift(mut self, by: &FeatureNumbers) -> Option<LinearForm> {
        if self.is_whole && by.as_splat().is_none_or(|by| by != by.trunc()) {
            return None;
        }
        if self.has_bounds() {
            let by = by.as_splat()?;
            (self.least, self.most) = (self.least + by, self.most + by);
        }
        self.offset = self.offset.combine(by, |a, b| a + b)?;
        Some(self)
    }

    /// The sum of two forms without bounds.
    fn add(mut self, other: LinearForm) -> Option<LinearForm> {
        let is_sum = !self.is_whole && !other.is_whole && !self.has_bounds() && !other.has_bounds();
        if !is_sum || self.terms.len() + other.terms.len() > MOST_TERMS {
            return None;
        }
        self.terms.extend(other.terms);
        self.offset = self.offset.combine(&other.offset, |a, b| a + b)?;
        Some(self)
    }

    fn hold(mut self, least: f64, most: f64) -> LinearForm {
        // bounds of whole numbers are whole
        let (least, most) = if self.is_whole { (least.ceil(), most.floor()) } else { (least, most) };
        self.least = self.least.max(least).min(most);
        self.most = self.most.min(most).max(least);
        self
    }

    fn round_down(self) -> LinearForm {
        LinearForm { least: self.least.floor(), most: self.most.floor(), is_whole: true, ..self }
    }

    fn has_bounds(&self) -> bool {
        self.least.is_finite() || self.most.is_finite()
    }

    /// Emits `sum of factor * source + offset`, in f32.
    fn write_sum(&self, editor: &mut Editor, dims: &[u64]) -> Result<InstId> {
        let mut sum = self.offset.write(editor, dims);
        for term in self.terms.iter().rev() {
            let mut x = term.source;
            if editor.dtype(x) != Some(DType::F32) {
                x = editor.add_instruction(Op::Elementwise(ScalarOp::Convert(DType::F32)), &[x])?;
            }
            let factor = term.factor.write(editor, dims);
            let product = editor.add_instruction(Op::Elementwise(ScalarOp::Multiply), &[x, factor])?;
            sum = editor.add_instruction(Op::Elementwise(ScalarOp::Add), &[product, sum])?;
        }
        Ok(sum)
    }

    /// Emits the levels, as f32.
    pub fn write_levels(&self, editor: &mut Editor, dims: &[u64]) -> Result<InstId> {
        let sum = self.write_sum(editor, dims)?;
        let whole = editor.add_instruction(Op::Elementwise(ScalarOp::Floor), &[sum])?;
        let [least, most] = [self.least, self.most].map(|bound| FeatureNumbers::splat(bound).write(editor, dims));
        editor.add_instruction(Op::Elementwise(ScalarOp::Clamp), &[least, whole, most])
    }

    /// Emits bytes from which the levels differ by `offset`.
    pub fn write_bytes(&self, editor: &mut Editor, dims: &[u64], dtype: DType, offset: i32) -> Result<InstId> {
        // signed bytes are unsigned ones less 128
        let is_signed = dtype == DType::S8;
        let offset = f64::from(offset) - if is_signed { 128.0 } else { 0.0 };
        let (least, most) = (self.least - offset, self.most - offset);
        let by = FeatureNumbers::splat(-offset);
        let own = LinearForm {
            terms: self.terms.iter().map(|t| Term { source: t.source, factor: t.factor.clone() }).collect(),
            // a splat has the axes of any other numbers
            offset: self.offset.combine(&by, |a, b| a + b).unwrap_or(by),
            ..*self
        };
        let mut x = own.write_sum(editor, dims)?;
        // the conversion truncates, which rounds down from zero on, and saturates
        if most < LARGEST_BYTE {
            let most = FeatureNumbers::splat(most.max(0.0)).write(editor, dims);
            x = editor.add_instruction(Op::Elementwise(ScalarOp::Minimum), &[x, most])?;
        }
        if least > 0.0 {
            let least = FeatureNumbers::splat(least.min(LARGEST_BYTE)).write(editor, dims);
            x = editor.add_instruction(Op::Elementwise(ScalarOp::Maximum), &[x, least])?;
        }
        let convert = |dtype| Op::Elementwise(ScalarOp::Convert(dtype));
        let bytes = editor.add_instruction_with_shape(convert(DType::U8), &[x], Shape::array(DType::U8, dims));
        if !is_signed {
            return Ok(bytes);
        }
        let half = editor.add_constant(Tensor::scalar_from_i64(DType::U8, 128));
        let half = editor.add_broadcast(half, dims, &[]);
        let bytes = editor.add_instruction(Op::Elementwise(ScalarOp::Add), &[bytes, half])?;
        Ok(editor.add_instruction_with_shape(convert(dtype), &[bytes], Shape::array(dtype, dims)))
    }
}

/// Replaces a quantisation by one multiply-add for each array that it is computed from; `None` for any other instruction.
///
/// # Errors
/// An internal one where an instruction does not fit its operands.
pub fn requantize(editor: &mut Editor, id: InstId) -> Result<Option<InstId>> {
    let &Op::Elementwise(op) = editor.op(id) else { return Ok(None) };
    let dims = editor.dims(id).to_vec();
    match op {
        ScalarOp::Convert(dtype @ (DType::S8 | DType::U8)) => {
            let (first, last) = dtype.integer_bounds().unwrap_or_default();
            let form = LinearForm::follow(editor, editor.operand(id, 0), Bounds::Merge, DEPTH);
            let Some(form) = form.filter(|form| form.is_whole).map(|form| form.hold(first, last)) else {
                return Ok(None);
            };
            form.write_bytes(editor, &dims, dtype, 0).map(Some)
        }
        ScalarOp::Floor
        | ScalarOp::RoundNearestEven
        | ScalarOp::RoundNearestAfz
        | ScalarOp::Clamp
        | ScalarOp::Maximum
        | ScalarOp::Minimum
            if !is_written_form(editor, id) =>
        {
            match LinearForm::of_levels(editor, id) {
                Some(form) => form.write_levels(editor, &dims).map(Some),
                None => Ok(None),
            }
        }
        _ => Ok(None),
    }
}

/// Whether `sums + by`, in 32 bits, is the mathematical sum: `sums` is a product of bytes with few enough terms.
fn is_within_32_bits(editor: &Editor, sums: InstId, by: &FeatureNumbers) -> bool {
    let terms = match editor.op(sums) {
        Op::Dot(d) => dot_term_count(editor, sums, d),
        Op::Convolution(d) => convolution_term_count(editor, sums, d),
        _ => return false,
    };
    let are_bytes = editor.operands(sums).iter().all(|&o| editor.dtype(o).is_some_and(|dtype| dtype.bits() == 8));
    are_bytes && terms as f64 * LARGEST_BYTE * LARGEST_BYTE + by.largest_magnitude() <= f64::from(i32::MAX)
}

/// Whether an instruction is what [`LinearForm::write_levels`] writes.
fn is_written_form(editor: &Editor, id: InstId) -> bool {
    let floor = match editor.op(id) {
        Op::Elementwise(ScalarOp::Clamp) => editor.operand(id, 1),
        _ => return false,
    };
    matches!(editor.op(floor), Op::Elementwise(ScalarOp::Floor)) && splat_of(editor, editor.operand(id, 0)).is_some()
}
