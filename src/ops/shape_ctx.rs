//! Context of a shape function: partial shapes and known values of its node's inputs, no HLO.
use super::fact::{Dims, Fact, Int};
use super::symbols::{DimId, InferredDim, Site, Symbols, Why};
use crate::diag::{Code, Error, Result};
use crate::graph::{Node, PartialShape, TfType};

/// Outputs of a node in order.
pub type ShapeFn = fn(&mut ShapeCtx) -> Result<Vec<Fact>>;

/// A node whose output shapes are asked for.
pub struct ShapeCtx<'a> {
    /// The node, with the attributes that the file leaves at their default (`opdef::with_defaults`).
    pub node: &'a Node,
    /// Facts about the node's data inputs, in order.
    pub args: &'a [Fact],
    /// The unknown sizes.
    pub symbols: &'a mut Symbols,
    /// Where the node is.
    pub site: Site,
}

impl ShapeCtx<'_> {
    /// Facts about input `i`.
    ///
    /// # Errors
    /// `Code::BadGraph` where it is missing.
    pub fn arg(&self, i: usize) -> Result<&Fact> {
        self.args.get(i).ok_or_else(|| Error::user(Code::BadGraph, format!("input {i} is missing")))
    }
    /// The shape of input `i`.
    ///
    /// # Errors
    /// Those of [`ShapeCtx::arg`].
    pub fn dims(&self, i: usize) -> Result<Dims> {
        Ok(self.arg(i)?.dims.clone())
    }
    /// The dimensions of input `i`, if its rank is known.
    ///
    /// # Errors
    /// Those of [`ShapeCtx::arg`].
    pub fn ranked(&self, i: usize) -> Result<Option<Vec<InferredDim>>> {
        Ok(self.arg(i)?.dims.as_ranked().map(<[InferredDim]>::to_vec))
    }
    /// The dimensions of input `i`, which must have this rank; new unknown ones where the rank is not known.
    ///
    /// # Errors
    /// Those of [`ShapeCtx::arg`], and `Code::ShapeMismatch`.
    pub fn of_rank(&mut self, i: usize, rank: usize) -> Result<Vec<InferredDim>> {
        let dims = self.dims(i)?;
        let found = self.with_rank(&dims, rank);
        found.ok_or_else(|| self.mismatch(format!("input {i} has the shape {dims} and must have rank {rank}")))
    }
    /// The dimensions of a shape of this rank, if it can have it.
    pub fn with_rank(&mut self, dims: &Dims, rank: usize) -> Option<Vec<InferredDim>> {
        match dims {
            Dims::Ranked(dims) => (dims.len() == rank).then(|| dims.to_vec()),
            Dims::Unranked(id) => Some((0..rank).map(|_| self.fresh(Why::From(*id))).collect()),
        }
    }
    /// The type of input `i`.
    pub fn dtype(&self, i: usize) -> Option<TfType> {
        self.args.get(i)?.dtype
    }
    /// A type that an attribute names.
    pub fn attr_type(&self, name: &str) -> Option<TfType> {
        self.node.tf_type(name)
    }
    /// A boolean attribute, false where it is missing.
    pub fn flag(&self, name: &str) -> bool {
        self.node.bool(name).unwrap_or(false)
    }
    /// The integers that input `i` holds, if any is known.
    pub fn ints(&self, i: usize) -> Option<Vec<Int>> {
        self.args.get(i)?.as_ints()
    }
    /// The integers that input `i` holds, if all are known.
    pub fn constant_ints(&self, i: usize) -> Option<Vec<i64>> {
        self.args.get(i)?.tensor()?.to_i64s()
    }
    /// The integer that input `i` is, if it is known.
    pub fn constant_int(&self, i: usize) -> Option<i64> {
        match self.constant_ints(i)?[..] {
            [one] => Some(one),
            _ => None,
        }
    }
    /// The size that input `i` is.
    pub fn size(&mut self, i: usize) -> InferredDim {
        match self.ints(i).as_deref() {
            Some([one]) => one.size(),
            _ => None,
        }
        .unwrap_or_else(|| self.fresh(Why::Value(i)))
    }
    /// An axis in `0..rank` from a possibly negative one.
    ///
    /// # Errors
    /// `Code::ShapeMismatch` where it is out of range.
    pub fn axis(&self, axis: i64, rank: usize) -> Result<usize> {
        let shifted = if axis < 0 { axis + rank as i64 } else { axis };
        let found = usize::try_from(shifted).ok().filter(|&a| a < rank);
        found.ok_or_else(|| self.mismatch(format!("axis {axis} is out of range for rank {rank}")))
    }
    /// "The shapes do not fit."
    pub fn mismatch(&self, message: impl Into<String>) -> Error {
        Error::user(Code::ShapeMismatch, message)
    }

    /// A new unknown size.
    pub fn fresh(&mut self, why: Why) -> InferredDim {
        InferredDim::Unknown(self.symbols.fresh(self.site, why))
    }
    /// A shape of unknown rank.
    pub fn unranked(&mut self, why: Why) -> Dims {
        Dims::Unranked(self.symbols.fresh(self.site, why))
    }
    /// A shape of unknown rank because input `i` is not known well enough.
    pub fn unranked_from(&mut self, i: usize) -> Dims {
        let why = self.cause(i);
        self.unranked(why)
    }
    /// New unknown sizes.
    pub fn open(&mut self, rank: usize, why: Why) -> Dims {
        (0..rank).map(|_| self.fresh(why)).collect::<Vec<_>>().into()
    }
    /// Reason why input `i` is unknown: an unknown size of its shape, else its value.
    pub fn cause(&self, i: usize) -> Why {
        match self.args.get(i).and_then(|a| a.dims.unknown()) {
            Some(id) => Why::From(id),
            None => Why::Value(i),
        }
    }
    /// A partial shape that an attribute gives.
    pub fn attr_shape(&mut self, shape: &PartialShape) -> Dims {
        match &shape.0 {
            None => self.unranked(Why::Attribute),
            Some(dims) => {
                let one =
                    |cx: &mut Self, d: Option<u64>| d.map_or_else(|| cx.fresh(Why::Attribute), InferredDim::Known);
                dims.iter().map(|&d| one(self, d)).collect::<Vec<_>>().into()
            }
        }
    }
    /// The shape that the value of input `i` is: a vector of sizes where -1 is unknown, or a scalar -1 for "any".
    ///
    /// # Errors
    /// Those of [`ShapeCtx::arg`], and `Code::ShapeMismatch` where it is no shape.
    pub fn shape_of_value(&mut self, i: usize) -> Result<Dims> {
        let arg = self.arg(i)?;
        let (rank, values) = (arg.dims.as_ranked().map(<[InferredDim]>::len), arg.as_ints());
        let length = arg.dims.as_ranked().and_then(|d| d.first().copied());
        match (rank, values) {
            (Some(0), _) => Ok(self.unranked(Why::Value(i))),
            (Some(1), Some(values)) => {
                let one = |cx: &mut Self, v: Int| match v {
                    Int::Known(n) if n < -1 => Err(cx.mismatch(format!("{n} is no size"))),
                    v => Ok(v.size().unwrap_or_else(|| cx.fresh(Why::Value(i)))),
                };
                values.into_iter().map(|v| one(self, v)).collect::<Result<Vec<_>>>().map(Dims::from)
            }
            (Some(1), None) => match length {
                Some(InferredDim::Known(n)) if n < 255 => Ok(self.open(n as usize, Why::Value(i))),
                _ => Ok(self.unranked_from(i)),
            },
            (Some(rank), _) => Err(self.mismatch(format!("input {i} must be a vector of sizes and has rank {rank}"))),
            (None, _) => Ok(self.unranked_from(i)),
        }
    }

    /// The one size that two sizes must be. `None` where they differ.
    pub fn merge_dim(&self, a: InferredDim, b: InferredDim) -> Option<InferredDim> {
        match (a, b) {
            (a, b) if a == b => Some(a),
            (InferredDim::Unknown(_), known @ InferredDim::Known(_))
            | (known @ InferredDim::Known(_), InferredDim::Unknown(_)) => Some(known),
            (InferredDim::Unknown(a), InferredDim::Unknown(b)) => Some(InferredDim::Unknown(a.min(b))),
            (InferredDim::Known(_), InferredDim::Known(_)) => None,
        }
    }
    /// The one shape that two shapes must be.
    ///
    /// # Errors
    /// `Code::ShapeMismatch` where they differ.
    pub fn merge(&self, a: &Dims, b: &Dims) -> Result<Dims> {
        match (a, b) {
            (Dims::Unranked(_), other) | (other, Dims::Unranked(_)) => Ok(other.clone()),
            (Dims::Ranked(x), Dims::Ranked(y)) => {
                let merged = (x.len() == y.len())
                    .then(|| x.iter().zip(y.iter()).map(|(&x, &y)| self.merge_dim(x, y)).collect::<Option<Vec<_>>>());
                merged.flatten().map(Dims::from).ok_or_else(|| self.mismatch(format!("{a} and {b} must be equal")))
            }
        }
    }
    /// Broadcast shape of two shapes by NumPy's rules.
    ///
    /// # Errors
    /// `Code::ShapeMismatch` where they do not fit.
    pub fn broadcast(&mut self, a: &Dims, b: &Dims) -> Result<Dims> {
        if a == b {
            return Ok(a.clone());
        }
        let (x, y) = match (a, b) {
            (Dims::Ranked(x), Dims::Ranked(y)) => (x, y),
            (Dims::Unranked(id), other) | (other, Dims::Unranked(id)) => {
                let scalar = other.as_ranked().is_some_and(<[InferredDim]>::is_empty);
                return Ok(if scalar { Dims::Unranked(*id) } else { self.unranked(Why::From(*id)) });
            }
        };
        let (long, short) = if x.len() < y.len() { (y, x) } else { (x, y) };
        let lead = long.len() - short.len();
        let mut out = long.to_vec();
        for (i, &d) in short.iter().enumerate() {
            let both = self.symbols.broadcast(self.site, out[lead + i], d);
            out[lead + i] = both.ok_or_else(|| self.mismatch(format!("{a} and {b} can't be broadcast together")))?;
        }
        Ok(out.into())
    }

    /// The sum of two sizes.
    pub fn add(&mut self, a: InferredDim, b: InferredDim) -> InferredDim {
        self.symbols.add(self.site, a, b)
    }
    /// The difference of two sizes.
    pub fn sub(&mut self, a: InferredDim, b: InferredDim) -> InferredDim {
        self.symbols.sub(self.site, a, b)
    }
    /// The product of two sizes.
    pub fn mul(&mut self, a: InferredDim, b: InferredDim) -> InferredDim {
        self.symbols.mul(self.site, a, b)
    }
    /// The quotient of two sizes, rounded down.
    pub fn div(&mut self, a: InferredDim, b: InferredDim) -> InferredDim {
        self.symbols.div_floor(self.site, a, b)
    }
    /// The quotient of two sizes, rounded up.
    pub fn div_ceil(&mut self, a: InferredDim, b: InferredDim) -> InferredDim {
        self.symbols.div_ceil(self.site, a, b)
    }
    /// The quotient of a size that must divide.
    ///
    /// # Errors
    /// `ShapeMismatch`.
    pub fn div_exact(&mut self, a: InferredDim, n: u64) -> Result<InferredDim> {
        match a {
            InferredDim::Known(a) if n == 0 || a % n != 0 => Err(self.mismatch(format!("{a} is no multiple of {n}"))),
            a => Ok(self.div(a, InferredDim::Known(n))),
        }
    }
    /// The product of many sizes.
    pub fn product(&mut self, dims: &[InferredDim]) -> InferredDim {
        dims.iter().fold(InferredDim::Known(1), |a, &b| self.mul(a, b))
    }

    /// One output of the type of input `i`.
    ///
    /// # Errors
    /// Those of [`ShapeCtx::arg`].
    pub fn like(&self, i: usize, dims: impl Into<Dims>) -> Result<Vec<Fact>> {
        Ok(vec![Fact::new(self.arg(i)?.dtype, dims.into())])
    }
    /// One output of the type that an attribute names.
    ///
    /// # Errors
    /// None: shape functions end so.
    pub fn typed(&self, attr: &str, dims: impl Into<Dims>) -> Result<Vec<Fact>> {
        Ok(vec![Fact::new(self.attr_type(attr), dims.into())])
    }
    /// One output.
    ///
    /// # Errors
    /// None: shape functions end so.
    pub fn one(&self, dtype: impl Into<Option<TfType>>, dims: impl Into<Dims>) -> Result<Vec<Fact>> {
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
