//! Values across the border of a computation: a tuple parameter holds the arrays, the rest is known on both sides.
use super::walker::Walker;
use crate::diag::{Code, Error, Result};
use crate::graph::TfType;
use crate::hlo::{InstId, Literal, Op, Shape};
use crate::interp;
use crate::ops::holder::HolderId;
use crate::ops::value::{Count, Elements, JaggedList, ListValue, RaggedValue, UnlikeList};
use crate::ops::{StringConstant, Table, Text, Value, list};
use crate::tensor::{DType, Tensor};
use std::sync::Arc;

/// Arrays of more elements are not evaluated to find out that they are constant.
const EVALUATED_ELEMENTS: u64 = 1 << 16;

/// What is known of a value outside of the computation that holds it.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Form {
    /// A value that is known at compile time and becomes a constant in the other computation too.
    Constant {
        /// The value.
        value: Tensor,
        /// Whether it is computed from sizes of arrays.
        is_size: bool,
    },
    /// An array of this shape.
    Array(Shape),
    /// A TensorList.
    List(ListForm),
    /// A TensorList whose element shape is open.
    Unshaped(UnshapedForm),
    /// A TensorList of rows that differ in length.
    Jagged(JaggedForm),
    /// A list of variants of which none was set yet.
    Unset(UnlikeList),
    /// A RaggedTensor in a variant.
    Ragged(RaggedForm),
    /// The handle of the variable of this number.
    Variable(usize),
    /// The handle of a TensorArray or stack.
    Holder(HolderId),
    /// The handle of a lookup table.
    Table(Arc<Table>),
    /// Strings that the file holds.
    Strings(Arc<StringConstant>),
    /// Strings that are made of numbers.
    Text(TextForm),
    /// A list of unlike elements, which does not cross.
    Unlike,
    /// No value.
    Unavailable(TfType),
}

/// What is known of a list of rows outside of the computation that holds it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct JaggedForm {
    /// The element type.
    pub dtype: DType,
    /// The sizes of its array: the number of elements, the most rows of each, and the sizes of a row.
    pub dims: Vec<u64>,
    /// The name of the node that made it.
    pub name: Arc<str>,
}

/// What is known of a RaggedTensor in a variant outside of the computation that holds it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct RaggedForm {
    /// The shapes of the splits, outermost first.
    pub splits: Vec<Shape>,
    /// The shape of the values.
    pub values: Shape,
    /// Whether it is a vector or list of variants.
    pub is_rows: bool,
}

/// What is known of a TensorList outside of the computation that holds it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ListForm {
    /// The element type.
    pub dtype: DType,
    /// The sizes of its array: the room for elements, and the sizes of one.
    pub dims: Vec<u64>,
    /// Of a list whose length is a value: the most elements that it has, and whether there may be others behind them.
    pub count: Option<(u64, bool)>,
    /// What its elements are, as far as that is known.
    pub elements: Elements,
    /// The name of the node that made it.
    pub name: Arc<str>,
}

/// What is known of a tensor of strings.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct TextForm {
    /// Its sizes.
    pub dims: Vec<u64>,
    /// The length that no string exceeds.
    pub most: u64,
}

impl TextForm {
    fn shapes(&self) -> Vec<Shape> {
        let array = |dtype| Shape::array(dtype, self.dims.clone());
        let words = std::iter::repeat_n(array(DType::U64), Text::word_count(self.most));
        words.chain([array(DType::S32)]).collect()
    }
}

/// What is known of a TensorList whose element shape is open.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct UnshapedForm {
    /// The number of elements; the most that there may be, where a value says it.
    pub length: u64,
    /// Whether a value says it.
    pub is_counted: bool,
    /// The element type.
    pub dtype: DType,
    /// The name of the node that made it.
    pub name: Arc<str>,
}

impl ListForm {
    /// How many elements there is room for.
    pub fn room(&self) -> u64 {
        self.dims.first().copied().unwrap_or(0)
    }

    /// It never has more elements.
    pub fn most(&self) -> u64 {
        self.count.map_or(self.room(), |count| count.0)
    }

    fn stale(&self) -> bool {
        self.count.is_some_and(|count| count.1)
    }

    /// The form of a list that is as one of the two tells; `None` where their elements differ.
    fn joined(&self, other: &ListForm) -> Option<ListForm> {
        if self.dtype != other.dtype || self.dims.get(1..) != other.dims.get(1..) {
            return None;
        }
        let mut dims = self.dims.clone();
        *dims.first_mut()? = self.room().max(other.room());
        let exact = self.count.is_none() && other.count.is_none() && self.room() == other.room();
        let count = (!exact).then(|| (self.most().max(other.most()), self.stale() || other.stale()));
        let elements = self.elements.joined(&other.elements);
        Some(ListForm { dtype: self.dtype, dims, count, elements, name: self.name.clone() })
    }
}

impl Form {
    /// The shapes of the arrays that cross the border.
    pub fn leaves(&self) -> Vec<Shape> {
        match self {
            Form::Array(s) => vec![s.clone()],
            Form::List(list) => {
                let count = list.count.map(|_| Shape::array(DType::S32, []));
                std::iter::once(Shape::array(list.dtype, list.dims.clone())).chain(count).collect()
            }
            Form::Jagged(list) => {
                vec![Shape::array(list.dtype, list.dims.clone()), Shape::array(DType::S32, &list.dims[..1])]
            }
            Form::Ragged(ragged) => ragged.splits.iter().chain([&ragged.values]).cloned().collect(),
            Form::Text(text) => text.shapes(),
            Form::Unshaped(list) => list.is_counted.then(|| Shape::array(DType::S32, [])).into_iter().collect(),
            Form::Constant { .. }
            | Form::Variable(_)
            | Form::Holder(_)
            | Form::Table(_)
            | Form::Strings(_)
            | Form::Unlike
            | Form::Unset(_)
            | Form::Unavailable(_) => Vec::new(),
        }
    }

    /// The list that a list without a shape is beside others of this shape.
    fn as_list(&self, like: &ListForm) -> Option<ListForm> {
        match self {
            Form::List(list) => Some(list.clone()),
            Form::Unshaped(UnshapedForm { length, is_counted, dtype, name }) => {
                let dims = like.dims.iter().enumerate().map(|(i, &d)| if i == 0 { *length } else { d }).collect();
                let elements = if *length == 0 { Elements::None } else { Elements::Any };
                let count = is_counted.then_some((*length, false));
                Some(ListForm { dtype: *dtype, dims, count, elements, name: name.clone() })
            }
            _ => None,
        }
    }

    /// The form of strings that are as one of the two tells; `None` for others, and for strings of unlike sizes.
    fn joined_text(&self, other: &Form) -> Option<Form> {
        let own = |form: &Form| match form {
            Form::Text(text) => Some(text.clone()),
            Form::Strings(s) => Some(TextForm { dims: s.dims.clone(), most: s.most() }),
            _ => None,
        };
        let (x, y) = (own(self)?, own(other)?);
        (x.dims == y.dims).then(|| Form::Text(TextForm { most: x.most.max(y.most), ..x }))
    }

    /// The form of a list or of strings that are as one of the two tells; `None` if they are no such values.
    pub fn joined(&self, other: &Form) -> Option<Form> {
        if let (Form::Text(_) | Form::Strings(_), _) = (self, other) {
            return if self == other { Some(self.clone()) } else { self.joined_text(other) };
        }
        let like = match (self, other) {
            (Form::List(list), _) | (_, Form::List(list)) => list,
            _ => return None,
        };
        self.as_list(like)?.joined(&other.as_list(like)?).map(Form::List)
    }

    /// Whether branches may leave values of other forms in its place, with which it is [joined](Form::joined).
    pub fn is_joined(&self) -> bool {
        matches!(self, Form::List(_) | Form::Unshaped(..) | Form::Strings(_) | Form::Text(_))
    }
}

impl Walker<'_> {
    /// The form of a value of the open computation.
    pub fn form(&self, value: &Value) -> Form {
        match value {
            Value::Array(id) => Form::Array(self.b.shape(*id).clone()),
            Value::List(list) => Form::List(ListForm {
                dtype: self.b.dtype(list.buffer),
                dims: self.b.dims(list.buffer).to_vec(),
                count: list.count.map(|count| (count.most, count.stale)),
                elements: if self.resizes { list.elements.clone() } else { Elements::Any },
                name: list.name.clone(),
            }),
            Value::UnshapedList { length, now, dtype, name, .. } => {
                let (length, is_counted, dtype, name) = (*length, now.is_some(), *dtype, name.clone());
                Form::Unshaped(UnshapedForm { length, is_counted, dtype, name })
            }
            Value::Unlike(list) if list.dtype == TfType::Variant && list.is_unset() => Form::Unset(list.clone()),
            Value::Unlike(_) => Form::Unlike,
            Value::Jagged(list) => Form::Jagged(JaggedForm {
                dtype: self.b.dtype(list.buffer),
                dims: self.b.dims(list.buffer).to_vec(),
                name: list.name.clone(),
            }),
            Value::Ragged(ragged) => Form::Ragged(RaggedForm {
                splits: ragged.splits.iter().map(|&id| self.b.shape(id).clone()).collect(),
                values: self.b.shape(ragged.values).clone(),
                is_rows: ragged.is_rows,
            }),
            Value::Variable(id) => Form::Variable(*id),
            Value::Holder(id) => Form::Holder(*id),
            Value::Table(table) => Form::Table(table.clone()),
            Value::Strings(constant) => Form::Strings(constant.clone()),
            Value::Text(text) => Form::Text(TextForm { dims: self.b.dims(text.length).to_vec(), most: text.most }),
            Value::Unavailable(t) => Form::Unavailable(*t),
        }
    }

    /// The constant that a value is, if it is one and cheap to find out.
    pub fn known(&self, value: &Value) -> Option<Tensor> {
        let Value::Array(id) = value else { return None };
        let inst = &self.b.current().insts[*id];
        if let Op::Constant(Literal::Array(t)) = &inst.op {
            return Some(t.clone());
        }
        let small = inst.shape.as_array().is_some_and(|a| a.elements() <= EVALUATED_ELEMENTS);
        if small { interp::constant_value(&self.b, *id) } else { None }
    }

    /// The form of a value that is known and becomes a constant of the computation that it goes into.
    pub fn constant_form(&self, value: &Value, known: Tensor) -> Form {
        let is_size = matches!(value, Value::Array(id) if self.b.follows_sizes(*id));
        Form::Constant { value: known, is_size }
    }

    /// Opens a computation with one tuple parameter; its values in the order of `forms`.
    pub fn open(&mut self, name: &str, forms: &[Form]) -> Vec<Value> {
        self.b.begin(name);
        self.ranges.enter(&self.b, Vec::new());
        let leaves = forms.iter().flat_map(Form::leaves).collect();
        let tuple = self.b.parameter(Shape::Tuple(leaves));
        self.unpack(tuple, forms)
    }

    /// The parts of a tuple as values of these forms.
    pub fn unpack(&mut self, tuple: InstId, forms: &[Form]) -> Vec<Value> {
        let mut next = 0;
        let mut part = |w: &mut Self| {
            next += 1;
            w.b.get_tuple_element(tuple, next - 1)
        };
        let mut out = Vec::with_capacity(forms.len());
        for form in forms {
            out.push(match form {
                Form::Constant { value, is_size } => {
                    let constant = self.b.constant(value.clone());
                    if *is_size {
                        self.b.tell_size(constant);
                    }
                    Value::Array(constant)
                }
                Form::Array(_) => Value::Array(part(self)),
                Form::List(list) => {
                    let buffer = part(self);
                    let count = list.count.map(|(most, stale)| Count { now: part(self), most, stale });
                    let (elements, name) = (list.elements.clone(), list.name.clone());
                    Value::List(ListValue { buffer, count, elements, name, open: None })
                }
                Form::Unshaped(UnshapedForm { length, is_counted, dtype, name }) => {
                    let now = is_counted.then(|| part(self));
                    Value::UnshapedList { length: *length, now, dtype: *dtype, name: name.clone(), open: None }
                }
                Form::Jagged(list) => {
                    let (buffer, lengths) = (part(self), part(self));
                    Value::Jagged(JaggedList { buffer, lengths, name: list.name.clone() })
                }
                Form::Unset(list) => Value::Unlike(list.clone()),
                Form::Ragged(ragged) => {
                    let splits = ragged.splits.iter().map(|_| part(self)).collect();
                    Value::Ragged(RaggedValue { splits, values: part(self), is_rows: ragged.is_rows })
                }
                Form::Variable(id) => Value::Variable(*id),
                Form::Holder(id) => Value::Holder(*id),
                Form::Table(table) => Value::Table(table.clone()),
                Form::Strings(constant) => Value::Strings(constant.clone()),
                Form::Text(text) => {
                    let words = (0..Text::word_count(text.most)).map(|_| part(self)).collect();
                    Value::Text(Text { words, length: part(self), most: text.most })
                }
                Form::Unlike => Value::Unavailable(TfType::Variant),
                Form::Unavailable(t) => Value::Unavailable(*t),
            });
        }
        out
    }

    /// The tuple of the arrays in `values`, which must have these forms; `what` names value `i` in errors.
    pub fn pack(&mut self, values: &[Value], forms: &[Form], what: &str) -> Result<InstId> {
        let mut leaves = Vec::new();
        for (i, (value, form)) in values.iter().zip(forms).enumerate() {
            leaves.extend(self.conform(value, form, &format!("{what} {i}"))?);
        }
        Ok(self.b.tuple(&leaves))
    }

    fn conform(&mut self, value: &Value, form: &Form, what: &str) -> Result<Vec<InstId>> {
        let differs =
            |found: String| Err(Error::user(Code::DynamicShape, format!("{what} has no fixed shape: {found}")));
        match (form, value) {
            (Form::Constant { .. } | Form::Unavailable(_), _) => Ok(Vec::new()),
            (Form::Holder(want), Value::Holder(found)) if want == found => Ok(Vec::new()),
            (Form::Holder(_), Value::Holder(_)) => {
                Err(Error::user(Code::UnsupportedCase, format!("{what} is one TensorArray or stack or another")))
            }
            (Form::Ragged(want), Value::Ragged(ragged)) => {
                if Form::Ragged(want.clone()) != self.form(value) {
                    return differs("it is a RaggedTensor of other sizes".to_string());
                }
                Ok(ragged.splits.iter().copied().chain([ragged.values]).collect())
            }
            (Form::Variable(want), Value::Variable(found)) if want == found => Ok(Vec::new()),
            (Form::Variable(_), Value::Variable(_)) => {
                Err(Error::user(Code::UnsupportedCase, format!("{what} is the handle of one variable or of another")))
            }
            (Form::Table(want), Value::Table(found)) if want == found => Ok(Vec::new()),
            (Form::Table(_), Value::Table(_)) => {
                Err(Error::user(Code::UnsupportedCase, format!("{what} is the handle of one table or of another")))
            }
            (Form::Unset(want), Value::Unlike(found)) if want == found => Ok(Vec::new()),
            (Form::Jagged(_), Value::Jagged(list)) if *form == self.form(value) => Ok(vec![list.buffer, list.lengths]),
            (Form::Jagged(_), Value::Jagged(_)) => differs("it is a list of rows of other sizes".to_string()),
            (Form::Unlike, _) | (_, Value::Unlike(_)) => {
                let told =
                    format!("{what} is a list of lists or of unlike elements, which loops and branches do not take");
                Err(Error::user(Code::UnsupportedCase, told))
            }
            (Form::Strings(want), Value::Strings(found)) if want == found => Ok(Vec::new()),
            (Form::Text(want), Value::Text(_) | Value::Strings(_)) => self.conform_text(value, want, what),
            (Form::Array(want), Value::Array(id)) => {
                let found = self.b.shape(*id);
                if found.same(want) { Ok(vec![*id]) } else { differs(format!("it is {want} and {found}")) }
            }
            (Form::List(want), Value::List(_) | Value::UnshapedList { .. }) => self.conform_list(value, want, what),
            (Form::Unshaped(want), Value::UnshapedList { length, now, dtype, .. })
                if (want.length, want.is_counted, want.dtype) == (*length, now.is_some(), *dtype) =>
            {
                Ok(now.iter().copied().collect())
            }
            (Form::Unshaped(..), Value::List(_)) => differs("its element shape is known on one side only".to_string()),
            _ => Err(Error::user(Code::TypeMismatch, format!("{what} changes its type"))),
        }
    }

    fn conform_text(&mut self, value: &Value, form: &TextForm, what: &str) -> Result<Vec<InstId>> {
        let text = match value {
            Value::Text(text) => text.clone(),
            Value::Strings(constant) => constant.text(&mut self.b),
            _ => return Err(Error::internal("lower", "no strings")),
        };
        if self.b.dims(text.length) != form.dims || text.most > form.most {
            let found = self.form(&Value::Text(text));
            let told = format!("{what} has no fixed shape: strings are {form:?} and {found:?}");
            return Err(Error::user(Code::DynamicShape, told));
        }
        Ok(text.with_room(&mut self.b, form.most).parts())
    }

    fn conform_list(&mut self, value: &Value, form: &ListForm, what: &str) -> Result<Vec<InstId>> {
        let Value::List(list) = list::with_shape(&mut self.b, value.clone(), form.dims.get(1..))? else {
            return Err(Error::internal("lower", "a list that takes no shape"));
        };
        let same = self.b.dtype(list.buffer) == form.dtype
            && self.b.dims(list.buffer).get(1..) == form.dims.get(1..)
            && form.elements.joined(&list.elements) == form.elements;
        let exact = list.count.is_none() && list.room(&self.b) == form.room();
        match form.count {
            None if same && exact => Ok(vec![list.buffer]),
            Some(_) if same && list.room(&self.b) <= form.room() => {
                let list = list.counted(&mut self.b, form.room())?;
                let count = list.length(&mut self.b)?;
                Ok(vec![list.buffer, count])
            }
            _ => {
                let want = Shape::array(form.dtype, form.dims.clone());
                let (name, found) = (&form.name, self.b.shape(list.buffer));
                let told = format!("{what} has no fixed shape: the list `{name}` is {want} and {found}");
                Err(Error::user(Code::DynamicShape, told))
            }
        }
    }

    /// A scalar truth value: a number is true where it is not zero, as in `tf.cond` of old graphs.
    pub fn truth(&mut self, value: &Value) -> Result<InstId> {
        let Value::Array(id) = value else {
            return Err(Error::user(Code::UnsupportedType, "the predicate is not an array"));
        };
        if self.b.rank(*id) != 0 {
            let elements = self.b.shape(*id).as_array().map_or(0, |a| a.elements());
            let elements = self.b.constant(Tensor::of(&[], &[elements as i64]));
            self.b.tell_size(elements);
            let zero = self.b.full_like(elements, 0.0);
            return Ok(self.b.compare(crate::scalar::Direction::Ne, elements, zero));
        }
        if self.b.dtype(*id) == DType::Pred {
            return Ok(*id);
        }
        let zero = self.b.full_like(*id, 0.0);
        Ok(self.b.compare(crate::scalar::Direction::Ne, *id, zero))
    }
}
