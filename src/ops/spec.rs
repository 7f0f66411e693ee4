//! Types of the values of a graph: what is known of a value where it crosses the border of a computation, or as an element of a list.
//!
//! A value is its [`ValueSpec`] and some arrays, its leaves. Branches, loops and lists see the leaves; the rest is known on both sides.
mod cast;
mod join;
mod leaves;

use super::holder::HolderId;
use super::value::{
    Alternative, CommonElement, JaggedList, ListLength, ListValue, OptionalValue, RaggedValue, SparseMatrix,
    StructuredList, UnlikeList,
};
use super::{StringConstant, Table, Text, Value};
use crate::graph::{PartialShape, TfType};
use crate::hlo::SymbolicArray;
use crate::hlo::open::{Builder, Dim, InstId, Shape};
use crate::symbolic::fixed;
use crate::tensor::DType;
pub use cast::cast;
pub use leaves::{check_nesting, known, known_constant, known_shape, leaves_of, with_known_sizes};
use std::sync::Arc;

/// Description of a value for use in another computation than the one that holds it.
#[derive(Clone, Debug, PartialEq)]
pub enum ValueSpec {
    /// A value that is known at compile time and becomes a constant in the other computation too.
    Constant {
        /// The value, with its elements where it is computed from sizes of arrays.
        known: SymbolicArray,
    },
    /// An array of this shape.
    Array(Shape),
    /// A TensorList of equal arrays.
    List(ListSpec),
    /// A TensorList whose element shape is open.
    Unshaped(UnshapedSpec),
    /// A TensorList of rows that differ in length.
    Jagged(JaggedSpec),
    /// A TensorList whose elements are values each for itself.
    Unlike(UnlikeSpec),
    /// A TensorList of lists or optionals of one spec.
    Structured(StructuredSpec),
    /// A RaggedTensor in a variant.
    Ragged(RaggedSpec),
    /// A CSR matrix: the shapes of indices and values, and its sizes.
    Sparse([Shape; 2], Vec<u64>),
    /// An optional, and the specs of the components that its value may have.
    Optional(Vec<AlternativeSpec>),
    /// The handle of the variable of this number.
    Variable(usize),
    /// The handle of a TensorArray or stack.
    Holder(HolderId),
    /// The handle of a lookup table.
    Table(Arc<Table>),
    /// Strings that the file holds.
    Strings(Arc<StringConstant>),
    /// Strings that are made of numbers.
    Text(TextSpec),
    /// No value.
    Unavailable(TfType),
}

/// The spec of components that the value of an optional may have.
#[derive(Clone, Debug, PartialEq)]
pub struct AlternativeSpec {
    /// The functions that make such a value.
    pub makers: Vec<Arc<str>>,
    /// The specs of the components.
    pub components: Vec<ValueSpec>,
}

/// The spec of a list of rows that differ in length.
#[derive(Clone, Debug, PartialEq)]
pub struct JaggedSpec {
    /// The element type.
    pub dtype: DType,
    /// The sizes of its array: the number of elements, the most rows of each, and the sizes of a row.
    pub dims: Vec<Dim>,
    /// The name of the node that made it.
    pub name: Arc<str>,
}

/// The spec of a RaggedTensor in a variant.
#[derive(Clone, Debug, PartialEq)]
pub struct RaggedSpec {
    /// The shapes of the splits, outermost first.
    pub splits: Vec<Shape>,
    /// The shape of the values.
    pub values: Shape,
    /// Whether it is a vector or list of variants.
    pub is_rows: bool,
}

/// The spec of a list of equal arrays.
#[derive(Clone, Debug, PartialEq)]
pub struct ListSpec {
    /// The element type.
    pub dtype: DType,
    /// The sizes of its array: the room for elements, and the sizes of one.
    pub dims: Vec<Dim>,
    /// Of a list whose length is a value: the most elements that it has, and whether there may be others behind them.
    pub count: Option<(Dim, bool)>,
    /// Value that all elements of the list share, as far as it is known.
    pub elements: CommonElement,
    /// The name of the node that made it.
    pub name: Arc<str>,
}

/// The spec of a list whose element shape is open.
#[derive(Clone, Debug, PartialEq)]
pub struct UnshapedSpec {
    /// The number of elements; the most that there may be, where a value says it.
    pub length: Dim,
    /// Whether a value says it.
    pub is_counted: bool,
    /// The element type.
    pub dtype: DType,
    /// The name of the node that made it.
    pub name: Arc<str>,
}

/// The spec of a list whose elements are values each for itself.
#[derive(Clone, Debug, PartialEq)]
pub struct UnlikeSpec {
    /// The specs of the elements; `None` for those that were never set.
    pub items: Vec<Option<ValueSpec>>,
    /// The number of elements where it varies from call to call: none of them was set, and `items` is empty.
    pub open_length: Option<Dim>,
    /// The type of each element.
    pub dtype: TfType,
    /// Shape of each element, as the node that made the list declares it.
    pub declared: Arc<PartialShape>,
    /// The name of the node that made it.
    pub name: Arc<str>,
}

/// The spec of a list of values that consist of several arrays.
#[derive(Clone, Debug, PartialEq)]
pub struct StructuredSpec {
    /// The spec of an element.
    pub element: Arc<ValueSpec>,
    /// A list for each leaf of an element, at least one; all have the same length and room.
    pub parts: Vec<ListSpec>,
    /// The name of the node that made it.
    pub name: Arc<str>,
}

/// The spec of a tensor of strings.
#[derive(Clone, Debug, PartialEq)]
pub struct TextSpec {
    /// Sizes of the tensor.
    pub dims: Vec<Dim>,
    /// The length that no string exceeds.
    pub most: Dim,
}

impl TextSpec {
    fn shapes(&self) -> Vec<Shape> {
        let array = |dtype| Shape::array(dtype, self.dims.clone());
        let words = std::iter::repeat_n(array(DType::U64), Text::word_count(self.most.known()));
        words.chain([array(DType::S32)]).collect()
    }
}

impl ListSpec {
    /// The spec of a list.
    pub fn of(b: &Builder, list: &ListValue) -> ListSpec {
        ListSpec {
            dtype: b.dtype(list.buffer),
            dims: b.dims(list.buffer).to_vec(),
            count: list.count.map(|count| (count.most, count.stale)),
            elements: list.elements.clone(),
            name: list.name.clone(),
        }
    }

    /// How many elements there is room for.
    pub fn room(&self) -> Dim {
        self.dims.first().copied().unwrap_or(Dim::from(0))
    }

    /// The most elements that the list has.
    pub fn most(&self) -> Dim {
        self.count.map_or(self.room(), |count| count.0)
    }

    fn stale(&self) -> bool {
        self.count.is_some_and(|count| count.1)
    }

    fn buffer(&self) -> Shape {
        Shape::array(self.dtype, self.dims.clone())
    }
}

/// The shape of a number of elements.
fn number() -> Shape {
    Shape::array(DType::S32, [])
}

/// The shapes of the leaves of an element of a structured list: one that no other part needs where there is none.
pub fn element_leaves(element: &ValueSpec) -> Vec<Shape> {
    let leaves = element.leaves();
    if leaves.is_empty() { vec![Shape::array(DType::Pred, [])] } else { leaves }
}

impl ValueSpec {
    /// The spec of a value.
    pub fn of(b: &Builder, value: &Value) -> ValueSpec {
        match value {
            Value::Array(id) => ValueSpec::Array(b.shape(*id).clone()),
            Value::List(list) => ValueSpec::List(ListSpec::of(b, list)),
            Value::UnshapedList { length, now, dtype, name, .. } => {
                let (length, is_counted, dtype, name) = (*length, now.is_some(), *dtype, name.clone());
                ValueSpec::Unshaped(UnshapedSpec { length, is_counted, dtype, name })
            }
            Value::Unlike(list) => ValueSpec::Unlike(UnlikeSpec {
                items: list.items.iter().map(|item| item.as_ref().map(|item| ValueSpec::inside(b, item))).collect(),
                open_length: list.open_length,
                dtype: list.dtype,
                declared: list.declared.clone(),
                name: list.name.clone(),
            }),
            Value::Structured(list) => ValueSpec::Structured(StructuredSpec {
                element: list.element.clone(),
                parts: list.parts.iter().map(|part| ListSpec::of(b, part)).collect(),
                name: list.name.clone(),
            }),
            Value::Jagged(list) => ValueSpec::Jagged(JaggedSpec {
                dtype: b.dtype(list.buffer),
                dims: b.dims(list.buffer).to_vec(),
                name: list.name.clone(),
            }),
            Value::Ragged(ragged) => ValueSpec::Ragged(RaggedSpec {
                splits: ragged.splits.iter().map(|&id| b.shape(id).clone()).collect(),
                values: b.shape(ragged.values).clone(),
                is_rows: ragged.is_rows,
            }),
            Value::Sparse(matrix) => {
                let shapes = [matrix.indices, matrix.values].map(|id| b.shape(id).clone());
                ValueSpec::Sparse(shapes, matrix.dims.clone())
            }
            Value::Optional(optional) => {
                let spec = |one: &Alternative| AlternativeSpec {
                    makers: one.makers.clone(),
                    components: one.components.iter().map(|one| ValueSpec::inside(b, one)).collect(),
                };
                ValueSpec::Optional(optional.alternatives.iter().map(spec).collect())
            }
            Value::Variable(id) => ValueSpec::Variable(*id),
            Value::Holder(id) => ValueSpec::Holder(*id),
            Value::Table(table) => ValueSpec::Table(table.clone()),
            Value::Strings(constant) => ValueSpec::Strings(constant.clone()),
            Value::Text(text) => {
                ValueSpec::Text(TextSpec { dims: b.dims(text.length).to_vec(), most: Dim::from(text.most) })
            }
            Value::Unavailable(t) => ValueSpec::Unavailable(*t),
        }
    }

    /// The spec of a value inside of a list or optional: arrays that are known are no leaves.
    pub fn inside(b: &Builder, value: &Value) -> ValueSpec {
        known_constant(b, value).map_or_else(|| ValueSpec::of(b, value), |known| ValueSpec::Constant { known })
    }

    /// The shapes of the leaves.
    pub fn leaves(&self) -> Vec<Shape> {
        match self {
            ValueSpec::Array(s) => vec![s.clone()],
            ValueSpec::List(list) => std::iter::once(list.buffer()).chain(list.count.map(|_| number())).collect(),
            ValueSpec::Structured(list) => {
                let counted = list.parts.first().is_some_and(|part| part.count.is_some());
                list.parts.iter().map(ListSpec::buffer).chain(counted.then(number)).collect()
            }
            ValueSpec::Unlike(list) => list.items.iter().flatten().flat_map(ValueSpec::leaves).collect(),
            ValueSpec::Optional(alternatives) => {
                let has_value = Shape::array(DType::Pred, []);
                let components = alternatives.iter().flat_map(|one| &one.components);
                std::iter::once(has_value).chain(components.flat_map(ValueSpec::leaves)).collect()
            }
            ValueSpec::Jagged(list) => {
                vec![Shape::array(list.dtype, list.dims.clone()), Shape::array(DType::S32, &list.dims[..1])]
            }
            ValueSpec::Ragged(ragged) => ragged.splits.iter().chain([&ragged.values]).cloned().collect(),
            ValueSpec::Sparse(shapes, _) => shapes.to_vec(),
            ValueSpec::Unshaped(list) => list.is_counted.then(number).into_iter().collect(),
            ValueSpec::Text(text) => text.shapes(),
            ValueSpec::Constant { .. }
            | ValueSpec::Variable(_)
            | ValueSpec::Holder(_)
            | ValueSpec::Table(_)
            | ValueSpec::Strings(_)
            | ValueSpec::Unavailable(_) => Vec::new(),
        }
    }

    /// The value of this spec with the leaves that `part` gives one by one.
    pub fn value(&self, b: &mut Builder, part: &mut dyn FnMut(&mut Builder) -> InstId) -> Value {
        match self {
            ValueSpec::Constant { known } => Value::Array(known.add_constant(b)),
            ValueSpec::Array(_) => Value::Array(part(b)),
            ValueSpec::List(list) => {
                let buffer = part(b);
                let count = list.count.map(|(most, stale)| ListLength { now: part(b), most, stale });
                let (elements, name) = (list.elements.clone(), list.name.clone());
                Value::List(ListValue { buffer, count, elements, name, open: None })
            }
            ValueSpec::Unshaped(UnshapedSpec { length, is_counted, dtype, name }) => {
                let now = is_counted.then(|| part(b));
                Value::UnshapedList { length: *length, now, dtype: *dtype, name: name.clone(), open: None }
            }
            ValueSpec::Jagged(list) => {
                let (buffer, lengths) = (part(b), part(b));
                Value::Jagged(JaggedList { buffer, lengths, name: list.name.clone() })
            }
            ValueSpec::Unlike(list) => {
                let items = list.items.iter().map(|item| item.as_ref().map(|item| item.value(b, part))).collect();
                let (dtype, declared, name) = (list.dtype, list.declared.clone(), list.name.clone());
                Value::Unlike(UnlikeList { items, open_length: list.open_length, dtype, declared, name })
            }
            ValueSpec::Structured(list) => {
                let buffers: Vec<InstId> = list.parts.iter().map(|_| part(b)).collect();
                let count = list.parts.first().and_then(|first| first.count);
                let count = count.map(|(most, stale)| ListLength { now: part(b), most, stale });
                let of_leaf = |(spec, buffer): (&ListSpec, InstId)| {
                    let (elements, name) = (spec.elements.clone(), spec.name.clone());
                    ListValue { buffer, count, elements, name, open: None }
                };
                let parts = list.parts.iter().zip(buffers).map(of_leaf).collect();
                Value::Structured(StructuredList { element: list.element.clone(), parts, name: list.name.clone() })
            }
            ValueSpec::Ragged(ragged) => {
                let splits = ragged.splits.iter().map(|_| part(b)).collect();
                Value::Ragged(RaggedValue { splits, values: part(b), is_rows: ragged.is_rows })
            }
            ValueSpec::Sparse(_, dims) => {
                let (indices, values) = (part(b), part(b));
                Value::Sparse(SparseMatrix { indices, values, dims: dims.clone() })
            }
            ValueSpec::Optional(alternatives) => {
                let has_value = part(b);
                let mut value = |one: &AlternativeSpec| Alternative {
                    makers: one.makers.clone(),
                    components: one.components.iter().map(|one| one.value(b, part)).collect(),
                };
                let alternatives = alternatives.iter().map(&mut value).collect();
                Value::Optional(OptionalValue { has_value, alternatives })
            }
            ValueSpec::Variable(id) => Value::Variable(*id),
            ValueSpec::Holder(id) => Value::Holder(*id),
            ValueSpec::Table(table) => Value::Table(table.clone()),
            ValueSpec::Strings(constant) => Value::Strings(constant.clone()),
            ValueSpec::Text(text) => {
                let words = (0..Text::word_count(text.most.known())).map(|_| part(b)).collect();
                Value::Text(Text { words, length: part(b), most: text.most.known() })
            }
            ValueSpec::Unavailable(t) => Value::Unavailable(*t),
        }
    }

    /// The value of this spec with these leaves.
    pub fn of_leaves(&self, b: &mut Builder, leaves: Vec<InstId>) -> Value {
        let mut leaves = leaves.into_iter();
        self.value(b, &mut |b| leaves.next().unwrap_or_else(|| b.full(DType::Pred, &[], 0.0)))
    }

    /// Whether each leaf holds elements of arrays, as against numbers of elements and whether optionals have values.
    pub fn data(&self) -> Vec<bool> {
        let mut data = vec![true; self.leaves().len()];
        let last = data.len().saturating_sub(1);
        match self {
            ValueSpec::List(list) if list.count.is_some() => data[last] = false,
            ValueSpec::Unshaped(_) | ValueSpec::Text(_) => data.fill(false),
            ValueSpec::Jagged(_) => data[last] = false,
            ValueSpec::Ragged(_) | ValueSpec::Sparse(..) => data[..last].fill(false),
            ValueSpec::Structured(list) => {
                let element = list.element.data();
                for (i, is_data) in data.iter_mut().enumerate() {
                    *is_data = element.get(i).copied().unwrap_or(false);
                }
            }
            ValueSpec::Unlike(list) => data = list.items.iter().flatten().flat_map(ValueSpec::data).collect(),
            ValueSpec::Optional(all) => {
                let components = all.iter().flat_map(|one| &one.components);
                data = std::iter::once(false).chain(components.flat_map(ValueSpec::data)).collect();
            }
            _ => {}
        }
        data
    }

    /// The spec in which known arrays are leaves, too.
    pub fn unknown(&self) -> ValueSpec {
        match self {
            ValueSpec::Constant { known: SymbolicArray { value: t, .. } } => {
                ValueSpec::Array(Shape::array(t.dtype, fixed(&t.dims)))
            }
            ValueSpec::Optional(all) => {
                let unknown = |one: &AlternativeSpec| AlternativeSpec {
                    makers: one.makers.clone(),
                    components: one.components.iter().map(ValueSpec::unknown).collect(),
                };
                ValueSpec::Optional(all.iter().map(unknown).collect())
            }
            ValueSpec::Unlike(list) => {
                let items = list.items.iter().map(|item| item.as_ref().map(ValueSpec::unknown)).collect();
                ValueSpec::Unlike(UnlikeSpec { items, ..list.clone() })
            }
            ValueSpec::Structured(list) => ValueSpec::Structured(list.with_element(&list.element.unknown())),
            spec => spec.clone(),
        }
    }

    /// Whether values of other specs can be values of this one, or of one for both.
    pub fn is_joinable(&self) -> bool {
        match self {
            ValueSpec::List(_)
            | ValueSpec::Unshaped(_)
            | ValueSpec::Unlike(_)
            | ValueSpec::Structured(_)
            | ValueSpec::Optional(_)
            | ValueSpec::Strings(_)
            | ValueSpec::Text(_) => true,
            ValueSpec::Constant { .. }
            | ValueSpec::Array(_)
            | ValueSpec::Jagged(_)
            | ValueSpec::Ragged(_)
            | ValueSpec::Sparse(..)
            | ValueSpec::Variable(_)
            | ValueSpec::Holder(_)
            | ValueSpec::Table(_)
            | ValueSpec::Unavailable(_) => false,
        }
    }
}
