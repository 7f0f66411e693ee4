//! What a lowering sees of its node.
use super::holder::Holders;
use super::range::Ranges;
use super::{Store, Value, linear};
use crate::diag::{Code, Diagnostic, Error, Result};
use crate::graph::{Node, TfType};
use crate::hlo::{Builder, Found, InstId};
use crate::interp;
use crate::tensor::{DType, Tensor};
use std::collections::HashSet;

/// A node to lower: its attributes, its inputs as values, and the builder.
pub struct LowerCtx<'a> {
    /// The node, with the attributes that the file leaves at their default (`opdef::with_defaults`).
    pub node: &'a Node,
    /// Where instructions go.
    pub b: &'a mut Builder,
    /// The data inputs, in order.
    pub args: Vec<Value>,
    /// The variables.
    pub store: &'a mut Store,
    /// What TensorArrays and stacks hold.
    pub holders: &'a mut Holders,
    /// What is known of integers of the open computation.
    pub ranges: &'a mut Ranges,
}

impl LowerCtx<'_> {
    /// The same node with other inputs.
    pub fn with_args(&mut self, args: Vec<Value>) -> LowerCtx<'_> {
        let LowerCtx { node, b, store, holders, ranges, .. } = self;
        LowerCtx { node, b, args, store, holders, ranges }
    }
    /// Input `i`, an array.
    pub fn arg(&self, i: usize) -> Result<InstId> {
        match self.args.get(i) {
            Some(Value::Array(id)) => Ok(*id),
            Some(Value::List(_) | Value::UnshapedList { .. }) => {
                Err(Error::user(Code::UnsupportedType, format!("input {i} is a TensorList, and the op needs an array")))
            }
            Some(Value::Variable(_)) => Err(Error::user(
                Code::UnsupportedType,
                format!("input {i} is the handle of a variable, and the op needs an array"),
            )),
            Some(Value::Holder(_)) => Err(Error::user(
                Code::UnsupportedType,
                format!("input {i} is the handle of a TensorArray or stack, and the op needs an array"),
            )),
            Some(Value::Table(_)) => Err(Error::user(
                Code::UnsupportedType,
                format!("input {i} is the handle of a lookup table, and the op needs an array"),
            )),
            Some(Value::Unavailable(t)) => Err(Error::user(
                Code::UnsupportedType,
                format!("input {i} is of type {t}, which compiled code can't hold"),
            )),
            None => Err(Error::user(Code::BadGraph, format!("input {i} is missing"))),
        }
    }
    /// The value of the variable whose handle input `i` is. The handle of a variable that is a constant is its value.
    pub fn read(&self, i: usize) -> Result<InstId> {
        if let Some(Value::Variable(id)) = self.args.get(i) { self.store.read(*id) } else { self.arg(i) }
    }
    /// Gives the variable whose handle input `i` is a value.
    ///
    /// Errors: `VariableAssigned` for a variable that is a constant, `DynamicShape` for a value of another size.
    pub fn write(&mut self, i: usize, value: InstId) -> Result<()> {
        match self.args.get(i) {
            Some(Value::Variable(id)) => self.store.write(*id, value, self.b.dtype(value), self.b.dims(value)),
            Some(Value::Array(_)) => {
                let told = format!("{} changes a variable that is a constant of the code", self.node.op);
                Err(Error::user(Code::VariableAssigned, told))
            }
            _ => self.arg(i).map(|_| ()),
        }
    }
    /// All inputs from number `from` to before `to`, arrays.
    pub fn arg_range(&self, from: usize, to: usize) -> Result<Vec<InstId>> {
        (from..to).map(|i| self.arg(i)).collect()
    }
    /// The sizes of input `i`.
    pub fn dims(&self, i: usize) -> Result<Vec<u64>> {
        Ok(self.b.dims(self.arg(i)?).to_vec())
    }
    /// The element type of input `i`.
    pub fn dtype(&self, i: usize) -> Result<DType> {
        Ok(self.b.dtype(self.arg(i)?))
    }
    /// The value of input `i`, which must not depend on what is fed.
    pub fn constant(&self, i: usize) -> Result<Tensor> {
        let id = self.arg(i)?;
        interp::constant_value(self.b, id).ok_or_else(|| {
            Error::user(
                Code::NotConstant,
                format!("input {i} must be known at compile time, and it depends on what is fed"),
            )
        })
    }
    /// The value of input `i` as integers.
    pub fn constant_ints(&self, i: usize) -> Result<Vec<i64>> {
        self.constant(i)?
            .to_i64s()
            .ok_or_else(|| Error::user(Code::TypeMismatch, format!("input {i} must hold integers")))
    }
    /// The value of input `i`, one integer.
    pub fn constant_int(&self, i: usize) -> Result<i64> {
        match self.constant_ints(i)?[..] {
            [v] => Ok(v),
            ref all => {
                Err(Error::user(Code::ShapeMismatch, format!("input {i} must be one integer, not {}", all.len())))
            }
        }
    }
    /// Refuses indices of input `i`, as many numbers each as there are `sizes`, that are known and lead out of these sizes. TensorFlow's
    /// kernels end with an error there, and XLA's code goes on with other indices. What is in a loop or a branch may never be reached, and
    /// is left to that.
    ///
    /// # Errors
    /// `Code::BadInputs` with the first that leads outside.
    pub fn check_within(&self, i: usize, sizes: &[u64]) -> Result<()> {
        let is_entry = self.b.depth() == 1 && self.b.founds().is_empty();
        let Some(known) = self.constant(i).ok().filter(|_| is_entry).and_then(|t| t.to_i64s()) else { return Ok(()) };
        let leads_out =
            |index: &&[i64]| index.iter().zip(sizes).any(|(&i, &size)| !u64::try_from(i).is_ok_and(|i| i < size));
        match known.chunks(sizes.len().max(1)).find(leads_out) {
            Some(index) => Err(Error::user(
                Code::BadInputs,
                format!("index {index:?} of input {i} leads out of dimensions {sizes:?}"),
            )),
            None => Ok(()),
        }
    }
    /// An axis in `0..rank` from a possibly negative one.
    pub fn axis(&self, axis: i64, rank: usize) -> Result<usize> {
        let shifted = if axis < 0 { axis + rank as i64 } else { axis };
        usize::try_from(shifted)
            .ok()
            .filter(|&a| a < rank)
            .ok_or_else(|| Error::user(Code::ShapeMismatch, format!("axis {axis} is out of range for rank {rank}")))
    }
    /// A required attribute.
    pub fn required<T>(&self, value: Option<T>, name: &str) -> Result<T> {
        value.ok_or_else(|| Error::user(Code::BadAttr, format!("attribute `{name}` is missing or of the wrong kind")))
    }
    /// A required attribute that is an element type.
    pub fn attr_dtype(&self, name: &str) -> Result<DType> {
        match self.required(self.node.tf_type(name), name)? {
            TfType::Data(t) => Ok(t),
            other => Err(Error::user(Code::UnsupportedType, format!("compiled code can't hold {other}"))),
        }
    }
    /// A boolean attribute, false where it is missing.
    pub fn flag(&self, name: &str) -> bool {
        self.node.bool(name).unwrap_or(false)
    }
    /// "This dtype, attribute or shape is not supported."
    pub fn unsupported(&self, message: impl Into<String>) -> Error {
        Error::user(Code::UnsupportedCase, message)
    }
    /// "The shapes do not fit."
    pub fn mismatch(&self, message: impl Into<String>) -> Error {
        Diagnostic::new(Code::ShapeMismatch, message).into()
    }
    /// The size that is `count` at run time, an integer scalar, and never larger than `most`; what is `made` of it is told where it can't
    /// be. Arrays have this size, and code for every size comes of it (`bounded/`). What is computed twice is one size.
    ///
    /// Errors: `DynamicShape` inside of a loop or branch, where sizes are fixed.
    pub fn found(&mut self, count: InstId, most: u64, made: &str) -> Result<u64> {
        let known = interp::constant_value(self.b, count).and_then(|t| t.get_i64(0));
        if let Some(known) = known.filter(|_| self.b.founds().is_empty() || !self.counts_nothing(count)) {
            return Ok(u64::try_from(known).unwrap_or(0).min(most));
        }
        let is_count = |f: &&Found| f.most == most && linear::same(self.b, f.count, count);
        if let (1, Some(known)) = (self.b.depth(), self.b.founds().iter().find(is_count)) {
            return Ok(known.assumed);
        }
        self.b.found(count, most).ok_or_else(|| {
            let told = format!(
                "how large {made} is depends on values at run time, and sizes inside of loops and branches are fixed"
            );
            Error::user(Code::DynamicShape, told)
        })
    }
    /// Whether a value is computed from arrays without elements. It may be known only because a size that other values say is taken to be
    /// 0, and is a size like those where it is not.
    fn counts_nothing(&self, value: InstId) -> bool {
        let insts = &self.b.current().insts;
        let (mut todo, mut seen) = (vec![value], HashSet::new());
        while let Some(id) = todo.pop() {
            let Some(inst) = insts.get(id).filter(|_| seen.insert(id)) else { continue };
            if inst.shape.as_array().is_some_and(|a| a.elements() == 0) {
                return true;
            }
            todo.extend(&inst.operands);
        }
        false
    }
    /// One array as the list of outputs.
    pub fn one(&self, id: InstId) -> Result<Vec<Value>> {
        Ok(vec![Value::Array(id)])
    }
}
