//! Facts about one output that shape inference knows before anything runs: element type, partial shape, value.
use super::symbols::{DimId, InferredDim};
use crate::graph::{PartialShape, TfType};
use crate::tensor::{DType, Tensor, element_count};
use std::sync::Arc;

/// Number of elements up to which inference keeps the value of an output.
pub const MOST_ELEMENTS: u64 = 4096;

/// A shape whose rank or sizes may be unknown; each unknown has an id.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Dims {
    /// A shape of known rank: the sizes of its dimensions.
    Ranked(Arc<[InferredDim]>),
    /// A shape of unknown rank; the id stands for the reason.
    Unranked(DimId),
}

/// One element of an integer value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum InferredInt {
    /// The element is this number.
    Known(i64),
    /// The element equals this unknown size of a shape.
    Size(DimId),
    /// Nothing is known about the element.
    Unknown,
}

/// Knowledge of an output's value: all elements, or each element on its own.
#[derive(Clone, Debug)]
pub enum KnownElements {
    /// All elements are known.
    Tensor(Tensor),
    /// Elements of a small integer array in row-major order, each known or unknown; its shape is known.
    Ints(Arc<[InferredInt]>),
}

/// Type and shape of the elements of a TensorList, or of a variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ElementSpec {
    /// Element type.
    pub dtype: Option<TfType>,
    /// Shape of each element of the list, or of the variable.
    pub dims: Dims,
    /// Number of elements of the list.
    pub length: InferredInt,
    /// Whether the list is still empty and was made with an open shape; its first element determines the shape.
    pub open: bool,
    /// The node that gives the handle, for a variable; `None` for lists.
    pub variable: Option<VariableHandle>,
}

/// Handle of a variable, by the names of its node and of the variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VariableHandle {
    /// Name of the node that gives the handle.
    pub node: Arc<str>,
    /// Name of the variable that the node refers to.
    pub asks_for: Arc<str>,
}

/// Facts about one output that shape inference knows before anything runs.
#[derive(Clone, Debug)]
pub struct Fact {
    /// Element type of the output.
    pub dtype: Option<TfType>,
    /// Shape of the output, as far as it is known.
    pub dims: Dims,
    /// Value of the output, as far as it is known.
    pub value: Option<KnownElements>,
    /// Elements that the output gives access to, if it is a handle.
    pub element: Option<Arc<ElementSpec>>,
    /// Whether the output is never computed, because it follows from the branch of a condition that is not taken.
    pub dead: bool,
}

impl Dims {
    /// A shape with these dimensions.
    pub fn ranked(dims: impl Into<Arc<[InferredDim]>>) -> Self {
        Dims::Ranked(dims.into())
    }
    /// A shape whose sizes are all known.
    pub fn from_sizes(dims: &[u64]) -> Self {
        Dims::Ranked(dims.iter().map(|&d| InferredDim::Known(d)).collect())
    }
    /// Dimensions of the shape, if its rank is known.
    pub fn as_ranked(&self) -> Option<&[InferredDim]> {
        if let Dims::Ranked(dims) = self { Some(dims) } else { None }
    }
    /// Sizes of all dimensions, if they are known.
    pub fn known_sizes(&self) -> Option<Vec<u64>> {
        let size = |d: &InferredDim| if let InferredDim::Known(n) = d { Some(*n) } else { None };
        self.as_ranked()?.iter().map(size).collect()
    }
    /// First unknown size of the shape.
    pub fn first_unknown(&self) -> Option<DimId> {
        self.unknowns().next()
    }
    /// Unknown sizes of the shape, in order of the dimensions.
    pub fn unknowns(&self) -> impl Iterator<Item = DimId> {
        let (rank, dims) = match self {
            Dims::Unranked(id) => (Some(*id), &[][..]),
            Dims::Ranked(dims) => (None, &dims[..]),
        };
        rank.into_iter()
            .chain(dims.iter().filter_map(|d| if let InferredDim::Unknown(id) = d { Some(*id) } else { None }))
    }
    /// Partial shape, in which unknown sizes have no ids.
    pub fn to_partial_shape(&self) -> PartialShape {
        let size = |d: &InferredDim| if let InferredDim::Known(n) = d { Some(*n) } else { None };
        PartialShape(self.as_ranked().map(|dims| dims.iter().map(size).collect()))
    }
}

impl std::fmt::Display for Dims {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.to_partial_shape().fmt(f)
    }
}

impl From<InferredDim> for InferredInt {
    fn from(dim: InferredDim) -> Self {
        match dim {
            InferredDim::Known(n) => i64::try_from(n).map_or(InferredInt::Unknown, InferredInt::Known),
            InferredDim::Unknown(id) => InferredInt::Size(id),
        }
    }
}

impl InferredInt {
    /// The element as a size; `None` if it is unknown or negative.
    pub fn as_dim(self) -> Option<InferredDim> {
        match self {
            InferredInt::Known(n) => u64::try_from(n).ok().map(InferredDim::Known),
            InferredInt::Size(id) => Some(InferredDim::Unknown(id)),
            InferredInt::Unknown => None,
        }
    }
}

impl PartialEq for KnownElements {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (KnownElements::Tensor(a), KnownElements::Tensor(b)) => {
                a.dtype == b.dtype && a.dims == b.dims && a.bytes == b.bytes
            }
            (KnownElements::Ints(a), KnownElements::Ints(b)) => a == b,
            (KnownElements::Tensor(_), KnownElements::Ints(_)) | (KnownElements::Ints(_), KnownElements::Tensor(_)) => {
                false
            }
        }
    }
}

impl Fact {
    /// Facts about an output of which only type and shape are known.
    pub fn new(dtype: Option<TfType>, dims: Dims) -> Self {
        Fact { dtype, dims, value: None, element: None, dead: false }
    }
    /// Facts about a constant; the value is kept if it has at most [`MOST_ELEMENTS`] elements.
    pub fn constant(tensor: &Tensor) -> Self {
        let small = tensor.len() as u64 <= MOST_ELEMENTS;
        let value = small.then(|| KnownElements::Tensor(tensor.clone()));
        Fact { value, ..Fact::new(Some(TfType::Data(tensor.dtype)), Dims::from_sizes(&tensor.dims)) }
    }
    /// Facts about an integer array of known shape, some of whose elements may be unknown.
    pub fn from_ints(dtype: TfType, dims: &[u64], values: Vec<InferredInt>) -> Self {
        let known = |v: &InferredInt| if let InferredInt::Known(n) = v { Some(*n) } else { None };
        let fits = element_count(dims) == Some(values.len() as u64);
        let value = match (values.iter().map(known).collect::<Option<Vec<i64>>>(), dtype) {
            _ if !fits => None,
            (Some(all), TfType::Data(dtype)) => integer_tensor(dtype, dims, &all).map(KnownElements::Tensor),
            (Some(_), _) => None,
            (None, _) => Some(KnownElements::Ints(values.into())),
        };
        Fact { value, ..Fact::new(Some(dtype), Dims::from_sizes(dims)) }
    }
    /// Facts about a handle of a list or variable.
    pub fn handle(dtype: TfType, element: ElementSpec) -> Self {
        Fact { element: Some(Arc::new(element)), ..Fact::new(Some(dtype), Dims::from_sizes(&[])) }
    }
    /// Value of the output, if all elements are known.
    pub fn as_tensor(&self) -> Option<&Tensor> {
        if let Some(KnownElements::Tensor(t)) = &self.value { Some(t) } else { None }
    }
    /// Elements of an integer value, if any of them is known.
    pub fn as_ints(&self) -> Option<Vec<InferredInt>> {
        match self.value.as_ref()? {
            KnownElements::Tensor(t) => Some(t.to_i64s()?.into_iter().map(InferredInt::Known).collect()),
            KnownElements::Ints(all) => Some(all.to_vec()),
        }
    }
}

/// Tensor of the integer type `s32` or `s64` with these elements; `None` for another type, or if an element does not fit.
pub fn integer_tensor(dtype: DType, dims: &[u64], values: &[i64]) -> Option<Tensor> {
    match dtype {
        DType::S64 => Some(Tensor::of(dims, values)),
        DType::S32 => {
            let narrow: Option<Vec<i32>> = values.iter().map(|&v| i32::try_from(v).ok()).collect();
            Some(Tensor::of(dims, &narrow?))
        }
        _ => None,
    }
}
