//! Calls: of functions of the file and of callers, and of what the text takes for instructions (`llvm.fma`).
use super::function::{Writer, parameter, result};
use super::instruction::{self, lane, lanewise, signed_value, type_name, typed};
use super::text::{IrOperand, Reader, Type};
use super::types::{scalar, width};
use super::values::CValue;
use crate::diag::{Error, Result};

/// Writes a call.
pub fn write(f: &mut Writer, reader: &mut Reader, name: Option<&str>) -> Result<()> {
    reader.eat("call");
    let ty = reader.ty()?;
    // the only ones keep LLVM from moving values over a place
    if reader.eat("asm ") {
        return Ok(());
    }
    let callee = reader.operand()?;
    match &callee {
        IrOperand::Global(function) => match function.strip_prefix("llvm.") {
            Some(intrinsic) => self::intrinsic(f, intrinsic, &ty, reader, name),
            None => known(f, function, &ty, reader, name),
        },
        callee => pointer(f, callee, &ty, reader, name),
    }
}

/// A call of a function of the file or of the user.
fn known(f: &mut Writer, function: &str, ty: &Type, reader: &mut Reader, name: Option<&str>) -> Result<()> {
    let signature = f.names.functions.get(function).cloned();
    let signature = signature.ok_or_else(|| Error::internal("C", format!("`@{function}` is unknown")))?;
    let args = reader.arguments()?;
    let mut list = Vec::new();
    for ((ty, operand), is_called) in args.iter().zip(&signature.is_called) {
        list.push(argument(f, ty, operand, *is_called)?);
    }
    finish(f, &format!("{}({})", signature.name, list.join(", ")), ty, name);
    Ok(())
}

/// A call of a function that a pointer is to.
fn pointer(f: &mut Writer, callee: &IrOperand, ty: &Type, reader: &mut Reader, name: Option<&str>) -> Result<()> {
    let callee = f.values.operand(&Type::Pointer, callee)?.text;
    let args = reader.arguments()?;
    let (mut list, mut types) = (Vec::new(), Vec::new());
    for (ty, operand) in &args {
        let is_function = match operand {
            IrOperand::Global(name) => f.names.functions.contains_key(name),
            IrOperand::Local(name) => f.is_called(name),
            _ => false,
        };
        types.push(parameter(ty, is_function));
        list.push(argument(f, ty, operand, is_function)?);
    }
    let call = format!("(({} (*)({})){callee})({})", result(ty), types.join(", "), list.join(", "));
    finish(f, &call, ty, name);
    Ok(())
}

fn argument(f: &mut Writer, ty: &Type, operand: &IrOperand, is_called: bool) -> Result<String> {
    let value = match operand {
        IrOperand::Global(name) => f.global(name)?,
        operand => f.values.operand(ty, operand)?.text,
    };
    Ok(match ty {
        Type::Pointer => value,
        ty => format!("({}){value}", parameter(ty, is_called)),
    })
}

fn finish(f: &mut Writer, call: &str, ty: &Type, name: Option<&str>) {
    match name {
        Some(name) if f.uses(name) > 0 => {
            let cast = if *ty == Type::Int(32) { "(uint32_t)" } else { "" };
            f.assign(name, ty, 0, &format!("{cast}{call}"));
        }
        _ if *ty == Type::Void => f.line(format!("{call};")),
        _ => f.line(format!("(void){call};")),
    }
}

fn intrinsic(f: &mut Writer, what: &str, ty: &Type, reader: &mut Reader, name: Option<&str>) -> Result<()> {
    if what.starts_with("mem") {
        return move_bytes(f, what, reader);
    }
    if what.starts_with("masked.") {
        return part(f, what, ty, reader, name);
    }
    let mut args = Vec::new();
    for (ty, operand) in reader.arguments()? {
        args.push(f.values.operand(&ty, &operand)?);
    }
    let (Some(name), Some(x)) = (name, args.first().cloned()) else {
        return Err(Error::internal("C", format!("`llvm.{what}` has no value")));
    };
    if what.starts_with("vector.reduce.or") {
        let lanes: Vec<String> = (0..x.ty.lanes()).map(|l| x.lane(l)).collect();
        f.assign(name, ty, 0, &lanes.join(" | "));
        return Ok(());
    }
    let element = x.ty.element().clone();
    let to = ty.element().clone();
    let stem = what.split('.').next().unwrap_or(what);
    let at = |i: usize, l: u64| args.get(i).map_or(String::new(), |arg| lane(arg, l));
    let float = type_name(&element);
    let suffix = if element == Type::Float { "f" } else { "" };
    let bits = element.bits();
    if matches!(stem, "fabs" | "copysign") && matches!(ty, Type::Vector(..)) && x.vector().is_native() {
        return by_bits(f, &args, name);
    }
    let make: Box<dyn Fn(u64) -> String> = match stem {
        "fma" => {
            let fused = if element == Type::Float { "tf_fma_float" } else { "fma" };
            Box::new(move |l| format!("{fused}({}, {}, {})", at(0, l), at(1, l), at(2, l)))
        }
        "sqrt" => Box::new(|l| format!("sqrt{suffix}({})", at(0, l))),
        "fabs" => Box::new(|l| format!("tf_abs_{float}({})", at(0, l))),
        "copysign" => Box::new(|l| format!("tf_sign_{float}({}, {})", at(0, l), at(1, l))),
        "smax" | "smin" => {
            let sign = if stem == "smax" { ">" } else { "<" };
            Box::new(move |l| {
                let (a, b) = (at(0, l), at(1, l));
                let cast = scalar(&to);
                format!("({cast})({} {sign} {} ? {a} : {b})", signed_value(&to, &a), signed_value(&to, &b))
            })
        }
        "umax" | "umin" => {
            let sign = if stem == "umax" { ">" } else { "<" };
            Box::new(move |l| {
                let (a, b) = (at(0, l), at(1, l));
                format!("({})({a} {sign} {b} ? {a} : {b})", scalar(&to))
            })
        }
        "abs" => Box::new(move |l| {
            let (a, kept) = (at(0, l), kept(bits));
            format!("({0})(({1} < 0 ? ({0})(0u - {a}) : {a}){kept})", scalar(&to), signed_value(&to, &a))
        }),
        "ctpop" => Box::new(|l| format!("({})tf_ones({})", scalar(&to), at(0, l))),
        "ctlz" => Box::new(|l| format!("({})(tf_zeros({}) - {}u)", scalar(&to), at(0, l), 64 - bits)),
        "fptosi" => {
            Box::new(|l| format!("({})(tf_to_signed({}, {}){})", scalar(&to), at(0, l), to.bits(), kept(to.bits())))
        }
        "fptoui" => Box::new(|l| format!("({})tf_to_unsigned({}, {})", scalar(&to), at(0, l), to.bits())),
        _ => return Err(Error::internal("C", format!("`llvm.{what}` is unknown"))),
    };
    lanewise(f, name, ty, &make);
    Ok(())
}

/// The magnitude of the first of some vectors of floats, with the sign of the second where there is one.
fn by_bits(f: &mut Writer, args: &[CValue], name: &str) -> Result<()> {
    let x = &args[0];
    let bits = x.ty.element().bits();
    let words = x.ty.with_element(Type::Int(bits));
    let top = 1u64 << (bits - 1);
    let masks = [top - 1, top];
    let mut parts = Vec::new();
    for (arg, mask) in args.iter().zip(masks) {
        let mask = f.values.constant(&words, &IrOperand::Splat(Box::new(IrOperand::Int(mask))), 8)?;
        let word = instruction::cast(f, arg, &words);
        parts.push(instruction::combined(f, &word, "&", &mask));
    }
    let whole = match &parts[..] {
        [size, sign] => instruction::combined(f, size, "|", sign),
        _ => parts[0].clone(),
    };
    let made = instruction::cast(f, &whole, &x.ty);
    f.assign(name, &x.ty, 0, &made.text);
    Ok(())
}

/// Cuts an integer of fewer bits than its C type has.
fn kept(bits: u32) -> String {
    if bits < width(bits) { format!(" & {}u", (1u32 << bits) - 1) } else { String::new() }
}

fn move_bytes(f: &mut Writer, what: &str, reader: &mut Reader) -> Result<()> {
    let args = reader.arguments()?;
    let mut text = Vec::new();
    for (ty, operand) in &args {
        text.push(match operand {
            IrOperand::Global(name) => f.global(name)?,
            operand => f.values.operand(ty, operand)?.text,
        });
    }
    let [to, from, bytes, ..] = &text[..] else { return Err(Error::internal("C", "a copy of nothing")) };
    f.line(match what.starts_with("memset") {
        true => format!("memset({to}, (int){from}, (size_t){bytes});"),
        false => format!("memcpy({to}, {from}, (size_t){bytes});"),
    });
    Ok(())
}

/// Loads and stores of the first lanes alone.
fn part(f: &mut Writer, what: &str, ty: &Type, reader: &mut Reader, name: Option<&str>) -> Result<()> {
    reader.expect("(")?;
    let is_load = what.starts_with("masked.load");
    let value = if is_load { None } else { Some(typed(f, reader)?) };
    reader.eat(",");
    let at = typed(f, reader)?;
    reader.expect(",")?;
    let (_, mask) = reader.typed()?;
    let IrOperand::List(lanes) = mask else { return Err(Error::internal("C", "a mask is no constant")) };
    let count = lanes.iter().take_while(|(_, lane)| *lane == IrOperand::Int(1)).count();
    let (value, name) = match (value, name) {
        (Some(value), _) => (value, ""),
        (None, Some(name)) => (CValue { ty: ty.clone(), mask: 0, text: String::new() }, name),
        (None, None) => return Err(Error::internal("C", "a load without a value")),
    };
    let lane = value.vector().lane();
    if is_load {
        let zero = f.values.constant(ty, &IrOperand::Zero, 8)?.text;
        let to = f.place(name, ty, 0);
        f.line(format!("{0} = {zero}; memcpy(&{0}, {1}, {count} * sizeof({lane}));", to.text, at.text));
    } else {
        let held = f.fresh("m");
        let v = f.values.types.name(&value);
        f.line(format!("{v} {held} = {};", value.text));
        f.line(format!("memcpy({}, &{held}, {count} * sizeof({lane}));", at.text));
    }
    Ok(())
}
