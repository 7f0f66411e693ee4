//! What flows along an edge of a TensorFlow graph while it is lowered.
use crate::graph::{PartialShape, TfType};
use crate::hlo::InstId;
use crate::tensor::Tensor;
use std::sync::Arc;

/// A TensorList of equal elements.
#[derive(Clone, Debug, PartialEq)]
pub struct ListValue {
    /// `[room, element dims..]`; every element is there from the start (zeros where never set).
    pub buffer: InstId,
    /// How many elements there are; `None`: as many as there is room for.
    pub count: Option<Count>,
    /// What its elements are, as far as that is known.
    pub elements: Elements,
    /// The name of the node that made it.
    pub name: Arc<str>,
    /// The shapes that it may take beside those of its elements; `None` where all are alike.
    pub open: Option<Arc<PartialShape>>,
}

/// A TensorList whose elements are values each for itself: arrays of unlike shapes, or lists. It has no place in memory, and so none in
/// the state of a loop, unless no element was set yet.
#[derive(Clone, Debug, PartialEq)]
pub struct UnlikeList {
    /// The elements; `None` where none was set.
    pub items: Vec<Option<Value>>,
    /// The type of each.
    pub dtype: TfType,
    /// What the node that made it says of the shape of each.
    pub declared: Arc<PartialShape>,
    /// The name of the node that made it.
    pub name: Arc<str>,
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

/// What is known of the elements of a list.
#[derive(Clone, Debug, PartialEq)]
pub enum Elements {
    /// There were none yet.
    None,
    /// Each is this integer. Gradients of loops keep sizes in lists, one a round, and ask for them when they are needed.
    Each(Tensor),
    /// Any.
    Any,
}

impl Elements {
    /// What is known of the elements of lists of either kind together.
    pub fn joined(&self, other: &Elements) -> Elements {
        match (self, other) {
            (Elements::None, other) | (other, Elements::None) => other.clone(),
            (Elements::Each(x), Elements::Each(y)) if x.dtype == y.dtype && x.bytes == y.bytes => self.clone(),
            _ => Elements::Any,
        }
    }
}

/// The number of elements of a list that has room for more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count {
    /// The number, a scalar s32.
    pub now: InstId,
    /// It is never more, as far as the ops so far tell.
    pub most: u64,
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
        length: u64,
        /// That value, a scalar s32.
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
    /// A TensorList of rows that differ in length.
    Jagged(JaggedList),
    /// A RaggedTensor in a variant, or a vector or list of those.
    Ragged(RaggedValue),
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

impl From<InstId> for Value {
    fn from(id: InstId) -> Self {
        Value::Array(id)
    }
}
