//! Instructions as statements: memory, arithmetic, comparisons, conversions, and the lanes of vectors.
use super::call;
use super::function::Writer;
use super::text::{IrOperand, Reader, Type};
use super::types::{Vector, scalar, signed, width};
use super::values::CValue;
use crate::diag::{Error, Result};

/// Writes one instruction, whose value is called `name`.
pub fn write(f: &mut Writer, op: &str, reader: &mut Reader, name: Option<&str>) -> Result<()> {
    match (op, name) {
        ("store", _) => store(f, reader),
        ("tail" | "call", _) => call::write(f, reader, name),
        (_, None) => Err(Error::internal("C", format!("`{op}` has no meaning"))),
        ("load", Some(name)) => load(f, reader, name),
        ("getelementptr", Some(name)) => address(f, reader, name),
        ("icmp" | "fcmp", Some(name)) => compare(f, op, reader, name),
        ("select", Some(name)) => select(f, reader, name),
        ("fneg" | "freeze", Some(name)) => {
            let x = typed(f, reader)?;
            match (op, &x.ty) {
                ("freeze", _) => f.assign(name, &x.ty, x.mask, &x.text),
                _ => {
                    lanewise(f, name, &x.ty.clone(), &|l| format!("tf_neg_{}({})", named(x.ty.element()), lane(&x, l)))
                }
            }
            Ok(())
        }
        ("trunc" | "zext" | "sext" | "fpext" | "fptrunc" | "sitofp" | "uitofp" | "fptoui" | "bitcast", Some(name)) => {
            let x = typed(f, reader)?;
            reader.expect("to ")?;
            let to = reader.ty()?;
            convert(f, op, &x, &to, name)
        }
        ("extractvalue", Some(name)) => {
            let x = typed(f, reader)?;
            let Type::Struct(parts) = &x.ty else { return Err(Error::internal("C", "no pair")) };
            let part = if reader.eat(", 0") { "re" } else { "im" };
            f.assign(name, &parts[0], 0, &format!("{}.{part}", x.text));
            Ok(())
        }
        ("insertvalue", Some(name)) => {
            let x = typed(f, reader)?;
            reader.expect(",")?;
            let part = typed(f, reader)?;
            let member = if reader.eat(", 0") { "re" } else { "im" };
            let made = f.place(name, &x.ty, 0);
            f.line(format!("{0} = {1}; {0}.{member} = {2};", made.text, x.text, part.text));
            Ok(())
        }
        ("extractelement", Some(name)) => {
            let x = typed(f, reader)?;
            reader.expect(",")?;
            let (_, at) = reader.typed()?;
            let IrOperand::Int(at) = at else { return Err(Error::internal("C", "a lane is no constant")) };
            f.assign(name, x.ty.element(), 0, &x.lane(at));
            Ok(())
        }
        ("insertelement", Some(name)) => insert(f, reader, name),
        ("shufflevector", Some(name)) => shuffle(f, reader, name),
        (op, Some(name)) => arithmetic(f, op, reader, name),
    }
}

/// A typed operand.
pub fn typed(f: &mut Writer, reader: &mut Reader) -> Result<CValue> {
    let (ty, operand) = reader.typed()?;
    match &operand {
        IrOperand::Global(name) => Ok(CValue { ty, mask: 0, text: f.global(name)? }),
        operand => f.values.operand(&ty, operand),
    }
}

/// `float` or `double`, as names of functions have it.
pub fn named(element: &Type) -> &'static str {
    if *element == Type::Float { "float" } else { "double" }
}

/// A lane of a value that may be a single one.
pub fn lane(x: &CValue, lane: u64) -> String {
    if x.ty.lanes() == 1 { x.text.clone() } else { x.lane(lane) }
}

/// A value whose lanes are computed one by one.
pub fn lanewise(f: &mut Writer, name: &str, ty: &Type, make: &dyn Fn(u64) -> String) {
    if !matches!(ty, Type::Vector(..)) {
        return f.assign(name, ty, 0, &make(0));
    }
    let is_mask = *ty.element() == Type::Int(1);
    let lanes: Vec<String> = (0..ty.lanes())
        .map(|l| {
            if is_mask { format!("({}) ? -1 : 0", make(l)) } else { format!("({})({})", scalar(ty.element()), make(l)) }
        })
        .collect();
    let to = f.place(name, ty, if is_mask { 8 } else { 0 });
    let made = f.values.made(&to, &lanes);
    f.line(format!("{} = {made};", to.text));
}

/// The name of the functions that load and store a type.
fn memory(ty: &Type) -> String {
    match ty {
        Type::Int(bits) => width(*bits).to_string(),
        Type::Pointer => "pointer".to_string(),
        Type::Size => "size".to_string(),
        ty => named(ty).to_string(),
    }
}

fn load(f: &mut Writer, reader: &mut Reader, name: &str) -> Result<()> {
    let ty = reader.ty()?;
    reader.expect(",")?;
    let from = typed(f, reader)?;
    if from.ty != Type::Pointer {
        f.assign(name, &ty, from.mask, &from.text);
        return Ok(());
    }
    if let Type::Vector(..) = ty {
        let to = f.place(name, &ty, 0);
        from_memory(f, &to, &from.text);
        return Ok(());
    }
    let from_where = if f.is_called(name) { "function".to_string() } else { memory(&ty) };
    f.assign(name, &ty, 0, &format!("tf_load_{from_where}({})", from.text));
    Ok(())
}

/// Reads a vector.
fn from_memory(f: &mut Writer, to: &CValue, from: &str) {
    match to.vector().is_native() {
        true => f.line(format!("TF_LOAD({}, {}, {from});", to.vector().name(), to.text)),
        false => f.line(format!("memcpy(&{0}, {from}, sizeof {0});", to.text)),
    }
}

fn store(f: &mut Writer, reader: &mut Reader) -> Result<()> {
    let (ty, operand) = reader.typed()?;
    reader.expect(",")?;
    let to = typed(f, reader)?;
    if to.ty != Type::Pointer {
        let value = match &operand {
            IrOperand::Local(_) => f.values.operand(&ty, &operand)?,
            constant => f.values.constant(&ty, constant, to.mask)?,
        };
        let value = if value.is_mask() { masked(f, &value, to.mask) } else { value };
        f.line(format!("{} = {};", to.text, value.text));
        return Ok(());
    }
    if let IrOperand::Global(name) = &operand {
        let value = f.global(name)?;
        f.line(format!("tf_store_pointer({}, {value});", to.text));
        return Ok(());
    }
    let value = f.values.operand(&ty, &operand)?;
    match &ty {
        Type::Vector(..) if value.vector().is_native() => {
            f.line(format!("TF_STORE({}, {}, {});", value.vector().name(), to.text, value.text));
        }
        Type::Vector(..) | Type::Struct(_) => f.line(format!("memcpy({}, &{1}, sizeof {1});", to.text, value.text)),
        ty => f.line(format!("tf_store_{}({}, {});", memory(ty), to.text, value.text)),
    }
    Ok(())
}

fn address(f: &mut Writer, reader: &mut Reader, name: &str) -> Result<()> {
    let element = reader.ty()?;
    reader.expect(",")?;
    let from = typed(f, reader)?;
    reader.expect(",")?;
    let (ty, index) = reader.typed()?;
    let size = match &element {
        Type::Pointer => "(ptrdiff_t)sizeof(void *)".to_string(),
        Type::Int(bits) => (width(*bits) / 8).to_string(),
        Type::Float => "4".to_string(),
        Type::Double => "8".to_string(),
        Type::Struct(parts) => {
            let own = f.values.types.structure(parts);
            if reader.eat(",") {
                let (_, member) = reader.typed()?;
                let IrOperand::Int(member) = member else { return Err(Error::internal("C", "no member")) };
                f.assign(name, &Type::Pointer, 0, &format!("{} + offsetof({own}, m{member})", from.text));
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
    f.assign(name, &Type::Pointer, 0, &format!("{} + {by}", from.text));
    Ok(())
}

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

/// Whether a number of C is an integer that is 0.
fn is_zero(text: &str) -> bool {
    text.strip_prefix("UINT").is_some_and(|rest| rest.ends_with("_C(0)"))
}

fn compare(f: &mut Writer, op: &str, reader: &mut Reader, name: &str) -> Result<()> {
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
        let cast = |text: String| if is_signed { of_signed(&element, &text) } else { text };
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

/// `a op b` of two masks or vectors of one type.
pub fn combined(f: &mut Writer, a: &CValue, op: &str, b: &CValue) -> CValue {
    let to = CValue { text: f.fresh("m"), ..a.clone() };
    let v = f.values.types.vector(to.vector());
    f.line(format!("{v} {};", to.text));
    binary(f, &to, to.vector(), a, op, b);
    to
}

/// A vector taken as one of another type, bit for bit.
pub fn cast(f: &mut Writer, x: &CValue, to: &Type) -> CValue {
    let made = CValue { ty: to.clone(), mask: 0, text: f.fresh("m") };
    let v = f.values.types.name(&made);
    f.line(format!("{v} {0}; TF_CAST({v}, {0}, {1});", made.text, x.text));
    made
}

/// A mask of the other lanes.
fn turned(f: &mut Writer, x: &CValue) -> Result<CValue> {
    let all = f.values.constant(&x.ty, &IrOperand::Splat(Box::new(IrOperand::Int(1))), x.mask)?;
    Ok(combined(f, x, "^", &all))
}

/// Writes `to = a op b`, the lanes of operands taken as `operands` has them.
fn binary(f: &mut Writer, to: &CValue, operands: Vector, a: &CValue, op: &str, b: &CValue) {
    let (n, e) = (to.ty.lanes(), to.vector().lane());
    // products of 16 bits in C's `int` could overflow
    let s = if operands.lane() == "uint16_t" { "uint32_t".to_string() } else { operands.lane() };
    let (v, u) = (f.values.types.vector(to.vector()), f.values.types.vector(operands));
    f.line(format!("TF_BINARY({v}, {u}, {e}, {s}, {n}, {}, {}, {op}, {});", to.text, a.text, b.text));
}

fn select(f: &mut Writer, reader: &mut Reader, name: &str) -> Result<()> {
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

/// The value of an integer of any width as a signed number of C.
pub fn of_signed(ty: &Type, text: &str) -> String {
    match ty {
        Type::Int(1) => format!("(-({text}))"),
        Type::Int(bits) if *bits != width(*bits) => {
            let shift = width(*bits) - bits;
            format!("((int{0}_t)((uint{0}_t)({text} << {shift})) >> {shift})", width(*bits))
        }
        ty => format!("({}){text}", signed(ty)),
    }
}

fn convert(f: &mut Writer, op: &str, x: &CValue, to: &Type, name: &str) -> Result<()> {
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
            "sext" | "sitofp" => format!("({c_type})({}{kept})", of_signed(&from, &text)),
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
        (Type::Float | Type::Double, _) => format!("tf_bits_{}({})", named(&x.ty), x.text),
        (_, Type::Float | Type::Double) => format!("tf_{}({})", named(to), x.text),
        _ => return Err(Error::internal("C", format!("a bitcast of {:?} to {to:?}", x.ty))),
    };
    f.assign(name, to, 0, &made);
    Ok(())
}

fn insert(f: &mut Writer, reader: &mut Reader, name: &str) -> Result<()> {
    let (ty, before) = reader.typed()?;
    reader.expect(",")?;
    let one = typed(f, reader)?;
    reader.expect(",")?;
    let (_, at) = reader.typed()?;
    let IrOperand::Int(at) = at else { return Err(Error::internal("C", "a lane is no constant")) };
    let is_first = before == IrOperand::Poison && at == 0;
    let before = f.values.operand(&ty, &before)?;
    if is_first {
        f.first.insert(name.to_string(), one.text.clone());
        if f.is_only_spread(name) {
            f.values.known.insert(name.to_string(), before);
            return Ok(());
        }
    }
    let to = f.place(name, &ty, before.mask);
    let text = if to.is_mask() { format!("{} ? -1 : 0", one.text) } else { one.text.clone() };
    let place = match to.vector().is_native() {
        true => format!("TF_LANE({}, {at})", to.text),
        false => format!("{}.e[{at}]", to.text),
    };
    f.line(format!("{} = {}; {place} = {text};", to.text, before.text));
    Ok(())
}

fn shuffle(f: &mut Writer, reader: &mut Reader, name: &str) -> Result<()> {
    let (ty, a) = reader.typed()?;
    reader.expect(",")?;
    let (_, b) = reader.typed()?;
    reader.expect(",")?;
    let (picks_ty, picks) = reader.typed()?;
    let to_ty = Type::Vector(picks_ty.lanes(), Box::new(ty.element().clone()));
    let picks: Vec<u64> = match picks {
        IrOperand::List(all) => {
            all.iter().map(|(_, pick)| if let IrOperand::Int(pick) = pick { *pick } else { 0 }).collect()
        }
        _ => vec![0; picks_ty.lanes() as usize],
    };
    let x = f.values.operand(&ty, &a)?;
    let y = if b == IrOperand::Poison { x.clone() } else { f.values.operand(&ty, &b)? };
    let splat = if let IrOperand::Local(from) = &a { f.first.get(from).cloned() } else { None };
    if let (Some(one), true) = (splat, picks.iter().all(|pick| *pick == 0)) {
        let to = f.place(name, &to_ty, x.mask);
        let one = if to.is_mask() { format!("{one} ? -1 : 0") } else { one };
        let made = f.values.made(&to, &vec![one; picks.len()]);
        f.line(format!("{} = {made};", to.text));
        return Ok(());
    }
    let (m, n) = (ty.lanes(), picks.len() as u64);
    let to = f.place(name, &to_ty, x.mask);
    if x.vector().is_native() && to.vector().is_native() {
        let list: Vec<String> = picks.iter().map(u64::to_string).collect();
        f.line(format!("TF_SHUFFLE({m}, {n}, {}, {}, {}, {});", to.text, x.text, y.text, list.join(", ")));
        return Ok(());
    }
    let raw = |v: &CValue, lane: u64| match v.vector().is_native() {
        true => format!("TF_LANE({}, {lane})", v.text),
        false => format!("{}.e[{lane}]", v.text),
    };
    let lanes: Vec<String> = picks.iter().map(|&p| if p < m { raw(&x, p) } else { raw(&y, p - m) }).collect();
    let made = f.values.made(&to, &lanes);
    f.line(format!("{} = {made};", to.text));
    Ok(())
}

fn arithmetic(f: &mut Writer, op: &str, reader: &mut Reader, name: &str) -> Result<()> {
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
        "sdiv" | "srem" => format!("({c_type})(({c_type})({} {sign} {}){kept})", of_signed(ty, a), of_signed(ty, b)),
        "ashr" => format!("({c_type})(({c_type})({} >> {b}){kept})", of_signed(ty, a)),
        "mul" | "shl" if bits < 32 => format!("({c_type})(((uint32_t){a} {sign} {b}){kept})"),
        _ if bits < 32 => format!("({c_type})(({a} {sign} {b}){kept})"),
        _ => format!("{a} {sign} {b}"),
    }
}
