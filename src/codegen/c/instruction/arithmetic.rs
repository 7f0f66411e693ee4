//! Arithmetic on integers and floats, signed and unsigned.
use super::conversion::masked;
use super::{lane, lanewise, typed};
use crate::codegen::c::function::Writer;
use crate::codegen::c::text::{IrOperand, Reader, Type};
use crate::codegen::c::types::{Vector, scalar, signed, width};
use crate::codegen::c::values::CValue;
use crate::diag::{Error, Result};

/// `a op b` of two masks or vectors of one type.
pub fn combined(f: &mut Writer, a: &CValue, op: &str, b: &CValue) -> CValue {
    let to = CValue { text: f.fresh("m"), ..a.clone() };
    let v = f.values.types.vector(to.vector());
    f.line(format!("{v} {};", to.text));
    binary(f, &to, to.vector(), a, op, b);
    to
}

/// Writes `to = a op b`, the lanes of operands taken as `operands` has them.
pub(super) fn binary(f: &mut Writer, to: &CValue, operands: Vector, a: &CValue, op: &str, b: &CValue) {
    let (n, e) = (to.ty.lanes(), to.vector().lane());
    // products of 16 bits in C's `int` could overflow
    let s = if operands.lane() == "uint16_t" { "uint32_t".to_string() } else { operands.lane() };
    let (v, u) = (f.values.types.vector(to.vector()), f.values.types.vector(operands));
    f.line(format!("TF_BINARY({v}, {u}, {e}, {s}, {n}, {}, {}, {op}, {});", to.text, a.text, b.text));
}

/// The value of an integer of any width as a signed number of C.
pub fn signed_value(ty: &Type, text: &str) -> String {
    match ty {
        Type::Int(1) => format!("(-({text}))"),
        Type::Int(bits) if *bits != width(*bits) => {
            let shift = width(*bits) - bits;
            format!("((int{0}_t)((uint{0}_t)({text} << {shift})) >> {shift})", width(*bits))
        }
        ty => format!("({}){text}", signed(ty)),
    }
}

pub(super) fn arithmetic(f: &mut Writer, op: &str, reader: &mut Reader, name: &str) -> Result<()> {
    while ["nuw ", "nsw "].iter().any(|flag| reader.eat(flag)) {}
    let x = typed(f, reader)?;
    reader.expect(",")?;
    let other = reader.operand()?;
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
            (masked(f, &x, bits), masked(f, &y, bits))
        }
        false => (x, y),
    };
    let is_signed = matches!(op, "sdiv" | "srem" | "ashr");
    let element = x.ty.element().clone();
    let is_even = match element {
        Type::Int(bits) => bits == width(bits) || x.is_mask() && matches!(sign, "&" | "|" | "^"),
        _ => true,
    };
    if matches!(x.ty, Type::Vector(..)) && x.vector().is_native() && is_even {
        let to = f.place(name, &x.ty, x.mask);
        let operands = if is_signed { x.signed_vector() } else { x.vector() };
        binary(f, &to, operands, &x, sign, &y);
        return Ok(());
    }
    lanewise(f, name, &x.ty.clone(), &|l| single(&element, op, sign, &lane(&x, l), &lane(&y, l)));
    Ok(())
}

/// One operation on single values.
fn single(ty: &Type, op: &str, sign: &str, a: &str, b: &str) -> String {
    let bits = match ty {
        Type::Int(bits) => *bits,
        _ => return format!("{a} {sign} {b}"),
    };
    let c_type = scalar(ty);
    let kept = if bits < width(bits) { format!(" & {}u", (1u32 << bits) - 1) } else { String::new() };
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
