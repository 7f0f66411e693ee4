//! A function for each instruction, with the conveniences that lowerings are written in: broadcasting, padding, small computations.
use super::Builder;
use crate::hlo::attrs::*;
use crate::hlo::size::{SignedSize, all_always_equal};
use crate::hlo::{ArrayShape, CompId, InstId, Literal, Op, Shape, SizeRepr};
use crate::scalar::{CompareKind, Direction, ScalarOp};
use crate::symbolic::Dim;
use crate::tensor::{DType, Tensor};

/// Value with which a constant is filled.
#[derive(Clone, Copy, Debug)]
pub enum Number<D: SizeRepr> {
    /// Floating-point number.
    Float(f64),
    /// Integer computed from sizes.
    Size(D::SignedSize),
}

impl<D: SizeRepr> From<f64> for Number<D> {
    fn from(value: f64) -> Self {
        Number::Float(value)
    }
}

impl From<u64> for Number<u64> {
    fn from(size: u64) -> Self {
        Number::Float(size as f64)
    }
}

impl From<Dim> for Number<Dim> {
    fn from(size: Dim) -> Self {
        Number::Size(size)
    }
}

impl<D: SizeRepr> Builder<D> {
    /// Adds a constant array.
    pub fn constant(&mut self, value: Tensor) -> InstId {
        let shape = Shape::array(value.dtype, value.dims.iter().map(|&d| D::from(d)).collect::<Vec<D>>());
        self.push(Op::Constant(Literal::Array(value)), &[], shape)
    }
    /// Adds a constant scalar of `dtype`.
    pub fn scalar(&mut self, dtype: DType, value: impl Into<Number<D>>) -> InstId {
        match value.into() {
            Number::Float(value) => self.constant(Tensor::scalar_from_f64(dtype, value)),
            Number::Size(size) if size.into().varies() => self.size_constant(dtype, &[], vec![size]),
            Number::Size(size) => self.constant(Tensor::scalar_from_f64(dtype, size.at_current_sizes() as f64)),
        }
    }
    /// Adds a broadcast of `value` to the type and sizes of `like`.
    pub fn full_like(&mut self, like: InstId, value: impl Into<Number<D>>) -> InstId {
        let (dtype, dims) = (self.dtype(like), self.dims(like).to_vec());
        self.full(dtype, &dims, value)
    }
    /// Adds a broadcast of `value` to `dims`.
    pub fn full(&mut self, dtype: DType, dims: &[D], value: impl Into<Number<D>>) -> InstId {
        let scalar = self.scalar(dtype, value);
        self.broadcast(scalar, dims, &[])
    }
    /// Adds a pointwise op on operands of one shape.
    pub fn elementwise(&mut self, op: ScalarOp, operands: &[InstId]) -> InstId {
        self.add_inst(Op::Elementwise(op), operands)
    }
    /// Adds a unary pointwise op.
    pub fn unary(&mut self, op: ScalarOp, x: InstId) -> InstId {
        self.elementwise(op, &[x])
    }
    /// Adds a binary pointwise op with NumPy broadcasting of sizes.
    pub fn binary(&mut self, op: ScalarOp, x: InstId, y: InstId) -> InstId {
        let (x, y) = self.broadcast_together(x, y);
        self.elementwise(op, &[x, y])
    }
    /// Adds x + y, with broadcasting.
    pub fn add(&mut self, x: InstId, y: InstId) -> InstId {
        self.binary(ScalarOp::Add, x, y)
    }
    /// Adds x - y, with broadcasting.
    pub fn sub(&mut self, x: InstId, y: InstId) -> InstId {
        self.binary(ScalarOp::Subtract, x, y)
    }
    /// Adds x * y, with broadcasting.
    pub fn mul(&mut self, x: InstId, y: InstId) -> InstId {
        self.binary(ScalarOp::Multiply, x, y)
    }
    /// Adds x / y, with broadcasting.
    pub fn div(&mut self, x: InstId, y: InstId) -> InstId {
        self.binary(ScalarOp::Divide, x, y)
    }
    /// Adds a maximum, with broadcasting.
    pub fn max(&mut self, x: InstId, y: InstId) -> InstId {
        self.binary(ScalarOp::Maximum, x, y)
    }
    /// Adds a minimum, with broadcasting.
    pub fn min(&mut self, x: InstId, y: InstId) -> InstId {
        self.binary(ScalarOp::Minimum, x, y)
    }
    /// Adds a comparison, with broadcasting.
    pub fn compare(&mut self, direction: Direction, x: InstId, y: InstId) -> InstId {
        self.binary(ScalarOp::Compare(direction, CompareKind::Partial), x, y)
    }
    /// Adds a selection: `on_true` where `pred`, else `on_false`, all broadcast together.
    pub fn select(&mut self, pred: InstId, on_true: InstId, on_false: InstId) -> InstId {
        let (t, f) = self.broadcast_together(on_true, on_false);
        let (p, t) = self.broadcast_together(pred, t);
        let dims = self.dims(t).to_vec();
        let f = self.broadcast_to(f, &dims);
        self.elementwise(ScalarOp::Select, &[p, t, f])
    }
    /// A conversion of `x` to `dtype`; `x` itself if it has that type.
    pub fn convert(&mut self, x: InstId, dtype: DType) -> InstId {
        if self.dtype(x) == dtype { x } else { self.unary(ScalarOp::Convert(dtype), x) }
    }
    /// A broadcast in which operand dimension `i` becomes result dimension `map[i]`.
    pub fn broadcast(&mut self, x: InstId, dims: &[D], map: &[usize]) -> InstId {
        let fits = map.len() == self.rank(x) && map.iter().zip(self.dims(x)).all(|(&m, d)| dims.get(m) == Some(d));
        if !fits {
            self.fail(format!("broadcast of {} to {dims:?} by {map:?}", self.shape(x)));
        }
        let shape = Shape::array(self.dtype(x), dims);
        self.push(Op::Broadcast(map.to_vec()), &[x], shape)
    }
    /// NumPy's `broadcast_to`: sizes of 1 repeat, new dimensions come first.
    pub fn broadcast_to(&mut self, x: InstId, dims: &[D]) -> InstId {
        let from = self.dims(x).to_vec();
        if all_always_equal(&from, dims) {
            return x;
        }
        let Some(lead) = dims.len().checked_sub(from.len()) else {
            self.fail(format!("{from:?} can't be broadcast to {dims:?}"));
            return x;
        };
        let is_kept = |i: usize| match from[i].is_one() {
            true => dims[lead + i].is_one(),
            false => from[i] == dims[lead + i] || from[i] != D::from(1),
        };
        let kept: Vec<usize> = (0..from.len()).filter(|&i| is_kept(i)).collect();
        let squeezed: Vec<D> = kept.iter().map(|&i| from[i]).collect();
        let x = self.reshape(x, &squeezed);
        self.broadcast(x, dims, &kept.iter().map(|&i| lead + i).collect::<Vec<_>>())
    }
    /// The sizes that two arrays broadcast to, by NumPy's rule.
    pub fn broadcast_dims(x: &[D], y: &[D]) -> Option<Vec<D>> {
        let rank = x.len().max(y.len());
        let one = D::from(1);
        let at = |v: &[D], i: usize| if i + v.len() >= rank { v[i + v.len() - rank] } else { one };
        (0..rank)
            .map(|i| match (at(x, i), at(y, i)) {
                (a, b) if b.is_one() => Some(a),
                (a, b) if a.is_one() => Some(b),
                (a, b) if a == b || b == one => Some(a),
                (a, b) => (a == one).then_some(b),
            })
            .collect()
    }
    /// Broadcasts both operands to their common sizes.
    pub fn broadcast_together(&mut self, x: InstId, y: InstId) -> (InstId, InstId) {
        match Self::broadcast_dims(self.dims(x), self.dims(y)) {
            Some(dims) => (self.broadcast_to(x, &dims), self.broadcast_to(y, &dims)),
            None => {
                self.fail(format!("{} and {} can't be broadcast together", self.shape(x), self.shape(y)));
                (x, y)
            }
        }
    }
    /// A reshape of `x` to the sizes `dims`.
    pub fn reshape(&mut self, x: InstId, dims: &[D]) -> InstId {
        if all_always_equal(self.dims(x), dims) {
            return x;
        }
        let shape = Shape::array(self.dtype(x), dims);
        let count = |s: &Shape<D>| s.as_array().map(ArrayShape::elements);
        if count(&shape) != count(self.shape(x)) {
            self.fail(format!("reshape of {} to {dims:?}", self.shape(x)));
        }
        self.push(Op::Reshape, &[x], shape)
    }
    /// A transpose in which result dimension `i` is operand dimension `perm[i]`; `x` itself for the identity.
    pub fn transpose(&mut self, x: InstId, perm: &[usize]) -> InstId {
        if perm.iter().enumerate().all(|(i, &p)| i == p) && perm.len() == self.rank(x) {
            return x;
        }
        self.add_inst(Op::Transpose(perm.to_vec()), &[x])
    }
    /// Adds a strided slice.
    pub fn slice(&mut self, x: InstId, dims: &[SliceDim<D>]) -> InstId {
        self.add_inst(Op::Slice(dims.to_vec()), &[x])
    }
    /// The slice `start..limit` of one axis.
    pub fn slice_axis(&mut self, x: InstId, axis: usize, start: D, limit: D) -> InstId {
        let whole = |(i, &n)| {
            let (start, limit) = if i == axis { (start, limit) } else { (D::from(0), n) };
            SliceDim { start, limit, stride: D::from(1) }
        };
        let dims: Vec<_> = self.dims(x).iter().enumerate().map(whole).collect();
        self.slice(x, &dims)
    }
    /// The elements of `x` along `axis` at `indices`, `s32[count]`, clamped; `is_sorted` where these ascend.
    pub fn gather_along_axis(&mut self, x: InstId, axis: usize, indices: InstId, is_sorted: bool) -> InstId {
        let mut slice_sizes = self.dims(x).to_vec();
        slice_sizes[axis] = D::from(1);
        let dims = GatherDims {
            offset_dims: (0..slice_sizes.len()).filter(|&a| a != axis).collect(),
            collapsed_slice_dims: vec![axis],
            start_index_map: vec![axis],
            index_vector_dim: 1,
            slice_sizes,
            indices_are_sorted: is_sorted,
            ..GatherDims::default()
        };
        self.add_inst(Op::Gather(Box::new(dims)), &[x, indices])
    }
    /// A pad, which crops where amounts are negative; `fill` is a scalar.
    pub fn pad(&mut self, x: InstId, fill: InstId, dims: &[PadDim<D>]) -> InstId {
        self.add_inst(Op::Pad(dims.to_vec()), &[x, fill])
    }
    /// A pad with `more` zeros after the elements of `x` along `axis`.
    pub fn pad_axis(&mut self, x: InstId, axis: usize, more: D::SignedSize) -> InstId {
        let mut dims = vec![PadDim::default(); self.rank(x)];
        dims[axis].high = more;
        let zero = self.scalar(self.dtype(x), 0.0);
        self.pad(x, zero, &dims)
    }
    /// A concatenation along `axis`.
    pub fn concatenate(&mut self, parts: &[InstId], axis: usize) -> InstId {
        if let [one] = parts { *one } else { self.add_inst(Op::Concatenate(axis), parts) }
    }
    /// An iota: 0, 1, 2 … along one axis.
    pub fn iota(&mut self, dtype: DType, dims: &[D], axis: usize) -> InstId {
        self.push(Op::Iota(axis), &[], Shape::array(dtype, dims))
    }
    /// A computation of two scalars that applies one op, for `reduce` and its like.
    pub fn scalar_computation(&mut self, op: ScalarOp, dtype: DType) -> CompId {
        self.begin_computation(op.name());
        let x = self.parameter(Shape::array(dtype, []));
        let y = self.parameter(Shape::array(dtype, []));
        let root = self.elementwise(op, &[x, y]);
        self.end_computation(root)
    }
    /// The condition of a loop whose state begins with an `s32` counter: that it is below `count`.
    pub fn counter_below(&mut self, name: &str, state: &Shape<D>, count: impl Into<Number<D>>) -> CompId {
        self.begin_computation(name);
        let state = self.parameter(state.clone());
        let counter = self.get_tuple_element(state, 0);
        let end = self.scalar(DType::S32, count);
        let root = self.compare(Direction::Lt, counter, end);
        self.end_computation(root)
    }
    /// Adds the computation of [`Fold::Larger`](crate::hlo::Fold::Larger).
    pub fn max_computation(&mut self, dtype: DType) -> CompId {
        self.begin_computation("larger");
        let x = self.parameter(Shape::array(dtype, []));
        let y = self.parameter(Shape::array(dtype, []));
        let larger = self.compare(Direction::Gt, y, x);
        let root = self.select(larger, y, x);
        self.end_computation(root)
    }
    /// The comparator that sorts keys, each paired with an `s32`, in ascending order; floats in their total order.
    pub fn ascending_computation(&mut self, dtype: DType) -> CompId {
        self.begin_computation("ascending");
        let keys = [0, 1].map(|_| self.parameter(Shape::array(dtype, [])));
        let _beside = [0, 1].map(|_| self.parameter(Shape::array(DType::S32, [])));
        let kind = if dtype.is_float() { CompareKind::Total } else { CompareKind::Partial };
        let root = self.elementwise(ScalarOp::Compare(Direction::Lt, kind), &keys);
        self.end_computation(root)
    }
    /// Adds a reduction over dimensions by one op; `init` is its neutral element.
    pub fn reduce(&mut self, x: InstId, init: InstId, op: ScalarOp, dims: &[usize]) -> InstId {
        let comp = self.scalar_computation(op, self.dtype(x));
        self.add_inst(Op::Reduce { dims: dims.to_vec(), comp }, &[x, init])
    }
    /// Adds a batched matrix product.
    pub fn dot(&mut self, x: InstId, y: InstId, dims: DotDims) -> InstId {
        self.add_inst(Op::Dot(Box::new(dims)), &[x, y])
    }
    /// Adds a tuple of several values.
    pub fn tuple(&mut self, parts: &[InstId]) -> InstId {
        self.add_inst(Op::Tuple, parts)
    }
    /// Adds an access to one element of a tuple.
    pub fn get_tuple_element(&mut self, x: InstId, index: usize) -> InstId {
        self.add_inst(Op::GetTupleElement(index), &[x])
    }
}
