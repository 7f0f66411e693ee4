//! Makes a `pad` of spatial dimensions the padding of the window that reads it.
//!
//! A convolution pads with zeros and a `reduce-window` with its initial value, so a pad by just that is not needed. A maximum
//! over windows that each hold a real element may also take a pad by 0 when no element is negative (behind a relu). Of a maximum
//! that passes over NaN, a window at an edge all of whose elements are NaN then gives the initial value, as one inside does.
use super::constant::splat_of;
use super::rewrite::{Changed, Editor, rewrite};
use super::simplify::fold_of_computation;
use crate::diag::Result;
use crate::hlo::attrs::{ConvDims, PadDim, WindowDim};
use crate::hlo::{CompId, Fold, InstId, Module, Op};
use crate::scalar::ScalarOp;

/// Moves pads into the windows of `convolution` and `reduce-window`.
pub fn pad_into_window(module: &mut Module) -> Result<Changed> {
    rewrite(module, |editor, id| match editor.op(id).clone() {
        Op::Convolution(dims) => convolution(editor, id, &dims),
        Op::ReduceWindow { window, comp } => reduce_window(editor, id, &window, comp),
        _ => Ok(None),
    })
}

/// The window `w` over an operand padded by `p` as a window over the operand itself.
fn absorb_padding(w: &WindowDim, p: &PadDim) -> Option<WindowDim> {
    let none = p.low == 0 && p.high == 0 && p.interior == 0;
    let plain = p.low >= 0 && p.high >= 0 && p.interior == 0 && w.lhs_dilate == 1;
    if !none && !plain {
        return None;
    }
    Some(WindowDim { pad_low: w.pad_low.checked_add(p.low)?, pad_high: w.pad_high.checked_add(p.high)?, ..*w })
}

fn convolution(editor: &mut Editor, id: InstId, dims: &ConvDims) -> Result<Option<InstId>> {
    let (padded, kernel) = (editor.operand(id, 0), editor.operand(id, 1));
    let Op::Pad(pad) = editor.op(padded).clone() else { return Ok(None) };
    let fill = splat_of(editor, editor.operand(padded, 1)).and_then(|t| t.get_f64(0));
    let spatial_only =
        [dims.input_batch, dims.input_feature].iter().all(|&a| pad[a] == PadDim { low: 0, high: 0, interior: 0 });
    if fill != Some(0.0) || !spatial_only {
        return Ok(None);
    }
    let window = dims.window.iter().zip(&dims.input_spatial).map(|(w, &a)| absorb_padding(w, &pad[a]));
    let Some(window) = window.collect::<Option<Vec<_>>>() else { return Ok(None) };
    let x = editor.operand(padded, 0);
    let op = Op::Convolution(Box::new(ConvDims { window, ..dims.clone() }));
    let new = editor.add_instruction(op, &[x, kernel])?;
    editor.copy_provenance(id, new);
    Ok(Some(new))
}

fn reduce_window(editor: &mut Editor, id: InstId, window: &[WindowDim], comp: CompId) -> Result<Option<InstId>> {
    let [padded, init] = editor.operands(id)[..] else { return Ok(None) };
    let Op::Pad(pad) = editor.op(padded).clone() else { return Ok(None) };
    let x = editor.operand(padded, 0);
    let (Some(fill), Some(start)) = (splat_of(editor, editor.operand(padded, 1)), splat_of(editor, init)) else {
        return Ok(None);
    };
    let op = fold_of_computation(editor.module(), comp);
    let grown: Option<Vec<WindowDim>> = window.iter().zip(&pad).map(|(w, p)| absorb_padding(w, p)).collect();
    let Some(new) = grown else { return Ok(None) };
    // A window of padding only would give the initial value instead of 0.
    let holds_an_element =
        |w: &WindowDim| w.rhs_dilate == 1 && w.pad_low.max(w.pad_high) < i64::try_from(w.size).unwrap_or(i64::MAX);
    let harmless = matches!(op, Some(Fold::By(ScalarOp::Maximum) | Fold::Larger))
        && fill.get_f64(0) == Some(0.0)
        && start.get_f64(0).is_some_and(|v| v <= 0.0)
        && new.iter().all(holds_an_element)
        && is_non_negative(editor, x);
    if op.is_none() || !(fill == start || harmless) {
        return Ok(None);
    }
    Ok(Some(editor.add_instruction(Op::ReduceWindow { window: new, comp }, &[x, init])?))
}

/// Whether no element is below 0 (NaN may be).
fn is_non_negative(editor: &Editor, id: InstId) -> bool {
    let at_least_zero = |o: InstId| splat_of(editor, o).and_then(|t| t.get_f64(0)).is_some_and(|v| v >= 0.0);
    let operands = editor.operands(id);
    match (editor.op(id).scalar(), operands) {
        (Some(ScalarOp::Maximum), [x, y]) => at_least_zero(*x) || at_least_zero(*y),
        (Some(ScalarOp::Clamp), [low, _, high]) => at_least_zero(*low) && at_least_zero(*high),
        (Some(ScalarOp::Minimum), [x, y]) => {
            let relu = |o: InstId| {
                editor.op(o).scalar() == Some(ScalarOp::Maximum) && editor.operands(o).iter().any(|&v| at_least_zero(v))
            };
            (relu(*x) && at_least_zero(*y)) || (relu(*y) && at_least_zero(*x))
        }
        (Some(ScalarOp::Logistic | ScalarOp::Exp | ScalarOp::Abs | ScalarOp::Sqrt), _) => true,
        _ => false,
    }
}
