//! StableHLO name and attributes of an instruction's operation.
use crate::hlo::attrs::{ConvDims, DotDims, ForeignOp, GatherDims, ScatterDims, WindowDim};
use crate::hlo::groups;
use crate::hlo::proto::quoted;
use crate::hlo::schema::{self, FieldValue};
use crate::hlo::stablehlo::attributes::OPERATIONS;
use crate::hlo::{Inst, Op, Shape};
use crate::scalar::{CompareKind, ScalarOp};
use std::fmt::Display;

type Attributes = Vec<(&'static str, String)>;
type PrintResult<T> = Result<T, String>;

/// Reason for rejecting an op that StableHLO does not have.
const NO_OPERATION: &str = "it has no such operation";

/// Name and attributes of an instruction's operation; the error tells what StableHLO lacks.
pub(super) fn operation_of(inst: &Inst, operands: &[&Shape]) -> PrintResult<(String, Attributes)> {
    let mut attrs = Attributes::new();
    let mut put = |name: &'static str, value: String| attrs.push((name, value));
    let name = match &inst.op {
        Op::Elementwise(op) => return Ok(pointwise(*op)),
        Op::Foreign(call) => {
            let attrs = call.attrs.iter().chain(&inst.extra).cloned().collect();
            return foreign(&ForeignOp { attrs, ..(**call).clone() }, operands, &inst.shape);
        }
        Op::Bitcast if has_same_elements(inst, operands) => "reshape",
        Op::Slice(dims) => {
            put("start_indices", array(dims.iter().map(|d| d.start)));
            put("limit_indices", array(dims.iter().map(|d| d.limit)));
            put("strides", array(dims.iter().map(|d| d.stride)));
            "slice"
        }
        Op::Pad(dims) => {
            put("edge_padding_low", array(dims.iter().map(|d| d.low)));
            put("edge_padding_high", array(dims.iter().map(|d| d.high)));
            put("interior_padding", array(dims.iter().map(|d| d.interior)));
            "pad"
        }
        Op::Gather(dims) => {
            gather(dims, &mut attrs);
            "gather"
        }
        Op::Scatter { dims, .. } => {
            scatter(dims, &mut attrs);
            "scatter"
        }
        Op::ReduceWindow { window, .. } => {
            reduction_window(window, &mut attrs)?;
            "reduce_window"
        }
        Op::SelectAndScatter { window, .. } => {
            selection_window(window, &mut attrs)?;
            "select_and_scatter"
        }
        Op::Sort { dim, is_stable, .. } => {
            put("dimension", int(*dim));
            put("is_stable", is_stable.to_string());
            "sort"
        }
        Op::TopK { k, largest: true, .. } => {
            put("k", int(*k));
            return Ok(("chlo.top_k".to_string(), attrs));
        }
        Op::Dot(dims) => {
            dot(dims, &mut attrs);
            "dot_general"
        }
        Op::Convolution(conv) => {
            convolution(conv, &mut attrs);
            "convolution"
        }
        Op::Rng { normal } => {
            let kind = if *normal { "NORMAL" } else { "UNIFORM" };
            put("rng_distribution", format!("#stablehlo<rng_distribution {kind}>"));
            "rng"
        }
        Op::RngBitGenerator { algorithm } => {
            let name = algorithm.trim_start_matches("rng_").to_uppercase();
            put("rng_algorithm", format!("#stablehlo<rng_algorithm {name}>"));
            "rng_bit_generator"
        }
        Op::AfterAll | Op::Constant(_) => "after_all",
        // These are parsed, but never printed.
        Op::TopK { .. } | Op::GetTupleElement(_) | Op::SetDimensionSize(_) => return Err(NO_OPERATION.to_string()),
        other => return by_schema(other),
    };
    Ok((format!("stablehlo.{name}"), attrs))
}

/// Name and attributes of an op that the table of opcodes describes completely.
fn by_schema(op: &Op) -> PrintResult<(String, Attributes)> {
    let opcode = op.name();
    if !OPERATIONS.contains(&opcode) {
        return Err(NO_OPERATION.to_string());
    }
    let name = match opcode {
        "broadcast" => "broadcast_in_dim".to_string(),
        "opt-barrier" => "optimization_barrier".to_string(),
        other => other.replace('-', "_"),
    };
    let (own, mut attrs) = (schema::attributes_of(op), Attributes::new());
    for (attribute, value, _) in own.iter() {
        let stable = match (opcode, attribute) {
            ("broadcast", "dimensions") => "broadcast_dimensions",
            ("transpose", "dimensions") => "permutation",
            ("concatenate" | "get-dimension-size", "dimensions") => "dimension",
            (_, "dynamic_slice_sizes") => "slice_sizes",
            (_, other) => other,
        };
        let text = match value {
            FieldValue::Bool(b) => b.to_string(),
            FieldValue::Int(n) => int(n),
            FieldValue::Float(v) => format!("0x{:08X} : f32", (*v as f32).to_bits()),
            FieldValue::Ints(all) if stable == "dimension" => int(all.first().copied().unwrap_or(0)),
            FieldValue::Ints(all) => array(all),
            FieldValue::Word(word) => format!("#stablehlo<{} {word}>", attribute.trim_end_matches("_a")),
            // Computations are printed as regions.
            FieldValue::Comp(_) | FieldValue::Comps(_) => continue,
            FieldValue::Window(_)
            | FieldValue::Labels(_)
            | FieldValue::Slices(_)
            | FieldValue::Pads(_)
            | FieldValue::Metadata(_)
            | FieldValue::Text => return Err(format!("`{attribute}` has no form in it")),
        };
        attrs.push((stable, text));
    }
    Ok((format!("stablehlo.{name}"), attrs))
}

/// Whether a bitcast between row-major arrays changes sizes only.
fn has_same_elements(inst: &Inst, operands: &[&Shape]) -> bool {
    let plain = |s: &Shape| {
        let array = s.as_array()?;
        let rows = (0..array.rank() as i64).rev();
        let is_plain = array.layout.as_ref().is_none_or(|l| {
            l.properties.is_empty() && (l.minor_to_major.is_empty() || l.minor_to_major.iter().copied().eq(rows))
        });
        is_plain.then_some((array.dtype, array.elements()))
    };
    let own = plain(&inst.shape);
    own.is_some() && operands.first().and_then(|s| plain(s)) == own
}

fn pointwise(op: ScalarOp) -> (String, Attributes) {
    let dialect = if op == ScalarOp::Erf { "chlo" } else { "stablehlo" };
    let attrs = match op {
        ScalarOp::Compare(direction, kind) => {
            let mut attrs =
                vec![("comparison_direction", format!("#stablehlo<comparison_direction {}>", direction.name()))];
            if kind == CompareKind::Total {
                attrs.push(("compare_type", "#stablehlo<comparison_type TOTALORDER>".to_string()));
            }
            attrs
        }
        ScalarOp::ReducePrecision { exponent_bits, mantissa_bits } => {
            vec![
                ("exponent_bits", format!("{exponent_bits} : i32")),
                ("mantissa_bits", format!("{mantissa_bits} : i32")),
            ]
        }
        _ => Vec::new(),
    };
    (format!("{dialect}.{}", op.name().replace('-', "_")), attrs)
}

fn int(value: impl Display) -> String {
    format!("{value} : i64")
}

fn array(values: impl IntoIterator<Item = impl Display>) -> String {
    let all: Vec<String> = values.into_iter().map(|v| v.to_string()).collect();
    if all.is_empty() { "array<i64>".to_string() } else { format!("array<i64: {}>", all.join(", ")) }
}

fn list(values: &[usize]) -> String {
    format!("[{}]", values.iter().map(usize::to_string).collect::<Vec<_>>().join(", "))
}

fn padding(window: &[WindowDim]) -> String {
    let rows: Vec<String> = window.iter().map(|w| format!("[{}, {}]", w.pad_low, w.pad_high)).collect();
    let text = if rows.is_empty() { String::new() } else { format!("[{}]", rows.join(", ")) };
    format!("dense<{text}> : tensor<{}x2xi64>", window.len())
}

fn reduction_window(window: &[WindowDim], attrs: &mut Attributes) -> PrintResult<()> {
    if window.iter().any(|w| w.reversal) {
        return Err("its window is applied backwards".to_string());
    }
    attrs.extend([
        ("window_dimensions", array(window.iter().map(|w| w.size))),
        ("window_strides", array(window.iter().map(|w| w.stride))),
        ("base_dilations", array(window.iter().map(|w| w.lhs_dilate))),
        ("window_dilations", array(window.iter().map(|w| w.rhs_dilate))),
        ("padding", padding(window)),
    ]);
    Ok(())
}

fn selection_window(window: &[WindowDim], attrs: &mut Attributes) -> PrintResult<()> {
    if window.iter().any(|w| w.reversal || w.lhs_dilate != 1 || w.rhs_dilate != 1) {
        return Err("its window is dilated or applied backwards".to_string());
    }
    attrs.extend([
        ("window_dimensions", array(window.iter().map(|w| w.size))),
        ("window_strides", array(window.iter().map(|w| w.stride))),
        ("padding", padding(window)),
    ]);
    Ok(())
}

fn dot(dims: &DotDims, attrs: &mut Attributes) {
    let text = format!(
        "#stablehlo.dot<lhs_batching_dimensions = {}, rhs_batching_dimensions = {}, lhs_contracting_dimensions = {}, rhs_contracting_dimensions = {}>",
        list(&dims.lhs_batch),
        list(&dims.rhs_batch),
        list(&dims.lhs_contracting),
        list(&dims.rhs_contracting)
    );
    attrs.push(("dot_dimension_numbers", text));
}

fn convolution(conv: &ConvDims, attrs: &mut Attributes) {
    let axes = |(a, a_name): (usize, &str), (b, b_name): (usize, &str), spatial: &[usize]| {
        let mut names = vec![String::new(); spatial.len() + 2];
        let all = spatial.iter().enumerate().map(|(i, &axis)| (axis, i.to_string()));
        for (axis, name) in all.chain([(a, a_name.to_string()), (b, b_name.to_string())]) {
            if let Some(place) = names.get_mut(axis) {
                *place = name;
            }
        }
        format!("[{}]", names.join(", "))
    };
    let text = format!(
        "#stablehlo.conv<{}x{}->{}>",
        axes((conv.input_batch, "b"), (conv.input_feature, "f"), &conv.input_spatial),
        axes((conv.kernel_input_feature, "i"), (conv.kernel_output_feature, "o"), &conv.kernel_spatial),
        axes((conv.output_batch, "b"), (conv.output_feature, "f"), &conv.output_spatial)
    );
    let reversed: Vec<String> = conv.window.iter().map(|w| w.reversal.to_string()).collect();
    let reversed = if reversed.is_empty() { "array<i1>".into() } else { format!("array<i1: {}>", reversed.join(", ")) };
    attrs.extend([
        ("batch_group_count", int(conv.batch_group_count)),
        ("dimension_numbers", text),
        ("feature_group_count", int(conv.feature_group_count)),
        ("lhs_dilation", array(conv.window.iter().map(|w| w.lhs_dilate))),
        ("padding", padding(&conv.window)),
        ("rhs_dilation", array(conv.window.iter().map(|w| w.rhs_dilate))),
        ("window_reversal", reversed),
        ("window_strides", array(conv.window.iter().map(|w| w.stride))),
    ]);
}

fn gather(dims: &GatherDims, attrs: &mut Attributes) {
    let text = format!(
        "#stablehlo.gather<offset_dims = {}, collapsed_slice_dims = {}, operand_batching_dims = {}, start_indices_batching_dims = {}, start_index_map = {}, index_vector_dim = {}>",
        list(&dims.offset_dims),
        list(&dims.collapsed_slice_dims),
        list(&dims.operand_batching_dims),
        list(&dims.start_indices_batching_dims),
        list(&dims.start_index_map),
        dims.index_vector_dim
    );
    attrs.extend([
        ("dimension_numbers", text),
        ("indices_are_sorted", dims.indices_are_sorted.to_string()),
        ("slice_sizes", array(&dims.slice_sizes)),
    ]);
}

fn scatter(dims: &ScatterDims, attrs: &mut Attributes) {
    let text = format!(
        "#stablehlo.scatter<update_window_dims = {}, inserted_window_dims = {}, input_batching_dims = {}, scatter_indices_batching_dims = {}, scatter_dims_to_operand_dims = {}, index_vector_dim = {}>",
        list(&dims.update_window_dims),
        list(&dims.inserted_window_dims),
        list(&dims.input_batching_dims),
        list(&dims.scatter_indices_batching_dims),
        list(&dims.scatter_dims_to_operand_dims),
        dims.index_vector_dim
    );
    attrs.extend([
        ("indices_are_sorted", dims.indices_are_sorted.to_string()),
        ("scatter_dimension_numbers", text),
        ("unique_indices", dims.unique_indices.to_string()),
    ]);
}

/// Name and attributes of foreign opcodes: functions of CHLO, collectives, custom calls.
fn foreign(call: &ForeignOp, operands: &[&Shape], result: &Shape) -> PrintResult<(String, Attributes)> {
    let name = call.opcode.replace('-', "_");
    match call.opcode.as_str() {
        "acos" | "acosh" | "asin" | "asinh" | "atanh" | "cosh" | "sinh" => Ok((format!("chlo.{name}"), Vec::new())),
        "custom-call" => custom_call(call, result),
        _ if groups::is_collective(&call.opcode) => {
            let name = if call.opcode == "collective-broadcast" { "collective_broadcast".to_string() } else { name };
            Ok((format!("stablehlo.{name}"), collective(call, operands)?))
        }
        _ => Err(NO_OPERATION.to_string()),
    }
}

fn custom_call(call: &ForeignOp, result: &Shape) -> PrintResult<(String, Attributes)> {
    let version = match call.attr("api_version") {
        None => 1,
        Some("API_VERSION_STATUS_RETURNING") => 2,
        Some("API_VERSION_STATUS_RETURNING_UNIFIED") => 3,
        Some("API_VERSION_TYPED_FFI") => 4,
        Some(other) => return Err(format!("its interface is `{other}`")),
    };
    if !call.calls.is_empty() {
        return Err("it calls computations".to_string());
    }
    let text = |name: &str| call.attrs.iter().find(|a| a.0 == name).map(|a| a.1.clone());
    let target = call.attr("custom_call_target").unwrap_or_default();
    let mut attrs = vec![("call_target_name", quoted(target.as_bytes())), ("api_version", format!("{version} : i32"))];
    attrs.extend(text("backend_config").map(|config| ("backend_config", config)));
    if call.attr("custom_call_has_side_effect") == Some("true") {
        attrs.push(("has_side_effect", "true".to_string()));
    }
    if let Some(given) = call.operand_layouts() {
        let given = given.map_err(|_| "its layouts are no shapes")?;
        let mut made = Vec::new();
        super::leaves(result, &mut made);
        attrs.push(("operand_layouts", layouts(given.iter())));
        attrs.push(("result_layouts", layouts(made.into_iter())));
    }
    Ok(("stablehlo.custom_call".to_string(), attrs))
}

/// Layouts of arrays, from the fastest to the slowest axis.
fn layouts<'s>(shapes: impl Iterator<Item = &'s Shape>) -> String {
    let one = |shape: &Shape| {
        let Some(array) = shape.as_array() else { return "dense<> : tensor<0xindex>".to_string() };
        let told = array.layout.as_ref().map(|l| l.minor_to_major.clone()).filter(|order| order.len() == array.rank());
        let order = told.unwrap_or_else(|| (0..array.rank() as i64).rev().collect());
        let text = order.iter().map(i64::to_string).collect::<Vec<_>>().join(", ");
        let text = if order.is_empty() { text } else { format!("[{text}]") };
        format!("dense<{text}> : tensor<{}xindex>", order.len())
    };
    format!("[{}]", shapes.map(one).collect::<Vec<_>>().join(", "))
}

fn collective(call: &ForeignOp, operands: &[&Shape]) -> PrintResult<Attributes> {
    let lists = if call.opcode == "collective-permute" { "source_target_pairs" } else { "replica_groups" };
    let rows = call.attr(lists).map_or(Some(Vec::new()), groups::parse_groups);
    let rows = rows.ok_or_else(|| format!("`{lists}` are no lists of numbers"))?;
    let widest = rows.iter().map(Vec::len).max().unwrap_or(0);
    let row = |row: &Vec<i64>| {
        let numbers = row.iter().copied().chain(std::iter::repeat(-1)).take(widest);
        format!("[{}]", numbers.map(|n| n.to_string()).collect::<Vec<_>>().join(", "))
    };
    let text =
        if widest == 0 { String::new() } else { format!("[{}]", rows.iter().map(row).collect::<Vec<_>>().join(", ")) };
    let mut attrs = vec![(lists, format!("dense<{text}> : tensor<{}x{widest}xi64>", rows.len()))];
    if let Some(channel) = call.number("channel_id") {
        attrs.push(("channel_handle", format!("#stablehlo.channel_handle<handle = {channel}, type = 1>")));
    }
    if call.attr("use_global_device_ids") == Some("true") {
        attrs.push(("use_global_device_ids", "unit".to_string()));
    }
    let dimension = || call.number("dimensions").ok_or("its dimension is not told");
    match call.opcode.as_str() {
        "all-gather" => attrs.push(("all_gather_dim", int(dimension()?))),
        "reduce-scatter" => attrs.push(("scatter_dimension", int(dimension()?))),
        "all-to-all" => {
            let split = dimension()?;
            if operands.len() != 1 || widest == 0 {
                return Err("its parts are operands of their own, or its groups are not told".to_string());
            }
            attrs.extend([
                ("split_dimension", int(split)),
                ("concat_dimension", int(split)),
                ("split_count", int(widest)),
            ]);
        }
        _ => {}
    }
    Ok(attrs)
}
