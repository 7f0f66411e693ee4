//! Context of a shape function: partial shapes and known values of a node's inputs, without HLO.
use super::fact::{Dims, Fact, InferredInt};
use super::symbols::{DimId, InferredDim, NodeSite, Symbols, UnknownReason};
use crate::diag::{Code, Error, Result};
use crate::graph::{Node, PartialShape, TfType};

/// Shape function: computes facts about a node's outputs, in order.
pub type ShapeFn = fn(&mut ShapeCtx) -> Result<Vec<Fact>>;

/// Context of a shape function: the node, facts about its inputs, and the unknown sizes of the inference.
pub struct ShapeCtx<'a> {
    /// The node, with the attributes that the file leaves at their default (`opdef::with_default_attrs`).
    pub node: &'a Node,
    /// Facts about the node's data inputs, in order.
    pub args: &'a [Fact],
    /// Unknown sizes of the inference.
    pub symbols: &'a mut Symbols,
    /// Position of the node: its graph and id.
    pub site: NodeSite,
}

impl ShapeCtx<'_> {
    /// Facts about input `i`.
    ///
    /// # Errors
    /// `Code::BadGraph` if the input is missing.
    pub fn arg(&self, i: usize) -> Result<&Fact> {
        self.args.get(i).ok_or_else(|| Error::user(Code::BadGraph, format!("input {i} is missing")))
    }
    /// Shape of input `i`.
    ///
    /// # Errors
    /// Errors of [`ShapeCtx::arg`].
    pub fn dims(&self, i: usize) -> Result<Dims> {
        Ok(self.arg(i)?.dims.clone())
    }
    /// Dimensions of input `i`, if its rank is known.
    ///
    /// # Errors
    /// Errors of [`ShapeCtx::arg`].
    pub fn ranked_dims(&self, i: usize) -> Result<Option<Vec<InferredDim>>> {
        Ok(self.arg(i)?.dims.as_ranked().map(<[InferredDim]>::to_vec))
    }
    /// Dimensions of input `i`, which must have this rank; new unknown sizes if its rank is not known.
    ///
    /// # Errors
    /// Errors of [`ShapeCtx::arg`], and `Code::ShapeMismatch`.
    pub fn dims_of_rank(&mut self, i: usize, rank: usize) -> Result<Vec<InferredDim>> {
        let dims = self.dims(i)?;
        let found = self.require_rank(&dims, rank);
        found.ok_or_else(|| self.shape_mismatch(format!("input {i} has the shape {dims} and must have rank {rank}")))
    }
    /// Dimensions of a shape that must have this rank, with new unknown sizes if its rank is unknown; `None` for another rank.
    pub fn require_rank(&mut self, dims: &Dims, rank: usize) -> Option<Vec<InferredDim>> {
        match dims {
            Dims::Ranked(dims) => (dims.len() == rank).then(|| dims.to_vec()),
            Dims::Unranked(id) => Some((0..rank).map(|_| self.fresh_dim(UnknownReason::From(*id))).collect()),
        }
    }
    /// Element type of input `i`.
    pub fn dtype(&self, i: usize) -> Option<TfType> {
        self.args.get(i)?.dtype
    }
    /// Type named by attribute `name`.
    pub fn attr_type(&self, name: &str) -> Option<TfType> {
        self.node.tf_type(name)
    }
    /// Value of a boolean attribute, false if it is missing.
    pub fn bool_attr(&self, name: &str) -> bool {
        self.node.bool(name).unwrap_or(false)
    }
    /// Elements of the integer input `i`, if any of them is known.
    pub fn partial_ints(&self, i: usize) -> Option<Vec<InferredInt>> {
        self.args.get(i)?.as_ints()
    }
    /// Elements of the integer input `i`, if all of them are known.
    pub fn constant_ints(&self, i: usize) -> Option<Vec<i64>> {
        self.args.get(i)?.as_tensor()?.to_i64s()
    }
    /// Value of input `i`, a single integer, if it is known.
    pub fn constant_int(&self, i: usize) -> Option<i64> {
        match self.constant_ints(i)?[..] {
            [one] => Some(one),
            _ => None,
        }
    }
    /// Size given by input `i`, a single integer; a new unknown size if it is not known.
    pub fn size_from_input(&mut self, i: usize) -> InferredDim {
        match self.partial_ints(i).as_deref() {
            Some([one]) => one.as_dim(),
            _ => None,
        }
        .unwrap_or_else(|| self.fresh_dim(UnknownReason::Value(i)))
    }
    /// Normalizes an axis that may be negative to `0..rank`.
    ///
    /// # Errors
    /// `Code::ShapeMismatch` if it is out of range.
    pub fn normalize_axis(&self, axis: i64, rank: usize) -> Result<usize> {
        let shifted = if axis < 0 { axis + rank as i64 } else { axis };
        let found = usize::try_from(shifted).ok().filter(|&a| a < rank);
        found.ok_or_else(|| self.shape_mismatch(format!("axis {axis} is out of range for rank {rank}")))
    }
    /// Error for inputs whose shapes do not fit the op or each other.
    pub fn shape_mismatch(&self, message: impl Into<String>) -> Error {
        Error::user(Code::ShapeMismatch, message)
    }

    /// New unknown size.
    pub fn fresh_dim(&mut self, why: UnknownReason) -> InferredDim {
        InferredDim::Unknown(self.symbols.fresh(self.site, why))
    }
    /// Shape of unknown rank.
    pub fn unranked(&mut self, why: UnknownReason) -> Dims {
        Dims::Unranked(self.symbols.fresh(self.site, why))
    }
    /// Shape of unknown rank, because the shape or value of input `i` is not known well enough.
    pub fn unranked_from(&mut self, i: usize) -> Dims {
        let why = self.unknown_cause(i);
        self.unranked(why)
    }
    /// Shape of this rank with new unknown sizes.
    pub fn fresh_shape(&mut self, rank: usize, why: UnknownReason) -> Dims {
        (0..rank).map(|_| self.fresh_dim(why)).collect::<Vec<_>>().into()
    }
    /// Reason why input `i` is unknown: an unknown size of its shape, or else its value.
    pub fn unknown_cause(&self, i: usize) -> UnknownReason {
        match self.args.get(i).and_then(|a| a.dims.first_unknown()) {
            Some(id) => UnknownReason::From(id),
            None => UnknownReason::Value(i),
        }
    }
    /// Shape for a partial shape in an attribute.
    pub fn attr_shape(&mut self, shape: &PartialShape) -> Dims {
        match &shape.0 {
            None => self.unranked(UnknownReason::Attribute),
            Some(dims) => {
                let one = |cx: &mut Self, d: Option<u64>| {
                    d.map_or_else(|| cx.fresh_dim(UnknownReason::Attribute), InferredDim::Known)
                };
                dims.iter().map(|&d| one(self, d)).collect::<Vec<_>>().into()
            }
        }
    }
    /// Shape given by the value of input `i`: a vector of sizes where -1 is unknown, or the scalar -1 for an unknown rank.
    ///
    /// # Errors
    /// Errors of [`ShapeCtx::arg`], and `Code::ShapeMismatch` if the value is not a shape.
    pub fn shape_from_value(&mut self, i: usize) -> Result<Dims> {
        let arg = self.arg(i)?;
        let (rank, values) = (arg.dims.as_ranked().map(<[InferredDim]>::len), arg.as_ints());
        let length = arg.dims.as_ranked().and_then(|d| d.first().copied());
        match (rank, values) {
            (Some(0), _) => Ok(self.unranked(UnknownReason::Value(i))),
            (Some(1), Some(values)) => {
                let one = |cx: &mut Self, v: InferredInt| match v {
                    InferredInt::Known(n) if n < -1 => Err(cx.shape_mismatch(format!("{n} is no size"))),
                    v => Ok(v.as_dim().unwrap_or_else(|| cx.fresh_dim(UnknownReason::Value(i)))),
                };
                values.into_iter().map(|v| one(self, v)).collect::<Result<Vec<_>>>().map(Dims::from)
            }
            (Some(1), None) => match length {
                Some(InferredDim::Known(n)) if n < 255 => Ok(self.fresh_shape(n as usize, UnknownReason::Value(i))),
                _ => Ok(self.unranked_from(i)),
            },
            (Some(rank), _) => {
                Err(self.shape_mismatch(format!("input {i} must be a vector of sizes and has rank {rank}")))
            }
            (None, _) => Ok(self.unranked_from(i)),
        }
    }

    /// Merged size of two sizes that must be equal: the better known one. `None` if they differ.
    pub fn merge_dim(&self, a: InferredDim, b: InferredDim) -> Option<InferredDim> {
        match (a, b) {
            (a, b) if a == b => Some(a),
            (InferredDim::Unknown(_), known @ InferredDim::Known(_))
            | (known @ InferredDim::Known(_), InferredDim::Unknown(_)) => Some(known),
            (InferredDim::Unknown(a), InferredDim::Unknown(b)) => Some(InferredDim::Unknown(a.min(b))),
            (InferredDim::Known(_), InferredDim::Known(_)) => None,
        }
    }
    /// Merged shape of two shapes that must be equal: the better known sizes of both.
    ///
    /// # Errors
    /// `Code::ShapeMismatch` if they differ.
    pub fn merge_shapes(&self, a: &Dims, b: &Dims) -> Result<Dims> {
        match (a, b) {
            (Dims::Unranked(_), other) | (other, Dims::Unranked(_)) => Ok(other.clone()),
            (Dims::Ranked(x), Dims::Ranked(y)) => {
                let merged = (x.len() == y.len())
                    .then(|| x.iter().zip(y.iter()).map(|(&x, &y)| self.merge_dim(x, y)).collect::<Option<Vec<_>>>());
                merged
                    .flatten()
                    .map(Dims::from)
                    .ok_or_else(|| self.shape_mismatch(format!("{a} and {b} must be equal")))
            }
        }
    }
    /// Broadcast shape of two shapes by NumPy's rules.
    ///
    /// # Errors
    /// `Code::ShapeMismatch` if they can't be broadcast.
    pub fn broadcast(&mut self, a: &Dims, b: &Dims) -> Result<Dims> {
        if a == b {
            return Ok(a.clone());
        }
        let (x, y) = match (a, b) {
            (Dims::Ranked(x), Dims::Ranked(y)) => (x, y),
            (Dims::Unranked(id), other) | (other, Dims::Unranked(id)) => {
                let scalar = other.as_ranked().is_some_and(<[InferredDim]>::is_empty);
                return Ok(if scalar { Dims::Unranked(*id) } else { self.unranked(UnknownReason::From(*id)) });
            }
        };
        let (long, short) = if x.len() < y.len() { (y, x) } else { (x, y) };
        let lead = long.len() - short.len();
        let mut out = long.to_vec();
        for (i, &d) in short.iter().enumerate() {
            let both = self.symbols.broadcast(self.site, out[lead + i], d);
            out[lead + i] =
                both.ok_or_else(|| self.shape_mismatch(format!("{a} and {b} can't be broadcast together")))?;
        }
        Ok(out.into())
    }

    /// Sum of two sizes.
    pub fn add(&mut self, a: InferredDim, b: InferredDim) -> InferredDim {
        self.symbols.add(self.site, a, b)
    }
    /// Difference of two sizes.
    pub fn sub(&mut self, a: InferredDim, b: InferredDim) -> InferredDim {
        self.symbols.sub(self.site, a, b)
    }
    /// Product of two sizes.
    pub fn mul(&mut self, a: InferredDim, b: InferredDim) -> InferredDim {
        self.symbols.mul(self.site, a, b)
    }
    /// Quotient of two sizes, rounded down.
    pub fn div(&mut self, a: InferredDim, b: InferredDim) -> InferredDim {
        self.symbols.div_floor(self.site, a, b)
    }
    /// Quotient of two sizes, rounded up.
    pub fn div_ceil(&mut self, a: InferredDim, b: InferredDim) -> InferredDim {
        self.symbols.div_ceil(self.site, a, b)
    }
    /// Quotient of a size by a number that must divide it.
    ///
    /// # Errors
    /// `ShapeMismatch` if a known size is not divisible.
    pub fn div_exact(&mut self, a: InferredDim, n: u64) -> Result<InferredDim> {
        match a {
            InferredDim::Known(a) if n == 0 || a % n != 0 => {
                Err(self.shape_mismatch(format!("{a} is no multiple of {n}")))
            }
            a => Ok(self.div(a, InferredDim::Known(n))),
        }
    }
    /// Product of all sizes.
    pub fn product(&mut self, dims: &[InferredDim]) -> InferredDim {
        dims.iter().fold(InferredDim::Known(1), |a, &b| self.mul(a, b))
    }

    /// One output of the type of input `i`.
    ///
    /// # Errors
    /// Errors of [`ShapeCtx::arg`].
    pub fn one_output_like(&self, i: usize, dims: impl Into<Dims>) -> Result<Vec<Fact>> {
        Ok(vec![Fact::new(self.arg(i)?.dtype, dims.into())])
    }
    /// One output of the type that attribute `attr` names.
    ///
    /// # Errors
    /// None; returns `Result` so that shape functions can end with this call.
    pub fn one_output_typed_by(&self, attr: &str, dims: impl Into<Dims>) -> Result<Vec<Fact>> {
        Ok(vec![Fact::new(self.attr_type(attr), dims.into())])
    }
    /// One output of this type and shape.
    ///
    /// # Errors
    /// None; returns `Result` so that shape functions can end with this call.
    pub fn one_output(&self, dtype: impl Into<Option<TfType>>, dims: impl Into<Dims>) -> Result<Vec<Fact>> {
        Ok(vec![Fact::new(dtype.into(), dims.into())])
    }
}

impl From<Vec<InferredDim>> for Dims {
    fn from(dims: Vec<InferredDim>) -> Self {
        Dims::ranked(dims)
    }
}

impl From<DimId> for InferredDim {
    fn from(id: DimId) -> Self {
        InferredDim::Unknown(id)
    }
}
