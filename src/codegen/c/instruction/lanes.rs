//! Single lanes of vectors: insertions and shuffles.
use super::typed;
use crate::codegen::c::function::Writer;
use crate::codegen::c::text::{IrOperand, Reader, Type};
use crate::codegen::c::values::CValue;
use crate::diag::{Error, Result};

pub(super) fn insert(f: &mut Writer, reader: &mut Reader, name: &str) -> Result<()> {
    let (ty, before) = reader.typed()?;
    reader.expect(",")?;
    let one = typed(f, reader)?;
    reader.expect(",")?;
    let (_, at) = reader.typed()?;
    let IrOperand::Int(at) = at else { return Err(Error::internal("C", "a lane is no constant")) };
    let is_first = before == IrOperand::Poison && at == 0;
    let before = f.values.operand(&ty, &before)?;
    if is_first {
        f.first.insert(name.to_string(), one.text.clone());
        if f.is_only_spread(name) {
            f.values.known.insert(name.to_string(), before);
            return Ok(());
        }
    }
    let to = f.place(name, &ty, before.mask);
    let text = if to.is_mask() { format!("{} ? -1 : 0", one.text) } else { one.text.clone() };
    let place = match to.vector().is_native() {
        true => format!("TF_LANE({}, {at})", to.text),
        false => format!("{}.e[{at}]", to.text),
    };
    f.line(format!("{} = {}; {place} = {text};", to.text, before.text));
    Ok(())
}

pub(super) fn shuffle(f: &mut Writer, reader: &mut Reader, name: &str) -> Result<()> {
    let (ty, a) = reader.typed()?;
    reader.expect(",")?;
    let (_, b) = reader.typed()?;
    reader.expect(",")?;
    let (picks_ty, picks) = reader.typed()?;
    let to_ty = Type::Vector(picks_ty.lanes(), Box::new(ty.element().clone()));
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
        let to = f.place(name, &to_ty, x.mask);
        let one = if to.is_mask() { format!("{one} ? -1 : 0") } else { one };
        let made = f.values.made(&to, &vec![one; picks.len()]);
        f.line(format!("{} = {made};", to.text));
        return Ok(());
    }
    let (m, n) = (ty.lanes(), picks.len() as u64);
    let to = f.place(name, &to_ty, x.mask);
    if x.vector().is_native() && to.vector().is_native() {
        let list: Vec<String> = picks.iter().map(u64::to_string).collect();
        f.line(format!("TF_SHUFFLE({m}, {n}, {}, {}, {}, {});", to.text, x.text, y.text, list.join(", ")));
        return Ok(());
    }
    let raw = |v: &CValue, lane: u64| match v.vector().is_native() {
        true => format!("TF_LANE({}, {lane})", v.text),
        false => format!("{}.e[{lane}]", v.text),
    };
    let lanes: Vec<String> = picks.iter().map(|&p| if p < m { raw(&x, p) } else { raw(&y, p - m) }).collect();
    let made = f.values.made(&to, &lanes);
    f.line(format!("{} = {made};", to.text));
    Ok(())
}
