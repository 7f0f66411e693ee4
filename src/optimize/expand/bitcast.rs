//! `bitcast-convert` between widths with shifts: the last dimension holds the parts, the low bits first. `bitcast` as what it
//! does to elements under the layouts that it states.
use super::expand_with;
use crate::diag::Result;
use crate::hlo::{ArrayShape, Builder, InstId, Module, Op};
use crate::optimize::rewrite::{Changed, Editor, rewrite};
use crate::scalar::{Direction, ScalarOp};
use crate::tensor::DType;

/// Replaces bitcasts whose last dimension is split or joined.
pub fn expand(module: &mut Module) -> Result<Changed> {
    rewrite(module, |editor, id| {
        if *editor.op(id) == Op::Bitcast {
            return bitcast(editor, id);
        }
        if *editor.op(id) != Op::BitcastConvertWidth {
            return Ok(None);
        }
        let Some(to) = editor.array(id).cloned() else { return Ok(None) };
        expand_with(editor, id, |b, operands| {
            let from = b.dtype(operands[0]);
            let (wide, narrow) = (
                unsigned_of_width(from.bits().max(to.dtype.bits()))?,
                unsigned_of_width(from.bits().min(to.dtype.bits()))?,
            );
            if from.is_complex() || to.dtype.is_complex() {
                return None;
            }
            let parts = if from.bits() > to.dtype.bits() { &to.dims } else { b.dims(operands[0]) };
            // A truth value is a byte where the sizes say so, else a bit, which is not written here.
            if parts.last().copied() != Some(u64::from(wide.bits() / narrow.bits())) {
                return None;
            }
            Some(if from.bits() > to.dtype.bits() {
                split(b, operands[0], [wide, narrow], to.dtype, &to.dims)
            } else {
                join_parts(b, operands[0], [wide, narrow], to.dtype)
            })
        })
    })
}

/// The dimensions of `shape` from slowest to fastest; `None` where its layout is no permutation.
fn in_memory(shape: &ArrayShape) -> Option<Vec<usize>> {
    let Some(layout) = shape.layout.as_ref().filter(|l| !l.minor_to_major.is_empty()) else {
        return Some((0..shape.rank()).collect());
    };
    let order: Vec<usize> = layout.minor_to_major.iter().rev().map(|&d| d as usize).collect();
    let mut sorted = order.clone();
    sorted.sort_unstable();
    sorted.iter().copied().eq(0..shape.rank()).then_some(order)
}

/// A bitcast as a transpose into memory order, a reinterpretation, and a transpose out of the memory order of the result.
fn bitcast(editor: &mut Editor, id: InstId) -> Result<Option<InstId>> {
    let x = editor.operand(id, 0);
    let (Some(from), Some(to)) = (editor.array(x).cloned(), editor.array(id).cloned()) else {
        return Ok(editor.shape(x).same_type_and_dims(editor.shape(id)).then_some(x));
    };
    let (Some(there), Some(back)) = (in_memory(&from), in_memory(&to)) else { return Ok(None) };
    if from.elements() != to.elements() || from.dtype.bits() != to.dtype.bits() {
        return Ok(None);
    }
    expand_with(editor, id, |b, operands| {
        let x = b.transpose(operands[0], &there);
        let x = bits_as(b, x, to.dtype);
        let memory: Vec<u64> = back.iter().map(|&d| to.dims[d]).collect();
        let x = b.reshape(x, &memory);
        let mut inverse = vec![0; back.len()];
        for (i, &d) in back.iter().enumerate() {
            inverse[d] = i;
        }
        Some(b.transpose(x, &inverse))
    })
}

/// The unsigned integer type of a width.
fn unsigned_of_width(bits: u32) -> Option<DType> {
    [DType::U2, DType::U4, DType::U8, DType::U16, DType::U32, DType::U64].into_iter().find(|t| t.bits() == bits)
}

/// Converts between truth values and bytes: 0 and 1 one way, nonzero is true the other way.
fn bits_as(b: &mut Builder, x: InstId, dtype: DType) -> InstId {
    match (b.dtype(x), dtype) {
        (from, to) if from == to => x,
        (DType::Pred, to) => {
            let byte = b.convert(x, DType::U8);
            bits_as(b, byte, to)
        }
        (_, DType::Pred) => {
            let byte = bits_as(b, x, DType::U8);
            let none = b.full_like(byte, 0.0);
            b.compare(Direction::Ne, byte, none)
        }
        (_, to) => b.unary(ScalarOp::BitcastConvert(to), x),
    }
}

/// The shift of each part of the last dimension.
fn part_shifts(b: &mut Builder, wide: DType, narrow: DType, dims: &[u64]) -> InstId {
    let places = b.iota(wide, dims, dims.len() - 1);
    let step = b.full(wide, dims, f64::from(narrow.bits()));
    b.mul(places, step)
}

fn split(b: &mut Builder, x: InstId, [wide, narrow]: [DType; 2], to: DType, dims: &[u64]) -> InstId {
    let x = bits_as(b, x, wide);
    let lead: Vec<usize> = (0..b.rank(x)).collect();
    let all = b.broadcast(x, dims, &lead);
    let by = part_shifts(b, wide, narrow, dims);
    let moved = b.binary(ScalarOp::ShiftRightLogical, all, by);
    let low = b.convert(moved, narrow);
    bits_as(b, low, to)
}

fn join_parts(b: &mut Builder, x: InstId, [wide, narrow]: [DType; 2], to: DType) -> InstId {
    let x = bits_as(b, x, narrow);
    let dims = b.dims(x).to_vec();
    let x = b.convert(x, wide);
    let by = part_shifts(b, wide, narrow, &dims);
    let moved = b.binary(ScalarOp::ShiftLeft, x, by);
    let zero = b.scalar(wide, 0.0);
    let all = b.reduce(moved, zero, ScalarOp::Or, &[dims.len() - 1]);
    bits_as(b, all, to)
}
