//! Rounds constants and factors on request: `--weights` and `--math`.
//!
//! It runs last, behind the pipeline and the expansions, so that nothing folds or moves what it writes, and the module says
//! what machine code computes: the interpreter evaluates the rounded numbers too.
//!
//! | before | after |
//! |---|---|
//! | `dot(x, w)`, `w` f32 | `dot(x, convert(w'))`, `w'` bf16 |
//! | | `dot(x, multiply(convert(w'), broadcast(s)))`, `w'` s8, `s` a scale for each feature |
//! | `gather(t, i)`, `t` f32 | `convert(gather(t', i))`, `t'` bf16 |
//! | | `multiply(convert(gather(t', i)), broadcast(gather(s, i)))`, `t'` s8, `s` a scale for each row |
//! | `dot(x, w)`, `w` as above | `dot(convert(x), w'')`: both factors bf16, the result f32 |
//!
//! A convolution is treated as a `dot`. What stays f32: constants below [`FEWEST_BYTES`], those of fewer features than
//! [`FEWEST_FEATURES`], the weights of convolutions by channel (depthwise), and constants that hold infinities or NaNs where
//! bytes are asked for.
use super::rewrite::{Editor, rewrite};
use crate::diag::Result;
use crate::hlo::attrs::{ConvDims, DotDims, GatherDims};
use crate::hlo::{InstId, Literal, Module, Op, Shape};
use crate::scalar::{ScalarOp, eval};
use crate::target::{MathType, Precision, RoundingCounts, WeightType};
use crate::tensor::{DType, Tensor};
use std::collections::HashSet;

/// Minimum size in bytes of a constant to be compressed: smaller ones, such as weights of first layers, would save little.
pub const FEWEST_BYTES: usize = 4096;
/// Minimum number of features of weights to be compressed: sums of fewer features are vectorized along the inputs, which share one scale.
pub const FEWEST_FEATURES: u64 = 16;
/// Largest magnitude of a quantized byte.
const MOST: f32 = 127.0;

/// Rounds constants and products as `precision` requests, and returns counts of them.
///
/// # Errors
/// Errors of [`rewrite`].
pub fn reduce_precision(module: &mut Module, precision: Precision) -> Result<RoundingCounts> {
    let reduced = RoundingCounts { precision, ..RoundingCounts::default() };
    let mut seen = ReductionCounts { reduced, stored: HashSet::new(), scales: HashSet::new() };
    if !precision.is_reduced() {
        return Ok(seen.reduced);
    }
    rewrite(module, |editor, id| match editor.op(id) {
        Op::Dot(_) | Op::Convolution(_) => compress_weights(editor, id, precision, &mut seen),
        Op::Gather(d) if precision.weights != WeightType::F32 => {
            let d = d.clone();
            gather(editor, id, &d, precision.weights, &mut seen)
        }
        _ => Ok(None),
    })?;
    let left = module.comps.values().flat_map(|c| c.insts.values()).filter_map(|inst| match &inst.op {
        Op::Constant(Literal::Array(t)) if t.dtype == DType::F32 => Some(t),
        _ => None,
    });
    let mut counted = seen.scales;
    let kept = left.filter(|t| counted.insert(t.bytes.as_ptr() as usize)).map(|t| t.bytes.len() as u64);
    Ok(RoundingCounts { bytes_kept: kept.sum(), ..seen.reduced })
}

/// Counts of compressed constants. A constant is identified by the address of its bytes: one that several instructions share counts once.
struct ReductionCounts {
    reduced: RoundingCounts,
    stored: HashSet<usize>,
    scales: HashSet<usize>,
}

impl ReductionCounts {
    /// Counts a constant that is stored in fewer bits.
    fn store(&mut self, before: &Tensor, after: &QuantizedWeights) {
        let scales = after.scales.as_ref().map_or(0, |s| s.bytes.len());
        self.scales.extend(after.scales.iter().map(|s| s.bytes.as_ptr() as usize));
        if self.stored.insert(before.bytes.as_ptr() as usize) {
            self.reduced.constants += 1;
            self.reduced.bytes_before += before.bytes.len() as u64;
            self.reduced.bytes_after += (after.numbers.bytes.len() + scales) as u64;
        }
    }
}

/// A constant in fewer bits.
struct QuantizedWeights {
    numbers: Tensor,
    /// A scale for each element along `axes`.
    scales: Option<Tensor>,
    axes: Vec<usize>,
}

/// The axes of a contraction's weights that are output features, and their number; `None` if the weights are read channel by channel.
fn feature_axes(op: &Op, weights: &[u64]) -> Option<(Vec<usize>, u64)> {
    let axes: Vec<usize> = match op {
        Op::Dot(d) => of_dot(d, weights.len()),
        Op::Convolution(d) => of_convolution(d, weights)?,
        _ => return None,
    };
    let batch: &[usize] = if let Op::Dot(d) = op { &d.rhs_batch } else { &[] };
    let made = axes.iter().filter(|a| !batch.contains(a)).map(|&a| weights[a]).product();
    Some((axes, made))
}

fn of_dot(d: &DotDims, rank: usize) -> Vec<usize> {
    (0..rank).filter(|axis| !d.rhs_contracting.contains(axis)).collect()
}

fn of_convolution(d: &ConvDims, weights: &[u64]) -> Option<Vec<usize>> {
    let by_channel = d.feature_group_count > 1 && weights[d.kernel_input_feature] == 1;
    (!by_channel && d.batch_group_count == 1).then(|| vec![d.kernel_output_feature])
}

/// Compresses the constant weights of a dot or convolution.
fn compress_weights(
    editor: &mut Editor,
    id: InstId,
    precision: Precision,
    seen: &mut ReductionCounts,
) -> Result<Option<InstId>> {
    let [x, w] = editor.operands(id)[..] else { return Ok(None) };
    let floats = [x, w, id].iter().all(|&i| editor.dtype(i) == Some(DType::F32));
    let Some(weights) = editor.constant(w).filter(|_| floats).cloned() else {
        seen.reduced.contractions_kept += u64::from(floats && precision.math == MathType::Bf16);
        return Ok(None);
    };
    let found = feature_axes(editor.op(id), &weights.dims);
    let large = weights.bytes.len() >= FEWEST_BYTES;
    let Some((axes, _)) = found.filter(|f| large && f.1 >= FEWEST_FEATURES) else {
        seen.reduced.contractions_kept += u64::from(precision.math == MathType::Bf16);
        return Ok(None);
    };
    let stored = match precision.weights {
        WeightType::F32 => None,
        WeightType::Bf16 => Some(bf16(&weights)),
        WeightType::Int8 => quantize_to_int8(&weights, &axes),
    };
    // bytes times their scale are rounded once more, as the factors that they are
    let stored = match (precision.math, stored) {
        (MathType::F32 | MathType::Portable | MathType::PortableUnfused, stored) => stored,
        (MathType::Bf16, Some(stored)) if stored.scales.is_some() => Some(bf16(&value(&stored, &weights.dims))),
        (MathType::Bf16, _) => Some(bf16(&weights)),
    };
    let Some(stored) = stored else { return Ok(None) };
    seen.store(&weights, &stored);
    let (op, shape) = (editor.op(id).clone(), editor.shape(id).clone());
    let made = match precision.math {
        MathType::F32 | MathType::Portable | MathType::PortableUnfused => {
            let w = dequantize(editor, stored, &weights.dims);
            editor.add_instruction_with_shape(op, &[x, w], shape)
        }
        MathType::Bf16 => {
            seen.reduced.contractions += 1;
            let w = editor.add_constant(stored.numbers);
            let sizes = editor.dims(x).to_vec();
            let x = editor.add_instruction_with_shape(convert(DType::BF16), &[x], Shape::array(DType::BF16, sizes));
            editor.add_instruction_with_shape(op, &[x, w], shape)
        }
    };
    editor.copy_provenance(id, made);
    Ok(Some(made))
}

fn convert(to: DType) -> Op {
    Op::Elementwise(ScalarOp::Convert(to))
}

/// The compressed weights as f32, each times its scale.
fn dequantize(editor: &mut Editor, stored: QuantizedWeights, dims: &[u64]) -> InstId {
    let numbers = editor.add_constant(stored.numbers);
    let shape = Shape::array(DType::F32, dims);
    let wide = editor.add_instruction_with_shape(convert(DType::F32), &[numbers], shape.clone());
    let Some(scales) = stored.scales else { return wide };
    let scales = editor.add_constant(scales);
    let scales = editor.add_instruction_with_shape(Op::Broadcast(stored.axes), &[scales], shape.clone());
    editor.add_instruction_with_shape(Op::Elementwise(ScalarOp::Multiply), &[wide, scales], shape)
}

/// The tensor that [`dequantize`] computes.
fn value(stored: &QuantizedWeights, dims: &[u64]) -> Tensor {
    let wide = eval::convert(&stored.numbers, DType::F32);
    let Some(scales) = &stored.scales else { return wide };
    let scales = super::constant::broadcast(scales, dims, &stored.axes);
    let products: Vec<f32> = wide.view::<f32>().iter().zip(scales.view::<f32>().iter()).map(|(a, b)| a * b).collect();
    Tensor::from_vec(DType::F32, dims.to_vec(), products)
}

fn bf16(t: &Tensor) -> QuantizedWeights {
    QuantizedWeights { numbers: eval::convert(t, DType::BF16), scales: None, axes: vec![] }
}

/// Quantizes to bytes with a scale for each element along `axes`: the largest magnitude becomes 127. `None` if an element is infinite or
/// NaN.
fn quantize_to_int8(t: &Tensor, axes: &[usize]) -> Option<QuantizedWeights> {
    let values = t.view::<f32>();
    if values.iter().any(|v| !v.is_finite()) {
        return None;
    }
    let sizes: Vec<u64> = axes.iter().map(|&a| t.dims[a]).collect();
    let count = sizes.iter().product::<u64>() as usize;
    let steps: Vec<usize> = (0..axes.len()).map(|i| sizes[i + 1..].iter().product::<u64>() as usize).collect();
    let mut of = Vec::with_capacity(values.len());
    let mut at = vec![0u64; t.dims.len()];
    for _ in 0..values.len() {
        of.push(axes.iter().zip(&steps).map(|(&a, step)| at[a] as usize * step).sum::<usize>());
        for d in (0..at.len()).rev() {
            at[d] += 1;
            if at[d] < t.dims[d] {
                break;
            }
            at[d] = 0;
        }
    }
    let mut largest = vec![0f32; count];
    for (&v, &i) in values.iter().zip(&of) {
        largest[i] = largest[i].max(v.abs());
    }
    // a feature of zeros, or of numbers too small for a scale, is zeros
    let scales: Vec<f32> =
        largest.iter().map(|&m| if m / MOST >= f32::MIN_POSITIVE { m / MOST } else { 1.0 }).collect();
    let numbers: Vec<i8> =
        values.iter().zip(&of).map(|(&v, &i)| (v / scales[i]).round_ties_even().clamp(-MOST, MOST) as i8).collect();
    Some(QuantizedWeights {
        numbers: Tensor::from_vec(DType::S8, t.dims.clone(), numbers),
        scales: Some(Tensor::from_vec(DType::F32, sizes, scales)),
        axes: axes.to_vec(),
    })
}

/// Compresses a constant table that rows are gathered from.
fn gather(
    editor: &mut Editor,
    id: InstId,
    d: &GatherDims,
    weights: WeightType,
    seen: &mut ReductionCounts,
) -> Result<Option<InstId>> {
    let [table, indices] = editor.operands(id)[..] else { return Ok(None) };
    let Some(t) = editor.constant(table).filter(|t| t.dtype == DType::F32 && t.bytes.len() >= FEWEST_BYTES).cloned()
    else {
        return Ok(None);
    };
    // whole rows, the first axis chosen by the index
    let rows = t.dims.len() == 2
        && d.collapsed_slice_dims == [0]
        && d.start_index_map == [0]
        && d.operand_batching_dims.is_empty()
        && d.slice_sizes[1] == t.dims[1]
        && t.dims[1] >= FEWEST_FEATURES;
    let stored = match weights {
        WeightType::F32 => return Ok(None),
        WeightType::Bf16 => bf16(&t),
        WeightType::Int8 if !rows => return Ok(None),
        WeightType::Int8 => match quantize_to_int8(&t, &[0]) {
            Some(stored) => stored,
            None => return Ok(None),
        },
    };
    seen.store(&t, &stored);
    let shape = editor.shape(id).clone();
    let dims = editor.dims(id).to_vec();
    let narrow = Shape::array(stored.numbers.dtype, dims.clone());
    let numbers = editor.add_constant(stored.numbers);
    let taken = editor.add_instruction_with_shape(Op::Gather(Box::new(d.clone())), &[numbers, indices], narrow);
    let mut made = editor.add_instruction_with_shape(convert(DType::F32), &[taken], shape.clone());
    if let Some(scales) = stored.scales {
        let batch: Vec<usize> = (0..dims.len()).filter(|axis| !d.offset_dims.contains(axis)).collect();
        let sizes: Vec<u64> = batch.iter().map(|&a| dims[a]).collect();
        let of_scales = GatherDims { offset_dims: vec![], slice_sizes: vec![1], ..d.clone() };
        let scales = editor.add_constant(scales);
        let of_rows = Op::Gather(Box::new(of_scales));
        let taken = editor.add_instruction_with_shape(of_rows, &[scales, indices], Shape::array(DType::F32, sizes));
        let wide = editor.add_instruction_with_shape(Op::Broadcast(batch), &[taken], shape.clone());
        made = editor.add_instruction_with_shape(Op::Elementwise(ScalarOp::Multiply), &[made, wide], shape);
    }
    editor.copy_provenance(id, made);
    Ok(Some(made))
}
