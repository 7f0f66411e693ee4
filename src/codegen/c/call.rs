//! Calls: of functions of the file and of callers, and of what the text takes for instructions (`llvm.fma`).
use super::function::{FunctionWriter, parameter_type, result_type};
use super::instruction::{self, float_type_name, lane_text, read_typed_value, signed_value, write_lanewise};
use super::text::{IrOperand, IrReader, IrType};
use super::types::{c_integer_bits, c_scalar_type};
use super::values::CValue;
use crate::diag::{Error, Result};

/// Writes a `call` instruction in C: a call of a function or of an intrinsic.
pub fn write_call(f: &mut FunctionWriter, reader: &mut IrReader, name: Option<&str>) -> Result<()> {
    reader.eat("call");
    let ty = reader.read_type()?;
    // the only ones keep LLVM from moving values over a place
    if reader.eat("asm ") {
        return Ok(());
    }
    let callee = reader.read_operand()?;
    match &callee {
        IrOperand::Global(function) => match function.strip_prefix("llvm.") {
            Some(intrinsic) => self::intrinsic(f, intrinsic, &ty, reader, name),
            None => known(f, function, &ty, reader, name),
        },
        callee => pointer(f, callee, &ty, reader, name),
    }
}

/// Writes a direct call of a function of the module or of the user.
fn known(f: &mut FunctionWriter, function: &str, ty: &IrType, reader: &mut IrReader, name: Option<&str>) -> Result<()> {
    let signature = f.names.functions.get(function).cloned();
    let signature = signature.ok_or_else(|| Error::internal("C", format!("`@{function}` is unknown")))?;
    let args = reader.read_arguments()?;
    let mut list = Vec::new();
    for ((ty, operand), is_called) in args.iter().zip(&signature.is_called) {
        list.push(argument(f, ty, operand, *is_called)?);
    }
    finish(f, &format!("{}({})", signature.name, list.join(", ")), ty, name);
    Ok(())
}

/// Writes an indirect call through a function pointer.
fn pointer(
    f: &mut FunctionWriter,
    callee: &IrOperand,
    ty: &IrType,
    reader: &mut IrReader,
    name: Option<&str>,
) -> Result<()> {
    let callee = f.values.operand(&IrType::Pointer, callee)?.text;
    let args = reader.read_arguments()?;
    let (mut list, mut types) = (Vec::new(), Vec::new());
    for (ty, operand) in &args {
        let is_function = match operand {
            IrOperand::Global(name) => f.names.functions.contains_key(name),
            IrOperand::Local(name) => f.is_function_pointer(name),
            _ => false,
        };
        types.push(parameter_type(ty, is_function));
        list.push(argument(f, ty, operand, is_function)?);
    }
    let call = format!("(({} (*)({})){callee})({})", result_type(ty), types.join(", "), list.join(", "));
    finish(f, &call, ty, name);
    Ok(())
}

fn argument(f: &mut FunctionWriter, ty: &IrType, operand: &IrOperand, is_called: bool) -> Result<String> {
    let value = match operand {
        IrOperand::Global(name) => f.global_pointer(name)?,
        operand => f.values.operand(ty, operand)?.text,
    };
    Ok(match ty {
        IrType::Pointer => value,
        ty => format!("({}){value}", parameter_type(ty, is_called)),
    })
}

fn finish(f: &mut FunctionWriter, call: &str, ty: &IrType, name: Option<&str>) {
    match name {
        Some(name) if f.use_count(name) > 0 => {
            let cast = if *ty == IrType::Int(32) { "(uint32_t)" } else { "" };
            f.assign(name, ty, 0, &format!("{cast}{call}"));
        }
        _ if *ty == IrType::Void => f.push_line(format!("{call};")),
        _ => f.push_line(format!("(void){call};")),
    }
}

fn intrinsic(f: &mut FunctionWriter, what: &str, ty: &IrType, reader: &mut IrReader, name: Option<&str>) -> Result<()> {
    if what.starts_with("mem") {
        return move_bytes(f, what, reader);
    }
    if what.starts_with("masked.") {
        return part(f, what, ty, reader, name);
    }
    let mut args = Vec::new();
    for (ty, operand) in reader.read_arguments()? {
        args.push(f.values.operand(&ty, &operand)?);
    }
    let (Some(name), Some(x)) = (name, args.first().cloned()) else {
        return Err(Error::internal("C", format!("`llvm.{what}` has no value")));
    };
    if what.starts_with("vector.reduce.or") {
        let lanes: Vec<String> = (0..x.ty.lanes()).map(|l| x.lane_text(l)).collect();
        f.assign(name, ty, 0, &lanes.join(" | "));
        return Ok(());
    }
    let element = x.ty.element().clone();
    let to = ty.element().clone();
    let stem = what.split('.').next().unwrap_or(what);
    let at = |i: usize, l: u64| args.get(i).map_or(String::new(), |arg| lane_text(arg, l));
    let float = float_type_name(&element);
    let suffix = if element == IrType::Float { "f" } else { "" };
    let bits = element.bits();
    if matches!(stem, "fabs" | "copysign") && matches!(ty, IrType::Vector(..)) && x.vector_type().is_native() {
        return by_bits(f, &args, name);
    }
    let make: Box<dyn Fn(u64) -> String> = match stem {
        "fma" => {
            let fused = if element == IrType::Float { "tf_fma_float" } else { "fma" };
            Box::new(move |l| format!("{fused}({}, {}, {})", at(0, l), at(1, l), at(2, l)))
        }
        "sqrt" => Box::new(|l| format!("sqrt{suffix}({})", at(0, l))),
        "fabs" => Box::new(|l| format!("tf_abs_{float}({})", at(0, l))),
        "copysign" => Box::new(|l| format!("tf_sign_{float}({}, {})", at(0, l), at(1, l))),
        "smax" | "smin" => {
            let sign = if stem == "smax" { ">" } else { "<" };
            Box::new(move |l| {
                let (a, b) = (at(0, l), at(1, l));
                let cast = c_scalar_type(&to);
                format!("({cast})({} {sign} {} ? {a} : {b})", signed_value(&to, &a), signed_value(&to, &b))
            })
        }
        "umax" | "umin" => {
            let sign = if stem == "umax" { ">" } else { "<" };
            Box::new(move |l| {
                let (a, b) = (at(0, l), at(1, l));
                format!("({})({a} {sign} {b} ? {a} : {b})", c_scalar_type(&to))
            })
        }
        "abs" => Box::new(move |l| {
            let (a, kept) = (at(0, l), kept(bits));
            format!("({0})(({1} < 0 ? ({0})(0u - {a}) : {a}){kept})", c_scalar_type(&to), signed_value(&to, &a))
        }),
        "ctpop" => Box::new(|l| format!("({})tf_ones({})", c_scalar_type(&to), at(0, l))),
        "ctlz" => Box::new(|l| format!("({})(tf_zeros({}) - {}u)", c_scalar_type(&to), at(0, l), 64 - bits)),
        "fptosi" => Box::new(|l| {
            format!("({})(tf_to_signed({}, {}){})", c_scalar_type(&to), at(0, l), to.bits(), kept(to.bits()))
        }),
        "fptoui" => Box::new(|l| format!("({})tf_to_unsigned({}, {})", c_scalar_type(&to), at(0, l), to.bits())),
        _ => return Err(Error::internal("C", format!("`llvm.{what}` is unknown"))),
    };
    write_lanewise(f, name, ty, &make);
    Ok(())
}

/// Writes `fabs` or `copysign` of float vectors by bit operations: the magnitude of the first argument, with the sign of the second if
/// there is one.
fn by_bits(f: &mut FunctionWriter, args: &[CValue], name: &str) -> Result<()> {
    let x = &args[0];
    let bits = x.ty.element().bits();
    let words = x.ty.with_element(IrType::Int(bits));
    let top = 1u64 << (bits - 1);
    let masks = [top - 1, top];
    let mut parts = Vec::new();
    for (arg, mask) in args.iter().zip(masks) {
        let mask = f.values.constant(&words, &IrOperand::Splat(Box::new(IrOperand::Int(mask))), 8)?;
        let word = instruction::bitcast_vector(f, arg, &words);
        parts.push(instruction::binary_value(f, &word, "&", &mask));
    }
    let whole = match &parts[..] {
        [size, sign] => instruction::binary_value(f, size, "|", sign),
        _ => parts[0].clone(),
    };
    let made = instruction::bitcast_vector(f, &whole, &x.ty);
    f.assign(name, &x.ty, 0, &made.text);
    Ok(())
}

/// The C text (a mask) that truncates an integer to `bits` bits; empty if its C type is that wide.
fn kept(bits: u32) -> String {
    if bits < c_integer_bits(bits) { format!(" & {}u", (1u32 << bits) - 1) } else { String::new() }
}

fn move_bytes(f: &mut FunctionWriter, what: &str, reader: &mut IrReader) -> Result<()> {
    let args = reader.read_arguments()?;
    let mut text = Vec::new();
    for (ty, operand) in &args {
        text.push(match operand {
            IrOperand::Global(name) => f.global_pointer(name)?,
            operand => f.values.operand(ty, operand)?.text,
        });
    }
    let [to, from, bytes, ..] = &text[..] else { return Err(Error::internal("C", "a copy of nothing")) };
    f.push_line(match what.starts_with("memset") {
        true => format!("memset({to}, (int){from}, (size_t){bytes});"),
        false => format!("memcpy({to}, {from}, (size_t){bytes});"),
    });
    Ok(())
}

/// Writes a masked load or store, whose mask selects the first lanes.
fn part(f: &mut FunctionWriter, what: &str, ty: &IrType, reader: &mut IrReader, name: Option<&str>) -> Result<()> {
    reader.expect("(")?;
    let is_load = what.starts_with("masked.load");
    let value = if is_load { None } else { Some(read_typed_value(f, reader)?) };
    reader.eat(",");
    let at = read_typed_value(f, reader)?;
    reader.expect(",")?;
    let (_, mask) = reader.read_typed_operand()?;
    let IrOperand::List(lanes) = mask else { return Err(Error::internal("C", "a mask is no constant")) };
    let count = lanes.iter().take_while(|(_, lane)| *lane == IrOperand::Int(1)).count();
    let (value, name) = match (value, name) {
        (Some(value), _) => (value, ""),
        (None, Some(name)) => (CValue { ty: ty.clone(), mask: 0, text: String::new() }, name),
        (None, None) => return Err(Error::internal("C", "a load without a value")),
    };
    let lane = value.vector_type().lane_type();
    if is_load {
        let zero = f.values.constant(ty, &IrOperand::Zero, 8)?.text;
        let to = f.declare_variable(name, ty, 0);
        f.push_line(format!("{0} = {zero}; memcpy(&{0}, {1}, {count} * sizeof({lane}));", to.text, at.text));
    } else {
        let held = f.fresh_name("m");
        let v = f.values.types.type_of(&value);
        f.push_line(format!("{v} {held} = {};", value.text));
        f.push_line(format!("memcpy({}, &{held}, {count} * sizeof({lane}));", at.text));
    }
    Ok(())
}
