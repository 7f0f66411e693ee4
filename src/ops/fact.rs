//! Facts about one output that are known before anything runs: type, partial shape, value.
use super::symbols::{DimId, InferredDim};
use crate::graph::{PartialShape, TfType};
use crate::tensor::{DType, Tensor, element_count};
use std::sync::Arc;

/// Values of more elements are not kept.
pub const MOST_ELEMENTS: u64 = 4096;

/// A shape of which parts may be unknown, each part with an identity.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Dims {
    /// One entry a dimension.
    Ranked(Arc<[InferredDim]>),
    /// Not even the rank is known; the id tells where that came from.
    Unranked(DimId),
}

/// One number of an integer value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Int {
    /// A known number.
    Known(i64),
    /// A size that is not known.
    Size(DimId),
    /// Any number.
    Unknown,
}

/// Known elements of an output's value.
#[derive(Clone, Debug)]
pub enum KnownElements {
    /// All of them.
    Tensor(Tensor),
    /// The elements of a small array of integers one by one, row-major; the shape is known.
    Ints(Arc<[Int]>),
}

/// Type and shape of the elements of a TensorList, or of a variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ElementSpec {
    /// The element type.
    pub dtype: Option<TfType>,
    /// The shape of each element, or of the variable.
    pub dims: Dims,
    /// How many elements a list has.
    pub length: Int,
    /// Whether nothing was put into the list yet, and it was made with an open shape: the first element settles it.
    pub open: bool,
    /// The node that gives the handle of a variable, where it is one; `None` for lists.
    pub variable: Option<Handle>,
}

/// A node that gives the handle of a variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handle {
    /// The node's name.
    pub node: Arc<str>,
    /// The name by which it asks for the variable.
    pub asks_for: Arc<str>,
}

/// Facts about one output that are known before anything runs.
#[derive(Clone, Debug)]
pub struct Fact {
    /// Type of the output.
    pub dtype: Option<TfType>,
    /// Shape of the output, as far as it is known.
    pub dims: Dims,
    /// Value of the output, as far as it is known.
    pub value: Option<KnownElements>,
    /// Elements that the output gives access to, if it is a handle.
    pub element: Option<Arc<ElementSpec>>,
    /// Whether it is never computed: it follows from the side of a condition that is not taken.
    pub dead: bool,
}

impl Dims {
    /// A shape of these dimensions.
    pub fn ranked(dims: impl Into<Arc<[InferredDim]>>) -> Self {
        Dims::Ranked(dims.into())
    }
    /// A shape that is wholly known.
    pub fn known(dims: &[u64]) -> Self {
        Dims::Ranked(dims.iter().map(|&d| InferredDim::Known(d)).collect())
    }
    /// The dimensions, if the rank is known.
    pub fn as_ranked(&self) -> Option<&[InferredDim]> {
        if let Dims::Ranked(dims) = self { Some(dims) } else { None }
    }
    /// The sizes, if all are known.
    pub fn fixed(&self) -> Option<Vec<u64>> {
        let size = |d: &InferredDim| if let InferredDim::Known(n) = d { Some(*n) } else { None };
        self.as_ranked()?.iter().map(size).collect()
    }
    /// The first part that is not known.
    pub fn unknown(&self) -> Option<DimId> {
        self.unknowns().next()
    }
    /// The parts that are not known, in order.
    pub fn unknowns(&self) -> impl Iterator<Item = DimId> {
        let (rank, dims) = match self {
            Dims::Unranked(id) => (Some(*id), &[][..]),
            Dims::Ranked(dims) => (None, &dims[..]),
        };
        rank.into_iter()
            .chain(dims.iter().filter_map(|d| if let InferredDim::Unknown(id) = d { Some(*id) } else { None }))
    }
    /// The shape without the identities.
    pub fn partial(&self) -> PartialShape {
        let size = |d: &InferredDim| if let InferredDim::Known(n) = d { Some(*n) } else { None };
        PartialShape(self.as_ranked().map(|dims| dims.iter().map(size).collect()))
    }
}

impl std::fmt::Display for Dims {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.partial().fmt(f)
    }
}

impl From<InferredDim> for Int {
    fn from(dim: InferredDim) -> Self {
        match dim {
            InferredDim::Known(n) => i64::try_from(n).map_or(Int::Unknown, Int::Known),
            InferredDim::Unknown(id) => Int::Size(id),
        }
    }
}

impl Int {
    /// The number as a size, if it is one.
    pub fn size(self) -> Option<InferredDim> {
        match self {
            Int::Known(n) => u64::try_from(n).ok().map(InferredDim::Known),
            Int::Size(id) => Some(InferredDim::Unknown(id)),
            Int::Unknown => None,
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
    /// An output of this type and shape.
    pub fn new(dtype: Option<TfType>, dims: Dims) -> Self {
        Fact { dtype, dims, value: None, element: None, dead: false }
    }
    /// A constant; its value is kept if it is small.
    pub fn constant(tensor: &Tensor) -> Self {
        let small = tensor.len() as u64 <= MOST_ELEMENTS;
        let value = small.then(|| KnownElements::Tensor(tensor.clone()));
        Fact { value, ..Fact::new(Some(TfType::Data(tensor.dtype)), Dims::known(&tensor.dims)) }
    }
    /// Integers of a known shape, of which some may be unknown.
    pub fn ints(dtype: TfType, dims: &[u64], values: Vec<Int>) -> Self {
        let known = |v: &Int| if let Int::Known(n) = v { Some(*n) } else { None };
        let fits = element_count(dims) == Some(values.len() as u64);
        let value = match (values.iter().map(known).collect::<Option<Vec<i64>>>(), dtype) {
            _ if !fits => None,
            (Some(all), TfType::Data(dtype)) => integers(dtype, dims, &all).map(KnownElements::Tensor),
            (Some(_), _) => None,
            (None, _) => Some(KnownElements::Ints(values.into())),
        };
        Fact { value, ..Fact::new(Some(dtype), Dims::known(dims)) }
    }
    /// A handle of what `element` tells.
    pub fn handle(dtype: TfType, element: ElementSpec) -> Self {
        Fact { element: Some(Arc::new(element)), ..Fact::new(Some(dtype), Dims::known(&[])) }
    }
    /// The value, if all of it is known.
    pub fn tensor(&self) -> Option<&Tensor> {
        if let Some(KnownElements::Tensor(t)) = &self.value { Some(t) } else { None }
    }
    /// The integers that it holds, if any of them is known.
    pub fn as_ints(&self) -> Option<Vec<Int>> {
        match self.value.as_ref()? {
            KnownElements::Tensor(t) => Some(t.to_i64s()?.into_iter().map(Int::Known).collect()),
            KnownElements::Ints(all) => Some(all.to_vec()),
        }
    }
}

/// Integers as a tensor of a type of shapes, `s32` or `s64`; `None` for another one, or where one does not fit.
pub fn integers(dtype: DType, dims: &[u64], values: &[i64]) -> Option<Tensor> {
    match dtype {
        DType::S64 => Some(Tensor::of(dims, values)),
        DType::S32 => {
            let narrow: Option<Vec<i32>> = values.iter().map(|&v| i32::try_from(v).ok()).collect();
            Some(Tensor::of(dims, &narrow?))
        }
        _ => None,
    }
}
