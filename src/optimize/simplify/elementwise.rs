//! Rules whose root is a pointwise op.
use crate::diag::Result;
use crate::hlo::{InstId, Op};
use crate::optimize::constant::{is_filled_with, splat_of, stored_splat};
use crate::optimize::rewrite::Editor;
use crate::scalar::{CompareKind, Direction, ScalarOp};
use crate::tensor::{DType, DTypeClass, Tensor};

/// A simpler form of `op(operands)`.
pub fn simplify(editor: &mut Editor, id: InstId, op: ScalarOp) -> Result<Option<InstId>> {
    let operands = editor.operands(id).to_vec();
    if let Some(simpler) = broadcast_uniform_operand(editor, op, &operands)? {
        return Ok(Some(simpler));
    }
    let simpler = match operands[..] {
        [x] => unary(editor, id, op, x)?,
        [x, y] => binary(editor, id, op, x, y)?,
        [p, x, y] if op == ScalarOp::Select => select(editor, p, x, y),
        _ => None,
    };
    match simpler {
        Some(simpler) => Ok(Some(simpler)),
        None => match of_broadcasts(editor, id, op, &operands)? {
            Some(simpler) => Ok(Some(simpler)),
            None => of_moved(editor, op, &operands),
        },
    }
}

/// f(x, stored array of one value) = f(x, broadcast(scalar))
fn broadcast_uniform_operand(editor: &mut Editor, op: ScalarOp, operands: &[InstId]) -> Result<Option<InstId>> {
    let stored = |editor: &Editor, o: InstId| stored_splat(editor, o).filter(|_| editor.element_count(o) > 1);
    if operands.iter().all(|&o| stored(editor, o).is_none()) {
        return Ok(None);
    }
    let mut new = Vec::with_capacity(operands.len());
    for &o in operands {
        new.push(match stored(editor, o) {
            Some(value) => {
                let dims = editor.dims(o).to_vec();
                let scalar = editor.add_constant(value);
                editor.add_broadcast(scalar, &dims, &[])
            }
            None => o,
        });
    }
    Ok(Some(editor.add_instruction(Op::Elementwise(op), &new)?))
}

fn unary(editor: &mut Editor, id: InstId, op: ScalarOp, x: InstId) -> Result<Option<InstId>> {
    let inner = editor.op(x).scalar();
    let same_type = editor.dtype(x) == editor.dtype(id);
    match (op, inner) {
        // convert(x) to its own type = x
        (ScalarOp::Convert(_) | ScalarOp::BitcastConvert(_), _) if same_type => Ok(Some(x)),
        // convert(convert(x)) = convert(x), where the first loses nothing
        (ScalarOp::Convert(to), Some(ScalarOp::Convert(between))) => {
            let source = editor.operand(x, 0);
            match editor.dtype(source) {
                Some(from) if is_wider(from, between) => Ok(Some(editor.add_instruction(convert(to), &[source])?)),
                _ => Ok(None),
            }
        }
        (ScalarOp::BitcastConvert(to), Some(ScalarOp::BitcastConvert(_))) => {
            let source = editor.operand(x, 0);
            Ok(Some(editor.add_instruction(Op::Elementwise(ScalarOp::BitcastConvert(to)), &[source])?))
        }
        // -(-x) = x, not(not(x)) = x
        (ScalarOp::Negate, Some(ScalarOp::Negate)) | (ScalarOp::Not, Some(ScalarOp::Not)) => {
            Ok(Some(editor.operand(x, 0)))
        }
        // -(x * c) = x * (-c), -(x / c) = x / (-c)
        (ScalarOp::Negate, Some(product @ (ScalarOp::Multiply | ScalarOp::Divide)))
            if editor.dtype(x).is_some_and(|t| t.is_float()) && editor.uses(x) == 1 =>
        {
            let (source, factor) = (editor.operand(x, 0), editor.operand(x, 1));
            Ok(match negate_for_free(editor, factor)? {
                Some(factor) => Some(editor.add_instruction(Op::Elementwise(product), &[source, factor])?),
                None => None,
            })
        }
        // abs(abs(x)) = abs(x), and so for others that map onto what they keep
        (ScalarOp::Abs, Some(ScalarOp::Abs)) if same_type => Ok(Some(x)),
        (ScalarOp::Floor, Some(ScalarOp::Floor | ScalarOp::Ceil)) => Ok(Some(x)),
        (ScalarOp::Ceil, Some(ScalarOp::Floor | ScalarOp::Ceil)) => Ok(Some(x)),
        // abs(-x) = abs(x), but where abs does nothing
        (ScalarOp::Abs, Some(ScalarOp::Negate)) if !editor.dtype(x).is_some_and(is_unsigned) => {
            let source = editor.operand(x, 0);
            Ok(Some(editor.add_instruction(Op::Elementwise(ScalarOp::Abs), &[source])?))
        }
        // real(x) = x for what is not complex
        (ScalarOp::Real, _) if same_type => Ok(Some(x)),
        (ScalarOp::Real, Some(ScalarOp::Complex)) => Ok(Some(editor.operand(x, 0))),
        (ScalarOp::Imag, Some(ScalarOp::Complex)) => Ok(Some(editor.operand(x, 1))),
        _ => Ok(None),
    }
}

fn is_unsigned(dtype: DType) -> bool {
    dtype.class() == DTypeClass::Unsigned
}

fn convert(to: DType) -> Op {
    Op::Elementwise(ScalarOp::Convert(to))
}

/// Whether every value of `from` is one of `to`, which also converts as it would.
fn is_wider(from: DType, to: DType) -> bool {
    let bits = |t: DType| t.bits();
    match (from.class(), to.class()) {
        (a, b) if a == b && from.is_integer() => bits(from) <= bits(to),
        (DTypeClass::Unsigned, DTypeClass::Signed) => bits(from) < bits(to),
        (DTypeClass::Pred, DTypeClass::Signed | DTypeClass::Unsigned) => true,
        (DTypeClass::Pred, DTypeClass::Float) => matches!(to, DType::F16 | DType::BF16 | DType::F32 | DType::F64),
        (DTypeClass::Float, DTypeClass::Float) => {
            matches!((from, to), (DType::F16 | DType::BF16, DType::F32 | DType::F64) | (DType::F32, DType::F64))
        }
        _ => false,
    }
}

fn binary(editor: &mut Editor, id: InstId, op: ScalarOp, x: InstId, y: InstId) -> Result<Option<InstId>> {
    let Some(dtype) = editor.dtype(x) else { return Ok(None) };
    let discrete = dtype.is_integer() || dtype == DType::Pred;
    let float = dtype.is_float();
    // The constant of a commuting op stands right.
    let commutes = matches!(op, ScalarOp::Add | ScalarOp::Multiply | ScalarOp::And | ScalarOp::Or | ScalarOp::Xor);
    if commutes && is_known(editor, x) && !is_known(editor, y) {
        return Ok(Some(editor.add_instruction(Op::Elementwise(op), &[y, x])?));
    }
    let identity = match op {
        // x + 0 = x for integers; x + (-0) = x for floats (-0 + 0 is 0)
        ScalarOp::Add => (discrete && is_filled_with(editor, y, 0.0)) || (float && is_filled_with(editor, y, -0.0)),
        // x - 0 = x, also for -0
        ScalarOp::Subtract => is_filled_with(editor, y, 0.0) && (discrete || float),
        // x * 1 = x, x / 1 = x, x ^ 1 = x
        ScalarOp::Multiply | ScalarOp::Divide => is_filled_with(editor, y, 1.0),
        ScalarOp::Power => float && is_filled_with(editor, y, 1.0),
        ScalarOp::Or | ScalarOp::Xor => discrete && is_filled_with(editor, y, 0.0),
        ScalarOp::And => dtype == DType::Pred && is_filled_with(editor, y, 1.0),
        ScalarOp::ShiftLeft | ScalarOp::ShiftRightArithmetic | ScalarOp::ShiftRightLogical => {
            is_filled_with(editor, y, 0.0)
        }
        _ => false,
    };
    if identity {
        return Ok(Some(x));
    }
    if x == y {
        return Ok(same_operands(editor, id, op, x, dtype));
    }
    match op {
        // x * 0 = 0 for integers
        ScalarOp::Multiply | ScalarOp::And if discrete && is_filled_with(editor, y, 0.0) => Ok(Some(y)),
        // x * -1 = -x
        ScalarOp::Multiply if (float || dtype.is_signed()) && is_filled_with(editor, y, -1.0) => {
            Ok(Some(editor.add_instruction(Op::Elementwise(ScalarOp::Negate), &[x])?))
        }
        // (-x) * (-y) = x * y, (-x) * c = x * (-c)
        ScalarOp::Multiply | ScalarOp::Divide if float && editor.op(x).scalar() == Some(ScalarOp::Negate) => {
            let source = editor.operand(x, 0);
            Ok(match negate_for_free(editor, y)? {
                Some(y) => Some(editor.add_instruction(Op::Elementwise(op), &[source, y])?),
                None => None,
            })
        }
        // x / c = x * (1 / c), where c is a power of two
        ScalarOp::Divide if matches!(dtype, DType::F32 | DType::F64) => divide_by_reciprocal(editor, x, y),
        ScalarOp::Power if float => expand_small_power(editor, x, y),
        // (-x) + y = y - x
        ScalarOp::Add if editor.op(x).scalar() == Some(ScalarOp::Negate) => {
            let source = editor.operand(x, 0);
            Ok(Some(editor.add_instruction(Op::Elementwise(ScalarOp::Subtract), &[y, source])?))
        }
        // x + (-y) = x - y, x - (-y) = x + y
        ScalarOp::Add | ScalarOp::Subtract if editor.op(y).scalar() == Some(ScalarOp::Negate) => {
            let source = editor.operand(y, 0);
            let other = if op == ScalarOp::Add { ScalarOp::Subtract } else { ScalarOp::Add };
            Ok(Some(editor.add_instruction(Op::Elementwise(other), &[x, source])?))
        }
        _ => Ok(None),
    }
}

/// Negates `x` without another instruction: by another sign change, or a constant.
fn negate_for_free(editor: &mut Editor, x: InstId) -> Result<Option<InstId>> {
    if editor.op(x).scalar() == Some(ScalarOp::Negate) {
        return Ok(Some(editor.operand(x, 0)));
    }
    let Some(number) = splat_of(editor, x) else { return Ok(None) };
    let Some(value) = number.get_f64(0) else { return Ok(None) };
    let dims = editor.dims(x).to_vec();
    let scalar = editor.add_constant(Tensor::scalar_from_f64(number.dtype, -value));
    Ok(Some(editor.add_broadcast(scalar, &dims, &[])))
}

/// A constant or a broadcast of one.
fn is_known(editor: &Editor, id: InstId) -> bool {
    match editor.op(id) {
        Op::Constant(_) => true,
        Op::Broadcast(_) => matches!(editor.op(editor.operand(id, 0)), Op::Constant(_)),
        _ => false,
    }
}

/// Simplifies f(x, x).
fn same_operands(editor: &mut Editor, id: InstId, op: ScalarOp, x: InstId, dtype: DType) -> Option<InstId> {
    let discrete = dtype.is_integer() || dtype == DType::Pred;
    let filled = |editor: &mut Editor, value: f64| {
        let shape = editor.array(id)?.clone();
        let scalar = editor.add_constant(Tensor::scalar_from_f64(shape.dtype, value));
        Some(editor.add_broadcast(scalar, &shape.dims, &[]))
    };
    match op {
        ScalarOp::And | ScalarOp::Or | ScalarOp::Maximum | ScalarOp::Minimum => Some(x),
        ScalarOp::Subtract | ScalarOp::Xor if discrete => filled(editor, 0.0),
        ScalarOp::Compare(direction, kind) if discrete || kind == CompareKind::Total => match direction {
            Direction::Eq | Direction::Ge | Direction::Le => filled(editor, 1.0),
            Direction::Ne | Direction::Gt | Direction::Lt => filled(editor, 0.0),
        },
        _ => None,
    }
}

fn divide_by_reciprocal(editor: &mut Editor, x: InstId, y: InstId) -> Result<Option<InstId>> {
    let Some(divisor) = splat_of(editor, y) else { return Ok(None) };
    let Some(c) = divisor.get_f64(0) else { return Ok(None) };
    // Far from the ends of f32's range, the reciprocal of a power of two is exact and normal.
    let exact = c.is_normal() && c.to_bits() << 12 == 0 && (1e-30..1e30).contains(&c.abs());
    if !exact {
        return Ok(None);
    }
    let dims = editor.dims(y).to_vec();
    let scalar = editor.add_constant(Tensor::scalar_from_f64(divisor.dtype, 1.0 / c));
    let inverse = editor.add_broadcast(scalar, &dims, &[]);
    Ok(Some(editor.add_instruction(Op::Elementwise(ScalarOp::Multiply), &[x, inverse])?))
}

/// Expands powers by small integers to products: at most two roundings, and much faster.
fn expand_small_power(editor: &mut Editor, x: InstId, y: InstId) -> Result<Option<InstId>> {
    let exponent = splat_of(editor, y).and_then(|t| t.get_f64(0));
    let mul = Op::Elementwise(ScalarOp::Multiply);
    match exponent {
        Some(2.0) => Ok(Some(editor.add_instruction(mul, &[x, x])?)),
        Some(3.0) => {
            let square = editor.add_instruction(mul.clone(), &[x, x])?;
            Ok(Some(editor.add_instruction(mul, &[square, x])?))
        }
        _ => Ok(None),
    }
}

fn select(editor: &mut Editor, p: InstId, x: InstId, y: InstId) -> Option<InstId> {
    // select(p, x, x) = x, select(true, x, y) = x, select(false, x, y) = y
    if x == y || is_filled_with(editor, p, 1.0) {
        return Some(x);
    }
    is_filled_with(editor, p, 0.0).then_some(y)
}

/// f(broadcast(x), broadcast(y)) = broadcast(f(x, y)), where both repeat along the same dimensions or one is a scalar.
fn of_broadcasts(editor: &mut Editor, id: InstId, op: ScalarOp, operands: &[InstId]) -> Result<Option<InstId>> {
    let dims = editor.dims(id).to_vec();
    if dims.is_empty() || operands.iter().any(|&o| editor.dims(o) != dims) {
        return Ok(None);
    }
    let mut widest: Option<(Vec<usize>, Vec<u64>)> = None;
    for &o in operands {
        match editor.op(o) {
            Op::Broadcast(map) => {
                let inner = editor.dims(editor.operand(o, 0));
                match &widest {
                    Some((known, sizes)) if !known.is_empty() && !map.is_empty() => {
                        if known != map || sizes != inner {
                            return Ok(None);
                        }
                    }
                    Some((known, _)) if !known.is_empty() => {}
                    _ => widest = Some((map.clone(), inner.to_vec())),
                }
            }
            _ if splat_of(editor, o).is_some() => {}
            _ => return Ok(None),
        }
    }
    let Some((map, sizes)) = widest else { return Ok(None) };
    let mut inner = Vec::with_capacity(operands.len());
    for &o in operands {
        let source = match (editor.op(o), splat_of(editor, o)) {
            (Op::Broadcast(_), _) => editor.operand(o, 0),
            (_, Some(value)) => editor.add_constant(value),
            (_, None) => return Ok(None),
        };
        let narrow = editor.dims(source).is_empty();
        inner.push(if narrow { editor.add_broadcast(source, &sizes, &[]) } else { source });
    }
    let value = editor.add_instruction(Op::Elementwise(op), &inner)?;
    Ok(Some(editor.add_broadcast(value, &dims, &map)))
}

/// f(move(x), move(y)) = move(f(x, y)) for two equal reshapes or transposes: one of them fewer. Splats move freely.
fn of_moved(editor: &mut Editor, op: ScalarOp, operands: &[InstId]) -> Result<Option<InstId>> {
    let is_move = |o: InstId| matches!(editor.op(o), Op::Reshape | Op::Transpose(_));
    let movers: Vec<InstId> = operands.iter().copied().filter(|&o| is_move(o)).collect();
    let [first, ..] = movers[..] else { return Ok(None) };
    let (dims, source) = (editor.dims(first).to_vec(), editor.operand(first, 0));
    let from = editor.dims(source).to_vec();
    let equal = |&o: &InstId| {
        editor.op(o) == editor.op(first) && editor.dims(o) == dims && editor.dims(editor.operand(o, 0)) == from
    };
    // Every mover has to go away with this instruction, and there have to be two, or nothing is won.
    let mut distinct = movers.clone();
    distinct.sort();
    distinct.dedup();
    let only_here = |o: &InstId| editor.uses(*o) as usize <= movers.iter().filter(|m| *m == o).count();
    if distinct.len() < 2 || !movers.iter().all(equal) || !distinct.iter().all(only_here) {
        return Ok(None);
    }
    if operands.iter().any(|&o| !is_move(o) && (editor.dims(o) != dims || splat_of(editor, o).is_none())) {
        return Ok(None);
    }
    let mut inner = Vec::with_capacity(operands.len());
    for &o in operands {
        inner.push(match splat_of(editor, o) {
            Some(value) => {
                let scalar = editor.add_constant(value);
                editor.add_broadcast(scalar, &from, &[])
            }
            None => editor.operand(o, 0),
        });
    }
    let value = editor.add_instruction(Op::Elementwise(op), &inner)?;
    match editor.op(first).clone() {
        Op::Transpose(perm) => Ok(Some(editor.add_instruction(Op::Transpose(perm), &[value])?)),
        _ => Ok(Some(editor.add_reshape(value, &dims))),
    }
}
