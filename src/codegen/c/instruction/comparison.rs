//! Comparisons and selections, by truth values and masks.
use super::arithmetic::{binary_value, signed_value};
use super::conversion::resize_mask;
use super::{lane_text, read_typed_value, write_lanewise};
use crate::codegen::c::function::FunctionWriter;
use crate::codegen::c::text::{IrOperand, IrReader, IrType};
use crate::codegen::c::types::{CVectorType, c_integer_bits, c_scalar_type};
use crate::codegen::c::values::CValue;
use crate::diag::{Error, Result};

/// Whether a C literal is the integer 0.
fn is_zero(text: &str) -> bool {
    text.strip_prefix("UINT").is_some_and(|rest| rest.ends_with("_C(0)"))
}

pub(super) fn write_compare(f: &mut FunctionWriter, op: &str, reader: &mut IrReader, name: &str) -> Result<()> {
    let relation = reader.read_word();
    let x = read_typed_value(f, reader)?;
    reader.expect(",")?;
    let other = reader.read_operand()?;
    let y = match &other {
        IrOperand::Local(_) => f.values.operand(&x.ty, &other)?,
        constant => f.values.constant(&x.ty, constant, x.mask)?,
    };
    let x = if x.is_mask() { resize_mask(f, &x, y.mask) } else { x };
    let is_signed = op == "icmp" && relation.starts_with('s');
    let sign = match relation.trim_start_matches(if op == "icmp" { ['s', 'u'] } else { ['o', 'u'] }) {
        "eq" => "==",
        "ne" => "!=",
        "gt" => ">",
        "ge" => ">=",
        "lt" => "<",
        "le" => "<=",
        "no" => "nan",
        other => return Err(Error::internal("C", format!("relation `{other}`"))),
    };
    let plain = x.ty.with_element(IrType::Int(1));
    let element = x.ty.element().clone();
    let of_floats = op == "fcmp" && !matches!(relation, "oeq" | "une" | "ogt" | "oge" | "olt" | "ole");
    let is_odd =
        matches!(element, IrType::Int(bits) if bits != c_integer_bits(bits) && (bits != 1 || x.ty.lanes() == 1));
    if x.ty.lanes() == 1 || !x.vector_type().is_native() || is_odd {
        let cast = |text: String| if is_signed { signed_value(&element, &text) } else { text };
        write_lanewise(f, name, &plain, &|l| {
            let (a, b) = (cast(lane_text(&x, l)), cast(lane_text(&y, l)));
            match (of_floats, relation) {
                (true, "uno") => format!("{a} != {a} || {b} != {b}"),
                (true, "one") => format!("{a} < {b} || {a} > {b}"),
                (true, "ueq") => format!("!({a} < {b} || {a} > {b})"),
                (true, _) => format!("!({a} {} {b})", opposite(sign)),
                // compilers warn of what is no question
                (false, "ult") if is_zero(&b) => format!("({a} & {b}) != {b}"),
                (false, "uge") if is_zero(&b) => format!("({a} & {b}) == {b}"),
                (false, _) => format!("{a} {sign} {b}"),
            }
        });
        return Ok(());
    }
    let bits = if x.is_mask() { x.mask } else { element.bits() };
    let operands = if is_signed { x.signed_vector_type() } else { x.vector_type() };
    let one = |f: &mut FunctionWriter, sign: &str, a: &CValue, b: &CValue| {
        let to = CValue { ty: plain.clone(), mask: bits, text: f.fresh_name("m") };
        let (v, u) = (f.values.types.vector_name(to.vector_type()), f.values.types.vector_name(operands.clone()));
        let (e, s, n) = (to.vector_type().lane_type(), operands.lane_type(), plain.lanes());
        f.push_line(format!("{v} {};", to.text));
        f.push_line(format!("TF_COMPARE({v}, {u}, {e}, {s}, {n}, {}, {}, {sign}, {});", to.text, a.text, b.text));
        to
    };
    let to = match (of_floats, relation) {
        (false, _) => one(f, sign, &x, &y),
        (true, "uno") => {
            let (a, b) = (one(f, "!=", &x, &x), one(f, "!=", &y, &y));
            binary_value(f, &a, "|", &b)
        }
        (true, "one" | "ueq") => {
            let (a, b) = (one(f, "<", &x, &y), one(f, ">", &x, &y));
            let differ = binary_value(f, &a, "|", &b);
            if relation == "one" { differ } else { turned(f, &differ)? }
        }
        (true, _) => {
            let other = one(f, opposite(sign), &x, &y);
            turned(f, &other)?
        }
    };
    f.assign(name, &plain, bits, &to.text);
    Ok(())
}

/// The C relational operator that is the negation of `sign`.
fn opposite(sign: &str) -> &'static str {
    match sign {
        "<" => ">=",
        "<=" => ">",
        ">" => "<=",
        ">=" => "<",
        "==" => "!=",
        _ => "==",
    }
}

/// Writes the complement of a mask.
fn turned(f: &mut FunctionWriter, x: &CValue) -> Result<CValue> {
    let all = f.values.constant(&x.ty, &IrOperand::Splat(Box::new(IrOperand::Int(1))), x.mask)?;
    Ok(binary_value(f, x, "^", &all))
}

pub(super) fn write_select(f: &mut FunctionWriter, reader: &mut IrReader, name: &str) -> Result<()> {
    let cond = read_typed_value(f, reader)?;
    reader.expect(",")?;
    let mut sides = Vec::new();
    for _ in 0..2 {
        sides.push(read_typed_value(f, reader)?);
        reader.eat(",");
    }
    let [x, y] = [sides[0].clone(), sides[1].clone()];
    if cond.ty.lanes() == 1 {
        let y = if x.is_mask() { resize_mask(f, &y, x.mask) } else { y };
        if matches!(x.ty, IrType::Vector(..)) || matches!(x.ty, IrType::Struct(_)) {
            let to = f.declare_variable(name, &x.ty, x.mask);
            f.push_line(format!("if ({}) {{ {2} = {1}; }} else {{ {2} = {3}; }}", cond.text, x.text, to.text, y.text));
        } else {
            let cast = if x.ty.bits() < 32 && x.ty != IrType::Int(1) {
                format!("({})", c_scalar_type(&x.ty))
            } else {
                String::new()
            };
            f.assign(name, &x.ty, 0, &format!("{cast}({} ? {} : {})", cond.text, x.text, y.text));
        }
        return Ok(());
    }
    if !x.vector_type().is_native() {
        write_lanewise(f, name, &x.ty.clone(), &|l| {
            format!("{} ? {} : {}", cond.lane_text(l), x.lane_text(l), y.lane_text(l))
        });
        return Ok(());
    }
    let bits = if x.is_mask() { x.mask.max(y.mask) } else { c_integer_bits(x.ty.element().bits()) };
    let (x, y) = if x.is_mask() { (resize_mask(f, &x, bits), resize_mask(f, &y, bits)) } else { (x, y) };
    let cond = resize_mask(f, &cond, bits);
    let to = f.declare_variable(name, &x.ty, x.mask);
    let words = CVectorType { lanes: to.ty.lanes(), element: format!("u{bits}") };
    let (v, u) = (f.values.types.vector_name(to.vector_type()), f.values.types.vector_name(words));
    let (n, t) = (to.ty.lanes(), &to.text);
    f.push_line(format!("TF_SELECT({v}, {u}, {n}, {t}, {}, {}, {});", cond.text, x.text, y.text));
    Ok(())
}
