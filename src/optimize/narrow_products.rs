//! Multiplies bytes as bytes: products and convolutions with sums of 32 bits whose operands are widened bytes take the bytes.
//!
//! Quantised networks of TensorFlow widen their operands before a product. Sums of products of 32-bit integers are those of the
//! narrow operands modulo 2^32, so the result is the same to the bit, and machines have instructions for products of bytes.
use super::rewrite::{Changed, Editor, rewrite};
use crate::diag::Result;
use crate::hlo::{InstId, Literal, Module, Op};
use crate::scalar::ScalarOp;
use crate::tensor::{DType, Tensor};

/// Upper limit of the reshapes and transposes through which the conversion to a wider type is searched.
const DEPTH: usize = 8;

/// Narrows both operands of products and convolutions with sums of 32 bits, where they hold bytes.
pub fn narrow_products(module: &mut Module) -> Result<Changed> {
    rewrite(module, root)
}

fn root(editor: &mut Editor, id: InstId) -> Result<Option<InstId>> {
    let op = editor.op(id).clone();
    if !matches!(op, Op::Dot(_) | Op::Convolution(_)) || editor.dtype(id) != Some(DType::S32) {
        return Ok(None);
    }
    let [left, right] = editor.operands(id)[..] else { return Ok(None) };
    let are_wide = [left, right].iter().any(|&operand| editor.dtype(operand) == Some(DType::S32));
    if !are_wide || !is_narrow(editor, left, DEPTH) || !is_narrow(editor, right, DEPTH) {
        return Ok(None);
    }
    let operands = [narrowed(editor, left)?, narrowed(editor, right)?];
    let shape = editor.shape(id).clone();
    let product = editor.add_instruction_with_shape(op, &operands, shape);
    editor.copy_provenance(id, product);
    Ok(Some(product))
}

/// Whether a value holds bytes, perhaps in a wider type.
fn is_narrow(editor: &Editor, id: InstId, depth: usize) -> bool {
    let is_of_bytes = |id: InstId| matches!(editor.dtype(id), Some(DType::S8 | DType::U8));
    match editor.op(id) {
        _ if is_of_bytes(id) => true,
        Op::Constant(Literal::Array(value)) => byte_type(value).is_some(),
        Op::Elementwise(ScalarOp::Convert(DType::S32)) => is_of_bytes(editor.operand(id, 0)),
        Op::Reshape | Op::Transpose(_) => depth > 0 && is_narrow(editor, editor.operand(id, 0), depth - 1),
        _ => false,
    }
}

/// The value that [`is_narrow`] found to hold bytes, as bytes.
fn narrowed(editor: &mut Editor, id: InstId) -> Result<InstId> {
    if matches!(editor.dtype(id), Some(DType::S8 | DType::U8)) {
        return Ok(id);
    }
    match editor.op(id).clone() {
        Op::Constant(Literal::Array(value)) => {
            let Some(dtype) = byte_type(&value) else { return Ok(id) };
            let bytes: Vec<u8> = value.view::<i32>().iter().map(|n| n.to_le_bytes()[0]).collect();
            Ok(editor.add_constant(Tensor::new(dtype, value.dims.clone(), bytes)))
        }
        op @ (Op::Reshape | Op::Transpose(_)) => {
            let inner = editor.operand(id, 0);
            let inner = narrowed(editor, inner)?;
            if let Op::Reshape = op {
                let dims = editor.dims(id).to_vec();
                return Ok(editor.add_reshape(inner, &dims));
            }
            editor.add_instruction(op, &[inner])
        }
        _ => Ok(editor.operand(id, 0)),
    }
}

/// The 8-bit integer type that holds all elements of an array of 32-bit integers, if there is one.
fn byte_type(value: &Tensor) -> Option<DType> {
    if value.dtype != DType::S32 {
        return None;
    }
    let all = value.view::<i32>();
    let is_within = |least: i32, most: i32| all.iter().all(|n| (least..=most).contains(n));
    if is_within(-128, 127) { Some(DType::S8) } else { is_within(0, 255).then_some(DType::U8) }
}
