//! Attributes of instructions as values with XLA's names, and their conversion to and from ops, common to text, messages and
//! StableHLO.
//!
//! The table of opcodes in `op.rs` tells which attributes represent a field of an op. [`op`] builds an op from attributes,
//! [`attributes_of`] gives the attributes of an op. Readers and printers know the syntax of attributes, but no opcodes apart
//! from a few with special syntax.
mod fields;
pub(in crate::hlo) mod table;
mod words;

use super::attrs::{ForeignOp, PadDim, SliceDim, WindowDim};
use super::{CompId, Metadata, Op, Shape};
use crate::scalar::{CompareKind, Direction, ScalarOp};
use crate::tensor::DType;
use std::borrow::Cow;

pub(in crate::hlo) use fields::{Field, dim_labels};
pub(in crate::hlo) use words::NamedValues;

type Result<T, E = String> = std::result::Result<T, E>;

/// Value of an attribute.
#[derive(Clone, Debug)]
pub(in crate::hlo) enum FieldValue {
    Bool(bool),
    Int(i64),
    Float(f64),
    Ints(Vec<i64>),
    Comp(CompId),
    Comps(Vec<CompId>),
    Window(Vec<WindowDim>),
    Labels(String),
    Slices(Vec<SliceDim>),
    Pads(Vec<PadDim>),
    Word(String),
    Metadata(Metadata),
    /// Opaque value, kept as text.
    Text,
}

/// Attributes of one instruction, in order.
#[derive(Debug, Default)]
pub(in crate::hlo) struct Attrs<'a> {
    list: Vec<(&'a str, FieldValue, Cow<'a, str>)>,
}

impl<'a> Attrs<'a> {
    pub fn has(&self, name: &str) -> bool {
        self.list.iter().any(|a| a.0 == name)
    }
    pub fn push(&mut self, name: &'a str, value: FieldValue, source: impl Into<Cow<'a, str>>) {
        self.list.push((name, value, source.into()));
    }
    fn take(&mut self, name: &str) -> Option<FieldValue> {
        let i = self.list.iter().position(|a| a.0 == name)?;
        Some(self.list.remove(i).1)
    }
    pub fn take_metadata(&mut self) -> Metadata {
        match self.take("metadata") {
            Some(FieldValue::Metadata(m)) => m,
            _ => Metadata::default(),
        }
    }
    /// Takes an opaque attribute if its text equals `text`.
    fn take_text(&mut self, name: &str, text: &str) -> bool {
        let found = self.list.iter().position(|a| a.0 == name && a.2.trim() == text);
        found.map(|i| self.list.remove(i)).is_some()
    }
    /// Attributes that no op has taken, as text.
    pub fn into_extra(self) -> Vec<(String, String)> {
        self.list.into_iter().map(|(n, _, s)| (n.to_string(), s.trim().to_string())).collect()
    }
    fn int(&mut self, name: &str, default: i64) -> i64 {
        match self.take(name) {
            Some(FieldValue::Int(i)) => i,
            _ => default,
        }
    }
    fn word(&mut self, name: &str) -> String {
        match self.take(name) {
            Some(FieldValue::Word(w)) => w,
            _ => String::new(),
        }
    }
    /// Attributes in order: name, value, and the text of opaque ones.
    pub fn iter(&self) -> impl Iterator<Item = (&'a str, &FieldValue, &str)> {
        self.list.iter().map(|(name, value, source)| (*name, value, &**source))
    }
}

/// Checks that a number is not negative.
fn index(value: i64) -> Result<usize> {
    usize::try_from(value).map_err(|_| format!("{value} is negative"))
}

fn comp(attrs: &mut Attrs, name: &str) -> Result<CompId> {
    match attrs.take(name) {
        Some(FieldValue::Comp(id)) => Ok(id),
        _ => Err(format!("attribute {name} is expected but not seen")),
    }
}

/// Element type of a shape that must be an array.
fn written_dtype(shape: &Option<Shape>, opcode: &str) -> Result<DType> {
    match shape {
        Some(Shape::Array(a)) => Ok(a.dtype),
        Some(other) => Err(format!("{opcode} can't have the shape {other}")),
        None => Err(format!("cannot infer shape for opcode: {opcode}")),
    }
}

/// Builds the op of `opcode` from its attributes, which are taken out of `attrs`; otherwise an error message.
pub(in crate::hlo) fn op(opcode: &str, shape: &Option<Shape>, operands: &[&Shape], attrs: &mut Attrs) -> Result<Op> {
    if let Some(op) = ScalarOp::parse(opcode) {
        return Ok(Op::Elementwise(op));
    }
    match opcode {
        "compare" => {
            let kind = if attrs.word("type") == "TOTALORDER" { CompareKind::Total } else { CompareKind::Partial };
            Ok(Op::Elementwise(ScalarOp::Compare(direction(&attrs.word("direction")), kind)))
        }
        "convert" => Ok(Op::Elementwise(ScalarOp::Convert(written_dtype(shape, opcode)?))),
        "bitcast-convert" => {
            let to = written_dtype(shape, opcode)?;
            let from = operands.first().copied().and_then(Shape::as_array).map(|a| a.dtype.bits());
            let same = from == Some(to.bits());
            Ok(if same { Op::Elementwise(ScalarOp::BitcastConvert(to)) } else { Op::BitcastConvertWidth })
        }
        "reduce-precision" => {
            let exponent_bits = bits(attrs, "exponent_bits", 1)?;
            let mantissa_bits = bits(attrs, "mantissa_bits", 0)?;
            Ok(Op::Elementwise(ScalarOp::ReducePrecision { exponent_bits, mantissa_bits }))
        }
        "rng" => Ok(Op::Rng { normal: attrs.word("distribution") == "rng_normal" }),
        "optimization-barrier" => Ok(Op::OptimizationBarrier),
        "conditional" => conditional(operands, attrs),
        "broadcast" if !attrs.has("dimensions") && !is_scalar(operands) => {
            Err("attribute dimensions is expected but not seen".to_string())
        }
        _ => match super::op::read(opcode, attrs)? {
            Some(op) => Ok(op),
            None => Ok(foreign(opcode, attrs)),
        },
    }
}

/// The attributes of an op under XLA's names, without opaque ones and the branches of a conditional.
pub(in crate::hlo) fn attributes_of(op: &Op) -> Attrs<'static> {
    let mut out = Attrs::default();
    match op {
        Op::Elementwise(ScalarOp::Compare(direction, kind)) => {
            out.push("direction", FieldValue::Word(direction.name().to_string()), "");
            if *kind == CompareKind::Total {
                out.push("type", FieldValue::Word("TOTALORDER".to_string()), "");
            }
        }
        Op::Elementwise(ScalarOp::ReducePrecision { exponent_bits, mantissa_bits }) => {
            out.push("exponent_bits", FieldValue::Int(i64::from(*exponent_bits)), "");
            out.push("mantissa_bits", FieldValue::Int(i64::from(*mantissa_bits)), "");
        }
        Op::Rng { normal } => {
            let word = if *normal { "rng_normal" } else { "rng_uniform" };
            out.push("distribution", FieldValue::Word(word.to_string()), "");
        }
        op => super::op::write(op, &mut out),
    }
    out
}

fn is_scalar(operands: &[&Shape]) -> bool {
    operands.first().copied().and_then(Shape::as_array).is_some_and(|a| a.rank() == 0)
}

/// Computations in an attribute, each with the attribute's name.
fn named_computations(name: &str, value: &FieldValue) -> Vec<(String, CompId)> {
    match value {
        FieldValue::Comp(id) => vec![(name.to_string(), *id)],
        FieldValue::Comps(ids) => ids.iter().map(|&id| (name.to_string(), id)).collect(),
        _ => vec![],
    }
}

/// Foreign op with all remaining attributes.
fn foreign(opcode: &str, attrs: &mut Attrs) -> Op {
    let mut foreign = ForeignOp { opcode: opcode.to_string(), ..ForeignOp::default() };
    let all = std::mem::take(&mut attrs.list);
    for (name, value, source) in all {
        if table::COMMON.contains(&name) {
            attrs.list.push((name, value, source));
            continue;
        }
        match value {
            FieldValue::Comp(_) | FieldValue::Comps(_) => foreign.calls.extend(named_computations(name, &value)),
            _ => foreign.attrs.push((name.to_string(), source.trim().to_string())),
        }
    }
    Op::Foreign(Box::new(foreign))
}
fn bits(attrs: &mut Attrs, name: &str, least: i64) -> Result<u32> {
    let bits = attrs.int(name, 0);
    u32::try_from(bits)
        .ok()
        .filter(|&b| i64::from(b) >= least)
        .ok_or_else(|| format!("{name} must be at least {least}"))
}
fn conditional(operands: &[&Shape], attrs: &mut Attrs) -> Result<Op> {
    let Some(Shape::Array(selector)) = operands.first().copied() else {
        return Err("the first operand must be a scalar".to_string());
    };
    if selector.rank() != 0 {
        return Err("the first operand must be a scalar".to_string());
    }
    if selector.dtype == DType::Pred {
        let on_true = comp(attrs, "true_computation")?;
        let on_false = comp(attrs, "false_computation")?;
        if attrs.has("branch_computations") {
            return Err("unexpected attribute \"branch_computations\"".to_string());
        }
        return Ok(Op::Conditional(vec![on_true, on_false]));
    }
    if attrs.has("true_computation") || attrs.has("false_computation") {
        return Err("unexpected attribute \"true_computation\" where an index selects".to_string());
    }
    match attrs.take("branch_computations") {
        Some(FieldValue::Comps(ids)) => Ok(Op::Conditional(ids)),
        _ => Err("attribute branch_computations is expected but not seen".to_string()),
    }
}
fn direction(word: &str) -> Direction {
    match word {
        "NE" => Direction::Ne,
        "GE" => Direction::Ge,
        "GT" => Direction::Gt,
        "LE" => Direction::Le,
        "LT" => Direction::Lt,
        _ => Direction::Eq,
    }
}
