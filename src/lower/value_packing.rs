//! Packing of values into the tuples that computations take and return: the arrays of a value become tuple elements, and its spec
//! (known on both sides) describes everything else.
use super::walker::Walker;
use crate::diag::{Code, Error, Result};
use crate::hlo::symbolic::{InstId, Shape};
use crate::ops::Value;
use crate::ops::spec::{self, ValueSpec};
use crate::ops::value::CommonElement;
use crate::symbolic::Dim;
use crate::tensor::{DType, Tensor};

impl Walker<'_> {
    /// The spec of a value of the open computation.
    pub fn value_spec(&self, value: &Value) -> ValueSpec {
        let mut spec = ValueSpec::of(&self.b, value);
        if let (ValueSpec::List(list), false) = (&mut spec, self.has_resizing_lists) {
            list.elements = CommonElement::Any;
        }
        spec
    }

    /// Constant that a value holds, if it is cheap to evaluate.
    pub fn constant_value(&self, value: &Value) -> Option<Tensor> {
        spec::constant_tensor(&self.b, value)
    }

    /// Spec of a constant value, which nested computations repeat instead of taking it as an argument. `None` for values that are no constants.
    pub fn constant_spec(&self, value: &Value) -> Option<ValueSpec> {
        spec::symbolic_constant(&self.b, value).map(|known| ValueSpec::Constant { known })
    }

    /// Opens a computation with one tuple parameter, and returns the values in it, in the order of `specs`.
    pub fn begin_computation(&mut self, name: &str, specs: &[ValueSpec]) -> Vec<Value> {
        self.b.begin_computation(name);
        self.ranges.enter_computation(&self.b, Vec::new());
        let leaves = specs.iter().flat_map(ValueSpec::leaves).collect();
        let tuple = self.b.parameter(Shape::Tuple(leaves));
        self.unpack_tuple(tuple, specs)
    }

    /// Values with these specs, made of the elements of a tuple.
    pub fn unpack_tuple(&mut self, tuple: InstId, specs: &[ValueSpec]) -> Vec<Value> {
        let mut next = 0;
        let mut part = |b: &mut crate::hlo::symbolic::Builder| {
            next += 1;
            b.get_tuple_element(tuple, next - 1)
        };
        specs.iter().map(|spec| spec.build_value(&mut self.b, &mut part)).collect()
    }

    /// Tuple of the arrays in `values`, each value cast to its spec; error messages call value `i` "`what` i".
    pub fn pack_tuple(&mut self, values: &[Value], specs: &[ValueSpec], what: &str) -> Result<InstId> {
        let mut leaves = Vec::new();
        for (i, (value, spec)) in values.iter().zip(specs).enumerate() {
            leaves.extend(self.cast_leaves(value, spec, &format!("{what} {i}"))?);
        }
        Ok(self.b.tuple(&leaves))
    }

    /// Arrays of a value cast to the spec `to`; error messages call the value `what`.
    pub fn cast_leaves(&mut self, value: &Value, to: &ValueSpec, what: &str) -> Result<Vec<InstId>> {
        let from = self.value_spec(value);
        let mut leaves = Vec::new();
        spec::append_leaves(value, &from, &mut leaves);
        spec::cast_leaves(&mut self.b, &from, to, leaves, what)
    }

    /// Casts a value to the spec `to`; error messages call the value `what`.
    pub fn cast_value(&mut self, value: &Value, to: &ValueSpec, what: &str) -> Result<Value> {
        let leaves = self.cast_leaves(value, to, what)?;
        Ok(to.value_from_leaves(&mut self.b, leaves))
    }

    /// Scalar truth value of an array: a number is true if it is not zero, and an array of rank 1 or more if it has elements, as in the `If`
    /// op of TensorFlow. Errors: `UnsupportedType` for values that are no arrays.
    pub fn scalar_predicate(&mut self, value: &Value) -> Result<InstId> {
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
