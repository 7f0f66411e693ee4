//! Loads, stores and addresses.
use super::conversion::masked;
use super::{type_name, typed};
use crate::codegen::c::function::Writer;
use crate::codegen::c::text::{IrOperand, Reader, Type};
use crate::codegen::c::types::width;
use crate::codegen::c::values::CValue;
use crate::diag::{Error, Result};

/// The name of the functions that load and store a type.
fn memory(ty: &Type) -> String {
    match ty {
        Type::Int(bits) => width(*bits).to_string(),
        Type::Pointer => "pointer".to_string(),
        Type::Size => "size".to_string(),
        ty => type_name(ty).to_string(),
    }
}

pub(super) fn load(f: &mut Writer, reader: &mut Reader, name: &str) -> Result<()> {
    let ty = reader.ty()?;
    reader.expect(",")?;
    let from = typed(f, reader)?;
    if from.ty != Type::Pointer {
        f.assign(name, &ty, from.mask, &from.text);
        return Ok(());
    }
    if let Type::Vector(..) = ty {
        let to = f.place(name, &ty, 0);
        from_memory(f, &to, &from.text);
        return Ok(());
    }
    let from_where = if f.is_called(name) { "function".to_string() } else { memory(&ty) };
    f.assign(name, &ty, 0, &format!("tf_load_{from_where}({})", from.text));
    Ok(())
}

/// Reads a vector.
fn from_memory(f: &mut Writer, to: &CValue, from: &str) {
    match to.vector().is_native() {
        true => f.line(format!("TF_LOAD({}, {}, {from});", to.vector().name(), to.text)),
        false => f.line(format!("memcpy(&{0}, {from}, sizeof {0});", to.text)),
    }
}

pub(super) fn store(f: &mut Writer, reader: &mut Reader) -> Result<()> {
    let (ty, operand) = reader.typed()?;
    reader.expect(",")?;
    let to = typed(f, reader)?;
    if to.ty != Type::Pointer {
        let value = match &operand {
            IrOperand::Local(_) => f.values.operand(&ty, &operand)?,
            constant => f.values.constant(&ty, constant, to.mask)?,
        };
        let value = if value.is_mask() { masked(f, &value, to.mask) } else { value };
        f.line(format!("{} = {};", to.text, value.text));
        return Ok(());
    }
    if let IrOperand::Global(name) = &operand {
        let value = f.global(name)?;
        f.line(format!("tf_store_pointer({}, {value});", to.text));
        return Ok(());
    }
    let value = f.values.operand(&ty, &operand)?;
    match &ty {
        Type::Vector(..) if value.vector().is_native() => {
            f.line(format!("TF_STORE({}, {}, {});", value.vector().name(), to.text, value.text));
        }
        Type::Vector(..) | Type::Struct(_) => f.line(format!("memcpy({}, &{1}, sizeof {1});", to.text, value.text)),
        ty => f.line(format!("tf_store_{}({}, {});", memory(ty), to.text, value.text)),
    }
    Ok(())
}

pub(super) fn address(f: &mut Writer, reader: &mut Reader, name: &str) -> Result<()> {
    let element = reader.ty()?;
    reader.expect(",")?;
    let from = typed(f, reader)?;
    reader.expect(",")?;
    let (ty, index) = reader.typed()?;
    let size = match &element {
        Type::Pointer => "(ptrdiff_t)sizeof(void *)".to_string(),
        Type::Int(bits) => (width(*bits) / 8).to_string(),
        Type::Float => "4".to_string(),
        Type::Double => "8".to_string(),
        Type::Struct(parts) => {
            let own = f.values.types.struct_type(parts);
            if reader.eat(",") {
                let (_, member) = reader.typed()?;
                let IrOperand::Int(member) = member else { return Err(Error::internal("C", "no member")) };
                f.assign(name, &Type::Pointer, 0, &format!("{} + offsetof({own}, m{member})", from.text));
                return Ok(());
            }
            format!("(ptrdiff_t)sizeof({own})")
        }
        other => return Err(Error::internal("C", format!("an address of {other:?}"))),
    };
    let by = match (&index, size.parse::<i64>()) {
        (IrOperand::Int(index), Ok(size)) => format!("({})", (*index as i64).wrapping_mul(size)),
        (IrOperand::Int(index), Err(_)) => format!("{} * {size}", *index as i64),
        (index, _) => {
            let index = f.values.operand(&ty, index)?.text;
            let index = if ty.bits() < 64 { format!("(int32_t){index}") } else { index };
            if size == "1" { format!("(ptrdiff_t){index}") } else { format!("(ptrdiff_t){index} * {size}") }
        }
    };
    f.assign(name, &Type::Pointer, 0, &format!("{} + {by}", from.text));
    Ok(())
}
