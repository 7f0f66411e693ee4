//! Values across the border of a computation: a tuple parameter holds the arrays, the rest is known on both sides.
use super::walker::Walker;
use crate::diag::{Code, Error, Result};
use crate::graph::TfType;
use crate::hlo::{InstId, Literal, Op, Shape};
use crate::interp;
use crate::ops::Value;
use crate::ops::holder::HolderId;
use crate::ops::value::ListValue;
use crate::tensor::{DType, Tensor};

/// Arrays of more elements are not evaluated to find out that they are constant.
const EVALUATED_ELEMENTS: u64 = 1 << 16;

/// What is known of a value outside of the computation that holds it.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Form {
    /// Known at compile time, made anew wherever it is needed.
    Constant(Tensor),
    /// An array of this shape.
    Array(Shape),
    /// A TensorList whose buffer has this shape.
    List(Shape),
    /// A TensorList whose element shape is open.
    Unshaped(u64, DType),
    /// The handle of the variable of this number.
    Variable(usize),
    /// The handle of a TensorArray or stack.
    Holder(HolderId),
    /// No value.
    Unavailable(TfType),
}

impl Form {
    /// The shape of the array that crosses the border, if one does.
    pub fn leaf(&self) -> Option<&Shape> {
        match self {
            Form::Array(s) | Form::List(s) => Some(s),
            Form::Constant(_) | Form::Unshaped(..) | Form::Variable(_) | Form::Holder(_) | Form::Unavailable(_) => None,
        }
    }
}

impl Walker<'_> {
    /// The form of a value of the open computation.
    pub fn form(&self, value: &Value) -> Form {
        match value {
            Value::Array(id) => Form::Array(self.b.shape(*id).clone()),
            Value::List(list) => Form::List(self.b.shape(list.buffer).clone()),
            Value::UnshapedList { length, dtype } => Form::Unshaped(*length, *dtype),
            Value::Variable(id) => Form::Variable(*id),
            Value::Holder(id) => Form::Holder(*id),
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

    /// Opens a computation with one tuple parameter; its values in the order of `forms`.
    pub fn open(&mut self, name: &str, forms: &[Form]) -> Vec<Value> {
        self.b.begin(name);
        self.limits.remove(&self.b.depth());
        let leaves = forms.iter().filter_map(Form::leaf).cloned().collect();
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
                Form::Constant(t) => Value::Array(self.b.constant(t.clone())),
                Form::Array(_) => Value::Array(part(self)),
                Form::List(_) => Value::List(ListValue { buffer: part(self) }),
                Form::Unshaped(length, dtype) => Value::UnshapedList { length: *length, dtype: *dtype },
                Form::Variable(id) => Value::Variable(*id),
                Form::Holder(id) => Value::Holder(*id),
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

    fn conform(&mut self, value: &Value, form: &Form, what: &str) -> Result<Option<InstId>> {
        let differs =
            |found: String| Err(Error::user(Code::DynamicShape, format!("{what} has no fixed shape: {found}")));
        match (form, value) {
            (Form::Constant(_) | Form::Unavailable(_), _) => Ok(None),
            (Form::Holder(want), Value::Holder(found)) if want == found => Ok(None),
            (Form::Holder(_), Value::Holder(_)) => {
                Err(Error::user(Code::UnsupportedCase, format!("{what} is one TensorArray or stack or another")))
            }
            (Form::Variable(want), Value::Variable(found)) if want == found => Ok(None),
            (Form::Variable(_), Value::Variable(_)) => {
                Err(Error::user(Code::UnsupportedCase, format!("{what} is the handle of one variable or of another")))
            }
            (Form::Array(want), Value::Array(id)) => {
                let found = self.b.shape(*id);
                if found.same(want) { Ok(Some(*id)) } else { differs(format!("it is {want} and {found}")) }
            }
            (Form::List(want), Value::List(list)) => {
                let found = self.b.shape(list.buffer);
                if found.same(want) {
                    Ok(Some(list.buffer))
                } else {
                    differs(format!("it is a list {want} and {found}"))
                }
            }
            (Form::List(Shape::Array(want)), Value::UnshapedList { length, .. })
                if want.dims.first() == Some(length) =>
            {
                let (dtype, dims) = (want.dtype, want.dims.clone());
                Ok(Some(self.b.full(dtype, &dims, 0.0)))
            }
            (Form::Unshaped(n, t), Value::UnshapedList { length, dtype }) if n == length && t == dtype => Ok(None),
            (Form::Unshaped(..), Value::List(_)) => differs("its element shape is known on one side only".to_string()),
            _ => Err(Error::user(Code::TypeMismatch, format!("{what} changes its type"))),
        }
    }

    /// A scalar truth value: a number is true where it is not zero, as in `tf.cond` of old graphs.
    pub fn truth(&mut self, value: &Value) -> Result<InstId> {
        let Value::Array(id) = value else {
            return Err(Error::user(Code::UnsupportedType, "the predicate is not an array"));
        };
        if self.b.rank(*id) != 0 {
            let nonempty = self.b.shape(*id).as_array().is_some_and(|a| a.elements() > 0);
            return Ok(self.b.constant(Tensor::preds(&[], &[nonempty])));
        }
        if self.b.dtype(*id) == DType::Pred {
            return Ok(*id);
        }
        let zero = self.b.full_like(*id, 0.0);
        Ok(self.b.compare(crate::scalar::Direction::Ne, *id, zero))
    }
}
