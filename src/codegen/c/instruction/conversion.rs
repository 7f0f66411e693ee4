//! Conversions between types, lane by lane or bit by bit.
use super::arithmetic::{signed_value, write_binary};
use super::{float_type_name, lane_text, write_lanewise};
use crate::codegen::c::function::FunctionWriter;
use crate::codegen::c::text::{IrOperand, IrType};
use crate::codegen::c::types::{CVectorType, c_integer_bits, c_scalar_type};
use crate::codegen::c::values::CValue;
use crate::diag::{Error, Result};

/// Converts a mask to lanes of so many bits.
pub fn resize_mask(f: &mut FunctionWriter, x: &CValue, bits: u32) -> CValue {
    if x.mask == bits {
        return x.clone();
    }
    let to = CValue { mask: bits, text: f.fresh_name("m"), ..x.clone() };
    let ty = f.values.types.type_of(&to);
    f.push_line(format!("{ty} {};", to.text));
    converted(f, &to, to.vector_type(), x, x.vector_type());
    to
}

/// Writes a conversion of each lane of `x`, read as type `x_as`, to the type `to_as`.
fn converted(f: &mut FunctionWriter, to: &CValue, to_as: CVectorType, x: &CValue, x_as: CVectorType) {
    let (n, s, e) = (to.ty.lanes(), x_as.lane_type(), to_as.lane_type());
    if to_as.is_native() {
        let (v, u) = (f.values.types.vector_name(to_as), f.values.types.vector_name(x_as));
        f.push_line(format!("TF_CONVERT({v}, {u}, {e}, {s}, {n}, {}, {});", to.text, x.text));
    } else {
        f.push_line(format!("for (int i = 0; i < {n}; i++) {}.e[i] = ({e})({s}){}.e[i];", to.text, x.text));
    }
}

/// Reinterprets the bits of a vector as another vector type.
pub fn bitcast_vector(f: &mut FunctionWriter, x: &CValue, to: &IrType) -> CValue {
    let made = CValue { ty: to.clone(), mask: 0, text: f.fresh_name("m") };
    let v = f.values.types.type_of(&made);
    f.push_line(format!("{v} {0}; TF_CAST({v}, {0}, {1});", made.text, x.text));
    made
}

pub(super) fn write_conversion(f: &mut FunctionWriter, op: &str, x: &CValue, to: &IrType, name: &str) -> Result<()> {
    let (from, element) = (x.ty.element().clone(), to.element().clone());
    if op == "bitcast" {
        return bitcast(f, x, to, name);
    }
    let is_even = |ty: &IrType| ty.bits() == c_integer_bits(ty.bits());
    let is_vector = x.ty.lanes() > 1 && x.vector_type().is_native();
    if is_vector && x.is_mask() {
        // lanes of all ones are -1
        let bits = c_integer_bits(element.bits());
        let mask = resize_mask(f, x, bits);
        let made = f.declare_variable(name, to, 0);
        let signs = CValue { ty: to.clone(), mask: 0, text: f.fresh_name("m") };
        let v = f.values.types.type_of(&signs);
        f.push_line(format!("{v} {};", signs.text));
        match op {
            "zext" | "sext" if is_even(&element) => {
                let (own, mask_vector) = (signs.vector_type(), mask.vector_type());
                let v = f.values.types.vector_name(own);
                f.values.types.vector_name(mask_vector);
                f.push_line(format!("TF_CAST({v}, {}, {});", signs.text, mask.text));
            }
            _ => {
                let own = signs.vector_type();
                converted(f, &signs, own, &mask, mask.vector_type());
            }
        }
        let zero = f.values.constant(to, &IrOperand::Zero, 8)?;
        match op {
            "sext" => f.push_line(format!("{} = {};", made.text, signs.text)),
            "zext" | "uitofp" => write_binary(f, &made, made.vector_type(), &zero, "-", &signs),
            _ => f.push_line(format!("{} = {};", made.text, signs.text)),
        }
        return Ok(());
    }
    if is_vector && is_even(&from) && is_even(&element) {
        let made = f.declare_variable(name, to, 0);
        let is_signed = matches!(op, "sext" | "sitofp");
        let from = if is_signed { x.signed_vector_type() } else { x.vector_type() };
        let makes_signed = matches!(op, "sext" | "fptosi");
        let own = if makes_signed { made.signed_vector_type() } else { made.vector_type() };
        if makes_signed {
            let wide = f.fresh_name("m");
            let v = f.values.types.vector_name(own.clone());
            f.push_line(format!("{v} {wide};"));
            converted(f, &CValue { text: wide.clone(), ..made.clone() }, own, x, from);
            let v = f.values.types.vector_name(made.vector_type());
            f.push_line(format!("TF_CAST({v}, {}, {wide});", made.text));
        } else {
            converted(f, &made, own, x, from);
        }
        return Ok(());
    }
    let c_type = c_scalar_type(&element);
    write_lanewise(f, name, &to.clone(), &|l| {
        let text = lane_text(x, l);
        let kept = match element {
            IrType::Int(bits) if bits < c_integer_bits(bits) => format!(" & {}u", (1u32 << bits) - 1),
            _ => String::new(),
        };
        match op {
            "sext" | "sitofp" => format!("({c_type})({}{kept})", signed_value(&from, &text)),
            "fptosi" => format!("({c_type})(int{}_t)({text})", c_integer_bits(element.bits())),
            "trunc" if element == IrType::Int(1) => format!("({text} & 1) != 0"),
            _ => format!("({c_type})({text}{kept})"),
        }
    });
    Ok(())
}

fn bitcast(f: &mut FunctionWriter, x: &CValue, to: &IrType, name: &str) -> Result<()> {
    if x.ty == *to {
        f.assign(name, to, x.mask, &x.text);
        return Ok(());
    }
    if x.ty.lanes() > 1 {
        let made = f.declare_variable(name, to, 0);
        let v = f.values.types.type_of(&made);
        match made.vector_type().is_native() {
            true => f.push_line(format!("TF_CAST({v}, {}, {});", made.text, x.text)),
            false => f.push_line(format!("memcpy(&{0}, &{1}, sizeof {0});", made.text, x.text)),
        }
        return Ok(());
    }
    let made = match (&x.ty, to) {
        (IrType::Float | IrType::Double, _) => format!("tf_bits_{}({})", float_type_name(&x.ty), x.text),
        (_, IrType::Float | IrType::Double) => format!("tf_{}({})", float_type_name(to), x.text),
        _ => return Err(Error::internal("C", format!("a bitcast of {:?} to {to:?}", x.ty))),
    };
    f.assign(name, to, 0, &made);
    Ok(())
}
