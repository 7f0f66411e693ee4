//! Conversion of a protobuf message to a module.
use std::collections::HashMap;

use super::messages::hlo::{HloComputationProto, HloInstructionProto, HloModuleProto};
use super::messages::xla_data::ProgramShapeProto;
use super::{opaque_attrs, read_op, shape};
use crate::diag::{Code, Error, Result};
use crate::hlo::{CompId, Computation, Inst, InstId, Metadata, Module, Op, Shape};
use crate::util::id_vec::IdVec;

pub(super) fn encoding_error(message: impl Into<String>) -> Error {
    Error::user(Code::BadEncoding, message)
}

/// Module of a message.
pub(super) fn module(p: &HloModuleProto) -> Result<Module> {
    if p.computations.is_empty() {
        return Err(encoding_error("the module has no computations"));
    }
    let mut comp_ids = HashMap::new();
    for (i, comp) in p.computations.iter().enumerate() {
        if comp_ids.insert(comp.id, CompId(i as u32)).is_some() {
            return Err(encoding_error(format!("two computations have the id {}", comp.id)));
        }
    }
    let entry = match comp_ids.get(&p.entry_computation_id) {
        Some(&id) => id,
        None => return Err(encoding_error(format!("there is no computation {}, the entry", p.entry_computation_id))),
    };
    let mut comps = IdVec::new();
    for comp in &p.computations {
        let order = p.schedule.as_ref().and_then(|s| s.sequences.get(&comp.id)).map(|s| &s.instruction_ids[..]);
        comps.push(computation(comp, order, &comp_ids)?);
    }
    let mut module = Module { name: p.name.clone(), comps, entry, extra: Vec::new(), replaceable: false };
    header(p, &mut module)?;
    Ok(module)
}

/// Reads the attributes of the module header.
fn header(p: &HloModuleProto, module: &mut Module) -> Result<()> {
    let mut put = |name: &str, value: String| module.extra.push((name.to_string(), value));
    if p.schedule.is_some() {
        put("is_scheduled", "true".to_string());
    }
    let index = |v: &[i64]| format!("{{{}}}", v.iter().map(i64::to_string).collect::<Vec<_>>().join(","));
    if let Some(all) = p.input_output_alias.as_ref().filter(|a| !a.entries.is_empty()) {
        let one = |e: &super::messages::hlo::hlo_input_output_alias_proto::AliasEntryProto| {
            let kind = if e.kind == 2 { "must-alias" } else { "may-alias" };
            let (out, param) = (index(&e.output_shape_index), index(&e.parameter_shape_index));
            format!("{out}: ({}, {param}, {kind})", e.parameter_number)
        };
        put("input_output_alias", format!("{{ {} }}", all.entries.iter().map(one).collect::<Vec<_>>().join(", ")));
    }
    if let Some(all) = p.buffer_donor.as_ref().filter(|d| !d.entries.is_empty()) {
        let one = |e: &super::messages::hlo::hlo_buffer_donor_proto::BufferDonorEntryProto| {
            format!("({}, {})", e.parameter_number, index(&e.parameter_shape_index))
        };
        put("buffer_donor", format!("{{ {} }}", all.entries.iter().map(one).collect::<Vec<_>>().join(", ")));
    }
    if let Some(devices) = p.device_assignment.as_ref() {
        for (name, count) in [("replica_count", devices.replica_count), ("num_partitions", devices.computation_count)] {
            if count > 1 {
                put(name, count.to_string());
            }
        }
    }
    if let Some(all) = p.frontend_attributes.as_ref().filter(|f| !f.map.is_empty()) {
        put("frontend_attributes", opaque_attrs::format_frontend_attributes(all));
    }
    if let Some(program) = p.host_program_shape.as_ref()
        && let Some(layout) = entry_layout(program, module)?
    {
        module.extra.push(("entry_computation_layout".to_string(), layout));
    }
    Ok(())
}

/// Text of the program's shape, if it differs from that of the entry computation.
fn entry_layout(program: &ProgramShapeProto, module: &Module) -> Result<Option<String>> {
    let params = program.parameters.iter().map(shape::read).collect::<Result<Vec<_>>>()?;
    let result = program
        .result
        .as_ref()
        .map(shape::read)
        .transpose()?
        .ok_or_else(|| encoding_error("the program has no result"))?;
    let entry = module.entry();
    let own = entry.params.iter().map(|&id| &entry[id].shape);
    let same = params.len() == entry.params.len()
        && params.iter().zip(own).all(|(a, b)| is_implied(a, b))
        && is_implied(&result, &entry[entry.root].shape);
    if same {
        return Ok(None);
    }
    let params: Vec<String> = params.iter().map(Shape::to_string).collect();
    Ok(Some(format!("{{({})->{result}}}", params.join(", "))))
}

/// Whether `written` equals `own` with row-major layouts where `own` has none.
fn is_implied(written: &Shape, own: &Shape) -> bool {
    match (written, own) {
        (Shape::Array(a), Shape::Array(b)) if b.layout.is_none() => {
            let plain = a.layout.as_ref().is_none_or(|l| {
                l.properties.is_empty() && l.minor_to_major.iter().rev().enumerate().all(|(i, &d)| d == i as i64)
            });
            plain && a.same_type_and_dims(b) && a.dynamic == b.dynamic
        }
        (Shape::Tuple(a), Shape::Tuple(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_implied(a, b)),
        _ => written == own,
    }
}

/// Computation of a message; `order` is its schedule.
fn computation(p: &HloComputationProto, order: Option<&[i64]>, comp_ids: &HashMap<i64, CompId>) -> Result<Computation> {
    let found: HashMap<i64, &HloInstructionProto> = p.instructions.iter().map(|i| (i.id, i)).collect();
    if found.len() != p.instructions.len() {
        return Err(encoding_error(format!("two instructions of `{}` have one id", p.name)));
    }
    let in_order: Vec<&HloInstructionProto> = match order {
        None => p.instructions.iter().collect(),
        Some(ids) => {
            let all: Option<Vec<_>> = ids.iter().map(|id| found.get(id).copied()).collect();
            let all = all.filter(|all| all.len() == found.len());
            all.ok_or_else(|| {
                encoding_error(format!("the schedule of `{}` names other instructions than it has", p.name))
            })?
        }
    };
    let mut ids: HashMap<i64, InstId> = HashMap::new();
    for (i, inst) in in_order.iter().enumerate() {
        ids.insert(inst.id, InstId(i as u32));
    }
    if ids.len() != in_order.len() {
        return Err(encoding_error(format!("the schedule of `{}` names an instruction twice", p.name)));
    }
    let names: HashMap<i64, &str> = p.instructions.iter().map(|i| (i.id, i.name.as_str())).collect();
    let shapes: Vec<Shape> = in_order.iter().map(|i| instruction_shape(i)).collect::<Result<_>>()?;
    let mut comp = Computation {
        name: p.name.clone(),
        insts: IdVec::new(),
        params: Vec::new(),
        root: InstId(0),
        sizes: Vec::new(),
        size_constants: Vec::new(),
    };
    let mut params = vec![None; in_order.iter().filter(|i| i.opcode == "parameter").count()];
    for (i, inst) in in_order.iter().enumerate() {
        let made = instruction(inst, &shapes, i, &ids, comp_ids, &names)
            .map_err(|e| e.map(|d| d.at_node(&inst.name, &inst.opcode)))?;
        if let Op::Parameter(n) = made.op {
            let place = params
                .get_mut(n)
                .ok_or_else(|| encoding_error(format!("the parameters of `{}` have a gap", p.name)))?;
            *place = Some(InstId(i as u32));
        }
        comp.insts.push(made);
    }
    let params: Option<Vec<InstId>> = params.into_iter().collect();
    comp.params = params.ok_or_else(|| encoding_error(format!("a parameter of `{}` is missing", p.name)))?;
    comp.root = *ids.get(&p.root_id).ok_or_else(|| encoding_error(format!("the root of `{}` is missing", p.name)))?;
    Ok(comp)
}

fn instruction_shape(p: &HloInstructionProto) -> Result<Shape> {
    match p.shape.as_ref() {
        Some(s) => shape::read(s),
        None => Err(encoding_error(format!("the instruction `{}` has no shape", p.name))),
    }
}

fn instruction(
    p: &HloInstructionProto,
    shapes: &[Shape],
    at: usize,
    ids: &HashMap<i64, InstId>,
    comp_ids: &HashMap<i64, CompId>,
    names: &HashMap<i64, &str>,
) -> Result<Inst> {
    let operand =
        |id: &i64| ids.get(id).copied().ok_or_else(|| encoding_error(format!("the operand {id} does not exist")));
    let operands: Vec<InstId> = p.operand_ids.iter().map(operand).collect::<Result<_>>()?;
    let called = |id: &i64| {
        comp_ids.get(id).copied().ok_or_else(|| encoding_error(format!("the computation {id} does not exist")))
    };
    let calls: Vec<CompId> = p.called_computation_ids.iter().map(called).collect::<Result<_>>()?;
    let operand_shapes: Vec<&Shape> = operands.iter().map(|o| &shapes[o.0 as usize]).collect();
    let shape = Some(shapes[at].clone());
    let (op, extra) = read_op::read(p, &shape, &operand_shapes, &calls, names)?;
    let metadata = p
        .metadata
        .as_ref()
        .map_or_else(Metadata::default, |m| Metadata { op_type: m.op_type.clone(), op_name: m.op_name.clone() });
    Ok(Inst { name: p.name.clone(), op, operands, shape: shapes[at].clone(), metadata: metadata.into(), extra })
}
