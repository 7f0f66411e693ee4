//! Constants as passes see them: stored arrays, broadcasts of stored arrays, and arrays of one value.
use super::rewrite::Editor;
use crate::hlo::{InstId, Op};
use crate::tensor::{Tensor, saturating_element_count};

/// The value of a constant, or of a broadcast or reshape of one; `None` where it takes more than `max_bytes`.
pub fn value(editor: &Editor, id: InstId, max_bytes: u64) -> Option<Tensor> {
    let shape = editor.array(id)?;
    if shape.bytes() > max_bytes {
        return None;
    }
    match editor.op(id) {
        Op::Constant(_) => editor.constant(id).cloned(),
        Op::Broadcast(map) => {
            let inner = editor.constant(editor.operand(id, 0))?;
            Some(broadcast(inner, &shape.dims, map))
        }
        Op::Reshape => {
            let inner = value(editor, reshape_source(editor, id)?, max_bytes)?;
            Some(Tensor { dims: shape.dims.clone(), ..inner })
        }
        _ => None,
    }
}

/// The instruction at the start of a chain of reshapes that ends in `id`; `id` itself if it is no reshape.
fn reshape_source(editor: &Editor, id: InstId) -> Option<InstId> {
    let mut at = id;
    while matches!(editor.op(at), Op::Reshape) {
        at = editor.operand(at, 0);
    }
    Some(at)
}

/// The broadcast of `x` whose dimension `i` becomes dimension `map[i]` of `dims`.
pub fn broadcast(x: &Tensor, dims: &[u64], map: &[usize]) -> Tensor {
    let width = x.dtype.bytes();
    // `hlo::sizes` has held the module to arrays that can be counted.
    let count = saturating_element_count(dims) as usize;
    let mut out = Vec::with_capacity(count * width);
    if x.len() == 1 {
        (0..count).for_each(|_| out.extend_from_slice(&x.bytes));
        return Tensor::new(x.dtype, dims.to_vec(), out);
    }
    let mut strides = vec![0usize; dims.len()];
    let mut step = 1usize;
    for (i, &size) in x.dims.iter().enumerate().rev() {
        strides[map[i]] = step;
        step *= size as usize;
    }
    let mut index = vec![0u64; dims.len()];
    let mut from = 0usize;
    for _ in 0..count {
        out.extend_from_slice(&x.bytes[from * width..(from + 1) * width]);
        for d in (0..dims.len()).rev() {
            index[d] += 1;
            from += strides[d];
            if index[d] < dims[d] {
                break;
            }
            from -= strides[d] * dims[d] as usize;
            index[d] = 0;
        }
    }
    Tensor::new(x.dtype, dims.to_vec(), out)
}

/// The scalar that all elements of an array equal; `None` if elements differ, and for empty arrays.
fn splat(x: &Tensor) -> Option<Tensor> {
    let width = x.dtype.bytes();
    let first = x.bytes.get(..width)?;
    if x.bytes.chunks_exact(width).any(|element| element != first) {
        return None;
    }
    Some(Tensor::new(x.dtype, vec![], x.bytes.slice(..width)))
}

/// Whether `id` is a constant whose numbers may be replaced, or a broadcast or reshape of one.
pub fn is_replaceable_weight(editor: &Editor, id: InstId) -> bool {
    let mut at = id;
    while matches!(editor.op(at), Op::Broadcast(_) | Op::Reshape) {
        at = editor.operand(at, 0);
    }
    editor.constant(at).is_some_and(|t| editor.module().is_weight(t))
}

/// The scalar that all elements of a constant equal, unless the constant is a weight that may be replaced.
pub fn stored_splat(editor: &Editor, id: InstId) -> Option<Tensor> {
    editor.constant(id).filter(|t| !editor.module().is_weight(t)).and_then(splat)
}

/// The scalar that every element of `id` equals, if it is known.
pub fn splat_of(editor: &Editor, id: InstId) -> Option<Tensor> {
    match editor.op(id) {
        Op::Broadcast(_) => stored_splat(editor, editor.operand(id, 0)),
        _ => stored_splat(editor, id),
    }
}

/// Whether every element of `id` is known to equal `wanted`, exactly (so that -0 is not 0).
pub fn is_filled_with(editor: &Editor, id: InstId, wanted: f64) -> bool {
    splat_of(editor, id).is_some_and(|t| t.bytes == Tensor::scalar_from_f64(t.dtype, wanted).bytes)
}
