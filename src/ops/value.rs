//! What flows along an edge of a TensorFlow graph while it is lowered.
use crate::hlo::InstId;
use std::sync::Arc;

/// A TensorList of equal elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListValue {
    /// `[room, element dims..]`; every element is there from the start (zeros where never set).
    pub buffer: InstId,
    /// How many elements there are; `None`: as many as there is room for.
    pub count: Option<Count>,
    /// The name of the node that made it.
    pub name: Arc<str>,
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// An array in the computation that is open.
    Array(InstId),
    /// A TensorList.
    List(ListValue),
    /// A list whose element shape is not known yet: `TensorListReserve` with an open shape, given its number of elements
    /// and element type. It takes its shape from the first element that is set.
    UnshapedList {
        /// The number of elements.
        length: u64,
        /// The element type.
        dtype: crate::tensor::DType,
        /// The name of the node that made it.
        name: Arc<str>,
    },
    /// The handle of the variable of this number in the [`super::Store`].
    Variable(usize),
    /// The handle of a TensorArray or stack of TensorFlow 1, whose elements are in [`super::holder::Holders`].
    Holder(super::holder::HolderId),
    /// A value that compiled code does not have (a string, a resource); only a diagnostic if something needs it.
    Unavailable(crate::graph::TfType),
}

impl From<InstId> for Value {
    fn from(id: InstId) -> Self {
        Value::Array(id)
    }
}
