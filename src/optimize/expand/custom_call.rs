//! Calls of the user's functions, whose arrays lie as the call says: where that is not row-major, the function gets the row-major
//! array whose axes stand in the order in which they lie, and its result is turned back.
use crate::diag::{Code, Diagnostic, Error, Result};
use crate::hlo::attrs::ForeignOp;
use crate::hlo::{ArrayShape, InstId, Module, Op, Shape};
use crate::optimize::rewrite::{Changed, Editor, rewrite};

/// Writes operands and results of custom calls in their memory layouts as transposes.
///
/// Errors: `Code::HloUnsupported` for a call with an effect whose result nothing reads, as it would vanish, and for tiled arrays.
pub fn expand(module: &mut Module) -> Result<Changed> {
    rewrite(module, |editor, id| match editor.op(id).clone() {
        Op::Foreign(call) if call.opcode == "custom-call" => custom_call(editor, id, *call),
        _ => Ok(None),
    })
}

fn custom_call(editor: &mut Editor, id: InstId, mut call: ForeignOp) -> Result<Option<InstId>> {
    if call.attr("custom_call_has_side_effect") == Some("true") && !editor.comp().post_order().contains(&id) {
        let name = call.attr("custom_call_target").unwrap_or("");
        let told = format!("the custom call `{name}` has an effect, and nothing reads its result");
        let problem = Diagnostic::new(Code::HloUnsupported, told);
        return Err(problem.help("let the result of the program depend on that of the call").into());
    }
    let operands = editor.operands(id).to_vec();
    let mut wanted: Vec<Shape> = operands.iter().map(|&o| editor.shape(o).clone()).collect();
    if let Some(constraints) = call.operand_layouts() {
        wanted = constraints?;
        if wanted.len() != operands.len() {
            return Err(Error::user(Code::HloInvalid, "a custom call has layouts for another number of operands"));
        }
    }
    let orders = wanted.iter().map(layout_order).collect::<Result<Vec<_>>>()?;
    let own = match editor.shape(id) {
        Shape::Tuple(parts) => parts.clone(),
        one => vec![one.clone()],
    };
    let results = own.iter().map(layout_order).collect::<Result<Vec<_>>>()?;
    if orders.iter().chain(&results).all(Option::is_none) {
        return Ok(None);
    }
    call.attrs.retain(|a| a.0 != "operand_layout_constraints");
    let mut given = Vec::with_capacity(operands.len());
    for (&operand, order) in operands.iter().zip(orders) {
        let dense = without_layout(editor.shape(operand));
        given.push(match order {
            Some(order) => {
                let shape = permute_shape(&dense, &order);
                editor.add_instruction_with_shape(Op::Transpose(order), &[operand], shape)
            }
            None if dense == *editor.shape(operand) => operand,
            None => editor.add_instruction_with_shape(Op::Copy, &[operand], dense),
        });
    }
    let made: Vec<Shape> = own
        .iter()
        .zip(&results)
        .map(|(shape, order)| {
            order.as_ref().map_or_else(|| without_layout(shape), |order| permute_shape(&without_layout(shape), order))
        })
        .collect();
    let is_tuple = editor.shape(id).as_tuple().is_some();
    let shape = if is_tuple { Shape::Tuple(made.clone()) } else { made[0].clone() };
    let called = editor.add_instruction_with_shape(Op::Foreign(Box::new(call)), &given, shape);
    editor.copy_provenance(id, called);
    let mut parts = Vec::new();
    for (i, (own, order)) in own.iter().zip(results).enumerate() {
        let part = match is_tuple {
            true => editor.add_instruction_with_shape(Op::GetTupleElement(i), &[called], made[i].clone()),
            false => called,
        };
        parts.push(match order {
            Some(order) => {
                editor.add_instruction_with_shape(Op::Transpose(inverse(&order)), &[part], without_layout(own))
            }
            None => part,
        });
    }
    if is_tuple { editor.add_instruction(Op::Tuple, &parts).map(Some) } else { Ok(parts.first().copied()) }
}

/// The axes of an array from slowest to fastest in memory; `None` for row-major.
fn layout_order(shape: &Shape) -> Result<Option<Vec<usize>>> {
    let Some(layout) = shape.as_array().and_then(|a| a.layout.as_ref()) else { return Ok(None) };
    if layout.properties.contains('T') {
        return Err(Error::user(Code::HloUnsupported, format!("a custom call has an array in tiles: {shape}")));
    }
    let order: Vec<usize> = layout.minor_to_major.iter().rev().map(|&axis| axis as usize).collect();
    Ok(Some(order).filter(|order| !order.is_sorted()))
}

/// The shape without its layout.
fn without_layout(shape: &Shape) -> Shape {
    match shape {
        Shape::Array(a) => Shape::array(a.dtype, a.dims.clone()),
        other => other.clone(),
    }
}

/// The shape of an array with its axes permuted.
fn permute_shape(shape: &Shape, order: &[usize]) -> Shape {
    match shape {
        Shape::Array(ArrayShape { dtype, dims, .. }) => {
            Shape::array(*dtype, order.iter().map(|&axis| dims[axis]).collect::<Vec<_>>())
        }
        other => other.clone(),
    }
}

fn inverse(order: &[usize]) -> Vec<usize> {
    let mut back = vec![0; order.len()];
    order.iter().enumerate().for_each(|(at, &axis)| back[axis] = at);
    back
}
