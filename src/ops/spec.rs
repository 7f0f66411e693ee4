//! Descriptions of the values of a graph, for values that enter or leave a computation or are elements of a list.
//!
//! A value is its [`ValueSpec`] and some arrays, its leaves. Branches, loops and lists carry the leaves; the spec is known on
//! both sides.
mod cast;
mod join;
mod leaves;

use super::mutable_list::MutableListId;
use super::value::{
    CommonElement, HeterogeneousList, ListLength, ListValue, OptionalAlternative, OptionalValue, RaggedTensorList,
    RaggedValue, SparseMatrix, StructuredList,
};
use super::{StringConstant, Table, Text, Value};
use crate::graph::{PartialShape, TfType};
use crate::hlo::SymbolicArray;
use crate::hlo::symbolic::{Builder, Dim, InstId, Shape};
use crate::symbolic::constant_dims;
use crate::tensor::DType;
pub use cast::cast_leaves;
pub use leaves::{
    append_leaves, check_nesting, constant_tensor, symbolic_constant, symbolic_shape_value, with_known_sizes,
};
use std::sync::Arc;

/// Description of a value without its run-time arrays, valid in every computation.
#[derive(Clone, Debug, PartialEq)]
pub enum ValueSpec {
    /// A value that is known at compile time and becomes a constant in each computation.
    Constant {
        /// The constant, with the expressions of elements that are computed from sizes.
        known: SymbolicArray,
    },
    /// An array of this shape.
    Array(Shape),
    /// A TensorList of arrays of equal shape.
    List(ListSpec),
    /// A TensorList whose element shape is open.
    Unshaped(UnshapedListSpec),
    /// A TensorList of RaggedTensors of one level.
    RaggedList(RaggedTensorListSpec),
    /// A TensorList whose elements have specs of their own.
    Heterogeneous(HeterogeneousSpec),
    /// A TensorList of lists or optionals that all have one spec.
    Structured(StructuredListSpec),
    /// A RaggedTensor in a variant.
    Ragged(RaggedSpec),
    /// A CSR matrix: the shapes of its indices and values, and its dense sizes.
    Sparse([Shape; 2], Vec<u64>),
    /// An optional, with the specs of its alternative values.
    Optional(Vec<AlternativeSpec>),
    /// Handle of the variable with this index in the store.
    Variable(usize),
    /// Handle of a TensorArray or stack.
    MutableList(MutableListId),
    /// Handle of a lookup table.
    Table(Arc<Table>),
    /// Constant strings.
    Strings(Arc<StringConstant>),
    /// Strings that are computed from numbers.
    Text(TextSpec),
    /// A value that compiled code cannot hold.
    Unavailable(TfType),
}

/// Spec of one alternative value of an optional.
#[derive(Clone, Debug, PartialEq)]
pub struct AlternativeSpec {
    /// Names of the branch functions that return this alternative.
    pub makers: Vec<Arc<str>>,
    /// Specs of the alternative's components.
    pub components: Vec<ValueSpec>,
}

/// Spec of a list of RaggedTensors of one level.
#[derive(Clone, Debug, PartialEq)]
pub struct RaggedTensorListSpec {
    /// Element type.
    pub dtype: DType,
    /// Sizes of the list's array: number of elements, bound of the rows of an element, and sizes of a row.
    pub dims: Vec<Dim>,
    /// Name of the node that made the list.
    pub name: Arc<str>,
}

/// Spec of a RaggedTensor in a variant.
#[derive(Clone, Debug, PartialEq)]
pub struct RaggedSpec {
    /// Shapes of the row splits, outermost first.
    pub splits: Vec<Shape>,
    /// Shape of the flat values.
    pub values: Shape,
    /// Whether the value is a vector or list of variants, one for each row.
    pub is_rows: bool,
}

/// Spec of a list of arrays of equal shape.
#[derive(Clone, Debug, PartialEq)]
pub struct ListSpec {
    /// Element type.
    pub dtype: DType,
    /// Sizes of the list's array: room for elements, then sizes of one element.
    pub dims: Vec<Dim>,
    /// For a list whose length is computed at run time: its upper bound, and whether the room behind the last element may hold
    /// nonzero data.
    pub count: Option<(Dim, bool)>,
    /// Common value of all elements of the list, as far as it is known.
    pub elements: CommonElement,
    /// Name of the node that made the list.
    pub name: Arc<str>,
}

/// Spec of a list whose element shape is unknown.
#[derive(Clone, Debug, PartialEq)]
pub struct UnshapedListSpec {
    /// Number of elements, or its upper bound if it is computed at run time.
    pub length: Dim,
    /// Whether the number of the list's elements is computed at run time.
    pub is_counted: bool,
    /// Element type.
    pub dtype: DType,
    /// Name of the node that made the list.
    pub name: Arc<str>,
}

/// Spec of a list whose elements have specs of their own.
#[derive(Clone, Debug, PartialEq)]
pub struct HeterogeneousSpec {
    /// Specs of the elements; `None` for elements that were never set.
    pub items: Vec<Option<ValueSpec>>,
    /// Number of elements if it varies between calls; then no element was set, and `items` is empty.
    pub open_length: Option<Dim>,
    /// Type of each element.
    pub dtype: TfType,
    /// Element shape that the node that made the list declares.
    pub declared: Arc<PartialShape>,
    /// Name of the node that made the list.
    pub name: Arc<str>,
}

/// Spec of a list of lists or optionals that all have one spec.
#[derive(Clone, Debug, PartialEq)]
pub struct StructuredListSpec {
    /// Spec of each element.
    pub element: Arc<ValueSpec>,
    /// Specs of the lists that hold one leaf of every element each; at least one, all of the same length and room.
    pub parts: Vec<ListSpec>,
    /// Name of the node that made the list.
    pub name: Arc<str>,
}

/// Spec of a tensor of computed strings.
#[derive(Clone, Debug, PartialEq)]
pub struct TextSpec {
    /// Sizes of the tensor.
    pub dims: Vec<Dim>,
    /// Upper bound of the length of a string in bytes.
    pub most: Dim,
}

impl TextSpec {
    fn shapes(&self) -> Vec<Shape> {
        let array = |dtype| Shape::array(dtype, self.dims.clone());
        let words = std::iter::repeat_n(array(DType::U64), Text::word_count(self.most.guarded_count()));
        words.chain([array(DType::S32)]).collect()
    }
}

impl ListSpec {
    /// Spec of a list.
    pub fn of(b: &Builder, list: &ListValue) -> ListSpec {
        ListSpec {
            dtype: b.dtype(list.buffer),
            dims: b.dims(list.buffer).to_vec(),
            count: list.count.map(|count| (count.most, count.stale)),
            elements: list.elements.clone(),
            name: list.name.clone(),
        }
    }

    /// Number of elements for which the list has room.
    pub fn capacity(&self) -> Dim {
        self.dims.first().copied().unwrap_or(Dim::from(0))
    }

    /// Upper bound of the number of elements.
    pub fn max_length(&self) -> Dim {
        self.count.map_or(self.capacity(), |count| count.0)
    }

    fn stale(&self) -> bool {
        self.count.is_some_and(|count| count.1)
    }

    fn buffer(&self) -> Shape {
        Shape::array(self.dtype, self.dims.clone())
    }
}

/// Shape of an element count, a scalar s32.
fn number() -> Shape {
    Shape::array(DType::S32, [])
}

/// Shapes of the leaves of an element of a structured list; a dummy leaf if it has none.
pub fn element_leaves(element: &ValueSpec) -> Vec<Shape> {
    let leaves = element.leaves();
    if leaves.is_empty() { vec![Shape::array(DType::Pred, [])] } else { leaves }
}

impl ValueSpec {
    /// Spec of a value.
    pub fn of(b: &Builder, value: &Value) -> ValueSpec {
        match value {
            Value::Array(id) => ValueSpec::Array(b.shape(*id).clone()),
            Value::List(list) => ValueSpec::List(ListSpec::of(b, list)),
            Value::UnshapedList { length, now, dtype, name, .. } => {
                let (length, is_counted, dtype, name) = (*length, now.is_some(), *dtype, name.clone());
                ValueSpec::Unshaped(UnshapedListSpec { length, is_counted, dtype, name })
            }
            Value::Heterogeneous(list) => ValueSpec::Heterogeneous(HeterogeneousSpec {
                items: list.items.iter().map(|item| item.as_ref().map(|item| ValueSpec::of_element(b, item))).collect(),
                open_length: list.open_length,
                dtype: list.dtype,
                declared: list.declared.clone(),
                name: list.name.clone(),
            }),
            Value::Structured(list) => ValueSpec::Structured(StructuredListSpec {
                element: list.element.clone(),
                parts: list.parts.iter().map(|part| ListSpec::of(b, part)).collect(),
                name: list.name.clone(),
            }),
            Value::RaggedList(list) => ValueSpec::RaggedList(RaggedTensorListSpec {
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
                let spec = |one: &OptionalAlternative| AlternativeSpec {
                    makers: one.makers.clone(),
                    components: one.components.iter().map(|one| ValueSpec::of_element(b, one)).collect(),
                };
                ValueSpec::Optional(optional.alternatives.iter().map(spec).collect())
            }
            Value::Variable(id) => ValueSpec::Variable(*id),
            Value::MutableList(id) => ValueSpec::MutableList(*id),
            Value::Table(table) => ValueSpec::Table(table.clone()),
            Value::Strings(constant) => ValueSpec::Strings(constant.clone()),
            Value::Text(text) => {
                ValueSpec::Text(TextSpec { dims: b.dims(text.length).to_vec(), most: Dim::from(text.most) })
            }
            Value::Unavailable(t) => ValueSpec::Unavailable(*t),
        }
    }

    /// Spec of a value inside a list or optional, where arrays that are known at compile time are constants, not leaves.
    pub fn of_element(b: &Builder, value: &Value) -> ValueSpec {
        symbolic_constant(b, value).map_or_else(|| ValueSpec::of(b, value), |known| ValueSpec::Constant { known })
    }

    /// Shapes of the leaves.
    pub fn leaves(&self) -> Vec<Shape> {
        match self {
            ValueSpec::Array(s) => vec![s.clone()],
            ValueSpec::List(list) => std::iter::once(list.buffer()).chain(list.count.map(|_| number())).collect(),
            ValueSpec::Structured(list) => {
                let counted = list.parts.first().is_some_and(|part| part.count.is_some());
                list.parts.iter().map(ListSpec::buffer).chain(counted.then(number)).collect()
            }
            ValueSpec::Heterogeneous(list) => list.items.iter().flatten().flat_map(ValueSpec::leaves).collect(),
            ValueSpec::Optional(alternatives) => {
                let has_value = Shape::array(DType::Pred, []);
                let components = alternatives.iter().flat_map(|one| &one.components);
                std::iter::once(has_value).chain(components.flat_map(ValueSpec::leaves)).collect()
            }
            ValueSpec::RaggedList(list) => {
                vec![Shape::array(list.dtype, list.dims.clone()), Shape::array(DType::S32, &list.dims[..1])]
            }
            ValueSpec::Ragged(ragged) => ragged.splits.iter().chain([&ragged.values]).cloned().collect(),
            ValueSpec::Sparse(shapes, _) => shapes.to_vec(),
            ValueSpec::Unshaped(list) => list.is_counted.then(number).into_iter().collect(),
            ValueSpec::Text(text) => text.shapes(),
            ValueSpec::Constant { .. }
            | ValueSpec::Variable(_)
            | ValueSpec::MutableList(_)
            | ValueSpec::Table(_)
            | ValueSpec::Strings(_)
            | ValueSpec::Unavailable(_) => Vec::new(),
        }
    }

    /// Value of this spec, whose leaves `part` returns one by one.
    pub fn build_value(&self, b: &mut Builder, part: &mut dyn FnMut(&mut Builder) -> InstId) -> Value {
        match self {
            ValueSpec::Constant { known } => Value::Array(known.add_constant(b)),
            ValueSpec::Array(_) => Value::Array(part(b)),
            ValueSpec::List(list) => {
                let buffer = part(b);
                let count = list.count.map(|(most, stale)| ListLength { now: part(b), most, stale });
                let (elements, name) = (list.elements.clone(), list.name.clone());
                Value::List(ListValue { buffer, count, elements, name, open: None })
            }
            ValueSpec::Unshaped(UnshapedListSpec { length, is_counted, dtype, name }) => {
                let now = is_counted.then(|| part(b));
                Value::UnshapedList { length: *length, now, dtype: *dtype, name: name.clone(), open: None }
            }
            ValueSpec::RaggedList(list) => {
                let (buffer, lengths) = (part(b), part(b));
                Value::RaggedList(RaggedTensorList { buffer, lengths, name: list.name.clone() })
            }
            ValueSpec::Heterogeneous(list) => {
                let items = list.items.iter().map(|item| item.as_ref().map(|item| item.build_value(b, part))).collect();
                let (dtype, declared, name) = (list.dtype, list.declared.clone(), list.name.clone());
                Value::Heterogeneous(HeterogeneousList { items, open_length: list.open_length, dtype, declared, name })
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
                let mut value = |one: &AlternativeSpec| OptionalAlternative {
                    makers: one.makers.clone(),
                    components: one.components.iter().map(|one| one.build_value(b, part)).collect(),
                };
                let alternatives = alternatives.iter().map(&mut value).collect();
                Value::Optional(OptionalValue { has_value, alternatives })
            }
            ValueSpec::Variable(id) => Value::Variable(*id),
            ValueSpec::MutableList(id) => Value::MutableList(*id),
            ValueSpec::Table(table) => Value::Table(table.clone()),
            ValueSpec::Strings(constant) => Value::Strings(constant.clone()),
            ValueSpec::Text(text) => {
                let words = (0..Text::word_count(text.most.guarded_count())).map(|_| part(b)).collect();
                Value::Text(Text { words, length: part(b), most: text.most.guarded_count() })
            }
            ValueSpec::Unavailable(t) => Value::Unavailable(*t),
        }
    }

    /// Value of this spec with these leaves.
    pub fn value_from_leaves(&self, b: &mut Builder, leaves: Vec<InstId>) -> Value {
        let mut leaves = leaves.into_iter();
        self.build_value(b, &mut |b| leaves.next().unwrap_or_else(|| b.full(DType::Pred, &[], 0.0)))
    }

    /// Whether each leaf holds data, as opposed to a count of elements or the presence flag of an optional.
    pub fn data_leaves(&self) -> Vec<bool> {
        let mut data = vec![true; self.leaves().len()];
        let last = data.len().saturating_sub(1);
        match self {
            ValueSpec::List(list) if list.count.is_some() => data[last] = false,
            ValueSpec::Unshaped(_) | ValueSpec::Text(_) => data.fill(false),
            ValueSpec::RaggedList(_) => data[last] = false,
            ValueSpec::Ragged(_) | ValueSpec::Sparse(..) => data[..last].fill(false),
            ValueSpec::Structured(list) => {
                let element = list.element.data_leaves();
                for (i, is_data) in data.iter_mut().enumerate() {
                    *is_data = element.get(i).copied().unwrap_or(false);
                }
            }
            ValueSpec::Heterogeneous(list) => {
                data = list.items.iter().flatten().flat_map(ValueSpec::data_leaves).collect()
            }
            ValueSpec::Optional(all) => {
                let components = all.iter().flat_map(|one| &one.components);
                data = std::iter::once(false).chain(components.flat_map(ValueSpec::data_leaves)).collect();
            }
            _ => {}
        }
        data
    }

    /// Spec in which known arrays are leaves, not constants.
    pub fn without_constants(&self) -> ValueSpec {
        match self {
            ValueSpec::Constant { known: SymbolicArray { value: t, .. } } => {
                ValueSpec::Array(Shape::array(t.dtype, constant_dims(&t.dims)))
            }
            ValueSpec::Optional(all) => {
                let unknown = |one: &AlternativeSpec| AlternativeSpec {
                    makers: one.makers.clone(),
                    components: one.components.iter().map(ValueSpec::without_constants).collect(),
                };
                ValueSpec::Optional(all.iter().map(unknown).collect())
            }
            ValueSpec::Heterogeneous(list) => {
                let items = list.items.iter().map(|item| item.as_ref().map(ValueSpec::without_constants)).collect();
                ValueSpec::Heterogeneous(HeterogeneousSpec { items, ..list.clone() })
            }
            ValueSpec::Structured(list) => ValueSpec::Structured(list.with_element(&list.element.without_constants())),
            spec => spec.clone(),
        }
    }

    /// Whether values of other specs can be converted to this one, or to one that covers both.
    pub fn is_joinable(&self) -> bool {
        match self {
            ValueSpec::List(_)
            | ValueSpec::Unshaped(_)
            | ValueSpec::Heterogeneous(_)
            | ValueSpec::Structured(_)
            | ValueSpec::Optional(_)
            | ValueSpec::Strings(_)
            | ValueSpec::Text(_) => true,
            ValueSpec::Constant { .. }
            | ValueSpec::Array(_)
            | ValueSpec::RaggedList(_)
            | ValueSpec::Ragged(_)
            | ValueSpec::Sparse(..)
            | ValueSpec::Variable(_)
            | ValueSpec::MutableList(_)
            | ValueSpec::Table(_)
            | ValueSpec::Unavailable(_) => false,
        }
    }
}
