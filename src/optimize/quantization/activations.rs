//! Activations that are whole numbers times a scale, and the same as bytes.
use super::nan_masks::NanMasks;
use super::requantization::LinearForm;
use super::value_range::{Nans, mask_of_nan_select};
use crate::diag::Result;
use crate::hlo::{InstId, Op, Shape};
use crate::optimize::constant::splat_of;
use crate::optimize::rewrite::Editor;
use crate::scalar::ScalarOp;
use crate::tensor::{DType, Tensor};

/// Upper limit of reshapes, transposes and slices between an activation and a product.
const DEPTH: usize = 8;
/// Largest difference of two levels of a byte.
const BYTE_SPAN: f64 = 255.0;
/// Largest offset of levels, which bounds sums of offsets times weights.
const MOST_OFFSET: f64 = 32768.0;

/// An operand of a product that is a scale times whole numbers.
pub struct Activation {
    /// The operand before what moves its elements: levels times the scale, or NaN where a mask says so.
    dequantize: InstId,
    /// The whole numbers, an array of `f32`.
    levels: InstId,
    /// The number by which levels are multiplied or divided.
    applied: AppliedScale,
    /// How the levels lie, or will lie, in bytes.
    pub bytes: ByteType,
    /// The bytes that the levels are converted from, where the graph has them.
    stored: Option<InstId>,
    /// Whether some element may be NaN.
    pub may_be_nan: bool,
    /// Reshapes, transposes and slices between `dequantize` and the operand, the operand's first.
    path: Vec<InstId>,
}

/// A multiplication or a division by a positive number.
#[derive(Clone, Copy)]
struct AppliedScale {
    op: ScalarOp,
    number: f32,
}

impl Activation {
    /// The factor of the levels.
    pub fn scale(&self) -> f64 {
        let number = f64::from(self.applied.number);
        if self.applied.op == ScalarOp::Divide { 1.0 / number } else { number }
    }
}

/// Signedness of the bytes that hold levels, and their difference from the levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteType {
    /// `s8` or `u8`.
    pub dtype: DType,
    /// The number that is added to a byte to make it a level.
    pub offset: i32,
}

impl ByteType {
    /// The type of bytes for levels between two bounds, which are at most 255 apart: without an offset where it can be.
    fn for_levels(least: f64, most: f64) -> ByteType {
        match () {
            () if least >= 0.0 && most <= 255.0 => ByteType { dtype: DType::U8, offset: 0 },
            () if least >= -128.0 && most <= 127.0 => ByteType { dtype: DType::S8, offset: 0 },
            () => ByteType { dtype: DType::U8, offset: least as i32 },
        }
    }

    /// Whether some byte is level zero.
    pub fn holds_level_zero(self) -> bool {
        let bytes = if self.dtype == DType::S8 { -128..=127 } else { 0..=255 };
        bytes.contains(&-self.offset)
    }
}

/// The activations of one computation.
#[derive(Default)]
pub struct Activations {
    /// Masks that say which elements of arrays are NaN.
    pub masks: NanMasks,
    /// Whether quantisations are multiply-adds, and NaNs some level ([`super::requantization`]).
    pub is_fast: bool,
}

impl Activations {
    /// The activation that an operand is, if its levels fit into bytes.
    pub fn find(&mut self, editor: &Editor, operand: InstId) -> Option<Activation> {
        let mut path = Vec::new();
        let mut at = operand;
        while matches!(editor.op(at), Op::Reshape | Op::Transpose(_) | Op::Slice(_)) && path.len() < DEPTH {
            path.push(at);
            at = editor.operand(at, 0);
        }
        if editor.dtype(at) != Some(DType::F32) {
            return None;
        }
        let product = if mask_of_nan_select(editor, at).is_some() { editor.operand(at, 2) } else { at };
        let (levels, applied) = scaled(editor, product)?;
        if !is_rounded(editor, levels, DEPTH) {
            return None;
        }
        let range = self.masks.ranges.range(editor, levels);
        let fits = range.is_whole && range.is_finite() && range.most - range.least <= BYTE_SPAN;
        if !fits || range.least.abs() > MOST_OFFSET {
            return None;
        }
        let nans = if self.is_fast { Nans::Never } else { self.masks.ranges.range(editor, at).nans };
        if nans == Nans::Anywhere {
            return None;
        }
        let may_be_nan = nans != Nans::Never;
        let (stored, bytes) = match stored_bytes(editor, levels) {
            Some((stored, bytes)) => (Some(stored), bytes),
            None => (None, ByteType::for_levels(range.least, range.most)),
        };
        Some(Activation { dequantize: at, levels, applied, bytes, stored, may_be_nan, path })
    }

    /// The operand's levels as bytes. The activation itself is computed from them from now on, so that they are what lies in memory.
    pub fn bytes(&mut self, editor: &mut Editor, of: &Activation) -> Result<InstId> {
        let mut bytes = match of.stored {
            Some(stored) => stored,
            None => {
                let stored = self.add_bytes(editor, of)?;
                let dequantized = self.add_dequantized(editor, of, stored)?;
                editor.replace(of.dequantize, dequantized)?;
                stored
            }
        };
        for &step in of.path.iter().rev() {
            let op = editor.op(step).clone();
            bytes = match op {
                Op::Reshape => {
                    let dims = editor.dims(step).to_vec();
                    editor.add_reshape(bytes, &dims)
                }
                op => editor.add_instruction(op, &[bytes])?,
            };
        }
        Ok(bytes)
    }

    /// The activation computed from bytes; NaN where the graph's has a NaN.
    fn add_dequantized(&mut self, editor: &mut Editor, of: &Activation, bytes: InstId) -> Result<InstId> {
        let offset = of.bytes.offset;
        let dims = editor.dims(bytes).to_vec();
        let mut levels = editor.add_instruction(Op::Elementwise(ScalarOp::Convert(DType::F32)), &[bytes])?;
        if offset != 0 {
            let offset = editor.add_constant(Tensor::scalar_from_i64(DType::F32, i64::from(offset)));
            let offset = editor.add_broadcast(offset, &dims, &[]);
            levels = editor.add_instruction(Op::Elementwise(ScalarOp::Add), &[levels, offset])?;
        }
        let scale = editor.add_constant(Tensor::scalar(of.applied.number));
        let scale = editor.add_broadcast(scale, &dims, &[]);
        let numbers = editor.add_instruction(Op::Elementwise(of.applied.op), &[levels, scale])?;
        let mask = self.mask(editor, of.dequantize, dims.len())?;
        add_nans(editor, numbers, mask)
    }

    /// Converts levels to bytes.
    fn add_bytes(&self, editor: &mut Editor, of: &Activation) -> Result<InstId> {
        let ByteType { dtype, offset } = of.bytes;
        let dims = editor.dims(of.levels).to_vec();
        let form = if self.is_fast { LinearForm::of_levels(editor, of.levels) } else { None };
        if let Some(form) = form {
            return form.write_bytes(editor, &dims, dtype, offset);
        }
        let mut levels = of.levels;
        if offset != 0 {
            let offset = editor.add_constant(Tensor::scalar_from_i64(DType::F32, i64::from(offset)));
            let offset = editor.add_broadcast(offset, &dims, &[]);
            levels = editor.add_instruction(Op::Elementwise(ScalarOp::Subtract), &[levels, offset])?;
        }
        let convert = Op::Elementwise(ScalarOp::Convert(dtype));
        Ok(editor.add_instruction_with_shape(convert, &[levels], Shape::array(dtype, dims)))
    }

    /// The mask of an array's NaNs over leading axes; `None` where there are none, or where they need not be kept.
    pub fn mask(&mut self, editor: &mut Editor, id: InstId, axes: usize) -> Result<Option<InstId>> {
        if self.is_fast { Ok(None) } else { self.masks.mask(editor, id, axes) }
    }
}

/// `x` with NaNs where a mask over leading axes is true.
pub fn add_nans(editor: &mut Editor, x: InstId, mask: Option<InstId>) -> Result<InstId> {
    let Some(mask) = mask else { return Ok(x) };
    let dims = editor.dims(x).to_vec();
    let axes: Vec<usize> = (0..editor.dims(mask).len()).collect();
    let nan = editor.add_constant(Tensor::scalar(f32::NAN));
    let (mask, nan) = (editor.add_broadcast(mask, &dims, &axes), editor.add_broadcast(nan, &dims, &[]));
    editor.add_instruction(Op::Elementwise(ScalarOp::Select), &[mask, nan, x])
}

/// The levels of an array that is one array times a positive number, or divided by one, and that number.
fn scaled(editor: &Editor, id: InstId) -> Option<(InstId, AppliedScale)> {
    let [x, y] = editor.operands(id)[..] else { return None };
    let Op::Elementwise(op) = *editor.op(id) else { return None };
    match (op, scale_of(editor, y)) {
        (ScalarOp::Multiply | ScalarOp::Divide, Some(number)) => Some((x, AppliedScale { op, number })),
        (ScalarOp::Multiply, None) => Some((y, AppliedScale { op, number: scale_of(editor, x)? })),
        _ => None,
    }
}

/// The positive number that all elements of an array equal.
fn scale_of(editor: &Editor, id: InstId) -> Option<f32> {
    let value = splat_of(editor, id)?;
    let scale = value.get_f64(0).filter(|_| value.dtype == DType::F32)? as f32;
    (scale.is_normal() && scale > 0.0).then_some(scale)
}

/// Whether an array looks as if it held whole numbers: cheap, before its range is computed.
fn is_rounded(editor: &Editor, id: InstId, depth: usize) -> bool {
    match editor.op(id) {
        Op::Elementwise(ScalarOp::Floor | ScalarOp::RoundNearestEven | ScalarOp::RoundNearestAfz) => true,
        Op::Elementwise(ScalarOp::Convert(DType::F32)) => {
            editor.dtype(editor.operand(id, 0)).is_some_and(|dtype| dtype.is_integer())
        }
        Op::Elementwise(
            ScalarOp::Add | ScalarOp::Subtract | ScalarOp::Clamp | ScalarOp::Maximum | ScalarOp::Minimum,
        ) => depth > 0 && editor.operands(id).iter().any(|&o| is_rounded(editor, o, depth - 1)),
        Op::Reshape | Op::Transpose(_) | Op::Slice(_) => {
            depth > 0 && is_rounded(editor, editor.operand(id, 0), depth - 1)
        }
        _ => false,
    }
}

/// The bytes that levels are converted from, and the whole number that is added to them.
fn stored_bytes(editor: &Editor, levels: InstId) -> Option<(InstId, ByteType)> {
    let converted = |id: InstId| {
        let is_conversion = matches!(editor.op(id), Op::Elementwise(ScalarOp::Convert(DType::F32)));
        let from = is_conversion.then(|| editor.operand(id, 0))?;
        let dtype = editor.dtype(from).filter(|dtype| matches!(dtype, DType::S8 | DType::U8))?;
        Some((from, dtype))
    };
    if let Some((bytes, dtype)) = converted(levels) {
        return Some((bytes, ByteType { dtype, offset: 0 }));
    }
    let sign = match editor.op(levels) {
        Op::Elementwise(ScalarOp::Add) => 1.0,
        Op::Elementwise(ScalarOp::Subtract) => -1.0,
        _ => return None,
    };
    let (bytes, dtype) = converted(editor.operand(levels, 0))?;
    let offset = splat_of(editor, editor.operand(levels, 1))?.get_f64(0)? * sign;
    (offset == offset.trunc() && offset.abs() <= MOST_OFFSET)
        .then_some((bytes, ByteType { dtype, offset: offset as i32 }))
}
