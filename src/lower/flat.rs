//! Values across the border of a computation: a tuple parameter holds the arrays, the rest is known on both sides.
use super::walker::Walker;
use crate::diag::{Code, Error, Result};
use crate::hlo::open::{InstId, Shape};
use crate::ops::Value;
use crate::ops::spec::{self, ValueSpec};
use crate::ops::value::CommonElement;
use crate::symbolic::Dim;
use crate::tensor::{DType, Tensor};

impl Walker<'_> {
    /// The spec of a value of the open computation.
    pub fn spec(&self, value: &Value) -> ValueSpec {
        let mut spec = ValueSpec::of(&self.b, value);
        if let (ValueSpec::List(list), false) = (&mut spec, self.resizes) {
            list.elements = CommonElement::Any;
        }
        spec
    }

    /// The constant that a value is, if it is one and cheap to find out.
    pub fn known(&self, value: &Value) -> Option<Tensor> {
        spec::known(&self.b, value)
    }

    /// The spec of a value that, if it is known, becomes a constant of the computation that it goes into.
    pub fn constant_spec(&self, value: &Value) -> Option<ValueSpec> {
        spec::known_constant(&self.b, value).map(|known| ValueSpec::Constant { known })
    }

    /// Opens a computation with one tuple parameter; its values in the order of `specs`.
    pub fn open(&mut self, name: &str, specs: &[ValueSpec]) -> Vec<Value> {
        self.b.begin(name);
        self.ranges.enter_computation(&self.b, Vec::new());
        let leaves = specs.iter().flat_map(ValueSpec::leaves).collect();
        let tuple = self.b.parameter(Shape::Tuple(leaves));
        self.unpack(tuple, specs)
    }

    /// The parts of a tuple as values of these specs.
    pub fn unpack(&mut self, tuple: InstId, specs: &[ValueSpec]) -> Vec<Value> {
        let mut next = 0;
        let mut part = |b: &mut crate::hlo::open::Builder| {
            next += 1;
            b.get_tuple_element(tuple, next - 1)
        };
        specs.iter().map(|spec| spec.value(&mut self.b, &mut part)).collect()
    }

    /// The tuple of the arrays in `values`, cast to these specs; `what` names value `i` in errors.
    pub fn pack(&mut self, values: &[Value], specs: &[ValueSpec], what: &str) -> Result<InstId> {
        let mut leaves = Vec::new();
        for (i, (value, spec)) in values.iter().zip(specs).enumerate() {
            leaves.extend(self.leaves(value, spec, &format!("{what} {i}"))?);
        }
        Ok(self.b.tuple(&leaves))
    }

    /// The leaves of a value as one of another spec.
    pub fn leaves(&mut self, value: &Value, to: &ValueSpec, what: &str) -> Result<Vec<InstId>> {
        let from = self.spec(value);
        let mut leaves = Vec::new();
        spec::leaves_of(value, &from, &mut leaves);
        spec::cast(&mut self.b, &from, to, leaves, what)
    }

    /// A value as one of another spec.
    pub fn cast(&mut self, value: &Value, to: &ValueSpec, what: &str) -> Result<Value> {
        let leaves = self.leaves(value, to, what)?;
        Ok(to.of_leaves(&mut self.b, leaves))
    }

    /// A scalar truth value: a number is true where it is not zero, as in `tf.cond` of old graphs.
    pub fn truth(&mut self, value: &Value) -> Result<InstId> {
        let Value::Array(id) = value else {
            return Err(Error::user(Code::UnsupportedType, "the predicate is not an array"));
        };
        if self.b.rank(*id) != 0 {
            let elements = self.b.shape(*id).as_array().map_or(Dim::from(0), |a| a.elements());
            let elements = self.b.size_constant(DType::S64, &[], vec![elements]);
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
