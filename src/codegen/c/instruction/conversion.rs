//! Conversions between types, lane by lane or bit by bit.
use super::arithmetic::{binary, signed_value};
use super::{lane, lanewise, type_name};
use crate::codegen::c::function::Writer;
use crate::codegen::c::text::{IrOperand, Type};
use crate::codegen::c::types::{Vector, scalar, width};
use crate::codegen::c::values::CValue;
use crate::diag::{Error, Result};

/// A mask with lanes of so many bits.
pub fn masked(f: &mut Writer, x: &CValue, bits: u32) -> CValue {
    if x.mask == bits {
        return x.clone();
    }
    let to = CValue { mask: bits, text: f.fresh("m"), ..x.clone() };
    let ty = f.values.types.name(&to);
    f.line(format!("{ty} {};", to.text));
    converted(f, &to, to.vector(), x, x.vector());
    to
}

/// Converts lane by lane; the lanes are taken to be of these types.
fn converted(f: &mut Writer, to: &CValue, to_as: Vector, x: &CValue, x_as: Vector) {
    let (n, s, e) = (to.ty.lanes(), x_as.lane(), to_as.lane());
    if to_as.is_native() {
        let (v, u) = (f.values.types.vector(to_as), f.values.types.vector(x_as));
        f.line(format!("TF_CONVERT({v}, {u}, {e}, {s}, {n}, {}, {});", to.text, x.text));
    } else {
        f.line(format!("for (int i = 0; i < {n}; i++) {}.e[i] = ({e})({s}){}.e[i];", to.text, x.text));
    }
}

/// A vector taken as one of another type, bit for bit.
pub fn cast(f: &mut Writer, x: &CValue, to: &Type) -> CValue {
    let made = CValue { ty: to.clone(), mask: 0, text: f.fresh("m") };
    let v = f.values.types.name(&made);
    f.line(format!("{v} {0}; TF_CAST({v}, {0}, {1});", made.text, x.text));
    made
}

pub(super) fn convert(f: &mut Writer, op: &str, x: &CValue, to: &Type, name: &str) -> Result<()> {
    let (from, element) = (x.ty.element().clone(), to.element().clone());
    if op == "bitcast" {
        return bitcast(f, x, to, name);
    }
    let is_even = |ty: &Type| ty.bits() == width(ty.bits());
    let is_vector = x.ty.lanes() > 1 && x.vector().is_native();
    if is_vector && x.is_mask() {
        // lanes of all ones are -1
        let bits = width(element.bits());
        let mask = masked(f, x, bits);
        let made = f.place(name, to, 0);
        let signs = CValue { ty: to.clone(), mask: 0, text: f.fresh("m") };
        let v = f.values.types.name(&signs);
        f.line(format!("{v} {};", signs.text));
        match op {
            "zext" | "sext" if is_even(&element) => {
                let (own, mask_vector) = (signs.vector(), mask.vector());
                let v = f.values.types.vector(own);
                f.values.types.vector(mask_vector);
                f.line(format!("TF_CAST({v}, {}, {});", signs.text, mask.text));
            }
            _ => {
                let own = signs.vector();
                converted(f, &signs, own, &mask, mask.vector());
            }
        }
        let zero = f.values.constant(to, &IrOperand::Zero, 8)?;
        match op {
            "sext" => f.line(format!("{} = {};", made.text, signs.text)),
            "zext" | "uitofp" => binary(f, &made, made.vector(), &zero, "-", &signs),
            _ => f.line(format!("{} = {};", made.text, signs.text)),
        }
        return Ok(());
    }
    if is_vector && is_even(&from) && is_even(&element) {
        let made = f.place(name, to, 0);
        let is_signed = matches!(op, "sext" | "sitofp");
        let from = if is_signed { x.signed_vector() } else { x.vector() };
        let own = if op == "sext" { made.signed_vector() } else { made.vector() };
        if op == "sext" {
            let wide = f.fresh("m");
            let v = f.values.types.vector(own.clone());
            f.line(format!("{v} {wide};"));
            converted(f, &CValue { text: wide.clone(), ..made.clone() }, own, x, from);
            let v = f.values.types.vector(made.vector());
            f.line(format!("TF_CAST({v}, {}, {wide});", made.text));
        } else {
            converted(f, &made, own, x, from);
        }
        return Ok(());
    }
    let c_type = scalar(&element);
    lanewise(f, name, &to.clone(), &|l| {
        let text = lane(x, l);
        let kept = match element {
            Type::Int(bits) if bits < width(bits) => format!(" & {}u", (1u32 << bits) - 1),
            _ => String::new(),
        };
        match op {
            "sext" | "sitofp" => format!("({c_type})({}{kept})", signed_value(&from, &text)),
            "trunc" if element == Type::Int(1) => format!("({text} & 1) != 0"),
            _ => format!("({c_type})({text}{kept})"),
        }
    });
    Ok(())
}

fn bitcast(f: &mut Writer, x: &CValue, to: &Type, name: &str) -> Result<()> {
    if x.ty == *to {
        f.assign(name, to, x.mask, &x.text);
        return Ok(());
    }
    if x.ty.lanes() > 1 {
        let made = f.place(name, to, 0);
        let v = f.values.types.name(&made);
        match made.vector().is_native() {
            true => f.line(format!("TF_CAST({v}, {}, {});", made.text, x.text)),
            false => f.line(format!("memcpy(&{0}, &{1}, sizeof {0});", made.text, x.text)),
        }
        return Ok(());
    }
    let made = match (&x.ty, to) {
        (Type::Float | Type::Double, _) => format!("tf_bits_{}({})", type_name(&x.ty), x.text),
        (_, Type::Float | Type::Double) => format!("tf_{}({})", type_name(to), x.text),
        _ => return Err(Error::internal("C", format!("a bitcast of {:?} to {to:?}", x.ty))),
    };
    f.assign(name, to, 0, &made);
    Ok(())
}
