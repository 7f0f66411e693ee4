//! Calls of user-defined C functions, as `custom-call` instructions of HLO.
use crate::diag::{Code, Error, Result};
use crate::graph::{Attr, Node, PartialShape, TfType};
use crate::hlo::proto::quoted;
use crate::hlo::symbolic::ForeignOp;
use crate::hlo::symbolic::{Op, Shape};
use crate::ops::fact::Fact;
use crate::ops::op_lowering::op;
use crate::ops::{LowerCtx, OpLowering, ShapeCtx, Value};
use crate::symbolic::constant_dims;

/// Definitions of the ops of this file.
pub const ROWS: &[OpLowering] = &[
    op("XlaCustomCall", "args* -> output", custom_call).shape(declared).dtypes(LINKED),
    op("XlaCustomCallV2", "operands* -> results*", custom_call_v2).shape(declared).dtypes(LINKED),
];

const LINKED: &str = "any; a function in C that users link";

/// Types and shapes of the results, from attributes: a single one of each, or a list of each.
fn results(node: &Node) -> (&[TfType], &[PartialShape]) {
    match (node.attr("dtype"), node.attr("shape")) {
        (Some(Attr::Type(dtype)), Some(Attr::Shape(shape))) => {
            (std::slice::from_ref(dtype), std::slice::from_ref(shape))
        }
        _ => match (node.attr("result_dtypes"), node.attr("result_shapes")) {
            (Some(Attr::Types(types)), Some(Attr::Shapes(shapes))) => (types, shapes),
            _ => (&[], &[]),
        },
    }
}

fn declared(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let node = cx.node;
    let (types, shapes) = results(node);
    if types.len() != shapes.len() {
        return Err(cx.shape_mismatch(format!("{} shapes for {} results", shapes.len(), types.len())));
    }
    Ok(types.iter().zip(shapes).map(|(&t, shape)| Fact::new(Some(t.storage_type()), cx.attr_shape(shape))).collect())
}

fn custom_call(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    call(cx, "target_name", None)
}

fn custom_call_v2(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    call(cx, "call_target_name", Some("API_VERSION_STATUS_RETURNING_UNIFIED"))
}

/// Lowers a custom call; attribute `target` names the function.
fn call(cx: &mut LowerCtx, target: &str, api_version: Option<&str>) -> Result<Vec<Value>> {
    let text = |name: &str| match cx.node.attr(name) {
        Some(Attr::Str(bytes)) => Some(quoted(bytes)),
        _ => None,
    };
    let mut call = ForeignOp { opcode: "custom-call".to_string(), ..ForeignOp::default() };
    let mut put = |name: &str, value: Option<String>| call.attrs.extend(value.map(|v| (name.to_string(), v)));
    put("custom_call_target", Some(cx.require_attr(text(target), target)?));
    put("api_version", api_version.map(str::to_string));
    put("custom_call_has_side_effect", cx.bool_attr("has_side_effect").then(|| "true".to_string()));
    put("backend_config", text("backend_config").filter(|config| config.len() > 2));
    let args = cx.arg_range(0, cx.args.len())?;
    let (types, shapes) = results(cx.node);
    let one = |(&t, shape): (&TfType, &PartialShape)| {
        let dims = shape.fixed().ok_or_else(|| cx.unsupported_case("a result of no fixed shape"))?;
        let dtype = t.dtype().ok_or_else(|| Error::user(Code::UnsupportedType, format!("a result of type {t}")))?;
        Ok(Shape::array(dtype, constant_dims(&dims)))
    };
    let shapes = types.iter().zip(shapes).map(one).collect::<Result<Vec<_>>>()?;
    if call.is_placement_hint() {
        let same =
            shapes.len() == args.len() && shapes.iter().zip(&args).all(|(s, &a)| s.same_type_and_dims(cx.b.shape(a)));
        return if same { Ok(cx.args.clone()) } else { Err(cx.shape_mismatch("a hint gives what it takes")) };
    }
    if let [only] = &shapes[..] {
        let y = cx.b.push(Op::Foreign(Box::new(call)), &args, only.clone());
        return cx.one_output(y);
    }
    let count = shapes.len();
    let all = cx.b.push(Op::Foreign(Box::new(call)), &args, Shape::Tuple(shapes));
    Ok((0..count).map(|i| Value::Array(cx.b.get_tuple_element(all, i))).collect())
}
