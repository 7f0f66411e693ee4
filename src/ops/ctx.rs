//! Context in which one node is lowered: its inputs and attributes, and the builder of instructions.
use super::holder::Holders;
use super::range::{self, Ranges};
use super::string::text;
use super::{Store, Value, element};
use crate::diag::{Code, Diagnostic, Error, Result};
use crate::graph::{Node, TfType};
use crate::hlo::SymbolicArray;
use crate::hlo::open::{Builder, Claim, ClaimQuantity, DataSize, Dim, InstId, Op};
use crate::interp;
use crate::ops::math::special::{add_scalar, compare_scalar};
use crate::scalar::{Direction, ScalarOp};
use crate::symbolic;
use crate::symbolic::trace::{self, Relation};
use crate::tensor::{DType, Tensor};
use std::collections::HashSet;
use std::sync::Arc;

/// Remedy for a value that must be known at compile time but follows from what is fed.
const TELL_VALUE: &str = "say what is fed when you compile: --feed NAME=0.5, or --feed NAME={1,2}";

/// Sizes whose bound follows from the program and is at most this get room for it; others have the bound that the caller allows.
const MOST_PROVEN: u64 = 1 << 16;

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
    /// Elements of TensorArrays and stacks.
    pub holders: &'a mut Holders,
    /// Known ranges of integers of the open computation.
    pub ranges: &'a mut Ranges,
    /// The functions whose nodes are being lowered, outermost first.
    pub calls: &'a [Arc<str>],
}

impl LowerCtx<'_> {
    /// Context of the node with other inputs.
    pub fn with_args(&mut self, args: Vec<Value>) -> LowerCtx<'_> {
        let LowerCtx { node, b, store, holders, ranges, calls, .. } = self;
        LowerCtx { node, b, args, store, holders, ranges, calls }
    }
    /// Input `i`, an array.
    ///
    /// # Errors
    /// `Code::UnsupportedType` for what is no array, `Code::BadGraph` where it is missing.
    pub fn arg(&self, i: usize) -> Result<InstId> {
        match self.args.get(i) {
            Some(Value::Array(id)) => Ok(*id),
            Some(
                Value::List(_)
                | Value::UnshapedList { .. }
                | Value::Unlike(_)
                | Value::Structured(_)
                | Value::Jagged(_),
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
            Some(Value::Holder(_)) => Err(Error::user(
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
    /// The value of the variable whose handle input `i` is. The handle of a variable that is a constant is its value.
    ///
    /// # Errors
    /// Those of [`LowerCtx::arg`], and `Code::UnsupportedCase` in scalar functions.
    pub fn read(&mut self, i: usize) -> Result<InstId> {
        match self.args.get(i) {
            Some(&Value::Variable(id)) if !self.store.is_table(id) => self.grown(id),
            _ => self.arg(i),
        }
    }
    /// Gives the variable whose handle input `i` is a value.
    ///
    /// # Errors
    /// `VariableAssigned` for a variable that is a constant, `DynamicShape` for a value of another size.
    pub fn write(&mut self, i: usize, value: InstId) -> Result<()> {
        match self.args.get(i) {
            Some(&Value::Variable(id)) if !self.store.axes(id).is_empty() => self.grow(id, value),
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
    /// All inputs from number `from` to before `to`, arrays.
    ///
    /// # Errors
    /// Those of [`LowerCtx::arg`].
    pub fn arg_range(&self, from: usize, to: usize) -> Result<Vec<InstId>> {
        (from..to).map(|i| self.arg(i)).collect()
    }
    /// The sizes of input `i`.
    ///
    /// # Errors
    /// Those of [`LowerCtx::arg`].
    pub fn dims(&self, i: usize) -> Result<Vec<Dim>> {
        if let Some(Value::Ragged(ragged)) = self.args.get(i) {
            return Ok(ragged.rows(self).into_iter().collect());
        }
        if let Some(dims) = self.args.get(i).and_then(|arg| text::dims(self.b, arg)) {
            return Ok(dims);
        }
        Ok(self.b.dims(self.arg(i)?).to_vec())
    }
    /// The element type of input `i`.
    ///
    /// # Errors
    /// Those of [`LowerCtx::arg`].
    pub fn dtype(&self, i: usize) -> Result<DType> {
        Ok(self.b.dtype(self.arg(i)?))
    }
    /// The value of input `i`, which must not depend on what is fed.
    ///
    /// # Errors
    /// Those of [`LowerCtx::arg`], and `Code::NotConstant`.
    pub fn constant(&self, i: usize) -> Result<Tensor> {
        let id = self.arg(i)?;
        interp::constant_value(self.b, id).ok_or_else(|| {
            let told = format!("input {i} must be known at compile time, and it depends on what is fed");
            Diagnostic::new(Code::NotConstant, told).help(TELL_VALUE).into()
        })
    }
    /// The value of input `i` as integers.
    ///
    /// # Errors
    /// Those of [`LowerCtx::constant`], and `Code::TypeMismatch` for other numbers.
    pub fn constant_ints(&self, i: usize) -> Result<Vec<i64>> {
        self.constant(i)?
            .to_i64s()
            .ok_or_else(|| Error::user(Code::TypeMismatch, format!("input {i} must hold integers")))
    }
    /// Constant value of input `i`, where it does not depend on what is fed.
    pub fn known(&self, i: usize) -> Option<SymbolicArray> {
        interp::known_value(self.b, self.arg(i).ok()?)
    }
    /// The value of input `i` as integers, which may follow from sizes that vary.
    ///
    /// # Errors
    /// Those of [`LowerCtx::constant_ints`].
    pub fn constant_dims(&self, i: usize) -> Result<Vec<Dim>> {
        match self.known(i).and_then(|known| known.sizes) {
            Some(sizes) => Ok(sizes),
            None => Ok(self.constant_ints(i)?.into_iter().map(Dim::from).collect()),
        }
    }
    /// The value of input `i`, one integer.
    ///
    /// # Errors
    /// Those of [`LowerCtx::constant_ints`], and `Code::ShapeMismatch` for more than one.
    pub fn constant_int(&self, i: usize) -> Result<i64> {
        match self.constant_ints(i)?[..] {
            [v] => Ok(v),
            ref all => {
                Err(Error::user(Code::ShapeMismatch, format!("input {i} must be one integer, not {}", all.len())))
            }
        }
    }
    /// The value of input `i`, one integer, which may follow from sizes that vary.
    ///
    /// # Errors
    /// Those of [`LowerCtx::constant_int`].
    pub fn constant_dim(&self, i: usize) -> Result<Dim> {
        match self.constant_dims(i)?[..] {
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
    pub fn check_within(&self, i: usize, sizes: &[Dim]) -> Result<()> {
        let is_entry = self.b.depth() == 1 && self.b.data_sizes().is_empty();
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
    /// An axis in `0..rank` from a possibly negative one.
    ///
    /// # Errors
    /// `Code::ShapeMismatch` where it is out of range.
    pub fn axis(&self, axis: i64, rank: usize) -> Result<usize> {
        let shifted = if axis < 0 { axis + rank as i64 } else { axis };
        usize::try_from(shifted)
            .ok()
            .filter(|&a| a < rank)
            .ok_or_else(|| Error::user(Code::ShapeMismatch, format!("axis {axis} is out of range for rank {rank}")))
    }
    /// A required attribute.
    ///
    /// # Errors
    /// `Code::BadAttr` where it is missing.
    pub fn required<T>(&self, value: Option<T>, name: &str) -> Result<T> {
        value.ok_or_else(|| Error::user(Code::BadAttr, format!("attribute `{name}` is missing or of the wrong kind")))
    }
    /// A required attribute that is an element type.
    ///
    /// # Errors
    /// `Code::BadAttr` where it is missing, `Code::UnsupportedType` for types that no array has.
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
    /// Error for a dtype, an attribute or a shape that is not supported.
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
    /// # Errors
    /// `DynamicShape` in a computation of scalars, where sizes are fixed.
    pub fn found(&mut self, count: InstId, most: Dim, made: &str) -> Result<Dim> {
        if most.is_zero() {
            return Ok(most);
        }
        let known = interp::known_value(self.b, count);
        if let Some(&[size]) = known.as_ref().and_then(|known| known.sizes.as_deref()) {
            return Ok(size.max(Dim::from(0)).min(most));
        }
        let known = known.and_then(|known| known.value.get_i64(0));
        if let Some(known) = known.filter(|_| self.b.data_sizes().is_empty() || !self.counts_nothing(count)) {
            return Ok(Dim::size(known).unwrap_or(Dim::from(0)).min(most));
        }
        let is_count = |f: &&DataSize| f.most.is_same(most) && element::same(self.b, f.count, count);
        if let Some(known) = self.b.found_here().find(is_count) {
            return Ok(known.assumed);
        }
        let size = self.b.data_size(count, most).ok_or_else(|| {
            let told = format!(
                "how large {made} is depends on values at run time, and sizes of computations of scalars are fixed"
            );
            Error::user(Code::DynamicShape, told)
        })?;
        if let Some(same_as) = self.b.data_sizes().last().filter(|f| f.is_fixed).map(|f| f.same_as) {
            self.claim_fixed(count, size, most, same_as);
        }
        Ok(size)
    }
    /// Lets calls fail in which a size is not the one that another shape asks for.
    fn claim_fixed(&mut self, count: InstId, size: Dim, most: Dim, same_as: Option<InstId>) {
        let is_it = match same_as {
            Some(other) => {
                let (count, other) = (self.b.convert(count, DType::S32), self.b.convert(other, DType::S32));
                self.b.compare(Direction::Eq, count, other)
            }
            None => compare_scalar(self.b, Direction::Eq, count, size),
        };
        let none = self.b.full_like(count, -1.0);
        let claim = self.b.select(is_it, count, none);
        self.claim(claim, if same_as.is_some() { most } else { size }, false);
    }
    /// The first `size` elements of `x`.
    ///
    /// # Errors
    /// `ShapeMismatch` where there are less: another shape asks for as many.
    pub fn first(&mut self, x: InstId, size: Dim) -> Result<InstId> {
        let n = self.b.dims(x).first().copied();
        let Some(n) = n.filter(|&n| self.b.require_less(size, n + 1)) else {
            let told = format!("{} has less than the {size} elements that are asked for", self.b.shape(x));
            return Err(self.mismatch(told));
        };
        // a call in which they are less fails, and has memory for them
        let may_lack = trace::values_decide(size, Relation::Less, n + 1);
        let x = if may_lack { self.b.pad_axis(x, 0, size) } else { x };
        Ok(self.b.slice_axis(x, 0, Dim::from(0), size))
    }
    /// The size that element `at` of an array of integers says; what is `made` of it is told where it can't be.
    ///
    /// # Errors
    /// `ShapeMismatch` for one that is known and negative; those of [`LowerCtx::size_of`].
    pub fn size_said(&mut self, array: InstId, at: Dim, made: &str) -> Result<Dim> {
        let flat = self.b.dims(array).iter().product();
        let line = self.b.reshape(array, &[flat]);
        let one = self.b.slice_axis(line, 0, at, at + 1);
        let one = self.b.reshape(one, &[]);
        let is_varying = !self.b.data_sizes().is_empty() && self.counts_nothing(one);
        match element::element(self.b, array, at).known().filter(|_| !is_varying) {
            Some(n) => n.at_least_zero().ok_or_else(|| self.mismatch(format!("a size of {n}"))),
            None => self.size_of(one, made),
        }
    }
    /// The sizes that the elements of input `i` say: those that are known may be negative, others are at most what the caller allows.
    ///
    /// # Errors
    /// Those of [`LowerCtx::size_of`].
    pub fn sizes_said(&mut self, i: usize) -> Result<Vec<Dim>> {
        if self.known(i).is_some() {
            return self.constant_dims(i);
        }
        let (array, dims) = (self.arg(i)?, self.dims(i)?);
        let made = format!("what `{}` makes", self.node.name);
        let count = symbolic::product(&dims).map_or(0, Dim::known);
        (0..count).map(|at| self.size_said(array, Dim::from(at), &made)).collect()
    }
    /// The size that input `i`, one integer, says.
    ///
    /// # Errors
    /// `ShapeMismatch` where it is no size, `TooLarge`; those of [`LowerCtx::size_of`].
    pub fn size(&mut self, i: usize) -> Result<Dim> {
        let (id, dims) = (self.arg(i)?, self.dims(i)?);
        if dims.iter().any(|&n| n != 1) {
            return Err(self.mismatch(format!("input {i} must be one integer, not {dims:?}")));
        }
        let made = format!("what `{}` makes", self.node.name);
        match self.size_said(id, Dim::from(0), &made)? {
            n if n <= 1u64 << 32 => Ok(n),
            n => Err(Error::user(Code::TooLarge, format!("input {i} asks for {n} elements"))),
        }
    }
    /// The size that an integer scalar says. Where nothing bounds it, it is at most what the caller allows, and a call that asks for more,
    /// or for less than nothing, fails.
    ///
    /// # Errors
    /// Those of [`LowerCtx::found`].
    pub fn size_of(&mut self, count: InstId, made: &str) -> Result<Dim> {
        let range = self.ranges.of(self.b, count);
        let proven = range.bound().and_then(|most| Dim::size(most).ok());
        if let Some(most) = proven.filter(|&most| range.least >= 0 && most <= MOST_PROVEN) {
            return self.found(count, most, made);
        }
        let most = self.b.bound(&self.node.name);
        self.size_up_to(count, Dim::from(most), true, made)
    }
    /// A size that a value of the call says, at most `most` where the arguments are sound; a check of the call where `most` is too large to
    /// reserve memory for.
    ///
    /// # Errors
    /// Those of [`LowerCtx::found`].
    pub fn size_within(&mut self, count: InstId, most: Dim, made: &str) -> Result<Dim> {
        let allowed = self.b.bound(&self.node.name);
        let is_proven = most <= MOST_PROVEN;
        self.size_up_to(count, if is_proven { most } else { Dim::from(allowed) }, !is_proven, made)
    }
    /// One more than the largest of some numbers, a vector of integers: as many as there are of what they count from 0 on.
    ///
    /// # Errors
    /// Those of [`LowerCtx::found`].
    pub fn size_counted(&mut self, numbers: InstId, made: &str) -> Result<Dim> {
        let most = self.ranges.elements(self.b, numbers).bound().and_then(|most| Dim::size(most.checked_add(1)?).ok());
        let none = self.b.scalar(DType::S64, -1.0);
        let wide = self.b.convert(numbers, DType::S64);
        let last = self.b.reduce(wide, none, ScalarOp::Maximum, &[0]);
        let count = add_scalar(self.b, last, 1.0);
        match most.filter(|&most| most < 1u64 << 31) {
            Some(most) => {
                let count = self.b.convert(count, DType::S32);
                self.found(count, most, made)
            }
            None => self.size_of(count, made),
        }
    }
    fn size_up_to(&mut self, count: InstId, most: Dim, is_allowed: bool, made: &str) -> Result<Dim> {
        let (asked, taken) = self.clamped(count, most);
        let size = self.found(taken, most, made)?;
        self.claim(asked, most, is_allowed);
        Ok(size)
    }
    /// A number from 0 to `most`; calls fail in which it is another.
    pub fn hold(&mut self, count: InstId, most: Dim) -> InstId {
        let (asked, taken) = self.clamped(count, most);
        self.claim(asked, most, false);
        taken
    }
    /// Lets calls fail that ask for more than `most` elements of state, the room that the caller allows `owner`.
    ///
    /// # Errors
    /// `Code::UnsupportedCase` in computations from which nothing is carried to where calls can fail.
    pub fn hold_state(&mut self, owner: &str, asked: InstId, most: u64) -> Result<()> {
        if !self.b.carries() {
            return Err(self.unsupported(format!("`{owner}` grows in a function of scalars or in a condition")));
        }
        let value = self.b.convert(asked, DType::S32);
        self.b.claim(Claim { node: owner.to_string(), quantity: ClaimQuantity::Size, value, most, is_allowed: true });
        Ok(())
    }
    /// A number of elements for which a list has room, and the most that the caller allows where nothing bounds it: calls fail that ask
    /// for more, or for less than nothing. `None` inside of a loop or branch.
    pub fn allowed(&mut self, count: InstId) -> Option<(InstId, Dim)> {
        if self.b.depth() > 1 {
            return None;
        }
        let most = self.b.bound(&self.node.name);
        let (asked, taken) = self.clamped(count, Dim::from(most));
        self.claim(asked, Dim::from(most), true);
        Some((taken, Dim::from(most)))
    }
    /// A number, not further out than one from what it may be from 0 on, and as the nearest that it may be.
    fn clamped(&mut self, count: InstId, most: Dim) -> (InstId, InstId) {
        let (low, high) = (self.b.full_like(count, -1.0), self.b.full_like(count, most + 1));
        let asked = self.b.elementwise(ScalarOp::Clamp, &[low, count, high]);
        let (none, room) = (self.b.full_like(count, 0.0), self.b.full_like(count, most));
        (asked, self.b.elementwise(ScalarOp::Clamp, &[none, asked, room]))
    }
    /// Lets calls fail that ask for more than `most`, or for less than nothing.
    fn claim(&mut self, asked: InstId, most: Dim, is_allowed: bool) {
        let value = self.b.convert(asked, DType::S32);
        let claims = self.b.claims();
        if !claims.iter().any(|c| most.is_same(c.most.into()) && element::same(self.b, c.value, value)) {
            let node = self.node.name.to_string();
            self.b.claim_up_to(most, Claim { node, quantity: ClaimQuantity::Size, value, most: 0, is_allowed });
        }
    }
    /// Whether a value is computed from arrays without elements. It may be known only because a size that other values say is taken to be
    /// 0, and is a size like those where it is not.
    fn counts_nothing(&self, value: InstId) -> bool {
        let insts = &self.b.current().insts;
        let (mut todo, mut seen) = (vec![value], HashSet::new());
        while let Some(id) = todo.pop() {
            let Some(inst) = insts.get(id).filter(|_| seen.insert(id)) else { continue };
            if inst.shape.as_array().is_some_and(|a| a.dims.iter().any(|d| d.is_zero())) {
                return true;
            }
            // of arrays joined in one only those count that are taken from it
            match (&inst.op, inst.operands.first()) {
                (Op::Slice(dims), Some(&from)) => todo.push(range::part_of(self.b, from, dims).unwrap_or(from)),
                _ => todo.extend(&inst.operands),
            }
        }
        false
    }
    /// One array as the list of outputs.
    ///
    /// # Errors
    /// None: lowerings end so.
    pub fn one(&self, id: InstId) -> Result<Vec<Value>> {
        Ok(vec![Value::Array(id)])
    }
}
