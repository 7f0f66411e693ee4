//! Rules whose root is `dot`.
use crate::diag::Result;
use crate::hlo::attrs::DotDims;
use crate::hlo::{InstId, Op};
use crate::optimize::rewrite::Editor;

/// A simpler form of `dot(x, y)`.
pub fn simplify(editor: &mut Editor, id: InstId, dims: &DotDims) -> Result<Option<InstId>> {
    match editor.op(editor.operand(id, 1)).clone() {
        Op::Transpose(perm) => Ok(of_transposed(editor, id, dims, &perm)),
        Op::Broadcast(map) => Ok(of_repeated(editor, id, dims, &map)),
        _ => Ok(None),
    }
}

/// dot(x, broadcast(y)) = dot(x, y), where the same matrix is multiplied along batch dimensions: those are rows of `x` like others.
/// The result has them before its rows, so they must be the last of the batch dimensions and stand before the rows of `x`.
fn of_repeated(editor: &mut Editor, id: InstId, dims: &DotDims, map: &[usize]) -> Option<InstId> {
    let (x, y) = (editor.operand(id, 0), editor.operand(id, 1));
    let (source, rank) = (editor.operand(y, 0), editor.dims(y).len());
    let first = dims.rhs_batch.iter().take_while(|axis| map.contains(axis)).count();
    let (batch, repeated) = dims.rhs_batch.split_at(first);
    let is_whole = map.len() + repeated.len() == rank
        && repeated.iter().all(|axis| !map.contains(axis))
        && map.iter().zip(editor.dims(source)).all(|(&axis, &n)| editor.dims(y)[axis] == n);
    let rows = (0..editor.dims(x).len()).filter(|axis| !dims.lhs_batch[..first].contains(axis));
    let rows: Vec<usize> = rows.filter(|axis| !dims.lhs_contracting.contains(axis)).collect();
    if repeated.is_empty() || !is_whole || !rows.starts_with(&dims.lhs_batch[first..]) {
        return None;
    }
    let of_source = |axes: &[usize]| axes.iter().filter_map(|axis| map.iter().position(|m| m == axis)).collect();
    let dims = DotDims {
        lhs_batch: dims.lhs_batch[..first].to_vec(),
        rhs_batch: of_source(batch),
        rhs_contracting: of_source(&dims.rhs_contracting),
        ..dims.clone()
    };
    Some(with_operands(editor, id, dims, [x, source]))
}

/// dot(x, transpose(y)) = dot(x, y) over other dimensions, where those that stay keep their order and nothing else reads the
/// transpose: the right side is read into panels from where it lies.
fn of_transposed(editor: &mut Editor, id: InstId, dims: &DotDims, perm: &[usize]) -> Option<InstId> {
    let (x, y) = (editor.operand(id, 0), editor.operand(id, 1));
    let kept: Vec<usize> = (0..perm.len())
        .filter(|a| !dims.rhs_batch.contains(a) && !dims.rhs_contracting.contains(a))
        .map(|a| perm[a])
        .collect();
    if editor.uses(y) > 1 || !kept.is_sorted() {
        return None;
    }
    let source = editor.operand(y, 0);
    let moved = |axes: &[usize]| axes.iter().map(|&a| perm[a]).collect();
    let dims =
        DotDims { rhs_batch: moved(&dims.rhs_batch), rhs_contracting: moved(&dims.rhs_contracting), ..dims.clone() };
    Some(with_operands(editor, id, dims, [x, source]))
}

/// The product `id` of other operands, with the type of its sums, which is not that of bytes.
fn with_operands(editor: &mut Editor, id: InstId, dims: DotDims, operands: [InstId; 2]) -> InstId {
    let shape = editor.shape(id).clone();
    editor.add_instruction_with_shape(Op::Dot(Box::new(dims)), &operands, shape)
}
