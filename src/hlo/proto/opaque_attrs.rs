//! Parsing of opaque attributes, which instructions only carry, to fields of a message; `attribute_text` has the other
//! direction.
mod attribute_text;

use std::collections::HashMap;

use protobuf::MessageField;

use super::messages::hlo::HloInstructionProto;
use super::messages::xla_data::{
    CollectiveDeviceListProto, DotDimensionNumbers, FrontendAttributes, IotaReplicaGroupListProto,
    OutputOperandAliasing, ParameterReplication, RaggedDotDimensionNumbers, ReplicaGroup, ResultAccuracy, SourceTarget,
    result_accuracy,
};
use super::scan::{TextCursor, escape};
use super::{dims, literal, shape, sharding};
use crate::diag::{Code, Error, Result};
use crate::hlo::text;
pub(super) use attribute_text::read;

/// Names of XLA's `PrecisionConfig.Precision`, by number.
const PRECISIONS: &[&str] = &["default", "high", "highest"];
/// Names of XLA's `PrecisionConfig.Algorithm`, by number.
const ALGORITHMS: &[&str] = &[
    "unset",
    "dot_any_f8_any_f8_f32",
    "dot_any_f8_any_f8_f32_fast_accum",
    "dot_f16_f16_f16",
    "dot_f16_f16_f32",
    "dot_bf16_bf16_bf16",
    "dot_bf16_bf16_f32",
    "dot_bf16_bf16_f32_x3",
    "dot_bf16_bf16_f32_x6",
    "dot_tf32_tf32_f32",
    "dot_tf32_tf32_f32_x3",
    "dot_f32_f32_f32",
    "dot_f64_f64_f64",
    "dot_bf16_bf16_f32_x9",
];
const SCHEDULES: &[&str] = &["SCHEDULE_NONE", "SCHEDULE_LATEST", "SCHEDULE_EARLIEST"];
const PADDINGS: &[&str] = &["PADDING_INVALID", "PADDING_VALID", "PADDING_SAME"];
const API_VERSIONS: &[&str] = &[
    "API_VERSION_UNSPECIFIED",
    "API_VERSION_ORIGINAL",
    "API_VERSION_STATUS_RETURNING",
    "API_VERSION_STATUS_RETURNING_UNIFIED",
    "API_VERSION_TYPED_FFI",
];

fn number(words: &[&str], text: &str) -> Result<i32> {
    let found = words.iter().position(|w| w.eq_ignore_ascii_case(text.trim()));
    found
        .map(|i| i as i32)
        .ok_or_else(|| Error::user(Code::HloUnsupported, format!("`{text}` is none of {}", words.join(", "))))
}

fn word<'a>(words: &[&'a str], number: i32) -> Option<&'a str> {
    usize::try_from(number).ok().and_then(|i| words.get(i).copied())
}

fn flag(text: &str) -> bool {
    matches!(text.trim(), "true" | "1")
}

fn int(text: &str) -> Result<i64> {
    TextCursor::new(text).int()
}

/// Writes attribute `name` with text `value` into its field; `ids` has the instructions of the computation by name.
///
/// Errors: `Code::HloUnsupported` for attributes whose messages are not supported.
pub(super) fn write(name: &str, value: &str, ids: &HashMap<&str, i64>, p: &mut HloInstructionProto) -> Result<()> {
    match name {
        "sharding" => p.sharding = MessageField::some(sharding::write(value)?),
        "frontend_attributes" => p.frontend_attributes = MessageField::some(parse_frontend_attributes(value)?),
        "parameter_replication" => {
            let all: Vec<bool> = value.trim_matches(['{', '}', ' ']).split(',').map(flag).collect();
            let replication = ParameterReplication { replicated_at_leaf_buffers: all, ..Default::default() };
            p.parameter_replication = MessageField::some(replication);
        }
        "control-predecessors" => {
            for part in value.trim_matches(['{', '}', ' ']).split(',') {
                let part = part.trim().trim_start_matches('%');
                let id = ids.get(part).ok_or_else(|| TextCursor::new(value).expected_error("instructions"))?;
                p.control_predecessor_ids.push(*id);
            }
        }
        "backend_config" if value.starts_with('"') => p.backend_config = TextCursor::new(value).quoted()?,
        "backend_config" => p.backend_config = value.as_bytes().to_vec(),
        "operand_precision" => {
            let words = value.trim_matches(['{', '}', ' ']).split(',').filter(|w| !w.trim().is_empty());
            let all = words.map(|w| number(PRECISIONS, w)).collect::<Result<_>>()?;
            p.precision_config.mut_or_insert_default().operand_precision = all;
        }
        "algorithm" => p.precision_config.mut_or_insert_default().algorithm = number(ALGORITHMS, value)?,
        "result_accuracy" => p.result_accuracy = MessageField::some(accuracy(value)?),
        "is_composite" => p.is_composite = flag(value),
        "output_to_operand_aliasing" => p.output_operand_aliasing = aliasing(value)?,
        "inferred_dimension" => p.dimensions = vec![int(value)?],
        "replica_groups" => replica_groups(value, p)?,
        "source_target_pairs" => {
            for pair in lists(value)? {
                let [source, target] = pair[..] else { return Err(TextCursor::new(value).expected_error("pairs")) };
                p.source_target_pairs.push(SourceTarget { source, target, ..Default::default() });
            }
        }
        "channel_id" => p.channel_id = int(value)?,
        "use_global_device_ids" => p.use_global_device_ids = flag(value),
        "constrain_layout" => p.constrain_layout = flag(value),
        "is_host_transfer" => p.is_host_transfer = flag(value),
        "custom_call_target"
        | "custom_call_has_side_effect"
        | "api_version"
        | "schedule"
        | "padding_type"
        | "operand_layout_constraints"
        | "literal" => write_custom_call(name, value, p)?,
        "window" => p.window = MessageField::some(dims::write_window(&text::parse_window(value)?)),
        "dim_labels" => {
            let labels = text::parse_dim_labels(value)?;
            p.convolution_dimension_numbers = MessageField::some(dims::write_convolution(&labels));
        }
        "feature_group_count" => p.feature_group_count = int(value)?,
        "batch_group_count" => p.batch_group_count = int(value)?,
        "infeed_config" => p.infeed_config = TextCursor::new(value).quoted()?,
        "outfeed_config" => p.outfeed_config = TextCursor::new(value).quoted()?,
        "outfeed_shape" => {
            let shapes = text::parse_shapes(value)?;
            p.outfeed_shape = MessageField::from_option(shapes.first().map(shape::write).transpose()?);
        }
        "delta" => p.delta = int(value)?,
        "dimensions" => p.dimensions = TextCursor::new(value).ints('{', '}')?,
        "num_carries" => p.num_carries = int(value)?,
        "is_reverse" => p.is_reverse = flag(value),
        "is_associative" => p.is_associative = if flag(value) { 1 } else { 2 },
        "async_execution_thread" => p.async_execution_thread = string(value)?,
        "cross_program_prefetch_index" => p.cross_program_prefetch_index = Some(int(value)? as i32),
        "domain" => domain(value, p)?,
        "lhs_batch_dims" => dot(p).lhs_batch_dimensions = TextCursor::new(value).ints('{', '}')?,
        "rhs_batch_dims" => dot(p).rhs_batch_dimensions = TextCursor::new(value).ints('{', '}')?,
        "lhs_contracting_dims" => dot(p).lhs_contracting_dimensions = TextCursor::new(value).ints('{', '}')?,
        "rhs_contracting_dims" => dot(p).rhs_contracting_dimensions = TextCursor::new(value).ints('{', '}')?,
        "lhs_ragged_dims" => ragged(p).lhs_ragged_dimensions = TextCursor::new(value).ints('{', '}')?,
        "rhs_group_dims" => ragged(p).rhs_group_dimensions = TextCursor::new(value).ints('{', '}')?,
        _ => {
            let told = format!("the attribute {name}={value} is not written to messages");
            return Err(Error::user(Code::HloUnsupported, told));
        }
    }
    Ok(())
}

/// Writes an attribute of custom calls into its field.
fn write_custom_call(name: &str, value: &str, p: &mut HloInstructionProto) -> Result<()> {
    match name {
        "custom_call_target" => p.custom_call_target = string(value)?,
        "custom_call_has_side_effect" => p.custom_call_has_side_effect = flag(value),
        "api_version" => p.custom_call_api_version = number(API_VERSIONS, value)?,
        "schedule" => p.custom_call_schedule = number(SCHEDULES, value)?,
        "padding_type" => p.padding_type = number(PADDINGS, value)?,
        "operand_layout_constraints" => {
            p.constrain_layout = true;
            let shapes = text::parse_shapes(inner(value))?;
            p.operand_shapes_with_layout = shapes.iter().map(shape::write).collect::<Result<_>>()?;
        }
        "literal" => {
            let (value, shape) = text::parse_literal(value)?;
            p.literal = MessageField::some(literal::write(&value, &shape)?);
        }
        _ => {}
    }
    Ok(())
}

fn inner(value: &str) -> &str {
    let value = value.trim();
    value.strip_prefix('{').and_then(|v| v.strip_suffix('}')).unwrap_or(value)
}

fn string(value: &str) -> Result<String> {
    let bytes = TextCursor::new(value).quoted()?;
    String::from_utf8(bytes).map_err(|_| Error::user(Code::HloSyntax, format!("{value} is not UTF-8")))
}

fn ragged(p: &mut HloInstructionProto) -> &mut RaggedDotDimensionNumbers {
    p.ragged_dot_dimension_numbers.mut_or_insert_default()
}

fn dot(p: &mut HloInstructionProto) -> &mut DotDimensionNumbers {
    match p.opcode.as_str() {
        "ragged-dot" => ragged(p).dot_dimension_numbers.mut_or_insert_default(),
        _ => p.dot_dimension_numbers.mut_or_insert_default(),
    }
}

/// Parses frontend attributes, `{key="value",other="..."}`.
pub(super) fn parse_frontend_attributes(value: &str) -> Result<FrontendAttributes> {
    let mut out = FrontendAttributes::new();
    let mut s = TextCursor::new(value);
    s.expect('{')?;
    while !s.eat('}') {
        let key =
            if s.is_next('"') { String::from_utf8_lossy(&s.quoted()?).into_owned() } else { s.word().to_string() };
        s.expect('=')?;
        let bytes = if s.is_next('{') { s.braces()?.as_bytes().to_vec() } else { s.quoted()? };
        out.map.insert(key, String::from_utf8_lossy(&bytes).into_owned());
        s.eat(',');
    }
    Ok(out)
}

/// Text of frontend attributes, sorted by key.
pub(super) fn format_frontend_attributes(p: &FrontendAttributes) -> String {
    let mut keys: Vec<&String> = p.map.keys().collect();
    keys.sort();
    let parts = keys.into_iter().map(|k| {
        let value = &p.map[k];
        if value.starts_with('{') { format!("{k}={value}") } else { format!("{k}=\"{}\"", escape(value.as_bytes())) }
    });
    format!("{{{}}}", parts.collect::<Vec<_>>().join(","))
}

fn accuracy(value: &str) -> Result<ResultAccuracy> {
    let mut s = TextCursor::new(value);
    s.expect('{')?;
    if s.eat_text("mode=") {
        let mode = i32::from(s.word().eq_ignore_ascii_case("highest"));
        return Ok(ResultAccuracy { specs: Some(result_accuracy::Specs::Mode(mode)), ..Default::default() });
    }
    let mut t = result_accuracy::Tolerance::new();
    if !s.eat_text("tolerance={") {
        return Err(s.expected_error("a tolerance"));
    }
    while !s.eat('}') {
        let name = s.word();
        s.expect('=')?;
        let text = s.number();
        let number: f64 = text.parse().map_err(|_| s.expected_error("a number"))?;
        match name {
            "atol" => t.atol = number,
            "rtol" => t.rtol = number,
            "ulps" => t.ulps = number as i64,
            _ => return Err(s.expected_error("atol, rtol or ulps")),
        }
        s.eat(',');
    }
    Ok(ResultAccuracy { specs: Some(result_accuracy::Specs::Tolerance(t)), ..Default::default() })
}

/// Parses operand aliasing, `{{0}: (1, {}), {}: (0, {1})}`.
fn aliasing(value: &str) -> Result<Vec<OutputOperandAliasing>> {
    let mut s = TextCursor::new(value);
    s.expect('{')?;
    let mut out = Vec::new();
    while !s.eat('}') {
        let output_shape_index = s.ints('{', '}')?;
        s.expect(':')?;
        s.expect('(')?;
        let operand_index = s.int()?;
        s.expect(',')?;
        let operand_shape_index = s.ints('{', '}')?;
        s.expect(')')?;
        s.eat(',');
        out.push(OutputOperandAliasing {
            output_shape_index,
            operand_index,
            operand_shape_index,
            ..Default::default()
        });
    }
    Ok(out)
}

/// Parses lists, `{{0,1},{2,3}}`.
fn lists(value: &str) -> Result<Vec<Vec<i64>>> {
    let mut s = TextCursor::new(value);
    s.expect('{')?;
    let mut out = Vec::new();
    while !s.eat('}') {
        out.push(s.ints('{', '}')?);
        s.eat(',');
    }
    Ok(out)
}

/// Parses replica groups, `{{0,1},{2,3}}` or `[2,2]<=[4]T(1,0)`.
fn replica_groups(value: &str, p: &mut HloInstructionProto) -> Result<()> {
    let mut s = TextCursor::new(value);
    if !s.is_next('[') {
        let groups = lists(value)?.into_iter().map(|replica_ids| ReplicaGroup { replica_ids, ..Default::default() });
        let list = CollectiveDeviceListProto { replica_groups: groups.collect(), ..Default::default() };
        p.collective_device_list = MessageField::some(list);
        return Ok(());
    }
    let mut iota = IotaReplicaGroupListProto::new();
    let [groups, size] = s.ints('[', ']')?[..] else { return Err(s.expected_error("two sizes")) };
    (iota.num_replica_groups, iota.num_devices_per_group) = (groups, size);
    if !s.eat_text("<=") {
        return Err(s.expected_error("`<=`"));
    }
    iota.iota_reshape_dims = s.ints('[', ']')?;
    iota.iota_transpose_perm = match s.eat('T') {
        true => s.ints('(', ')')?.into_iter().map(|d| d as i32).collect(),
        false => (0..iota.iota_reshape_dims.len() as i32).collect(),
    };
    p.iota_collective_device_list = MessageField::some(iota);
    Ok(())
}

/// Parses a sharding domain, `{kind="sharding", entry={manual}, exit={replicated}}`.
fn domain(value: &str, p: &mut HloInstructionProto) -> Result<()> {
    let mut s = TextCursor::new(value);
    s.expect('{')?;
    while !s.eat('}') {
        match s.word() {
            "kind" => {
                s.expect('=')?;
                s.quoted()?;
            }
            "entry" => {
                s.expect('=')?;
                p.domain_exit_sharding = MessageField::some(sharding::write(s.braces()?)?);
            }
            "exit" => {
                s.expect('=')?;
                p.domain_entry_sharding = MessageField::some(sharding::write(s.braces()?)?);
            }
            _ => return Err(s.expected_error("kind, entry or exit")),
        }
        s.eat(',');
    }
    Ok(())
}

fn braces(v: &[i64]) -> String {
    format!("{{{}}}", v.iter().map(i64::to_string).collect::<Vec<_>>().join(","))
}
