//! Masks: arrays of `pred` that say where another array has NaNs.
//!
//! Integers have no NaN. What a product of floats would have made NaN is therefore computed beside the integers: a mask has the leading axes of its
//! array, and an element is true if there is a NaN among all elements of the array at these indices. A matrix product has a NaN in a row exactly
//! where its left side has one in that row, so that the mask of one is the mask of the other; for a convolution it is true where a window meets a true
//! element. Masks are computed from those of operands as far as results are NaN exactly where an operand is ([`Nans::FromOperands`]); the elements of
//! every other array are compared with themselves.
//!
//! | array `f32[N,H,W,C]` | its mask `pred[N,H,W]` |
//! |---|---|
//! | an argument | whether the largest of the `C` elements is NaN, as that of numbers and a NaN is |
//! | `add(x, y)` | `or` of the masks of `x` and `y` |
//! | `convolution(x, w)` | `reduce-window` by `or` of the mask of `x` |
//! | `select(broadcast(m), NaN, x)` | `m` or the mask of `x` |
use super::is_depthwise;
use super::value_range::{Nans, ValueRanges, covers_an_element, mask_of_nan_select};
use crate::diag::Result;
use crate::hlo::attrs::{ConvDims, DotDims, PadDim, SliceDim, WindowDim};
use crate::hlo::{Builder, InstId, Op};
use crate::optimize::inline_module;
use crate::optimize::rewrite::Editor;
use crate::scalar::{CompareKind, Direction, ScalarOp};
use crate::tensor::{DType, Tensor};
use std::collections::HashMap;

/// Largest depth of recursion into operands whose masks are not known yet.
const DEPTH: usize = 64;

/// The masks of one computation's arrays, emitted on demand.
#[derive(Default)]
pub struct NanMasks {
    /// Ranges of the arrays.
    pub ranges: ValueRanges,
    known: HashMap<(InstId, usize), Option<InstId>>,
}

/// Mask of an array as far as it follows from its operands.
enum Derivation {
    /// The mask; `None` where no element is NaN.
    Mask(Option<InstId>),
    /// Nothing: the array itself has to be looked at.
    Unknown,
}

impl NanMasks {
    /// The mask of an array over at most `axes` leading axes; `None` if no element can be NaN. A mask of fewer axes says that the elements at all
    /// indices of the next axes, up to `axes`, are alike.
    ///
    /// # Errors
    /// An internal one where an instruction does not fit its operands.
    pub fn mask(&mut self, editor: &mut Editor, id: InstId, axes: usize) -> Result<Option<InstId>> {
        self.mask_within(editor, id, axes, DEPTH)
    }

    /// Whether the mask of a convolution follows from that of its left side: whether both have batch, space and features in this order.
    pub fn is_derived_through(d: &ConvDims) -> bool {
        let space: Vec<usize> = (1..=d.window.len()).collect();
        let is_natural = d.input_batch == 0 && d.output_batch == 0 && d.input_spatial == space;
        is_natural && d.output_spatial == space && d.batch_group_count == 1
    }

    fn mask_within(&mut self, editor: &mut Editor, id: InstId, axes: usize, depth: usize) -> Result<Option<InstId>> {
        let id = editor.resolve(id);
        let axes = axes.min(editor.dims(id).len());
        let nans = self.ranges.range(editor, id).nans;
        if nans == Nans::Never {
            return Ok(None);
        }
        if let Some(&known) = self.known.get(&(id, axes)) {
            return Ok(known);
        }
        let derived = match (nans, depth) {
            // another time there may be more depth
            (Nans::FromOperands, 0) => return search(editor, id, axes).map(Some),
            (Nans::FromOperands, _) => self.derive(editor, id, axes, depth - 1)?,
            _ => Derivation::Unknown,
        };
        let mask = match derived {
            Derivation::Mask(mask) => mask,
            Derivation::Unknown => Some(search(editor, id, axes)?),
        };
        self.known.insert((id, axes), mask);
        Ok(mask)
    }

    /// The mask of an array whose elements are NaN exactly where elements are from which they are computed.
    fn derive(&mut self, editor: &mut Editor, id: InstId, axes: usize, depth: usize) -> Result<Derivation> {
        let (op, operands) = (editor.op(id).clone(), editor.operands(id).to_vec());
        let (dims, from) = (editor.dims(id).to_vec(), operands.first().map_or(0, |&x| editor.dims(x).len()));
        match &op {
            Op::Elementwise(ScalarOp::Select) => match mask_of_nan_select(editor, id) {
                Some(own) => {
                    let own = mask_of_pred(editor, own, axes)?;
                    let other = self.mask_within(editor, operands[2], axes, depth)?;
                    self.any(editor, &[Some(own), other], &dims)
                }
                None => Ok(Derivation::Unknown),
            },
            Op::Elementwise(_) => {
                let mut masks = Vec::with_capacity(operands.len());
                for operand in operands {
                    masks.push(self.mask_within(editor, operand, axes, depth)?);
                }
                self.any(editor, &masks, &dims)
            }
            Op::Copy => Ok(Derivation::Mask(self.mask_within(editor, operands[0], axes, depth)?)),
            Op::Broadcast(to) => {
                let to: Vec<Option<usize>> = to.iter().map(|&axis| Some(axis)).collect();
                Ok(Derivation::Mask(self.relocated(editor, operands[0], &to, &dims, axes, depth)?))
            }
            Op::Transpose(perm) => {
                let to: Vec<Option<usize>> = (0..from).map(|axis| perm.iter().position(|&p| p == axis)).collect();
                Ok(Derivation::Mask(self.relocated(editor, operands[0], &to, &dims, axes, depth)?))
            }
            Op::Reduce { dims: reduced, .. } if !self.ranges.range(editor, operands[1]).may_be_nan() => {
                let kept: Vec<usize> = (0..from).filter(|axis| !reduced.contains(axis)).collect();
                let to: Vec<Option<usize>> = (0..from).map(|axis| kept.iter().position(|&k| k == axis)).collect();
                Ok(Derivation::Mask(self.relocated(editor, operands[0], &to, &dims, axes, depth)?))
            }
            Op::Dot(d) => self.dot(editor, id, d, axes, depth),
            Op::Convolution(d) => self.convolution(editor, id, d, axes, depth),
            Op::ReduceWindow { window, .. } if !self.ranges.range(editor, operands[1]).may_be_nan() => {
                if !window[axes..].iter().all(is_trivial) {
                    return Ok(Derivation::Unknown);
                }
                let mask = self.mask_within(editor, operands[0], axes, depth)?;
                through_window(editor, mask, window, operands[0]).map(Derivation::Mask)
            }
            Op::Reshape => self.reshape(editor, id, axes, depth),
            Op::Reverse(reversed) => {
                let Some(mask) = self.mask_within(editor, operands[0], axes, depth)? else {
                    return Ok(Derivation::Mask(None));
                };
                let rank = editor.dims(mask).len();
                let reversed = reversed.iter().copied().filter(|&axis| axis < rank).collect();
                editor.add_instruction(Op::Reverse(reversed), &[mask]).map(|mask| Derivation::Mask(Some(mask)))
            }
            Op::Slice(slices) => self.slice(editor, id, slices, axes, depth),
            Op::Pad(padding) => self.pad(editor, id, padding, axes, depth),
            Op::Concatenate(axis) => self.concatenate(editor, id, *axis, axes, depth),
            _ => Ok(Derivation::Unknown),
        }
    }

    /// The disjunction of masks of arrays of the sizes `dims`.
    fn any(&self, editor: &mut Editor, masks: &[Option<InstId>], dims: &[u64]) -> Result<Derivation> {
        let masks: Vec<InstId> = masks.iter().filter_map(|&mask| mask).collect();
        let rank = masks.iter().map(|&mask| editor.dims(mask).len()).max().unwrap_or(0);
        let mut all = None;
        for mask in masks {
            let mask = raise(editor, mask, &dims[..rank]);
            all = Some(match all {
                None => mask,
                Some(all) if all == mask => all,
                Some(all) => editor.add_instruction(Op::Elementwise(ScalarOp::Or), &[all, mask])?,
            });
        }
        Ok(Derivation::Mask(all))
    }

    /// The mask over at most `axes` axes of an array of the sizes `dims`, whose axis `to[i]` is axis `i` of the operand; an axis of the operand
    /// without one is reduced.
    fn relocated(
        &mut self,
        editor: &mut Editor,
        operand: InstId,
        to: &[Option<usize>],
        dims: &[u64],
        axes: usize,
        depth: usize,
    ) -> Result<Option<InstId>> {
        let target = |axis: usize| to[axis].filter(|&to| to < axes);
        let needed = (0..to.len()).rev().find(|&axis| target(axis).is_some()).map_or(0, |axis| axis + 1);
        let Some(mask) = self.mask_within(editor, operand, needed, depth)? else { return Ok(None) };
        let rank = editor.dims(mask).len();
        let reduced: Vec<usize> = (0..rank).filter(|&axis| target(axis).is_none()).collect();
        let mut mask = any_along(editor, mask, &reduced)?;
        let kept: Vec<usize> = (0..rank).filter_map(target).collect();
        let mut order: Vec<usize> = (0..kept.len()).collect();
        order.sort_by_key(|&i| kept[i]);
        if !order.is_sorted() {
            mask = editor.add_instruction(Op::Transpose(order.clone()), &[mask])?;
        }
        let map: Vec<usize> = order.into_iter().map(|i| kept[i]).collect();
        let top = map.last().map_or(0, |last| last + 1);
        Ok(Some(editor.add_broadcast(mask, &dims[..top], &map)))
    }

    fn dot(&mut self, editor: &mut Editor, id: InstId, d: &DotDims, axes: usize, depth: usize) -> Result<Derivation> {
        let (operands, dims) = (editor.operands(id).to_vec(), editor.dims(id).to_vec());
        let mut next = d.lhs_batch.len();
        let mut masks = Vec::with_capacity(2);
        let sides = [(&d.lhs_batch, &d.lhs_contracting), (&d.rhs_batch, &d.rhs_contracting)];
        for (&operand, (batch, contracting)) in operands.iter().zip(sides) {
            let mut to = vec![None; editor.dims(operand).len()];
            for (axis, to) in to.iter_mut().enumerate() {
                *to = batch.iter().position(|&b| b == axis);
                if to.is_none() && !contracting.contains(&axis) {
                    *to = Some(next);
                    next += 1;
                }
            }
            masks.push(self.relocated(editor, operand, &to, &dims, axes, depth)?);
        }
        self.any(editor, &masks, &dims)
    }

    fn convolution(
        &mut self,
        editor: &mut Editor,
        id: InstId,
        d: &ConvDims,
        axes: usize,
        depth: usize,
    ) -> Result<Derivation> {
        let (left, right) = (editor.operand(id, 0), editor.operand(id, 1));
        // leading axes without the features, and the axis of features
        let (space, features) = (d.window.len() + 1, d.window.len() + 1);
        if !Self::is_derived_through(d) || self.ranges.range(editor, right).may_be_nan() {
            return Ok(Derivation::Unknown);
        }
        // a feature of a depthwise convolution has the NaNs of one feature, every other those of all
        let has_features = axes > features && d.feature_group_count != 1;
        let mask = self.mask_within(editor, left, space + usize::from(has_features), depth)?;
        let mask_rank = mask.map_or(0, |mask| editor.dims(mask).len());
        if mask_rank > space && !is_depthwise(editor, id, d) {
            return Ok(Derivation::Unknown);
        }
        let axis = [WindowDim::default()];
        let window: Vec<WindowDim> =
            axis.iter().chain(&d.window).chain(&axis[..usize::from(has_features)]).copied().collect();
        let Some(mask) = through_window(editor, mask, &window, left)? else { return Ok(Derivation::Mask(None)) };
        let beyond: Vec<usize> = (axes..editor.dims(mask).len()).collect();
        any_along(editor, mask, &beyond).map(|mask| Derivation::Mask(Some(mask)))
    }

    fn reshape(&mut self, editor: &mut Editor, id: InstId, axes: usize, depth: usize) -> Result<Derivation> {
        let (operand, dims) = (editor.operand(id, 0), editor.dims(id).to_vec());
        let from = editor.dims(operand).to_vec();
        let count = |dims: &[u64]| dims.iter().product::<u64>();
        let Some(needed) = (0..=from.len()).find(|&n| count(&from[..n]) == count(&dims[..axes])) else {
            return Ok(Derivation::Unknown);
        };
        let Some(mask) = self.mask_within(editor, operand, needed, depth)? else {
            return Ok(Derivation::Mask(None));
        };
        let elements = count(editor.dims(mask));
        let (mask, rank) = match (0..=axes).find(|&n| count(&dims[..n]) == elements) {
            Some(rank) => (mask, rank),
            None => (raise(editor, mask, &from[..needed]), axes),
        };
        Ok(Derivation::Mask(Some(editor.add_reshape(mask, &dims[..rank]))))
    }

    fn slice(
        &mut self,
        editor: &mut Editor,
        id: InstId,
        slices: &[SliceDim],
        axes: usize,
        depth: usize,
    ) -> Result<Derivation> {
        let operand = editor.operand(id, 0);
        let sizes = editor.dims(operand).to_vec();
        let is_whole = |axis: usize| slices[axis] == SliceDim::new(0u64, sizes[axis]);
        let cut = (0..slices.len()).rev().find(|&axis| !is_whole(axis)).map_or(0, |axis| axis + 1);
        let Some(mask) = self.mask_within(editor, operand, axes.max(cut), depth)? else {
            return Ok(Derivation::Mask(None));
        };
        let rank = editor.dims(mask).len();
        let mask = editor.add_instruction(Op::Slice(slices[..rank].to_vec()), &[mask])?;
        let beyond: Vec<usize> = (axes..rank).collect();
        any_along(editor, mask, &beyond).map(|mask| Derivation::Mask(Some(mask)))
    }

    fn pad(
        &mut self,
        editor: &mut Editor,
        id: InstId,
        padding: &[PadDim],
        axes: usize,
        depth: usize,
    ) -> Result<Derivation> {
        let (operand, value) = (editor.operand(id, 0), editor.operand(id, 1));
        let crops = padding.iter().any(|p| p.low < 0 || p.high < 0);
        if crops || self.ranges.range(editor, value).may_be_nan() {
            return Ok(Derivation::Unknown);
        }
        let Some(mask) = self.mask_within(editor, operand, axes, depth)? else { return Ok(Derivation::Mask(None)) };
        let padded = (0..axes).rev().find(|&axis| padding[axis] != PadDim::default()).map_or(0, |axis| axis + 1);
        let sizes = editor.dims(operand).to_vec();
        let rank = editor.dims(mask).len().max(padded);
        let mask = raise(editor, mask, &sizes[..rank]);
        if padded == 0 {
            return Ok(Derivation::Mask(Some(mask)));
        }
        let no = editor.add_constant(Tensor::scalar_from_i64(DType::Pred, 0));
        editor.add_instruction(Op::Pad(padding[..rank].to_vec()), &[mask, no]).map(|mask| Derivation::Mask(Some(mask)))
    }

    fn concatenate(
        &mut self,
        editor: &mut Editor,
        id: InstId,
        axis: usize,
        axes: usize,
        depth: usize,
    ) -> Result<Derivation> {
        let (operands, dims) = (editor.operands(id).to_vec(), editor.dims(id).to_vec());
        let mut masks = Vec::with_capacity(operands.len());
        for &operand in &operands {
            masks.push(self.mask_within(editor, operand, axes, depth)?);
        }
        if axis >= axes {
            return self.any(editor, &masks, &dims);
        }
        let rank = masks.iter().flatten().map(|&mask| editor.dims(mask).len()).fold(axis + 1, usize::max);
        let mut parts = Vec::with_capacity(operands.len());
        for (operand, mask) in operands.into_iter().zip(masks) {
            let sizes = editor.dims(operand)[..rank].to_vec();
            let mask = mask.unwrap_or_else(|| editor.add_constant(Tensor::scalar_from_i64(DType::Pred, 0)));
            parts.push(raise(editor, mask, &sizes));
        }
        editor.add_instruction(Op::Concatenate(axis), &parts).map(|mask| Derivation::Mask(Some(mask)))
    }
}

/// A mask with more axes, along which it does not differ.
fn raise(editor: &mut Editor, mask: InstId, dims: &[u64]) -> InstId {
    let map: Vec<usize> = (0..editor.dims(mask).len()).collect();
    editor.add_broadcast(mask, dims, &map)
}

/// A value computed from one array by a few instructions.
fn compute(editor: &mut Editor, x: InstId, write: impl FnOnce(&mut Builder, InstId) -> InstId) -> Result<InstId> {
    let mut b = Builder::new("nan_mask");
    let parameter = b.parameter(editor.shape(x).clone());
    let root = write(&mut b, parameter);
    inline_module(editor, b.finish(root)?, &[x])
}

/// Whether a mask is true anywhere along some of its axes.
fn any_along(editor: &mut Editor, mask: InstId, axes: &[usize]) -> Result<InstId> {
    if axes.is_empty() {
        return Ok(mask);
    }
    compute(editor, mask, |b, mask| {
        let no = b.scalar(DType::Pred, 0.0);
        b.reduce(mask, no, ScalarOp::Or, axes)
    })
}

/// The mask over at most `axes` axes that an array of `pred` is.
fn mask_of_pred(editor: &mut Editor, array: InstId, axes: usize) -> Result<InstId> {
    if let Op::Broadcast(to) = editor.op(array)
        && to.len() <= axes
        && to.iter().enumerate().all(|(axis, &to)| axis == to)
    {
        return Ok(editor.operand(array, 0));
    }
    let beyond: Vec<usize> = (axes..editor.dims(array).len()).collect();
    any_along(editor, array, &beyond)
}

/// The mask that is found by a look at the elements: the largest of some numbers is NaN if one of them is.
fn search(editor: &mut Editor, array: InstId, axes: usize) -> Result<InstId> {
    let dims = editor.dims(array);
    // one long axis is reduced by vectors, however short the last one is
    let (has_more, merged) = (axes < dims.len(), [&dims[..axes], &[dims[axes..].iter().product()]].concat());
    compute(editor, array, |b, x| {
        let x = match has_more {
            false => x,
            true => {
                let (x, least) = (b.reshape(x, &merged), b.scalar(b.dtype(x), f64::NEG_INFINITY));
                b.reduce(x, least, ScalarOp::Maximum, &[axes])
            }
        };
        b.elementwise(ScalarOp::Compare(Direction::Ne, CompareKind::Partial), &[x, x])
    })
}

/// Whether a window is one element that meets each element of the operand once.
fn is_trivial(w: &WindowDim) -> bool {
    WindowDim { reversal: false, ..*w } == WindowDim::default()
}

/// The mask of an array whose elements are computed from windows of `operand`, which has the given mask.
fn through_window(
    editor: &mut Editor,
    mask: Option<InstId>,
    window: &[WindowDim],
    operand: InstId,
) -> Result<Option<InstId>> {
    let Some(mask) = mask else { return Ok(None) };
    // along axes without a difference, windows on the padding alone make one
    let open = window.iter().rposition(|w| !covers_an_element(w)).map_or(0, |axis| axis + 1);
    let rank = editor.dims(mask).len().max(open);
    let sizes = editor.dims(operand)[..rank].to_vec();
    let mask = raise(editor, mask, &sizes);
    // one axis after the other takes fewer elements than all at once
    let mut mask = mask;
    for (axis, w) in window[..rank].iter().enumerate().filter(|(_, w)| !is_trivial(w)) {
        let mut along = vec![WindowDim::default(); rank];
        along[axis] = *w;
        mask = compute(editor, mask, |b, mask| {
            let no = b.scalar(DType::Pred, 0.0);
            let comp = b.scalar_computation(ScalarOp::Or, DType::Pred);
            b.add_inst(Op::ReduceWindow { window: along, comp }, &[mask, no])
        })?;
    }
    Ok(Some(mask))
}
