//! Conversion of values to a wider spec: lists get more room, and optionals that never had a value get zero components.
//!
//! Leaves are converted in batches: those of all elements of a list at once, with leading batch dimensions.
use super::{
    AlternativeSpec, HeterogeneousSpec, ListSpec, StructuredListSpec, TextSpec, UnshapedListSpec, ValueSpec,
    element_leaves,
};
use crate::diag::{Code, Error, Result};
use crate::dims;
use crate::hlo::symbolic::{Builder, Dim, InstId, Shape};
use crate::ops::Text;
use crate::ops::list::check_list_size;
use crate::symbolic::constant_dims;
use crate::tensor::DType;
use std::vec::IntoIter;

/// Converts the leaves of a value of spec `from` to those of spec `to`; `what` names the value in errors.
///
/// # Errors
/// `DynamicShape` for arrays and lists of other sizes, `TypeMismatch` for values of another kind, `UnsupportedCase` for other
/// handles.
pub fn cast_leaves(
    b: &mut Builder,
    from: &ValueSpec,
    to: &ValueSpec,
    leaves: Vec<InstId>,
    what: &str,
) -> Result<Vec<InstId>> {
    // A constant of the target spec has no leaves, and is known to equal the value.
    if matches!(to, ValueSpec::Constant { .. }) {
        return Ok(Vec::new());
    }
    Cast { b, batch: Vec::new(), what, leaves: leaves.into_iter() }.value(from, to)
}

struct Cast<'a> {
    b: &'a mut Builder,
    /// Leading batch dimensions of every leaf.
    batch: Vec<Dim>,
    what: &'a str,
    /// Leaves that remain to be converted.
    leaves: IntoIter<InstId>,
}

impl Cast<'_> {
    fn differs<T>(&self, found: &str) -> Result<T> {
        Err(Error::user(Code::DynamicShape, format!("{} has no fixed shape: {found}", self.what)))
    }

    fn other<T>(&self, of: &str) -> Result<T> {
        Err(Error::user(Code::UnsupportedCase, format!("{} is {of}", self.what)))
    }

    fn next(&mut self) -> Result<InstId> {
        self.leaves.next().ok_or_else(|| Error::internal("lower", "a value with fewer leaves than its spec has"))
    }

    fn rest(&mut self, spec: &ValueSpec) -> Result<Vec<InstId>> {
        (0..spec.leaves().len()).map(|_| self.next()).collect()
    }

    /// Array of a leaf's shape filled with one number.
    fn filled(&mut self, shape: &Shape, value: f64) -> InstId {
        let (dtype, dims) = shape.as_array().map_or((DType::Pred, Vec::new()), |a| (a.dtype, a.dims.to_vec()));
        let all = [&self.batch[..], &dims].concat();
        self.b.full(dtype, &all, value)
    }

    fn zeros(&mut self, spec: &ValueSpec) -> Vec<InstId> {
        spec.leaves().iter().map(|leaf| self.filled(leaf, 0.0)).collect()
    }

    fn value(&mut self, from: &ValueSpec, to: &ValueSpec) -> Result<Vec<InstId>> {
        match (from, to) {
            (_, ValueSpec::Constant { .. }) if from == to => Ok(Vec::new()),
            (_, ValueSpec::Constant { .. }) => self.differs("it is a constant on one side only"),
            (_, ValueSpec::Unavailable(_)) => self.rest(from).map(|_| Vec::new()),
            (ValueSpec::Constant { known }, ValueSpec::Array(want)) => {
                let own = &known.value;
                if !Shape::array(own.dtype, constant_dims(&own.dims.to_vec())).same_type_and_dims(want) {
                    return self.differs(&format!(
                        "it is {want} and {}",
                        Shape::array(own.dtype, constant_dims(&own.dims.to_vec()))
                    ));
                }
                let one = known.add_constant(self.b);
                let (all, rank) = ([&self.batch[..], &constant_dims(&own.dims)].concat(), self.batch.len());
                let axes: Vec<usize> = (rank..all.len()).collect();
                Ok(vec![if rank == 0 { one } else { self.b.broadcast(one, &all, &axes) }])
            }
            (ValueSpec::Array(found), ValueSpec::Array(want)) => {
                if found.always_equals(want) {
                    Ok(vec![self.next()?])
                } else {
                    self.differs(&format!("it is {want} and {found}"))
                }
            }
            (ValueSpec::Optional(from), ValueSpec::Optional(to)) => self.optional(from, to),
            (ValueSpec::List(from), ValueSpec::List(to)) => self.list(from, to),
            (ValueSpec::Unshaped(from), ValueSpec::List(to)) => self.unshaped(from, to),
            (ValueSpec::Unshaped(from), ValueSpec::Unshaped(to)) => {
                if (from.length, from.is_counted, from.dtype) != (to.length, to.is_counted, to.dtype) {
                    return self.differs("it is a list of another length or element type");
                }
                self.rest(&ValueSpec::Unshaped(from.clone()))
            }
            (ValueSpec::List(_), ValueSpec::Unshaped(_)) => self.differs("its element shape is known on one side only"),
            (ValueSpec::Text(_) | ValueSpec::Strings(_), ValueSpec::Text(to)) => self.text(from, to),
            (ValueSpec::Heterogeneous(from), ValueSpec::Heterogeneous(to)) => self.unlike(from, to),
            (ValueSpec::Heterogeneous(list), ValueSpec::RaggedList(_)) if list.is_unset() => Ok(self.zeros(to)),
            (ValueSpec::Heterogeneous(from), ValueSpec::Structured(to)) => self.gathered(from, to),
            (ValueSpec::Structured(from), ValueSpec::Structured(to)) => self.structured(from, to),
            (ValueSpec::RaggedList(from), ValueSpec::RaggedList(to)) => {
                if (from.dtype, &from.dims) != (to.dtype, &to.dims) {
                    return self.differs("it is a list of rows of other sizes");
                }
                Ok(vec![self.next()?, self.next()?])
            }
            (ValueSpec::Ragged(_), ValueSpec::Ragged(_)) => {
                if from != to {
                    return self.differs("it is a RaggedTensor of other sizes");
                }
                self.rest(from)
            }
            (ValueSpec::Sparse(..), ValueSpec::Sparse(..)) if from != to => {
                self.differs("it is a CSR matrix of another size or number of elements")
            }
            (ValueSpec::Heterogeneous(_) | ValueSpec::Structured(_), _)
            | (_, ValueSpec::Heterogeneous(_) | ValueSpec::Structured(_)) => {
                self.other("a list of lists or of unlike elements here and another list there")
            }
            (from, to) if from == to => self.rest(from),
            (ValueSpec::MutableList(_), ValueSpec::MutableList(_)) => self.other("one TensorArray or stack or another"),
            (ValueSpec::Variable(_), ValueSpec::Variable(_)) => self.other("the handle of one variable or of another"),
            (ValueSpec::Table(_), ValueSpec::Table(_)) => self.other("the handle of one table or of another"),
            _ => Err(Error::user(Code::TypeMismatch, format!("{} changes its type", self.what))),
        }
    }

    fn optional(&mut self, from: &[AlternativeSpec], to: &[AlternativeSpec]) -> Result<Vec<InstId>> {
        let has_value = self.next()?;
        let mut cast: Vec<Option<Vec<InstId>>> = vec![None; to.len()];
        for own in from {
            let place =
                to.iter().position(|to| to.joined(own).is_some_and(|joined| joined.components == to.components));
            let Some(place) = place.filter(|&place| cast[place].is_none()) else {
                return self.differs("it is an optional of other components");
            };
            let mut leaves = Vec::new();
            for (from, to) in own.components.iter().zip(&to[place].components) {
                leaves.extend(self.value(from, to)?);
            }
            cast[place] = Some(leaves);
        }
        let mut out = vec![has_value];
        for (leaves, to) in cast.into_iter().zip(to) {
            out.extend(leaves.unwrap_or_else(|| to.components.iter().flat_map(|to| self.zeros(to)).collect()));
        }
        Ok(out)
    }

    /// Strings with room for longer ones.
    fn text(&mut self, from: &ValueSpec, to: &TextSpec) -> Result<Vec<InstId>> {
        let text = match from {
            ValueSpec::Strings(constant) if self.batch.is_empty() => constant.to_text(self.b),
            ValueSpec::Text(own) => {
                let words =
                    (0..Text::word_count(own.most.guarded_count())).map(|_| self.next()).collect::<Result<_>>()?;
                Text { words, length: self.next()?, most: own.most.guarded_count() }
            }
            _ => return self.differs("it is strings that the file holds and others"),
        };
        let fits = from.as_text().is_some_and(|own| own.dims == to.dims && own.most <= to.most);
        if !fits {
            return self.differs(&format!("strings are {to:?} and {from:?}"));
        }
        Ok(text.padded_to(self.b, to.most.guarded_count()).arrays())
    }

    /// Array of the list, zero-padded along its element axis from `have` to `room` elements.
    fn padded(&mut self, leaf: InstId, have: Dim, room: Dim) -> InstId {
        if have == room {
            return leaf;
        }
        let (mut dims, axis, dtype) = (self.b.dims(leaf).to_vec(), self.batch.len(), self.b.dtype(leaf));
        dims[axis] = room - have;
        let zeros = self.b.full(dtype, &dims, 0.0);
        if have == 0 { zeros } else { self.b.concatenate(&[leaf, zeros], axis) }
    }

    fn has_room(&self, from: &ListSpec, name: &str, to: &ListSpec) -> Result<()> {
        let same = from.dtype == to.dtype
            && from.dims.get(1..) == to.dims.get(1..)
            && to.elements.joined(&from.elements) == to.elements;
        let fits = match to.count {
            None => from.count.is_none() && from.capacity() == to.capacity(),
            Some(_) => from.capacity() <= to.capacity(),
        };
        if same && fits {
            return check_list_size(&[&self.batch[..], &to.dims].concat());
        }
        self.differs(&format!("the list `{name}` is {} and {}", to.buffer(), from.buffer()))
    }

    /// Run-time length of a list, if spec `to` has one.
    fn count(&mut self, from: &ListSpec, now: Option<InstId>, to: &ListSpec) -> Option<InstId> {
        to.count?;
        Some(now.unwrap_or_else(|| self.filled(&super::number(), from.capacity().as_f64())))
    }

    fn list(&mut self, from: &ListSpec, to: &ListSpec) -> Result<Vec<InstId>> {
        let buffer = self.next()?;
        let now = from.count.map(|_| self.next()).transpose()?;
        self.has_room(from, &to.name, to)?;
        let buffer = self.padded(buffer, from.capacity(), to.capacity());
        Ok([buffer].into_iter().chain(self.count(from, now, to)).collect())
    }

    fn unshaped(&mut self, from: &UnshapedListSpec, to: &ListSpec) -> Result<Vec<InstId>> {
        let now = from.is_counted.then(|| self.next()).transpose()?;
        let spec = ValueSpec::Unshaped(from.clone());
        let Some(list) = spec.as_list(to) else { return self.differs("it is no list") };
        self.has_room(&list, &to.name, to)?;
        let buffer = self.filled(&to.buffer(), 0.0);
        Ok([buffer].into_iter().chain(self.count(&list, now, to)).collect())
    }

    fn unlike(&mut self, from: &HeterogeneousSpec, to: &HeterogeneousSpec) -> Result<Vec<InstId>> {
        let (own, want) = (from.length(), to.length());
        if own != want {
            return self.differs(&format!("the list `{}` has {want} elements and {own}", to.name));
        }
        let mut out = Vec::new();
        for (from, to) in from.items.iter().zip(&to.items) {
            match (from, to) {
                (Some(from), Some(to)) => out.extend(self.value(from, to)?),
                (None, Some(to)) => out.extend(self.zeros(to)),
                (None, None) => {}
                (Some(_), None) => return self.differs("an element of a list is set on one side only"),
            }
        }
        Ok(out)
    }

    /// Elements of a list of separate values, as those of a structured list.
    fn gathered(&mut self, from: &HeterogeneousSpec, to: &StructuredListSpec) -> Result<Vec<InstId>> {
        let mut rows: Vec<Vec<InstId>> = to.parts.iter().map(|_| Vec::new()).collect();
        for item in &from.items {
            let leaves = match item {
                Some(item) => self.value(item, &to.element)?,
                None => self.zeros(&to.element),
            };
            for (i, row) in rows.iter_mut().enumerate() {
                // A dummy part exists if an element has no leaves.
                let leaf = leaves.get(i).copied();
                let leaf = leaf.unwrap_or_else(|| self.filled(&Shape::array(DType::Pred, []), 0.0));
                let (dims, rank) = (self.b.dims(leaf).to_vec(), self.batch.len());
                row.push(self.b.reshape(leaf, &[&dims[..rank], &dims![1], &dims[rank..]].concat()));
            }
        }
        let mut out = Vec::new();
        let exact = StructuredListSpec::new((*to.element).clone(), from.length(), &to.name);
        for ((row, own), want) in rows.iter().zip(&exact.parts).zip(&to.parts) {
            self.has_room(own, &to.name, want)?;
            let none = self.filled(&own.buffer(), 0.0);
            let buffer = if row.is_empty() { none } else { self.b.concatenate(row, self.batch.len()) };
            out.push(self.padded(buffer, own.capacity(), want.capacity()));
        }
        if let (Some(own), Some(want)) = (exact.parts.first(), to.parts.first()) {
            out.extend(self.count(own, None, want));
        }
        Ok(out)
    }

    fn structured(&mut self, from: &StructuredListSpec, to: &StructuredListSpec) -> Result<Vec<InstId>> {
        let (Some(first), Some(want)) = (from.parts.first(), to.parts.first()) else {
            return Err(Error::internal("lower", "a structured list without parts"));
        };
        let mut leaves = from.parts.iter().map(|_| self.next()).collect::<Result<Vec<InstId>>>()?;
        let now = first.count.map(|_| self.next()).transpose()?;
        if from.element != to.element {
            let has_leaves = !from.element.leaves().is_empty();
            let inner = if has_leaves { leaves } else { Vec::new() };
            let batch = [&self.batch[..], &[first.capacity()]].concat();
            let mut cast = Cast { b: self.b, batch, what: self.what, leaves: inner.into_iter() };
            leaves = cast.value(&from.element, &to.element)?;
            if leaves.is_empty() {
                leaves = element_leaves(&to.element).iter().map(|leaf| cast.filled(leaf, 0.0)).collect();
            }
        }
        let widened = from.with_element(&to.element);
        let mut out = Vec::with_capacity(leaves.len() + 1);
        for ((leaf, own), want) in leaves.into_iter().zip(&widened.parts).zip(&to.parts) {
            self.has_room(own, &to.name, want)?;
            out.push(self.padded(leaf, own.capacity(), want.capacity()));
        }
        out.extend(self.count(first, now, want));
        Ok(out)
    }
}
