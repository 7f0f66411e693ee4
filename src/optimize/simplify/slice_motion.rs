//! Slices behind a 1x1 convolution are moved before it, so that elements which would be sliced away are not computed. They also move through
//! the sums and views between.
//!
//! ```text
//! slice(a + conv(x, w))  ->  slice(a) + conv(slice(x), w)
//! ```
use super::moved_ones;
use crate::diag::Result;
use crate::hlo::attrs::{ConvDims, SliceDim, WindowDim};
use crate::hlo::{ArrayShape, InstId, Op, Shape};
use crate::optimize::rewrite::Editor;

/// Upper limit of the instructions through which a slice is moved.
const MOST_DEPTH: usize = 64;

/// Moves `slice(x)` before the 1x1 convolutions that compute `x`, if the slice keeps at most half of the elements.
pub fn move_slice_before_convolution(editor: &mut Editor, id: InstId, dims: &[SliceDim]) -> Result<Option<InstId>> {
    let x = editor.operand(id, 0);
    let less = editor.element_count(id) <= editor.element_count(x) / 2 && dims.iter().all(|d| d.stride == 1);
    if !less || !reaches_convolution(editor, x, dims, 0) {
        return Ok(None);
    }
    push_slice(editor, x, dims, 0).map(Some)
}

/// The result of moving a slice through an instruction.
enum Through {
    /// The op is applied to these slices of its operands; `None`: the operand is taken whole.
    Operands(Vec<Option<Vec<SliceDim>>>),
    /// The slice can't be moved through the instruction.
    Stays,
}

/// Slices of the operands of `x` from which a slice of `x` can be computed, if nothing else reads `x`.
fn classify_motion(editor: &Editor, x: InstId, dims: &[SliceDim]) -> Through {
    let sizes = editor.dims(x);
    let whole = |axis: usize| dims[axis].start == 0 && dims[axis].limit == sizes[axis];
    let of_source = |axes: Vec<Option<usize>>, source: InstId| -> Vec<SliceDim> {
        let all = |n: u64| SliceDim { start: 0, limit: n, stride: 1 };
        axes.iter().zip(editor.dims(source)).map(|(axis, &n)| axis.map_or(all(n), |a| dims[a])).collect()
    };
    let is_fixed = editor.array(x).is_some_and(|a| !a.dynamic.contains(&true));
    let Some(&source) = editor.operands(x).first().filter(|_| is_fixed) else { return Through::Stays };
    match editor.op(x) {
        Op::Broadcast(map) if editor.uses(x) == 1 || map.iter().all(|&axis| whole(axis)) => {
            Through::Operands(vec![Some(of_source(map.iter().copied().map(Some).collect(), source))])
        }
        _ if editor.uses(x) != 1 => Through::Stays,
        Op::Elementwise(_) => {
            let part = |&o: &InstId| (editor.dims(o) == sizes).then(|| dims.to_vec());
            Through::Operands(editor.operands(x).iter().map(part).collect())
        }
        Op::Reshape => {
            // ones that come and go are not cut
            let ones = |axis: usize| sizes[axis] != 1 || whole(axis);
            match moved_ones(editor.dims(source), sizes).filter(|_| (0..sizes.len()).all(ones)) {
                Some(axes) => Through::Operands(vec![Some(of_source(axes, source))]),
                None => Through::Stays,
            }
        }
        Op::Convolution(d) if is_plain(d) && whole(d.output_feature) => {
            let mut axes = vec![None; sizes.len()];
            axes[d.input_batch] = Some(d.output_batch);
            for (&from, &to) in d.input_spatial.iter().zip(&d.output_spatial) {
                axes[from] = Some(to);
            }
            Through::Operands(vec![Some(of_source(axes, source)), None])
        }
        _ => Through::Stays,
    }
}

/// Whether a convolution has windows of one element, without padding, strides and batch groups.
fn is_plain(d: &ConvDims) -> bool {
    let one = WindowDim { size: 1, ..WindowDim::default() };
    d.window.iter().all(|w| *w == one) && d.batch_group_count == 1
}

/// Whether the slice can be moved as far as a convolution.
fn reaches_convolution(editor: &Editor, x: InstId, dims: &[SliceDim], depth: usize) -> bool {
    let Through::Operands(parts) = classify_motion(editor, x, dims) else { return false };
    let next = || editor.operands(x).iter().zip(&parts).filter_map(|(&o, part)| Some((o, part.as_ref()?)));
    matches!(editor.op(x), Op::Convolution(_))
        || (depth < MOST_DEPTH && next().any(|(o, part)| reaches_convolution(editor, o, part, depth + 1)))
}

/// Adds a slice of `x`, moved before the instructions that compute `x` as far as possible.
fn push_slice(editor: &mut Editor, x: InstId, dims: &[SliceDim], depth: usize) -> Result<InstId> {
    let sizes: Vec<u64> = dims.iter().map(|d| d.limit - d.start).collect();
    if sizes == editor.dims(x) {
        return Ok(x);
    }
    let parts = match classify_motion(editor, x, dims) {
        Through::Operands(parts) if depth <= MOST_DEPTH => parts,
        Through::Operands(_) | Through::Stays => return editor.add_instruction(Op::Slice(dims.to_vec()), &[x]),
    };
    let mut operands = Vec::with_capacity(parts.len());
    for (i, part) in parts.iter().enumerate() {
        let operand = editor.operand(x, i);
        operands.push(match part {
            Some(part) => push_slice(editor, operand, part, depth + 1)?,
            None => operand,
        });
    }
    let Some(shape) = editor.array(x) else { return editor.add_instruction(Op::Slice(dims.to_vec()), &[x]) };
    let shape = Shape::Array(ArrayShape { dims: sizes, ..shape.clone() });
    let made = editor.add_instruction_with_shape(editor.op(x).clone(), &operands, shape);
    editor.copy_provenance(x, made);
    Ok(made)
}
