//! Values along the edges of a TensorFlow graph while it is lowered.
use super::spec::ValueSpec;
use crate::graph::{PartialShape, TfType};
use crate::hlo::SymbolicArray;
use crate::hlo::open::Dim;
use crate::hlo::open::InstId;
use std::sync::Arc;

/// A TensorList of equal elements.
#[derive(Clone, Debug, PartialEq)]
pub struct ListValue {
    /// `[room, element dims..]`; every element is there from the start (zeros where never set).
    pub buffer: InstId,
    /// How many elements there are; `None`: as many as there is room for.
    pub count: Option<ListLength>,
    /// Value that all elements of the list share, as far as it is known.
    pub elements: CommonElement,
    /// The name of the node that made it.
    pub name: Arc<str>,
    /// The shapes that it may take beside those of its elements; `None` where all are alike.
    pub open: Option<Arc<PartialShape>>,
}

/// A TensorList whose elements are values each for itself: arrays of unlike shapes, lists or optionals.
#[derive(Clone, Debug, PartialEq)]
pub struct UnlikeList {
    /// The elements; `None` where none was set.
    pub items: Vec<Option<Value>>,
    /// The number of elements where it varies from call to call: none of them was set, and `items` is empty.
    pub open_length: Option<Dim>,
    /// The type of each.
    pub dtype: TfType,
    /// Shape of each element, as the node that made the list declares it.
    pub declared: Arc<PartialShape>,
    /// The name of the node that made it.
    pub name: Arc<str>,
}

/// A TensorList of lists or optionals of one spec: each leaf of its elements is a list for itself. So loops and branches can fill it, whose
/// state has fixed sizes.
#[derive(Clone, Debug, PartialEq)]
pub struct StructuredList {
    /// The spec of an element.
    pub element: Arc<ValueSpec>,
    /// A list for each leaf of an element, at least one; all have the same length and room.
    pub parts: Vec<ListValue>,
    /// The name of the node that made it.
    pub name: Arc<str>,
}

/// An optional, as conditions keep values for their gradients: the branch that was taken leaves its own values there.
#[derive(Clone, Debug, PartialEq)]
pub struct OptionalValue {
    /// Whether it has a value, `pred[]`.
    pub has_value: InstId,
    /// Candidates for the value: branches leave arrays of unlike shapes in one optional. All but the one that it has are of any content.
    /// There are none where the optional never has a value.
    pub alternatives: Vec<Alternative>,
}

/// The components that the value of an optional may have.
#[derive(Clone, Debug, PartialEq)]
pub struct Alternative {
    /// The functions that make such a value.
    pub makers: Vec<Arc<str>>,
    /// The components.
    pub components: Vec<Value>,
}

/// A TensorList of RaggedTensors of one level: arrays that differ in their first size alone.
#[derive(Clone, Debug, PartialEq)]
pub struct JaggedList {
    /// `[length, most, dims..]`: the elements, each with zeros behind its end.
    pub buffer: InstId,
    /// `s32[length]`: how long each is.
    pub lengths: InstId,
    /// The name of the node that made it.
    pub name: Arc<str>,
}

/// A RaggedTensor: rows, or rows of rows, of unlike lengths.
#[derive(Clone, Debug, PartialEq)]
pub struct RaggedValue {
    /// The places at which rows begin, level by level, the outermost first.
    pub splits: Vec<InstId>,
    /// The values of all rows.
    pub values: InstId,
    /// Whether its rows are variants of their own, and it is a vector or list of them.
    pub is_rows: bool,
}

/// A matrix, or a vector of them, of few elements, as TensorFlow's CSR matrices in variants.
#[derive(Clone, Debug, PartialEq)]
pub struct SparseMatrix {
    /// `s64[n, rank]`, of rank 2 or 3: matrix, row and column of each element, in the order of matrices and rows.
    pub indices: InstId,
    /// `[n]`, the elements.
    pub values: InstId,
    /// The sizes of the dense array, as many as the rank.
    pub dims: Vec<u64>,
}

/// Value that all elements of a list share, as far as it is known.
#[derive(Clone, Debug, PartialEq)]
pub enum CommonElement {
    /// There were none yet.
    None,
    /// Each is this integer, or this vector of a few. Gradients of loops keep sizes and shapes in lists, one a round, and ask for them when
    /// they are needed.
    Each(SymbolicArray),
    /// Any.
    Any,
}

impl CommonElement {
    /// Value shared by the elements of two lists, when the result may be either list.
    pub fn joined(&self, other: &CommonElement) -> CommonElement {
        match (self, other) {
            (CommonElement::None, other) | (other, CommonElement::None) => other.clone(),
            (CommonElement::Each(x), CommonElement::Each(y)) if are_same(x, y) => self.clone(),
            _ => CommonElement::Any,
        }
    }
}

/// Whether two values are one in every call.
fn are_same(x: &SymbolicArray, y: &SymbolicArray) -> bool {
    let (dims, others) = (x.sizes.as_deref().unwrap_or(&[]), y.sizes.as_deref().unwrap_or(&[]));
    let is_alike = x.value.dtype == y.value.dtype && x.value.bytes == y.value.bytes;
    is_alike && dims.len() == others.len() && dims.iter().zip(others).all(|(&x, &y)| x.is_same(y))
}

/// The number of elements of a list that has room for more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListLength {
    /// The number, a scalar s32.
    pub now: InstId,
    /// Upper bound of the number, as far as the ops so far tell.
    pub most: Dim,
    /// Whether elements behind the last may be other than zeros, as elements were taken away.
    pub stale: bool,
}

/// The value of one output.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// An array in the computation that is open.
    Array(InstId),
    /// A TensorList.
    List(ListValue),
    /// A list whose element shape is not known yet: `TensorListReserve` with an open shape, given its number of elements
    /// and element type. It takes its shape from the first element that is set.
    UnshapedList {
        /// The number of elements; the most that there may be, where a value says it.
        length: Dim,
        /// Number of elements as a scalar s32, where it is computed at run time.
        now: Option<InstId>,
        /// The element type.
        dtype: crate::tensor::DType,
        /// The name of the node that made it.
        name: Arc<str>,
        /// The shapes that its elements may have; `None` where all are alike.
        open: Option<Arc<PartialShape>>,
    },
    /// A TensorList of values each for itself.
    Unlike(UnlikeList),
    /// A TensorList of lists or optionals of one spec.
    Structured(StructuredList),
    /// A TensorList of rows that differ in length.
    Jagged(JaggedList),
    /// A RaggedTensor in a variant, or a vector or list of those.
    Ragged(RaggedValue),
    /// A CSR matrix in a variant.
    Sparse(SparseMatrix),
    /// An optional.
    Optional(OptionalValue),
    /// The handle of the variable of this number in the [`super::Store`].
    Variable(usize),
    /// The handle of a TensorArray or stack of TensorFlow 1, whose elements are in [`super::holder::Holders`].
    Holder(super::holder::HolderId),
    /// The handle of a lookup table.
    Table(Arc<super::Table>),
    /// Strings that lowering has the contents of.
    Text(super::Text),
    /// Strings that the file holds.
    Strings(Arc<super::StringConstant>),
    /// A value that compiled code does not have (a string, a resource); only a diagnostic if something needs it.
    Unavailable(TfType),
}

impl Value {
    /// Whether it is a list or optional, of which sums are those of its arrays.
    pub fn is_summed_by_parts(&self) -> bool {
        matches!(
            self,
            Value::List(_) | Value::UnshapedList { .. } | Value::Unlike(_) | Value::Structured(_) | Value::Optional(_)
        )
    }
}

impl From<InstId> for Value {
    fn from(id: InstId) -> Self {
        Value::Array(id)
    }
}
