//! Text of opaque attributes, which instructions only carry, from the fields of a message.
use super::{ALGORITHMS, API_VERSIONS, PADDINGS, PRECISIONS, SCHEDULES, braces, format_frontend_attributes, word};
use crate::diag::{Code, Error, Result};
use crate::hlo::proto::messages::hlo::HloInstructionProto;
use crate::hlo::proto::messages::xla_data::{
    OpSharding, OutputOperandAliasing, ParameterReplication, ResultAccuracy, result_accuracy,
};
use crate::hlo::proto::scan::quoted;
use crate::hlo::proto::{dims, literal, shape, sharding};
use crate::hlo::text;
use protobuf::MessageField;
use std::collections::HashMap;

/// Text of attribute `name` in a message; `None` if it has its default, which is not written.
pub(in crate::hlo::proto) fn read(
    name: &str,
    p: &HloInstructionProto,
    names: &HashMap<i64, &str>,
) -> Result<Option<String>> {
    let text_of = |s: &OpSharding| sharding::read(s);
    let listed = |v: &[i64]| (!v.is_empty()).then(|| braces(v));
    Ok(match name {
        "sharding" => p.sharding.as_ref().map(text_of),
        "frontend_attributes" => {
            p.frontend_attributes.as_ref().filter(|f| !f.map.is_empty()).map(format_frontend_attributes)
        }
        "parameter_replication" => p.parameter_replication.as_ref().map(replication_text),
        "control-predecessors" if !p.control_predecessor_ids.is_empty() => Some(predecessors_text(p, names)?),
        "backend_config" if p.backend_config.starts_with(b"{") => {
            Some(String::from_utf8_lossy(&p.backend_config).into_owned())
        }
        "backend_config" => Some(&p.backend_config).filter(|c| !c.is_empty()).map(|c| quoted(c)),
        "operand_precision" => {
            let all = p.precision_config.as_ref().map_or(&[][..], |c| &c.operand_precision);
            let words: Option<Vec<&str>> = all.iter().map(|&n| word(PRECISIONS, n)).collect();
            words.filter(|_| all.iter().any(|&n| n != 0)).map(|w| format!("{{{}}}", w.join(",")))
        }
        "algorithm" => {
            let number = p.precision_config.as_ref().map_or(0, |c| c.algorithm);
            word(ALGORITHMS, number).filter(|_| number != 0).map(str::to_string)
        }
        "result_accuracy" => p.result_accuracy.as_ref().and_then(accuracy_text),
        "output_to_operand_aliasing" if !p.output_operand_aliasing.is_empty() => {
            let one = |a: &OutputOperandAliasing| {
                let (out, operand) = (braces(&a.output_shape_index), braces(&a.operand_shape_index));
                format!("{out}: ({}, {operand})", a.operand_index)
            };
            Some(format!("{{{}}}", p.output_operand_aliasing.iter().map(one).collect::<Vec<_>>().join(", ")))
        }
        "replica_groups" | "source_target_pairs" | "channel_id" | "use_global_device_ids" => collective_text(name, p),
        "is_composite" => p.is_composite.then(|| "true".to_string()),
        "constrain_layout" => p.constrain_layout.then(|| "true".to_string()),
        "is_host_transfer" => p.is_host_transfer.then(|| "true".to_string()),
        "custom_call_target"
        | "custom_call_has_side_effect"
        | "api_version"
        | "schedule"
        | "padding_type"
        | "operand_layout_constraints"
        | "literal" => custom_call_text(name, p)?,
        "window" => match p.window.as_ref().filter(|w| !w.dimensions.is_empty()) {
            Some(w) => Some(text::print_window(&dims::read_window(w)?)),
            None => None,
        },
        "dim_labels" => match p.convolution_dimension_numbers.as_ref() {
            Some(d) => Some(text::print_dim_labels(&dims::read_convolution::<u64>(d)?)),
            None => None,
        },
        "feature_group_count" => (p.feature_group_count > 1).then(|| p.feature_group_count.to_string()),
        "batch_group_count" => (p.batch_group_count > 1).then(|| p.batch_group_count.to_string()),
        "infeed_config" => Some(&p.infeed_config).filter(|c| !c.is_empty()).map(|c| quoted(c)),
        "outfeed_config" => Some(&p.outfeed_config).filter(|c| !c.is_empty()).map(|c| quoted(c)),
        "outfeed_shape" => p.outfeed_shape.as_ref().map(|s| shape::read(s).map(|s| s.to_string())).transpose()?,
        "delta" => Some(p.delta.to_string()),
        "inferred_dimension" => p.dimensions.first().map(i64::to_string),
        "dimensions" => listed(&p.dimensions),
        "num_carries" => (p.num_carries != 0).then(|| p.num_carries.to_string()),
        "is_reverse" => p.is_reverse.then(|| "true".to_string()),
        "is_associative" => (p.is_associative != 0).then(|| (p.is_associative == 1).to_string()),
        "async_execution_thread" => {
            let thread = &p.async_execution_thread;
            (!thread.is_empty() && thread != "main").then(|| quoted(thread.as_bytes()))
        }
        "cross_program_prefetch_index" => p.cross_program_prefetch_index.map(|i| i.to_string()),
        "domain" => Some(domain_text(p)),
        "lhs_batch_dims"
        | "rhs_batch_dims"
        | "lhs_contracting_dims"
        | "rhs_contracting_dims"
        | "lhs_ragged_dims"
        | "rhs_group_dims" => dot_text(name, p),
        _ => None,
    })
}

/// Text of the attribute `parameter_replication`.
fn replication_text(p: &ParameterReplication) -> String {
    let all: Vec<String> = p.replicated_at_leaf_buffers.iter().map(bool::to_string).collect();
    format!("{{{}}}", all.join(","))
}

/// Text of the attribute `control-predecessors`.
fn predecessors_text(p: &HloInstructionProto, names: &HashMap<i64, &str>) -> Result<String> {
    let one = |id: &i64| names.get(id).map(|n| format!("%{n}"));
    let all: Option<Vec<String>> = p.control_predecessor_ids.iter().map(one).collect();
    let all = all.ok_or_else(|| Error::user(Code::BadEncoding, "a control predecessor does not exist"))?;
    Ok(format!("{{{}}}", all.join(", ")))
}

/// Text of the attribute `domain`.
fn domain_text(p: &HloInstructionProto) -> String {
    let part = |s: &MessageField<OpSharding>| s.as_ref().map_or_else(|| "{}".to_string(), sharding::read);
    // The message calls `exit` what the text calls `entry`, on the side of the users.
    let (entry, exit) = (part(&p.domain_exit_sharding), part(&p.domain_entry_sharding));
    format!("{{kind=\"sharding\", entry={entry}, exit={exit}}}")
}

/// Text of an attribute of collectives; `None` for its default.
fn collective_text(name: &str, p: &HloInstructionProto) -> Option<String> {
    match name {
        "replica_groups" => groups_text(p),
        "source_target_pairs" if !p.source_target_pairs.is_empty() => {
            let pairs = p.source_target_pairs.iter().map(|x| format!("{{{},{}}}", x.source, x.target));
            Some(format!("{{{}}}", pairs.collect::<Vec<_>>().join(",")))
        }
        "channel_id" => (p.channel_id != 0).then(|| p.channel_id.to_string()),
        "use_global_device_ids" => p.use_global_device_ids.then(|| "true".to_string()),
        _ => None,
    }
}

/// Text of an attribute of custom calls; errors as for [`read`].
fn custom_call_text(name: &str, p: &HloInstructionProto) -> Result<Option<String>> {
    Ok(match name {
        "custom_call_target" => Some(quoted(p.custom_call_target.as_bytes())),
        "custom_call_has_side_effect" => p.custom_call_has_side_effect.then(|| "true".to_string()),
        "api_version" => {
            word(API_VERSIONS, p.custom_call_api_version).filter(|_| p.custom_call_api_version > 1).map(str::to_string)
        }
        "schedule" => {
            word(SCHEDULES, p.custom_call_schedule).filter(|_| p.custom_call_schedule != 0).map(str::to_string)
        }
        "padding_type" => word(PADDINGS, p.padding_type).filter(|_| p.padding_type != 0).map(str::to_string),
        "operand_layout_constraints" if p.constrain_layout => {
            let shapes = p.operand_shapes_with_layout.iter().map(|s| shape::read(s).map(|s| s.to_string()));
            Some(format!("{{{}}}", shapes.collect::<Result<Vec<_>>>()?.join(", ")))
        }
        "literal" => match p.literal.as_ref() {
            Some(l) => {
                let shape = l.shape.as_ref().map(shape::read).transpose()?;
                let shape = shape.map_or_else(String::new, |s| s.to_string());
                Some(format!("{shape} {}", text::print_literal(&literal::read(l)?)))
            }
            None => None,
        },
        _ => None,
    })
}

/// Text of the dimension numbers of a dot product.
fn dot_text(name: &str, p: &HloInstructionProto) -> Option<String> {
    let dot = match p.opcode.as_str() {
        "ragged-dot" => p.ragged_dot_dimension_numbers.as_ref().and_then(|r| r.dot_dimension_numbers.as_ref()),
        _ => p.dot_dimension_numbers.as_ref(),
    };
    let listed = |v: &[i64]| (!v.is_empty()).then(|| braces(v));
    match name {
        "lhs_batch_dims" => dot.and_then(|d| listed(&d.lhs_batch_dimensions)),
        "rhs_batch_dims" => dot.and_then(|d| listed(&d.rhs_batch_dimensions)),
        "lhs_contracting_dims" => dot.and_then(|d| listed(&d.lhs_contracting_dimensions)),
        "rhs_contracting_dims" => dot.and_then(|d| listed(&d.rhs_contracting_dimensions)),
        "lhs_ragged_dims" => p.ragged_dot_dimension_numbers.as_ref().and_then(|d| listed(&d.lhs_ragged_dimensions)),
        "rhs_group_dims" => p.ragged_dot_dimension_numbers.as_ref().and_then(|d| listed(&d.rhs_group_dimensions)),
        _ => None,
    }
}

fn accuracy_text(p: &ResultAccuracy) -> Option<String> {
    match p.specs.as_ref()? {
        result_accuracy::Specs::Mode(0) => None,
        result_accuracy::Specs::Mode(_) => Some("{mode=highest}".to_string()),
        result_accuracy::Specs::Tolerance(t) => {
            Some(format!("{{tolerance={{atol={:?}, rtol={:?}, ulps={}}}}}", t.atol, t.rtol, t.ulps))
        }
    }
}

fn groups_text(p: &HloInstructionProto) -> Option<String> {
    let list = p.collective_device_list.as_ref();
    let iota = p.iota_collective_device_list.as_ref();
    if let Some(i) = iota.or_else(|| list.and_then(|l| l.iota_replica_group_list.as_ref())) {
        let reshape: Vec<String> = i.iota_reshape_dims.iter().map(i64::to_string).collect();
        let plain = i.iota_transpose_perm.iter().enumerate().all(|(at, &d)| at as i32 == d);
        let perm: Vec<String> = i.iota_transpose_perm.iter().map(i32::to_string).collect();
        let turned = if plain { String::new() } else { format!("T({})", perm.join(",")) };
        return Some(format!(
            "[{},{}]<=[{}]{turned}",
            i.num_replica_groups,
            i.num_devices_per_group,
            reshape.join(",")
        ));
    }
    let groups = list.map_or(&p.replica_groups, |l| &l.replica_groups);
    if list.is_none() && groups.is_empty() {
        return None;
    }
    Some(format!("{{{}}}", groups.iter().map(|g| braces(&g.replica_ids)).collect::<Vec<_>>().join(",")))
}
