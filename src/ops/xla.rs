//! `compiler/tf2xla/ops/xla_ops.cc` and the sharding ops: HLO instructions exposed as TensorFlow ops.
mod bounds;
mod contract;
mod custom_call;
mod replicas;
pub mod window;

use super::fact::Fact;
use super::op_lowering::{CallKind, functional_op, op};
use super::shape::like_first_input;
use super::{LowerCtx, OpLowering, ShapeCtx, Value, Work};
use crate::diag::{Code, Error, Result};
use crate::graph::{Attr, Node};
use crate::hlo::symbolic::{Builder, CompId, InstId, Op, Shape};
use crate::hlo::symbolic::{Dim, PadDim, SliceDim};
use crate::scalar::{CompareKind, Direction, ScalarOp};
use crate::tensor::DType;

const NODES: &[OpLowering] = &[
    op("XlaSplitND", "input -> outputs*", split_nd),
    op("XlaConcatND", "inputs* -> output", concat_nd),
    op("XlaPad", "input padding_value padding_low padding_high padding_interior -> output", pad)
        .constant_inputs(&[2, 3, 4]),
    op("XlaDynamicSlice", "input start_indices size_indices -> output", dynamic_slice).constant_inputs(&[2]),
    op("XlaDynamicUpdateSlice", "input update indices -> output", dynamic_update_slice).shape(like_first_input),
    op("XlaBroadcastHelper", "lhs rhs broadcast_dims -> lhs_output rhs_output", broadcast_helper).constant_inputs(&[2]),
    op("XlaSort", "input -> output", sort).shape(like_first_input),
    op("XlaKeyValueSort", "keys values -> sorted_keys sorted_values", sort),
    op("XlaReducePrecision", "operand -> output", reduce_precision).shape(like_first_input).dtypes("floats"),
    op("XlaOptimizationBarrier", "input* -> output*", barrier),
    op("XlaSharding", "input -> output", |cx| Ok(cx.args.clone()))
        .dtypes("any; code is for one device")
        .work(Work::None),
];

const FUNCTIONAL: &[OpLowering] = &[
    functional_op("XlaVariadicSort", "inputs* dimension -> outputs*", CallKind::Sort).constant_inputs(&[1]),
    functional_op("XlaVariadicReduceV2", "inputs* init_values* -> outputs*", CallKind::Reduce),
    functional_op("XlaVariadicReduce", "input* init_value* -> output*", CallKind::Reduce),
    functional_op("XlaReduce", "input init_value -> output", CallKind::Reduce),
    functional_op(
        "XlaReduceWindow",
        "input init_value window_dimensions window_strides base_dilations window_dilations padding -> output",
        CallKind::ReduceWindow,
    )
    .constant_inputs(&[2, 3, 4, 5, 6]),
    functional_op(
        "XlaSelectAndScatter",
        "operand window_dimensions window_strides padding source init_value -> output",
        CallKind::SelectAndScatter,
    )
    .constant_inputs(&[1, 2, 3]),
    functional_op("XlaScatter", "operand scatter_indices updates -> output", CallKind::Scatter),
    functional_op("XlaWhile", "input* -> output*", CallKind::While),
    functional_op("XlaCallModule", "args* -> output*", CallKind::Module)
        .shape(call_module_shape)
        .dtypes("versions 4 to 10"),
];

/// Definitions of the ops of this family.
pub const ROWS: &[&[OpLowering]] =
    &[NODES, bounds::ROWS, contract::ROWS, custom_call::ROWS, replicas::ROWS, FUNCTIONAL];

/// Shape function of `XlaCallModule`: shapes and types that its attributes declare.
fn call_module_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let (Some(Attr::Types(types)), Some(Attr::Shapes(shapes))) = (cx.node.attr("Tout"), cx.node.attr("Sout")) else {
        return Ok(Vec::new());
    };
    if types.len() != shapes.len() {
        return Err(cx.shape_mismatch(format!("{} shapes for {} results", shapes.len(), types.len())));
    }
    Ok(types.iter().zip(shapes).map(|(&t, shape)| Fact::new(Some(t.storage_type()), cx.attr_shape(shape))).collect())
}

/// Value of an attribute that is a list of integers and may be empty.
///
/// # Errors
/// `Code::BadAttr` for an attribute of another kind.
pub fn int_list_attr<'n>(node: &'n Node, name: &str) -> Result<&'n [i64]> {
    match node.attr(name) {
        Some(Attr::Ints(v)) => Ok(v),
        Some(Attr::EmptyList) | None => Ok(&[]),
        Some(_) => Err(Error::user(Code::BadAttr, format!("attribute `{name}` must be a list of integers"))),
    }
}

/// Attribute `name`, a list of sizes below 2^34, one per dimension; `missing` stands for each size if the list is empty.
fn sizes(cx: &LowerCtx, name: &str, rank: usize, missing: Dim) -> Result<Vec<Dim>> {
    let list = int_list_attr(cx.node, name)?;
    if list.is_empty() {
        return Ok(vec![missing; rank]);
    }
    let values: Option<Vec<Dim>> = list.iter().map(|&v| Dim::size(v).ok().filter(|&v| v < 1u64 << 34)).collect();
    values.filter(|v| v.len() == rank).ok_or_else(|| {
        cx.shape_mismatch(format!("attribute `{name}` must give one size for each of {rank} dimensions"))
    })
}

/// Multi-index of block `i`, where `counts` are the numbers of blocks along each dimension; the last dimension varies fastest.
fn block_index(mut i: Dim, counts: &[Dim]) -> Vec<Dim> {
    let mut index = vec![Dim::from(0); counts.len()];
    for axis in (0..counts.len()).rev() {
        index[axis] = i % counts[axis];
        i /= counts[axis];
    }
    index
}

/// Lowers `XlaSplitND`: splits the zero-padded input into blocks of equal sizes, in row-major order.
fn split_nd(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (x, dims) = (cx.arg(0)?, cx.dims(0)?);
    let counts = sizes(cx, "num_splits", dims.len(), Dim::from(1))?;
    let ends = sizes(cx, "paddings", dims.len(), Dim::from(0))?;
    let total =
        counts.iter().try_fold(1u64, |n, &c| n.checked_mul(c.guarded_count())).filter(|n| (1..=1 << 16).contains(n));
    let total = total.ok_or_else(|| cx.shape_mismatch(format!("{counts:?} blocks")))?;
    let grown: Vec<Dim> = dims.iter().zip(&ends).map(|(d, e)| d + e).collect();
    if grown.iter().zip(&counts).any(|(d, c)| d % c != 0) {
        return Err(cx.shape_mismatch(format!("{grown:?} does not divide into {counts:?} blocks")));
    }
    let zero = cx.b.scalar(cx.b.dtype(x), 0.0);
    let padding: Vec<PadDim> = ends
        .iter()
        .map(|&e| PadDim { low: Dim::from(0), high: Dim::from(e.guarded_value()), interior: Dim::from(0) })
        .collect();
    let x = if ends.iter().any(|&e| e > 0) { cx.b.pad(x, zero, &padding) } else { x };
    let mut out = Vec::with_capacity(total as usize);
    for i in 0..total {
        let index = block_index(Dim::from(i), &counts);
        let part = |axis: usize| {
            let size = grown[axis] / counts[axis];
            SliceDim { start: index[axis] * size, limit: (index[axis] + 1) * size, stride: Dim::from(1) }
        };
        let parts: Vec<SliceDim> = (0..dims.len()).map(part).collect();
        out.push(Value::Array(cx.b.slice(x, &parts)));
    }
    Ok(out)
}

/// Lowers `XlaConcatND`, the reverse of [`split_nd`]: joins the blocks one dimension at a time, and cuts the padding off.
fn concat_nd(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let mut parts = cx.arg_range(0, cx.args.len())?;
    let dims = cx.dims(0)?;
    let counts = sizes(cx, "num_concats", dims.len(), Dim::from(1))?;
    let ends = sizes(cx, "paddings", dims.len(), Dim::from(0))?;
    let total = counts.iter().try_fold(1u64, |n, &c| n.checked_mul(c.guarded_count()));
    if total != Some(parts.len() as u64) {
        return Err(cx.shape_mismatch(format!("{} blocks for a grid of {counts:?}", parts.len())));
    }
    for axis in (0..dims.len()).rev() {
        parts = parts.chunks(counts[axis].guarded_index()).map(|line| cx.b.concatenate(line, axis)).collect();
    }
    let Some(&whole) = parts.first() else { return Err(cx.shape_mismatch("no blocks")) };
    let mut y = whole;
    for (axis, &end) in ends.iter().enumerate().filter(|e| *e.1 > 0) {
        let n = cx.b.dims(y)[axis];
        let limit = n.checked_sub(end).ok_or_else(|| cx.shape_mismatch(format!("{end} of {n} elements cut off")))?;
        y = cx.b.slice_axis(y, axis, Dim::from(0), limit);
    }
    cx.one_output(y)
}

fn pad(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (x, fill) = (cx.arg(0)?, cx.arg(1)?);
    let [low, high, interior] = [cx.constant_ints(2)?, cx.constant_ints(3)?, cx.constant_ints(4)?];
    let rank = cx.b.rank(x);
    let fits = [&low, &high, &interior].iter().all(|v| v.len() == rank && v.iter().all(|p| p.abs() < 1 << 34));
    if !fits || interior.iter().any(|&p| p < 0) || cx.b.rank(fill) != 0 {
        return Err(cx.shape_mismatch("paddings need one number a dimension, and a scalar that fills"));
    }
    let dims: Vec<PadDim> = (0..rank)
        .map(|i| PadDim { low: Dim::from(low[i]), high: Dim::from(high[i]), interior: Dim::from(interior[i]) })
        .collect();
    let y = cx.b.pad(x, fill, &dims);
    cx.one_output(y)
}

/// Elements of a vector input as scalars, one for each dimension of `x`.
fn starts(cx: &mut LowerCtx, x: InstId, input: usize) -> Result<Vec<InstId>> {
    let (indices, rank) = (cx.arg(input)?, Dim::from(cx.b.rank(x)));
    if cx.b.dims(indices) != [rank] {
        return Err(cx.shape_mismatch(format!("{:?} indices for {rank} dimensions", cx.b.dims(indices))));
    }
    Ok((0..rank.guarded_count())
        .map(|i| {
            let one = cx.b.slice_axis(indices, 0, Dim::from(i), Dim::from(i + 1));
            cx.b.reshape(one, &[])
        })
        .collect())
}

fn dynamic_slice(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let x = cx.arg(0)?;
    let size = super::array::shape::shape_from_input(cx, 2)?;
    let fits = size.len() == cx.b.rank(x) && size.iter().zip(cx.b.dims(x)).all(|(s, d)| s <= d);
    if !fits {
        return Err(cx.shape_mismatch(format!("a box of {size:?} from {:?}", cx.b.dims(x))));
    }
    let operands: Vec<InstId> = [x].into_iter().chain(starts(cx, x, 1)?).collect();
    let y = cx.b.add_inst(Op::DynamicSlice(size), &operands);
    cx.one_output(y)
}

fn dynamic_update_slice(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (x, update) = (cx.arg(0)?, cx.arg(1)?);
    let fits = cx.b.rank(x) == cx.b.rank(update) && cx.b.dims(update).iter().zip(cx.b.dims(x)).all(|(u, d)| u <= d);
    if !fits {
        return Err(cx.shape_mismatch(format!("{} written into {}", cx.b.shape(update), cx.b.shape(x))));
    }
    let operands: Vec<InstId> = [x, update].into_iter().chain(starts(cx, x, 2)?).collect();
    let y = cx.b.add_inst(Op::DynamicUpdateSlice, &operands);
    cx.one_output(y)
}

/// Lowers `XlaBroadcastHelper`: gives the array of lower rank the dimensions of the other; its own sizes go to
/// `broadcast_dims`, the rest are 1.
fn broadcast_helper(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (x, y, places) = (cx.arg(0)?, cx.arg(1)?, cx.constant_ints(2)?);
    let (rank_x, rank_y) = (cx.b.rank(x), cx.b.rank(y));
    if places.is_empty() {
        if rank_x != rank_y && rank_x != 0 && rank_y != 0 {
            return Err(cx.shape_mismatch(format!("ranks {rank_x} and {rank_y} without broadcast_dims")));
        }
        return Ok(vec![Value::Array(x), Value::Array(y)]);
    }
    if rank_x == rank_y {
        return Err(cx.shape_mismatch("broadcast_dims for arrays of one rank"));
    }
    let (low, high) = if rank_x < rank_y { (x, y) } else { (y, x) };
    let (from, to) = (cx.b.dims(low).to_vec(), cx.b.dims(high).to_vec());
    let rising = places.windows(2).all(|p| p[0] < p[1]);
    if places.len() != from.len() || !rising {
        return Err(
            cx.shape_mismatch(format!("broadcast_dims {places:?} for {from:?}: one a dimension, in rising order"))
        );
    }
    let mut dims = vec![Dim::from(1); to.len()];
    for (&place, &size) in places.iter().zip(&from) {
        let axis = cx.normalize_axis(place, to.len())?;
        if size != 1 && to[axis] != 1 && size != to[axis] {
            return Err(cx.shape_mismatch(format!("{from:?} does not fit {to:?} at dimensions {places:?}")));
        }
        dims[axis] = size;
    }
    let grown = cx.b.reshape(low, &dims);
    let (x, y) = if rank_x < rank_y { (grown, y) } else { (x, grown) };
    Ok(vec![Value::Array(x), Value::Array(y)])
}

/// Comparator (a, b, ..) -> a < b for operands of these types; floats compare by total order.
fn less(b: &mut Builder, types: &[DType]) -> CompId {
    b.begin_computation("less");
    let params: Vec<InstId> = types.iter().flat_map(|&t| [t, t]).map(|t| b.parameter(Shape::array(t, []))).collect();
    let kind = if types.first().is_some_and(|t| t.is_float()) { CompareKind::Total } else { CompareKind::Partial };
    let root = b.elementwise(ScalarOp::Compare(Direction::Lt, kind), &[params[0], params[1]]);
    b.end_computation(root)
}

/// Lowers a sort along the last dimension by the first input; the other inputs are permuted with it.
fn sort(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let args = cx.arg_range(0, cx.args.len())?;
    let types: Vec<DType> = args.iter().map(|&x| cx.b.dtype(x)).collect();
    let dims = cx.dims(0)?;
    if dims.is_empty() || args.iter().any(|&x| cx.b.dims(x) != dims) {
        return Err(cx.shape_mismatch("arrays of one shape with a last dimension are needed"));
    }
    if types[0].is_complex() {
        return Err(cx.unsupported_case(format!("{} by {}; real numbers are supported", cx.node.op, types[0])));
    }
    let comp = less(cx.b, &types);
    let sorted = cx.b.add_inst(Op::Sort { dim: dims.len() - 1, is_stable: false, comp }, &args);
    if let [_] = args[..] {
        return cx.one_output(sorted);
    }
    Ok((0..args.len()).map(|i| Value::Array(cx.b.get_tuple_element(sorted, i))).collect())
}

fn reduce_precision(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let x = cx.arg(0)?;
    let bits = |name: &str, least: i64| {
        let n = cx.require_attr(cx.node.int(name), name)?;
        // No type has more than 64 bits, so that a larger request keeps all.
        let fits = u32::try_from(n.min(64)).ok().filter(|_| n >= least);
        fits.ok_or_else(|| cx.shape_mismatch(format!("{n} as `{name}`")))
    };
    let (exponent_bits, mantissa_bits) = (bits("exponent_bits", 1)?, bits("mantissa_bits", 0)?);
    if !cx.b.dtype(x).is_float() {
        return Err(cx.unsupported_case(format!("XlaReducePrecision of {}; floats are supported", cx.b.dtype(x))));
    }
    let y = cx.b.unary(ScalarOp::ReducePrecision { exponent_bits, mantissa_bits }, x);
    cx.one_output(y)
}

fn barrier(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let args = cx.arg_range(0, cx.args.len())?;
    let all = cx.b.tuple(&args);
    let all = cx.b.add_inst(Op::OptimizationBarrier, &[all]);
    Ok((0..args.len()).map(|i| Value::Array(cx.b.get_tuple_element(all, i))).collect())
}
