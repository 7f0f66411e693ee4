//! Variables of TensorFlow 1, whose handle is a reference that every other op takes as the current value.
use super::change;
use crate::diag::Result;
use crate::graph::Attr;
use crate::hlo::symbolic::Builder;
use crate::ops::fact::Fact;
use crate::ops::op_lowering::op;
use crate::ops::shape::{PRED, forward_first_input};
use crate::ops::symbols::UnknownReason;
use crate::ops::{LowerCtx, OpLowering, ShapeCtx, Value, Work};

/// Definitions of the ops of this file.
pub const ROWS: &[OpLowering] = &[
    op("Variable", "-> ref", super::handle).shape(variable_shape).work(Work::None),
    op("VariableV2", "-> ref", super::handle).shape(variable_shape).work(Work::None),
    op("Assign", "ref value -> output_ref", |cx| changed(cx, super::assign))
        .shape(forward_first_input)
        .assigns_inputs(&[0])
        .takes_references()
        .work(Work::None),
    op("AssignAdd", "ref value -> output_ref", |cx| changed(cx, |cx| change(cx, Builder::add)))
        .shape(forward_first_input)
        .assigns_inputs(&[0])
        .takes_references(),
    op("AssignSub", "ref value -> output_ref", |cx| changed(cx, |cx| change(cx, Builder::sub)))
        .shape(forward_first_input)
        .assigns_inputs(&[0])
        .takes_references(),
    op("IsVariableInitialized", "ref -> is_initialized", super::initialised)
        .shape(|cx| cx.one_output(PRED, vec![]))
        .takes_references(),
];

/// Outputs of an op that changes a variable and returns its reference. The assigned value may be a reference as well.
fn changed(cx: &mut LowerCtx, f: super::OnArrays) -> Result<Vec<Value>> {
    let reference = cx.args.first().cloned();
    if let Some(Value::Variable(_)) = cx.args.get(1) {
        cx.args[1] = Value::Array(cx.read_variable(1)?);
    }
    f(cx)?;
    Ok(reference.into_iter().collect())
}

fn variable_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let dims = match cx.node.attr("shape") {
        Some(Attr::Shape(shape)) => cx.attr_shape(&shape.clone()),
        _ => cx.unranked(UnknownReason::Attribute),
    };
    cx.one_output_typed_by("dtype", dims)
}
