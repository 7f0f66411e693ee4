//! Scalar computations: recognition of simple ones, and their application to many elements at once.
use super::machine::Machine;
use super::operands::{invalid_hlo, one_or_tuple};
use crate::diag::Result;
use crate::hlo::{CompId, Computation, InstId, Literal, Op};
use crate::scalar::{ScalarOp, eval};
use crate::tensor::{DType, Tensor};

/// Number of the parameter that `id` copies.
fn parameter(comp: &Computation, mut id: InstId) -> Option<usize> {
    for _ in 0..comp.insts.len() {
        let inst = comp.insts.get(id)?;
        match inst.op {
            Op::Parameter(n) => return Some(n),
            Op::Copy | Op::OptimizationBarrier => id = *inst.operands.first()?,
            _ => return None,
        }
    }
    None
}

/// Binary op of a computation that does nothing but apply the op to its two parameters.
pub(super) fn single_binary_op(comp: &Computation) -> Option<ScalarOp> {
    let root = comp.insts.get(comp.root)?;
    let Op::Elementwise(op) = root.op else { return None };
    let numbers: Option<Vec<usize>> = root.operands.iter().map(|&o| parameter(comp, o)).collect();
    match numbers?[..] {
        [0, 1] => Some(op),
        [1, 0] if op.commutes() => Some(op),
        _ => None,
    }
}

/// Number of the parameter that a computation returns.
pub(super) fn returned_parameter(comp: &Computation) -> Option<usize> {
    parameter(comp, comp.root)
}

/// Applies a computation to element `i` of all of `args`, for each `i`; `args` are vectors of `n` elements.
pub(super) fn apply_elementwise(m: &Machine, comp: CompId, args: &[Tensor], n: usize) -> Result<Vec<Tensor>> {
    if n == 0 {
        let shapes = m.computation(comp)?;
        let leaves = shapes[shapes.root].shape.leaves();
        return Ok(leaves.iter().map(|a| Tensor::new(a.dtype, vec![0], Vec::new())).collect());
    }
    let args = &as_taken(m.computation(comp)?, args)[..];
    let lifted: Vec<Literal> = args.iter().cloned().map(Literal::Array).collect();
    let result = match lift(m, comp, &lifted, 0)? {
        Some(result) => result,
        None => return one_by_one(m, comp, args, n),
    };
    let widen = |t: &Tensor| {
        if t.len() == n {
            t.with_dims(vec![n as u64])
        } else {
            super::box_walk::strided_elements(t, vec![n as u64], 0, &[0])
        }
    };
    Ok(result.leaves().into_iter().map(widen).collect())
}

/// Arguments converted to the types of the parameters: those of `scatter` and `sort` may be wider floats.
fn as_taken(comp: &Computation, args: &[Tensor]) -> Vec<Tensor> {
    let types = comp.params.iter().map(|&p| comp[p].shape.as_array().map(|a| a.dtype));
    let types = types.chain(std::iter::repeat(None));
    args.iter().zip(types).map(|(x, t)| t.map_or_else(|| x.clone(), |t| convert_float(x, t))).collect()
}

/// Float array converted to another float type; other arrays unchanged.
pub(super) fn convert_float(x: &Tensor, dtype: DType) -> Tensor {
    if x.dtype != dtype && x.dtype.is_float() && dtype.is_float() { eval::convert(x, dtype) } else { x.clone() }
}

/// Applies a computation of pointwise instructions to vectors; `None` if it contains any other op.
fn lift(m: &Machine, id: CompId, args: &[Literal], depth: u32) -> Result<Option<Literal>> {
    let comp = m.computation(id)?;
    if depth > 16 {
        return Ok(None);
    }
    let mut values: Vec<Option<Literal>> = vec![None; comp.insts.len()];
    for id in comp.post_order() {
        let inst = &comp[id];
        let operands: Option<Vec<&Literal>> = inst.operands.iter().map(|o| values[o.0 as usize].as_ref()).collect();
        let operands = operands.ok_or_else(|| invalid_hlo("a value is read before it is made"))?;
        let scalar = inst.shape.leaves().iter().all(|a| a.dims.is_empty());
        if !scalar {
            return Ok(None);
        }
        m.charge_work(4 + operands.first().map_or(0, |l| l.leaves().first().map_or(0, |t| t.len() as u64)))?;
        let value = match &inst.op {
            Op::Parameter(n) => args.get(*n).cloned().ok_or_else(|| invalid_hlo(format!("argument {n} is missing")))?,
            Op::Constant(literal) => literal.clone(),
            Op::Elementwise(op) => {
                let arrays: Option<Vec<&Tensor>> = operands.iter().map(|l| as_array(l)).collect();
                Literal::Array(eval::eval(*op, &arrays.ok_or_else(|| invalid_hlo("an operand is not an array"))?)?)
            }
            Op::Tuple => Literal::Tuple(operands.into_iter().cloned().collect()),
            Op::GetTupleElement(i) => match operands.first() {
                Some(Literal::Tuple(parts)) if *i < parts.len() => parts[*i].clone(),
                _ => return Err(invalid_hlo("operand 0 is not a tuple")),
            },
            Op::Copy | Op::OptimizationBarrier | Op::Reshape | Op::Broadcast(_) if operands.len() == 1 => {
                operands[0].clone()
            }
            Op::Call(callee) | Op::Fusion { comp: callee, kind: _ } => {
                let args: Vec<Literal> = operands.into_iter().cloned().collect();
                match lift(m, *callee, &args, depth + 1)? {
                    Some(value) => value,
                    None => return Ok(None),
                }
            }
            _ => return Ok(None),
        };
        values[id.0 as usize] = Some(value);
    }
    Ok(values[comp.root.0 as usize].take())
}

fn as_array(l: &Literal) -> Option<&Tensor> {
    match l {
        Literal::Array(t) => Some(t),
        Literal::Tuple(_) | Literal::Token => None,
    }
}

/// Results of a reduction in the form that its computation returns: a tuple of one, if it returns tuples.
pub(super) fn wrap_results(m: &Machine, comp: CompId, parts: Vec<Tensor>) -> Result<Literal> {
    if m.computation(comp)?.returns_tuple() {
        return Ok(Literal::Tuple(parts.into_iter().map(Literal::Array).collect()));
    }
    Ok(one_or_tuple(parts))
}

/// Element `i` of a vector as a scalar.
pub(super) fn scalar_at(t: &Tensor, i: usize) -> Tensor {
    let n = t.dtype.bytes();
    Tensor::new(t.dtype, vec![], t.bytes.slice(i * n..(i + 1) * n))
}

fn one_by_one(m: &Machine, comp: CompId, args: &[Tensor], n: usize) -> Result<Vec<Tensor>> {
    let mut columns: Vec<(DType, Vec<u8>)> = Vec::new();
    for i in 0..n {
        let scalars: Vec<Literal> = args.iter().map(|t| Literal::Array(scalar_at(t, i))).collect();
        let result = m.call(comp, &scalars)?;
        for (k, leaf) in result.leaves().into_iter().enumerate() {
            if columns.len() <= k {
                columns.push((leaf.dtype, Vec::new()));
            }
            columns[k].1.extend_from_slice(&leaf.bytes);
        }
    }
    let fits = columns.iter().all(|(t, bytes)| bytes.len() == n * t.bytes());
    if !fits {
        return Err(invalid_hlo("a computation that is applied to scalars must return scalars"));
    }
    Ok(columns.into_iter().map(|(t, bytes)| Tensor::new(t, vec![n as u64], bytes)).collect())
}

/// Applies a computation pointwise (`map`).
pub(super) fn map(m: &Machine, operands: &[&Tensor], comp: CompId) -> Result<Literal> {
    let first = operands.first().ok_or_else(|| invalid_hlo("map needs an operand"))?;
    if operands.iter().any(|t| t.dims != first.dims) {
        return Err(invalid_hlo("the operands of map have different sizes"));
    }
    let n = first.len();
    let flat: Vec<Tensor> = operands.iter().map(|t| t.with_dims(vec![n as u64])).collect();
    let parts = apply_elementwise(m, comp, &flat, n)?;
    Ok(one_or_tuple(parts.into_iter().map(|t| t.with_dims(first.dims.clone())).collect()))
}
