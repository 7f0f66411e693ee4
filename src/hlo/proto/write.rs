//! Conversion of a module to a protobuf message.
use std::collections::{HashMap, HashSet};

use protobuf::MessageField;

use super::messages::hlo::hlo_buffer_donor_proto::BufferDonorEntryProto;
use super::messages::hlo::hlo_input_output_alias_proto::AliasEntryProto;
use super::messages::hlo::hlo_schedule_proto::InstructionSequence;
use super::messages::hlo::{
    HloBufferDonorProto, HloComputationProto, HloInputOutputAliasProto, HloInstructionProto, HloModuleProto,
};
use super::messages::xla_data::{OpMetadata, ProgramShapeProto};
use super::scan::TextCursor;
use super::{opaque_attrs, shape, write_op};
use crate::diag::{Code, Error, Result};
use crate::hlo::text::{callees_first, operands_first, parse_entry_layout};
use crate::hlo::{CompId, Computation, InstId, Metadata, Module, Op, Shape};
use crate::util::id_vec::Id;

/// Message for `module`.
pub(super) fn module(module: &Module) -> Result<HloModuleProto> {
    let mut p = HloModuleProto { name: module.name.clone(), ..Default::default() };
    let entry = module.entry();
    p.entry_computation_name.clone_from(&entry.name);
    p.entry_computation_id = computation_id(module.entry);
    let fused: HashSet<CompId> =
        module.comps.values().flat_map(|c| c.insts.values()).filter_map(body_of_fusion).collect();
    let mut names = HashSet::new();
    let mut comp_names = HashSet::new();
    for id in callees_first(module) {
        let mut comp = computation(module, id, &mut names)?;
        comp.name = unique(&comp.name, &mut comp_names);
        comp.is_fusion_computation = fused.contains(&id);
        p.computations.push(comp);
    }
    let mut program = ProgramShapeProto::new();
    let (params, result) = entry_shapes(module)?;
    program.parameters = params.iter().map(shape::write_with_layout).collect::<Result<_>>()?;
    program.result = MessageField::some(shape::write_with_layout(&result)?);
    program.parameter_names = entry.params.iter().map(|&id| entry[id].name.clone()).collect();
    p.host_program_shape = MessageField::some(program);
    for (name, value) in &module.extra {
        header(name, value, module, &fused, &mut p)?;
    }
    Ok(p)
}

/// Id of a computation in messages.
pub(super) fn computation_id(id: CompId) -> i64 {
    id.0 as i64 + 1
}

/// Id of an instruction in messages: that of its computation in the high half, as XLA numbers them.
fn inst_id(comp: CompId, id: InstId) -> i64 {
    computation_id(comp) << 32 | i64::from(id.0)
}

fn body_of_fusion(inst: &crate::hlo::Inst) -> Option<CompId> {
    match inst.op {
        Op::Fusion { comp, .. } => Some(comp),
        _ => None,
    }
}

fn unique(name: &str, taken: &mut HashSet<String>) -> String {
    let mut found = name.to_string();
    let mut n = 1;
    while !taken.insert(found.clone()) {
        found = format!("{name}.{n}");
        n += 1;
    }
    found
}

/// Shapes in `entry_computation_layout`, or else those of the entry computation.
fn entry_shapes(module: &Module) -> Result<(Vec<Shape>, Shape)> {
    match module.extra.iter().find(|(n, _)| n == "entry_computation_layout") {
        Some((_, text)) => parse_entry_layout(text),
        None => {
            let entry = module.entry();
            Ok((entry.params.iter().map(|&p| entry[p].shape.clone()).collect(), entry[entry.root].shape.clone()))
        }
    }
}

fn computation(module: &Module, id: CompId, names: &mut HashSet<String>) -> Result<HloComputationProto> {
    let comp = &module.comps[id];
    let mut p = HloComputationProto { name: comp.name.clone(), id: computation_id(id), ..Default::default() };
    p.root_id = inst_id(id, comp.root);
    p.execution_thread = "main".to_string();
    let mut program = ProgramShapeProto::new();
    program.parameters = comp.params.iter().map(|&i| shape::write(&comp[i].shape)).collect::<Result<_>>()?;
    program.result = MessageField::some(shape::write(&comp[comp.root].shape)?);
    let ids: HashMap<&str, i64> = comp.insts.iter().map(|(i, inst)| (inst.name.as_str(), inst_id(id, i))).collect();
    for i in operands_first(comp) {
        let mut inst = instruction(comp, id, i, &ids)?;
        inst.name = unique(&inst.name, names);
        if let Op::Parameter(_) = comp[i].op {
            program.parameter_names.push(inst.name.clone());
        }
        p.instructions.push(inst);
    }
    p.program_shape = MessageField::some(program);
    Ok(p)
}

fn instruction(
    comp: &Computation,
    in_comp: CompId,
    id: InstId,
    ids: &HashMap<&str, i64>,
) -> Result<HloInstructionProto> {
    let inst = &comp[id];
    let mut p = HloInstructionProto { name: inst.name.clone(), id: inst_id(in_comp, id), ..Default::default() };
    p.opcode = inst.op.name().to_string();
    // XLA compares a constant's shape with its literal's, including layouts.
    let written = if let Op::Constant(_) = inst.op { shape::write_with_layout } else { shape::write };
    p.shape = MessageField::some(written(&inst.shape)?);
    p.operand_ids = inst.operands.iter().map(|&o| inst_id(in_comp, o)).collect();
    if *inst.metadata != Metadata::default() {
        let Metadata { op_type, op_name } = (*inst.metadata).clone();
        p.metadata = MessageField::some(OpMetadata { op_type, op_name, ..Default::default() });
    }
    let operand_shapes: Vec<&Shape> = inst.operands.iter().map(|&o| &comp[o].shape).collect();
    let blame = |e: Error| e.map(|d| d.at_node(&inst.name, inst.op.name()));
    write_op::write(inst, &operand_shapes, ids, &mut p).map_err(blame)?;
    for (name, value) in &inst.extra {
        opaque_attrs::write(name, value, ids, &mut p).map_err(blame)?;
    }
    Ok(p)
}

/// Writes an attribute of the module header.
fn header(name: &str, value: &str, module: &Module, fused: &HashSet<CompId>, p: &mut HloModuleProto) -> Result<()> {
    match name {
        "is_scheduled" if matches!(value, "true" | "1") => schedule(module, fused, p),
        "input_output_alias" => p.input_output_alias = MessageField::some(aliases(value)?),
        "buffer_donor" => p.buffer_donor = MessageField::some(donors(value)?),
        "frontend_attributes" => {
            p.frontend_attributes = MessageField::some(opaque_attrs::parse_frontend_attributes(value)?)
        }
        // The program's shape has the layout; the other attributes are options for a compiler, and not part of the module.
        "is_scheduled"
        | "entry_computation_layout"
        | "replica_count"
        | "num_partitions"
        | "alias_passthrough_params"
        | "allow_spmd_sharding_propagation_to_parameters"
        | "allow_spmd_sharding_propagation_to_output" => {}
        _ => {
            return Err(Error::user(Code::HloUnsupported, format!("the header's {name} is not written to messages")));
        }
    }
    Ok(())
}

/// Writes the schedule, which is the order of the text.
fn schedule(module: &Module, fused: &HashSet<CompId>, p: &mut HloModuleProto) {
    let sequences = &mut p.schedule.mut_or_insert_default().sequences;
    for (id, comp) in module.comps.iter().filter(|(id, _)| !fused.contains(id)) {
        let order = operands_first(comp).into_iter().map(|i| inst_id(id, i)).collect();
        sequences.insert(id.index() as i64 + 1, InstructionSequence { instruction_ids: order, ..Default::default() });
    }
}

/// Parses `{ {0}: (1, {}, may-alias), ... }`.
fn aliases(value: &str) -> Result<HloInputOutputAliasProto> {
    let mut s = TextCursor::new(value);
    let mut out = HloInputOutputAliasProto::new();
    s.expect('{')?;
    while !s.eat('}') {
        let mut e = AliasEntryProto { output_shape_index: s.ints('{', '}')?, kind: 1, ..Default::default() };
        s.expect(':')?;
        s.expect('(')?;
        e.parameter_number = s.int()?;
        s.expect(',')?;
        e.parameter_shape_index = s.ints('{', '}')?;
        if s.eat(',') && s.word() == "must-alias" {
            e.kind = 2;
        }
        s.expect(')')?;
        s.eat(',');
        out.entries.push(e);
    }
    Ok(out)
}

/// Parses `{ (0, {1}), ... }`.
fn donors(value: &str) -> Result<HloBufferDonorProto> {
    let mut s = TextCursor::new(value);
    let mut out = HloBufferDonorProto::new();
    s.expect('{')?;
    while !s.eat('}') {
        s.expect('(')?;
        let parameter_number = s.int()?;
        s.expect(',')?;
        let parameter_shape_index = s.ints('{', '}')?;
        s.expect(')')?;
        s.eat(',');
        out.entries.push(BufferDonorEntryProto { parameter_number, parameter_shape_index, ..Default::default() });
    }
    Ok(out)
}
