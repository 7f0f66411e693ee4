//! Rules whose root is `pad`.
use crate::diag::Result;
use crate::hlo::attrs::{PadDim, SliceDim};
use crate::hlo::{InstId, Op};
use crate::optimize::constant::splat_of;
use crate::optimize::rewrite::Editor;

/// A simpler form of `pad(x, fill)`.
pub fn simplify(editor: &mut Editor, id: InstId, dims: &[PadDim]) -> Result<Option<InstId>> {
    let (x, fill) = (editor.operand(id, 0), editor.operand(id, 1));
    let plain = |d: &PadDim, n: u64| d.interior == 0 || n <= 1;
    // pad(x) by nothing = x
    if dims.iter().zip(editor.dims(x)).all(|(d, &n)| d.low == 0 && d.high == 0 && plain(d, n)) {
        return Ok(Some(x));
    }
    // pad(splat, the same value) = splat
    if let (Some(value), Some(other)) = (splat_of(editor, x), splat_of(editor, fill))
        && value == other
    {
        let sizes = editor.dims(id).to_vec();
        let scalar = editor.add_constant(value);
        return Ok(Some(editor.add_broadcast(scalar, &sizes, &[])));
    }
    // pad(x) that only crops = slice(x)
    if dims.iter().zip(editor.dims(x)).all(|(d, &n)| d.low <= 0 && d.high <= 0 && plain(d, n)) {
        return negative_pad_to_slice(editor, x, dims);
    }
    if let Op::Pad(inner) = editor.op(x).clone()
        && editor.operand(x, 1) == fill
        && let Some(both) = inner.iter().zip(dims).map(|(a, b)| merge(a, b)).collect::<Option<Vec<_>>>()
    {
        let source = editor.operand(x, 0);
        return Ok(Some(editor.add_instruction(Op::Pad(both), &[source, fill])?));
    }
    Ok(None)
}

/// pad(pad(x)) = pad(x) for equal fills, where both only grow.
fn merge(a: &PadDim, b: &PadDim) -> Option<PadDim> {
    if a.low < 0 || a.high < 0 || b.low < 0 || b.high < 0 || b.interior != 0 {
        return None;
    }
    Some(PadDim { low: a.low.checked_add(b.low)?, high: a.high.checked_add(b.high)?, interior: a.interior })
}

fn negative_pad_to_slice(editor: &mut Editor, x: InstId, dims: &[PadDim]) -> Result<Option<InstId>> {
    let keep = |(d, &n): (&PadDim, &u64)| {
        let limit = n.checked_sub(d.high.unsigned_abs())?;
        let start = d.low.unsigned_abs();
        (start <= limit).then_some(SliceDim { start, limit, stride: 1 })
    };
    match dims.iter().zip(editor.dims(x)).map(keep).collect::<Option<Vec<_>>>() {
        Some(kept) => Ok(Some(editor.add_instruction(Op::Slice(kept), &[x])?)),
        None => Ok(None),
    }
}
