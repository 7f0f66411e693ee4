//! Operands in C, and the values of a function with their types.
use super::text::{IrOperand, Type};
use super::types::{Vector, number, scalar, short};
use crate::diag::{Error, Result};
use std::collections::{BTreeSet, HashMap};

/// A value of a function.
#[derive(Clone, Debug)]
pub struct CValue {
    pub ty: Type,
    /// Bits of a lane of a mask, which is a vector of truth values: all of them set, or none.
    pub mask: u32,
    /// The C expression of the value, a name but for constants.
    pub text: String,
}

impl CValue {
    pub fn is_mask(&self) -> bool {
        matches!(&self.ty, Type::Vector(_, element) if **element == Type::Int(1))
    }
    /// The vector type of C.
    pub fn vector(&self) -> Vector {
        let (lanes, element) = (self.ty.lanes(), self.ty.element());
        match self.is_mask() {
            true => Vector { lanes, element: format!("s{}", self.mask) },
            false => Vector { lanes, element: short(element, false) },
        }
    }
    /// The same vector with signed lanes.
    pub fn signed_vector(&self) -> Vector {
        match self.is_mask() {
            true => self.vector(),
            false => Vector { lanes: self.ty.lanes(), element: short(self.ty.element(), true) },
        }
    }
    /// A lane as a single value of C.
    pub fn lane(&self, lane: u64) -> String {
        let text = match self.vector().is_native() {
            true => format!("TF_LANE({}, {lane})", self.text),
            false => format!("{}.e[{lane}]", self.text),
        };
        if self.is_mask() { format!("({text} != 0)") } else { text }
    }
}

/// The types that the text of a file uses, beside those of C.
#[derive(Default)]
pub struct UsedTypes {
    pub vectors: BTreeSet<Vector>,
    /// Types of complex numbers: the type of their parts.
    pub pairs: BTreeSet<String>,
    /// The members of each struct.
    pub structs: Vec<String>,
}

impl UsedTypes {
    /// The C type of a value.
    pub fn name(&mut self, value: &CValue) -> String {
        match &value.ty {
            Type::Vector(..) => self.vector(value.vector()),
            Type::Struct(parts) => {
                let part = CValue { ty: parts.first().cloned().unwrap_or(Type::Float), mask: 0, text: String::new() };
                let part = self.name(&part);
                let name = format!("tf_pair_{}", part.trim_start_matches("tf_"));
                self.pairs.insert(part);
                name
            }
            ty => scalar(ty),
        }
    }

    pub fn vector(&mut self, vector: Vector) -> String {
        let name = vector.name();
        self.vectors.insert(vector);
        name
    }

    /// The type of a struct whose members are `m0`, `m1`.
    pub fn struct_type(&mut self, parts: &[Type]) -> String {
        let member = |(i, part): (usize, &Type)| match part {
            Type::Pointer => format!("  void *m{i};\n"),
            part => format!("  {} m{i};\n", scalar(part)),
        };
        let members: String = parts.iter().enumerate().map(member).collect();
        let known = self.structs.iter().position(|own| *own == members);
        let number = known.unwrap_or_else(|| {
            self.structs.push(members);
            self.structs.len() - 1
        });
        format!("tf_struct_{number}")
    }

    /// The declarations of all types.
    pub fn declarations(&self) -> String {
        let vectors: String = self.vectors.iter().map(Vector::declaration).collect();
        let pair = |part: &String| {
            let name = part.trim_start_matches("tf_");
            format!("typedef struct tf_pair_{name} {{\n  {part} re, im;\n}} tf_pair_{name};\n")
        };
        let structs = self.structs.iter().enumerate();
        let structs = structs.map(|(i, own)| format!("typedef struct tf_struct_{i} {{\n{own}}} tf_struct_{i};\n"));
        vectors + &self.pairs.iter().map(pair).chain(structs).collect::<String>()
    }
}

/// The values of a function, and what its text needs of the file.
pub struct CValues<'a> {
    pub types: &'a mut UsedTypes,
    pub known: HashMap<String, CValue>,
    /// Constant vectors by their C text: their names and types.
    pub constants: Vec<(String, String)>,
}

impl CValues<'_> {
    /// An operand of this type.
    pub fn operand(&mut self, ty: &Type, operand: &IrOperand) -> Result<CValue> {
        if let IrOperand::Local(name) = operand {
            let value = self.known.get(name);
            return value.cloned().ok_or_else(|| Error::internal("C", format!("`%{name}` has no value")));
        }
        self.constant(ty, operand, 8)
    }

    /// A constant; masks have lanes of so many bits.
    pub fn constant(&mut self, ty: &Type, operand: &IrOperand, mask: u32) -> Result<CValue> {
        let is_mask = matches!(ty, Type::Vector(_, element) if **element == Type::Int(1));
        let mut value = CValue { ty: ty.clone(), mask: if is_mask { mask } else { 0 }, text: String::new() };
        value.text = match ty {
            Type::Vector(lanes, element) => {
                let one = |operand: &IrOperand| single(element, operand);
                let lanes: Vec<String> = match operand {
                    IrOperand::Splat(each) => vec![one(each)?; *lanes as usize],
                    IrOperand::List(all) => all.iter().map(|(_, lane)| one(lane)).collect::<Result<_>>()?,
                    _ => vec![one(&IrOperand::Zero)?; *lanes as usize],
                };
                let lanes: Vec<String> = match is_mask {
                    true => lanes.iter().map(|lane| if lane == "1" { "-1".into() } else { "0".into() }).collect(),
                    false => lanes,
                };
                let made = self.made(&value, &lanes);
                self.held(&value, made)
            }
            Type::Struct(parts) => {
                let name = self.types.name(&value);
                let list = if let IrOperand::List(all) = operand { all.clone() } else { Vec::new() };
                let mut each = Vec::new();
                for (i, part) in parts.iter().enumerate() {
                    let own = list.get(i).map_or(IrOperand::Zero, |(_, operand)| operand.clone());
                    each.push(self.constant(part, &own, 8)?.text);
                }
                format!("({name}){{{}}}", each.join(", "))
            }
            _ => single(ty, operand)?,
        };
        Ok(value)
    }

    /// A vector of single values.
    pub fn made(&mut self, like: &CValue, lanes: &[String]) -> String {
        let vector = like.vector();
        let name = self.types.vector(vector.clone());
        match vector.is_native() {
            true => format!("TF_V({name}, {})", lanes.join(", ")),
            false => format!("({name}){{{{{}}}}}", lanes.join(", ")),
        }
    }

    /// The name of a constant that the function begins with.
    fn held(&mut self, like: &CValue, made: String) -> String {
        let known = self.constants.iter().position(|(_, text)| *text == made);
        let number = known.unwrap_or_else(|| {
            let ty = self.types.name(like);
            self.constants.push((ty, made));
            self.constants.len() - 1
        });
        format!("c{number}")
    }
}

/// A constant that is no vector.
fn single(ty: &Type, operand: &IrOperand) -> Result<String> {
    let is_nothing = matches!(operand, IrOperand::Zero | IrOperand::Poison | IrOperand::Null);
    Ok(match (ty, operand) {
        (Type::Float | Type::Double, IrOperand::Float(bits)) => number(*bits, *ty == Type::Float),
        (Type::Float | Type::Double, _) if is_nothing => number(0, *ty == Type::Float),
        (Type::Pointer, _) if is_nothing => "NULL".to_string(),
        (Type::Int(1), IrOperand::Int(bits)) => (bits & 1).to_string(),
        (Type::Int(bits), IrOperand::Int(value)) => {
            let value = value & (u64::MAX >> (64 - bits));
            match bits {
                33.. => format!("UINT64_C({value})"),
                _ => format!("{value}u"),
            }
        }
        (Type::Size, IrOperand::Int(value)) => format!("(size_t){value}u"),
        (Type::Int(33..), _) if is_nothing => "UINT64_C(0)".to_string(),
        (Type::Int(1), _) if is_nothing => "0".to_string(),
        (Type::Int(_) | Type::Size, _) if is_nothing => "0u".to_string(),
        _ => {
            return Err(Error::internal("C", format!("{operand:?} is no constant of {ty:?}")));
        }
    })
}
