//! Join of two specs: the narrowest spec that covers both, for the results of two branches, or for a loop's state before and
//! after an iteration.
use super::{
    AlternativeSpec, HeterogeneousSpec, ListSpec, RaggedTensorListSpec, StructuredListSpec, TextSpec, UnshapedListSpec,
    ValueSpec, element_leaves,
};
use crate::graph::TfType;
use crate::hlo::symbolic::Dim;
use crate::hlo::symbolic::Shape;
use crate::ops::value::CommonElement;
use crate::symbolic::constant_dims;
use crate::tensor::DType;
use std::sync::Arc;

impl ListSpec {
    /// Spec that covers the lists of both specs; `None` if their elements differ.
    fn joined(&self, other: &ListSpec) -> Option<ListSpec> {
        if self.dtype != other.dtype || self.dims.get(1..) != other.dims.get(1..) {
            return None;
        }
        let mut dims = self.dims.clone();
        *dims.first_mut()? = self.capacity().max(other.capacity());
        let exact = self.count.is_none() && other.count.is_none() && self.capacity() == other.capacity();
        let count = (!exact).then(|| (self.max_length().max(other.max_length()), self.stale() || other.stale()));
        let elements = self.elements.joined(&other.elements);
        Some(ListSpec { dtype: self.dtype, dims, count, elements, name: self.name.clone() })
    }
}

impl StructuredListSpec {
    /// Spec of a list of known length.
    pub fn new(element: ValueSpec, length: Dim, name: &Arc<str>) -> StructuredListSpec {
        let part = |leaf: Shape| {
            let (dtype, dims) = leaf.as_array().map_or((DType::Pred, Vec::new()), |a| (a.dtype, a.dims.to_vec()));
            let elements = if length == 0 { CommonElement::None } else { CommonElement::Any };
            ListSpec { dtype, dims: [&[length][..], &dims].concat(), count: None, elements, name: name.clone() }
        };
        let parts = element_leaves(&element).into_iter().map(part).collect();
        StructuredListSpec { element: Arc::new(element), parts, name: name.clone() }
    }

    /// Spec of this list with its element spec widened to `element`.
    pub fn with_element(&self, element: &ValueSpec) -> StructuredListSpec {
        if *self.element == *element {
            return self.clone();
        }
        let mut wider = StructuredListSpec::new(element.clone(), Dim::from(0), &self.name);
        let first = self.parts.first();
        for part in &mut wider.parts {
            if let (Some(first), Some(room)) = (first, part.dims.first_mut()) {
                (*room, part.count, part.elements) = (first.capacity(), first.count, CommonElement::Any);
            }
        }
        wider
    }

    fn joined(&self, other: &StructuredListSpec) -> Option<StructuredListSpec> {
        let element = self.element.joined(&other.element)?;
        let (a, b) = (self.with_element(&element), other.with_element(&element));
        let parts = a.parts.iter().zip(&b.parts).map(|(x, y)| x.joined(y)).collect::<Option<_>>()?;
        Some(StructuredListSpec { element: Arc::new(element), parts, name: self.name.clone() })
    }
}

impl HeterogeneousSpec {
    /// Number of elements of the list.
    pub fn length(&self) -> Dim {
        self.open_length.unwrap_or_else(|| Dim::from(self.items.len()))
    }

    /// Whether no element of the list was ever set.
    pub fn is_unset(&self) -> bool {
        self.items.iter().all(Option::is_none)
    }

    /// Spec of the same list as a structured list, whose element spec also covers `like`; `None` if there is none.
    pub fn to_structured(&self, like: Option<&ValueSpec>) -> Option<StructuredListSpec> {
        let mut element = like.cloned();
        for item in self.items.iter().flatten() {
            element = Some(match element {
                Some(element) => element.joined(item)?,
                None => item.clone(),
            });
        }
        let element = element.filter(|_| self.dtype == TfType::Variant)?;
        Some(StructuredListSpec::new(element, self.length(), &self.name))
    }

    /// Spec that covers the lists of both specs, element by element.
    fn joined(&self, other: &HeterogeneousSpec) -> Option<HeterogeneousSpec> {
        if self.length() != other.length() || self.dtype != other.dtype {
            return None;
        }
        let one = |(a, b): (&Option<ValueSpec>, &Option<ValueSpec>)| match (a, b) {
            (Some(a), Some(b)) => a.joined(b).map(Some),
            (one, other) => Some(one.clone().or(other.clone())),
        };
        let items = self.items.iter().zip(&other.items).map(one).collect::<Option<_>>()?;
        Some(HeterogeneousSpec { items, ..self.clone() })
    }
}

impl ValueSpec {
    /// Spec of a list of unknown element shape, when it is joined with one of a known shape.
    pub(super) fn as_list(&self, like: &ListSpec) -> Option<ListSpec> {
        match self {
            ValueSpec::List(list) => Some(list.clone()),
            ValueSpec::Unshaped(UnshapedListSpec { length, is_counted, dtype, name }) => {
                let dims = like.dims.iter().enumerate().map(|(i, &d)| if i == 0 { *length } else { d }).collect();
                let elements = if *length == 0 { CommonElement::None } else { CommonElement::Any };
                let count = is_counted.then_some((*length, false));
                Some(ListSpec { dtype: *dtype, dims, count, elements, name: name.clone() })
            }
            _ => None,
        }
    }

    /// Spec of constant strings as computed ones.
    pub(super) fn as_text(&self) -> Option<TextSpec> {
        match self {
            ValueSpec::Text(text) => Some(text.clone()),
            ValueSpec::Strings(s) => {
                Some(TextSpec { dims: constant_dims(&s.dims.clone()), most: Dim::from(s.max_bytes()) })
            }
            _ => None,
        }
    }

    /// Shape of an array or constant.
    pub(super) fn array_shape(&self) -> Option<Shape> {
        match self {
            ValueSpec::Array(shape) => Some(shape.clone()),
            ValueSpec::Constant { known: crate::hlo::SymbolicArray { value: t, .. } } => {
                Some(Shape::array(t.dtype, constant_dims(&t.dims.to_vec())))
            }
            _ => None,
        }
    }

    /// Spec that covers values of both specs; `None` if there is none.
    pub fn joined(&self, other: &ValueSpec) -> Option<ValueSpec> {
        if self == other {
            return Some(self.clone());
        }
        match (self, other) {
            (ValueSpec::Text(_) | ValueSpec::Strings(_), _) => {
                let (x, y) = (self.as_text()?, other.as_text()?);
                (x.dims == y.dims).then(|| ValueSpec::Text(TextSpec { most: x.most.max(y.most), ..x }))
            }
            (ValueSpec::Constant { .. } | ValueSpec::Array(_), _) => {
                let (x, y) = (self.array_shape()?, other.array_shape()?);
                x.same_type_and_dims(&y).then_some(ValueSpec::Array(x))
            }
            (ValueSpec::List(like), _) | (ValueSpec::Unshaped(_), ValueSpec::List(like)) => {
                self.as_list(like)?.joined(&other.as_list(like)?).map(ValueSpec::List)
            }
            (ValueSpec::Optional(a), ValueSpec::Optional(b)) => Some(ValueSpec::Optional(alternatives(a, b)?)),
            (ValueSpec::Heterogeneous(list), ValueSpec::RaggedList(RaggedTensorListSpec { dims, .. })) => {
                (list.is_unset() && dims.first() == Some(&list.length())).then(|| other.clone())
            }
            (ValueSpec::Heterogeneous(a), ValueSpec::Heterogeneous(b)) => {
                if let Some(each) = a.joined(b) {
                    return Some(ValueSpec::Heterogeneous(each));
                }
                let like = b.to_structured(None).or_else(|| a.to_structured(None))?;
                let (a, b) = (a.to_structured(Some(&like.element))?, b.to_structured(Some(&like.element))?);
                a.joined(&b).map(ValueSpec::Structured)
            }
            (ValueSpec::Heterogeneous(a), ValueSpec::Structured(b)) => {
                a.to_structured(Some(&b.element))?.joined(b).map(ValueSpec::Structured)
            }
            (ValueSpec::Structured(a), ValueSpec::Heterogeneous(b)) => {
                a.joined(&b.to_structured(Some(&a.element))?).map(ValueSpec::Structured)
            }
            (ValueSpec::Structured(a), ValueSpec::Structured(b)) => a.joined(b).map(ValueSpec::Structured),
            _ => None,
        }
    }
}

/// Largest number of alternatives of an optional.
const MOST_ALTERNATIVES: usize = 64;

/// Alternatives of either of two optionals; `None` if there are too many.
fn alternatives(a: &[AlternativeSpec], b: &[AlternativeSpec]) -> Option<Vec<AlternativeSpec>> {
    let mut all = a.to_vec();
    for other in b {
        let joined = all.iter().enumerate().find_map(|(i, one)| Some((i, one.joined(other)?)));
        match joined {
            Some((i, joined)) => all[i] = joined,
            None => all.push(other.clone()),
        }
    }
    (all.len() <= MOST_ALTERNATIVES).then_some(all)
}

impl AlternativeSpec {
    /// Spec that covers the components of both alternatives.
    pub(super) fn joined(&self, other: &AlternativeSpec) -> Option<AlternativeSpec> {
        if self.components.len() != other.components.len() {
            return None;
        }
        let components =
            self.components.iter().zip(&other.components).map(|(a, b)| a.joined(b)).collect::<Option<_>>()?;
        let mut makers = self.makers.clone();
        makers.extend(other.makers.iter().filter(|maker| !self.makers.contains(maker)).cloned());
        Some(AlternativeSpec { makers, components })
    }
}
