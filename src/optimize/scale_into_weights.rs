//! Moves scales and offsets per feature behind a convolution or matrix product into its weights and one bias.
//!
//! A batch normalisation at inference is `(x - mean) * factor + offset` with constants per feature. Behind a linear op `L`
//! with constant weights `w` the rules below, each at its root, turn any chain of those into `L(x, w * factor) + bias`:
//!
//! | before | after |
//! |---|---|
//! | `L - c` | `L + (-c)` |
//! | `(L + a) + b` | `L + (a + b)` |
//! | `(L + a) * s` | `L * s + a * s` |
//! | `L(x, w) * s` | `L(x, w * s)` |
//! | `L / s` | `L * (1 / s)` |
//!
//! `L` may stand behind a reshape or transpose that keeps the features apart. Only f32, and only where nobody else needs the
//! value in between. Results differ by rounding: each weight is rounded once more, each output some times less.
use super::constant::broadcast;
use super::rewrite::{Changed, Editor, rewrite};
use crate::diag::Result;
use crate::hlo::{InstId, Module, Op};
use crate::scalar::ScalarOp;
use crate::tensor::{DType, Tensor};

/// Folds constant scales and offsets per feature into the weights and the bias of the preceding convolution or matrix product.
pub fn scale_into_weights(module: &mut Module) -> Result<Changed> {
    rewrite(module, root)
}

fn root(editor: &mut Editor, id: InstId) -> Result<Option<InstId>> {
    let Op::Elementwise(op) = *editor.op(id) else { return Ok(None) };
    if editor.dtype(id) != Some(DType::F32) {
        return Ok(None);
    }
    let [x, y] = editor.operands(id)[..] else { return Ok(None) };
    let (value, other) = match op {
        ScalarOp::Add | ScalarOp::Multiply if is_vector(editor, x) => (y, x),
        ScalarOp::Add | ScalarOp::Multiply | ScalarOp::Subtract | ScalarOp::Divide => (x, y),
        _ => return Ok(None),
    };
    let Some(linear) = Linear::find(editor, offset_of(editor, value).map_or(value, |(l, _)| l)) else {
        return Ok(None);
    };
    let Some(c) = constant_by_feature(editor, other, linear.axis, linear.features) else { return Ok(None) };
    match op {
        ScalarOp::Subtract => {
            let sum = add_vector(editor, value, &c.iter().map(|v| -v).collect::<Vec<_>>(), linear.axis)?;
            Ok(Some(sum))
        }
        ScalarOp::Add => add_to_offset(editor, value, &c, &linear),
        ScalarOp::Multiply => fold_scale(editor, value, &c, &linear),
        _ => fold_scale(editor, value, &c.iter().map(|v| 1.0 / v).collect::<Vec<_>>(), &linear),
    }
}

/// A linear op with constant weights, and the path from it to a scale.
struct Linear {
    /// The convolution or dot.
    at: InstId,
    /// Reshapes and transposes between the linear op and the scale, nearest to the scale first.
    path: Vec<InstId>,
    /// The dimension of the path's end that holds the features.
    axis: usize,
    /// The number of features.
    features: usize,
}

impl Linear {
    /// The linear op that computes `end` through reshapes and transposes, if nothing else uses any of them.
    fn find(editor: &Editor, end: InstId) -> Option<Linear> {
        let mut at = end;
        let mut path = Vec::new();
        while matches!(editor.op(at), Op::Reshape | Op::Transpose(_)) {
            if editor.uses(at) != 1 {
                return None;
            }
            path.push(at);
            at = editor.operand(at, 0);
        }
        let weights = editor.operands(at).get(1).copied().filter(|_| editor.uses(at) == 1)?;
        editor.constant(weights).filter(|w| w.dtype == DType::F32)?;
        let mut axis = match editor.op(at) {
            Op::Convolution(d) if d.batch_group_count == 1 => d.output_feature,
            Op::Dot(d) => {
                let free = editor.dims(weights).len() - d.rhs_contracting.len() - d.rhs_batch.len();
                (free == 1).then(|| editor.dims(at).len() - 1)?
            }
            _ => return None,
        };
        let features = *editor.dims(at).get(axis)?;
        for &step in path.iter().rev() {
            axis = match editor.op(step) {
                Op::Transpose(perm) => perm.iter().position(|&p| p == axis)?,
                _ => {
                    let (from, to) = (editor.dims(editor.operand(step, 0)), editor.dims(step));
                    let last = to.len().checked_sub(1)?;
                    (axis + 1 == from.len() && to[last] == features).then_some(last)?
                }
            };
        }
        Some(Linear { at, path, axis, features: usize::try_from(features).ok()? })
    }
    /// The op with its weights multiplied by `s`, which has a factor for each feature; `None` where a weight would overflow.
    fn with_scaled_weights(&self, editor: &mut Editor, s: &[f32]) -> Result<Option<InstId>> {
        let weights = editor.operand(self.at, 1);
        let feature = match editor.op(self.at) {
            Op::Convolution(d) => d.kernel_output_feature,
            Op::Dot(d) => {
                let bound = |a: &usize| d.rhs_contracting.contains(a) || d.rhs_batch.contains(a);
                match (0..editor.dims(weights).len()).find(|a| !bound(a)) {
                    Some(a) => a,
                    None => return Ok(None),
                }
            }
            _ => return Ok(None),
        };
        let Some(new) = editor.constant(weights).and_then(|w| scale_axis(w, feature, s)) else { return Ok(None) };
        let new = editor.add_constant(new);
        let (op, x) = (editor.op(self.at).clone(), editor.operand(self.at, 0));
        let mut value = editor.add_instruction(op, &[x, new])?;
        editor.copy_provenance(self.at, value);
        for &step in self.path.iter().rev() {
            let (op, shape) = (editor.op(step).clone(), editor.shape(step).clone());
            value = editor.add_instruction_with_shape(op, &[value], shape);
        }
        Ok(Some(value))
    }
}

/// `w` with each element times the factor of its index along `axis`.
fn scale_axis(w: &Tensor, axis: usize, s: &[f32]) -> Option<Tensor> {
    let inner: usize = w.dims[axis + 1..].iter().product::<u64>() as usize;
    let mut values = w.to_vec::<f32>();
    for (i, v) in values.iter_mut().enumerate() {
        let scaled = *v * s[i / inner.max(1) % s.len().max(1)];
        if !scaled.is_finite() && v.is_finite() {
            return None;
        }
        *v = scaled;
    }
    Some(Tensor::of(&w.dims, &values))
}

/// Whether `id` is a constant of one value, or of one value for each feature.
fn is_vector(editor: &Editor, id: InstId) -> bool {
    match editor.op(id) {
        Op::Constant(_) => true,
        Op::Broadcast(_) => editor.constant(editor.operand(id, 0)).is_some(),
        _ => false,
    }
}

/// The constant `id` by feature, where it depends on nothing but the index along `axis`.
fn constant_by_feature(editor: &Editor, id: InstId, axis: usize, features: usize) -> Option<Vec<f32>> {
    let (inner, map) = match editor.op(id) {
        Op::Broadcast(map) => (editor.constant(editor.operand(id, 0))?, map.clone()),
        _ => {
            let t = editor.constant(id)?;
            (t, (0..t.dims.len()).collect())
        }
    };
    if inner.dtype != DType::F32 {
        return None;
    }
    let wide: Vec<usize> = (0..map.len()).filter(|&i| inner.dims[i] != 1).map(|i| map[i]).collect();
    let fits = wide.is_empty() || wide == [axis];
    let flat = Tensor { dims: vec![inner.len() as u64], ..inner.clone() };
    match inner.len() {
        1 => Some(broadcast(&Tensor { dims: vec![], ..flat }, &[features as u64], &[]).to_vec()),
        n if fits && n == features => Some(flat.to_vec()),
        _ => None,
    }
}

/// `id` as a value plus a constant, if nothing else uses `id`.
fn offset_of(editor: &Editor, id: InstId) -> Option<(InstId, InstId)> {
    if editor.op(id).scalar() != Some(ScalarOp::Add) || editor.uses(id) != 1 {
        return None;
    }
    let [x, y] = editor.operands(id)[..] else { return None };
    match (is_vector(editor, x), is_vector(editor, y)) {
        (false, true) => Some((x, y)),
        (true, false) => Some((y, x)),
        _ => None,
    }
}

fn add_vector(editor: &mut Editor, value: InstId, c: &[f32], axis: usize) -> Result<InstId> {
    let dims = editor.dims(value).to_vec();
    let c = editor.add_constant(Tensor::of(&[c.len() as u64], c));
    let c = editor.add_broadcast(c, &dims, &[axis]);
    editor.add_instruction(Op::Elementwise(ScalarOp::Add), &[value, c])
}

/// (L + a) + c = L + (a + c)
fn add_to_offset(editor: &mut Editor, value: InstId, c: &[f32], linear: &Linear) -> Result<Option<InstId>> {
    let Some((inner, a)) = offset_of(editor, value) else { return Ok(None) };
    let Some(a) = constant_by_feature(editor, a, linear.axis, linear.features) else { return Ok(None) };
    let sum: Vec<f32> = a.iter().zip(c).map(|(a, c)| a + c).collect();
    Ok(Some(add_vector(editor, inner, &sum, linear.axis)?))
}

/// L(x, w) * s = L(x, w * s); (L(x, w) + a) * s = L(x, w * s) + a * s
fn fold_scale(editor: &mut Editor, value: InstId, s: &[f32], linear: &Linear) -> Result<Option<InstId>> {
    let offset = match offset_of(editor, value) {
        None => None,
        Some((_, a)) => match constant_by_feature(editor, a, linear.axis, linear.features) {
            Some(a) => Some(a),
            None => return Ok(None),
        },
    };
    let Some(scaled) = linear.with_scaled_weights(editor, s)? else { return Ok(None) };
    match offset {
        None => Ok(Some(scaled)),
        Some(a) => {
            let moved: Vec<f32> = a.iter().zip(s).map(|(a, s)| a * s).collect();
            Ok(Some(add_vector(editor, scaled, &moved, linear.axis)?))
        }
    }
}
