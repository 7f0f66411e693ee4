//! Context in which one node is lowered: its inputs and attributes, and the builder of instructions.
use super::mutable_list::MutableLists;
use super::range::RangeAnalysis;
use super::string::text;
use super::{Value, VariableStore};
use crate::diag::{Code, Diagnostic, Error, Result};
use crate::graph::{Node, TfType};
use crate::hlo::SymbolicArray;
use crate::hlo::symbolic::{Builder, Dim, InstId};
use crate::interp;
use crate::tensor::{DType, Tensor};
use std::sync::Arc;

/// Help text of a diagnostic about an input that must be known at compile time and depends on fed data.
const TELL_VALUE: &str = "say what is fed when you compile: --feed NAME=0.5, or --feed NAME={1,2}";

/// Context for lowering one node: its attributes, its inputs as values, and the builder of HLO instructions.
pub struct LowerCtx<'a> {
    /// The node, with the attributes that the file leaves at their default (`opdef::with_default_attrs`).
    pub node: &'a Node,
    /// Builder that receives the instructions.
    pub b: &'a mut Builder,
    /// Data inputs of the node, in order.
    pub args: Vec<Value>,
    /// Current values of the program's variables.
    pub store: &'a mut VariableStore,
    /// TensorArrays and stacks with their elements.
    pub mutable_lists: &'a mut MutableLists,
    /// Known ranges of integers of the computation that is being built.
    pub ranges: &'a mut RangeAnalysis,
    /// Names of the functions whose nodes are being lowered, outermost first.
    pub calls: &'a [Arc<str>],
}

impl LowerCtx<'_> {
    /// Context of the same node with other inputs.
    pub fn with_args(&mut self, args: Vec<Value>) -> LowerCtx<'_> {
        let LowerCtx { node, b, store, mutable_lists, ranges, calls, .. } = self;
        LowerCtx { node, b, args, store, mutable_lists, ranges, calls }
    }
    /// Input `i` as an array.
    ///
    /// # Errors
    /// `Code::UnsupportedType` if the input is not an array, `Code::BadGraph` if it is missing.
    pub fn arg(&self, i: usize) -> Result<InstId> {
        match self.args.get(i) {
            Some(Value::Array(id)) => Ok(*id),
            Some(
                Value::List(_)
                | Value::UnshapedList { .. }
                | Value::Heterogeneous(_)
                | Value::Structured(_)
                | Value::RaggedList(_),
            ) => {
                Err(Error::user(Code::UnsupportedType, format!("input {i} is a TensorList, and the op needs an array")))
            }
            Some(Value::Ragged(_)) => Err(Error::user(
                Code::UnsupportedType,
                format!("input {i} is a RaggedTensor in a variant, and the op needs an array"),
            )),
            Some(Value::Sparse(_)) => Err(Error::user(
                Code::UnsupportedType,
                format!("input {i} is a CSR matrix in a variant, and the op needs an array"),
            )),
            Some(Value::Optional(_)) => {
                Err(Error::user(Code::UnsupportedType, format!("input {i} is an optional, and the op needs an array")))
            }
            Some(Value::Variable(_)) => Err(Error::user(
                Code::UnsupportedType,
                format!("input {i} is the handle of a variable, and the op needs an array"),
            )),
            Some(Value::MutableList(_)) => Err(Error::user(
                Code::UnsupportedType,
                format!("input {i} is the handle of a TensorArray or stack, and the op needs an array"),
            )),
            Some(Value::Table(_)) => Err(Error::user(
                Code::UnsupportedType,
                format!("input {i} is the handle of a lookup table, and the op needs an array"),
            )),
            Some(Value::Text(_) | Value::Strings(_)) => Err(self.not_held(i, TfType::String)),
            Some(Value::Unavailable(t)) => Err(self.not_held(i, *t)),
            None => Err(Error::user(Code::BadGraph, format!("input {i} is missing"))),
        }
    }
    fn not_held(&self, i: usize, t: TfType) -> Error {
        Error::user(Code::UnsupportedType, format!("input {i} is of type {t}, which compiled code can't hold"))
    }
    /// Value of the variable whose handle is input `i`. For a variable that is a constant, the handle itself stands for the
    /// value.
    ///
    /// # Errors
    /// Errors of [`LowerCtx::arg`], and `Code::UnsupportedCase` in scalar functions.
    pub fn read_variable(&mut self, i: usize) -> Result<InstId> {
        match self.args.get(i) {
            Some(&Value::Variable(id)) if !self.store.is_table(id) => self.read_resizable(id),
            _ => self.arg(i),
        }
    }
    /// Assigns `value` to the variable whose handle is input `i`.
    ///
    /// # Errors
    /// `VariableAssigned` for a variable that is a constant, `DynamicShape` for a value of other sizes.
    pub fn write_variable(&mut self, i: usize, value: InstId) -> Result<()> {
        match self.args.get(i) {
            Some(&Value::Variable(id)) if !self.store.growth_axes(id).is_empty() => self.assign_resizable(id, value),
            Some(Value::Variable(id)) if !self.store.is_table(*id) => {
                self.store.write(*id, value, self.b.dtype(value), self.b.dims(value))
            }
            Some(Value::Array(_)) => {
                let told = format!("{} changes a variable that is a constant of the code", self.node.op);
                Err(Error::user(Code::VariableAssigned, told))
            }
            _ => self.arg(i).map(|_| ()),
        }
    }
    /// Inputs `from..to` as arrays.
    ///
    /// # Errors
    /// Errors of [`LowerCtx::arg`].
    pub fn arg_range(&self, from: usize, to: usize) -> Result<Vec<InstId>> {
        (from..to).map(|i| self.arg(i)).collect()
    }
    /// Sizes of input `i`.
    ///
    /// # Errors
    /// Errors of [`LowerCtx::arg`].
    pub fn dims(&self, i: usize) -> Result<Vec<Dim>> {
        if let Some(Value::Ragged(ragged)) = self.args.get(i) {
            return Ok(ragged.row_count(self).into_iter().collect());
        }
        if let Some(dims) = self.args.get(i).and_then(|arg| text::text_dims(self.b, arg)) {
            return Ok(dims);
        }
        Ok(self.b.dims(self.arg(i)?).to_vec())
    }
    /// Element type of input `i`.
    ///
    /// # Errors
    /// Errors of [`LowerCtx::arg`].
    pub fn dtype(&self, i: usize) -> Result<DType> {
        Ok(self.b.dtype(self.arg(i)?))
    }
    /// Value of input `i`, which must be known at compile time.
    ///
    /// # Errors
    /// Errors of [`LowerCtx::arg`], and `Code::NotConstant`.
    pub fn constant(&self, i: usize) -> Result<Tensor> {
        let id = self.arg(i)?;
        interp::constant_value(self.b, id).ok_or_else(|| {
            let told = format!("input {i} must be known at compile time, and it depends on what is fed");
            Diagnostic::new(Code::NotConstant, told).help(TELL_VALUE).into()
        })
    }
    /// Value of input `i` as integers, which must be known at compile time.
    ///
    /// # Errors
    /// Errors of [`LowerCtx::constant`], and `Code::TypeMismatch` for other numbers.
    pub fn constant_ints(&self, i: usize) -> Result<Vec<i64>> {
        self.constant(i)?
            .to_i64s()
            .ok_or_else(|| Error::user(Code::TypeMismatch, format!("input {i} must hold integers")))
    }
    /// Value of input `i` if it is known at compile time, with the expressions of elements that are computed from sizes.
    pub fn symbolic_value(&self, i: usize) -> Option<SymbolicArray> {
        interp::symbolic_value(self.b, self.arg(i).ok()?)
    }
    /// Value of input `i` as integers, which must be known at compile time or follow from open sizes.
    ///
    /// # Errors
    /// Errors of [`LowerCtx::constant_ints`].
    pub fn constant_dims(&self, i: usize) -> Result<Vec<Dim>> {
        match self.symbolic_value(i).and_then(|known| known.sizes) {
            Some(sizes) => Ok(sizes),
            None => Ok(self.constant_ints(i)?.into_iter().map(Dim::from).collect()),
        }
    }
    /// Value of input `i`, a single integer that must be known at compile time.
    ///
    /// # Errors
    /// Errors of [`LowerCtx::constant_ints`], and `Code::ShapeMismatch` for more than one.
    pub fn constant_int(&self, i: usize) -> Result<i64> {
        match self.constant_ints(i)?[..] {
            [v] => Ok(v),
            ref all => {
                Err(Error::user(Code::ShapeMismatch, format!("input {i} must be one integer, not {}", all.len())))
            }
        }
    }
    /// Value of input `i`, a single integer that must be known at compile time or follow from open sizes.
    ///
    /// # Errors
    /// Errors of [`LowerCtx::constant_int`].
    pub fn constant_dim(&self, i: usize) -> Result<Dim> {
        match self.constant_dims(i)?[..] {
            [v] => Ok(v),
            ref all => {
                Err(Error::user(Code::ShapeMismatch, format!("input {i} must be one integer, not {}", all.len())))
            }
        }
    }
    /// Rejects constant indices in input `i` that are out of bounds. Each index is a tuple of `sizes.len()` numbers.
    /// TensorFlow's kernels report an error there, where XLA's code continues with other indices. Nodes in loops and branches
    /// are not checked, as they may never run.
    ///
    /// # Errors
    /// `Code::BadInputs` with the first index that is out of bounds.
    pub fn reject_constant_indices(&self, i: usize, sizes: &[Dim]) -> Result<()> {
        let is_entry = self.b.nesting_depth() == 1 && self.b.data_dependent_sizes().is_empty();
        let Some(known) = self.constant(i).ok().filter(|_| is_entry).and_then(|t| t.to_i64s()) else { return Ok(()) };
        let leads_out =
            |index: &&[i64]| index.iter().zip(sizes).any(|(&i, &size)| !Dim::size(i).is_ok_and(|i| i < size));
        match known.chunks(sizes.len().max(1)).find(leads_out) {
            Some(index) => Err(Error::user(
                Code::BadInputs,
                format!("index {index:?} of input {i} leads out of dimensions {sizes:?}"),
            )),
            None => Ok(()),
        }
    }
    /// Normalizes an axis that may be negative to `0..rank`.
    ///
    /// # Errors
    /// `Code::ShapeMismatch` if it is out of range.
    pub fn normalize_axis(&self, axis: i64, rank: usize) -> Result<usize> {
        let shifted = if axis < 0 { axis + rank as i64 } else { axis };
        usize::try_from(shifted)
            .ok()
            .filter(|&a| a < rank)
            .ok_or_else(|| Error::user(Code::ShapeMismatch, format!("axis {axis} is out of range for rank {rank}")))
    }
    /// Value of a required attribute.
    ///
    /// # Errors
    /// `Code::BadAttr` if it is missing.
    pub fn require_attr<T>(&self, value: Option<T>, name: &str) -> Result<T> {
        value.ok_or_else(|| Error::user(Code::BadAttr, format!("attribute `{name}` is missing or of the wrong kind")))
    }
    /// Value of a required attribute that is an element type.
    ///
    /// # Errors
    /// `Code::BadAttr` if it is missing, `Code::UnsupportedType` for a type that arrays cannot have.
    pub fn attr_dtype(&self, name: &str) -> Result<DType> {
        match self.require_attr(self.node.tf_type(name), name)? {
            TfType::Data(t) => Ok(t),
            other => Err(Error::user(Code::UnsupportedType, format!("compiled code can't hold {other}"))),
        }
    }
    /// Value of a boolean attribute, false if it is missing.
    pub fn bool_attr(&self, name: &str) -> bool {
        self.node.bool(name).unwrap_or(false)
    }
    /// Error for an element type, an attribute or a shape that is not supported.
    pub fn unsupported_case(&self, message: impl Into<String>) -> Error {
        Error::user(Code::UnsupportedCase, message)
    }
    /// Error for inputs whose shapes do not fit the op or each other.
    pub fn shape_mismatch(&self, message: impl Into<String>) -> Error {
        Diagnostic::new(Code::ShapeMismatch, message).into()
    }
    /// A single array as the list of a node's outputs.
    ///
    /// # Errors
    /// None; returns `Result` so that lowerings can end with this call.
    pub fn one_output(&self, id: InstId) -> Result<Vec<Value>> {
        Ok(vec![Value::Array(id)])
    }
}
