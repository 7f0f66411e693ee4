//! Comparisons and selections, by truth values and masks.
use super::arithmetic::{combined, signed_value};
use super::conversion::masked;
use super::{lane, lanewise, typed};
use crate::codegen::c::function::Writer;
use crate::codegen::c::text::{IrOperand, Reader, Type};
use crate::codegen::c::types::{Vector, scalar, width};
use crate::codegen::c::values::CValue;
use crate::diag::{Error, Result};

/// Whether a number of C is an integer that is 0.
fn is_zero(text: &str) -> bool {
    text.strip_prefix("UINT").is_some_and(|rest| rest.ends_with("_C(0)"))
}

pub(super) fn compare(f: &mut Writer, op: &str, reader: &mut Reader, name: &str) -> Result<()> {
    let relation = reader.word();
    let x = typed(f, reader)?;
    reader.expect(",")?;
    let other = reader.operand()?;
    let y = match &other {
        IrOperand::Local(_) => f.values.operand(&x.ty, &other)?,
        constant => f.values.constant(&x.ty, constant, x.mask)?,
    };
    let x = if x.is_mask() { masked(f, &x, y.mask) } else { x };
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
    let plain = x.ty.with_element(Type::Int(1));
    let element = x.ty.element().clone();
    let of_floats = op == "fcmp" && !matches!(relation, "oeq" | "une" | "ogt" | "oge" | "olt" | "ole");
    let is_odd = matches!(element, Type::Int(bits) if bits != width(bits) && (bits != 1 || x.ty.lanes() == 1));
    if x.ty.lanes() == 1 || !x.vector().is_native() || is_odd {
        let cast = |text: String| if is_signed { signed_value(&element, &text) } else { text };
        lanewise(f, name, &plain, &|l| {
            let (a, b) = (cast(lane(&x, l)), cast(lane(&y, l)));
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
    let operands = if is_signed { x.signed_vector() } else { x.vector() };
    let one = |f: &mut Writer, sign: &str, a: &CValue, b: &CValue| {
        let to = CValue { ty: plain.clone(), mask: bits, text: f.fresh("m") };
        let (v, u) = (f.values.types.vector(to.vector()), f.values.types.vector(operands.clone()));
        let (e, s, n) = (to.vector().lane(), operands.lane(), plain.lanes());
        f.line(format!("{v} {};", to.text));
        f.line(format!("TF_COMPARE({v}, {u}, {e}, {s}, {n}, {}, {}, {sign}, {});", to.text, a.text, b.text));
        to
    };
    let to = match (of_floats, relation) {
        (false, _) => one(f, sign, &x, &y),
        (true, "uno") => {
            let (a, b) = (one(f, "!=", &x, &x), one(f, "!=", &y, &y));
            combined(f, &a, "|", &b)
        }
        (true, "one" | "ueq") => {
            let (a, b) = (one(f, "<", &x, &y), one(f, ">", &x, &y));
            let differ = combined(f, &a, "|", &b);
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

/// The relation that holds where `sign` does not.
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

/// A mask of the other lanes.
fn turned(f: &mut Writer, x: &CValue) -> Result<CValue> {
    let all = f.values.constant(&x.ty, &IrOperand::Splat(Box::new(IrOperand::Int(1))), x.mask)?;
    Ok(combined(f, x, "^", &all))
}

pub(super) fn select(f: &mut Writer, reader: &mut Reader, name: &str) -> Result<()> {
    let cond = typed(f, reader)?;
    reader.expect(",")?;
    let mut sides = Vec::new();
    for _ in 0..2 {
        sides.push(typed(f, reader)?);
        reader.eat(",");
    }
    let [x, y] = [sides[0].clone(), sides[1].clone()];
    if cond.ty.lanes() == 1 {
        let y = if x.is_mask() { masked(f, &y, x.mask) } else { y };
        if matches!(x.ty, Type::Vector(..)) || matches!(x.ty, Type::Struct(_)) {
            let to = f.place(name, &x.ty, x.mask);
            f.line(format!("if ({}) {{ {2} = {1}; }} else {{ {2} = {3}; }}", cond.text, x.text, to.text, y.text));
        } else {
            let cast =
                if x.ty.bits() < 32 && x.ty != Type::Int(1) { format!("({})", scalar(&x.ty)) } else { String::new() };
            f.assign(name, &x.ty, 0, &format!("{cast}({} ? {} : {})", cond.text, x.text, y.text));
        }
        return Ok(());
    }
    if !x.vector().is_native() {
        lanewise(f, name, &x.ty.clone(), &|l| format!("{} ? {} : {}", cond.lane(l), x.lane(l), y.lane(l)));
        return Ok(());
    }
    let bits = if x.is_mask() { x.mask.max(y.mask) } else { width(x.ty.element().bits()) };
    let (x, y) = if x.is_mask() { (masked(f, &x, bits), masked(f, &y, bits)) } else { (x, y) };
    let cond = masked(f, &cond, bits);
    let to = f.place(name, &x.ty, x.mask);
    let words = Vector { lanes: to.ty.lanes(), element: format!("u{bits}") };
    let (v, u) = (f.values.types.vector(to.vector()), f.values.types.vector(words));
    let (n, t) = (to.ty.lanes(), &to.text);
    f.line(format!("TF_SELECT({v}, {u}, {n}, {t}, {}, {}, {});", cond.text, x.text, y.text));
    Ok(())
}
