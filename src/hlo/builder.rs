//! Makes computations instruction by instruction, inferring shapes.
//!
//! A call that does not fit (wrong shapes) does not fail on the spot: the builder remembers the first error, returns a
//! placeholder, and [`Builder::take_error`] or [`Builder::finish`] reports it, so that lowerings read as formulas.
use super::attrs::*;
use super::data_sizes::{Anchor, Assumed, Claim, DataSize, OwningComputation, RuntimeChecks};
use super::decision;
use super::size::{Signed, are_same};
use super::{CompId, Computation, Inst, InstId, Literal, Metadata, Module, Op, Shape, SizeRepr, infer};
use crate::diag::{Error, Result};
use crate::scalar::{CompareKind, Direction, ScalarOp};
use crate::symbolic::{Dim, trace};
use crate::tensor::{DType, Tensor};
use crate::util::id_vec::IdVec;
use std::collections::HashMap;
use std::sync::Arc;

/// A number that every element of a constant is.
#[derive(Clone, Copy, Debug)]
pub enum Number<D: SizeRepr> {
    /// One that is written.
    Float(f64),
    /// One that follows from sizes.
    Size(D::Signed),
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

/// A place in a module under construction.
#[derive(Clone, Copy, Debug)]
pub struct BuilderCheckpoint {
    /// How many computations are open.
    pub depth: usize,
    /// How many sizes values say.
    pub found: usize,
    insts: usize,
    comps: usize,
    claims: usize,
}

/// A module under construction: a stack of open computations.
#[derive(Debug)]
pub struct Builder<D: SizeRepr = u64> {
    module: Module<D>,
    open: Vec<Computation<D>>,
    error: Option<String>,
    assumed: Assumed,
    found: Vec<DataSize>,
    /// The first of these that is taken to be another than is assumed, and so are those behind it.
    astray: Option<usize>,
    /// From which one on sizes that values say are taken to be as large as they may be.
    at_most: Option<usize>,
    /// How many sizes values had said when each open computation was opened, outermost first.
    before: Vec<usize>,
    /// The constants of each open computation that are computed from sizes of arrays, with their elements, outermost first.
    told: Vec<HashMap<InstId, Vec<D::Signed>>>,
    /// Run-time checks recorded in each open computation, outermost first.
    claims: Vec<Vec<Claim>>,
    /// How many of the open computations, from the entry on, may have sizes that values say, and have their claims carried to the entry.
    carrying: usize,
    /// How many replicas the collectives so far are among.
    replicas: Option<u64>,
    /// Given to each new instruction.
    pub metadata: Arc<Metadata>,
}

impl<D: SizeRepr> Builder<D> {
    /// A module whose first computation, the entry, is open.
    pub fn new(name: &str) -> Self {
        let module = Module {
            name: name.to_string(),
            comps: IdVec::new(),
            entry: CompId(0),
            extra: Vec::new(),
            replaceable: false,
        };
        let mut b = Builder {
            module,
            open: Vec::new(),
            error: None,
            assumed: Assumed::default(),
            found: Vec::new(),
            astray: None,
            at_most: None,
            before: Vec::new(),
            told: Vec::new(),
            claims: Vec::new(),
            carrying: 1,
            replicas: None,
            metadata: Arc::default(),
        };
        b.begin("main");
        b
    }
    /// Opens a nested computation; ids of the outer one are of no use until [`Builder::end`].
    pub fn begin(&mut self, name: &str) {
        self.claims.push(Vec::new());
        self.before.push(self.found.len());
        self.told.push(HashMap::new());
        self.open.push(Computation {
            name: name.to_string(),
            insts: IdVec::new(),
            params: Vec::new(),
            root: InstId(0),
            sizes: Vec::new(),
            size_constants: Vec::new(),
        });
    }
    /// Closes the innermost computation.
    pub fn end(&mut self, root: InstId) -> CompId {
        let place = OwningComputation::Open(self.open.len());
        let mut comp = self.open.pop().expect("begin and end come in pairs");
        self.claims.pop();
        self.before.pop();
        comp.size_constants = self.size_constants();
        self.told.pop();
        comp.root = root;
        comp.name = format!("{}.{}", comp.name, self.module.comps.len());
        comp.sizes = self.sizes(place);
        let id = self.module.comps.push(comp);
        self.found.iter_mut().filter(|f| f.place == place).for_each(|f| f.place = OwningComputation::Closed(id));
        id
    }
    /// The sizes that values of a computation say and that vary, with their numbers.
    fn sizes(&self, place: OwningComputation) -> Vec<(usize, InstId)> {
        let varying = self.found.iter().filter(|f| !f.is_fixed).enumerate();
        varying.filter(|(_, f)| f.place == place).map(|(number, f)| (number, f.count)).collect()
    }
    /// The constants of the innermost open computation with elements that vary, in order.
    fn size_constants(&self) -> Vec<(InstId, Vec<D::Signed>)> {
        let varies = |elements: &[D::Signed]| elements.iter().any(|&e| e.into().varies());
        let told = self.told.last().into_iter().flatten().filter(|(_, elements)| varies(elements));
        let mut all: Vec<_> = told.map(|(&id, elements)| (id, elements.clone())).collect();
        all.sort_by_key(|(id, _)| *id);
        all
    }
    /// Closes the innermost computation and forgets it.
    pub fn abandon(&mut self) {
        self.open.pop();
        self.claims.pop();
        self.told.pop();
        if let Some(found) = self.before.pop() {
            self.found.truncate(found);
        }
    }
    /// The depth of open computations, for unwinding to after an error.
    pub fn depth(&self) -> usize {
        self.open.len()
    }
    /// Closes the entry; fails with the first error that a call met.
    ///
    /// # Errors
    /// An internal one: the first that a call met.
    pub fn finish(mut self, root: InstId) -> Result<Module<D>> {
        if let Some(message) = self.error {
            return Err(Error::internal("hlo builder", message));
        }
        let sizes = self.sizes(OwningComputation::Open(1));
        let size_constants = self.size_constants();
        let mut comp = self.open.pop().expect("the entry is open");
        (comp.root, comp.sizes, comp.size_constants) = (root, sizes, size_constants);
        self.module.entry = self.module.comps.push(comp);
        Ok(self.module)
    }
    /// Makes the module one for so many replicas.
    ///
    /// # Errors
    /// How many it is for already, where these are others.
    pub fn replicate(&mut self, count: u64) -> Result<(), u64> {
        match self.replicas {
            None => self.replicas = Some(count),
            Some(had) if had != count => return Err(had),
            Some(_) => return Ok(()),
        }
        if count != 1 {
            self.module.extra.push(("replica_count".to_string(), count.to_string()));
        }
        Ok(())
    }
    /// Says what is taken for granted of sizes that values at run time say.
    pub fn assume(&mut self, assumed: Assumed) {
        self.assumed = assumed;
    }
    /// Whether run-time checks are compiled in.
    pub fn is_checked(&self) -> bool {
        self.assumed.checks != RuntimeChecks::Off
    }
    /// Whether checks that are known to hold are left out.
    pub fn drops_known_checks(&self) -> bool {
        self.assumed.checks == RuntimeChecks::Unproven && self.found.is_empty()
    }
    /// The sizes that values at run time say, in the order in which they were met.
    pub fn founds(&self) -> &[DataSize] {
        &self.found
    }
    /// Data-dependent sizes that values of the innermost open computation determine.
    pub fn found_here(&self) -> impl Iterator<Item = &DataSize> {
        let here = OwningComputation::Open(self.open.len());
        self.found.iter().filter(move |f| f.place == here)
    }
    /// Takes sizes from the `first` on to be others than is assumed, to see what depends on them, and gives back from which one on they
    /// were; as is assumed with `None`.
    pub fn go_astray(&mut self, first: Option<usize>) -> Option<usize> {
        std::mem::replace(&mut self.astray, first)
    }
    /// Takes sizes from the `first` on to be as large as they may be, to see how much room what depends on them needs, and gives back from
    /// which one on they were; as is assumed with `None`.
    pub fn take_most(&mut self, first: Option<usize>) -> Option<usize> {
        std::mem::replace(&mut self.at_most, first)
    }
    /// Remembers that a constant of the innermost open computation is made of sizes of arrays, and which they are.
    pub fn tell_size(&mut self, constant: InstId, elements: Vec<D::Signed>) {
        if let Some(told) = self.told.last_mut() {
            told.insert(constant, elements);
        }
    }
    /// Remembers that a constant of the innermost open computation is made of sizes of arrays, which do not vary.
    pub fn tell_constant(&mut self, constant: InstId) {
        let Op::Constant(Literal::Array(t)) = &self.current().insts[constant].op else { return };
        let fixed = t.to_i64s().unwrap_or_default().into_iter().map(D::Signed::from).collect();
        if self.size_constant_elements(constant).is_none() {
            self.tell_size(constant, fixed);
        }
    }
    /// The sizes that a constant of the innermost open computation is made of, in row-major order.
    pub fn size_constant_elements(&self, constant: InstId) -> Option<&[D::Signed]> {
        self.told.last()?.get(&constant).map(Vec::as_slice)
    }
    /// A constant of numbers that follow from sizes, of element type `dtype`.
    pub fn size_constant(&mut self, dtype: DType, dims: &[u64], elements: Vec<D::Signed>) -> InstId {
        let bytes = elements.iter().flat_map(|n| Tensor::scalar_of_int(dtype, n.at_hand()).bytes.to_vec());
        let constant = self.constant(Tensor::new(dtype, dims.to_vec(), bytes.collect::<Vec<u8>>()));
        self.tell_size(constant, elements);
        constant
    }
    /// A vector of numbers, some of which may follow from sizes.
    pub fn numbers(&mut self, dtype: DType, numbers: &[Dim]) -> InstId
    where
        D: SizeRepr<Signed = Dim>,
    {
        let count = numbers.len() as u64;
        if numbers.iter().any(|n| n.varies()) {
            return self.size_constant(dtype, &[count], numbers.to_vec());
        }
        let bytes = numbers.iter().flat_map(|n| Tensor::scalar_of_int(dtype, n.at_hand()).bytes.to_vec());
        self.constant(Tensor::new(dtype, vec![count], bytes.collect::<Vec<u8>>()))
    }
    /// Whether a value of the innermost open computation is computed from sizes of arrays.
    pub fn follows_sizes(&self, id: InstId) -> bool {
        self.told.last().is_some_and(|sizes| !decision::sizes_read(self.current(), sizes, id).is_empty())
    }
    /// The largest size that values may say at a node where nothing bounds it.
    pub fn bound(&self, node: &str) -> u64 {
        self.assumed.bounds.of(node)
    }
    /// Lets calls fail that ask for more than a node has room for. Those of the entry count; what an inner computation asks for is
    /// carried out of it by who opened it.
    pub fn claim(&mut self, claim: Claim) {
        if let Some(claims) = self.claims.last_mut() {
            claims.push(claim);
        }
    }
    /// Run-time checks and requested capacities of the innermost open computation, in the order in which they were recorded.
    pub fn claims(&self) -> &[Claim] {
        self.claims.last().map_or(&[], Vec::as_slice)
    }
    /// Removes the claims that the innermost open computation recorded after its first `before` ones, and returns them.
    pub fn take_claims(&mut self, before: usize) -> Vec<Claim> {
        self.claims.last_mut().map_or_else(Vec::new, |own| own.split_off(before.min(own.len())))
    }
    /// Whether claims of the innermost open computation get to the entry, and it may have sizes that values say.
    pub fn carries(&self) -> bool {
        self.carrying == self.open.len()
    }
    /// Says of how many open computations claims are carried to the entry, and gives back of how many they were.
    pub fn carry(&mut self, count: usize) -> usize {
        std::mem::replace(&mut self.carrying, count)
    }
    /// A checkpoint of the module, to which it can be rolled back.
    pub fn mark(&self) -> BuilderCheckpoint {
        let (insts, comps) = (self.current().insts.len(), self.module.comps.len());
        let (found, claims) = (self.found.len(), self.claims().len());
        BuilderCheckpoint { depth: self.depth(), insts, comps, found, claims }
    }
    /// Goes back to a place, and forgets all that came since.
    pub fn return_to(&mut self, mark: &BuilderCheckpoint) {
        while self.depth() > mark.depth {
            self.abandon();
        }
        if let Some(comp) = self.open.last_mut() {
            comp.insts.truncate(mark.insts);
        }
        if let Some(own) = self.claims.last_mut() {
            own.truncate(mark.claims);
        }
        if let Some(told) = self.told.last_mut() {
            told.retain(|id, _| (id.0 as usize) < mark.insts);
        }
        self.module.comps.truncate(mark.comps);
        self.found.truncate(mark.found);
        self.error = None;
    }
    /// The first error since the last call, if any.
    pub fn take_error(&mut self) -> Option<String> {
        self.error.take()
    }
    /// The computation that is open.
    pub fn current(&self) -> &Computation<D> {
        self.open.last().expect("a computation is open")
    }
    /// The module so far: closed computations only.
    pub fn module(&self) -> &Module<D> {
        &self.module
    }
    /// The shape of an instruction.
    pub fn shape(&self, id: InstId) -> &Shape<D> {
        &self.current().insts[id].shape
    }
    /// The sizes of an array; none for what is not an array.
    pub fn dims(&self, id: InstId) -> &[D] {
        self.shape(id).as_array().map_or(&[], |a| &a.dims)
    }
    /// The number of dimensions.
    pub fn rank(&self, id: InstId) -> usize {
        self.dims(id).len()
    }
    /// The element type of an array.
    pub fn dtype(&self, id: InstId) -> DType {
        self.shape(id).as_array().map_or(DType::Pred, |a| a.dtype)
    }
    fn fail(&mut self, message: String) {
        self.error.get_or_insert(message);
    }
    /// Adds an instruction of a given shape, unchecked.
    pub fn push(&mut self, op: Op<D>, operands: &[InstId], shape: Shape<D>) -> InstId {
        let metadata = self.metadata.clone();
        let comp = self.open.last_mut().expect("a computation is open");
        let name = format!("{}.{}", op.name(), comp.insts.len());
        let id = comp.insts.push(Inst { name, op, operands: operands.to_vec(), shape, metadata, extra: Vec::new() });
        if let Op::Parameter(_) = comp.insts[id].op {
            comp.params.push(id);
        }
        id
    }
    /// Calls an instruction of the open computation `name`.
    pub fn rename(&mut self, id: InstId, name: String) {
        let comp = self.open.last_mut().expect("a computation is open");
        comp.insts[id].name = name;
    }
    /// Gives an instruction of the open computation attributes that are only carried.
    pub fn annotate(&mut self, id: InstId, extra: Vec<(String, String)>) {
        let comp = self.open.last_mut().expect("a computation is open");
        comp.insts[id].extra = extra;
    }
    /// Adds an instruction and infers its shape.
    pub fn add_inst(&mut self, op: Op<D>, operands: &[InstId]) -> InstId {
        let shapes: Vec<&Shape<D>> = operands.iter().map(|&id| self.shape(id)).collect();
        match infer::infer(&op, &shapes, &self.module) {
            Ok(shape) => self.push(op, operands, shape),
            Err(message) => {
                let shape = operands.last().map_or(Shape::array(DType::F32, []), |&id| self.shape(id).clone());
                self.fail(format!("{}: {message}", op.name()));
                self.push(op, operands, shape)
            }
        }
    }
    /// The next argument of the open computation.
    pub fn parameter(&mut self, shape: Shape<D>) -> InstId {
        let number = self.current().params.len();
        self.push(Op::Parameter(number), &[], shape)
    }
    /// A constant array.
    pub fn constant(&mut self, value: Tensor) -> InstId {
        let shape = Shape::array(value.dtype, value.dims.iter().map(|&d| D::from(d)).collect::<Vec<D>>());
        self.push(Op::Constant(Literal::Array(value)), &[], shape)
    }
    /// A constant scalar of `dtype`.
    pub fn scalar(&mut self, dtype: DType, value: impl Into<Number<D>>) -> InstId {
        match value.into() {
            Number::Float(value) => self.constant(Tensor::scalar_of(dtype, value)),
            Number::Size(size) if size.into().varies() => self.size_constant(dtype, &[], vec![size]),
            Number::Size(size) => self.constant(Tensor::scalar_of(dtype, size.at_hand() as f64)),
        }
    }
    /// `value` in every element of an array like `like`.
    pub fn full_like(&mut self, like: InstId, value: impl Into<Number<D>>) -> InstId {
        let (dtype, dims) = (self.dtype(like), self.dims(like).to_vec());
        self.full(dtype, &dims, value)
    }
    /// `value` in every element.
    pub fn full(&mut self, dtype: DType, dims: &[D], value: impl Into<Number<D>>) -> InstId {
        let scalar = self.scalar(dtype, value);
        self.broadcast(scalar, dims, &[])
    }
    /// A pointwise op on operands of one shape.
    pub fn elementwise(&mut self, op: ScalarOp, operands: &[InstId]) -> InstId {
        self.add_inst(Op::Elementwise(op), operands)
    }
    /// A unary pointwise op.
    pub fn unary(&mut self, op: ScalarOp, x: InstId) -> InstId {
        self.elementwise(op, &[x])
    }
    /// A binary pointwise op with NumPy broadcasting of sizes.
    pub fn binary(&mut self, op: ScalarOp, x: InstId, y: InstId) -> InstId {
        let (x, y) = self.broadcast_together(x, y);
        self.elementwise(op, &[x, y])
    }
    /// x + y, broadcasting.
    pub fn add(&mut self, x: InstId, y: InstId) -> InstId {
        self.binary(ScalarOp::Add, x, y)
    }
    /// x - y, broadcasting.
    pub fn sub(&mut self, x: InstId, y: InstId) -> InstId {
        self.binary(ScalarOp::Subtract, x, y)
    }
    /// x * y, broadcasting.
    pub fn mul(&mut self, x: InstId, y: InstId) -> InstId {
        self.binary(ScalarOp::Multiply, x, y)
    }
    /// x / y, broadcasting.
    pub fn div(&mut self, x: InstId, y: InstId) -> InstId {
        self.binary(ScalarOp::Divide, x, y)
    }
    /// The larger, broadcasting.
    pub fn max(&mut self, x: InstId, y: InstId) -> InstId {
        self.binary(ScalarOp::Maximum, x, y)
    }
    /// The smaller, broadcasting.
    pub fn min(&mut self, x: InstId, y: InstId) -> InstId {
        self.binary(ScalarOp::Minimum, x, y)
    }
    /// A comparison, broadcasting.
    pub fn compare(&mut self, direction: Direction, x: InstId, y: InstId) -> InstId {
        self.binary(ScalarOp::Compare(direction, CompareKind::Partial), x, y)
    }
    /// `on_true` where `pred`, else `on_false`, all broadcast together.
    pub fn select(&mut self, pred: InstId, on_true: InstId, on_false: InstId) -> InstId {
        let (t, f) = self.broadcast_together(on_true, on_false);
        let (p, t) = self.broadcast_together(pred, t);
        let dims = self.dims(t).to_vec();
        let f = self.broadcast_to(f, &dims);
        self.elementwise(ScalarOp::Select, &[p, t, f])
    }
    /// A value of another element type; itself where it is of that type.
    pub fn convert(&mut self, x: InstId, dtype: DType) -> InstId {
        if self.dtype(x) == dtype { x } else { self.unary(ScalarOp::Convert(dtype), x) }
    }
    /// Operand dimension `i` becomes result dimension `map[i]`.
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
        if are_same(&from, dims) {
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
    /// Both operands broadcast to their common sizes.
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
        if are_same(self.dims(x), dims) {
            return x;
        }
        let shape = Shape::array(self.dtype(x), dims);
        let count = |s: &Shape<D>| s.as_array().map(super::ArrayShape::elements);
        if count(&shape) != count(self.shape(x)) {
            self.fail(format!("reshape of {} to {dims:?}", self.shape(x)));
        }
        self.push(Op::Reshape, &[x], shape)
    }
    /// Result dimension `i` is operand dimension `perm[i]`; itself for the identity.
    pub fn transpose(&mut self, x: InstId, perm: &[usize]) -> InstId {
        if perm.iter().enumerate().all(|(i, &p)| i == p) && perm.len() == self.rank(x) {
            return x;
        }
        self.add_inst(Op::Transpose(perm.to_vec()), &[x])
    }
    /// A strided box.
    pub fn slice(&mut self, x: InstId, dims: &[SliceDim<D>]) -> InstId {
        self.add_inst(Op::Slice(dims.to_vec()), &[x])
    }
    /// `start..limit` of one axis.
    pub fn slice_axis(&mut self, x: InstId, axis: usize, start: D, limit: D) -> InstId {
        let whole = |(i, &n)| {
            let (start, limit) = if i == axis { (start, limit) } else { (D::from(0), n) };
            SliceDim { start, limit, stride: D::from(1) }
        };
        let dims: Vec<_> = self.dims(x).iter().enumerate().map(whole).collect();
        self.slice(x, &dims)
    }
    /// The elements of `x` along `axis` at `indices`, `s32[count]`, clamped; `is_sorted` where these ascend.
    pub fn take(&mut self, x: InstId, axis: usize, indices: InstId, is_sorted: bool) -> InstId {
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
    /// Grown or cropped; `fill` is a scalar.
    pub fn pad(&mut self, x: InstId, fill: InstId, dims: &[PadDim<D>]) -> InstId {
        self.add_inst(Op::Pad(dims.to_vec()), &[x, fill])
    }
    /// `x` with `more` zeros behind its elements along `axis`.
    pub fn pad_axis(&mut self, x: InstId, axis: usize, more: D::Signed) -> InstId {
        let mut dims = vec![PadDim::default(); self.rank(x)];
        dims[axis].high = more;
        let zero = self.scalar(self.dtype(x), 0.0);
        self.pad(x, zero, &dims)
    }
    /// Arrays one after another.
    pub fn concatenate(&mut self, parts: &[InstId], axis: usize) -> InstId {
        if let [one] = parts { *one } else { self.add_inst(Op::Concatenate(axis), parts) }
    }
    /// 0, 1, 2 … along one axis.
    pub fn iota(&mut self, dtype: DType, dims: &[D], axis: usize) -> InstId {
        self.push(Op::Iota(axis), &[], Shape::array(dtype, dims))
    }
    /// A computation of two scalars that applies one op, for `reduce` and its like.
    pub fn scalar_computation(&mut self, op: ScalarOp, dtype: DType) -> CompId {
        self.begin(op.name());
        let x = self.parameter(Shape::array(dtype, []));
        let y = self.parameter(Shape::array(dtype, []));
        let root = self.elementwise(op, &[x, y]);
        self.end(root)
    }
    /// The condition of a loop whose state begins with an `s32` counter: that it is below `count`.
    pub fn counter_below(&mut self, name: &str, state: &Shape<D>, count: impl Into<Number<D>>) -> CompId {
        self.begin(name);
        let state = self.parameter(state.clone());
        let counter = self.get_tuple_element(state, 0);
        let end = self.scalar(DType::S32, count);
        let root = self.compare(Direction::Lt, counter, end);
        self.end(root)
    }
    /// The computation of [`Fold::Larger`](super::Fold::Larger).
    pub fn larger_computation(&mut self, dtype: DType) -> CompId {
        self.begin("larger");
        let x = self.parameter(Shape::array(dtype, []));
        let y = self.parameter(Shape::array(dtype, []));
        let larger = self.compare(Direction::Gt, y, x);
        let root = self.select(larger, y, x);
        self.end(root)
    }
    /// The computation that sorts keys with an `s32` beside each, the smallest key first; floats in their total order.
    pub fn ascending_computation(&mut self, dtype: DType) -> CompId {
        self.begin("ascending");
        let keys = [0, 1].map(|_| self.parameter(Shape::array(dtype, [])));
        let _beside = [0, 1].map(|_| self.parameter(Shape::array(DType::S32, [])));
        let kind = if dtype.is_float() { CompareKind::Total } else { CompareKind::Partial };
        let root = self.elementwise(ScalarOp::Compare(Direction::Lt, kind), &keys);
        self.end(root)
    }
    /// Folds dimensions with one op; `init` is its neutral element.
    pub fn reduce(&mut self, x: InstId, init: InstId, op: ScalarOp, dims: &[usize]) -> InstId {
        let comp = self.scalar_computation(op, self.dtype(x));
        self.add_inst(Op::Reduce { dims: dims.to_vec(), comp }, &[x, init])
    }
    /// A batched matrix product.
    pub fn dot(&mut self, x: InstId, y: InstId, dims: DotDims) -> InstId {
        self.add_inst(Op::Dot(Box::new(dims)), &[x, y])
    }
    /// Several values as one.
    pub fn tuple(&mut self, parts: &[InstId]) -> InstId {
        self.add_inst(Op::Tuple, parts)
    }
    /// One part of a tuple.
    pub fn get_tuple_element(&mut self, x: InstId, index: usize) -> InstId {
        self.add_inst(Op::GetTupleElement(index), &[x])
    }
}

impl Builder<Dim> {
    /// A size that is `count` at run time and never larger than `most`, as what it is taken to be: `most` where nothing is assumed.
    /// `None` in a computation whose sizes are fixed.
    pub fn found(&mut self, count: InstId, most: Dim) -> Option<Dim> {
        if !self.carries() {
            return None;
        }
        let number = self.found.len();
        let anchor = self.assumed.fixed.iter().find(|(n, _)| *n == number).map(|(_, anchor)| *anchor);
        let same_as = match anchor {
            Some(Anchor::Found(other)) => self.found.get(other).copied(),
            Some(Anchor::Size(_)) | None => None,
        };
        let fixed = match anchor {
            Some(Anchor::Size(size)) => Some(size),
            Some(Anchor::Found(_)) | None => same_as.map(|other| other.assumed),
        };
        let assumed = fixed.unwrap_or_else(|| trace::variable(self.assumed_size(number, most.at_hand()), most));
        let same_as = same_as.map(|other| other.count);
        let place = OwningComputation::Open(self.open.len());
        self.found.push(DataSize { count, place, assumed, most, is_fixed: fixed.is_some(), same_as });
        Some(assumed)
    }
    /// Size assumed for the data-dependent size `number`, which is at most `most` and not fixed by another shape.
    fn assumed_size(&self, number: usize, most: i64) -> i64 {
        let varying = self.found.iter().filter(|f| !f.is_fixed).count();
        let assumed = self.assumed.sizes.get(varying).and_then(|&n| i64::try_from(n).ok());
        let assumed = assumed.map_or(most, |n| n.min(most));
        let astray = self.astray.filter(|first| number >= *first).map(|first| 1 + (number - first) as i64 % 3);
        match astray {
            _ if self.at_most.is_some_and(|first| number >= first) => most,
            Some(by) if assumed > by => assumed - by,
            Some(by) if assumed + by <= most => assumed + by,
            Some(_) => 0,
            None => assumed,
        }
    }
}
