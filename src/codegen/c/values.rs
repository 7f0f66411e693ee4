//! Operands in C, and the values of a function with their types.
use super::text::{IrOperand, IrType};
use super::types::{CVectorType, c_scalar_type, element_suffix, float_literal};
use crate::diag::{Error, Result};
use std::collections::{BTreeSet, HashMap};

/// An LLVM value as a C expression with its type.
#[derive(Clone, Debug)]
pub struct CValue {
    pub ty: IrType,
    /// Lane width in bits if the value is a mask: a vector of booleans, each with all bits set or clear.
    pub mask: u32,
    /// The C expression of the value: a variable, or a constant.
    pub text: String,
}

impl CValue {
    pub fn is_mask(&self) -> bool {
        matches!(&self.ty, IrType::Vector(_, element) if **element == IrType::Int(1))
    }
    /// The C vector type of the value.
    pub fn vector_type(&self) -> CVectorType {
        let (lanes, element) = (self.ty.lanes(), self.ty.element());
        match self.is_mask() {
            true => CVectorType { lanes, element: format!("s{}", self.mask) },
            false => CVectorType { lanes, element: element_suffix(element, false) },
        }
    }
    /// The C vector type with signed lanes.
    pub fn signed_vector_type(&self) -> CVectorType {
        match self.is_mask() {
            true => self.vector_type(),
            false => CVectorType { lanes: self.ty.lanes(), element: element_suffix(self.ty.element(), true) },
        }
    }
    /// The C expression of one lane.
    pub fn lane_text(&self, lane: u64) -> String {
        let text = match self.vector_type().is_native() {
            true => format!("TF_LANE({}, {lane})", self.text),
            false => format!("{}.e[{lane}]", self.text),
        };
        if self.is_mask() { format!("({text} != 0)") } else { text }
    }
}

/// The vector, complex and struct types that a C file uses and must declare.
#[derive(Default)]
pub struct UsedTypes {
    pub vectors: BTreeSet<CVectorType>,
    /// Complex types, by the type of their parts.
    pub pairs: BTreeSet<String>,
    /// The members of each struct.
    pub structs: Vec<String>,
}

impl UsedTypes {
    /// The C type of a value.
    pub fn type_of(&mut self, value: &CValue) -> String {
        match &value.ty {
            IrType::Vector(..) => self.vector_name(value.vector_type()),
            IrType::Struct(parts) => {
                let part = CValue { ty: parts.first().cloned().unwrap_or(IrType::Float), mask: 0, text: String::new() };
                let part = self.type_of(&part);
                let name = format!("tf_pair_{}", part.trim_start_matches("tf_"));
                self.pairs.insert(part);
                name
            }
            ty => c_scalar_type(ty),
        }
    }

    pub fn vector_name(&mut self, vector: CVectorType) -> String {
        let name = vector.name();
        self.vectors.insert(vector);
        name
    }

    /// The name of the struct type with these members, `m0`, `m1` …
    pub fn struct_type(&mut self, parts: &[IrType]) -> String {
        let member = |(i, part): (usize, &IrType)| match part {
            IrType::Pointer => format!("  void *m{i};\n"),
            part => format!("  {} m{i};\n", c_scalar_type(part)),
        };
        let members: String = parts.iter().enumerate().map(member).collect();
        let known = self.structs.iter().position(|own| *own == members);
        let number = known.unwrap_or_else(|| {
            self.structs.push(members);
            self.structs.len() - 1
        });
        format!("tf_struct_{number}")
    }

    /// The C declarations of all types.
    pub fn declarations(&self) -> String {
        let vectors: String = self.vectors.iter().map(CVectorType::declaration).collect();
        let pair = |part: &String| {
            let name = part.trim_start_matches("tf_");
            format!("typedef struct tf_pair_{name} {{\n  {part} re, im;\n}} tf_pair_{name};\n")
        };
        let structs = self.structs.iter().enumerate();
        let structs = structs.map(|(i, own)| format!("typedef struct tf_struct_{i} {{\n{own}}} tf_struct_{i};\n"));
        vectors + &self.pairs.iter().map(pair).chain(structs).collect::<String>()
    }
}

/// The C values of a function, with the constants and types that its text needs.
pub struct CValues<'a> {
    pub types: &'a mut UsedTypes,
    pub known: HashMap<String, CValue>,
    /// Constant vectors by their C text: their names and types.
    pub constants: Vec<(String, String)>,
}

impl CValues<'_> {
    /// The C value of an operand.
    pub fn operand(&mut self, ty: &IrType, operand: &IrOperand) -> Result<CValue> {
        if let IrOperand::Local(name) = operand {
            let value = self.known.get(name);
            return value.cloned().ok_or_else(|| Error::internal("C", format!("`%{name}` has no value")));
        }
        self.constant(ty, operand, 8)
    }

    /// The C value of a constant; a mask gets lanes of so many bits.
    pub fn constant(&mut self, ty: &IrType, operand: &IrOperand, mask: u32) -> Result<CValue> {
        let is_mask = matches!(ty, IrType::Vector(_, element) if **element == IrType::Int(1));
        let mut value = CValue { ty: ty.clone(), mask: if is_mask { mask } else { 0 }, text: String::new() };
        value.text = match ty {
            IrType::Vector(lanes, element) => {
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
                let made = self.vector_from_lanes(&value, &lanes);
                self.held(&value, made)
            }
            IrType::Struct(parts) => {
                let name = self.types.type_of(&value);
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

    /// The C expression of a vector built from scalars.
    pub fn vector_from_lanes(&mut self, like: &CValue, lanes: &[String]) -> String {
        let vector = like.vector_type();
        let name = self.types.vector_name(vector.clone());
        match vector.is_native() {
            true => format!("TF_V({name}, {})", lanes.join(", ")),
            false => format!("({name}){{{{{}}}}}", lanes.join(", ")),
        }
    }

    /// The name of a constant vector declared at the beginning of the function.
    fn held(&mut self, like: &CValue, made: String) -> String {
        let known = self.constants.iter().position(|(_, text)| *text == made);
        let number = known.unwrap_or_else(|| {
            let ty = self.types.type_of(like);
            self.constants.push((ty, made));
            self.constants.len() - 1
        });
        format!("c{number}")
    }
}

/// The C text of a scalar constant.
fn single(ty: &IrType, operand: &IrOperand) -> Result<String> {
    let is_nothing = matches!(operand, IrOperand::Zero | IrOperand::Poison | IrOperand::Null);
    Ok(match (ty, operand) {
        (IrType::Float | IrType::Double, IrOperand::Float(bits)) => float_literal(*bits, *ty == IrType::Float),
        (IrType::Float | IrType::Double, _) if is_nothing => float_literal(0, *ty == IrType::Float),
        (IrType::Pointer, _) if is_nothing => "NULL".to_string(),
        (IrType::Int(1), IrOperand::Int(bits)) => (bits & 1).to_string(),
        (IrType::Int(bits), IrOperand::Int(value)) => {
            let value = value & (u64::MAX >> (64 - bits));
            match bits {
                33.. => format!("UINT64_C({value})"),
                _ => format!("{value}u"),
            }
        }
        (IrType::Size, IrOperand::Int(value)) => format!("(size_t){value}u"),
        (IrType::Int(33..), _) if is_nothing => "UINT64_C(0)".to_string(),
        (IrType::Int(1), _) if is_nothing => "0".to_string(),
        (IrType::Int(_) | IrType::Size, _) if is_nothing => "0u".to_string(),
        _ => {
            return Err(Error::internal("C", format!("{operand:?} is no constant of {ty:?}")));
        }
    })
}
