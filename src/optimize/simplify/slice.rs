//! Rules whose root is `slice`, `dynamic-slice` or `dynamic-update-slice`.
use crate::diag::Result;
use crate::hlo::attrs::{ConvDims, PadDim, SliceDim, WindowDim};
use crate::hlo::{InstId, Op};
use crate::optimize::rewrite::Editor;

/// A simpler form of `slice(x)`.
pub fn simplify(editor: &mut Editor, id: InstId, dims: &[SliceDim]) -> Result<Option<InstId>> {
    let x = editor.operand(id, 0);
    // slice(x) of everything = x
    if editor.dims(x) == editor.dims(id) {
        return Ok(Some(x));
    }
    match editor.op(x).clone() {
        // slice(slice(x)) = slice(x)
        Op::Slice(inner) => {
            let source = editor.operand(x, 0);
            let both: Vec<SliceDim> =
                inner.iter().zip(dims).zip(editor.dims(id)).map(|((a, b), &n)| compose_slices(a, b, n)).collect();
            Ok(Some(editor.add_instruction(Op::Slice(both), &[source])?))
        }
        // slice(broadcast(scalar)) = broadcast(scalar)
        Op::Broadcast(map) if map.is_empty() => {
            let (source, sizes) = (editor.operand(x, 0), editor.dims(id).to_vec());
            Ok(Some(editor.add_broadcast(source, &sizes, &[])))
        }
        Op::Concatenate(axis) => of_concatenate(editor, x, dims, axis),
        Op::Pad(pad) => of_pad(editor, x, dims, &pad),
        Op::Convolution(conv) if editor.uses(x) == 1 => of_convolution(editor, x, dims, &conv),
        _ => Ok(None),
    }
}

/// Slice `b` of slice `a`, which keeps `n` elements, at least one.
fn compose_slices(a: &SliceDim, b: &SliceDim, n: u64) -> SliceDim {
    let start = a.start + b.start * a.stride;
    let stride = if n <= 1 { 1 } else { a.stride * b.stride };
    SliceDim { start, limit: start + (n - 1) * stride + 1, stride }
}

/// slice(concatenate(a, b)) = slice(a), where only elements of `a` are read.
fn of_concatenate(editor: &mut Editor, x: InstId, dims: &[SliceDim], axis: usize) -> Result<Option<InstId>> {
    let mut offset = 0;
    for part in editor.operands(x).to_vec() {
        let size = editor.dims(part)[axis];
        let d = dims[axis];
        if d.start >= offset && d.limit <= offset + size && d.start < d.limit {
            let mut inner = dims.to_vec();
            inner[axis] = SliceDim { start: d.start - offset, limit: d.limit - offset, stride: d.stride };
            return Ok(Some(editor.add_instruction(Op::Slice(inner), &[part])?));
        }
        offset += size;
    }
    Ok(None)
}

/// slice(convolution(x)) = convolution(x) with less padding, where only padding is left out that way.
fn of_convolution(editor: &mut Editor, x: InstId, dims: &[SliceDim], conv: &ConvDims) -> Result<Option<InstId>> {
    let source = editor.operand(x, 0);
    let less = |(k, w): (usize, &WindowDim)| {
        let d = dims[conv.output_spatial[k]];
        let size = i64::try_from(editor.dims(source)[conv.input_spatial[k]]).ok()?;
        let pad_low = w.pad_low.checked_sub(i64::try_from(d.start.checked_mul(w.stride)?).ok()?)?;
        let reach = (d.limit - d.start).checked_sub(1)?.checked_mul(w.stride)?;
        let reach = reach.checked_add((w.size.checked_sub(1)?).checked_mul(w.rhs_dilate)?)?;
        let pad_high = i64::try_from(reach).ok()?.checked_add(1)?.checked_sub(size.checked_add(pad_low)?)?;
        (w.lhs_dilate == 1 && pad_low >= 0 && pad_high >= 0).then_some(WindowDim { pad_low, pad_high, ..*w })
    };
    let sizes = editor.dims(x);
    let whole = |axis: usize| dims[axis].start == 0 && dims[axis].limit == sizes[axis];
    if dims.iter().any(|d| d.stride != 1) || !whole(conv.output_batch) || !whole(conv.output_feature) {
        return Ok(None);
    }
    let Some(window) = conv.window.iter().enumerate().map(less).collect::<Option<Vec<_>>>() else { return Ok(None) };
    let kernel = editor.operand(x, 1);
    let made =
        editor.add_instruction(Op::Convolution(Box::new(ConvDims { window, ..conv.clone() })), &[source, kernel])?;
    editor.copy_provenance(x, made);
    Ok(Some(made))
}

/// slice(pad(x)) = slice(x), where none of the padding is read.
fn of_pad(editor: &mut Editor, x: InstId, dims: &[SliceDim], pad: &[PadDim]) -> Result<Option<InstId>> {
    let source = editor.operand(x, 0);
    let inside = |((d, p), &n): ((&SliceDim, &PadDim), &u64)| {
        let low = u64::try_from(p.low).ok()?;
        let fits = p.interior == 0 && d.start >= low && d.limit <= low + n && d.start < d.limit;
        fits.then(|| SliceDim { start: d.start - low, limit: d.limit - low, stride: d.stride })
    };
    match dims.iter().zip(pad).zip(editor.dims(source)).map(inside).collect::<Option<Vec<_>>>() {
        Some(inner) => Ok(Some(editor.add_instruction(Op::Slice(inner), &[source])?)),
        None => Ok(None),
    }
}

/// The starts in operands `first..`, clamped so that a box of `sizes` fits `whole`, if all are known.
fn known_starts(editor: &Editor, id: InstId, first: usize, whole: &[u64], sizes: &[u64]) -> Option<Vec<u64>> {
    let operands = editor.operands(id).get(first..)?;
    if operands.len() != sizes.len() {
        return None;
    }
    let start = |((&o, &n), &size): ((&InstId, &u64), &u64)| {
        let room = n.checked_sub(size)?;
        if room == 0 {
            return Some(0);
        }
        Some(u64::try_from(editor.constant(o)?.get_i64(0)?).unwrap_or(0).min(room))
    };
    operands.iter().zip(whole).zip(sizes).map(start).collect()
}

/// dynamic-slice(x, constants) = slice(x)
pub fn dynamic_slice(editor: &mut Editor, id: InstId, sizes: &[u64]) -> Result<Option<InstId>> {
    let x = editor.operand(id, 0);
    if let Some(repeated) = of_repeated(editor, x, sizes) {
        return Ok(Some(repeated));
    }
    let Some(starts) = known_starts(editor, id, 1, editor.dims(x), sizes) else { return Ok(None) };
    let dims = starts.iter().zip(sizes).map(|(&start, &n)| SliceDim { start, limit: start + n, stride: 1 }).collect();
    Ok(Some(editor.add_instruction(Op::Slice(dims), &[x])?))
}

/// A part of broadcast(x) that is whole along the dimensions of `x` is x, repeated less often.
fn of_repeated(editor: &mut Editor, x: InstId, sizes: &[u64]) -> Option<InstId> {
    let Op::Broadcast(map) = editor.op(x) else { return None };
    let is_whole = map.iter().all(|&axis| sizes[axis] == editor.dims(x)[axis]);
    let (map, source) = (map.clone(), editor.operand(x, 0));
    is_whole.then(|| editor.add_broadcast(source, sizes, &map))
}

/// dynamic-update-slice(x, update) = update, where it covers all of `x`
pub fn dynamic_update_slice(editor: &mut Editor, id: InstId) -> Option<InstId> {
    let update = editor.operand(id, 1);
    (editor.dims(update) == editor.dims(id)).then_some(update)
}
