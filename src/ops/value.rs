//! Values along the edges of a TensorFlow graph while it is lowered.
use super::spec::ValueSpec;
use crate::graph::{PartialShape, TfType};
use crate::hlo::SymbolicArray;
use crate::hlo::symbolic::Dim;
use crate::hlo::symbolic::InstId;
use std::sync::Arc;

/// A TensorList of arrays of equal shape, stored in one array.
#[derive(Clone, Debug, PartialEq)]
pub struct ListValue {
    /// The elements, `[room, element dims..]`; elements never set are zeros.
    pub buffer: InstId,
    /// Number of elements; `None` if the list is full, `room` elements.
    pub count: Option<ListLength>,
    /// Common value of all elements, as far as it is known.
    pub elements: CommonElement,
    /// Name of the node that made the list.
    pub name: Arc<str>,
    /// Partial shape that elements may match if they need not be of equal shape; `None` if all are equal.
    pub open: Option<Arc<PartialShape>>,
}

/// A TensorList whose elements are separate values: arrays of different shapes, lists or optionals.
#[derive(Clone, Debug, PartialEq)]
pub struct HeterogeneousList {
    /// The elements; `None` for elements that were never set.
    pub items: Vec<Option<Value>>,
    /// Number of elements if it varies between calls; then no element was set, and `items` is empty.
    pub open_length: Option<Dim>,
    /// Type of each element.
    pub dtype: TfType,
    /// Element shape that the node that made the list declares.
    pub declared: Arc<PartialShape>,
    /// Name of the node that made the list.
    pub name: Arc<str>,
}

/// A TensorList of lists or optionals that all have one spec, stored as one list for each leaf of an element. Loops and
/// branches, whose state has fixed sizes, can fill such a list.
#[derive(Clone, Debug, PartialEq)]
pub struct StructuredList {
    /// Spec of each element.
    pub element: Arc<ValueSpec>,
    /// Lists that hold one leaf of every element each; at least one, all of the same length and room.
    pub parts: Vec<ListValue>,
    /// Name of the node that made the list.
    pub name: Arc<str>,
}

/// An optional. Conditions keep values for their gradients in optionals: the branch that was taken stores its own values.
#[derive(Clone, Debug, PartialEq)]
pub struct OptionalValue {
    /// Whether the optional has a value, `pred[]`.
    pub has_value: InstId,
    /// Candidates for the value, as branches store arrays of different shapes in one optional. The contents of all but the
    /// actual one are arbitrary. Empty for an optional that never has a value.
    pub alternatives: Vec<OptionalAlternative>,
}

/// One candidate for the value of an optional.
#[derive(Clone, Debug, PartialEq)]
pub struct OptionalAlternative {
    /// Names of the branch functions that return this alternative.
    pub makers: Vec<Arc<str>>,
    /// Components of the optional's value.
    pub components: Vec<Value>,
}

/// A TensorList of RaggedTensors of one level: arrays that differ in their first size alone.
#[derive(Clone, Debug, PartialEq)]
pub struct RaggedTensorList {
    /// The elements, `[length, most, dims..]`, zero-padded at their ends.
    pub buffer: InstId,
    /// `s32[length]`: number of rows of each element.
    pub lengths: InstId,
    /// Name of the node that made the list.
    pub name: Arc<str>,
}

/// A RaggedTensor: nested rows of different lengths.
#[derive(Clone, Debug, PartialEq)]
pub struct RaggedValue {
    /// Row splits of each level, outermost first.
    pub splits: Vec<InstId>,
    /// Flat values of all rows.
    pub values: InstId,
    /// Whether the value is a vector or list of variants, one for each row.
    pub is_rows: bool,
}

/// A sparse matrix or a vector of them, as TensorFlow keeps CSR matrices in variants.
#[derive(Clone, Debug, PartialEq)]
pub struct SparseMatrix {
    /// `s64[n, rank]`, of rank 2 or 3: matrix number (rank 3), row and column of each element, sorted.
    pub indices: InstId,
    /// `[n]`: values of the stored elements.
    pub values: InstId,
    /// Dense sizes, as many as the rank.
    pub dims: Vec<u64>,
}

/// Common value of all elements of a list, as far as it is known.
#[derive(Clone, Debug, PartialEq)]
pub enum CommonElement {
    /// The list has had no elements yet.
    None,
    /// Every element is this integer or this short vector. Gradients of loops keep sizes and shapes in lists, one for each
    /// iteration, and need them as constants.
    Each(SymbolicArray),
    /// No common value is known: elements may differ.
    Any,
}

impl CommonElement {
    /// Common value of the elements of either list, when the result may be either of them.
    pub fn joined(&self, other: &CommonElement) -> CommonElement {
        match (self, other) {
            (CommonElement::None, other) | (other, CommonElement::None) => other.clone(),
            (CommonElement::Each(x), CommonElement::Each(y)) if are_same(x, y) => self.clone(),
            _ => CommonElement::Any,
        }
    }
}

/// Whether two values are equal in every call.
fn are_same(x: &SymbolicArray, y: &SymbolicArray) -> bool {
    let (dims, others) = (x.sizes.as_deref().unwrap_or(&[]), y.sizes.as_deref().unwrap_or(&[]));
    let is_alike = x.value.dtype == y.value.dtype && x.value.bytes == y.value.bytes;
    is_alike && dims.len() == others.len() && dims.iter().zip(others).all(|(&x, &y)| x.is_same(y))
}

/// Number of elements of a list that may have room for more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListLength {
    /// Current number of elements, a scalar s32.
    pub now: InstId,
    /// Upper bound of the number of elements.
    pub most: Dim,
    /// Whether the room behind the last element may hold nonzero data, because elements were removed.
    pub stale: bool,
}

/// Value of one output of a node during lowering.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// An array of the current computation.
    Array(InstId),
    /// A TensorList.
    List(ListValue),
    /// A TensorList of unknown element shape, as `TensorListReserve` makes it for an open shape. The first element that is set
    /// determines the shape.
    UnshapedList {
        /// Number of elements, or its upper bound if it is computed at run time.
        length: Dim,
        /// Number of elements as a scalar s32, if it is computed at run time.
        now: Option<InstId>,
        /// Element type.
        dtype: crate::tensor::DType,
        /// Name of the node that made the list.
        name: Arc<str>,
        /// Partial shape that elements may match if they need not be of equal shape; `None` if all are equal.
        open: Option<Arc<PartialShape>>,
    },
    /// A TensorList whose elements are separate values.
    Heterogeneous(HeterogeneousList),
    /// A TensorList of lists or optionals that all have one spec.
    Structured(StructuredList),
    /// A TensorList of RaggedTensors of one level.
    RaggedList(RaggedTensorList),
    /// A RaggedTensor in a variant, or a vector or list of variants.
    Ragged(RaggedValue),
    /// A CSR matrix in a variant.
    Sparse(SparseMatrix),
    /// An optional.
    Optional(OptionalValue),
    /// Handle of the variable with this index in the [`super::VariableStore`].
    Variable(usize),
    /// Handle of a TensorArray or stack of TensorFlow 1, whose elements are in [`super::mutable_list::MutableLists`].
    MutableList(super::mutable_list::MutableListId),
    /// The handle of a lookup table.
    Table(Arc<super::Table>),
    /// Strings whose contents lowering has as arrays of numbers.
    Text(super::Text),
    /// Constant strings.
    Strings(Arc<super::StringConstant>),
    /// A value that compiled code cannot hold (a string, a resource); a diagnostic follows only if something needs it.
    Unavailable(TfType),
}

impl Value {
    /// Whether the value is a list or optional, which is added by adding its arrays.
    pub fn is_list_or_optional(&self) -> bool {
        matches!(
            self,
            Value::List(_)
                | Value::UnshapedList { .. }
                | Value::Heterogeneous(_)
                | Value::Structured(_)
                | Value::Optional(_)
        )
    }
}

impl From<InstId> for Value {
    fn from(id: InstId) -> Self {
        Value::Array(id)
    }
}
