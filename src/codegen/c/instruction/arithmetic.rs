//! Arithmetic on integers and floats, signed and unsigned.
use super::conversion::resize_mask;
use super::{lane_text, read_typed_value, write_lanewise};
use crate::codegen::c::function::FunctionWriter;
use crate::codegen::c::text::{IrOperand, IrReader, IrType};
use crate::codegen::c::types::{CVectorType, c_integer_bits, c_scalar_type, signed_type};
use crate::codegen::c::values::CValue;
use crate::diag::{Error, Result};

/// Writes `a op b` for two masks or vectors of one type, and returns the value.
pub fn binary_value(f: &mut FunctionWriter, a: &CValue, op: &str, b: &CValue) -> CValue {
    let to = CValue { text: f.fresh_name("m"), ..a.clone() };
    let v = f.values.types.vector_name(to.vector_type());
    f.push_line(format!("{v} {};", to.text));
    write_binary(f, &to, to.vector_type(), a, op, b);
    to
}

/// Writes `to = a op b`, with operand lanes reinterpreted as `operands`.
pub(super) fn write_binary(
    f: &mut FunctionWriter,
    to: &CValue,
    operands: CVectorType,
    a: &CValue,
    op: &str,
    b: &CValue,
) {
    let (n, e) = (to.ty.lanes(), to.vector_type().lane_type());
    // products of 16 bits in C's `int` could overflow
    let s = if operands.lane_type() == "uint16_t" { "uint32_t".to_string() } else { operands.lane_type() };
    let (v, u) = (f.values.types.vector_name(to.vector_type()), f.values.types.vector_name(operands));
    f.push_line(format!("TF_BINARY({v}, {u}, {e}, {s}, {n}, {}, {}, {op}, {});", to.text, a.text, b.text));
}

/// The C expression that sign-extends an integer of any width to its C type.
pub fn signed_value(ty: &IrType, text: &str) -> String {
    match ty {
        IrType::Int(1) => format!("(-({text}))"),
        IrType::Int(bits) if *bits != c_integer_bits(*bits) => {
            let shift = c_integer_bits(*bits) - bits;
            format!("((int{0}_t)((uint{0}_t)({text} << {shift})) >> {shift})", c_integer_bits(*bits))
        }
        ty => format!("({}){text}", signed_type(ty)),
    }
}

pub(super) fn write_arithmetic(f: &mut FunctionWriter, op: &str, reader: &mut IrReader, name: &str) -> Result<()> {
    while ["nuw ", "nsw "].iter().any(|flag| reader.eat(flag)) {}
    let x = read_typed_value(f, reader)?;
    reader.expect(",")?;
    let other = reader.read_operand()?;
    let y = match &other {
        IrOperand::Local(_) => f.values.operand(&x.ty, &other)?,
        constant => f.values.constant(&x.ty, constant, x.mask.max(8))?,
    };
    let sign = match op {
        "add" | "fadd" => "+",
        "sub" | "fsub" => "-",
        "mul" | "fmul" => "*",
        "udiv" | "sdiv" | "fdiv" => "/",
        "urem" | "srem" => "%",
        "and" => "&",
        "or" => "|",
        "xor" => "^",
        "shl" => "<<",
        "lshr" | "ashr" => ">>",
        _ => return Err(Error::internal("C", format!("`{op}` has no meaning"))),
    };
    let (x, y) = match x.is_mask() {
        true => {
            let bits = x.mask.max(y.mask);
            (resize_mask(f, &x, bits), resize_mask(f, &y, bits))
        }
        false => (x, y),
    };
    let is_signed = matches!(op, "sdiv" | "srem" | "ashr");
    let element = x.ty.element().clone();
    let is_even = match element {
        IrType::Int(bits) => bits == c_integer_bits(bits) || x.is_mask() && matches!(sign, "&" | "|" | "^"),
        _ => true,
    };
    if matches!(x.ty, IrType::Vector(..)) && x.vector_type().is_native() && is_even {
        let to = f.declare_variable(name, &x.ty, x.mask);
        let operands = if is_signed { x.signed_vector_type() } else { x.vector_type() };
        write_binary(f, &to, operands, &x, sign, &y);
        return Ok(());
    }
    write_lanewise(f, name, &x.ty.clone(), &|l| single(&element, op, sign, &lane_text(&x, l), &lane_text(&y, l)));
    Ok(())
}

/// The C expression of an operation on scalars.
fn single(ty: &IrType, op: &str, sign: &str, a: &str, b: &str) -> String {
    let bits = match ty {
        IrType::Int(bits) => *bits,
        _ => return format!("{a} {sign} {b}"),
    };
    let c_type = c_scalar_type(ty);
    let kept = if bits < c_integer_bits(bits) { format!(" & {}u", (1u32 << bits) - 1) } else { String::new() };
    if bits == 1 {
        return match op {
            "add" | "sub" | "xor" => format!("{a} ^ {b}"),
            "mul" | "and" => format!("{a} & {b}"),
            "or" => format!("{a} | {b}"),
            "urem" | "srem" => "0".to_string(),
            _ => a.to_string(),
        };
    }
    match op {
        "sdiv" | "srem" => {
            format!("({c_type})(({c_type})({} {sign} {}){kept})", signed_value(ty, a), signed_value(ty, b))
        }
        "ashr" => format!("({c_type})(({c_type})({} >> {b}){kept})", signed_value(ty, a)),
        "mul" | "shl" if bits < 32 => format!("({c_type})(((uint32_t){a} {sign} {b}){kept})"),
        _ if bits < 32 => format!("({c_type})(({a} {sign} {b}){kept})"),
        _ => format!("{a} {sign} {b}"),
    }
}
