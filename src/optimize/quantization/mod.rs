//! Computes products of quantised values on integers.
//!
//! Fake quantisation, and a pair of quantisation and dequantisation, leave arrays of the form `scale * level` whose levels are whole numbers of 8 bits. A
//! matrix product or convolution of such activations by such weights is an integer sum times the product of the scales:
//!
//! | before | after |
//! |---|---|
//! | `dot(multiply(q, s), w)`, `w[k,n] = t[n] * v[k,n]` | `multiply(convert(dot(convert_u8(q), v)), s * t)` |
//! | the same, `q` from -100 to 155 | `dot` of `convert_u8(q + 100)`, and from it `100 * sum(v)` of each feature |
//! | another use of `multiply(q, s)` | `multiply(convert(convert_u8(q)), s)`: the bytes are what is stored |
//!
//! # Why the result is as good as that of the sum of floats
//! Let `u` be 2^-24. The graph's f32 operands are `x = s q (1 + a)` and `w = t v (1 + b)` with `|a| <= u`, as a product is rounded once, and `|b| <= 4 u`,
//! to which [`weights`] holds them. The sum of `q v` is exact here: it is below 2^31. Its conversion, the scale and the multiplication are
//! rounded once each, so the result differs from the exact sum of the operands' products by at most about `8 u` of the sum of their magnitudes. An f32 sum
//! of `n` products differs from it by up to `n u` of the same, in whatever order it is computed, and which order that is is not part of a model: products
//! of fewer than 8 terms stay as they are. What a following fake quantisation makes of the two therefore is the same level or, where the
//! exact value lies within these errors of the border between two levels, the level beside it.
//!
//! # NaNs and infinities
//! A byte has no NaN. Where the range analysis does not exclude one, a mask is computed beside the integers, which says in which rows the graph's
//! product has NaNs ([`nan_masks`]), and these rows of the result are NaN. All features of a product of floats are NaN in a row, or at a pixel, where a term
//! of its left side is, whatever the weights, as ranges are finite; so the integer product has NaNs exactly where the graph's has them. An
//! activation that others read beside products has its NaNs element by element. Infinities are clamped by the quantisation itself. A zero's sign is lost.
//!
//! With [`QuantizedMath::Fast`] the masks are left out, and quantisations are multiply-adds of the sums: [`requantization`] has the argument.
mod activations;
mod feature_numbers;
mod merged_features;
mod nan_masks;
mod requantization;
mod value_range;
mod weights;

use super::rewrite::{Editor, editable_computations, rewrite_computation};
use crate::diag::Result;
use crate::hlo::attrs::{ConvDims, PadDim};
use crate::hlo::{Computation, Inst, InstId, Module, Op, Shape};
use crate::scalar::ScalarOp;
use crate::target::{KeptProduct, QuantizedMath, QuantizedProducts};
use crate::tensor::{DType, Tensor};
use activations::{Activation, Activations, ByteType, add_nans};
use merged_features::MergedFeatures;
use nan_masks::NanMasks;
use value_range::{Nans, convolution_term_count, dot_term_count};
use weights::WeightLevels;

/// Fewest terms of a sum that is computed on integers; see the module's argument.
const FEWEST_TERMS: u64 = 8;
/// Number of neighbouring terms that instructions for bytes multiply at once.
const TERMS_OF_A_WORD: u64 = 4;
/// Fewest output features for which products of bytes are faster than those of floats.
const FEWEST_FEATURES: u64 = 8;
/// Largest magnitudes of a byte of an activation and of one of a weight.
const LARGEST_BYTES: [i64; 2] = [255, 128];

/// Replaces products of quantised activations by quantised constants by products of bytes, and reports all products of quantised
/// activations. An obstacle, a clause whose subject is a product, keeps all of them as they are. By [`QuantizedMath::Fast`] quantisations are
/// multiply-adds.
///
/// # Errors
/// An internal one where an operand would get another shape.
pub fn multiply_quantized_values_as_integers(
    module: &mut Module,
    math: QuantizedMath,
    obstacle: Option<&'static str>,
) -> Result<QuantizedProducts> {
    let mut report = QuantizedProducts::default();
    let obstacle = obstacle.or(module.replaceable.then_some("its weights are in a file"));
    let is_fast = math == QuantizedMath::Fast && obstacle.is_none();
    for id in editable_computations(module) {
        let mut activations = Activations { is_fast, ..Activations::default() };
        let comp = &module.comps[id];
        let is_quantized = comp.insts.values().any(|inst| is_quantization(comp, inst));
        rewrite_computation(module, id, &mut |editor, id| {
            if is_quantized && !matches!(editor.op(id), Op::Constant(_)) && editor.array(id).is_some() {
                // operands before readers, so that no range is beyond the depth of recursion
                activations.masks.ranges.range(editor, id);
            }
            if is_fast
                && is_quantized
                && let Some(levels) = requantization::requantize(editor, id)?
            {
                report.requantizations += 1;
                return Ok(Some(levels));
            }
            if !matches!(editor.op(id), Op::Dot(_) | Op::Convolution(_)) || editor.dtype(id) != Some(DType::F32) {
                return Ok(None);
            }
            let [left, _] = editor.operands(id)[..] else { return Ok(None) };
            let Some(activation) = activations.find(editor, left) else { return Ok(None) };
            let name = name_of(editor, id);
            let product = obstacle.map_or_else(|| product(editor, id, &activation), Err);
            let product = product.and_then(|product| match has_mask(editor, id, &activation, &mut activations.masks) {
                true => Ok(product),
                false => Err("NaNs of its activations could not be told from numbers"),
            });
            match product {
                Ok(product) => {
                    report.integers.push(name);
                    product.write(editor, id, &activation, &mut activations).map(Some)
                }
                Err(reason) => {
                    report.kept.push(KeptProduct { name, reason });
                    Ok(None)
                }
            }
        })?;
    }
    Ok(report)
}

/// Whether an instruction makes whole numbers of others, as every quantisation does, or floats of bytes.
fn is_quantization(comp: &Computation, inst: &Inst) -> bool {
    let is_byte = |dtype: DType| matches!(dtype, DType::S8 | DType::U8);
    match inst.op {
        Op::Elementwise(ScalarOp::Floor | ScalarOp::RoundNearestEven | ScalarOp::RoundNearestAfz) => true,
        Op::Elementwise(ScalarOp::Convert(to)) => {
            is_byte(to) || comp[inst.operands[0]].shape.as_array().is_some_and(|array| is_byte(array.dtype))
        }
        _ => false,
    }
}

/// The TensorFlow node of an instruction, or the instruction's own name.
fn name_of(editor: &Editor, id: InstId) -> String {
    let inst = &editor.comp()[id];
    if inst.metadata.op_name.is_empty() { inst.name.clone() } else { inst.metadata.op_name.clone() }
}

/// A product that can be computed on bytes.
struct IntegerProduct {
    weights: WeightLevels,
    /// The factor of the sums of each output feature.
    scales: Vec<f32>,
    /// Sizes of the output features, and the axes of the result that they are.
    features: (Vec<u64>, Vec<usize>),
    /// Number of leading axes of the result along which NaNs differ.
    mask_axes: usize,
    /// Padding of the window, if bytes of level zero are not zeros.
    padding: Option<Vec<PadDim>>,
    /// The axis that a convolution over few features merges.
    merged: Option<MergedFeatures>,
}

/// The integer product that computes `id`, or the reason for which it stays one of floats.
fn product(editor: &Editor, id: InstId, of: &Activation) -> Result<IntegerProduct, &'static str> {
    let [left, right] = editor.operands(id)[..] else { return Err("it has no two operands") };
    let Some(constant) = editor.constant(right).filter(|w| w.dtype == DType::F32) else {
        return Err("its weights are computed by each call");
    };
    let layout = layout(editor, id, left, right)?;
    let features: Vec<u64> = layout.feature_axes.iter().map(|&axis| constant.dims[axis]).collect();
    let mut merged = None;
    if !layout.is_depthwise && (layout.run == 0 || !layout.run.is_multiple_of(TERMS_OF_A_WORD)) {
        merged = match editor.op(id) {
            Op::Convolution(d) => MergedFeatures::of_convolution(d, editor.dims(left), editor.dims(right)),
            _ => None,
        };
        if merged.is_none() {
            return Err("the terms of its sums do not lie side by side in fours");
        }
    }
    if layout.terms < FEWEST_TERMS || features.iter().product::<u64>() < FEWEST_FEATURES {
        return Err("it is too small");
    }
    let needs_padding = of.bytes.offset != 0 && layout.has_padding;
    if needs_padding && !of.bytes.holds_level_zero() {
        return Err("its padding is no level of the activations");
    }
    let largest = i64::from(of.bytes.offset).abs().saturating_add(LARGEST_BYTES[0]).saturating_mul(LARGEST_BYTES[1]);
    let bound = i64::try_from(layout.terms).unwrap_or(i64::MAX).saturating_mul(largest);
    if bound > i64::from(i32::MAX) {
        return Err("its sums could exceed 32 bits");
    }
    let Some(weights) = WeightLevels::of_weights(constant, &layout.feature_axes) else {
        return Err("its weights are no multiples of a scale for each output feature by -128 to 127");
    };
    let scales: Vec<f32> = weights.scales.iter().map(|scale| (scale * of.scale()) as f32).collect();
    if !scales.iter().all(|scale| scale.is_normal()) {
        return Err("its scales are beyond the range of `f32`");
    }
    let padding = match editor.op(id) {
        Op::Convolution(d) if needs_padding => Some(padding_of_window(d, editor.dims(left).len())),
        _ => None,
    };
    let rank = editor.dims(id).len();
    let mask_axes = if layout.is_depthwise { rank } else { rank - layout.result_axes.len() };
    Ok(IntegerProduct { weights, scales, features: (features, layout.result_axes), mask_axes, padding, merged })
}

/// Whether the NaNs of a product, if it can have any, follow from those of its activation.
fn has_mask(editor: &Editor, id: InstId, of: &Activation, masks: &mut NanMasks) -> bool {
    let is_natural = match editor.op(id) {
        Op::Convolution(d) => NanMasks::is_derived_through(d) && d.output_feature == d.window.len() + 1,
        _ => true,
    };
    !of.may_be_nan || is_natural && masks.ranges.range(editor, id).nans == Nans::FromOperands
}

/// The sizes of a product that decide whether it is computed on integers.
struct ProductLayout {
    /// Axes of the weights that are output features, and the axes of the result that they become.
    feature_axes: Vec<usize>,
    result_axes: Vec<usize>,
    /// Whether each feature is a sum over one of the operand's.
    is_depthwise: bool,
    /// Number of terms of a sum.
    terms: u64,
    /// Number of terms that lie side by side in the activations.
    run: u64,
    /// Whether sums have terms on a padding.
    has_padding: bool,
}

fn layout(editor: &Editor, id: InstId, left: InstId, right: InstId) -> Result<ProductLayout, &'static str> {
    let (left_dims, rank) = (editor.dims(left), editor.dims(right).len());
    match editor.op(id) {
        Op::Dot(d) => {
            if !d.rhs_batch.is_empty() {
                return Err("it has weights for each batch");
            }
            let feature_axes: Vec<usize> = (0..rank).filter(|axis| !d.rhs_contracting.contains(axis)).collect();
            let made = editor.dims(id).len();
            let result_axes = (made - feature_axes.len()..made).collect();
            let last = d.lhs_contracting.iter().position(|&axis| axis + 1 == left_dims.len());
            let run = last.map_or(0, |i| left_dims[d.lhs_contracting[i]]);
            Ok(ProductLayout {
                feature_axes,
                result_axes,
                is_depthwise: false,
                terms: dot_term_count(editor, id, d),
                run,
                has_padding: false,
            })
        }
        Op::Convolution(d) => {
            let is_depthwise = is_depthwise(editor, id, d);
            if !is_depthwise && d.feature_group_count != 1 || d.batch_group_count != 1 {
                return Err("it is a grouped convolution");
            }
            let run = if d.input_feature + 1 == left_dims.len() { left_dims[d.input_feature] } else { 0 };
            let is_padded = d.window.iter().any(|w| w.pad_low > 0 || w.pad_high > 0 || w.lhs_dilate != 1);
            Ok(ProductLayout {
                feature_axes: vec![d.kernel_output_feature],
                result_axes: vec![d.output_feature],
                is_depthwise,
                terms: convolution_term_count(editor, id, d),
                run,
                has_padding: is_padded,
            })
        }
        _ => Err("it is no product"),
    }
}

/// Whether a convolution makes one feature of each feature of its operand.
fn is_depthwise(editor: &Editor, id: InstId, d: &ConvDims) -> bool {
    let features = editor.dims(id)[d.output_feature];
    d.feature_group_count > 1
        && d.feature_group_count == features
        && editor.dims(editor.operand(id, 0))[d.input_feature] == features
}

/// Padding of the activations that has the effect of the window's.
fn padding_of_window(d: &ConvDims, rank: usize) -> Vec<PadDim> {
    let mut padding = vec![PadDim::default(); rank];
    for (w, &axis) in d.window.iter().zip(&d.input_spatial) {
        padding[axis] = PadDim { low: w.pad_low, high: w.pad_high, interior: w.lhs_dilate.saturating_sub(1) };
    }
    padding
}

impl IntegerProduct {
    /// Emits the integer product, and the conversion and scaling of its sums to the floats of the graph's product.
    fn write(self, editor: &mut Editor, id: InstId, of: &Activation, activations: &mut Activations) -> Result<InstId> {
        let (dims, mut op) = (editor.dims(id).to_vec(), editor.op(id).clone());
        let mask = activations.mask(editor, id, self.mask_axes)?;
        let (mut bytes, ByteType { dtype, offset }) = (activations.bytes(editor, of)?, of.bytes);
        // rows of pixels are merged before they are padded, as their elements lie side by side
        if let Some(merged) = self.merged {
            let rows = merged.merged_sizes(editor.dims(bytes));
            bytes = editor.add_reshape(bytes, &rows);
        }
        if let (Some(padding), Op::Convolution(d)) = (self.padding, &mut op) {
            let padding = self.merged.map_or(padding.clone(), |merged| merged.merge_padding(padding));
            let zero = editor.add_constant(Tensor::scalar_from_i64(dtype, -i64::from(offset)));
            bytes = editor.add_instruction(Op::Pad(padding), &[bytes, zero])?;
            for w in &mut d.window {
                (w.pad_low, w.pad_high, w.lhs_dilate) = (0, 0, 1);
            }
        }
        let mut levels = self.weights.levels;
        if let (Some(merged), Op::Convolution(d)) = (self.merged, &mut op) {
            let images = [editor.dims(bytes), &[1]].concat();
            bytes = editor.add_reshape(bytes, &images);
            merged.widen_window(d);
            levels = merged.widen_weights(&levels);
        }
        let weights = editor.add_constant(levels);
        let shape = Shape::array(DType::S32, dims.clone());
        let mut sums = editor.add_instruction_with_shape(op, &[bytes, weights], shape.clone());
        editor.copy_provenance(id, sums);
        let (sizes, axes) = self.features;
        if offset != 0 {
            let corrections: Vec<i32> = self.weights.sums.iter().map(|sum| (sum * i64::from(offset)) as i32).collect();
            let corrections = editor.add_constant(Tensor::from_vec(DType::S32, sizes.clone(), corrections));
            let corrections = editor.add_broadcast(corrections, &dims, &axes);
            sums = editor.add_instruction(Op::Elementwise(ScalarOp::Add), &[sums, corrections])?;
        }
        let floats = editor.add_instruction(Op::Elementwise(ScalarOp::Convert(DType::F32)), &[sums])?;
        let scales = editor.add_constant(Tensor::from_vec(DType::F32, sizes, self.scales));
        let scales = editor.add_broadcast(scales, &dims, &axes);
        let numbers = editor.add_instruction(Op::Elementwise(ScalarOp::Multiply), &[floats, scales])?;
        add_nans(editor, numbers, mask)
    }
}
