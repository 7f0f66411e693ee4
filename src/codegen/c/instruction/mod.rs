//! Instructions as statements: memory, arithmetic, comparisons, conversions, and the lanes of vectors.
mod arithmetic;
mod comparison;
mod conversion;
mod lanes;
mod memory;

pub use arithmetic::{combined, signed_value};
pub use conversion::cast;

use super::call;
use super::function::Writer;
use super::text::{IrOperand, Reader, Type};
use super::types::scalar;
use super::values::CValue;
use crate::diag::{Error, Result};
use arithmetic::arithmetic;
use comparison::{compare, select};
use conversion::convert;
use lanes::{insert, shuffle};
use memory::{address, load, store};

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
                _ => lanewise(f, name, &x.ty.clone(), &|l| {
                    format!("tf_neg_{}({})", type_name(x.ty.element()), lane(&x, l))
                }),
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
pub fn type_name(element: &Type) -> &'static str {
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
