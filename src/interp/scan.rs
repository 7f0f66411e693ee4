//! `scan`: a computation carried along one dimension.
use super::box_walk::{strided_elements, strides};
use super::machine::Machine;
use super::operands::invalid_hlo;
use crate::diag::Result;
use crate::hlo::attrs::ForeignOp;
use crate::hlo::{Literal, Shape};
use crate::tensor::Tensor;

/// Evaluates `scan`: applies (slices.., carries..) -> (outputs.., carries..) at each position of a dimension, and stacks the
/// outputs along it.
pub(super) fn scan(m: &Machine, f: &ForeignOp, operands: &[&Tensor], shape: &Shape) -> Result<Literal> {
    let wrong = || invalid_hlo("scan needs a dimension, arrays of its size, and carries");
    let axis = f.number("dimensions").ok_or_else(wrong)?;
    let carries = f.number("num_carries").unwrap_or(0);
    let callee = f.calls.first().ok_or_else(wrong)?.1;
    let inputs = operands.len().checked_sub(carries).filter(|&n| n > 0).ok_or_else(wrong)?;
    let results = shape.as_tuple().ok_or_else(wrong)?;
    let outputs = results.len().checked_sub(carries).ok_or_else(wrong)?;
    let (xs, inits) = operands.split_at(inputs);
    let n = *xs[0].dims.get(axis).ok_or_else(wrong)?;
    if xs.iter().any(|x| x.dims.get(axis) != Some(&n)) {
        return Err(wrong());
    }
    let reverse = f.is_attr_true("is_reverse");
    let mut state: Vec<Literal> = inits.iter().map(|&t| Literal::Array(t.clone())).collect();
    let mut stacked: Vec<Vec<Tensor>> = vec![Vec::new(); outputs];
    for step in 0..n {
        let at = if reverse { n - 1 - step } else { step };
        let mut args: Vec<Literal> = xs.iter().map(|x| Literal::Array(place(x, axis, at))).collect();
        args.append(&mut state);
        let mut parts = match m.call(callee, &args)? {
            Literal::Tuple(parts) => parts,
            one => vec![one],
        };
        if parts.len() != results.len() {
            return Err(invalid_hlo("the computation of a scan gives outputs and carries"));
        }
        state = parts.split_off(outputs);
        for (column, part) in stacked.iter_mut().zip(parts) {
            let Literal::Array(t) = part else { return Err(wrong()) };
            column.push(t);
        }
    }
    let mut all = Vec::new();
    for (mut column, result) in stacked.into_iter().zip(results) {
        if reverse {
            column.reverse();
        }
        let declared = result.as_array().ok_or_else(wrong)?;
        all.push(Literal::Array(stack(&column, declared.dtype, &declared.dims, axis).ok_or_else(wrong)?));
    }
    all.append(&mut state);
    Ok(Literal::Tuple(all))
}

/// Slice at position `at` of `axis`, without the dimension `axis`.
fn place(x: &Tensor, axis: usize, at: u64) -> Tensor {
    let mut steps = strides(&x.dims);
    let mut dims = x.dims.clone();
    let start = steps.remove(axis) * at as i64;
    dims.remove(axis);
    strided_elements(x, dims, start, &steps)
}

/// Arrays stacked along a new dimension; `None` if the result does not have sizes `dims`.
fn stack(parts: &[Tensor], dtype: crate::tensor::DType, dims: &[u64], axis: usize) -> Option<Tensor> {
    let width = dtype.bytes();
    let inner = dims.get(axis + 1..)?.iter().product::<u64>() as usize * width;
    let outer = dims[..axis].iter().product::<u64>() as usize;
    if parts.len() as u64 != dims[axis] || parts.iter().any(|p| p.dtype != dtype || p.bytes.len() != outer * inner) {
        return None;
    }
    let mut bytes = Vec::with_capacity(outer * inner * parts.len());
    for o in 0..outer {
        for part in parts {
            bytes.extend_from_slice(&part.bytes[o * inner..(o + 1) * inner]);
        }
    }
    Some(Tensor::new(dtype, dims.to_vec(), bytes))
}
