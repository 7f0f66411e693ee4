//! `optional_ops.cc`: values that may be missing. Conditions of TensorFlow 2 pass intermediate values of their branches to
//! their gradients in optionals.
use super::fact::{Dims, Fact};
use super::op_lowering::op;
use super::shape_ctx::ShapeCtx;
use super::spec::{check_nesting, with_known_sizes};
use super::symbols::UnknownReason;
use super::value::{OptionalAlternative, OptionalValue};
use super::{LowerCtx, OpLowering, Value};
use crate::diag::{Code, Diagnostic, Error, Result};
use crate::graph::{Attr, PartialShape, TfType};
use crate::symbolic::constant_dims;
use crate::tensor::{DType, Tensor};
use std::sync::Arc;

const NODES: &[OpLowering] = &[
    op("OptionalFromValue", "components* -> optional", from_value).shape(handle).dtypes("any, also lists"),
    op("OptionalNone", "-> optional", none).shape(handle),
    op("OptionalHasValue", "optional -> has_value", has_value).shape(has_value_shape),
    op("OptionalGetValue", "optional -> components*", get_value).shape(components).dtypes("any, also lists"),
];

/// Definitions of the ops of this family.
pub const ROWS: &[&[OpLowering]] = &[NODES];

fn from_value(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let has_value = cx.b.constant(Tensor::from_bools(&[], &[true]));
    let args = cx.args.clone();
    let components = args.iter().map(|one| with_known_sizes(cx.b, one)).collect::<Result<_>>()?;
    let alternative = OptionalAlternative { makers: cx.calls.last().cloned().into_iter().collect(), components };
    let optional = Value::Optional(OptionalValue { has_value, alternatives: vec![alternative] });
    check_nesting(&optional)?;
    Ok(vec![optional])
}

fn none(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let has_value = cx.b.constant(Tensor::from_bools(&[], &[false]));
    Ok(vec![Value::Optional(OptionalValue { has_value, alternatives: Vec::new() })])
}

fn optional(cx: &LowerCtx) -> Result<OptionalValue> {
    match cx.args.first() {
        Some(Value::Optional(optional)) => Ok(optional.clone()),
        _ => Err(Error::user(Code::TypeMismatch, "input 0 must be an optional")),
    }
}

fn has_value(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let has_value = optional(cx)?.has_value;
    cx.one_output(has_value)
}

/// Element types of the optional's components, from attribute `output_types`.
fn types(cx: &LowerCtx) -> Result<Vec<TfType>> {
    match cx.node.attr("output_types") {
        Some(Attr::Types(types)) => Ok(types.to_vec()),
        _ => Err(Error::user(Code::BadAttr, "attribute `output_types` must be a list of types")),
    }
}

/// Declared shapes of the optional's components, from attribute `output_shapes`.
fn shapes(cx: &LowerCtx) -> Vec<PartialShape> {
    match cx.node.attr("output_shapes") {
        Some(Attr::Shapes(shapes)) => shapes.to_vec(),
        _ => Vec::new(),
    }
}

/// Lowers `OptionalGetValue`. If the optional has no value, the components are arbitrary: TensorFlow's kernel fails then, so a
/// valid graph reads them only in branches that are not taken.
fn get_value(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (optional, types, shapes) = (optional(cx)?, types(cx)?, shapes(cx));
    let is_one = |(value, i): (&Value, usize)| match value {
        Value::Array(id) => {
            let fits = shapes.get(i).is_none_or(|shape| shape.admits(cx.b.dims(*id)));
            fits && TfType::Data(cx.b.dtype(*id)) == types[i]
        }
        _ => types[i].dtype().is_none(),
    };
    let fits =
        |one: &&OptionalAlternative| one.components.len() == types.len() && one.components.iter().zip(0..).all(is_one);
    let fitting: Vec<&OptionalAlternative> = optional.alternatives.iter().filter(fits).collect();
    match &fitting[..] {
        [] => missing(cx, &types),
        [one] => Ok(one.components.clone()),
        several => {
            let own: Vec<&&OptionalAlternative> =
                several.iter().filter(|one| is_for_gradient(cx, &one.makers)).collect();
            if let [one] = own[..] {
                return Ok(one.components.clone());
            }
            let told = "branches of a condition leave arrays or lists of several shapes in this optional, and which of them it has is not known";
            Err(Diagnostic::new(Code::UnsupportedCase, told)
                .note("`output_shapes` admits several, and no gradient of one of the branches asks")
                .help("give what the branches compute shapes that are known when the graph is made")
                .into())
        }
    }
}

/// Whether the gradient of one of these functions is being lowered. TensorFlow names a gradient function after the branch
/// function, before or after that was rewritten to keep values: `NAME_grad_7` or `NAME_rewritten_grad_7` for `NAME_rewritten`.
fn is_for_gradient(cx: &LowerCtx, makers: &[Arc<str>]) -> bool {
    let is_gradient = |name: &str, maker: &str| {
        let rest = name.strip_prefix(maker.trim_end_matches("_rewritten"));
        rest.is_some_and(|rest| rest.trim_start_matches("_rewritten").starts_with("_grad_"))
    };
    cx.calls.iter().any(|name| makers.iter().any(|maker| is_gradient(name, maker)))
}

/// Zeros for the components of an optional that never has a value.
fn missing(cx: &mut LowerCtx, types: &[TfType]) -> Result<Vec<Value>> {
    if cx.b.nesting_depth() == 1 {
        return Err(Error::user(Code::BadInputs, "the optional has no value"));
    }
    let shapes = shapes(cx);
    let mut out = Vec::with_capacity(types.len());
    for (i, of) in types.iter().enumerate() {
        out.push(match (of, shapes.get(i).and_then(|shape| shape.fixed())) {
            (TfType::Data(dtype), Some(dims)) => Value::Array(cx.b.full(*dtype, &constant_dims(&dims), 0.0)),
            (of, _) => Value::Unavailable(*of),
        });
    }
    Ok(out)
}

fn handle(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    cx.one_output(TfType::Variant, Dims::from_sizes(&[]))
}

fn has_value_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    cx.one_output(TfType::Data(DType::Pred), Dims::from_sizes(&[]))
}

fn components(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let (types, shapes) = match (cx.node.attr("output_types"), cx.node.attr("output_shapes")) {
        (Some(Attr::Types(types)), Some(Attr::Shapes(shapes))) => (types.to_vec(), shapes.to_vec()),
        _ => return Err(Error::user(Code::BadAttr, "attributes `output_types` and `output_shapes` must be lists")),
    };
    let mut out = Vec::with_capacity(types.len());
    for (i, of) in types.into_iter().enumerate() {
        let dims = match shapes.get(i) {
            Some(shape) => cx.attr_shape(shape),
            None => cx.unranked(UnknownReason::Attribute),
        };
        out.push(Fact::new(Some(of), dims));
    }
    Ok(out)
}
