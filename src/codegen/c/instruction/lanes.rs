//! Single lanes of vectors: insertions and shuffles.
use super::read_typed_value;
use crate::codegen::c::function::FunctionWriter;
use crate::codegen::c::text::{IrOperand, IrReader, IrType};
use crate::codegen::c::values::CValue;
use crate::diag::{Error, Result};

pub(super) fn write_insert(f: &mut FunctionWriter, reader: &mut IrReader, name: &str) -> Result<()> {
    let (ty, before) = reader.read_typed_operand()?;
    reader.expect(",")?;
    let one = read_typed_value(f, reader)?;
    reader.expect(",")?;
    let (_, at) = reader.read_typed_operand()?;
    let IrOperand::Int(at) = at else { return Err(Error::internal("C", "a lane is no constant")) };
    let is_first = before == IrOperand::Poison && at == 0;
    let before = f.values.operand(&ty, &before)?;
    if is_first {
        f.first.insert(name.to_string(), one.text.clone());
        if f.is_only_broadcast(name) {
            f.values.known.insert(name.to_string(), before);
            return Ok(());
        }
    }
    let to = f.declare_variable(name, &ty, before.mask);
    let text = if to.is_mask() { format!("{} ? -1 : 0", one.text) } else { one.text.clone() };
    let place = match to.vector_type().is_native() {
        true => format!("TF_LANE({}, {at})", to.text),
        false => format!("{}.e[{at}]", to.text),
    };
    f.push_line(format!("{} = {}; {place} = {text};", to.text, before.text));
    Ok(())
}

pub(super) fn write_shuffle(f: &mut FunctionWriter, reader: &mut IrReader, name: &str) -> Result<()> {
    let (ty, a) = reader.read_typed_operand()?;
    reader.expect(",")?;
    let (_, b) = reader.read_typed_operand()?;
    reader.expect(",")?;
    let (picks_ty, picks) = reader.read_typed_operand()?;
    let to_ty = IrType::Vector(picks_ty.lanes(), Box::new(ty.element().clone()));
    let picks: Vec<u64> = match picks {
        IrOperand::List(all) => {
            all.iter().map(|(_, pick)| if let IrOperand::Int(pick) = pick { *pick } else { 0 }).collect()
        }
        _ => vec![0; picks_ty.lanes() as usize],
    };
    let x = f.values.operand(&ty, &a)?;
    let y = if b == IrOperand::Poison { x.clone() } else { f.values.operand(&ty, &b)? };
    let splat = if let IrOperand::Local(from) = &a { f.first.get(from).cloned() } else { None };
    if let (Some(one), true) = (splat, picks.iter().all(|pick| *pick == 0)) {
        let to = f.declare_variable(name, &to_ty, x.mask);
        let one = if to.is_mask() { format!("{one} ? -1 : 0") } else { one };
        let made = f.values.vector_from_lanes(&to, &vec![one; picks.len()]);
        f.push_line(format!("{} = {made};", to.text));
        return Ok(());
    }
    let (m, n) = (ty.lanes(), picks.len() as u64);
    let to = f.declare_variable(name, &to_ty, x.mask);
    if x.vector_type().is_native() && to.vector_type().is_native() {
        let list: Vec<String> = picks.iter().map(u64::to_string).collect();
        f.push_line(format!("TF_SHUFFLE({m}, {n}, {}, {}, {}, {});", to.text, x.text, y.text, list.join(", ")));
        return Ok(());
    }
    let raw = |v: &CValue, lane: u64| match v.vector_type().is_native() {
        true => format!("TF_LANE({}, {lane})", v.text),
        false => format!("{}.e[{lane}]", v.text),
    };
    let lanes: Vec<String> = picks.iter().map(|&p| if p < m { raw(&x, p) } else { raw(&y, p - m) }).collect();
    let made = f.values.vector_from_lanes(&to, &lanes);
    f.push_line(format!("{} = {made};", to.text));
    Ok(())
}
