//! Groups of a convolution's batch as groups of features: the groups leave the batch and lead the features, and group `g` of
//! the output's features comes from group `g` of the input's, as it did.
use super::expand_with;
use crate::diag::Result;
use crate::hlo::attrs::ConvDims;
use crate::hlo::{Module, Op};
use crate::optimize::rewrite::{Changed, rewrite};

/// Replaces convolutions in groups of the batch.
pub fn expand(module: &mut Module) -> Result<Changed> {
    rewrite(module, |editor, id| {
        let Op::Convolution(d) = editor.op(id).clone() else { return Ok(None) };
        let groups = d.batch_group_count;
        if groups <= 1 || d.feature_group_count != 1 {
            return Ok(None);
        }
        let Some(shape) = editor.array(id).cloned() else { return Ok(None) };
        expand_with(editor, id, |b, operands| {
            let mut dims = b.dims(operands[0]).to_vec();
            let (batch, feature) = (d.input_batch, d.input_feature);
            // [.., groups, batch / groups, .., features, ..], the groups then in front of the features
            let mut split = dims.clone();
            split[batch] /= groups;
            split.insert(batch, groups);
            let x = b.reshape(operands[0], &split);
            let mut perm: Vec<usize> = (0..split.len()).filter(|&a| a != batch).collect();
            let before = perm.iter().position(|&a| a == feature + usize::from(feature >= batch))?;
            perm.insert(before, batch);
            let x = b.transpose(x, &perm);
            dims[batch] /= groups;
            dims[feature] *= groups;
            let x = b.reshape(x, &dims);
            let conv = ConvDims { batch_group_count: 1, feature_group_count: groups, ..*d };
            let shape = crate::hlo::Shape::array(shape.dtype, shape.dims.clone());
            Some(b.push(Op::Convolution(Box::new(conv)), &[x, operands[1]], shape))
        })
    })
}
