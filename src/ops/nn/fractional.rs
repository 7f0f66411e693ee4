//! Fractional pooling: windows of two consecutive sizes in random order, along rows and columns.
//!
//! The window boundaries are further results of the pool. The gradients get them as inputs, where they may be arbitrary.
use super::pool::lowest_finite;
use crate::diag::{Code, Error, Result};
use crate::dims;
use crate::graph::Node;
use crate::hlo::symbolic::{Dim, InstId, Op};
use crate::ops::array::scatter::scatter;
use crate::ops::fact::{Dims, Fact};
use crate::ops::op_lowering::op;
use crate::ops::random::{AxisWindows, window_boundaries};
use crate::ops::shape::S64;
use crate::ops::symbols::InferredDim;
use crate::ops::{LowerCtx, OpLowering, ShapeCtx, Value};
use crate::scalar::{Direction, ScalarOp};
use crate::tensor::{DType, Tensor};

const POOL: &str = "value -> output row_pooling_sequence col_pooling_sequence";
const TYPES: &str = "s32, s64, f32, f64";

/// Definitions of the ops of this file.
#[rustfmt::skip]
pub const ROWS: &[OpLowering] = &[
    op("FractionalMaxPool", POOL, max_pool).shape(pool_shape).draws_random().dtypes(TYPES),
    op("FractionalAvgPool", POOL, avg_pool).shape(pool_shape).draws_random().dtypes(TYPES),
    op("FractionalMaxPoolGrad", "orig_input orig_output out_backprop row_pooling_sequence col_pooling_sequence -> output", max_pool_grad)
        .shape(|cx| cx.one_output_like(0, cx.dims(0)?)).dtypes(TYPES),
    op("FractionalAvgPoolGrad", "orig_input_tensor_shape out_backprop row_pooling_sequence col_pooling_sequence -> output", avg_pool_grad)
        .shape(|cx| { let dims = cx.shape_from_value(0)?; cx.one_output_like(1, dims) }).constant_inputs(&[0]).dtypes(TYPES),
];

/// Axes that are divided into windows: rows and columns.
const AXES: [usize; 2] = [1, 2];

/// Pooling ratio along rows and columns: input elements per result element.
fn ratios(node: &Node) -> Result<[f32; 2]> {
    match node.floats("pooling_ratio") {
        Some(&[batch, rows, columns, features]) if batch == 1.0 && features == 1.0 && rows >= 1.0 && columns >= 1.0 => {
            Ok([rows, columns])
        }
        other => {
            let message =
                format!("pooling_ratio is {other:?}, and [1, rows, columns, 1] with both at least 1 is possible");
            Err(Error::user(Code::BadAttr, message))
        }
    }
}

/// Number of windows along an axis; TensorFlow divides in f32.
fn parts(size: u64, ratio: f32) -> Option<u64> {
    let parts = (size as f32 / ratio).floor() as u64;
    (size as f32 >= ratio && parts > 0).then_some(parts)
}

fn pool_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let (mut dims, ratios, why) = (cx.dims_of_rank(0, 4)?, ratios(cx.node)?, cx.unknown_cause(0));
    let mut facts = Vec::new();
    for (axis, ratio) in AXES.into_iter().zip(ratios) {
        let [windows, ends] = match dims[axis] {
            InferredDim::Known(size) => {
                let parts = parts(size, ratio)
                    .ok_or_else(|| cx.shape_mismatch(format!("a ratio of {ratio} for an axis of {size} elements")))?;
                [InferredDim::Known(parts), InferredDim::Known(parts + 1)]
            }
            InferredDim::Unknown(_) => {
                let windows = cx.fresh_dim(why);
                [windows, cx.add(windows, InferredDim::Known(1))]
            }
        };
        dims[axis] = windows;
        facts.push(Fact::new(S64, Dims::from(vec![ends])));
    }
    facts.insert(0, Fact::new(cx.dtype(0), dims.into()));
    Ok(facts)
}

/// Division of the rows and columns of input 0 into windows.
fn cuts(cx: &LowerCtx) -> Result<[AxisWindows; 2]> {
    let (dims, ratios) = (cx.dims(0)?, ratios(cx.node)?);
    if dims.len() != 4 {
        return Err(cx.shape_mismatch(format!("images must be [batch, rows, columns, features], not {dims:?}")));
    }
    let one = |i: usize| -> Result<AxisWindows> {
        let size = dims[AXES[i]].guarded_count();
        let parts = parts(size, ratios[i]);
        let parts = parts
            .ok_or_else(|| cx.shape_mismatch(format!("a ratio of {} for an axis of {size} elements", ratios[i])))?;
        Ok(AxisWindows { size, parts })
    };
    Ok([one(0)?, one(1)?])
}

/// First element of each window, and the end behind its last, `s64[parts]` each; overlapping windows include the first element
/// of the next.
fn ends(cx: &mut LowerCtx, sequence: InstId, size: Dim) -> [InstId; 2] {
    let overlapping = cx.bool_attr("overlapping");
    let b = &mut *cx.b;
    let count = b.dims(sequence)[0];
    let start = b.slice_axis(sequence, 0, Dim::from(0), count - 1);
    let end = b.slice_axis(sequence, 0, Dim::from(1), count);
    let more = b.full_like(end, f64::from(u8::from(overlapping)));
    let (end, size) = (b.add(end, more), b.full_like(end, size));
    [start, b.min(end, size)]
}

/// Elements of each window along `axis`, on a new axis behind it, and a mask of the positions that have an element.
fn windows(cx: &mut LowerCtx, x: InstId, axis: usize, cut: AxisWindows, sequence: InstId) -> [InstId; 2] {
    let [start, end] = ends(cx, sequence, Dim::from(cut.size));
    // The first window may have one element less than the others, another one more.
    let taps = cut.min_size() + 2;
    let b = &mut *cx.b;
    let grid = dims![cut.parts, taps];
    let (start, end, tap) =
        (b.broadcast(start, &grid, &[0]), b.broadcast(end, &grid, &[0]), b.iota(DType::S64, &grid, 1));
    let place = b.add(start, tap);
    let inside = b.compare(Direction::Lt, place, end);
    let place = b.convert(place, DType::S32);
    let place = b.reshape(place, &dims![cut.parts * taps]);
    let taken = b.gather_along_axis(x, axis, place, false);
    let mut wide = b.dims(x).to_vec();
    wide[axis] = Dim::from(cut.parts);
    wide.insert(axis + 1, Dim::from(taps));
    let taken = b.reshape(taken, &wide);
    [taken, b.broadcast(inside, &wide, &[axis, axis + 1])]
}

/// Lowers `FractionalMaxPool`. NaN is skipped, and a window without a number above the type's lowest one gives that, as in
/// TensorFlow's kernel.
fn max_pool(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let cuts = cuts(cx)?;
    let sequences = window_boundaries(cx, cuts)?;
    let mut y = cx.arg(0)?;
    for (i, axis) in AXES.into_iter().enumerate() {
        let [taken, inside] = windows(cx, y, axis, cuts[i], sequences[i]);
        let b = &mut *cx.b;
        let least = lowest_finite(b, b.dtype(y));
        let dims = b.dims(taken).to_vec();
        let none = b.broadcast(least, &dims, &[]);
        let taken = b.select(inside, taken, none);
        let comp = b.max_computation(b.dtype(y));
        y = b.add_inst(Op::Reduce { dims: vec![axis + 1], comp }, &[taken, least]);
    }
    Ok([y, sequences[0], sequences[1]].map(Value::Array).into())
}

/// Lowers `FractionalAvgPool`: the mean of each window.
fn avg_pool(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let cuts = cuts(cx)?;
    let sequences = window_boundaries(cx, cuts)?;
    let mut y = cx.arg(0)?;
    for (i, axis) in AXES.into_iter().enumerate() {
        let [taken, inside] = windows(cx, y, axis, cuts[i], sequences[i]);
        let none = cx.b.full_like(taken, 0.0);
        let taken = cx.b.select(inside, taken, none);
        let zero = cx.b.scalar(cx.b.dtype(y), 0.0);
        y = cx.b.reduce(taken, zero, ScalarOp::Add, &[axis + 1]);
    }
    let counts = counts(cx, y, sequences, [Dim::from(cuts[0].size), Dim::from(cuts[1].size)]);
    let y = cx.b.div(y, counts);
    Ok([y, sequences[0], sequences[1]].map(Value::Array).into())
}

/// Number of elements in the window of each element of `like`, in its type.
fn counts(cx: &mut LowerCtx, like: InstId, sequences: [InstId; 2], sizes: [Dim; 2]) -> InstId {
    let dims = cx.b.dims(like).to_vec();
    let [rows, columns] = [0, 1].map(|i| {
        let [start, end] = ends(cx, sequences[i], sizes[i]);
        let length = cx.b.sub(end, start);
        cx.b.broadcast(length, &dims, &[AXES[i]])
    });
    let count = cx.b.mul(rows, columns);
    cx.b.convert(count, cx.b.dtype(like))
}

/// Window boundaries in inputs `at` and `at + 1`, as many as a result of sizes `windows` needs.
fn given(cx: &mut LowerCtx, at: usize, windows: &[Dim]) -> Result<[InstId; 2]> {
    let one = |cx: &mut LowerCtx, i: usize| {
        let (sequence, dims) = (cx.arg(at + i)?, cx.dims(at + i)?);
        let needed = windows[AXES[i]] + 1;
        match dims[..] {
            [count] if count >= needed => Ok(cx.b.slice_axis(sequence, 0, Dim::from(0), needed)),
            _ => Err(cx.shape_mismatch(format!("boundaries {dims:?}, and {needed} of them are needed"))),
        }
    };
    Ok([one(cx, 0)?, one(cx, 1)?])
}

/// Array with an axis of windows, and behind it an axis of all image elements along that axis.
struct Spread {
    /// Sizes of the array.
    wide: Vec<Dim>,
    /// Mask of the image elements that are in the window.
    member: InstId,
}

/// Sizes `dims`, whose axis `axis` counts windows, extended by an axis of the `size` image elements behind it.
fn members(cx: &mut LowerCtx, dims: &[Dim], axis: usize, sequence: InstId, size: Dim) -> Spread {
    let [start, end] = ends(cx, sequence, size);
    let mut wide = dims.to_vec();
    wide.insert(axis + 1, size);
    let b = &mut *cx.b;
    let (start, end) = (b.broadcast(start, &wide, &[axis]), b.broadcast(end, &wide, &[axis]));
    let place = b.iota(DType::S64, &wide, axis + 1);
    let (from, to) = (b.compare(Direction::Ge, place, start), b.compare(Direction::Lt, place, end));
    Spread { member: b.binary(ScalarOp::And, from, to), wide }
}

/// Lowers the gradient of `FractionalAvgPool`: each element is divided equally among the elements of its window, and added up
/// in f64.
fn avg_pool_grad(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (image, windows) = (cx.constant_dims(0)?, cx.dims(1)?);
    let (&[batch, rows, columns, features], 4) = (&image[..], windows.len()) else {
        return Err(cx.shape_mismatch(format!("a gradient {windows:?} of images {image:?}")));
    };
    if windows[0] != batch || windows[3] != features {
        return Err(cx.shape_mismatch(format!("a gradient {windows:?} of images {image:?}")));
    }
    let sequences = given(cx, 2, &windows)?;
    let (grad, dtype, sizes) = (cx.arg(1)?, cx.dtype(1)?, [rows, columns]);
    let grad = cx.b.convert(grad, DType::F64);
    let counts = counts(cx, grad, sequences, sizes);
    let mut y = cx.b.div(grad, counts);
    for (i, axis) in AXES.into_iter().enumerate() {
        let dims = cx.b.dims(y).to_vec();
        let Spread { wide, member } = members(cx, &dims, axis, sequences[i], sizes[i]);
        let map: Vec<usize> = (0..4).map(|a| if a > axis { a + 1 } else { a }).collect();
        let share = cx.b.broadcast(y, &wide, &map);
        let none = cx.b.full_like(share, 0.0);
        let share = cx.b.select(member, share, none);
        let zero = cx.b.scalar(DType::F64, 0.0);
        y = cx.b.reduce(share, zero, ScalarOp::Add, &[axis]);
    }
    let y = cx.b.convert(y, dtype);
    cx.one_output(y)
}

/// Largest element of each window along `axis` of `x`, and the smallest `payload` at its positions.
fn first_largest(cx: &mut LowerCtx, [x, payload]: [InstId; 2], axis: usize, sequence: InstId) -> [InstId; 2] {
    let size = cx.b.dims(x)[axis];
    let mut dims = cx.b.dims(x).to_vec();
    dims[axis] = cx.b.dims(sequence)[0] - 1;
    let Spread { wide, member } = members(cx, &dims, axis, sequence, size);
    let map: Vec<usize> = (0..4).map(|a| if a >= axis { a + 1 } else { a }).collect();
    let b = &mut *cx.b;
    let [x, payload] = [x, payload].map(|each| b.broadcast(each, &wide, &map));
    let lowest = super::pool::lowest_value(b, b.dtype(x));
    let none = b.broadcast(lowest, &wide, &[]);
    let inside = b.select(member, x, none);
    let largest = b.reduce(inside, lowest, ScalarOp::Maximum, &[axis + 1]);
    let map: Vec<usize> = (0..4).map(|a| if a > axis { a + 1 } else { a }).collect();
    let spread = b.broadcast(largest, &wide, &map);
    let equal = b.compare(Direction::Eq, x, spread);
    let equal = b.binary(ScalarOp::And, equal, member);
    let most = b.constant(Tensor::scalar(i64::MAX));
    let elsewhere = b.broadcast(most, &wide, &[]);
    let payload = b.select(equal, payload, elsewhere);
    [largest, b.reduce(payload, most, ScalarOp::Minimum, &[axis + 1])]
}

/// Lowers the gradient of `FractionalMaxPool`: each element goes to the first largest element of its window.
fn max_pool_grad(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (image, windows) = (cx.dims(0)?, cx.dims(2)?);
    let is_sound = image.len() == 4 && windows.len() == 4 && windows == cx.dims(1)?;
    if !is_sound || windows[0] != image[0] || windows[3] != image[3] {
        return Err(cx.shape_mismatch(format!("a gradient {windows:?} of images {image:?}")));
    }
    let sequences = given(cx, 3, &windows)?;
    let (x, grad, dtype) = (cx.arg(0)?, cx.arg(2)?, cx.dtype(0)?);
    let mut place = cx.b.full(DType::S64, &image, 0.0);
    for axis in 0..4 {
        let (i, n) = (cx.b.iota(DType::S64, &image, axis), cx.b.full(DType::S64, &image, image[axis]));
        place = cx.b.mul(place, n);
        place = cx.b.add(place, i);
    }
    let along = first_largest(cx, [x, place], AXES[1], sequences[1]);
    let [_, place] = first_largest(cx, along, AXES[0], sequences[0]);
    let (elements, count): (Dim, Dim) = (image.iter().product(), windows.iter().product());
    let place = cx.b.reshape(place, &[count, Dim::from(1)]);
    let grad = cx.b.reshape(grad, &[count]);
    let zeros = cx.b.full(dtype, &[elements], 0.0);
    let y = scatter(cx, zeros, place, grad, Some(ScalarOp::Add))?;
    let y = cx.b.reshape(y, &image);
    cx.one_output(y)
}
