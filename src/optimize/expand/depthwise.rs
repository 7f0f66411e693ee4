//! Groups of one channel that make more than [`ConvDims::repeats_inputs_across_lanes`], or whose channels are not the last axis, as groups that make
//! as many at most: each channel is repeated as often as it is read, and the axes go where the kernel of depthwise convolutions
//! wants them.
use super::expand_with;
use crate::diag::Result;
use crate::hlo::attrs::ConvDims;
use crate::hlo::{Builder, InstId, Module, Op, Shape};
use crate::optimize::rewrite::{Changed, rewrite};

/// Upper limit of outputs per channel for this expansion if groups are few: with more, a product for each group is better.
const MOST_MADE: u64 = 4;
/// Number of groups from which on they are not computed one by one.
const MANY_GROUPS: u64 = 16;

/// Replaces convolutions with several outputs per channel.
pub fn expand(module: &mut Module) -> Result<Changed> {
    rewrite(module, |editor, id| {
        let Op::Convolution(d) = editor.op(id).clone() else { return Ok(None) };
        let (kernel, groups) = (editor.dims(editor.operand(id, 1)).to_vec(), d.feature_group_count);
        let made = kernel[d.kernel_output_feature] / groups.max(1);
        let depthwise = d.batch_group_count == 1 && groups > 1 && kernel[d.kernel_input_feature] == 1;
        let Some(shape) = editor.array(id).cloned() else { return Ok(None) };
        let last = |axis: usize| axis + 1 == shape.rank();
        let done = ConvDims::repeats_inputs_across_lanes(made)
            && last(d.input_feature)
            && last(d.kernel_output_feature)
            && last(d.output_feature);
        if !depthwise || done || (made > MOST_MADE && groups <= MANY_GROUPS) {
            return Ok(None);
        }
        expand_with(editor, id, |b, operands| {
            let rank = shape.rank();
            let x =
                permute_axes(b, operands[0], &[&[d.input_batch][..], &d.input_spatial, &[d.input_feature]].concat());
            let times = if ConvDims::repeats_inputs_across_lanes(made) { 1 } else { made };
            let x = repeat_last_axis(b, x, times);
            let order = [&d.kernel_spatial[..], &[d.kernel_input_feature, d.kernel_output_feature]].concat();
            let w = permute_axes(b, operands[1], &order);
            let spatial: Vec<usize> = (1..rank - 1).collect();
            let conv = ConvDims {
                window: d.window.clone(),
                input_batch: 0,
                input_feature: rank - 1,
                input_spatial: spatial.clone(),
                kernel_input_feature: rank - 2,
                kernel_output_feature: rank - 1,
                kernel_spatial: (0..rank - 2).collect(),
                output_batch: 0,
                output_feature: rank - 1,
                output_spatial: spatial,
                feature_group_count: groups * times,
                batch_group_count: 1,
            };
            let own = [&[d.output_batch][..], &d.output_spatial, &[d.output_feature]].concat();
            let dims: Vec<u64> = own.iter().map(|&a| shape.dims[a]).collect();
            let y = b.push(Op::Convolution(Box::new(conv)), &[x, w], Shape::array(shape.dtype, dims));
            // where each axis of the result is now
            let back: Option<Vec<usize>> = (0..rank).map(|axis| own.iter().position(|&a| a == axis)).collect();
            Some(permute_axes(b, y, &back?))
        })
    })
}

/// `x` transposed to this order of axes.
fn permute_axes(b: &mut Builder, x: InstId, order: &[usize]) -> InstId {
    if order.is_sorted() { x } else { b.transpose(x, order) }
}

/// Repeats each element of the last axis `times` times.
fn repeat_last_axis(b: &mut Builder, x: InstId, times: u64) -> InstId {
    if times == 1 {
        return x;
    }
    let mut dims = b.dims(x).to_vec();
    let kept: Vec<usize> = (0..dims.len()).collect();
    let mut each = dims.clone();
    each.push(times);
    let each = b.broadcast(x, &each, &kept);
    if let Some(last) = dims.last_mut() {
        *last *= times;
    }
    b.reshape(each, &dims)
}
