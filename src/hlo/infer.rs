//! Shape inference: result shapes from operand shapes, for ops whose shape need not be written.
use super::attrs::*;
use super::size::{SignedSize, SizeRepr};
use super::{ArrayShape, CompId, Computation, Module, Op, Shape};
use crate::scalar::ScalarOp;
use crate::tensor::DType;

type Inferred<D> = Result<Shape<D>, String>;

fn array<'a, D: SizeRepr>(shapes: &[&'a Shape<D>], i: usize) -> Result<&'a ArrayShape<D>, String> {
    let shape = shapes.get(i).ok_or_else(|| format!("operand {i} is missing"))?;
    shape.as_array().ok_or_else(|| format!("operand {i} is {shape}, not an array"))
}

/// The shape of `op` on operands of `shapes`; an error for ops whose shape must be given (`parameter`, `reshape`, `iota` …).
///
/// # Errors
/// A message that says what does not fit.
pub fn infer<D: SizeRepr>(op: &Op<D>, shapes: &[&Shape<D>], module: &Module<D>) -> Inferred<D> {
    match op {
        Op::Elementwise(op) => elementwise(*op, shapes),
        Op::Constant(literal) => Ok(literal_shape(literal)),
        Op::Copy | Op::OptimizationBarrier | Op::AddDependency => {
            shapes.first().map(|s| (*s).clone()).ok_or_else(|| "operand 0 is missing".to_string())
        }
        Op::Transpose(perm) => transpose(array(shapes, 0)?, perm),
        Op::Reverse(dims) => {
            let x = array(shapes, 0)?;
            unique_axes(dims, x.rank())?;
            Ok(Shape::array(x.dtype, x.dims.clone()))
        }
        Op::Slice(dims) => slice(array(shapes, 0)?, dims),
        Op::Pad(dims) => pad(array(shapes, 0)?, array(shapes, 1)?, dims),
        Op::Concatenate(axis) => concatenate(shapes, *axis),
        Op::DynamicSlice(sizes) => dynamic_slice(array(shapes, 0)?, sizes),
        Op::DynamicUpdateSlice => dynamic_update_slice(array(shapes, 0)?, array(shapes, 1)?),
        Op::Gather(dims) => gather(array(shapes, 0)?, array(shapes, 1)?, dims),
        Op::Scatter { .. } => {
            let n = shapes.len() / 2;
            one_or_tuple(shapes[..n.min(shapes.len())].iter().map(|s| (*s).clone()).collect())
        }
        Op::Reduce { dims, comp } => reduce(shapes, dims).map(|s| as_returned(s, module, *comp)),
        Op::ReduceWindow { window, comp } => reduce_window(shapes, window).map(|s| as_returned(s, module, *comp)),
        Op::SelectAndScatter { .. } => Ok(Shape::Array(without_layout(array(shapes, 0)?))),
        Op::Sort { .. } => one_or_tuple(shapes.iter().map(|s| (*s).clone()).collect()),
        Op::TopK { k, .. } => top_k(array(shapes, 0)?, *k),
        Op::Dot(dims) => dot(array(shapes, 0)?, array(shapes, 1)?, dims),
        Op::Convolution(dims) => convolution(array(shapes, 0)?, array(shapes, 1)?, dims),
        Op::Map { comp, .. } => {
            let x = array(shapes, 0)?;
            let c = module.comps.get(*comp).ok_or("the computation is missing")?;
            let result = c.insts[c.root].shape.as_array().ok_or("the computation does not return an array")?;
            Ok(Shape::array(result.dtype, x.dims.clone()))
        }
        Op::Tuple => Ok(Shape::Tuple(shapes.iter().map(|s| (*s).clone()).collect())),
        Op::GetTupleElement(i) => {
            let parts = shapes.first().and_then(|s| s.as_tuple()).ok_or("operand 0 is not a tuple")?;
            parts.get(*i).cloned().ok_or_else(|| format!("index {i} is beyond a tuple of {}", parts.len()))
        }
        Op::While { .. } => shapes.first().map(|s| (*s).clone()).ok_or_else(|| "operand 0 is missing".to_string()),
        Op::Conditional(branches) => {
            let id = branches.first().ok_or("conditional needs a branch")?;
            let c = module.comps.get(*id).ok_or("the computation is missing")?;
            Ok(c.insts[c.root].shape.clone())
        }
        Op::Call(id) => {
            let c = module.comps.get(*id).ok_or("the computation is missing")?;
            Ok(c.insts[c.root].shape.clone())
        }
        Op::Fft { kind, length } => fft(array(shapes, 0)?, *kind, length),
        Op::Cholesky { .. } => Ok(Shape::Array(without_layout(array(shapes, 0)?))),
        Op::TriangularSolve { .. } => Ok(Shape::Array(without_layout(array(shapes, 1)?))),
        Op::BatchNormTraining { feature_index, .. } | Op::BatchNormGrad { feature_index, .. } => {
            batch_norm(array(shapes, 0)?, *feature_index)
        }
        Op::BatchNormInference { .. } => Ok(Shape::Array(without_layout(array(shapes, 0)?))),
        Op::GetDimensionSize(_) => Ok(Shape::array(DType::S32, [])),
        Op::SetDimensionSize(dim) => {
            let mut x = without_layout(array(shapes, 0)?);
            x.dynamic = (0..x.rank()).map(|i| i == *dim).collect();
            Ok(Shape::Array(x))
        }
        Op::AfterAll => Ok(Shape::Token),
        Op::PartitionId | Op::ReplicaId => Ok(Shape::array(DType::U32, [])),
        Op::Parameter(_)
        | Op::Iota(_)
        | Op::Broadcast(_)
        | Op::Reshape
        | Op::Bitcast
        | Op::BitcastConvertWidth
        | Op::Fusion { .. }
        | Op::Rng { .. }
        | Op::RngBitGenerator { .. }
        | Op::Foreign(_) => Err(format!("cannot infer shape for opcode: {}", op.name())),
    }
}

/// The shape of a `topk` of `x`: the values and their indices.
fn top_k<D: SizeRepr>(x: &ArrayShape<D>, k: D) -> Inferred<D> {
    let mut dims = x.dims.clone();
    *dims.last_mut().ok_or("topk needs a dimension")? = k;
    Ok(Shape::Tuple(vec![Shape::array(x.dtype, dims.clone()), Shape::array(DType::S32, dims)]))
}

/// The shape of a batch normalization of `x` and of its gradient: an array like `x` and two of the size of its features.
fn batch_norm<D: SizeRepr>(x: &ArrayShape<D>, feature_index: usize) -> Inferred<D> {
    let channel = Shape::array(x.dtype, [*x.dims.get(feature_index).ok_or("feature_index is beyond the rank")?]);
    Ok(Shape::Tuple(vec![Shape::Array(without_layout(x)), channel.clone(), channel]))
}

/// The shape of a literal.
pub fn literal_shape<D: SizeRepr>(literal: &super::Literal) -> Shape<D> {
    match literal {
        super::Literal::Array(t) => Shape::array(t.dtype, t.dims.iter().map(|&d| D::from(d)).collect::<Vec<D>>()),
        super::Literal::Tuple(parts) => Shape::Tuple(parts.iter().map(literal_shape).collect()),
        super::Literal::Token => Shape::Token,
    }
}

fn without_layout<D: SizeRepr>(x: &ArrayShape<D>) -> ArrayShape<D> {
    ArrayShape { dynamic: x.dynamic.clone(), layout: None, ..x.clone() }
}

fn one_or_tuple<D: SizeRepr>(mut shapes: Vec<Shape<D>>) -> Inferred<D> {
    match shapes.len() {
        0 => Err("needs an operand".to_string()),
        1 => Ok(shapes.remove(0)),
        _ => Ok(Shape::Tuple(shapes)),
    }
}

fn unique_axes(axes: &[usize], rank: usize) -> Result<(), String> {
    let mut seen = vec![false; rank];
    for &a in axes {
        let slot = seen.get_mut(a).ok_or_else(|| format!("dimension {a} is beyond rank {rank}"))?;
        if std::mem::replace(slot, true) {
            return Err(format!("dimension {a} is given twice"));
        }
    }
    Ok(())
}

fn elementwise<D: SizeRepr>(op: ScalarOp, shapes: &[&Shape<D>]) -> Inferred<D> {
    if shapes.len() != op.arity() {
        return Err(format!("expects {} operands, got {}", op.arity(), shapes.len()));
    }
    let arrays = (0..shapes.len()).map(|i| array(shapes, i)).collect::<Result<Vec<_>, _>>()?;
    let main = match op {
        ScalarOp::Clamp => arrays[1],
        _ => arrays[arrays.len() - 1],
    };
    for (i, a) in arrays.iter().enumerate() {
        let scalar_allowed = (op == ScalarOp::Select && i == 0) || (op == ScalarOp::Clamp && i != 1);
        if a.dims != main.dims && !(scalar_allowed && a.dims.is_empty()) {
            return Err(format!("operand {i} is {a}, which does not have the dimensions of {main}"));
        }
        if op == ScalarOp::Select && i == 0 {
            if a.dtype != DType::Pred {
                return Err(format!("operand 0 is {a}, not pred"));
            }
        } else if a.dtype != main.dtype {
            return Err(format!("different element types: {a} and {main}"));
        }
    }
    let types: Vec<DType> = arrays.iter().map(|a| a.dtype).collect();
    let mut out = without_layout(main);
    out.dtype = op.result(&types);
    Ok(Shape::Array(out))
}

fn transpose<D: SizeRepr>(x: &ArrayShape<D>, perm: &[usize]) -> Inferred<D> {
    if perm.len() != x.rank() {
        return Err(format!("dimensions {perm:?} are no permutation of {x}"));
    }
    unique_axes(perm, x.rank())?;
    Ok(Shape::array(x.dtype, perm.iter().map(|&p| x.dims[p]).collect::<Vec<_>>()))
}

fn slice<D: SizeRepr>(x: &ArrayShape<D>, dims: &[SliceDim<D>]) -> Inferred<D> {
    if dims.len() != x.rank() {
        return Err(format!("{} slice dimensions for {x}", dims.len()));
    }
    let size = |(d, &n): (&SliceDim<D>, &D)| {
        if d.start > d.limit || d.limit > n || d.stride == D::from(0) {
            return Err(format!("[{}:{}:{}] is no slice of size {n}", d.start, d.limit, d.stride));
        }
        Ok(d.limit.saturating_sub(d.start).div_ceil(d.stride))
    };
    Ok(Shape::array(x.dtype, dims.iter().zip(&x.dims).map(size).collect::<Result<Vec<_>, _>>()?))
}

fn pad<D: SizeRepr>(x: &ArrayShape<D>, fill: &ArrayShape<D>, dims: &[PadDim<D>]) -> Inferred<D> {
    if dims.len() != x.rank() {
        return Err(format!("{} padding dimensions for {x}", dims.len()));
    }
    if fill.dtype != x.dtype || fill.rank() != 0 {
        return Err(format!("the padding value is {fill}, not a scalar of {}", x.dtype));
    }
    let size = |(d, &n): (&PadDim<D>, &D)| {
        let between = n.saturating_sub(D::from(1)).checked_mul(d.interior).ok_or("a size overflows")?;
        let inner = n.checked_add(between).and_then(D::signed).ok_or("a size overflows")?;
        let total = inner.checked_add(d.low).and_then(|v| v.checked_add(d.high)).ok_or("a size overflows")?;
        D::of_signed(total).ok_or_else(|| format!("a padded size is negative: {total}"))
    };
    Ok(Shape::array(x.dtype, dims.iter().zip(&x.dims).map(size).collect::<Result<Vec<_>, _>>()?))
}

fn concatenate<D: SizeRepr>(shapes: &[&Shape<D>], axis: usize) -> Inferred<D> {
    let first = array(shapes, 0)?;
    let mut dims = first.dims.clone();
    if axis >= dims.len() {
        return Err(format!("dimension {axis} is beyond {first}"));
    }
    for i in 1..shapes.len() {
        let other = array(shapes, i)?;
        let fits = other.dtype == first.dtype
            && other.rank() == first.rank()
            && (0..dims.len()).all(|d| d == axis || dims[d] == other.dims[d]);
        if !fits {
            return Err(format!("{other} does not fit behind {first}"));
        }
        dims[axis] = dims[axis].checked_add(other.dims[axis]).ok_or("a size overflows")?;
    }
    Ok(Shape::array(first.dtype, dims))
}

fn dynamic_slice<D: SizeRepr>(x: &ArrayShape<D>, sizes: &[D]) -> Inferred<D> {
    if sizes.len() != x.rank() || sizes.iter().zip(&x.dims).any(|(&s, &n)| !window_fits(n, s)) {
        return Err(format!("slice sizes {sizes:?} do not fit {x}"));
    }
    Ok(Shape::array(x.dtype, sizes.to_vec()))
}

fn dynamic_update_slice<D: SizeRepr>(x: &ArrayShape<D>, update: &ArrayShape<D>) -> Inferred<D> {
    if update.dtype != x.dtype
        || update.rank() != x.rank()
        || update.dims.iter().zip(&x.dims).any(|(&s, &n)| !window_fits(n, s))
    {
        return Err(format!("{update} does not fit into {x}"));
    }
    Ok(Shape::Array(without_layout(x)))
}

/// Whether `size` neighboring elements can be sliced from `n`. A slice of one element is allowed of a varying size even if that may be 0
/// in a call, as nothing is read then.
fn window_fits<D: SizeRepr>(n: D, size: D) -> bool {
    (size.is_one() && !n.always_equals(D::from(0))) || size <= n
}

fn gather<D: SizeRepr>(x: &ArrayShape<D>, indices: &ArrayShape<D>, d: &GatherDims<D>) -> Inferred<D> {
    if d.slice_sizes.len() != x.rank() || d.slice_sizes.iter().zip(&x.dims).any(|(&s, &n)| !window_fits(n, s)) {
        return Err(format!("slice sizes {:?} do not fit {x}", d.slice_sizes));
    }
    if d.index_vector_dim > indices.rank() || d.start_index_map.iter().any(|&a| a >= x.rank()) {
        return Err("index axes are beyond the rank".to_string());
    }
    let dropped = |a: &usize| d.collapsed_slice_dims.contains(a) || d.operand_batching_dims.contains(a);
    let mut window = (0..x.rank()).filter(|a| !dropped(a)).map(|a| d.slice_sizes[a]);
    let mut batch = (0..indices.rank()).filter(|&a| a != d.index_vector_dim).map(|a| indices.dims[a]);
    let rank = indices.rank() - usize::from(d.index_vector_dim < indices.rank()) + d.offset_dims.len();
    let dims = (0..rank).map(|i| if d.offset_dims.contains(&i) { window.next() } else { batch.next() });
    let dims = dims.collect::<Option<Vec<_>>>().ok_or("offset_dims do not fit the slice")?;
    if window.next().is_some() || batch.next().is_some() {
        return Err("offset_dims do not fit the slice".to_string());
    }
    Ok(Shape::array(x.dtype, dims))
}

fn reduce<D: SizeRepr>(shapes: &[&Shape<D>], dims: &[usize]) -> Inferred<D> {
    let n = shapes.len() / 2;
    let one = |i: usize| {
        let (x, init) = (array(shapes, i)?, array(shapes, n + i)?);
        unique_axes(dims, x.rank())?;
        if init.rank() != 0 {
            return Err(format!("initial value {init} is no scalar"));
        }
        let kept: Vec<D> = (0..x.rank()).filter(|d| !dims.contains(d)).map(|d| x.dims[d]).collect();
        Ok(Shape::array(init.dtype, kept))
    };
    one_or_tuple((0..n).map(one).collect::<Result<Vec<_>, String>>()?)
}

/// The result shape of a reduction of one array, a tuple if its computation returns one.
fn as_returned<D: SizeRepr>(shape: Shape<D>, module: &Module<D>, comp: CompId) -> Shape<D> {
    match shape {
        Shape::Array(_) if module.comps.get(comp).is_some_and(Computation::returns_tuple) => Shape::Tuple(vec![shape]),
        _ => shape,
    }
}

fn window_dims<D: SizeRepr>(dims: &[D], window: &[WindowDim<D>]) -> Result<Vec<D>, String> {
    if dims.len() != window.len() {
        return Err(format!("a window of {} dimensions over {}", window.len(), dims.len()));
    }
    let size = |(w, &n): (&WindowDim<D>, &D)| {
        if [w.stride, w.size, w.lhs_dilate, w.rhs_dilate].into_iter().any(|n| n.always_equals(D::from(0))) {
            return Err("sizes, strides and dilations of a window must be positive".to_string());
        }
        w.output_size(n).ok_or_else(|| "a size overflows".to_string())
    };
    window.iter().zip(dims).map(size).collect()
}

fn reduce_window<D: SizeRepr>(shapes: &[&Shape<D>], window: &[WindowDim<D>]) -> Inferred<D> {
    let n = shapes.len() / 2;
    let one = |i: usize| {
        let (x, init) = (array(shapes, i)?, array(shapes, n + i)?);
        Ok(Shape::array(init.dtype, window_dims(&x.dims, window)?))
    };
    one_or_tuple((0..n).map(one).collect::<Result<Vec<_>, String>>()?)
}

fn dot<D: SizeRepr>(x: &ArrayShape<D>, y: &ArrayShape<D>, d: &DotDims) -> Inferred<D> {
    unique_axes(&[&d.lhs_batch[..], &d.lhs_contracting].concat(), x.rank())?;
    unique_axes(&[&d.rhs_batch[..], &d.rhs_contracting].concat(), y.rank())?;
    let pairs = |a: &[usize], b: &[usize]| a.len() == b.len() && a.iter().zip(b).all(|(&i, &j)| x.dims[i] == y.dims[j]);
    if !pairs(&d.lhs_batch, &d.rhs_batch) || !pairs(&d.lhs_contracting, &d.rhs_contracting) {
        return Err(format!("the batch or contracted dimensions of {x} and {y} differ"));
    }
    if x.dtype != y.dtype {
        return Err(format!("different element types: {x} and {y}"));
    }
    let mut dims: Vec<D> = d.lhs_batch.iter().map(|&a| x.dims[a]).collect();
    dims.extend(
        (0..x.rank()).filter(|a| !d.lhs_batch.contains(a) && !d.lhs_contracting.contains(a)).map(|a| x.dims[a]),
    );
    dims.extend(
        (0..y.rank()).filter(|a| !d.rhs_batch.contains(a) && !d.rhs_contracting.contains(a)).map(|a| y.dims[a]),
    );
    Ok(Shape::array(x.dtype, dims))
}

fn convolution<D: SizeRepr>(x: &ArrayShape<D>, k: &ArrayShape<D>, d: &ConvDims<D>) -> Inferred<D> {
    let rank = d.window.len() + 2;
    if x.rank() != rank || k.rank() != rank || d.input_spatial.len() != rank - 2 || d.kernel_spatial.len() != rank - 2 {
        return Err(format!("dim_labels of {} spatial dimensions for {x} and {k}", d.window.len()));
    }
    unique_axes(&[&[d.input_batch, d.input_feature], &d.input_spatial[..]].concat(), rank)?;
    unique_axes(&[&[d.kernel_input_feature, d.kernel_output_feature], &d.kernel_spatial[..]].concat(), rank)?;
    unique_axes(&[&[d.output_batch, d.output_feature], &d.output_spatial[..]].concat(), rank)?;
    if x.dtype != k.dtype {
        return Err(format!("different element types: {x} and {k}"));
    }
    let (features, outputs) = (x.dims[d.input_feature], k.dims[d.kernel_output_feature]);
    let (groups, batches) = (d.feature_group_count, d.batch_group_count);
    if groups == 0 || batches == 0 || (groups > 1 && batches > 1) {
        return Err("group counts must be positive, and only one above 1".to_string());
    }
    if k.dims[d.kernel_input_feature].checked_mul(D::from(groups)) != Some(features) {
        return Err(format!(
            "{features} input features against a kernel of {} in {groups} groups",
            k.dims[d.kernel_input_feature]
        ));
    }
    let is_divided = outputs.is_multiple_of(D::from(groups)) && outputs.is_multiple_of(D::from(batches));
    if !is_divided || !x.dims[d.input_batch].is_multiple_of(D::from(batches)) {
        return Err("features or batch do not divide into the groups".to_string());
    }
    for (w, &a) in d.window.iter().zip(&d.kernel_spatial) {
        if w.size != k.dims[a] {
            return Err(format!("a window of {} over a kernel of {}", w.size, k.dims[a]));
        }
    }
    let sizes: Vec<D> = d.input_spatial.iter().map(|&a| x.dims[a]).collect();
    let mut dims = vec![D::from(0); rank];
    dims[d.output_batch] = x.dims[d.input_batch].checked_div(D::from(batches)).ok_or("a size overflows")?;
    dims[d.output_feature] = outputs;
    for (&a, n) in d.output_spatial.iter().zip(window_dims(&sizes, &d.window)?) {
        dims[a] = n;
    }
    Ok(Shape::array(x.dtype, dims))
}

/// Half of a number, rounded down, plus one.
fn above_half<D: SizeRepr>(n: D) -> D {
    let half = n.checked_div(D::from(2)).unwrap_or(n);
    half.checked_add(D::from(1)).unwrap_or(half)
}

/// Number of complex elements in the transform of `reals` real ones; 0 for 0, as in XLA.
fn complex_of<D: SizeRepr>(reals: D) -> D {
    if reals == D::from(0) { reals } else { above_half(reals) }
}

fn fft<D: SizeRepr>(x: &ArrayShape<D>, kind: FftKind, length: &[D]) -> Inferred<D> {
    if length.is_empty() || length.len() > 3 || length.len() > x.rank() {
        return Err(format!("fft_length {length:?} does not fit {x}"));
    }
    let mut dims = x.dims.clone();
    let lead = dims.len() - length.len();
    let last = dims.len() - 1;
    let reals = length[length.len() - 1];
    let mut want = length.to_vec();
    if kind == FftKind::Irfft {
        // For zero reals, XLA also accepts one complex number.
        want[last - lead] = if dims[last] == D::from(0) { complex_of(reals) } else { above_half(reals) };
    }
    if dims[lead..] != want {
        return Err(format!("fft_length {length:?} does not fit {x}"));
    }
    let dtype = match (kind, x.dtype) {
        (FftKind::Fft | FftKind::Ifft, DType::C64 | DType::C128) => x.dtype,
        (FftKind::Rfft, DType::F32) => DType::C64,
        (FftKind::Rfft, DType::F64) => DType::C128,
        (FftKind::Irfft, DType::C64) => DType::F32,
        (FftKind::Irfft, DType::C128) => DType::F64,
        _ => return Err(format!("an fft of {x}")),
    };
    match kind {
        FftKind::Rfft => dims[last] = complex_of(reals),
        FftKind::Irfft => dims[last] = reals,
        FftKind::Fft | FftKind::Ifft => {}
    }
    Ok(Shape::array(dtype, dims))
}
