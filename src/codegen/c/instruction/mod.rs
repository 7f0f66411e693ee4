//! Instructions as statements: memory, arithmetic, comparisons, conversions, and the lanes of vectors.
mod arithmetic;
mod comparison;
mod conversion;
mod lanes;
mod memory;

pub use arithmetic::{binary_value, signed_value};
pub use conversion::bitcast_vector;

use super::call;
use super::function::FunctionWriter;
use super::text::{IrOperand, IrReader, IrType};
use super::types::c_scalar_type;
use super::values::CValue;
use crate::diag::{Error, Result};
use arithmetic::write_arithmetic;
use comparison::{write_compare, write_select};
use conversion::write_conversion;
use lanes::{write_insert, write_shuffle};
use memory::{write_address, write_load, write_store};

/// Writes one LLVM instruction in C; `name` is the value that it defines, if any.
pub fn write_instruction(f: &mut FunctionWriter, op: &str, reader: &mut IrReader, name: Option<&str>) -> Result<()> {
    match (op, name) {
        ("store", _) => write_store(f, reader),
        ("tail" | "call", _) => call::write_call(f, reader, name),
        (_, None) => Err(Error::internal("C", format!("`{op}` has no meaning"))),
        ("load", Some(name)) => write_load(f, reader, name),
        ("getelementptr", Some(name)) => write_address(f, reader, name),
        ("icmp" | "fcmp", Some(name)) => write_compare(f, op, reader, name),
        ("select", Some(name)) => write_select(f, reader, name),
        ("fneg" | "freeze", Some(name)) => {
            let x = read_typed_value(f, reader)?;
            match (op, &x.ty) {
                ("freeze", _) => f.assign(name, &x.ty, x.mask, &x.text),
                _ => write_lanewise(f, name, &x.ty.clone(), &|l| {
                    format!("tf_neg_{}({})", float_type_name(x.ty.element()), lane_text(&x, l))
                }),
            }
            Ok(())
        }
        (
            "trunc" | "zext" | "sext" | "fpext" | "fptrunc" | "sitofp" | "uitofp" | "fptoui" | "fptosi" | "bitcast",
            Some(name),
        ) => {
            let x = read_typed_value(f, reader)?;
            reader.expect("to ")?;
            let to = reader.read_type()?;
            write_conversion(f, op, &x, &to, name)
        }
        ("extractvalue", Some(name)) => {
            let x = read_typed_value(f, reader)?;
            let IrType::Struct(parts) = &x.ty else { return Err(Error::internal("C", "no pair")) };
            let part = if reader.eat(", 0") { "re" } else { "im" };
            f.assign(name, &parts[0], 0, &format!("{}.{part}", x.text));
            Ok(())
        }
        ("insertvalue", Some(name)) => {
            let x = read_typed_value(f, reader)?;
            reader.expect(",")?;
            let part = read_typed_value(f, reader)?;
            let member = if reader.eat(", 0") { "re" } else { "im" };
            let made = f.declare_variable(name, &x.ty, 0);
            f.push_line(format!("{0} = {1}; {0}.{member} = {2};", made.text, x.text, part.text));
            Ok(())
        }
        ("extractelement", Some(name)) => {
            let x = read_typed_value(f, reader)?;
            reader.expect(",")?;
            let (_, at) = reader.read_typed_operand()?;
            let IrOperand::Int(at) = at else { return Err(Error::internal("C", "a lane is no constant")) };
            f.assign(name, x.ty.element(), 0, &x.lane_text(at));
            Ok(())
        }
        ("insertelement", Some(name)) => write_insert(f, reader, name),
        ("shufflevector", Some(name)) => write_shuffle(f, reader, name),
        (op, Some(name)) => write_arithmetic(f, op, reader, name),
    }
}

/// Reads a typed operand and returns its C value.
pub fn read_typed_value(f: &mut FunctionWriter, reader: &mut IrReader) -> Result<CValue> {
    let (ty, operand) = reader.read_typed_operand()?;
    match &operand {
        IrOperand::Global(name) => Ok(CValue { ty, mask: 0, text: f.global_pointer(name)? }),
        operand => f.values.operand(&ty, operand),
    }
}

/// The part of a C helper's name for a float type: `float` or `double`.
pub fn float_type_name(element: &IrType) -> &'static str {
    if *element == IrType::Float { "float" } else { "double" }
}

/// The C expression of one lane of a vector, or of a scalar itself.
pub fn lane_text(x: &CValue, lane: u64) -> String {
    if x.ty.lanes() == 1 { x.text.clone() } else { x.lane_text(lane) }
}

/// Writes a value lane by lane; `make` returns the C expression of a lane.
pub fn write_lanewise(f: &mut FunctionWriter, name: &str, ty: &IrType, make: &dyn Fn(u64) -> String) {
    if !matches!(ty, IrType::Vector(..)) {
        return f.assign(name, ty, 0, &make(0));
    }
    let is_mask = *ty.element() == IrType::Int(1);
    let lanes: Vec<String> = (0..ty.lanes())
        .map(|l| {
            if is_mask {
                format!("({}) ? -1 : 0", make(l))
            } else {
                format!("({})({})", c_scalar_type(ty.element()), make(l))
            }
        })
        .collect();
    let to = f.declare_variable(name, ty, if is_mask { 8 } else { 0 });
    let made = f.values.vector_from_lanes(&to, &lanes);
    f.push_line(format!("{} = {made};", to.text));
}
