//! Takes `SpaceToBatchND` and `BatchToSpaceND` away from around a depthwise convolution: its window is dilated instead.
//!
//! TensorFlow's processors have no dilated depthwise convolutions, so that its graphs hold, for a dilation of `d`, planes cut into
//! `d*d` smaller ones, a plain convolution of those, and planes put together again: two copies of what is read, mostly padding,
//! and one of what is made. Every result is the sum of the same products in the same order. Other convolutions stay as they are,
//! for Winograd's method is one of plain windows.
use super::rewrite::{Changed, Editor, rewrite};
use crate::diag::Result;
use crate::hlo::attrs::{ConvDims, WindowDim};
use crate::hlo::{InstId, Module, Op};

/// Replaces space-to-batch, depthwise convolution and batch-to-space by one dilated depthwise convolution.
pub fn space_to_batch(module: &mut Module) -> Result<Changed> {
    rewrite(module, |editor, id| match editor.op(id) {
        Op::Reshape => as_dilated_convolution(editor, id),
        _ => Ok(None),
    })
}

/// The role of an axis between the two reshapes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AxisRole {
    Batch,
    /// Phase, the index modulo the dilation, along this spatial dimension: it selects one of the smaller planes.
    Phase(usize),
    /// Position within the smaller plane along this spatial dimension.
    Place(usize),
    Feature,
}

/// `reshape(transpose(reshape(conv(reshape(transpose(reshape(x)))))))` as a dilated convolution of `x`.
fn as_dilated_convolution(editor: &mut Editor, id: InstId) -> Result<Option<InstId>> {
    let Some((conv, together)) = match_regrouping(editor, id) else { return Ok(None) };
    let Op::Convolution(dims) = editor.op(conv).clone() else { return Ok(None) };
    let cut = editor.operand(conv, 0);
    let Some((x, apart)) = match_regrouping(editor, cut).filter(|_| editor.uses(conv) == 1 && editor.uses(cut) == 1)
    else {
        return Ok(None);
    };
    if !is_plain_depthwise(&dims, editor.dims(cut)) {
        return Ok(None);
    }
    let input = Axes { batch: dims.input_batch, feature: dims.input_feature, spatial: &dims.input_spatial };
    let output = Axes { batch: dims.output_batch, feature: dims.output_feature, spatial: &dims.output_spatial };
    let before = match_phases(editor.dims(x), &apart, editor.dims(cut), &input, None);
    let Some(Phases { of_spatial, batch }) = before else { return Ok(None) };
    let after = match_phases(editor.dims(id), &together.inverse(), editor.dims(conv), &output, Some(&batch));
    if after.is_none_or(|after| after.of_spatial != of_spatial) {
        return Ok(None);
    }
    let mut sizes = editor.dims(cut).to_vec();
    sizes[dims.input_batch] /= of_spatial.iter().product::<u64>();
    for (&axis, d) in dims.input_spatial.iter().zip(&of_spatial) {
        sizes[axis] *= d;
    }
    let window = dims.window.iter().zip(&of_spatial).map(|(w, &d)| WindowDim { rhs_dilate: d, ..*w }).collect();
    let x = editor.add_reshape(x, &sizes);
    let kernel = editor.operand(conv, 1);
    let made = editor.add_instruction(Op::Convolution(Box::new(ConvDims { window, ..*dims })), &[x, kernel])?;
    editor.copy_provenance(conv, made);
    let sizes = editor.dims(id).to_vec();
    Ok(Some(editor.add_reshape(made, &sizes)))
}

/// Whether a convolution is depthwise, with stride 1 and without padding and dilation.
fn is_plain_depthwise(dims: &ConvDims, input: &[u64]) -> bool {
    let plain = |w: &WindowDim| *w == WindowDim { size: w.size, ..WindowDim::default() };
    dims.feature_group_count > 1
        && dims.feature_group_count == input[dims.input_feature]
        && dims.batch_group_count == 1
        && dims.window.iter().all(plain)
}

/// A transpose between two reshapes.
struct Regrouped {
    /// The axes that space-to-batch moves into the batch.
    axes: Vec<u64>,
    /// For each axis of its result, that of its operand.
    order: Vec<usize>,
}

impl Regrouped {
    /// The regrouping that undoes this one.
    fn inverse(&self) -> Regrouped {
        let mut order = vec![0; self.order.len()];
        for (to, &from) in self.order.iter().enumerate() {
            order[from] = to;
        }
        Regrouped { axes: self.order.iter().map(|&a| self.axes[a]).collect(), order }
    }
}

/// The source of a reshape of a transpose of a reshape, if nothing else reads the instructions between, and the regrouping of axes. A reshape
/// alone counts as one that moves only axes of size 1.
fn match_regrouping(editor: &Editor, id: InstId) -> Option<(InstId, Regrouped)> {
    let is_reshape = |i: InstId| matches!(editor.op(i), Op::Reshape);
    let transpose = is_reshape(id).then(|| editor.operand(id, 0))?;
    let Op::Transpose(order) = editor.op(transpose) else {
        let axes = editor.dims(id).to_vec();
        return Some((transpose, Regrouped { order: (0..axes.len()).collect(), axes }));
    };
    let first = editor.operand(transpose, 0);
    let own = is_reshape(first) && editor.uses(transpose) == 1 && editor.uses(first) == 1;
    own.then(|| (editor.operand(first, 0), Regrouped { axes: editor.dims(first).to_vec(), order: order.clone() }))
}

/// For each size in `whole`, the indices of the consecutive `parts` whose product it is; parts of size 1 are omitted.
fn group_factors(whole: &[u64], parts: &[u64]) -> Option<Vec<Vec<usize>>> {
    let mut next = (0..parts.len()).filter(|&i| parts[i] != 1);
    let mut group = |&n: &u64| {
        let (mut product, mut of) = (1u64, Vec::new());
        while product < n {
            let i = next.next()?;
            product = product.checked_mul(parts[i])?;
            of.push(i);
        }
        (product == n).then_some(of)
    };
    let groups = whole.iter().map(&mut group).collect::<Option<Vec<_>>>()?;
    next.next().is_none().then_some(groups)
}

/// The axes of a convolution's operand or result.
struct Axes<'a> {
    batch: usize,
    feature: usize,
    spatial: &'a [usize],
}

impl Axes<'_> {
    /// The axis of the planes that a part belongs to.
    fn plane_axis(&self, part: AxisRole) -> usize {
        match part {
            AxisRole::Batch => self.batch,
            AxisRole::Feature => self.feature,
            AxisRole::Phase(k) | AxisRole::Place(k) => self.spatial[k],
        }
    }
}

/// Division of planes into smaller ones, one for each combination of phases.
struct Phases {
    /// Number of phases along each spatial dimension, which is the dilation.
    of_spatial: Vec<u64>,
    /// Factors of the batch of the smaller planes, without those of 1: the phases, then the batch of the whole planes.
    batch: Vec<AxisRole>,
}

/// Finds how planes of sizes `whole` are divided into those of sizes `small`; `None` if the division differs from the known factors of
/// the batch.
fn match_phases(
    whole: &[u64],
    by: &Regrouped,
    small: &[u64],
    axes: &Axes,
    known: Option<&[AxisRole]>,
) -> Option<Phases> {
    let moved: Vec<u64> = by.order.iter().map(|&a| by.axes[a]).collect();
    let groups = group_factors(small, &moved)?;
    let of = |axis: usize| groups[axis].iter().map(|&to| by.order[to]);
    let mut parts: Vec<Option<AxisRole>> = vec![None; by.axes.len()];
    let alone = (0..axes.spatial.len()).map(AxisRole::Place).chain([AxisRole::Feature]);
    for (part, axis) in alone.flat_map(|part| of(axes.plane_axis(part)).map(move |axis| (part, axis))) {
        parts[axis] = Some(part);
    }
    for (axis, &part) in of(axes.batch).zip(known.unwrap_or_default()) {
        parts[axis] = Some(part);
    }
    let mut of_spatial = vec![1; axes.spatial.len()];
    let mut seen = Vec::new();
    for group in group_factors(whole, &by.axes)? {
        let part = match *group.as_slice() {
            [] => continue,
            [one] => *parts[one].get_or_insert(AxisRole::Batch),
            [place, phase] => {
                let Some(AxisRole::Place(k)) = parts[place] else { return None };
                (*parts[phase].get_or_insert(AxisRole::Phase(k)) == AxisRole::Phase(k)).then_some(AxisRole::Place(k))?
            }
            _ => return None,
        };
        if let (AxisRole::Phase(k), [one]) | (AxisRole::Place(k), [_, one]) = (part, group.as_slice()) {
            of_spatial[k] = by.axes[*one];
        }
        seen.push(axes.plane_axis(part));
    }
    let batch = of(axes.batch).map(|axis| parts[axis]).collect::<Option<Vec<_>>>()?;
    let behind = batch.iter().skip_while(|p| matches!(p, AxisRole::Phase(_)));
    let fits = seen.is_sorted_by(|a, b| a < b)
        && behind.clone().all(|p| *p == AxisRole::Batch)
        && behind.count() < batch.len()
        && known.is_none_or(|known| *known == *batch);
    fits.then_some(Phases { of_spatial, batch })
}
