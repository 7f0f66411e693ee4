//! Loads, stores and addresses.
use super::conversion::resize_mask;
use super::{float_type_name, read_typed_value};
use crate::codegen::c::function::FunctionWriter;
use crate::codegen::c::text::{IrOperand, IrReader, IrType};
use crate::codegen::c::types::c_integer_bits;
use crate::codegen::c::values::CValue;
use crate::diag::{Error, Result};

/// The suffix of the C helper functions that load and store a type.
fn memory(ty: &IrType) -> String {
    match ty {
        IrType::Int(bits) => c_integer_bits(*bits).to_string(),
        IrType::Pointer => "pointer".to_string(),
        IrType::Size => "size".to_string(),
        ty => float_type_name(ty).to_string(),
    }
}

pub(super) fn write_load(f: &mut FunctionWriter, reader: &mut IrReader, name: &str) -> Result<()> {
    let ty = reader.read_type()?;
    reader.expect(",")?;
    let from = read_typed_value(f, reader)?;
    if from.ty != IrType::Pointer {
        f.assign(name, &ty, from.mask, &from.text);
        return Ok(());
    }
    if let IrType::Vector(..) = ty {
        let to = f.declare_variable(name, &ty, 0);
        from_memory(f, &to, &from.text);
        return Ok(());
    }
    let from_where = if f.is_function_pointer(name) { "function".to_string() } else { memory(&ty) };
    f.assign(name, &ty, 0, &format!("tf_load_{from_where}({})", from.text));
    Ok(())
}

/// Writes the load of a vector from the address `from`.
fn from_memory(f: &mut FunctionWriter, to: &CValue, from: &str) {
    match to.vector_type().is_native() {
        true => f.push_line(format!("TF_LOAD({}, {}, {from});", to.vector_type().name(), to.text)),
        false => f.push_line(format!("memcpy(&{0}, {from}, sizeof {0});", to.text)),
    }
}

pub(super) fn write_store(f: &mut FunctionWriter, reader: &mut IrReader) -> Result<()> {
    let (ty, operand) = reader.read_typed_operand()?;
    reader.expect(",")?;
    let to = read_typed_value(f, reader)?;
    if to.ty != IrType::Pointer {
        let value = match &operand {
            IrOperand::Local(_) => f.values.operand(&ty, &operand)?,
            constant => f.values.constant(&ty, constant, to.mask)?,
        };
        let value = if value.is_mask() { resize_mask(f, &value, to.mask) } else { value };
        f.push_line(format!("{} = {};", to.text, value.text));
        return Ok(());
    }
    if let IrOperand::Global(name) = &operand {
        let value = f.global_pointer(name)?;
        f.push_line(format!("tf_store_pointer({}, {value});", to.text));
        return Ok(());
    }
    let value = f.values.operand(&ty, &operand)?;
    match &ty {
        IrType::Vector(..) if value.vector_type().is_native() => {
            f.push_line(format!("TF_STORE({}, {}, {});", value.vector_type().name(), to.text, value.text));
        }
        IrType::Vector(..) | IrType::Struct(_) => {
            f.push_line(format!("memcpy({}, &{1}, sizeof {1});", to.text, value.text))
        }
        ty => f.push_line(format!("tf_store_{}({}, {});", memory(ty), to.text, value.text)),
    }
    Ok(())
}

pub(super) fn write_address(f: &mut FunctionWriter, reader: &mut IrReader, name: &str) -> Result<()> {
    let element = reader.read_type()?;
    reader.expect(",")?;
    let from = read_typed_value(f, reader)?;
    reader.expect(",")?;
    let (ty, index) = reader.read_typed_operand()?;
    let size = match &element {
        IrType::Pointer => "(ptrdiff_t)sizeof(void *)".to_string(),
        IrType::Int(bits) => (c_integer_bits(*bits) / 8).to_string(),
        IrType::Float => "4".to_string(),
        IrType::Double => "8".to_string(),
        IrType::Struct(parts) => {
            let own = f.values.types.struct_type(parts);
            if reader.eat(",") {
                let (_, member) = reader.read_typed_operand()?;
                let IrOperand::Int(member) = member else { return Err(Error::internal("C", "no member")) };
                f.assign(name, &IrType::Pointer, 0, &format!("{} + offsetof({own}, m{member})", from.text));
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
    f.assign(name, &IrType::Pointer, 0, &format!("{} + {by}", from.text));
    Ok(())
}
